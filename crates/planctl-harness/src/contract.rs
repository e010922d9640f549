//! The bench: runs a contract and says what it showed; the verdict follows from the evidence alone.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{Contract, Ending, Evidence, Excerpt, Found, Inconclusive, Resources};

use crate::digest::digest_of;
use crate::environment::{PATH_DEFAULT, RefusedVariable, contract_environment};
use crate::excerpt::{Output, excerpt};
use crate::git::git_head;
use crate::process::{Command, End, Finished, Stream, find_program};
use crate::protect::{Baseline, Comparison};
use crate::spawn::{Spawner, Stage};

/// A contract that prints more than this is ended (A21).
pub const OUTPUT_BYTES_MAX: u64 = 1 << 30;
/// Between TERM and KILL at a contract's deadline.
const GRACE: Duration = Duration::from_millis(500);
/// The isolation that this build offers: the user's own rights (PROMISES 3.1).
pub const ISOLATION_TIER: u8 = 0;

/// Where contracts of one workspace are run.
#[derive(Clone)]
pub struct Bench {
    spawner: Spawner,
    workspace: PathBuf,
    bash: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    locks: Vec<Arc<OwnedFd>>,
    file_bytes_max: Option<u64>,
}

/// What one gate brought.
#[derive(Clone, Debug)]
pub struct Gate {
    /// What the harness says.
    pub found: Found,
    /// Texts to store before it is said.
    pub outputs: Vec<Output>,
}

impl Bench {
    /// Prepares a bench: `path` is where commands are found, `configured` the variables of the approved configuration.
    ///
    /// # Errors
    ///
    /// When a configured variable may not be set for a contract.
    pub fn new(
        spawner: Spawner,
        workspace: impl Into<PathBuf>,
        path: Option<&OsStr>,
        configured: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Bench, RefusedVariable> {
        let workspace = workspace.into();
        let environment =
            contract_environment(&workspace, path.unwrap_or(OsStr::new(PATH_DEFAULT)), configured)?;
        let bash = environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .and_then(|(_, path)| find_program(OsStr::new("bash"), path))
            .or_else(|| find_program(OsStr::new("bash"), OsStr::new(PATH_DEFAULT)));
        Ok(Bench { spawner, workspace, bash, environment, locks: Vec::new(), file_bytes_max: None })
    }

    /// Keeps the workspace's locks held until everything a contract started is dead (P9).
    pub fn with_locks(mut self, locks: Vec<Arc<OwnedFd>>) -> Bench {
        self.locks = locks;
        self
    }

    /// Limits the largest file that a contract may write (A22).
    pub fn with_file_bytes_max(mut self, bytes: u64) -> Bench {
        self.file_bytes_max = Some(bytes);
        self
    }

    /// Returns the folders in which contracts find commands.
    pub fn path(&self) -> &OsStr {
        self.environment.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, path)| path)
    }

    /// Returns the whole environment of contracts.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Evaluates a contract once.
    ///
    /// `watch` sees its output as it comes; its text is never read for meaning (A11). `cancel` interrupts the gate,
    /// which then told nothing.
    pub async fn evaluate(
        &self,
        contract: &Contract,
        baseline: &Arc<Baseline>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> Gate {
        let git_head = git_head(&self.workspace);
        let before = match compare(baseline, &self.workspace).await {
            Ok(before) => before,
            Err(error) => return nothing(Inconclusive::ToolMissing { what: error }),
        };
        let mut evidence = Evidence {
            contract: digest_of(contract.command.as_bytes()),
            ending: Ending::NotRun,
            duration: Duration::ZERO,
            resources: Resources::default(),
            stdout: Excerpt::default(),
            stderr: Excerpt::default(),
            isolation: ISOLATION_TIER,
            git_head,
            protected: before.digests,
            tampered: before.tampered,
            stragglers: 0,
        };
        if !evidence.tampered.is_empty() {
            return Gate { found: Found::Evidence(Box::new(evidence)), outputs: Vec::new() };
        }
        let Some(command) = self.command(contract) else {
            return nothing(Inconclusive::ToolMissing { what: "bash".into() });
        };
        let finished = match self.spawner.run(&command, watch, cancel).await {
            Ok(finished) => finished,
            Err(error) => return nothing(Inconclusive::ToolMissing { what: format!("a process: {error}") }),
        };
        evidence.ending = match ending(&finished, &self.workspace) {
            Ok(ending) => ending,
            Err(inconclusive) => return nothing(inconclusive),
        };
        match compare(baseline, &self.workspace).await {
            Ok(Comparison { digests, tampered }) => {
                (evidence.protected, evidence.tampered) = (digests, tampered)
            }
            Err(error) => return nothing(Inconclusive::ToolMissing { what: error }),
        }
        let mut outputs = Vec::new();
        evidence.stdout = excerpt(&finished.stdout, &mut outputs);
        evidence.stderr = excerpt(&finished.stderr, &mut outputs);
        if finished.end == End::Flooded {
            evidence.stderr.tail.push_str("\n[ended by planctl: it printed more than 1 GiB]\n");
        }
        evidence.duration = finished.duration;
        evidence.stragglers = finished.stragglers;
        evidence.resources =
            Resources { user: finished.user, system: finished.system, max_rss_kib: finished.max_rss_kib };
        Gate { found: Found::Evidence(Box::new(evidence)), outputs }
    }

    /// The one shell that contracts are parsed for and run by: no start-up files, nothing imported, no options.
    fn command(&self, contract: &Contract) -> Option<Command> {
        let bash = self.bash.as_ref()?;
        let arguments: [&OsStr; 6] = [
            bash.as_os_str(),
            OsStr::new("--noprofile"),
            OsStr::new("--norc"),
            OsStr::new("-p"),
            OsStr::new("-c"),
            OsStr::new(&contract.command),
        ];
        let mut command = Command::new(arguments, &self.workspace);
        command.environment = self.environment.clone();
        command.deadline = Some(contract.timeout);
        command.grace = GRACE;
        command.output_bytes_max = Some(OUTPUT_BYTES_MAX);
        command.file_bytes_max = self.file_bytes_max;
        command.locks.clone_from(&self.locks);
        Some(command)
    }
}

