//! Guided mode: the work of an interactive agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::RunView;

/// The work of a session: the run where it stands, and the steps that the session works on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionView {
    /// The run.
    pub run: RunView,
    /// The steps that the session works on; several where branches go side by side.
    pub steps: Vec<SessionStep>,
}

/// A step that a session works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionStep {
    /// The item: one for each attempt.
    pub item: String,
    /// The step's number.
    pub step: u32,
    /// Its title.
    pub title: String,
    /// Which try.
    pub attempt: u16,
    /// How many tries it has.
    pub attempts_max: u16,
    /// The folder to work in.
    pub workspace: String,
    /// The task, with what failed before.
    pub prompt: String,
}
