//! Claims gates of this host's workspaces, several at once, and has their contracts run.

use std::sync::Arc;
use std::time::Duration;

use planctl_store::{ClaimLane, News};

use super::{Shared, TurnResult, Turns};
use crate::node::runtime::stopped;
use crate::node::services::ServiceError;

/// How long it waits for a gate to end before it shows that it still turns.
const SHOWS_LIFE: Duration = Duration::from_secs(5);

/// Claims gates.
#[derive(Default)]
pub(crate) struct Gates;

impl Turns for Gates {
    const NAME: &'static str = "gates";
    const PACE: Duration = Duration::ZERO;

    fn news(_: &Shared) -> News {
        News::Gates
    }

    async fn due(&self, shared: &Shared) -> Result<Option<Duration>, ServiceError> {
        let server_node = &shared.server_node;
        Ok(server_node.store().next_due(&ClaimLane::Gate, server_node.host()).await?)
    }

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let mut stop = shared.stop.clone();
        let permit = tokio::select! {
            permit = shared.gates.acquire() => permit,
            () = tokio::time::sleep(SHOWS_LIFE) => return Ok(TurnResult::More),
            () = stopped(&mut stop) => return Ok(TurnResult::Nothing),
        };
        let permit = permit.map_err(|error| ServiceError::broken(error.to_string()))?;
        // Behind one that waits for its workspace, others of its run would wait too; its end wakes this loop.
        match shared.claim(ClaimLane::Gate, shared.gates.runs_to_skip()).await? {
            Some(claimed) => {
                shared.spawn_item(claimed, "gates", permit);
                Ok(TurnResult::More)
            }
            None if shared.gates.is_full() => Ok(TurnResult::Something),
            None => Ok(TurnResult::Nothing),
        }
    }
}
