//! Events of the clock: admission to the workspace, timers, expired leases.

use crate::ask::{AskKind, Reason};
use crate::budget::{Shortfall, Usage};
use crate::effect::Effect;
use crate::event::{ClockEvent, Overrun};
use crate::fact::Fact;
use crate::ids::{Actor, At, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{NodeState, RunStatus};
use crate::time::Timestamp;
use crate::timer::TimerId;

use super::settle::Said;
use super::{Turn, agent, dispatch, exceeded, hold, human, pace, revise, route, settle, sub_plan};

pub(super) fn apply_event(turn: &mut Turn<'_>, event: &ClockEvent) -> Result<(), Refusal> {
    match event {
        ClockEvent::Admitted => on_admitted(turn),
        ClockEvent::Due { timer: TimerId::Stale } => on_stale(turn),
        ClockEvent::Due { timer: TimerId::Budget } => {
            if !exceeded::stop_over_budget(turn)? && turn.run.head.clock_since.is_some() {
                turn.arm_budget();
            }
            Ok(())
        }
        ClockEvent::Metered if exceeded::stop_over_budget(turn)? => Ok(()),
        ClockEvent::Metered => Err(Refusal::WrongState),
        ClockEvent::DaySpent { at, part, limit, spent, day } => {
            turn.refuse_unless_active()?;
            let node = working_node(turn, at)?;
            let short = Shortfall {
                part: *part,
                limit: *limit,
                spent: *spent,
                estimate: dispatch::rest(turn, *part),
                steps_remaining: dispatch::steps_remaining(turn),
                day: Some(*day),
            };
            day_spent(turn, &node, short)
        }
        ClockEvent::DayAllows { node } => day_allows(turn, node),
        ClockEvent::SetAside { node, run, budget } => sub_plan::set_aside(turn, node, *run, *budget),
        ClockEvent::Unattended { since } => unattended(turn, *since),
        ClockEvent::Due { timer: TimerId::Answer(node) } => apply_default_answer(turn, node),
        ClockEvent::LeaseLost { at, interrupted, noted } => {
            on_lease_lost(turn, at, *interrupted, noted.as_ref())
        }
        ClockEvent::Overran { at, noted } => {
            let node = working_node(turn, at)?;
            let timeout = turn.run.record(&node)?.work_timeout(turn.task(&node)?);
            agent::charge_usage(turn, &node, noted.as_ref(), timeout)?;
            agent::on_overrun(turn, &node, Overrun::Deadline)
        }
    }
}

fn on_admitted(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    let RunStatus::Queued { resuming } = turn.run.head.status else {
        return Err(Refusal::NotActive);
    };
    turn.run.head.status = RunStatus::Active;
    turn.facts.push(Fact::PlanActivated { resumed: resuming });
    turn.arm_stale(turn.now);
    if resuming {
        return revise::enter_stopped_nodes(turn);
    }
    let start = turn.graph.start().clone();
    settle::settle(turn, &start, Outcome::Passed, None)?;
    route::leave_on_success(turn, &start)
}

/// Asks a person about a run that stands still; one that already waits for a person is left alone.
fn on_stale(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let Some(limit) = turn.graph.limits().stale_after else {
        return Err(Refusal::WrongState);
    };
    let still = turn.now.since(turn.run.head.moved_at);
    if turn.run.head.out == 0 || still < limit {
        let from = if turn.run.head.out == 0 { turn.now } else { turn.run.head.moved_at };
        turn.arm_stale(from);
        return Ok(());
    }
    // A sub-plan's run has its own limit (DOT P11).
    for node in turn.run.live_nodes()? {
        if matches!(turn.state(&node)?, NodeState::Nested { .. }) {
            turn.arm_stale(turn.now);
            return Ok(());
        }
    }
    turn.facts.push(Fact::PlanExpired { seconds: still.as_secs(), turns: None });
    for node in turn.run.live_nodes()? {
        if !turn.state(&node)?.is_out() {
            continue;
        }
        // A stalled evaluation is not the worker's fault, and another worker would not help.
        let is_evaluated = turn.attempt_in_evaluation(&node)?.is_some();
        if let Some(item) = turn.outstanding_item(&node)? {
            turn.effects.push(Effect::Withdraw(item));
        }
        turn.charge_noted_usage(&node)?;
        if is_evaluated {
            hold::hold_with_ask(turn, &node, AskKind::Escalation, Reason::Stale, None)?;
        } else {
            pace::escalate(turn, &node, Reason::Stale, None, None)?;
        }
    }
    turn.arm_stale(turn.now);
    Ok(())
}

/// Takes back work that nobody has begun, and asks a person.
fn day_spent(turn: &mut Turn<'_>, node: &NodeId, short: Shortfall) -> Result<(), Refusal> {
    turn.withdraw(node)?;
    hold::for_budget(turn, node, short)
}

/// Takes back what a person was asked about the budget of a day, and goes on.
fn day_allows(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    let words = Words {
        answer: "continue",
        by: &Actor::from("planctl"),
        note: "the budget of the day allows it".to_owned(),
        option: None,
    };
    answer_for_nobody(turn, node, AskKind::Day, words)?;
    turn.set_state(node, NodeState::Pending)?;
    dispatch::dispatch_node(turn, node)
}

/// The answer that the clock gives to an ask that waits for nobody any more.
struct Words<'a> {
    answer: &'static str,
    by: &'a Actor,
    note: String,
    option: Option<String>,
}

