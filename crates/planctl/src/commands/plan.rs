//! `planctl plan …` and `planctl run …`: everything about plans and runs that is not working on one.

use std::path::{Path, PathBuf};

use anstyle::Style;
use planctl_api::wire::calls::Approving;
use planctl_api::wire::{DayBudgetView, RunList, RunState, RunSummary, RunView, UnreadRun, WaitingOn};
use planctl_config::Agent;

use super::verify::Detail;
use super::{Context, approvals, changes, explain, history, logs, review, verify};
use crate::args::{PlanCommand, PlanVerb, RunArgs, RunCommand, RunFilter, RunPlan, RunVerb, VerifyArgs};
use crate::checking;
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::progress::{self, Look};
use crate::show::{self, BOLD, Cell, shell_word, styled};

/// Does what was typed after `planctl plan`.
pub async fn run(context: &Context, command: PlanCommand) -> Answer {
    match command {
        PlanCommand::Verb(verb) => on_file(context, verb).await,
        PlanCommand::Run(plan) => start(context, plan).await,
        PlanCommand::Import { list, output } => super::import::run(context, &list, output.as_deref()),
        PlanCommand::Draft(args) => super::draft::run(context, &args).await,
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
        PlanVerb::Show { plan, step } => show_plan(context, plan.as_deref().unwrap_or(NEWEST), step).await,
        PlanVerb::Diff { file, since, until, text } => {
            changes::diff(context, &file, &changes::Between { since, until, text }).await
        }
        PlanVerb::Review(args) => review::review(context, &args).await,
        PlanVerb::Approve { what, all: _, run, note, accept_changed, worker } => {
            let given = Approving { note, accept_changed, worker: worker.worker() };
            match run {
                Some(run) => approvals::approve_all_of(context, &run, &given).await,
                None => approve_all(context, what, &given).await,
            }
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
        RunVerb::Logs { run, step, attempt, contract, tail, follow, prompt } => {
            let which = logs::Which { step, attempt, contract, tail };
            match (follow, prompt) {
                (true, _) => logs::follow(context, &run, which).await,
                (false, true) => logs::prompts(context, &run, which).await,
                (false, false) => logs::logs(context, &run, which).await,
            }
        }
        RunVerb::Events { run, named, follow, since, tail, recent } => {
            let run = named.unwrap_or(run);
            match tail.or(recent.then_some(history::RECENT)) {
                Some(count) => history::newest(context, &run, count).await,
                None => history::events(context, &run, follow, since).await,
            }
        }
        RunVerb::Why { run, step } => history::why(context, &run, step.as_deref()).await,
        RunVerb::Resume { run, worker, no_wait, auto_answer, recheck } => {
            super::run::resume(context, &run, worker.worker(), no_wait, auto_answer, recheck).await
        }
        RunVerb::Pause { run, note } => pause(context, &run, note.as_deref()).await,
        RunVerb::Cancel { runs, note } => cancel(context, &runs, note.as_deref()).await,
        RunVerb::Acknowledge { runs, note } => acknowledge(context, &runs, note.as_deref()).await,
        RunVerb::Audit { run: Some(file) } if super::bundle::is_bundle(&file) => {
            super::bundle::audit(context, &file)
        }
        RunVerb::Audit { run } => history::audit(context, run.as_deref()).await,
        RunVerb::Export { run, bundle: Some(file), .. } => super::bundle::write(context, &run, &file).await,
        RunVerb::Export { run, to, bundle: None } => {
            super::export::run(context, &run, &to.unwrap_or_default()).await
        }
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
    let is_verbose = context.verbosity() > 0;
    let detail = Detail { only_step: step, has_defaults: is_verbose, has_all: is_verbose };
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&show::folded(&verify::draw(&view, None, detail)))?;
    }
    Ok(Exit::Yes)
}

