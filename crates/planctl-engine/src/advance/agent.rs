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

use super::{Transition, dispatch, hold, pace, route, settle};

pub(super) fn apply_event(transition: &mut Transition<'_>, event: &AgentEvent) -> Result<(), Refusal> {
    let node = &event.at.node;
    transition.refuse_unless_working(&event.at)?;
    let used = event.reported_usage();
    match &event.said {
        AgentSaid::Reported(report) => {
            charge_usage(transition, node, used, report.duration)?;
            note_circumstances(transition, node, report)?;
            on_report(transition, node, report)
        }
        AgentSaid::Asked { question, .. } => {
            charge_usage(transition, node, used, Duration::ZERO)?;
            transition.run.record_mut(node)?.question = Some(question.clone());
            hold::hold_with_ask(transition, node, AskKind::Question, Reason::Asked, Some(question.clone()))
        }
        AgentSaid::Overran { past, duration, .. } => {
            charge_usage(transition, node, used, *duration)?;
            on_overrun(transition, node, *past)
        }
        AgentSaid::Faulted(fault) => {
            charge_if_reported(transition, node, used)?;
            on_fault(transition, node, fault)
        }
        AgentSaid::Released => {
            charge_if_reported(transition, node, used)?;
            dispatch::after_interruption(transition, node)
        }
    }
}

fn on_report(transition: &mut Transition<'_>, node: &NodeId, report: &Report) -> Result<(), Refusal> {
    apply_hints(transition, node, report.hints.as_deref())?;
    if transition.graph.conditions_ask_for(LAST_RESPONSE) {
        let said = shortened(report.text.tail.trim());
        transition.run.record_mut(node)?.context.insert(LAST_RESPONSE.to_owned(), said);
    }
    let proposal = report.hints.as_ref().and_then(|hints| hints.insert_step.as_deref());
    match proposal.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => {
            transition.run.record_mut(node)?.unchecked =
                Some(Unchecked { gave_up: report.gave_up, is_judged_anew: false });
            let text: String = text.chars().take(PROPOSAL_CHARS_MAX).collect();
            hold::hold_with_ask(transition, node, AskKind::Insertion, Reason::Proposed, Some(text))
        }
        None => start_check(transition, node, report.gave_up, report.observation.as_deref()),
    }
}

/// Sends out the gate of an attempt that was reported; without a command, an observation that the plan checks or a person
/// judges it.
fn start_check(
    transition: &mut Transition<'_>,
    node: &NodeId,
    gave_up: bool,
    seen: Option<&Observation>,
) -> Result<(), Refusal> {
    if transition.run.record(node)?.is_observed {
        transition.run.record_mut(node)?.is_observed = false;
    }
    if let Some(confirmation) = transition.confirmation(node).filter(|_| transition.is_without_contract(node))
    {
        return match (&confirmation.check, seen) {
            (Some(check), Some(seen)) if check.is_told_by(seen) => {
                judge_by_observation(transition, node, check, seen, gave_up)
            }
            (Some(_) | None, _) => hold::for_choice(transition, node, &confirmation.question),
        };
    }
    let attempt = transition.run.record(node)?.tally.attempt;
    transition.set_state(node, NodeState::Checking { attempt, gave_up })?;
    dispatch::dispatch_gate(transition, node, transition.now)
}

/// Judges an attempt by an observation (DESIGN 10): the one way in which an agent's side passes a step, and only where the plan
/// has a check in place of a contract.
fn judge_by_observation(
    transition: &mut Transition<'_>,
    node: &NodeId,
    check: &OutputCheck,
    seen: &Observation,
    gave_up: bool,
) -> Result<(), Refusal> {
    let attempt = transition.run.record(node)?.tally.attempt;
    let refuted = check.mismatch(seen);
    transition.facts.push(Fact::NodeObserved {
        node: node.clone(),
        attempt,
        check: check.clone(),
        command: seen.command.clone(),
        refuted: refuted.clone(),
    });
    let Some(message) = refuted else {
        transition.run.record_mut(node)?.is_observed = true;
        settle::settle(transition, node, Outcome::Passed, None)?;
        return route::leave_on_success(transition, node);
    };
    let tail = seen.output.len().saturating_sub(Excerpt::TAIL_BYTES_MAX);
    let tail = (tail..=seen.output.len()).find(|at| seen.output.is_char_boundary(*at)).unwrap_or_default();
    let stdout =
        Excerpt { bytes: seen.output.len() as u64, tail: seen.output[tail..].to_owned(), stored: None };
    let failure = settle::failure_without_gate(transition, node, Failing::Unobserved { message })?;
    settle::attempt_failed(transition, node, Failure { stdout, ..failure }, gave_up)
}

