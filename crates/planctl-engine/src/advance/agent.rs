//! Events of workers: recorded and charged to the budget; none of them passes a step.

use std::time::Duration;

use crate::ask::{AskKind, Reason};
use crate::budget::{Spent, Usage};
use crate::context_names;
use crate::contract::Excerpt;
use crate::event::{AgentEvent, AgentSaid, Fault, FaultKind, Hints, Overrun, Report};
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::ids::NodeId;
use crate::observation::{Observation, OutputCheck};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{AttemptDetails, NodeState, Unchecked};

use super::{Turn, dispatch, hold, pace, route, settle};

pub(super) fn apply_event(turn: &mut Turn<'_>, event: &AgentEvent) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let node = &event.at.node;
    turn.task(node)?;
    let attempt = match turn.state(node)? {
        NodeState::Working { attempt } | NodeState::Resting { attempt, .. } => *attempt,
        NodeState::Pending
        | NodeState::Ready
        | NodeState::Saving { .. }
        | NodeState::Branching
        | NodeState::Nested { .. }
        | NodeState::Rehearsing
        | NodeState::Checking { .. }
        | NodeState::Held { .. }
        | NodeState::Settled { .. } => return Err(Refusal::WrongState),
    };
    turn.refuse_unless_newest(&event.at, attempt)?;
    let used = event.reported_usage();
    match &event.said {
        AgentSaid::Reported(report) => {
            charge_usage(turn, node, used, report.duration)?;
            note_circumstances(turn, node, report)?;
            on_report(turn, node, report)
        }
        AgentSaid::Asked { question, .. } => {
            charge_usage(turn, node, used, Duration::ZERO)?;
            turn.run.record_mut(node)?.question = Some(question.clone());
            hold::hold_with_ask(turn, node, AskKind::Question, Reason::Asked, Some(question.clone()))
        }
        AgentSaid::Overran { past, duration, .. } => {
            charge_usage(turn, node, used, *duration)?;
            on_overrun(turn, node, *past)
        }
        AgentSaid::Faulted(fault) => {
            charge_if_reported(turn, node, used)?;
            on_fault(turn, node, fault)
        }
        AgentSaid::Released => {
            charge_if_reported(turn, node, used)?;
            dispatch::after_interruption(turn, node)
        }
    }
}

fn on_report(turn: &mut Turn<'_>, node: &NodeId, report: &Report) -> Result<(), Refusal> {
    apply_hints(turn, node, report.hints.as_deref())?;
    if turn.graph.conditions_ask_for(LAST_RESPONSE) {
        let said = shortened(report.text.tail.trim());
        turn.run.record_mut(node)?.context.insert(LAST_RESPONSE.to_owned(), said);
    }
    let proposal = report.hints.as_ref().and_then(|hints| hints.insert_step.as_deref());
    match proposal.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => {
            turn.run.record_mut(node)?.unchecked =
                Some(Unchecked { gave_up: report.gave_up, is_judged_anew: false });
            let text: String = text.chars().take(PROPOSAL_CHARS_MAX).collect();
            hold::hold_with_ask(turn, node, AskKind::Insertion, Reason::Proposed, Some(text))
        }
        None => start_check(turn, node, report.gave_up, report.observation.as_deref()),
    }
}

/// Sends out the gate of an attempt that was reported; without a command, an observation that the plan checks or a person
/// judges it.
fn start_check(
    turn: &mut Turn<'_>,
    node: &NodeId,
    gave_up: bool,
    seen: Option<&Observation>,
) -> Result<(), Refusal> {
    if turn.run.record(node)?.is_observed {
        turn.run.record_mut(node)?.is_observed = false;
    }
    if let Some(confirmation) = turn.confirmation(node).filter(|_| turn.is_without_contract(node)) {
        return match (&confirmation.check, seen) {
            (Some(check), Some(seen)) if check.is_told_by(seen) => {
                judge_by_observation(turn, node, check, seen, gave_up)
            }
            (Some(_) | None, _) => hold::for_choice(turn, node, &confirmation.question),
        };
    }
    let attempt = turn.run.record(node)?.tally.attempt;
    turn.set_state(node, NodeState::Checking { attempt, gave_up })?;
    dispatch::dispatch_gate(turn, node, turn.now)
}

