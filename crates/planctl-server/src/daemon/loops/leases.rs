//! Ends what ran out: leases of the dead, leases past their time, timers, answers and workers that nobody needs any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Shared, TurnResult, Turns};
use crate::clock;
use crate::daemon::loops::sweep::EVERY;
use crate::node::services::ServiceError;

/// How often what is only kept for a while is cleared away.
const SWEEP: Duration = Duration::from_secs(600);

/// Minds leases and timers, and clears away what is only kept for a while.
#[derive(Default)]
pub(crate) struct Leases {
    swept: Option<Instant>,
}

impl Turns for Leases {
    const NAME: &'static str = "leases";
    const PACE: Duration = EVERY;

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let report = shared.server_node.sweep_once().await?;
        if report.expired > 0 {
            tracing::info!(leases = report.expired, runs = report.recovered, "leases were over");
        }
        shared.health.swept(report.expired, report.recovered);
        for trouble in report.troubles {
            shared.health.note(trouble);
        }
        if self.swept.is_none_or(|swept| swept.elapsed() >= SWEEP) {
            let store = shared.server_node.store();
            store.sweep_requests().await?;
            store.delete_old_workers().await?;
            self.swept = Some(clock::instant());
        }
        Ok(TurnResult::More)
    }
}
