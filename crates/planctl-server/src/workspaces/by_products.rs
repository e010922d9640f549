//! Files that contracts made below protected patterns of a workspace: neither approved nor a worker's, and removed before the next
//! contract, so that none is judged by what another one left.
//!
//! The list lies in the state directory of the workspace's host. An entry counts only as long as it is byte for byte the
//! contract's file: a file that somebody changed since is theirs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use planctl_engine::Digest;
use planctl_harness::Baseline;

use crate::workspaces::notes::Notes;

const NOTES: Notes = Notes("by-products");

/// Returns what contracts made in a workspace, and what it was.
pub(crate) fn read(state_dir: &Path, workspace: &Path) -> BTreeMap<String, Digest> {
    NOTES.read(state_dir, workspace)
}

/// Adds to what contracts made in a workspace.
pub(crate) fn add(state_dir: &Path, workspace: &Path, made: BTreeMap<String, Digest>) -> io::Result<()> {
    let mut known = read(state_dir, workspace);
    let before = known.clone();
    known.extend(made);
    if known == before { Ok(()) } else { NOTES.write(state_dir, workspace, &known) }
}

/// Takes out of a baseline what a pattern matched and a contract made.
pub(crate) fn leave_out(state_dir: &Path, workspace: &Path, baseline: &mut Baseline) {
    if baseline.globs.is_empty() && baseline.deciding.is_empty() {
        return;
    }
    for (name, digest) in read(state_dir, workspace) {
        if baseline.files.get(&name).is_some_and(|state| state.digest == digest) {
            baseline.files.remove(&name);
        }
    }
}
