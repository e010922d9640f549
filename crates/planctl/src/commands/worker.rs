//! `planctl worker …` and `planctl roles …`: the workers and their roles.

mod item;
mod lines;
mod pool;

use std::time::Duration;

use planctl_api::wire::work::WorkerView;
use planctl_api::wire::{RoleList, RoleView, RoleWork};
use planctl_config::{Agent, Config, RoleConfig};
use planctl_engine::Role;
use planctl_harness::Spawner;
use planctl_server::agent_check::{Tryout, try_worker};

use super::Context;
use super::doctor;
use crate::args::{RolesCommand, WorkerCommand};
use crate::client::{self, ANSWERED_WITHIN, Client, NoAnswer};
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, Cell, FAINT};
use crate::stop::Stop;

/// Does what was typed.
pub async fn run(context: &Context, command: WorkerCommand) -> Answer {
    match command {
        WorkerCommand::Test { agent, exec, role, within } => {
            let config = &context.config()?.config;
            let settings = match &role {
                Some(role) => {
                    Some(config.roles.get(&Role::new(role.as_str())).ok_or_else(|| no_role(config, role))?)
                }
                None => None,
            };
            let named = agent.or_else(|| exec.map(Agent::Exec));
            let worker = named.or_else(|| settings.and_then(|settings| settings.agent.clone()));
            let worker = worker
                .ok_or_else(|| Failure::usage("name a worker: --agent NAME, --exec CMD or --role ROLE"))?;
            let settings = settings.cloned().unwrap_or_default();
            test(context, &worker, &settings, within).await
        }
        WorkerCommand::Run(given) => pool::run(context, given).await,
        WorkerCommand::Ls => workers(context).await,
        WorkerCommand::Pause { id } => paused(context, &id, true).await,
        WorkerCommand::Resume { id } => paused(context, &id, false).await,
    }
}

/// Does what was typed.
pub async fn roles(context: &Context, command: &RolesCommand) -> Answer {
    match command {
        RolesCommand::Ls => ls(context).await,
    }
}

fn no_role(config: &Config, role: &str) -> Failure {
    let known: Vec<&str> = config.roles.keys().map(Role::as_str).collect();
    let known = if known.is_empty() { "none is configured".to_owned() } else { known.join(", ") };
    Failure::usage(format!("no role is called {}", show::safe(role))).help(format!("roles: {known}"))
}

async fn test(context: &Context, worker: &Agent, role: &RoleConfig, within: Duration) -> Answer {
    let is_json = context.is_json()?;
    let config = &context.config()?.config;
    let failed =
        |error: std::io::Error| Failure::new(Exit::Temporary, format!("could not test the worker: {error}"));
    let folder = tempfile::Builder::new().prefix("planctl-worker-test-").tempdir().map_err(failed)?;
    let (workspace, scratch) = (folder.path().join("workspace"), folder.path().join("room"));
    for path in [&workspace, &scratch] {
        std::fs::create_dir(path).map_err(failed)?;
    }
    let spawner = Spawner::start_self(None).map_err(failed)?;
    let mut stop = Stop::listen()?;
    context.say(&format!("one small task for {} …", show::safe(&worker.display_command())));
    let tryout = Tryout { worker, role, config, workspace: &workspace, scratch: &scratch, within };
    let stopped = async {
        stop.wait_for_signal().await;
    };
    let view = try_worker(tryout, &spawner, stopped).await;
    spawner.shutdown();
    let view = view.map_err(failed)?;
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&view.checks.iter().map(doctor::draw).collect::<String>())?;
    }
    Ok(if view.works { Exit::Yes } else { Exit::No })
}

async fn workers(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let list = Client::open_quietly(context).await?.workers().await?;
    if is_json {
        show::print_json(&list)?;
    } else if list.workers.is_empty() {
        show::print("no worker has asked for work; planctl worker run --role ROLE --agent NAME\n")?;
    } else {
        let now = client::now_unix_seconds();
        let is_old =
            |worker: &&WorkerView| context.verbosity() == 0 && silence(worker, now) > FORGOTTEN_SECONDS;
        let (old, shown): (Vec<&WorkerView>, Vec<&WorkerView>) = list.workers.iter().partition(is_old);
        let header = ["NAME", "ROLES", "AGENT", "MACHINE", "AT ONCE", "WORKS ON", "LAST SEEN"];
        let rows = shown.iter().map(|worker| worker_row(worker, now));
        show::print(&show::list(&header, rows.collect()))?;
        if !old.is_empty() {
            context.say(&format!("{} more, last seen over an hour ago: planctl worker ls -v", old.len()));
        }
    }
    Ok(Exit::Yes)
}

