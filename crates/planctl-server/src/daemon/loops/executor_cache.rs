//! The executors of the runs that this process works on, kept as long as what they were made for holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use planctl_engine::RunId;
use planctl_store::{Claimed, RunConfig, RunRow};

use crate::executor::Executor;
use crate::executor::progress::LiveActivity;
use crate::mutex::lock;
use crate::node::ServerNode;
use crate::node::services::ServiceError;
use planctl_config::Agent;

/// The most runs whose executors are kept; making them again costs a few reads.
const KEPT_MAX: usize = 256;

/// The executors of several runs.
#[derive(Default)]
pub(crate) struct ExecutorCache {
    kept: Mutex<HashMap<RunId, Arc<Executor>>>,
    /// The agent that serves roles that nothing else serves.
    otherwise: Option<Agent>,
    /// Where to show what is under way.
    activity: LiveActivity,
    /// Says that what came of work waits for as long as the database is away.
    outlasts_outages: bool,
}

impl ExecutorCache {
    /// Makes that of a daemon.
    pub(crate) fn of_daemon(otherwise: Option<Agent>) -> ExecutorCache {
        ExecutorCache { otherwise, outlasts_outages: true, ..ExecutorCache::default() }
    }

    /// Makes that of a command that works on one run.
    pub(crate) fn of_command(activity: LiveActivity) -> ExecutorCache {
        ExecutorCache { activity, ..ExecutorCache::default() }
    }

    /// Says that work of every role is taken on.
    pub(crate) fn serves_all(&self) -> bool {
        self.otherwise.is_some()
    }

    /// Returns the executor of the run of a claimed item, as it stood at the claim or later.
    pub(crate) async fn for_item(
        &self,
        server_node: &ServerNode,
        claimed: &Claimed,
    ) -> Result<Arc<Executor>, ServiceError> {
        match self.cached(claimed.item.run, &claimed.run_config) {
            Some(executor) => Ok(executor),
            None => self.for_run(server_node, &server_node.store().run(claimed.item.run).await?).await,
        }
    }

    /// Returns the executor of a run that was just read.
    pub(crate) async fn for_run(
        &self,
        server_node: &ServerNode,
        row: &RunRow,
    ) -> Result<Arc<Executor>, ServiceError> {
        if let Some(executor) = self.cached(row.id, &row.run_config()) {
            return Ok(executor);
        }
        let mut executor = server_node.executor_of(row, self.activity.clone()).await?;
        executor.settings.otherwise.clone_from(&self.otherwise);
        executor.outlasts_outages = self.outlasts_outages;
        let executor = Arc::new(executor);
        let mut kept = lock(&self.kept);
        if kept.len() >= KEPT_MAX {
            // Those at work keep theirs.
            kept.retain(|_, executor| Arc::strong_count(executor) > 1);
        }
        kept.insert(row.id, executor.clone());
        Ok(executor)
    }

    fn cached(&self, run: RunId, run_config: &RunConfig) -> Option<Arc<Executor>> {
        lock(&self.kept).get(&run).filter(|executor| executor.made_for == *run_config).cloned()
    }

    /// Forgets runs that are over, and returns them.
    pub(crate) fn keep_only(&self, is_open: impl Fn(RunId) -> bool) -> Vec<RunId> {
        lock(&self.kept).extract_if(|run, _| !is_open(*run)).map(|(run, _)| run).collect()
    }
}
