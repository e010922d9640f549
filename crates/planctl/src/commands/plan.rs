//! `planctl plan …` and `planctl run …`: everything about plans and runs that is not working on one.

use std::path::{Path, PathBuf};

use planctl_api::wire::calls::Approving;
use planctl_api::wire::{RunState, RunSummary, RunView, StepName, UnreadRun, WaitingOn};
use planctl_config::Agent;

use super::{Context, approvals, changes, explain, history, review, verify};
use crate::args::{PlanCommand, PlanVerb, RunArgs, RunCommand, RunFilter, RunPlan, RunVerb, VerifyArgs};
use crate::checking;
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::progress::{self, Look};
use crate::show::{self, BOLD, styled};

/// Does what was typed after `planctl plan`.
pub async fn run(context: &Context, command: PlanCommand) -> Answer {
    match command {
        PlanCommand::Verb(verb) => on_file(context, verb).await,
        PlanCommand::Run(plan) => start(context, plan).await,
        PlanCommand::Ls => super::plans::ls(context).await,
        PlanCommand::OfRun(verb) => on_run(context, verb).await,
    }
}

/// Does what was typed after `planctl run`.
pub async fn run_noun(context: &Context, args: RunArgs) -> Answer {
    match args.command {
        None => start(context, args.plan).await,
        Some(RunCommand::Ls(filter)) => ls(context, &filter).await,
        Some(RunCommand::Show { run }) => status(context, Some(&run), false, false).await,
        Some(RunCommand::Verb(verb)) => on_run(context, verb).await,
    }
}

/// Does something with a plan's file.
pub async fn on_file(context: &Context, verb: PlanVerb) -> Answer {
    match verb {
        PlanVerb::New { file, beginning } => super::new::run(context, file.as_deref(), &beginning),
        PlanVerb::Edit(args) => super::editing::run(context, &args).await,
        PlanVerb::Verify(VerifyArgs { explain: Some(code), .. }) => explain::explain(context, &code),
        PlanVerb::Verify(args) => verify::verify(context, &args).await,
        PlanVerb::Explain { code } => explain::explain(context, code.as_deref().unwrap_or_default()),
        PlanVerb::Fmt { files, check } => super::format::run(context, &files, check),
        PlanVerb::Show { plan, step } => show_plan(context, &plan, step).await,
        PlanVerb::Diff { file, since, until, text } => {
            changes::diff(context, &file, &changes::Between { since, until, text }).await
        }
        PlanVerb::Review(args) => review::review(context, &args).await,
        PlanVerb::Approve { what, note, accept_changed, worker } => {
            let given = Approving { note, accept_changed, worker: worker.worker() };
            approve_all(context, what, &given).await
        }
        PlanVerb::Reject { what, note } => reject_all(context, what, note.as_deref()).await,
        PlanVerb::Expand { file, expanding } => super::expand::run(context, &file, &expanding).await,
    }
}

/// Does something with a run.
pub async fn on_run(context: &Context, verb: RunVerb) -> Answer {
    match verb {
        RunVerb::Status { run, watch: true, .. } => {
            super::run::watch(context, run.as_deref().unwrap_or(NEWEST), false).await
        }
        RunVerb::Status { run: Some(run), salute: true, exit_code, .. } => {
            super::salute::run(context, &run, exit_code).await
        }
        RunVerb::Status { run: Some(run), traversal: true, exit_code, .. } => {
            super::traversal::run(context, &run, exit_code).await
        }
        RunVerb::Status { run, all, exit_code, .. } => status(context, run.as_deref(), all, exit_code).await,
        RunVerb::Watch { run, no_wait } => super::run::watch(context, &run, no_wait).await,
        RunVerb::Logs { run, step, attempt, contract, tail } => {
            history::logs(context, &run, history::Which { step, attempt, contract, tail }).await
        }
        RunVerb::Events { run, named, follow, since, tail, recent } => {
            let run = named.unwrap_or(run);
            match tail.or(recent.then_some(history::RECENT)) {
                Some(count) => history::newest(context, &run, count).await,
                None => history::events(context, &run, follow, since).await,
            }
        }
        RunVerb::Why { run, step } => history::why(context, &run, step.as_deref()).await,
        RunVerb::Resume { run, worker, no_wait, auto_answer } => {
            super::run::resume(context, &run, worker.worker(), no_wait, auto_answer).await
        }
        RunVerb::Pause { run, note } => pause(context, &run, note.as_deref()).await,
        RunVerb::Cancel { runs, note } => cancel(context, &runs, note.as_deref()).await,
        RunVerb::Audit { run } => history::audit(context, run.as_deref()).await,
        RunVerb::Export { run, to } => super::export::run(context, &run, &to).await,
        RunVerb::Context { run } => history::brief(context, &run).await,
    }
}

