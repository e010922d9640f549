//! P17: a database that lost history is found out by those who remember it, and nothing is written over what is left.

use planctl_engine::{RunId, RunStatus};
use planctl_store::{RunRow, Settings, Store, StoreError};
use sqlx::{AssertSqlSafe, Executor as _};
use uuid::Uuid;

use crate::world::{World, evaluated, reported, world};

const TABLES: [&str; 4] = ["runs", "nodes", "history", "items"];

async fn back_up(world: &World) {
    for table in TABLES {
        let copies = format!("create table kept_{table} as select * from {table}");
        world.aside().await.execute(AssertSqlSafe(copies)).await.unwrap();
    }
}

/// Sets the database back to the backup, as a failover to a standby does that lagged behind.
async fn restore(world: &World) {
    for table in TABLES {
        let restores = format!("truncate {table} cascade; insert into {table} select * from kept_{table}");
        world.aside().await.execute(AssertSqlSafe(restores)).await.unwrap();
    }
}

async fn another_process(world: &World) -> Store {
    Store::connect(world.database.connect_options(), Settings::default()).await.unwrap()
}

async fn stands(world: &World, run: RunId) -> (i64, Vec<u8>) {
    let RunRow { seq, chain, .. } = world.store.run(run).await.unwrap();
    (seq, chain)
}

fn assert_regressed<T: std::fmt::Debug>(run: RunId, outcome: &Result<T, StoreError>) {
    let is_told = matches!(outcome, Err(StoreError::Corrupt { run: Some(of), what })
        if *of == run && what.contains("HISTORY_REGRESSED"));
    assert!(is_told, "{outcome:?}");
}

#[tokio::test]
async fn p17_b7_a_run_that_was_set_back_is_refused_by_whoever_moved_it() {
    let world = world(2).await;
    let run = world.begun().await;
    back_up(&world).await;
    world.step(run.id, 0).await;
    restore(&world).await;
    let before = stands(&world, run.id).await;
    let work = world.claim(run.id, "me").await.unwrap();
    let outcome = world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await;
    assert_regressed(run.id, &outcome);
    assert_eq!(stands(&world, run.id).await, before);
    // A process that remembers nothing takes the run as it is.
    let other = another_process(&world).await;
    other.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    assert_regressed(run.id, &world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await);
}

#[tokio::test]
async fn p17_b7_a_run_that_went_another_way_since_it_was_set_back_is_refused() {
    let mut world = world(2).await;
    let run = world.begun().await;
    back_up(&world).await;
    let gate = world.gate(run.id).await;
    world.store.apply(run.id, &evaluated(&gate.item.at, 1), &gate.proof(), None).await.unwrap();
    restore(&world).await;
    let other = another_process(&world).await;
    let remembers = std::mem::replace(&mut world.store, other);
    for code in [0, 1] {
        let applied = world.step(run.id, code).await;
        assert_eq!(applied.head.status, RunStatus::Active);
    }
    let before = stands(&world, run.id).await;
    let work = world.claim(run.id, "me").await.unwrap();
    let outcome = remembers.apply(run.id, &reported(&work.item.at), &work.proof(), None).await;
    assert_regressed(run.id, &outcome);
    assert_eq!(stands(&world, run.id).await, before);
    world.assert_sound(run.id).await;
}

/// Finding B7: the number of the newest line alone does not say which line that is.
#[tokio::test]
async fn p17_b7_what_is_remembered_is_not_written_over_another_history_of_the_same_length() {
    let world = world(2).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    let id = Uuid::from_u128(run.id.as_u128());
    let mut aside = world.aside().await;
    aside.execute("alter table history disable trigger history_is_final").await.unwrap();
    let other = "with r as (update runs set chain = sha256(chain) where id = $1 returning id, seq, chain) \
         update history h set hash = r.chain from r where h.run = r.id and h.seq = r.seq";
    sqlx::query(other).bind(id).execute(&mut aside).await.unwrap();
    let before = stands(&world, run.id).await;
    let outcome = world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await;
    assert_regressed(run.id, &outcome);
    assert_eq!(stands(&world, run.id).await, before);
}
