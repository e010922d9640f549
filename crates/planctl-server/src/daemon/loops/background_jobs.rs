//! What may take long and is of one run: done beside the loop that saw it, so that the loop goes on looking.

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use planctl_engine::RunId;
use tokio::sync::Semaphore;

use crate::node::health::Health;
use crate::node::quarantine::words_of;
use crate::node::services::ServiceError;

/// Of how many runs it is done at once. What finds no room is left to the loop, which sees it again.
const AT_ONCE: u32 = 4;

/// One kind of work, of several runs at once and of each one once at a time.
pub(crate) struct BackgroundJobs {
    what: &'static str,
    room: Arc<Semaphore>,
    runs: Arc<Mutex<BTreeSet<RunId>>>,
}

impl BackgroundJobs {
    pub(crate) fn new(what: &'static str) -> BackgroundJobs {
        BackgroundJobs { what, room: Arc::new(Semaphore::new(AT_ONCE as usize)), runs: Arc::default() }
    }

    /// Does this for a run, unless it is being done or there is no room; says whether it has begun.
    pub(crate) fn begin(
        &self,
        health: &Health,
        run: RunId,
        work: impl Future<Output = Result<(), ServiceError>> + Send + 'static,
    ) -> bool {
        let Ok(room) = self.room.clone().try_acquire_owned() else { return false };
        if !lock(&self.runs).insert(run) {
            return false;
        }
        let (what, health, runs) = (self.what, health.clone(), self.runs.clone());
        tokio::spawn(async move {
            let at_work = health.at_work(what);
            match AssertUnwindSafe(work).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => health.erred(what, &error),
                Err(panic) => {
                    let words = words_of(&*panic);
                    tracing::error!(run.id = %run, "a defect of planctl in {what}: {words}");
                    health.note(format!("{what}: a defect of planctl: {words}"));
                }
            }
            lock(&runs).remove(&run);
            drop((at_work, room));
        });
        true
    }

    /// Waits until nothing of it is under way.
    pub(crate) async fn over(&self) {
        // The semaphore is never closed.
        drop(self.room.acquire_many(AT_ONCE).await);
    }
}

fn lock(runs: &Mutex<BTreeSet<RunId>>) -> std::sync::MutexGuard<'_, BTreeSet<RunId>> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}
