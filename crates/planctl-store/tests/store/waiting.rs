//! Workers that wait in a process: a transition leases the work that it sends out to one of them, in the same transaction.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use planctl_engine::{Decision, Graph, GraphParts, NodeKind, Role, RunId, Work};
use planctl_store::{
    Claim, ClaimLane, ClaimRequest, Claimed, News, SeenWorker, ServedRole, Store, StoreError, Token,
    WaitingWorker, WaitingWorkers,
};
use sqlx::Executor as _;

use crate::days::{allows, is_spent, limit, tell, used};
use crate::outage::{Proxy, through};
use crate::withdrawn::locking;
use crate::world::{
    HOST, World, await_locks, await_that, evaluated, hold_run, holder, human, linear, person, released,
    reported, world, world_of,
};

/// Workers that wait for the work of a role in the plans of a path.
#[derive(Default)]
struct Waits {
    waiting: Mutex<VecDeque<ClaimRequest>>,
    served: Mutex<Vec<Claimed>>,
    put_back: Mutex<usize>,
}

struct Shared(Arc<Waits>);

impl WaitingWorkers for Shared {
    fn take(&self, role: &Role, plan: &str) -> Option<Box<dyn WaitingWorker>> {
        assert_eq!(role.as_str(), "coder");
        assert!(["fix-auth.md", "p.md"].contains(&plan), "{plan}");
        let request = self.0.waiting.lock().unwrap().pop_front()?;
        Some(Box::new(Taken { of: self.0.clone(), request, is_served: Mutex::new(false) }))
    }
}

struct Taken {
    of: Arc<Waits>,
    request: ClaimRequest,
    is_served: Mutex<bool>,
}

impl WaitingWorker for Taken {
    fn request(&self) -> &ClaimRequest {
        &self.request
    }

    fn serve(&self, claimed: Claimed) {
        *self.is_served.lock().unwrap() = true;
        self.of.served.lock().unwrap().push(claimed);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !*self.is_served.lock().unwrap() {
            *self.of.put_back.lock().unwrap() += 1;
            self.of.waiting.lock().unwrap().push_front(self.request.clone());
        }
    }
}

impl Shared {
    /// Has workers of these names wait for the transitions of a store.
    fn at(store: &Store, host: &str, names: &[&str]) -> Arc<Shared> {
        let waits = Waits::default();
        let request = |name: &&str| ClaimRequest {
            instance: (*name).to_owned(),
            lease: Duration::from_secs(60),
            token: Token::generate(),
        };
        waits.waiting.lock().unwrap().extend(names.iter().map(request));
        let shared = Arc::new(Shared(Arc::new(waits)));
        let workers = Arc::downgrade(&shared);
        store.serve_waiting(host, workers);
        shared
    }

    fn served(&self) -> Vec<Claimed> {
        std::mem::take(&mut *self.0.served.lock().unwrap())
    }

    /// Returns how many wait, and how often one was taken in vain.
    fn waiting(&self) -> (usize, usize) {
        (self.0.waiting.lock().unwrap().len(), *self.0.put_back.lock().unwrap())
    }
}

fn any_of(instance: &str) -> Claim {
    Claim {
        lane: ClaimLane::Agent(vec![Role::new("coder")]),
        run: None,
        except: Vec::new(),
        holder: holder(instance),
        lease: Duration::from_secs(60),
    }
}

async fn notified(world: &World, run: RunId) -> bool {
    let agents = world.store.listen(News::Agents);
    world.step(run, 0).await;
    tokio::time::timeout(Duration::ZERO, agents.notified()).await.is_ok()
}

