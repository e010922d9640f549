//! Lays a private Postgres into a state directory that a test gives to planctl: made once, and copied.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use rustix::process::geteuid;

use super::{COUNTER, HASTY, apart, make_open_dir, migrate, shared_dir};
use crate::Store;
use crate::cluster::{Cluster, ClusterOptions, ensure_state_dir};

/// Ends the shared server a second after the last test process left. Not every test has a program of planctl's at hand, which
/// would do it by [`crate::cluster::watch`].
pub(super) const WATCHER: &str = r#"while sleep 1 && kill -0 "$1" 2>/dev/null; do
    flock --nonblock --exclusive "$2" sh -c 'kill -INT "$0"' "$1" 2>/dev/null; done"#;

/// So much must be free in memory for clusters to lie there.
const MEMORY_BYTES_MIN: u64 = 1 << 30;

/// Lays a private cluster into the state directory of one test, as a first run of planctl leaves it: with its roles and its
/// schema, and stopped.
///
/// It is a copy of one that is made once, so that a test of something else waits neither for `initdb` nor for migrations.
/// Its data lie in memory where there is room: ext4 looks at every file that was removed in the last seconds before it makes
/// one, so clusters that come and go on a disk slow down whoever makes files there.
///
/// # Panics
///
/// When that can't be done: a test can't go on then.
#[must_use = "the data go with it"]
pub fn lay_private_cluster(state_dir: &Path) -> LaidCluster {
    let pg_dir = pg_dir_in(state_dir);
    let Some(memory) = memory() else {
        copy_data(&pg_dir);
        return LaidCluster(None);
    };
    sweep(&memory);
    // Tests find their processes by the name of their place, and a server works in its data.
    let place = state_dir.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let folder = memory.join(format!("{}_{number}_{place}", std::process::id()));
    make_open_dir(&folder);
    lay_in_memory(&pg_dir, &folder)
        .unwrap_or_else(|error| panic!("could not lay a private cluster: {error}"));
    LaidCluster(Some(folder))
}

/// The data of a private cluster that lie outside of its state directory; they are removed with this value.
#[derive(Debug)]
pub struct LaidCluster(Option<PathBuf>);

impl Drop for LaidCluster {
    fn drop(&mut self) {
        if let Some(folder) = &self.0
            && let Err(error) = fs::remove_dir_all(folder)
        {
            // Its server may be ending; the next test that lays a cluster removes the rest.
            tracing::debug!(%error, folder = %folder.display(), "could not remove a test's cluster");
        }
    }
}

/// Removes the data of clusters whose test is gone.
fn sweep(memory: &Path) {
    for entry in fs::read_dir(memory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split_once('_')).map(|(pid, _)| pid);
        if let Some(pid) = pid.filter(|pid| !Path::new("/proc").join(pid).exists())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            // Another test may be removing it.
            tracing::debug!(%error, pid, "could not remove a test's cluster");
        }
    }
}

/// Lays the shared cluster into its state directory, unless it is there.
pub(super) fn lay_shared_cluster(state_dir: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let lock = fs::File::create(state_dir.with_extension("lock"))?;
    lock.lock()?;
    let pg_dir = pg_dir_in(state_dir);
    if data_in(&pg_dir).is_some_and(|data| data.join("PG_VERSION").exists()) {
        return Ok(());
    }
    let Some(memory) = memory() else {
        copy_data(&pg_dir);
        return Ok(());
    };
    Ok(lay_in_memory(&pg_dir, &memory)?)
}

/// Returns the folder for data of tests in memory, unless there is little room.
fn memory() -> Option<PathBuf> {
    let memory = Path::new("/dev/shm");
    let room = rustix::fs::statvfs(memory).map_or(0, |found| found.f_bavail * found.f_frsize);
    let folder = memory.join(format!("planctl-tests-{}", geteuid().as_raw()));
    (room >= MEMORY_BYTES_MIN).then(|| {
        make_open_dir(&folder);
        folder
    })
}

/// Lays a cluster's data into a folder, and a link that leads to them into the folder of private clusters.
fn lay_in_memory(pg_dir: &Path, folder: &Path) -> std::io::Result<()> {
    let data = copy_data(folder);
    let name = pg_dir.join(data.file_name().unwrap_or_default());
    // After a restart of the machine it is there and leads nowhere.
    remove_if_there(fs::remove_file(&name))?;
    std::os::unix::fs::symlink(&data, &name)?;
    let owner = fs::metadata(&data)?;
    std::os::unix::fs::lchown(&name, Some(owner.uid()), Some(owner.gid()))
}

/// Returns the folder of private clusters in a state directory, which it makes.
fn pg_dir_in(state_dir: &Path) -> PathBuf {
    ensure_state_dir(state_dir).unwrap_or_else(|error| panic!("could not {error}"));
    let pg_dir = state_dir.join("pg");
    make_open_dir(&pg_dir);
    pg_dir
}

/// Returns the data in a folder of private clusters: their directory's name is the major version.
fn data_in(pg_dir: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(pg_dir).ok()?.flatten();
    entries.find(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).map(|entry| entry.path())
}

/// Copies the data of the cluster that others are copies of into a folder; returns where they are.
fn copy_data(folder: &Path) -> PathBuf {
    let made = made_private_cluster();
    let data = data_in(&made.join("pg")).unwrap_or_else(|| panic!("{} holds no data", made.display()));
    let copied = Command::new("cp").args(["-a", "--reflink=auto"]).arg(&data).arg(folder).status();
    assert!(copied.is_ok_and(|status| status.success()), "could not copy {}", data.display());
    folder.join(data.file_name().unwrap_or_default())
}

/// Returns the state directory of the private cluster that others are copies of, which the first caller makes.
fn made_private_cluster() -> PathBuf {
    let folder = shared_dir();
    let fingerprint = Store::schema_fingerprint();
    let ready = folder.join(format!("private-{}", fingerprint.get(..16).unwrap_or(&fingerprint)));
    if ready.exists() {
        return ready;
    }
    let make = || -> Result<(), Box<dyn Error + Send + Sync>> {
        let lock = fs::File::create(folder.join("private.lock"))?;
        lock.lock()?;
        if ready.exists() {
            return Ok(());
        }
        let half = folder.join("private.half");
        remove_if_there(fs::remove_dir_all(&half))?;
        let settings = HASTY.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = ClusterOptions { settings, ..ClusterOptions::new(&half) };
        apart(async {
            let cluster = Cluster::attach(options).await?;
            cluster.create_roles().await?;
            migrate(cluster.owner_options()).await
        })?;
        Ok(fs::rename(&half, &ready)?)
    };
    make().unwrap_or_else(|error| panic!("could not make a private cluster: {error}"));
    ready
}

/// Takes it for success that what was to be removed is not there.
pub(super) fn remove_if_there(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
