//! `POST /v1/items/claim`: hands out the next item that a worker may do, and waits for one where there is none.
//!
//! Claims of the same work wait in one [`queue`], whose leader looks for all of them.

mod lease;
mod queue;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use planctl_engine::{ItemId, Role};
use planctl_glob::Glob;
use planctl_store::{ClaimRequest, Claimed, SeenWorker, Store, StoreError, Token};
use tokio::time::Instant;

use self::lease::{LEASE_SECONDS, is_lease, lease_for};
use self::queue::{ClaimQueue, ClaimQueues, Delivery, LOOK_AGAIN, Leader, Ticket, WaiterEvent, Wanted};
use super::guard::Standing;
use super::parameters::WAIT;
use super::printed::Printed;
use super::problem::of_store;
use super::{Answer, Call, guard, json, no_content};
use crate::clock;
use crate::mutex::lock;
use crate::node::ServerNode;
use crate::node::runtime::stopped;
use planctl_api::wire::calls::{ClaimCall, ClaimedView};
use planctl_api::wire::{PromptView, moment};
use planctl_api::{Code, Problem};

pub(super) use self::lease::{Lease, no_such_item};
pub(super) use self::view::view;

/// The least time that a claim queues for: a leader looks without waiting.
const SOON: Duration = Duration::from_millis(50);
/// How many items one worker may say it works on at once.
const CAPACITY: std::ops::RangeInclusive<i32> = 1..=1000;
/// How long a worker counts as seen.
const NOTED_FOR: Duration = Duration::from_secs(5);
/// As many characters as a UUID without its hyphens.
const SECRET_KEY_MIN: usize = 32;
/// The most roles in one claim.
const ROLES_MAX: usize = 100;
/// The longest name of a role, as in plans and configurations.
const ROLE_CHARACTERS_MAX: usize = 64;
/// The longest that a worker says of itself in a line, for people.
pub(super) const LINE_CHARACTERS_MAX: usize = 200;
/// The most bytes of all the globs in one claim: they are kept as long as it waits.
const PLANS_BYTES_MAX: usize = 16 * 1024;
/// The most plans in one claim, of all its roles.
const PLANS_MAX: usize = 1000;

/// Kept in memory about work that is claimed or waited for: a convenience, and no part of any decision.
#[derive(Default)]
pub(crate) struct ClaimsCache {
    queues: Arc<ClaimQueues>,
    /// Workers as they presented themselves, and when that was noted.
    seen: Mutex<HashMap<String, Instant>>,
    printed: Mutex<Printed>,
}

impl ClaimsCache {
    /// Makes the cache of a node whose transitions lease work to those that wait here.
    pub(super) fn new(server_node: &ServerNode) -> ClaimsCache {
        let claims = ClaimsCache::default();
        let queues = Arc::downgrade(&claims.queues);
        server_node.store().serve_waiting(server_node.host(), queues);
        claims
    }

    /// Notes a worker, and one that comes often every few seconds.
    async fn record_worker_seen(&self, store: &Store, worker: &SeenWorker<'_>) -> Result<(), StoreError> {
        let (presented, now) = (format!("{worker:?}"), clock::instant());
        let is_new = |noted: &Instant| now.duration_since(*noted) < NOTED_FOR;
        if lock(&self.seen).get(&presented).is_some_and(is_new) {
            return Ok(());
        }
        store.record_worker_seen(worker).await?;
        let mut seen = lock(&self.seen);
        seen.retain(|_, noted| is_new(noted));
        seen.insert(presented, now);
        Ok(())
    }

    pub(super) fn printed(&self) -> MutexGuard<'_, Printed> {
        // It is for watching only.
        lock(&self.printed)
    }

    /// Returns the end of the output of an item's holder.
    pub(crate) fn log(&self, item: &ItemId) -> Option<String> {
        self.printed().of(item)
    }
}