/// How long a worker that holds no work may be silent until it counts as gone; a live one asks for work more often.
const GONE_SECONDS: f64 = 60.0;
/// How long a worker that is gone stays on the list.
const FORGOTTEN_SECONDS: f64 = 3600.0;

/// Returns for how long a worker without work has been silent; one that holds work is not, whatever it says.
fn silence(worker: &WorkerView, now_unix_seconds: f64) -> f64 {
    let seen = show::unix_seconds(&worker.last_seen_at).filter(|_| worker.items.is_empty());
    seen.map_or(0.0, |seen| now_unix_seconds - seen)
}

fn worker_row(worker: &WorkerView, now_unix_seconds: f64) -> Vec<Cell> {
    let mut runs: Vec<&str> = worker.items.iter().map(|item| item.run.as_str()).collect();
    if worker.paused {
        runs.insert(0, "paused");
    }
    let is_gone = silence(worker, now_unix_seconds) > GONE_SECONDS;
    let works = match (is_gone, runs.is_empty()) {
        (true, _) => Cell::styled(FAINT, "gone"),
        (false, true) => "–".into(),
        (false, false) => runs.join(", ").into(),
    };
    vec![
        worker.id.as_str().into(),
        worker.roles.join(", ").into(),
        worker.agent.as_str().into(),
        worker.host.as_str().into(),
        worker.capacity.to_string().into(),
        works,
        show::ago(&worker.last_seen_at, now_unix_seconds).into(),
    ]
}

async fn paused(context: &Context, worker: &str, pauses: bool) -> Answer {
    let is_json = context.is_json()?;
    let view = Client::open_quietly(context).await?.pause_worker(worker, pauses).await?;
    if is_json {
        show::print_json(&view)?;
    } else {
        let follows = if view.paused { "claims nothing more" } else { "claims again" };
        context.say(&format!("{} {follows}", show::safe(&view.id)));
    }
    Ok(Exit::Yes)
}

async fn ls(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let mut list = RoleList::of(&context.config()?.config);
    match Client::ask_if_there_is_one(context, ANSWERED_WITHIN, async |client| client.role_work().await).await
    {
        Ok(work) => list.work = work.map(|work| work.roles),
        Err(NoAnswer) => {
            context.say("warning: the database does not answer, so nothing is known of work that waits")
        }
    }
    if is_json {
        show::print_json(&list)?;
        return Ok(Exit::Yes);
    }
    if list.roles.is_empty() {
        show::print("no roles are configured; planctl.toml: [roles.coder] agent = \"claude\"\n")?;
    } else {
        let header = ["ROLE", "AGENT", "MAY", "TIMEOUT", "IDLE", "PLANS", "PACE", "NETWORK"];
        show::print(&show::table(&header, list.roles.iter().map(row).collect()))?;
    }
    if let Some(work) = list.work.filter(|work| !work.is_empty()) {
        let header = ["WORK FOR", "QUEUED", "FOR WORKERS", "WORKING", "OLDEST"];
        show::print(&format!("\n{}", show::table(&header, work.iter().map(work_row).collect())))?;
    }
    Ok(Exit::Yes)
}

/// Returns what waits for a role: all of it, the part that no daemon does by itself, what somebody does, and for how long the
/// oldest has waited.
fn work_row(work: &RoleWork) -> Vec<String> {
    vec![
        work.role.clone(),
        work.queued.to_string(),
        work.queued.saturating_sub(work.served).to_string(),
        work.working.to_string(),
        work.oldest_queued_seconds.map_or_else(|| "–".to_owned(), |seconds| show::seconds(seconds as f64)),
    ]
}

fn row(role: &RoleView) -> Vec<String> {
    let dash = || "–".to_owned();
    let span = |seconds: Option<f64>| seconds.map_or_else(dash, show::seconds);
    let may = match (role.permissions.as_str(), &role.allow) {
        ("list", None) => dash(),
        (mode, None) => mode.to_owned(),
        (mode, Some(tools)) => format!("{mode}: {}", tools.join(", ")),
    };
    let pace = &role.pace;
    let levels = [&pace.alternate, &pace.contingent, &pace.emergency];
    let levels: Vec<&str> = levels.into_iter().flatten().map(String::as_str).collect();
    vec![
        role.role.clone(),
        role.agent.clone().unwrap_or_else(|| "waits for a worker".to_owned()),
        may,
        span(role.timeout_seconds),
        span(role.idle_timeout_seconds),
        role.plans.as_ref().map_or_else(|| "all".to_owned(), |plans| plans.join(", ")),
        if levels.is_empty() { dash() } else { levels.join(" → ") },
        match role.network.as_deref() {
            None => dash(),
            Some([]) => "none".to_owned(),
            Some(hosts) => hosts.join(", "),
        },
    ]
}
