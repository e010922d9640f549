//! Claims that wait for the same work, in the order in which they came. The first is the leader: it looks for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use planctl_engine::{AgentEvent, AgentSaid, Event, Role};
use planctl_glob::Glob;
use planctl_store::{
    Claim, ClaimLane, ClaimRequest, Claimed, Holder, Listener, News, Store, StoreError, WaitingWorker,
    WaitingWorkers,
};
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::Instant;

use crate::clock;
use crate::http::ApiState;
use crate::http::problem::of_store;
use crate::mutex::lock;
use planctl_api::Problem;
use planctl_config::takes_plan;

/// The most workers whose claims are made at once: one statement holds the rows of all their items.
const AT_ONCE: usize = 16;

/// How many queues are kept, as long as nobody waits in them.
const QUEUES_KEPT: usize = 100;
/// How long to wait without a notification before looking again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The work that a claim wants.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wanted {
    /// The roles whose items it takes.
    pub(super) roles: Vec<Role>,
    /// The plans that roles are held to; a role that is not named takes all (G-39).
    pub(super) plans: BTreeMap<Role, Vec<Glob>>,
}

impl Wanted {
    fn wants(&self, role: &Role, plan: &str) -> bool {
        takes_plan(self.plans.get(role).map(Vec::as_slice), plan)
    }
}

/// The queues, by the work that is waited for.
#[derive(Default)]
pub(super) struct ClaimQueues {
    all: Mutex<HashMap<Wanted, Arc<ClaimQueue>>>,
    /// How many waiters have joined one of them.
    joined: Arc<AtomicU64>,
}

impl ClaimQueues {
    pub(super) fn of(&self, work: &Wanted, store: &Store) -> Arc<ClaimQueue> {
        let mut all = lock(&self.all);
        if let Some(queue) = all.get(work) {
            return queue.clone();
        }
        if all.len() >= QUEUES_KEPT {
            all.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        let new = || Arc::new(ClaimQueue::new(work, store, self.joined.clone()));
        all.entry(work.clone()).or_insert_with(new).clone()
    }
}

impl WaitingWorkers for ClaimQueues {
    fn take(&self, role: &Role, plan: &str) -> Option<Box<dyn WaitingWorker>> {
        let all = lock(&self.all);
        let takes = |queue: &&Arc<ClaimQueue>| {
            queue.work.roles.contains(role) && queue.work.wants(role, plan) && queue.is_idle()
        };
        let mut queues: Vec<_> = all.values().filter(takes).collect();
        queues.sort_by_cached_key(|queue| queue.first_number());
        let taken = queues.into_iter().find_map(Taken::first_of)?;
        Some(Box::new(taken))
    }
}

/// A waiter that a transition took to lease its work to.
struct Taken {
    queue: Arc<ClaimQueue>,
    request: ClaimRequest,
    /// Until it is served.
    waiter: Mutex<Option<Waiter>>,
}

impl Taken {
    fn first_of(queue: &Arc<ClaimQueue>) -> Option<Taken> {
        let mut of_queue = queue.queue();
        let waiter = if of_queue.is_idle { of_queue.waiting.pop_front() } else { None }?;
        drop(of_queue);
        Some(Taken {
            queue: queue.clone(),
            request: waiter.request.clone(),
            waiter: Mutex::new(Some(waiter)),
        })
    }
}

impl WaitingWorker for Taken {
    fn request(&self) -> &ClaimRequest {
        &self.request
    }

