//! How a run ended, or where it stopped, in words.

use planctl_api::wire::{RunState, RunView, StepState, StepView, WorktreeView};
use planctl_api::words;

use super::super::Context;
use super::super::standing::{exit_of, follow_up_command, next_of, trouble};
use super::super::work::{Manner, waiting_line};
use crate::failure::{Answer, Exit};
use crate::next;
use crate::show::{self, BOLD, CARE, GOOD, shell_word, styled};

/// Says that a plan's file is another text than the one that runs.
pub fn changed_file_line(view: &RunView) -> String {
    let goes_on = if view.state.is_over() { "it ran as approved" } else { "it runs as approved" };
    let plan = show::plan(&view.plan, &view.title);
    format!("{plan} was changed during the run: {goes_on}, and the file is left as it is")
}

/// Reports the end of a run: the event, its place, the last lines that matter, and the next command.
pub(super) fn print_end(context: &Context, view: &RunView, question: Option<&str>, manner: Manner) -> Answer {
    let exit = exit_of(view);
    if manner == Manner::Jsonl {
        return Ok(exit);
    }
    let mut text = summary(view);
    if let Some(reason) = view.reason.as_ref().filter(|_| exit != Exit::Yes) {
        text.push_str(&format!("  {}\n", show::safe(reason)));
    }
    if view.is_plan_file_changed {
        text.push_str(&format!("  {}\n", styled(CARE, &changed_file_line(view))));
    }
    let is_told = |failure: &String| view.reason.as_ref().is_some_and(|reason| reason.contains(failure));
    let is_news = |step: &&StepView| step.failure.as_ref().is_some_and(|failure| !is_told(failure));
    let mut failed = view.steps.iter().rev().filter(|step| exit != Exit::Yes && is_news(step));
    if let Some(question) = question {
        text.push_str(&format!("  {}\n", show::safe(question)));
    } else if let Some(step) = failed.next() {
        let failure = step.failure.as_deref().unwrap_or_default();
        text.push_str(&format!(
            "  step {} {}: {}\n",
            step.number,
            show::safe(&step.title),
            show::safe(failure)
        ));
    }
    for (step, caveat) in view.steps.iter().filter_map(|step| Some((step, show::caveat(step)?))) {
        let title = show::safe(&step.title);
        let line = format!("step {} {title}: {caveat}", step.number);
        text.push_str(&format!("  {}\n", styled(show::CARE, &line)));
    }
    text.push_str(&left_out_line(view));
    if let Some(worktree) = view.worktree.as_ref().filter(|worktree| worktree.is_made) {
        text.push_str(&format!("  {}\n", worktree_line(worktree)));
    }
    if let Some(line) = waiting_line(view).filter(|_| view.state == RunState::Queued) {
        text.push_str(&format!("  {line}\n"));
    }
    show::print(&text)?;
    if let Some(next) = next_of(view) {
        context.say(&next::line(&next));
    }
    Ok(exit)
}

/// Says where a run works, and what of the workspace is not there.
pub(super) fn worktree_lines(worktree: &WorktreeView, is_taken_up: bool) -> String {
    let (path, branch) = (show::safe(&worktree.path), show::safe(&worktree.branch));
    let mut text = format!("worktree {path} · branch {branch}");
    if worktree.left_behind > 0 && !is_taken_up {
        let (count, are) = match worktree.left_behind {
            1 => ("1 change".to_owned(), "is"),
            count => (format!("{count} changes"), "are"),
        };
        let line = format!("{count} of this checkout {are} not committed, and not there");
        text.push_str(&format!("\n{}", styled(show::CARE, &line)));
    }
    text
}

/// Says what a run does without; nothing of a run whose branches were merged.
pub fn left_out_line(view: &RunView) -> String {
    let line = words::left_out(&view.passages);
    line.map(|line| format!("  {}\n", styled(show::CARE, &line))).unwrap_or_default()
}

