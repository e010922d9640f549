//! What a person decided.

use crate::effect::AskKind;
use crate::event::{Answer, Decision, HumanEvent, Refusal};
use crate::fact::Fact;
use crate::graph::{Edge, Signal};
use crate::ids::{Actor, ItemId, NodeId};
use crate::mutant::{Mutant, planted};
use crate::run::{End, Known, NodeState, Note, Outcome, RunStatus};

use super::settle::Said;
use super::{Turn, choose, dispatch, hold, join, revise, route, settle};

pub(super) fn decided(turn: &mut Turn<'_>, event: &HumanEvent) -> Result<(), Refusal> {
    match &event.decision {
        Decision::Submit => submit(turn),
        Decision::Answer { item, answer } => answered(turn, event, item, answer),
        Decision::Cancel => cancel(turn, event),
        Decision::Resume => resume(turn),
        Decision::Revise { changed, .. } => revise::revised(turn, changed),
    }
}

fn submit(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    if turn.run.head.status != RunStatus::New {
        return Err(Refusal::NotActive);
    }
    turn.run.head.status = RunStatus::Awaiting;
    let start = turn.graph.start().clone();
    hold::ask(turn, &start, AskKind::Plan, crate::effect::Reason::Submitted, None)
}

fn answered(turn: &mut Turn<'_>, event: &HumanEvent, item: &ItemId, answer: &Answer) -> Result<(), Refusal> {
    let (node, kind) = held_by(turn, item)?;
    let is_plan = kind == AskKind::Plan;
    if turn.run.head.status != if is_plan { RunStatus::Awaiting } else { RunStatus::Active } {
        return Err(Refusal::NotActive);
    }
    if !kind.answers().contains(&answer.word()) {
        return Err(Refusal::WrongAnswer(kind.answers()));
    }
    let needs_note = matches!(answer, Answer::Skip | Answer::Waive | Answer::Reply);
    if needs_note && event.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
        return Err(Refusal::NoteMissing);
    }
    if let Answer::Choose { option } = answer {
        refuse_unless_offered(turn, &node, option)?;
    }
    let (role, option) = match answer {
        Answer::Reassign { role } => (Some(role.clone()), None),
        Answer::Choose { option } => (None, Some(option.clone())),
        Answer::Approve
        | Answer::Reject
        | Answer::Retry
        | Answer::Skip
        | Answer::Waive
        | Answer::Abort
        | Answer::Revise
        | Answer::Raise { .. }
        | Answer::Reply => (None, None),
    };
    turn.facts.push(Fact::AskAnswered {
        node: node.clone(),
        item: item.clone(),
        kind,
        answer: answer.word().to_owned(),
        by: event.by.clone(),
        note: event.note.clone(),
        role,
        option,
    });
    turn.set(&node, NodeState::Pending)?;
    match (kind, answer) {
        (AskKind::Choice, Answer::Skip) => unanswered(turn, event, &node),
        _ => carry_out(turn, event, &node, answer),
    }
}

/// Refuses a choice that is not among the options: a typo approves nothing (DOT H3).
fn refuse_unless_offered(turn: &Turn<'_>, node: &NodeId, option: &str) -> Result<(), Refusal> {
    let options = turn.question(node)?.options.clone();
    let is_offered =
        options.iter().any(|offered| choose::plain_label(offered) == choose::plain_label(option));
    let is_text = options.is_empty() && !option.trim().is_empty();
    if is_offered || is_text {
        Ok(())
    } else {
        Err(Refusal::NoSuchOption { option: option.to_owned(), options })
    }
}

/// Settles a node with what was chosen, and leaves it along the edge of that name (DOT H2).
pub(super) fn chosen(
    turn: &mut Turn<'_>,
    node: &NodeId,
    option: &str,
    said: Said<'_>,
) -> Result<(), Refusal> {
    let record = turn.run.record_mut(node)?;
    for name in [SELECTED, LABEL] {
        if name == SELECTED || turn.graph.asks_for(name) {
            record.context.insert(name.to_owned(), cut(option));
        }
    }
    record.known =
        Some(Box::new(Known { label: Some(cut(option)), output: Some(cut(option)), ..Known::default() }));
    settle::settle(turn, node, Outcome::Passed, Some(said))?;
    let label = choose::plain_label(option);
    let leads = |edge: &&Edge| {
        edge.label.as_deref().is_some_and(|own| choose::plain_label(own) == label)
            || edge.label.is_none() && choose::plain_label(edge.to.as_str()) == label
    };
    match turn.graph.edges_from(node).iter().find(leads) {
        Some(edge) => {
            route::follow(turn, edge.clone(), Signal::Success);
            Ok(())
        }
        None => route::success(turn, node),
    }
}

/// The name under which conditions find what a person chose last (DOT H2).
const SELECTED: &str = "human.gate.selected";
const LABEL: &str = "human.gate.label";

/// The most characters of an answer that conditions can look at.
const ANSWER_CHARS_MAX: usize = 1_000;

fn cut(text: &str) -> String {
    text.chars().take(ANSWER_CHARS_MAX).collect()
}

/// Finds the node that an ask holds.
fn held_by(turn: &Turn<'_>, item: &ItemId) -> Result<(NodeId, AskKind), Refusal> {
    for (id, record) in turn.run.records() {
        if let NodeState::Held { ask, item: held } = &record.state
            && held == item
        {
            return Ok((id.clone(), *ask));
        }
    }
    Err(Refusal::WrongState)
}

