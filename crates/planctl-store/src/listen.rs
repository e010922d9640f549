//! Wakes the loops of this process at once, and those of other processes by Postgres NOTIFY.
//!
//! A notification carries no data: it only says "look again". A waiter registers first, looks, then waits, and looks again
//! after a while without a notification. A notification names the kinds of work that a transition brought and says whether
//! it revoked a lease, so that a waiter is woken only for what concerns it. NOTIFY takes a lock of the whole server over its
//! commit, so notifications are coalesced and sent outside the transactions of the hot path. A person's decision is
//! announced within its own transaction.
//!
//! To hear other processes takes a connection of its own. It is opened once somebody has waited for a while, since a command that
//! reads waits for nobody, and most others end before anybody else could say something. Each waiter looks again at that moment.

use std::time::Duration;

use planctl_engine::RunId;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::connections::repeated;
use crate::error::StoreError;
use crate::notifier::{Listener, News, OfRun, WakeFor};
use crate::store::Store;

pub(crate) const CHANNEL: &str = "planctl";
pub(crate) const NOTIFY: &str = "select pg_notify('planctl', payload) from unnest($1::text[]) as payload";

/// The interval of notifications under load, and how many may be sent without it after a quiet time.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
const NOTIFICATIONS_BURST: u32 = 20;
/// How long after the first wait other processes are listened to.
const LISTEN_AFTER: Duration = Duration::from_millis(500);
/// How long a lost listener waits before it connects again.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// More runs than this at once are announced as "all".
const RUNS_MAX: usize = 200;
const ALL: &str = "*";

impl Store {
    /// Registers for the transitions of one run.
    pub fn listen_to(&self, run: RunId) -> Listener {
        self.notifier().listen_to(run, OfRun::Transitions)
    }

    /// Registers for those transitions of one run that may end leases before their time.
    pub fn listen_to_revocations(&self, run: RunId) -> Listener {
        self.notifier().listen_to(run, OfRun::Revocations)
    }

    /// Registers for news of all runs.
    pub fn listen(&self, news: News) -> Listener {
        self.notifier().listen(news)
    }

    /// Wakes the waiters for such news in this process: they can claim again.
    pub fn wake_listeners(&self, news: News) {
        self.notifier().notify_of(news);
    }

    /// Exchanges notifications with other processes for as long as it is polled; reconnects by itself.
    ///
    /// Without it, or with `notifies` off, the store works, and notices the changes of other processes by polling only.
    pub async fn exchange_notifications(&self) {
        if !self.settings().notifies {
            return std::future::pending().await;
        }
        tokio::join!(self.receive_notifications(), self.send_notifications());
    }

    /// Wakes every waiter of this process, and those of other processes: for news that are of no run. Where the notification is lost,
    /// they look by themselves, only later.
    pub(crate) async fn notify_everybody(&self) {
        self.notifier().notify_all();
        if !self.settings().notifies {
            return;
        }
        let payloads = [format!("{} {ALL}", self.name())];
        let sent: Result<_, StoreError> =
            repeated!(self, connection => sqlx::query(NOTIFY).bind(&payloads[..]).execute(&mut *connection));
        if let Err(error) = sent {
            tracing::debug!(%error, "other processes were not notified");
        }
    }

    // Sends at once after a quiet time. Under load the sends are spaced: workers look often then anyway.
    async fn send_notifications(&self) {
        let mut allowance = NOTIFICATIONS_BURST;
        let mut refill = interval(NOTIFY_INTERVAL);
        refill.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = refill.tick(), if allowance < NOTIFICATIONS_BURST => {
                    allowance += 1;
                    continue;
                }
                () = self.notifier().outgoing_queued(), if allowance > 0 => allowance -= 1,
            }
            let runs = self.notifier().take_outgoing();
            let payloads: Vec<String> = if runs.len() > RUNS_MAX {
                vec![format!("{} {ALL}", self.name())]
            } else {
                runs.iter().map(|(run, wake_for)| self.payload(*run, *wake_for)).collect()
            };
            let sent: Result<_, StoreError> =
                repeated!(self, connection => sqlx::query(NOTIFY).bind(&payloads).execute(&mut *connection));
            if let Err(error) = sent {
                tracing::debug!(%error, "other processes were not notified");
            }
        }
    }

    async fn receive_notifications(&self) {
        self.notifier().waited_for().await;
        sleep(LISTEN_AFTER).await;
        loop {
            if let Err(error) = self.receive_until_lost().await {
                tracing::debug!(%error, "the listening connection was lost");
            }
            sleep(RECONNECT_AFTER).await;
        }
    }

    async fn receive_until_lost(&self) -> Result<(), sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(self.connections().options().clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        // Notifications sent while this connection was down are lost, so everybody looks again.
        self.notifier().notify_all();
        while let Some(notification) = listener.try_recv().await? {
            let Some((from, about)) = notification.payload().split_once(' ') else { continue };
            if from == self.name() {
                continue;
            }
            let (run, wake_for) = about.split_once(' ').unwrap_or((about, ""));
            match RunId::parse(run) {
                Some(run) => {
                    self.cache().invalidate_snapshot(run);
                    self.notifier().notify_here(run, WakeFor::parse(wake_for));
                }
                None => self.notifier().notify_all(),
            }
        }
        Ok(())
    }

    pub(crate) fn payload(&self, run: RunId, wake_for: WakeFor) -> String {
        format!("{} {run} {}", self.name(), wake_for.encode())
    }
}
