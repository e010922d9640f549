//! The doorbell: wakes loops in this process at once and those of other processes by NOTIFY.
//!
//! A ring carries no news, only "look again": whoever waits registers first, looks, then waits, and looks again after a
//! while without a ring. Notifications leave coalesced and off the hot path, since NOTIFY holds a lock of the whole
//! server over its commit; what a person decides is announced within its own transaction.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use planctl_engine::RunId;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::connections::repeated;
use crate::error::StoreError;
use crate::store::Store;

pub(crate) const CHANNEL: &str = "planctl";
pub(crate) const RING: &str = "select pg_notify('planctl', payload) from unnest($1::text[]) as payload";

/// How often notifications leave while many do, and how many of them leave at once after a while of quiet.
const RING_EVERY: Duration = Duration::from_millis(100);
const RINGS_AT_ONCE: u32 = 20;
/// How long a lost listener waits before it connects again.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// More runs than this at once are announced as "all".
const RUNS_MAX: usize = 200;
const ALL: &str = "*";

#[derive(Default)]
pub(crate) struct Bell {
    all: Mutex<Vec<Weak<Notify>>>,
    runs: Mutex<HashMap<RunId, Vec<Weak<Notify>>>>,
    outward: Mutex<BTreeSet<RunId>>,
    leaving: Notify,
}

/// Waits for the bell. A ring between two waits is kept.
#[derive(Clone, Debug)]
pub struct Listener {
    notify: Arc<Notify>,
}

impl Listener {
    /// Returns when the bell has rung since the last call returned.
    pub async fn rung(&self) {
        self.notify.notified().await;
    }
}

impl Bell {
    /// Wakes who waits for this run in this process, and has the others told soon.
    pub(crate) fn ring(&self, run: RunId) {
        self.ring_here(run);
        lock(&self.outward).insert(run);
        self.leaving.notify_one();
    }

    /// Wakes who waits for this run in this process only.
    pub(crate) fn ring_here(&self, run: RunId) {
        wake(&mut lock(&self.all));
        if let Some(listeners) = lock(&self.runs).get_mut(&run) {
            wake(listeners);
        }
    }

    fn ring_everyone(&self) {
        wake(&mut lock(&self.all));
        lock(&self.runs).values_mut().for_each(wake);
    }
}

fn wake(listeners: &mut Vec<Weak<Notify>>) {
    listeners.retain(|listener| match listener.upgrade() {
        Some(notify) => {
            notify.notify_one();
            true
        }
        None => false,
    });
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Registers for the transitions of one run.
    pub fn listen_to(&self, run: RunId) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut runs = lock(&self.bell().runs);
        runs.retain(|_, listeners| listeners.iter().any(|listener| listener.strong_count() > 0));
        runs.entry(run).or_default().push(Arc::downgrade(&notify));
        Listener { notify }
    }

    /// Registers for the transitions of all runs.
    pub fn listen(&self) -> Listener {
        let notify = Arc::new(Notify::new());
        lock(&self.bell().all).push(Arc::downgrade(&notify));
        Listener { notify }
    }

    /// Carries rings between this process and the others for as long as it is polled; reconnects by itself.
    ///
    /// Without it, and where the settings say so, everything works and is slower to notice what other processes do.
    pub async fn carry_rings(&self) {
        if !self.settings().notifies {
            return std::future::pending().await;
        }
        tokio::join!(self.hear(), self.announce());
    }

    // A queue that is idle is told of at once; a busy one is looked at all the time, so a little later does for it.
    async fn announce(&self) {
        let mut allowance = RINGS_AT_ONCE;
        let mut refill = interval(RING_EVERY);
        refill.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = refill.tick(), if allowance < RINGS_AT_ONCE => {
                    allowance += 1;
                    continue;
                }
                () = self.bell().leaving.notified(), if allowance > 0 => allowance -= 1,
            }
            let runs = std::mem::take(&mut *lock(&self.bell().outward));
            let payloads: Vec<String> = if runs.len() > RUNS_MAX {
                vec![format!("{} {ALL}", self.name())]
            } else {
                runs.iter().map(|run| self.payload(*run)).collect()
            };
            let sent: Result<_, StoreError> =
                repeated!(self, lent => sqlx::query(RING).bind(&payloads).execute(&mut *lent));
            if let Err(error) = sent {
                tracing::debug!(%error, "other processes were not told");
            }
        }
    }

    async fn hear(&self) {
        loop {
            if let Err(error) = self.hear_once().await {
                tracing::debug!(%error, "the listening connection was lost");
            }
            sleep(RECONNECT_AFTER).await;
        }
    }

    async fn hear_once(&self) -> Result<(), sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(self.connections().options().clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        // Whatever was announced while nobody listened is lost, so everybody looks again.
        self.bell().ring_everyone();
        while let Some(notification) = listener.try_recv().await? {
            let Some((from, about)) = notification.payload().split_once(' ') else { continue };
            if from == self.name() {
                continue;
            }
            match RunId::parse(about) {
                Some(run) => self.bell().ring_here(run),
                None => self.bell().ring_everyone(),
            }
        }
        Ok(())
    }

    pub(crate) fn payload(&self, run: RunId) -> String {
        format!("{} {run}", self.name())
    }
}