/// Says that a plan has errors; the findings themselves are printed before.
pub fn not_verified(file: &Path, checked: &planctl_server::check::Checked) -> Failure {
    let (name, counted) = (file.display(), verify::counted(&checked.verification));
    match checked.folder.as_str() {
        "" => Failure::new(Exit::No, format!("could not verify {name}: {counted}"))
            .next(format!("planctl verify {name}")),
        folder => {
            let (shown, typed) = (show::safe(folder), shell_word(folder));
            Failure::new(Exit::No, format!("could not verify {name} in the folder {shown}: {counted}"))
                .next(format!("planctl verify --workspace {typed} {name}"))
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
        super::run::say_uncommitted(&client.standing(&checked, None, true).await?.uncommitted);
    }
    let decided = client.approve(&checked, given).await?;
    print_recorded(context, &decided, is_json)?;
    // The consequence is said already; a worker that is named here has to be named there as well.
    if let Some(worker) = worker.filter(|_| !is_json && decided.run.is_none()) {
        let file = shell_word(&file.display().to_string());
        context.say(&format!("{} planctl run {file} {}", styled(BOLD, "next:"), worker_flag(worker)));
    }
    Ok(recorded_exit(&decided))
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
        Agent::Known { .. } | Agent::Session => format!("--agent {}", shell_word(&worker.to_string())),
    }
}

async fn reject(context: &Context, file: &Path, note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let checked = checking::check(context, file, None, &planctl_lang::Levels::default()).await?;
    let client = Client::open(context).await?;
    let decided = client.reject(&checked, note.unwrap_or("rejected")).await?;
    print_recorded(context, &decided, is_json)?;
    Ok(Exit::Yes)
}

async fn pause(context: &Context, run: &str, note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let run = client.find(run).await?;
    print_recorded(context, &client.pause(run, note).await?, is_json)?;
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
        if view.state.is_over() {
            let what = format!("the newest run, {name}, is over; name the run to cancel");
            return Err(Failure::new(Exit::Conflict, what).next("planctl ls"));
        }
        let plan = show::plan(&view.plan, &view.title);
        context.confirm(&format!("Cancel {name} ({plan}) for good?"))?;
        found.push(newest);
    }
    for run in found {
        print_recorded(context, &client.cancel(run, note).await?, is_json)?;
    }
    Ok(Exit::Yes)
}

/// Acknowledges that runs failed.
async fn acknowledge(context: &Context, runs: &[String], note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    for run in runs {
        let run = client.find(run).await?;
        print_recorded(context, &client.acknowledge(run, note).await?, is_json)?;
    }
    Ok(Exit::Yes)
}

/// Says what was recorded, by whom, and what follows.
pub fn print_recorded(
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
    let typed = |next| match &decided.workspace {
        Some(workspace) => next::typed_here(&next::words(next), workspace),
        None => next::words(next),
    };
    let next = decided.next.as_ref().map(|next| format!(" · {}", show::safe(&typed(next))));
    format!("{}{}\n", recorded_word(decided), next.unwrap_or_default())
}

/// Says what was recorded, and by whom.
pub fn recorded_word(decided: &planctl_api::wire::Decided) -> String {
    let repeated = if decided.repeated { " (already recorded)" } else { "" };
    let (decision, by) = (show::safe(&decided.decision), show::safe(&decided.by));
    let Some(voted) = &decided.voted else { return format!("recorded: {decision} by {by}{repeated}") };
    let more = voted.needed.saturating_sub(voted.have);
    let are = if more == 1 { "is" } else { "are" };
    format!(
        "recorded: {by} votes for {decision}{repeated}: {} of {} (rule {}), {more} more {are} needed",
        voted.have,
        voted.needed,
        show::safe(&voted.rule)
    )
}

/// Returns the code with which a recorded decision ends: where more votes are needed, a person has to answer.
pub fn recorded_exit(decided: &planctl_api::wire::Decided) -> Exit {
    if decided.voted.is_some() { Exit::Waiting } else { Exit::Yes }
}

async fn status(context: &Context, run: Option<&str>, all: bool, exit_code: bool) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let Some(run) = run else {
        let mut list = client.list(all).await?;
        list.runs.retain(|run| all || !run.state.is_over() || is_json);
        if is_json {
            show::print_json(&list)?;
        } else if list.runs.is_empty() && !all {
            let over = client.list(false).await?.runs.len();
            show::print(&no_active_runs(context, over, &client.list(true).await?))?;
            show::print(&day_budgets(&list.day_budgets, all))?;
        } else {
            show::print(&run_table(context, &list.runs, all))?;
            show::print(&day_budgets(&list.day_budgets, all))?;
        }
        warn_unreadable(&list.unread);
        return Ok(Exit::Yes);
    };
    let view = client.status(client.find(run).await?).await?;
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&show::folded(&run_page(&view)))?;
    }
    Ok(if exit_code { exit_of(&view) } else { Exit::Yes })
}

