//! How a node waits for a person.

use crate::ask::{AskKind, Reason};
use crate::budget::Shortfall;
use crate::contract::PromptToJudge;
use crate::effect::{Ask, Effect, Item, Work};
use crate::fact::Fact;
use crate::failure::Failure;
use crate::graph::Question;
use crate::ids::{ItemId, NodeId};
use crate::refusal::Refusal;
use crate::run::NodeState;
use crate::timer::TimerId;

use super::Transition;

/// Holds a node until a person answers.
pub(super) fn hold_with_ask(
    transition: &mut Transition<'_>,
    node: &NodeId,
    kind: AskKind,
    reason: Reason,
    message: Option<String>,
) -> Result<(), Refusal> {
    // A node that was entered too often did not fail; the failure that it was told of is another node's.
    let failure = transition.run.record(node)?.failure.clone().filter(|_| reason != Reason::VisitsLimit);
    let ask = Ask { message, failure, ..ask_without_details(kind, reason) };
    open_ask(transition, node, ask)
}

/// Holds a node until a person answers an escalation that shows this failure, and not the newest of an attempt.
pub(super) fn with_failure(
    transition: &mut Transition<'_>,
    node: &NodeId,
    reason: Reason,
    message: Option<String>,
    failure: Failure,
) -> Result<(), Refusal> {
    let kind = AskKind::Escalation;
    let failure = Some(Box::new(failure));
    let ask = Ask { message, failure, ..ask_without_details(kind, reason) };
    open_ask(transition, node, ask)
}

/// Holds a node until a person adds to the budget, or the day whose budget it is has ended.
pub(super) fn for_budget(
    transition: &mut Transition<'_>,
    node: &NodeId,
    shortfall: Shortfall,
) -> Result<(), Refusal> {
    let failure = transition.run.record(node)?.failure.clone();
    let (kind, reason) = match shortfall.day {
        Some(_) => (AskKind::Day, Reason::Day),
        None => (AskKind::Budget, Reason::Budget),
    };
    let shortfall = Some(shortfall);
    let ask = Ask { failure, shortfall, ..ask_without_details(kind, reason) };
    open_ask(transition, node, ask)
}

/// Holds a node until a person decides whether a prompt may be sent to its judge.
pub(super) fn for_prompt(
    transition: &mut Transition<'_>,
    node: &NodeId,
    prompt: &PromptToJudge,
) -> Result<(), Refusal> {
    let prompt = Some(Box::new(prompt.clone()));
    open_ask(transition, node, Ask { prompt, ..ask_without_details(AskKind::Prompt, Reason::Prompt) })
}

/// Holds a node until a person chooses, or says something; arms the answer that counts if nobody does.
pub(super) fn for_choice(
    transition: &mut Transition<'_>,
    node: &NodeId,
    question: &Question,
) -> Result<(), Refusal> {
    let (message, options) = (Some(question.text.clone()), question.options.clone());
    open_ask(
        transition,
        node,
        Ask { message, options, ..ask_without_details(AskKind::Choice, Reason::Planned) },
    )?;
    if let Some(default) = &question.default {
        let timer = TimerId::Answer(node.clone());
        transition.effects.push(Effect::Arm { timer, at: transition.now.after(default.after) });
    }
    Ok(())
}

/// Returns an ask that shows nothing yet.
fn ask_without_details(kind: AskKind, reason: Reason) -> Ask {
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
fn open_ask(transition: &mut Transition<'_>, node: &NodeId, ask: Ask) -> Result<(), Refusal> {
    let Ask { kind, reason, shortfall, .. } = ask;
    transition.open.retain(|(chosen, _)| chosen.edge.from != *node);
    transition.run.head.asks = transition.run.head.asks.saturating_add(1);
    let at = transition.run.newest_try(node)?;
    let item = ItemId::ask(transition.run.id, &at, kind.as_str(), transition.run.head.asks);
    transition.set_state(node, NodeState::Held { ask: kind, item: item.clone() })?;
    if kind == AskKind::Escalation {
        let message = ask.message.clone();
        transition.facts.push(Fact::PlanEscalated { node: node.clone(), reason, message });
    }
    transition.facts.push(Fact::AskOpened {
        node: node.clone(),
        item: item.clone(),
        kind,
        reason,
        shortfall,
    });
    let deadline = transition.graph.ask_deadline(node).and_then(|deadline| deadline.among(kind.answers()));
    let ask = Box::new(Ask { deadline, ..ask });
    transition.effects.push(Effect::Dispatch(Box::new(Item {
        id: item,
        run: transition.run.id,
        at,
        available_at: transition.now,
        work: Work::Human { ask },
    })));
    Ok(())
}
