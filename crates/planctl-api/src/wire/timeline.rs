//! A run over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunState;

/// The newest part of a run over time: for each step that was worked on, what happened when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimelineView {
    /// The name of the run.
    pub run: String,
    /// The plan's title.
    pub title: String,
    /// Where the run stands.
    pub state: RunState,
    /// When the first bar begins, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub from: String,
    /// How long it is from there to the run's end, or to this moment.
    pub seconds: f64,
    /// Says that the run has an older part, too.
    pub is_cut: bool,
    /// The steps, those that began first before the others.
    pub lanes: Vec<TimelineLane>,
}

/// One step, or another node, over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimelineLane {
    /// Its node in the graph.
    pub node: String,
    /// Its number in the plan, where it is a step.
    pub number: Option<u32>,
    /// Its title.
    pub title: String,
    /// Its bars, by their beginning.
    pub bars: Vec<TimelineBar>,
}

/// Something that took time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimelineBar {
    /// Its kind.
    pub kind: BarKind,
    /// The attempt that it is a part of.
    pub attempt: Option<u32>,
    /// How long after the timeline's beginning it began.
    pub from_seconds: f64,
    /// How long it took.
    pub seconds: f64,
    /// How it ended: an outcome, a verdict or an answer; `null` where planctl has no word for it.
    pub outcome: Option<String>,
    /// Says that it did not end well.
    pub failed: bool,
    /// Says that it is not over.
    pub is_open: bool,
}

/// The kind of a bar.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BarKind {
    /// A whole attempt, from its dispatch to its verdict.
    Attempt,
    /// The wait for a worker.
    Queued,
    /// The work of an agent.
    Work,
    /// A contract, or the command of a call.
    Gate,
    /// A contract that was run before the work.
    Rehearsal,
    /// The wait for a person.
    Ask,
}
