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

use super::{Transition, agent, hold, join, revise, route};

/// Sends a node's work out, or out again, in the lane that does it: agent, harness or human.
pub(super) fn dispatch_node(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let target = transition.graph.node(node).ok_or_else(|| Refusal::NoSuchNode(node.clone()))?;
    match &target.kind {
        NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::SubPlan(_) => start_attempt(transition, node),
        NodeKind::Decision(choice) if choice.command.is_some() => start_attempt(transition, node),
        NodeKind::Human(question) => hold::for_choice(transition, node, question),
        NodeKind::Checkpoint if has_room(transition, node)? => dispatch_checkpoint(transition, node),
        NodeKind::Checkpoint => enqueue(transition, node),
        NodeKind::Fork(fork) if fork.in_worktree => join::fork_worktrees(transition, node, fork),
        NodeKind::Join(_) if join::awaits_merge(transition, node)? => dispatch_worktrees(transition, node),
        NodeKind::Decision(_) => route::pass_status_on(transition, node),
        NodeKind::Fork(_) | NodeKind::Start => route::leave(transition, node, Signal::Success),
        NodeKind::Join(_) | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => {
            revise::reenter_stopped_node(transition, node)
        }
    }
}

/// Has a node done again after an attempt of it failed: at once, or after the wait that its plan asks for (DOT R2). The wait
/// is part of the item that goes out, so it survives a restart (DOT R7).
pub(super) fn after_failure(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    dispatch_node(transition, node)?;
    let Some(backoff) = transition.graph.node(node).and_then(|node| node.backoff) else { return Ok(()) };
    let (Some(id), failed) = (transition.outstanding_item(node)?, transition.run.record(node)?.tally.failed)
    else {
        return Ok(());
    };
    let until = transition.now.after(backoff.delay(&id, failed));
    let sent = transition.effects.iter_mut().rev().find_map(|effect| match effect {
        Effect::Dispatch(item) if item.id == id => Some(item),
        Effect::Dispatch(_) | Effect::Withdraw(_) | Effect::Arm { .. } | Effect::Disarm(_) => None,
    });
    if let Some(item) = sent
        && !matches!(item.work, Work::Human { .. })
    {
        item.available_at = until;
        if let NodeState::Working { attempt } = *transition.state(node)? {
            transition.set_state(node, NodeState::Resting { attempt, until })?;
        }
    }
    Ok(())
}

