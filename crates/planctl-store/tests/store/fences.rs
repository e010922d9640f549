//! The fences of the functions that write transitions and votes and claim items, and of the statements by which leases, requests and
//! tokens are told apart: each check refuses what it is there for, and a test turns red where it is taken out.

use std::process::Command;

use planctl_store::testing::RUN_ID;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use crate::world::{REMOVED_CHECK, await_lock, connect, database};

/// A run that is under way in a workspace of its own, with work that somebody has claimed, work that waits, and an ask.
pub const UNDER_WAY: &str = r"
insert into workspaces (host, path) values ('host-a', '/own');
insert into plans (workspace, path, status, digest) select max(id), 'own.md', 'in-progress', 'd' from workspaces;
insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, active, head, seq, chain,
    created_at, started_at)
  select run_id(200000), id, workspace, 'own', 1, 'own-1', 'd', 'g', '{}', 'active', true, '{}', 5, '\x05', now(), now()
  from plans where path = 'own.md';
insert into nodes (run, node, state, record)
  select run_id(200000), n::text, 'working', '{}' from generate_series(1, 200) n;
insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros, generation,
    token_hash, lease_until, hard_deadline, created_at, home)
  select id, run_id(200000), node, 1, 1, lane, target, state, '{}', now(), now(), 1, generation, token_hash,
    case when state = 'leased' then now() + interval '1 day' end, case when state = 'leased' then now() + interval '1 day' end,
    now(), 'host-a'
  from (values ('work', '1', 'agent', 'coder', 'leased', 3, '\x07'::bytea),
    ('other', '2', 'agent', 'coder', 'leased', 1, '\x08'),
    ('more', '3', 'agent', 'coder', 'ready', 0, null),
    ('further', '4', 'agent', 'coder', 'ready', 0, null),
    ('ask', '5', 'human', 'question', 'ready', 0, null)) as i (id, node, lane, target, state, generation, token_hash);
insert into asks (item, run, node, visit, attempt, work, created_at)
  values ('ask', run_id(200000), '5', 1, 1, '{}', now());
insert into locks (name, run, node) values ('staging', run_id(200000), '1'), ('production', run_id(200000), '2');
insert into timers (run, timer, at) values (run_id(200000), 'stale', now());
";