pub(super) async fn claim(call: Call) -> Answer {
    let wanted: ClaimCall = call.body()?;
    let roles = roles_of(&call, &wanted)?;
    let wait = Duration::from_secs(call.number(&WAIT)?.unwrap_or(0));
    let lease = lease_of(&call, &wanted)?;
    let worker = worker_of(&call, &wanted)?;
    refuse_capacity(&wanted)?;
    let seen = SeenWorker {
        id: &worker,
        roles: &roles,
        agent: worker_field("agent", wanted.agent.as_deref())?,
        host: worker_field("host", wanted.host.as_deref())?,
        version: worker_field("version", wanted.version.as_deref())?,
        capacity: wanted.capacity.unwrap_or(1),
    };
    call.api.claims().record_worker_seen(call.server_node().store(), &seen).await.map_err(of_store)?;
    // A caller that can't repeat the call gets a secret that nobody could guess.
    let repeats = token_of(&call);
    let is_repeatable = repeats.is_some();
    let request = ClaimRequest { instance: worker, lease, token: repeats.unwrap_or_else(Token::generate) };
    let work = Wanted { plans: plans_by_role(&wanted, &roles)?, roles };
    let until = clock::instant() + wait;
    let claiming = Claiming { call: &call, request: &request, repeats: is_repeatable, until };
    let mut standing = Standing::of(&call);
    let claimed = tokio::select! {
        biased;
        claimed = claiming.claimed(&work) => claimed?,
        // The claim is dropped, as that of a client that has hung up.
        problem = standing.revoked() => return Err(problem),
    };
    let Some(delivery) = claimed else {
        return Ok(no_content());
    };
    if let Err(problem) = standing.refuse_if_revoked().await {
        delivery.release().await?;
        return Err(problem);
    }
    let placed = call.server_node().placed(delivery.claimed().clone()).await;
    let view = match placed {
        Ok(claimed) => claimed_view(&call, &claimed, lease, wanted.lease_seconds).await,
        Err(error) => Err(error.into()),
    };
    // An item that can't be shown is not given back: the next claim would come to the same.
    delivery.keep_claimed();
    json(&view?)
}

/// Shows an item that was just claimed, and keeps what its agent is told.
async fn claimed_view(
    call: &Call,
    claimed: &Claimed,
    lease: Duration,
    asked_seconds: Option<u64>,
) -> Result<ClaimedView, Problem> {
    let shown = view(call, claimed, lease, asked_seconds).await?;
    let prompt = PromptView {
        at: moment(clock::now()),
        step: shown.step,
        title: shown.step_title.clone(),
        visit: claimed.item.at.visit,
        attempt: shown.attempt,
        role: shown.role.clone(),
        prompt: shown.prompt.clone(),
    };
    call.server_node().spool().add_prompt(claimed.item.run, &prompt);
    Ok(shown)
}

/// The result of a wait in a queue.
enum Looked {
    /// There was something for this claim.
    Found(Delivery),
    /// There was nothing as long as was to be waited.
    InVain,
    /// Its worker was paused, and is no more: it takes a place anew.
    Resumed,
    /// Its claim was dropped: it takes a place anew.
    Lost,
}

/// One claim, for as long as it waits.
struct Claiming<'a> {
    call: &'a Call,
    request: &'a ClaimRequest,
    /// Says that the caller can repeat it under its secret.
    repeats: bool,
    until: Instant,
}

