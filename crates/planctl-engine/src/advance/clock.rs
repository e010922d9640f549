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
use super::{
    Transition, agent, dispatch, exceeded, harness, hold, human, pace, revise, route, settle, sub_plan,
};

pub(super) fn apply_event(transition: &mut Transition<'_>, event: &ClockEvent) -> Result<(), Refusal> {
    match event {
        ClockEvent::Admitted => on_admitted(transition),
        ClockEvent::Due { timer: TimerId::Stale } => on_stale(transition),
        ClockEvent::Due { timer: TimerId::Budget } => {
            if !exceeded::stop_over_budget(transition)? && transition.run.head.clock_since.is_some() {
                transition.arm_budget();
            }
            Ok(())
        }
        ClockEvent::Metered if exceeded::stop_over_budget(transition)? => Ok(()),
        ClockEvent::Metered => Err(Refusal::WrongState),
        ClockEvent::DaySpent { at, part, limit, spent, day } => {
            transition.refuse_unless_working(at)?;
            let short = Shortfall {
                part: *part,
                limit: *limit,
                spent: *spent,
                estimate: dispatch::expected_use_of_rest(transition, *part),
                steps_remaining: dispatch::steps_remaining(transition),
                day: Some(*day),
            };
            day_spent(transition, &at.node, short)
        }
        ClockEvent::DayAllows { node } => day_allows(transition, node),
        ClockEvent::SetAside { node, run, budget } => sub_plan::set_aside(transition, node, *run, *budget),
        ClockEvent::Unattended { since } => unattended(transition, *since),
        ClockEvent::Due { timer: TimerId::Answer(node) } => apply_default_answer(transition, node),
        ClockEvent::LeaseLost { at, interrupted, noted } => {
            on_lease_lost(transition, at, *interrupted, noted.as_ref())
        }
        ClockEvent::Overran { at, noted } => {
            transition.refuse_unless_working(at)?;
            let node = &at.node;
            let timeout = transition.run.record(node)?.work_timeout(transition.task(node)?);
            agent::charge_usage(transition, node, noted.as_ref(), timeout)?;
            agent::on_overrun(transition, node, Overrun::Deadline)
        }
    }
}

fn on_admitted(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    let RunStatus::Queued { resuming } = transition.run.head.status else {
        return Err(Refusal::NotActive);
    };
    transition.run.head.status = RunStatus::Active;
    transition.facts.push(Fact::PlanActivated { resumed: resuming });
    transition.arm_stale(transition.now);
    if resuming {
        return revise::enter_stopped_nodes(transition);
    }
    let start = transition.graph.start().clone();
    settle::settle(transition, &start, Outcome::Passed, None)?;
    route::leave_on_success(transition, &start)
}

/// Asks a person about a run that stands still; one that already waits for a person is left alone.
fn on_stale(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    let Some(limit) = transition.graph.limits().stale_after else {
        return Err(Refusal::WrongState);
    };
    let still = transition.now.since(transition.run.head.moved_at);
    if transition.run.head.out == 0 || still < limit {
        let from = if transition.run.head.out == 0 { transition.now } else { transition.run.head.moved_at };
        transition.arm_stale(from);
        return Ok(());
    }
    // A sub-plan's run has its own limit (DOT P11).
    for node in transition.run.live_nodes()? {
        if matches!(transition.state(&node)?, NodeState::Nested { .. }) {
            transition.arm_stale(transition.now);
            return Ok(());
        }
    }
    transition.facts.push(Fact::PlanExpired { seconds: still.as_secs(), turns: None });
    for node in transition.run.live_nodes()? {
        if !transition.state(&node)?.is_out() {
            continue;
        }
        // A stalled evaluation is not the worker's fault, and another worker would not help.
        let is_evaluated = transition.attempt_in_evaluation(&node)?.is_some();
        transition.withdraw(&node)?;
        if is_evaluated {
            hold::hold_with_ask(transition, &node, AskKind::Escalation, Reason::Stale, None)?;
        } else {
            pace::escalate(transition, &node, Reason::Stale, None, None)?;
        }
    }
    transition.arm_stale(transition.now);
    Ok(())
}

/// Takes back work that nobody has begun, and asks a person.
fn day_spent(transition: &mut Transition<'_>, node: &NodeId, short: Shortfall) -> Result<(), Refusal> {
    transition.withdraw(node)?;
    hold::for_budget(transition, node, short)
}

/// Takes back what a person was asked about the budget of a day, and goes on.
fn day_allows(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let words = Words {
        answer: "continue",
        by: &Actor::from("planctl"),
        note: "the budget of the day allows it".to_owned(),
        option: None,
    };
    answer_for_nobody(transition, node, AskKind::Day, words)?;
    transition.set_state(node, NodeState::Pending)?;
    dispatch::dispatch_node(transition, node)
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
    transition: &mut Transition<'_>,
    node: &NodeId,
    kind: AskKind,
    words: Words<'_>,
) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    let NodeState::Held { ask, item } = transition.state(node)?.clone() else {
        return Err(Refusal::WrongState);
    };
    if ask != kind {
        return Err(Refusal::WrongState);
    }
    transition.effects.push(Effect::Withdraw(item.clone()));
    transition.facts.push(Fact::AskAnswered {
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
fn unattended(transition: &mut Transition<'_>, since: Timestamp) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    let counted_from = transition.run.head.clock_since.ok_or(Refusal::WrongState)?;
    if since.max(counted_from) >= transition.now {
        return Err(Refusal::WrongState);
    }
    let head = &mut transition.run.head;
    head.spent.time = head.spent.time.saturating_add(since.since(counted_from));
    head.clock_since = Some(transition.now);
    transition.arm_budget();
    Ok(())
}

/// Lets the declared answer count where nobody gave one in time.
fn apply_default_answer(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    let default = transition.question(node)?.default.clone().ok_or(Refusal::WrongState)?;
    let by = Actor::from("the plan");
    let words = Words {
        answer: "choose",
        by: &by,
        note: format!("nobody answered within {} s", default.after.as_secs()),
        option: Some(default.answer.clone()),
    };
    answer_for_nobody(transition, node, AskKind::Choice, words)?;
    human::settle_choice(transition, node, &default.answer, Said { by: &by, note: None })
}

fn on_lease_lost(
    transition: &mut Transition<'_>,
    at: &At,
    interrupted: bool,
    noted: Option<&Usage>,
) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    let node = &at.node;
    if let Some(attempt) = transition.attempt_in_evaluation(node)? {
        transition.refuse_unless_newest(at, attempt)?;
        harness::charge_judge(transition, node, noted)?;
        return dispatch::gate_after_interruption(transition, node);
    }
    transition.refuse_unless_working(at)?;
    agent::charge_if_reported(transition, node, noted)?;
    if interrupted {
        dispatch::after_interruption(transition, node)
    } else {
        dispatch::redeliver_after_loss(transition, node, "the worker vanished")
    }
}
