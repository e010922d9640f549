//! Describes a command, its limits, and how it ended.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::Resource;
use serde::{Deserialize, Serialize};

use crate::capture::{Captured, KEPT_BYTES};
use crate::isolation::Confinement;
use crate::spawn::{Limits, Request, Stage, TreeName};

/// A command to run, and its limits.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments; a program without a slash is looked up in the command's own `PATH`.
    pub arguments: Vec<OsString>,
    /// The whole environment: nothing else is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    /// Its input.
    pub input: Input,
    /// How long it may take.
    pub deadline: Option<Duration>,
    /// How long it may print nothing.
    pub idle_timeout: Option<Duration>,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// How long it may go on where planctl is gone, or the run is given up, and again between TERM and KILL: no time,
    /// unless what it leaves behind is in the way of others (git its locks).
    pub grace_if_abandoned: Duration,
    /// The most it may print on both streams before it is ended; `None` counts and drops the rest.
    pub output_bytes_max: Option<u64>,
    /// How much of each end of each stream is kept.
    pub kept_bytes: usize,
    /// The resources that the command and all that it starts may use.
    pub limits: ResourceLimits,
    /// How it is kept apart from the host; `None` is tier 0.
    pub confinement: Option<Confinement>,
    /// Locks that stay held until its whole tree is dead (P9).
    pub locks: Vec<Arc<OwnedFd>>,
}

/// How much of each resource a command and all that it starts may use; `None` leaves the limit that planctl has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceLimits {
    /// CPU time of the whole tree, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Duration>,
    /// Bytes of memory of the whole tree, without mapped files and shared memory (A19).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processes at a time (A18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes in one file (A22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// Files that one process has open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl ResourceLimits {
    /// Says that nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == ResourceLimits::default()
    }

    /// Takes limits that it does not have itself from another.
    #[must_use]
    pub fn or(self, other: ResourceLimits) -> ResourceLimits {
        ResourceLimits {
            cpu: self.cpu.or(other.cpu),
            memory: self.memory.or(other.memory),
            processes: self.processes.or(other.processes),
            file_size: self.file_size.or(other.file_size),
            open_files: self.open_files.or(other.open_files),
        }
    }

    /// Returns the limit of a resource, in the resource's unit.
    pub fn limit_of(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::Cpu => self.cpu.map(|time| time.as_secs().max(1)),
            Resource::Memory => self.memory,
            Resource::Processes => self.processes,
            Resource::FileSize => self.file_size,
            Resource::OpenFiles => self.open_files,
        }
    }

    fn to_wire(self) -> Limits {
        Limits {
            cpu_seconds: self.limit_of(Resource::Cpu),
            memory_bytes: self.memory,
            processes: self.processes,
            file_bytes: self.file_size,
            open_files: self.open_files,
        }
    }
}

/// The standard input of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Input {
    /// Nothing: `/dev/null`.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
}

impl Command {
    /// Describes a command with no limits but the defaults: no input, 5 s grace, 64 KiB of each end kept.
    pub fn new(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        directory: impl Into<PathBuf>,
    ) -> Command {
        Command {
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            directory: directory.into(),
            input: Input::Null,
            deadline: None,
            idle_timeout: None,
            grace: Duration::from_secs(5),
            grace_if_abandoned: Duration::ZERO,
            output_bytes_max: None,
            kept_bytes: KEPT_BYTES,
            limits: ResourceLimits::default(),
            confinement: None,
            locks: Vec::new(),
        }
    }

    /// Returns the value of an environment variable, the last one if it is set twice.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    pub(crate) fn request(&self, id: u64, name: Option<&TreeName>) -> Result<Request, i32> {
        let program = self.arguments.first().ok_or(nix::libc::ENOENT)?;
        let program = if program.as_bytes().contains(&b'/') {
            PathBuf::from(program)
        } else {
            find_program(program, self.variable("PATH").unwrap_or_default()).ok_or(nix::libc::ENOENT)?
        };
        let environment = self.environment.iter().map(|(name, value)| {
            let mut pair = name.as_bytes().to_vec();
            pair.push(b'=');
            pair.extend_from_slice(value.as_bytes());
            text(pair)
        });
        Ok(Request {
            id,
            program: text(program.as_os_str().as_bytes())?,
            arguments: self
                .arguments
                .iter()
                .map(|argument| text(argument.as_bytes()))
                .collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
            directory: text(self.directory.as_os_str().as_bytes())?,
            deadline: self.deadline,
            grace: self.grace,
            grace_if_abandoned: self.grace_if_abandoned,
            limits: self.limits.to_wire(),
            confinement: self.confinement.as_ref().map(Confinement::to_wire).transpose()?,
            name: name.cloned(),
        })
    }
}

fn text(bytes: impl Into<Vec<u8>>) -> Result<CString, i32> {
    CString::new(bytes).map_err(|_| nix::libc::EINVAL)
}

/// Finds an executable regular file of that name in the absolute directories of `path`.
pub fn find_program(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Which of the two streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It exited with this status.
    Exited(i32),
    /// A signal ended it that we did not send.
    Signalled(i32),
    /// We ended it at its deadline.
    TimedOut,
    /// We ended it since it printed nothing for too long.
    IdleTimedOut,
    /// We ended it since it printed too much.
    Flooded,
    /// We ended it since it used more of this than it may.
    OverLimit(Resource),
    /// We ended it since the caller asked to.
    Cancelled,
    /// It never ran.
    NotStarted {
        /// Where it went wrong.
        stage: Stage,
        /// The system's error number.
        errno: i32,
    },
    /// The helper died under it; the tree is dead too. Says nothing about the command.
    HelperLost,
}

/// The result of a command that ended; nothing of it is alive, unless `survivors` says so.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// From start to end.
    pub duration: Duration,
    /// Time in user mode of the whole tree.
    pub user: Duration,
    /// Time in the kernel of the whole tree.
    pub system: Duration,
    /// The largest resident set in the tree, in KiB.
    pub max_rss_kib: u64,
    /// Processes it left alive, which were ended.
    pub stragglers: u32,
    /// Processes that could not be ended (another user's, or stuck in the kernel).
    pub survivors: u32,
}
