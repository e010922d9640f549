//! Runs with which something is wrong are kept from all others: it is said once, and nothing of the run is looked at for a
//! while, so that it stands in nobody's way.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use planctl_engine::RunId;
use planctl_store::Unread;
use tokio::time::Instant;

use crate::clock;
use crate::mutex::lock;
use crate::node::ServerNode;
use crate::node::services::ServiceError;

/// How long nothing of a run is looked at with which something was wrong.
const QUARANTINE_FOR: Duration = Duration::from_secs(60);

/// The result of one sweep.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SweepReport {
    /// Leases that were over.
    pub(crate) expired: u64,
    /// Runs among them whose holder is dead.
    pub(crate) recovered: u64,
    /// The faults of runs, one line each, for people.
    pub(crate) troubles: Vec<String>,
}

/// Runs of which nothing is looked at for a while.
#[derive(Default)]
pub(crate) struct Quarantine {
    until: Mutex<BTreeMap<RunId, Instant>>,
}

impl Quarantine {
    fn add(&self, run: RunId) {
        lock(&self.until).insert(run, clock::instant() + QUARANTINE_FOR);
    }

    pub(crate) fn runs(&self) -> Vec<RunId> {
        let (now, mut until) = (clock::instant(), lock(&self.until));
        until.retain(|_, until| *until > now);
        until.keys().copied().collect()
    }
}

impl ServerNode {
    /// Returns a row that reads; the run of any other row is quarantined.
    pub(crate) fn readable<T>(&self, row: Result<T, Unread>, report: &mut SweepReport) -> Option<T> {
        match row {
            Ok(row) => Some(row),
            Err(unread) => {
                self.quarantine_run(unread.run, format!("could not {}", unread.error), report);
                None
            }
        }
    }

    /// Runs one operation on one run. If it fails or panics, the run is quarantined. If the database is away, the error is
    /// returned, since no other run can go on either.
    pub(crate) async fn run_contained(
        &self,
        run: RunId,
        operation: impl Future<Output = Result<bool, ServiceError>>,
        report: &mut SweepReport,
    ) -> Result<bool, ServiceError> {
        match AssertUnwindSafe(operation).catch_unwind().await {
            Ok(Ok(is_done)) => return Ok(is_done),
            Ok(Err(ServiceError::Store(error))) if error.is_retryable() => return Err(error.into()),
            Ok(Err(error)) => self.quarantine_run(run, format!("could not {error}"), report),
            Err(panic) => {
                let words = words_of(&*panic);
                self.quarantine_run(run, format!("a defect of planctl at run {run}: {words}"), report);
            }
        }
        Ok(false)
    }

    fn quarantine_run(&self, run: RunId, trouble: String, report: &mut SweepReport) {
        tracing::error!(run.id = %run, "nothing of the run is looked at for a while: {trouble}");
        self.quarantine().add(run);
        report.troubles.push(trouble);
    }
}

pub(crate) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
