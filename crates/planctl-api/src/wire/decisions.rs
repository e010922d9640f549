//! Decisions of people and rules, of all runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The newest decisions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DecisionLog {
    /// The decisions, newest first.
    pub decisions: Vec<DecisionLine>,
}

/// One decision, as the history of its run has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DecisionLine {
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The person, or the rule: `policy:NAME`.
    pub by: String,
    /// The decision: the word of an answer, `vote`, `hand-in`, `pause`, `resume`, `revise`, `cancel`.
    pub decision: String,
    /// The run's name.
    pub run: String,
    /// The run's id.
    pub run_id: String,
    /// Its place in the run's history.
    pub seq: u64,
    /// Why, in the person's words.
    pub note: Option<String>,
}
