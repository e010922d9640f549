//! One daemon per state directory: a lock that its process holds, and a file that says where it listens.
//!
//! The lock alone says whether a daemon is there; it goes with the process, however that ends. `daemon.json` is there from
//! when the sockets listen until the daemon stops, so one next to a free lock is stale.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_api::wire::DaemonInfo;
use planctl_harness::blocking_in_place;
use planctl_store::cluster::ClusterError;

use crate::node::instance::is_at;

const LOCK: &str = "daemon.lock";
const INFO: &str = "daemon.json";

/// A process that only checks the lock holds it for a moment, so it is tried a few times.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The state of a state directory's daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SingletonState {
    /// There is none.
    Nobody,
    /// It does not listen yet, or no longer.
    Busy {
        /// Its process, where it said so already.
        pid: Option<u32>,
    },
    /// It is there.
    Running(DaemonInfo),
}

/// The right to be the daemon of a state directory.
#[derive(Debug)]
pub struct SingletonLock {
    lock: File,
    info: PathBuf,
}

/// Why the singleton lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SingletonError {
    /// Another daemon has it (row 112).
    #[error("start a daemon: one is there already")]
    Taken(SingletonState),
    /// The state directory can't be made.
    #[error(transparent)]
    StateDir(#[from] ClusterError),
    /// A file in the state directory can't be used.
    #[error("use the state directory {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl SingletonLock {
    /// Takes the lock, and removes the record that a killed daemon left.
    ///
    /// # Errors
    ///
    /// [`SingletonError::Taken`] while another process has it.
    pub fn acquire(state_dir: &Path) -> Result<SingletonLock, SingletonError> {
        let path = state_dir.join(LOCK);
        let wrong = |source| SingletonError::Io { path: path.clone(), source };
        planctl_store::cluster::ensure_state_dir(state_dir)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(wrong)?;
        if !try_lock_repeatedly(|| lock.try_lock()).map_err(wrong)? {
            return Err(SingletonError::Taken(singleton_state(state_dir).map_err(wrong)?));
        }
        let info = state_dir.join(INFO);
        remove_if_there(&info).map_err(wrong)?;
        lock.set_len(0).map_err(wrong)?;
        lock.seek(SeekFrom::Start(0)).map_err(wrong)?;
        writeln!(lock, "{}", std::process::id()).map_err(wrong)?;
        Ok(SingletonLock { lock, info })
    }

    /// Says whether the state directory is still where it was: in its place lies the lock that this process holds.
    pub(crate) fn is_in_place(&self) -> bool {
        is_at(&self.lock, &self.info.with_file_name(LOCK))
    }

    /// Says where the daemon listens, from now on.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write_info(&self, info: &DaemonInfo) -> io::Result<()> {
        blocking_in_place(|| {
            let draft = self.info.with_extension("json.new");
            remove_if_there(&draft)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(&serde_json::to_vec(info)?)?;
            file.sync_all()?;
            fs::rename(&draft, &self.info)
        })
    }
}

impl Drop for SingletonLock {
    fn drop(&mut self) {
        // In another place, the files may be those of another daemon.
        if !self.is_in_place() {
            return;
        }
        let left = remove_if_there(&self.info).and_then(|()| self.lock.set_len(0));
        if let Err(error) = left {
            tracing::debug!(%error, "what the daemon said about itself stays behind");
        }
    }
}

/// Returns what is known of the daemon of a state directory.
///
/// # Errors
///
/// When the state directory can't be read.
pub fn singleton_state(state_dir: &Path) -> io::Result<SingletonState> {
    let mut lock = match File::open(state_dir.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SingletonState::Nobody),
        opened => opened?,
    };
    match lock.try_lock_shared() {
        Ok(()) => return Ok(SingletonState::Nobody),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = String::new();
    lock.read_to_string(&mut text)?;
    let pid = text.trim().parse().ok();
    let info = match fs::read(state_dir.join(INFO)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SingletonState::Busy { pid }),
        read => read?,
    };
    match serde_json::from_slice::<DaemonInfo>(&info) {
        Ok(info) if Some(info.pid) == pid => Ok(SingletonState::Running(info)),
        Ok(_) | Err(_) => Ok(SingletonState::Busy { pid }),
    }
}

fn try_lock_repeatedly(mut attempt: impl FnMut() -> Result<(), TryLockError>) -> io::Result<bool> {
    for _ in 1..TRIES {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn info() -> DaemonInfo {
        DaemonInfo {
            pid: std::process::id(),
            socket: "/run/planctl.sock".to_owned(),
            tcp: None,
            version: "0.1.0".to_owned(),
            started_at: "2026-11-21T12:00:00Z".to_owned(),
        }
    }

    #[test]
    fn a_second_daemon_is_refused_and_told_who_is_there() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(singleton_state(state.path()).unwrap(), SingletonState::Nobody);
        let singleton = SingletonLock::acquire(state.path()).unwrap();
        assert_eq!(
            singleton_state(state.path()).unwrap(),
            SingletonState::Busy { pid: Some(std::process::id()) }
        );
        singleton.write_info(&info()).unwrap();
        let mode = fs::metadata(state.path().join(INFO)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let refused = SingletonLock::acquire(state.path());
        assert!(
            matches!(&refused, Err(SingletonError::Taken(SingletonState::Running(there))) if *there == info())
        );
        drop(singleton);
        assert_eq!(singleton_state(state.path()).unwrap(), SingletonState::Nobody);
        assert!(!state.path().join(INFO).exists());
        SingletonLock::acquire(state.path()).unwrap();
    }

    #[test]
    fn what_a_killed_daemon_said_is_stale() {
        let state = tempfile::tempdir().unwrap();
        let singleton = SingletonLock::acquire(state.path()).unwrap();
        singleton.write_info(&info()).unwrap();
        // As a kill leaves it: the lock is free, the files are there.
        fs::copy(state.path().join(INFO), state.path().join("kept")).unwrap();
        drop(singleton);
        fs::rename(state.path().join("kept"), state.path().join(INFO)).unwrap();
        fs::write(state.path().join(LOCK), "1\n").unwrap();
        assert_eq!(singleton_state(state.path()).unwrap(), SingletonState::Nobody);
        let _lock = SingletonLock::acquire(state.path()).unwrap();
        assert_eq!(
            singleton_state(state.path()).unwrap(),
            SingletonState::Busy { pid: Some(std::process::id()) }
        );
    }
}
