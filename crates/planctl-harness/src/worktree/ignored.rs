//! The files that were ignored when a worktree was made, noted beside it: whoever works in it can write the repository's own
//! list, and would hide a judged file from the commit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use crate::git::config::bytes_of;

/// Returns where the list of a worktree is kept.
pub(super) fn kept_of(worktree: &Path) -> PathBuf {
    let mut name = OsString::from(worktree);
    name.push(".ignored");
    name.into()
}

/// Keeps what a repository ignores, by its common folder, for a worktree of it.
pub(super) fn keep(common: &Path, worktree: &Path) -> Result<(), WorktreeError> {
    let kept = kept_of(worktree);
    std::fs::write(&kept, bytes_of(&common.join("info/exclude")))
        .map_err(|source| WorktreeError::Io { what: format!("write {}", kept.display()), source })
}
