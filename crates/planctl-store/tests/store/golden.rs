//! P23: runs that earlier versions wrote, kept as files, still fold to the end that they had.
//!
//! `PLANCTL_GOLDEN=write cargo test -p planctl-store --test store golden` plays the scenes below and writes those that have
//! no file yet. A file that is there is never written again: it holds what its version wrote. To keep a new kind of
//! history, add a scene; to keep what a new version writes of an old one, add a scene under another name.

use std::collections::BTreeSet;
use std::path::PathBuf;

use planctl_engine::{
    AgentSaid, Answer, Budget, Decision, Digest, End, Event, HarnessResult, RedFirst, RunId, RunStatus, Usage,
};
use planctl_store::{Applied, Claim, ClaimLane, NewRevision, Page, Store, WantedRuns};
use sqlx::types::Uuid;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::world::{
    World, evaluated, holder, human, linear, linear_with, next_claim, person, reported, world, world_of,
};

/// Every scene by the name of its file.
const SCENES: [&str; 8] = ["pass", "retry", "escalate", "budget", "red_first", "revise", "cancel", "resume"];

/// The tables a history stands on, each after those it refers to, with the order of its lines.
const TABLES: [(&str, &str); 11] = [
    ("workspaces", "id"),
    ("graphs", "digest"),
    ("plans", "id"),
    ("revisions", "plan, created_at, digest"),
    ("plan_transitions", "id"),
    ("runs", "id"),
    ("nodes", "run, node"),
    ("history", "run, seq"),
    ("items", "id"),
    ("asks", "number"),
    ("commands", "key"),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[tokio::test]
async fn p23_histories_of_earlier_versions_still_fold_to_their_end() {
    if std::env::var("PLANCTL_GOLDEN").is_ok_and(|word| word == "write") {
        write_missing().await;
    }
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let database = crate::world::database().await;
        let store =
            Store::connect(database.connect_options(), planctl_store::Settings::default()).await.unwrap();
        let mut connection = crate::world::connect(&database).await;
        for line in text.lines() {
            load(&mut connection, line).await;
        }
        let runs = store.runs(&WantedRuns::default(), &Page::ALL).await.unwrap();
        assert!(!runs.is_empty(), "{name} holds no run");
        for run in runs.into_iter().map(Result::unwrap) {
            let findings = store.audit(run.id).await.unwrap();
            assert!(findings.is_empty(), "{name}: {findings:#?}");
            assert!(
                run.seq > 3 && matches!(run.head.status, RunStatus::Ended { .. }),
                "{name}: {:?}",
                run.head
            );
        }
        names.insert(name);
    }
    for scene in SCENES {
        assert!(names.contains(scene), "tests/golden/{scene}.jsonl is missing");
    }
}

#[tokio::test]
async fn scenes_end_as_their_names_say() {
    for name in SCENES {
        let (world, run) = play(name).await;
        world.assert_sound(run).await;
        let status = world.store.run(run).await.unwrap().head.status;
        let end = if name == "cancel" { End::Cancelled } else { End::Done };
        assert_eq!(status, RunStatus::Ended { end }, "{name}");
    }
}

async fn write_missing() {
    for name in SCENES {
        let path = folder().join(format!("{name}.jsonl"));
        if path.exists() {
            continue;
        }
        let (world, _) = play(name).await;
        let mut connection = world.aside().await;
        let mut text = String::new();
        for (table, order) in TABLES {
            let query = format!("select row_to_json(t)::text from {table} t order by {order}");
            let rows: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut connection).await.unwrap();
            for row in rows {
                text.push_str(&format!("{{\"table\":\"{table}\",\"row\":{row}}}\n"));
            }
        }
        std::fs::write(path, text).unwrap();
    }
}

/// Puts one line back as it is, byte by byte, since the chain of hashes is over the stored text.
async fn load(connection: &mut PgConnection, line: &str) {
    let rest = line.strip_prefix("{\"table\":\"").unwrap();
    let (table, row) = rest.split_once("\",\"row\":").unwrap();
    let row = row.strip_suffix('}').unwrap();
    let columns: serde_json::Map<String, serde_json::Value> = serde_json::from_str(row).unwrap();
    // Columns that came later have their defaults.
    let columns = columns.keys().cloned().collect::<Vec<_>>().join(", ");
    let identity = if matches!(table, "workspaces" | "plans" | "plan_transitions" | "asks") {
        "overriding system value"
    } else {
        ""
    };
    let insert = format!(
        "insert into {table} ({columns}) {identity} select {columns} from json_populate_record(null::{table}, $1::text::json)"
    );
    sqlx::query(AssertSqlSafe(insert)).bind(row).execute(&mut *connection).await.unwrap();
}

