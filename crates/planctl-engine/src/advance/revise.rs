//! How a run goes on: after a failure where it ended, after a pause with another revision.

use crate::contract::RedFirst;
use crate::event::Refusal;
use crate::graph::{Graph, Node, NodeKind, Signal};
use crate::ids::NodeId;
use crate::run::{Outcome, RunStatus};

use super::{Turn, route};

/// Pauses the run at a node: what else is out is taken back, and the plan is a draft again.
pub(super) fn pause(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let mut stopped = vec![node.clone()];
    for live in turn.run.live()? {
        turn.withdraw(&live)?;
        stopped.push(live);
    }
    turn.disarm_stale();
    turn.run.head.stopped_at = stopped;
    turn.run.head.status = RunStatus::Paused;
    Ok(())
}

/// Queues a paused run again with another revision, whose settled steps must be the ones that settled (P-77).
///
/// It goes on once it is admitted: another run may have the workspace by now.
pub(super) fn revised(turn: &mut Turn<'_>, changed: &[NodeId]) -> Result<(), Refusal> {
    if turn.run.head.status != RunStatus::Paused {
        return Err(Refusal::NotActive);
    }
    for node in changed {
        match turn.run.record(node)?.state.outcome() {
            Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned) => {
                return Err(Refusal::SettledStepChanged(node.clone()));
            }
            Some(Outcome::Failed) | None => {}
        }
    }
    let head = &mut turn.run.head;
    let planned = turn.graph.budget();
    // What people added to the old revision's budget is kept; a part without limit stays without.
    head.budget.tokens = planned.tokens.map(|limit| limit.max(head.budget.tokens.unwrap_or(0)));
    head.budget.micro_usd = planned.micro_usd.map(|limit| limit.max(head.budget.micro_usd.unwrap_or(0)));
    head.budget.time = planned.time.map(|limit| limit.max(head.budget.time.unwrap_or_default()));
    head.noticed = false;
    head.status = RunStatus::Queued { resuming: true };
    Ok(())
}

/// Enters the nodes at which the run stopped, each with a full allowance.
pub(super) fn go_on(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    let stopped = std::mem::take(&mut turn.run.head.stopped_at);
    let mut entered = false;
    for node in stopped.iter().filter(|node| turn.graph.task(node).is_some()) {
        route::enter(turn, node, true)?;
        entered = true;
    }
    if entered { Ok(()) } else { enter_first_unsettled(turn) }
}

/// Enters the first unsettled node on the success path, where the nodes at which the run stopped are gone.
fn enter_first_unsettled(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    let mut node = turn.graph.start().clone();
    for _ in turn.graph.nodes() {
        let Some(edge) = turn.graph.edge_for(&node, Signal::Success) else { break };
        let is_task = turn.graph.node(&edge.to).is_some_and(|to| matches!(to.kind, NodeKind::Task(_)));
        if !is_task || turn.run.record(&edge.to)?.state.outcome().is_none() {
            let edge = edge.clone();
            return route::follow(turn, &edge, Signal::Success);
        }
        node = edge.to.clone();
    }
    Err(Refusal::WrongState)
}

/// Names the nodes that differ between two revisions, or are in one of them only.
///
/// What is asked of contracts before the work, and who takes over from whom, change nothing about a step that is settled,
/// so they are no difference.
pub fn changed_nodes(old: &Graph, new: &Graph) -> Vec<NodeId> {
    let is_same =
        |node: &&Node| new.node(&node.id).is_some_and(|other| other == *node || is_alike(node, other));
    let changed_or_gone = old.nodes().iter().filter(|node| !is_same(node));
    let added = new.nodes().iter().filter(|node| old.node(&node.id).is_none());
    changed_or_gone.chain(added).map(|node| node.id.clone()).collect()
}

fn is_alike(one: &Node, other: &Node) -> bool {
    let without = |node: &Node| {
        let mut node = node.clone();
        if let NodeKind::Task(task) = &mut node.kind {
            task.contract.red_first = RedFirst::Off;
            task.pace = Vec::new();
        }
        node
    };
    without(one) == without(other)
}
