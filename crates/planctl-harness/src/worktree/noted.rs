//! Facts about a worktree as they were when planctl made it, noted beside it: its worker can write the repository's own lists and
//! the worktree's `.git`, and would hide a judged file from the commit, or lead the commit elsewhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::records::remove_file;
use super::{NewWorktree, WorktreeError};
use crate::git::clean::GitFolders;
use crate::git::config::bytes_of;
use crate::git::git_folder;

/// The repository and the branch of a worktree.
pub(super) struct Made {
    /// The folder of the repository that all its worktrees share, without links.
    pub(super) common: PathBuf,
    /// The branch that planctl checked out.
    pub(super) branch: String,
    /// The commit that it began with.
    pub(super) base: String,
}

/// Returns where the list of ignored files of a worktree is kept.
pub(super) fn kept_of(worktree: &Path) -> PathBuf {
    path_beside(worktree, ".ignored")
}

fn path_beside(worktree: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(worktree);
    name.push(what);
    name.into()
}

/// Keeps what a repository ignores, by its common folder, for a worktree that is to be made of it, and that one's branch.
pub(super) fn keep(common: &Path, new: &NewWorktree<'_>) -> Result<(), WorktreeError> {
    let write = |kept: PathBuf, bytes: &[u8]| {
        let io = |source| WorktreeError::Io { what: format!("write {}", kept.display()), source };
        std::fs::write(&kept, bytes).map_err(io)
    };
    let real = common.canonicalize().unwrap_or_else(|_| common.to_owned());
    let made = [real.as_os_str().as_bytes(), new.branch.as_bytes(), new.commit.as_bytes()].join(&b'\0');
    write(kept_of(new.path), &bytes_of(&common.join("info/exclude")))?;
    write(path_beside(new.path, ".made"), &made)
}

/// Returns what was noted of a worktree; nothing where planctl did not make it.
pub(super) fn made_of(worktree: &Path) -> Option<Made> {
    let made = std::fs::read(path_beside(worktree, ".made")).ok()?;
    let [common, branch, base] = made.split(|byte| *byte == 0).collect::<Vec<_>>()[..] else { return None };
    let text = |part: &[u8]| String::from_utf8(part.to_vec()).ok();
    let common = OsStr::from_bytes(common).into();
    Some(Made { common, branch: text(branch)?, base: text(base)? })
}

/// Removes what was noted of a worktree.
pub(super) fn forget(worktree: &Path) -> Result<(), WorktreeError> {
    [kept_of(worktree), path_beside(worktree, ".made")].iter().try_for_each(|kept| remove_file(kept))
}

/// Returns git's folder of a worktree; `None` where its `.git` names none of the repository that planctl made it of.
pub(super) fn own_folder(worktree: &Path) -> Option<PathBuf> {
    let own = git_folder(worktree)?;
    let Some(made) = made_of(worktree) else { return Some(own) };
    let folders = GitFolders::of(own)?;
    let is_record = folders.own.parent() == Some(&made.common.join("worktrees"));
    (is_record && folders.common == made.common).then_some(folders.own)
}
