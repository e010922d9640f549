//! Files that must not change while a contract runs, but that the contract itself wrote. Only changes by another process
//! repeat a gate (A5). The harness documents how it distinguishes the two.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use planctl_engine::Digest;
use planctl_harness::Written;

use crate::workspaces::notes::Notes;

const NOTES: Notes = Notes("contract-writes");

/// Returns what a contract wrote in a workspace.
pub(crate) fn read(state_dir: &Path, workspace: &Path, contract: &Digest) -> Written {
    read_all(state_dir, workspace).remove(contract.as_str()).unwrap_or_default()
}

/// Notes what a contract wrote in a workspace, as far as it is known by now.
pub(crate) fn note(
    state_dir: &Path,
    workspace: &Path,
    contract: &Digest,
    written: Written,
) -> io::Result<()> {
    let mut all = read_all(state_dir, workspace);
    if all.insert(contract.as_str().to_owned(), written.clone()) == Some(written) {
        return Ok(());
    }
    NOTES.write(state_dir, workspace, &all)
}

fn read_all(state_dir: &Path, workspace: &Path) -> BTreeMap<String, Written> {
    NOTES.read(state_dir, workspace)
}
