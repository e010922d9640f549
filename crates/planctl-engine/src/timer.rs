//! The timers of a run.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// Names one timer of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerId {
    /// The run stands still for too long.
    Stale,
    /// The time that the budget allows is over.
    Budget,
    /// Nobody answered what this node asks in time.
    Answer(NodeId),
}

impl TimerId {
    /// Returns the name it is stored under.
    pub fn stored_name(&self) -> Cow<'static, str> {
        match self {
            TimerId::Stale => Cow::Borrowed("stale"),
            TimerId::Budget => Cow::Borrowed("budget"),
            TimerId::Answer(node) => Cow::Owned(format!("answer {node}")),
        }
    }

    /// Reads the name it is stored under.
    pub fn parse(word: &str) -> Option<TimerId> {
        match word.split_once(' ') {
            None if word == "budget" => Some(TimerId::Budget),
            None => (word == "stale").then_some(TimerId::Stale),
            Some(("answer", node)) => Some(TimerId::Answer(NodeId::new(node))),
            Some(_) => None,
        }
    }
}
