//! `planctl resume --recheck`: tries the contracts of the steps that passed, and names the first that would pass no longer.

use std::path::Path;

use planctl_api::wire::{RunState, RunView, StepState};
use planctl_harness::ReplicaLimits;
use planctl_server::probe::{Rechecked, candidates_of};

use super::Context;
use super::plan::shell_word;
use crate::checking::Prober;
use crate::client::{Client, Handle};
use crate::failure::{Exit, Failure};
use crate::show;

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
) -> Result<Option<(u32, String)>, Failure> {
    let run = show::safe(&view.run);
    if !matches!(view.state, RunState::Failed | RunState::Paused) {
        let message = format!(
            "{run} is {}: only a run that failed or is paused is rechecked",
            show::run_state(view.state)
        );
        let next = match view.state.is_over() {
            true => format!("planctl run {}", shell_word(&view.plan)),
            false => format!("planctl pause {}", shell_word(&view.run)),
        };
        return Err(Failure::new(Exit::Conflict, message).next(next));
    }
    let plan = client.plan_of_run(handle).await?;
    let place = view.worktree.as_ref().map_or(view.workspace.as_str(), |own| own.path.as_str());
    let place = Path::new(place);
    let candidates = candidates_of(&plan.verification, place);
    let prober = Prober::new(context, ReplicaLimits::default(), |_| ())?;
    let mut count = 0;
    for step in view.steps.iter().filter(|step| step.state == StepState::Passed) {
        let Some(candidate) = candidates.iter().find(|candidate| candidate.step == step.number) else {
            continue;
        };
        let name = format!("step {} \"{}\"", step.number, show::safe(&step.title));
        match prober.recheck(context, candidate, place).await? {
            Rechecked::Passes => count += 1,
            Rechecked::NotTried { reason } => {
                context.say(&format!("{name} was not tried: {}", show::safe(&reason)));
            }
            Rechecked::Fails { why } => {
                context.say(&format!("{name} passes no longer: {}", show::safe(&why)));
                context
                    .say(&format!("{run} goes on with step {}, and with all that follows it", step.number));
                return Ok(Some((step.number, format!("recheck: {why}"))));
            }
        }
    }
    context.say(&match count {
        1 => "1 step that passed still passes".to_owned(),
        several => format!("{several} steps that passed still pass"),
    });
    Ok(None)
}
