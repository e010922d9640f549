//! Where the private Postgres lives: its folders, who may pass through them, and where its socket is.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy as _, Xdg};
use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use super::error::At as _;
use super::identity::Identity;
use super::{ClusterError, server};

/// The longest path that fits into a Unix socket's address.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// How many threads wait for the disk together.
const SYNC_THREADS: usize = 16;

/// The port is only part of the socket's name: nothing listens on TCP.
pub(crate) const PORT: u16 = 5432;

/// Returns planctl's state directory: `$PLANCTL_STATE_DIR`, else the system's as root, else XDG's (DESIGN 9).
pub fn state_dir() -> Result<PathBuf, ClusterError> {
    let explicit = std::env::var_os("PLANCTL_STATE_DIR");
    state_dir_from(explicit.as_deref(), geteuid().is_root(), || Xdg::new().ok()?.state_dir())
}

/// Decides the state directory from what is known of the environment; an empty `explicit` counts as none.
pub fn state_dir_from(
    explicit: Option<&OsStr>,
    is_root: bool,
    xdg_state_dir: impl FnOnce() -> Option<PathBuf>,
) -> Result<PathBuf, ClusterError> {
    if let Some(named) = explicit.filter(|path| !path.is_empty()).map(PathBuf::from) {
        if named.is_absolute() {
            return Ok(named);
        }
        let absolute = std::path::absolute(&named).at("find", &named)?;
        return Err(ClusterError::RelativeStateDir { named, absolute });
    }
    if is_root {
        return Ok(PathBuf::from("/var/lib/planctl"));
    }
    xdg_state_dir().map(|dir| dir.join("planctl")).ok_or(ClusterError::NoStateDir)
}

/// Creates planctl's state directory if it is missing, so that the database's user can pass through it.
///
/// As root an empty directory that root owns is opened for passing (mode 0711): it is a fresh one of ours. A directory
/// with other things in it keeps its mode.
pub fn ensure_state_dir(path: &Path) -> Result<(), ClusterError> {
    let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
    make_dirs(path, mode)?;
    let meta = fs::metadata(path).at("read", path)?;
    let closed = meta.mode() & 0o001 == 0;
    if geteuid().is_root() && meta.uid() == 0 && closed && is_ours(path)? {
        fs::set_permissions(path, fs::Permissions::from_mode(meta.mode() & 0o777 | 0o011))
            .at("open up", path)?;
    }
    Ok(())
}

fn is_ours(path: &Path) -> Result<bool, ClusterError> {
    let mut entries = fs::read_dir(path).at("read", path)?;
    Ok(entries.next().is_none() || path.join("pg").is_dir())
}

/// Creates a directory and those above it, with exactly this mode for those that were missing.
fn make_dirs(path: &Path, mode: u32) -> Result<(), ClusterError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_dirs(parent, if geteuid().is_root() { 0o755 } else { mode })?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(mode)).at("open up", path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(source) => Err(ClusterError::StateDir { path: path.to_owned(), source }),
    }
}

/// The paths of one private cluster.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Everything of the cluster: data by major version, downloads, locks, the log.
    pub(crate) pg_dir: PathBuf,
}

impl Layout {
    pub(crate) fn new(state_dir: &Path) -> Result<Layout, ClusterError> {
        let state_dir = std::path::absolute(state_dir).at("find", state_dir)?;
        Ok(Layout { pg_dir: state_dir.join("pg") })
    }

    /// Returns the data directory of a major version.
    pub(crate) fn data_dir(&self, major: u32) -> PathBuf {
        self.pg_dir.join(major.to_string())
    }

    /// Returns the file whose lock makes a process the one that runs Postgres.
    pub(crate) fn owner_lock(&self) -> PathBuf {
        self.pg_dir.join("supervisor.lock")
    }

    /// Returns the file on which every attached process holds a shared lock.
    pub(crate) fn attached_lock(&self) -> PathBuf {
        self.pg_dir.join("attached.lock")
    }

    /// Returns the file that the watcher of a server keeps locked.
    pub(crate) fn watcher_lock(&self) -> PathBuf {
        self.pg_dir.join("watcher.lock")
    }

    /// Returns the note of which major version there were data, since the last reset.
    pub(crate) fn made(&self) -> PathBuf {
        self.pg_dir.join("made")
    }