impl Claiming<'_> {
    /// Claims as soon as there is an item. Claims of the same work are served in their order.
    async fn claimed(&self, work: &Wanted) -> Result<Option<Delivery>, Problem> {
        let queue = self.call.api.claims().queues.of(work, self.call.server_node().store());
        loop {
            let mut ticket = queue.join(&self.call.api, self.request.clone(), self.repeats);
            let event = {
                let mut event = std::pin::pin!(ticket.next());
                match tokio::time::timeout(SOON, event.as_mut()).await {
                    Ok(event) => Some(event),
                    Err(_) => {
                        // A repeated claim finds the item of its lost answer at once, without waiting for earlier claims.
                        if let Some(delivery) = self.repeated_claim().await? {
                            return Ok(Some(delivery));
                        }
                        tokio::time::timeout_at(self.until, event).await.ok()
                    }
                }
            };
            let looked = match event {
                Some(WaiterEvent::Served(delivery)) => Looked::Found(delivery),
                Some(WaiterEvent::Leads(leader)) => self.lead_queue(&queue, leader, ticket).await?,
                Some(WaiterEvent::Lost) => Looked::Lost,
                None => self.leave(ticket).await?,
            };
            match looked {
                Looked::Found(delivery) => return Ok(Some(delivery)),
                Looked::InVain => return Ok(None),
                Looked::Resumed => {}
                Looked::Lost => {
                    if let Some(delivery) = self.claim_of_secret().await? {
                        return Ok(Some(delivery));
                    }
                }
            }
        }
    }

    /// Leads the queue: looks for all waiters until there is an item for this claim. It doesn't repeat a look of the leader before it
    /// that found nothing.
    async fn lead_queue(
        &self,
        queue: &Arc<ClaimQueue>,
        mut leader: Leader,
        // Dropped before the leadership, so that the next leader claims nothing for this waiter.
        mut ticket: Ticket<'_>,
    ) -> Result<Looked, Problem> {
        let api = &self.call.api;
        // Says that it has looked, or has waited and was not served at once.
        let mut is_waiting = false;
        let mut has_news = false;
        loop {
            let left = self.until.saturating_duration_since(clock::instant());
            if has_news || left.is_zero() || !queue.is_idle() || leader.looks_again_in().is_zero() {
                let more;
                (leader, more) = queue.claim_for_waiters(api, leader).await?;
                if let Some(delivery) = ticket.try_receive() {
                    return Ok(Looked::Found(delivery));
                }
                if more {
                    continue;
                }
                is_waiting = true;
            }
            if is_waiting {
                if let Some(delivery) = self.repeated_claim().await? {
                    return Ok(Looked::Found(delivery));
                }
                if left.is_zero() || api.is_stopping() {
                    return self.leave(ticket).await;
                }
                if api.server_node().store().is_paused(&self.request.instance).await.map_err(of_store)? {
                    // A paused worker waits as if it found nothing, and leaves the queue to the others.
                    let looked = self.leave(ticket).await?;
                    if !matches!(looked, Looked::InVain) {
                        return Ok(looked);
                    }
                    drop(leader);
                    return Ok(if self.wait_until_resumed().await? {
                        Looked::Resumed
                    } else {
                        Looked::InVain
                    });
                }
                ticket.set_idle();
            }
            let most = if is_waiting { leader.looks_again_in() } else { SOON };
            is_waiting = true;
            tokio::select! {
                served = ticket.served() => return Ok(served.map_or(Looked::Lost, Looked::Found)),
                news = api.wait_for_news(leader.listener(), left.min(most)) => has_news = news,
            }
        }
    }

    /// Waits until a paused worker may claim again; says whether that came in time.
    async fn wait_until_resumed(&self) -> Result<bool, Problem> {
        let api = &self.call.api;
        let mut stop = api.options().stop.clone();
        loop {
            let left = self.until.saturating_duration_since(clock::instant());
            if left.is_zero() || *stop.borrow() {
                return Ok(false);
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
                () = stopped(&mut stop) => {}
            }
            if !api.server_node().store().is_paused(&self.request.instance).await.map_err(of_store)? {
                return Ok(true);
            }
        }
    }

    /// Leaves the queue. A claim or a transition whose answer was lost may have leased something under the secret.
    async fn leave(&self, ticket: Ticket<'_>) -> Result<Looked, Problem> {
        let left = match ticket.leave().await {
            Some(delivery) => Some(delivery),
            None => self.claim_of_secret().await?,
        };
        Ok(left.map_or(Looked::InVain, Looked::Found))
    }

    /// Returns what an earlier call claimed under the secret, where there may be one.
    async fn repeated_claim(&self) -> Result<Option<Delivery>, Problem> {
        if self.repeats { self.claim_of_secret().await } else { Ok(None) }
    }

    /// Returns what was claimed under the secret and is still held. Where the secret is of this call alone, it is asked only while
    /// the call is in no queue: what is delivered twice is given back once.
    async fn claim_of_secret(&self) -> Result<Option<Delivery>, Problem> {
        let claimed =
            self.call.server_node().store().claim_of_token(&self.request.token).await.map_err(of_store)?;
        Ok(claimed.map(|claimed| Delivery::new(&self.call.api, claimed, self.repeats)))
    }
}

fn roles_of(call: &Call, wanted: &ClaimCall) -> Result<Vec<Role>, Problem> {
    let allowed = &call.principal.roles;
    let mut roles: Vec<String> = if wanted.roles.is_empty() { allowed.clone() } else { wanted.roles.clone() };
    roles.sort();
    roles.dedup();
    if roles.is_empty() {
        return Err(Problem::new(
            Code::BadRequest,
            "`roles` names whose work is wanted: {\"roles\": [\"coder\"]}",
        ));
    }
    refuse_roles(&roles)?;
    if let Some(role) = roles.iter().find(|role| !allowed.is_empty() && !allowed.contains(role)) {
        return Err(Problem::new(Code::Scope, format!("this token is not for the role {role:?}")));
    }
    Ok(roles.into_iter().map(Role::new).collect())
}

