//! Why a run took one edge and not another, as history keeps it (DOT E15).

use serde::{Deserialize, Serialize};

use crate::condition::Trail;
use crate::graph::On;
use crate::ids::NodeId;

/// Why an edge was taken and not another (DOT E15).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Choosing {
    /// The criterion that decided.
    pub by: Decider,
    /// The edges that were looked at, in the author's order.
    pub tried: Vec<Tried>,
}

/// The criterion that decided between edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// Its condition held.
    Condition,
    /// The outcome alone.
    Outcome,
    /// The label that the worker or the person named.
    Label,
    /// The worker suggested its target.
    Suggestion,
    /// It was the heaviest, or its target the smallest of equals.
    Weight,
}

/// An edge that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// Where it leads.
    pub to: NodeId,
    /// When it is taken.
    pub on: On,
    /// How its condition was weighed; nothing where it has none, or is for another outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<Trail>,
}
