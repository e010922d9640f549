//! How a run goes on: after a failure where it ended, after a pause with another revision.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::Budget;
use crate::graph::NodeKind;
use crate::ids::NodeId;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::RunStatus;

use super::{Transition, dispatch, join, regroup, route};

/// Pauses the run: all items are withdrawn. It stopped at these nodes, and at those that were under way.
pub(super) fn pause(transition: &mut Transition<'_>, mut stopped: Vec<NodeId>) -> Result<(), Refusal> {
    for live in transition.run.live_nodes()? {
        transition.withdraw(&live)?;
        stopped.push(live);
    }
    transition.disarm_stale();
    transition.run.head.stopped_at = stopped;
    transition.run.head.status = RunStatus::Paused;
    Ok(())
}

/// Queues a run again; one that was paused before it had the workspace has yet to begin.
pub(super) fn enqueue_run(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    let resuming = transition.state(transition.graph.start())?.outcome().is_some();
    transition.run.head.status = RunStatus::Queued { resuming };
    Ok(())
}

/// Lets the run go on with a node that passed; it and everything behind it have a full allowance. Refuses one that no contract
/// judged as passed, one beside which others go on, since the join behind it counts what came of each branch, and one behind a node at
/// which the run stopped, since the run would leave that as it is.
pub(super) fn reopen(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let graph = transition.graph;
    let is_judged = graph.gated(node).is_some_and(|gated| !gated.contract.is_none());
    if !is_judged || graph.is_on_a_branch(node) || transition.state(node)?.outcome() != Some(Outcome::Passed)
    {
        return Err(Refusal::NotRepeatable(node.clone()));
    }
    let all_behind = graph.branch_from(node, |_| false);
    for stopped in &transition.run.head.stopped_at {
        let is_before = graph.branch_from(stopped, |_| false).contains(node) && !all_behind.contains(stopped);
        if is_before && !transition.is_met(stopped)? {
            return Err(Refusal::NotRepeatable(node.clone()));
        }
    }
    for behind in &all_behind {
        let tally = transition.run.record(behind)?.tally;
        if tally.failed > 0 || tally.granted > 0 {
            let tally = &mut transition.run.record_mut(behind)?.tally;
            (tally.failed, tally.granted) = (0, 0);
        }
        join::await_branches_of(transition, behind, &all_behind)?;
    }
    transition.run.head.stopped_at = vec![node.clone()];
    Ok(())
}

/// The nodes and branches that differ between two revisions.
pub(super) struct Change<'e> {
    pub(super) changed: &'e [NodeId],
    pub(super) added: &'e [NodeId],
    pub(super) branches: &'e BTreeMap<NodeId, Vec<Option<u16>>>,
}

/// Queues a paused run again with another revision, whose settled steps must be the ones that settled (P-77).
///
/// It goes on once it is admitted: another run may have the workspace by now.
pub(super) fn apply_revision(
    transition: &mut Transition<'_>,
    change: &Change<'_>,
    budget_max: Budget,
) -> Result<(), Refusal> {
    if transition.run.head.status != RunStatus::Paused {
        return Err(Refusal::NotActive);
    }
    for node in change.changed {
        match transition.run.record(node)?.state.outcome() {
            Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned) => {
                return Err(Refusal::SettledStepChanged(node.clone()));
            }
            Some(Outcome::Failed) | None => {}
        }
        // Another text asks for other work.
        if transition.run.record(node)?.unchecked.is_some() {
            transition.run.record_mut(node)?.unchecked = None;
        }
    }
    regroup::find_branches(transition, change.branches)?;
    regroup::refuse_what_nothing_begins(transition, change.added)?;
    transition.run.count_settled_steps(transition.graph);
    let head = &mut transition.run.head;
    let planned = transition.graph.budget().within(budget_max);
    // Amounts that people added to the old revision's budget are kept; a part without limit stays without.
    head.budget.tokens = planned.tokens.map(|limit| limit.max(head.budget.tokens.unwrap_or(0)));
    head.budget.micro_usd = planned.micro_usd.map(|limit| limit.max(head.budget.micro_usd.unwrap_or(0)));
    head.budget.time = planned.time.map(|limit| limit.max(head.budget.time.unwrap_or_default()));
    head.noticed = false;
    enqueue_run(transition)
}

/// Enters the nodes at which the run stopped, each with a full allowance.
pub(super) fn enter_stopped_nodes(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    let stopped = std::mem::take(&mut transition.run.head.stopped_at);
    let mut entered = false;
    for node in stopped.iter().filter(|node| transition.graph.node(node).is_some()) {
        transition.dead_end = Some(node.clone());
        take_up_at(transition, node)?;
        entered = true;
    }
    for node in &stopped {
        join::resume_branches_around(transition, node)?;
        for (join, _) in transition.graph.branches_around(node) {
            if let Some(fork) = transition.graph.fork_of(&join) {
                join::resume_branches_around(transition, fork)?;
            }
        }
    }
    if entered { Ok(()) } else { replay(transition) }
}

