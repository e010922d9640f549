//! Which edge a run takes from a node: conditions that hold, then the table of outcomes, labels and weights.
//!
//! The order is DESIGN 6's table of outcomes joined with DOT E2 to E6: an edge whose condition holds beats every edge
//! without one; among those the heaviest, then the first of the table, then the smallest target. Edges without condition
//! are looked at in the order of the table; within one row the worker's label decides, then its suggestions, then the
//! weight, then the smallest target.
//!
//! After a failure, an exhaustion or a cap, only edges that name the failure are open (DESIGN 6, DOT ruling 2): by their word
//! (`fail`, `exhaust`, `retry`, a plain `always`), or by a condition that can't hold on a pass. The worker's label and
//! suggestions choose among the ways of a pass only.

use std::borrow::Cow;

use crate::choosing::{Choosing, Decider, Tried};
use crate::condition::{Condition, ConditionInput, Key, StepField};
use crate::graph::{Edge, Node, On, Signal};
use crate::ids::NodeId;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::Record;

use super::option::plain_label;
use super::{Transition, settle};

/// The edge that is taken.
pub(super) struct Chosen {
    pub(super) edge: Edge,
    /// Nothing where there was nothing to choose from but by the outcome.
    pub(super) choosing: Option<Box<Choosing>>,
}

/// Chooses the edge that a run takes from a node, if one fits.
pub(super) fn choose_edge(
    transition: &Transition<'_>,
    node: &NodeId,
    signal: Signal,
) -> Result<Option<Chosen>, Refusal> {
    choose_edge_settling(transition, node, signal, None)
}

/// How a node that is exhausted comes to its end.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    /// How it is about to settle; conditions see it as settled (DOT A16).
    pub(super) outcome: Outcome,
    /// Says that it was entered too often, which ends its loop: edges that lead back to it are closed.
    pub(super) is_over_visits: bool,
}

/// Chooses the edge of a node that is about to settle.
pub(super) fn choose_edge_settling(
    transition: &Transition<'_>,
    node: &NodeId,
    signal: Signal,
    ending: Option<Ending>,
) -> Result<Option<Chosen>, Refusal> {
    let edges = transition.graph.edges_from(node);
    let ends_loop = ending.is_some_and(|ending| ending.is_over_visits);
    if transition.graph.outcome_decides(node) && !ends_loop {
        let edge = transition.graph.edge_for(node, signal);
        return Ok(edge.map(|edge| Chosen { edge: edge.clone(), choosing: None }));
    }
    let looks = Looks::at(transition, node, signal, ending.map(|ending| ending.outcome))?;
    let is_open = |edge: &Edge| {
        let stays = ends_loop && transition.graph.can_loop_back(edge);
        !stays && (signal == Signal::Success || looks.names_failure(edge))
    };
    let rank = |edge: &Edge| {
        let rank = signal.conditions_in_order().iter().position(|on| *on == edge.on);
        rank.filter(|_| is_open(edge))
    };
    let mut tried = Vec::new();
    let mut holding: Vec<(&Edge, usize)> = Vec::new();
    let mut open: Vec<(&Edge, usize)> = Vec::new();
    for edge in edges {
        let mut trail = None;
        if let Some(rank) = rank(edge) {
            match &edge.when {
                Some(when) => {
                    looks.can_weigh(when)?;
                    let weighed = when.trail(&looks);
                    if weighed.holds {
                        holding.push((edge, rank));
                    }
                    trail = Some(weighed);
                }
                None => open.push((edge, rank)),
            }
        }
        tried.push(Tried { to: edge.to.clone(), on: edge.on, trail });
    }
    holding.sort_by(|(a, rank), (b, other)| {
        b.weight.cmp(&a.weight).then(rank.cmp(other)).then_with(|| a.to.cmp(&b.to))
    });
    let (edge, by) = match holding.first() {
        Some((edge, _)) => (*edge, Decider::Condition),
        None => match unconditional(open, signal, &looks) {
            Some(chosen) => chosen,
            None => return Ok(None),
        },
    };
    Ok(Some(Chosen { edge: edge.clone(), choosing: Some(Box::new(Choosing { by, tried })) }))
}

