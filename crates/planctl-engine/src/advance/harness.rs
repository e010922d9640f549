//! Events of the harness: the only way in which a step passes.

use std::time::Duration;

use crate::ask::Reason;
use crate::budget::{Reserved, Spent, Usage};
use crate::contract::{Ending, Evidence, Inconclusive, Judgement, PromptToJudge, Verdict};
use crate::effect::Purpose;
use crate::event::{HarnessEvent, HarnessResult};
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::graph::{NodeKind, Signal};
use crate::ids::{Attempt, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{NodeState, PromptWord, Rehearsal, Unchecked};

use super::{Transition, dispatch, hold, join, route, settle, sub_plan};

pub(super) fn apply_event(transition: &mut Transition<'_>, event: &HarnessEvent) -> Result<(), Refusal> {
    transition.refuse_unless_active()?;
    let node = &event.at.node;
    transition.refuse_unless_served_by_harness(node)?;
    let Some(attempt) = transition.attempt_in_evaluation(node)? else {
        return Err(Refusal::WrongState);
    };
    transition.refuse_unless_newest(&event.at, attempt)?;
    match &event.found {
        HarnessResult::Evidence(evidence) => {
            let NodeState::Checking { gave_up, .. } = *transition.state(node)? else {
                return Err(Refusal::WrongState);
            };
            on_evidence(transition, node, evidence, gave_up)
        }
        HarnessResult::Rehearsed(evidence) => on_rehearsal(transition, node, evidence),
        HarnessResult::Recorded { .. } if *transition.state(node)? == NodeState::Rehearsing => {
            on_files_recorded(transition, node)
        }
        HarnessResult::Recorded { name } => on_checkpoint_done(transition, node, Some(name.as_str())),
        HarnessResult::Restored => on_checkpoint_done(transition, node, None),
        HarnessResult::Forked { base } => join::on_worktrees_forked(transition, node, base),
        HarnessResult::Merged { files, .. } => join::on_merged(transition, node, *files),
        HarnessResult::Conflicted(conflict) => join::on_conflict(transition, node, conflict),
        HarnessResult::Begun { run, budget, waits } => {
            sub_plan::on_begun(transition, node, *run, *budget, *waits)
        }
        HarnessResult::Ended(child) => sub_plan::on_ended(transition, node, child),
        HarnessResult::Nothing(Inconclusive::Interrupted) => {
            dispatch::gate_after_interruption(transition, node)
        }
        HarnessResult::Nothing(Inconclusive::Unheard { usage }) => {
            charge_judge(transition, node, Some(usage))?;
            dispatch::gate_after_interruption(transition, node)
        }
        HarnessResult::Nothing(Inconclusive::ToolMissing { what }) => {
            repeat_inconclusive_gate(transition, node, format!("missing: {what}"))
        }
        HarnessResult::Nothing(Inconclusive::Unstable { what }) => {
            repeat_inconclusive_gate(transition, node, format!("the workspace changed meanwhile: {what}"))
        }
        HarnessResult::Nothing(Inconclusive::Unjudged { what, .. }) => {
            charge_judge(transition, node, event.found.judge_usage())?;
            repeat_inconclusive_gate(transition, node, format!("not judged: {what}"))
        }
        HarnessResult::Nothing(Inconclusive::Unapproved { prompt }) => unapproved(transition, node, prompt),
        HarnessResult::Nothing(Inconclusive::Unfunded { estimate }) => unfunded(transition, node, *estimate),
    }
}

fn on_evidence(
    transition: &mut Transition<'_>,
    node: &NodeId,
    evidence: &Evidence,
    gave_up: bool,
) -> Result<(), Refusal> {
    let verdict = match transition.gated(node)?.contract.judge(evidence) {
        Some(verdict) => verdict,
        None => return Err(Refusal::ForeignEvidence),
    };
    let judgement = evidence.judgement.as_deref();
    if judgement.is_some_and(|judgement| !is_approved(transition, node, judgement)) {
        return Err(Refusal::ForeignEvidence);
    }
    charge_judge(transition, node, judgement.and_then(|judgement| judgement.usage.as_ref()))?;
    record_gate_context(transition, node, evidence)?;
    let attempt = transition.run.record(node)?.tally.attempt;
    if let Some(NodeKind::Decision(_)) = transition.graph.node(node).map(|node| &node.kind)
        && let Ending::Exited { .. } = evidence.ending
        && matches!(verdict, Verdict::Passed | Verdict::Failed)
    {
        return on_decision(transition, node, verdict == Verdict::Passed, evidence.ending);
    }
    let vacuous = verdict == Verdict::Passed && transition.run.record(node)?.is_vacuous();
    transition.facts.push(Fact::NodeVerified { node: node.clone(), attempt, verdict, vacuous });
    match verdict {
        Verdict::Passed => {
            if let Some(confirmation) = transition.confirmation(node) {
                return hold::for_choice(transition, node, &confirmation.question);
            }
            settle::settle(transition, node, Outcome::Passed, None)?;
            route::leave_on_success(transition, node)
        }
        Verdict::Failed | Verdict::TimedOut | Verdict::Tampered => {
            let crate::event::Circumstances { cut_off, denied, .. } =
                transition.run.record(node)?.newest_circumstances();
            if let Some(fault) = cut_off.filter(|_| verdict != Verdict::Tampered) {
                return super::agent::cut_off(transition, node, &fault);
            }
            let what = match judgement.filter(|_| verdict == Verdict::Failed) {
                Some(judgement) => Failing::Judged { judgement: Box::new(judgement.clone()) },
                None => Failing::from_verdict(verdict, evidence),
            };
            let failure = Failure { denied, ..Failure::from_evidence(attempt, what, evidence) };
            settle::attempt_failed(transition, node, failure, gave_up)
        }
    }
}

/// Says whether a person approved the prompt that a judge answered, where one has to.
fn is_approved(transition: &Transition<'_>, node: &NodeId, judgement: &Judgement) -> bool {
    let asks = transition
        .gated(node)
        .is_ok_and(|gated| gated.contract.judge.as_ref().is_some_and(|judge| judge.approval));
    let word = transition.run.record(node).ok().and_then(|record| record.prompt.as_ref());
    !asks || word.is_some_and(|word| word.is_approved && Some(&word.digest) == judgement.prompt.as_ref())
}

/// Holds the gate of a report until a person decides whether a prompt may be sent to its judge.
fn unapproved(transition: &mut Transition<'_>, node: &NodeId, prompt: &PromptToJudge) -> Result<(), Refusal> {
    if transition.gated(node)?.contract.judge.as_ref().is_none_or(|judge| !judge.approval) {
        return Err(Refusal::WrongState);
    }
    wait_for_person(transition, node)?;
    let word = PromptWord { digest: prompt.digest.clone(), is_approved: false };
    transition.run.record_mut(node)?.prompt = Some(word);
    hold::for_prompt(transition, node, prompt)
}

/// Holds the gate of a report until a person adds to the budget, where its judge would use more than is left.
fn unfunded(transition: &mut Transition<'_>, node: &NodeId, estimate: Reserved) -> Result<(), Refusal> {
    if transition.gated(node)?.contract.judge.is_none() {
        return Err(Refusal::WrongState);
    }
    match transition.run.head.short_of(estimate, dispatch::steps_remaining(transition)) {
        Some(shortfall) => {
            wait_for_person(transition, node)?;
            hold::for_budget(transition, node, shortfall)
        }
        None => {
            repeat_inconclusive_gate(transition, node, "not judged: the budget did not suffice".to_owned())
        }
    }
}

/// Notes that the report of a gate waits for a person, and is taken up once they have answered.
fn wait_for_person(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let NodeState::Checking { gave_up, .. } = *transition.state(node)? else {
        return Err(Refusal::WrongState);
    };
    let record = transition.run.record_mut(node)?;
    record.unchecked = Some(Unchecked { gave_up, is_judged_anew: false });
    record.tally.held_gates = record.tally.held_gates.saturating_add(1);
    Ok(())
}

/// Charges what a judge used. It is no attempt of its own, so it counts among what the attempts of its step use.
pub(super) fn charge_judge(
    transition: &mut Transition<'_>,
    node: &NodeId,
    usage: Option<&Usage>,
) -> Result<(), Refusal> {
    let Some(usage) = usage else { return Ok(()) };
    let charged = |spent: Spent| Spent {
        tokens: spent.tokens.saturating_add(usage.tokens()),
        micro_usd: spent.micro_usd.saturating_add(usage.micro_usd.unwrap_or(0)),
        ..spent
    };
    let own = transition.run.record(node)?.tally.spent;
    transition.run.record_mut(node)?.tally.spent = charged(own);
    transition.run.head.spent = charged(transition.run.head.spent);
    Ok(())
}

/// Goes the way that a command decided: an exit code is an answer, and anything else is a failure of the command.
fn on_decision(
    transition: &mut Transition<'_>,
    node: &NodeId,
    met: bool,
    ending: Ending,
) -> Result<(), Refusal> {
    transition.facts.push(Fact::NodeDecided { node: node.clone(), met, ending });
    transition.set_state(node, NodeState::Settled { outcome: Outcome::Passed })?;
    let signal = if met { Signal::Success } else { Signal::Exhausted };
    route::leave(transition, node, signal)
}

/// Keeps of a gate what conditions ask for, and takes over what its worker said of the way on where it passed.
fn record_gate_context(
    transition: &mut Transition<'_>,
    node: &NodeId,
    evidence: &Evidence,
) -> Result<(), Refusal> {
    let graph = transition.graph;
    let is_watched = graph.is_watched(node) || graph.conditions_ask_for("parallel.results.");
    let is_tool = matches!(graph.node(node).map(|node| &node.kind), Some(NodeKind::Call(_)))
        && graph.conditions_ask_for("tool.");
    if !is_watched && !is_tool {
        return Ok(());
    }
    let exit_code = match evidence.ending {
        Ending::Exited { code } => Some(code),
        Ending::Signalled { .. } | Ending::TimedOut | Ending::OverLimit { .. } | Ending::NotRun => None,
    };
    let output = output_tail(&evidence.stdout.tail);
    let record = transition.run.record_mut(node)?;
    if is_tool {
        record.context.insert(TOOL_OUTPUT.to_owned(), output.clone());
        let code = exit_code.map(|code| code.to_string()).unwrap_or_default();
        record.context.insert(TOOL_EXIT_CODE.to_owned(), code);
        if graph.conditions_ask_for(TOOL_LAST_LINE) {
            let line = output.lines().next_back().unwrap_or_default().trim();
            record.context.insert(TOOL_LAST_LINE.to_owned(), line.to_owned());
        }
    }
    if is_watched {
        let known = record.attempt_details.get_or_insert_default();
        known.exit_code = exit_code;
        known.output = Some(output);
    }
    Ok(())
}

/// The names under which conditions find what the last call printed and how it ended (DOT S7).
const TOOL_OUTPUT: &str = "tool.output";
const TOOL_EXIT_CODE: &str = "tool.exit_code";
/// The last line of the output: the word by which most pipelines of the dialect let a call choose the way (DOT B4).
const TOOL_LAST_LINE: &str = "tool.last_line";

fn output_tail(printed: &str) -> String {
    let printed = printed.trim();
    let begin = printed.len().saturating_sub(OUTPUT_BYTES_MAX);
    let begin = (begin..=printed.len()).find(|at| printed.is_char_boundary(*at)).unwrap_or(printed.len());
    printed[begin..].to_owned()
}

/// The most bytes of a gate's output that conditions can look at: its end.
const OUTPUT_BYTES_MAX: usize = 1024;

/// Goes on from a checkpoint whose workspace was recorded, or is again as it was.
fn on_checkpoint_done(
    transition: &mut Transition<'_>,
    node: &NodeId,
    name: Option<&str>,
) -> Result<(), Refusal> {
    let NodeState::Saving { restores } = *transition.state(node)? else { return Err(Refusal::WrongState) };
    if restores != name.is_none() {
        return Err(Refusal::WrongState);
    }
    match name {
        Some(name) => {
            transition.run.record_mut(node)?.saved = Some(name.to_owned());
            transition.facts.push(Fact::CheckpointSaved { node: node.clone(), name: name.to_owned() });
        }
        None => transition.facts.push(Fact::CheckpointRestored { node: node.clone() }),
    }
    transition.set_state(node, NodeState::Settled { outcome: Outcome::Passed })?;
    route::leave_on_success(transition, node)
}

/// Goes on to the work whose files its judge will be shown as they were before it.
fn on_files_recorded(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let contract = &transition.task(node)?.contract;
    if !contract.rehearsal_mode().is_off() {
        return Err(Refusal::WrongState);
    }
    transition.run.record_mut(node)?.rehearsal =
        Some(Rehearsal::Recorded { contract: contract.digest.clone() });
    dispatch::dispatch_node(transition, node)
}

/// Notes what the contract showed before the work. Nothing of it is a verdict: the work follows, or a person is asked.
fn on_rehearsal(transition: &mut Transition<'_>, node: &NodeId, evidence: &Evidence) -> Result<(), Refusal> {
    if *transition.state(node)? != NodeState::Rehearsing {
        return Err(Refusal::WrongState);
    }
    let contract = &transition.task(node)?.contract;
    let showed = contract.rehearsal_result(evidence).ok_or(Refusal::ForeignEvidence)?;
    let (ending, tampered) = (evidence.ending, evidence.tampered.clone());
    transition.facts.push(Fact::NodeRehearsed {
        node: node.clone(),
        showed,
        ending,
        tampered: tampered.clone(),
    });
    let record = transition.run.record_mut(node)?;
    record.rehearsal = Some(Rehearsal::Done { contract: contract.digest.clone(), showed, ending });
    if !record.awaits_rehearsal(contract) {
        return dispatch::dispatch_node(transition, node);
    }
    let what = Failing::NotRed { showed, ending, tampered };
    let failure = Failure::from_evidence(Attempt::NONE, what, evidence);
    hold::with_failure(transition, node, Reason::NotRed, None, failure)
}

/// Runs the gate again, a few times at most: something outside the work is wrong, and a person has to know.
fn repeat_inconclusive_gate(
    transition: &mut Transition<'_>,
    node: &NodeId,
    why: String,
) -> Result<(), Refusal> {
    let limit = transition.graph.limits().repeats;
    let tally = &mut transition.run.record_mut(node)?.tally;
    tally.repeats = tally.repeats.saturating_add(1);
    let (repeats, attempt) = (tally.repeats, tally.attempt);
    if repeats >= limit {
        let what = Failing::Inconclusive { message: why.clone() };
        let failure = settle::failure_without_gate(transition, node, what)?;
        // A rehearsal is of no attempt, so no worker is told of it.
        if transition.purpose(node)?.is_verdict() {
            transition.run.record_mut(node)?.failure = Some(Box::new(failure.clone()));
        }
        let message = match transition.purpose(node)? {
            Purpose::Fork => {
                format!("{why}; retry tries again, skip goes on behind its branches, of which none begins")
            }
            Purpose::Verdict
            | Purpose::Rehearsal
            | Purpose::Record
            | Purpose::Restoration
            | Purpose::Merge
            | Purpose::SubPlan => why,
        };
        return hold::with_failure(transition, node, Reason::Inconclusive, Some(message), failure);
    }
    let purpose = transition.purpose(node)?;
    transition.facts.push(Fact::GateRepeated { node: node.clone(), attempt, purpose, why });
    let wait =
        transition.outstanding_item(node)?.map_or(Duration::ZERO, |item| dispatch::back_off(&item, repeats));
    dispatch::dispatch_gate(transition, node, transition.now.after(wait))
}
