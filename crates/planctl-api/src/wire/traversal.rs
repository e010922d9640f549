//! Where a run is on its way through its graph, as seed 2 and checkpoints of DOT have it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SpentView;

/// Where a run is: the answer of `plan status RUN --traversal --json`, with the names of seed 2.
///
/// A turn is one accepted input of the run: a report, a verdict, an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TraversalView {
    /// The run's name.
    pub run: String,
    /// The plan's path.
    pub plan_id: String,
    /// The plan's title.
    pub plan_name: String,
    /// `graph`, or `linear` where steps follow each other and nothing else.
    #[schemars(extend("enum" = ["graph", "linear"]))]
    pub mode: String,
    /// Where something is done: of several nodes the one that was entered last.
    pub current_node: Option<String>,
    /// The nodes that were entered.
    pub visited: BTreeMap<String, VisitedView>,
    /// The nodes in the order in which they were entered or tried again, the newest 50.
    pub path: Vec<String>,
    /// How many nodes the graph has.
    pub total_nodes: u32,
    /// How many of them are over and count as met, without the start.
    pub completed_nodes: u32,
    /// The turn at which the run began.
    pub started_turn: Option<u32>,
    /// The newest turn.
    pub turn: u32,
    /// Turns since the run last came to a node.
    pub turns_since_transition: u32,
    /// After how many reports without getting further a person is asked, where its source counts them.
    pub stale_after_turns: Option<u32>,
    /// After how many seconds without progress a person is asked.
    pub stale_after_seconds: Option<u64>,
    /// Reports of workers since the run got further, where its source counts them; else as `turns_since_transition`.
    pub turns_since_progress: u32,
    /// The step of the current node, counted from 0, by its older name.
    pub current_step: Option<u32>,
    /// How many steps the plan has, by its older name.
    pub total_steps: u32,
    /// The newest 50 events, in their order.
    pub events: Vec<TraversalEvent>,
}

/// A node that was entered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VisitedView {
    /// How it ended: `success`, `fail`, `partial_success`, `skipped`; until then `pending`.
    #[schemars(extend("enum" = ["success", "fail", "partial_success", "skipped", "pending", null]))]
    pub outcome: Option<String>,
    /// How often it was tried.
    pub attempts: u16,
    /// How often it was entered.
    pub visits: u16,
}

/// One event, with the names of seed 2 (G-35).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TraversalEvent {
    /// `plan_activated`, `node_entered`, `node_verified`, `retry_triggered`, `edge_followed`, `plan_completed`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The turn that it followed from.
    pub turn: u32,
    /// The node it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The plan's path, of an activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Where an edge leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When it is taken: `on_success`, `on_fail`, `on_retry`, `on_exhaust`, `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The verified result, or the outcome of the node: `success`, `fail`, `partial_success`, `skipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// The checkpoint that a run is resumed from: `checkpoint.json` of `plan export`, with the names of DOT's checkpoints (K1).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CheckpointView {
    /// The run's name.
    pub run: String,
    /// When it was read, by the database's clock, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// The digest of the revision that it executes (K5).
    pub graph: String,
    /// The node that was over last.
    pub current_node: Option<String>,
    /// The nodes that are over and count as met, those that were last at the end.
    pub completed_nodes: Vec<String>,
    /// How each node ended that did (K3).
    pub node_outcomes: BTreeMap<String, String>,
    /// How often each node failed since its allowance was last refilled.
    pub node_retries: BTreeMap<String, u16>,
    /// How often each node was entered (K4).
    pub node_visits: BTreeMap<String, u16>,
    /// How often the run began anew.
    pub restarts: u16,
    /// The amounts that it has used (K4).
    pub spent: SpentView,
    /// The values that conditions can look at where the run is.
    pub context: BTreeMap<String, String>,
    /// The newest 50 events, in sentences.
    pub logs: Vec<String>,
}

/// Which nodes may be worked on at once: the answer of `graph parallel --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ParallelView {
    /// The file.
    pub file: String,
    /// The forks, by name.
    pub forks: Vec<SideBySide>,
}

/// A fork and its branches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SideBySide {
    /// The fork.
    pub fork: String,
    /// Where its branches meet, where it names that.
    pub join: Option<String>,
    /// The nodes of each branch that lie on no other; nodes of two branches may be under way at once.
    pub branches: Vec<Vec<String>>,
}
