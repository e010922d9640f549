//! Red first: tries a plan's contracts in a throw-away copy of the workspace, before any work is done.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_engine::{
    Attempt, Contract, Evidence, Failing, Failure, HarnessResult, Inconclusive, Tier, Verdict,
};
use planctl_harness::{
    ReplicaError, ReplicaLimits, Spawner, Trial as Brought, TrialPlace, TrialRunner, blocking_in_place,
    git_top_level, probe_isolation, sweep_scratch,
};
use planctl_lang::{Candidate, Obstacle, Trial, TrialRun, Tried, Verification, candidates};
use planctl_view::telling_line;
use tokio::sync::{OnceCell, watch};

use crate::state_folders::private_in;
use crate::verify::check::search_path;
use planctl_config::{Config, Isolation};

/// The folder of the state directory that attempts and trials share.
const SCRATCH: &str = "work";
/// The most characters of a printed line that a finding shows.
const LINE_CHARACTERS_MAX: usize = 200;

/// Tries contracts; one copy of the workspace serves all plans that are verified with it.
pub struct Probe {
    spawner: Spawner,
    state_dir: PathBuf,
    limits: ReplicaLimits,
    stop: watch::Receiver<bool>,
    progress: Box<dyn Fn(ProbeProgress<'_>) + Send + Sync>,
    runner: OnceCell<TrialRunner>,
}

/// The progress of a probe, for people.
#[derive(Clone, Copy, Debug)]
pub enum ProbeProgress<'a> {
    /// It copies the workspace.
    Copying,
    /// It tries a contract.
    Trying {
        /// Which one, counted from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// The step.
        step: u32,
        /// Its title, as the plan has it.
        title: &'a str,
    },
    /// It is done with a plan.
    Done,
}

/// How much of a plan was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probed {
    /// How many contracts the plan has.
    pub contracts: usize,
    /// How many of them were tried.
    pub tried: usize,
    /// How long that took, the copy included.
    pub duration: Duration,
}

/// Whether a contract that passed would still do so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rechecked {
    /// It would.
    Passes,
    /// It would not.
    Fails {
        /// How it ended, and the line that says why.
        why: String,
    },
    /// It was not tried.
    NotTried {
        /// Why, as the end of a sentence: `it names …`.
        reason: String,
    },
}

/// Why contracts could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is no copy of the workspace.
    #[error("copy the workspace {}: {source}", workspace.display())]
    Copy {
        /// The workspace.
        workspace: PathBuf,
        /// Why.
        #[source]
        source: ReplicaError,
    },
    /// More isolation is demanded than this host offers (row 114).
    #[error("try contracts: isolation = \"{wanted}\" is demanded, and this host offers tier {offered}")]
    Isolation {
        /// The tier that is demanded.
        wanted: Isolation,
        /// The tier that the host offers.
        offered: Tier,
    },
    /// The caller asked to stop.
    #[error("try contracts: it was interrupted")]
    Interrupted,
    /// The file system refused.
    #[error("{what}: {source}")]
    Io {
        /// The action.
        what: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
}

