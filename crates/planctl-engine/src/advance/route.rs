//! Where a run goes from a node, and what it finds there.

use crate::ask::{AskKind, Reason};
use crate::fact::Fact;
use crate::graph::{Edge, Fork, Node, NodeKind, On, Restart, Signal};
use crate::ids::NodeId;
use crate::outcome::{End, Outcome};
use crate::pace::Level;
use crate::refusal::Refusal;
use crate::run::{EnteredFrom, NodeState, Rehearsal, RunStatus};

use super::choose::Chosen;
use super::{Transition, choose, dispatch, hold, join, pace, settle};

/// Goes on from a node that counts as met.
pub(super) fn leave_on_success(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    leave(transition, node, Signal::Success)
}

/// Leaves a node along the edge that fits what it came to; a person is asked where none does (G-19).
pub(super) fn leave(transition: &mut Transition<'_>, node: &NodeId, signal: Signal) -> Result<(), Refusal> {
    if let Some(NodeKind::Fork(fork)) = transition.graph.node(node).map(|node| &node.kind) {
        let is_left_out =
            matches!(transition.state(node)?.outcome(), Some(Outcome::Skipped | Outcome::Waived));
        return match &fork.join {
            Some(join) if fork.in_worktree && is_left_out => {
                join::continue_behind_join(transition, join, node)
            }
            Some(_) | None => join::start_branches(transition, node, fork),
        };
    }
    match choose::choose_edge(transition, node, signal)? {
        Some(chosen) => {
            queue_edge(transition, chosen, signal);
            Ok(())
        }
        None => {
            let subject = rewind_to(transition, node)?;
            hold::hold_with_ask(transition, &subject, AskKind::Escalation, Reason::NoEdge, None)
        }
    }
}

/// Goes along an edge, once what was begun is done.
pub(super) fn follow(transition: &mut Transition<'_>, edge: Edge, signal: Signal) {
    queue_edge(transition, Chosen { edge, choosing: None }, signal);
}

/// Goes along the edge that was chosen, once what was begun is done.
pub(super) fn queue_edge(transition: &mut Transition<'_>, chosen: Chosen, signal: Signal) {
    transition.open.push((chosen, signal));
}

/// Arrives where the edges lead that were followed, until something waits everywhere.
pub(super) fn arrive_at_all(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    loop {
        while let Some((chosen, signal)) = transition.open.pop() {
            arrive(transition, chosen, signal)?;
            if transition.run.head.status != RunStatus::Active {
                transition.open.clear();
            }
        }
        if !dispatch::next_ready(transition)? {
            return ask_if_stranded(transition);
        }
    }
}

/// Asks a person about a run of which nothing is under way and which is not over: it came to a join whose other branches
/// were never begun, or was taken up where nothing can be done.
fn ask_if_stranded(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    let head = &transition.run.head;
    if head.status != RunStatus::Active || head.out + head.held > 0 {
        return Ok(());
    }
    let node = transition.dead_end.clone().unwrap_or_else(|| transition.graph.start().clone());
    let message = format!("nothing is under way that could go on from `{node}`");
    hold::hold_with_ask(transition, &node, AskKind::Escalation, Reason::NoEdge, Some(message))
}

