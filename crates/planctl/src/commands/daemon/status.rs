//! `planctl daemon status`: how the daemon of a state directory is, in words that come soon.

use std::time::Duration;

use planctl_api::wire::work::ServiceView;
use planctl_api::wire::{DaemonHealthView, DaemonInfo, DaemonState, DaemonView};
use planctl_server::singleton::SingletonState;

use super::look;
use crate::api::{Access, Address, Api, Silence};
use crate::client;
use crate::commands::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, CARE, GOOD, styled};

/// The timeout of one call; a call that needs the database may block for ever.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Asks the daemon how it is and draws the answer.
pub async fn run(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let state_dir = context.state_dir()?;
    let (pid, daemon) = match look(&state_dir)? {
        SingletonState::Nobody => (None, None),
        SingletonState::Busy { pid } => (pid, None),
        SingletonState::Running(info) => (Some(info.pid), Some(info)),
    };
    let answer = match &daemon {
        Some(info) => asked(context, info).await?,
        None => DaemonAnswer { health: Err(Silence::Shut), service: None },
    };
    let heading = heading(answer.health.as_ref());
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
        show::print(&drawn(&heading, info, &view))?;
    }
    if view.is_running {
        return Ok(Exit::Yes);
    }
    let what = match view.pid {
        Some(pid) => format!("the daemon, pid {pid}, does not listen: it starts or stops"),
        None => format!("no daemon is there for {}", state_dir.display()),
    };
    Err(Failure::new(Exit::Unavailable, what).next("planctl daemon start"))
}

/// The answers of a daemon about itself.
struct DaemonAnswer {
    health: Result<DaemonHealthView, Silence>,
    service: Option<ServiceView>,
}

/// Asks the daemon for its health and, while it has its database, for its service.
async fn asked(context: &Context, info: &DaemonInfo) -> Result<DaemonAnswer, Failure> {
    let actor = context.actor();
    let access = Access { actor: Some(&actor), ..Access::default() };
    let api = Api::at(Address::Socket(info.socket.clone().into()), access)?;
    let health = async || api.look::<DaemonHealthView>("/healthz", ANSWERS_WITHIN).await;
    let first = health().await;
    if !first.as_ref().is_ok_and(|health| health.state == DaemonState::Running) {
        return Ok(DaemonAnswer { health: first, service: None });
    }
    match api.look("/v1/daemon", ANSWERS_WITHIN).await {
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

fn drawn(heading: &str, info: &DaemonInfo, view: &DaemonView) -> String {
    let mut parts = vec![match seconds_since(&info.started_at) {
        Some(seconds) => format!("{heading} {}", show::seconds(seconds)),
        None => heading.to_owned(),
    }];
    parts.push(format!("v{}", show::safe(&info.version)));
    parts.push(format!("pid {}", info.pid));
    parts.extend(view.service.as_ref().map(|service| show::safe(&service.database)));
    parts.push(show::safe(&info.socket));
    parts.extend(info.tcp.as_deref().map(show::safe));
    let mut text = format!("{}\n", parts.join(" · "));
    if let Some(service) = &view.service {
        let items = &service.items;
        let oldest = items
            .oldest_queued_seconds
            .map_or(String::new(), |seconds| format!(" · oldest queued {}", show::seconds(seconds as f64)));
        text.push_str(&format!(
            "workers {} · items {} working, {} queued, {} in gates, {} for you{oldest}\n",
            service.workers, items.working, items.queued, items.gates, items.asks
        ));
    }
    if let Some(health) = &view.health {
        if view.service.is_none() && health.state == DaemonState::Running {
            text.push_str(&styled(CARE, "the database does not answer, or not yet\n"));
        }
        text.push_str(&health_drawn(health));
    }
    text
}

fn health_drawn(health: &DaemonHealthView) -> String {
    let mut text = String::new();
    if let Some(since) = &health.database_away_since {
        let line = format!(
            "the database is away since {}; it goes on by itself when it is back\n",
            show::safe(since)
        );
        text.push_str(&styled(CARE, &line));
    }
    let trouble = match &health.last_error {
        Some(trouble) => format!("{}, {}", show::safe(&trouble.what), show::safe(&trouble.at)),
        None => "none".to_owned(),
    };
    text.push_str(&format!(
        "minds {} agents, runs {} contracts · took up {} runs, ended {} leases · last error: {trouble}\n",
        health.agents_at_work, health.gates_at_work, health.runs_recovered, health.leases_expired
    ));
    text
}

/// Returns how long ago a moment was, by this machine's clock.
fn seconds_since(moment: &str) -> Option<f64> {
    let at = time::OffsetDateTime::parse(moment, &time::format_description::well_known::Rfc3339).ok()?;
    Some((client::now_unix_seconds() - at.unix_timestamp_nanos() as f64 / 1e9).max(0.0))
}
