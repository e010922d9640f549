//! `planctl plan …` and `planctl run …`: everything about plans and runs that is not working on one.

use std::path::{Path, PathBuf};

use planctl_api::wire::PlanDecisionView;
use planctl_api::wire::calls::Approving;

use super::recorded::{print_recorded, recorded_exit};
use super::run::Begins;
use super::verify::{self, Detail};
use super::{Context, approvals, changes, explain, history, logs, review, runs};
use crate::args::{PlanCommand, PlanVerb, RunArgs, RunCommand, RunPlan, RunVerb, VerifyArgs};
use crate::checking;
use crate::client::{ANSWERED_WITHIN, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::plan_files;
use crate::show;

/// Does what was typed after `planctl plan`.
pub async fn run(context: &Context, command: PlanCommand) -> Answer {
    match command {
        PlanCommand::Verb(verb) => on_file(context, verb).await,
        PlanCommand::Run(plan) => start(context, plan).await,
        PlanCommand::Import { list, output, tag } => {
            super::import::run(context, &list, output.as_deref(), tag.as_deref())
        }
        PlanCommand::Draft(args) => super::draft::run(context, &args).await,
        PlanCommand::Ls => super::plans::ls(context).await,
        PlanCommand::OfRun(verb) => on_run(context, verb).await,
    }
}

/// Does what was typed after `planctl run`.
pub async fn run_noun(context: &Context, args: RunArgs) -> Answer {
    match args.command {
        None => start(context, args.plan).await,
        Some(RunCommand::Ls(filter)) => runs::ls(context, &filter).await,
        Some(RunCommand::Show { run }) => runs::status(context, Some(&run), false, false).await,
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
        RunVerb::Status { run, all, exit_code, .. } => {
            runs::status(context, run.as_deref(), all, exit_code).await
        }
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
        RunVerb::Resume { run, worker, no_wait, auto_answer, recheck, from } => {
            let begins = match from {
                _ if recheck => Begins::AtRegressed,
                Some(step) => Begins::AtStep(step),
                None => Begins::WhereItStands,
            };
            super::run::resume(context, run.as_deref(), worker.worker(), no_wait, auto_answer, begins).await
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
        let is_json = context.is_json()?;
        let file = plan_files::plan_file_named(context, &file)?;
        let checked = checking::check(context, &file, None, &planctl_lang::Levels::default()).await?;
        let shown = show_checked(context, &checked, None, is_json).await?;
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
            AskOrPlan::Plan(file) => {
                approve(context, &plan_files::plan_file_named(context, &file)?, given).await?
            }
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
            AskOrPlan::Plan(file) => {
                reject(context, &plan_files::plan_file_named(context, &file)?, note).await?
            }
        };
    }
    Ok(Exit::Yes)
}

async fn show_plan(context: &Context, plan: &str, step: Option<u32>) -> Answer {
    let is_json = context.is_json()?;
    let checked = match plan_files::named_unless_run(context, plan)? {
        Some(file) => checking::check(context, &file, None, &planctl_lang::Levels::default()).await?,
        None => {
            let client = Client::open(context).await?;
            let run =
                client.find(plan).await.map_err(|failure| plan_files::or_near(context, plan, failure))?;
            client.plan_of_run(run).await?
        }
    };
    show_checked(context, &checked, step, is_json).await
}

async fn show_checked(
    context: &Context,
    checked: &planctl_server::check::Checked,
    step: Option<u32>,
    is_json: bool,
) -> Answer {
    let file = &checked.file;
    let Some(graph) = checked.verification.graph.as_ref() else {
        let findings = verify::findings(checked, context.is_quiet());
        if is_json {
            show::say(findings.trim_end())
        } else {
            show::print(&findings)?
        }
        return Err(not_verified(file, checked));
    };
    let mut view = verify::plan_view(context, checked, graph)?;
    view.decided = decided_about(context, checked).await;
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

/// Returns the newest decision about a text, where there is a database that knows one.
async fn decided_about(
    context: &Context,
    checked: &planctl_server::check::Checked,
) -> Option<PlanDecisionView> {
    let ask = async |client: Client| client.decided_about(checked).await;
    Client::ask_if_there_is_one(context, ANSWERED_WITHIN, ask).await.ok()??
}

/// Says that a plan has errors; the findings themselves are printed before.
pub fn not_verified(file: &Path, checked: &planctl_server::check::Checked) -> Failure {
    let (name, counted) = (file.display(), verify::counted(&checked.verification));
    let folder = checked.folder.as_str();
    let place =
        if folder.is_empty() { String::new() } else { format!(" in the folder {}", show::safe(folder)) };
    let named = match folder {
        "" => String::new(),
        folder => format!("--workspace {} ", next::path_word(folder)),
    };
    let fixing = verify::fixing_line(&checked.verification, file).filter(|_| folder.is_empty());
    let verifying = || format!("planctl verify {named}{}", show::file_word(file));
    Failure::new(Exit::No, format!("could not verify {name}{place}: {counted}"))
        .next(fixing.unwrap_or_else(verifying))
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
    context.say_findings(&verify::allowed(&checked));
    if folder.is_empty() && !is_json {
        super::run::approval::say_uncommitted(&client.plan_standing(&checked, None, true).await?.uncommitted);
    }
    let decided = client.approve(&checked, given).await?;
    print_recorded(context, &decided, is_json)?;
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

async fn reject(context: &Context, file: &Path, note: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let checked = checking::check(context, file, None, &planctl_lang::Levels::default()).await?;
    let client = Client::open(context).await?;
    let decided = client.reject(&checked, note.unwrap_or("rejected")).await;
    let decided = decided.map_err(|failure| failure.or_list(show_command(file)))?;
    print_recorded(context, &decided, is_json)?;
    Ok(Exit::Yes)
}

/// Returns the command that shows a plan, of which nothing is recorded.
pub fn show_command(file: &Path) -> String {
    format!("planctl show {}", show::file_word(file))
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
        context.confirm(&format!("Cancel {name} ({plan}) for good?")).await?;
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
