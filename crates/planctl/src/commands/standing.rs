//! Where a run stands, as an exit code and as the command to type next.

use planctl_api::Next;
use planctl_api::wire::{HolderView, RunState, RunView, WaitingOn, WorktreeView};
use planctl_config::Agent;

use crate::failure::Exit;
use crate::next;
use crate::show::{self, shell_word};

/// Returns the exit code that says where a run stands (INTERFACE 2.4).
pub fn exit_of(view: &RunView) -> Exit {
    match view.state {
        // A script that merges what is done would bring other files than those that were judged.
        RunState::Done if view.worktree.as_ref().is_some_and(|tree| trouble(tree).is_some()) => Exit::No,
        RunState::Done => Exit::Yes,
        RunState::Failed if view.end.as_deref() == Some("aborted") => Exit::Cancelled,
        RunState::Failed => Exit::No,
        RunState::Cancelled => Exit::Cancelled,
        RunState::AwaitingApproval | RunState::Paused => Exit::Waiting,
        RunState::Waiting => waiting_exit(view.waiting_on.as_ref()),
        RunState::Queued => match &view.holder {
            Some(holder) if holder.ask().is_some() => waiting_exit(holder.waiting_on.as_ref()),
            Some(_) | None => Exit::InProgress,
        },
        RunState::Running => Exit::InProgress,
    }
}

/// Returns why a person should not merge the work of a run, where its worktree is still there.
pub fn trouble(worktree: &WorktreeView) -> Option<&str> {
    worktree.trouble.as_deref().filter(|_| !worktree.is_removed)
}

/// Returns the exit code of a run that waits for a person.
pub fn waiting_exit(wait: Option<&WaitingOn>) -> Exit {
    if wait.is_some_and(|wait| matches!(wait.kind.as_str(), "budget" | "day_budget")) {
        Exit::Budget
    } else {
        Exit::Waiting
    }
}

/// Returns the commands to type next about a run, a line for each, as they stand behind `next:`.
pub fn next_of(view: &RunView) -> Option<String> {
    next_in_its_workspace(view).map(|words| next::typed_in(&words, &view.workspace))
}

fn next_in_its_workspace(view: &RunView) -> Option<String> {
    let run = shell_word(&view.run);
    match view.state {
        RunState::Done => merge_of(view),
        RunState::Cancelled => None,
        RunState::Waiting if view.waiting_on.as_ref().is_some_and(|wait| wait.kind == "worktree") => {
            Some(format!("planctl resume {run}"))
        }
        RunState::Failed => Some(lines(&[format!("planctl logs {run}"), format!("planctl resume {run}")])),
        // Its process ended, or the database failed, before the plan was handed in: the same command takes the run up.
        RunState::AwaitingApproval if view.waiting_on.is_none() => {
            Some(format!("planctl run {}", next::plan_word(&view.plan, &view.workspace)))
        }
        RunState::AwaitingApproval | RunState::Waiting => {
            let id = view.waiting_on.as_ref().and_then(|wait| wait.id)?;
            Some(format!("planctl approvals show {id}"))
        }
        RunState::Paused if show::is_of_guard(&view.plan) => Some(format!("planctl resume {run}")),
        RunState::Paused => {
            let plan = next::plan_word(&view.plan, &view.workspace);
            let approve = format!("planctl approve {plan}    (once the plan is changed)");
            Some(lines(&[format!("planctl resume {run}"), approve]))
        }
        RunState::Queued if view.holder.as_ref().is_some_and(HolderView::is_for_people) => {
            view.holder.as_ref().map(next_of_holder)
        }
        RunState::Queued | RunState::Running => {
            let wait = view.waiting_on.as_ref();
            // One branch asks while another is worked on.
            let ask = wait.and_then(|wait| wait.id).map(|id| format!("planctl approvals show {id}"));
            Some(ask.or_else(|| next::worker_wanted(view)).unwrap_or_else(|| follow_up_command(view)))
        }
    }
}

/// Returns what to type so that the run goes on that has the workspace.
fn next_of_holder(holder: &HolderView) -> String {
    let run = shell_word(&holder.run);
    match holder.ask() {
        Some(ask) => format!("planctl approvals show {ask}"),
        None => lines(&[format!("planctl resume {run}"), format!("planctl cancel {run}")]),
    }
}

/// Returns what starts another run of a run's plan, with the worker that is named now, else the one that was named for the run.
pub fn command_to_run_again(view: &RunView, named: Option<&Agent>) -> String {
    let of_run =
        || view.exec.as_ref().map(|command| format!("exec:{command}")).or_else(|| view.agent.clone());
    let worker = named.map(Agent::to_string).or_else(of_run);
    next::words_in(&Next::start_again_with(&view.plan, worker), Some(&view.workspace))
}

/// Returns what to type about a run that would go on.
pub fn follow_up_command(view: &RunView) -> String {
    let run = shell_word(&view.run);
    let verb = if view.worked_on_by.is_some() { "watch" } else { "resume" };
    format!("planctl {verb} {run}")
}

/// Returns what takes the work of a run that is done from its worktree into the workspace.
fn merge_of(view: &RunView) -> Option<String> {
    let worktree = view.worktree.as_ref().filter(|worktree| worktree.is_made && !worktree.is_removed)?;
    if worktree.trouble.is_some() {
        return None;
    }
    let workspace = shell_word(&view.workspace);
    let git = if next::stands_in(&view.workspace) { "git".to_owned() } else { format!("git -C {workspace}") };
    // The commit that was judged, by the whole of its name: somebody may move the branch before this is typed, and may give
    // a branch or a tag the name that a shorter one would be. A reference to replace an object may come later, too.
    let merged = worktree.commit.clone().filter(|_| worktree.uncommitted == Some(0));
    let merged = merged.unwrap_or_else(|| format!("refs/heads/{}", worktree.branch));
    let merge = format!("{git} --no-replace-objects merge {}", shell_word(&merged));
    let path = shell_word(&worktree.path);
    let run = shell_word(&view.run);
    match worktree.uncommitted {
        Some(0) if worktree.commit.as_ref() == Some(&worktree.base) => Some("planctl clean".to_owned()),
        Some(0) => Some(lines(&[merge, "planctl clean".to_owned()])),
        Some(_) | None => {
            let merge = format!("git -C {path} add -A && git -C {path} commit -m {run} && {merge}");
            Some(lines(&[merge, "planctl clean".to_owned()]))
        }
    }
}

/// Puts commands below each other, so that each can be copied whole.
fn lines(commands: &[String]) -> String {
    commands.join("\n      ")
}