    fn serve(&self, claimed: Claimed) {
        if let Some(waiter) = lock(&self.waiter).take() {
            waiter.deliver(Some(claimed));
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(waiter) = lock(&self.waiter).take() {
            let api = waiter.api.clone();
            // The transition may have been written all the same, where its answer was lost.
            self.queue.put_back(vec![Waiter { claims_alone: true, ..waiter }]);
            // The leader may have looked for all others meanwhile.
            api.server_node().store().wake_listeners(News::Agents);
        }
    }
}

/// Claims that wait for the same work.
pub(super) struct ClaimQueue {
    work: Wanted,
    /// Held by the leader.
    leadership: Arc<tokio::sync::Mutex<Leadership>>,
    queue: Mutex<Queue>,
    joined: Arc<AtomicU64>,
}

/// Left by each leader to the next one, which need not repeat a look that found nothing.
struct Leadership {
    /// Keeps the news that came while nobody led.
    listener: Listener,
    looked_at: Option<Instant>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    /// Says that the last look found nothing for its leader, who may claim and waits on, and no other look is under way. Only then
    /// are those that wait served by transitions: work that has waited longer goes first.
    is_idle: bool,
    /// Waiters that want to leave and whose claim is under way.
    leaving: BTreeSet<u64>,
}

impl Queue {
    /// Removes a waiter; returns whether it was there.
    fn remove(&mut self, number: u64) -> bool {
        let at = self.waiting.iter().position(|one| one.number == number);
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

struct Waiter {
    /// By which those of all queues are served.
    number: u64,
    api: ApiState,
    request: ClaimRequest,
    /// Whether the client can repeat its claim under its secret.
    repeats: bool,
    /// Whether a claim made together with others has failed, or a transition took it and did not serve it. It may have a lease.
    claims_alone: bool,
    answer: oneshot::Sender<Delivery>,
}

impl Waiter {
    /// Delivers an item to the waiter; returns the waiter if there is none.
    fn deliver(self, claimed: Option<Claimed>) -> Option<Waiter> {
        let Some(claimed) = claimed else { return Some(self) };
        // If the client disconnected, the delivery is dropped, which gives the item back.
        drop(self.answer.send(Delivery::new(&self.api, claimed, self.repeats)));
        None
    }
}

/// An item on its way to its claimant. If the claimant disconnects before the answer, the item is given back at once: nobody
/// else knows its secret. A claim that can be repeated finds it by that secret, so it is kept.
pub(super) struct Delivery {
    api: ApiState,
    claimed: Arc<Claimed>,
    /// Whether the item stays leased if the delivery is dropped.
    is_kept: bool,
}

impl Delivery {
    pub(super) fn new(api: &ApiState, claimed: Claimed, repeats: bool) -> Delivery {
        api.server_node().metrics().count_claim(&claimed.item);
        Delivery { api: api.clone(), claimed: Arc::new(claimed), is_kept: repeats }
    }

    pub(super) fn claimed(&self) -> &Claimed {
        &self.claimed
    }

    /// Leaves the item to its claimant, which is about to be answered.
    pub(super) fn keep_claimed(mut self) {
        self.is_kept = true;
    }

    /// Gives the item back, also where its claim can be repeated.
    pub(super) async fn release(mut self) -> Result<(), Problem> {
        let given = release_claim(&self.api, &self.claimed).await;
        self.is_kept = true;
        given.map_err(of_store)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let (api, claimed) = (self.api.clone(), self.claimed.clone());
        self.api.tasks().spawn(async move {
            if let Err(error) = release_claim(&api, &claimed).await {
                tracing::debug!(%error, item.id = %claimed.item.id, "an item whose claim was never answered stays leased");
            }
        });
    }
}

async fn release_claim(api: &ApiState, claimed: &Claimed) -> Result<(), StoreError> {
    let event = Event::Agent(AgentEvent::new(claimed.item.at.clone(), AgentSaid::Released));
    api.server_node().store().apply(claimed.item.run, &event, &claimed.proof(), None).await.map(drop)
}

/// A position in a queue; given up on drop.
pub(super) struct Ticket<'a> {
    queue: &'a ClaimQueue,
    number: u64,
    answered: oneshot::Receiver<Delivery>,
}

/// The leadership of a queue; released on drop.
pub(super) struct Leader {
    leadership: OwnedMutexGuard<Leadership>,
}

impl Leader {
    pub(super) fn listener(&self) -> &Listener {
        &self.leadership.listener
    }

    /// Returns how long it may wait for news before it looks again without any.
    pub(super) fn looks_again_in(&self) -> Duration {
        let since = self.leadership.looked_at.map(|at| clock::instant().duration_since(at));
        since.map_or(Duration::ZERO, |since| LOOK_AGAIN.saturating_sub(since))
    }
}

/// The end of a wait.
pub(super) enum WaiterEvent {
    /// The leader claimed an item for this waiter.
    Served(Delivery),
    /// This waiter is the leader, and looks for all.
    Leads(Leader),
    /// The claim for this waiter was dropped.
    Lost,
}

impl ClaimQueue {
    fn new(work: &Wanted, store: &Store, joined: Arc<AtomicU64>) -> ClaimQueue {
        let leadership = Leadership { listener: store.listen(News::Agents), looked_at: None };
        let leadership = Arc::new(tokio::sync::Mutex::new(leadership));
        ClaimQueue { work: work.clone(), leadership, queue: Mutex::default(), joined }
    }

    /// Says that the last look found nothing, and that none is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.queue().is_idle
    }

    fn first_number(&self) -> Option<u64> {
        self.queue().waiting.front().map(|first| first.number)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Joins the queue, to wait for an item; `repeats` says that its claim can be repeated under its secret.
    pub(super) fn join(&self, api: &ApiState, request: ClaimRequest, repeats: bool) -> Ticket<'_> {
        let (answer, answered) = oneshot::channel();
        let mut queue = self.queue();
        let number = self.joined.fetch_add(1, Ordering::Relaxed);
        let api = api.clone();
        queue.waiting.push_back(Waiter { number, api, request, repeats, claims_alone: false, answer });
        Ticket { queue: self, number, answered }
    }

    /// Looks once, for all waiters, on behalf of the leader. Says whether there may be more.
    ///
    /// It runs to its end even if the leader disconnects: the items that it claims for others are theirs, and nobody
    /// else looks meanwhile.
    pub(super) async fn claim_for_waiters(
        self: &Arc<ClaimQueue>,
        api: &ApiState,
        mut leader: Leader,
    ) -> Result<(Leader, bool), Problem> {
        let (queue, to) = (self.clone(), api.clone());
        leader.leadership.looked_at = Some(clock::instant());
        api.to_its_end(async move { Ok((leader, queue.claim_batch(&to).await?)) }).await
    }

