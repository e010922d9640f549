//! Gives queued runs of this host's workspaces their turn, oldest first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Found, Shared, Turns};
use crate::services::ServiceError;
use crate::station::Station;
use crate::worktrees;

use planctl_store::RunRow;

/// How many queued runs are looked at.
const AT_ONCE: i64 = 1000;

/// Admits runs.
#[derive(Default)]
pub(crate) struct Runs;

impl Turns for Runs {
    const NAME: &'static str = "runs";
    const PACE: Duration = Duration::from_millis(50);

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<Found, ServiceError> {
        let station = &shared.station;
        let mut taken = BTreeSet::new();
        let queued = station.store().queued_runs(station.host(), AT_ONCE).await?;
        let queued = shared.health.readable(Runs::NAME, queued);
        let is_well = |row: &RunRow| worktrees::trouble_of(row).is_none();
        let is_empty = queued.is_empty();
        for row in queued.into_iter().filter(is_well) {
            // Behind one that waits, all others of its workspace wait too.
            if row.worktree.is_none() && !taken.insert(row.workspace) {
                continue;
            }
            if row.worktree.as_ref().is_some_and(|worktree| worktree.made_at.is_none()) {
                // Git may take minutes, and others of its kind may be first.
                let (run, station) = (row.id, station.clone());
                let admitting = async move { admit(&station, &row).await };
                shared.admissions.begin(&shared.health, run, admitting);
            } else if let Err(error) = admit(station, &row).await {
                shared.health.erred(Runs::NAME, &error);
            }
        }
        Ok(if is_empty { Found::Nothing } else { Found::Something })
    }
}

async fn admit(station: &Station, row: &RunRow) -> Result<(), ServiceError> {
    if station.admit(row).await?.is_none() {
        tracing::info!(run.name = %row.name, "admitted");
    }
    Ok(())
}
