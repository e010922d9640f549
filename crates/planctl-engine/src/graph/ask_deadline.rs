//! The time that a plan's own text gives people to answer its asks, and the answer after it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The time in which an ask has to be answered, and the answer that the text of the plan gives after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskDeadline {
    /// How long the ask waits.
    pub after: Duration,
    /// The answer then.
    pub answer: StoppingAnswer,
}

/// An answer that lets nothing go on. No other answer is ever given because nobody answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppingAnswer {
    /// Refuses the plan, the step or the call that the ask is about.
    Reject,
    /// Ends the run.
    Abort,
}

impl AskDeadline {
    /// Returns it for an ask that takes these answers; none where the ask takes no answer that stops.
    pub fn among(self, answers: &[&str]) -> Option<AskDeadline> {
        self.answer.among(answers).map(|answer| AskDeadline { answer, ..self })
    }
}

impl StoppingAnswer {
    /// Both of them.
    pub const ALL: [StoppingAnswer; 2] = [StoppingAnswer::Reject, StoppingAnswer::Abort];

    /// Returns its word on the command line, in plans and in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            StoppingAnswer::Reject => "reject",
            StoppingAnswer::Abort => "abort",
        }
    }

    /// Returns it where an ask takes it, else the other one.
    pub fn among(self, answers: &[&str]) -> Option<StoppingAnswer> {
        let other = match self {
            StoppingAnswer::Reject => StoppingAnswer::Abort,
            StoppingAnswer::Abort => StoppingAnswer::Reject,
        };
        [self, other].into_iter().find(|answer| answers.contains(&answer.as_str()))
    }
}
