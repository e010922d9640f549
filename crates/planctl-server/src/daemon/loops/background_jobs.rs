//! Background jobs: work on one run that may take long, so that the loop that found it goes on.

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use planctl_engine::RunId;
use tokio::sync::Semaphore;

use crate::mutex::lock;
use crate::node::health::Health;
use crate::node::quarantine::words_of;
use crate::node::services::ServiceError;

/// How many runs one kind of job works on at once. A job without a permit is left to the loop, which sees it again.
const AT_ONCE: u32 = 4;

/// One kind of job: for several runs at once, and for each run once at a time.
pub(crate) struct BackgroundJobs {
    what: &'static str,
    permits: Arc<Semaphore>,
    runs: Arc<Mutex<BTreeSet<RunId>>>,
}

impl BackgroundJobs {
    pub(crate) fn new(what: &'static str) -> BackgroundJobs {
        BackgroundJobs { what, permits: Arc::new(Semaphore::new(AT_ONCE as usize)), runs: Arc::default() }
    }

    /// Begins a job for a run, unless the run has one or no permit is free; returns whether it has begun.
    pub(crate) fn try_spawn(
        &self,
        health: &Health,
        run: RunId,
        work: impl Future<Output = Result<(), ServiceError>> + Send + 'static,
    ) -> bool {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else { return false };
        if !lock(&self.runs).insert(run) {
            return false;
        }
        let (what, health, runs) = (self.what, health.clone(), self.runs.clone());
        tokio::spawn(async move {
            let at_work = health.count_at_work(what);
            match AssertUnwindSafe(work).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => health.record_error(what, &error),
                Err(panic) => {
                    let words = words_of(&*panic);
                    tracing::error!(run.id = %run, "a defect of planctl in {what}: {words}");
                    health.set_last_error(format!("{what}: a defect of planctl: {words}"));
                }
            }
            lock(&runs).remove(&run);
            drop((at_work, permit));
        });
        true
    }

    /// Waits until no job is under way.
    pub(crate) async fn wait_until_idle(&self) {
        // The semaphore is never closed.
        drop(self.permits.acquire_many(AT_ONCE).await);
    }
}
