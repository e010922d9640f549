//! A plan within a plan: its run begins, the node waits for it, and its end is the node's.

use std::time::Duration;

use crate::contract::Excerpt;
use crate::event::{ChildEnd, Refusal};
use crate::fact::Fact;
use crate::ids::{NodeId, RunId};
use crate::run::{End, Failing, Failure, NodeState, Outcome};

use super::{Turn, dispatch, route, settle};

/// How long an item rests whose run is under way: it is woken when that is over.
const UNTIL_WOKEN: Duration = Duration::from_secs(50 * 365 * 24 * 3_600);

/// Waits for the run of a sub-plan, which has begun.
pub(super) fn begun(turn: &mut Turn<'_>, node: &NodeId, run: RunId) -> Result<(), Refusal> {
    refuse_unless_nested(turn, node)?;
    let record = turn.run.record_mut(node)?;
    if record.child != Some(run) {
        record.child = Some(run);
        turn.facts.push(Fact::SubPlanBegan { node: node.clone(), run });
    }
    dispatch::gate(turn, node, turn.now.after(UNTIL_WOKEN))
}

/// Settles a node as its sub-plan's run ended, and counts what that used.
pub(super) fn ended(turn: &mut Turn<'_>, node: &NodeId, child: &ChildEnd) -> Result<(), Refusal> {
    refuse_unless_nested(turn, node)?;
    let spent = &mut turn.run.head.spent;
    spent.tokens = spent.tokens.saturating_add(child.spent.tokens);
    spent.micro_usd = spent.micro_usd.saturating_add(child.spent.micro_usd);
    spent.metered = spent.metered.saturating_add(child.spent.metered);
    spent.unmetered = spent.unmetered.saturating_add(child.spent.unmetered);
    turn.facts.push(Fact::SubPlanEnded {
        node: node.clone(),
        name: child.name.clone(),
        end: child.end,
        spent: child.spent,
    });
    let record = turn.run.record_mut(node)?;
    record.child = Some(child.run);
    match child.end {
        End::Done => {
            settle::settle(turn, node, Outcome::Passed, None)?;
            route::success(turn, node)
        }
        End::Failed | End::Aborted | End::Cancelled => {
            record.failure = Some(Box::new(Failure {
                attempt: record.tally.attempt,
                what: Failing::SubPlan { name: child.name.clone(), end: child.end },
                duration: child.spent.time,
                stdout: Excerpt::default(),
                stderr: Excerpt::default(),
            }));
            record.tally.failed = record.tally.failed.saturating_add(1);
            settle::exhausted(turn, node, true)
        }
    }
}

fn refuse_unless_nested(turn: &Turn<'_>, node: &NodeId) -> Result<(), Refusal> {
    match turn.state(node)? {
        NodeState::Nested { .. } => Ok(()),
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
