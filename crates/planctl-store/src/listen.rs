//! Wakes the loops of this process at once, and those of other processes by Postgres NOTIFY.
//!
//! A notification carries no data: it only says "look again". A waiter registers first, looks, then waits, and looks again
//! after a while without a notification. A notification names the kinds of work that a transition brought and says whether
//! it revoked a lease, so that a waiter is woken only for what concerns it. NOTIFY takes a lock of the whole server over its
//! commit, so notifications are coalesced and sent outside the transactions of the hot path. A person's decision is
//! announced within its own transaction.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use planctl_engine::RunId;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::cache::lock;
use crate::connections::repeated;
use crate::error::StoreError;
use crate::store::Store;

pub(crate) const CHANNEL: &str = "planctl";
pub(crate) const NOTIFY: &str = "select pg_notify('planctl', payload) from unnest($1::text[]) as payload";

/// The interval of notifications under load, and how many may be sent without it after a quiet time.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
const NOTIFICATIONS_BURST: u32 = 20;
/// How long a lost listener waits before it connects again.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// More runs than this at once are announced as "all".
const RUNS_MAX: usize = 200;
const ALL: &str = "*";

/// The kinds of news that a listener waits for, in all runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Any transition.
    Any,
    /// Work for agents.
    Agents,
    /// Work for agents that its run serves itself.
    Served,
    /// Gates, rehearsals and other work of the harness.
    Gates,
}

/// The kinds of waiters that a transition wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WakeFor {
    /// Work for agents.
    pub(crate) agents: bool,
    /// Work for agents that its run serves itself.
    pub(crate) served: bool,
    /// Work of the harness.
    pub(crate) gates: bool,
    /// Leases that are over before their time.
    pub(crate) revocations: bool,
}

impl WakeFor {
    /// Wakes everybody: for notifications that name no kind of work.
    pub(crate) const UNKNOWN: WakeFor =
        WakeFor { agents: true, served: true, gates: true, revocations: true };
    const NOTHING: WakeFor = WakeFor { agents: false, served: false, gates: false, revocations: false };

    fn of(news: News) -> WakeFor {
        match news {
            News::Any => WakeFor::UNKNOWN,
            News::Agents => WakeFor { agents: true, ..WakeFor::NOTHING },
            News::Served => WakeFor { served: true, ..WakeFor::NOTHING },
            News::Gates => WakeFor { gates: true, ..WakeFor::NOTHING },
        }
    }

    fn wakes(self, news: News) -> bool {
        match news {
            News::Any => true,
            News::Agents => self.agents,
            News::Served => self.served,
            News::Gates => self.gates,
        }
    }

    fn union(self, other: WakeFor) -> WakeFor {
        WakeFor {
            agents: self.agents || other.agents,
            served: self.served || other.served,
            gates: self.gates || other.gates,
            revocations: self.revocations || other.revocations,
        }
    }

    /// Returns what a notification says of it: a letter for each kind of work, and one where every lease stays.
    fn encode(self) -> String {
        let letters = [(self.agents, 'a'), (self.served, 's'), (self.gates, 'g'), (!self.revocations, 'l')];
        letters.into_iter().filter_map(|(is_said, letter)| is_said.then_some(letter)).collect()
    }

    /// Reads such letters. Other text, as from another version, wakes everybody.
    fn parse(letters: &str) -> WakeFor {
        let wake_for = WakeFor {
            agents: letters.contains('a'),
            served: letters.contains('s'),
            gates: letters.contains('g'),
            revocations: !letters.contains('l'),
        };
        if wake_for.encode() == letters { wake_for } else { WakeFor::UNKNOWN }
    }
}

/// The news that a listener waits for in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OfRun {
    Transitions,
    Revocations,
}

/// Listeners, each with the news that it waits for.
type Listeners<T> = Vec<(T, Weak<Notify>)>;

#[derive(Default)]
pub(crate) struct Notifier {
    all: Mutex<Listeners<News>>,
    runs: Mutex<HashMap<RunId, Listeners<OfRun>>>,
    outgoing: Mutex<BTreeMap<RunId, WakeFor>>,
    has_outgoing: Notify,
}

/// Waits for notifications. One that arrives between two waits is kept.
#[derive(Clone, Debug)]
pub struct Listener {
    notify: Arc<Notify>,
}

