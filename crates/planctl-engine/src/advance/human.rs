//! Events of people: their decisions.

use crate::answers::answers_while_held;
use crate::ask::AskKind;
use crate::event::{Answer, Decision, HumanEvent};
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::graph::{Edge, Signal};
use crate::ids::{Actor, ItemId, NodeId};
use crate::outcome::{End, Outcome};
use crate::refusal::Refusal;
use crate::run::{AttemptDetails, NodeState, Note, RunStatus, Unchecked};

use super::settle::Said;
use super::{Transition, dispatch, hold, join, option, revise, route, settle};

pub(super) fn apply_event(transition: &mut Transition<'_>, event: &HumanEvent) -> Result<(), Refusal> {
    match &event.decision {
        Decision::Submit => submit(transition),
        Decision::Answer { item, answer } => on_answer(transition, event, item, answer),
        Decision::Vote { item, answer, .. } => asked(transition, item, answer).map(drop),
        Decision::Cancel => cancel(transition, event),
        Decision::Pause => pause(transition, event),
        Decision::Resume { from } => resume(transition, event, from.as_ref()),
        Decision::Revise { changed, added, branches, budget_max, .. } => {
            let change = revise::Change { changed, added, branches };
            revise::apply_revision(transition, &change, budget_max.unwrap_or_default())
        }
    }
}

fn submit(transition: &mut Transition<'_>) -> Result<(), Refusal> {
    if transition.run.head.status != RunStatus::New {
        return Err(Refusal::NotActive);
    }
    transition.run.head.status = RunStatus::Awaiting;
    let start = transition.graph.start().clone();
    hold::hold_with_ask(transition, &start, AskKind::Plan, crate::ask::Reason::Submitted, None)
}

/// Returns the node that an ask holds, and refuses an answer that the ask doesn't take.
fn asked(transition: &Transition<'_>, item: &ItemId, answer: &Answer) -> Result<(NodeId, AskKind), Refusal> {
    let (node, kind) = node_held_by_ask(transition, item)?;
    let is_plan = kind == AskKind::Plan;
    if transition.run.head.status != if is_plan { RunStatus::Awaiting } else { RunStatus::Active } {
        return Err(Refusal::NotActive);
    }
    let answers = answers_while_held(transition.graph, &node, kind, transition.run.record(&node)?);
    if !answers.contains(&answer.as_str()) {
        return Err(Refusal::WrongAnswer(answers));
    }
    Ok((node, kind))
}

fn on_answer(
    transition: &mut Transition<'_>,
    event: &HumanEvent,
    item: &ItemId,
    answer: &Answer,
) -> Result<(), Refusal> {
    let (node, kind) = asked(transition, item, answer)?;
    let needs_note = matches!(answer, Answer::Skip | Answer::Waive | Answer::Reply);
    if needs_note && event.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
        return Err(Refusal::NoteMissing);
    }
    let chosen;
    let answer = if let Answer::Choose { option } = answer {
        chosen = Answer::Choose { option: matching_option(transition, &node, option)? };
        &chosen
    } else {
        answer
    };
    let (role, option) = match answer {
        Answer::Reassign { role } => (Some(role.clone()), None),
        Answer::Choose { option } => (None, Some(option.clone())),
        Answer::Allow { files } => (None, Some(accept_changed_files(transition, &node, files)?)),
        Answer::Approve if kind == AskKind::Prompt => {
            (None, transition.run.record(&node)?.prompt.as_ref().map(|word| word.digest.as_str().to_owned()))
        }
        Answer::Approve
        | Answer::Reject
        | Answer::Retry
        | Answer::Skip
        | Answer::Waive
        | Answer::Abort
        | Answer::Revise
        | Answer::Raise { .. }
        | Answer::Reply
        | Answer::Restore => (None, None),
    };
    transition.facts.push(Fact::AskAnswered {
        node: node.clone(),
        item: item.clone(),
        kind,
        answer: answer.as_str().to_owned(),
        by: event.by.clone(),
        note: event.note.clone(),
        role,
        option,
    });
    transition.set_state(&node, NodeState::Pending)?;
    match (kind, answer) {
        (AskKind::Choice, Answer::Skip) if transition.graph.task(&node).is_none() => {
            settle_unanswered(transition, event, &node)
        }
        (AskKind::Effect, Answer::Approve) => {
            transition.run.record_mut(&node)?.is_allowed = true;
            dispatch::dispatch_node(transition, &node)
        }
        (AskKind::Prompt, Answer::Approve) => {
            if let Some(word) = &mut transition.run.record_mut(&node)?.prompt {
                word.is_approved = true;
            }
            dispatch::dispatch_node(transition, &node)
        }
        (AskKind::Effect | AskKind::Prompt, Answer::Reject) => settle_unanswered(transition, event, &node),
        // The budget of the day is raised, not the run's.
        (AskKind::Day, Answer::Raise { .. }) => dispatch::dispatch_node(transition, &node),
        _ => apply_answer(transition, event, &node, answer),
    }
}