fn carry_out(turn: &mut Turn<'_>, event: &HumanEvent, node: &NodeId, answer: &Answer) -> Result<(), Refusal> {
    match answer {
        Answer::Approve => {
            turn.run.head.status = RunStatus::Queued { resuming: false };
            Ok(())
        }
        Answer::Reject
            if planted(Mutant::RejectionPassesStep) && turn.run.record(node)?.unchecked.is_some() =>
        {
            turn.run.record_mut(node)?.unchecked = None;
            settle::settle(turn, node, Outcome::Passed, None)?;
            route::success(turn, node)
        }
        // The report of the worker whose proposal is rejected counts as it stands.
        Answer::Reject if turn.run.record(node)?.unchecked.is_some() => dispatch::again(turn, node),
        Answer::Reject => {
            end_cancelled(turn, &event.by, event.note.as_deref());
            Ok(())
        }
        Answer::Retry => {
            grant(turn, event, node)?;
            dispatch::again(turn, node)
        }
        Answer::Reassign { role } => {
            grant(turn, event, node)?;
            turn.run.record_mut(node)?.role = Some(role.clone());
            dispatch::again(turn, node)
        }
        Answer::Reply => {
            take_note(turn, event, node)?;
            dispatch::again(turn, node)
        }
        Answer::Choose { option } => {
            let said = Said { by: &event.by, note: event.note.as_deref() };
            chosen(turn, node, option, said)
        }
        Answer::Skip => settle_by(turn, event, node, Outcome::Skipped),
        Answer::Waive if planted(Mutant::WaiverHidden) => settle_by(turn, event, node, Outcome::Passed),
        Answer::Waive => settle_by(turn, event, node, Outcome::Waived),
        Answer::Abort => {
            settle::settle(
                turn,
                node,
                Outcome::Failed,
                Some(Said { by: &event.by, note: event.note.as_deref() }),
            )?;
            route::end_failed(turn, node, End::Aborted)
        }
        Answer::Revise => {
            turn.facts.push(Fact::PlanPaused { node: node.clone() });
            revise::pause(turn, node)
        }
        Answer::Raise { by } => {
            let before = turn.run.head.budget;
            let after = before.raised(*by);
            if after == before {
                return Err(Refusal::NothingRaised);
            }
            turn.run.head.budget = after;
            turn.run.head.noticed = false;
            dispatch::again(turn, node)
        }
    }
}

fn settle_by(
    turn: &mut Turn<'_>,
    event: &HumanEvent,
    node: &NodeId,
    outcome: Outcome,
) -> Result<(), Refusal> {
    if planted(Mutant::SkipForgets) && outcome == Outcome::Skipped {
        return route::success(turn, node);
    }
    let said = Said { by: &event.by, note: event.note.as_deref() };
    settle::settle(turn, node, outcome, Some(said))?;
    join::leave_out(turn, node, outcome, said)?;
    let leads_nowhere = turn.graph.edges_from(node).is_empty();
    if leads_nowhere {
        return route::end_failed(turn, node, End::Failed);
    }
    route::success(turn, node)
}

/// Settles a question that a person leaves unanswered as failed, and takes its way for failures (DOT H5).
fn unanswered(turn: &mut Turn<'_>, event: &HumanEvent, node: &NodeId) -> Result<(), Refusal> {
    let said = Said { by: &event.by, note: event.note.as_deref() };
    settle::settle(turn, node, Outcome::Failed, Some(said))?;
    route::leave(turn, node, Signal::Exhausted)
}

/// Grants one attempt beyond the allowance, with the person's words in its prompt; before the work of a visit nothing
/// of the allowance is used, and what is tried again is the rehearsal.
fn grant(turn: &mut Turn<'_>, event: &HumanEvent, node: &NodeId) -> Result<(), Refusal> {
    take_note(turn, event, node)?;
    let contract = turn.graph.task(node).map(|task| &task.contract);
    let record = turn.run.record_mut(node)?;
    record.question = None;
    let rehearses = contract.is_some_and(|contract| record.awaits_rehearsal(contract));
    if !planted(Mutant::RetryGrantsNothing) && !rehearses {
        record.tally.granted = record.tally.granted.saturating_add(1);
    }
    Ok(())
}

fn take_note(turn: &mut Turn<'_>, event: &HumanEvent, node: &NodeId) -> Result<(), Refusal> {
    let note = event.note.as_ref().map(|text| Note { by: event.by.clone(), text: text.clone() });
    turn.run.record_mut(node)?.note = note;
    Ok(())
}

fn cancel(turn: &mut Turn<'_>, event: &HumanEvent) -> Result<(), Refusal> {
    if let RunStatus::Ended { .. } = turn.run.head.status {
        return Err(Refusal::NotActive);
    }
    for node in turn.run.live()? {
        turn.withdraw(&node)?;
    }
    end_cancelled(turn, &event.by, event.note.as_deref());
    Ok(())
}

fn end_cancelled(turn: &mut Turn<'_>, by: &Actor, note: Option<&str>) {
    turn.disarm_stale();
    turn.run.head.status = RunStatus::Ended { end: End::Cancelled };
    turn.facts.push(Fact::PlanCancelled { by: by.clone(), note: note.map(str::to_owned) });
}

/// Queues a failed run again; what was cancelled stays so (P16).
fn resume(turn: &mut Turn<'_>) -> Result<(), Refusal> {
    match turn.run.head.status {
        RunStatus::Ended { end: End::Failed | End::Aborted } => {
            turn.run.head.status = RunStatus::Queued { resuming: true };
            Ok(())
        }
        RunStatus::New
        | RunStatus::Awaiting
        | RunStatus::Queued { .. }
        | RunStatus::Active
        | RunStatus::Paused
        | RunStatus::Ended { end: End::Done | End::Cancelled } => Err(Refusal::NotActive),
    }
}