/// Goes on at a node at which the run stopped, or a branch stood that was taken back.
pub(super) fn take_up_at(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    match transition.graph.node(node).map(|node| &node.kind) {
        // A person was asked there, and has not answered, or ended the run: what is before it is done.
        Some(NodeKind::Escalate { reason, .. })
            if !transition.is_met(node)? && !transition.state(node)?.is_live() =>
        {
            route::ask_as_planned(transition, node, reason.clone())
        }
        Some(NodeKind::Join(_)) if join::go_on(transition, node)? => Ok(()),
        Some(_) | None => reenter_stopped_node(transition, node),
    }
}

/// Enters the node at which something can be done for one at which the run stopped.
pub(super) fn reenter_stopped_node(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    let mut open = vec![node.clone()];
    while let Some(id) = open.pop() {
        let target = transition.graph.node(&id).ok_or_else(|| Refusal::NoSuchNode(id.clone()))?;
        if !seen.insert(id.clone()) || transition.state(&id)?.is_live() {
            continue;
        }
        if let Some(closed) = fork_to_enter(transition, &id)? {
            enter_fork(transition, &closed)?;
            continue;
        }
        match &target.kind {
            NodeKind::Task(_) if transition.run.record(&id)?.unchecked.is_some() => {
                dispatch::dispatch_node(transition, &id)?
            }
            NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::Human(_) | NodeKind::SubPlan(_) => {
                route::enter(transition, &id, true)?;
            }
            NodeKind::Decision(choice) if choice.command.is_some() => route::enter(transition, &id, true)?,
            NodeKind::Checkpoint => route::enter(transition, &id, true)?,
            NodeKind::Join(_) if join::awaits_merge(transition, &id)? => {
                dispatch::dispatch_node(transition, &id)?
            }
            NodeKind::Join(_) => open.extend(join::reopen(transition, &id)?),
            NodeKind::Fork(fork) if fork.in_worktree && !transition.is_met(&id)? => {
                dispatch::dispatch_node(transition, &id)?;
            }
            NodeKind::Start => route::leave_on_success(transition, &id)?,
            // The way back leads out of the branch, or of the epoch, to work that is done: it goes on from here.
            NodeKind::Decision(_) | NodeKind::Fork(_) if is_first_entered(transition, &id)? => {
                dispatch::dispatch_node(transition, &id)?;
            }
            NodeKind::Decision(_) | NodeKind::Fork(_) | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => {
                open.extend(
                    transition
                        .run
                        .record(&id)?
                        .entered_from
                        .as_ref()
                        .map(|entered_from| entered_from.from.clone()),
                );
            }
        }
    }
    Ok(())
}

/// Says whether nobody worked before a routing node that was entered: since the fork of its branch, whose join waits, or since the
/// epoch began.
fn is_first_entered(transition: &Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    Ok(transition.run.record(node)?.tally.visits > 0 && transition.last_acting_node(node)? == *node)
}

/// Returns the fork to enter before anybody works at a node that nobody came to: the outermost that was not entered, since its join waits for
/// all of its branches; else that whose worktrees are to be made.
fn fork_to_enter(transition: &Transition<'_>, node: &NodeId) -> Result<Option<NodeId>, Refusal> {
    if transition.run.record(node)?.tally.visits == 0 {
        for (join, _) in transition.graph.branches_around(node).iter().rev() {
            if transition.run.record(join)?.arrivals.is_none() {
                return Ok(transition.graph.fork_of(join).cloned());
            }
        }
    }
    fork_without_worktrees(transition, node)
}

/// Returns the outermost fork around a node whose worktrees are not made, are being made anew, or are merged already.
fn fork_without_worktrees(transition: &Transition<'_>, node: &NodeId) -> Result<Option<NodeId>, Refusal> {
    let Some(branch) = transition.graph.worktree_branch(node) else { return Ok(None) };
    if let Some(outer) = fork_without_worktrees(transition, &branch.fork)? {
        return Ok(Some(outer));
    }
    let is_open = transition.run.record(&branch.fork)?.saved.is_some()
        && !transition.state(&branch.fork)?.is_live()
        && transition.state(&branch.join)?.outcome().is_none();
    Ok((!is_open).then(|| branch.fork.clone()))
}

fn enter_fork(transition: &mut Transition<'_>, id: &NodeId) -> Result<(), Refusal> {
    match transition.graph.node(id).map(|node| &node.kind) {
        Some(NodeKind::Fork(fork)) if !transition.state(id)?.is_live() => {
            route::enter_fork(transition, id, fork)
        }
        Some(_) | None => Ok(()),
    }
}

/// Walks from the start through everything that is settled as met, and enters what is not; where the nodes at which the
/// run stopped are gone, this is where it goes on.
fn replay(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    transition.replayed = Some(BTreeSet::new());
    let start = transition.graph.start().clone();
    route::leave_on_success(transition, &start)
}
