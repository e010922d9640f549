//! Wire types of graphs that branch: nodes that are no steps, the state of branches, and the choice of edges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepState;

/// A node of a run that is no step of the plan: it branches, waits for branches, decides or ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PassageView {
    /// Its node in the graph.
    pub node: String,
    /// The kind of node: `start`, `decision`, `checkpoint`, `fork`, `join`, `escalate`, `exit` …
    pub kind: String,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub state: StepState,
    /// How often the run came to it.
    pub visits: u32,
    /// Says that a person went on past this join, and nothing of what its branches did in their worktrees is in the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_out: bool,
}

/// A join that waits for branches, and where each of them stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct JoinView {
    /// The node where they meet.
    pub join: String,
    /// Its title.
    pub title: String,
    /// The node where they began; `null` where steps only say what they need.
    pub fork: Option<String>,
    /// How many it waits for: `all` of them, or `any`.
    #[schemars(extend("enum" = ["all", "any"]))]
    pub policy: String,
    /// The branches, in the author's order.
    pub branches: Vec<BranchView>,
}

/// One branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BranchView {
    /// Which, from 1.
    pub branch: u32,
    /// Where it stands.
    pub state: BranchState,
    /// The nodes of it that are under way, wait for room or for a person; of a branch that failed, where it did.
    pub at: Vec<String>,
}

/// Where a branch stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchState {
    /// It came well into its join.
    Joined,
    /// It came into its join, and failed.
    Failed,
    /// Something is done on it.
    UnderWay,
    /// It waits for a person.
    Waiting,
    /// It has not begun, or waits until there is room for it.
    Queued,
    /// The run ended before it came into its join.
    Left,
}

impl BranchState {
    /// All states, in the order in which people are told them.
    pub const ALL: [BranchState; 6] = [
        BranchState::Joined,
        BranchState::Failed,
        BranchState::UnderWay,
        BranchState::Waiting,
        BranchState::Queued,
        BranchState::Left,
    ];

    /// Returns the word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            BranchState::Joined => "joined",
            BranchState::Failed => "failed",
            BranchState::UnderWay => "under way",
            BranchState::Waiting => "waiting for you",
            BranchState::Queued => "queued",
            BranchState::Left => "not finished",
        }
    }
}

/// One choice of a way on: the edges that were looked at, and which was taken (`why --json`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ChoiceView {
    /// The place in the run's history.
    pub seq: u64,
    /// Where the run went.
    pub to: String,
    /// The signal with which the node was left: `success`, `retry`, `exhausted`.
    #[schemars(extend("enum" = ["success", "retry", "exhausted"]))]
    pub signal: String,
    /// The criterion that decided: `condition` (it held), `outcome`, `label` (preferred), `suggestion`, `weight` (or name).
    #[schemars(extend("enum" = ["condition", "outcome", "label", "suggestion", "weight"]))]
    pub by: String,
    /// The edges, in the author's order.
    pub looked: Vec<LookedView>,
}

/// One edge that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LookedView {
    /// Where it leads.
    pub to: String,
    /// When it is taken.
    #[schemars(extend("enum" = ["success", "fail", "retry", "exhaust", "always"]))]
    pub on: String,
    /// Its label.
    pub label: Option<String>,
    /// The clauses of its condition, as they were weighed.
    pub clauses: Vec<WeighedView>,
    /// The result of looking at it: `taken`, `other_outcome`, `condition_failed`, `outranked` (another came first).
    #[schemars(extend("enum" = ["taken", "other_outcome", "condition_failed", "outranked"]))]
    #[serde(rename = "came")]
    pub result: String,
}

/// One clause of a condition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WeighedView {
    /// The clause as written.
    pub clause: String,
    /// The value that was there; `null` where nothing was.
    pub found: Option<String>,
    /// Says whether it held.
    pub holds: bool,
}
