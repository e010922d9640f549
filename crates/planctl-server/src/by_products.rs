//! What contracts made below protected patterns of a workspace: neither approved nor a worker's, and removed before the next
//! contract, so that none is judged by what another one left (sec hole 8).
//!
//! The list lies in the state directory of the workspace's host. An entry counts only as long as it is byte for byte what
//! the contract made: what somebody wrote there since is theirs.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use planctl_engine::Digest;
use planctl_harness::{Baseline, digest_of};

/// The most bytes of a list that are read; beyond, what a contract made is taken for its worker's.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Returns what contracts made in a workspace, and what it was.
pub(crate) fn read(state_dir: &Path, workspace: &Path) -> BTreeMap<String, Digest> {
    let path = list(state_dir, workspace);
    let is_small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= LIST_BYTES_MAX);
    let text = if is_small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    serde_json::from_str(&text).unwrap_or_default()
}

/// Adds to what contracts made in a workspace.
pub(crate) fn add(state_dir: &Path, workspace: &Path, made: BTreeMap<String, Digest>) -> io::Result<()> {
    let mut known = read(state_dir, workspace);
    let before = known.clone();
    known.extend(made);
    if known == before {
        return Ok(());
    }
    let path = list(state_dir, workspace);
    let next = path.with_extension("next");
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    std::fs::write(&next, serde_json::to_vec(&known).map_err(io::Error::other)?)?;
    std::fs::rename(next, path)
}

/// Takes out of a baseline what a pattern matched and a contract made.
pub(crate) fn leave_out(state_dir: &Path, workspace: &Path, baseline: &mut Baseline) {
    if baseline.globs.is_empty() {
        return;
    }
    for (name, digest) in read(state_dir, workspace) {
        if baseline.files.get(&name).is_some_and(|state| state.digest == digest) {
            baseline.files.remove(&name);
        }
    }
}

fn list(state_dir: &Path, workspace: &Path) -> PathBuf {
    let name = digest_of(workspace.as_os_str().as_encoded_bytes());
    let name: String = name.as_str().trim_start_matches("sha256:").chars().take(32).collect();
    state_dir.join("by-products").join(format!("{name}.json"))
}
