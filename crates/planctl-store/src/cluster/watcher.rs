//! The watcher of a server that outlives the process that started it: a process that ends it once nobody was attached for a while.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::ClusterError;
use super::error::At as _;
use super::layout::Layout;
use super::server::STOP;
use super::supervisor::open_lock;

/// How often a watcher looks whether a process is attached.
const LOOK: Duration = Duration::from_secs(1);

/// Lets the server go on after its owner left, until no process has been attached for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linger {
    /// How long the server goes on after the last attached process left.
    pub idle: Duration,
    /// The program that ends it then.
    pub program: OsString,
    /// Its first arguments. The server's process id, the path of the lock that every attached process shares, and the
    /// milliseconds of `idle` follow; [`stop_when_idle`] takes them. Its standard input is a lock that says for as long as it is open
    /// that the server is watched.
    pub arguments: Vec<OsString>,
}

impl Linger {
    /// Starts the watcher of a server.
    pub(crate) fn start_watcher(&self, server: &Child, layout: &Layout) -> Result<(), ClusterError> {
        let lock = open_lock(&layout.watcher_lock())?;
        // The watcher of the server before may hold it as well: it is about to end.
        flock(&lock, FlockOperation::NonBlockingLockShared).at("lock", &layout.watcher_lock())?;
        let mut command = Command::new(&self.program);
        command
            .arg0("planctl")
            .args(&self.arguments)
            .arg(server.id().to_string())
            .arg(layout.attached_lock());
        command.arg(self.idle.as_millis().to_string());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir("/");
        command.stdin(lock).stdout(Stdio::null()).stderr(Stdio::null());
        let session = || {
            rustix::process::setsid()?;
            Ok(())
        };
        // SAFETY: between fork and exec the hook makes one system call.
        unsafe { command.pre_exec(session) };
        match command.spawn() {
            Ok(_) => Ok(()),
            Err(error) => Err(ClusterError::Program {
                program: self.program.to_string_lossy().into_owned(),
                reason: error.to_string(),
            }),
        }
    }
}

/// Says whether a watcher ends the server of a cluster some day.
pub(crate) fn is_watched(layout: &Layout) -> bool {
    File::open(layout.watcher_lock())
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK))
}

/// Ends a server once no process has been attached to its cluster for `idle`, or the cluster's folder is gone.
///
/// # Errors
///
/// Those of reading the file at `attached`.
pub fn stop_when_idle(server: Pid, attached: &Path, idle: Duration) -> Result<(), ClusterError> {
    let file = open_lock(attached)?;
    let Ok(server) = pidfd_open(server, PidfdFlags::empty()) else { return Ok(()) };
    let mut idle_since: Option<(Instant, SystemTime)> = None;
    while !has_ended(&server, LOOK.min(idle)) {
        let status = file.metadata().at("read", attached)?;
        let is_gone = status.nlink() == 0;
        // A process that attaches while this is locked waits; at the end, until the server is down.
        if !is_gone && flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            idle_since = None;
            continue;
        }
        // Each process that attaches sets the file's time.
        let attached_last = status.modified().at("read", attached)?;
        let since = match idle_since {
            Some((since, then)) if then == attached_last => since,
            Some(_) | None => Instant::now(),
        };
        if is_gone || since.elapsed() >= idle {
            stop_server(&server);
            return Ok(());
        }
        idle_since = Some((since, attached_last));
        flock(&file, FlockOperation::Unlock).at("unlock", attached)?;
    }
    Ok(())
}

/// Ends a server, by force in the end.
fn stop_server(server: &OwnedFd) {
    for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
        if pidfd_send_signal(server, signal).is_err() || has_ended(server, STOP) {
            return;
        }
    }
}

/// Waits for a server's end for so long; says whether it came.
fn has_ended(server: &OwnedFd, span: Duration) -> bool {
    let span = Timespec::try_from(span).ok();
    retry_on_intr(|| poll(&mut [PollFd::new(server, PollFlags::IN)], span.as_ref())) != Ok(0)
}