/// Runs a plan, or only shows what would run.
async fn start(context: &Context, plan: RunPlan) -> Answer {
    let RunPlan {
        file,
        named,
        approve,
        accept_changed,
        again,
        worker,
        dry_run,
        no_wait,
        detach,
        auto_answer,
    } = plan;
    let Some(file) = file.or(named) else {
        return Err(Failure::usage("no plan is named")
            .next("planctl run FILE")
            .help("planctl plan ls lists the plans of this workspace"));
    };
    if dry_run {
        let shown = show_plan(context, &file.to_string_lossy(), None).await?;
        context.say("nothing ran: --dry-run");
        return Ok(shown);
    }
    let approve = approve.then_some(Approving { note: None, accept_changed, worker: None });
    let worker = worker.worker();
    let wish = super::run::Wish { approve, again, worker, no_wait, detach, auto_answer };
    super::run::run(context, &file, wish).await
}

/// The name of the newest run.
const NEWEST: &str = "@last";

/// An argument that is the number of an ask or the path of a plan.
enum AskOrPlan {
    Ask(u64),
    Plan(PathBuf),
}

impl AskOrPlan {
    fn of(word: String) -> AskOrPlan {
        match word.parse() {
            Ok(ask) if !Path::new(&word).exists() => AskOrPlan::Ask(ask),
            Ok(_) | Err(_) => AskOrPlan::Plan(word.into()),
        }
    }
}

/// Approves plans by their files, and whatever else asks with these numbers want approved.
async fn approve_all(context: &Context, what: Vec<String>, given: &Approving) -> Answer {
    if what.is_empty() {
        return approvals::approve(context, &[], given).await;
    }
    for word in what {
        match AskOrPlan::of(word) {
            AskOrPlan::Ask(ask) => approvals::approve(context, &[ask], given).await?,
            AskOrPlan::Plan(file) => approve(context, &file, given).await?,
        };
    }
    Ok(Exit::Yes)
}

/// Rejects plans by their files, and answers asks with `reject`.
async fn reject_all(context: &Context, what: Vec<String>, note: Option<&str>) -> Answer {
    if what.is_empty() {
        return approvals::reject(context, &[], note).await;
    }
    for word in what {
        match AskOrPlan::of(word) {
            AskOrPlan::Ask(ask) => approvals::reject(context, &[ask], note).await?,
            AskOrPlan::Plan(file) => reject(context, &file, note).await?,
        };
    }
    Ok(Exit::Yes)
}

async fn show_plan(context: &Context, plan: &str, step: Option<u32>) -> Answer {
    let is_json = context.is_json()?;
    let checked = match Path::new(plan) {
        file if file.exists() => {
            checking::check(context, file, None, &planctl_lang::Levels::default()).await?
        }
        _ => {
            let client = Client::open(context).await?;
            client.plan_of_run(client.find(plan).await?).await?
        }
    };
    let file = &checked.file;
    let Some(graph) = checked.verification.graph.as_ref() else {
        show::print(&verify::findings(&checked, context.is_quiet()))?;
        return Err(not_verified(file, &checked));
    };
    let view = verify::plan_view(context, &checked, graph)?;
    if let Some(number) = step
        && !view.steps.iter().any(|step| step.number == number)
    {
        return Err(Failure::not_found(format!("{} has no step {number}", file.display())));
    }
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&verify::drawn(&view, None, step))?;
    }
    Ok(Exit::Yes)
}

/// Says that a plan has errors; the findings themselves are printed before.
pub fn not_verified(file: &Path, checked: &planctl_server::check::Checked) -> Failure {
    let (name, counted) = (file.display(), verify::counted(&checked.verification));
    match checked.folder.as_str() {
        "" => Failure::new(Exit::No, format!("could not verify {name}: {counted}"))
            .next(format!("planctl plan verify {name}")),
        folder => {
            let (shown, typed) = (show::safe(folder), shell_word(folder));
            Failure::new(Exit::No, format!("could not verify {name} in the folder {shown}: {counted}"))
                .next(format!("planctl plan verify --workspace {typed} {name}"))
        }
    }
}

