//! Items withdrawn while a worker holds them: their work goes to nobody else until the worker has ended.

use std::time::Duration;

use planctl_engine::{Answer, Decision, End, Graph, GraphParts, NodeKind, RunId, RunStatus};
use planctl_store::{Ahead, Applied, Proof, StoreError};

use crate::world::{World, await_lock, hold_run, human, linear, person, released, reported, world, world_of};

const LONG: Duration = Duration::from_secs(60);

async fn cancelled(world: &World, run: RunId) -> Applied {
    world.store.apply(run, &human(Decision::Cancel), &person(None), None).await.unwrap()
}

async fn begun(world: &World) -> RunId {
    let run = world.queued().await.id;
    world.store.admit_run(run).await.unwrap();
    run
}

/// Says whether a run has to wait, whichever way it asks for its workspace.
async fn is_kept_out(world: &World, run: RunId, by: &str) -> bool {
    let ahead = Ahead { run: by.to_owned(), is_ending: true };
    let waits = world.store.waits_for(run).await.unwrap() == Some(ahead);
    for outcome in [world.store.admit_run(run).await, world.admit(run).await.map(drop)] {
        if !matches!(&outcome, Err(StoreError::WorkspaceBusy { run }) if run == by) {
            panic!("it was to be kept out by {by}, as it says it is ({waits}): {outcome:?}");
        }
    }
    waits
}

