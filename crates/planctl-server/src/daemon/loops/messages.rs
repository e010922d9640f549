//! Writes messages to people and delivers them. It reads what transitions have written, so none waits for a receiver.

use std::sync::Arc;
use std::time::Duration;

use planctl_api::Next;
use planctl_store::DueDelivery;
use tokio::sync::Semaphore;

use super::wake::IDLE;
use super::{Shared, TurnResult, Turns};
use crate::messages::{Composer, LEASE};
use crate::node::services::ServiceError;

/// How many deliveries are under way at once.
const AT_ONCE: usize = 8;

/// How many held messages one message stands for at most.
const HELD_AT_ONCE: i64 = 500;

/// Tells people.
pub(crate) struct Messages {
    /// Says what to type for a next step in a workspace.
    command: fn(&Next, &str) -> String,
    composer: Option<Composer>,
    /// Says that nobody was told of some asks, as no channel wants that: a person may set one up.
    has_untold: bool,
    permits: Arc<Semaphore>,
}

impl Messages {
    pub(crate) fn new(command: fn(&Next, &str) -> String) -> Messages {
        Messages { command, composer: None, has_untold: false, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Begins as many of the due deliveries as may be under way; returns how many.
    async fn deliver(&self, shared: &Arc<Shared>) -> Result<usize, ServiceError> {
        let server_node = &shared.server_node;
        let free = i64::try_from(self.permits.available_permits()).unwrap_or(0);
        if free == 0 {
            return Ok(0);
        }
        let due = server_node.store().claim_deliveries(server_node.host(), free, LEASE).await?;
        let begun = due.len();
        for together in self.gathered(shared, due).await? {
            let permit = self.permits.clone().acquire_owned().await;
            let (server_node, health) = (server_node.clone(), shared.health.clone());
            tokio::spawn(async move {
                let at_work = health.count_at_work(Messages::NAME);
                if let Err(error) = server_node.deliver(&together).await {
                    health.record_error(Messages::NAME, &error);
                }
                drop((permit, at_work));
            });
        }
        Ok(begun)
    }

    /// Puts together what was held in quiet hours for the same channel.
    async fn gathered(
        &self,
        shared: &Shared,
        due: Vec<DueDelivery>,
    ) -> Result<Vec<Vec<DueDelivery>>, ServiceError> {
        let mut gathered: Vec<Vec<DueDelivery>> = Vec::new();
        for delivery in due {
            let is_alike = |others: &&mut Vec<DueDelivery>| {
                let other = &others[0];
                delivery.is_held
                    && other.is_held
                    && (&other.channel, &other.workspace_path)
                        == (&delivery.channel, &delivery.workspace_path)
            };
            match gathered.iter_mut().find(is_alike) {
                Some(others) => others.push(delivery),
                None => gathered.push(vec![delivery]),
            }
        }
        for together in gathered.iter_mut().filter(|together| together[0].is_held) {
            let rest = shared.server_node.store().claim_held_with(&together[0], HELD_AT_ONCE, LEASE).await?;
            together.extend(rest);
            together.sort_by_key(|delivery| delivery.created_at);
        }
        Ok(gathered)
    }
}

impl Turns for Messages {
    const NAME: &'static str = "messages";
    const PACE: Duration = Duration::from_secs(1);

    async fn due(&self, shared: &Shared) -> Result<Option<Duration>, ServiceError> {
        let next = shared.server_node.store().next_delivery(shared.server_node.host()).await?;
        Ok(next.into_iter().chain(self.has_untold.then_some(IDLE)).min())
    }

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        if self.composer.is_none() {
            shared.server_node.store().mark_ended_runs(shared.server_node.host(), None).await?;
        }
        let composer =
            self.composer.get_or_insert_with(|| Composer::new(shared.server_node.clone(), self.command));
        self.has_untold = composer.write_due().await?;
        Ok(match self.deliver(shared).await? {
            0 => TurnResult::Nothing,
            1..AT_ONCE => TurnResult::Something,
            _ => TurnResult::More,
        })
    }
}
