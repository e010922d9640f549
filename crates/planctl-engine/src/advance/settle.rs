//! How an attempt, and at last a node, comes to its end.

use std::time::Duration;

use crate::contract::Excerpt;
use crate::effect::Reason;
use crate::event::Refusal;
use crate::fact::Fact;
use crate::graph::{Graph, NodeKind, Signal};
use crate::ids::{Actor, NodeId};
use crate::mutant::{Mutant, planted};
use crate::run::{Failing, Failure, NodeState, Outcome};

use super::{Turn, dispatch, pace, route};

/// Who settled a node by hand, and why.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) by: &'a Actor,
    pub(super) note: Option<&'a str>,
}

/// Settles a node for this visit.
pub(super) fn settle(
    turn: &mut Turn<'_>,
    node: &NodeId,
    outcome: Outcome,
    said: Option<Said<'_>>,
) -> Result<(), Refusal> {
    turn.set(node, NodeState::Settled { outcome })?;
    turn.facts.push(Fact::NodeSettled {
        node: node.clone(),
        outcome,
        by: said.map(|said| said.by.clone()),
        note: said.and_then(|said| said.note).map(str::to_owned),
    });
    Ok(())
}

/// Spends an attempt: the node is tried again while its allowance lasts, and is exhausted after (DESIGN 6).
///
/// `is_last` says that no retry shall follow, since the worker itself gave up.
pub(super) fn attempt_failed(
    turn: &mut Turn<'_>,
    node: &NodeId,
    failure: Failure,
    is_last: bool,
) -> Result<(), Refusal> {
    let record = turn.run.record_mut(node)?;
    record.failure = Some(Box::new(failure));
    record.tally.failed = record.tally.failed.saturating_add(1);
    let next = record.tally.attempt.next();
    let left = attempts_left(turn, node)?;
    if left == 0 || is_last || planted(Mutant::RetriesIgnored) {
        return exhausted(turn, node);
    }
    if let Some(edge) = turn.graph.edge_for(node, Signal::Retry) {
        let edge = edge.clone();
        turn.set(node, NodeState::Pending)?;
        return route::follow(turn, &edge, Signal::Retry);
    }
    let left = u16::try_from(left - 1).unwrap_or(u16::MAX);
    turn.facts.push(Fact::RetryTriggered { node: node.clone(), attempt: next, left });
    dispatch::again(turn, node)
}

/// Returns how many attempts a step has left.
pub(super) fn attempts_left(turn: &Turn<'_>, node: &NodeId) -> Result<u32, Refusal> {
    let tally = turn.run.record(node)?.tally;
    let mut allowance = 1 + u32::from(turn.task(node)?.max_retries) + u32::from(tally.granted);
    if planted(Mutant::AllowanceOffByOne) {
        allowance += 1;
    }
    Ok(allowance.saturating_sub(u32::from(tally.failed)))
}

/// Follows the edge of an exhausted node, or asks a person where none fits.
pub(super) fn exhausted(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let Some(edge) = exhausted_edge(turn.graph, node) else {
        return pace::escalate(turn, node, Reason::NoEdge, None, None);
    };
    let edge = edge.clone();
    let asks = turn.graph.node(&edge.to).is_some_and(|to| matches!(to.kind, NodeKind::Escalate { .. }));
    if !asks {
        settle(turn, node, turn.task(node)?.lapse, None)?;
    }
    route::follow(turn, &edge, Signal::Exhausted)
}

fn exhausted_edge<'g>(graph: &'g Graph, node: &NodeId) -> Option<&'g crate::graph::Edge> {
    if planted(Mutant::EdgeOrderSwapped) {
        let edges = graph.edges_from(node);
        if let Some(edge) = edges.iter().find(|edge| edge.on == crate::graph::On::Fail) {
            return Some(edge);
        }
    }
    graph.edge_for(node, Signal::Exhausted)
}

/// Describes the newest attempt's failure where no gate ran.
pub(super) fn failure_without_gate(
    turn: &Turn<'_>,
    node: &NodeId,
    what: Failing,
) -> Result<Failure, Refusal> {
    Ok(Failure {
        attempt: turn.run.record(node)?.tally.attempt,
        what,
        duration: Duration::ZERO,
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
    })
}