/// Judges an attempt by an observation (DESIGN 10): the one way in which an agent's side passes a step, and only where the plan
/// has a check in place of a contract.
fn judge_by_observation(
    turn: &mut Turn<'_>,
    node: &NodeId,
    check: &OutputCheck,
    seen: &Observation,
    gave_up: bool,
) -> Result<(), Refusal> {
    let attempt = turn.run.record(node)?.tally.attempt;
    let refuted = check.mismatch(seen);
    turn.facts.push(Fact::NodeObserved {
        node: node.clone(),
        attempt,
        check: check.clone(),
        command: seen.command.clone(),
        refuted: refuted.clone(),
    });
    let Some(message) = refuted else {
        turn.run.record_mut(node)?.is_observed = true;
        settle::settle(turn, node, Outcome::Passed, None)?;
        return route::leave_on_success(turn, node);
    };
    let tail = seen.output.len().saturating_sub(Excerpt::TAIL_BYTES_MAX);
    let tail = (tail..=seen.output.len()).find(|at| seen.output.is_char_boundary(*at)).unwrap_or_default();
    let stdout =
        Excerpt { bytes: seen.output.len() as u64, tail: seen.output[tail..].to_owned(), stored: None };
    let failure = settle::failure_without_gate(turn, node, Failing::Unobserved { message })?;
    settle::attempt_failed(turn, node, Failure { stdout, ..failure }, gave_up)
}

/// Has the gate of a report run that waited for a person; says whether there was one.
pub(super) fn take_up_report(turn: &mut Turn<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let waits = turn.run.record(node)?.unchecked;
    let Some(Unchecked { gave_up, is_judged_anew }) = waits else { return Ok(false) };
    turn.run.record_mut(node)?.unchecked = None;
    // An attempt has one verdict, for ever.
    if is_judged_anew {
        dispatch::count_attempt(turn, node)?;
    }
    start_check(turn, node, gave_up, None)?;
    Ok(true)
}

/// The longest proposal of a step, in characters.
const PROPOSAL_CHARS_MAX: usize = 16 * 1024;

/// Takes over what a worker says of the way on. It decides nothing but the choice among edges of a pass, and writes no
/// name that planctl itself writes, which history tells (DOT X4, X5).
fn apply_hints(turn: &mut Turn<'_>, node: &NodeId, hints: Option<&Hints>) -> Result<(), Refusal> {
    let Some(hints) = hints else {
        if turn.run.record(node)?.attempt_details.is_some() {
            turn.run.record_mut(node)?.attempt_details = None;
        }
        return Ok(());
    };
    let record = turn.run.record_mut(node)?;
    record.attempt_details = Some(Box::new(AttemptDetails {
        label: hints.label.as_deref().map(shortened),
        suggested: hints.suggested.iter().take(SUGGESTIONS_MAX).cloned().collect(),
        ..AttemptDetails::default()
    }));
    let mut refused = Vec::new();
    for (name, value) in &hints.context {
        let is_own = context_names::is_own(name);
        if is_own {
            refused.push(shortened(name));
        }
        let fits = record.context.len() < CONTEXT_ENTRIES_MAX || record.context.contains_key(name);
        if !is_own && fits && name.len() <= CONTEXT_NAME_BYTES_MAX {
            record.context.insert(name.clone(), shortened(value));
        }
    }
    if !refused.is_empty() {
        refused.truncate(CONTEXT_ENTRIES_MAX);
        let attempt = record.tally.attempt;
        turn.facts.push(Fact::ContextRefused { node: node.clone(), attempt, names: refused });
    }
    Ok(())
}

/// The name under which conditions find the last words of the worker before (DOT X2).
const LAST_RESPONSE: &str = "last_response";
/// The most names that a run's context has.
const CONTEXT_ENTRIES_MAX: usize = 64;
/// The longest name in a run's context.
const CONTEXT_NAME_BYTES_MAX: usize = 128;
/// The longest value in a run's context, in characters; a larger value belongs into a file (DOT X7).
const CONTEXT_VALUE_CHARS_MAX: usize = 256;
/// The most nodes that a worker's suggestion names.
const SUGGESTIONS_MAX: usize = 16;