fn nothing(inconclusive: Inconclusive) -> Gate {
    Gate { found: Found::Nothing(inconclusive), outputs: Vec::new() }
}

/// Reads the files off the runtime's threads; an empty set costs nothing.
async fn compare(baseline: &Arc<Baseline>, workspace: &Path) -> Result<Comparison, String> {
    if baseline.is_empty() {
        return Ok(Comparison::default());
    }
    let (baseline, workspace) = (baseline.clone(), workspace.to_owned());
    match tokio::task::spawn_blocking(move || baseline.compare(&workspace)).await {
        Ok(compared) => compared.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn ending(finished: &Finished, workspace: &Path) -> Result<Ending, Inconclusive> {
    match &finished.end {
        End::Exited(code) => Ok(Ending::Exited { code: *code }),
        End::Signalled(signal) => Ok(Ending::Signalled { signal: *signal }),
        // It was killed for its output; a signal is never a pass.
        End::Flooded => Ok(Ending::Signalled { signal: nix::libc::SIGKILL }),
        End::TimedOut | End::IdleTimedOut => Ok(Ending::TimedOut),
        // A gate that we interrupted tells us nothing about the work, so it must not use up a retry.
        End::Cancelled | End::HelperLost => Err(Inconclusive::Interrupted),
        End::NotStarted { stage, errno } => {
            let error = io::Error::from_raw_os_error(*errno);
            let what = match stage {
                Stage::Directory => format!("the workspace {}: {error}", workspace.display()),
                Stage::Execute => format!("bash: {error}"),
                Stage::Fork | Stage::Prepare => format!("a process: {error}"),
            };
            Err(Inconclusive::ToolMissing { what })
        }
    }
}
