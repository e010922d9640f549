//! Staleness in turns (G-32, X-31): a turn is a worker's report or the evaluation of a gate, and progress is one more node that
//! is met. A loop that goes round without getting further is stale, too.

use crate::ask::Reason;
use crate::effect::{Effect, Work};
use crate::event::{AgentSaid, Event, HarnessResult};
use crate::fact::Fact;
use crate::ids::NodeId;
use crate::refusal::Refusal;
use crate::run::RunStatus;

use super::{Transition, pace};

/// Counts a turn, and escalates the next attempt where there were too many without progress.
pub(super) fn count_turn(transition: &mut Transition<'_>, event: &Event) -> Result<(), Refusal> {
    let Some(limit) = transition.graph.limits().stale_after_turns else { return Ok(()) };
    let head = &mut transition.run.head;
    let settled = head.settled;
    let met = settled.total() - settled.failed;
    let (is_turn, is_gate) = match event {
        Event::Agent(event) => (matches!(event.said, AgentSaid::Reported(_)), false),
        Event::Harness(event) => {
            let is_gate = matches!(event.found, HarnessResult::Evidence(_));
            (is_gate, is_gate)
        }
        // A person who decides has seen where the run stands.
        Event::Human(_) => {
            head.turns = 0;
            (false, false)
        }
        Event::Clock(_) => (false, false),
    };
    head.turns = head.turns.saturating_add(u32::from(is_turn));
    if met > head.met_most {
        (head.met_most, head.turns) = (met, 0);
    }
    // Reported work is judged first: the run may get further by it.
    let is_judged = is_gate || transition.facts.iter().any(|fact| matches!(fact, Fact::NodeObserved { .. }));
    let head = &mut transition.run.head;
    if !is_judged || head.turns <= limit || head.status != RunStatus::Active {
        return Ok(());
    }
    let turns = std::mem::take(&mut head.turns);
    let seconds = transition.now.since(head.moved_at).as_secs();
    let next: Vec<NodeId> = transition.effects.iter().filter_map(next_attempt).collect();
    if !next.is_empty() {
        transition.facts.push(Fact::PlanExpired { seconds, turns: Some(turns) });
    }
    for node in next {
        transition.withdraw(&node)?;
        pace::escalate(transition, &node, Reason::Stale, None, None)?;
    }
    Ok(())
}

/// Returns the node of an attempt that is about to go out.
fn next_attempt(effect: &Effect) -> Option<NodeId> {
    match effect {
        Effect::Dispatch(item) => match item.work {
            Work::Agent { .. } | Work::Harness { .. } => Some(item.at.node.clone()),
            Work::Human { .. } => None,
        },
        Effect::Withdraw(_) | Effect::Arm { .. } | Effect::Disarm(_) => None,
    }
}
