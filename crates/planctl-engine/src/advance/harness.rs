//! What a gate found: the only way in which a step passes.

use crate::contract::{Evidence, Inconclusive, Verdict};
use crate::effect::{AskKind, Reason};
use crate::event::{Found, HarnessEvent, Refusal};
use crate::fact::Fact;
use crate::ids::NodeId;
use crate::mutant::{Mutant, planted};
use crate::run::{Failing, Failure, NodeState, Outcome};

use super::{Turn, dispatch, hold, route, settle};

pub(super) fn found(turn: &mut Turn<'_>, event: &HarnessEvent) -> Result<(), Refusal> {
    turn.refuse_unless_active()?;
    let node = &event.at.node;
    turn.task(node)?;
    let NodeState::Checking { attempt, gave_up } = *turn.state(node)? else {
        return Err(Refusal::WrongState);
    };
    turn.refuse_unless_newest(&event.at, attempt)?;
    match &event.found {
        Found::Evidence(evidence) => judged(turn, node, evidence, gave_up),
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
    turn.facts.push(Fact::NodeVerified { node: node.clone(), attempt, verdict });
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

/// Runs the gate again, a few times at most: something outside the work is wrong, and a person has to know.
fn told_nothing(turn: &mut Turn<'_>, node: &NodeId, why: String) -> Result<(), Refusal> {
    let limit = turn.graph.limits().repeats;
    let tally = &mut turn.run.record_mut(node)?.tally;
    tally.repeats = tally.repeats.saturating_add(1);
    let (repeats, attempt) = (tally.repeats, tally.attempt);
    if repeats >= limit {
        let what = Failing::Inconclusive { message: why.clone() };
        let failure = settle::failure_without_gate(turn, node, what)?;
        turn.run.record_mut(node)?.failure = Some(Box::new(failure));
        return hold::ask(turn, node, AskKind::Escalation, Reason::Inconclusive, Some(why));
    }
    turn.facts.push(Fact::GateRepeated { node: node.clone(), attempt, why });
    let item = crate::ids::ItemId::gate(turn.run.id, &turn.run.at(node)?);
    let at = turn.now.after(dispatch::back_off(&item, repeats));
    dispatch::gate(turn, node, at)
}
