//! The output of workers and contracts while they work, and the prompts of agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The output of a run after a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutputView {
    /// The output, oldest first.
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
    /// The process that printed it: `worker` or `contract`.
    #[schemars(extend("enum" = ["worker", "contract"]))]
    pub from: String,
    /// The text, with its terminal sequences.
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

/// The prompt of one attempt.
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
