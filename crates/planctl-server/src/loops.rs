//! The loops of a daemon: each *looks, does, applies*, and begins anew whatever went wrong.
//!
//! Any number of daemons run them on one database, and none leads. Every wait is a row, so a loop that is cut off
//! anywhere loses nothing: the next turn, here or in another process, finds the same rows.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use planctl_engine::RunId;
use planctl_store::{Claim, ClaimLane, Claimed, News};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::health::Health;
use crate::room::{Room, Rooms};
use crate::services::ServiceError;
use crate::station::Station;

mod beside;
mod crew;
pub(crate) mod gates;
pub(crate) mod leases;
pub(crate) mod marks;
pub(crate) mod pulse;
pub(crate) mod runs;
pub(crate) mod served;
mod wake;

pub(crate) use beside::Beside;
pub(crate) use crew::Crew;
pub(crate) use wake::{Found, Wake};

/// How long a loop waits after an error.
const AFTER_ERROR: Duration = Duration::from_millis(500);

/// What all loops share.
pub(crate) struct Shared {
    pub(crate) station: Station,
    pub(crate) health: Health,
    pub(crate) crew: Crew,
    /// Says that nothing is taken on any more, and that agents end.
    pub(crate) stop: watch::Receiver<bool>,
    /// Says that gates end, too.
    pub(crate) cut: watch::Receiver<bool>,
    pub(crate) gates: Rooms,
    pub(crate) workers: Arc<Semaphore>,
    /// Runs that begin in a worktree, which has to be made.
    pub(crate) admissions: Beside,
    /// Runs that are over, and leave worktrees and checkpoints.
    pub(crate) clearings: Beside,
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits for this long, or until the daemon stops.
    pub(crate) async fn pause(&self, span: Duration) {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = tokio::time::sleep(span) => {}
            () = stopped(&mut stop) => {}
        }
    }

    /// Claims something of this host's workspaces, and nothing of these runs.
    pub(crate) async fn claim(
        &self,
        lane: ClaimLane,
        except: Vec<RunId>,
    ) -> Result<Option<Claimed>, ServiceError> {
        let store = self.station.store();
        let (holder, lease) = (self.station.holder()?, store.own_lease());
        Ok(store.claim(&Claim { lane, run: None, except, holder, lease }).await?)
    }

    /// Sees one claimed item through beside the loops. What goes wrong with it, a panic too, stays within it: its lease
    /// runs out, and it is taken up again.
    pub(crate) fn see_through(
        self: &Arc<Self>,
        claimed: Claimed,
        what: &'static str,
        permit: OwnedSemaphorePermit,
    ) {
        let shared = self.clone();
        tokio::spawn(async move {
            let at_work = shared.health.at_work(what);
            let room = Room::new(shared.gates.clone(), permit, shared.stop.clone(), shared.cut.clone());
            let (run, item) = (claimed.run_name.clone(), claimed.item.id.clone());
            let done = AssertUnwindSafe(shared.worked(&claimed, &room)).catch_unwind().await;
            match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(%error, run.name = %run, item.id = %item, "an item was not seen through");
                    shared.health.note(format!("run {run}: could not {error}"));
                }
                Err(panic) => {
                    let words = words_of(&*panic);
                    tracing::error!(run.name = %run, item.id = %item, "a defect of planctl: {words}");
                    shared.health.note(format!("run {run}: a defect of planctl: {words}"));
                    shared.own_up(&claimed, &words, &room).await;
                }
            }
            drop((at_work, room));
        });
    }

    /// Tells the run that planctl itself failed at an item, so that its history says so: it is tried again after a pause,
    /// and after some tries a person is asked. Where even that fails, the lease runs out.
    async fn own_up(&self, claimed: &Claimed, words: &str, room: &Room) {
        let telling = async {
            let hands = self.crew.hands(&self.station, claimed).await?;
            hands.own_up(claimed, words, room).await
        };
        match AssertUnwindSafe(telling).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a defect could not be put on record"),
            Err(panic) => tracing::warn!(error = words_of(&*panic), "a defect could not be put on record"),
        }
    }

    async fn worked(&self, claimed: &Claimed, room: &Room) -> Result<(), ServiceError> {
        #[cfg(debug_assertions)]
        planted_defect(&claimed.run_name);
        let hands = self.crew.hands(&self.station, claimed).await?;
        hands.see_through(claimed, room).await
    }
}

/// One kind of turn that is taken again and again.
pub(crate) trait Turns {
    /// What people call the loop.
    const NAME: &'static str;
    /// The least time from one turn to the next, however often the bell rings.
    const PACE: Duration;

    /// What it is woken for.
    fn news(_: &Shared) -> News {
        News::Any
    }

    /// Returns for how long nothing that it takes on will be due; `None` where that is not known.
    async fn due(&self, _: &Shared) -> Result<Option<Duration>, ServiceError> {
        Ok(None)
    }

    /// Looks, does, applies, once.
    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<Found, ServiceError>;
}

/// Takes turns until the daemon stops.
pub(crate) async fn take_turns<T: Turns>(shared: &Arc<Shared>, make: impl Fn() -> T) {
    while !shared.is_stopping() {
        let taking = AssertUnwindSafe(keep_turning(shared, make()));
        match taking.catch_unwind().await {
            Ok(()) => return,
            Err(panic) => {
                let words = words_of(&*panic);
                tracing::error!("a defect of planctl in the loop {}: {words}", T::NAME);
                shared.health.note(format!("{}: a defect of planctl: {words}", T::NAME));
                shared.pause(AFTER_ERROR).await;
            }
        }
    }
}

async fn keep_turning<T: Turns>(shared: &Arc<Shared>, mut turns: T) {
    let wake = Wake::new(shared.station.store(), T::news(shared));
    while !shared.is_stopping() {
        shared.health.turned(T::NAME);
        match turns.turn(shared).await {
            Ok(found) => wake.rest(shared, found, T::PACE, turns.due(shared)).await,
            Err(error) => {
                shared.health.erred(T::NAME, &error);
                shared.pause(AFTER_ERROR).await;
            }
        }
    }
}

/// Resolves when the daemon stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Fails at the work of the run that a test names, as a defect would; debug builds only.
#[cfg(debug_assertions)]
fn planted_defect(run: &str) {
    assert!(
        std::env::var("PLANCTL_PLANTED_DEFECT").map_or(true, |wanted| wanted != run),
        "planted for a test"
    );
}

pub(crate) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
