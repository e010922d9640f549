//! Workers that were seen, what they hold, and whether they are paused.

use std::time::Duration;

use planctl_engine::Role;
use planctl_store::{Claim, ClaimLane, Page, SeenWorker, StoreError};
use sqlx::Executor as _;

use crate::world::{holder, world};

fn worker(id: &str) -> SeenWorker<'_> {
    SeenWorker { id, roles: &[], agent: "exec:./w.sh", host: "pod-7", version: "0.1.0", capacity: 2 }
}

#[tokio::test]
async fn a_worker_is_listed_with_what_it_holds_and_forgotten_after_a_day() {
    let world = world(1).await;
    let run = world.begun().await;
    world.store.record_worker_seen(&worker("w2")).await.unwrap();
    let roles = [Role::new("coder")];
    world.store.record_worker_seen(&SeenWorker { roles: &roles, ..worker("w1") }).await.unwrap();
    let work = world.claim(run.id, "w1").await.unwrap();
    let workers = world.store.workers(&Page::ALL).await.unwrap();
    assert_eq!(workers.iter().map(|worker| worker.id.as_str()).collect::<Vec<_>>(), ["w1", "w2"]);
    assert_eq!((&workers[0].roles[..], workers[0].holds.len(), workers[1].holds.len()), (&roles[..], 1, 0));
    let held = &workers[0].holds[0];
    assert_eq!((&held.item, &held.at, held.run.as_str()), (&work.item.id, &work.item.at, "fix-auth-1"));
    world.store.record_worker_seen(&SeenWorker { capacity: 3, roles: &roles, ..worker("w1") }).await.unwrap();
    let changed = world.store.workers(&Page::ALL).await.unwrap();
    assert_eq!(changed[0].capacity, 3);
    assert!(changed[0].last_seen_at > workers[0].last_seen_at);
    assert_eq!(changed[0].first_seen_at, workers[0].first_seen_at);
    let mut aside = world.aside().await;
    aside
        .execute("update workers set last_seen_at = last_seen_at - interval '25 hours' where id = 'w2'")
        .await
        .unwrap();
    assert_eq!(world.store.workers(&Page::ALL).await.unwrap().len(), 1);
    assert_eq!(world.store.delete_old_workers().await.unwrap(), 1);
}

#[tokio::test]
async fn a_worker_that_is_paused_stays_so_however_long_it_is_away() {
    let world = world(1).await;
    world.store.record_worker_seen(&worker("w1")).await.unwrap();
    world.store.pause_worker("w1", true).await.unwrap();
    let mut aside = world.aside().await;
    aside.execute("update workers set last_seen_at = last_seen_at - interval '25 hours'").await.unwrap();
    assert_eq!(world.store.delete_old_workers().await.unwrap(), 0);
    assert!(world.store.is_paused("w1").await.unwrap());
    let listed = world.store.workers(&Page::ALL).await.unwrap();
    assert!(listed[0].is_paused, "it is listed, so that somebody resumes it");
    world.store.pause_worker("w1", false).await.unwrap();
    assert_eq!(world.store.delete_old_workers().await.unwrap(), 1);
}

#[tokio::test]
async fn of_too_many_workers_the_most_silent_are_forgotten_and_no_paused_one() {
    let world = world(1).await;
    let mut aside = world.aside().await;
    aside
        .execute(
            "insert into workers (id, roles, agent, host, version, capacity, paused, last_seen_at) \
             select 'w' || n, '{}', '', '', '', 1, n = 1, clock_timestamp() - interval '2 hours' + n * interval '1 second' \
             from generate_series(1, 1001) as n",
        )
        .await
        .unwrap();
    world.store.record_worker_seen(&worker("w1001")).await.unwrap();
    assert_eq!(world.store.workers(&Page::ALL).await.unwrap().len(), 1001, "it was there before");
    assert_eq!(world.store.count_workers_seen(Duration::from_secs(60)).await.unwrap(), 1);
    world.store.record_worker_seen(&worker("another")).await.unwrap();
    let left: Vec<String> =
        world.store.workers(&Page::ALL).await.unwrap().into_iter().map(|worker| worker.id).collect();
    assert_eq!(left.len(), 1001, "a thousand, and the one that is paused");
    let is_left = |id: &str| left.iter().any(|one| one == id);
    assert_eq!(["w1", "w2", "w3", "w1001", "another"].map(is_left), [true, false, true, true, true]);
    assert_eq!(world.store.count_workers_seen(Duration::from_secs(60)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_paused_worker_finds_nothing_until_it_may_go_on() {
    let world = world(1).await;
    world.begun().await;
    world.store.record_worker_seen(&worker("w1")).await.unwrap();
    world.store.pause_worker("w1", true).await.unwrap();
    let claim = |id: &str, roles: &[&str]| {
        let lane = ClaimLane::Agent(roles.iter().map(|role| Role::new(*role)).collect());
        Claim { lane, run: None, except: Vec::new(), holder: holder(id), lease: Duration::from_secs(15) }
    };
    for roles in [&["coder"][..], &["coder", "reviewer"]] {
        assert!(world.store.claim(&claim("w1", roles)).await.unwrap().is_none(), "{roles:?}");
    }
    world.store.record_worker_seen(&SeenWorker { version: "0.2.0", ..worker("w1") }).await.unwrap();
    assert!(world.store.workers(&Page::ALL).await.unwrap()[0].is_paused, "seen again, it is paused yet");
    world.store.pause_worker("w1", false).await.unwrap();
    assert!(world.store.claim(&claim("w1", &["coder"])).await.unwrap().is_some());
    assert!(matches!(world.store.pause_worker("w9", true).await, Err(StoreError::NotFound { .. })));
}
