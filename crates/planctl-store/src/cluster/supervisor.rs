//! The thread that keeps the cluster up: runs Postgres as its owner, or waits to take over from the owner.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, futimens};
use rustix::io::retry_on_intr;
use rustix::process::{PidfdFlags, pidfd_open};

use super::binaries::Binaries;
use super::error::At as _;
use super::identity::Identity;
use super::layout::Layout;
use super::server::{
    Endpoint, LOOK_PAUSE, STOP, Server, log_tail, make_zombie_pid_stale, postmaster, ready_postmaster,
    stop_postmaster,
};
use super::watcher::is_watched;
use super::{ClusterError, ClusterOptions, data};
use crate::mutex::lock;

/// How often those who are not the owner try the lock, and the first pause before a server that ended is started again.
const WATCH: Duration = Duration::from_millis(25);

/// How often is looked whether a server that was just started is ready.
const READY_LOOK: Duration = Duration::from_millis(2);

/// How long a first run may take to bring and make everything before others give up waiting for it.
const PREPARING: Duration = Duration::from_secs(600);

/// How long a postmaster of a former owner may go on by itself before it is asked to stop.
const FORMER_OWNER: Duration = Duration::from_secs(1);

/// How many times a server that ends while it starts is started again, when its log names no passing reason.
const START_ATTEMPTS: u32 = 3;

/// The longest pause between two attempts to bring a dead server back.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A server that lived as long as this is brought back without a pause.
const SETTLED: Duration = Duration::from_secs(5);

/// The state that a process is given when it is attached.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    pub(crate) major: u32,
    pub(crate) endpoint: Endpoint,
}

/// Whether this process runs the server.
enum Membership {
    Guest,
    Owner(Tenure),
}

/// The right to run the server, and the server.
struct Tenure {
    lock: File,
    server: Server,
    since: Instant,
}

/// How the thread gets on, for the process that it works for.
#[derive(Debug, Default)]
pub(crate) struct SupervisorState {
    /// This process runs the server.
    pub(crate) owns: AtomicBool,
    /// Why it can't bring the server back, in one line.
    pub(crate) trouble: Mutex<Option<String>>,
}

impl SupervisorState {
    /// Returns the trouble that was known before.
    fn note_trouble(&self, words: Option<String>) -> Option<String> {
        std::mem::replace(&mut *lock(&self.trouble), words)
    }
}

/// Tells the thread that this process leaves.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// Readable from then on; nobody reads it.
    told: OwnedFd,
    /// How long the server may take to stop.
    timeout: OnceLock<Duration>,
}

impl Leaving {
    pub(crate) fn new() -> Result<Leaving, ClusterError> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| {
            ClusterError::Program { program: "an eventfd".into(), reason: error.to_string() }
        })?;
        Ok(Leaving { told, timeout: OnceLock::new() })
    }

    /// Tells it; the first timeout counts.
    pub(crate) fn tell(&self, timeout: Duration) -> rustix::io::Result<()> {
        self.timeout.get_or_init(|| timeout);
        rustix::io::write(&self.told, &1_u64.to_ne_bytes()).map(drop)
    }
}

/// Everything the thread works with.
pub(crate) struct Supervisor {
    options: ClusterOptions,
    layout: Layout,
    leaving: Arc<Leaving>,
    state: Arc<SupervisorState>,
}

impl Supervisor {
    pub(crate) fn new(
        options: ClusterOptions,
        layout: Layout,
        leaving: Arc<Leaving>,
        state: Arc<SupervisorState>,
    ) -> Supervisor {
        Supervisor { options, layout, leaving, state }
    }

    /// Attaches, reports the result, and keeps the cluster up until this process leaves.
    ///
    /// Runs on a thread of its own to its end, since the server's death signal is bound to the thread that started it.
    pub(crate) fn run(self, report: impl FnOnce(Result<Attached, ClusterError>)) {
        // Held to the end: `reset` asks for it exclusively.
        let attached = self.hold_attached();
        let first = attached
            .and_then(|lock| self.attach().map(|(membership, attached)| (lock, membership, attached)));
        match first {
            Ok((_lock, membership, attached)) => {
                report(Ok(attached));
                self.supervise(membership);
            }
            Err(error) => report(Err(error)),
        }
    }

