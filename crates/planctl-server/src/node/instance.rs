//! The identity of this process: a file lock that is held exactly as long as the process and its child processes live.
//!
//! Leases name their holder. On the host of a holder anyone can tell whether it is alive by trying its lock, so the
//! leases of a process that was killed end at once and not after their time (DESIGN 7). The helper that starts child
//! processes keeps the lock open until every tree is dead, so a free lock also proves that nothing is left (P11).

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use planctl_api::words::span;
use planctl_engine::RunId;
use planctl_harness::{blocking_in_place, brief_file_work, describe_process};

use crate::clock;
use crate::node::services::ServiceError;

/// How often a lock is tried that another process has.
const LOCKED_AGAIN: Duration = Duration::from_millis(20);
/// How long a lock is waited for until its holder is named.
const HOLDER_NAMED_AFTER: Duration = Duration::from_secs(1);

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
        let id = format!("{}-{}", namespace(&folder)?, uuid::Uuid::now_v7().simple());
        let path = folder.join(format!("{id}.lock"));
        // Nobody may take a file for dead between its creation and its lock: it is locked under another name first.
        let unnamed = folder.join(format!("{id}.new"));
        let lock = loop {
            let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
            lock.lock()?;
            match fs::rename(&unnamed, &path) {
                Ok(()) => break lock,
                // Another process cleared it away in between; again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        };
        Ok(Instance { id, path, lock })
    }

    /// Returns the name that leases carry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says whether the state directory is still where it was: in its place lies the lock file of this process.
    pub(crate) fn is_in_place(&self) -> bool {
        is_at(&self.lock, &self.path)
    }

    /// Notes in the lock file that this process works on a run, for processes that show that run.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn mark_worked_on(&self, run: RunId) -> io::Result<()> {
        self.lock.write_all_at(format!("{run}\n").as_bytes(), self.lock.metadata()?.len())
    }

    /// Notes that this process works on no run any more.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn clear_worked_on(&self) -> io::Result<()> {
        self.lock.set_len(0)
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
        // The lock itself goes with the last handle; a file that stays is cleared by the next process. One that was killed
        // after this one began may be the last that there was.
        let cleared =
            fs::remove_file(&self.path).and_then(|()| self.path.parent().map_or(Ok(()), clear_dead));
        if let Err(error) = cleared {
            tracing::debug!(%error, "an instance's lock file stays behind");
        }
    }
}

/// Says whether a file or folder that this process has open is the one that lies at a path.
pub fn is_at(file: &File, path: &Path) -> bool {
    brief_file_work(|| match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(own)) => (there.dev(), there.ino()) == (own.dev(), own.ino()),
        (Err(error), _) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        (Ok(_), Err(_)) => true,
    })
}

