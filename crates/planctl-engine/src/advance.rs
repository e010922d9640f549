//! The one door: what one event does to one run.

use crate::effect::Effect;
use crate::event::{Event, Refusal};
use crate::fact::Fact;
use crate::graph::Graph;
use crate::run::{Run, Scope};
use crate::time::Timestamp;

/// What one event did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    /// The run after it.
    pub run: Run,
    /// Rows to write.
    pub effects: Vec<Effect>,
    /// What followed, for people to read.
    pub facts: Vec<Fact>,
}

/// Decides what one event does to one run.
pub fn advance(_graph: &Graph, _run: &Run, _event: &Event, _now: Timestamp) -> Result<Advance, Refusal> {
    Err(Refusal::NotActive)
}

/// Names the records that an event may read or change, as the best guess before anything is loaded.
pub fn touched(_graph: &Graph, _event: &Event) -> Scope {
    Scope::All
}