/// Plays a scene to its end.
async fn play(name: &str) -> (World, RunId) {
    match name {
        "budget" => {
            let budget = Budget { tokens: Some(100), ..Budget::default() };
            played(world_of(linear_with(2, budget, RedFirst::Off)).await, budget_scene).await
        }
        "red_first" => {
            played(world_of(linear_with(2, Budget::default(), RedFirst::Warn)).await, red_first_scene).await
        }
        "pass" => played(world(2).await, async |world, run| assert_done(both(world, run).await)).await,
        "retry" => {
            played(world(2).await, async |world, run| {
                world.step(run, 1).await;
                assert_done(both(world, run).await);
            })
            .await
        }
        "escalate" => played(world(2).await, escalate_scene).await,
        "revise" => played(world(1).await, revise_scene).await,
        "cancel" => {
            played(world(2).await, async |world, run| {
                let work = world.claim(run, "me").await.unwrap();
                let say = human(Decision::Cancel);
                world.store.apply(run, &say, &person(Some("enough")), None).await.unwrap();
                let late = world.store.apply(run, &reported(&work.item.at), &work.proof(), None).await;
                assert!(late.is_err(), "{late:?}");
            })
            .await
        }
        "resume" => played(world(2).await, resume_scene).await,
        other => panic!("no scene is named {other}"),
    }
}

async fn played(world: World, scene: impl AsyncFnOnce(&World, RunId)) -> (World, RunId) {
    let run = world.begun().await.id;
    scene(&world, run).await;
    (world, run)
}

async fn both(world: &World, run: RunId) -> Applied {
    world.step(run, 0).await;
    world.step(run, 0).await
}

fn assert_done(applied: Applied) {
    assert_eq!(applied.head.status, RunStatus::Ended { end: End::Done });
}

async fn answer(world: &World, run: RunId, answer: Answer) -> Applied {
    let ask = world.store.asks(Some(run), None).await.unwrap().remove(0);
    let key = Uuid::from_u128(ask.number.unsigned_abs().into()).to_string();
    let event = human(Decision::Answer { item: ask.item, answer });
    world.store.apply(run, &event, &person(Some(&key)), None).await.unwrap()
}

async fn escalate_scene(world: &World, run: RunId) {
    world.step(run, 1).await;
    world.step(run, 1).await;
    answer(world, run, Answer::Retry).await;
    world.step(run, 1).await;
    answer(world, run, Answer::Waive).await;
    let work = world.claim(run, "me").await.unwrap();
    let mut asked = reported(&work.item.at);
    if let Event::Agent(agent) = &mut asked {
        agent.said = AgentSaid::Asked { question: "which?".to_owned(), usage: None };
    }
    world.store.apply(run, &asked, &work.proof(), None).await.unwrap();
    answer(world, run, Answer::Reply).await;
    assert_done(world.step(run, 0).await);
}

async fn budget_scene(world: &World, run: RunId) {
    let work = world.claim(run, "me").await.unwrap();
    let mut event = reported(&work.item.at);
    if let Event::Agent(agent) = &mut event
        && let AgentSaid::Reported(report) = &mut agent.said
    {
        report.usage = Some(Usage { input_tokens: 90, micro_usd: Some(12), ..Usage::default() });
    }
    let gate = world
        .store
        .apply(run, &event, &work.proof(), Some(&next_claim()))
        .await
        .unwrap()
        .claimed_next
        .unwrap();
    world.store.apply(run, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    let by = Budget { tokens: Some(200), ..Budget::default() };
    answer(world, run, Answer::Raise { by }).await;
    assert_done(world.step(run, 0).await);
}

async fn red_first_scene(world: &World, run: RunId) {
    for code in [1, 0] {
        let claim = Claim {
            lane: ClaimLane::Gate,
            run: Some(run),
            except: Vec::new(),
            holder: holder("me"),
            lease: next_claim().lease,
        };
        let rehearsal = world.store.claim(&claim).await.unwrap().unwrap();
        let mut event = evaluated(&rehearsal.item.at, code);
        if let Event::Harness(harness) = &mut event
            && let HarnessResult::Evidence(evidence) = harness.found.clone()
        {
            harness.found = HarnessResult::Rehearsed(evidence);
        }
        world.store.apply(run, &event, &rehearsal.proof(), None).await.unwrap();
        world.step(run, 0).await;
    }
}

async fn revise_scene(world: &World, run: RunId) {
    world.step(run, 1).await;
    world.step(run, 1).await;
    answer(world, run, Answer::Revise).await;
    let (changed, graph) = (Digest::new("sha256:changed"), linear(2));
    let revision = NewRevision {
        workspace: world.workspace,
        path: "fix-auth.md",
        digest: &changed,
        source: "# Two steps",
        graph: &graph,
        by: "the author",
    };
    world.store.save_revision(&revision).await.unwrap();
    let event = human(Decision::revise(changed, &world.graph, &graph, None));
    world.store.apply(run, &event, &person(None), None).await.unwrap();
    world.admit(run).await.unwrap();
    assert_done(both(world, run).await);
}

async fn resume_scene(world: &World, run: RunId) {
    world.step(run, 0).await;
    world.step(run, 1).await;
    world.step(run, 1).await;
    answer(world, run, Answer::Abort).await;
    world.store.apply(run, &human(Decision::Resume { from: None }), &person(None), None).await.unwrap();
    world.admit(run).await.unwrap();
    let lost = world.claim_for(run, "gone", std::time::Duration::ZERO).await.unwrap();
    let expired = world.store.expired(&[], 10).await.unwrap().remove(0).unwrap();
    assert_eq!(expired.item, lost.item.id);
    world.store.apply(run, &expired.event(), &expired.proof(), None).await.unwrap();
    sqlx::query("update items set available_at = clock_timestamp()")
        .execute(&mut world.aside().await)
        .await
        .unwrap();
    assert_done(world.step(run, 0).await);
}