fn arrive(transition: &mut Transition<'_>, chosen: Chosen, signal: Signal) -> Result<(), Refusal> {
    let Chosen { edge, choosing } = chosen;
    let (edge, to) = (&edge, &edge.to);
    let target = transition.graph.node(to).ok_or_else(|| Refusal::NoSuchNode(to.clone()))?;
    if transition.replay_skips(to)? {
        return leave(transition, to, Signal::Success);
    }
    transition.facts.push(Fact::EdgeFollowed {
        from: edge.from.clone(),
        to: to.clone(),
        signal,
        on: edge.on,
        label: edge.label.clone(),
        choosing,
    });
    let signal = match &edge.restart {
        None => signal,
        Some(restart) if begin_epoch(transition, edge, restart)? => Signal::Success,
        Some(_) => return Ok(()),
    };
    // Two ways that come to one node while it is under way meet there: it is done once. A failure that comes to where the plan
    // escalates is asked about at the node that failed.
    let meets = !matches!(target.kind, NodeKind::Join(_) | NodeKind::Escalate { .. });
    if meets && transition.state(to)?.is_live() {
        return Ok(());
    }
    match &target.kind {
        NodeKind::Start => Err(Refusal::NoSuchNode(to.clone())),
        NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::Human(_) | NodeKind::SubPlan(_) => {
            let refills = signal == Signal::Success && !is_being_retried(transition, to)?;
            if refills {
                pace::begin_anew(transition, to)?;
            } else if signal != Signal::Success && target.gated().is_some() {
                hand_over_failure(transition, &edge.from, to)?;
            }
            carry_context(transition, edge)?;
            note_way(transition, edge, signal)?;
            enter(transition, to, refills)
        }
        NodeKind::Decision(choice) if choice.command.is_some() => {
            let refills = signal == Signal::Success && !is_being_retried(transition, to)?;
            carry_context(transition, edge)?;
            enter(transition, to, refills)
        }
        NodeKind::Checkpoint => {
            record_entered_from(transition, edge, signal)?;
            enter(transition, to, signal == Signal::Success)
        }
        NodeKind::Decision(_) => {
            record_entered_from(transition, edge, signal)?;
            if !count_passage(transition, to)? {
                return Ok(());
            }
            pass_status_on(transition, to)
        }
        NodeKind::Fork(fork) => {
            record_entered_from(transition, edge, signal)?;
            enter_fork(transition, to, fork)
        }
        NodeKind::Join(_) => join::arrive(transition, edge, signal),
        NodeKind::Escalate { reason, pace_level } => {
            let (reason, named) = (reason.clone(), *pace_level);
            escalate(transition, edge, signal, reason, named)
        }
        NodeKind::Exit { success: true } => finish_run(transition, edge),
        NodeKind::Exit { success: false } => end_failed(transition, &edge.from, End::Failed),
    }
}

/// Says whether a node failed, left over its retry edge and comes to its next attempt. That attempt counts against its
/// allowance, however the nodes between them settled (G-23).
fn is_being_retried(transition: &Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let has_way = transition.graph.edges_from(node).iter().any(|edge| edge.on == On::Retry);
    let record = transition.run.record(node)?;
    Ok(has_way && record.state == NodeState::Pending && record.tally.failed > 0)
}

/// Records from where a routing node was entered. An epoch begins with a node that is entered from nowhere, so that nothing goes back
/// to the epoch before.
fn record_entered_from(transition: &mut Transition<'_>, edge: &Edge, signal: Signal) -> Result<(), Refusal> {
    carry_context(transition, edge)?;
    let entered_from = EnteredFrom { from: edge.from.clone(), signal };
    transition.run.record_mut(&edge.to)?.entered_from = edge.restart.is_none().then_some(entered_from);
    Ok(())
}

/// Leaves a decision at which nobody works with what it was entered with. A person who has it tried again passes nothing.
pub(super) fn pass_status_on(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let entered_from = transition.run.record(node)?.entered_from.clone();
    let Some(EnteredFrom { from, signal }) = entered_from else {
        transition.set_state(node, NodeState::Settled { outcome: Outcome::Passed })?;
        return leave(transition, node, Signal::Success);
    };
    let onward = onward_signal(transition, &from, signal)?;
    let outcome = passed_outcome(transition, &from, onward)?;
    transition.set_state(node, NodeState::Settled { outcome })?;
    leave(transition, node, onward)
}

/// Begins the branches of a fork, once they have worktrees where they want any.
pub(super) fn enter_fork(transition: &mut Transition<'_>, node: &NodeId, fork: &Fork) -> Result<(), Refusal> {
    match count_passage(transition, node)? {
        true if fork.in_worktree => join::begin_in_worktrees(transition, node, fork),
        true => join::start_branches(transition, node, fork),
        false => Ok(()),
    }
}