#[tokio::test]
async fn the_next_work_is_leased_with_the_verdict_to_one_who_waits_for_it() {
    let world = world(3).await;
    let run = world.begun().await.id;
    let waits = Shared::at(&world.store, HOST, &["first", "second"]);
    assert!(!notified(&world, run).await, "there is nothing for anybody else");
    let work = waits.served().pop().expect("the second step's work");
    assert_eq!(waits.waiting(), (1, 0));
    assert!(matches!(work.item.work, Work::Agent { .. }));
    let is_at_once = "select bool_and(i.xmin = r.xmin and i.instance = 'first' and not i.own and i.generation = 1 \
        and i.hard_deadline > now() + interval '1 minute') from items i join runs r on r.id = i.run";
    let is_at_once: bool = sqlx::query_scalar(is_at_once).fetch_one(&mut world.aside().await).await.unwrap();
    assert!(is_at_once, "one transaction wrote the run and the lease");
    assert!(world.claim(run, "another").await.is_none());
    let applied = world.store.apply(run, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    assert!(applied.claimed_next.is_none());
    world.assert_sound(run).await;
}

#[tokio::test]
async fn work_that_is_given_back_goes_to_the_next_who_waits_under_a_lease_of_its_own() {
    let world = world(1).await;
    let run = world.begun().await.id;
    let held = world.claim(run, "holder").await.unwrap();
    let waits = Shared::at(&world.store, HOST, &["next"]);
    world.store.apply(run, &released(&held.item.at), &held.proof(), None).await.unwrap();
    let work = waits.served().pop().unwrap();
    assert_eq!((work.item.at.clone(), work.generation), (held.item.at.clone(), held.generation + 1));
    let late = world.store.apply(run, &reported(&held.item.at), &held.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    world.store.apply(run, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    world.assert_sound(run).await;
}

#[tokio::test]
async fn a_paused_worker_is_leased_nothing_and_the_work_is_for_others() {
    let world = world(2).await;
    let run = world.begun().await.id;
    let roles = [Role::new("coder")];
    let seen = SeenWorker { id: "paused", roles: &roles, agent: "", host: HOST, version: "", capacity: 1 };
    world.store.record_worker_seen(&seen).await.unwrap();
    world.store.pause_worker("paused", true).await.unwrap();
    let waits = Shared::at(&world.store, HOST, &["paused"]);
    assert!(notified(&world, run).await, "others are woken");
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 1)));
    assert!(world.claim(run, "another").await.is_some());
}

#[tokio::test]
async fn work_that_a_run_serves_itself_is_leased_to_nobody_who_waits() {
    let world = world(2).await;
    let run = world.begun().await.id;
    let gate = world.gate(run).await;
    world.store.set_run_settings(run, "{}", &[ServedRole::One(Role::new("coder"))]).await.unwrap();
    let waits = Shared::at(&world.store, HOST, &["remote"]);
    world.store.apply(run, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 1)));
}

#[tokio::test]
async fn work_that_needs_locks_or_is_in_a_workspace_elsewhere_is_left_to_be_claimed() {
    let world = world_of(locking()).await;
    let run = world.queued().await.id;
    let waits = Shared::at(&world.store, HOST, &["here"]);
    world.admit(run).await.unwrap();
    assert_eq!(waits.waiting(), (1, 0), "locks are taken by a claim");
    assert!(world.claim(run, "another").await.is_some());

    let world = world_of(linear(1)).await;
    let run = world.queued().await.id;
    let waits = Shared::at(&world.store, "host-elsewhere", &["there"]);
    world.admit(run).await.unwrap();
    assert_eq!(waits.waiting(), (1, 0));
    assert!(world.claim(run, "another").await.is_some());
}

/// The work that waited for the lock is due before the work that is sent out.
#[tokio::test]
async fn work_that_is_sent_out_as_a_lock_is_given_back_is_left_to_be_claimed() {
    let mut parts = GraphParts::from(linear(2));
    if let NodeKind::Task(task) =
        &mut parts.nodes.iter_mut().find(|node| node.id.as_str() == "1").unwrap().kind
    {
        task.locks = vec!["port".to_owned()];
    }
    let world = world_of(Graph::new(parts).unwrap()).await;
    let first = world.begun().await.id;
    let gate = world.gate(first).await;
    let second = world.begun_at("/two", &locking()).await.id;
    let waits = Shared::at(&world.store, HOST, &["waits"]);
    world.store.apply(first, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 0)));
    assert_eq!(world.store.claim(&any_of("waits")).await.unwrap().unwrap().item.run, second);
}

#[tokio::test]
async fn p15_work_that_the_budget_of_the_day_holds_back_is_leased_to_one_who_waits_once_the_day_allows_it() {
    let world = world(1).await;
    let run = world.begun().await.id;
    let held = world.claim(run, "holder").await.unwrap();
    limit(&world, run, r#"{"project": {"tokens": 1000}, "zone": "UTC"}"#).await;
    used(&world, 1000).await;
    let waits = Shared::at(&world.store, HOST, &["waits"]);
    world.store.apply(run, &released(&held.item.at), &held.proof(), None).await.unwrap();
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 1)));
    assert!(is_spent(&tell(&world.store).await));
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 1)));
    sqlx::query("update used set quarter = quarter - interval '1 day'")
        .execute(&mut world.aside().await)
        .await
        .unwrap();
    assert!(allows(&tell(&world.store).await));
    let work = waits.served().pop().expect("the day allows it");
    let late = world.store.apply(run, &reported(&held.item.at), &held.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    world.store.apply(run, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    world.assert_sound(run).await;
}

/// A worker that was taken back may still write in the workspace.
#[tokio::test]
async fn nothing_is_leased_beside_a_holder_whose_lease_was_revoked() {
    let world = world(2).await;
    let run = world.begun().await.id;
    let gate = world.gate(run).await;
    let revoked = "insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, \
          span_micros, generation, token_hash, lease_until, hard_deadline, created_at, home) \
        select 'revoked', run, 'other', 1, 1, 'agent', 'coder', 'withdrawn', work, available_at, due_at, \
          span_micros, 1, token_hash || '1'::bytea, lease_until, hard_deadline, created_at, home from items";
    world.aside().await.execute(revoked).await.unwrap();
    let waits = Shared::at(&world.store, HOST, &["next"]);
    world.store.apply(run, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 1)));
}