#[tokio::test]
async fn a_cancelled_run_has_its_workspace_until_its_worker_says_that_it_ended() {
    let world = world(1).await;
    let first = world.begun().await;
    let work = world.claim_for(first.id, "slow", LONG).await.unwrap();
    let second = world.queued().await;
    cancelled(&world, first.id).await;
    assert!(is_kept_out(&world, second.id, &first.name).await);
    // Another one that is not over by now would be kept out, too.
    let third = world.queued().await;
    assert!(matches!(world.store.admit_run(third.id).await, Err(StoreError::WorkspaceBusy { .. })));
    assert!(world.store.run_view(first.id).await.unwrap().items.is_empty());
    world.assert_sound(first.id).await;
    let other = planctl_store::Token::generate();
    world.store.acknowledge_with_token(&work.item.id, work.generation, &other).await.unwrap();
    assert!(is_kept_out(&world, second.id, &first.name).await, "its secret says who ended");
    let late = world.store.apply(first.id, &reported(&work.item.at), &work.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    assert_eq!(world.store.waits_for(second.id).await.unwrap(), None);
    world.store.admit_run(second.id).await.unwrap();
    world.assert_sound(first.id).await;
    world.assert_sound(second.id).await;
}

#[tokio::test]
async fn a_vanished_worker_keeps_the_workspace_until_its_lease_is_over() {
    let world = world(1).await;
    let first = world.begun().await;
    world.claim_for(first.id, "gone", LONG).await.unwrap();
    let second = world.queued().await;
    cancelled(&world, first.id).await;
    world.store.release_lost("elsewhere", &["gone".to_owned()]).await.unwrap();
    assert!(is_kept_out(&world, second.id, &first.name).await);
    let mut aside = world.aside().await;
    sqlx::query("update items set lease_until = clock_timestamp()").execute(&mut aside).await.unwrap();
    world.store.release_lost("elsewhere", &[]).await.unwrap();
    world.store.admit_run(second.id).await.unwrap();
    world.assert_sound(first.id).await;
}

#[tokio::test]
async fn a_dead_process_of_ours_keeps_no_workspace() {
    let world = world(1).await;
    let first = world.begun().await;
    world.claim_for(first.id, "gone", LONG).await.unwrap();
    let second = world.queued().await;
    cancelled(&world, first.id).await;
    let holders = world.store.holders(crate::world::HOST).await.unwrap();
    assert_eq!(holders, [("boot".to_owned(), "gone".to_owned())]);
    world.store.release_lost(crate::world::HOST, &["gone".to_owned()]).await.unwrap();
    world.store.admit_run(second.id).await.unwrap();
}

#[tokio::test]
async fn a_claim_while_its_cancellation_is_written_keeps_the_workspace() {
    let world = world(1).await;
    let first = begun(&world).await;
    let name = world.store.run(first).await.unwrap().name;
    let second = world.queued().await.id;
    let (mut holder, mut aside) = (world.aside().await, world.aside().await);
    let held = hold_run(&mut holder, first).await;
    let store = world.store.clone();
    let cancelling =
        tokio::spawn(async move { store.apply(first, &human(Decision::Cancel), &person(None), None).await });
    await_lock(&mut aside).await;
    let work = world.claim_for(first, "quick", LONG).await.expect("nobody has cancelled it yet");
    held.rollback().await.unwrap();
    cancelling.await.unwrap().unwrap();
    assert!(is_kept_out(&world, second, &name).await);
    world.store.acknowledge(&work).await.unwrap();
    world.store.admit_run(second).await.unwrap();
    world.assert_sound(first).await;
}

/// A run of one step that somebody works on, and that stands still for too long.
async fn still(graph: Graph) -> (World, planctl_store::RunRow, planctl_store::Claimed) {
    let mut parts = GraphParts::from(graph);
    parts.limits.stale_after = Some(Duration::from_micros(1));
    let world = world_of(Graph::new(parts).unwrap()).await;
    let run = world.begun().await;
    let work = world.claim_for(run.id, "slow", LONG).await.unwrap();
    (world, run, work)
}

/// Takes the work of such a run back, so that a person is asked.
async fn taken_back(world: &World, run: RunId) {
    let due = loop {
        if let Some(Ok(due)) = world.store.due_timers(&[], 1).await.unwrap().pop() {
            break due;
        }
    };
    world.store.apply(run, &due.event(), &Proof::Clock, None).await.unwrap();
}

async fn stale(graph: Graph) -> (World, planctl_store::RunRow, planctl_store::Claimed) {
    let (world, run, work) = still(graph).await;
    taken_back(&world, run.id).await;
    (world, run, work)
}

async fn answered(world: &World, run: RunId, answer: Answer) -> Applied {
    let ask = world.store.asks(Some(run), None).await.unwrap().remove(0);
    let event = human(Decision::Answer { item: ask.item, answer });
    world.store.apply(run, &event, &person(None), None).await.unwrap()
}

#[tokio::test]
async fn the_next_attempt_waits_for_the_end_of_the_one_that_was_taken_back() {
    let (world, run, work) = stale(linear(1)).await;
    answered(&world, run.id, Answer::Retry).await;
    assert!(world.store.runs_held_back(&[run.id]).await.unwrap().contains(&run.id));
    assert!(world.claim(run.id, "next").await.is_none());
    world.store.acknowledge(&work).await.unwrap();
    let next = world.claim(run.id, "next").await.unwrap();
    assert_eq!(next.item.at.attempt, work.item.at.attempt.next());
    world.store.apply(run.id, &released(&next.item.at), &next.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_claim_that_began_before_work_was_taken_back_waits_for_its_holder_too() {
    let (world, run, work) = still(linear(1)).await;
    let (mut holder, mut aside) = (world.aside().await, world.aside().await);
    // A claim looks for revoked holders, and then whether its claimant is paused: there it stops.
    sqlx::query("begin").execute(&mut holder).await.unwrap();
    sqlx::query("lock table workers in access exclusive mode").execute(&mut holder).await.unwrap();
    let (early, ()) = tokio::join!(world.claim(run.id, "next"), async {
        await_lock(&mut aside).await;
        taken_back(&world, run.id).await;
        answered(&world, run.id, Answer::Retry).await;
        sqlx::query("rollback").execute(&mut holder).await.unwrap();
    });
    assert!(early.is_none(), "the holder of the attempt before is at work");
    world.store.acknowledge(&work).await.unwrap();
    assert!(world.claim(run.id, "next").await.is_some());
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_run_that_is_taken_up_waits_for_the_end_of_its_own_worker() {
    let (world, run, work) = stale(linear(1)).await;
    let applied = answered(&world, run.id, Answer::Abort).await;
    assert_eq!(applied.head.status, RunStatus::Ended { end: End::Aborted });
    world.store.apply(run.id, &human(Decision::Resume { from: None }), &person(None), None).await.unwrap();
    assert!(is_kept_out(&world, run.id, &run.name).await);
    world.store.acknowledge(&work).await.unwrap();
    world.store.admit_run(run.id).await.unwrap();
    assert!(world.claim(run.id, "next").await.is_some());
    world.assert_sound(run.id).await;
}

/// A plan of one step that has a lock to itself.
pub fn locking() -> Graph {
    let mut parts = GraphParts::from(linear(1));
    for node in &mut parts.nodes {
        if let NodeKind::Task(task) = &mut node.kind {
            task.locks = vec!["port".to_owned()];
        }
    }
    Graph::new(parts).unwrap()
}

#[tokio::test]
async fn a_lock_is_kept_until_its_holder_has_ended() {
    let graph = locking();
    let world = world_of(graph.clone()).await;
    let first = world.begun().await;
    let work = world.claim_for(first.id, "slow", LONG).await.unwrap();
    let second = world.begun_at("/elsewhere", &graph).await;
    assert!(world.claim(second.id, "other").await.is_none(), "the lock is taken");
    cancelled(&world, first.id).await;
    assert!(world.claim(second.id, "other").await.is_none(), "its holder may still use what it stands for");
    world.store.acknowledge(&work).await.unwrap();
    assert!(world.claim(second.id, "other").await.is_some());
    world.assert_sound(first.id).await;
}

/// Finding B4: the work is taken back by one transition, and the node settles by a later one.
#[tokio::test]
async fn b4_a_lock_is_kept_where_a_person_skips_the_step_whose_holder_has_not_ended() {
    let (world, run, work) = stale(locking()).await;
    let second = world.begun_at("/elsewhere", &locking()).await;
    assert!(world.claim(second.id, "other").await.is_none(), "the lock is taken");
    answered(&world, run.id, Answer::Skip).await;
    assert!(world.claim(second.id, "other").await.is_none(), "its holder may still use what it stands for");
    world.store.acknowledge(&work).await.unwrap();
    assert!(world.claim(second.id, "other").await.is_some());
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_rehearsal_of_a_step_does_not_run_beside_the_work_that_has_its_lock() {
    let world = world_of(locking()).await;
    let first = world.begun().await;
    let work = world.claim_for(first.id, "slow", LONG).await.unwrap();
    let mut parts = GraphParts::from(crate::world::linear_with(
        1,
        planctl_engine::Budget::default(),
        planctl_engine::RedFirst::Warn,
    ));
    for node in &mut parts.nodes {
        if let NodeKind::Task(task) = &mut node.kind {
            task.locks = vec!["port".to_owned()];
        }
    }
    let second = world.begun_at("/elsewhere", &Graph::new(parts).unwrap()).await;
    let claim = planctl_store::Claim {
        lane: planctl_store::ClaimLane::Gate,
        run: Some(second.id),
        except: Vec::new(),
        holder: crate::world::holder("gate"),
        lease: LONG,
    };
    let rehearsal = world.store.claim(&claim).await.unwrap();
    assert!(rehearsal.is_none(), "{:?}", rehearsal.map(|claimed| claimed.item.id));
    cancelled(&world, first.id).await;
    world.store.acknowledge(&work).await.unwrap();
    assert!(world.store.claim(&claim).await.unwrap().is_some(), "the lock is free");
}

#[tokio::test]
async fn a_report_claims_no_gate_beside_a_revoked_holder_of_an_earlier_transition() {
    use planctl_engine::{Edge, Fork, Join, JoinPolicy, Node, On, RedFirst};
    let mut parts = GraphParts::from(linear(1));
    let task =
        |id: &str, step| Node::new(id, id, NodeKind::Task(Box::new(crate::world::task(step, RedFirst::Off))));
    let fork = |join: &str| NodeKind::Fork(Fork { join: Some(join.into()), max: None, in_worktree: false });
    let join = |policy| NodeKind::Join(Join { policy, partial: false });
    parts.nodes = vec![
        Node::new("start", "start", NodeKind::Start),
        Node::new("f", "f", fork("j")),
        task("x", 1),
        Node::new("g", "g", fork("k")),
        task("a", 2),
        task("b", 3),
        Node::new("k", "k", join(JoinPolicy::Any)),
        Node::new("j", "j", join(JoinPolicy::All)),
        Node::new("done", "done", NodeKind::Exit { success: true }),
    ];
    let edge = |from: &str, to: &str, on| Edge::new(from, to, on);
    parts.edges = vec![
        edge("start", "f", On::Success),
        edge("f", "x", On::Always),
        edge("f", "g", On::Always),
        edge("g", "a", On::Always),
        edge("g", "b", On::Always),
        edge("a", "k", On::Success),
        edge("b", "k", On::Success),
        edge("k", "j", On::Success),
        edge("x", "j", On::Success),
        edge("j", "done", On::Success),
    ];
    parts.limits.parallel = 4;
    let world = world_of(Graph::new(parts).unwrap()).await;
    let run = world.begun().await;
    let mut held = Vec::new();
    while let Some(work) = world.claim_for(run.id, &format!("w{}", held.len()), LONG).await {
        held.push(work);
    }
    let of = |node: &str| held.iter().find(|work| work.item.at.node.as_str() == node).unwrap();
    let claim = crate::world::next_claim();
    let applied =
        world.store.apply(run.id, &reported(&of("a").item.at), &of("a").proof(), Some(&claim)).await.unwrap();
    let gate = applied.claimed_next.unwrap();
    world.store.apply(run.id, &crate::world::evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    assert!(
        world.store.runs_held_back(&[run.id]).await.unwrap().contains(&run.id),
        "the holder of b may still be at work"
    );
    let applied =
        world.store.apply(run.id, &reported(&of("x").item.at), &of("x").proof(), Some(&claim)).await.unwrap();
    assert!(applied.claimed_next.is_none(), "{:?}", applied.claimed_next.map(|claimed| claimed.item.id));
}