/// Begins the run anew where an edge leads, as its next epoch: everything under way is taken back, and every node is as if it had
/// never been entered, but for what was used. Says whether it may; a person is asked where it did too often (DOT E12).
fn begin_epoch(transition: &mut Transition<'_>, edge: &Edge, restart: &Restart) -> Result<bool, Refusal> {
    let limit = transition.graph.limits().restarts;
    if transition.run.head.restarts >= limit {
        let subject = rewind_to(transition, &edge.from)?;
        let message = format!("the run began anew {limit} times, which is as often as it may");
        hold::hold_with_ask(transition, &subject, AskKind::Escalation, Reason::Exhausted, Some(message))?;
        return Ok(false);
    }
    let mut context = transition.run.record(&edge.from)?.context.clone();
    context.retain(|name, _| restart.keeps.contains(name));
    for live in transition.run.live_nodes()? {
        transition.withdraw(&live)?;
    }
    transition.open.clear();
    transition.exhausted_here.clear();
    transition.run.begin_anew(transition.graph)?;
    transition.run.head.restarts = transition.run.head.restarts.saturating_add(1);
    transition.facts.push(Fact::EpochBegan {
        epoch: transition.run.head.restarts,
        after: edge.from.clone(),
        node: edge.to.clone(),
        kept: context.keys().cloned().collect(),
    });
    transition.run.record_mut(&edge.from)?.context = context;
    Ok(true)
}

/// Notes what the agent of a node is to be told of the way to it, where its graph asks for that (DOT F1, F3).
fn note_way(transition: &mut Transition<'_>, edge: &Edge, signal: Signal) -> Result<(), Refusal> {
    let profile = transition.graph.node(&edge.to).and_then(|node| node.profile.as_deref());
    let is_asked = edge.carry.is_some() || profile.is_some_and(|profile| profile.fidelity.is_some());
    if is_asked {
        let from = transition.last_acting_node(&edge.from)?;
        let record = transition.run.record_mut(&edge.to)?;
        record.entered_from = Some(EnteredFrom { from, signal });
        record.carry.clone_from(&edge.carry);
    }
    Ok(())
}

/// Counts an entry of a node at which nobody works; one too many is asked about and goes no further.
fn count_passage(transition: &mut Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let max_visits = transition.graph.node(node).map_or(1, |node| node.max_visits);
    let tally = &mut transition.run.record_mut(node)?.tally;
    if tally.visits >= max_visits {
        exceed_visits(transition, node)?;
        return Ok(false);
    }
    tally.visits = tally.visits.saturating_add(1);
    let (visit, attempt) = (tally.visits, tally.attempt);
    transition.facts.push(Fact::NodeEntered { node: node.clone(), visit, attempt, rehearses: false });
    Ok(true)
}

/// Returns the signal with which a run leaves a routing node: the signal it entered with; a skipped step counts as success.
fn onward_signal(transition: &Transition<'_>, from: &NodeId, signal: Signal) -> Result<Signal, Refusal> {
    let subject = transition.last_acting_node(from)?;
    let is_passed_over = transition.is_passed_over(&subject)?;
    Ok(match signal {
        Signal::Success => Signal::Success,
        Signal::Retry | Signal::Exhausted if is_passed_over => Signal::Success,
        Signal::Retry | Signal::Exhausted => Signal::Exhausted,
    })
}

/// Returns how a decision settles at which nobody works: with the status that passes through it (DOT ruling 1), so that a
/// goal gate on it is not met by a failure.
fn passed_outcome(transition: &Transition<'_>, from: &NodeId, onward: Signal) -> Result<Outcome, Refusal> {
    let subject = transition.last_acting_node(from)?;
    let settled = transition.state(&subject)?.outcome();
    Ok(match onward {
        Signal::Success => settled.unwrap_or(Outcome::Passed),
        Signal::Retry | Signal::Exhausted => Outcome::Failed,
    })
}

/// Hands the run's context on; nothing is written where there is none.
fn carry_context(transition: &mut Transition<'_>, edge: &Edge) -> Result<(), Refusal> {
    let context = &transition.run.record(&edge.from)?.context;
    if *context != transition.run.record(&edge.to)?.context {
        let context = context.clone();
        transition.run.record_mut(&edge.to)?.context = context;
    }
    Ok(())
}

