//! Renews the lease of an item while it is worked on, and ends the work where the lease is lost.

use std::future::Future;

use planctl_store::{Claimed, Renewal, StoreError};
use tokio::sync::watch;

use super::{Cancel, Executor};
use crate::executor::slots::Slot;

/// How many renewals of a lease may fail before it runs out.
const HEARTBEATS: u32 = 3;

impl Executor {
    /// Does something under a lease that is renewed meanwhile; stops it when the lease is gone or the process stops.
    ///
    /// Returns `None` where nobody waits for the answer any more.
    pub(super) async fn while_renewing<T, F, W>(
        &self,
        claimed: &Claimed,
        stop: &watch::Receiver<bool>,
        slot: &Slot,
        work: W,
    ) -> Option<T>
    where
        W: FnOnce(Cancel) -> F,
        F: Future<Output = T>,
    {
        let (ended, mut gone) = watch::channel(false);
        let mut stopping = stop.clone();
        let cancel = Box::pin(async move {
            tokio::select! {
                _ = gone.wait_for(|gone| *gone) => {}
                () = async {
                    if stopping.wait_for(|stop| *stop).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                } => {}
            }
        });
        let mut work = std::pin::pin!(work(cancel));
        // Runs concurrently with the work, which goes on while a renewal waits for the database.
        let mut until_lost = std::pin::pin!(self.renewed_until_lost(claimed, slot));
        tokio::select! {
            done = &mut work => return Some(done),
            () = &mut until_lost => {}
        }
        tracing::info!(item.id = %claimed.item.id, "the lease is over; what was done under it counts for nothing");
        ended.send_replace(true);
        work.await;
        // All work under the lease has ended, so the next holder need not wait for the end of the lease.
        if let Err(error) = self.store.acknowledge(claimed).await {
            tracing::warn!(%error, item.id = %claimed.item.id, "what waits for the end of an item waits out its lease");
        }
        None
    }

    /// Renews a lease again and again; ends when it is gone. An item that only waits may do so for as long as it has to.
    async fn renewed_until_lost(&self, claimed: &Claimed, slot: &Slot) {
        let notifications = self.store.listen_to_revocations(self.run);
        loop {
            tokio::select! {
                () = notifications.notified() => {}
                () = tokio::time::sleep(self.store.own_lease() / HEARTBEATS) => {}
            }
            match self.renew_once(claimed, slot).await {
                Ok(Renewal::Held { .. }) => {}
                Ok(Renewal::Cancelled | Renewal::Lost) => return,
                // The lease may outlive an outage; the event at the end is fenced in any case.
                Err(error) => tracing::warn!(%error, item.id = %claimed.item.id, "a lease was not renewed"),
            }
        }
    }

    async fn renew_once(&self, claimed: &Claimed, slot: &Slot) -> Result<Renewal, StoreError> {
        self.store.settle_standstill(&self.holder.host).await?;
        let lease = self.store.own_lease();
        match slot.is_waiting() {
            true => self.store.renew_waiting(claimed, lease).await,
            false => self.store.renew(claimed, lease).await,
        }
    }
}
