//! The one place that sends work out, and looks at limits and budget before it does.

use std::time::Duration;

use crate::ask::{AskKind, Reason};
use crate::budget::{BudgetPart, Reserved, Shortfall};
use crate::effect::{Brief, Effect, Item, SoFar, Work};
use crate::fact::Fact;
use crate::graph::{Fidelity, NodeKind, Signal, Task, jittered};
use crate::ids::{Attempt, ItemId, NodeId};
use crate::refusal::Refusal;
use crate::run::{NodeState, RunStatus};
use crate::time::Timestamp;

use super::{Turn, agent, hold, join, revise, route};

/// Sends a node's work out, or out again, in the lane that does it: agent, harness or human.
pub(super) fn dispatch_node(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let target = turn.graph.node(node).ok_or_else(|| Refusal::NoSuchNode(node.clone()))?;
    match &target.kind {
        NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::SubPlan(_) => start_attempt(turn, node),
        NodeKind::Decision(choice) if choice.command.is_some() => start_attempt(turn, node),
        NodeKind::Human(question) => hold::for_choice(turn, node, question),
        NodeKind::Checkpoint if has_room(turn, node)? => dispatch_checkpoint(turn, node),
        NodeKind::Checkpoint => enqueue(turn, node),
        NodeKind::Fork(fork) if fork.in_worktree => join::fork_worktrees(turn, node, fork),
        NodeKind::Join(_) if join::awaits_merge(turn, node)? => dispatch_worktrees(turn, node),
        NodeKind::Decision(_) => route::pass_status_on(turn, node),
        NodeKind::Fork(_) | NodeKind::Start => route::leave(turn, node, Signal::Success),
        NodeKind::Join(_) | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => {
            revise::reenter_stopped_node(turn, node)
        }
    }
}

/// Has a node done again after an attempt of it failed: at once, or after the wait that its plan asks for (DOT R2). The wait
/// is part of the item that goes out, so it survives a restart (DOT R7).
pub(super) fn after_failure(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    dispatch_node(turn, node)?;
    let Some(backoff) = turn.graph.node(node).and_then(|node| node.backoff) else { return Ok(()) };
    let (Some(id), failed) = (turn.outstanding_item(node)?, turn.run.record(node)?.tally.failed) else {
        return Ok(());
    };
    let until = turn.now.after(backoff.delay(&id, failed));
    let sent = turn.effects.iter_mut().rev().find_map(|effect| match effect {
        Effect::Dispatch(item) if item.id == id => Some(item),
        Effect::Dispatch(_) | Effect::Withdraw(_) | Effect::Arm { .. } | Effect::Disarm(_) => None,
    });
    if let Some(item) = sent
        && !matches!(item.work, Work::Human { .. })
    {
        item.available_at = until;
        if let NodeState::Working { attempt } = *turn.state(node)? {
            turn.set_state(node, NodeState::Resting { attempt, until })?;
        }
    }
    Ok(())
}