/// Tells the node entered over a failure path what failed before it. A step that was left out or only warned about is
/// no business of the next one, whose first prompt names no contract.
fn hand_over_failure(transition: &mut Transition<'_>, from: &NodeId, to: &NodeId) -> Result<(), Refusal> {
    let from = &transition.last_acting_node(from)?;
    if from != to && !transition.is_passed_over(from)? {
        let failure = transition.run.record(from)?.failure.clone();
        transition.run.record_mut(to)?.failure = failure;
    }
    Ok(())
}

/// Enters a node at which something is done. The allowance refills over a success path, not over a failure path
/// (DESIGN 6), and not before the node settled.
pub(super) fn enter(transition: &mut Transition<'_>, node: &NodeId, refills: bool) -> Result<(), Refusal> {
    let max_visits = transition.graph.node(node).map_or(1, |node| node.max_visits);
    let contract = transition.graph.task(node).map(|task| &task.contract);
    let record = transition.run.record_mut(node)?;
    // Noted for an entry too many as well: a person may have it worked on all the same.
    match contract {
        Some(contract) if contract.is_prepared() => {
            if !record.is_prepared_for(contract) {
                record.rehearsal = Some(Rehearsal::Due);
            }
        }
        Some(_) | None => record.rehearsal = None,
    }
    if record.tally.visits >= max_visits {
        return exceed_visits(transition, node);
    }
    record.tally.visits = record.tally.visits.saturating_add(1);
    // A report that waits for a person is of the entering before, and so is what a person allowed.
    record.unchecked = None;
    record.is_allowed = false;
    record.prompt = None;
    if refills {
        record.tally.failed = 0;
        record.tally.granted = 0;
        record.failure = None;
        record.question = None;
        record.note = None;
    }
    let (visit, attempt) = (record.tally.visits, record.tally.attempt.next());
    let rehearses = contract
        .is_some_and(|contract| !contract.rehearsal_mode().is_off() && record.awaits_rehearsal(contract));
    transition.facts.push(Fact::NodeEntered { node: node.clone(), visit, attempt, rehearses });
    dispatch::dispatch_node(transition, node)
}

/// Treats one entry too many as exhausted; a chain of such entries that comes round ends with a question.
fn exceed_visits(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    // The edges of a routing node test what came before it, and not its own visits.
    let is_routing = transition.graph.node(node).is_some_and(Node::is_routing);
    if !is_routing && transition.exhausted_here.insert(node.clone()) {
        return settle::exhaust_visits(transition, node);
    }
    let message = visits_message(transition, node);
    let subject = rewind_to(transition, node)?;
    hold::hold_with_ask(transition, &subject, AskKind::Escalation, Reason::VisitsLimit, Some(message))
}

/// Says that a node was entered as often as it may be.
pub(super) fn visits_message(transition: &Transition<'_>, node: &NodeId) -> String {
    let most = transition.graph.node(node).map_or(1, |node| node.max_visits);
    format!("`{node}` is at its limit: visits {most} of {most}")
}

/// Asks a person about the node that failed; where nothing failed, about the escalation itself.
fn escalate(
    transition: &mut Transition<'_>,
    edge: &Edge,
    signal: Signal,
    reason: Option<String>,
    named: Option<Level>,
) -> Result<(), Refusal> {
    let has_failed = match transition.last_acting_node(&edge.from)? == edge.from {
        true => signal != Signal::Success,
        false => onward_signal(transition, &edge.from, signal)? != Signal::Success,
    };
    if has_failed {
        let subject = rewind_to(transition, &edge.from)?;
        if transition.exhausted_here.contains(&edge.from) {
            let message = reason.unwrap_or_else(|| visits_message(transition, &edge.from));
            return pace::escalate(transition, &subject, Reason::VisitsLimit, Some(message), named);
        }
        return pace::escalate(transition, &subject, Reason::Exhausted, reason, named);
    }
    if transition.state(&edge.to)?.is_live() {
        return Ok(());
    }
    record_entered_from(transition, edge, signal)?;
    ask_as_planned(transition, &edge.to, reason)
}

