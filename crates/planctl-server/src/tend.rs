//! Minds what ran out: leases of the dead, leases past their time, timers. Any process may do it, and several do.
//!
//! What is wrong with one run is kept from all others: it is said once, and nothing of the run is looked at for a while, so
//! that it stands in nobody's way either.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use planctl_engine::RunId;
use planctl_store::{Expired, Proof, StoreError, Unread};
use tokio::time::Instant;

use crate::clock;
use crate::instance;
use crate::loops::words_of;
use crate::services::ServiceError;
use crate::station::Station;

/// How often it looks.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// How many leases or timers are taken at once.
const AT_ONCE: i64 = 100;
/// How long nothing of a run is looked at with which something was wrong.
const ASIDE_FOR: Duration = Duration::from_secs(60);

/// What one look came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tended {
    /// Leases that were over.
    pub(crate) expired: u64,
    /// Runs among them whose holder is dead.
    pub(crate) recovered: u64,
    /// What was wrong with runs, for people.
    pub(crate) troubles: Vec<String>,
}

/// Runs of which nothing is looked at for a while.
#[derive(Default)]
pub(crate) struct Aside {
    until: Mutex<BTreeMap<RunId, Instant>>,
}

impl Aside {
    fn put(&self, run: RunId) {
        self.lock().insert(run, clock::instant() + ASIDE_FOR);
    }

    fn runs(&self) -> Vec<RunId> {
        let (now, mut until) = (clock::instant(), self.lock());
        until.retain(|_, until| *until > now);
        until.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Station {
    /// Ends leases that are over and rings timers that are due.
    ///
    /// # Errors
    ///
    /// Those of the connection; what is wrong with a run is among what it returns.
    pub(crate) async fn tend_once(&self) -> Result<Tended, ServiceError> {
        let (mut tended, mut recovered) = (Tended::default(), BTreeSet::new());
        let mut dead = Vec::new();
        let aside = self.aside().runs();
        for (boot, holder) in self.store.holders(self.host()).await? {
            if instance::is_gone(self.state_dir(), &holder, boot == self.boot()) {
                for expired in self.store.held_by_dead(self.host(), &holder, &aside).await? {
                    let Some(expired) = self.readable(expired, &mut tended) else { continue };
                    if self.by_itself(expired.run, self.expire(&expired), &mut tended).await? {
                        tended.expired += 1;
                        recovered.insert(expired.run);
                    }
                }
                dead.push(holder);
            }
        }
        self.store.let_go_of_the_lost(self.host(), &dead).await?;
        let own = self.holder()?.instance;
        for expired in self.store.expired(&aside, AT_ONCE).await? {
            let Some(expired) = self.readable(expired, &mut tended) else { continue };
            // What this very process has in hand it renews at its next heartbeat: it slept, or the database was away.
            // Others may take it all the same.
            let is_late = expired.holder.as_ref() == Some(&own) && self.in_hand().has(&expired.item);
            if (expired.is_overrun || !is_late)
                && self.by_itself(expired.run, self.expire(&expired), &mut tended).await?
            {
                tended.expired += 1;
            }
        }
        for timer in self.store.due_timers(&aside, AT_ONCE).await? {
            let Some(timer) = self.readable(timer, &mut tended) else { continue };
            let ringing = async {
                settled(self.store.apply(timer.run, &timer.event(), &Proof::Clock, None).await.map(drop))
            };
            self.by_itself(timer.run, ringing, &mut tended).await?;
        }
        self.tend_sub_plans(&mut tended).await?;
        tended.recovered = recovered.len() as u64;
        Ok(tended)
    }

    /// Wakes items whose runs within are over, and ends runs for which nobody waits any more.
    ///
    /// # Errors
    ///
    /// As [`tend_once`](Station::tend_once).
    pub(crate) async fn tend_sub_plans(&self, tended: &mut Tended) -> Result<(), ServiceError> {
        self.store.wake_around().await?;
        for run in self.store.sub_plans_left(&self.aside().runs(), AT_ONCE).await? {
            self.by_itself(run, self.end_left(run), tended).await?;
        }
        Ok(())
    }

    /// Ends a lease; says whether it was still to be ended.
    async fn expire(&self, expired: &Expired) -> Result<bool, ServiceError> {
        settled(self.store.apply(expired.run, &expired.event(), &expired.proof(), None).await.map(drop))
    }

    /// Returns a row that reads; the run of another is put aside.
    fn readable<T>(&self, row: Result<T, Unread>, tended: &mut Tended) -> Option<T> {
        match row {
            Ok(row) => Some(row),
            Err(unread) => {
                self.put_aside(unread.run, format!("could not {}", unread.error), tended);
                None
            }
        }
    }

    /// Does something to one run. Where that fails, by a panic too, the run is put aside; only where the database is away
    /// nothing else goes on either.
    async fn by_itself(
        &self,
        run: RunId,
        doing: impl Future<Output = Result<bool, ServiceError>>,
        tended: &mut Tended,
    ) -> Result<bool, ServiceError> {
        match AssertUnwindSafe(doing).catch_unwind().await {
            Ok(Ok(is_done)) => return Ok(is_done),
            Ok(Err(ServiceError::Store(error))) if error.is_retryable() => return Err(error.into()),
            Ok(Err(error)) => self.put_aside(run, format!("could not {error}"), tended),
            Err(panic) => {
                let words = words_of(&*panic);
                self.put_aside(run, format!("a defect of planctl at run {run}: {words}"), tended);
            }
        }
        Ok(false)
    }

    fn put_aside(&self, run: RunId, trouble: String, tended: &mut Tended) {
        tracing::error!(run.id = %run, "nothing of the run is looked at for a while: {trouble}");
        self.aside().put(run);
        tended.troubles.push(trouble);
    }
}

/// Passes over news that came too late: the holder was quicker, or another process did the same.
fn settled(applied: Result<(), StoreError>) -> Result<bool, ServiceError> {
    match applied {
        Ok(()) => Ok(true),
        Err(StoreError::StaleLease | StoreError::Refused(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
