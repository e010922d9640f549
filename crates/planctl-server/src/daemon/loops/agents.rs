//! Claims the work that the runs' own settings serve (`--exec`, `[roles.X] agent`), several at once.

use std::sync::Arc;
use std::time::Duration;

use planctl_engine::RunStatus;
use planctl_store::{ClaimLane, News, RunRow};
use tokio::sync::OwnedSemaphorePermit;

use super::{Shared, TurnResult, Turns};
use crate::node::runtime::stopped;
use crate::node::services::ServiceError;

/// How long it waits for a worker to end before it shows that it still turns.
const SHOWS_LIFE: Duration = Duration::from_secs(5);
/// How many runs are looked at.
const AT_ONCE: i64 = 1000;

/// Claims work for agents.
#[derive(Default)]
pub(crate) struct Served {
    /// Counts, so that each turn begins with another run.
    turned: usize,
}

impl Turns for Served {
    const NAME: &'static str = "agents";
    const PACE: Duration = Duration::from_millis(5);
    const PACE_OF_ONE: Duration = Duration::ZERO;

    fn news(shared: &Shared) -> News {
        if shared.executors.serves_all() { News::Agents } else { News::Served }
    }

    async fn due(&self, shared: &Shared) -> Result<Option<Duration>, ServiceError> {
        let (store, host) = (shared.server_node.store(), shared.server_node.host());
        let served = store.next_due(&ClaimLane::Served, host).await?;
        if !shared.executors.serves_all() {
            return Ok(served);
        }
        let of_any = store.next_due(&ClaimLane::Agent(Vec::new()), host).await?;
        Ok(served.into_iter().chain(of_any).min())
    }

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let mut stop = shared.stop.clone();
        let permit = tokio::select! {
            permit = shared.workers.clone().acquire_owned() => permit,
            () = tokio::time::sleep(SHOWS_LIFE) => return Ok(TurnResult::More),
            () = stopped(&mut stop) => return Ok(TurnResult::Nothing),
        };
        let mut permit = Some(permit.map_err(|error| ServiceError::broken(error.to_string()))?);
        if let Some(claimed) = shared.claim(ClaimLane::Served, Vec::new()).await?
            && let Some(permit) = permit.take()
        {
            shared.spawn_item(claimed, "agents", permit);
            return Ok(TurnResult::More);
        }
        if shared.executors.serves_all() && !self.claim_of_any(shared, &mut permit).await? {
            return Ok(TurnResult::Something);
        }
        Ok(match permit {
            None => TurnResult::More,
            Some(_) if shared.workers.available_permits() == 0 => TurnResult::Something,
            Some(_) => TurnResult::Nothing,
        })
    }
}

impl Served {
    /// Claims work of any role for the command that serves what nothing else does; says whether there was some.
    async fn claim_of_any(
        &mut self,
        shared: &Arc<Shared>,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<bool, ServiceError> {
        let open = shared.server_node.store().open_runs(shared.server_node.host(), AT_ONCE).await?;
        let open = shared.health.readable(Served::NAME, open);
        let active: Vec<&RunRow> = open.iter().filter(|row| row.head.status == RunStatus::Active).collect();
        self.turned = self.turned.wrapping_add(1);
        let first = self.turned % active.len().max(1);
        for row in active[first..].iter().chain(&active[..first]) {
            // An error of one run keeps no other run from working.
            if let Err(error) = claim_in(shared, row, permit).await {
                shared.note_error(Served::NAME, error);
            }
            if permit.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Claims one item of a run, if there is one.
async fn claim_in(
    shared: &Arc<Shared>,
    row: &RunRow,
    permit: &mut Option<OwnedSemaphorePermit>,
) -> Result<(), ServiceError> {
    let roles = shared.server_node.store().outstanding(row.id).await?.wanted;
    if roles.is_empty() {
        return Ok(());
    }
    let executor = shared.executors.for_run(&shared.server_node, row).await?;
    if let Some(claimed) = executor.claim_work(&roles).await?
        && let Some(permit) = permit.take()
    {
        shared.spawn_item(claimed, "agents", permit);
    }
    Ok(())
}
