//! The doorbell: wakes loops in this process at once and those of other processes by NOTIFY.
//!
//! A ring carries no news, only "look again": whoever waits registers first, looks, then waits, and looks again after a
//! while without a ring. A ring says whose work a transition brought, and whether it took work back, so that who waits for
//! work to claim, or minds a lease, is left alone by all else. Notifications leave coalesced and off the hot path, since NOTIFY holds a lock of the whole
//! server over its commit; what a person decides is announced within its own transaction.

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
pub(crate) const RING: &str = "select pg_notify('planctl', payload) from unnest($1::text[]) as payload";

/// How often notifications leave while many do, and how many of them leave at once after a while of quiet.
const RING_EVERY: Duration = Duration::from_millis(20);
const RINGS_AT_ONCE: u32 = 20;
/// How long a lost listener waits before it connects again.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// More runs than this at once are announced as "all".
const RUNS_MAX: usize = 200;
const ALL: &str = "*";

/// What a listener waits for, whatever the run.
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

/// What a transition means for those who wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Brings {
    /// Work for agents.
    pub(crate) agents: bool,
    /// Work for agents that its run serves itself.
    pub(crate) served: bool,
    /// Work of the harness.
    pub(crate) gates: bool,
    /// Leases that are over before their time.
    pub(crate) revocations: bool,
}

impl Brings {
    /// For rings that do not say: everybody looks.
    pub(crate) const UNKNOWN: Brings = Brings { agents: true, served: true, gates: true, revocations: true };
    const NOTHING: Brings = Brings { agents: false, served: false, gates: false, revocations: false };

    fn of(news: News) -> Brings {
        match news {
            News::Any => Brings::UNKNOWN,
            News::Agents => Brings { agents: true, ..Brings::NOTHING },
            News::Served => Brings { served: true, ..Brings::NOTHING },
            News::Gates => Brings { gates: true, ..Brings::NOTHING },
        }
    }

    fn interests(self, news: News) -> bool {
        match news {
            News::Any => true,
            News::Agents => self.agents,
            News::Served => self.served,
            News::Gates => self.gates,
        }
    }

    fn and(self, other: Brings) -> Brings {
        Brings {
            agents: self.agents || other.agents,
            served: self.served || other.served,
            gates: self.gates || other.gates,
            revocations: self.revocations || other.revocations,
        }
    }

    /// Returns what a notification says of it: a letter for each kind of work, and one where every lease stays.
    fn letters(self) -> String {
        let letters = [(self.agents, 'a'), (self.served, 's'), (self.gates, 'g'), (!self.revocations, 'l')];
        letters.into_iter().filter_map(|(is_said, letter)| is_said.then_some(letter)).collect()
    }

    /// Reads such letters; whoever says something else does not say what it brings.
    fn parse(letters: &str) -> Brings {
        let brings = Brings {
            agents: letters.contains('a'),
            served: letters.contains('s'),
            gates: letters.contains('g'),
            revocations: !letters.contains('l'),
        };
        if brings.letters() == letters { brings } else { Brings::UNKNOWN }
    }
}

/// What a listener waits for in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OfRun {
    Transitions,
    Revocations,
}

/// Those who listen, each with what it waits for.
type Listeners<T> = Vec<(T, Weak<Notify>)>;

#[derive(Default)]
pub(crate) struct Bell {
    all: Mutex<Listeners<News>>,
    runs: Mutex<HashMap<RunId, Listeners<OfRun>>>,
    outward: Mutex<BTreeMap<RunId, Brings>>,
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
    fn listen(&self, news: News) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut all = lock(&self.all);
        // Where nothing rings, whoever comes clears away who has gone; seldom enough that it costs each of them nothing.
        if all.len() == all.capacity() {
            all.retain(|(_, listener)| listener.strong_count() > 0);
            let live = all.len();
            all.reserve(live + 1);
        }
        all.push((news, Arc::downgrade(&notify)));
        Listener { notify }
    }

    /// Wakes who waits for this run or for such work in this process, and has the others told soon.
    pub(crate) fn ring(&self, run: RunId, brings: Brings) {
        self.ring_here(run, brings);
        let mut outward = lock(&self.outward);
        let told = outward.entry(run).or_insert(Brings::NOTHING);
        *told = told.and(brings);
        drop(outward);
        self.leaving.notify_one();
    }

    /// Wakes who waits for this run or for such work in this process only.
    fn ring_here(&self, run: RunId, brings: Brings) {
        wake_those(&mut lock(&self.all), |news| brings.interests(news));
        if let Some(listeners) = lock(&self.runs).get_mut(&run) {
            wake_those(listeners, |of_run| brings.revocations || of_run == OfRun::Transitions);
        }
    }

    fn ring_everyone(&self) {
        wake_those(&mut lock(&self.all), |_| true);
        lock(&self.runs).values_mut().for_each(|listeners| wake_those(listeners, |_| true));
    }

    fn listen_to(&self, run: RunId, of_run: OfRun) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut runs = lock(&self.runs);
        runs.retain(|_, listeners| listeners.iter().any(|(_, listener)| listener.strong_count() > 0));
        runs.entry(run).or_default().push((of_run, Arc::downgrade(&notify)));
        Listener { notify }
    }
}

