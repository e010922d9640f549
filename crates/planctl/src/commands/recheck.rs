//! `planctl resume --recheck`: tries the contracts of the steps that passed, and names the first that would pass no longer.

use std::collections::BTreeSet;
use std::path::Path;

use planctl_api::wire::{RunState, RunView, StepState, StepView};
use planctl_engine::{Graph, NodeId};
use planctl_harness::ReplicaLimits;
use planctl_server::probe::{Rechecked, candidates_of};

use super::Context;
use super::standing::command_to_run_again;
use crate::checking::Prober;
use crate::client::{Client, Handle};
use crate::failure::{Exit, Failure};
use crate::next;
use crate::show::{self, shell_word};

/// Returns the first step that passed and would not pass again, with the reason; says what it found of each.
///
/// The contracts run in a throw-away copy of the place where the run works, which proves nothing: the step is done anew, and its
/// gate decides.
///
/// # Errors
///
/// Where the run goes on or is over for good, and those of the copy.
pub async fn first_regressed(
    context: &Context,
    client: &Client,
    handle: Handle,
    view: &RunView,
) -> Result<Option<(u32, Option<String>)>, Failure> {
    let run = show::safe(&view.run);
    if !matches!(view.state, RunState::Failed | RunState::Paused) {
        let message = format!(
            "{run} is {}: only a run that failed or is paused is rechecked",
            show::run_state(view.state)
        );
        let next = match view.state.is_over() {
            true => command_to_run_again(view, None),
            false => next::typed_in(&format!("planctl pause {}", shell_word(&view.run)), &view.workspace),
        };
        return Err(Failure::new(Exit::Conflict, message).next(next));
    }
    let plan = client.plan_of_run(handle).await?;
    let place = view.worktree.as_ref().map_or(view.workspace.as_str(), |own| own.path.as_str());
    let place = Path::new(place);
    let candidates = candidates_of(&plan.verification, place);
    let prober = Prober::new(context, ReplicaLimits::default(), |_| ())?;
    let graph = plan.verification.graph.as_ref();
    let graph = graph.ok_or_else(|| Failure::new(Exit::No, format!("{run} has no graph")))?;
    let mut count = 0;
    let passed: Vec<&StepView> = view.steps.iter().filter(|step| step.state == StepState::Passed).collect();
    for step in &passed {
        let Some(candidate) = candidates.iter().find(|candidate| candidate.step == step.number) else {
            continue;
        };
        let name = format!("step {} \"{}\"", step.number, show::safe(&step.title));
        let node = NodeId::new(step.node.as_str());
        if graph.worktree_branch(&node).is_some() {
            context.say(&format!("{name} was not tried: it worked in the worktree of its branch"));
            continue;
        }
        match prober.recheck(context, candidate, place).await? {
            Rechecked::Passes => count += 1,
            Rechecked::NotTried { reason } => {
                context.say(&format!("{name} was not tried: {}", show::safe(&reason)));
            }
            Rechecked::Fails { why } => {
                context.say(&format!("{name} passes no longer: {}", show::safe(&why)));
                let from = anew_from(graph, &passed, &node).ok_or_else(|| {
                    let message =
                        format!("{name} is on a branch, and no step before the branches can be done again");
                    Failure::new(Exit::Conflict, message).help("resume without --recheck, or start a new run")
                })?;
                let (before, of) = match from == step.number {
                    true => ("", String::new()),
                    false => (", before the branches", format!("{name}: ")),
                };
                context.say(&format!("{run} goes on with step {from}{before}, and with all that follows it"));
                return Ok(Some((from, Some(format!("recheck: {of}{why}")))));
            }
        }
    }
    context.say(&match count {
        1 => "1 step that passed still passes".to_owned(),
        several => format!("{several} steps that passed still pass"),
    });
    Ok(None)
}

/// Returns the step with which the run begins anew: the one that passes no longer, or, where that is on a branch, the last before
/// the branches that passed and has a contract. A branch alone is not begun anew.
fn anew_from(graph: &Graph, passed: &[&StepView], node: &NodeId) -> Option<u32> {
    if !graph.is_on_a_branch(node) {
        return graph.node(node)?.step();
    }
    let leads_there = |from: &NodeId| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            if at == node {
                return true;
            }
            open.extend(graph.edges_from(at).iter().map(|edge| &edge.to).filter(|to| seen.insert(*to)));
        }
        false
    };
    let can_begin = |step: &&&StepView| {
        let id = NodeId::new(step.node.as_str());
        let has_contract = graph.gated(&id).is_some_and(|gated| !gated.contract.is_none());
        has_contract && !graph.is_on_a_branch(&id) && leads_there(&id)
    };
    passed.iter().filter(can_begin).map(|step| step.number).max()
}
