//! Ways between nodes, and what they are taken on.

use serde::{Deserialize, Serialize};

use super::Carry;
use crate::condition::Condition;
use crate::ids::NodeId;

/// A way from one node to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Where it leaves.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// When it is taken.
    pub on: On,
    /// A further condition that must hold; an edge without one yields to an edge whose condition holds (DOT E6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// Its name: the label that a worker may prefer and a person chooses (DOT E3, H1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Decides between edges that are alike otherwise; the heavier one is taken (DOT E2, E5).
    #[serde(default, skip_serializing_if = "is_weightless")]
    pub weight: i32,
    /// Has the run begin anew where it leads, as another epoch (DOT E12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Box<Restart>>,
    /// The part of the run's story that the agent at its end is told, where the edge sets one (DOT A18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Box<Carry>>,
}

/// How a run begins anew.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Names of the context that the next epoch keeps; all others are forgotten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_weightless(weight: &i32) -> bool {
    *weight == 0
}

impl Edge {
    /// Returns the plain edge: no condition, no label, no weight, nothing else said of it.
    pub fn new(from: impl Into<NodeId>, to: impl Into<NodeId>, on: On) -> Edge {
        Edge {
            from: from.into(),
            to: to.into(),
            on,
            when: None,
            label: None,
            weight: 0,
            restart: None,
            carry: None,
        }
    }
}

/// The condition of an edge (row G-09; the table of choice is [`Signal`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The gate passed, or a person let it count as met.
    Success,
    /// All attempts failed, and nothing is said about exhaustion.
    Fail,
    /// An attempt failed and the allowance lasts.
    Retry,
    /// All attempts failed.
    Exhaust,
    /// Nothing else fits.
    Always,
}

impl On {
    /// Returns the word that graphs are written with.
    pub fn as_str(self) -> &'static str {
        match self {
            On::Success => "success",
            On::Fail => "fail",
            On::Retry => "retry",
            On::Exhaust => "exhaust",
            On::Always => "always",
        }
    }
}

/// The result of a node's attempt, as far as edges are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The node settled as met.
    Success,
    /// An attempt failed and the allowance lasts.
    Retry,
    /// An attempt failed and the allowance is used up.
    Exhausted,
}

impl Signal {
    /// Returns the edge conditions to look for, first to last (DESIGN 6, X-07).
    pub fn conditions_in_order(self) -> &'static [On] {
        match self {
            Signal::Success => &[On::Success, On::Always],
            Signal::Retry => &[On::Retry],
            Signal::Exhausted => &[On::Exhaust, On::Fail, On::Always],
        }
    }
}
