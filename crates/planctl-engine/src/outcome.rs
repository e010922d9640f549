//! How nodes settle, and how runs end.

use serde::{Deserialize, Serialize};

/// How a node settled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A gate of that very attempt passed.
    Passed,
    /// Its attempts are exhausted.
    Failed,
    /// It was left out.
    Skipped,
    /// A named person let it count as met.
    Waived,
    /// Its attempts are exhausted and the plan goes on.
    Warned,
}

impl Outcome {
    /// Returns the word that history and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Waived => "waived",
            Outcome::Warned => "warned",
        }
    }

    /// Returns the word by which conditions know it (DOT X3; one of [`crate::condition::STATUS_WORDS`]).
    pub fn status_word(self) -> &'static str {
        match self {
            Outcome::Passed | Outcome::Waived => "success",
            Outcome::Warned => "partial_success",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "fail",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It reached a successful exit.
    Done,
    /// It reached a failed exit.
    Failed,
    /// A person's answer ended it.
    Aborted,
    /// A person cancelled it, or rejected its plan.
    Cancelled,
}

impl End {
    /// Returns the words that follow the run's name: `is done`.
    pub fn describe(self) -> &'static str {
        match self {
            End::Done => "is done",
            End::Failed => "failed",
            End::Aborted => "was aborted",
            End::Cancelled => "was cancelled",
        }
    }
}

/// How many nodes settled which way; steps only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// By a passing gate.
    pub passed: u32,
    /// With attempts exhausted.
    pub failed: u32,
    /// By a person or by `skip`.
    pub skipped: u32,
    /// By a named person, with a reason.
    pub waived: u32,
    /// With attempts exhausted under `warn`.
    pub warned: u32,
}

impl Outcomes {
    /// Returns how many settled in any way.
    pub fn total(self) -> u32 {
        self.passed + self.failed + self.skipped + self.waived + self.warned
    }

    pub(crate) fn counter_mut(&mut self, outcome: Outcome) -> &mut u32 {
        match outcome {
            Outcome::Passed => &mut self.passed,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Waived => &mut self.waived,
            Outcome::Warned => &mut self.warned,
        }
    }
}
