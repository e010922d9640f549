//! How a run goes on: after a failure where it ended, after a pause with another revision.

use std::collections::BTreeSet;

use crate::budget::Budget;
use crate::contract::RedFirst;
use crate::event::Refusal;
use crate::graph::{Graph, Node, NodeKind};
use crate::ids::NodeId;
use crate::run::{Outcome, RunStatus};

use super::{Turn, dispatch, join, route};

/// Pauses the run: all items are withdrawn. It stopped at these nodes, and at those that were under way.
pub(super) fn pause(turn: &mut Turn<'_>, mut stopped: Vec<NodeId>) -> Result<(), Refusal> {
    for live in turn.run.live_nodes()? {
        turn.withdraw(&live)?;
        stopped.push(live);
    }
    turn.disarm_stale();
    turn.run.head.stopped_at = stopped;
    turn.run.head.status = RunStatus::Paused;
    Ok(())
}

/// Queues a run again; one that was paused before it had the workspace has yet to begin.
pub(super) fn enqueue_run(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    let resuming = turn.state(turn.graph.start())?.outcome().is_some();
    turn.run.head.status = RunStatus::Queued { resuming };
    Ok(())
}

/// Lets the run go on with a node that passed; it and everything behind it have a full allowance. Refuses one that no contract
/// judged as passed, or beside which others go on: the join behind it counts what came of each branch.
pub(super) fn reopen(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let graph = turn.graph;
    let is_judged = graph.gated(node).is_some_and(|gated| !gated.contract.is_none());
    if !is_judged || graph.is_on_a_branch(node) || turn.state(node)?.outcome() != Some(Outcome::Passed) {
        return Err(Refusal::NotRepeatable(node.clone()));
    }
    for behind in graph.branch_from(node, |_| false) {
        let tally = turn.run.record(behind)?.tally;
        if tally.failed > 0 || tally.granted > 0 {
            let tally = &mut turn.run.record_mut(behind)?.tally;
            (tally.failed, tally.granted) = (0, 0);
        }
    }
    turn.run.head.stopped_at = vec![node.clone()];
    Ok(())
}

/// Queues a paused run again with another revision, whose settled steps must be the ones that settled (P-77).
///
/// It goes on once it is admitted: another run may have the workspace by now.
pub(super) fn apply_revision(
    turn: &mut Turn<'_>,
    changed: &[NodeId],
    budget_max: Budget,
) -> Result<(), Refusal> {
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
        // Another text asks for other work.
        if turn.run.record(node)?.unchecked.is_some() {
            turn.run.record_mut(node)?.unchecked = None;
        }
    }
    let head = &mut turn.run.head;
    let planned = turn.graph.budget().within(budget_max);
    // Amounts that people added to the old revision's budget are kept; a part without limit stays without.
    head.budget.tokens = planned.tokens.map(|limit| limit.max(head.budget.tokens.unwrap_or(0)));
    head.budget.micro_usd = planned.micro_usd.map(|limit| limit.max(head.budget.micro_usd.unwrap_or(0)));
    head.budget.time = planned.time.map(|limit| limit.max(head.budget.time.unwrap_or_default()));
    head.noticed = false;
    enqueue_run(turn)
}

/// Enters the nodes at which the run stopped, each with a full allowance.
pub(super) fn enter_stopped_nodes(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    let stopped = std::mem::take(&mut turn.run.head.stopped_at);
    let mut entered = false;
    for node in stopped.iter().filter(|node| turn.graph.node(node).is_some()) {
        turn.dead_end = Some(node.clone());
        reenter_stopped_node(turn, node)?;
        entered = true;
    }
    if entered { Ok(()) } else { replay(turn) }
}

/// Enters the node at which something can be done for one at which the run stopped.
pub(super) fn reenter_stopped_node(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    let mut open = vec![node.clone()];
    while let Some(id) = open.pop() {
        let target = turn.graph.node(&id).ok_or_else(|| Refusal::NoSuchNode(id.clone()))?;
        if !seen.insert(id.clone()) || turn.state(&id)?.is_live() {
            continue;
        }
        if let Some(closed) = fork_to_enter(turn, &id)? {
            enter_fork(turn, &closed)?;
            continue;
        }
        match &target.kind {
            NodeKind::Task(_) if turn.run.record(&id)?.unchecked.is_some() => {
                dispatch::dispatch_node(turn, &id)?
            }
            NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::Human(_) | NodeKind::SubPlan(_) => {
                route::enter(turn, &id, true)?;
            }
            NodeKind::Decision(choice) if choice.command.is_some() => route::enter(turn, &id, true)?,
            NodeKind::Checkpoint => route::enter(turn, &id, true)?,
            NodeKind::Join(_) if join::awaits_merge(turn, &id)? => dispatch::dispatch_node(turn, &id)?,
            NodeKind::Join(_) => open.extend(join::reopen(turn, &id)?),
            NodeKind::Fork(fork) if fork.in_worktree && turn.state(&id)?.outcome().is_none() => {
                dispatch::dispatch_node(turn, &id)?;
            }
            NodeKind::Start => route::leave_on_success(turn, &id)?,
            // The way back leads out of the branch, to work that is done: it goes on from here.
            NodeKind::Decision(_) | NodeKind::Fork(_) if begins_a_branch(turn, &id)? => {
                dispatch::dispatch_node(turn, &id)?;
            }
            NodeKind::Decision(_) | NodeKind::Fork(_) | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => {
                open.extend(
                    turn.run.record(&id)?.entered_from.as_ref().map(|entered_from| entered_from.from.clone()),
                );
            }
        }
    }
    Ok(())
}

/// Says whether nobody worked between a routing node and the fork that entered it, whose join waits.
fn begins_a_branch(turn: &Turn<'_>, node: &NodeId) -> Result<bool, Refusal> {
    Ok(turn.run.record(node)?.entered_from.is_some() && turn.last_acting_node(node)? == *node)
}

/// Returns the fork to enter before anybody works at a node: the outermost whose worktrees were not made, or are merged already.
fn fork_to_enter(turn: &Turn<'_>, node: &NodeId) -> Result<Option<NodeId>, Refusal> {
    let Some(branch) = turn.graph.worktree_branch(node) else { return Ok(None) };
    if let Some(outer) = fork_to_enter(turn, &branch.fork)? {
        return Ok(Some(outer));
    }
    let is_open =
        turn.run.record(&branch.fork)?.saved.is_some() && turn.state(&branch.join)?.outcome().is_none();
    Ok((!is_open).then(|| branch.fork.clone()))
}

fn enter_fork(turn: &mut Turn<'_>, id: &NodeId) -> Result<(), Refusal> {
    match turn.graph.node(id).map(|node| &node.kind) {
        Some(NodeKind::Fork(fork)) if !turn.state(id)?.is_live() => route::enter_fork(turn, id, fork),
        Some(_) | None => Ok(()),
    }
}

/// Walks from the start through everything that is settled as met, and enters what is not; where the nodes at which the
/// run stopped are gone, this is where it goes on.
fn replay(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    turn.replayed = Some(BTreeSet::new());
    let start = turn.graph.start().clone();
    route::leave_on_success(turn, &start)
}

/// Names the nodes that differ between two revisions, or are in one of them only.
///
/// The `red_first` setting and the PACE levels change nothing about a settled step, so they are no difference.
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