    /// Returns the server's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.pg_dir.join("postgres.log")
    }

    /// Returns the note of the programs that were found last.
    pub(crate) fn programs(&self) -> PathBuf {
        self.pg_dir.join("programs.json")
    }

    /// Returns the folder of fetched packages.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.pg_dir.join("bin")
    }

    /// Returns the newest major version that has data here.
    pub(crate) fn existing_major(&self) -> Option<u32> {
        let entries = fs::read_dir(&self.pg_dir).ok()?;
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
            .filter(|major| self.data_dir(*major).join("PG_VERSION").exists())
            .max()
    }

    /// Creates the folders, and refuses a place that the database's user can't reach.
    pub(crate) fn prepare(&self, identity: &Identity) -> Result<(), ClusterError> {
        if let Some(state_dir) = self.pg_dir.parent() {
            check_parents(state_dir.parent().unwrap_or(state_dir), &self.pg_dir, identity)?;
            ensure_state_dir(state_dir)?;
        }
        make_dirs(&self.pg_dir, if geteuid().is_root() { 0o711 } else { 0o700 })?;
        check_parents(&self.pg_dir, &self.pg_dir, identity)
    }

    /// Returns the directory of the server's socket, short enough for a socket address.
    ///
    /// The answer depends on the data's path and owner alone, so every process computes the same one in every environment.
    pub(crate) fn socket_dir(&self, disk_uid: u32) -> PathBuf {
        let near = self.pg_dir.join("run");
        let name_length = format!("/.s.PGSQL.{PORT}").len();
        if near.as_os_str().len() + name_length <= SOCKET_PATH_BYTES_MAX {
            return near;
        }
        let digest = Sha256::digest(self.pg_dir.as_os_str().as_bytes());
        let name = planctl_engine::hex(&digest[..8]);
        PathBuf::from(format!("/tmp/planctl-{disk_uid}")).join(name)
    }

    /// Creates the socket's directory, private to the database's user.
    pub(crate) fn make_socket_dir(&self, identity: &Identity) -> Result<PathBuf, ClusterError> {
        let dir = self.socket_dir(identity.disk_uid());
        if !dir.starts_with(&self.pg_dir)
            && let Some(base) = dir.parent()
        {
            make_private_dir(base, identity)?;
        }
        make_private_dir(&dir, identity)?;
        Ok(dir)
    }

    /// Returns true while a postmaster works on one of the data directories.
    pub(crate) fn postmaster(&self) -> Option<rustix::process::Pid> {
        server::postmaster(&self.data_dir(self.existing_major()?))
    }
}

/// Creates a directory of mode 0700 that belongs to the database's user; one that belongs to another is refused.
pub(crate) fn make_private_dir(path: &Path, identity: &Identity) -> Result<(), ClusterError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) if identity.needs_chown() => {
            chown(path, Some(identity.disk_uid()), Some(identity.disk_gid())).at("hand over", path)?;
        }
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).at("create", path),
    }
    let meta = fs::symlink_metadata(path).at("read", path)?;
    if meta.is_dir() && meta.uid() == 0 && identity.needs_chown() {
        // A process that died between creating and handing over left it ours.
        chown(path, Some(identity.disk_uid()), Some(identity.disk_gid())).at("hand over", path)?;
    } else if !meta.is_dir() || meta.uid() != identity.disk_uid() {
        let reason = format!("it is not a directory of user \"{}\"; remove it", identity.name());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)).at("use", path);
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).at("close", path)?;
    }
    Ok(())
}

/// Refuses a path with a directory that the database's user can't pass through.
pub(crate) fn check_parents(path: &Path, data: &Path, identity: &Identity) -> Result<(), ClusterError> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    for parent in ancestors {
        let meta = match fs::metadata(parent) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).at("look into", parent),
        };
        if meta.is_dir() && !may_pass(parent, &meta, identity) {
            return Err(ClusterError::ParentNotTraversable {
                data: data.to_owned(),
                parent: parent.to_owned(),
                mode: meta.mode() & 0o777,
                user: identity.name(),
            });
        }
    }
    Ok(())
}

fn may_pass(path: &Path, meta: &Metadata, identity: &Identity) -> bool {
    if matches!(identity, Identity::Own { .. }) {
        // The system knows our other groups and access lists; another user starts without groups.
        return rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    }
    let bit = if meta.uid() == identity.disk_uid() {
        0o100
    } else if meta.gid() == identity.disk_gid() {
        0o010
    } else {
        0o001
    };
    meta.mode() & bit != 0
}

/// Writes a directory's files and names to the disk, so that a power cut can't leave a part of it.
///
/// Several threads wait for the disk at once: file systems commit what waits together, and a thousand single waits take
/// seconds on a busy disk.
pub(crate) fn sync_tree(dir: &Path) -> Result<(), ClusterError> {
    let mut paths = Vec::new();
    list_tree(dir, &mut paths)?;
    let share = paths.len().div_ceil(SYNC_THREADS).max(1);
    std::thread::scope(|scope| {
        let waits: Vec<_> = paths
            .chunks(share)
            .map(|share| scope.spawn(|| share.iter().try_for_each(|path| sync(path))))
            .collect();
        waits.into_iter().try_for_each(|wait| wait.join().expect("writing to the disk doesn't panic"))
    })
}

/// Lists regular files and directories, each directory after what is in it.
fn list_tree(dir: &Path, paths: &mut Vec<PathBuf>) -> Result<(), ClusterError> {
    for entry in fs::read_dir(dir).at("read", dir)? {
        let entry = entry.at("read", dir)?;
        let kind = entry.file_type().at("read", dir)?;
        if kind.is_dir() {
            list_tree(&entry.path(), paths)?;
        } else if kind.is_file() {
            paths.push(entry.path());
        }
    }
    paths.push(dir.to_owned());
    Ok(())
}

/// Writes one file or directory to the disk.
pub(crate) fn sync(path: &Path) -> Result<(), ClusterError> {
    let file = fs::File::open(path).at("open", path)?;
    file.sync_all().at("write", path)
}

/// Removes a directory that may not exist, and that a dying process may still be filling.
pub(crate) fn remove_tree(path: &Path) -> Result<(), ClusterError> {
    for _ in 0..100 {
        match fs::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) => return Err(error).at("remove", path),
        }
    }
    fs::remove_dir_all(path).at("remove", path)
}

#[cfg(test)]
mod tests;