#[tokio::test]
async fn one_who_was_taken_for_a_transition_that_came_too_late_waits_on() {
    let world = world(2).await;
    let run = world.begun().await.id;
    let gate = world.gate(run).await;
    let waits = Shared::at(&world.store, HOST, &["waits"]);
    let (mut aside, mut looking) = (world.aside().await, world.aside().await);
    let held = hold_run(&mut aside, run).await;
    let store = world.store.clone();
    let cancel =
        tokio::spawn(async move { store.apply(run, &human(Decision::Cancel), &person(None), None).await });
    await_locks(&mut looking, 1).await;
    let (store, event, proof) = (world.store.clone(), evaluated(&gate.item.at, 0), gate.proof());
    let verdict = tokio::spawn(async move { store.apply(run, &event, &proof, None).await });
    await_that(async || waits.waiting().0 == 0).await;
    held.rollback().await.unwrap();
    cancel.await.unwrap().unwrap();
    let verdict = verdict.await.unwrap();
    assert!(matches!(verdict, Err(StoreError::StaleLease)), "{verdict:?}");
    assert_eq!((waits.served().len(), waits.waiting().0), (0, 1));
    world.assert_sound(run).await;
}

#[tokio::test]
async fn p2_one_who_waits_is_served_once_whichever_answer_of_the_verdict_is_lost() {
    let mut world = world(2).await;
    let direct = world.store.clone();
    let proxy = Proxy::before(&world.database.connect_options()).await;
    let (mut nth, mut served_after_loss) = (0, 0);
    loop {
        nth += 1;
        world.store = direct.clone();
        let run = world.begun().await.id;
        let gate = world.gate(run).await;
        world.store = through(&proxy, world.database.connect_options()).await;
        let waits = Shared::at(&world.store, HOST, &["waits"]);
        proxy.swallow(nth);
        world.store.apply(run, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
        let is_swallowed = proxy.has_swallowed();
        proxy.swallow(0);
        let work = match waits.served().pop() {
            Some(work) => {
                served_after_loss += usize::from(is_swallowed);
                work
            }
            // While it was unknown whether the verdict was written, nobody else could have it that waits.
            None => {
                assert!(is_swallowed && waits.waiting().0 == 1, "answer {nth}: it waits on");
                direct.claim(&any_of("waits")).await.unwrap().expect("nobody has the work")
            }
        };
        assert_eq!(work.item.run, run, "answer {nth}");
        direct.apply(run, &reported(&work.item.at), &work.proof(), None).await.unwrap();
        world.assert_sound(run).await;
        direct.apply(run, &human(Decision::Cancel), &person(None), None).await.unwrap();
        if !is_swallowed {
            break;
        }
    }
    assert!(served_after_loss > 0, "the answer of the commit was lost, and the lease was found");
}

/// A commit that was on its way may have leased something to one who waits on.
#[tokio::test]
async fn one_who_has_a_lease_already_is_leased_nothing_else_under_its_secret() {
    let world = world(2).await;
    let (first, second) = (world.begun().await.id, world.begun_at("/two", &linear(2)).await.id);
    let waits = Shared::at(&world.store, HOST, &["waits"]);
    let request = waits.0.waiting.lock().unwrap()[0].clone();
    let lost = world.store.claim_under(&any_of("waits"), request.token.clone()).await.unwrap().unwrap();
    let other = if lost.item.run == first { second } else { first };
    assert!(notified(&world, other).await, "the work is for others");
    assert_eq!((waits.served().len(), waits.waiting()), (0, (1, 1)));
    let found = world.store.claim_of_token(&request.token).await.unwrap().unwrap();
    assert_eq!(found.item.id, lost.item.id);
    world.assert_sound(other).await;
}
