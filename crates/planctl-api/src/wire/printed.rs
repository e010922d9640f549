//! What workers and contracts print while they work, and what agents were told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was printed of a run after a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutputView {
    /// What was printed, in its order.
    pub lines: Vec<OutputLine>,
    /// The place to go on from.
    pub next: u64,
}

/// Whole lines that one process printed: a line of `plan logs --follow --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutputLine {
    /// The step's number; `null` at a node that is no step.
    pub step: Option<u32>,
    /// The node.
    pub node: String,
    /// Which entering of the node.
    pub visit: u16,
    /// Which try.
    pub attempt: u16,
    /// Who printed it: `worker` or `contract`.
    #[schemars(extend("enum" = ["worker", "contract"]))]
    pub from: String,
    /// What it printed, with its terminal sequences.
    pub text: String,
}

/// The prompts of a run that were delivered from this machine: the answer of `plan logs --prompt --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PromptList {
    /// The run's name.
    pub run: String,
    /// The prompts, oldest first.
    pub prompts: Vec<PromptView>,
}

/// What an agent was told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PromptView {
    /// When it was delivered, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The step's number.
    pub step: u32,
    /// Its title.
    pub title: String,
    /// Which entering of the node.
    pub visit: u16,
    /// Which try.
    pub attempt: u16,
    /// The role that got it.
    pub role: String,
    /// The prompt, byte for byte as it was delivered.
    pub prompt: String,
}