async fn approve(context: &Context, file: &Path, given: &Approving) -> Answer {
    let worker = given.worker.as_ref();
    let is_json = context.is_json()?;
    let mut checked = checking::check(context, file, worker, &planctl_lang::Levels::default()).await?;
    let client = Client::open(context).await?;
    let folder = folder_of_run(context, &client, &checked.path).await?;
    if !folder.is_empty() {
        checked =
            checking::check_in(context, &folder, file, worker, &planctl_lang::Levels::default()).await?;
    }
    if !checked.verification.is_verified() {
        show::say(&verify::findings(&checked, context.is_quiet()));
        return Err(not_verified(file, &checked));
    }
    context.say_findings(&client.topic_findings(&checked).await?);
    if folder.is_empty() && !is_json {
        super::run::say_uncommitted(&client.standing(&checked, true).await?.uncommitted);
    }
    let decided = client.approve(&checked, given).await?;
    recorded(context, &decided, is_json)?;
    // The consequence is said already; a worker that is named here has to be named there as well.
    if let Some(worker) = worker.filter(|_| !is_json && decided.run.is_none()) {
        let file = shell_word(&file.display().to_string());
        context.say(&format!("{} planctl plan run {file} {}", styled(BOLD, "next:"), worker_flag(worker)));
    }
    Ok(Exit::Yes)
}

/// Returns the folder in which the run works that an approval of a plan lets go on; empty where that is the workspace, or
/// there is none.
async fn folder_of_run(context: &Context, client: &Client, path: &str) -> Result<String, Failure> {
    // A plan without a run is not found, and what keeps everything from being found keeps it from being approved, too.
    let Ok(handle) = client.find(path).await else { return Ok(String::new()) };
    let run = client.status(handle).await?;
    let is_its = run.plan == path && Path::new(&run.workspace) == context.workspace();
    Ok(run.folder.filter(|_| is_its && !run.state.is_over()).unwrap_or_default())
}

/// Writes the flag that names a worker, as it would be typed.
pub fn worker_flag(worker: &Agent) -> String {
    match worker {
        Agent::Exec(command) => format!("--exec {}", shell_word(command)),
        Agent::Known { .. } => format!("--agent {}", shell_word(&worker.to_string())),
    }
}

async fn reject(context: &Context, file: &Path, note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let checked = checking::check(context, file, None, &planctl_lang::Levels::default()).await?;
    let client = Client::open(context).await?;
    let decided = client.reject(&checked, note.unwrap_or("rejected")).await?;
    recorded(context, &decided, is_json)?;
    Ok(Exit::Yes)
}

async fn pause(context: &Context, run: &str, note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let run = client.find(run).await?;
    recorded(context, &client.pause(run, note).await?, is_json)?;
    Ok(Exit::Yes)
}

/// Cancels runs; the newest one, where none is named and a person says yes.
async fn cancel(context: &Context, runs: &[String], note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let mut found = Vec::new();
    for run in runs {
        found.push(client.find(run).await?);
    }
    if runs.is_empty() {
        let newest = client.find(NEWEST).await?;
        let view = client.status(newest).await?;
        let name = show::safe(&view.run);
        context.confirm(&format!("Cancel {name} ({}) for good?", show::safe(&view.plan)))?;
        found.push(newest);
    }
    for run in found {
        recorded(context, &client.cancel(run, note).await?, is_json)?;
    }
    Ok(Exit::Yes)
}

/// Says what was recorded, by whom, and what follows.
pub fn recorded(
    context: &Context,
    decided: &planctl_api::wire::Decided,
    is_json: bool,
) -> Result<(), Failure> {
    if is_json {
        return show::print_json(decided);
    }
    context.say(recorded_line(decided).trim_end());
    Ok(())
}

/// Says in one line what was recorded, by whom, and what follows.
pub fn recorded_line(decided: &planctl_api::wire::Decided) -> String {
    let next = decided.next.as_ref().map(|next| format!(" · {}", show::safe(&next::words(next))));
    format!("{}{}\n", recorded_word(decided), next.unwrap_or_default())
}

/// Says what was recorded, and by whom.
pub fn recorded_word(decided: &planctl_api::wire::Decided) -> String {
    let repeated = if decided.repeated { " (it was before, too)" } else { "" };
    format!("recorded: {} by {}{repeated}", show::safe(&decided.decision), show::safe(&decided.by))
}

