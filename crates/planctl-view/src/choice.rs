//! Why a run took one edge and not another (DOT E15).

use planctl_engine::condition::Weighed;
use planctl_engine::{Choosing, Decider, Edge, Fact, Graph, NodeId, On, Signal, Tried};

/// One choice of a way on, with every edge that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The node that was left.
    pub from: NodeId,
    /// Where the run went.
    pub to: NodeId,
    /// The signal with which the node was left.
    pub signal: Signal,
    /// The criterion that decided.
    pub by: Decider,
    /// The edges, in the author's order.
    pub looked: Vec<Looked>,
}

/// One edge that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Looked {
    /// Where it leads.
    pub to: NodeId,
    /// When it is taken.
    pub on: On,
    /// Its label, where the graph still has it.
    pub label: Option<String>,
    /// The clauses of its condition as they were weighed.
    pub clauses: Vec<Weighed>,
    /// The result of looking at it.
    pub result: EdgeResult,
}

/// The result of looking at an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeResult {
    /// It was taken.
    Taken,
    /// It is for another outcome.
    OtherOutcome,
    /// Its condition did not hold.
    ConditionFailed,
    /// It would have fitted, and another came first.
    Outranked,
}

/// Says of an edge that was followed which others there were; nothing of other facts.
///
/// Where nothing but the outcome decided, history keeps no trail, and the graph tells which edges there were.
pub fn choice(graph: &Graph, fact: &Fact) -> Option<Choice> {
    let Fact::EdgeFollowed { from, to, signal, on, label, choosing } = fact else { return None };
    let edges = graph.edges_from(from);
    let taken = |edge: &Edge| edge.to == *to && edge.on == *on && edge.label == *label;
    let (by, tried): (Decider, Vec<Tried>) = match choosing.as_deref() {
        Some(Choosing { by, tried }) => (*by, tried.clone()),
        None if edges.iter().any(taken) => {
            let plain = |edge: &Edge| Tried { to: edge.to.clone(), on: edge.on, trail: None };
            (Decider::Outcome, edges.iter().map(plain).collect())
        }
        // A way that no edge of the graph says: back to what an unmet goal asks for.
        None => {
            let only = Tried { to: to.clone(), on: *on, trail: None };
            (Decider::Outcome, vec![only])
        }
    };
    let is_known = tried.len() == edges.len()
        && tried.iter().zip(edges).all(|(tried, edge)| tried.to == edge.to && tried.on == edge.on);
    let labels: Vec<Option<String>> = match is_known {
        true => edges.iter().map(|edge| edge.label.clone()).collect(),
        false => vec![None; tried.len()],
    };
    let mut is_found = false;
    let looked = tried.into_iter().zip(labels).map(|(tried, own)| {
        let fits = signal.conditions_in_order().contains(&tried.on);
        let holds = tried.trail.as_ref().is_none_or(|trail| trail.holds);
        let is_it = !is_found && holds && tried.to == *to && tried.on == *on && (!is_known || own == *label);
        is_found |= is_it;
        let result = match (is_it, fits, holds) {
            (true, _, _) => EdgeResult::Taken,
            (false, false, _) => EdgeResult::OtherOutcome,
            (false, true, false) => EdgeResult::ConditionFailed,
            (false, true, true) => EdgeResult::Outranked,
        };
        let clauses = tried.trail.map(|trail| trail.clauses).unwrap_or_default();
        Looked { to: tried.to, on: tried.on, label: own, clauses, result }
    });
    Some(Choice { from: from.clone(), to: to.clone(), signal: *signal, by, looked: looked.collect() })
}

impl EdgeResult {
    /// Returns the word that programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            EdgeResult::Taken => "taken",
            EdgeResult::OtherOutcome => "other_outcome",
            EdgeResult::ConditionFailed => "condition_failed",
            EdgeResult::Outranked => "outranked",
        }
    }
}

/// Returns the word for a criterion.
pub fn decider_word(by: Decider) -> &'static str {
    match by {
        Decider::Condition => "condition",
        Decider::Outcome => "outcome",
        Decider::Label => "label",
        Decider::Suggestion => "suggestion",
        Decider::Weight => "weight",
    }
}