/// Notes which protected files a person accepts as the gate found them, and returns their names (DESIGN 8).
fn accept_changed_files(
    transition: &mut Transition<'_>,
    node: &NodeId,
    files: &[String],
) -> Result<String, Refusal> {
    let record = transition.run.record_mut(node)?;
    let found = record.failure.as_deref().map(Failure::tampered).unwrap_or_default().to_vec();
    if let Some(unknown) = files.iter().find(|file| found.iter().all(|found| found.path != **file)) {
        let options = found.into_iter().map(|found| found.path).collect();
        return Err(Refusal::NoSuchOption { option: unknown.clone(), options });
    }
    let meant = found.into_iter().filter(|found| files.is_empty() || files.contains(&found.path));
    let mut names = Vec::new();
    for file in meant {
        names.push(file.path.clone());
        record.allowed.retain(|known| known.path != file.path);
        record.allowed.push(file);
    }
    Ok(truncate_answer(&names.join(", ")))
}

/// Returns the option that was chosen, and refuses what is none of them: a typo approves nothing (DOT H3). An option that was
/// named by its words stands as the person wrote it.
fn matching_option(transition: &Transition<'_>, node: &NodeId, said: &str) -> Result<String, Refusal> {
    let options = &transition.question(node)?.options;
    if options.is_empty() && !said.trim().is_empty() {
        return Ok(said.to_owned());
    }
    match option::match_option(options, said) {
        Some(meant) if option::plain_label(meant) == option::plain_label(said) => Ok(said.to_owned()),
        Some(meant) => Ok(meant.to_owned()),
        None => Err(Refusal::NoSuchOption { option: said.to_owned(), options: options.clone() }),
    }
}

/// Settles a node with what was chosen, and leaves it along the edge of that name (DOT H2).
pub(super) fn settle_choice(
    transition: &mut Transition<'_>,
    node: &NodeId,
    option: &str,
    said: Said<'_>,
) -> Result<(), Refusal> {
    let refusal =
        transition.confirmation(node).map(|confirmation| option::plain_label(&confirmation.refusal));
    if refusal.is_some_and(|refusal| refusal == option::plain_label(option)) {
        return fail_unconfirmed(transition, node, said);
    }
    let record = transition.run.record_mut(node)?;
    for name in [SELECTED, LABEL] {
        if name == SELECTED || transition.graph.conditions_ask_for(name) {
            record.context.insert(name.to_owned(), truncate_answer(option));
        }
    }
    record.attempt_details = Some(Box::new(AttemptDetails {
        label: Some(truncate_answer(option)),
        output: Some(truncate_answer(option)),
        ..AttemptDetails::default()
    }));
    settle::settle(transition, node, Outcome::Passed, Some(said))?;
    let label = option::plain_label(option);
    let leads = |edge: &&Edge| {
        edge.label.as_deref().is_some_and(|own| option::plain_label(own) == label)
            || edge.label.is_none() && option::plain_label(edge.to.as_str()) == label
    };
    match transition.graph.edges_from(node).iter().find(leads) {
        Some(edge) => {
            route::follow(transition, edge.clone(), Signal::Success);
            Ok(())
        }
        None => route::leave_on_success(transition, node),
    }
}

