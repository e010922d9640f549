//! Those who wait for the same work, in the order in which they came: whoever is in front looks, for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planctl_engine::{AgentEvent, AgentSaid, Event, Role};
use planctl_glob::Glob;
use planctl_store::{Claim, ClaimLane, Claimed, Holder, Store, StoreError, Waiting};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Doors;
use super::problem::Problem;
use crate::config::takes_plan;

/// The most workers whose claims are made at once: one statement holds the rows of all their items.
const AT_ONCE: usize = 16;

/// Which work is wanted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wanted {
    /// Whose.
    pub(super) roles: Vec<Role>,
    /// The plans that roles are held to; a role that is not named takes all (G-39).
    pub(super) plans: BTreeMap<Role, Vec<Glob>>,
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
    front: Arc<tokio::sync::Mutex<()>>,
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
    /// Says that they can repeat their claim under its secret.
    repeats: bool,
    /// Says that a claim together with others has failed.
    is_apart: bool,
    answer: oneshot::Sender<Handed>,
}

impl InLine {
    /// Hands an item over; comes back where there is none.
    fn served(self, doors: &Doors, claimed: Option<Claimed>) -> Option<InLine> {
        let Some(claimed) = claimed else { return Some(self) };
        // Of whoever has gone it comes back, and ends as what nobody is told of does.
        drop(self.answer.send(Handed::new(doors, claimed, self.repeats)));
        None
    }
}

/// An item on its way to who claimed it. Where they go away before they are told of it, it is given back at once: nobody
/// else knows its secret. Whoever can repeat the claim finds it by that.
pub(super) struct Handed {
    doors: Doors,
    claimed: Arc<Claimed>,
    /// Says that it stays leased, whoever hears of it.
    is_kept: bool,
}

impl Handed {
    pub(super) fn new(doors: &Doors, claimed: Claimed, repeats: bool) -> Handed {
        Handed { doors: doors.clone(), claimed: Arc::new(claimed), is_kept: repeats }
    }

    pub(super) fn claimed(&self) -> &Claimed {
        &self.claimed
    }

    /// Leaves the item to who claimed it: they are about to be told.
    pub(super) fn told(mut self) {
        self.is_kept = true;
    }

    /// Gives the item back, also where its claim can be repeated.
    pub(super) async fn give_back(mut self) -> Result<(), Problem> {
        let given = give_back(&self.doors, &self.claimed).await;
        self.is_kept = true;
        Ok(given?)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let (doors, claimed) = (self.doors.clone(), self.claimed.clone());
        self.doors.tasks().spawn(async move {
            if let Err(error) = give_back(&doors, &claimed).await {
                tracing::debug!(%error, item.id = %claimed.item.id, "an item that nobody was told of stays leased");
            }
        });
    }
}

async fn give_back(doors: &Doors, claimed: &Claimed) -> Result<(), StoreError> {
    let event = Event::Agent(AgentEvent::new(claimed.item.at.clone(), AgentSaid::Released));
    doors.station().store().apply(claimed.item.run, &event, &claimed.proof(), None).await.map(drop)
}

/// A place in a line; given up where it is dropped.
pub(super) struct Place<'a> {
    line: &'a Line,
    number: u64,
    answered: oneshot::Receiver<Handed>,
}

/// Being in front of a line, for as long as it is kept.
pub(super) struct Front {
    _held: OwnedMutexGuard<()>,
}

/// What waiting has come to.
pub(super) enum Turn {
    /// Whoever is in front claimed an item for this place.
    Served(Handed),
    /// This place is in front, and looks for all.
    InFront(Front),
    /// A claim for this place broke off.
    Lost,
}

impl Line {
    fn new(work: &Wanted) -> Line {
        Line { work: work.clone(), front: Arc::default(), queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line, to wait for an item; `repeats` says that its claim can be repeated under its secret.
    pub(super) fn join(&self, wants: Waiting, repeats: bool) -> Place<'_> {
        let (answer, answered) = oneshot::channel();
        let mut queue = self.queue();
        queue.joined += 1;
        let number = queue.joined;
        queue.waiting.push_back(InLine { number, wants, repeats, is_apart: false, answer });
        Place { line: self, number, answered }
    }

    /// Looks once, for all who wait, on behalf of whoever is in front. Says whether there may be more.
    ///
    /// It comes to its end where who is in front goes away: what is claimed for the others is theirs, and nobody looks
    /// beside it.
    pub(super) async fn look(
        self: &Arc<Line>,
        doors: &Doors,
        front: Front,
    ) -> Result<(Front, bool), Problem> {
        let (line, to) = (self.clone(), doors.clone());
        doors.to_its_end(async move { Ok((front, line.look_for_all(&to).await?)) }).await
    }

    async fn look_for_all(&self, doors: &Doors) -> Result<bool, Problem> {
        let (store, host) = (doors.station().store(), doors.station().host());
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
                unserved.extend(InLine { is_apart: has_failed, ..one }.served(doors, claimed));
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
            unserved.extend(one.served(doors, claimed));
        }
        let again = has_failed || unserved.len() < count;
        self.put_back(unserved);
        Ok(again)
    }

    /// Puts those back who got nothing, in their order, but for who went away or wanted to leave in the meantime.
    fn put_back(&self, mut unserved: Vec<InLine>) {
        unserved.sort_by_key(|one| std::cmp::Reverse(one.number));
        let mut queue = self.queue();
        for one in unserved {
            if !queue.leaving.remove(&one.number) && !one.answer.is_closed() {
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

impl Place<'_> {
    /// Waits until there is an item, or this place is in front. To be polled on where it was interrupted.
    pub(super) async fn turn(&mut self) -> Turn {
        tokio::select! {
            biased;
            answered = &mut self.answered => {
                answered.map_or(Turn::Lost, Turn::Served)
            }
            held = self.line.front.clone().lock_owned() => Turn::InFront(Front { _held: held }),
        }
    }

    /// Returns the item that the last look brought for this place, if it did.
    pub(super) fn served(&mut self) -> Option<Handed> {
        self.answered.try_recv().ok()
    }

    /// Leaves the line. Where a claim for this place is under way, its end is awaited, and what it brought is returned.
    pub(super) async fn leave(mut self) -> Option<Handed> {
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
        // Before the line is looked at: who is not there is put back only where somebody hears the answer.
        self.answered.close();
        let mut queue = self.line.queue();
        queue.remove(self.number);
        queue.leaving.remove(&self.number);
    }
}
