//! Work for whoever can do it: claimed, minded, reported. Nothing said here passes a step; the contract does.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::Response;
use planctl_engine::{
    AgentEvent, AgentSaid, At, Ending, Event, Excerpt, Fault, FaultKind, ItemId, Overrun, Report, Role,
    RunId, Subscription, Task, Usage, Work, WorkKind,
};
use planctl_glob::Glob;
use planctl_harness::{Assignment, Masks, digest_of, excerpt_of};
use planctl_store::{
    Claimed, Leased, News, Proof, Renewal, SeenWorker, Store, StoreError, Take, Token, Waiting,
};
use tokio::time::Instant;

use super::guard::{LEASE_PREFIX, Standing};
use super::line::{Front, Handed, Line, Lines, Place, Turn, Wanted};
use super::parameters::WAIT;
use super::printed::Printed;
use super::problem::{Code, Problem};
use super::slots::TakenGate;
use super::{Answer, Call, Scope, guard, json, nothing};
use crate::clock;
use crate::executor::masked;
use crate::executor::prompt_input::Told;
use crate::runs::settings::RunSettings;
use crate::wire::calls::{
    self, AcceptedView, AskCall, ClaimCall, ClaimedView, CompleteCall, FailCall, FailKind, HeartbeatView,
    LeftView, LogCall, Nothing, ProfileView, SubscriptionView, UsageCall, WorkInput, WorkItem, WorkPayload,
};
use crate::wire::moment;

/// How long to wait without a ring before looking again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The least that a claim queues for, however little it waits: the one in front looks without waiting.
const SOON: Duration = Duration::from_millis(50);
/// How long a heartbeat waits without a ring before it looks again.
const BEAT_LOOKS_AGAIN: Duration = Duration::from_secs(5);
/// Between which a lease may last, in seconds.
const LEASE_SECONDS: std::ops::RangeInclusive<u64> = 5..=600;
/// How many items one worker may say it works on at once.
const CAPACITY: std::ops::RangeInclusive<i32> = 1..=1000;
/// How many heartbeats fit into a lease.
const HEARTBEATS: u32 = 3;
/// How long a worker counts as seen.
const NOTED_FOR: Duration = Duration::from_secs(5);
/// As many characters as a UUID without its hyphens.
const SECRET_KEY_MIN: usize = 32;
/// The most roles in one claim.
const ROLES_MAX: usize = 100;
/// The longest question: a person reads it.
const QUESTION_CHARACTERS_MAX: usize = 20_000;
/// The longest name of a role, as in plans and configurations.
const ROLE_CHARACTERS_MAX: usize = 64;
/// The longest that a worker says of itself in a line, for people.
const LINE_CHARACTERS_MAX: usize = 200;
/// The most bytes of all the globs in one claim: they are kept as long as it waits.
const PLANS_BYTES_MAX: usize = 16 * 1024;
/// The most plans in one claim, of all its roles.
const PLANS_MAX: usize = 1000;

/// What the daemon keeps in memory about work that is out: a convenience, and no part of what is decided.
#[derive(Default)]
pub(crate) struct Desk {
    lines: Lines,
    /// Workers as they presented themselves, and when that was noted.
    seen: Mutex<HashMap<String, Instant>>,
    printed: Mutex<Printed>,
}

