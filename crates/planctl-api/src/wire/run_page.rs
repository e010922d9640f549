//! A run in part: one page of its steps, a picture of its graph.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RunState, RunView, StepState, StepView};

/// A run with one page of its steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunPage {
    /// The run, with the steps of this page alone, and without its other nodes.
    pub run: RunView,
    /// The place of the page's first step among all of them, from 1.
    pub first: usize,
    /// How many steps there are.
    pub steps_total: usize,
    /// How many of all steps are in each state, those that need somebody first.
    pub tallies: Vec<StepTally>,
    /// The last step of the plan that failed.
    pub failed: Option<StepView>,
}

/// How many steps are in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepTally {
    /// The state.
    pub state: StepState,
    /// How many, one at least.
    pub count: usize,
}

/// The graph of a run as a picture that says where each node stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PictureView {
    /// The name of the run.
    pub run: String,
    /// The plan's title.
    pub title: String,
    /// Where the run stands.
    pub state: RunState,
    /// How many nodes the graph has.
    pub nodes: usize,
    /// How many of them have a box of their own; the others are folded into boxes that stand for several.
    pub shown: usize,
    /// The picture as SVG. Its links are relative: `steps/7` is a step, `graph?at=NODE` the picture around a node. `null` where
    /// there is none.
    pub svg: Option<String>,
    /// Why there is no picture.
    pub missing: Option<String>,
}