/// Spends the attempt whose work a person does not confirm; their words go into the next prompt.
fn fail_unconfirmed(transition: &mut Transition<'_>, node: &NodeId, said: Said<'_>) -> Result<(), Refusal> {
    let note = said.note.map(str::to_owned);
    let what = Failing::Unconfirmed { by: said.by.clone(), note };
    let failure = settle::failure_without_gate(transition, node, what)?;
    settle::attempt_failed(transition, node, failure, false)
}

/// The name under which conditions find what a person chose last (DOT H2).
const SELECTED: &str = "human.gate.selected";
const LABEL: &str = "human.gate.label";

/// The most characters of an answer that conditions can look at.
const ANSWER_CHARS_MAX: usize = 1_000;

fn truncate_answer(text: &str) -> String {
    text.chars().take(ANSWER_CHARS_MAX).collect()
}

/// Finds the node that an ask holds.
fn node_held_by_ask(transition: &Transition<'_>, item: &ItemId) -> Result<(NodeId, AskKind), Refusal> {
    for (id, record) in transition.run.records() {
        if let NodeState::Held { ask, item: held } = &record.state
            && held == item
        {
            return Ok((id.clone(), *ask));
        }
    }
    Err(Refusal::WrongState)
}

fn apply_answer(
    transition: &mut Transition<'_>,
    event: &HumanEvent,
    node: &NodeId,
    answer: &Answer,
) -> Result<(), Refusal> {
    match answer {
        Answer::Approve => {
            transition.run.head.status = RunStatus::Queued { resuming: false };
            Ok(())
        }
        // The report of the worker whose proposal is rejected counts as it stands.
        Answer::Reject if transition.run.record(node)?.unchecked.is_some() => {
            dispatch::dispatch_node(transition, node)
        }
        Answer::Reject => {
            end_cancelled(transition, &event.by, event.note.as_deref());
            Ok(())
        }
        Answer::Retry | Answer::Restore => {
            grant_attempt(transition, event, node)?;
            dispatch::dispatch_node(transition, node)
        }
        Answer::Allow { .. } => {
            grant_attempt(transition, event, node)?;
            transition.run.record_mut(node)?.unchecked =
                Some(Unchecked { gave_up: false, is_judged_anew: true });
            dispatch::dispatch_node(transition, node)
        }
        Answer::Reassign { role } => {
            grant_attempt(transition, event, node)?;
            transition.run.record_mut(node)?.role = Some(role.clone());
            dispatch::dispatch_node(transition, node)
        }
        Answer::Reply => {
            take_note(transition, event, node)?;
            dispatch::dispatch_node(transition, node)
        }
        Answer::Choose { option } => {
            let said = Said { by: &event.by, note: event.note.as_deref() };
            settle_choice(transition, node, option, said)
        }
        Answer::Skip => settle_by(transition, event, node, Outcome::Skipped),
        Answer::Waive => settle_by(transition, event, node, Outcome::Waived),
        Answer::Abort => {
            settle::settle(
                transition,
                node,
                Outcome::Failed,
                Some(Said { by: &event.by, note: event.note.as_deref() }),
            )?;
            route::end_failed(transition, node, End::Aborted)
        }
        Answer::Revise => {
            transition.facts.push(Fact::PlanPaused { node: Some(node.clone()), by: None, note: None });
            revise::pause(transition, vec![node.clone()])
        }
        Answer::Raise { by } => {
            let before = transition.run.head.budget;
            let after = before.raised(*by);
            if after == before {
                return Err(Refusal::NothingRaised);
            }
            transition.run.head.budget = after;
            transition.run.head.noticed = false;
            dispatch::dispatch_node(transition, node)
        }
    }
}

fn settle_by(
    transition: &mut Transition<'_>,
    event: &HumanEvent,
    node: &NodeId,
    outcome: Outcome,
) -> Result<(), Refusal> {
    let said = Said { by: &event.by, note: event.note.as_deref() };
    settle::settle(transition, node, outcome, Some(said))?;
    join::settle_skipped_fork(transition, node, outcome, said)?;
    let leads_nowhere = transition.graph.edges_from(node).is_empty();
    if leads_nowhere {
        return route::end_failed(transition, node, End::Failed);
    }
    route::leave_on_success(transition, node)
}