    fn hold_attached(&self) -> Result<File, ClusterError> {
        let identity = Identity::detect(self.existing_data_dir().as_deref())?;
        self.layout.prepare(&identity)?;
        let file = open_lock(&self.layout.attached_lock())?;
        let deadline = Instant::now() + self.options.start_timeout;
        loop {
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                // A watcher sees by it that somebody was here, also when it looked too seldom.
                touch(&file).at("write", &self.layout.attached_lock())?;
                return Ok(file);
            }
            if Instant::now() > deadline {
                return Err(self.owner_silent_error());
            }
            self.sleep(LOOK_PAUSE)?;
        }
    }

    fn attach(&self) -> Result<(Membership, Attached), ClusterError> {
        let began = Instant::now();
        let mut data_since = None;
        loop {
            if let Some(lock) = self.try_lock()? {
                let (server, attached) = self.take_over()?;
                self.state.owns.store(true, Ordering::Release);
                return Ok((Membership::Owner(Tenure { lock, server, since: Instant::now() }), attached));
            }
            let may_wait = if let Some(major) = self.layout.existing_major() {
                let identity = Identity::detect(Some(&self.layout.data_dir(major)))?;
                let endpoint = Endpoint { socket_dir: self.layout.socket_dir(identity.disk_uid()) };
                if ready_postmaster(&self.layout.data_dir(major)).is_some() && endpoint.has_socket() {
                    return Ok((Membership::Guest, Attached { major, endpoint }));
                }
                data_since.get_or_insert_with(Instant::now).elapsed() < self.options.start_timeout
            } else {
                began.elapsed() < PREPARING
            };
            if !may_wait {
                return Err(self.owner_silent_error());
            }
            self.sleep(LOOK_PAUSE)?;
        }
    }

    /// Watches over the server or the lock until this process leaves.
    fn supervise(&self, mut membership: Membership) {
        let mut pause = WATCH;
        loop {
            let waited = match &mut membership {
                Membership::Owner(tenure) => self.await_end(&mut tenure.server),
                Membership::Guest => self.sleep(WATCH),
            };
            if waited.is_err() {
                break;
            }
            membership = match membership {
                Membership::Owner(tenure) => self.restart_if_ended(tenure, &mut pause),
                Membership::Guest => self.take_over_if_free(&mut pause),
            };
        }
        if let Membership::Owner(mut tenure) = membership
            && !is_watched(&self.layout)
        {
            tenure.server.stop(self.leaving.timeout.get().copied().unwrap_or(STOP));
        }
    }

    fn restart_if_ended(&self, mut tenure: Tenure, pause: &mut Duration) -> Membership {
        let settled = tenure.since.elapsed() > SETTLED;
        if settled {
            *pause = WATCH;
        }
        let Some(how) = tenure.server.exit_description() else { return Membership::Owner(tenure) };
        tracing::warn!(cause = %how, "the private Postgres ended; starting it again");
        if !settled {
            self.back_off(pause);
        }
        self.try_take_over(tenure.lock, pause)
    }

    fn take_over_if_free(&self, pause: &mut Duration) -> Membership {
        match self.try_lock() {
            Ok(None) => Membership::Guest,
            Ok(Some(lock)) => self.try_take_over(lock, pause),
            Err(error) => {
                tracing::warn!(%error, "could not look for the owner of the private Postgres");
                self.back_off(pause);
                Membership::Guest
            }
        }
    }

    /// Runs the server while it holds the lock; where that fails, leaves the lock to another process, and pauses.
    fn try_take_over(&self, lock: File, pause: &mut Duration) -> Membership {
        match self.take_over() {
            Ok((server, _)) => {
                self.state.owns.store(true, Ordering::Release);
                self.state.note_trouble(None);
                Membership::Owner(Tenure { lock, server, since: Instant::now() })
            }
            Err(error) => {
                drop(lock);
                self.state.owns.store(false, Ordering::Release);
                if !matches!(error, ClusterError::Abandoned) {
                    self.say_trouble(&error);
                }
                self.back_off(pause);
                Membership::Guest
            }
        }
    }

    /// Says what keeps the server away, once for each kind of trouble: a server that does not come up says the like at each try.
    fn say_trouble(&self, error: &ClusterError) {
        let known = self.state.note_trouble(Some(error.in_short()));
        if known.is_some_and(|known| known.starts_with(&error.first_line())) {
            tracing::debug!(%error, "could not bring the private Postgres back; trying again");
        } else {
            tracing::warn!(%error, "could not bring the private Postgres back; trying again");
        }
    }

    fn back_off(&self, pause: &mut Duration) {
        *pause = (*pause * 2).min(PAUSE_MAX);
        if let Err(ClusterError::Abandoned) = self.sleep(*pause) {
            tracing::debug!("the private Postgres is given up");
        }
    }

    /// Makes the data if there are none, and starts the server; the caller holds the lock.
    fn take_over(&self) -> Result<(Server, Attached), ClusterError> {
        let identity = Identity::detect(self.existing_data_dir().as_deref())?;
        data::remove_leftovers(&self.layout)?;
        if let Some(adopted) = self.adopt_running_server(&identity) {
            return Ok(adopted);
        }
        let binaries = Binaries::find(&self.options, &self.layout, &identity)?;
        match (self.layout.existing_major(), data::made(&self.layout)) {
            (Some(major), _) => data::note_made(&self.layout, major)?,
            (None, Some(major)) => return Err(ClusterError::DataGone { data: self.layout.data_dir(major) }),
            (None, None) => {
                data::create(&self.layout, &binaries, &identity)?;
                data::note_made(&self.layout, binaries.major)?;
            }
        }
        let endpoint = Endpoint { socket_dir: self.layout.make_socket_dir(&identity)? };
        let server = self.start(&binaries, &identity, &endpoint)?;
        Ok((server, Attached { major: binaries.major, endpoint }))
    }

    /// Takes over a server that goes on without its owner.
    fn adopt_running_server(&self, identity: &Identity) -> Option<(Server, Attached)> {
        if !is_watched(&self.layout) {
            return None;
        }
        let major = self.layout.existing_major()?;
        let data = self.layout.data_dir(major);
        let pid = ready_postmaster(&data)?;
        let endpoint = Endpoint { socket_dir: self.layout.socket_dir(identity.disk_uid()) };
        endpoint.has_socket().then_some((Server::Adopted { pid, data }, Attached { major, endpoint }))
    }

    /// Starts the server and waits until it is ready; a former owner's server is waited for first.
    fn start(
        &self,
        binaries: &Binaries,
        identity: &Identity,
        endpoint: &Endpoint,
    ) -> Result<Server, ClusterError> {
        let deadline = Instant::now() + self.options.start_timeout;
        let data = self.layout.data_dir(binaries.major);
        self.await_former_server(&data, deadline)?;
        let mut attempts = 0;
        loop {
            make_zombie_pid_stale(&data, endpoint, identity)?;
            let log_before = std::fs::metadata(self.layout.log()).map_or(0, |meta| meta.len());
            let mut server = Server::spawn(&self.options, &self.layout, binaries, identity)?;
            let reason = match self.await_ready(&mut server, &data, deadline) {
                Ok(()) => return Ok(server),
                Err(Failure::Ended(how)) => how,
                Err(Failure::Late) => {
                    server.stop(STOP);
                    let waited = self.options.start_timeout.as_secs();
                    let reason = format!("it is still starting up after {waited} s");
                    return Err(self.start_failed(binaries.major, reason));
                }
                Err(Failure::Other(error)) => {
                    server.stop(STOP);
                    return Err(error);
                }
            };
            let passing = is_passing(&self.layout.log(), log_before);
            attempts += u32::from(!passing);
            if attempts >= START_ATTEMPTS || Instant::now() > deadline {
                return Err(self.start_failed(binaries.major, reason));
            }
            self.sleep(LOOK_PAUSE * if passing { 1 } else { 10 * attempts })?;
        }
    }

    /// Waits until no server of a former owner works on the data; stops one that doesn't end by itself.
    fn await_former_server(&self, data: &Path, deadline: Instant) -> Result<(), ClusterError> {
        let began = Instant::now();
        while let Some(pid) = postmaster(data) {
            if began.elapsed() > FORMER_OWNER {
                stop_postmaster(data, pid);
            }
            if Instant::now() > deadline {
                let log = self.layout.log();
                let reason =
                    format!("a server that isn't ours (process {}) doesn't leave it", pid.as_raw_nonzero());
                return Err(ClusterError::StartFailed {
                    data: data.to_owned(),
                    reason,
                    tail: log_tail(&log),
                    log,
                });
            }
            self.sleep(LOOK_PAUSE)?;
        }
        Ok(())
    }

    fn await_ready(&self, server: &mut Server, data: &Path, deadline: Instant) -> Result<(), Failure> {
        loop {
            if let Some(how) = server.exit_description() {
                return Err(Failure::Ended(how));
            }
            if ready_postmaster(data).is_some() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failure::Late);
            }
            self.sleep(READY_LOOK).map_err(Failure::Other)?;
        }
    }

    fn try_lock(&self) -> Result<Option<File>, ClusterError> {
        let path = self.layout.owner_lock();
        let mut file = open_lock(&path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        file.set_len(0).at("write", &path)?;
        writeln!(file, "{}", std::process::id()).at("write", &path)?;
        Ok(Some(file))
    }

    /// Rests for a while; an error means that this process leaves.
    fn sleep(&self, pause: Duration) -> Result<(), ClusterError> {
        self.rest(None, Some(pause))
    }

    /// Rests until a server has ended, or for a moment where the kernel can't tell that; an error means that this
    /// process leaves.
    fn await_end(&self, server: &mut Server) -> Result<(), ClusterError> {
        let process = server.pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // It may have ended before, and another process may have its number now.
        if server.exit_description().is_some() {
            return Ok(());
        }
        let span = if process.is_none() { Some(WATCH) } else { None };
        self.rest(process.as_ref(), span)
    }

    fn rest(&self, process: Option<&OwnedFd>, span: Option<Duration>) -> Result<(), ClusterError> {
        let mut watched = vec![PollFd::new(&self.leaving.told, PollFlags::IN)];
        watched.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
        let span = span.and_then(|span| Timespec::try_from(span).ok());
        match retry_on_intr(|| poll(&mut watched, span.as_ref())) {
            Ok(_) if watched[0].revents().is_empty() => Ok(()),
            Ok(_) => Err(ClusterError::Abandoned),
            Err(error) => {
                tracing::warn!(%error, "could not wait for the end of the private Postgres; trying again");
                std::thread::sleep(WATCH);
                Ok(())
            }
        }
    }

    fn existing_data_dir(&self) -> Option<std::path::PathBuf> {
        self.layout.existing_major().map(|major| self.layout.data_dir(major))
    }

    fn start_failed(&self, major: u32, reason: String) -> ClusterError {
        let log = self.layout.log();
        ClusterError::StartFailed { data: self.layout.data_dir(major), reason, tail: log_tail(&log), log }
    }

    fn owner_silent_error(&self) -> ClusterError {
        let log = self.layout.log();
        ClusterError::OwnerSilent {
            pg_dir: self.layout.pg_dir.clone(),
            owner: lock_owner(&self.layout).map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
            waited: self.options.start_timeout,
            tail: log_tail(&log),
            log,
        }
    }
}

/// Why a server that was started isn't ready.
enum Failure {
    Ended(String),
    Late,
    Other(ClusterError),
}

/// Opens a lock file, which only its owner may read.
pub(crate) fn open_lock(path: &Path) -> Result<File, ClusterError> {
    File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .at("open", path)
}

/// Sets a file's times to the kernel's.
fn touch(file: &File) -> rustix::io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    futimens(file, &Timestamps { last_access: now, last_modification: now })
}

/// Returns the process that holds the cluster's lock.
pub(crate) fn lock_owner(layout: &Layout) -> Option<u32> {
    let mut file = File::open(layout.owner_lock()).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Returns true if the server ended for a reason that passes: its predecessor, or what that left, is not gone yet.
fn is_passing(log: &Path, from: u64) -> bool {
    let bytes = std::fs::read(log).unwrap_or_default();
    let new = usize::try_from(from).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
    let said = String::from_utf8_lossy(new);
    ["postmaster.pid\" already exists", "shared memory block", "Address already in use", "another postmaster"]
        .iter()
        .any(|reason| said.contains(reason))
}