/// Asks a person where the plan says so, though nothing failed.
pub(super) fn ask_as_planned(
    transition: &mut Transition<'_>,
    node: &NodeId,
    reason: Option<String>,
) -> Result<(), Refusal> {
    let tally = &mut transition.run.record_mut(node)?.tally;
    tally.visits = tally.visits.saturating_add(1);
    hold::hold_with_ask(transition, node, AskKind::Escalation, Reason::Planned, reason)
}

/// Returns the node that last worked, decided or asked on the way to one, and opens the joins between them again, because
/// the person's decision about it travels that way once more. Items of that node are withdrawn.
fn rewind_to(transition: &mut Transition<'_>, node: &NodeId) -> Result<NodeId, Refusal> {
    let subject = transition.last_acting_node(node)?;
    if subject != *node {
        transition.withdraw(&subject)?;
    }
    let mut back = node.clone();
    while back != subject {
        let Some(entered_from) = transition.run.record(&back)?.entered_from.clone() else { break };
        if transition.run.record(&back)?.arrivals.is_some() {
            join::reopen_for_branch(transition, &back, &entered_from.from)?;
        }
        back = entered_from.from;
    }
    Ok(subject)
}

/// Ends the run well once nothing else is under way, unless a goal is unmet: then it goes where the goal says, or fails (DOT
/// G1 to G6). Other branches are awaited, so that none is dropped before it is judged.
fn finish_run(transition: &mut Transition<'_>, edge: &Edge) -> Result<(), Refusal> {
    let is_last = transition.open.is_empty() && transition.run.live_nodes()?.is_empty();
    if !is_last {
        transition.dead_end = Some(edge.from.clone());
        let entered_from = EnteredFrom { from: edge.from.clone(), signal: Signal::Success };
        transition.run.record_mut(&edge.to)?.entered_from = Some(entered_from);
        return Ok(());
    }
    for goal in transition.graph.goals() {
        let outcome = transition.run.record(&goal.node)?.state.outcome();
        let is_met = matches!(outcome, Some(Outcome::Passed | Outcome::Waived));
        if is_met {
            continue;
        }
        transition.facts.push(Fact::GoalUnmet { node: goal.node.clone(), retry: goal.retry.clone() });
        return match &goal.retry {
            Some(retry) => {
                follow(transition, Edge::new(edge.from.clone(), retry.clone(), On::Fail), Signal::Exhausted);
                Ok(())
            }
            None => end_failed(transition, &goal.node, End::Failed),
        };
    }
    transition.disarm_stale();
    transition.run.head.status = RunStatus::Ended { end: End::Done };
    let settled = transition.run.head.settled;
    transition.facts.push(Fact::PlanCompleted { settled });
    Ok(())
}

/// Ends a branch that comes to a join which went on before and needs it no more. Where another branch came to an exit that waits for
/// this one, the run ends there.
pub(super) fn end_late_branch(transition: &mut Transition<'_>, join: &NodeId) -> Result<(), Refusal> {
    for node in transition.graph.nodes() {
        let is_exit = matches!(node.kind, NodeKind::Exit { success: true });
        if is_exit && transition.run.record(&node.id)?.entered_from.is_some() {
            return finish_run(transition, &Edge::new(join.clone(), node.id.clone(), On::Success));
        }
    }
    Ok(())
}

/// Ends the run as failed; a resume begins where it ended.
pub(super) fn end_failed(transition: &mut Transition<'_>, node: &NodeId, end: End) -> Result<(), Refusal> {
    let mut stopped = vec![node.clone()];
    for live in transition.run.live_nodes()? {
        transition.withdraw(&live)?;
        stopped.push(live);
    }
    transition.disarm_stale();
    transition.run.head.stopped_at = stopped;
    transition.run.head.status = RunStatus::Ended { end };
    let node = transition.last_acting_node(node)?;
    transition.facts.push(Fact::PlanFailed { node, end });
    Ok(())
}
