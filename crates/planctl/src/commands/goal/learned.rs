//! The history of resolved intents: kept in the state directory, and told by runs how their steps went.

use planctl_api::wire::goal::{GoalStatsView, GoalTallyView};
use planctl_api::wire::{RunView, StepState};
use planctl_planner::{History, Tally, Went};

use super::super::draft::database::DraftDatabase;
use super::super::draft::kept::Kept;
use crate::failure::{Answer, Exit, Failure};
use crate::show;

/// Returns the history, with what runs have shown since. Nobody is kept from it while the database is asked.
pub(super) async fn update_history(database: &DraftDatabase<'_>) -> Result<History, Failure> {
    let history = read(&Kept::lock_history(database)?)?;
    if history.entries.iter().all(|entry| entry.went != Went::Unknown) {
        return Ok(history);
    }
    let runs = runs(database, &history).await;
    change_history(database, |history| {
        for run in &runs {
            for step in &run.steps {
                if let Some(went) = outcome_of_state(step.state) {
                    history.ended(&run.digest, step.number, went);
                }
            }
        }
    })
}

/// Changes the history as it is by now; returns it.
pub(super) fn change_history(
    database: &DraftDatabase<'_>,
    change: impl FnOnce(&mut History),
) -> Result<History, Failure> {
    let kept = Kept::lock_history(database)?;
    let mut history = read(&kept)?;
    change(&mut history);
    kept.write(&history)?;
    Ok(history)
}

fn read(kept: &Kept<'_>) -> Result<History, Failure> {
    Ok(kept.read::<History>()?.unwrap_or_default())
}

/// Returns the runs of this workspace that show how remembered steps went; none where no database answers.
async fn runs(database: &DraftDatabase<'_>, history: &History) -> Vec<RunView> {
    let asked = database.ask_if_there_is_one(async |client| {
        let mut runs = Vec::new();
        for run in client.list(false).await?.runs {
            if history.waits_for(&run.digest) {
                runs.push(client.status(client.find(&run.run).await?).await?);
            }
        }
        Ok(runs)
    });
    let Ok(runs) = asked.await else {
        database.context().say("warning: the database does not answer, so nothing is learned of runs");
        return Vec::new();
    };
    runs.unwrap_or_default()
}

fn outcome_of_state(state: StepState) -> Option<Went> {
    match state {
        StepState::Passed => Some(Went::Passed),
        StepState::Failed => Some(Went::Failed),
        StepState::Pending
        | StepState::Ready
        | StepState::Resting
        | StepState::Working
        | StepState::Checking
        | StepState::Waiting
        | StepState::Skipped
        | StepState::Waived
        | StepState::Warned => None,
    }
}

/// Shows what the history says.
pub(super) async fn stats(database: &DraftDatabase<'_>) -> Answer {
    let context = database.context();
    let history = update_history(database).await?;
    let strategies = history.by_source().into_iter().map(|(source, tally)| tallied(source.as_str(), tally));
    let types = history.by_type();
    let view = GoalStatsView {
        strategies: strategies.collect(),
        intent_types: types.iter().map(|(name, tally)| tallied(name, *tally)).collect(),
    };
    if context.is_json()? {
        show::print_json(&view)?;
        return Ok(Exit::Yes);
    }
    if view.strategies.is_empty() {
        show::print("no intent was resolved yet\n")?;
        return Ok(Exit::Yes);
    }
    let columns = |first| [first, "RESOLVED", "PASSED", "FAILED", "RATE"];
    let mut text = show::table(&columns("STRATEGY"), view.strategies.iter().map(row).collect());
    text.push('\n');
    text.push_str(&show::table(&columns("INTENT"), view.intent_types.iter().map(row).collect()));
    show::print(&text)?;
    Ok(Exit::Yes)
}

fn tallied(name: &str, tally: Tally) -> GoalTallyView {
    GoalTallyView {
        name: name.to_owned(),
        resolved: tally.resolved,
        passed: tally.passed,
        failed: tally.failed,
        rate: tally.rate(),
    }
}

fn row(view: &GoalTallyView) -> Vec<String> {
    let rate = view.rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0}%", rate * 100.0));
    vec![view.name.clone(), view.resolved.to_string(), view.passed.to_string(), view.failed.to_string(), rate]
}
