//! How a step that cannot go on comes to the responder of the next PACE level, and at last to a person.

use crate::ask::{AskKind, Reason};
use crate::fact::Fact;
use crate::graph::Task;
use crate::ids::NodeId;
use crate::pace::{Handover, Level, Responder};
use crate::refusal::Refusal;

use super::{Transition, dispatch, hold, settle};

/// Escalates a step to the next level of its role, at least to the one that the plan names.
///
/// An agent that answers gets the step with what attempts are left, one at least; a person is asked. Where nobody is
/// configured above, a person is asked too.
pub(super) fn escalate(
    transition: &mut Transition<'_>,
    node: &NodeId,
    reason: Reason,
    message: Option<String>,
    named: Option<Level>,
) -> Result<(), Refusal> {
    let Some(task) = transition.graph.task(node) else {
        return hold::hold_with_ask(transition, node, AskKind::Escalation, reason, message);
    };
    let now = transition.run.record(node)?.level();
    let (level, responder) = next_level(task, now, named.unwrap_or_default());
    if level != now {
        hand_over(transition, node, level, &responder, reason, message.clone())?;
    }
    match responder {
        Responder::Human => hold::hold_with_ask(transition, node, AskKind::Escalation, reason, message),
        Responder::Role(_) => {
            transition.facts.push(Fact::PlanEscalated { node: node.clone(), reason, message });
            dispatch::dispatch_node(transition, node)
        }
    }
}

/// Begins with the step's own role again, where the step is entered and not once too often.
pub(super) fn begin_anew(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let max_visits = transition.graph.node(node).map_or(1, |node| node.max_visits);
    let record = transition.run.record(node)?;
    if record.pace.is_none() || record.tally.visits >= max_visits {
        return Ok(());
    }
    let Some(before) = transition.run.record_mut(node)?.pace.take() else { return Ok(()) };
    transition.facts.push(Fact::PaceChanged {
        node: node.clone(),
        from: before.level,
        to: Level::Primary,
        responder: Responder::Role(transition.task(node)?.role.clone()),
        reason: Reason::Reentered,
    });
    Ok(())
}

/// Returns the level that follows, and who answers there: the first configured one above this and not below the named.
/// With none left it is the named one, else the last where any is configured, and a person answers.
fn next_level(task: &Task, now: Level, named: Level) -> (Level, Responder) {
    let mut above = task.pace.iter().filter(|pace_level| pace_level.level > now && pace_level.level >= named);
    match above.next() {
        Some(pace_level) => (pace_level.level, pace_level.responder.clone()),
        None if named > now => (named, Responder::Human),
        None if task.pace.is_empty() => (now, Responder::Human),
        None => (Level::Emergency, Responder::Human),
    }
}

fn hand_over(
    transition: &mut Transition<'_>,
    node: &NodeId,
    level: Level,
    responder: &Responder,
    reason: Reason,
    message: Option<String>,
) -> Result<(), Refusal> {
    let task = transition.task(node)?;
    let from = transition.run.record(node)?.level();
    let left = settle::attempts_left(transition, node)?;
    let record = transition.run.record_mut(node)?;
    let had_it = record.worker_role(task).clone();
    let handover = Handover { level, from: had_it, reason, message, after: record.tally.attempt };
    record.pace = Some(Box::new(handover));
    if let Responder::Role(_) = responder {
        record.role = None;
        if left == 0 {
            record.tally.granted = record.tally.granted.saturating_add(1);
        }
    }
    transition.facts.push(Fact::PaceChanged {
        node: node.clone(),
        from,
        to: level,
        responder: responder.clone(),
        reason,
    });
    Ok(())
}