/// Takes the way for failures of a question that a person leaves unanswered, of a call that they do not allow, and of work
/// whose judge they do not let be asked; what that counts as, the plan says of the step (DOT H5).
fn settle_unanswered(
    transition: &mut Transition<'_>,
    event: &HumanEvent,
    node: &NodeId,
) -> Result<(), Refusal> {
    if transition.run.record(node)?.unchecked.is_some() {
        transition.run.record_mut(node)?.unchecked = None;
    }
    let said = Said { by: &event.by, note: event.note.as_deref() };
    let outcome = transition.graph.gated(node).map_or(Outcome::Failed, |gated| gated.on_exhausted);
    settle::settle(transition, node, outcome, Some(said))?;
    route::leave(transition, node, Signal::Exhausted)
}

/// Grants one attempt beyond the allowance, with the person's words in its prompt. Where a rehearsal comes first and the
/// allowance is not used up, the rehearsal is what is tried again, and the work needs no grant.
fn grant_attempt(transition: &mut Transition<'_>, event: &HumanEvent, node: &NodeId) -> Result<(), Refusal> {
    take_note(transition, event, node)?;
    let contract = transition.graph.task(node).map(|task| &task.contract);
    let record = transition.run.record_mut(node)?;
    record.question = None;
    let rehearses = contract.is_some_and(|contract| record.awaits_rehearsal(contract));
    if !rehearses || settle::attempts_left(transition, node)? == 0 {
        let tally = &mut transition.run.record_mut(node)?.tally;
        tally.granted = tally.granted.saturating_add(1);
    }
    Ok(())
}

fn take_note(transition: &mut Transition<'_>, event: &HumanEvent, node: &NodeId) -> Result<(), Refusal> {
    let note = event.note.as_ref().map(|text| Note { by: event.by.clone(), text: text.clone() });
    transition.run.record_mut(node)?.note = note;
    Ok(())
}

fn cancel(transition: &mut Transition<'_>, event: &HumanEvent) -> Result<(), Refusal> {
    if let RunStatus::Ended { .. } = transition.run.head.status {
        return Err(Refusal::NotActive);
    }
    for node in transition.run.live_nodes()? {
        transition.withdraw(&node)?;
    }
    end_cancelled(transition, &event.by, event.note.as_deref());
    Ok(())
}

fn end_cancelled(transition: &mut Transition<'_>, by: &Actor, note: Option<&str>) {
    transition.disarm_stale();
    transition.run.head.status = RunStatus::Ended { end: End::Cancelled };
    transition.facts.push(Fact::PlanCancelled { by: by.clone(), note: note.map(str::to_owned) });
}

/// Pauses a run that goes on, or waits for the workspace. No attempt has failed: it goes on where it stopped.
fn pause(transition: &mut Transition<'_>, event: &HumanEvent) -> Result<(), Refusal> {
    match transition.run.head.status {
        RunStatus::Active => revise::pause(transition, Vec::new())?,
        RunStatus::Queued { .. } => transition.run.head.status = RunStatus::Paused,
        RunStatus::New | RunStatus::Awaiting | RunStatus::Paused | RunStatus::Ended { .. } => {
            return Err(Refusal::NotActive);
        }
    }
    transition.facts.push(Fact::PlanPaused {
        node: None,
        by: Some(event.by.clone()),
        note: event.note.clone(),
    });
    Ok(())
}

/// Queues a failed or paused run again; a cancelled run stays cancelled (P16). A step that passed and does no longer is where
/// it goes on, with everything behind that.
fn resume(transition: &mut Transition<'_>, event: &HumanEvent, from: Option<&NodeId>) -> Result<(), Refusal> {
    match transition.run.head.status {
        RunStatus::Ended { end: End::Failed | End::Aborted } | RunStatus::Paused => {
            if let Some(from) = from {
                revise::reopen(transition, from)?;
                let (by, note) = (event.by.clone(), event.note.clone());
                transition.facts.push(Fact::NodeReopened { node: from.clone(), by, note });
            }
            revise::enqueue_run(transition)
        }
        RunStatus::New
        | RunStatus::Awaiting
        | RunStatus::Queued { .. }
        | RunStatus::Active
        | RunStatus::Ended { end: End::Done | End::Cancelled } => Err(Refusal::NotActive),
    }
}
