//! A plan within a plan: its run begins, the node waits for it, and its end is the node's.

use std::time::Duration;

use crate::budget::{Budget, Reserved, Spent};
use crate::contract::Excerpt;
use crate::event::ChildEnd;
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::graph::Signal;
use crate::ids::{Attempt, NodeId, RunId};
use crate::outcome::{End, Outcome};
use crate::refusal::Refusal;
use crate::run::NodeState;

use super::{Transition, choose, dispatch, route, settle};

/// Begins the names under which conditions find how the run of a sub-plan ended (DOT N1).
const CHILD: &str = "stack.child.";

/// How long an item rests whose run is under way: it is woken when that is over.
const UNTIL_WOKEN: Duration = Duration::from_secs(50 * 365 * 24 * 3_600);

/// Waits for the run of a sub-plan, which has begun: as much as it may use is set aside, and while it waits for a person, it
/// uses no time.
pub(super) fn on_begun(
    transition: &mut Transition<'_>,
    node: &NodeId,
    run: RunId,
    budget: Budget,
    waits: bool,
) -> Result<(), Refusal> {
    let attempt = attempt_nested(transition, node)?;
    transition.set_state(node, NodeState::Nested { attempt, waits })?;
    let is_known = transition.run.record(node)?.child == Some(run);
    let limits = transition.run.head.budget;
    if let Some(reserved) = transition.run.head.reserved.get_mut(node) {
        let named = Reserved {
            tokens: limits.tokens.and(budget.tokens).unwrap_or(reserved.tokens),
            micro_usd: limits.micro_usd.and(budget.micro_usd).unwrap_or(reserved.micro_usd),
        };
        // The amount that was set aside for a raise stays, whichever of the two is heard of first.
        let is_raised = |had: u64, named: u64| if is_known { had.max(named) } else { named };
        *reserved = Reserved {
            tokens: is_raised(reserved.tokens, named.tokens),
            micro_usd: is_raised(reserved.micro_usd, named.micro_usd),
        };
    }
    if !is_known {
        transition.run.record_mut(node)?.child = Some(run);
        transition.facts.push(Fact::SubPlanBegan { node: node.clone(), run });
    }
    dispatch::dispatch_gate(transition, node, transition.now.after(UNTIL_WOKEN))
}

/// Sets aside what the run of a sub-plan may use once a person has raised its budget. This comes before the raise, so that no
/// other branch counts on the same rest; it is refused where less is left beside what is set aside for others (P15). Where the
/// raise comes to nothing after all, it stays set aside until that run is over.
pub(super) fn set_aside(
    transition: &mut Transition<'_>,
    node: &NodeId,
    run: RunId,
    budget: Budget,
) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    attempt_nested(transition, node)?;
    if transition.run.record(node)?.child != Some(run) {
        return Err(Refusal::WrongState);
    }
    let left = transition.run.head.budget_left_for(node);
    let had = transition.run.head.reserved.get(node).copied().unwrap_or_default();
    // A part in which it may use no more than before stays as it is, whatever others have used meanwhile.
    let raised = |left: Option<u64>, wanted: Option<u64>, had: u64| match (left, wanted) {
        (Some(left), Some(wanted)) if wanted > had.max(left) => Err(Refusal::NotLeft),
        (Some(_), Some(wanted)) => Ok(had.max(wanted)),
        (Some(_) | None, _) => Ok(had),
    };
    let reserved = Reserved {
        tokens: raised(left.tokens, budget.tokens, had.tokens)?,
        micro_usd: raised(left.micro_usd, budget.micro_usd, had.micro_usd)?,
    };
    if reserved != had {
        transition.run.head.reserved.insert(node.clone(), reserved);
    }
    Ok(())
}

/// Settles a node as its sub-plan's run ended, and counts what that used.
pub(super) fn on_ended(
    transition: &mut Transition<'_>,
    node: &NodeId,
    child: &ChildEnd,
) -> Result<(), Refusal> {
    attempt_nested(transition, node)?;
    charge_child_run(&mut transition.run.head.spent, &child.spent);
    transition.facts.push(Fact::SubPlanEnded {
        node: node.clone(),
        name: child.name.clone(),
        end: child.end,
        spent: child.spent,
    });
    let plan = transition.graph.sub_plan(node);
    let is_asked = transition.graph.conditions_ask_for(CHILD);
    let record = transition.run.record_mut(node)?;
    record.child = Some(child.run);
    if is_asked {
        let is_done = child.end == End::Done;
        let (status, outcome) = if is_done { ("completed", "success") } else { ("failed", "fail") };
        record.context.insert(format!("{CHILD}status"), status.to_owned());
        record.context.insert(format!("{CHILD}outcome"), outcome.to_owned());
    }
    let until = plan.and_then(|plan| plan.until.as_ref());
    let is_met = match until.filter(|_| child.end == End::Done) {
        Some(until) => choose::holds(transition, node, Signal::Success, until)?,
        None => true,
    };
    let record = transition.run.record_mut(node)?;
    match child.end {
        End::Done if is_met => {
            settle::settle(transition, node, Outcome::Passed, None)?;
            route::leave_on_success(transition, node)
        }
        // The sub-plan's `until` condition does not hold yet: it gets one more run, within its limit (DOT N1).
        End::Done if record.tally.failed + 1 < plan.map_or(1, |plan| plan.cycles) => {
            record.tally.failed += 1;
            let left = plan.map_or(1, |plan| plan.cycles) - record.tally.failed - 1;
            let attempt = record.tally.attempt.next();
            transition.facts.push(Fact::RetryTriggered { node: node.clone(), attempt, left });
            dispatch::dispatch_node(transition, node)
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
            settle::exhaust_attempts(transition, node)
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
fn attempt_nested(transition: &Transition<'_>, node: &NodeId) -> Result<Attempt, Refusal> {
    let NodeState::Nested { attempt, .. } = *transition.state(node)? else {
        return Err(Refusal::WrongState);
    };
    Ok(attempt)
}
