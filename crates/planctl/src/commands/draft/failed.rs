//! A run that failed, as the writer is told it: `plan draft --repair RUN`, and `goal resolve --repair RUN`.

use planctl_api::wire::{RunView, StepState, StepView};
use planctl_lang::{Source, digest};
use planctl_planner::FailedRun;

use super::database::DraftDatabase;
use super::kept::Record;
use crate::client::{Client, Handle};
use crate::failure::{Exit, Failure};
use crate::show;

/// Tells the conversation that a run failed, unless it knows.
pub(super) async fn record_failed_run(
    database: &DraftDatabase<'_>,
    name: &str,
    record: &mut Record,
) -> Result<(), Failure> {
    let named = NamedRun::find(database, name).await?;
    if record.conversation.repairs().iter().any(|repair| named.is_told(&repair.failed)) {
        return Ok(());
    }
    let written = record.written.as_ref().map(|(_, text)| text.as_str());
    let (failed, _) = named.failed(written).await?;
    match record.conversation.apply_failed_run(failed) {
        Ok(_) => Ok(()),
        Err(times) => {
            let failure =
                Failure::new(Exit::No, format!("the draft was repaired {times} times, and fails again"));
            Err(failure.help("say what has to be different: --hint '…', or change the plan yourself"))
        }
    }
}

/// A run that a person names.
pub(in crate::commands) struct NamedRun<'a> {
    client: &'a Client,
    handle: Handle,
    run: RunView,
}

impl<'a> NamedRun<'a> {
    /// Finds it.
    pub(in crate::commands) async fn find(
        database: &'a DraftDatabase<'_>,
        name: &str,
    ) -> Result<NamedRun<'a>, Failure> {
        let client = database.client().await?;
        let handle = client.find(name).await?;
        let run = client.status(handle).await?;
        Ok(NamedRun { client, handle, run })
    }

    /// Says whether this is what it ran when it failed before.
    pub(in crate::commands) fn is_told(&self, failed: &FailedRun) -> bool {
        failed.run == self.run.run && failed.digest == self.run.digest
    }

    /// Says how it failed, and with which exit code its last gate ended. Refuses a run of another text than the one that was
    /// written last.
    pub(in crate::commands) async fn failed(
        &self,
        written: Option<&str>,
    ) -> Result<(FailedRun, Option<i32>), Failure> {
        let NamedRun { client, handle, run } = self;
        let shown = show::safe(&run.run);
        let is_own =
            written.is_some_and(|text| digest(&Source::new("plan.md", text)).to_string() == run.digest);
        if !is_own {
            let failure =
                Failure::new(Exit::No, format!("{shown} did not run this plan as it was written last"));
            return Err(failure.help("name a run of it, with the same goal and writer"));
        }
        let Some(step) = failed_step(run) else {
            return Err(Failure::new(Exit::No, format!("no step of {shown} has failed")));
        };
        let (failure, exit_code) = failure_text(client, *handle, step).await?;
        let passed = run.steps.iter().filter(|step| step.state == StepState::Passed);
        let failed = FailedRun {
            run: run.run.clone(),
            digest: run.digest.clone(),
            step: step.number,
            failure,
            passed: passed.map(|step| step.number).collect(),
        };
        Ok((failed, exit_code))
    }
}

/// Finds the step that failed, or the one that waits for a person since it failed.
fn failed_step(run: &RunView) -> Option<&StepView> {
    let failed = |step: &&StepView| step.state == StepState::Failed;
    let waits = |step: &&StepView| step.state == StepState::Waiting && step.failure.is_some();
    run.steps.iter().find(failed).or_else(|| run.steps.iter().find(waits))
}

/// Returns the failure with the output of its last gate, and the exit code of that.
async fn failure_text(
    client: &Client,
    handle: Handle,
    step: &StepView,
) -> Result<(String, Option<i32>), Failure> {
    let mut text = format!("step {} \"{}\"", step.number, step.title);
    if let Some(failure) = &step.failure {
        text.push_str(&format!(": {failure}"));
    }
    let logs = client.logs(handle, Some(step.number), None).await?;
    let gates = logs
        .attempts
        .iter()
        .filter_map(|attempt| Some((attempt.visit, attempt.attempt, attempt.gate.as_ref()?)));
    let newest = gates.max_by_key(|(visit, attempt, _)| (*visit, *attempt)).map(|(_, _, gate)| gate);
    if let Some(gate) = newest {
        text.push_str(&format!("\n{}\n{}\n{}\n{}", gate.command, gate.ending, gate.stdout, gate.stderr));
    }
    Ok((text, newest.and_then(|gate| gate.exit_code)))
}
