//! The contract runner: runs a contract and says what it showed; the verdict follows from the evidence alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{
    Contract, Digest, Ending, Evidence, Excerpt, HarnessResult, Inconclusive, Resource, Resources, TestCount,
    Tier,
};

use crate::blocking::brief_file_work;
use crate::capture::KEPT_BYTES;
use crate::committed_files::CommittedFiles;
use crate::digest::digest_of;
use crate::environment::{PATH_DEFAULT, RefusedVariable, contract_environment, set};
use crate::excerpt::{Output, excerpt, excerpt_of};
use crate::gate_folder::{GO_CACHE, GateFolder, GateSetting};
use crate::git::git_head;
use crate::isolation::{Confinement, Isolation, Network, own_users_note};
use crate::masks::Masks;
use crate::open_files::is_shortage;
use crate::process::{Command, End, Finished, Input, ResourceLimits, Stream, find_program};
use crate::protect::{
    Baseline, Comparing, Comparison, Exchanged, Guarded, Stability, TRACKED_FILES_MAX, Written,
};
use crate::scratch::create_folder;
use crate::spawn::{Spawner, Stage};
use crate::test_reports::passed_tests;
use crate::worktree::verify_newer;

/// A contract that prints more than this is ended (A21).
pub const OUTPUT_BYTES_MAX: u64 = 1 << 30;
/// The most processes of a contract at a time, where nothing else is said: more than a build starts, and less than a
/// host bears (A18).
pub const PROCESSES_MAX: u64 = 4096;
/// How long a gate that the machine was short of something for holds back before it may be run again.
const SHORTAGE_PAUSE: Duration = Duration::from_secs(1);
/// The folder of a contract's private one with the outputs of earlier steps.
const OUTPUTS_FOLDER: &str = "outputs";
/// The folder of a contract's private one for the reports of its tests.
const REPORTS_FOLDER: &str = "reports";
/// Between TERM and KILL at a contract's deadline.
const GRACE: Duration = Duration::from_millis(500);
/// How much of each end of a call's output is kept: later steps may read all of it.
const CALL_KEPT_BYTES: usize = 512 << 10;

/// Runs the contracts of one workspace.
#[derive(Clone)]
pub struct ContractRunner {
    spawner: Spawner,
    workspace: PathBuf,
    bash: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// The names of the variables that the configuration sets: they hold in place of the private folder's.
    configured: BTreeSet<OsString>,
    setting: GateSetting,
    locks: Vec<Arc<OwnedFd>>,
    limits: ResourceLimits,
    isolation: Isolation,
    masks: Masks,
    stability: Stability,
    committed: CommittedFiles,
    /// The program that runs in place of the shell, with the masks of its output beside those of the contract's variables.
    program: Option<(Vec<OsString>, Masks)>,
    input: Input,
    kept_bytes: usize,
    outputs: BTreeMap<String, Vec<u8>>,
    network: Network,
    is_trial: bool,
}

/// The result of one gate.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The event for the engine.
    pub found: HarnessResult,
    /// Texts to store before it is said.
    pub outputs: Vec<Output>,
    /// Entries below protected patterns that the contract made, and what they are.
    pub made: BTreeMap<String, Digest>,
    /// The files that the contract wrote of those that must stay as they are meanwhile, as far as known; empty where none of
    /// them changed.
    pub written: Written,
}