impl Probe {
    /// Prepares a probe; nothing is copied before a contract can be tried. It ends when `stop` becomes true.
    pub fn new(
        spawner: Spawner,
        state_dir: PathBuf,
        limits: ReplicaLimits,
        stop: watch::Receiver<bool>,
        progress: impl Fn(ProbeProgress<'_>) + Send + Sync + 'static,
    ) -> Probe {
        Probe { spawner, state_dir, limits, stop, progress: Box::new(progress), runner: OnceCell::new() }
    }

    /// Tries the contracts of a plan in the order of its steps; `found` is what is found in it at the codes' own levels.
    pub(crate) async fn trials(
        &self,
        found: &Verification,
        workspace: &Path,
        config: &Config,
    ) -> Result<(Vec<(u32, Trial)>, Probed), ProbeError> {
        let began = crate::clock::instant();
        let candidates = blocking_in_place(|| candidates_of(found, workspace));
        let of = candidates.iter().filter(|candidate| candidate.obstacle.is_none()).count();
        let (mut trials, mut number) = (Vec::new(), 0);
        let contracts = candidates.len();
        for candidate in candidates {
            let trial = match &candidate.obstacle {
                Some(Obstacle::Broken) => continue,
                Some(Obstacle::Unsafe(reason)) => Trial::Skipped { reason: reason.clone() },
                None => {
                    number += 1;
                    let runner = self.runner(workspace, config).await?;
                    let (step, title) = (candidate.step, candidate.title.as_str());
                    (self.progress)(ProbeProgress::Trying { number, of, step, title });
                    self.try_candidate(runner, &candidate, workspace, config).await?
                }
            };
            trials.push((candidate.step, trial));
        }
        (self.progress)(ProbeProgress::Done);
        let tried = trials.iter().filter(|(_, trial)| matches!(trial, Trial::Tried(_))).count();
        Ok((trials, Probed { contracts, tried, duration: began.elapsed() }))
    }

    /// Runs a contract once in the copy. The caller has asked [`candidates_of`] whether it can be run there.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] where there is no copy, or the caller asked to stop.
    pub async fn run_once(
        &self,
        contract: &Contract,
        workspace: &Path,
        config: &Config,
    ) -> Result<HarnessResult, ProbeError> {
        let runner = self.runner(workspace, config).await?;
        let found = runner.run_once(contract, self.stopped()).await;
        if found == HarnessResult::Nothing(Inconclusive::Interrupted) {
            return Err(ProbeError::Interrupted);
        }
        Ok(found)
    }

    /// Says whether the contract of a step that passed would still pass: it runs once in the copy, which proves nothing.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] where there is no copy, or the caller asked to stop.
    pub async fn recheck(
        &self,
        candidate: &Candidate,
        workspace: &Path,
        config: &Config,
    ) -> Result<Rechecked, ProbeError> {
        if let Some(Obstacle::Unsafe(reason)) = &candidate.obstacle {
            return Ok(Rechecked::NotTried { reason: reason.clone() });
        }
        let contract = configured(candidate, config);
        let found = self.run_once(&contract, workspace, config).await?;
        let HarnessResult::Evidence(evidence) = found else {
            return Ok(Rechecked::NotTried { reason: "it could not be run there".to_owned() });
        };
        let verdict = contract.verdict_of_command(&evidence).unwrap_or(Verdict::Failed);
        if verdict == Verdict::Passed {
            return Ok(Rechecked::Passes);
        }
        let said = reason(&evidence);
        let what = Failing::from_verdict(verdict, &evidence);
        let line = Failure::from_evidence(Attempt::NONE, what, &evidence).describe();
        Ok(Rechecked::Fails { why: if said.is_empty() { line } else { format!("{line}: {said}") } })
    }

    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|stop| *stop).await.is_err() {
            // The sender is gone, so no stop will come.
            std::future::pending::<()>().await;
        }
    }

    async fn runner(&self, workspace: &Path, config: &Config) -> Result<&TrialRunner, ProbeError> {
        self.runner
            .get_or_try_init(|| async {
                let isolation = isolation_of(config, &self.spawner, &self.state_dir).await?;
                (self.progress)(ProbeProgress::Copying);
                let place = TrialPlace {
                    scratch: self.scratch(workspace)?,
                    workspace: workspace.to_owned(),
                    path: search_path(config),
                    environment: config.contracts.env.clone().into_iter().collect(),
                    limits: self.limits,
                    isolation,
                };
                let stop = self.stop.clone();
                let is_stopped = std::sync::Arc::new(move || *stop.borrow());
                TrialRunner::prepare(self.spawner.clone(), place, is_stopped)
                    .await
                    .map_err(|error| copy_error(workspace, error))
            })
            .await
    }

    /// Returns a private folder outside the workspace, and removes those of killed probes.
    fn scratch(&self, workspace: &Path) -> Result<PathBuf, ProbeError> {
        let checkout = git_top_level(workspace).unwrap_or(workspace);
        let own = self.state_dir.join(SCRATCH);
        let is_inside = |folder: &Path| {
            let real = folder.ancestors().find_map(|folder| folder.canonicalize().ok());
            real.is_some_and(|real| real.starts_with(checkout))
        };
        let wrong = |folder: &Path| {
            let what = format!("use {}", folder.display());
            |source| ProbeError::Io { what, source }
        };
        if !is_inside(&own) {
            return private_in(&self.state_dir, SCRATCH).map_err(wrong(&own));
        }
        let scratch = std::env::temp_dir();
        sweep_scratch(&scratch).map_err(wrong(&scratch))?;
        Ok(scratch)
    }

    async fn try_candidate(
        &self,
        runner: &TrialRunner,
        candidate: &Candidate,
        workspace: &Path,
        config: &Config,
    ) -> Result<Trial, ProbeError> {
        let contract = configured(candidate, config);
        let brought = runner.try_contract(&contract, self.stopped()).await;
        match brought.map_err(|error| copy_error(workspace, error))? {
            Brought::Interrupted => Err(ProbeError::Interrupted),
            Brought::NotTried { reason } => Ok(Trial::Skipped { reason }),
            Brought::Tried { runs, changed } => {
                let run = |evidence: &Evidence| {
                    Some(TrialRun {
                        verdict: contract.verdict_of_command(evidence)?,
                        ending: evidence.ending,
                        duration: evidence.duration,
                    })
                };
                Ok(Trial::Tried(Tried {
                    runs: runs.iter().filter_map(run).collect(),
                    printed: runs.first().map(reason).unwrap_or_default(),
                    output: runs.first().map(output).unwrap_or_default(),
                    timeout: contract.timeout,
                    changed_count: changed.len(),
                    changed,
                }))
            }
        }
    }
}

