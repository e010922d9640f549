//! How an attempt, and at last a node, comes to its end.

use std::time::Duration;

use crate::ask::Reason;
use crate::contract::Excerpt;
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::graph::{NodeKind, Signal};
use crate::ids::{Actor, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{NodeState, Recurrence};

use super::{Transition, choose, dispatch, pace, route};

/// The person who settled a node by hand, and the reason given.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) by: &'a Actor,
    pub(super) note: Option<&'a str>,
}

/// Settles a node for this visit.
pub(super) fn settle(
    transition: &mut Transition<'_>,
    node: &NodeId,
    outcome: Outcome,
    said: Option<Said<'_>>,
) -> Result<(), Refusal> {
    transition.set_state(node, NodeState::Settled { outcome })?;
    transition.facts.push(Fact::NodeSettled {
        node: node.clone(),
        outcome,
        by: said.map(|said| said.by.clone()),
        note: said.and_then(|said| said.note).map(str::to_owned),
    });
    Ok(())
}

/// Spends an attempt: the node is tried again while its allowance lasts, and is exhausted after (DESIGN 6).
///
/// `is_last` says that no retry shall follow, since the worker itself gave up.
pub(super) fn attempt_failed(
    transition: &mut Transition<'_>,
    node: &NodeId,
    failure: Failure,
    is_last: bool,
) -> Result<(), Refusal> {
    let record = transition.run.record_mut(node)?;
    record.failure = Some(Box::new(failure));
    record.tally.failed = record.tally.failed.saturating_add(1);
    let next = record.tally.attempt.next();
    let left = attempts_left(transition, node)?;
    if left == 0 || is_last {
        return exhaust_attempts(transition, node);
    }
    if let Some(chosen) = choose::choose_edge(transition, node, Signal::Retry)? {
        transition.set_state(node, NodeState::Pending)?;
        route::queue_edge(transition, chosen, Signal::Retry);
        return Ok(());
    }
    let left = u16::try_from(left - 1).unwrap_or(u16::MAX);
    transition.facts.push(Fact::RetryTriggered { node: node.clone(), attempt: next, left });
    dispatch::after_failure(transition, node)
}

/// Returns how many attempts a step has left.
pub(super) fn attempts_left(transition: &Transition<'_>, node: &NodeId) -> Result<u32, Refusal> {
    let tally = transition.run.record(node)?.tally;
    let allowance = 1 + u32::from(transition.gated(node)?.max_retries) + u32::from(tally.granted);
    Ok(allowance.saturating_sub(u32::from(tally.failed)))
}

/// Follows the edge of a node whose last attempt failed, or asks a person where none fits.
pub(super) fn exhaust_attempts(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    leave_exhausted(transition, node, true)
}

/// Treats one entry too many as exhausted: the loop of the node ends, and a person is asked where no edge leads out of it
///
pub(super) fn exhaust_visits(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    leave_exhausted(transition, node, false)
}

fn leave_exhausted(transition: &mut Transition<'_>, node: &NodeId, has_failed: bool) -> Result<(), Refusal> {
    let of_plan = transition.graph.sub_plan(node).map(|plan| plan.on_exhausted);
    let on_exhausted =
        transition.graph.gated(node).map(|gated| gated.on_exhausted).or(of_plan).unwrap_or(Outcome::Failed);
    let ending = choose::Ending { outcome: on_exhausted, is_over_visits: !has_failed };
    let Some(chosen) = choose::choose_edge_settling(transition, node, Signal::Exhausted, Some(ending))?
    else {
        return match has_failed {
            true => pace::escalate(transition, node, Reason::NoEdge, None, None),
            false => {
                let message = route::visits_message(transition, node);
                pace::escalate(transition, node, Reason::VisitsLimit, Some(message), None)
            }
        };
    };
    let target = transition.graph.node(&chosen.edge.to).map(|target| &target.kind);
    let asks = matches!(target, Some(NodeKind::Escalate { .. }));
    if !asks {
        let may_come_back = !matches!(target, Some(NodeKind::Exit { .. }));
        if has_failed && may_come_back && counts_as_recurring(transition, node)? {
            return pace::escalate(transition, node, Reason::SameFailure, None, None);
        }
        settle(transition, node, on_exhausted, None)?;
    }
    route::queue_edge(transition, chosen, Signal::Exhausted);
    Ok(())
}

/// Notes with what a node failed for good, and says whether that was the same too often (DOT E14).
fn counts_as_recurring(transition: &mut Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let limit = transition.graph.limits().same_failures;
    let record = transition.run.record_mut(node)?;
    let Some(signature) = record.failure.as_deref().map(signature) else { return Ok(false) };
    let before = record.recurrence.take().filter(|before| before.signature == signature);
    let count = before.map_or(0, |before| before.count).saturating_add(1);
    let is_too_often = count >= limit;
    // A person who has it tried again begins a new count.
    record.recurrence = (!is_too_often).then_some(Recurrence { signature, count });
    Ok(is_too_often)
}

/// Draws from a failure what stays alike when the same thing fails again: words, and no numbers, which are times and
/// addresses as often as not.
fn signature(failure: &Failure) -> u64 {
    let what = match &failure.what {
        Failing::Contract { verdict, ending, .. } => format!("{verdict:?} {ending:?}"),
        Failing::Overran { .. } => "overran".to_owned(),
        Failing::Undelivered { .. } => "undelivered".to_owned(),
        Failing::Permission { .. } => "permission".to_owned(),
        Failing::Inconclusive { .. } => "inconclusive".to_owned(),
        Failing::NotRed { .. } => "not red".to_owned(),
        Failing::Conflict { .. } => "conflict".to_owned(),
        Failing::SubPlan { end, .. } => format!("{end:?}"),
        Failing::Unconfirmed { .. } => "unconfirmed".to_owned(),
        Failing::Unobserved { message } => format!("unobserved {message}"),
        Failing::TooFewTests { .. } => "too few tests".to_owned(),
        // A judge says the same thing in other words each time.
        Failing::Judged { .. } => "judged".to_owned(),
    };
    let printed = failure.stdout.tail.bytes().chain([0]).chain(failure.stderr.tail.bytes());
    let words = printed.filter(|byte| !byte.is_ascii_digit());
    what.bytes().chain([0]).chain(words).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Describes the newest attempt's failure where no gate ran.
pub(super) fn failure_without_gate(
    transition: &Transition<'_>,
    node: &NodeId,
    what: Failing,
) -> Result<Failure, Refusal> {
    Ok(Failure {
        attempt: transition.run.record(node)?.tally.attempt,
        what,
        duration: Duration::ZERO,
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
        denied: Vec::new(),
    })
}