/// Sends out the node that has waited longest for fewer others to be under way; says whether there was one.
pub(super) fn next_ready(turn: &mut Turn<'_>) -> Result<bool, Refusal> {
    if turn.run.head.status != RunStatus::Active {
        return Ok(false);
    }
    let (graph, waiting) = (turn.graph, turn.run.head.ready.clone());
    for node in waiting.nodes(graph) {
        if turn.run.head.out >= u32::from(turn.graph.limits().parallel) {
            return Ok(false);
        }
        if has_room(turn, node)? && !awaits_budget(turn, node)? {
            turn.set_state(node, NodeState::Pending)?;
            dispatch_node(turn, node)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lets a node wait until there is room for it.
fn enqueue(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    turn.facts.push(Fact::NodeQueued { node: node.clone() });
    turn.set_state(node, NodeState::Ready)
}

/// Says whether a node may be under way beside those that are: one that is itself may.
fn has_room(turn: &Turn<'_>, node: &NodeId) -> Result<bool, Refusal> {
    if turn.state(node)?.is_out() {
        return Ok(true);
    }
    let head = &turn.run.head;
    let is_free = |task: &Task| !task.excludes.iter().any(|name| head.busy.contains(name));
    Ok(head.out < u32::from(turn.graph.limits().parallel) && turn.graph.task(node).is_none_or(is_free))
}

/// Sends out the next attempt, unless a limit or the budget stands against it; before the first one of a visit the
/// contract is rehearsed, where that is asked for.
fn start_attempt(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    if let Some(NodeKind::Call(call)) = turn.graph.node(node).map(|node| &node.kind)
        && let Some(why) = &call.approval
        && !turn.run.record(node)?.is_allowed
    {
        return hold::hold_with_ask(turn, node, AskKind::Effect, Reason::Effect, Some(why.clone()));
    }
    if !has_room(turn, node)? {
        return enqueue(turn, node);
    }
    if agent::take_up_report(turn, node)? {
        return Ok(());
    }
    if turn.run.head.attempts >= turn.graph.limits().attempts {
        return hold::hold_with_ask(turn, node, AskKind::Escalation, Reason::AttemptsLimit, None);
    }
    match check_budget(turn, node)? {
        Funds::Short(shortfall) => return hold::for_budget(turn, node, shortfall),
        Funds::Later => return enqueue(turn, node),
        Funds::Enough(estimate) => reserve(turn, node, estimate),
    }
    if let Some(task) = turn.graph.task(node)
        && turn.run.record(node)?.awaits_rehearsal(&task.contract)
    {
        return rehearse(turn, node);
    }
    dispatch_attempt(turn, node)
}

/// Begins to count for the next attempt.
pub(super) fn count_attempt(turn: &mut Turn<'_>, node: &NodeId) -> Result<Attempt, Refusal> {
    turn.run.head.attempts += 1;
    let record = turn.run.record_mut(node)?;
    // A person's word is for one attempt.
    record.is_allowed = false;
    record.prompt = None;
    let tally = &mut record.tally;
    tally.attempt = tally.attempt.next();
    tally.deliveries = 0;
    tally.interruptions = 0;
    tally.repeats = 0;
    tally.held_gates = 0;
    Ok(tally.attempt)
}

/// Sends out the next attempt, whether or not a rehearsal of the contract is known.
fn dispatch_attempt(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let attempt = count_attempt(turn, node)?;
    if turn.graph.sub_plan(node).is_some() {
        turn.set_state(node, NodeState::Nested { attempt, waits: false })?;
        return dispatch_gate(turn, node, turn.now);
    }
    if turn.graph.task(node).is_none() {
        turn.set_state(node, NodeState::Checking { attempt, gave_up: false })?;
        return dispatch_gate(turn, node, turn.now);
    }
    turn.set_state(node, NodeState::Working { attempt })?;
    if let Some(asked) = fidelity(turn, node)?.filter(|asked| asked.supported() != *asked) {
        turn.facts.push(Fact::FidelityReduced { node: node.clone(), asked, given: asked.supported() });
    }
    agent_item(turn, node, turn.now)
}

/// Has the state of the workspace recorded, or what was recorded restored where a failing path led back.
fn dispatch_checkpoint(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let record = turn.run.record_mut(node)?;
    record.tally.rehearsals = record.tally.rehearsals.saturating_add(1);
    record.tally.interruptions = 0;
    record.tally.repeats = 0;
    let is_failing = record.entered_from.as_ref().is_some_and(|entry| entry.signal != Signal::Success);
    let restores = is_failing && record.saved.is_some();
    turn.set_state(node, NodeState::Saving { restores })?;
    dispatch_gate(turn, node, turn.now)
}

/// Has the worktrees of a fork's branches made, or merged at the join.
pub(super) fn dispatch_worktrees(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    if !has_room(turn, node)? {
        return enqueue(turn, node);
    }
    let tally = &mut turn.run.record_mut(node)?.tally;
    tally.attempt = tally.attempt.next();
    tally.interruptions = 0;
    tally.repeats = 0;
    turn.set_state(node, NodeState::Branching)?;
    dispatch_gate(turn, node, turn.now)
}

/// Has the contract evaluated before the work. It belongs to no attempt: its place is the visit and the attempt before.
fn rehearse(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let tally = &mut turn.run.record_mut(node)?.tally;
    tally.rehearsals = tally.rehearsals.saturating_add(1);
    tally.deliveries = 0;
    tally.interruptions = 0;
    tally.repeats = 0;
    turn.set_state(node, NodeState::Rehearsing)?;
    dispatch_gate(turn, node, turn.now)
}

/// Sends the same attempt out once more after a worker was lost or could not run; never at the author's expense.
pub(super) fn redeliver_after_loss(turn: &mut Turn<'_>, node: &NodeId, message: &str) -> Result<(), Refusal> {
    deliver_later(turn, node, message, false)
}

/// Sends work out once more that was cut off and whose contract failed then. It goes by the next number, since an attempt has
/// one verdict, and uses up no retry; the deliveries that were lost before count on.
pub(super) fn after_judged_delivery(
    turn: &mut Turn<'_>,
    node: &NodeId,
    message: &str,
) -> Result<(), Refusal> {
    deliver_later(turn, node, message, true)
}

fn deliver_later(turn: &mut Turn<'_>, node: &NodeId, message: &str, is_judged: bool) -> Result<(), Refusal> {
    let limit = turn.graph.limits().deliveries;
    let tally = &mut turn.run.record_mut(node)?.tally;
    tally.deliveries = tally.deliveries.saturating_add(1);
    let (deliveries, attempt) = (tally.deliveries, tally.attempt);
    if deliveries >= limit {
        return agent::escalate_undeliverable(turn, node, message);
    }
    if is_judged && turn.run.head.attempts >= turn.graph.limits().attempts {
        return hold::hold_with_ask(turn, node, AskKind::Escalation, Reason::AttemptsLimit, None);
    }
    if !has_funds_again(turn, node)? {
        return Ok(());
    }
    let item = ItemId::agent(turn.run.id, &turn.run.newest_try(node)?);
    let until = turn.now.after(back_off(&item, deliveries));
    turn.facts.push(Fact::NodeResting {
        node: node.clone(),
        attempt,
        deliveries,
        until,
        message: message.to_owned(),
    });
    let attempt = if is_judged { count_attempt(turn, node)? } else { attempt };
    turn.run.record_mut(node)?.tally.deliveries = deliveries;
    turn.set_state(node, NodeState::Resting { attempt, until })?;
    agent_item(turn, node, until)
}

/// Sends the same attempt out once more, at once, after our own stop.
pub(super) fn after_interruption(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    if !count_interruption(turn, node)? || !has_funds_again(turn, node)? {
        return Ok(());
    }
    let tally = turn.run.record(node)?.tally;
    turn.facts.push(Fact::NodeInterrupted {
        node: node.clone(),
        attempt: tally.attempt,
        interruptions: tally.interruptions,
    });
    turn.set_state(node, NodeState::Working { attempt: tally.attempt })?;
    agent_item(turn, node, turn.now)
}

/// Runs the gate once more, at once, after our own stop: it told nothing about the work.
pub(super) fn gate_after_interruption(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    if !count_interruption(turn, node)? {
        return Ok(());
    }
    let attempt = turn.run.record(node)?.tally.attempt;
    let (purpose, why) = (turn.purpose(node)?, "interrupted".to_owned());
    turn.facts.push(Fact::GateRepeated { node: node.clone(), attempt, purpose, why });
    dispatch_gate(turn, node, turn.now)
}

/// Counts an interruption; asks a person and returns `false` when there were too many.
fn count_interruption(turn: &mut Turn<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let limit = turn.graph.limits().interruptions;
    let tally = &mut turn.run.record_mut(node)?.tally;
    tally.interruptions = tally.interruptions.saturating_add(1);
    if tally.interruptions < limit {
        return Ok(true);
    }
    hold::hold_with_ask(turn, node, AskKind::Escalation, Reason::Interrupted, None)?;
    Ok(false)
}

/// Sends out the gate of the newest attempt, or the rehearsal before the next one, as the node's state calls for.
pub(super) fn dispatch_gate(
    turn: &mut Turn<'_>,
    node: &NodeId,
    available_at: Timestamp,
) -> Result<(), Refusal> {
    let id = turn.outstanding_item(node)?.ok_or(Refusal::WrongState)?;
    let at = turn.run.newest_try(node)?;
    let work = Work::Harness { purpose: turn.purpose(node)? };
    turn.effects.push(Effect::Dispatch(Box::new(Item { id, run: turn.run.id, at, available_at, work })));
    Ok(())
}

fn agent_item(turn: &mut Turn<'_>, node: &NodeId, available_at: Timestamp) -> Result<(), Refusal> {
    let task = turn.task(node)?;
    let at = turn.run.newest_try(node)?;
    let so_far = run_so_far(turn, node)?;
    let record = turn.run.record(node)?;
    let work = Work::Agent {
        role: record.worker_role(task).clone(),
        work: task.work,
        timeout: record.work_timeout(task),
        brief: Box::new(Brief {
            failure: record.failure.clone(),
            question: record.question.clone(),
            note: record.note.clone(),
            handover: record.handover(task).cloned().map(Box::new),
            so_far: so_far.map(Box::new),
        }),
    };
    let id = ItemId::agent(turn.run.id, &at);
    let item = Item { id, run: turn.run.id, at, available_at, work };
    turn.effects.push(Effect::Dispatch(Box::new(item)));
    Ok(())
}

/// Returns how much of the run the agent of a node is to be told: as the edge says that led here, else the node (DOT F1).
fn fidelity(turn: &Turn<'_>, node: &NodeId) -> Result<Option<Fidelity>, Refusal> {
    let profile = turn.graph.node(node).and_then(|node| node.profile.as_deref());
    let carry = turn.run.record(node)?.carry.as_deref();
    Ok(carry.and_then(|carry| carry.fidelity).or(profile.and_then(|profile| profile.fidelity)))
}

/// Returns what the agent of a node is told of the run, and the thread it belongs to: the node's, the edge's, that of its graph
/// or class, else that of the node before (DOT F3).
fn run_so_far(turn: &Turn<'_>, node: &NodeId) -> Result<Option<SoFar>, Refusal> {
    let Some(asked) = fidelity(turn, node)? else { return Ok(None) };
    let profile = turn.graph.node(node).and_then(|node| node.profile.as_deref());
    let record = turn.run.record(node)?;
    let carry = record.carry.as_deref();
    let own = profile.and_then(|profile| profile.thread.as_deref());
    let common = profile.and_then(|profile| profile.common_thread.as_deref());
    let of_edge = carry.and_then(|carry| carry.thread.as_deref());
    let before = record.entered_from.as_ref().map(|entered_from| entered_from.from.as_str());
    let thread = own.or(of_edge).or(common).or(before).unwrap_or(node.as_str()).to_owned();
    let context = record.context.clone();
    Ok(Some(SoFar { fidelity: asked.supported(), thread, context }))
}

/// Returns the wait before a delivery is repeated: 1 s doubled each time up to 5 min, the second half of it jitter.
///
/// The jitter comes from the item's id, so that a replay agrees (DESIGN 7).
pub(super) fn back_off(item: &ItemId, losses: u16) -> Duration {
    let seconds = 1u64 << u32::from(losses.saturating_sub(1)).min(9);
    jittered(item, losses, seconds.min(300) * 1_000)
}

/// Whether the budget suffices for the next attempt.
pub(super) enum Funds {
    /// It does; this much of it is expected to be used.
    Enough(Reserved),
    /// It may, once attempts that are under way have used less than they are expected to.
    Later,
    /// It does not.
    Short(Shortfall),
}

/// Sets aside what an attempt is expected to use, from before it is sent out until what it used is charged (P15).
fn reserve(turn: &mut Turn<'_>, node: &NodeId, estimate: Reserved) {
    // The run of a sub-plan may use all that is left, until it says what its own plan allows.
    let estimate = match turn.graph.sub_plan(node).map(|_| turn.run.head.budget_left_for(node)) {
        Some(left) => Reserved { tokens: left.tokens.unwrap_or(0), micro_usd: left.micro_usd.unwrap_or(0) },
        None => estimate,
    };
    let uses_budget = uses_budget(turn, node);
    let reserved = &mut turn.run.head.reserved;
    reserved.remove(node);
    if uses_budget && estimate != Reserved::default() {
        reserved.insert(node.clone(), estimate);
    }
}

/// Says whether the attempts at a node use tokens: those of an agent, or of the run of a sub-plan.
fn uses_budget(turn: &Turn<'_>, node: &NodeId) -> bool {
    turn.graph.task(node).is_some() || turn.graph.sub_plan(node).is_some()
}

/// Says whether the budget suffices for sending the same attempt out once more: what its lost deliveries used is spent
/// (P15). Where it does not, a person is asked, or the node waits for others, and its next attempt is made then.
fn has_funds_again(turn: &mut Turn<'_>, node: &NodeId) -> Result<bool, Refusal> {
    match check_budget(turn, node)? {
        Funds::Short(shortfall) => hold::for_budget(turn, node, shortfall)?,
        Funds::Later => enqueue(turn, node)?,
        Funds::Enough(estimate) => {
            reserve(turn, node, estimate);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says whether a node that waits has to wait on, since others under way may use what is left of the budget. A report that
/// waits for its gate needs none.
fn awaits_budget(turn: &Turn<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let is_reported = turn.run.record(node)?.unchecked.is_some();
    Ok(!is_reported && matches!(check_budget(turn, node)?, Funds::Later))
}

/// Returns how many steps have not settled.
pub(super) fn steps_remaining(turn: &Turn<'_>) -> u32 {
    turn.graph.task_count().saturating_sub(turn.run.head.settled.total())
}

/// Returns the expected use of all steps that have not settled: what attempts used so far on the average, else a share of the
/// plan's budget for each.
pub(super) fn rest(turn: &Turn<'_>, part: BudgetPart) -> u64 {
    let (spent, planned) = (turn.run.head.spent, turn.graph.budget());
    let (sum, limit) = match part {
        BudgetPart::Tokens => (spent.tokens, planned.tokens),
        BudgetPart::MicroUsd => (spent.micro_usd, planned.micro_usd),
        BudgetPart::Seconds => (spent.time.as_secs(), planned.time.map(|time| time.as_secs())),
    };
    let share = || limit.unwrap_or(0) / u64::from(turn.graph.task_count().max(1));
    let each = sum.checked_div(u64::from(spent.metered)).unwrap_or_else(share);
    each.saturating_mul(u64::from(steps_remaining(turn)))
}

/// Compares each limit with what was used and what the next attempt is expected to use (DESIGN 9), and with what is set aside
/// for others besides.
pub(super) fn check_budget(turn: &Turn<'_>, node: &NodeId) -> Result<Funds, Refusal> {
    let head = &turn.run.head;
    let (budget, spent, others) = (head.budget, head.spent, head.reserved_by_others(node));
    let planned = turn.graph.budget();
    let own = turn.run.record(node)?.tally.spent;
    let steps = u64::from(turn.graph.task_count().max(1));
    let mean = |sum: u64, count: u32, share: Option<u64>| match count {
        0 => share.unwrap_or(0) / steps,
        count => sum / u64::from(count),
    };
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    // Usage from before the first attempt, such as a rehearsal's, belongs to no step: the first needs no more than it left.
    let is_first = spent.metered + spent.unmetered == 0 && head.reserved.keys().all(|other| other == node);
    let steps_remaining = steps_remaining(turn);
    let mut is_later = false;
    let mut look = |part: BudgetPart, limit: Option<u64>, spent: u64, others: u64, estimate: u64| {
        let Some(limit) = limit else { return Ok(0) };
        let left = limit.saturating_sub(spent).max(1);
        let estimate = if is_first && spent <= limit { estimate.min(left) } else { estimate };
        let unit = if part == BudgetPart::Seconds { 1_000_000 } else { 1 };
        if spent.saturating_add(estimate) > limit {
            return Err(Shortfall {
                part,
                limit: limit / unit,
                spent: spent.div_ceil(unit),
                estimate: estimate.div_ceil(unit),
                steps_remaining,
                day: None,
            });
        }
        is_later |= others > 0 && spent.saturating_add(others).saturating_add(estimate) > limit;
        Ok(estimate)
    };
    // A run within another one has limits that its own plan does not name.
    // Where workers report nothing, what is known of their attempts is what judges used.
    let count = |sum: u64| if own.metered == 0 && sum > 0 { own.unmetered } else { own.metered };
    let tokens = mean(own.tokens, count(own.tokens), planned.tokens.or(budget.tokens));
    let micro_usd = mean(own.micro_usd, count(own.micro_usd), planned.micro_usd.or(budget.micro_usd));
    let time = mean(micros(own.time), own.metered + own.unmetered, planned.time.or(budget.time).map(micros));
    let time_spent = micros(turn.run.time_spent(turn.now));
    let looked =
        look(BudgetPart::Tokens, budget.tokens, spent.tokens, others.tokens, tokens).and_then(|tokens| {
            let micro_usd =
                look(BudgetPart::MicroUsd, budget.micro_usd, spent.micro_usd, others.micro_usd, micro_usd)?;
            // Time passes for all of them at once.
            look(BudgetPart::Seconds, budget.time.map(micros), time_spent, 0, time)?;
            Ok(Reserved { tokens, micro_usd })
        });
    Ok(match looked {
        Err(shortfall) => Funds::Short(shortfall),
        Ok(_) if is_later && uses_budget(turn, node) => Funds::Later,
        Ok(estimate) => Funds::Enough(estimate),
    })
}
