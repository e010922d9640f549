//! Transitions and claims that arrive at the same time share one statement, and none is worse off for it.

use std::time::Duration;

use planctl_engine::Role;
use planctl_store::testing::{commits_queued, observe_server_time};
use planctl_store::{Applied, ClaimRequest, Claimed, Renewal, StoreError, Token};
use sqlx::PgConnection;
use tokio::task::JoinHandle;

use crate::world::{HOST, World, await_lock, await_that, hold_run, linear, next_claim, reported, world};

const SOON: Duration = Duration::from_secs(15);

type Reporting = JoinHandle<Result<Applied, StoreError>>;

/// Runs of workspaces of their own, each with its first item claimed.
async fn at_work(world: &World, count: usize) -> Vec<Claimed> {
    let mut all = Vec::new();
    for number in 0..count {
        let run = world.begun_at(&format!("/at{number}"), &linear(2)).await;
        all.push(world.claim(run.id, "me").await.unwrap());
    }
    all
}

fn report(world: &World, work: &Claimed) -> Reporting {
    let (store, work) = (world.store.clone(), work.clone());
    tokio::spawn(async move {
        store.apply(work.item.run, &reported(&work.item.at), &work.proof(), Some(&next_claim())).await
    })
}

/// Reports the first and holds it up in the middle of its writing until the others, in their order, are in line; then
/// something else happens, and the way is free.
async fn held_up(
    world: &World,
    first: &Claimed,
    others: &[&Claimed],
    meanwhile: impl AsyncFnOnce(&mut PgConnection),
) -> (Reporting, Vec<Reporting>) {
    let (mut holder, mut aside) = (world.aside().await, world.aside().await);
    let held = hold_run(&mut holder, first.item.run).await;
    let first = report(world, first);
    await_lock(&mut aside).await;
    let mut reporting = Vec::new();
    for other in others {
        reporting.push(report(world, other));
        await_that(async || commits_queued(&world.store) == reporting.len()).await;
    }
    meanwhile(&mut aside).await;
    held.rollback().await.unwrap();
    (first, reporting)
}