/// Refuses more roles than anybody has, and names that no role has.
pub(super) fn refuse_roles(roles: &[String]) -> Result<(), Problem> {
    if roles.len() > ROLES_MAX {
        return Err(Problem::new(Code::BadRequest, format!("`roles` are at most {ROLES_MAX}")));
    }
    if roles.iter().any(|role| role.chars().count() > ROLE_CHARACTERS_MAX) {
        let detail = format!("each of `roles` has at most {ROLE_CHARACTERS_MAX} characters");
        return Err(Problem::new(Code::BadRequest, detail));
    }
    Ok(())
}

/// Takes what a worker says of itself: it is kept as long as the worker is, and shown whole.
fn worker_field<'w>(name: &str, said: Option<&'w str>) -> Result<&'w str, Problem> {
    let said = said.unwrap_or_default();
    refuse_long(name, said, LINE_CHARACTERS_MAX)?;
    Ok(said)
}

/// Refuses what a worker says at a length that nobody reads.
pub(super) fn refuse_long(name: &str, said: &str, most: usize) -> Result<(), Problem> {
    if said.chars().count() <= most {
        return Ok(());
    }
    Err(Problem::new(Code::BadRequest, format!("`{name}` has at most {most} characters")))
}

/// Returns the plans that roles are held to, of those whose work is wanted.
fn plans_by_role(wanted: &ClaimCall, roles: &[Role]) -> Result<BTreeMap<Role, Vec<Glob>>, Problem> {
    if wanted.plans.values().flatten().count() > PLANS_MAX {
        return Err(Problem::new(Code::BadRequest, format!("`plans` are at most {PLANS_MAX}")));
    }
    if wanted.plans.values().flatten().map(String::len).sum::<usize>() > PLANS_BYTES_MAX {
        return Err(Problem::new(Code::BadRequest, format!("`plans` have at most {PLANS_BYTES_MAX} bytes")));
    }
    let mut plans = BTreeMap::new();
    for (role, globs) in &wanted.plans {
        let globs: Result<Vec<Glob>, _> = globs.iter().map(|glob| Glob::parse(glob)).collect();
        let globs = globs.map_err(|error| Problem::new(Code::BadRequest, format!("`plans`: {error}")))?;
        plans.insert(Role::new(role.as_str()), globs);
    }
    plans.retain(|role, _| roles.contains(role));
    Ok(plans)
}

fn lease_of(call: &Call, wanted: &ClaimCall) -> Result<Duration, Problem> {
    match wanted.lease_seconds {
        seconds if is_lease(seconds) => Ok(lease_for(call, seconds)),
        seconds => {
            let seconds = seconds.unwrap_or_default();
            let (least, most) = LEASE_SECONDS.into_inner();
            let detail = format!("`lease_seconds` is {least} to {most}, found {seconds}");
            Err(Problem::new(Code::BadRequest, detail))
        }
    }
}

/// A claim hands out one item; how many its worker works on at once is for people, and a number of theirs (row 86).
fn refuse_capacity(wanted: &ClaimCall) -> Result<(), Problem> {
    match wanted.capacity {
        Some(capacity) if !CAPACITY.contains(&capacity) => {
            let (least, most) = (CAPACITY.start(), CAPACITY.end());
            let detail = format!("`capacity` is from {least} to {most}, found {capacity}");
            Err(Problem::new(Code::BadRequest, detail))
        }
        Some(_) | None => Ok(()),
    }
}

fn worker_of(call: &Call, wanted: &ClaimCall) -> Result<String, Problem> {
    let named = wanted.worker.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let name = named.unwrap_or(call.actor().as_str());
    let is_fit = name.chars().count() <= 100 && !name.chars().any(char::is_control);
    if is_fit {
        Ok(name.to_owned())
    } else {
        Err(Problem::new(Code::BadRequest, "`worker` is a name of at most 100 characters on one line"))
    }
}

/// Derives the lease's secret from the request's key, so that a repeated claim finds the item of the first one: the
/// answer of a claim holds a secret, which is stored nowhere. A caller on the socket without a token has no secret but the
/// key, which must then be hard to guess.
fn token_of(call: &Call) -> Option<Token> {
    let key = call.headers.get(guard::KEY_HEADER)?.as_bytes();
    let principal = &call.principal;
    let secret = match &principal.secret {
        Some(secret) => secret,
        None if key.len() >= SECRET_KEY_MIN => &principal.id,
        None => return None,
    };
    Token::parse(&guard::hash_of(&[b"planctl claim", secret.as_bytes(), key]))
}
