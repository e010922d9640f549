//! How a node waits for a person.

use crate::budget::Shortfall;
use crate::effect::{Ask, AskKind, Effect, Item, Reason, Work};
use crate::event::Refusal;
use crate::fact::Fact;
use crate::ids::{ItemId, NodeId};
use crate::run::NodeState;

use super::Turn;

/// Holds a node until a person answers.
pub(super) fn ask(
    turn: &mut Turn<'_>,
    node: &NodeId,
    kind: AskKind,
    reason: Reason,
    message: Option<String>,
) -> Result<(), Refusal> {
    open(turn, node, kind, reason, message, None)
}

/// Holds a node until a person adds to the budget.
pub(super) fn for_budget(turn: &mut Turn<'_>, node: &NodeId, shortfall: Shortfall) -> Result<(), Refusal> {
    open(turn, node, AskKind::Budget, Reason::Budget, None, Some(shortfall))
}

fn open(
    turn: &mut Turn<'_>,
    node: &NodeId,
    kind: AskKind,
    reason: Reason,
    message: Option<String>,
    shortfall: Option<Shortfall>,
) -> Result<(), Refusal> {
    turn.run.head.asks = turn.run.head.asks.saturating_add(1);
    let at = turn.run.at(node)?;
    let item = ItemId::ask(turn.run.id, &at, kind.word(), turn.run.head.asks);
    let failure = turn.run.record(node)?.failure.clone();
    turn.set(node, NodeState::Held { ask: kind, item: item.clone() })?;
    if kind == AskKind::Escalation {
        turn.facts.push(Fact::PlanEscalated { node: node.clone(), reason });
    }
    turn.facts.push(Fact::AskOpened { node: node.clone(), item: item.clone(), kind, reason, shortfall });
    let ask = Box::new(Ask { kind, reason, message, failure, shortfall });
    turn.effects.push(Effect::Dispatch(Box::new(Item {
        id: item,
        run: turn.run.id,
        at,
        available_at: turn.now,
        work: Work::Human { ask },
    })));
    Ok(())
}