impl ContractRunner {
    /// Prepares a contract runner: `path` is where commands are found, `configured` the variables of the approved configuration.
    ///
    /// # Errors
    ///
    /// When a configured variable may not be set for a contract.
    pub fn new(
        spawner: Spawner,
        workspace: impl Into<PathBuf>,
        path: Option<&OsStr>,
        configured: impl IntoIterator<Item = (String, String)>,
    ) -> Result<ContractRunner, RefusedVariable> {
        let workspace = workspace.into();
        let configured: Vec<(String, String)> = configured.into_iter().collect();
        let masks = Masks::new(configured.iter().map(|(name, value)| (name.as_str(), value.as_str())));
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
        Ok(ContractRunner {
            spawner,
            workspace,
            bash,
            environment,
            configured: names,
            setting,
            locks: Vec::new(),
            limits: ResourceLimits { processes: Some(PROCESSES_MAX), ..ResourceLimits::default() },
            isolation: Isolation::default(),
            masks,
            stability: Stability::default(),
            committed: CommittedFiles::default(),
            program: None,
            input: Input::Null,
            kept_bytes: KEPT_BYTES,
            outputs: BTreeMap::new(),
            network: Network::Loopback,
            is_trial: false,
        })
    }

    /// Says that contracts run in a copy on which nobody has worked: whatever they do to git there is their own.
    #[must_use]
    pub(crate) fn in_trial(mut self) -> ContractRunner {
        self.is_trial = true;
        self
    }

    /// Names the node to the command that runs there (DOT B16), and keeps more of what it prints.
    #[must_use]
    pub fn at_node(mut self, node: &str) -> ContractRunner {
        self.kept_bytes = CALL_KEPT_BYTES;
        set(&mut self.environment, "PLANCTL_NODE".into(), node.replace('\0', "").into());
        self
    }

    /// Gives the command the parent of its own spans, by W3C Trace Context.
    #[must_use]
    pub fn in_trace(mut self, traceparent: String) -> ContractRunner {
        set(&mut self.environment, "TRACEPARENT".into(), traceparent.into());
        self
    }

    /// Runs a program in place of the shell: the contract's text says what it does, and its exit code is what is judged.
    #[must_use]
    pub fn with_program(mut self, program: Vec<OsString>, masks: Masks) -> ContractRunner {
        self.program = Some((program, masks));
        self
    }

    /// Gives the command the network of the host; without this it has a loopback of its own, where the tier can give one.
    #[must_use]
    pub fn with_host_network(mut self) -> ContractRunner {
        self.network = Network::Host;
        self
    }

    /// Gives the command this input.
    #[must_use]
    pub fn with_input(mut self, input: Vec<u8>) -> ContractRunner {
        self.input = Input::Bytes(input);
        self
    }

    /// Gives the command the outputs of earlier steps, as files of a folder that `PLANCTL_OUTPUTS` names. The names are of
    /// letters, digits, `-`, `_` and `.`, and begin with none of these signs.
    #[must_use]
    pub fn with_outputs(mut self, outputs: BTreeMap<String, Vec<u8>>) -> ContractRunner {
        self.outputs = outputs;
        self
    }

    /// Says that a contract can't be run as it stands, as evidence: nothing ran.
    pub fn refused_gate(&self, contract: &Contract, why: &str) -> Gate {
        let mut evidence = self.evidence_before(contract, None, Comparison::default());
        (evidence.stderr, _) = excerpt_of(why);
        gate(HarnessResult::Evidence(Box::new(evidence)))
    }

    /// Keeps the workspace's locks held until everything a contract started is dead (P9).
    pub fn with_locks(mut self, locks: Vec<Arc<OwnedFd>>) -> ContractRunner {
        self.locks = locks;
        self
    }

    /// Limits what contracts may use; without a word of processes these are [`PROCESSES_MAX`].
    pub fn with_limits(mut self, limits: ResourceLimits) -> ContractRunner {
        self.limits = limits.or(self.limits);
        self
    }

    /// Isolates what contracts run; tier 0 unless said.
    pub fn with_isolation(mut self, isolation: Isolation) -> ContractRunner {
        self.isolation = isolation;
        self
    }

    /// Has contracts find the repository as it was when another runner was made: that of the checkout, where this one's
    /// workspace is a worktree of it.
    #[must_use]
    pub fn with_repositories_of(mut self, other: &ContractRunner) -> ContractRunner {
        self.setting.take_repositories(&other.setting);
        self
    }

