//! Minds what ran out: leases of the dead, leases past their time, timers. Any process may do it, and several do.

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_store::{Expired, Proof, StoreError};

use crate::instance;
use crate::services::ServiceError;
use crate::station::Station;

/// How often it looks.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// How many leases or timers are taken at once.
const AT_ONCE: i64 = 100;

/// What one look came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tended {
    /// Leases that were over.
    pub(crate) expired: u64,
    /// Runs among them whose holder is dead.
    pub(crate) recovered: u64,
}

impl Station {
    /// Looks again and again; returns only with an error.
    pub(crate) async fn tend(&self) -> ServiceError {
        loop {
            if let Err(error) = self.tend_once().await {
                return error;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Ends leases that are over and rings timers that are due.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn tend_once(&self) -> Result<Tended, ServiceError> {
        let (mut tended, mut recovered) = (Tended::default(), BTreeSet::new());
        let mut dead = Vec::new();
        for (boot, holder) in self.store.holders(self.host()).await? {
            // A lock proves nothing about a process of an earlier boot: it is gone whatever the file says.
            if boot != self.boot() || instance::is_gone(self.state_dir(), &holder) {
                for expired in self.store.held_by_dead(self.host(), &holder).await? {
                    if self.expire(&expired).await? {
                        tended.expired += 1;
                        recovered.insert(expired.run);
                    }
                }
                dead.push(holder);
            }
        }
        self.store.let_go_of_the_lost(self.host(), &dead).await?;
        let own = self.holder()?.instance;
        for expired in self.store.expired(AT_ONCE).await? {
            // What this very process has in hand it renews at its next heartbeat: it slept, or the database was away.
            // Others may take it all the same.
            let is_late = expired.holder.as_ref() == Some(&own) && self.in_hand().has(&expired.item);
            if (expired.is_overrun || !is_late) && self.expire(&expired).await? {
                tended.expired += 1;
            }
        }
        for timer in self.store.due_timers(AT_ONCE).await? {
            settled(self.store.apply(timer.run, &timer.event(), &Proof::Clock, None).await.map(drop))?;
        }
        self.tend_sub_plans().await?;
        tended.recovered = recovered.len() as u64;
        Ok(tended)
    }

    /// Ends a lease; says whether it was still to be ended.
    async fn expire(&self, expired: &Expired) -> Result<bool, ServiceError> {
        settled(self.store.apply(expired.run, &expired.event(), &expired.proof(), None).await.map(drop))
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