    async fn claim_batch(&self, api: &ApiState) -> Result<bool, Problem> {
        let (store, host) = (api.server_node().store(), api.server_node().host());
        let first: Vec<Waiter> = {
            let mut queue = self.queue();
            queue.is_idle = false;
            let count = queue.waiting.len().min(AT_ONCE);
            queue.waiting.drain(..count).collect()
        };
        let count = first.len();
        let (mut together, mut alone): (Vec<Waiter>, Vec<Waiter>) =
            first.into_iter().partition(|one| !one.claims_alone);
        // A role that takes only some plans claims among their ready items.
        if together.len() == 1 || !self.work.plans.is_empty() {
            alone.append(&mut together);
        }
        let mut unserved = Vec::new();
        let mut has_failed = false;
        if !together.is_empty() {
            let requests: Vec<ClaimRequest> = together.iter().map(|one| one.request.clone()).collect();
            let claimed =
                store.claim_for_all(&self.work.roles, host, &requests).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, workers = requests.len(), "workers claim one by one");
                    has_failed = true;
                    requests.iter().map(|_| None).collect()
                });
            for (one, claimed) in together.into_iter().zip(claimed) {
                unserved.extend(Waiter { claims_alone: has_failed, ..one }.deliver(claimed));
            }
        }
        for one in alone {
            let token = &one.request.token;
            let claim = self.claim_of(&one.request, self.lane(store, host).await.map_err(of_store)?, host);
            let claimed = match store.claim_under(&claim, token.clone()).await.map_err(of_store)? {
                // A claim that failed may have been committed all the same.
                None if one.claims_alone => store.claim_of_token(token).await.map_err(of_store)?,
                claimed => claimed,
            };
            unserved.extend(one.deliver(claimed));
        }
        let again = has_failed || unserved.len() < count;
        self.put_back(unserved);
        Ok(again)
    }

    /// Puts back the waiters that got nothing, in their order, without those that disconnected or wanted to leave meanwhile.
    fn put_back(&self, unserved: Vec<Waiter>) {
        let mut queue = self.queue();
        for one in unserved {
            if !queue.leaving.remove(&one.number) && !one.answer.is_closed() {
                queue.waiting.push_back(one);
            }
        }
        queue.waiting.make_contiguous().sort_by_key(|one| one.number);
    }

    /// Returns the lane in which this queue claims.
    async fn lane(&self, store: &Store, host: &str) -> Result<ClaimLane, StoreError> {
        let Wanted { roles, plans } = &self.work;
        if plans.is_empty() {
            return Ok(ClaimLane::Agent(roles.clone()));
        }
        let ready = store.ready_work(roles, host).await?.into_iter();
        let wanted = ready.filter(|(work, plan)| self.work.wants(&work.role, plan));
        Ok(ClaimLane::Among(wanted.map(|(work, _)| work).collect()))
    }

    fn claim_of(&self, request: &ClaimRequest, lane: ClaimLane, host: &str) -> Claim {
        let instance = request.instance.clone();
        Claim {
            lane,
            run: None,
            except: Vec::new(),
            holder: Holder { host: host.to_owned(), boot: String::new(), instance, own: false },
            lease: request.lease,
        }
    }
}

impl Ticket<'_> {
    /// Waits until there is an item, or this waiter becomes the leader. Cancel-safe: a new call goes on.
    pub(super) async fn next(&mut self) -> WaiterEvent {
        tokio::select! {
            biased;
            answered = &mut self.answered => {
                answered.map_or(WaiterEvent::Lost, WaiterEvent::Served)
            }
            held = self.queue.leadership.clone().lock_owned() => WaiterEvent::Leads(Leader { leadership: held }),
        }
    }

    /// Waits until a transition has served this waiter, which leads the queue; `None` where its claim was dropped.
    pub(super) async fn served(&mut self) -> Option<Delivery> {
        (&mut self.answered).await.ok()
    }

    /// Has transitions serve those that wait, since the last look found nothing for this waiter, which leads the queue. A look while
    /// a transition had taken this one was for others, or for nobody.
    pub(super) fn set_idle(&self) {
        let mut queue = self.queue.queue();
        queue.is_idle = queue.waiting.iter().any(|one| one.number == self.number);
    }

    /// Returns the item that the last look claimed for this waiter, if any.
    pub(super) fn try_receive(&mut self) -> Option<Delivery> {
        self.answered.try_recv().ok()
    }

    /// Leaves the queue. If a claim for this waiter is under way, waits for it and returns its item.
    pub(super) async fn leave(mut self) -> Option<Delivery> {
        {
            let mut queue = self.queue.queue();
            if queue.remove(self.number) {
                return None;
            }
            queue.leaving.insert(self.number);
        }
        (&mut self.answered).await.ok()
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // Closed before the queue is locked, so that `put_back` sees that this waiter is gone.
        self.answered.close();
        let mut queue = self.queue.queue();
        queue.remove(self.number);
        queue.leaving.remove(&self.number);
    }
}
