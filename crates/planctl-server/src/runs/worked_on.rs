//! Those that work on a run, as far as this process can tell.
//!
//! A daemon works on all runs of its host, except for work of roles that only workers serve. A process of `planctl run` notes
//! its run in its instance's lock file. Workers are known by the leases that they hold and by the claims that they make; so is
//! a daemon of this host that has another state directory.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use planctl_api::wire::WorkedOnBy;
use planctl_config::Agent;
use planctl_engine::{Graph, Role, RunId, RunStatus, Work};
use planctl_store::{Ahead, OpenItem, Page, RunRow, RunView, Store};
use tokio::sync::OnceCell;

use crate::node::instance;
use crate::node::services::{ServiceError, Services};
use crate::node::{Daemon, ServerNode};
use crate::runs::settings::RunSettings;

/// How long a worker counts as there after it asked for work.
pub(crate) const ONLINE: Duration = Duration::from_secs(60);

/// Everybody who works, looked up once for all runs that are shown together.
pub(crate) struct Presence {
    store: Store,
    state_dir: PathBuf,
    host: String,
    daemon: Option<Daemon>,
    /// Runs that living processes work on.
    runs: BTreeSet<RunId>,
    /// Roles of which a worker was seen; read where that decides.
    seen: OnceCell<BTreeSet<Role>>,
}

impl Presence {
    pub(crate) fn of(server_node: &ServerNode) -> Result<Presence, ServiceError> {
        let runs = instance::runs_worked_on(server_node.state_dir());
        Ok(Presence {
            store: server_node.store().clone(),
            state_dir: server_node.state_dir().to_owned(),
            host: server_node.host().to_owned(),
            daemon: server_node.daemon(),
            runs: runs.map_err(ServiceError::io("read which runs are worked on"))?,
            seen: OnceCell::new(),
        })
    }

    /// Says who works on a run.
    pub(crate) async fn worker_on(
        &self,
        view: &RunView,
        settings: &RunSettings,
    ) -> Result<Option<WorkedOnBy>, ServiceError> {
        let run = &view.run;
        if matches!(run.head.status, RunStatus::Ended { .. }) {
            return Ok(None);
        }
        if self.runs.contains(&run.id) {
            return Ok(Some(WorkedOnBy::Run));
        }
        if run.host != self.host {
            return Ok(Some(WorkedOnBy::Elsewhere));
        }
        if settings.worker == Some(Agent::Session) {
            return Ok(Some(WorkedOnBy::Session));
        }
        let agent_items = || view.items.iter().filter_map(|item| Some((item, role_of(item)?)));
        let daemon_does = |daemon: Daemon| {
            let serves = |role: &Role| daemon.serves_all || settings.serves(role, &run.plan_path);
            let has_gates = view.items.iter().any(|item| matches!(item.work, Work::Harness { .. }));
            has_gates || agent_items().next().is_none() || agent_items().any(|(_, role)| serves(role))
        };
        if self.daemon.is_some_and(daemon_does) {
            return Ok(Some(WorkedOnBy::Daemon));
        }
        let is_held = |item: &&OpenItem| {
            let is_lapsed = item.lease_until.is_none_or(|until| until < run.read_at);
            let holder = item.instance.as_deref().filter(|_| item.is_leased && !is_lapsed);
            holder.is_some_and(|holder| !instance::is_gone(&self.state_dir, holder, true))
        };
        if view.items.iter().any(|item| is_held(&item)) {
            return Ok(Some(WorkedOnBy::Worker));
        }
        // Workers reach work through a daemon, and contracts are run by one.
        if self.daemon.is_none() {
            return Ok(None);
        }
        let seen = self.seen_roles().await?;
        Ok(agent_items().any(|(_, role)| seen.contains(role)).then_some(WorkedOnBy::Worker))
    }

    async fn seen_roles(&self) -> Result<&BTreeSet<Role>, ServiceError> {
        self.seen.get_or_try_init(|| seen_roles(&self.store)).await
    }
}

async fn seen_roles(store: &Store) -> Result<BTreeSet<Role>, ServiceError> {
    let roles = store.roles(&Page::ALL, ONLINE).await?;
    Ok(roles.into_iter().filter(|role| !role.workers.is_empty()).map(|role| role.role).collect())
}

fn role_of(item: &OpenItem) -> Option<&Role> {
    match &item.work {
        Work::Agent { role, .. } => Some(role),
        Work::Harness { .. } | Work::Human { .. } => None,
    }
}

impl ServerNode {
    /// Returns the active run that has the workspace for which a queued one waits, be it behind others that are queued.
    pub(crate) async fn holder_before(&self, queued: &RunRow) -> Result<Option<RunRow>, ServiceError> {
        let mut behind = queued.id;
        // Each has its turn before the last, so this comes to an end.
        while let Some(Ahead { run, is_ending: false }) = self.store().waits_for(behind).await? {
            let row = self.store().find_run(&run, Some(queued.workspace)).await?;
            if row.head.status == RunStatus::Active {
                return Ok(Some(row));
            }
            behind = row.id;
        }
        Ok(None)
    }
}

impl Services {
    /// Returns the roles of a plan that no configuration serves and somebody does: the run that is taken up, or others.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn served_unconfigured(
        &self,
        graph: &Graph,
        taken_up: Option<&RunRow>,
    ) -> Result<Vec<String>, ServiceError> {
        let config = &self.caller.config;
        let has_agent = |role: &Role| config.roles.get(role).is_some_and(|role| role.agent.is_some());
        let mut roles: BTreeSet<&Role> =
            graph.steps().iter().map(|(_, task)| &task.role).filter(|role| !has_agent(role)).collect();
        let mut served = BTreeSet::new();
        if let Some(run) = taken_up {
            let settings = RunSettings::of(run)?;
            served.extend(roles.iter().filter(|role| settings.serves(role, &run.plan_path)));
            roles.retain(|role| !served.contains(role));
        }
        if let Some(daemon) = self.server_node.daemon().filter(|_| !roles.is_empty()) {
            let seen = if daemon.serves_all { BTreeSet::new() } else { seen_roles(&self.store).await? };
            served.extend(roles.into_iter().filter(|role| daemon.serves_all || seen.contains(*role)));
        }
        Ok(served.into_iter().map(|role| role.as_str().to_owned()).collect())
    }
}
