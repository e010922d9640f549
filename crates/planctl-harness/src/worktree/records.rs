//! Folders of worktrees with git's records of them, made and removed; locks that a killed git left there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::call::Git;
use super::noted::forget;
use crate::blocking::blocking_in_place;
use crate::git::config::bytes_of;
use crate::git::git_folder;

/// Makes a worktree of the repository of a git, by its common folder, with the arguments that follow `git worktree add`.
pub(super) async fn add_worktree<A: Into<OsString>>(
    git: &Git<'_>,
    common: &Path,
    path: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), WorktreeError> {
    let io = |what: &str, path: &Path| {
        let what = format!("{what} {}", path.display());
        |source| WorktreeError::Io { what, source }
    };
    let records = common.join("worktrees");
    let words = ["worktree", "add", "--quiet"].map(OsString::from);
    let arguments = words.into_iter().chain(arguments.into_iter().map(Into::into));
    git.call_checked(arguments).await?;
    // Git has named the folder by way of that repository, which is gone by now.
    let pointer = path.join(".git");
    blocking_in_place(|| {
        let named = git_folder(path).and_then(|own| Some(records.join(own.file_name()?)));
        let named = named.ok_or_else(|| WorktreeError::Git {
            what: "git worktree add".to_owned(),
            said: format!("{} names no worktree", pointer.display()),
        })?;
        let mut line = b"gitdir: ".to_vec();
        line.extend([resolve_links(&named).as_os_str().as_bytes(), b"\n"].concat());
        std::fs::write(&pointer, line).map_err(io("write", &pointer))
    })
}

/// Removes a folder in which nobody works, and the records of it and of its contents in a repository's common folder.
pub(super) fn remove_worktrees(common: &Path, path: &Path) -> Result<(), WorktreeError> {
    // While it is there: a link in its path leads to where git knows it.
    let records = records_below(common, path);
    let folders = [path].into_iter().chain(records.iter().map(PathBuf::as_path));
    folders.into_iter().try_for_each(remove_all)?;
    forget(path)
}

/// Removes a folder with everything in it; one that is not there is as good.
pub(super) fn remove_all(folder: &Path) -> Result<(), WorktreeError> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if !matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(WorktreeError::Io { what: format!("remove {}", folder.display()), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns git's records, in a repository's common folder, of the worktrees below a folder. A record that a worker put there as a
/// link is none: it would lead elsewhere.
pub(super) fn records_below(common: &Path, folder: &Path) -> Vec<PathBuf> {
    let folder = resolve_links(folder);
    let records = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().filter_map(Result::ok);
    let records = records.filter(|record| record.file_type().is_ok_and(|kind| kind.is_dir()));
    let is_below = |record: &PathBuf| {
        let place = bytes_of(&record.join("gitdir"));
        Path::new(OsStr::from_bytes(place.trim_ascii_end())).starts_with(&folder)
    };
    records.map(|record| record.path()).filter(is_below).collect()
}

/// Removes what git locked in folders and left behind where it was killed. Only for folders in which no git can be at
/// work: a lock says nothing of who made it.
///
/// # Errors
///
/// Those of the disk; a folder that is not there has no locks.
pub(crate) fn remove_locks(folders: &[PathBuf]) -> Result<(), WorktreeError> {
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")) {
        remove_file(&path)?;
    }
    Ok(())
}

/// Returns a path as git tells it: without links, as far as it is there.
pub(super) fn resolve_links(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    let resolved = there.and_then(|(folder, real)| Some(real.join(path.strip_prefix(folder).ok()?)));
    resolved.unwrap_or_else(|| path.to_owned())
}

/// Removes a file; one that is not there is as good.
pub(crate) fn remove_file(path: &Path) -> Result<(), WorktreeError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(WorktreeError::Io { what: format!("remove {}", path.display()), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