impl Listener {
    /// Returns when a notification has arrived since the last call returned.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Notifier {
    fn listen(&self, news: News) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut all = lock(&self.all);
        // Drops dead listeners when the list is full: without notifications, nothing else removes them.
        if all.len() == all.capacity() {
            all.retain(|(_, listener)| listener.strong_count() > 0);
            let live = all.len();
            all.reserve(live + 1);
        }
        all.push((news, Arc::downgrade(&notify)));
        Listener { notify }
    }

    /// Wakes the waiters of this run and of such work in this process, and queues the notification of other processes.
    pub(crate) fn notify(&self, run: RunId, wake_for: WakeFor) {
        self.notify_here(run, wake_for);
        let mut outgoing = lock(&self.outgoing);
        let pending = outgoing.entry(run).or_insert(WakeFor::NOTHING);
        *pending = pending.union(wake_for);
        drop(outgoing);
        self.has_outgoing.notify_one();
    }

    /// Wakes the waiters of this run and of such work in this process only.
    fn notify_here(&self, run: RunId, wake_for: WakeFor) {
        wake_matching(&mut lock(&self.all), |news| wake_for.wakes(news));
        if let Some(listeners) = lock(&self.runs).get_mut(&run) {
            wake_matching(listeners, |of_run| wake_for.revocations || of_run == OfRun::Transitions);
        }
    }

    fn notify_all(&self) {
        wake_matching(&mut lock(&self.all), |_| true);
        lock(&self.runs).values_mut().for_each(|listeners| wake_matching(listeners, |_| true));
    }

    fn listen_to(&self, run: RunId, of_run: OfRun) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut runs = lock(&self.runs);
        runs.retain(|_, listeners| listeners.iter().any(|(_, listener)| listener.strong_count() > 0));
        runs.entry(run).or_default().push((of_run, Arc::downgrade(&notify)));
        Listener { notify }
    }
}

/// Wakes the matching listeners, and removes the dropped ones.
fn wake_matching<T: Copy>(listeners: &mut Listeners<T>, is_for: impl Fn(T) -> bool) {
    listeners.retain(
        |(topic, listener)| {
            if is_for(*topic) { wake_listener(listener) } else { listener.strong_count() > 0 }
        },
    );
}

/// Wakes a listener; says whether there still is one.
fn wake_listener(listener: &Weak<Notify>) -> bool {
    listener.upgrade().is_some_and(|notify| {
        notify.notify_one();
        true
    })
}

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
        let wake_for = WakeFor::of(news);
        wake_matching(&mut lock(&self.notifier().all), |waited| wake_for.wakes(waited));
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
                () = self.notifier().has_outgoing.notified(), if allowance > 0 => allowance -= 1,
            }
            let runs = std::mem::take(&mut *lock(&self.notifier().outgoing));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_notification_says_reads_back_and_one_of_another_version_wakes_all() {
        for bits in 0..16_u8 {
            let is_set = |bit: u8| bits & (1 << bit) != 0;
            let wake_for =
                WakeFor { agents: is_set(0), served: is_set(1), gates: is_set(2), revocations: is_set(3) };
            assert_eq!(WakeFor::parse(&wake_for.encode()), wake_for);
        }
        for other in ["", "-", "asg", "x", "al-"] {
            assert!(WakeFor::parse(other).revocations, "{other}");
        }
        assert_eq!(WakeFor::parse("lx"), WakeFor::UNKNOWN);
    }

    #[tokio::test]
    async fn who_minds_a_lease_is_woken_by_revocations_alone() {
        let was_notified = async |listener: &Listener| {
            tokio::time::timeout(Duration::ZERO, listener.notified()).await.is_ok()
        };
        let (notifier, run) = (Notifier::default(), RunId::from_u128(7));
        let minds = notifier.listen_to(run, OfRun::Revocations);
        let looks = notifier.listen_to(run, OfRun::Transitions);
        notifier.notify(run, WakeFor { gates: true, ..WakeFor::NOTHING });
        assert!(!was_notified(&minds).await);
        assert!(was_notified(&looks).await);
        notifier.notify(run, WakeFor { revocations: true, ..WakeFor::NOTHING });
        assert!(was_notified(&minds).await);
    }

    #[test]
    fn listeners_that_are_gone_are_cleared_away_where_nothing_rings() {
        let notifier = Notifier::default();
        let staying: Vec<Listener> = (0..100).map(|_| notifier.listen(News::Agents)).collect();
        for _ in 0..10_000 {
            drop(notifier.listen(News::Agents));
        }
        let kept = lock(&notifier.all).len();
        assert!(kept <= 4 * staying.len(), "{kept} are kept");
    }
}