fn unconditional<'g>(
    open: Vec<(&'g Edge, usize)>,
    signal: Signal,
    looks: &Looks<'_>,
) -> Option<(&'g Edge, Decider)> {
    let first = open.iter().map(|(_, rank)| *rank).min()?;
    let mut row: Vec<&Edge> =
        open.into_iter().filter(|(_, rank)| *rank == first).map(|(edge, _)| edge).collect();
    if row.len() == 1 {
        return row.pop().map(|edge| (edge, Decider::Outcome));
    }
    if signal == Signal::Success {
        let label = plain_label(looks.preferred_label());
        let is_preferred = |edge: &&Edge| edge.label.as_deref().is_some_and(|own| plain_label(own) == label);
        if !label.is_empty()
            && let Some(edge) = row.iter().copied().find(is_preferred)
        {
            return Some((edge, Decider::Label));
        }
        for suggested in looks.suggested() {
            if let Some(edge) = row.iter().copied().find(|edge| edge.to == *suggested) {
                return Some((edge, Decider::Suggestion));
            }
        }
    }
    row.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.to.cmp(&b.to)));
    row.first().map(|edge| (*edge, Decider::Weight))
}

/// Says whether a condition holds as things stand at a node that is left.
pub(super) fn holds(
    transition: &Transition<'_>,
    node: &NodeId,
    signal: Signal,
    when: &Condition,
) -> Result<bool, Refusal> {
    let looks = Looks::at(transition, node, signal, None)?;
    looks.can_weigh(when)?;
    Ok(when.holds(&looks))
}

/// The values that a condition may look at when a node is left.
struct Looks<'t> {
    transition: &'t Transition<'t>,
    outcome: &'static str,
    node: NodeId,
    /// The node that last worked, decided or asked.
    last: NodeId,
    subject: &'t Record,
    own: &'t Record,
}

impl<'t> Looks<'t> {
    fn at<'a: 't>(
        transition: &'t Transition<'a>,
        node: &NodeId,
        signal: Signal,
        settling: Option<Outcome>,
    ) -> Result<Looks<'t>, Refusal> {
        let last = transition.last_acting_node(node)?;
        let subject = transition.run.record(&last)?;
        let own = transition.run.record(node)?;
        // A join's own outcome counts, and not that of the branch which came last.
        let settled = match (settling, own.arrivals.is_some()) {
            (Some(outcome), _) => Some(outcome),
            (None, true) => own.state.outcome(),
            (None, false) => subject.state.outcome(),
        };
        Ok(Looks { transition, outcome: word(settled, signal), node: node.clone(), last, subject, own })
    }

    /// Says whether an edge that the table opens for a failure names it: by its word, or by its condition.
    fn names_failure(&self, edge: &Edge) -> bool {
        let (On::Always, Some(when)) = (edge.on, &edge.when) else { return true };
        let exit_code = |node: &NodeId| self.transition.graph.gated(node).map(|gated| gated.contract.expect);
        let expected = |named: Option<&str>| match named {
            None => Some(exit_code(&self.last)),
            Some(name) if name == self.last.as_str() || name == self.node.as_str() => {
                Some(exit_code(&NodeId::new(name)))
            }
            Some(_) => None,
        };
        when.names_failure(&expected)
    }

    /// Returns what every run's context has beside what was noted (DOT X2); nothing of other names.
    fn built_in(&self, name: &str) -> Option<Cow<'_, str>> {
        let known = self.subject.attempt_details.as_deref();
        Some(match name {
            "outcome" => Cow::Borrowed(self.outcome),
            "preferred_label" => Cow::Borrowed(self.preferred_label()),
            "current_node" => Cow::Borrowed(self.node.as_str()),
            // A run that began anew at a routing node has done nothing yet.
            "last_stage" if self.begins_epoch() => Cow::Borrowed(self.transition.graph.start().as_str()),
            "last_stage" => Cow::Borrowed(self.last.as_str()),
            "exit_code" => Cow::Owned(known?.exit_code?.to_string()),
            "retry.remaining" => {
                let left = settle::attempts_left(self.transition, &self.last).unwrap_or(0);
                Cow::Owned(left.to_string())
            }
            "failure_reason" => Cow::Owned(self.subject.failure.as_ref()?.what.describe()),
            "failure_class" => Cow::Borrowed(self.subject.failure.as_ref()?.what.as_str()),
            _ => return None,
        })
    }

    /// Says whether the way back ends at a routing node that was entered from nowhere.
    fn begins_epoch(&self) -> bool {
        let is_routing = self.transition.graph.node(&self.last).is_some_and(Node::is_routing);
        is_routing && self.subject.entered_from.is_none() && self.subject.arrivals.is_none()
    }

    /// Checks that all nodes which a condition names are loaded.
    fn can_weigh(&self, when: &Condition) -> Result<(), Refusal> {
        for node in nodes_named(when) {
            self.transition.run.record(&node)?;
        }
        Ok(())
    }

    fn suggested(&self) -> &[NodeId] {
        self.subject.attempt_details.as_ref().map_or(&[], |known| known.suggested.as_slice())
    }
}