impl Desk {
    /// Notes a worker, and one that comes often every few seconds.
    async fn see(&self, store: &Store, worker: &SeenWorker<'_>) -> Result<(), StoreError> {
        let (presented, now) = (format!("{worker:?}"), clock::instant());
        let is_new = |noted: &Instant| now.duration_since(*noted) < NOTED_FOR;
        if self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&presented).is_some_and(is_new) {
            return Ok(());
        }
        store.see_worker(worker).await?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, noted| is_new(noted));
        seen.insert(presented, now);
        Ok(())
    }

    fn printed(&self) -> MutexGuard<'_, Printed> {
        // What is kept there is for watching only.
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the end of what the holder of an item printed.
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
        agent: line_of("agent", wanted.agent.as_deref())?,
        host: line_of("host", wanted.host.as_deref())?,
        version: line_of("version", wanted.version.as_deref())?,
        capacity: wanted.capacity.unwrap_or(1),
    };
    call.doors.desk().see(call.station().store(), &seen).await?;
    // Whoever can't repeat the call gets a secret that nobody could guess.
    let repeats = token_of(&call);
    let is_repeatable = repeats.is_some();
    let wants = Waiting { instance: worker, lease, token: repeats.unwrap_or_else(Token::draw) };
    let work = Wanted { plans: plans_of(&wanted, &roles)?, roles };
    let until = clock::instant() + wait;
    let claiming = Claiming { call: &call, wants: &wants, repeats: is_repeatable, until };
    let mut standing = Standing::of(&call);
    let Some(handed) = claiming.claimed(&work).await? else {
        return Ok(nothing());
    };
    if let Err(problem) = standing.still().await {
        handed.give_back().await?;
        return Err(problem);
    }
    let placed = call.station().placed(handed.claimed().clone()).await;
    let view = match placed {
        Ok(claimed) => view(&call, &claimed, lease, wanted.lease_seconds).await,
        Err(error) => Err(error.into()),
    };
    // What can't be shown is not given back: the next claim would come to the same.
    handed.told();
    json(&view?)
}

/// What looking from the front has come to.
enum Looked {
    /// There was something for this place.
    Found(Handed),
    /// There was nothing as long as was to be waited.
    InVain,
    /// Its worker was paused, and is no more: it takes a place anew.
    Resumed,
}

/// One claim, for as long as it waits.
struct Claiming<'a> {
    call: &'a Call,
    wants: &'a Waiting,
    /// Says that the caller can repeat it under its secret.
    repeats: bool,
    until: Instant,
}

