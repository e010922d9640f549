//! A run of a draft that failed, as the writer is told it: `plan draft --repair RUN`.

use planctl_api::wire::{RunView, StepState, StepView};
use planctl_lang::{Source, digest};
use planctl_planner::FailedRun;

use super::kept::Record;
use crate::client::{Client, Handle};
use crate::commands::Context;
use crate::failure::{Exit, Failure};
use crate::show;

/// Tells the conversation that a run failed, unless it knows.
pub(super) async fn hear(context: &Context, name: &str, record: &mut Record) -> Result<(), Failure> {
    let client = Client::open(context).await?;
    let handle = client.find(name).await?;
    let run = client.status(handle).await?;
    let shown = show::safe(&run.run);
    let known = record.conversation.repairs().iter();
    if known.clone().any(|repair| repair.failed.run == run.run && repair.failed.digest == run.digest) {
        return Ok(());
    }
    let is_own = record
        .written
        .as_ref()
        .is_some_and(|(_, text)| digest(&Source::new("plan.md", text)).to_string() == run.digest);
    if !is_own {
        let failure =
            Failure::new(Exit::No, format!("{shown} did not run this draft as it was written last"));
        return Err(failure.help("name a run of the draft, with the same goal and writer"));
    }
    let Some(step) = failed_step(&run) else {
        return Err(Failure::new(Exit::No, format!("no step of {shown} has failed")));
    };
    let failed = FailedRun {
        run: run.run.clone(),
        digest: run.digest.clone(),
        step: step.number,
        failure: told(&client, handle, step).await?,
        passed: run
            .steps
            .iter()
            .filter(|step| step.state == StepState::Passed)
            .map(|step| step.number)
            .collect(),
    };
    match record.conversation.failed(failed) {
        Ok(_) => Ok(()),
        Err(times) => {
            let failure =
                Failure::new(Exit::No, format!("the draft was mended {times} times, and fails again"));
            Err(failure.help("say what has to be different: --hint '…', or change the plan yourself"))
        }
    }
}

/// Finds the step that failed, or the one that waits for a person since it failed.
fn failed_step(run: &RunView) -> Option<&StepView> {
    let failed = |step: &&StepView| step.state == StepState::Failed;
    let waits = |step: &&StepView| step.state == StepState::Waiting && step.failure.is_some();
    run.steps.iter().find(failed).or_else(|| run.steps.iter().find(waits))
}

/// Returns the failure with the output of its last gate.
async fn told(client: &Client, handle: Handle, step: &StepView) -> Result<String, Failure> {
    let mut text = format!("step {} \"{}\"", step.number, step.title);
    if let Some(failure) = &step.failure {
        text.push_str(&format!(": {failure}"));
    }
    let logs = client.logs(handle, Some(step.number), None).await?;
    let gates = logs
        .attempts
        .iter()
        .filter_map(|attempt| Some((attempt.visit, attempt.attempt, attempt.gate.as_ref()?)));
    if let Some((_, _, gate)) = gates.max_by_key(|(visit, attempt, _)| (*visit, *attempt)) {
        text.push_str(&format!("\n{}\n{}\n{}\n{}", gate.command, gate.ending, gate.stdout, gate.stderr));
    }
    Ok(text)
}
