//! Runs the contract of a step because a person clicked on it, the way the harness runs it, and tells how it ended.

use std::path::PathBuf;
use std::sync::Arc;

use planctl_engine::{Contract, Ending, Evidence, Found, Inconclusive, Verdict};
use planctl_harness::{Baseline, Bench, Spawner};
use planctl_lang::{CONTRACT_TIMEOUT, digest_of_text};
use planctl_server::check::search_path;
use planctl_server::config::Config;
use serde_json::{Value, json};
use tokio::sync::oneshot;

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
    /// With what.
    pub config: Config,
}

/// How it ended.
pub struct Report {
    /// How much it weighs.
    pub weight: Weight,
    /// One line for people.
    pub line: String,
    /// What it printed, and how it ended, for the log.
    pub log: String,
    /// The same for programs.
    pub value: Value,
}

impl Trial {
    /// Takes the contract of a step as the text has it.
    ///
    /// # Errors
    ///
    /// Where there is no such step, or it has no contract.
    pub fn new(step: &str, reading: &Reading, workspace: PathBuf, config: Config) -> Result<Trial, Refusal> {
        let refused = |message: String| Refusal::new(Refusal::INVALID_PARAMS, message);
        let found = reading.tree.steps.iter().find(|found| found.number_text() == step);
        let found = found.ok_or_else(|| refused(format!("the plan has no step {step}")))?;
        let contract = found.contract.as_ref();
        let contract = contract.ok_or_else(|| refused(format!("step {step} has no contract")))?;
        let said = found.contract_timeout.as_ref().map(|said| std::time::Duration::from_secs(said.value));
        let contract = Contract {
            command: contract.command.clone(),
            digest: digest_of_text(&contract.command),
            expect: contract.exit_code.as_ref().map_or(0, |code| code.value),
            timeout: said.or(config.contracts.timeout).unwrap_or(CONTRACT_TIMEOUT),
            guard: false,
            red_first: planctl_engine::RedFirst::Off,
        };
        Ok(Trial { step: step.to_owned(), contract, workspace, config })
    }

    /// Runs it; `cancel` ends it early.
    ///
    /// # Errors
    ///
    /// Where it told nothing: it was cancelled, or something it needs is not there.
    pub async fn run(self, spawner: Spawner, cancel: oneshot::Receiver<()>) -> Result<Report, Refusal> {
        let refused = |message: String| Refusal::new(Refusal::FAILED, message);
        let path = search_path(&self.config);
        let env = self.config.contracts.env.clone();
        let bench = Bench::new(spawner, &self.workspace, Some(&path), env)
            .map_err(|error| refused(format!("could not run the contract: {error}")))?;
        let cancelled = async move {
            // An editor that forgets about the run does not cancel it.
            if cancel.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let baseline = Arc::new(Baseline::default());
        let gate = bench.evaluate(&self.contract, &baseline, &mut |_, _| (), cancelled).await;
        match gate.found {
            Found::Evidence(evidence) | Found::Rehearsed(evidence) => Ok(self.report(&evidence)),
            Found::Recorded { .. } | Found::Restored | Found::Nothing(Inconclusive::Interrupted) => {
                Err(Refusal::new(Refusal::CANCELLED, "the contract was cancelled"))
            }
            Found::Nothing(what) => Err(refused(format!("could not run the contract: {what:?}"))),
        }
    }

    fn report(&self, evidence: &Evidence) -> Report {
        let verdict = self.contract.judge(evidence).unwrap_or(Verdict::Failed);
        let expect = self.contract.expect;
        let (ending, code) = match evidence.ending {
            Ending::Exited { code } if code == i32::from(expect) => (format!("exit code {code}"), Some(code)),
            Ending::Exited { code } => (format!("exit code {code}, expected {expect}"), Some(code)),
            Ending::Signalled { signal } => (format!("ended by signal {signal}"), None),
            Ending::TimedOut => (format!("not done after {} s", self.contract.timeout.as_secs()), None),
            Ending::NotRun => ("not run".to_owned(), None),
        };
        let seconds = evidence.duration.as_secs_f64();
        let line = format!("step {}: the contract {} ({ending}, {seconds:.1} s)", self.step, words(verdict));
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
                "verdict": verdict.word(),
                "exit_code": code,
                "expected": expect,
                "seconds": seconds,
                "stdout": stdout,
                "stderr": stderr,
            }),
        }
    }
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passes",
        Verdict::Failed => "fails",
        Verdict::TimedOut => "takes too long",
        Verdict::Tampered => "is not judged: a protected file changed",
    }
}
