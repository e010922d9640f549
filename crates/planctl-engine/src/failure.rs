//! Failed attempts and the reasons for which they fail.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::contract::{Ending, Evidence, Excerpt, Judgement, RehearsalResult, Tampering, TestCount, Verdict};
use crate::event::Overrun;
use crate::ids::{Actor, Attempt};
use crate::outcome::End;

/// A failed attempt, as the next worker and the person asked are told of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Which try failed.
    pub attempt: Attempt,
    /// The reason of the failure.
    pub what: Failing,
    /// How long the gate ran.
    pub duration: Duration,
    /// The end of standard output.
    pub stdout: Excerpt,
    /// The end of standard error.
    pub stderr: Excerpt,
    /// The actions that its permissions denied the worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

/// The reasons for which an attempt, or a delivery of it, fails.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "failing", rename_all = "snake_case")]
pub enum Failing {
    /// The contract did not pass.
    Contract {
        /// The verdict.
        verdict: Verdict,
        /// How the command ended.
        ending: Ending,
        /// Protected files that had changed.
        tampered: Vec<Tampering>,
    },
    /// The work ran past a limit of its time; there was no gate.
    Overran {
        /// Which limit.
        #[serde(default, skip_serializing_if = "Overrun::is_deadline")]
        past: Overrun,
    },
    /// The worker could not run, time after time.
    Undelivered {
        /// The last message.
        message: String,
    },
    /// The worker lacks a permission (exit 77).
    Permission {
        /// The worker's message.
        message: String,
    },
    /// The gate was inconclusive, time after time.
    Inconclusive {
        /// The missing or unstable thing.
        message: String,
    },
    /// The changes of the branches conflict.
    Conflict {
        /// The branch that does not fit to what was merged before it, counted from 0; none where the workspace itself
        /// was changed meanwhile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<u16>,
        /// The files that conflict.
        files: Vec<String>,
        /// The folder in which a person makes them fit.
        folder: String,
    },
    /// The run of a sub-plan did not end well.
    SubPlan {
        /// The run's name.
        name: String,
        /// How it ended.
        end: End,
    },
    /// A person looked at the work, and says that it is not done.
    Unconfirmed {
        /// The person who refused the work.
        by: Actor,
        /// The note of that person.
        note: Option<String>,
    },
    /// The output that the agent's program reported does not pass the plan's check.
    Unobserved {
        /// Why not: `the output does not contain: On branch`.
        message: String,
    },
    /// The command of the contract gave its exit code, and fewer tests passed than the contract asks for.
    TooFewTests {
        /// How many did by the reports that the command wrote.
        tests: TestCount,
    },
    /// The command of the contract passed, and its judge says that the work does not.
    Judged {
        /// The judge's answer.
        judgement: Box<Judgement>,
    },
    /// The contract was not red before the work.
    NotRed {
        /// The result of the rehearsal.
        showed: RehearsalResult,
        /// How the command ended.
        ending: Ending,
        /// Protected files that had changed.
        tampered: Vec<Tampering>,
    },
}

impl Failure {
    /// Says in one line how the attempt failed: `contract exit 1 (denied: Bash(make))`.
    pub fn describe(&self) -> String {
        let words = self.what.describe();
        match self.denied.as_slice() {
            [] => words,
            denied => format!("{words} (denied: {})", denied.join(", ")),
        }
    }

    /// Describes a failure by what its command printed, and for how long that ran.
    pub fn from_evidence(attempt: Attempt, what: Failing, evidence: &Evidence) -> Failure {
        Failure {
            attempt,
            what,
            duration: evidence.duration,
            stdout: evidence.stdout.clone(),
            stderr: evidence.stderr.clone(),
            denied: Vec::new(),
        }
    }