/// Says where the work of a run is.
pub fn worktree_line(worktree: &WorktreeView) -> String {
    let (path, branch) = (show::safe(&worktree.path), show::safe(&worktree.branch));
    let state = match (worktree.is_removed, worktree.uncommitted) {
        (true, _) => " · removed".to_owned(),
        (false, Some(0)) if worktree.commit.as_ref() == Some(&worktree.base) => {
            " · nothing changed".to_owned()
        }
        (false, Some(0)) => match &worktree.commit {
            Some(commit) => {
                format!(" · all committed as {}", show::safe(commit.get(..12).unwrap_or(commit)))
            }
            None => " · all committed".to_owned(),
        },
        (false, Some(1)) => " · 1 change not committed".to_owned(),
        (false, Some(count)) => format!(" · {count} changes not committed"),
        (false, None) => String::new(),
    };
    let mut line = format!("worktree {path} · branch {branch}{state}");
    line.extend(trouble_line(worktree).map(|told| format!("\n  {told}")));
    line
}

/// Says why a person should not merge the work of a run.
pub fn trouble_line(worktree: &WorktreeView) -> Option<String> {
    let line = format!("not to be merged: {}", show::safe(trouble(worktree)?));
    Some(styled(show::CARE, &line))
}

/// Says in one line how a run ended, or where it stands.
fn summary(view: &RunView) -> String {
    let run = styled(BOLD, &show::safe(&view.run));
    let cost = show::cost(&view.spent, &view.budget);
    if view.state != RunState::Done {
        return format!("{run} {} · {} · {cost}\n", show::run_state(view.state), outcomes(view));
    }
    let attempts: u32 = view.steps.iter().map(|step| step.attempts).sum();
    let attempts = match attempts {
        0 => String::new(),
        1 => ", 1 attempt".to_owned(),
        several => format!(", {several} attempts"),
    };
    let (time, rest) = cost.split_once(" · ").unwrap_or((&cost, ""));
    let rest = if rest.is_empty() { String::new() } else { format!(" · {rest}") };
    format!("{} {run} done in {time} · {}{attempts}{rest}\n", styled(GOOD, "✓"), steps_done(view))
}

/// Counts the steps of a run that is done; those of which more is to be said than that they passed are counted apart.
fn steps_done(view: &RunView) -> String {
    let count = |state: StepState| view.steps.iter().filter(|step| step.state == state).count();
    let passed = count(StepState::Passed);
    let mut parts = vec![format!("{passed} step{}", if passed == 1 { "" } else { "s" })];
    let others = [
        (StepState::Failed, "failed"),
        (StepState::Skipped, "skipped"),
        (StepState::Waived, "waived"),
        (StepState::Warned, "warned"),
        (StepState::Pending, "not needed"),
    ];
    let others = others.map(|(state, word)| (count(state), word));
    parts
        .extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
    let joins = view.passages.iter().filter(|node| node.leaves_out).count();
    if joins > 0 {
        parts.push(format!("{} not merged", show::counted(joins, "join")));
    }
    parts.join(", ")
}

fn outcomes(view: &RunView) -> String {
    let words = [
        (StepState::Passed, "passed"),
        (StepState::Failed, "failed"),
        (StepState::Skipped, "skipped"),
        (StepState::Waived, "waived"),
        (StepState::Warned, "warned"),
    ];
    let parts = words.iter().filter_map(|(state, word)| {
        let count = view.steps.iter().filter(|step| step.state == *state).count();
        (count > 0).then(|| format!("{count} {word}"))
    });
    let parts: Vec<String> = parts.collect();
    let of = format!("of {} step{}", view.steps.len(), if view.steps.len() == 1 { "" } else { "s" });
    if parts.is_empty() { format!("0 {of}") } else { format!("{} {of}", parts.join(", ")) }
}

/// Returns what to type after an answer, so that the run goes on.
pub fn after_answer(view: &RunView, word: &planctl_engine::Answer) -> String {
    use planctl_engine::Answer as Word;
    match word {
        Word::Approve
        | Word::Retry
        | Word::Skip
        | Word::Waive
        | Word::Reassign { .. }
        | Word::Raise { .. }
        | Word::Choose { .. }
        | Word::Allow { .. }
        | Word::Restore
        | Word::Reply => follow_up_command(view),
        Word::Reject | Word::Abort => format!("planctl status {}", shell_word(&view.run)),
        Word::Revise => "change the plan's file, then: planctl approve FILE".to_owned(),
    }
}