/// Lists runs.
pub async fn ls(context: &Context, filter: &RunFilter) -> Answer {
    let (states, all) = (&filter.state, filter.all);
    let is_json = context.is_json()?;
    if let Some(unknown) = states.iter().find(|word| RunState::ALL.iter().all(|state| state.word() != **word))
    {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.word()).collect();
        return Err(Failure::usage(format!("there is no state `{}`", show::safe(unknown)))
            .help(format!("states: {}", known.join(", "))));
    }
    let client = Client::open(context).await?;
    let mut list = client.list(all).await?;
    let total = list.runs.len();
    list.runs.retain(|run| states.is_empty() || states.iter().any(|word| run.state.word() == word));
    if is_json {
        show::print_json(&list)?;
    } else if list.runs.is_empty() && total > 0 {
        show::print(&format!(
            "no run is {}; {} in other states\n",
            states.join(" or "),
            runs_counted(total)
        ))?;
    } else if list.runs.is_empty() && !all {
        show::print(&no_runs(context, client.list(true).await?.runs.len()))?;
    } else {
        show::print(&run_table(context, &list.runs, all))?;
    }
    warn_unreadable(&list.unread);
    Ok(Exit::Yes)
}

/// Says what was used today of the budgets that runs share, one on each line.
fn day_budgets(days: &[DayBudgetView], has_all: bool) -> String {
    let now = client::now_unix_seconds();
    days.iter().map(|day| show::folded(&format!("{}\n", show::day_budget(day, has_all, now)))).collect()
}

fn runs_counted(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// Says that a workspace has no runs, and how many there are elsewhere.
fn no_runs(context: &Context, elsewhere: usize) -> String {
    let place = show::safe(&context.workspace().display().to_string());
    match elsewhere {
        0 => format!("no runs in {place} or in any other folder\n"),
        others => format!("no runs in {place}; {others} in other folders: planctl ls --all\n"),
    }
}

/// Says that no run of a workspace is under way, and which others there are.
fn no_active_runs(context: &Context, over: usize, all: &RunList) -> String {
    if over == 0 {
        return no_runs(context, all.runs.len());
    }
    let place = show::safe(&context.workspace().display().to_string());
    let elsewhere = all.runs.iter().filter(|run| !run.state.is_over()).count();
    let elsewhere = match elsewhere {
        0 => String::new(),
        count => format!("; {count} in other folders: planctl status --all"),
    };
    format!("no active runs in {place}; {} ended: planctl ls{elsewhere}\n", runs_counted(over))
}

/// Says which runs can't be shown.
fn warn_unreadable(unread: &[UnreadRun]) {
    for run in unread {
        let name = show::safe(&run.run);
        show::say(&format!("{name} can't be shown: {}", show::safe(&run.what)));
        show::say(&format!("next: planctl audit {name}"));
    }
}

fn run_table(context: &Context, runs: &[RunSummary], all: bool) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let now = client::now_unix_seconds();
    let has_ended = runs.iter().any(|run| run.ended_at.is_some());
    let has_cost = context.verbosity() > 0 || runs.iter().any(is_near_its_budget);
    let row = |run: &RunSummary| {
        let moment =
            |moment: &Option<String>| moment.as_deref().map_or("-".to_owned(), |at| show::ago(at, now));
        let started = run.started_at.as_deref().and_then(|at| show::age(at, now));
        let (style, state) = if show::is_left_alone(run.state, run.worked_on_by) {
            (show::CARE, show::LEFT_ALONE)
        } else {
            (state_style(run.state), show::run_state(run.state))
        };
        let mut cells = vec![
            Cell::from(run.run.clone()),
            Cell::styled(style, state),
            format!("{}/{}", run.steps_settled, run.steps_total).into(),
            run.waiting_on.as_ref().map_or("-".to_owned(), waiting).into(),
            started.unwrap_or_else(|| "-".to_owned()).into(),
        ];
        if has_ended {
            cells.push(moment(&run.ended_at).into());
        }
        if has_cost {
            let cost = if context.verbosity() > 0 { show::whole_cost } else { show::cost };
            cells.push(cost(&run.spent, &run.budget).into());
        }
        cells.push(show::plan(&run.plan, &run.title).into());
        if all {
            cells.push(run.workspace.clone().into());
        }
        cells
    };
    let columns = [
        ("RUN", true),
        ("STATE", true),
        ("PROGRESS", true),
        ("WAITING ON", true),
        ("AGE", true),
        ("ENDED", has_ended),
        ("SPENT", has_cost),
        ("PLAN", true),
        ("WORKSPACE", all),
    ];
    let header: Vec<&str> = columns.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
    show::list(&header, runs.iter().map(row).collect())
}

