//! The findings of an audit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of an audit: the answer of `audit --json`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditView {
    /// The runs that were checked.
    pub runs: Vec<AuditedRun>,
    /// Names the page of older runs, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl AuditView {
    /// Says whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.runs.iter().all(|run| run.problems.is_empty())
    }
}

/// The result of an audit of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditedRun {
    /// The run's name.
    pub run: String,
    /// The path of its workspace, where all runs were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Rows of history that were checked.
    pub events: u64,
    /// The hash of the newest row of its chain.
    pub head: Option<String>,
    /// The person who approved what it executes, or the policy: `policy:NAME`.
    #[serde(default)]
    pub approved_by: Option<String>,
    /// The note of that approval; of a policy's, who handed the plan in and what the policy allows.
    #[serde(default)]
    pub approval_note: Option<String>,
    /// Its steps that passed, each with what that rests on.
    #[serde(default)]
    pub passed: Vec<AuditedStep>,
    /// The problems, one line each.
    pub problems: Vec<String>,
}

/// A step that passed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditedStep {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// `proved` by its contract, `confirmed` by a person, `judged` by a model alone, or `observed` by the agent's own program.
    #[schemars(extend("enum" = ["observed", "judged", "confirmed", "proved"]))]
    pub grade: String,
}
