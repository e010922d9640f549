//! Planctl's side of the helper: starts it, starts it again when it dies, and lends out guardians.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::time::Timespec;

use super::named::TreeName;
use super::wire::{self, GUARD, HOLD};
use crate::blocking::blocking_in_place;
use crate::git::config::UserSettings;
use crate::open_files;
use crate::scratch::ScratchFolder;

/// Guardians kept waiting for the next run; more are let go.
const IDLE_MAX: usize = 64;

/// The socket to one guardian that waits for an order.
pub(crate) struct GuardianSocket(pub(crate) OwnedFd);

/// The way to start processes: a handle on the helper, cheap to clone.
///
/// When the last handle is dropped, or planctl dies, everything that was started ends.
#[derive(Clone)]
pub struct Spawner {
    shared: Arc<Shared>,
    /// Locks that are held while something runs that was started by this handle.
    locks: Vec<Arc<OwnedFd>>,
    /// The folder for private folders of started commands.
    scratch: Option<Arc<Path>>,
    /// The name of what is started.
    name: Option<TreeName>,
}

struct Shared {
    user: UserSettings,
    program: PathBuf,
    arguments: Vec<OsString>,
    lock: Option<OwnedFd>,
    next_id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    helper: Option<Helper>,
    idle: Vec<GuardianSocket>,
}

struct Helper {
    process: Child,
    control: OwnedFd,
}

impl Spawner {
    /// Starts the helper by running `program __spawn`.
    ///
    /// `lock` is kept open by helper and guardians until every process that they started is dead: lock the file before, and
    /// a process that gets the lock later knows that nothing is left (P11).
    ///
    /// # Errors
    ///
    /// When the program cannot be started.
    pub fn start(program: impl Into<PathBuf>, lock: Option<OwnedFd>) -> io::Result<Spawner> {
        Spawner::start_with(program, vec!["__spawn".into()], lock)
    }

    /// Starts the helper from the running program itself, which must call [`helper_main`](super::helper_main) when
    /// its first argument is `__spawn`; works even when the program's file was replaced meanwhile.
    ///
    /// # Errors
    ///
    /// When `/proc/self/exe` cannot be executed.
    pub fn start_self(lock: Option<OwnedFd>) -> io::Result<Spawner> {
        Spawner::start("/proc/self/exe", lock)
    }

    fn start_with(
        program: impl Into<PathBuf>,
        arguments: Vec<OsString>,
        lock: Option<OwnedFd>,
    ) -> io::Result<Spawner> {
        let shared = Shared {
            user: UserSettings::read(),
            program: program.into(),
            arguments,
            lock,
            next_id: AtomicU64::new(1),
            state: Mutex::new(State::default()),
        };
        let spawner = Spawner { shared: Arc::new(shared), locks: Vec::new(), scratch: None, name: None };
        spawner.shared.running_helper(&mut spawner.shared.state())?;
        Ok(spawner)
    }

    /// Returns a handle that holds locks as well, until it is dropped and all that was started by it is dead; they stay
    /// held where planctl dies before.
    pub fn with_locks(&self, locks: impl IntoIterator<Item = Arc<OwnedFd>>) -> Spawner {
        let locks = self.locks.iter().cloned().chain(locks).collect();
        Spawner { locks, ..self.clone() }
    }

    /// Returns a handle whose commands have this name: while one of them or what it started lives, no other begins on this host.
    pub fn with_name(&self, name: TreeName) -> Spawner {
        Spawner { name: Some(name), ..self.clone() }
    }

    /// Returns a handle that makes private folders of commands in this folder, which is the user's alone and outside every
    /// workspace; [`sweep_scratch`](crate::sweep_scratch) removes the ones that a crash left there.
    pub fn with_scratch(&self, folder: impl Into<PathBuf>) -> Spawner {
        Spawner { scratch: Some(folder.into().into()), ..self.clone() }
    }

    /// Returns the folder for private folders, where one was given.
    pub(crate) fn scratch(&self) -> Option<&Path> {
        self.scratch.as_deref()
    }

    /// Makes a private folder for something that is about to be started: in the system's own folder for temporary files
    /// where no other was given.
    pub(crate) fn private_folder(&self, prefix: &str) -> io::Result<ScratchFolder> {
        match self.scratch() {
            Some(scratch) => ScratchFolder::make(scratch, prefix),
            None => ScratchFolder::make(&std::env::temp_dir(), prefix),
        }
    }

    /// Returns what the user's own git configuration said when this process began to start others.
    pub(crate) fn user_settings(&self) -> &UserSettings {
        &self.shared.user
    }

    pub(crate) fn name(&self) -> Option<&TreeName> {
        self.name.as_ref()
    }

    pub(crate) fn locks(&self) -> &[Arc<OwnedFd>] {
        &self.locks
    }

    /// Returns the helper's process id, while it has one.
    pub fn helper_id(&self) -> Option<u32> {
        self.shared.state().helper.as_ref().map(|helper| helper.process.id())
    }

    /// Ends everything that was started and waits until it is dead; blocks for seconds at worst.
    pub fn shutdown(&self) {
        let mut state = self.shared.state();
        state.idle.clear();
        if let Some(Helper { mut process, control }) = state.helper.take() {
            drop(control);
            // Its status is of no interest: the process is gone.
            process.wait().ok();
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.shared.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Lends a waiting guardian, or asks the helper for one.
    pub(crate) fn acquire_guardian(&self) -> io::Result<GuardianSocket> {
        let mut state = self.shared.state();
        while let Some(line) = state.idle.pop() {
            if line.is_open() {
                return Ok(line);
            }
        }
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut asked = Ok(());
        // Twice: the first failure shows that the helper died since, and the next one is a fresh one.
        for _ in 0..2 {
            let helper = self.shared.running_helper(&mut state)?;
            asked = wire::send(&helper.control, &[GUARD], &[theirs.as_fd()], SendFlags::empty());
            if asked.is_ok() {
                return Ok(GuardianSocket(ours));
            }
            if let Some(mut helper) = state.helper.take() {
                drop(helper.control);
                blocking_in_place(|| helper.process.wait()).ok();
            }
        }
        asked.map(|()| GuardianSocket(ours))
    }

    /// Takes back a guardian that has reported.
    pub(crate) fn release_guardian(&self, line: GuardianSocket) {
        let mut state = self.shared.state();
        if state.idle.len() < IDLE_MAX {
            state.idle.push(line);
        }
    }
}

impl GuardianSocket {
    /// Says whether the guardian is still there; a waiting one has nothing to say.
    fn is_open(&self) -> bool {
        let mut line = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut line, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state holds descriptors only; no invariant spans a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running_helper<'a>(&self, state: &'a mut State) -> io::Result<&'a Helper> {
        if state.helper.is_none() {
            state.idle.clear();
            state.helper = Some(self.start_helper()?);
        }
        state.helper.as_ref().ok_or_else(|| io::Error::other("the helper is gone"))
    }

    fn start_helper(&self) -> io::Result<Helper> {
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let process = std::process::Command::new(&self.program)
            .arg0("planctl")
            .args(&self.arguments)
            .args(open_files::helper_argument())
            .env_clear()
            .current_dir("/")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(lock) = &self.lock {
            wire::send(&control, &[HOLD], &[lock.as_fd()], SendFlags::empty())?;
        }
        Ok(Helper { process, control })
    }
}
