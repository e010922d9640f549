//! Tries contracts before any work is done, each in a throw-away copy of the workspace in its first state (red first).

use std::ffi::OsStr;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use planctl_engine::{Contract, Ending, Evidence, HarnessResult};

use crate::blocking::blocking_in_place;
use crate::contract::ContractRunner;
use crate::environment::safe_path;
use crate::isolation::Isolation;
use crate::process::{Command, End, Input};
use crate::protect::Baseline;
use crate::replica::{Differences, Replica, ReplicaError, ReplicaLimits, Stop};
use crate::spawn::Spawner;

/// How often a contract is tried, so that one that passes by chance shows.
const RUNS: usize = 2;
/// Folders that builds, interpreters and test runners keep beside the sources; no change of the work.
const CACHES: [&str; 10] = [
    "target",
    "node_modules",
    ".venv",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".gradle",
];
/// How long git may take to say which paths it ignores.
const IGNORED_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Where and with what contracts are tried.
#[derive(Clone)]
pub struct TrialPlace {
    /// A folder outside the workspace where the copy may be.
    pub scratch: PathBuf,
    /// The workspace, a canonical path.
    pub workspace: PathBuf,
    /// Where commands are found; folders of the workspace are left out.
    pub path: std::ffi::OsString,
    /// Variables of the configuration.
    pub environment: Vec<(String, String)>,
    /// How much the copy may take.
    pub limits: ReplicaLimits,
    /// How contracts are isolated there.
    pub isolation: Isolation,
}

/// A copy of a workspace, and a contract runner in it.
pub struct TrialRunner {
    spawner: Spawner,
    runner: ContractRunner,
    replica: Arc<Mutex<Replica>>,
    workspace: PathBuf,
}

/// The result of trying a contract.
#[derive(Clone, Debug)]
pub enum Trial {
    /// It ran.
    Tried {
        /// The evidence of each run; the second one met the files that the first one left.
        runs: Vec<Evidence>,
        /// Files of the workspace that differed afterwards; ignored ones are left out.
        changed: Vec<String>,
    },
    /// It could not be tried, or what it showed does not count.
    NotTried {
        /// Why.
        reason: String,
    },
    /// The caller asked to stop.
    Interrupted,
}

impl TrialRunner {
    /// Copies the workspace.
    ///
    /// # Errors
    ///
    /// [`ReplicaError`]; a variable that may not be set for a contract is one too.
    pub async fn prepare(
        spawner: Spawner,
        place: TrialPlace,
        is_stopped: Stop,
    ) -> Result<TrialRunner, ReplicaError> {
        let (scratch, workspace) = (place.scratch.clone(), place.workspace.clone());
        let make = move || Replica::make(&scratch, &workspace, place.limits, is_stopped);
        let replica = tokio::task::spawn_blocking(make).await.map_err(|error| broken(&error))??;
        // Folders of the original workspace must not be on the path either.
        let path = blocking_in_place(|| safe_path(&place.path, replica.copied_root()));
        let mut variables = replica.variables();
        for (name, value) in &place.environment {
            variables.retain(|(own, _)| own != name);
            variables.push((name.clone(), replica.with_paths_of_copy(value)));
        }
        // Beside the copy and not in it: a contract's files in its home are gone before the next one.
        let spawner = spawner.with_scratch(&place.scratch);
        let runner = blocking_in_place(|| {
            ContractRunner::new(spawner.clone(), replica.workspace(), Some(&path), variables)
        });
        let runner = runner
            .map_err(|error| broken(&error))?
            .with_locks(vec![replica.lock()])
            .with_isolation(place.isolation)
            .in_trial();
        Ok(TrialRunner {
            spawner,
            runner,
            workspace: replica.workspace().to_owned(),
            replica: Arc::new(Mutex::new(replica)),
        })
    }

