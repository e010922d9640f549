//! Draws marks into the plan files of this host's runs that moved, each at most once a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::RunId;

use super::{Found, Shared, Turns};
use crate::services::ServiceError;

/// How many runs are looked at.
const AT_ONCE: i64 = 1000;

/// Draws marks.
#[derive(Default)]
pub(crate) struct Marks {
    /// How far each open run had come when its marks were drawn.
    drawn: BTreeMap<RunId, i64>,
}

impl Turns for Marks {
    const NAME: &'static str = "marks";
    const PACE: Duration = Duration::from_secs(1);

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<Found, ServiceError> {
        let station = &shared.station;
        heard(shared, station.see_worktrees().await)?;
        let open = station.store().open_runs(station.host(), AT_ONCE).await?;
        let now: BTreeMap<RunId, i64> = open.iter().map(|row| (row.id, row.seq)).collect();
        shared.crew.keep_only(|run| now.contains_key(&run));
        let over: Vec<RunId> = self.drawn.keys().filter(|run| !now.contains_key(run)).copied().collect();
        // Those that ended first, so that the run after them in the same file has the last word.
        for run in over {
            self.drawn.remove(&run);
            draw(shared, run).await?;
        }
        for (run, seq) in now {
            if self.drawn.insert(run, seq) != Some(seq) {
                draw(shared, run).await?;
            }
        }
        Ok(if self.drawn.is_empty() { Found::Nothing } else { Found::Something })
    }
}

/// Draws a run's marks; trouble with one file or one run is no other's.
async fn draw(shared: &Shared, run: RunId) -> Result<(), ServiceError> {
    heard(shared, shared.station.mark_now(run).await)
}

fn heard(shared: &Shared, outcome: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match outcome {
        Err(ServiceError::Store(error)) if error.is_retryable() => Err(error.into()),
        Err(error) => {
            shared.health.erred(Marks::NAME, &error);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