/// Wakes the listeners that wait for it, and forgets those that are gone.
fn wake_those<T: Copy>(listeners: &mut Listeners<T>, is_for: impl Fn(T) -> bool) {
    listeners.retain(
        |(what, listener)| {
            if is_for(*what) { wakes(listener) } else { listener.strong_count() > 0 }
        },
    );
}

/// Wakes a listener; says whether there still is one.
fn wakes(listener: &Weak<Notify>) -> bool {
    listener.upgrade().is_some_and(|notify| {
        notify.notify_one();
        true
    })
}

impl Store {
    /// Registers for the transitions of one run.
    pub fn listen_to(&self, run: RunId) -> Listener {
        self.bell().listen_to(run, OfRun::Transitions)
    }

    /// Registers for those transitions of one run by which leases may be over before their time, whoever holds them.
    pub fn listen_to_revocations(&self, run: RunId) -> Listener {
        self.bell().listen_to(run, OfRun::Revocations)
    }

    /// Registers for news of all runs.
    pub fn listen(&self, news: News) -> Listener {
        self.bell().listen(news)
    }

    /// Wakes those in this process who wait for such news: what kept them from claiming it is over.
    pub fn wake(&self, news: News) {
        let brings = Brings::of(news);
        wake_those(&mut lock(&self.bell().all), |waited| brings.interests(waited));
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
                runs.iter().map(|(run, brings)| self.payload(*run, *brings)).collect()
            };
            let sent: Result<_, StoreError> =
                repeated!(self, connection => sqlx::query(RING).bind(&payloads).execute(&mut *connection));
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
            let (run, brings) = about.split_once(' ').unwrap_or((about, ""));
            match RunId::parse(run) {
                Some(run) => {
                    self.cache().invalidate_snapshot(run);
                    self.bell().ring_here(run, Brings::parse(brings));
                }
                None => self.bell().ring_everyone(),
            }
        }
        Ok(())
    }

    pub(crate) fn payload(&self, run: RunId, brings: Brings) -> String {
        format!("{} {run} {}", self.name(), brings.letters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_notification_says_reads_back_and_one_of_another_version_wakes_all() {
        for bits in 0..16_u8 {
            let is_set = |bit: u8| bits & (1 << bit) != 0;
            let brings =
                Brings { agents: is_set(0), served: is_set(1), gates: is_set(2), revocations: is_set(3) };
            assert_eq!(Brings::parse(&brings.letters()), brings);
        }
        for other in ["", "-", "asg", "x", "al-"] {
            assert!(Brings::parse(other).revocations, "{other}");
        }
        assert_eq!(Brings::parse("lx"), Brings::UNKNOWN);
    }

    #[tokio::test]
    async fn who_minds_a_lease_is_woken_by_revocations_alone() {
        let rang =
            async |listener: &Listener| tokio::time::timeout(Duration::ZERO, listener.rung()).await.is_ok();
        let (bell, run) = (Bell::default(), RunId::from_u128(7));
        let minds = bell.listen_to(run, OfRun::Revocations);
        let looks = bell.listen_to(run, OfRun::Transitions);
        bell.ring(run, Brings { gates: true, ..Brings::NOTHING });
        assert!(!rang(&minds).await);
        assert!(rang(&looks).await);
        bell.ring(run, Brings { revocations: true, ..Brings::NOTHING });
        assert!(rang(&minds).await);
    }

    #[test]
    fn listeners_that_are_gone_are_cleared_away_where_nothing_rings() {
        let bell = Bell::default();
        let staying: Vec<Listener> = (0..100).map(|_| bell.listen(News::Agents)).collect();
        for _ in 0..10_000 {
            drop(bell.listen(News::Agents));
        }
        let kept = lock(&bell.all).len();
        assert!(kept <= 4 * staying.len(), "{kept} are kept");
    }
}