/// Says whether an instance of this state directory is gone, together with everything it started.
///
/// Of one that keeps its lock elsewhere, as another person's on the same database does, or one on a clone of this machine
/// that has its id, nothing can be said from here: its leases run out by themselves.
pub fn is_gone(state_dir: &Path, id: &str, is_of_this_boot: bool) -> bool {
    if id.contains('/') || id.is_empty() {
        return false;
    }
    match blocking_in_place(|| namespace(&folder(state_dir))) {
        Ok(own) if id.split('-').next() == Some(own.as_str()) => {}
        Ok(_) | Err(_) => return false,
    }
    // A lock of an earlier boot proves nothing: its process is gone.
    if !is_of_this_boot {
        return true;
    }
    match blocking_in_place(|| File::open(folder(state_dir).join(format!("{id}.lock")))) {
        Ok(file) => is_free(&file),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns the runs that living instances of this state directory said they work on.
pub fn runs_worked_on(state_dir: &Path) -> io::Result<BTreeSet<RunId>> {
    blocking_in_place(|| read_runs_worked_on(state_dir))
}

fn read_runs_worked_on(state_dir: &Path) -> io::Result<BTreeSet<RunId>> {
    let entries = match fs::read_dir(folder(state_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut runs = BTreeSet::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        // A process that ends meanwhile works on nothing.
        if File::open(&path).is_ok_and(|file| !is_free(&file)) {
            let noted = fs::read_to_string(&path).unwrap_or_default();
            runs.extend(noted.lines().filter_map(RunId::parse));
        }
    }
    Ok(runs)
}

fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("instances")
}

/// Returns what tells this state directory's instances from those of others; drawn when it is first asked for.
fn namespace(folder: &Path) -> io::Result<String> {
    let path = folder.join("home");
    let read = || fs::read_to_string(&path).map(|text| text.trim().to_owned());
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        known => return known,
    }
    // Written whole under another name first; of two that draw at once, the one that links first decides.
    let drawn = uuid::Uuid::now_v7().simple().to_string();
    let unnamed = folder.join(format!("{drawn}.new"));
    fs::write(&unnamed, &drawn)?;
    let linked = fs::hard_link(&unnamed, &path);
    remove(&unnamed)?;
    match linked {
        Ok(()) => Ok(drawn),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(),
        // Another process cleared it away in between; again.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.exists() => namespace(folder),
        Err(error) => Err(error),
    }
}

/// Waits until no other process of this state directory does this, and keeps them out until the answer is dropped, and
/// what keeps it too is dead. After a second of waiting `hears` gets the holder once: a process, and for how long it has been that.
///
/// The lock is tried again and again, since a thread that waits for it in the kernel would keep this process from ending.
pub(crate) async fn lock_exclusively(
    state_dir: &Path,
    what: &str,
    hears: impl FnOnce(&str),
) -> Result<Arc<OwnedFd>, ServiceError> {
    let path = state_dir.join(format!("{what}.lock"));
    let wrong = || ServiceError::io(format!("lock {}", path.display()));
    let file = crate::node::runtime::blocking({
        let path = path.clone();
        move || lock_file(&path)
    });
    let file = file.await?.map_err(wrong())?;
    let (began, mut hears) = (clock::instant(), Some(hears));
    loop {
        match file.try_lock() {
            Ok(()) => {
                brief_file_work(|| note_holder(&file)).map_err(wrong())?;
                return Ok(Arc::new(file.into()));
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCKED_AGAIN).await,
            Err(TryLockError::Error(error)) => return Err(wrong()(error)),
        }
        if began.elapsed() >= HOLDER_NAMED_AFTER
            && let Some(hears) = hears.take()
        {
            hears(&brief_file_work(|| describe_holder(&file)));
        }
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn note_holder(file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(std::process::id().to_string().as_bytes(), 0)
}

/// Names the process that noted itself as the holder of a lock, and says for how long it has been that.
fn describe_holder(mut file: &File) -> String {
    let mut noted = String::new();
    let process = file.read_to_string(&mut noted).ok().and_then(|_| noted.trim().parse().ok());
    let process = process.map_or_else(|| "another process".to_owned(), describe_process);
    match file.metadata().and_then(|found| found.modified()).map(|since| since.elapsed().unwrap_or_default())
    {
        Ok(elapsed) => format!("{process}, for {}", span(elapsed)),
        Err(_) => process,
    }
}

fn clear_dead(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock" || extension == "new")
            && File::open(&path).is_ok_and(|file| is_free(&file))
        {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a file; gone already is as good.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
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
        assert!(!is_gone(state.path(), &id, true));
        let helper = instance.lock().unwrap();
        let path = instance.path.clone();
        // A kill -9 of the process closes its own handle and leaves the file; the helper's handle holds on.
        let Instance { lock, .. } = &instance;
        drop(lock.try_clone().unwrap());
        fs::hard_link(&path, path.with_extension("kept")).unwrap();
        drop(instance);
        fs::rename(path.with_extension("kept"), &path).unwrap();
        assert!(!is_gone(state.path(), &id, true));
        drop(helper);
        assert!(is_gone(state.path(), &id, true));
    }

    #[test]
    fn the_runs_that_living_instances_work_on_are_known() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(runs_worked_on(state.path()).unwrap(), BTreeSet::new());
        let [one, other, third] = [1, 2, 3].map(RunId::from_u128);
        let (first, second) =
            (Instance::begin(state.path()).unwrap(), Instance::begin(state.path()).unwrap());
        first.mark_worked_on(one).unwrap();
        first.mark_worked_on(other).unwrap();
        second.mark_worked_on(third).unwrap();
        assert_eq!(runs_worked_on(state.path()).unwrap(), BTreeSet::from([one, other, third]));
        second.clear_worked_on().unwrap();
        second.mark_worked_on(other).unwrap();
        assert_eq!(runs_worked_on(state.path()).unwrap(), BTreeSet::from([one, other]));
        drop(first);
        assert_eq!(runs_worked_on(state.path()).unwrap(), BTreeSet::from([other]));
    }

    #[test]
    fn an_instance_of_another_state_directory_is_never_taken_for_gone() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let instance = Instance::begin(elsewhere.path()).unwrap();
        Instance::begin(here.path()).unwrap();
        assert!(!is_gone(here.path(), instance.id(), true), "its lock file is not here, and it lives");
        let id = instance.id().to_owned();
        drop(instance);
        assert!(is_gone(elsewhere.path(), &id, true));
        assert!(is_gone(elsewhere.path(), &id, false), "it was of an earlier boot");
        assert!(!is_gone(here.path(), &id, false), "b8: whose boot that was is not known here");
        assert!(!is_gone(here.path(), &id, true));
    }

    #[test]
    fn the_files_of_dead_instances_are_cleared_and_those_of_living_ones_stay() {
        let state = tempfile::tempdir().unwrap();
        let living = Instance::begin(state.path()).unwrap();
        let dead = ["dead.lock", "unborn.new"].map(|name| folder(state.path()).join(name));
        dead.iter().for_each(|dead| fs::write(dead, "").unwrap());
        let other = Instance::begin(state.path()).unwrap();
        assert!(!dead.iter().any(|dead| dead.exists()));
        assert!(!is_gone(state.path(), living.id(), true) && !is_gone(state.path(), other.id(), true));
        // Of one that died after the last that began.
        fs::write(&dead[0], "").unwrap();
        drop(other);
        assert!(!dead[0].exists() && !is_gone(state.path(), living.id(), true));
    }
}
