//! Answers to asks.

use std::time::Duration;

use planctl_engine::{Answer, Budget, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlaceCall;
use crate::wire::BudgetView;

/// Answers an ask.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerCall {
    /// Where, and under which configuration. A plan is approved as its ask shows it; the values given here must be the same.
    #[serde(default)]
    pub place: PlaceCall,
    /// The answer: `{"answer": "retry"}`, `{"answer": "reassign", "role": "reviewer"}`, …
    pub answer: AnswerWord,
    /// Why, or words for the worker.
    #[serde(default)]
    pub note: Option<String>,
    /// With `approve`: protected files that are approved as they are although they differ from what was approved last,
    /// `FILE` or `FILE@DIGEST`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_changed: Vec<String>,
}

/// An answer by its word. Those without anything to say besides are empty objects, so that a field too many is refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerWord {
    /// The plan may run.
    Approve {},
    /// The plan may not run.
    Reject {},
    /// Try once more, with the note in the prompt.
    Retry {},
    /// Leave the step out.
    Skip {},
    /// Let the step count as met; shows for ever.
    Waive {},
    /// End the run as failed.
    Abort {},
    /// Pause the run until another revision is approved.
    Revise {},
    /// Give the step to another role and try once more.
    Reassign {
        /// The role.
        role: String,
    },
    /// Add to the budget.
    Raise {
        /// How much.
        by: RaiseCall,
    },
    /// Answer the worker's question; the next attempt spends no allowance.
    Reply {},
    /// Accept protected files as the gate found them, for this step alone, and have its contract judge what was done.
    Allow {
        /// Which; all that the ask names where it is left out.
        #[serde(default)]
        files: Vec<String>,
    },
    /// Put the approved copies of protected files back, and try once more.
    Restore {},
    /// Answer what the plan asks.
    Choose {
        /// One of the options; where there are none, any text.
        option: String,
    },
}

impl AnswerWord {
    /// Returns the word for an answer.
    pub fn of(answer: &Answer) -> AnswerWord {
        match answer {
            Answer::Approve => AnswerWord::Approve {},
            Answer::Reject => AnswerWord::Reject {},
            Answer::Retry => AnswerWord::Retry {},
            Answer::Skip => AnswerWord::Skip {},
            Answer::Waive => AnswerWord::Waive {},
            Answer::Abort => AnswerWord::Abort {},
            Answer::Revise => AnswerWord::Revise {},
            Answer::Reassign { role } => AnswerWord::Reassign { role: role.as_str().to_owned() },
            Answer::Raise { by } => {
                let BudgetView { tokens, usd, seconds } = BudgetView::from(*by);
                AnswerWord::Raise { by: RaiseCall { tokens, usd, seconds } }
            }
            Answer::Reply => AnswerWord::Reply {},
            Answer::Allow { files } => AnswerWord::Allow { files: files.clone() },
            Answer::Restore => AnswerWord::Restore {},
            Answer::Choose { option } => AnswerWord::Choose { option: option.clone() },
        }
    }

    /// Returns the answer that it means.
    ///
    /// # Errors
    ///
    /// Names the number that is out of bounds.
    pub fn answer(self) -> Result<Answer, OutOfBounds> {
        Ok(match self {
            AnswerWord::Approve {} => Answer::Approve,
            AnswerWord::Reject {} => Answer::Reject,
            AnswerWord::Retry {} => Answer::Retry,
            AnswerWord::Skip {} => Answer::Skip,
            AnswerWord::Waive {} => Answer::Waive,
            AnswerWord::Abort {} => Answer::Abort,
            AnswerWord::Revise {} => Answer::Revise,
            AnswerWord::Reassign { role } => Answer::Reassign { role: Role::new(role) },
            AnswerWord::Raise { by } => Answer::Raise {
                by: Budget {
                    tokens: by.tokens.map(|given| tokens("tokens", given)).transpose()?,
                    micro_usd: by.usd.map(|usd| micro_usd("usd", usd)).transpose()?,
                    time: by.seconds.map(|seconds| duration("seconds", seconds)).transpose()?,
                },
            },
            AnswerWord::Reply {} => Answer::Reply,
            AnswerWord::Allow { files } => Answer::Allow { files },
            AnswerWord::Restore {} => Answer::Restore,
            AnswerWord::Choose { option } => Answer::Choose { option },
        })
    }
}

/// How much is added to a budget.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RaiseCall {
    /// Tokens, input and output together.
    #[serde(default)]
    #[schemars(range(max = TOKENS_MAX))]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default)]
    pub usd: Option<f64>,
    /// Seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// The most tokens that a call names, or that a person types.
pub const TOKENS_MAX: u64 = 1_000_000_000_000_000;

/// The most money that a call names, in US dollars.
const USD_MAX: f64 = 1e9;

/// The longest time that a call names, in seconds: a hundred years.
const SECONDS_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// A number that nobody means.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("`{field}` is from 0 to {most}, found {found}")]
pub struct OutOfBounds {
    field: &'static str,
    most: f64,
    found: f64,
}

/// Reads a number of tokens.
pub fn tokens(field: &'static str, given: u64) -> Result<u64, OutOfBounds> {
    check_within(field, given as f64, TOKENS_MAX as f64).map(|_| given)
}

/// Reads US dollars as the millionths in which they are counted.
pub fn micro_usd(field: &'static str, usd: f64) -> Result<u64, OutOfBounds> {
    check_within(field, usd, USD_MAX).map(|usd| (usd * 1e6).round() as u64)
}

/// Reads seconds.
pub fn duration(field: &'static str, seconds: f64) -> Result<Duration, OutOfBounds> {
    check_within(field, seconds, SECONDS_MAX).map(Duration::from_secs_f64)
}

fn check_within(field: &'static str, found: f64, most: f64) -> Result<f64, OutOfBounds> {
    if (0.0..=most).contains(&found) { Ok(found) } else { Err(OutOfBounds { field, most, found }) }
}