/// Takes an ask back and answers it; refused where the node is not held by one of this kind.
fn answer_for_nobody(
    turn: &mut Turn<'_>,
    node: &NodeId,
    kind: AskKind,
    words: Words<'_>,
) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let NodeState::Held { ask, item } = turn.state(node)?.clone() else { return Err(Refusal::WrongState) };
    if ask != kind {
        return Err(Refusal::WrongState);
    }
    turn.effects.push(Effect::Withdraw(item.clone()));
    turn.facts.push(Fact::AskAnswered {
        node: node.clone(),
        item,
        kind,
        answer: words.answer.to_owned(),
        by: words.by.clone(),
        note: Some(words.note),
        role: None,
        option: words.option,
    });
    Ok(())
}

/// Counts the time up to which a process worked on the run, and none from there to this moment.
fn unattended(turn: &mut Turn<'_>, since: Timestamp) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let counted_from = turn.run.head.clock_since.ok_or(Refusal::WrongState)?;
    if since.max(counted_from) >= turn.now {
        return Err(Refusal::WrongState);
    }
    let head = &mut turn.run.head;
    head.spent.time = head.spent.time.saturating_add(since.since(counted_from));
    head.clock_since = Some(turn.now);
    turn.arm_budget();
    Ok(())
}

/// Lets the declared answer count where nobody gave one in time.
fn apply_default_answer(turn: &mut Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let default = turn.question(node)?.default.clone().ok_or(Refusal::WrongState)?;
    let by = Actor::from("the plan");
    let words = Words {
        answer: "choose",
        by: &by,
        note: format!("nobody answered within {} s", default.after.as_secs()),
        option: Some(default.answer.clone()),
    };
    answer_for_nobody(turn, node, AskKind::Choice, words)?;
    human::settle_choice(turn, node, &default.answer, Said { by: &by, note: None })
}

fn on_lease_lost(
    turn: &mut Turn<'_>,
    at: &At,
    interrupted: bool,
    noted: Option<&Usage>,
) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    if let Some(attempt) = turn.attempt_in_evaluation(&at.node)? {
        turn.refuse_unless_newest(at, attempt)?;
        return dispatch::gate_after_interruption(turn, &at.node);
    }
    let node = working_node(turn, at)?;
    agent::charge_if_reported(turn, &node, noted)?;
    if interrupted {
        dispatch::after_interruption(turn, &node)
    } else {
        dispatch::redeliver_after_loss(turn, &node, "the worker vanished")
    }
}

/// Checks that an agent's item of this very try is out.
fn working_node(turn: &Turn<'_>, at: &At) -> Result<NodeId, Refusal> {
    turn.refuse_unless_active()?;
    turn.task(&at.node)?;
    let attempt = match turn.state(&at.node)? {
        NodeState::Working { attempt } | NodeState::Resting { attempt, .. } => *attempt,
        NodeState::Pending
        | NodeState::Ready
        | NodeState::Saving { .. }
        | NodeState::Branching
        | NodeState::Nested { .. }
        | NodeState::Rehearsing
        | NodeState::Checking { .. }
        | NodeState::Held { .. }
        | NodeState::Settled { .. } => return Err(Refusal::WrongState),
    };
    turn.refuse_unless_newest(at, attempt)?;
    Ok(at.node.clone())
}
