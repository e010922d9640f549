//! Where a run goes from a node: along the one edge its outcome takes.

use crate::effect::{AskKind, Reason};
use crate::event::Refusal;
use crate::fact::Fact;
use crate::graph::{Edge, NodeKind, Signal};
use crate::ids::NodeId;
use crate::mutant::{Mutant, planted};
use crate::run::{End, Outcome, Rehearsal, RunStatus};

use super::{Turn, dispatch, hold, pace, settle};

/// Goes on from a node that counts as met.
pub(super) fn success(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    match turn.graph.edge_for(node, Signal::Success) {
        Some(edge) => {
            let edge = edge.clone();
            follow(turn, &edge, Signal::Success)
        }
        None => hold::ask(turn, node, AskKind::Escalation, Reason::NoEdge, None),
    }
}

/// Goes along an edge.
pub(super) fn follow(turn: &mut Turn<'_>, edge: &Edge, signal: Signal) -> Result<(), Refusal> {
    turn.facts.push(Fact::EdgeFollowed { from: edge.from.clone(), to: edge.to.clone(), signal, on: edge.on });
    let target = turn.graph.node(&edge.to).ok_or_else(|| Refusal::NoSuchNode(edge.to.clone()))?;
    match &target.kind {
        NodeKind::Start => Err(Refusal::NoSuchNode(edge.to.clone())),
        NodeKind::Task(_) => {
            if signal == Signal::Success {
                pace::begin_anew(turn, &edge.to)?;
            } else {
                hand_over_failure(turn, &edge.from, &edge.to)?;
            }
            enter(turn, &edge.to, signal == Signal::Success)
        }
        NodeKind::Escalate { reason, pace_level } => {
            let (message, named) = (reason.clone(), *pace_level);
            pace::escalate(turn, &edge.from, Reason::Exhausted, message, named)
        }
        NodeKind::Exit { success: true } => {
            end_done(turn);
            Ok(())
        }
        NodeKind::Exit { success: false } => end_failed(turn, &edge.from, End::Failed),
    }
}

/// Tells the node entered over a failure path what failed before it. A step that was left out or only warned about is
/// no business of the next one, whose first prompt names no contract.
fn hand_over_failure(turn: &mut Turn<'_>, from: &NodeId, to: &NodeId) -> Result<(), Refusal> {
    let is_passed_over = matches!(turn.state(from)?.outcome(), Some(Outcome::Skipped | Outcome::Warned));
    if from != to && !is_passed_over {
        let failure = turn.run.record(from)?.failure.clone();
        turn.run.record_mut(to)?.failure = failure;
    }
    Ok(())
}

/// Enters a step. The allowance refills over a success path, not over a failure path (DESIGN 6).
pub(super) fn enter(turn: &mut Turn<'_>, node: &NodeId, refills: bool) -> Result<(), Refusal> {
    let max_visits = turn.graph.node(node).map_or(1, |node| node.max_visits);
    let contract = &turn.task(node)?.contract;
    let record = turn.run.record_mut(node)?;
    // Noted for an entry too many as well: a person may have it worked on all the same.
    if contract.rehearsal().is_off() || planted(Mutant::RehearsalSkipped) {
        record.rehearsal = None;
    } else if !record.has_been_red(contract) {
        record.rehearsal = Some(Rehearsal::Due);
    }
    if record.tally.visits >= max_visits && !planted(Mutant::VisitsUncounted) {
        return beyond_visits(turn, node);
    }
    record.tally.visits = record.tally.visits.saturating_add(1);
    if refills {
        record.tally.failed = 0;
        record.tally.granted = 0;
        record.failure = None;
        record.question = None;
        record.note = None;
    }
    let (visit, attempt) = (record.tally.visits, record.tally.attempt.next());
    let rehearses = record.awaits_rehearsal(contract);
    turn.facts.push(Fact::NodeEntered { node: node.clone(), visit, attempt, rehearses });
    dispatch::again(turn, node)
}

/// Treats one entry too many as exhausted; a chain of such entries that comes round ends with a question.
fn beyond_visits(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    if turn.exhausted_here.insert(node.clone()) {
        settle::exhausted(turn, node)
    } else {
        hold::ask(turn, node, AskKind::Escalation, Reason::Exhausted, None)
    }
}

fn end_done(turn: &mut Turn<'_>) {
    turn.disarm_stale();
    turn.run.head.status = RunStatus::Ended { end: End::Done };
    let settled = turn.run.head.settled;
    turn.facts.push(Fact::PlanCompleted { settled });
}

/// Ends the run as failed; a resume begins where it ended.
pub(super) fn end_failed(turn: &mut Turn<'_>, node: &NodeId, end: End) -> Result<(), Refusal> {
    let mut stopped = vec![node.clone()];
    for live in turn.run.live()? {
        turn.withdraw(&live)?;
        stopped.push(live);
    }
    turn.disarm_stale();
    turn.run.head.stopped_at = stopped;
    turn.run.head.status = RunStatus::Ended { end };
    turn.facts.push(Fact::PlanFailed { node: node.clone(), end });
    Ok(())
}
