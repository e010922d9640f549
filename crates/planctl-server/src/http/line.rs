//! Those who wait for the same work, in the order in which they came: whoever is in front looks, for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planctl_engine::Role;
use planctl_store::{Claim, ClaimLane, Claimed, Holder, Store, StoreError, Waiting};
use tokio::sync::oneshot;

use crate::config::takes_plan;

/// The most workers whose claims are made at once: one statement holds the rows of all their items.
const AT_ONCE: usize = 16;

/// Which work is wanted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wanted {
    /// Whose.
    pub(super) roles: Vec<Role>,
    /// The plans that roles are held to; a role that is not named takes all (G-39).
    pub(super) plans: BTreeMap<Role, Vec<String>>,
}

impl Wanted {
    fn has(&self, role: &Role, plan: &str) -> bool {
        takes_plan(self.plans.get(role).map(Vec::as_slice), plan)
    }
}

/// The lines, by the work that is waited for.
#[derive(Default)]
pub(super) struct Lines {
    all: Mutex<HashMap<Wanted, Arc<Line>>>,
}

impl Lines {
    pub(super) fn line(&self, work: &Wanted) -> Arc<Line> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, line| Arc::strong_count(line) > 1);
        all.entry(work.clone()).or_insert_with(|| Arc::new(Line::new(work))).clone()
    }
}

/// Those who wait for the same work.
pub(super) struct Line {
    work: Wanted,
    /// Held by whoever is in front.
    front: tokio::sync::Mutex<()>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<InLine>,
    /// Those who want to leave and whose claim is under way.
    leaving: BTreeSet<u64>,
    joined: u64,
}

impl Queue {
    /// Takes a place out; says whether it was there.
    fn remove(&mut self, number: u64) -> bool {
        let at = self.waiting.iter().position(|one| one.number == number);
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

struct InLine {
    number: u64,
    wants: Waiting,
    /// Says that a claim together with others has failed.
    is_apart: bool,
    answer: oneshot::Sender<Claimed>,
}

impl InLine {
    /// Hands an item over; comes back where there is none.
    fn served(self, claimed: Option<Claimed>) -> Option<InLine> {
        let Some(claimed) = claimed else { return Some(self) };
        // Whoever has gone needs no answer: who repeats the call finds what is theirs by its secret.
        drop(self.answer.send(claimed));
        None
    }
}

/// A place in a line; given up where it is dropped.
pub(super) struct Place<'a> {
    line: &'a Line,
    number: u64,
    answered: oneshot::Receiver<Claimed>,
}

/// What waiting has come to.
pub(super) enum Turn<'a> {
    /// Whoever is in front claimed an item for this place.
    Served(Box<Claimed>),
    /// This place is in front, and looks for all.
    InFront(tokio::sync::MutexGuard<'a, ()>),
    /// Whoever was in front went away in the middle of a claim for this place, too.
    Lost,
}

impl Line {
    fn new(work: &Wanted) -> Line {
        Line { work: work.clone(), front: tokio::sync::Mutex::default(), queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, wants: Waiting) -> Place<'_> {
        let (answer, answered) = oneshot::channel();
        let mut queue = self.queue();
        queue.joined += 1;
        let number = queue.joined;
        queue.waiting.push_back(InLine { number, wants, is_apart: false, answer });
        Place { line: self, number, answered }
    }

    /// Looks once, for all who wait; to be called by whoever is in front. Says whether there may be more.
    pub(super) async fn look(&self, store: &Store, host: &str) -> Result<bool, StoreError> {
        let first: Vec<InLine> = {
            let mut queue = self.queue();
            let count = queue.waiting.len().min(AT_ONCE);
            queue.waiting.drain(..count).collect()
        };
        let count = first.len();
        let (mut together, mut apart): (Vec<InLine>, Vec<InLine>) =
            first.into_iter().partition(|one| !one.is_apart);
        // Who takes only some plans claims among what is ready of them.
        if together.len() == 1 || !self.work.plans.is_empty() {
            apart.append(&mut together);
        }
        let mut unserved = Vec::new();
        let mut has_failed = false;
        if !together.is_empty() {
            let wants: Vec<Waiting> = together.iter().map(|one| one.wants.clone()).collect();
            let claimed = store.claim_for_all(&self.work.roles, host, &wants).await.unwrap_or_else(|error| {
                tracing::debug!(%error, workers = wants.len(), "workers claim one by one");
                has_failed = true;
                wants.iter().map(|_| None).collect()
            });
            for (one, claimed) in together.into_iter().zip(claimed) {
                unserved.extend(InLine { is_apart: has_failed, ..one }.served(claimed));
            }
        }
        for one in apart {
            let token = &one.wants.token;
            let claim = self.claim_of(&one.wants, self.lane(store, host).await?, host);
            let claimed = match store.claim_under(&claim, token.clone()).await? {
                // What failed may have been done all the same.
                None if one.is_apart => store.claimed_under(token).await?,
                claimed => claimed,
            };
            unserved.extend(one.served(claimed));
        }
        let again = has_failed || unserved.len() < count;
        self.put_back(unserved);
        Ok(again)
    }

    /// Puts those back who got nothing, in their order; whoever wanted to leave in the meantime may.
    fn put_back(&self, mut unserved: Vec<InLine>) {
        unserved.sort_by_key(|one| std::cmp::Reverse(one.number));
        let mut queue = self.queue();
        for one in unserved {
            if !queue.leaving.remove(&one.number) {
                queue.waiting.push_front(one);
            }
        }
    }

    /// Returns what can be claimed here.
    async fn lane(&self, store: &Store, host: &str) -> Result<ClaimLane, StoreError> {
        let Wanted { roles, plans } = &self.work;
        if plans.is_empty() {
            return Ok(ClaimLane::Agent(roles.clone()));
        }
        let ready = store.work_ready(roles, host).await?.into_iter();
        let wanted = ready.filter(|(work, plan)| self.work.has(&work.role, plan));
        Ok(ClaimLane::Among(wanted.map(|(work, _)| work).collect()))
    }

    fn claim_of(&self, wants: &Waiting, lane: ClaimLane, host: &str) -> Claim {
        let instance = wants.instance.clone();
        Claim {
            lane,
            run: None,
            except: Vec::new(),
            holder: Holder { host: host.to_owned(), boot: String::new(), instance, own: false },
            lease: wants.lease,
        }
    }
}

impl<'a> Place<'a> {
    /// Waits until there is an item, or this place is in front. To be polled on where it was interrupted.
    pub(super) async fn turn(&mut self) -> Turn<'a> {
        tokio::select! {
            biased;
            answered = &mut self.answered => {
                answered.map_or(Turn::Lost, |claimed| Turn::Served(Box::new(claimed)))
            }
            front = self.line.front.lock() => Turn::InFront(front),
        }
    }

    /// Returns the item that the last look brought for this place, if it did.
    pub(super) fn served(&mut self) -> Option<Claimed> {
        self.answered.try_recv().ok()
    }

    /// Leaves the line. Where a claim for this place is under way, its end is awaited, and what it brought is returned.
    pub(super) async fn leave(mut self) -> Option<Claimed> {
        {
            let mut queue = self.line.queue();
            if queue.remove(self.number) {
                return None;
            }
            queue.leaving.insert(self.number);
        }
        (&mut self.answered).await.ok()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queue = self.line.queue();
        queue.remove(self.number);
        queue.leaving.remove(&self.number);
    }
}
