//! Ends what ran out: leases of the dead, leases past their time, timers, answers and workers that nobody needs any more.
//!
//! While somebody holds work it sweeps all the time, since nobody says so who dies. Otherwise one statement tells whether there
//! is something to sweep, and when there will be; while nothing moves, the other loops rest for longer, too.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use planctl_store::{Listener, News};
use tokio::time::Instant;

use super::{Scope, Shared, TurnResult, Turns};
use crate::clock;
use crate::daemon::loops::sweep::EVERY;
use crate::node::quarantine::SweepReport;
use crate::node::services::ServiceError;

/// How often what is only kept for a while is cleared away.
const CLEARS: Duration = Duration::from_secs(600);

/// How often it says which runs it works on. A process that is silent for three times as long works on none.
const ATTENDS: Duration = Duration::from_secs(5);

/// How often it sweeps where nothing has moved and nothing is due.
const SWEEPS_ANYHOW: Duration = Duration::from_secs(60);

/// Minds leases and timers, and clears away what is only kept for a while.
#[derive(Default)]
pub(crate) struct Leases {
    news: Option<Listener>,
    attended: Option<Instant>,
    cleared: Option<Instant>,
    swept: Option<Instant>,
    /// The standing of all open runs and asks when it swept last.
    swept_at: Option<String>,
    /// When it looks again without any news.
    again_at: Option<Instant>,
}

impl Turns for Leases {
    const NAME: &'static str = "leases";
    const PACE: Duration = EVERY;

    async fn due(&self, _: &Shared) -> Result<Option<Duration>, ServiceError> {
        Ok(self.again_at.map(|at| at.saturating_duration_since(clock::instant())))
    }

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let store = shared.server_node.store();
        // Before the look: what comes after it is news for the next turn.
        let news = self.news.get_or_insert_with(|| store.listen(News::Any));
        let has_news = news.notified().now_or_never().is_some();
        if is_over(self.attended, ATTENDS) {
            shared.attend().await?;
            self.attended = Some(clock::instant());
        }
        let standing = store.standing().await?;
        let has_moved = has_news || self.swept_at.as_ref() != Some(&standing.open);
        let is_due = standing.has_work_out || standing.due_in.is_some_and(|wait| wait.is_zero());
        if has_moved || is_due || is_over(self.swept, SWEEPS_ANYHOW) {
            shared.sweep().await?;
            (self.swept, self.swept_at) = (Some(clock::instant()), Some(standing.open));
        }
        if is_over(self.cleared, CLEARS) {
            store.sweep_requests().await?;
            store.delete_old_workers().await?;
            store.forget_attendance().await?;
            self.cleared = Some(clock::instant());
        }
        let wait = standing.due_in.into_iter().chain(standing.claimable_in).min();
        let is_soon = is_due || wait.is_some_and(|wait| wait < EVERY * 2);
        shared.set_resting(!has_moved && !is_soon);
        let attends_in = ATTENDS.saturating_sub(self.attended.map_or(Duration::ZERO, |at| at.elapsed()));
        self.again_at = Some(clock::instant() + wait.map_or(attends_in, |wait| wait.min(attends_in)));
        Ok(if is_soon { TurnResult::More } else { TurnResult::Nothing })
    }
}

fn is_over(since: Option<Instant>, span: Duration) -> bool {
    since.is_none_or(|since| since.elapsed() >= span)
}

impl Shared {
    async fn sweep(&self) -> Result<(), ServiceError> {
        let report = self.server_node.sweep_once().await?;
        if report.expired > 0 {
            tracing::info!(leases = report.expired, runs = report.recovered, "leases were over");
        }
        self.health.record_sweep(report.expired, report.recovered);
        for trouble in report.troubles {
            self.health.set_last_error(trouble);
        }
        Ok(())
    }

    /// Says which runs this process works on, and takes off the time in which nobody did.
    pub(crate) async fn attend(&self) -> Result<(), ServiceError> {
        self.server_node.settle_standstill().await?;
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
