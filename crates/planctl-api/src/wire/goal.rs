//! A goal in pieces, and the graph of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `goal decompose --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalView {
    /// The goal.
    pub goal: String,
    /// The strategy that served: `pattern`, `intent_first`, `grounded`; null where none did.
    pub strategy: Option<String>,
    /// How sure it is, from 0 to 1; 0 where the goal is left to a writer.
    pub confidence: f64,
    /// Signs of complexity, each a sentence.
    pub signals: Vec<String>,
    /// The strategies that were considered.
    pub considered: Vec<ConsideredView>,
    /// The intents.
    pub intents: Vec<IntentView>,
}

/// A strategy that was considered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConsideredView {
    /// `pattern`, `intent_first`, `grounded`, `hybrid`.
    pub strategy: String,
    /// Why it was taken, or was not.
    pub why: String,
}

/// One piece of a goal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct IntentView {
    /// `I1`, `I2` …; parts of one are `I2.1` …
    pub id: String,
    /// The piece, in words.
    pub text: String,
    /// `ask`, `act` or `transform`.
    pub kind: String,
    /// The question that a person is asked.
    pub question: Option<String>,
    /// The intents whose results it needs.
    pub needs: Vec<String>,
    /// The intent that it is a part of.
    pub part_of: Option<String>,
    /// The tools that its words call for.
    pub tools: Vec<String>,
}

/// The answer of `goal graph --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalGraphView {
    /// The goal, whose id is `G`.
    pub root: String,
    /// The intents.
    pub intents: Vec<IntentView>,
    /// Their relations.
    pub edges: Vec<GoalEdgeView>,
}

/// A relation of two intents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalEdgeView {
    /// The intent.
    pub from: String,
    /// The other, or `G`.
    pub to: String,
    /// `is_subgoal_of` or `depends_on`.
    pub kind: String,
}
