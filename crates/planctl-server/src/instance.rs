//! Who this process is: a file lock that is held exactly as long as it, and every tree it started, lives.
//!
//! Leases name their holder. On the host of a holder anyone can tell whether it is alive by trying its lock, so the
//! leases of a process that was killed end at once and not after their time (DESIGN 7). The helper that starts child
//! processes keeps the lock open until every tree is dead, so a free lock also proves that nothing is left (P11).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// One running planctl process.
#[derive(Debug)]
pub struct Instance {
    id: String,
    path: PathBuf,
    lock: File,
}

impl Instance {
    /// Takes a lock under a fresh name and clears away the lock files of processes that are gone.
    ///
    /// # Errors
    ///
    /// When the state directory can't be written.
    pub fn begin(state_dir: &Path) -> io::Result<Instance> {
        let folder = folder(state_dir);
        fs::create_dir_all(&folder)?;
        clear_dead(&folder)?;
        let id = uuid::Uuid::now_v7().simple().to_string();
        let path = folder.join(format!("{id}.lock"));
        // Nobody may take a file for dead between its creation and its lock: it is locked under another name first.
        let unnamed = folder.join(format!("{id}.new"));
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, &path)?;
        Ok(Instance { id, path, lock })
    }

    /// Returns the name that leases carry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns another handle of the lock, for the helper that has to outlive this process by a moment.
    ///
    /// # Errors
    ///
    /// When this process has no descriptor left.
    pub fn lock(&self) -> io::Result<OwnedFd> {
        Ok(self.lock.try_clone()?.into())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The lock itself goes with the last handle; a file that stays is cleared by the next process.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "an instance's lock file stays behind");
        }
    }
}

/// Says whether an instance of this host is gone, together with everything it started.
pub fn is_gone(state_dir: &Path, id: &str) -> bool {
    if id.contains('/') || id.is_empty() {
        return false;
    }
    match File::open(folder(state_dir).join(format!("{id}.lock"))) {
        Ok(file) => is_free(&file),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("instances")
}

fn clear_dead(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock")
            && File::open(&path).is_ok_and(|file| is_free(&file))
        {
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn is_free(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_gone_when_its_last_lock_handle_closes() {
        let state = tempfile::tempdir().unwrap();
        let instance = Instance::begin(state.path()).unwrap();
        let id = instance.id().to_owned();
        assert!(!is_gone(state.path(), &id));
        let helper = instance.lock().unwrap();
        let path = instance.path.clone();
        // A kill -9 of the process closes its own handle and leaves the file; the helper's handle holds on.
        let Instance { lock, .. } = &instance;
        drop(lock.try_clone().unwrap());
        fs::hard_link(&path, path.with_extension("kept")).unwrap();
        drop(instance);
        fs::rename(path.with_extension("kept"), &path).unwrap();
        assert!(!is_gone(state.path(), &id));
        drop(helper);
        assert!(is_gone(state.path(), &id));
    }

    #[test]
    fn the_files_of_dead_instances_are_cleared_and_those_of_living_ones_stay() {
        let state = tempfile::tempdir().unwrap();
        let living = Instance::begin(state.path()).unwrap();
        let dead = folder(state.path()).join("dead.lock");
        fs::write(&dead, "").unwrap();
        let other = Instance::begin(state.path()).unwrap();
        assert!(!dead.exists());
        assert!(!is_gone(state.path(), living.id()) && !is_gone(state.path(), other.id()));
    }
}
