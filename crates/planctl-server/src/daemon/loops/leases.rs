//! Ends what ran out: leases of the dead, leases past their time, timers, answers and workers that nobody needs any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Scope, Shared, TurnResult, Turns};
use crate::clock;
use crate::daemon::loops::sweep::EVERY;
use crate::node::quarantine::SweepReport;
use crate::node::services::ServiceError;

/// How often what is only kept for a while is cleared away.
const SWEEP: Duration = Duration::from_secs(600);

/// How often it says which runs it works on. A process that is silent for three times as long works on none.
const ATTENDS: Duration = Duration::from_secs(5);

/// Minds leases and timers, and clears away what is only kept for a while.
#[derive(Default)]
pub(crate) struct Leases {
    attended: Option<Instant>,
    swept: Option<Instant>,
}

impl Turns for Leases {
    const NAME: &'static str = "leases";
    const PACE: Duration = EVERY;

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        if self.attended.is_none_or(|attended| attended.elapsed() >= ATTENDS) {
            shared.attend().await?;
            self.attended = Some(clock::instant());
        }
        let report = shared.server_node.sweep_once().await?;
        if report.expired > 0 {
            tracing::info!(leases = report.expired, runs = report.recovered, "leases were over");
        }
        shared.health.record_sweep(report.expired, report.recovered);
        for trouble in report.troubles {
            shared.health.set_last_error(trouble);
        }
        if self.swept.is_none_or(|swept| swept.elapsed() >= SWEEP) {
            let store = shared.server_node.store();
            store.sweep_requests().await?;
            store.delete_old_workers().await?;
            store.forget_attendance().await?;
            self.swept = Some(clock::instant());
        }
        Ok(TurnResult::More)
    }
}

impl Shared {
    /// Says which runs this process works on, and takes off the time in which nobody did.
    pub(crate) async fn attend(&self) -> Result<(), ServiceError> {
        let runs = match &self.scope {
            Scope::Host => None,
            Scope::Run(family) => Some(family.open_runs()),
        };
        let mut report = SweepReport::default();
        self.server_node.attend(runs.as_deref(), &mut report).await?;
        report.troubles.into_iter().for_each(|trouble| self.health.set_last_error(trouble));
        Ok(())
    }

    /// Does so before any work is claimed: of a run of whose work somebody holds a lease, no time is taken off.
    pub(crate) async fn attend_first(&self) {
        if let Err(error) = self.attend().await {
            self.health.set_last_error(error.to_string());
        }
    }
}