    /// Takes the workspace's repositories as they were when they were noted in a file; one of which nothing is noted is noted there as
    /// it is.
    ///
    /// # Errors
    ///
    /// Those of the disk, and a file that can't be read.
    pub fn with_repositories_noted(mut self, file: &Path) -> io::Result<ContractRunner> {
        self.setting.note_repositories(file)?;
        Ok(self)
    }

    /// Demands that files stay as they are while a contract runs; a gate in which one changed is inconclusive (A5).
    pub fn with_stability(mut self, stability: Stability) -> ContractRunner {
        self.stability = stability;
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
    /// which is then inconclusive.
    pub async fn evaluate(
        &self,
        contract: &Contract,
        baseline: &Arc<Baseline>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> Gate {
        let git_head = brief_file_work(|| git_head(&self.workspace));
        let (before, comparing) = match Comparing::begin(baseline, &self.workspace).await {
            Ok(begun) => begun,
            Err(error) => return inconclusive_gate(Inconclusive::ToolMissing { what: error }),
        };
        let mut evidence = self.evidence_before(contract, git_head, before);
        if !evidence.tampered.is_empty() {
            return gate(HarnessResult::Evidence(Box::new(evidence)));
        }
        // Listed before the folder is furnished, so that it is guarded from then on.
        let committed = self.committed_files().await;
        let prepared = brief_file_work(|| {
            let folder = self.furnish_folder(contract)?;
            io::Result::Ok((self.command(contract, &folder, baseline), folder))
        });
        let (command, folder) = match prepared {
            Ok((Some(command), folder)) => (command, folder),
            Ok((None, _)) => return inconclusive_gate(Inconclusive::ToolMissing { what: "bash".into() }),
            Err(error) => return inconclusive_gate(spawn_failure("its private folder", &error).await),
        };
        let guarded = match self.begin_to_guard(&folder, committed).await {
            Ok(guarded) => guarded,
            Err(what) => return inconclusive_gate(Inconclusive::ToolMissing { what }),
        };
        let finished = self.spawner.run(&command, watch, cancel).await;
        drop(command);
        evidence.tests = count_tests(contract, &folder, &finished).await;
        let guarded = guarded.finish().await;
        folder.release(&self.setting, &finished);
        let (mut finished, (exchanged, unsteady)) = match (finished, guarded) {
            (Ok(finished), Ok(guarded)) => (finished, guarded),
            (Err(error), _) => return inconclusive_gate(spawn_failure("a process", &error).await),
            (Ok(_), Err(what)) => return inconclusive_gate(Inconclusive::ToolMissing { what }),
        };
        for masks in std::iter::once(&self.masks).chain(self.program.as_ref().map(|(_, masks)| masks)) {
            masks.mask_captured(&mut finished.stdout);
            masks.mask_captured(&mut finished.stderr);
        }
        let compared = match comparing.finish().await {
            Ok(compared) => compared,
            Err(error) => return inconclusive_gate(Inconclusive::ToolMissing { what: error }),
        };
        let made = compared.made;
        evidence.ending = match ending_of(&finished, &self.workspace, self.isolation.tier) {
            Ok(ending) => self.limit_ending(contract, finished.end.clone()).unwrap_or(ending),
            Err(inconclusive) => return Gate { made, ..inconclusive_gate(inconclusive) },
        };
        (evidence.protected, evidence.tampered) = (compared.found.digests, compared.found.tampered);
        if evidence.tampered.is_empty() && !compared.put_back.is_empty() {
            let what = format!("{} changed and was put back", compared.put_back.join(", "));
            return Gate { made, ..inconclusive_gate(Inconclusive::Unstable { what }) };
        }
        if let Some(inconclusive) = self.git_trouble(contract, &exchanged, &evidence).await {
            return Gate { made, ..inconclusive_gate(inconclusive) };
        }
        let mut written = Written::new();
        // One that ran out of time says nothing that a mixture could have changed to a pass, and repeating it takes long.
        if evidence.tampered.is_empty() && evidence.ending != Ending::TimedOut {
            written = unsteady.written;
            if let Some(what) = unsteady.what {
                return Gate { made, written, ..inconclusive_gate(Inconclusive::Unstable { what }) };
            }
        }
        let outputs = self.record_process(&mut evidence, contract, &finished);
        let found = HarnessResult::Evidence(Box::new(evidence));
        Gate { found, outputs, made, written }
    }

    /// Returns the evidence of a gate whose command has not run.
    fn evidence_before(&self, contract: &Contract, git_head: Option<String>, before: Comparison) -> Evidence {
        Evidence {
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
            tests: None,
            judgement: None,
        }
    }

    /// Notes in the evidence what the ended process printed and used. Returns its whole output.
    fn record_process(
        &self,
        evidence: &mut Evidence,
        contract: &Contract,
        finished: &Finished,
    ) -> Vec<Output> {
        let mut outputs = Vec::new();
        evidence.stdout = excerpt(&finished.stdout, &mut outputs);
        evidence.stderr = excerpt(&finished.stderr, &mut outputs);
        if finished.end == End::Flooded {
            evidence.stderr.tail.push_str("\n[ended by planctl: it printed more than 1 GiB]\n");
        }
        if let Some(note) = self.limit_hint(finished) {
            evidence.stderr.tail.push_str(&note);
        }
        if let Some(note) = self.reach_hint(contract, finished) {
            evidence.stderr.tail.push_str(note);
        }
        evidence.duration = finished.duration;
        evidence.stragglers = finished.stragglers;
        evidence.resources =
            Resources { user: finished.user, system: finished.system, max_rss_kib: finished.max_rss_kib };
        outputs
    }

    /// Returns a private folder with the outputs that the contract reads and a place for the reports that it is asked for.
    fn furnish_folder(&self, contract: &Contract) -> io::Result<GateFolder> {
        let folder = GateFolder::acquire(&self.spawner, &self.setting, &self.workspace, self.isolation.tier)?;
        if !self.outputs.is_empty() {
            let outputs = folder.path().join(OUTPUTS_FOLDER);
            std::fs::create_dir_all(&outputs)?;
            self.outputs.iter().try_for_each(|(name, bytes)| std::fs::write(outputs.join(name), bytes))?;
        }
        if contract.min_tests.is_some() {
            create_folder(&folder.path().join(REPORTS_FOLDER))?;
        }
        Ok(folder)
    }

    /// Says why nobody can rely on what git said to a contract; `None` where one can.
    async fn git_trouble(
        &self,
        contract: &Contract,
        exchanged: &Exchanged,
        evidence: &Evidence,
    ) -> Option<Inconclusive> {
        if exchanged.has_asked_git
            && let Err(error) =
                verify_newer(&self.spawner, &self.workspace, self.setting.repositories()).await
        {
            let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
            return Some(Inconclusive::ToolMissing { what: format!("could not {error}{help}") });
        }
        exchanged.describe(contract, evidence).map(|what| Inconclusive::Unstable { what })
    }

    /// Lists the files of the newest commit where they must stay as they are while the contract runs.
    async fn committed_files(&self) -> Arc<[PathBuf]> {
        if !self.stability.tracked {
            return Arc::default();
        }
        self.committed.below(&self.spawner, &self.workspace, TRACKED_FILES_MAX + 1).await
    }

    /// Begins to guard the files by which the contract's git goes, and those of the workspace that must stay as they are.
    ///
    /// # Errors
    ///
    /// Says what is missing for that.
    async fn begin_to_guard(
        &self,
        folder: &GateFolder,
        committed: Arc<[PathBuf]>,
    ) -> Result<Guarded, String> {
        let git = folder.git().filter(|_| !self.is_trial).cloned();
        let tracked = self.stability.tracked && folder.is_of_checkout();
        let stability = Some(self.stability.clone());
        let stability = stability.filter(|stability| tracked || !stability.subscribed.is_empty());
        Guarded::begin(git, stability, committed, &self.workspace).await
    }

    /// Says which limit ended a contract. A file that grows past its limit ends who writes it by SIGXFSZ, which a shell
    /// passes on as its exit code.
    fn limit_ending(&self, contract: &Contract, end: End) -> Option<Ending> {
        const BY_FILE_SIZE: i32 = 128 + nix::libc::SIGXFSZ;
        let resource = match end {
            End::OverLimit(resource) => resource,
            End::Signalled(nix::libc::SIGXFSZ) => Resource::FileSize,
            End::Exited(BY_FILE_SIZE) if i32::from(contract.expect) != BY_FILE_SIZE => Resource::FileSize,
            End::Exited(_)
            | End::Signalled(_)
            | End::TimedOut
            | End::IdleTimedOut
            | End::Flooded
            | End::Cancelled
            | End::NotStarted { .. }
            | End::HelperLost => return None,
        };
        Some(Ending::OverLimit { resource, max: self.limits.limit_of(resource)? })
    }

    /// Names the limit behind an error that a program met and printed in its own words, for those who read the output.
    fn limit_hint(&self, finished: &Finished) -> Option<String> {
        if finished.end == End::Exited(0) {
            return None;
        }
        let named = [(nix::libc::EMFILE, Resource::OpenFiles), (nix::libc::EFBIG, Resource::FileSize)];
        let tail = String::from_utf8_lossy(&finished.stderr.tail);
        let head = String::from_utf8_lossy(&finished.stderr.head);
        named.into_iter().find_map(|(errno, resource)| {
            let max = self.limits.limit_of(resource)?;
            let words = nix::errno::Errno::from_raw(errno).desc();
            let is_told = head.contains(words) || tail.contains(words);
            is_told.then(|| format!("\n[planctl: maybe {}]\n", resource.exceeded(max)))
        })
    }

    /// Says why a program that people have may not be there, for those who read the output.
    fn reach_hint(&self, contract: &Contract, finished: &Finished) -> Option<&'static str> {
        /// By these a shell says that it could not start a program, or found none.
        const NOT_STARTED: [i32; 2] = [126, 127];
        let End::Exited(code) = finished.end else { return None };
        let is_hinted = self.isolation.tier == Tier::OwnUser
            && NOT_STARTED.contains(&code)
            && i32::from(contract.expect) != code;
        is_hinted.then_some(
            "\n[planctl: maybe a program lies in a folder that only root can enter, as those in /root: isolation tier 2 \
             can't reach it, tier 1b can]\n",
        )
    }

    /// The one shell that contracts are parsed for and run by: no start-up files, nothing imported, no options.
    fn command(&self, contract: &Contract, folder: &GateFolder, baseline: &Baseline) -> Option<Command> {
        let mut command = match &self.program {
            Some((program, _)) => Command::new(program, &self.workspace),
            None => {
                let bash = self.bash.as_ref()?;
                let arguments: [&OsStr; 6] = [
                    bash.as_os_str(),
                    OsStr::new("--noprofile"),
                    OsStr::new("--norc"),
                    OsStr::new("-p"),
                    OsStr::new("-c"),
                    OsStr::new(&contract.command),
                ];
                Command::new(arguments, &self.workspace)
            }
        };
        command.environment = self.environment.clone();
        command.input = self.input.clone();
        command.kept_bytes = self.kept_bytes;
        for (name, value) in folder.variables() {
            if !self.configured.contains(name) {
                set(&mut command.environment, name.clone(), value.clone());
            }
        }
        if !self.outputs.is_empty() {
            let outputs = folder.path().join(OUTPUTS_FOLDER);
            set(&mut command.environment, "PLANCTL_OUTPUTS".into(), outputs.into());
        }
        if contract.min_tests.is_some() {
            let reports = folder.path().join(REPORTS_FOLDER);
            set(&mut command.environment, "PLANCTL_REPORTS".into(), reports.into());
        }
        if let Some(git) = folder.git() {
            let mut path = git.bin.as_os_str().to_owned();
            path.push(":");
            path.push(self.path());
            set(&mut command.environment, "PATH".into(), path);
        }
        command.deadline = Some(contract.timeout);
        command.grace = GRACE;
        command.output_bytes_max = Some(OUTPUT_BYTES_MAX);
        command.limits = self.limits;
        command.locks.clone_from(&self.locks);
        command.locks.push(folder.lock());
        // One that is gone is told of when the command is started in it.
        let workspace = self.workspace.canonicalize().unwrap_or_else(|_| self.workspace.clone());
        let judges =
            baseline.files.keys().filter(|file| !baseline.may_change(file)).map(|file| workspace.join(file));
        let caches = self.spawner.scratch().map(|scratch| scratch.join(GO_CACHE));
        let private: Vec<PathBuf> = [folder.path().to_owned()].into_iter().chain(caches).collect();
        let confinement = self.isolation.of_contract(&workspace, &private, judges);
        command.confinement =
            confinement.map(|confinement| Confinement { network: self.network.clone(), ..confinement });
        Some(command)
    }
}

/// Counts the tests that passed by the reports of a command that gave its exit code, where the contract asks for some.
async fn count_tests(
    contract: &Contract,
    folder: &GateFolder,
    finished: &io::Result<Finished>,
) -> Option<TestCount> {
    let least = contract.min_tests?;
    let has_exited = |finished: &Finished| finished.end == End::Exited(i32::from(contract.expect));
    if !finished.as_ref().is_ok_and(has_exited) {
        return None;
    }
    let reports = folder.path().join(REPORTS_FOLDER);
    let passed = tokio::task::spawn_blocking(move || passed_tests(&reports)).await.ok()?;
    Some(TestCount { passed, least })
}

fn gate(found: HarnessResult) -> Gate {
    Gate { found, outputs: Vec::new(), made: BTreeMap::new(), written: Written::new() }
}

fn inconclusive_gate(inconclusive: Inconclusive) -> Gate {
    gate(HarnessResult::Nothing(inconclusive))
}

/// Says why a contract did not run. A shortage passes after a while, and is nothing that a person has to bring.
async fn spawn_failure(what: &str, error: &io::Error) -> Inconclusive {
    if is_shortage(error.raw_os_error()) {
        tokio::time::sleep(SHORTAGE_PAUSE).await;
        return Inconclusive::Interrupted;
    }
    Inconclusive::ToolMissing { what: format!("{what}: {error}") }
}

fn ending_of(finished: &Finished, workspace: &Path, tier: Tier) -> Result<Ending, Inconclusive> {
    match &finished.end {
        End::Exited(code) => Ok(Ending::Exited { code: *code }),
        End::Signalled(signal) => Ok(Ending::Signalled { signal: *signal }),
        // It was killed for its output; a signal is never a pass.
        End::Flooded | End::OverLimit(_) => Ok(Ending::Signalled { signal: nix::libc::SIGKILL }),
        End::TimedOut | End::IdleTimedOut => Ok(Ending::TimedOut),
        // A gate that we interrupted tells us nothing about the work, so it must not use up a retry.
        End::Cancelled | End::HelperLost => Err(Inconclusive::Interrupted),
        End::NotStarted { errno, .. } if is_shortage(Some(*errno)) => Err(Inconclusive::Interrupted),
        End::NotStarted { stage, errno } => {
            let error = io::Error::from_raw_os_error(*errno);
            let what = match stage {
                Stage::Directory => format!("the workspace {}: {error}", workspace.display()),
                Stage::Execute => format!("bash: {error}"),
                Stage::Fork | Stage::Prepare => format!("a process: {error}"),
                Stage::Isolate => format!("the isolation that is required: {error}"),
                Stage::Name => format!("its name: {error}"),
            };
            let what = what + own_users_note(tier, *stage, *errno);
            Err(Inconclusive::ToolMissing { what })
        }
    }
}