/// Counts the transactions that wrote what these runs were told last.
async fn transactions(world: &World, works: &[&Claimed]) -> i64 {
    let runs: Vec<_> = works.iter().map(|work| uuid::Uuid::from_u128(work.item.run.as_u128())).collect();
    sqlx::query_scalar(
        "select count(distinct xmin::text) from history where run = any($1) and name = 'agent.reported'",
    )
    .bind(runs)
    .fetch_one(&mut world.aside().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn steps_that_are_decided_while_one_is_written_are_written_in_one_transaction() {
    let world = world(1).await;
    let works = at_work(&world, 5).await;
    let others: Vec<&Claimed> = works[1..].iter().collect();
    let (first, reporting) = held_up(&world, &works[0], &others, async |_| {}).await;
    assert!(first.await.unwrap().unwrap().claimed_next.is_some());
    for (reported, work) in reporting.into_iter().zip(&others) {
        let applied = reported.await.unwrap().unwrap();
        let gate = applied.claimed_next.expect("each takes its own gate along");
        assert_eq!((gate.item.run, gate.generation), (work.item.run, 1));
        let renewed = world.store.renew(&gate, SOON).await.unwrap();
        assert!(matches!(renewed, Renewal::Held { is_over: false, .. }), "its secret proves the lease");
    }
    assert_eq!(transactions(&world, &others).await, 1);
    assert_eq!(transactions(&world, &works.iter().collect::<Vec<_>>()).await, 2);
    for work in &works {
        world.assert_sound(work.item.run).await;
    }
}

#[tokio::test]
async fn p4_one_stale_report_among_others_is_refused_alone() {
    let world = world(1).await;
    let works = at_work(&world, 5).await;
    let others: Vec<&Claimed> = works[1..].iter().collect();
    let stale = works[2].item.id.as_str().to_owned();
    let (first, reporting) = held_up(&world, &works[0], &others, async |aside| {
        let taken_over = "update items set generation = generation + 1, token_hash = '\\x00' where id = $1";
        sqlx::query(taken_over).bind(&stale).execute(aside).await.unwrap();
    })
    .await;
    first.await.unwrap().unwrap();
    for (reported, work) in reporting.into_iter().zip(&others) {
        let outcome = reported.await.unwrap();
        if work.item.id.as_str() == stale {
            assert!(matches!(outcome, Err(StoreError::StaleLease)), "{outcome:?}");
        } else {
            assert!(outcome.unwrap().claimed_next.is_some());
        }
        world.assert_sound(work.item.run).await;
    }
    assert_eq!(transactions(&world, &others).await, 3, "each of the others is written apart");
}

#[tokio::test]
async fn p2_the_same_report_twice_in_line_is_applied_once_and_delays_nobody_else() {
    let world = world(1).await;
    let works = at_work(&world, 3).await;
    let others = [&works[1], &works[1], &works[2]];
    let (first, reporting) = held_up(&world, &works[0], &others, async |_| {}).await;
    first.await.unwrap().unwrap();
    let mut duplicates = Vec::new();
    for reported in reporting {
        duplicates.push(reported.await.unwrap().unwrap().duplicate);
    }
    assert_eq!(duplicates, [false, true, false]);
    assert_eq!(transactions(&world, &others).await, 1, "the others were written together");
    for work in &works {
        world.assert_sound(work.item.run).await;
    }
}

#[tokio::test]
async fn a_step_whose_assumed_time_is_off_is_written_all_the_same_and_so_are_those_beside_it() {
    let world = world(1).await;
    let works = at_work(&world, 3).await;
    // The gates of all are known from memory; the time is not what it seems.
    let mut gates = Vec::new();
    for work in &works {
        let applied = report(&world, work).await.unwrap().unwrap();
        gates.push(applied.claimed_next.unwrap());
    }
    observe_server_time(&world.store, planctl_engine::Timestamp::from_micros(0));
    let mut verdicts = Vec::new();
    for gate in gates {
        let store = world.store.clone();
        verdicts.push(tokio::spawn(async move {
            let event = crate::world::evaluated(&gate.item.at, 0);
            store.apply(gate.item.run, &event, &gate.proof(), None).await
        }));
    }
    for verdict in verdicts {
        verdict.await.unwrap().unwrap();
    }
    for work in &works {
        world.assert_sound(work.item.run).await;
    }
}

#[tokio::test]
async fn where_the_writer_dies_those_in_line_and_those_after_them_are_written_all_the_same() {
    let world = world(1).await;
    let works = at_work(&world, 2).await;
    let (mut holder, mut aside) = (world.aside().await, world.aside().await);
    let held = hold_run(&mut holder, works[0].item.run).await;
    // The writer belongs to the runtime of the first caller.
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (store, work) = (world.store.clone(), works[0].clone());
    doomed.spawn(async move {
        store.apply(work.item.run, &reported(&work.item.at), &work.proof(), None).await.map(drop)
    });
    await_lock(&mut aside).await;
    let in_line = report(&world, &works[1]);
    await_that(async || commits_queued(&world.store) == 1).await;
    doomed.shutdown_background();
    assert!(in_line.await.unwrap().unwrap().claimed_next.is_some());
    held.rollback().await.unwrap();
    report(&world, &works[0]).await.unwrap().unwrap();
    for work in &works {
        world.assert_sound(work.item.run).await;
    }
}

fn waiting(instance: &str) -> ClaimRequest {
    ClaimRequest { instance: instance.to_owned(), lease: SOON, token: Token::generate() }
}

#[tokio::test]
async fn p4_those_in_line_are_served_at_once_first_come_first_served_and_nobody_who_is_paused() {
    let world = world(1).await;
    let mut runs = Vec::new();
    for number in 0..3 {
        runs.push(world.begun_at(&format!("/at{number}"), &linear(1)).await.id);
    }
    let paused = planctl_store::SeenWorker {
        id: "paused",
        roles: &[Role::new("coder")],
        agent: "",
        host: "",
        version: "",
        capacity: 1,
    };
    world.store.record_worker_seen(&paused).await.unwrap();
    world.store.pause_worker("paused", true).await.unwrap();
    let mut line: Vec<ClaimRequest> = ["a", "paused", "b", "c", "d"].into_iter().map(waiting).collect();
    line[2].lease = Duration::from_secs(600);
    let claimed = world.store.claim_for_all(&[Role::new("coder")], HOST, &line).await.unwrap();
    let of: Vec<_> = claimed.iter().map(|claimed| claimed.as_ref().map(|claimed| claimed.item.run)).collect();
    assert_eq!(of, [Some(runs[0]), None, Some(runs[1]), Some(runs[2]), None]);
    let (short, long) = (claimed[0].as_ref().unwrap(), claimed[2].as_ref().unwrap());
    assert!(long.lease_until.as_micros() - short.lease_until.as_micros() > 500_000_000);
    for (claimed, waiting) in claimed.iter().zip(&line) {
        let held = world.store.claim_of_token(&waiting.token).await.unwrap();
        assert_eq!(held.map(|held| held.item.id), claimed.as_ref().map(|claimed| claimed.item.id.clone()));
        if let Some(claimed) = claimed {
            report(&world, claimed).await.unwrap().unwrap();
        }
    }
    for run in runs {
        world.assert_sound(run).await;
    }
}

/// Degradation 1b of the core's review: nobody else claims, and the whole line got nothing.
#[tokio::test]
async fn of_two_items_that_need_the_same_lock_a_claim_for_all_takes_the_first() {
    let world = world(1).await;
    let mut runs = Vec::new();
    for number in 0..3 {
        let graph = if number < 2 { crate::withdrawn::locking() } else { linear(1) };
        runs.push(world.begun_at(&format!("/at{number}"), &graph).await.id);
    }
    let line = ["a", "b", "c"].map(waiting);
    let claimed = world.store.claim_for_all(&[Role::new("coder")], HOST, &line).await.unwrap();
    let of: Vec<_> = claimed.iter().map(|claimed| claimed.as_ref().map(|claimed| claimed.item.run)).collect();
    assert_eq!(of, [Some(runs[0]), Some(runs[2]), None]);
}

#[tokio::test]
async fn a_claim_for_all_gives_nothing_to_anybody_where_one_cannot_have_what_it_would_get() {
    let world = world(1).await;
    let roles = [Role::new("coder"), Role::new("reviewer")];
    for number in 0..3 {
        world.begun_at(&format!("/at{number}"), &linear(1)).await;
    }
    let holds = waiting("holds");
    let first = world.store.claim_for_all(&roles, HOST, std::slice::from_ref(&holds)).await.unwrap();
    let again = world.store.claim_for_all(&roles, HOST, &[waiting("other"), holds.clone()]).await;
    assert!(again.is_err(), "its secret has a lease already");
    let items: i64 = sqlx::query_scalar("select count(*) from items where state = 'leased'")
        .fetch_one(&mut world.aside().await)
        .await
        .unwrap();
    assert_eq!((items, first.iter().flatten().count()), (1, 1));
    let elsewhere = world.store.claim_for_all(&roles, "host-b", &[waiting("a"), waiting("b")]).await.unwrap();
    assert!(elsewhere.iter().all(Option::is_none), "their workspaces are on another host");
    let all = world.store.claim_for_all(&roles, HOST, &[waiting("a"), waiting("b")]).await.unwrap();
    assert!(all.iter().all(Option::is_some));
}
