//! A plan within a plan: its run begins, the node waits for it, and its end is the node's.

use std::time::Duration;

use crate::budget::{Budget, Spent};
use crate::contract::Excerpt;
use crate::event::{ChildEnd, Refusal};
use crate::fact::Fact;
use crate::graph::Signal;
use crate::ids::{Attempt, NodeId, RunId};
use crate::run::{End, Failing, Failure, NodeState, Outcome};

use super::{Turn, choose, dispatch, route, settle};

/// Begins the names under which conditions find how the run of a sub-plan ended (DOT N1).
const CHILD: &str = "stack.child.";

/// How long an item rests whose run is under way: it is woken when that is over.
const UNTIL_WOKEN: Duration = Duration::from_secs(50 * 365 * 24 * 3_600);

/// Waits for the run of a sub-plan, which has begun: as much as it may use is set aside, and while it waits for a person, it
/// uses no time.
pub(super) fn on_begun(
    turn: &mut Turn<'_>,
    node: &NodeId,
    run: RunId,
    budget: Budget,
    waits: bool,
) -> Result<(), Refusal> {
    let attempt = attempt_nested(turn, node)?;
    turn.set_state(node, NodeState::Nested { attempt, waits })?;
    let limits = turn.run.head.budget;
    if let Some(reserved) = turn.run.head.reserved.get_mut(node) {
        reserved.tokens = limits.tokens.and(budget.tokens).unwrap_or(reserved.tokens);
        reserved.micro_usd = limits.micro_usd.and(budget.micro_usd).unwrap_or(reserved.micro_usd);
    }
    let record = turn.run.record_mut(node)?;
    if record.child != Some(run) {
        record.child = Some(run);
        turn.facts.push(Fact::SubPlanBegan { node: node.clone(), run });
    }
    dispatch::dispatch_gate(turn, node, turn.now.after(UNTIL_WOKEN))
}

/// Settles a node as its sub-plan's run ended, and counts what that used.
pub(super) fn on_ended(turn: &mut Turn<'_>, node: &NodeId, child: &ChildEnd) -> Result<(), Refusal> {
    attempt_nested(turn, node)?;
    charge_child_run(&mut turn.run.head.spent, &child.spent);
    turn.facts.push(Fact::SubPlanEnded {
        node: node.clone(),
        name: child.name.clone(),
        end: child.end,
        spent: child.spent,
    });
    let plan = turn.graph.sub_plan(node);
    let is_asked = turn.graph.conditions_ask_for(CHILD);
    let record = turn.run.record_mut(node)?;
    record.child = Some(child.run);
    if is_asked {
        let is_done = child.end == End::Done;
        let (status, outcome) = if is_done { ("completed", "success") } else { ("failed", "fail") };
        record.context.insert(format!("{CHILD}status"), status.to_owned());
        record.context.insert(format!("{CHILD}outcome"), outcome.to_owned());
    }
    let until = plan.and_then(|plan| plan.until.as_ref());
    let is_met = match until.filter(|_| child.end == End::Done) {
        Some(until) => choose::holds(turn, node, Signal::Success, until)?,
        None => true,
    };
    let record = turn.run.record_mut(node)?;
    match child.end {
        End::Done if is_met => {
            settle::settle(turn, node, Outcome::Passed, None)?;
            route::leave_on_success(turn, node)
        }
        // The sub-plan's `until` condition does not hold yet: it gets one more run, within its limit (DOT N1).
        End::Done if record.tally.failed + 1 < plan.map_or(1, |plan| plan.cycles) => {
            record.tally.failed += 1;
            let left = plan.map_or(1, |plan| plan.cycles) - record.tally.failed - 1;
            let attempt = record.tally.attempt.next();
            turn.facts.push(Fact::RetryTriggered { node: node.clone(), attempt, left });
            dispatch::dispatch_node(turn, node)
        }
        End::Done | End::Failed | End::Aborted | End::Cancelled => {
            record.failure = Some(Box::new(Failure {
                attempt: record.tally.attempt,
                what: Failing::SubPlan { name: child.name.clone(), end: child.end },
                duration: child.spent.time,
                stdout: Excerpt::default(),
                stderr: Excerpt::default(),
                denied: Vec::new(),
            }));
            record.tally.failed = record.tally.failed.saturating_add(1);
            settle::exhaust_attempts(turn, node)
        }
    }
}

/// Counts what a sub-plan's run used for the run around it; its time passes in the run's own.
fn charge_child_run(spent: &mut Spent, of_child: &Spent) {
    spent.tokens = spent.tokens.saturating_add(of_child.tokens);
    spent.micro_usd = spent.micro_usd.saturating_add(of_child.micro_usd);
    spent.metered = spent.metered.saturating_add(of_child.metered);
    spent.unmetered = spent.unmetered.saturating_add(of_child.unmetered);
}

/// Returns the try whose run is awaited at a node.
fn attempt_nested(turn: &Turn<'_>, node: &NodeId) -> Result<Attempt, Refusal> {
    match turn.state(node)? {
        NodeState::Nested { attempt, .. } => Ok(*attempt),
        NodeState::Pending
        | NodeState::Ready
        | NodeState::Saving { .. }
        | NodeState::Branching
        | NodeState::Rehearsing
        | NodeState::Working { .. }
        | NodeState::Resting { .. }
        | NodeState::Checking { .. }
        | NodeState::Held { .. }
        | NodeState::Settled { .. } => Err(Refusal::WrongState),
    }
}