fn shortened(value: &str) -> String {
    value.chars().take(CONTEXT_VALUE_CHARS_MAX).collect()
}

/// Spends an attempt without a gate: nobody knows what state the work was ended in.
pub(super) fn on_overrun(turn: &mut Turn<'_>, node: &NodeId, past: Overrun) -> Result<(), Refusal> {
    let failure = settle::failure_without_gate(turn, node, Failing::Overran { past })?;
    settle::attempt_failed(turn, node, failure, false)
}

/// Keeps what a report tells of the circumstances until its gate is judged.
fn note_circumstances(turn: &mut Turn<'_>, node: &NodeId, report: &Report) -> Result<(), Refusal> {
    if turn.run.record(node)?.circumstances != report.circumstances {
        turn.run.record_mut(node)?.circumstances.clone_from(&report.circumstances);
    }
    Ok(())
}

/// Takes a failed contract for what cut the work before it off: the work goes out again, and no retry is used up.
pub(super) fn cut_off(turn: &mut Turn<'_>, node: &NodeId, fault: &Fault) -> Result<(), Refusal> {
    match fault.kind {
        FaultKind::Transient => dispatch::after_judged_delivery(turn, node, &fault.message),
        FaultKind::Permission | FaultKind::Permanent => on_fault(turn, node, fault),
    }
}

fn on_fault(turn: &mut Turn<'_>, node: &NodeId, fault: &Fault) -> Result<(), Refusal> {
    match fault.kind {
        FaultKind::Transient => dispatch::redeliver_after_loss(turn, node, &fault.message),
        FaultKind::Permanent => escalate_undeliverable(turn, node, &fault.message),
        FaultKind::Permission => {
            let what = Failing::Permission { message: fault.message.clone() };
            let failure = settle::failure_without_gate(turn, node, what)?;
            turn.run.record_mut(node)?.failure = Some(Box::new(failure));
            pace::escalate(turn, node, Reason::Permission, Some(fault.message.clone()), None)
        }
    }
}

/// Asks a person about work that no worker could do.
pub(super) fn escalate_undeliverable(
    turn: &mut Turn<'_>,
    node: &NodeId,
    message: &str,
) -> Result<(), Refusal> {
    let what = Failing::Undelivered { message: message.to_owned() };
    let failure = settle::failure_without_gate(turn, node, what)?;
    turn.run.record_mut(node)?.failure = Some(Box::new(failure));
    pace::escalate(turn, node, Reason::Undelivered, Some(message.to_owned()), None)
}

/// Charges the usage that a worker reported. Without a report the attempt is unmetered: shown, not charged (DESIGN 9).
pub(super) fn charge_usage(
    turn: &mut Turn<'_>,
    node: &NodeId,
    usage: Option<&Usage>,
    duration: Duration,
) -> Result<(), Refusal> {
    let mut own = turn.run.record(node)?.tally.spent;
    own.time = own.time.saturating_add(duration);
    turn.run.record_mut(node)?.tally.spent = with_usage(own, usage);
    turn.run.head.spent = with_usage(turn.run.head.spent, usage);
    Ok(())
}

/// Charges what was told of work that came to nothing; where nothing was told, the try that follows tells.
pub(super) fn charge_if_reported(
    turn: &mut Turn<'_>,
    node: &NodeId,
    usage: Option<&Usage>,
) -> Result<(), Refusal> {
    match usage {
        Some(_) => charge_usage(turn, node, usage, Duration::ZERO),
        None => Ok(()),
    }
}

fn with_usage(spent: Spent, usage: Option<&Usage>) -> Spent {
    match usage {
        None => Spent { unmetered: spent.unmetered + 1, ..spent },
        Some(usage) => Spent {
            metered: spent.metered + 1,
            tokens: spent.tokens.saturating_add(usage.tokens()),
            micro_usd: spent.micro_usd.saturating_add(usage.micro_usd.unwrap_or(0)),
            ..spent
        },
    }
}
