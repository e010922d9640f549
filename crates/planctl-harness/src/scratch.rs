//! Private folders that are in use as long as the lock in them is held, and the sweep of those whose planctl died.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock, fstat};

use crate::beneath::open_anywhere;
use crate::blocking::blocking_in_place;
use crate::folder_content::{FolderContent, OldFiles};
use crate::removal::remove_tree;

/// How the folders of attempts begin.
pub(crate) const WORK_PREFIX: &str = "planctl-work-";
/// How the folders begin in which contracts are tried.
pub(crate) const TRIAL_PREFIX: &str = "planctl-trial-";
/// How the folders of contracts begin.
pub(crate) const GATE_PREFIX: &str = "planctl-gate-";
/// How the folders of planctl's own git begin.
pub(crate) const GIT_PREFIX: &str = "planctl-git-";
const PREFIXES: [&str; 4] = [WORK_PREFIX, TRIAL_PREFIX, GATE_PREFIX, GIT_PREFIX];
/// The file in each whose lock says that a tree which uses the folder may be alive.
const LOCK: &str = "lock";
/// Its name until it is locked.
const LOCK_NEW: &str = "lock.new";

/// A folder for nobody else to read, removed with everything in it when it is dropped.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
    lock: Arc<OwnedFd>,
}

/// Removes the folders that were in use when their planctl died; returns how many.
///
/// A folder whose process tree is still alive stays, and so does what belongs to somebody else.
///
/// # Errors
///
/// When the folder cannot be listed.
pub fn sweep_scratch(scratch: &Path) -> io::Result<usize> {
    let us = rustix::process::geteuid().as_raw();
    let mut removed = 0;
    for entry in std::fs::read_dir(scratch)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == us);
        if !is_ours || !PREFIXES.iter().any(|prefix| begins(&name, prefix)) {
            continue;
        }
        let names = [LOCK, LOCK_NEW];
        let gone = match names.iter().find_map(|name| open_anywhere(&entry.path().join(name)).ok()) {
            Some(lock) if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() => continue,
            Some(_) => remove_tree(&entry.path()),
            // Nothing is in it yet, and may be at this very moment; whoever furnishes it then begins anew.
            None => match std::fs::remove_dir(entry.path()) {
                // Its owner was killed while it removed the folder, after the lock.
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && has_no_lock(&entry.path()) => {
                    remove_tree(&entry.path())
                }
                removed => removed,
            },
        };
        match gone {
            Ok(()) => removed += 1,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

fn begins(name: &std::ffi::OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

/// Says whether nobody holds or is about to hold a folder that is not empty: the lock comes before all else.
///
/// The name that a lock gets first is looked for first, so that a rename in between is not missed.
fn has_no_lock(folder: &Path) -> bool {
    ![LOCK_NEW, LOCK].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

impl ScratchFolder {
    /// Makes a folder under a name that nobody can guess.
    pub(crate) fn make(scratch: &Path, prefix: &str) -> io::Result<ScratchFolder> {
        loop {
            let private = std::fs::Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(scratch)?;
            match hold_lock(folder.path()) {
                Ok(lock) => return Ok(ScratchFolder { path: folder.keep(), lock }),
                // The sweep of another planctl came in between.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder hold exactly this and its lock.
    ///
    /// # Errors
    ///
    /// Those of the disk, and where the folder or its lock is not as planctl made it.
    pub(crate) fn restore(&self, content: &FolderContent, old: OldFiles) -> io::Result<()> {
        let (held, named) = (fstat(&*self.lock)?, std::fs::symlink_metadata(self.path.join(LOCK))?);
        if (held.st_dev, held.st_ino) != (named.dev(), named.ino()) {
            return Err(io::Error::other("its lock was replaced"));
        }
        content.restore(&self.path, LOCK.as_ref(), old)
    }

    /// Returns the lock that everything which uses the folder has to hold.
    pub(crate) fn lock(&self) -> Arc<OwnedFd> {
        self.lock.clone()
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // The next sweep removes the rest.
        blocking_in_place(|| remove_tree(&self.path)).ok();
    }
}

/// Makes the lock file appear locked.
fn hold_lock(folder: &Path) -> io::Result<Arc<OwnedFd>> {
    let path = folder.join(LOCK_NEW);
    write_private(&path, b"")?;
    let file = std::fs::File::open(&path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    std::fs::rename(path, folder.join(LOCK))?;
    Ok(Arc::new(file.into()))
}

pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crashed_attempts_folder_is_swept_and_a_living_ones_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("somebody-elses")).unwrap();
        let mut held = Vec::new();
        for prefix in PREFIXES {
            let make = || {
                let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(scratch.path()).unwrap();
                let lock = hold_lock(folder.path()).unwrap();
                (folder.keep(), lock)
            };
            let (crashed, lock) = make();
            let (living, lock_of_living) = make();
            held.push(lock_of_living);
            drop(lock);
            // Two that were killed while they furnished.
            for (name, file) in [("empty", None), ("begun", Some(LOCK_NEW))] {
                let folder = scratch.path().join(format!("{prefix}{name}"));
                std::fs::create_dir(&folder).unwrap();
                if let Some(file) = file {
                    std::fs::write(folder.join(file), "").unwrap();
                }
            }
            assert_eq!(sweep_scratch(scratch.path()).unwrap(), 3);
            assert!(!crashed.exists() && living.exists() && scratch.path().join("somebody-elses").exists());
        }
    }

    #[test]
    fn a_folder_whose_owner_died_while_it_removed_it_is_swept() {
        let scratch = tempfile::tempdir().unwrap();
        let half_removed = scratch.path().join(format!("{WORK_PREFIX}dead"));
        create_folder(&half_removed.join("context")).unwrap();
        std::fs::write(half_removed.join("prompt.md"), "x").unwrap();
        assert_eq!(sweep_scratch(scratch.path()).unwrap(), 1);
        assert!(!half_removed.exists());
    }

    #[test]
    fn a_folder_that_is_dropped_is_gone_with_what_nobody_may_write() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::make(scratch.path(), TRIAL_PREFIX).unwrap();
        let mode = std::fs::metadata(folder.path()).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700);
        let closed = folder.path().join("a/b");
        create_folder(&closed).unwrap();
        std::fs::write(closed.join("x"), "").unwrap();
        for folder in [&closed, &folder.path().join("a")] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o500)).unwrap();
        }
        drop(folder);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
