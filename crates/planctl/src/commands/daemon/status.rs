//! `planctl daemon status`: how the daemon of a state directory is, in words that come soon.

use std::time::Duration;

use planctl_api::wire::work::ServiceView;
use planctl_api::wire::{DaemonHealthView, DaemonInfo, DaemonState, DaemonView};
use planctl_server::singleton::SingletonState;

use super::read_singleton;
use crate::api::{Access, Address, Api, Silence};
use crate::client;
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BOLD, CARE, GOOD, styled};

/// The timeout of one call; a call that needs the database may block for ever.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Asks the daemon how it is and draws the answer.
pub async fn run(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let state_dir = context.state_dir()?;
    let (pid, daemon) = match read_singleton(&state_dir)? {
        SingletonState::Nobody => (None, None),
        SingletonState::Busy { pid } => (pid, None),
        SingletonState::Running(info) => (Some(info.pid), Some(info)),
    };
    let answer = match &daemon {
        Some(info) => ask_daemon(context, info).await?,
        None => DaemonAnswer { health: Err(Silence::Shut), service: None },
    };
    let heading = heading(answer.health.as_ref());
    // It takes its socket away when it leaves, so the two look alike.
    let is_shut = matches!(answer.health, Err(Silence::Shut));
    let view = DaemonView {
        is_running: daemon.is_some(),
        state_dir: state_dir.display().to_string(),
        pid,
        daemon,
        health: answer.health.ok(),
        service: answer.service,
    };
    if is_json {
        show::print_json(&view)?;
    } else if let Some(info) = &view.daemon {
        show::print(&draw(&heading, is_shut, info, &view, context.verbosity() > 0))?;
    }
    if view.is_running {
        return Ok(Exit::Yes);
    }
    let (what, next) = match view.pid {
        Some(pid) => (
            format!("the daemon, pid {pid}, does not listen: it starts or stops, or its files were removed"),
            "planctl daemon stop",
        ),
        None => (format!("no daemon is there for {}", state_dir.display()), "planctl daemon start"),
    };
    Err(Failure::new(Exit::Unavailable, what).next(next))
}

/// The answers of a daemon about itself.
struct DaemonAnswer {
    health: Result<DaemonHealthView, Silence>,
    service: Option<ServiceView>,
}

/// Asks the daemon for its health and, while it has its database, for its service.
async fn ask_daemon(context: &Context, info: &DaemonInfo) -> Result<DaemonAnswer, Failure> {
    let actor = context.actor();
    let access = Access { actor: Some(&actor), ..Access::default() };
    let api = Api::at(Address::Socket(info.socket.clone().into()), access)?;
    let health = async || api.get_once::<DaemonHealthView>("/healthz", ANSWERS_WITHIN).await;
    let first = health().await;
    let reads = |health: &DaemonHealthView| {
        health.state == DaemonState::Running || health.database_shortage.is_some()
    };
    if !first.as_ref().is_ok_and(reads) {
        return Ok(DaemonAnswer { health: first, service: None });
    }
    match api.get_once("/v1/daemon", ANSWERS_WITHIN).await {
        Ok(service) => Ok(DaemonAnswer { health: first, service: Some(service) }),
        // The daemon may know the reason by the time of the second call.
        Err(_) => Ok(DaemonAnswer { health: health().await, service: None }),
    }
}

fn heading(health: Result<&DaemonHealthView, &Silence>) -> String {
    match health.map(|health| health.state) {
        Ok(DaemonState::Running) => styled(GOOD, "running"),
        Ok(DaemonState::Degraded) => styled(CARE, "degraded"),
        Ok(DaemonState::Starting) => styled(CARE, "starting"),
        // It listens before it announces itself, and closes its listeners first when it leaves.
        Ok(DaemonState::Stopping) | Err(Silence::Shut) => styled(CARE, "stopping"),
        Err(Silence::Late) => styled(CARE, "running, without an answer"),
    }
}

fn draw(heading: &str, is_shut: bool, info: &DaemonInfo, view: &DaemonView, is_verbose: bool) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &'static str, value: String| lines.push((name, value));
    line("state", heading.to_owned());
    if is_shut {
        line("or", "its socket was removed: planctl daemon stop".to_owned());
    }
    let now = client::now_unix_seconds();
    line("started", show::ago(&info.started_at, now));
    line("version", show::safe(&info.version));
    line("pid", info.pid.to_string());
    if let Some(service) = &view.service {
        line("database", show::safe(&service.database));
    }
    line("socket", show::safe(&info.socket));
    if let Some(tcp) = &info.tcp {
        line("address", show::safe(tcp));
    }
    if let Some(service) = &view.service {
        let items = &service.items;
        let oldest = items
            .oldest_queued_seconds
            .map_or(String::new(), |seconds| format!(" (the oldest for {})", show::seconds(seconds as f64)));
        line("workers", service.workers.to_string());
        line("steps", format!("{} worked on, {} waiting for a worker{oldest}", items.working, items.queued));
        line("contracts", format!("{} due or running", items.gates));
        line("approvals", format!("{} waiting for you", items.asks));
    }
    let Some(health) = &view.health else { return keyed(&lines) };
    if view.service.is_none() && health.state == DaemonState::Running {
        line("database", styled(CARE, "does not answer, or not yet"));
    }
    if let Some(since) = &health.database_away_since {
        let away = for_so_long("away", since, now);
        line("database", styled(CARE, &format!("{away}; work goes on when it is back")));
    }
    if let Some(shortage) = &health.database_shortage {
        let lacks = for_so_long(&format!("{},", shortage.of.sentence()), &shortage.since, now);
        line("database", styled(CARE, &format!("{lacks}; work goes on when that is over")));
    }
    for (name, count) in [
        ("agents here", u64::from(health.agents_at_work)),
        ("contracts here", u64::from(health.gates_at_work)),
        ("runs recovered", health.runs_recovered),
        ("leases expired", health.leases_expired),
    ] {
        if count > 0 || is_verbose {
            line(name, count.to_string());
        }
    }
    let trouble = health.last_error.as_ref();
    let trouble =
        trouble.map(|trouble| format!("{}, {}", show::safe(&trouble.what), show::ago(&trouble.at, now)));
    line("last error", trouble.unwrap_or_else(|| "none".to_owned()));
    keyed(&lines)
}

/// Says how long something has lasted: `away for 4m31s`.
fn for_so_long(what: &str, since: &str, now: f64) -> String {
    show::age(since, now).map_or_else(|| what.to_owned(), |age| format!("{what} for {age}"))
}

/// Draws a line for each name and value.
fn keyed(lines: &[(&str, String)]) -> String {
    let wide = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let drawn = lines.iter().map(|(name, value)| {
        format!("{} {value}\n", styled(BOLD, &format!("{:<1$}", format!("{name}:"), wide + 1)))
    });
    drawn.collect()
}