/// Sends out the node that has waited longest for fewer others to be under way; says whether there was one.
pub(super) fn next_ready(transition: &mut Transition<'_>) -> Result<bool, Refusal> {
    if transition.run.head.status != RunStatus::Active {
        return Ok(false);
    }
    let (graph, waiting) = (transition.graph, transition.run.head.ready.clone());
    for node in waiting.nodes(graph) {
        if transition.run.head.out >= u32::from(transition.graph.limits().parallel) {
            return Ok(false);
        }
        if has_room(transition, node)? && !awaits_budget(transition, node)? {
            transition.set_state(node, NodeState::Pending)?;
            dispatch_node(transition, node)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lets a node wait until there is room for it.
fn enqueue(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    transition.facts.push(Fact::NodeQueued { node: node.clone() });
    transition.set_state(node, NodeState::Ready)
}

/// Says whether a node may be under way beside those that are: one that is itself may.
fn has_room(transition: &Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    if transition.state(node)?.is_out() {
        return Ok(true);
    }
    let head = &transition.run.head;
    let is_free = |task: &Task| !task.excludes.iter().any(|name| head.busy.contains(name));
    Ok(head.out < u32::from(transition.graph.limits().parallel)
        && transition.graph.task(node).is_none_or(is_free))
}

/// Sends out the next attempt, unless a limit or the budget stands against it; before the first one of a visit the
/// contract is rehearsed, where that is asked for.
fn start_attempt(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    if let Some(NodeKind::Call(call)) = transition.graph.node(node).map(|node| &node.kind)
        && let Some(why) = &call.approval
        && !transition.run.record(node)?.is_allowed
    {
        return hold::hold_with_ask(transition, node, AskKind::Effect, Reason::Effect, Some(why.clone()));
    }
    if !has_room(transition, node)? {
        return enqueue(transition, node);
    }
    if agent::take_up_report(transition, node)? {
        return Ok(());
    }
    if transition.run.head.attempts >= transition.graph.limits().attempts {
        return hold::hold_with_ask(transition, node, AskKind::Escalation, Reason::AttemptsLimit, None);
    }
    match check_budget(transition, node)? {
        Funds::Short(shortfall) => return hold::for_budget(transition, node, shortfall),
        Funds::Later => return enqueue(transition, node),
        Funds::Enough(estimate) => reserve(transition, node, estimate),
    }
    if let Some(task) = transition.graph.task(node)
        && transition.run.record(node)?.awaits_rehearsal(&task.contract)
    {
        return rehearse(transition, node);
    }
    dispatch_attempt(transition, node)
}

/// Begins to count for the next attempt.
pub(super) fn count_attempt(transition: &mut Transition<'_>, node: &NodeId) -> Result<Attempt, Refusal> {
    transition.run.head.attempts += 1;
    let record = transition.run.record_mut(node)?;
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
fn dispatch_attempt(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let attempt = count_attempt(transition, node)?;
    if transition.graph.sub_plan(node).is_some() {
        transition.set_state(node, NodeState::Nested { attempt, waits: false })?;
        return dispatch_gate(transition, node, transition.now);
    }
    if transition.graph.task(node).is_none() {
        transition.set_state(node, NodeState::Checking { attempt, gave_up: false })?;
        return dispatch_gate(transition, node, transition.now);
    }
    transition.set_state(node, NodeState::Working { attempt })?;
    if let Some(asked) = fidelity(transition, node)?.filter(|asked| asked.supported() != *asked) {
        transition.facts.push(Fact::FidelityReduced { node: node.clone(), asked, given: asked.supported() });
    }
    agent_item(transition, node, transition.now)
}

/// Has the state of the workspace recorded, or what was recorded restored where a failing path led back.
fn dispatch_checkpoint(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let record = transition.run.record_mut(node)?;
    record.tally.rehearsals = record.tally.rehearsals.saturating_add(1);
    record.tally.interruptions = 0;
    record.tally.repeats = 0;
    let is_failing = record.entered_from.as_ref().is_some_and(|entry| entry.signal != Signal::Success);
    let restores = is_failing && record.saved.is_some();
    transition.set_state(node, NodeState::Saving { restores })?;
    dispatch_gate(transition, node, transition.now)
}

/// Has the worktrees of a fork's branches made, or merged at the join.
pub(super) fn dispatch_worktrees(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    if !has_room(transition, node)? {
        return enqueue(transition, node);
    }
    let tally = &mut transition.run.record_mut(node)?.tally;
    tally.attempt = tally.attempt.next();
    tally.interruptions = 0;
    tally.repeats = 0;
    transition.set_state(node, NodeState::Branching)?;
    dispatch_gate(transition, node, transition.now)
}

/// Has the contract evaluated before the work. It belongs to no attempt: its place is the visit and the attempt before.
fn rehearse(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let tally = &mut transition.run.record_mut(node)?.tally;
    tally.rehearsals = tally.rehearsals.saturating_add(1);
    tally.deliveries = 0;
    tally.interruptions = 0;
    tally.repeats = 0;
    transition.set_state(node, NodeState::Rehearsing)?;
    dispatch_gate(transition, node, transition.now)
}

/// Sends the same attempt out once more after a worker was lost or could not run; never at the author's expense.
pub(super) fn redeliver_after_loss(
    transition: &mut Transition<'_>,
    node: &NodeId,
    message: &str,
) -> Result<(), Refusal> {
    deliver_later(transition, node, message, false)
}

/// Sends work out once more that was cut off and whose contract failed then. It goes by the next number, since an attempt has
/// one verdict, and uses up no retry; the deliveries that were lost before count on.
pub(super) fn after_judged_delivery(
    transition: &mut Transition<'_>,
    node: &NodeId,
    message: &str,
) -> Result<(), Refusal> {
    deliver_later(transition, node, message, true)
}

fn deliver_later(
    transition: &mut Transition<'_>,
    node: &NodeId,
    message: &str,
    is_judged: bool,
) -> Result<(), Refusal> {
    let limit = transition.graph.limits().deliveries;
    let tally = &mut transition.run.record_mut(node)?.tally;
    tally.deliveries = tally.deliveries.saturating_add(1);
    let (deliveries, attempt) = (tally.deliveries, tally.attempt);
    if deliveries >= limit {
        return agent::escalate_undeliverable(transition, node, message);
    }
    if is_judged && transition.run.head.attempts >= transition.graph.limits().attempts {
        return hold::hold_with_ask(transition, node, AskKind::Escalation, Reason::AttemptsLimit, None);
    }
    if !has_funds_again(transition, node)? {
        return Ok(());
    }
    let item = ItemId::agent(transition.run.id, &transition.run.newest_try(node)?);
    let until = transition.now.after(back_off(&item, deliveries));
    transition.facts.push(Fact::NodeResting {
        node: node.clone(),
        attempt,
        deliveries,
        until,
        message: message.to_owned(),
    });
    let attempt = if is_judged { count_attempt(transition, node)? } else { attempt };
    transition.run.record_mut(node)?.tally.deliveries = deliveries;
    transition.set_state(node, NodeState::Resting { attempt, until })?;
    agent_item(transition, node, until)
}

/// Sends the same attempt out once more, at once, after our own stop.
pub(super) fn after_interruption(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    if !count_interruption(transition, node)? || !has_funds_again(transition, node)? {
        return Ok(());
    }
    let tally = transition.run.record(node)?.tally;
    transition.facts.push(Fact::NodeInterrupted {
        node: node.clone(),
        attempt: tally.attempt,
        interruptions: tally.interruptions,
    });
    transition.set_state(node, NodeState::Working { attempt: tally.attempt })?;
    agent_item(transition, node, transition.now)
}

/// Runs the gate once more, at once, after our own stop, which says nothing about the work.
pub(super) fn gate_after_interruption(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    if !count_interruption(transition, node)? {
        return Ok(());
    }
    let attempt = transition.run.record(node)?.tally.attempt;
    let (purpose, why) = (transition.purpose(node)?, "interrupted".to_owned());
    transition.facts.push(Fact::GateRepeated { node: node.clone(), attempt, purpose, why });
    dispatch_gate(transition, node, transition.now)
}

/// Counts an interruption; asks a person and returns `false` when there were too many.
fn count_interruption(transition: &mut Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let limit = transition.graph.limits().interruptions;
    let tally = &mut transition.run.record_mut(node)?.tally;
    tally.interruptions = tally.interruptions.saturating_add(1);
    if tally.interruptions < limit {
        return Ok(true);
    }
    hold::hold_with_ask(transition, node, AskKind::Escalation, Reason::Interrupted, None)?;
    Ok(false)
}

/// Sends out the gate of the newest attempt, or the rehearsal before the next one, as the node's state calls for.
pub(super) fn dispatch_gate(
    transition: &mut Transition<'_>,
    node: &NodeId,
    available_at: Timestamp,
) -> Result<(), Refusal> {
    let id = transition.outstanding_item(node)?.ok_or(Refusal::WrongState)?;
    let at = transition.run.newest_try(node)?;
    let work = Work::Harness { purpose: transition.purpose(node)? };
    transition.effects.push(Effect::Dispatch(Box::new(Item {
        id,
        run: transition.run.id,
        at,
        available_at,
        work,
    })));
    Ok(())
}

fn agent_item(
    transition: &mut Transition<'_>,
    node: &NodeId,
    available_at: Timestamp,
) -> Result<(), Refusal> {
    let task = transition.task(node)?;
    let at = transition.run.newest_try(node)?;
    let so_far = run_so_far(transition, node)?;
    let record = transition.run.record(node)?;
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
    let id = ItemId::agent(transition.run.id, &at);
    let item = Item { id, run: transition.run.id, at, available_at, work };
    transition.effects.push(Effect::Dispatch(Box::new(item)));
    Ok(())
}

/// Returns how much of the run the agent of a node is to be told: as the edge says that led here, else the node (DOT F1).
fn fidelity(transition: &Transition<'_>, node: &NodeId) -> Result<Option<Fidelity>, Refusal> {
    let profile = transition.graph.node(node).and_then(|node| node.profile.as_deref());
    let carry = transition.run.record(node)?.carry.as_deref();
    Ok(carry.and_then(|carry| carry.fidelity).or(profile.and_then(|profile| profile.fidelity)))
}

/// Returns what the agent of a node is told of the run, and the thread it belongs to: the node's, the edge's, that of its graph
/// or class, else that of the node before (DOT F3).
fn run_so_far(transition: &Transition<'_>, node: &NodeId) -> Result<Option<SoFar>, Refusal> {
    let Some(asked) = fidelity(transition, node)? else { return Ok(None) };
    let profile = transition.graph.node(node).and_then(|node| node.profile.as_deref());
    let record = transition.run.record(node)?;
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
fn reserve(transition: &mut Transition<'_>, node: &NodeId, estimate: Reserved) {
    // The run of a sub-plan may use all that is left, until it says what its own plan allows.
    let estimate = match transition.graph.sub_plan(node).map(|_| transition.run.head.budget_left_for(node)) {
        Some(left) => Reserved { tokens: left.tokens.unwrap_or(0), micro_usd: left.micro_usd.unwrap_or(0) },
        None => estimate,
    };
    let uses_budget = uses_budget(transition, node);
    let reserved = &mut transition.run.head.reserved;
    reserved.remove(node);
    if uses_budget && estimate != Reserved::default() {
        reserved.insert(node.clone(), estimate);
    }
}

/// Says whether the attempts at a node use tokens: those of an agent, or of the run of a sub-plan.
fn uses_budget(transition: &Transition<'_>, node: &NodeId) -> bool {
    transition.graph.task(node).is_some() || transition.graph.sub_plan(node).is_some()
}

/// Says whether the budget suffices for sending the same attempt out once more: what its lost deliveries used is spent
/// (P15). Where it does not, a person is asked, or the node waits for others, and its next attempt is made then.
fn has_funds_again(transition: &mut Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    match check_budget(transition, node)? {
        Funds::Short(shortfall) => hold::for_budget(transition, node, shortfall)?,
        Funds::Later => enqueue(transition, node)?,
        Funds::Enough(estimate) => {
            reserve(transition, node, estimate);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says whether a node that waits has to wait on, since others under way may use what is left of the budget. A report that
/// waits for its gate needs none.
fn awaits_budget(transition: &Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let is_reported = transition.run.record(node)?.unchecked.is_some();
    Ok(!is_reported && matches!(check_budget(transition, node)?, Funds::Later))
}

/// Returns how many steps have not settled.
pub(super) fn steps_remaining(transition: &Transition<'_>) -> u32 {
    transition.graph.task_count().saturating_sub(transition.run.head.settled.total())
}

/// Returns the expected use of all steps that have not settled: what attempts used so far on the average, else a share of the
/// plan's budget for each.
pub(super) fn expected_use_of_rest(transition: &Transition<'_>, part: BudgetPart) -> u64 {
    let (spent, planned) = (transition.run.head.spent, transition.graph.budget());
    let (sum, limit) = match part {
        BudgetPart::Tokens => (spent.tokens, planned.tokens),
        BudgetPart::MicroUsd => (spent.micro_usd, planned.micro_usd),
        BudgetPart::MicroSeconds => (micros(spent.time), planned.time.map(micros)),
    };
    let share = || limit.unwrap_or(0) / u64::from(transition.graph.task_count().max(1));
    let each = sum.checked_div(u64::from(spent.metered)).unwrap_or_else(share);
    each.saturating_mul(u64::from(steps_remaining(transition)))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Compares each limit with what was used and what the next attempt is expected to use (DESIGN 9), and with what is set aside
/// for others besides.
pub(super) fn check_budget(transition: &Transition<'_>, node: &NodeId) -> Result<Funds, Refusal> {
    let head = &transition.run.head;
    let (budget, spent, others) = (head.budget, head.spent, head.reserved_by_others(node));
    let planned = transition.graph.budget();
    let own = transition.run.record(node)?.tally.spent;
    let steps = u64::from(transition.graph.task_count().max(1));
    let mean = |sum: u64, count: u32, share: Option<u64>| match count {
        0 => share.unwrap_or(0) / steps,
        count => sum / u64::from(count),
    };
    // Usage from before the first attempt, such as a rehearsal's, belongs to no step: the first needs no more than it left.
    let is_first = spent.metered + spent.unmetered == 0 && head.reserved.keys().all(|other| other == node);
    let steps_remaining = steps_remaining(transition);
    let mut is_later = false;
    let mut look = |part: BudgetPart, limit: Option<u64>, spent: u64, others: u64, estimate: u64| {
        let Some(limit) = limit else { return Ok(0) };
        let left = limit.saturating_sub(spent).max(1);
        let estimate = if is_first && spent <= limit { estimate.min(left) } else { estimate };
        if spent.saturating_add(estimate) > limit {
            return Err(Shortfall { part, limit, spent, estimate, steps_remaining, day: None });
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
    let time_spent = micros(transition.run.time_spent(transition.now));
    let looked =
        look(BudgetPart::Tokens, budget.tokens, spent.tokens, others.tokens, tokens).and_then(|tokens| {
            let micro_usd =
                look(BudgetPart::MicroUsd, budget.micro_usd, spent.micro_usd, others.micro_usd, micro_usd)?;
            // Time passes for all of them at once.
            look(BudgetPart::MicroSeconds, budget.time.map(micros), time_spent, 0, time)?;
            Ok(Reserved { tokens, micro_usd })
        });
    Ok(match looked {
        Err(shortfall) => Funds::Short(shortfall),
        Ok(_) if is_later && uses_budget(transition, node) => Funds::Later,
        Ok(estimate) => Funds::Enough(estimate),
    })
}
