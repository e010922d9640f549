//! A goal in pieces, and the graph of them.

use crate::wire::draft::{DraftRevisionView, DraftSpentView};
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
    /// The usage of breaking it up.
    pub spent: DraftSpentView,
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalGraphView {
    /// The goal, whose id is `G`.
    pub root: String,
    /// The intents.
    pub intents: Vec<IntentView>,
    /// Their relations.
    pub edges: Vec<GoalEdgeView>,
    /// The usage of breaking it up.
    pub spent: DraftSpentView,
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

/// The answer of `goal resolve --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalResolveView {
    /// The goal.
    pub goal: String,
    /// `ok`, `warning`, `invalid`, or `open` where a person has to answer first.
    pub outcome: String,
    /// The plan that was written; null where there is none.
    pub file: Option<String>,
    /// The steps, in order.
    pub steps: Vec<GoalStepView>,
    /// How a capability was looked for, intent by intent.
    pub resolved: Vec<GoalFoundView>,
    /// The questions that are open; `--answer ID=…` answers one.
    pub asks: Vec<GoalAskView>,
    /// Errors and warnings.
    pub findings: Vec<GoalFindingView>,
    /// The usage so far, of breaking it up, too.
    pub spent: DraftSpentView,
    /// The revision of a run that a mended plan was offered as; null where no run waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<DraftRevisionView>,
}

/// A step of a resolved goal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalStepView {
    /// Its number in the plan.
    pub number: u32,
    /// The intent that it serves.
    pub intent: String,
    /// Further intents that are part of it.
    pub merged: Vec<String>,
    /// The intent in words.
    pub text: String,
    /// `ask`, `call`, `write`, `run`, `show` for a result that is there, or `sub_plan` for a plan of the library.
    pub kind: String,
    /// The question, the task, the command or the plan; null for a call.
    pub words: Option<String>,
    /// The capability that is called.
    pub capability: Option<String>,
    /// The strategy that found it.
    pub source: Option<String>,
    /// How well it serves, from 0 to 1.
    pub score: Option<f64>,
    /// The effects that it declares; null where it declares nothing.
    pub effects: Option<Vec<String>>,
    /// Its arguments.
    pub arguments: Vec<GoalArgumentView>,
    /// The numbers of the steps that come before it.
    pub needs: Vec<u32>,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalArgumentView {
    /// The parameter.
    pub parameter: String,
    /// Its value; null where it is the result of a step.
    pub value: Option<serde_json::Value>,
    /// The number of the step whose result it is.
    pub result_of: Option<u32>,
    /// Where it comes from, in words.
    pub why: String,
}

/// How a capability was looked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalFoundView {
    /// The intent.
    pub intent: String,
    /// The strategies that were tried, in order.
    pub tried: Vec<GoalTriedView>,
    /// How many entries of the index were looked at.
    pub looked_at: u64,
}

/// A strategy that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalTriedView {
    /// `hint`, `history`, `catalog`, `mcp` or `semantic`.
    pub strategy: String,
    /// Its outcome, a sentence.
    pub why: String,
    /// The best that it found.
    pub candidates: Vec<GoalCandidateView>,
}

/// A capability that was considered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalCandidateView {
    /// Its full name.
    pub capability: String,
    /// How well it serves, from 0 to 1.
    pub score: f64,
    /// The reasons against it; empty where there are none.
    pub why: String,
}

/// An open question of a resolved goal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalAskView {
    /// The id that an answer names.
    pub id: String,
    /// The number of the ask, where it waits in the inbox, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<u64>,
    /// The intent.
    pub intent: String,
    /// `alternatives`, `implementation`, `discovery`, `command`, `hint` or `synthesis_approval`.
    pub kind: String,
    /// The question.
    pub text: String,
    /// The answers to choose from by number; words are the answer where there are none.
    pub options: Vec<String>,
}

/// A finding about a resolved goal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalFindingView {
    /// The intent.
    pub intent: String,
    /// Says that nothing can run as it is.
    pub is_error: bool,
    /// The finding, a sentence.
    pub message: String,
}

/// The answer of `goal verify --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalVerifyView {
    /// The goal.
    pub goal: String,
    /// `ok`, `warning` or `invalid`.
    pub outcome: String,
    /// Errors and warnings.
    pub findings: Vec<GoalFindingView>,
}

/// The answer of `goal stats --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalStatsView {
    /// By the strategy that found the capability.
    pub strategies: Vec<GoalTallyView>,
    /// By the type of intent: what its verb does.
    pub intent_types: Vec<GoalTallyView>,
}

/// How often something served, and how that went.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalTallyView {
    /// The strategy, or the type.
    pub name: String,
    /// How many intents it resolved.
    pub resolved: u32,
    /// How many of their steps passed.
    pub passed: u32,
    /// How many of their steps failed.
    pub failed: u32,
    /// The share of those that ended which passed, from 0 to 1; null where none ended.
    pub rate: Option<f64>,
}
