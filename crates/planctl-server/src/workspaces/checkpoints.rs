//! The snapshots that checkpoints of runs keep, and the notes of the repositories that runs found: their place, and their removal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use planctl_engine::{Graph, NodeId, RunId};
use planctl_harness::blocking_in_place;
use planctl_store::RunRow;

use crate::node::ServerNode;
use crate::node::runtime::blocking;
use crate::node::services::ServiceError;
use crate::workspaces::branch_worktrees::is_over;

/// Characters of a run's id, with which the names of its folders begin.
const ID_CHARS: usize = 36;

/// Returns where the checkpoints are kept that a node of a run makes: each place where it works has its own, whose index
/// knows the files there.
pub(crate) fn kept_in(state_dir: &Path, run: RunId, graph: &Graph, node: &NodeId) -> PathBuf {
    let own = match graph.worktree_branch(node) {
        Some(worktree) => format!("{}-{}", worktree.join, worktree.branch).replace('/', "-"),
        None => String::new(),
    };
    folder_of(state_dir).join(format!("{run}{own}"))
}

/// Returns where the repositories are noted as they were when a run was taken up first.
pub(crate) fn repositories_noted_in(state_dir: &Path, run: RunId) -> PathBuf {
    folder_of(state_dir).join(format!("{run}.repositories")).join("noted.json")
}

fn folder_of(state_dir: &Path) -> PathBuf {
    state_dir.join("checkpoints")
}

/// Lists what is kept, each with its run.
fn stored_checkpoints(state_dir: &Path) -> Vec<(RunId, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder_of(state_dir)) else { return Vec::new() };
    let entries = entries.filter_map(Result::ok).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((RunId::parse(name.get(..ID_CHARS)?)?, entry.path()))
    });
    entries.collect()
}

impl ServerNode {
    /// Removes the checkpoints of a run that is over and can't be taken up; `failed` asks for those that can.
    pub(crate) async fn clear_checkpoints(&self, run: &RunRow, failed: bool) -> Result<(), ServiceError> {
        if !is_over(run, failed) || run.host != self.host() {
            return Ok(());
        }
        let (state_dir, id, name) = (self.state_dir().to_owned(), run.id, run.name.clone());
        blocking(move || {
            for (_, folder) in stored_checkpoints(&state_dir).into_iter().filter(|(of, _)| *of == id) {
                if let Err(error) = std::fs::remove_dir_all(&folder) {
                    tracing::warn!(%error, run.name = %name, "checkpoints in {} were not removed", folder.display());
                }
            }
        })
        .await
    }

    /// Returns the runs of which checkpoints are kept, each as often as it has places.
    pub(crate) fn runs_with_checkpoints(&self) -> impl Iterator<Item = RunId> {
        stored_checkpoints(self.state_dir()).into_iter().map(|(run, _)| run)
    }

    /// Removes the checkpoints of runs that are over, of all workspaces.
    pub(crate) async fn clear_all_checkpoints(&self, failed: bool) -> Result<(), ServiceError> {
        for run in blocking_in_place(|| self.runs_with_checkpoints().collect::<BTreeSet<RunId>>()) {
            if let Some(run) = self.known(run).await? {
                self.clear_checkpoints(&run, failed).await?;
            }
        }
        Ok(())
    }
}