/// Says how contracts are tried, and agents are asked: as they run.
///
/// # Errors
///
/// [`ProbeError`] where more isolation is demanded than this host offers.
pub async fn isolation_of(
    config: &Config,
    spawner: &Spawner,
    state_dir: &Path,
) -> Result<planctl_harness::Isolation, ProbeError> {
    let wanted = config.isolation;
    let offered = match wanted.needs_probe() {
        false => Tier::SameUser,
        true => {
            let what = || "try which isolation this host offers".to_owned();
            let tried = probe_isolation(spawner).await;
            tried.map_err(|source| ProbeError::Io { what: what(), source })?.tier
        }
    };
    let tier = wanted.tier(offered).ok_or(ProbeError::Isolation { wanted, offered })?;
    Ok(planctl_harness::Isolation { tier, hidden: vec![state_dir.to_owned()], writable: Vec::new() })
}

/// Returns the line of a contract's output that says why it failed.
fn reason(evidence: &Evidence) -> String {
    let line = telling_line(&evidence.stderr.tail, &evidence.stdout.tail).unwrap_or_default();
    line.chars().take(LINE_CHARACTERS_MAX).collect()
}

/// Returns the ends of both streams.
fn output(evidence: &Evidence) -> String {
    format!("{}\n{}", evidence.stderr.tail, evidence.stdout.tail)
}

/// Lists the contracts of a plan, each with why it can't be run in a copy of the workspace; `found` is what is found in
/// the plan at the codes' own levels.
pub fn candidates_of(found: &Verification, workspace: &Path) -> Vec<Candidate> {
    let checkout = git_top_level(workspace).unwrap_or(workspace);
    let places = [checkout, workspace].map(|place| place.to_string_lossy().into_owned());
    candidates(&found.workflow, found.with_allowed(), &places)
}

/// Returns a contract with the time that is configured where the plan names none.
pub fn configured(candidate: &Candidate, config: &Config) -> Contract {
    let mut contract = candidate.contract.clone();
    if let (false, Some(timeout)) = (candidate.names_timeout, config.contracts.timeout) {
        contract.timeout = timeout;
    }
    contract
}

fn copy_error(workspace: &Path, error: ReplicaError) -> ProbeError {
    match error {
        ReplicaError::Interrupted => ProbeError::Interrupted,
        source @ (ReplicaError::TooLarge { .. }
        | ReplicaError::TooMany { .. }
        | ReplicaError::NoRoom { .. }
        | ReplicaError::Inside { .. }
        | ReplicaError::Io { .. }) => ProbeError::Copy { workspace: workspace.to_owned(), source },
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("state_dir", &self.state_dir).field("limits", &self.limits).finish()
    }
}
