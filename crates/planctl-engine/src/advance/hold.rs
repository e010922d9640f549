//! How a node waits for a person.

use crate::budget::Shortfall;
use crate::contract::PromptToJudge;
use crate::effect::{Ask, AskKind, Effect, Item, Reason, TimerId, Work};
use crate::event::Refusal;
use crate::fact::Fact;
use crate::graph::Question;
use crate::ids::{ItemId, NodeId};
use crate::run::{Failure, NodeState};

use super::Turn;

/// Holds a node until a person answers.
pub(super) fn hold_with_ask(
    turn: &mut Turn<'_>,
    node: &NodeId,
    kind: AskKind,
    reason: Reason,
    message: Option<String>,
) -> Result<(), Refusal> {
    // A node that was entered too often did not fail; the failure that it was told of is another node's.
    let failure = turn.run.record(node)?.failure.clone().filter(|_| reason != Reason::VisitsLimit);
    let ask = Ask { message, failure, ..bare(kind, reason) };
    open_ask(turn, node, ask)
}

/// Holds a node until a person answers an escalation that shows this failure, and not the newest of an attempt.
pub(super) fn with_failure(
    turn: &mut Turn<'_>,
    node: &NodeId,
    reason: Reason,
    message: Option<String>,
    failure: Failure,
) -> Result<(), Refusal> {
    let kind = AskKind::Escalation;
    let failure = Some(Box::new(failure));
    let ask = Ask { message, failure, ..bare(kind, reason) };
    open_ask(turn, node, ask)
}

/// Holds a node until a person adds to the budget, or the day whose budget it is has ended.
pub(super) fn for_budget(turn: &mut Turn<'_>, node: &NodeId, shortfall: Shortfall) -> Result<(), Refusal> {
    let failure = turn.run.record(node)?.failure.clone();
    let (kind, reason) = match shortfall.day {
        Some(_) => (AskKind::Day, Reason::Day),
        None => (AskKind::Budget, Reason::Budget),
    };
    let shortfall = Some(shortfall);
    let ask = Ask { failure, shortfall, ..bare(kind, reason) };
    open_ask(turn, node, ask)
}

/// Holds a node until a person decides whether a prompt may be sent to its judge.
pub(super) fn for_prompt(turn: &mut Turn<'_>, node: &NodeId, prompt: &PromptToJudge) -> Result<(), Refusal> {
    let prompt = Some(Box::new(prompt.clone()));
    open_ask(turn, node, Ask { prompt, ..bare(AskKind::Prompt, Reason::Prompt) })
}

/// Holds a node until a person chooses, or says something; arms the answer that counts if nobody does.
pub(super) fn for_choice(turn: &mut Turn<'_>, node: &NodeId, question: &Question) -> Result<(), Refusal> {
    let (message, options) = (Some(question.text.clone()), question.options.clone());
    open_ask(turn, node, Ask { message, options, ..bare(AskKind::Choice, Reason::Planned) })?;
    if let Some(default) = &question.default {
        let timer = TimerId::Answer(node.clone());
        turn.effects.push(Effect::Arm { timer, at: turn.now.after(default.after) });
    }
    Ok(())
}

/// Returns an ask that shows nothing yet.
fn bare(kind: AskKind, reason: Reason) -> Ask {
    Ask {
        kind,
        reason,
        message: None,
        failure: None,
        shortfall: None,
        options: Vec::new(),
        prompt: None,
        deadline: None,
    }
}

/// Opens an ask. A node that waits for a person is left by the answer alone. Edges chosen before that the run has not
/// followed yet are dropped.
fn open_ask(turn: &mut Turn<'_>, node: &NodeId, ask: Ask) -> Result<(), Refusal> {
    let Ask { kind, reason, shortfall, .. } = ask;
    turn.open.retain(|(chosen, _)| chosen.edge.from != *node);
    turn.run.head.asks = turn.run.head.asks.saturating_add(1);
    let at = turn.run.newest_try(node)?;
    let item = ItemId::ask(turn.run.id, &at, kind.word(), turn.run.head.asks);
    turn.set_state(node, NodeState::Held { ask: kind, item: item.clone() })?;
    if kind == AskKind::Escalation {
        let message = ask.message.clone();
        turn.facts.push(Fact::PlanEscalated { node: node.clone(), reason, message });
    }
    turn.facts.push(Fact::AskOpened { node: node.clone(), item: item.clone(), kind, reason, shortfall });
    let deadline = turn.graph.ask_deadline(node).and_then(|deadline| deadline.among(kind.answers()));
    let ask = Box::new(Ask { deadline, ..ask });
    turn.effects.push(Effect::Dispatch(Box::new(Item {
        id: item,
        run: turn.run.id,
        at,
        available_at: turn.now,
        work: Work::Human { ask },
    })));
    Ok(())
}