    /// Returns the protected files for which a gate did not judge the attempt, or its contract told nothing before the work.
    pub fn tampered(&self) -> &[Tampering] {
        match &self.what {
            Failing::Contract { verdict: Verdict::Tampered, tampered, .. }
            | Failing::NotRed { tampered, .. } => tampered,
            Failing::Contract { .. }
            | Failing::Overran { .. }
            | Failing::Undelivered { .. }
            | Failing::Permission { .. }
            | Failing::Inconclusive { .. }
            | Failing::Conflict { .. }
            | Failing::SubPlan { .. }
            | Failing::Unconfirmed { .. }
            | Failing::Unobserved { .. }
            | Failing::TooFewTests { .. }
            | Failing::Judged { .. } => &[],
        }
    }
}

impl Failing {
    /// Describes a contract that did not pass.
    pub fn from_verdict(verdict: Verdict, evidence: &Evidence) -> Failing {
        if verdict == Verdict::Failed
            && let Some(tests) = evidence.tests.filter(|tests| tests.passed < tests.least)
        {
            return Failing::TooFewTests { tests };
        }
        Failing::Contract { verdict, ending: evidence.ending, tampered: evidence.tampered.clone() }
    }

    /// Returns its class, in one word (DOT R4): conditions look at it as `failure_class`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Failing::Contract { .. } => "contract",
            Failing::Overran { .. } => "overran",
            Failing::Undelivered { .. } => "undelivered",
            Failing::Permission { .. } => "permission",
            Failing::Inconclusive { .. } => "inconclusive",
            Failing::Conflict { .. } => "conflict",
            Failing::SubPlan { .. } => "sub_plan",
            Failing::Unconfirmed { .. } => "unconfirmed",
            Failing::Unobserved { .. } => "unobserved",
            Failing::TooFewTests { .. } => "too_few_tests",
            Failing::Judged { .. } => "judged",
            Failing::NotRed { .. } => "not_red",
        }
    }

    /// Says in one line what failed: `contract exit 1`. Conditions of edges read it as `failure_reason`.
    pub fn describe(&self) -> String {
        match self {
            Failing::Contract { ending, tampered, .. } => ending.describe(tampered),
            Failing::NotRed { ending, tampered, .. } => {
                format!("before the work: {}", ending.describe(tampered))
            }
            Failing::Unconfirmed { by, note } => {
                let note = note.as_deref().filter(|note| !note.is_empty());
                let note = note.map(|note| format!(": \"{note}\"")).unwrap_or_default();
                format!("{by} says that it is not done{note}")
            }
            Failing::Unobserved { message } => format!("what was observed does not suffice: {message}"),
            Failing::TooFewTests { tests: TestCount { passed: 0, least } } => {
                format!("its reports show no test that passed, and {least} have to")
            }
            Failing::TooFewTests { tests: TestCount { passed, least } } => {
                format!("its reports show {passed} tests that passed, and {least} have to")
            }
            Failing::Judged { judgement } => {
                format!("the judge {} says no: {}", judgement.by, judgement.reason)
            }
            Failing::Overran { past: Overrun::Deadline } => "the work ran past its deadline".to_owned(),
            Failing::Overran { past: Overrun::Silence } => "the work was silent for too long".to_owned(),
            Failing::Undelivered { message } => format!("no worker could run it: {message}"),
            Failing::Permission { message } => format!("the worker lacks a permission: {message}"),
            Failing::Inconclusive { message } => format!("the gate was inconclusive: {message}"),
            Failing::SubPlan { name, end: End::Done } => {
                format!("its run {name} is done, but its expected effect does not hold")
            }
            Failing::SubPlan { name, end } => format!("its run {name} {}", end.describe()),
            Failing::Conflict { branch, files, .. } => {
                let what = match branch {
                    Some(branch) => format!("branch {} conflicts with those before it", branch + 1),
                    None => "the workspace was changed meanwhile and conflicts with the branches".to_owned(),
                };
                format!("{what}: {}", files.join(", "))
            }
        }
    }
}