async fn status(context: &Context, run: Option<&str>, all: bool, exit_code: bool) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let Some(run) = run else {
        let mut list = client.list(all).await?;
        list.runs.retain(|run| all || !run.state.is_over() || is_json);
        if is_json {
            show::print_json(&list)?;
        } else if list.runs.is_empty() {
            show::print(if all {
                "no runs\n"
            } else {
                "no run goes on here; planctl ls lists those that are over\n"
            })?;
        } else {
            show::print(&run_table(&list.runs))?;
        }
        complain(&list.unread);
        return Ok(Exit::Yes);
    };
    let view = client.status(client.find(run).await?).await?;
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&run_page(&view, client.is_daemon()))?;
    }
    Ok(if exit_code { exit_of(&view) } else { Exit::Yes })
}

/// Lists runs.
pub async fn ls(context: &Context, filter: &RunFilter) -> Answer {
    let RunFilter { state: states, all } = filter;
    let is_json = context.is_json()?;
    if let Some(unknown) = states.iter().find(|word| RunState::ALL.iter().all(|state| state.word() != **word))
    {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.word()).collect();
        return Err(Failure::usage(format!("there is no state `{}`", show::safe(unknown)))
            .help(format!("states: {}", known.join(", "))));
    }
    let client = Client::open(context).await?;
    let mut list = client.list(*all).await?;
    list.runs.retain(|run| states.is_empty() || states.iter().any(|word| run.state.word() == word));
    if is_json {
        show::print_json(&list)?;
    } else {
        show::print(&run_table(&list.runs))?;
    }
    complain(&list.unread);
    Ok(Exit::Yes)
}

/// Says which runs can't be shown.
fn complain(unread: &[UnreadRun]) {
    for run in unread {
        let name = show::safe(&run.run);
        show::say(&format!("{name} can't be shown: {}", show::safe(&run.what)));
        show::say(&format!("next: planctl audit {name}"));
    }
}

fn run_table(runs: &[RunSummary]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let rows = runs.iter().map(|run| {
        let step = match (run.under_way.as_slice(), &run.step) {
            ([_, _, ..], _) => {
                format!("{}/{} {}", run.steps_settled, run.steps_total, side_by_side(&run.under_way))
            }
            (_, Some(step)) => {
                format!("{}/{} {}", step.number, run.steps_total, show::brief(&step.title, 30))
            }
            (_, None) => format!("{}/{}", run.steps_settled, run.steps_total),
        };
        vec![
            run.run.clone(),
            show::run_state(run.state).to_owned(),
            step,
            run.waiting_on.as_ref().map_or("-".to_owned(), waiting),
            show::cost(&run.spent, &run.budget),
            show::brief(&run.plan, 40),
        ]
    });
    show::table(&["RUN", "STATE", "STEP", "WAITING ON", "SPENT", "PLAN"], rows.collect())
}

/// Names the steps that are under way at once: `4 Lint, 5 Test, 2 more`.
fn side_by_side(steps: &[StepName]) -> String {
    let name = |step: &StepName| format!("{} {}", step.number, show::brief(&step.title, 14));
    let mut named: Vec<String> = steps.iter().take(2).map(name).collect();
    if steps.len() > 2 {
        named.push(format!("{} more", steps.len() - 2));
    }
    named.join(", ")
}

fn waiting(wait: &WaitingOn) -> String {
    if let (Some(lock), Some(run)) = (&wait.lock, &wait.run) {
        return format!("lock {lock} of run {run}");
    }
    match (wait.id, &wait.role, &wait.run) {
        (Some(id), _, _) => format!("you: {} {id}", wait.kind),
        (None, Some(role), _) => format!("a worker of role {role}"),
        (None, None, Some(run)) if wait.kind == "ending" => format!("the end of run {run}'s agent"),
        (None, None, Some(run)) => format!("run {run}"),
        (None, None, None) => wait.kind.clone(),
    }
}

fn run_page(view: &RunView, is_daemon: bool) -> String {
    let mut text = format!(
        "{} {} · {} · {}\n",
        styled(BOLD, &show::safe(&view.run)),
        show::run_state(view.state),
        show::safe(&view.plan),
        verify::short_digest(&view.digest)
    );
    let look = Look { now_unix_seconds: client::now_unix_seconds(), lines_max: usize::MAX, ctrl_c: None };
    for line in progress::picture(view, &look) {
        text.push_str(&line);
        text.push('\n');
    }
    if let Some(reason) = view.reason.as_ref().filter(|_| view.state != RunState::Done) {
        text.push_str(&format!("  {}\n", show::safe(reason)));
    }
    if view.is_plan_file_changed && !view.state.is_over() {
        text.push_str(&format!("  {}\n", styled(show::CARE, &super::run::changed_file_line(view))));
    }
    if let Some(policy) = view.approved_by.as_deref().and_then(show::policy) {
        text.push_str(&format!("  approved by {policy}\n"));
    }
    if let Some(folder) = &view.folder {
        text.push_str(&format!("  works in the folder {}\n", show::safe(folder)));
    }
    if let Some(worktree) = &view.worktree {
        text.push_str(&format!("  {}\n", super::run::worktree_line(worktree)));
    }
    if let Some(next) = next_of(view, is_daemon) {
        text.push_str(&format!("{} {next}\n", styled(BOLD, "next:")));
    }
    text
}

