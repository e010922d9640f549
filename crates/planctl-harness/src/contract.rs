//! The bench: runs a contract and says what it showed; the verdict follows from the evidence alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{Contract, Digest, Ending, Evidence, Excerpt, Found, Inconclusive, Resources};

use crate::digest::digest_of;
use crate::environment::{PATH_DEFAULT, RefusedVariable, contract_environment, set};
use crate::excerpt::{Output, excerpt};
use crate::gate_folder::{GO_CACHE, GateFolder, GateSetting};
use crate::git::git_head;
use crate::isolation::Isolation;
use crate::process::{Command, End, Finished, Stream, find_program};
use crate::protect::{Baseline, Comparing};
use crate::spawn::{Spawner, Stage};

/// A contract that prints more than this is ended (A21).
pub const OUTPUT_BYTES_MAX: u64 = 1 << 30;
/// Between TERM and KILL at a contract's deadline.
const GRACE: Duration = Duration::from_millis(500);

/// Where contracts of one workspace are run.
#[derive(Clone)]
pub struct Bench {
    spawner: Spawner,
    workspace: PathBuf,
    bash: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// The names of the variables that the configuration sets: they hold in place of the private folder's.
    configured: BTreeSet<OsString>,
    setting: GateSetting,
    locks: Vec<Arc<OwnedFd>>,
    file_bytes_max: Option<u64>,
    isolation: Isolation,
}

/// What one gate brought.
#[derive(Clone, Debug)]
pub struct Gate {
    /// What the harness says.
    pub found: Found,
    /// Texts to store before it is said.
    pub outputs: Vec<Output>,
    /// Entries below protected patterns that the contract made, and what they are.
    pub made: BTreeMap<String, Digest>,
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
        let configured: Vec<(String, String)> = configured.into_iter().collect();
        let names = configured.iter().map(|(name, _)| OsString::from(name)).collect();
        let environment =
            contract_environment(&workspace, path.unwrap_or(OsStr::new(PATH_DEFAULT)), configured)?;
        let bash = environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .and_then(|(_, path)| find_program(OsStr::new("bash"), path))
            .or_else(|| find_program(OsStr::new("bash"), OsStr::new(PATH_DEFAULT)));
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        let setting = GateSetting::new(&workspace, path.unwrap_or_default(), bash.clone());
        Ok(Bench {
            spawner,
            workspace,
            bash,
            environment,
            configured: names,
            setting,
            locks: Vec::new(),
            file_bytes_max: None,
            isolation: Isolation::default(),
        })
    }

    /// Names the node to the command that runs there (DOT B16).
    #[must_use]
    pub fn at_node(mut self, node: &str) -> Bench {
        set(&mut self.environment, "PLANCTL_NODE".into(), node.replace('\0', "").into());
        self
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

    /// Isolates what contracts run; tier 0 unless said.
    pub fn with_isolation(mut self, isolation: Isolation) -> Bench {
        self.isolation = isolation;
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
        let (before, comparing) = match Comparing::begin(baseline, &self.workspace).await {
            Ok(begun) => begun,
            Err(error) => return nothing(Inconclusive::ToolMissing { what: error }),
        };
        let mut evidence = Evidence {
            contract: digest_of(contract.command.as_bytes()),
            ending: Ending::NotRun,
            duration: Duration::ZERO,
            resources: Resources::default(),
            stdout: Excerpt::default(),
            stderr: Excerpt::default(),
            isolation: self.isolation.tier,
            git_head,
            protected: before.digests,
            tampered: before.tampered,
            stragglers: 0,
        };
        if !evidence.tampered.is_empty() {
            return Gate {
                found: Found::Evidence(Box::new(evidence)),
                outputs: Vec::new(),
                made: BTreeMap::new(),
            };
        }
        let folder = match GateFolder::make(&self.spawner, &self.setting, &self.workspace) {
            Ok(folder) => folder,
            Err(error) => {
                return nothing(Inconclusive::ToolMissing { what: format!("its private folder: {error}") });
            }
        };
        let Some(command) = self.command(contract, &folder, baseline) else {
            return nothing(Inconclusive::ToolMissing { what: "bash".into() });
        };
        let finished = self.spawner.run(&command, watch, cancel).await;
        drop(command);
        // Nobody waits until what the contract left there is removed.
        tokio::task::spawn_blocking(move || drop(folder));
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) => return nothing(Inconclusive::ToolMissing { what: format!("a process: {error}") }),
        };
        let compared = match comparing.finish().await {
            Ok(compared) => compared,
            Err(error) => return nothing(Inconclusive::ToolMissing { what: error }),
        };
        let made = compared.made;
        evidence.ending = match ending(&finished, &self.workspace) {
            Ok(ending) => ending,
            Err(inconclusive) => return Gate { made, ..nothing(inconclusive) },
        };
        (evidence.protected, evidence.tampered) = (compared.found.digests, compared.found.tampered);
        if evidence.tampered.is_empty() && !compared.put_back.is_empty() {
            let what = format!("{} changed and was put back", compared.put_back.join(", "));
            return Gate { made, ..nothing(Inconclusive::Unstable { what }) };
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
        Gate { found: Found::Evidence(Box::new(evidence)), outputs, made }
    }

    /// The one shell that contracts are parsed for and run by: no start-up files, nothing imported, no options.
    fn command(&self, contract: &Contract, folder: &GateFolder, baseline: &Baseline) -> Option<Command> {
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
        for (name, value) in folder.variables() {
            if !self.configured.contains(name) {
                set(&mut command.environment, name.clone(), value.clone());
            }
        }
        if let Some(bin) = folder.bin() {
            let mut path = bin.as_os_str().to_owned();
            path.push(":");
            path.push(self.path());
            set(&mut command.environment, "PATH".into(), path);
        }
        command.deadline = Some(contract.timeout);
        command.grace = GRACE;
        command.output_bytes_max = Some(OUTPUT_BYTES_MAX);
        command.file_bytes_max = self.file_bytes_max;
        command.locks.clone_from(&self.locks);
        command.locks.push(folder.lock());
        // One that is gone is told of when the command is started in it.
        let workspace = self.workspace.canonicalize().unwrap_or_else(|_| self.workspace.clone());
        let judges =
            baseline.files.keys().filter(|file| !baseline.frees(file)).map(|file| workspace.join(file));
        let caches = self.spawner.scratch().map(|scratch| scratch.join(GO_CACHE));
        let private: Vec<PathBuf> = [folder.path().to_owned()].into_iter().chain(caches).collect();
        command.confinement = self.isolation.of_contract(&workspace, &private, judges);
        Some(command)
    }
}

fn nothing(inconclusive: Inconclusive) -> Gate {
    Gate { found: Found::Nothing(inconclusive), outputs: Vec::new(), made: BTreeMap::new() }
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
                Stage::Isolate => format!("the isolation that is required: {error}"),
            };
            Err(Inconclusive::ToolMissing { what })
        }
    }
}