/// Returns the nodes that a condition names.
pub(super) fn nodes_named(when: &Condition) -> impl Iterator<Item = NodeId> {
    when.clauses.iter().filter_map(|clause| match &clause.key {
        Key::Step { node, .. } => Some(NodeId::new(node.as_str())),
        Key::Context(name) | Key::Variable(name) => name.strip_prefix(RETRY_COUNT).map(NodeId::new),
        Key::Outcome | Key::PreferredLabel => None,
    })
}

/// Begins the name under which a node's retries are known to conditions (DOT R5).
const RETRY_COUNT: &str = "internal.retry_count.";

/// Says how a node ended, in the words of conditions (DOT X3).
fn word(settled: Option<Outcome>, signal: Signal) -> &'static str {
    match (settled, signal) {
        (Some(Outcome::Warned), _) => "partial_success",
        (Some(Outcome::Skipped), _) => "skipped",
        (_, Signal::Success) => "success",
        (_, Signal::Retry) => "retry",
        (_, Signal::Exhausted) => "fail",
    }
}

impl ConditionInput for Looks<'_> {
    fn outcome(&self) -> &str {
        self.outcome
    }

    fn preferred_label(&self) -> &str {
        self.subject.attempt_details.as_ref().and_then(|known| known.label.as_deref()).unwrap_or_default()
    }

    fn context(&self, name: &str) -> Option<Cow<'_, str>> {
        if let Some(node) = name.strip_prefix(RETRY_COUNT) {
            let tally = self.transition.run.record(&NodeId::new(node)).ok()?.tally;
            return Some(Cow::Owned(tally.failed.to_string()));
        }
        self.built_in(name).or_else(|| {
            let noted = self.own.context.get(name).or_else(|| self.transition.graph.context().get(name));
            noted.map(|value| Cow::Borrowed(value.as_str()))
        })
    }

    fn step(&self, node: &str, field: StepField) -> Option<Cow<'_, str>> {
        let record = self.transition.run.record(&NodeId::new(node)).ok()?;
        if record.tally.visits == 0 {
            return None;
        }
        let known = record.attempt_details.as_deref();
        Some(match field {
            StepField::Outcome => Cow::Borrowed(match record.state.outcome() {
                Some(outcome) => outcome.status_word(),
                None => record.failure.as_ref().map(|_| "fail")?,
            }),
            StepField::ExitCode => Cow::Owned(known?.exit_code?.to_string()),
            StepField::Output => Cow::Borrowed(known?.output.as_deref()?),
            StepField::Label => Cow::Borrowed(known?.label.as_deref()?),
            StepField::Attempts => Cow::Owned(record.tally.attempt.to_string()),
        })
    }
}
