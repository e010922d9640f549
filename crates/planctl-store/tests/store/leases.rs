//! A lease is of whoever shows its generation and its secret, and of nobody else.

use std::time::Duration;

use planctl_engine::Usage;
use planctl_store::{Claimed, Renewal, Store, Token};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::world::{HOST, World, world};

const LEASE: Duration = Duration::from_secs(15);

/// A run of one step at which a worker of ours works, and what two others show: an older generation, and another secret.
async fn held() -> (World, Claimed, [Claimed; 2]) {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let older = Claimed { generation: work.generation - 1, ..work.clone() };
    let other = Claimed { token: Token::generate(), ..work.clone() };
    (world, work, [older, other])
}

/// Changes the row of the item.
async fn set(world: &World, work: &Claimed, change: &str) {
    let update = format!("update items set {change} where id = '{}'", work.item.id.as_str());
    world.aside().await.execute(AssertSqlSafe(update)).await.unwrap();
}

async fn column(world: &World, work: &Claimed, of: &str) -> Option<String> {
    let query = format!("select ({of})::text from items where id = '{}'", work.item.id.as_str());
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_optional(&mut world.aside().await).await.unwrap().flatten()
}

async fn is_held(store: &Store, work: &Claimed) -> bool {
    store.is_held(&work.item.id, work.generation, &work.token).await.unwrap()
}

async fn notes_usage(store: &Store, work: &Claimed) -> bool {
    store.note_usage(&work.item.id, work.generation, &work.token, &Usage::default()).await.unwrap()
}

#[tokio::test]
async fn p4_a_lease_is_renewed_by_its_holder_alone() {
    let (world, work, others) = held().await;
    for other in &others {
        assert_eq!(world.store.renew(other, LEASE).await.unwrap(), Renewal::Lost);
        assert_eq!(world.store.renew_waiting(other, LEASE).await.unwrap(), Renewal::Lost);
        assert!(!is_held(&world.store, other).await && !notes_usage(&world.store, other).await);
    }
    assert!(matches!(world.store.renew(&work, LEASE).await.unwrap(), Renewal::Held { is_over: false, .. }));
    assert!(matches!(world.store.renew_waiting(&work, LEASE).await.unwrap(), Renewal::Held { .. }));
    assert!(is_held(&world.store, &work).await && notes_usage(&world.store, &work).await);
}

#[tokio::test]
async fn p4_a_lease_that_was_taken_back_is_renewed_by_nobody() {
    let (world, work, others) = held().await;
    set(&world, &work, "state = 'withdrawn'").await;
    for other in &others {
        assert_eq!(world.store.renew(other, LEASE).await.unwrap(), Renewal::Lost);
    }
    assert_eq!(world.store.renew(&work, LEASE).await.unwrap(), Renewal::Cancelled);
    assert_eq!(world.store.renew_waiting(&work, LEASE).await.unwrap(), Renewal::Cancelled);
    assert!(!is_held(&world.store, &work).await && !notes_usage(&world.store, &work).await);
    set(&world, &work, "state = 'ready'").await;
    assert_eq!(world.store.renew(&work, LEASE).await.unwrap(), Renewal::Lost);
    assert_eq!(world.store.renew_waiting(&work, LEASE).await.unwrap(), Renewal::Lost);
}

#[tokio::test]
async fn a_lease_is_renewed_up_to_its_hard_deadline_and_not_held_beyond_it() {
    let (world, work, _) = held().await;
    world.store.renew(&work, Duration::from_secs(1_000_000)).await.unwrap();
    assert_eq!(column(&world, &work, "lease_until = hard_deadline").await.as_deref(), Some("true"));
    set(&world, &work, "hard_deadline = now()").await;
    assert!(!is_held(&world.store, &work).await);
    assert!(matches!(world.store.renew(&work, LEASE).await.unwrap(), Renewal::Held { is_over: true, .. }));
}

#[tokio::test]
async fn only_its_holder_says_that_work_which_was_taken_back_has_ended() {
    let (world, work, others) = held().await;
    world.store.acknowledge(&work).await.unwrap();
    assert!(column(&world, &work, "state").await.is_some(), "it was not taken back");
    set(&world, &work, "state = 'withdrawn'").await;
    for other in &others {
        world.store.acknowledge(other).await.unwrap();
        assert!(column(&world, &work, "state").await.is_some());
    }
    world.store.acknowledge(&work).await.unwrap();
    assert_eq!(column(&world, &work, "state").await, None);
}

#[tokio::test]
async fn work_that_was_taken_back_is_released_where_its_holder_is_known_to_have_ended() {
    let (world, work, _) = held().await;
    let dead = ["me".to_owned()];
    world.store.release_lost(HOST, &dead).await.unwrap();
    assert!(column(&world, &work, "state").await.is_some(), "it was not taken back");
    set(&world, &work, "state = 'withdrawn'").await;
    world.store.release_lost(HOST, &["another".to_owned()]).await.unwrap();
    world.store.release_lost("another-host", &dead).await.unwrap();
    set(&world, &work, "own = false").await;
    world.store.release_lost(HOST, &dead).await.unwrap();
    assert!(column(&world, &work, "state").await.is_some(), "nobody knows whether its holder has ended");
    set(&world, &work, "own = true").await;
    world.store.release_lost(HOST, &dead).await.unwrap();
    assert_eq!(column(&world, &work, "state").await, None);
}
