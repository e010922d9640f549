//! Runs the contract of a step because a person clicked on it, in a throw-away copy of the workspace, and tells how it
//! ended.

use std::path::PathBuf;

use planctl_config::Config;
use planctl_engine::{Contract, Ending, Evidence, HarnessResult, Verdict};
use planctl_harness::{ReplicaLimits, Spawner};
use planctl_lang::{Facts, Levels, Obstacle, verify};
use planctl_server::probe::{Probe, ProbeError, candidates_of, configured};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::client::{Refusal, Weight};
use super::document::Reading;

/// The command behind the lens.
pub const RUN_CONTRACT: &str = "planctl.runContract";

/// A contract to run.
pub struct Trial {
    /// The step's number, as written.
    pub step: String,
    /// The contract.
    pub contract: Contract,
    /// Where.
    pub workspace: PathBuf,
    /// The configuration to run it under.
    pub config: Config,
}

/// How it ended.
pub struct Report {
    /// How much it weighs.
    pub weight: Weight,
    /// One line for people.
    pub line: String,
    /// Its output and end, for the log.
    pub log: String,
    /// The same for programs.
    pub value: Value,
}

impl Trial {
    /// Takes the contract of a step as the text has it.
    ///
    /// # Errors
    ///
    /// Where there is no such step, it has no contract, or the contract would not stay in a copy of the workspace.
    pub fn new(step: &str, reading: &Reading, workspace: PathBuf, config: Config) -> Result<Trial, Refusal> {
        let refused = |message: String| Refusal::new(Refusal::INVALID_PARAMS, message);
        let written = reading.tree.steps.iter().find(|written| written.node.id.value == step);
        let written = written.ok_or_else(|| refused(format!("the plan has no step {step}")))?;
        if written.node.contract.is_none() {
            return Err(refused(format!("step {step} has no contract")));
        }
        let Some(number) = written.node.number else {
            return Err(refused(format!("step {step} stands for several; planctl expand writes them out")));
        };
        let found = verify(&reading.source, &Facts::default(), &Levels::default());
        let candidates = candidates_of(&found, &workspace);
        let candidate = candidates.into_iter().find(|candidate| candidate.step == number);
        let candidate = candidate.ok_or_else(|| refused(format!("step {step} has no contract")))?;
        match &candidate.obstacle {
            None => {}
            Some(Obstacle::Broken) => {
                return Err(refused(format!(
                    "the contract of step {step} is not valid bash; see its finding"
                )));
            }
            Some(Obstacle::Unsafe(reason)) => {
                return Err(refused(format!("the contract of step {step} is not run from here: {reason}")));
            }
        }
        Ok(Trial { step: step.to_owned(), contract: configured(&candidate, &config), workspace, config })
    }

    /// Runs it in a copy of the workspace, kept below the state directory meanwhile; `cancel` ends it early.
    ///
    /// # Errors
    ///
    /// Where it was inconclusive: it was cancelled, there is no copy, or something it needs is not there.
    pub async fn run(
        self,
        spawner: Spawner,
        state_dir: PathBuf,
        cancel: oneshot::Receiver<()>,
    ) -> Result<Report, Refusal> {
        let refused = |message: String| Refusal::new(Refusal::FAILED, message);
        let (stop, is_stopped) = watch::channel(false);
        let probe = Probe::new(spawner, state_dir, ReplicaLimits::default(), is_stopped, |_| ());
        let run = probe.run_once(&self.contract, &self.workspace, &self.config);
        let cancelled = async {
            // An editor that forgets about the run does not cancel it.
            if cancel.await.is_ok() {
                stop.send_replace(true);
            }
            std::future::pending::<()>().await;
        };
        let found = tokio::select! {
            found = run => found,
            () = cancelled => return Err(refused("nobody waits any more".to_owned())),
        };
        match found {
            Ok(HarnessResult::Evidence(evidence) | HarnessResult::Rehearsed(evidence)) => {
                Ok(self.report(&evidence))
            }
            Ok(
                what @ (HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Merged { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(_)),
            ) => Err(refused(format!("could not run the contract: {what:?}"))),
            Err(ProbeError::Interrupted) => {
                Err(Refusal::new(Refusal::CANCELLED, "the contract was cancelled"))
            }
            Err(error) => Err(refused(format!("could not {error}"))),
        }
    }

    fn report(&self, evidence: &Evidence) -> Report {
        let verdict = self.contract.verdict_of_command(evidence).unwrap_or(Verdict::Failed);
        let expect = self.contract.expect;
        let (ending, code) = match evidence.ending {
            Ending::Exited { code } if code == i32::from(expect) => (format!("exit code {code}"), Some(code)),
            Ending::Exited { code } => (format!("exit code {code}, expected {expect}"), Some(code)),
            Ending::Signalled { signal } => (format!("ended by signal {signal}"), None),
            Ending::TimedOut => (format!("not done after {} s", self.contract.timeout.as_secs()), None),
            Ending::OverLimit { resource, max } => (resource.exceeded(max), None),
            Ending::NotRun => ("not run".to_owned(), None),
        };
        let seconds = evidence.duration.as_secs_f64();
        let line =
            format!("step {}: the contract {} ({ending}, {seconds:.1} s)", self.step, verdict_words(verdict));
        let (stdout, stderr) = (&evidence.stdout.tail, &evidence.stderr.tail);
        let mut log = format!("{line}\n$ {}", self.contract.command.trim_end());
        for (name, tail) in [("standard output", stdout), ("standard error", stderr)] {
            if !tail.trim().is_empty() {
                log.push_str(&format!("\n-- {name} --\n{}", tail.trim_end()));
            }
        }
        Report {
            weight: if verdict == Verdict::Passed { Weight::Info } else { Weight::Warning },
            line,
            log,
            value: json!({
                "step": self.step,
                "verdict": verdict.as_str(),
                "exit_code": code,
                "expected": expect,
                "seconds": seconds,
                "stdout": stdout,
                "stderr": stderr,
            }),
        }
    }
}

fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passes",
        Verdict::Failed => "fails",
        Verdict::TimedOut => "takes too long",
        Verdict::Tampered => "is not judged: a protected file changed",
    }
}
