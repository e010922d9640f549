//! Files that contracts made below protected patterns of a workspace: neither approved nor a worker's, and removed before the next
//! contract, so that none is judged by what another one left.
//!
//! The list lies in the state directory of the workspace's host. An entry counts only as long as it is byte for byte the
//! contract's file, and as nobody keeps it: a file that somebody changed since is theirs, and so is one that git tracks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use planctl_engine::{Digest, Graph, Node};
use planctl_harness::{Baseline, Spawner, brief_file_work};
use serde::{Deserialize, Serialize};

use crate::workspaces::notes::Notes;

const NOTES: Notes = Notes("by-products");

/// A file that a contract made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ByProduct {
    digest: Digest,
    /// The file of the contract's plan.
    plan: String,
}

type ByProducts = BTreeMap<String, ByProduct>;

/// Returns what contracts made in a workspace, and what it was. A file that git tracks by now is forgotten.
pub(crate) async fn read(spawner: &Spawner, state_dir: &Path, workspace: &Path) -> BTreeMap<String, Digest> {
    let known = known_by_products(spawner, state_dir, workspace).await;
    known.into_iter().map(|(name, made)| (name, made.digest)).collect()
}

async fn known_by_products(spawner: &Spawner, state_dir: &Path, workspace: &Path) -> ByProducts {
    let mut known: ByProducts = brief_file_work(|| NOTES.read(state_dir, workspace));
    if known.is_empty() {
        return known;
    }
    let names: BTreeSet<String> = known.keys().cloned().collect();
    let tracked = match planctl_harness::tracked_of(spawner, workspace, &names).await {
        Ok(tracked) => tracked,
        Err(error) => {
            tracing::warn!(%error, "files that contracts made are left, since git does not say whether somebody keeps them");
            return ByProducts::new();
        }
    };
    if tracked.is_empty() {
        return known;
    }
    known.retain(|name, _| !tracked.contains(name));
    if let Err(error) = brief_file_work(|| NOTES.write(state_dir, workspace, &known)) {
        tracing::warn!(%error, "files that git tracks are still noted as made by contracts");
    }
    known
}

/// Adds to what the contracts of a plan made in a workspace.
pub(crate) fn add(
    state_dir: &Path,
    workspace: &Path,
    plan_file: &Path,
    made: BTreeMap<String, Digest>,
) -> io::Result<()> {
    let mut known: ByProducts = NOTES.read(state_dir, workspace);
    let before = known.clone();
    let plan = plan_file.to_string_lossy();
    known.extend(made.into_iter().map(|(name, digest)| (name, ByProduct { digest, plan: plan.to_string() })));
    if known == before { Ok(()) } else { NOTES.write(state_dir, workspace, &known) }
}

/// Takes out of a plan's baseline what a pattern matched and a contract made. A file that a contract of the plan reads, and
/// another plan's contract made, is approved as it is.
pub(crate) async fn leave_out(
    spawner: &Spawner,
    state_dir: &Path,
    workspace: &Path,
    (plan_file, graph): (&Path, Option<&Graph>),
    baseline: &mut Baseline,
) {
    if baseline.globs.is_empty() && baseline.deciding.is_empty() {
        return;
    }
    let plan = plan_file.to_string_lossy();
    let is_read = |name: &str| {
        let mut steps = graph.into_iter().flat_map(Graph::nodes).filter_map(Node::gated);
        steps.any(|gated| gated.contract_files.contains(name))
    };
    for (name, made) in known_by_products(spawner, state_dir, workspace).await {
        let is_left = baseline.files.get(&name).is_some_and(|state| state.digest == made.digest);
        if is_left && (made.plan == plan || !is_read(&name)) {
            baseline.files.remove(&name);
        }
    }
}