/// The part of a budget from which on a list shows what was spent.
const NEAR: f64 = 0.8;

fn is_near_its_budget(run: &RunSummary) -> bool {
    let (spent, budget) = (&run.spent, &run.budget);
    let is_near =
        |spent: f64, limit: Option<f64>| limit.is_some_and(|limit| spent >= limit * NEAR && spent > 0.0);
    !run.state.is_over()
        && (is_near(spent.seconds, budget.seconds)
            || is_near(spent.usd, budget.usd)
            || is_near(spent.tokens as f64, budget.tokens.map(|tokens| tokens as f64)))
}

fn state_style(state: RunState) -> Style {
    match state {
        RunState::Done => show::GOOD,
        RunState::Failed => show::BAD,
        RunState::AwaitingApproval | RunState::Waiting | RunState::Paused => show::CARE,
        RunState::Running => BOLD,
        RunState::Queued => Style::new(),
        RunState::Cancelled => show::FAINT,
    }
}

fn waiting(wait: &WaitingOn) -> String {
    if let (Some(lock), Some(run)) = (&wait.lock, &wait.run) {
        return format!("lock {lock} of run {run}");
    }
    match (wait.id, &wait.role, &wait.run) {
        (Some(id), _, _) => format!("you: {} {id}", wait.kind),
        (None, Some(role), _) => format!("a {role} worker"),
        (None, None, Some(run)) if wait.kind == "ending" => format!("the end of run {run}'s agent"),
        (None, None, Some(run)) => format!("run {run}"),
        (None, None, None) => wait.kind.clone(),
    }
}

fn run_page(view: &RunView) -> String {
    let mut text = format!(
        "{} {} · {} · {}\n",
        styled(BOLD, &show::safe(&view.run)),
        show::run_state(view.state),
        show::plan(&view.plan, &view.title),
        verify::short_digest(&view.digest)
    );
    let now_unix_seconds = client::now_unix_seconds();
    let look = Look { now_unix_seconds, lines_max: usize::MAX, columns: show::columns(), ctrl_c: None };
    for line in progress::picture(view, &look) {
        text.push_str(&line);
        text.push('\n');
    }
    if let Some(reason) = view.reason.as_ref().filter(|_| view.state != RunState::Done) {
        text.push_str(&format!("  {}\n", show::safe(reason)));
    }
    for day in view.day_budgets.iter().filter(|_| !view.state.is_over()) {
        text.push_str(&format!("  {}\n", show::day_budget(day, false, now_unix_seconds)));
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
    if let Some(next) = next_of(view) {
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
    if wait.is_some_and(|wait| matches!(wait.kind.as_str(), "budget" | "day_budget")) {
        Exit::Budget
    } else {
        Exit::Waiting
    }
}

/// Returns the command to type next about a run.
pub fn next_of(view: &RunView) -> Option<String> {
    next_in_its_workspace(view).map(|words| next::typed_here(&words, &view.workspace))
}

fn next_in_its_workspace(view: &RunView) -> Option<String> {
    let run = shell_word(&view.run);
    match view.state {
        RunState::Done => merge_of(view),
        RunState::Cancelled => None,
        RunState::Waiting if view.waiting_on.as_ref().is_some_and(|wait| wait.kind == "worktree") => {
            Some(format!("planctl resume {run}"))
        }
        RunState::Failed => Some(format!("planctl logs {run}    then    planctl resume {run}")),
        RunState::AwaitingApproval | RunState::Waiting => {
            let id = view.waiting_on.as_ref().and_then(|wait| wait.id)?;
            Some(format!("planctl approvals show {id}"))
        }
        RunState::Paused if show::is_of_guard(&view.plan) => Some(format!("planctl resume {run}")),
        RunState::Paused => {
            let plan = shell_word(&view.plan);
            Some(format!("planctl resume {run}    or, once its plan is changed,    planctl approve {plan}"))
        }
        RunState::Queued | RunState::Running => Some(match lacking_role(view) {
            Some(role) => next::start_worker(role),
            None => follow_up_command(view),
        }),
    }
}

/// Returns the role that nobody serves while a run waits for it.
fn lacking_role(view: &RunView) -> Option<&str> {
    view.waiting_on.as_ref().filter(|wait| wait.kind == "worker")?.role.as_deref()
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
