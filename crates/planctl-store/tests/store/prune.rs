//! Old runs are removed whole: with all runs within them, or not at all.

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_store::testing::RUN_ID;
use sqlx::Executor as _;

use crate::world::{World, world};

/// Runs 1 to 10 that ended two hours ago, but for 4, which ended just now, and 9, which has not; and 120 further old ones.
const RUNS: &str = r"
insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, head, seq, chain, created_at, ended_at)
  select run_id(n), p.id, p.workspace, 'old', n, 'old-' || n, 'd', 'g', '{}', 'ended', '{}', 1, '\x01',
    now() - interval '3 hours',
    case when n = 4 then now() when n <> 9 then now() - interval '2 hours' end
  from (select min(id) as id, min(workspace) as workspace from plans) p,
    (select generate_series(1, 10) as n union all select generate_series(100, 219)) s;
insert into sub_plans (run, parent, item, place, depth) values
  (run_id(3), run_id(2), 'i3', '/', 1), (run_id(4), run_id(3), 'i4', '/', 2), (run_id(6), run_id(5), 'i6', '/', 1),
  (run_id(10), run_id(1), 'i10', '/', 1);
insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros, generation,
    created_at, home)
  values ('left', run_id(7), '1', 1, 1, 'agent', 'coder', 'withdrawn', '{}', now(), now(), 1, 1, now(), 'host-a');
insert into worktrees (run, root, path, branch, base, made_at, left_behind)
  values (run_id(8), '/', '/', 'b', 'c', now(), 0), (run_id(10), '/', '/', 'b', 'c', now(), 0);
insert into asks (item, run, node, visit, attempt, work, created_at, closed_at)
  select 'ask' || n, run_id(n), '1', 1, 1, '{}', now(), now() from generate_series(2, 6, 3) n;
";

async fn old_runs() -> World {
    let world = world(1).await;
    let mut aside = world.aside().await;
    aside.execute(RUN_ID).await.unwrap();
    aside.execute(RUNS).await.unwrap();
    world
}

async fn named(world: &World, query: &'static str) -> BTreeSet<String> {
    let names: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut world.aside().await).await.unwrap();
    names.into_iter().collect()
}

#[tokio::test]
async fn b2_a_run_goes_with_all_runs_within_it_or_stays_with_all_of_them() {
    let world = old_runs().await;
    assert_eq!(world.store.prune(Duration::from_secs(3600)).await.unwrap(), 122);
    let left = named(&world, "select name from runs").await;
    // 1 has a run within it whose worktree is there, 2 has one that ended just now, and somebody may be at work on 7.
    let expected = ["old-1", "old-10", "old-2", "old-3", "old-4", "old-7", "old-8", "old-9"];
    assert_eq!(left, expected.map(str::to_owned).into());
    assert_eq!(named(&world, "select item from asks").await, ["ask2".to_owned()].into());
    assert_eq!(world.store.prune(Duration::from_secs(3600)).await.unwrap(), 0);
}

#[tokio::test]
async fn b2_a_run_that_somebody_writes_is_passed_over_with_the_runs_around_it() {
    let world = old_runs().await;
    let mut aside = world.aside().await;
    aside.execute("begin; select from runs where id = run_id(6) for update").await.unwrap();
    assert_eq!(world.store.prune(Duration::from_secs(3600)).await.unwrap(), 120);
    aside.execute("commit").await.unwrap();
    assert_eq!(world.store.prune(Duration::from_secs(3600)).await.unwrap(), 2);
}