impl Claiming<'_> {
    /// Claims as soon as there is something; those who want the same work do so in the order in which they came.
    async fn claimed(&self, work: &Wanted) -> Result<Option<Handed>, Problem> {
        // Says that something may have been claimed under the secret that nobody was told of.
        let mut is_used = self.repeats;
        let line = self.call.doors.desk().lines.line(work);
        loop {
            let mut place = line.join(self.wants.clone(), self.repeats);
            let turn = {
                let mut turn = std::pin::pin!(place.turn());
                match tokio::time::timeout(SOON, turn.as_mut()).await {
                    Ok(turn) => Some(turn),
                    Err(_) => {
                        // What a lost answer held is there for whoever repeats the claim, however many wait in front.
                        if let Some(handed) = self.claimed_before(is_used).await? {
                            return Ok(Some(handed));
                        }
                        tokio::time::timeout_at(self.until, turn).await.ok()
                    }
                }
            };
            return match turn {
                Some(Turn::Served(handed)) => Ok(Some(handed)),
                Some(Turn::InFront(front)) => match self.in_front(&line, is_used, front, place).await? {
                    Looked::Found(handed) => Ok(Some(handed)),
                    Looked::InVain => Ok(None),
                    Looked::Resumed => continue,
                },
                Some(Turn::Lost) => {
                    is_used = true;
                    match self.claimed_before(is_used).await? {
                        Some(handed) => Ok(Some(handed)),
                        None => continue,
                    }
                }
                None => match place.leave().await {
                    Some(handed) => Ok(Some(handed)),
                    None => self.claimed_before(is_used).await,
                },
            };
        }
    }

    /// Looks for all who wait until there is something for this place.
    async fn in_front(
        &self,
        line: &Arc<Line>,
        is_used: bool,
        mut front: Front,
        // Given up before the front is: nobody claims for who has gone.
        mut place: Place<'_>,
    ) -> Result<Looked, Problem> {
        let doors = &self.call.doors;
        let bell = doors.station().store().listen(News::Agents);
        let mut stop = doors.options().stop.clone();
        loop {
            let more;
            (front, more) = line.look(doors, front).await?;
            if let Some(handed) = place.served() {
                return Ok(Looked::Found(handed));
            }
            if more {
                continue;
            }
            if let Some(handed) = self.claimed_before(is_used).await? {
                return Ok(Looked::Found(handed));
            }
            let left = self.until.saturating_duration_since(clock::instant());
            if left.is_zero() || *stop.borrow() {
                return Ok(Looked::InVain);
            }
            if doors.station().store().is_paused(&self.wants.instance).await? {
                // Held back as one that finds nothing, and in nobody's way.
                drop(place);
                drop((front, bell));
                return Ok(if self.resumes().await? { Looked::Resumed } else { Looked::InVain });
            }
            tokio::select! {
                () = bell.rung() => {}
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
                // Where nobody can say stop any more, the timer ends it.
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
    }

    /// Waits until a paused worker may claim again; says whether that came in time.
    async fn resumes(&self) -> Result<bool, Problem> {
        let doors = &self.call.doors;
        let mut stop = doors.options().stop.clone();
        loop {
            let left = self.until.saturating_duration_since(clock::instant());
            if left.is_zero() || *stop.borrow() {
                return Ok(false);
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
            if !doors.station().store().is_paused(&self.wants.instance).await? {
                return Ok(true);
            }
        }
    }

    /// Returns what was claimed under the secret before, where that may be.
    async fn claimed_before(&self, is_used: bool) -> Result<Option<Handed>, Problem> {
        if !is_used {
            return Ok(None);
        }
        let claimed = self.call.station().store().claimed_under(&self.wants.token).await?;
        Ok(claimed.map(|claimed| Handed::new(&self.call.doors, claimed, self.repeats)))
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
fn line_of<'w>(name: &str, said: Option<&'w str>) -> Result<&'w str, Problem> {
    let said = said.unwrap_or_default();
    refuse_long(name, said, LINE_CHARACTERS_MAX)?;
    Ok(said)
}

/// Refuses what a worker says at a length that nobody reads.
fn refuse_long(name: &str, said: &str, most: usize) -> Result<(), Problem> {
    if said.chars().count() <= most {
        return Ok(());
    }
    Err(Problem::new(Code::BadRequest, format!("`{name}` has at most {most} characters")))
}

/// Returns the plans that roles are held to, of those whose work is wanted.
fn plans_of(wanted: &ClaimCall, roles: &[Role]) -> Result<BTreeMap<Role, Vec<Glob>>, Problem> {
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

/// Says whether a lease may last for as long as is asked for; where nothing is asked for, it lasts as long as all do.
fn is_lease(seconds: Option<u64>) -> bool {
    seconds.is_none_or(|seconds| LEASE_SECONDS.contains(&seconds))
}

fn lease_for(call: &Call, seconds: Option<u64>) -> Duration {
    seconds.map_or_else(|| call.station().store().remote_lease(), Duration::from_secs)
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

/// Derives the lease's secret from the request's key, so that a repeated claim finds what the first one got: the answer
/// of a claim holds a secret, which is stored nowhere. Whoever shows no token of theirs, on the socket, has nothing
/// secret but the key, which must be hard to guess then.
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

/// Shows a claimed item whose lease lasts for so long yet: the database's time, at which it ends, is never compared with
/// this machine's (P13).
/// How long was asked for stands in what the holder shows, so that whichever daemon renews the lease gives as much again.
async fn view(
    call: &Call,
    claimed: &Claimed,
    lease: Duration,
    asked_seconds: Option<u64>,
) -> Result<ClaimedView, Problem> {
    let Work::Agent { role, timeout, brief, .. } = &claimed.item.work else {
        return Err(Problem::new(Code::Defect, "an item for agents is for somebody else"));
    };
    let task = claimed.graph.task(&claimed.item.at.node);
    let task = task.ok_or_else(|| Problem::new(Code::Defect, "an item is of no step"))?;
    let station = call.station();
    let settings = &claimed.terms.settings;
    station.refuse_changed_settings(claimed.item.run, &claimed.run_name, settings).await?;
    let settings = RunSettings::parse(settings)?;
    let masks = settings.masks(&station.secrets());
    let told = Told { store: &station.store, plan: &claimed.plan, settings: &settings, masks: &masks };
    let assignment = told.assignment(claimed, task, role, *timeout, brief).await?;
    let context = assignment.context.iter().map(|entry| SubscriptionView {
        reference: entry.source.clone(),
        path: entry.path().map(str::to_owned),
        sha256: entry.bytes.as_deref().map(|bytes| digest_of(bytes).as_str().to_owned()),
    });
    Ok(ClaimedView {
        item: claimed.item.id.as_str().to_owned(),
        generation: claimed.generation,
        token: shown_lease(claimed, asked_seconds),
        lease_until: moment(claimed.lease_until),
        heartbeat_seconds: (lease / HEARTBEATS).as_secs().max(1),
        work: work_item(&assignment, task, role),
        run: assignment.run,
        step: task.step,
        step_title: assignment.step_title,
        node: assignment.node,
        attempt: assignment.attempt,
        attempts_max: assignment.attempts_max,
        role: assignment.role,
        context: context.collect(),
        prompt: assignment.prompt,
        denied: settings.denied(role),
        workspace: PathBuf::from(&claimed.workspace),
        host: claimed.host.clone(),
        deadline: assignment.deadline_at.unwrap_or_else(|| moment(claimed.hard_deadline)),
        deadline_seconds: assignment.deadline.as_secs_f64(),
        budget: LeftView {
            tokens: assignment.budget_tokens,
            usd: assignment.budget_micro_usd.map(|micro| micro as f64 / 1e6),
        },
    })
}

fn shown_lease(claimed: &Claimed, asked_seconds: Option<u64>) -> String {
    let asked = asked_seconds.map_or(String::new(), |seconds| format!(".{seconds}"));
    format!("{LEASE_PREFIX}{}{asked}_{}", claimed.generation, claimed.token.reveal())
}

fn work_item(assignment: &Assignment, task: &Task, role: &Role) -> WorkItem {
    let subscriptions = task.subscriptions.iter().map(|subscription| match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    });
    WorkItem {
        agent_id: role.as_str().to_owned(),
        kind: match task.work {
            WorkKind::Code => "CODE".to_owned(),
            WorkKind::Review => "REVIEW".to_owned(),
        },
        payload: WorkPayload {
            plan_id: assignment.plan.clone(),
            step: task.step,
            subscriptions: subscriptions.collect(),
            profile: ProfileView::of(assignment.profile.as_ref(), assignment.thread.as_deref()),
        },
        input: WorkInput { prompt: assignment.prompt.clone() },
    }
}

/// What the holder of an item shows.
struct Lease {
    item: ItemId,
    run: RunId,
    at: At,
    generation: i64,
    /// How long its claim wanted it to last, where it said so.
    asked_seconds: Option<u64>,
    token: Token,
}

impl Lease {
    /// Reads the item of the path and the bearer's secret; anything that does not fit is simply not there (row 69).
    fn of(call: &Call) -> Result<Lease, Problem> {
        let item = ItemId::new(call.parameter("item"));
        let secret = call.principal.secret.as_deref().filter(|_| call.principal.scope == Scope::Item);
        let shown = secret.and_then(|secret| secret.strip_prefix(LEASE_PREFIX)?.split_once('_'));
        let read = shown.and_then(|(generation, digits)| {
            let (run, at) = item.agent_try()?;
            let (generation, asked_seconds) = match generation.split_once('.') {
                Some((generation, seconds)) => (generation, Some(seconds.parse().ok()?)),
                None => (generation, None),
            };
            let generation = generation.parse().ok().filter(|_| is_lease(asked_seconds))?;
            Some((run, at, generation, asked_seconds, Token::parse(digits)?))
        });
        let (run, at, generation, asked_seconds, token) = read.ok_or_else(not_there)?;
        Ok(Lease { item, run, at, generation, asked_seconds, token })
    }

    /// Says something of the work; the gate that follows is taken along where this process has room for it.
    async fn say(&self, call: &Call, said: AgentSaid) -> Result<bool, Problem> {
        let station = call.station();
        let slots = call.doors.options().slots.as_ref().filter(|_| matches!(said, AgentSaid::Reported(_)));
        let room = match slots {
            Some(slots) => slots.room_soon(self.run).await,
            None => None,
        };
        let take = match &room {
            Some(_) => Some(Take { holder: station.holder()?, lease: station.store.own_lease() }),
            None => None,
        };
        let said = masked(&self.masks(call).await?, self.priced(call, said).await?, &mut [])?;
        let event = Event::Agent(AgentEvent::new(self.at.clone(), said));
        let proof =
            Proof::Lease { item: self.item.clone(), generation: self.generation, token: self.token.clone() };
        match station.store.apply(self.run, &event, &proof, take.as_ref()).await {
            Ok(applied) => {
                call.doors.desk().printed().forget(&self.item);
                if let (Some(slots), Some(room), Some(claimed)) = (slots, room, applied.taken) {
                    slots.hand(TakenGate { claimed, room });
                }
                Ok(applied.duplicate)
            }
            Err(StoreError::StaleLease | StoreError::Refused(_)) => Err(self.lost(call).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// Renews the lease and waits for as long as it is held, but no longer than to the next heartbeat; where it ends meanwhile,
    /// says so at once. The wait itself renews nothing: its caller may be gone.
    async fn renewed(&self, call: &Call, wait: Duration) -> Result<Renewal, Problem> {
        let store = &call.station().store;
        let lasts = lease_for(call, self.asked_seconds);
        let renew = async || store.renew_by(&self.item, self.generation, &self.token, lasts).await;
        let (bell, until) =
            (store.listen_to_revocations(self.run), clock::instant() + wait.min(lasts / HEARTBEATS));
        let mut stop = call.doors.options().stop.clone();
        let renewal = renew().await?;
        if !matches!(renewal, Renewal::Held { is_over: false, .. }) {
            return Ok(renewal);
        }
        loop {
            let left = until.saturating_duration_since(clock::instant());
            if left.is_zero() || *stop.borrow() {
                return Ok(renewal);
            }
            tokio::select! {
                () = bell.rung() => {}
                () = tokio::time::sleep(left.min(BEAT_LOOKS_AGAIN)) => {}
                // Where nobody can say stop any more, the timer ends it.
                _ = stop.wait_for(|stop| *stop) => {}
            }
            if !store.is_held(&self.item, self.generation, &self.token).await? {
                return Ok(renew().await?);
            }
        }
    }

    /// Takes how long the worker says that it worked; where it says nothing, the time since the claim.
    async fn worked(&self, call: &Call, seconds: Option<f64>) -> Result<Duration, Problem> {
        match seconds {
            Some(seconds) => Ok(calls::duration("seconds", seconds)?),
            None => {
                let held = call.station().store.held_for(&self.item, self.generation, &self.token).await?;
                // Of a lease that is over nobody knows any more; what is said then changes nothing.
                Ok(held.unwrap_or_default())
            }
        }
    }

    /// Works out the money of what was used, where the worker names its model and not the money.
    async fn priced(&self, call: &Call, said: AgentSaid) -> Result<AgentSaid, Problem> {
        if !said.usage().is_some_and(|usage| usage.micro_usd.is_none() && usage.model.is_some()) {
            return Ok(said);
        }
        let row = call.station().store.run(self.run).await?;
        Ok(RunSettings::of(&row)?.priced(said))
    }

    /// Says that there is no run of which the item could have been.
    async fn is_of_no_run(&self, call: &Call) -> Result<bool, Problem> {
        match call.station().store.run(self.run).await {
            Ok(_) => Ok(false),
            Err(StoreError::NotFound { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what is masked in what the worker says. Where no value was ever kept there is nothing to look up.
    async fn masks(&self, call: &Call) -> Result<Masks, Problem> {
        let secrets = call.station().secrets();
        if secrets.is_empty() {
            return Ok(Masks::default());
        }
        Ok(RunSettings::of(&call.station().store.run(self.run).await?)?.masks(&secrets))
    }

    /// Returns what history holds of a text; the rest is stored apart, as long as the lease is held: anybody can make up a
    /// bearer's secret, and what comes under none is refused later.
    async fn kept(&self, call: &Call, text: &str) -> Result<Excerpt, Problem> {
        let (excerpt, outputs) = excerpt_of(&self.masks(call).await?.text(text));
        let store = &call.station().store;
        for output in &outputs {
            let (digest, bytes) = (&output.digest, &output.bytes);
            store.put_output_under(&self.item, self.generation, &self.token, digest, bytes).await?;
        }
        Ok(excerpt)
    }

    /// Says why a lease is none: it was lost, or there never was one.
    async fn lost(&self, call: &Call) -> Result<Problem, Problem> {
        let leased = call.station().store.leased(&self.item, self.generation, &self.token).await?;
        if self.is_of_no_run(call).await? {
            return Ok(not_there());
        }
        Ok(match leased {
            Leased::Unknown => not_there(),
            Leased::Held(_) | Leased::Lost => {
                Problem::new(Code::LeaseLost, "the lease is over: stop working, nobody waits for this report")
            }
        })
    }
}

fn not_there() -> Problem {
    Problem::new(Code::NotFound, "there is no such item for this token")
}

pub(super) async fn show(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let store = &call.station().store;
    match store.leased(&lease.item, lease.generation, &lease.token).await? {
        Leased::Held(claimed) => {
            let left = claimed.lease_until.as_micros() - store.now().await?.as_micros();
            let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
            json(&view(&call, &claimed, left, lease.asked_seconds).await?)
        }
        Leased::Lost => Err(Problem::new(Code::LeaseLost, "the lease is over: stop working")),
        Leased::Unknown => Err(not_there()),
    }
}

pub(super) async fn heartbeat(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let _: Nothing = call.body()?;
    let wait = Duration::from_secs(call.number(&WAIT)?.unwrap_or(0));
    match lease.renewed(&call, wait).await? {
        Renewal::Held { lease_until, is_over } => {
            json(&HeartbeatView { lease_until: Some(moment(lease_until)), cancel: is_over })
        }
        Renewal::Cancelled => json(&HeartbeatView { lease_until: None, cancel: true }),
        Renewal::Lost => Err(lease.lost(&call).await?),
    }
}

/// The longest step that a worker proposes.
const PROPOSAL_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn complete(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: CompleteCall = call.body()?;
    if said.insert_step.as_ref().is_some_and(|step| step.len() > PROPOSAL_BYTES_MAX) {
        return Err(Problem::new(Code::BadRequest, "`insert_step` is longer than 16 KiB")
            .help("propose one step; what is long belongs into a file that it names"));
    }
    let text = lease.kept(&call, &said.text).await?;
    let hints = said.hints();
    let report = Report {
        text,
        gave_up: said.gave_up,
        ending: said.exit_code.map(|code| Ending::Exited { code }),
        duration: lease.worked(&call, said.seconds).await?,
        usage: used(said.usage)?,
        hints,
    };
    accepted(&lease, lease.say(&call, AgentSaid::Reported(report)).await?, "the contract is checked")
}

pub(super) async fn fail(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: FailCall = call.body()?;
    let usage = used(said.usage)?;
    let duration = lease.worked(&call, said.seconds).await?;
    let message = said.reason.chars().take(2000).collect();
    let fault = |kind| AgentSaid::Faulted(Fault { kind, message, usage: usage.clone() });
    let overran = |past| AgentSaid::Overran { past, duration, usage: usage.clone() };
    let (event, follows) = match said.kind {
        FailKind::GaveUp => {
            let text = lease.kept(&call, &said.reason).await?;
            let report =
                Report { text, gave_up: true, ending: None, duration, usage: usage.clone(), hints: None };
            (AgentSaid::Reported(report), "the contract is checked; if it fails there is no retry")
        }
        FailKind::Transient => (fault(FaultKind::Transient), "it is tried again later"),
        FailKind::Permission => (fault(FaultKind::Permission), "a person is asked"),
        FailKind::Overran => (overran(Overrun::Deadline), "the attempt is spent"),
        FailKind::Silent => (overran(Overrun::Silence), "the attempt is spent"),
    };
    accepted(&lease, lease.say(&call, event).await?, follows)
}

pub(super) async fn ask(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: AskCall = call.body()?;
    if said.question.trim().is_empty() {
        return Err(Problem::new(Code::BadRequest, "`question` is empty"));
    }
    refuse_long("question", &said.question, QUESTION_CHARACTERS_MAX)?;
    let usage = used(said.usage)?;
    let asked = AgentSaid::Asked { question: said.question, usage };
    accepted(&lease, lease.say(&call, asked).await?, "a person is asked; this worker is free")
}

pub(super) async fn release(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let _: Nothing = call.body()?;
    accepted(&lease, lease.say(&call, AgentSaid::Released).await?, "somebody else can claim it")
}

pub(super) async fn log(call: Call) -> Answer {
    let lease = held(&call).await?;
    let said: LogCall = call.body()?;
    let text = lease.masks(&call).await?.text(&said.text).into_owned();
    call.doors.desk().printed().add(&lease.item, lease.generation, &text);
    Ok(nothing())
}

pub(super) async fn usage(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: UsageCall = call.body()?;
    let mut usage = said.usage()?;
    let store = &call.station().store;
    if usage.micro_usd.is_none() && usage.model.is_some() {
        RunSettings::of(&store.run(lease.run).await?)?.price(&mut usage);
    }
    if store.note_usage(&lease.item, lease.generation, &lease.token, &usage).await? {
        Ok(nothing())
    } else {
        Err(lease.lost(&call).await?)
    }
}

/// Returns the lease where it is held right now.
async fn held(call: &Call) -> Result<Lease, Problem> {
    let lease = Lease::of(call)?;
    match call.station().store.leased(&lease.item, lease.generation, &lease.token).await? {
        Leased::Held(_) => Ok(lease),
        Leased::Lost => Err(Problem::new(Code::LeaseLost, "the lease is over: stop working")),
        Leased::Unknown => Err(not_there()),
    }
}

/// Refuses whoever shows no token of the item, before what they send is taken in; only for what is long it is looked up.
pub(super) async fn refuse_strangers(call: &Call, is_long: bool) -> Result<(), Problem> {
    let lease = Lease::of(call)?;
    if !is_long {
        return Ok(());
    }
    match call.station().store.leased(&lease.item, lease.generation, &lease.token).await? {
        // What comes too late is told so by its route, which keeps it.
        Leased::Held(_) | Leased::Lost => Ok(()),
        Leased::Unknown => Err(not_there()),
    }
}

fn accepted(lease: &Lease, repeated: bool, follows: &str) -> Result<Response, Problem> {
    json(&AcceptedView { item: lease.item.as_str().to_owned(), follows: follows.to_owned(), repeated })
}

/// Takes what the call says was used; where it says nothing, what the worker said while it worked stands with its lease.
fn used(said: Option<UsageCall>) -> Result<Option<Usage>, Problem> {
    said.map(|said| said.usage()).transpose()
}

impl UsageCall {
    fn usage(&self) -> Result<Usage, Problem> {
        let micro_usd = self.cost_usd.map(|cost| calls::micro_usd("cost_usd", cost)).transpose()?;
        refuse_long("usage.model", self.model.as_deref().unwrap_or_default(), LINE_CHARACTERS_MAX)?;
        Ok(Usage {
            input_tokens: self.input_tokens,
            cached_input_tokens: self.cached_input_tokens,
            output_tokens: self.output_tokens,
            micro_usd,
            model: self.model.clone(),
            estimated: self.estimated,
        })
    }
}
