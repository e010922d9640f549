//! State that the runs of one database share: the holder of each lock, and the run of each workspace.

use std::collections::BTreeMap;

use planctl_engine::{NodeId, RunId};

/// A folder in which runs work, by its number.
pub type Workspace = u64;

/// The tables that are of no single run.
#[derive(Default)]
pub struct Database {
    /// The node that has each lock.
    pub locks: BTreeMap<String, (RunId, NodeId)>,
    /// The run that has each workspace: an active one, or one whose revoked holders have not ended.
    pub workspaces: BTreeMap<Workspace, RunId>,
}

impl Database {
    /// Gives the locks of a node back.
    pub fn free(&mut self, run: RunId, node: &NodeId) {
        self.locks.retain(|_, owner| *owner != (run, node.clone()));
    }

    /// Says whether a node may take locks: nobody else has one of them.
    pub fn are_free(&self, locks: &[String], run: RunId, node: &NodeId) -> bool {
        let is_free = |lock| self.locks.get(lock).is_none_or(|(owner, at)| *owner == run && at == node);
        locks.iter().all(is_free)
    }
}
