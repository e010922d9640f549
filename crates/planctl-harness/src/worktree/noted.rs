//! Facts about a worktree as they were when planctl made it, noted beside it: its worker can write the repository's own lists and
//! the worktree's `.git`, and would hide a judged file from the commit, or lead the commit elsewhere.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::records::remove_file;
use crate::git::clean::GitFolders;
use crate::git::config::bytes_of;
use crate::git::git_folder;

/// The repository and the branch of a worktree.
pub(super) struct Made {
    /// The folder of the repository that all its worktrees share, without links.
    pub(super) common: PathBuf,
    /// The branch that planctl checked out.
    pub(super) branch: String,
}

/// Returns where the list of ignored files of a worktree is kept.
pub(super) fn kept_of(worktree: &Path) -> PathBuf {
    beside(worktree, ".ignored")
}

fn beside(worktree: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(worktree);
    name.push(what);
    name.into()
}

/// Keeps what a repository ignores, by its common folder, and the branch, for a worktree of it.
pub(super) fn keep(common: &Path, worktree: &Path, branch: &str) -> Result<(), WorktreeError> {
    let write = |kept: PathBuf, bytes: &[u8]| {
        let io = |source| WorktreeError::Io { what: format!("write {}", kept.display()), source };
        std::fs::write(&kept, bytes).map_err(io)
    };
    let real = common.canonicalize().unwrap_or_else(|_| common.to_owned());
    let made = [real.as_os_str().as_bytes(), b"\0", branch.as_bytes()].concat();
    write(kept_of(worktree), &bytes_of(&common.join("info/exclude")))?;
    write(beside(worktree, ".made"), &made)
}

/// Returns what was noted of a worktree; nothing where planctl did not make it.
pub(super) fn made_of(worktree: &Path) -> Option<Made> {
    let made = std::fs::read(beside(worktree, ".made")).ok()?;
    let (common, branch) = made.split_at_checked(made.iter().position(|byte| *byte == 0)?)?;
    let branch = String::from_utf8(branch.get(1..)?.to_vec()).ok()?;
    Some(Made { common: OsString::from_vec(common.to_vec()).into(), branch })
}

/// Removes what was noted of a worktree.
pub(super) fn forget(worktree: &Path) -> Result<(), WorktreeError> {
    [kept_of(worktree), beside(worktree, ".made")].iter().try_for_each(|kept| remove_file(kept))
}

/// Returns git's folder of a worktree; `None` where its `.git` names none of the repository that planctl made it of.
pub(super) fn own_folder(worktree: &Path) -> Option<PathBuf> {
    let own = git_folder(worktree)?;
    let Some(made) = made_of(worktree) else { return Some(own) };
    let folders = GitFolders::of(own)?;
    let is_record = folders.own.parent() == Some(&made.common.join("worktrees"));
    (is_record && folders.common == made.common).then_some(folders.own)
}
