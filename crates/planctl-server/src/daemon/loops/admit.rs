//! Gives queued runs of this host's workspaces their turn, oldest first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::RunStatus;
use planctl_store::{RunRow, StoreError};

use super::{Shared, TurnResult, Turns};
use crate::node::ServerNode;
use crate::node::services::ServiceError;
use crate::runs::shown::worktree_trouble;

/// How many queued runs are looked at.
const AT_ONCE: i64 = 1000;

/// Admits runs.
#[derive(Default)]
pub(crate) struct Runs;

impl Turns for Runs {
    const NAME: &'static str = "runs";
    const PACE: Duration = Duration::from_millis(50);

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let server_node = &shared.server_node;
        let mut taken = BTreeSet::new();
        let queued = server_node.store().queued_runs(server_node.host(), AT_ONCE).await?;
        let queued = shared.health.readable(Runs::NAME, queued);
        let is_well = |row: &RunRow| worktree_trouble(row).is_none();
        let is_empty = queued.is_empty();
        for row in queued.into_iter().filter(is_well) {
            // Behind one that waits, all others of its workspace wait too.
            if row.worktree.is_none() && !taken.insert(row.workspace) {
                continue;
            }
            if row.worktree.as_ref().is_some_and(|worktree| worktree.made_at.is_none()) {
                // Git may take minutes, and others of its kind may be first.
                let (run, server_node) = (row.id, server_node.clone());
                let admitting = async move { admit(&server_node, &row).await };
                shared.admissions.try_spawn(&shared.health, run, admitting);
            } else if let Err(error) = admit(server_node, &row).await {
                shared.note_error(Runs::NAME, error);
            }
        }
        Ok(if is_empty { TurnResult::Nothing } else { TurnResult::Something })
    }
}

impl ServerNode {
    /// Gives a run the workspace, if nobody has it and nobody was first; returns the name of the run it waits for.
    /// A run in a worktree gets its worktree before its work can be claimed.
    pub(crate) async fn admit(&self, row: &RunRow) -> Result<Option<String>, ServiceError> {
        let run = row.id;
        self.make_worktree(row).await?;
        self.unmarked().insert(run);
        match self.store.admit_run(run).await {
            Ok(()) => Ok(None),
            Err(StoreError::WorkspaceBusy { run }) => Ok(Some(run)),
            // Another process was quicker, or the run was cancelled meanwhile.
            Err(StoreError::Refused(refusal)) => match self.store.run(run).await?.head.status {
                RunStatus::Queued { .. } => {
                    Err(ServiceError::broken(format!("a run can't begin: {refusal}")))
                }
                RunStatus::New
                | RunStatus::Awaiting
                | RunStatus::Active
                | RunStatus::Paused
                | RunStatus::Ended { .. } => Ok(None),
            },
            Err(error) => Err(error.into()),
        }
    }
}

async fn admit(server_node: &ServerNode, row: &RunRow) -> Result<(), ServiceError> {
    if server_node.admit(row).await?.is_none() {
        tracing::info!(run.name = %row.name, "admitted");
    }
    Ok(())
}
