//! Wakes the waiters of this process, each for the news that concern it, and queues what other processes are to hear.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};

use planctl_engine::RunId;
use tokio::sync::Notify;

use crate::mutex::lock;

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
    pub(crate) const NOTHING: WakeFor =
        WakeFor { agents: false, served: false, gates: false, revocations: false };

    pub(crate) fn of(news: News) -> WakeFor {
        match news {
            News::Any => WakeFor::UNKNOWN,
            News::Agents => WakeFor { agents: true, ..WakeFor::NOTHING },
            News::Served => WakeFor { served: true, ..WakeFor::NOTHING },
            News::Gates => WakeFor { gates: true, ..WakeFor::NOTHING },
        }
    }

    pub(crate) fn wakes(self, news: News) -> bool {
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
    pub(crate) fn encode(self) -> String {
        let letters = [(self.agents, 'a'), (self.served, 's'), (self.gates, 'g'), (!self.revocations, 'l')];
        letters.into_iter().filter_map(|(is_said, letter)| is_said.then_some(letter)).collect()
    }

    /// Reads such letters. Other text, as from another version, wakes everybody.
    pub(crate) fn parse(letters: &str) -> WakeFor {
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
pub(crate) enum OfRun {
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
    is_waited_for: Arc<Notify>,
}

/// Waits for notifications. One that arrives between two waits is kept.
#[derive(Clone, Debug)]
pub struct Listener {
    notify: Arc<Notify>,
    is_waited_for: Arc<Notify>,
}

impl Listener {
    /// Returns when a notification has arrived since the last call returned.
    pub async fn notified(&self) {
        self.is_waited_for.notify_one();
        self.notify.notified().await;
    }
}

impl Notifier {
    pub(crate) fn listen(&self, news: News) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut all = lock(&self.all);
        // Drops dead listeners when the list is full: without notifications, nothing else removes them.
        if all.len() == all.capacity() {
            all.retain(|(_, listener)| listener.strong_count() > 0);
            let live = all.len();
            all.reserve(live + 1);
        }
        all.push((news, Arc::downgrade(&notify)));
        self.listener(notify)
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
    pub(crate) fn notify_here(&self, run: RunId, wake_for: WakeFor) {
        wake_matching(&mut lock(&self.all), |news| wake_for.wakes(news));
        if let Some(listeners) = lock(&self.runs).get_mut(&run) {
            wake_matching(listeners, |of_run| wake_for.revocations || of_run == OfRun::Transitions);
        }
    }

    /// Wakes the waiters for such news in this process.
    pub(crate) fn notify_of(&self, news: News) {
        let wake_for = WakeFor::of(news);
        wake_matching(&mut lock(&self.all), |waited| wake_for.wakes(waited));
    }

    /// Waits until a notification of other processes is queued.
    pub(crate) async fn outgoing_queued(&self) {
        self.has_outgoing.notified().await;
    }

    /// Takes the notifications that are queued for other processes.
    pub(crate) fn take_outgoing(&self) -> BTreeMap<RunId, WakeFor> {
        std::mem::take(&mut *lock(&self.outgoing))
    }

    /// Wakes all waiters in this process.
    pub(crate) fn notify_all(&self) {
        wake_matching(&mut lock(&self.all), |_| true);
        lock(&self.runs).values_mut().for_each(|listeners| wake_matching(listeners, |_| true));
    }

    pub(crate) fn listen_to(&self, run: RunId, of_run: OfRun) -> Listener {
        let notify = Arc::new(Notify::new());
        let mut runs = lock(&self.runs);
        runs.retain(|_, listeners| listeners.iter().any(|(_, listener)| listener.strong_count() > 0));
        runs.entry(run).or_default().push((of_run, Arc::downgrade(&notify)));
        self.listener(notify)
    }

    fn listener(&self, notify: Arc<Notify>) -> Listener {
        Listener { notify, is_waited_for: self.is_waited_for.clone() }
    }

    /// Waits until a listener waits.
    pub(crate) async fn waited_for(&self) {
        self.is_waited_for.notified().await;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