/// Has the gate of a report run that waited for a person; says whether there was one.
pub(super) fn take_up_report(transition: &mut Transition<'_>, node: &NodeId) -> Result<bool, Refusal> {
    let waits = transition.run.record(node)?.unchecked;
    let Some(Unchecked { gave_up, is_judged_anew }) = waits else { return Ok(false) };
    transition.run.record_mut(node)?.unchecked = None;
    // An attempt has one verdict, for ever.
    if is_judged_anew {
        dispatch::count_attempt(transition, node)?;
    }
    start_check(transition, node, gave_up, None)?;
    Ok(true)
}

/// The longest proposal of a step, in characters.
const PROPOSAL_CHARS_MAX: usize = 16 * 1024;

/// Takes over what a worker says of the way on. It decides nothing but the choice among edges of a pass, and writes no
/// name that planctl itself writes, which history tells (DOT X4, X5).
fn apply_hints(transition: &mut Transition<'_>, node: &NodeId, hints: Option<&Hints>) -> Result<(), Refusal> {
    let Some(hints) = hints else {
        if transition.run.record(node)?.attempt_details.is_some() {
            transition.run.record_mut(node)?.attempt_details = None;
        }
        return Ok(());
    };
    let record = transition.run.record_mut(node)?;
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
        transition.facts.push(Fact::ContextRefused { node: node.clone(), attempt, names: refused });
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
pub(super) fn on_overrun(
    transition: &mut Transition<'_>,
    node: &NodeId,
    past: Overrun,
) -> Result<(), Refusal> {
    let failure = settle::failure_without_gate(transition, node, Failing::Overran { past })?;
    settle::attempt_failed(transition, node, failure, false)
}

/// Keeps what a report tells of the circumstances until its gate is judged.
fn note_circumstances(
    transition: &mut Transition<'_>,
    node: &NodeId,
    report: &Report,
) -> Result<(), Refusal> {
    if transition.run.record(node)?.circumstances != report.circumstances {
        transition.run.record_mut(node)?.circumstances.clone_from(&report.circumstances);
    }
    Ok(())
}

/// Takes a failed contract for what cut the work before it off: the work goes out again, and no retry is used up.
pub(super) fn cut_off(transition: &mut Transition<'_>, node: &NodeId, fault: &Fault) -> Result<(), Refusal> {
    match fault.kind {
        FaultKind::Transient => dispatch::after_judged_delivery(transition, node, &fault.message),
        FaultKind::Permission | FaultKind::Permanent => on_fault(transition, node, fault),
    }
}

fn on_fault(transition: &mut Transition<'_>, node: &NodeId, fault: &Fault) -> Result<(), Refusal> {
    match fault.kind {
        FaultKind::Transient => dispatch::redeliver_after_loss(transition, node, &fault.message),
        FaultKind::Permanent => escalate_undeliverable(transition, node, &fault.message),
        FaultKind::Permission => {
            let what = Failing::Permission { message: fault.message.clone() };
            let failure = settle::failure_without_gate(transition, node, what)?;
            transition.run.record_mut(node)?.failure = Some(Box::new(failure));
            pace::escalate(transition, node, Reason::Permission, Some(fault.message.clone()), None)
        }
    }
}

/// Asks a person about work that no worker could do.
pub(super) fn escalate_undeliverable(
    transition: &mut Transition<'_>,
    node: &NodeId,
    message: &str,
) -> Result<(), Refusal> {
    let what = Failing::Undelivered { message: message.to_owned() };
    let failure = settle::failure_without_gate(transition, node, what)?;
    transition.run.record_mut(node)?.failure = Some(Box::new(failure));
    pace::escalate(transition, node, Reason::Undelivered, Some(message.to_owned()), None)
}

/// Charges the usage that a worker reported. Without a report the attempt is unmetered: shown, not charged (DESIGN 9).
pub(super) fn charge_usage(
    transition: &mut Transition<'_>,
    node: &NodeId,
    usage: Option<&Usage>,
    duration: Duration,
) -> Result<(), Refusal> {
    let mut own = transition.run.record(node)?.tally.spent;
    own.time = own.time.saturating_add(duration);
    transition.run.record_mut(node)?.tally.spent = with_usage(own, usage);
    transition.run.head.spent = with_usage(transition.run.head.spent, usage);
    Ok(())
}

/// Charges what was told of work that came to nothing; where nothing was told, the try that follows tells.
pub(super) fn charge_if_reported(
    transition: &mut Transition<'_>,
    node: &NodeId,
    usage: Option<&Usage>,
) -> Result<(), Refusal> {
    match usage {
        Some(_) => charge_usage(transition, node, usage, Duration::ZERO),
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