/// Returns the exit code that says where a run stands (INTERFACE 2.4).
pub fn exit_of(view: &RunView) -> Exit {
    match view.state {
        RunState::Done => Exit::Yes,
        RunState::Failed if view.end.as_deref() == Some("aborted") => Exit::Cancelled,
        RunState::Failed => Exit::No,
        RunState::Cancelled => Exit::Cancelled,
        RunState::AwaitingApproval | RunState::Paused => Exit::Waiting,
        RunState::Waiting => waiting_exit(view.waiting_on.as_ref()),
        RunState::Queued | RunState::Running => Exit::InProgress,
    }
}

/// Returns the exit code of a run that waits for a person.
pub fn waiting_exit(wait: Option<&WaitingOn>) -> Exit {
    if wait.is_some_and(|wait| wait.kind == "budget") { Exit::Budget } else { Exit::Waiting }
}

/// Returns what to type next about a run; a daemon goes on with it by itself.
pub fn next_of(view: &RunView, is_daemon: bool) -> Option<String> {
    let run = shell_word(&view.run);
    match view.state {
        RunState::Done => merge_of(view),
        RunState::Cancelled => None,
        RunState::Waiting if view.waiting_on.as_ref().is_some_and(|wait| wait.kind == "worktree") => {
            Some(format!("planctl plan resume {run}"))
        }
        RunState::Failed => Some(format!("planctl plan logs {run}    then    planctl plan resume {run}")),
        RunState::AwaitingApproval | RunState::Waiting => {
            let id = view.waiting_on.as_ref().and_then(|wait| wait.id)?;
            Some(format!("planctl approvals show {id}"))
        }
        RunState::Paused => {
            let plan = shell_word(&view.plan);
            Some(format!(
                "planctl plan resume {run}    or, once its plan is changed,    planctl plan approve {plan}"
            ))
        }
        RunState::Queued | RunState::Running if is_daemon => Some(format!("planctl plan watch {run}")),
        RunState::Queued | RunState::Running => Some(format!("planctl plan resume {run}")),
    }
}

/// Returns what takes the work of a run that is done from its worktree into the workspace.
fn merge_of(view: &RunView) -> Option<String> {
    let worktree = view.worktree.as_ref().filter(|worktree| worktree.is_made && !worktree.is_removed)?;
    let workspace = shell_word(&view.workspace);
    let is_here = std::env::current_dir().is_ok_and(|here| here.starts_with(&view.workspace));
    let git = if is_here { "git".to_owned() } else { format!("git -C {workspace}") };
    // The commit that was judged: somebody may move the branch before this is typed.
    let merged = worktree.commit.as_deref().filter(|_| worktree.uncommitted == Some(0));
    let merged = merged.map_or(worktree.branch.as_str(), |commit| commit.get(..12).unwrap_or(commit));
    let merge = format!("{git} merge {}", shell_word(merged));
    let path = shell_word(&worktree.path);
    let run = shell_word(&view.run);
    match worktree.uncommitted {
        Some(0) if worktree.commit.as_ref() == Some(&worktree.base) => Some("planctl clean".to_owned()),
        Some(0) => Some(format!("{merge}    then    planctl clean")),
        Some(_) | None => Some(format!(
            "git -C {path} add -A && git -C {path} commit -m {run} && {merge}    then    planctl clean"
        )),
    }
}

/// Writes a word so that a shell reads it as one, made safe for the terminal.
pub fn shell_word(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte));
    if is_plain { text.to_owned() } else { format!("'{}'", show::safe(text).replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_to_type_are_quoted_where_needed() {
        assert_eq!(shell_word("plans/a.md"), "plans/a.md");
        assert_eq!(shell_word("it's here"), r"'it'\''s here'");
        assert_eq!(shell_word(""), "''");
    }
}
