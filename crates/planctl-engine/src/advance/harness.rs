//! What a gate found: the only way in which a step passes.

use std::time::Duration;

use crate::contract::{Evidence, Inconclusive, Showing, Verdict};
use crate::effect::Reason;
use crate::event::{Found, HarnessEvent, Refusal};
use crate::fact::Fact;
use crate::ids::{Attempt, NodeId};
use crate::mutant::{Mutant, planted};
use crate::run::{Failing, Failure, NodeState, Outcome, Rehearsal};

use super::{Turn, dispatch, hold, route, settle};

pub(super) fn found(turn: &mut Turn<'_>, event: &HarnessEvent) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let node = &event.at.node;
    turn.task(node)?;
    let Some(attempt) = turn.evaluating(node)? else {
        return Err(Refusal::WrongState);
    };
    turn.refuse_unless_newest(&event.at, attempt)?;
    match &event.found {
        Found::Evidence(evidence) => match *turn.state(node)? {
            NodeState::Checking { gave_up, .. } => judged(turn, node, evidence, gave_up),
            NodeState::Pending
            | NodeState::Rehearsing
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Held { .. }
            | NodeState::Settled { .. } => Err(Refusal::WrongState),
        },
        Found::Rehearsed(evidence) => rehearsed(turn, node, evidence),
        Found::Nothing(Inconclusive::Interrupted) => dispatch::gate_after_interruption(turn, node),
        Found::Nothing(why @ (Inconclusive::ToolMissing { what } | Inconclusive::Unstable { what })) => {
            let word = match why {
                Inconclusive::ToolMissing { .. } => format!("missing: {what}"),
                Inconclusive::Unstable { .. } => format!("the workspace changed meanwhile: {what}"),
                Inconclusive::Interrupted => "interrupted".to_owned(),
            };
            told_nothing(turn, node, word)
        }
    }
}

fn judged(turn: &mut Turn<'_>, node: &NodeId, evidence: &Evidence, gave_up: bool) -> Result<(), Refusal> {
    let contract = &turn.task(node)?.contract;
    let verdict = match contract.judge(evidence) {
        Some(verdict) => verdict,
        None if planted(Mutant::ForeignEvidenceAccepted) => Verdict::Passed,
        None => return Err(Refusal::ForeignEvidence),
    };
    let verdict = if planted(Mutant::GateAlwaysPasses) { Verdict::Passed } else { verdict };
    let attempt = turn.run.record(node)?.tally.attempt;
    let vacuous = verdict == Verdict::Passed
        && turn.run.record(node)?.is_vacuous()
        && !planted(Mutant::VacuousForgotten);
    turn.facts.push(Fact::NodeVerified { node: node.clone(), attempt, verdict, vacuous });
    match verdict {
        Verdict::Passed => {
            settle::settle(turn, node, Outcome::Passed, None)?;
            route::success(turn, node)
        }
        Verdict::Failed | Verdict::TimedOut | Verdict::Tampered => {
            let failure = Failure {
                attempt,
                what: Failing::Contract {
                    verdict,
                    ending: evidence.ending,
                    tampered: evidence.tampered.clone(),
                },
                duration: evidence.duration,
                stdout: evidence.stdout.clone(),
                stderr: evidence.stderr.clone(),
            };
            settle::attempt_failed(turn, node, failure, gave_up)
        }
    }
}

/// Notes what the contract showed before the work. Nothing of it is a verdict: the work follows, or a person is asked.
fn rehearsed(turn: &mut Turn<'_>, node: &NodeId, evidence: &Evidence) -> Result<(), Refusal> {
    if *turn.state(node)? != NodeState::Rehearsing {
        return if planted(Mutant::RehearsalJudged) {
            judged(turn, node, evidence, false)
        } else {
            Err(Refusal::WrongState)
        };
    }
    let contract = &turn.task(node)?.contract;
    let showed = contract.shown(evidence).ok_or(Refusal::ForeignEvidence)?;
    let (ending, tampered) = (evidence.ending, evidence.tampered.clone());
    turn.facts.push(Fact::NodeRehearsed { node: node.clone(), showed, ending, tampered: tampered.clone() });
    if planted(Mutant::RehearsalPassesStep) && showed == Showing::Green {
        settle::settle(turn, node, Outcome::Passed, None)?;
        return route::success(turn, node);
    }
    let record = turn.run.record_mut(node)?;
    record.rehearsal = Some(Rehearsal::Done { contract: contract.digest.clone(), showed, ending });
    if !record.awaits_rehearsal(contract) {
        return dispatch::again(turn, node);
    }
    let failure = Failure {
        attempt: Attempt::NONE,
        what: Failing::NotRed { showed, ending, tampered },
        duration: evidence.duration,
        stdout: evidence.stdout.clone(),
        stderr: evidence.stderr.clone(),
    };
    hold::with_failure(turn, node, Reason::NotRed, None, failure)
}

/// Runs the gate again, a few times at most: something outside the work is wrong, and a person has to know.
fn told_nothing(turn: &mut Turn<'_>, node: &NodeId, why: String) -> Result<(), Refusal> {
    let limit = turn.graph.limits().repeats;
    let tally = &mut turn.run.record_mut(node)?.tally;
    tally.repeats = tally.repeats.saturating_add(1);
    let (repeats, attempt) = (tally.repeats, tally.attempt);
    if repeats >= limit {
        let what = Failing::Inconclusive { message: why.clone() };
        let failure = settle::failure_without_gate(turn, node, what)?;
        // A rehearsal is of no attempt, so no worker is told of it.
        if turn.purpose(node)?.is_verdict() {
            turn.run.record_mut(node)?.failure = Some(Box::new(failure.clone()));
        }
        return hold::with_failure(turn, node, Reason::Inconclusive, Some(why), failure);
    }
    let purpose = turn.purpose(node)?;
    turn.facts.push(Fact::GateRepeated { node: node.clone(), attempt, purpose, why });
    let wait = turn.item_out(node)?.map_or(Duration::ZERO, |item| dispatch::back_off(&item, repeats));
    dispatch::gate(turn, node, turn.now.after(wait))
}