/// A transition of that run in which everything occurs that a transition can write.
pub fn transition() -> Value {
    json!({
        "run": "00000000-0000-7000-8000-000000030d40", "seq": 5, "chain": "\\x05",
        "at_micros": 1_700_000_000_000_000_i64, "is_estimated": false,
        "item": "work", "generation": 3, "token_hash": "\\x07",
        "new_seq": 7, "new_chain": "\\x06", "head": "{}", "status": "ended", "is_active": false, "turn_micros": 0,
        "cause": "agent.reported", "command": "00000000-0000-7000-8000-000000000001",
        "history": [
            {"seq": 6, "kind": "input", "name": "agent.reported", "node": "1", "visit": 1, "attempt": 1,
                "body": r#"{"text": "a NUL: \u0000"}"#, "hash": "\\x01"},
            {"seq": 7, "kind": "fact", "name": "plan_failed", "body": "{}", "hash": "\\x06"},
        ],
        "nodes": [{"node": "1", "state": "failed", "record": "{}"}, {"node": "201", "state": "held", "record": "{}"}],
        "removed": ["other", "more", "ask"],
        "items": [
            {"id": "gate", "node": "201", "visit": 1, "attempt": 1, "lane": "harness", "target": "host-a", "work": "{}",
                "available_micros": 1_700_000_000_000_000_i64, "due_micros": 1_700_000_000_000_000_i64,
                "span_micros": 1_000_000,
                "token_hash": "\\x09", "boot": "", "instance": "me", "own": true, "lease_micros": 1_000_000},
            {"id": "question", "node": "201", "visit": 1, "attempt": 1, "lane": "human", "target": "question",
                "work": "{}", "available_micros": 1_700_000_000_000_000_i64, "due_micros": 1_700_000_000_000_000_i64,
                "span_micros": 0},
        ],
        "home": "host-a",
        "armed": [{"timer": "rest", "at_micros": 1_700_000_000_000_000_i64}], "disarmed": ["stale"],
        "freed": ["1", "2"],
        "key": "own-key", "body_hash": "\\x01",
        "plan": {"to": "failed", "from": ["in-progress"], "by": "harness", "why": "the run failed"},
        "notification": "somebody",
    })
}

pub fn commit(transitions: &[Value]) -> String {
    let all = Value::from(transitions).to_string().replace('\'', "''");
    format!("select run::text, is_late from planctl_commit_1('{all}')")
}

/// Returns a claim by two claimants.
pub fn claim(of: &str) -> String {
    let claimant = |instance: &str, token: &str| json!({"token_hash": token, "boot": "", "instance": instance, "own": false, "lease_micros": 1_000_000});
    let claimants = json!([claimant("me", "\\x01"), claimant("you", "\\x02")]);
    format!("select id from planctl_claim_1({of}, '{claimants}')")
}

/// A database with that run; statements of its sessions wait two seconds for a lock at most.
struct Scene {
    database: planctl_store::testing::TestDatabase,
    connection: PgConnection,
}

impl Scene {
    async fn new() -> Scene {
        let database = database().await;
        let mut connection = connect(&database).await;
        connection.execute(RUN_ID).await.unwrap();
        connection.execute(UNDER_WAY).await.unwrap();
        let name: String =
            sqlx::query_scalar("select current_database()").fetch_one(&mut connection).await.unwrap();
        let limit = format!("alter database {name} set lock_timeout = '2s'");
        connection.execute(AssertSqlSafe(limit)).await.unwrap();
        Scene { connection: connect(&database).await, database }
    }

    async fn text(&mut self, query: &'static str) -> String {
        let found: Option<String> = sqlx::query_scalar(query).fetch_one(&mut self.connection).await.unwrap();
        found.unwrap_or_default()
    }

    /// Commits that transition with other values; returns whether it was late, or the error's code.
    async fn commits(&mut self, other: Value) -> Result<bool, String> {
        let mut transition = transition();
        for (name, value) in other.as_object().unwrap() {
            transition[name] = value.clone();
        }
        let row = self.connection.fetch_one(AssertSqlSafe(commit(&[transition]))).await;
        let code = |error: &sqlx::Error| error.as_database_error().unwrap().code().unwrap().into_owned();
        row.map(|row| row.get("is_late")).map_err(|error| code(&error))
    }
}

#[tokio::test]
async fn a_commit_writes_everything_that_a_transition_says() {
    let mut scene = Scene::new().await;
    assert_eq!(scene.commits(json!({})).await, Ok(false));
    for (query, expected) in [
        ("select status || seq || active || (ended_at is not null) from runs", "ended7truetrue"),
        (
            "select string_agg(seq || coalesce(item, '-') || name, ' ' order by seq) from history",
            "6workagent.reported 7-plan_failed",
        ),
        (r"select (body::text like '%\\u0000%')::text from history where seq = 6", "true"),
        (
            "select string_agg(node || state, ' ' order by node) from nodes where node in ('1', '201')",
            "1failed 201held",
        ),
        // A holder of the other item may be at work: its lease is revoked, its locks stay, and no gate begins beside it.
        (
            "select string_agg(id || state, ' ' order by id) from items",
            "furtherready gateready otherwithdrawn questionready",
        ),
        ("select string_agg(name, ' ') from locks", "production"),
        (
            "select string_agg(item || (closed_at is null), ' ' order by item) from asks",
            "askfalse questiontrue",
        ),
        ("select string_agg(timer, ' ') from timers", "rest"),
        ("select seq::text from commands where key = 'own-key'", "6"),
        (
            "select status || (select string_agg(from_status || to_status || why, ' ') from plan_transitions) from plans",
            "failedin-progressfailedthe run failed",
        ),
    ] {
        assert_eq!(scene.text(query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_transition_of_another_state_of_its_run_is_late() {
    let mut scene = Scene::new().await;
    for other in [
        json!({"seq": 4}),
        json!({"chain": "\\x04"}),
        // An estimate that is two years off.
        json!({"is_estimated": true}),
    ] {
        assert_eq!(scene.commits(other.clone()).await, Ok(true), "{other}");
    }
    assert_eq!(scene.text("select seq::text from runs").await, "5");
    assert_eq!(scene.text("select count(*)::text from history").await, "0");
}

#[tokio::test]
async fn a_transition_under_another_lease_changes_nothing() {
    let mut scene = Scene::new().await;
    let refused = Err("PL002".to_owned());
    for other in [
        json!({"generation": 2}),
        json!({"token_hash": "\\x06"}),
        json!({"used": "{}"}),
        // Nobody shows the secret, and the lease is not over.
        json!({"token_hash": null}),
        json!({"token_hash": null, "dead_instance": "somebody else"}),
    ] {
        assert_eq!(scene.commits(other.clone()).await, refused, "{other}");
    }
    scene.connection.execute("update items set state = 'withdrawn' where id = 'work'").await.unwrap();
    assert_eq!(scene.commits(json!({})).await, refused);
    assert_eq!(scene.text("select seq::text from runs").await, "5");
}

#[tokio::test]
async fn the_status_of_a_plan_follows_no_run_of_another_text() {
    let mut scene = Scene::new().await;
    scene.connection.execute("update plans set digest = 'another'").await.unwrap();
    assert_eq!(scene.commits(json!({})).await, Ok(false));
    assert_eq!(scene.text("select status from plans").await, "in-progress");
}

#[tokio::test]
async fn the_status_of_a_plan_that_somebody_has_moved_stays() {
    let mut scene = Scene::new().await;
    scene.connection.execute("update plans set status = 'draft'").await.unwrap();
    assert_eq!(scene.commits(json!({})).await, Ok(false));
    assert_eq!(scene.text("select status from plans").await, "draft");
}

#[tokio::test]
async fn a_gate_that_needs_locks_is_not_leased_with_the_report_and_each_lease_is_of_a_generation_of_its_own()
{
    let mut scene = Scene::new().await;
    let mut items = transition()["items"].clone();
    items[0]["locks"] = json!(["production"]);
    items[1]["id"] = json!("work");
    assert_eq!(scene.commits(json!({"removed": null, "items": items})).await, Ok(false));
    let gate = "select state || generation || locks[1] from items where id = 'gate'";
    assert_eq!(scene.text(gate).await, "ready0production");
    assert_eq!(scene.text("select state || generation from items where id = 'work'").await, "ready4");
    let of = "'run', 'agent', run_id(200000), '{coder}', '{}', 'host-a'";
    scene.connection.execute(AssertSqlSafe(claim(of))).await.unwrap();
    let claimed =
        "select string_agg(id || generation, ' ' order by id) from items where id in ('further', 'more')";
    assert_eq!(scene.text(claimed).await, "further1 more1");
}

#[tokio::test]
async fn a_claim_leaves_what_a_run_serves_itself_and_the_runs_that_it_names() {
    let mut scene = Scene::new().await;
    let named = claim("'roles', 'agent', null, '{coder}', array[run_id(200000)], 'host-a'");
    assert_eq!(scene.connection.fetch_all(AssertSqlSafe(named)).await.unwrap().len(), 0);
    scene.connection.execute("update items set served_on = 'host-a' where state = 'ready'").await.unwrap();
    for of in [
        "'roles', 'agent', null, '{coder}', '{}', 'host-a'",
        "'pairs', 'agent', null, '{coder}', array[run_id(200000)], 'host-a'",
        "'served', 'agent', null, '{}', array[run_id(200000)], 'host-a'",
        "'served', 'agent', null, '{}', '{}', 'host-b'",
    ] {
        let claimed = scene.connection.fetch_all(AssertSqlSafe(claim(of))).await.unwrap();
        assert_eq!(claimed.len(), 0, "{of}");
    }
}

#[tokio::test]
async fn an_item_that_is_claimed_while_it_is_taken_back_is_revoked_and_not_lost() {
    let mut scene = Scene::new().await;
    let mut worker = connect(&scene.database).await;
    let mut aside = connect(&scene.database).await;
    worker.execute("begin").await.unwrap();
    let claimed = worker
        .fetch_all(AssertSqlSafe(claim("'run', 'agent', run_id(200000), '{coder}', '{}', 'host-a'")))
        .await
        .unwrap();
    assert_eq!(claimed.len(), 2);
    let (committed, ()) = tokio::join!(scene.commits(json!({})), async {
        await_lock(&mut aside).await;
        worker.execute("commit").await.unwrap();
    });
    assert_eq!(committed, Ok(false));
    assert_eq!(scene.text("select state from items where id = 'more'").await, "withdrawn");
}

#[tokio::test]
async fn a_claim_passes_over_what_another_one_is_about_to_claim() {
    let mut scene = Scene::new().await;
    let mut first = connect(&scene.database).await;
    first.execute("begin").await.unwrap();
    let one = "select id from planctl_claim_1('roles', 'agent', null, '{coder}', '{}', 'host-a', \
        '[{\"token_hash\": \"\\\\x0a\", \"boot\": \"\", \"instance\": \"first\", \"own\": false, \"lease_micros\": 1}]')";
    let got: String = sqlx::query_scalar(one).fetch_one(&mut first).await.unwrap();
    let others = claim("'roles', 'agent', null, '{coder}', '{}', 'host-a'");
    let others: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(others)).fetch_all(&mut scene.connection).await.unwrap();
    first.execute("commit").await.unwrap();
    assert_eq!((got.as_str(), others), ("further", vec!["more".to_owned()]));
}

#[tokio::test]
async fn a_claim_looks_only_at_items_that_are_due_and_on_its_host() {
    let mut scene = Scene::new().await;
    let apart = "update items set available_at = now() + interval '1 hour' where id = 'more';
        update items set home = 'host-b' where id = 'further'";
    scene.connection.execute(apart).await.unwrap();
    for of in [
        "'roles', 'agent', null, '{coder}', '{}', 'host-a'",
        "'pairs', 'agent', null, '{coder}', array[run_id(200000)], 'host-a'",
    ] {
        let claimed = scene.connection.fetch_all(AssertSqlSafe(claim(of))).await.unwrap();
        assert_eq!(claimed.len(), 0, "{of}");
    }
}

/// Votes on an ask, where `seen` are the votes that the voter saw; returns the error's code.
async fn vote(
    connection: &mut PgConnection,
    voter: &str,
    seen: &[i64],
    causes: Option<&Value>,
) -> Result<(), String> {
    let causes = causes.map(|transition| Value::from(vec![transition.clone()]).to_string());
    let voted = sqlx::query("select from planctl_vote_1('ask', $1, 'approve', 'd', null, $2, $3::json)");
    refusal_of(voted.bind(voter).bind(seen).bind(causes).fetch_all(connection).await)
}

/// Votes on the ask of a draft.
async fn vote_on_draft(connection: &mut PgConnection, voter: &str, seen: &[i64]) -> Result<(), String> {
    let voted =
        sqlx::query("select planctl_answer_draft_1('of a draft', $1, 'approve', 'd', null, $2, false)");
    refusal_of(voted.bind(voter).bind(seen).fetch_all(connection).await)
}

fn refusal_of<T>(done: Result<T, sqlx::Error>) -> Result<(), String> {
    let code = |error: sqlx::Error| error.as_database_error().unwrap().code().unwrap().into_owned();
    done.map(drop).map_err(code)
}

/// A draft, and an ask of it.
pub const DRAFT: &str = "
insert into drafts (workspace, key, goal, rules) select max(id), 'd', 'List it', '{}' from workspaces;
insert into asks (item, draft, work, created_at) select 'of a draft', max(id), '{}', now() from drafts;
";

#[tokio::test]
async fn a_vote_is_refused_where_others_voted_or_where_its_run_or_its_ask_is_past_it() {
    let mut scene = Scene::new().await;
    let refused = Err("PL004".to_owned());
    assert_eq!(vote(&mut scene.connection, "ann", &[], None).await, Ok(()));
    assert_eq!(vote(&mut scene.connection, "ben", &[], None).await, refused, "ben saw no vote of ann");
    let seen: i64 = scene.text("select max(id)::text from votes").await.parse().unwrap();
    let mut late = transition();
    late["seq"] = json!(4);
    assert_eq!(vote(&mut scene.connection, "ben", &[seen], Some(&late)).await, refused, "the run moved on");
    assert_eq!(scene.text("select count(*)::text from votes").await, "1");
    scene.connection.execute("update asks set closed_at = now()").await.unwrap();
    assert_eq!(vote(&mut scene.connection, "ben", &[seen], None).await, refused, "the ask is closed");
}

#[tokio::test]
async fn votes_at_the_same_moment_take_turns() {
    let mut scene = Scene::new().await;
    scene.connection.execute(DRAFT).await.unwrap();
    let mut other = connect(&scene.database).await;
    other.execute("begin").await.unwrap();
    vote(&mut other, "ann", &[], None).await.unwrap();
    vote_on_draft(&mut other, "ann", &[]).await.unwrap();
    scene.connection.execute("set lock_timeout = '100ms'").await.unwrap();
    let waits = Err("55P03".to_owned());
    assert_eq!(vote(&mut scene.connection, "ben", &[], None).await, waits);
    assert_eq!(vote_on_draft(&mut scene.connection, "ben", &[]).await, waits);
    other.execute("commit").await.unwrap();
    let refused = Err("PL004".to_owned());
    assert_eq!(vote(&mut scene.connection, "ben", &[], None).await, refused);
    assert_eq!(vote_on_draft(&mut scene.connection, "ben", &[]).await, refused);
}

/// Carries a statement out that breaks a rule of the tables; returns the error's code.
async fn refused(scene: &mut Scene, statement: &'static str) -> String {
    let done = scene.connection.execute(statement).await;
    done.map_err(|error| error.as_database_error().unwrap().code().unwrap().into_owned()).unwrap_err()
}

const FINAL: &str = "fences::histories_and_settings_are_only_added_to";
const NAMED: &str = "fences::a_name_is_of_one_run_and_one_vote_of_a_person_counts";

#[tokio::test]
async fn histories_and_settings_are_only_added_to() {
    let mut scene = Scene::new().await;
    assert_eq!(scene.commits(json!({})).await, Ok(false));
    scene.connection.execute("select planctl_seal_settings(run_id(200000))").await.unwrap();
    for statement in [
        "update history set at = now()",
        "delete from history",
        "update run_settings set at = now()",
        "delete from run_settings",
    ] {
        assert_eq!(refused(&mut scene, statement).await, "PL003", "{statement}");
    }
}

#[tokio::test]
async fn a_name_is_of_one_run_and_one_vote_of_a_person_counts() {
    let mut scene = Scene::new().await;
    let again = "insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, head, seq, chain, created_at)
        select run_id(300000), plan, workspace, stem, number, name, 'd', 'g', '{}', 'queued', '{}', 1, '\\x01', now() from runs";
    assert_eq!(refused(&mut scene, again).await, "23505", "{again}");
    let vote = "insert into votes (item, voter, answer, about) values ('ask', 'ann', 'approve', 'd')";
    scene.connection.execute(vote).await.unwrap();
    assert_eq!(refused(&mut scene, vote).await, "23505", "{vote}");
}

/// A check that is taken out of a function of the database or a statement of the store, or without one of these an index or a trigger
/// that a statement drops; and the test that notices it.
struct Fence {
    of: &'static str,
    check: &'static str,
    instead: &'static str,
    test: &'static str,
}

const COMMIT: &str = "planctl_commit_1(json)";
const CLAIM: &str = "planctl_claim_1(text, text, uuid, text[], uuid[], text, json)";
const VOTE: &str = "planctl_vote_1(text, text, text, text, text, bigint[], json)";
const DRAFT_VOTE: &str = "planctl_answer_draft_1(text, text, text, text, text, bigint[], boolean)";
const VOTED: &str = "fences::a_vote_is_refused_where_others_voted_or_where_its_run_or_its_ask_is_past_it";
const VOTES: &str = "fences::votes_at_the_same_moment_take_turns";
const HOLDER: &str = "leases::p4_a_lease_is_renewed_by_its_holder_alone";
const TAKEN_BACK: &str = "leases::p4_a_lease_that_was_taken_back_is_renewed_by_nobody";
const DEADLINE: &str = "leases::a_lease_is_renewed_up_to_its_hard_deadline_and_not_held_beyond_it";
const ACKNOWLEDGED: &str = "leases::only_its_holder_says_that_work_which_was_taken_back_has_ended";
const RELEASED: &str = "leases::work_that_was_taken_back_is_released_where_its_holder_is_known_to_have_ended";
const PRUNE: &str = "planctl_prune_2(bigint, int, uuid)";
const FAMILIES: &str = "prune::b2_a_run_goes_with_all_runs_within_it_or_stays_with_all_of_them";
const LOCKS: &str = "planctl_take_locks(text[], uuid, text)";
const QUICKER: &str = "queue::a_lock_that_another_claim_is_about_to_take_is_left_to_it";
const LEASED: &str = "fences::a_gate_that_needs_locks_is_not_leased_with_the_report_and_each_lease_is_of_a_generation_of_its_own";
const SERVED: &str = "fences::a_claim_leaves_what_a_run_serves_itself_and_the_runs_that_it_names";
const STATE: &str = "fences::a_transition_of_another_state_of_its_run_is_late";
const LEASE: &str = "fences::a_transition_under_another_lease_changes_nothing";

#[rustfmt::skip]
const FENCES: &[Fence] = &[
    Fence { of: COMMIT, check: "and r.seq = t.seq", instead: "", test: STATE },
    Fence { of: COMMIT, check: "and r.chain = t.chain", instead: "", test: STATE },
    Fence { of: COMMIT, check: "and r.chain = t.chain", instead: "", test: "regressed::p17_b7_what_is_remembered_is_not_written_over_another_history_of_the_same_length" },
    Fence { of: COMMIT, check: "and r.seq = t.seq and r.chain = t.chain", instead: "", test: "apply::p8_writers_of_different_events_take_turns_and_none_is_lost" },
    Fence { of: COMMIT, check: "update items i set state = 'withdrawn' where i.id = any(t.removed) and i.state = 'leased';", instead: "", test: "withdrawn::a_claim_while_its_cancellation_is_written_keeps_the_workspace" },
    Fence { of: COMMIT, check: "not t.is_estimated", instead: "true", test: STATE },
    Fence { of: COMMIT, check: "and i.generation = t.generation", instead: "", test: LEASE },
    Fence { of: COMMIT, check: "and i.state = 'leased'\n", instead: "\n", test: LEASE },
    Fence { of: COMMIT, check: "i.token_hash = t.token_hash", instead: "true", test: LEASE },
    Fence { of: COMMIT, check: "and i.used::text is not distinct from t.used", instead: "", test: LEASE },
    Fence { of: COMMIT, check: "i.lease_until < clock_timestamp() or", instead: "true or", test: LEASE },
    Fence { of: COMMIT, check: "or i.instance = t.dead_instance", instead: "or t.dead_instance is not null", test: LEASE },
    Fence { of: COMMIT, check: "perform from items i where i.id = any(t.removed) for update;", instead: "", test: "fences::an_item_that_is_claimed_while_it_is_taken_back_is_revoked_and_not_lost" },
    Fence { of: COMMIT, check: "and may_lease", instead: "", test: "fences::a_commit_writes_everything_that_a_transition_says" },
    Fence { of: COMMIT, check: "and not exists (select from items i where i.run = t.run and i.lane <> 'human')", instead: "", test: "withdrawn::a_cancelled_run_has_its_workspace_until_its_worker_says_that_it_ended" },
    Fence { of: COMMIT, check: "and not exists (select from items i where i.run = l.run and i.node = l.node and i.state = 'withdrawn')", instead: "", test: "withdrawn::b4_a_lock_is_kept_where_a_person_skips_the_step_whose_holder_has_not_ended" },
    Fence { of: COMMIT, check: "(select json_array_elements_text(t.plan -> 'from'))\n      for update;", instead: "(select json_array_elements_text(t.plan -> 'from'));", test: "plans::b3_a_text_that_is_saved_while_its_run_ends_stays_a_draft" },
    Fence { of: COMMIT, check: "and p.digest = of_run.revision", instead: "", test: "fences::the_status_of_a_plan_follows_no_run_of_another_text" },
    Fence { of: COMMIT, check: "and p.status in (select json_array_elements_text(t.plan -> 'from'))", instead: "", test: "fences::the_status_of_a_plan_that_somebody_has_moved_stays" },
    Fence { of: COMMIT, check: "and i.state <> 'withdrawn';", instead: ";", test: "fences::a_commit_writes_everything_that_a_transition_says" },
    Fence { of: COMMIT, check: "and p.locks is null", instead: "", test: LEASED },
    Fence { of: COMMIT, check: "and not planctl_is_paused(p.instance)", instead: "", test: "waiting::a_paused_worker_is_leased_nothing_and_the_work_is_for_others" },
    Fence { of: COMMIT, check: "not s.is_served and", instead: "", test: "waiting::work_that_a_run_serves_itself_is_leased_to_nobody_who_waits" },
    Fence { of: COMMIT, check: "or x.id = t.item then 1", instead: "then 1", test: LEASED },
    Fence { of: "planctl_taken_back_is_charged()", check: "raise exception 'the usage of the item is not as it was read' using errcode = 'PL002';", instead: "null;", test: "usage::p15_what_a_worker_says_while_its_work_is_taken_back_is_charged" },
    Fence { of: VOTE, check: "perform from runs r where r.id = (select a.run from asks a where a.item = of_item) for update;", instead: "", test: VOTES },
    Fence { of: VOTE, check: "and a.closed_at is null", instead: "", test: VOTED },
    Fence { of: VOTE, check: "seen is distinct from", instead: "seen <> '{}' and seen is distinct from", test: VOTED },
    Fence { of: VOTE, check: "if of_commit.is_late then", instead: "if false then", test: VOTED },
    Fence { of: DRAFT_VOTE, check: "and a.closed_at is null for update;", instead: "and a.closed_at is null;", test: VOTES },
    Fence { of: DRAFT_VOTE, check: "or seen <> array(select v.id from votes v where v.item = of_item and v.void is null order by v.id)", instead: "", test: VOTES },
    Fence { of: DRAFT_VOTE, check: "and a.closed_at is null for update;", instead: "for update;", test: "draft_asks::m_35_the_ask_of_a_draft_is_answered_once_and_its_answer_never_changes" },
    Fence { of: CLAIM, check: "for update skip locked", instead: "for update", test: "fences::a_claim_passes_over_what_another_one_is_about_to_claim" },
    Fence { of: CLAIM, check: "for update skip locked", instead: "", test: "fences::a_claim_passes_over_what_another_one_is_about_to_claim" },
    Fence { of: CLAIM, check: "and i.run <> all(revoked)", instead: "", test: "withdrawn::the_next_attempt_waits_for_the_end_of_the_one_that_was_taken_back" },
    Fence { of: CLAIM, check: "    revoked := array(select i.run from items i where i.state = 'withdrawn');", instead: "", test: "withdrawn::a_claim_that_began_before_work_was_taken_back_waits_for_its_holder_too" },
    Fence { of: CLAIM, check: "perform planctl_take_locks(candidate.locks, candidate.run, candidate.node);", instead: "null;", test: "queue::a_lock_is_held_from_the_claim_to_the_verdict_whatever_run_asks_for_it" },
    Fence { of: CLAIM, check: "and i.available_at <= clock_timestamp()", instead: "", test: "fences::a_claim_looks_only_at_items_that_are_due_and_on_its_host" },
    Fence { of: CLAIM, check: "and i.home = on_host", instead: "", test: "fences::a_claim_looks_only_at_items_that_are_due_and_on_its_host" },
    Fence { of: CLAIM, check: "generation = i.generation + 1", instead: "generation = i.generation", test: LEASED },
    Fence { of: CLAIM, check: "and i.run <> all(of_runs)", instead: "", test: SERVED },
    Fence { of: CLAIM, check: "and i.served_on = on_host", instead: "and i.served_on is not null", test: SERVED },
    Fence { of: LOCKS, check: "raise exception 'another claim was quicker' using errcode = 'PL004';", instead: "null;", test: QUICKER },
    Fence { of: LOCKS, check: "where locks.run = excluded.run and locks.node = excluded.node", instead: "", test: QUICKER },
    Fence { of: "planctl_sweep_outputs(bigint, bigint)", check: "and not exists (select from told t where t.digest = o.digest)", instead: "", test: "outputs::p20_b1_outputs_of_which_no_history_tells_are_swept_after_a_day" },
    Fence { of: "", check: "drop index items_token", instead: "", test: "group_commit::a_claim_for_all_gives_nothing_to_anybody_where_one_cannot_have_what_it_would_get" },
    Fence { of: "", check: "drop index one_active_run_per_workspace", instead: "", test: "apply::of_two_runs_that_want_a_workspace_at_once_one_has_it" },
    Fence { of: "", check: "drop index votes_that_count", instead: "", test: NAMED },
    Fence { of: "", check: "alter table runs drop constraint runs_stem_number_key", instead: "", test: NAMED },
    Fence { of: "", check: "alter table approvals drop constraint approvals_nonce_key", instead: "", test: "plans::p18_an_approval_serves_one_text_and_one_configuration_until_the_text_changes" },
    Fence { of: "", check: "alter table commands drop constraint commands_pkey", instead: "", test: "requests::p14_what_a_request_did_is_found_by_whoever_takes_it_up" },
    Fence { of: "", check: "drop trigger history_is_final on history", instead: "", test: FINAL },
    Fence { of: "", check: "drop trigger settings_are_final on run_settings", instead: "", test: FINAL },
    Fence { of: "", check: "drop trigger draft_answers_are_final on draft_answers", instead: "", test: "draft_asks::m_35_the_ask_of_a_draft_is_answered_once_and_its_answer_never_changes" },
    Fence { of: "", check: "drop trigger items_are_held_back on items", instead: "", test: "days::p15_work_is_held_back_once_the_day_s_budget_is_used_up_and_goes_on_when_it_is_raised_for_the_day" },
    Fence { of: PRUNE, check: "or exists (select from items i where i.run = r.id)", instead: "", test: FAMILIES },
    Fence { of: PRUNE, check: "or exists (select from worktrees t where t.run = r.id and t.made_at is not null and t.removed_at is null)", instead: "", test: FAMILIES },
    Fence { of: PRUNE, check: "where not exists (select from sub_plans c join runs a on a.id = c.parent where c.run = l.id)", instead: "", test: FAMILIES },
    Fence { of: PRUNE, check: "where not exists (select from unnest(roots, within) as k (root, id) where k.root = f.root and k.id <> all(locked))", instead: "where f.id = any(locked)", test: "prune::b2_a_run_that_somebody_writes_is_passed_over_with_the_runs_around_it" },
    Fence { of: CLAIM, check: "and k.paused", instead: "and false", test: "workers::a_paused_worker_finds_nothing_until_it_may_go_on" },
    Fence { of: "leases: renew", check: "and generation = $2", instead: "", test: HOLDER },
    Fence { of: "leases: renew", check: "and token_hash = $3", instead: "", test: HOLDER },
    Fence { of: "leases: renew", check: "and state = 'leased'", instead: "", test: TAKEN_BACK },
    Fence { of: "leases: renew waiting", check: "and generation = $2", instead: "", test: HOLDER },
    Fence { of: "leases: renew waiting", check: "and token_hash = $3", instead: "", test: HOLDER },
    Fence { of: "leases: renew waiting", check: "and state = 'leased'", instead: "", test: TAKEN_BACK },
    Fence { of: "leases: note usage", check: "and generation = $2", instead: "", test: HOLDER },
    Fence { of: "leases: note usage", check: "and token_hash = $3", instead: "", test: HOLDER },
    Fence { of: "leases: note usage", check: "and state = 'leased'", instead: "", test: TAKEN_BACK },
    Fence { of: "leases: is held", check: "and generation = $2", instead: "", test: HOLDER },
    Fence { of: "leases: is held", check: "and token_hash = $3", instead: "", test: HOLDER },
    Fence { of: "leases: is held", check: "and state = 'leased'", instead: "", test: TAKEN_BACK },
    Fence { of: "leases: renew", check: "least(hard_deadline, clock_timestamp() + $4::bigint * interval '1 microsecond')", instead: "clock_timestamp() + $4::bigint * interval '1 microsecond'", test: DEADLINE },
    Fence { of: "leases: is held", check: "and hard_deadline > clock_timestamp()", instead: "", test: DEADLINE },
    Fence { of: "leases: is cancelled", check: "and i.generation = $3", instead: "", test: TAKEN_BACK },
    Fence { of: "leases: is cancelled", check: "and i.token_hash = $4", instead: "", test: TAKEN_BACK },
    Fence { of: "leases: is cancelled", check: "and i.state = 'withdrawn'", instead: "", test: TAKEN_BACK },
    Fence { of: "withdrawn: acknowledge", check: "i.state = 'withdrawn' and ", instead: "", test: ACKNOWLEDGED },
    Fence { of: "withdrawn: acknowledge", check: "and i.generation = $2", instead: "", test: ACKNOWLEDGED },
    Fence { of: "withdrawn: acknowledge", check: "and i.token_hash = $3", instead: "", test: ACKNOWLEDGED },
    Fence { of: "withdrawn: release lost", check: "i.state = 'withdrawn' and ", instead: "", test: RELEASED },
    Fence { of: "withdrawn: release lost", check: "and i.host = $1", instead: "", test: RELEASED },
    Fence { of: "withdrawn: release lost", check: "and i.instance = any($2::text[])", instead: "", test: RELEASED },
    Fence { of: "withdrawn: release lost", check: "i.own and ", instead: "", test: RELEASED },
    Fence { of: "withdrawn: release lost", check: "i.lease_until < clock_timestamp() or", instead: "true or", test: RELEASED },
    Fence { of: "requests: begin request", check: "requests.status is null and ", instead: "", test: "requests::p14_a_repeated_request_gets_the_stored_answer_and_another_under_its_key_none" },
    Fence { of: "requests: begin request", check: "and requests.route = $3 and requests.body_hash = $4", instead: "", test: "requests::a_request_whose_process_died_is_fresh_again_and_one_that_was_left_at_once" },
    Fence { of: "requests: begin request", check: "(requests.call is null", instead: "(true", test: "requests::of_eight_that_send_one_request_at_once_one_does_it" },
    Fence { of: "requests: answer request", check: "and status is null", instead: "", test: "requests::p14_a_repeated_request_gets_the_stored_answer_and_another_under_its_key_none" },
    Fence { of: "requests: leave request", check: "and call = $3", instead: "", test: "requests::a_request_whose_process_died_is_fresh_again_and_one_that_was_left_at_once" },
    Fence { of: "tokens: token of", check: "revoked_at is null and", instead: "", test: "tokens::unknown_expired_and_revoked_secrets_are_alike" },
    Fence { of: "tokens: token of", check: "(expires_at is null or expires_at > clock_timestamp())", instead: "true", test: "tokens::unknown_expired_and_revoked_secrets_are_alike" },
    Fence { of: "timers: timers due", check: "at <= clock_timestamp() and", instead: "", test: "apply::a_timer_fires_only_when_it_is_due" },
    Fence { of: "plans: approval for", check: "and config_digest = $3", instead: "", test: "plans::p18_an_approval_serves_one_text_and_one_configuration_until_the_text_changes" },
    Fence { of: "plans: approval for", check: "and voided_at is null", instead: "", test: "plans::p18_an_approval_serves_one_text_and_one_configuration_until_the_text_changes" },
    Fence { of: "draft_records: keep", check: "d.record_version = $7 or", instead: "true or", test: "draft_asks::m_13_a_draft_is_kept_over_the_version_that_its_machine_knows_and_over_no_other" },
    Fence { of: "days: release held back", check: "and not exists (select from planctl_days_1(r.workspace, w.host, r.settings -> 'day') d where d.is_over)", instead: "", test: "days::p15_the_next_day_in_the_named_time_zone_lets_work_go_on_by_itself" },
];

#[test]
fn a_test_turns_red_for_each_fence_that_is_removed() {
    let unnoticed: Vec<String> = FENCES
        .iter()
        .filter_map(|fence| {
            let this = std::env::current_exe().unwrap();
            let run = Command::new(this)
                .args(["--exact", fence.test])
                .env(REMOVED_CHECK, [fence.of, fence.check, fence.instead].join("\u{1f}"))
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&run.stdout).into_owned();
            let is_red = printed.contains("0 passed; 1 failed") && !printed.contains("the function has no");
            (!is_red).then(|| format!("without `{}`, {}:\n{printed}", fence.check, fence.test))
        })
        .collect();
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}