    /// Tries a contract and brings the copy back to its first state.
    ///
    /// # Errors
    ///
    /// When the copy can't be restored; it is of no use then.
    pub async fn try_contract(
        &self,
        contract: &Contract,
        cancel: impl Future<Output = ()>,
    ) -> Result<Trial, ReplicaError> {
        let mut cancel = pin!(cancel);
        let mut runs = Vec::new();
        let nothing = Arc::new(Baseline::default());
        while runs.len() < RUNS {
            let gate = self.runner.evaluate(contract, &nothing, &mut |_, _| (), cancel.as_mut()).await;
            match gate.found {
                HarnessResult::Evidence(evidence) | HarnessResult::Rehearsed(evidence) => {
                    let is_late = evidence.ending == Ending::TimedOut;
                    runs.push(*evidence);
                    // A contract that took too long once is not run again.
                    if is_late {
                        break;
                    }
                }
                HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Merged { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(
                    planctl_engine::Inconclusive::Interrupted
                    | planctl_engine::Inconclusive::Unheard { .. }
                    | planctl_engine::Inconclusive::Unapproved { .. }
                    | planctl_engine::Inconclusive::Unfunded { .. },
                ) => {
                    return Ok(Trial::Interrupted);
                }
                HarnessResult::Nothing(
                    planctl_engine::Inconclusive::ToolMissing { what }
                    | planctl_engine::Inconclusive::Unstable { what }
                    | planctl_engine::Inconclusive::Unjudged { what, .. },
                ) => {
                    self.restore().await?;
                    return Ok(Trial::NotTried { reason: format!("it could not be started: {what}") });
                }
            }
        }
        let differences = self.restore().await?;
        if differences.has_original_changed {
            let reason = "the workspace changed while it was tried".to_owned();
            return Ok(Trial::NotTried { reason });
        }
        let changed = self.without_ignored(differences.paths).await;
        Ok(Trial::Tried { runs, changed })
    }

    /// Runs a contract once and leaves the copy as it is then.
    pub async fn run_once(&self, contract: &Contract, cancel: impl Future<Output = ()>) -> HarnessResult {
        let nothing = Arc::new(Baseline::default());
        self.runner.evaluate(contract, &nothing, &mut |_, _| (), cancel).await.found
    }

    async fn restore(&self) -> Result<Differences, ReplicaError> {
        let replica = self.replica.clone();
        let restore = move || replica.lock().unwrap_or_else(PoisonError::into_inner).restore();
        tokio::task::spawn_blocking(restore).await.map_err(|error| broken(&error))?
    }

    /// Leaves out caches, and what git ignores; the copy is in its first state, so the contract has no say in that.
    async fn without_ignored(&self, paths: Vec<String>) -> Vec<String> {
        let is_cache = |path: &String| {
            Path::new(path).components().any(|part| CACHES.iter().any(|cache| part.as_os_str() == *cache))
        };
        let mut paths: Vec<String> = paths.into_iter().filter(|path| !is_cache(path)).collect();
        let is_in_git = || blocking_in_place(|| crate::git::git_top_level(&self.workspace).is_some());
        if paths.is_empty() || !is_in_git() {
            return paths;
        }
        let ask: [&OsStr; 4] = ["git", "check-ignore", "-z", "--stdin"].map(OsStr::new);
        let mut command = Command::new(ask, &self.workspace);
        command.environment = self.runner.environment().to_vec();
        command.deadline = Some(IGNORED_TIMEOUT);
        command.input =
            Input::Bytes(paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect());
        command.kept_bytes = 16 << 20;
        command.locks = vec![self.replica.lock().unwrap_or_else(PoisonError::into_inner).lock()];
        let finished = self.spawner.run(&command, &mut |_, _| (), std::future::pending()).await;
        // Where git can't say, nothing is ignored.
        if let Ok(finished) = finished
            && finished.end == End::Exited(0)
        {
            let said = finished.stdout.joined();
            let ignored: std::collections::BTreeSet<&[u8]> = said.split(|byte| *byte == 0).collect();
            paths.retain(|path| !ignored.contains(path.as_bytes()));
        }
        paths
    }
}

fn broken(error: &dyn std::fmt::Display) -> ReplicaError {
    ReplicaError::Io { what: "try contracts".to_owned(), source: std::io::Error::other(error.to_string()) }
}
