//! A database with a long past: no statement reads through it to find what is under way.

use planctl_store::STATEMENTS;
use planctl_store::testing::{PAST, RUN_ID, TestDatabase};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use crate::fences::{DRAFT, UNDER_WAY, claim, commit, transition};
use crate::world::{connect, database};

/// The most rows that a statement may read and throw away.
const FILTERED_MAX: f64 = 1000.0;

/// Values by the type of a parameter: of things that are there, and of things that are not.
const VALUES: [[(&str, &str); 3]; 2] = [
    [("uuid", "run_id(50000)"), ("bigint", "100"), ("text", "'host-a'")],
    [("uuid", "run_id(999999)"), ("bigint", "5000"), ("text", "'nobody'")],
];

/// Look-ups that nothing narrows down; and work, of which another host has a lot.
const OF_ALL: [(&str, &str); 8] = [
    ("queue: next work", "'host-a', '{coder}'"),
    ("runs: asks", "null, null"),
    ("runs: asks waiting", "null, null"),
    ("runs: runs", "null, 100, null, null, null"),
    ("runs: run of path", "null, 'nobody'"),
    ("runs: runs beginning", "'nobody', 'nobodz', null, null, null"),
    ("runs: runs named", "'nobody-1', null"),
    ("plans: plans", "null, null, 100"),
];

fn value(kind: &str, of: &[(&str, &str); 3]) -> String {
    let scalar = kind.strip_suffix("[]");
    let value = of.iter().find(|(named, _)| *named == kind).map(|(_, value)| *value);
    match (scalar, kind) {
        (Some(_), _) => format!("'{{}}'::{kind}"),
        (None, "integer") => "1".to_owned(),
        (None, "boolean") => "false".to_owned(),
        (None, "json" | "jsonb") => "'{}'".to_owned(),
        (None, "bytea") => "'\\x00'".to_owned(),
        (None, "timestamp with time zone") => "now()".to_owned(),
        (None, _) => value.unwrap_or("null").to_owned(),
    }
}

/// Counts the rows that a plan and the plans below it read and threw away.
fn filtered(plan: &Value) -> f64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let thrown = ["Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck"];
    let own: f64 = thrown.into_iter().map(number).sum::<f64>() * number("Actual Loops").max(1.0);
    own + plan["Plans"].as_array().into_iter().flatten().map(filtered).sum::<f64>()
}

async fn with_a_past() -> (TestDatabase, PgConnection) {
    let database = database().await;
    let mut connection = connect(&database).await;
    connection.execute(RUN_ID).await.unwrap();
    connection.execute(PAST).await.unwrap();
    connection.execute("analyze").await.unwrap();
    (database, connection)
}

/// Statements that read through the history of one run, once for a person who looks at it: an index of facts by node would be
/// written by every transition. The database throws the other lines away, in place of sending them all.
const OF_ONE_HISTORY: [&str; 2] = ["history: of node", "history: answer"];

/// Statements that are a call whose values the general ones don't fit. The plans of a function's own statements are looked at by
/// [`calls_of_functions`].
const CALLS: [&str; 3] = ["apply: commit", "apply: read", "queue: claim"];

/// Counts the rows that a call reads in the tables of the store, by index or by a scan, and undoes the call.
async fn rows_read(connection: &mut PgConnection, call: &str) -> i64 {
    let read = "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables";
    connection.execute("begin").await.unwrap();
    // The server goes on counting in the transactions after this one.
    let before: i64 = sqlx::query_scalar(read).fetch_one(&mut *connection).await.unwrap();
    connection.execute(AssertSqlSafe(call.to_owned())).await.unwrap();
    let after: i64 = sqlx::query_scalar(read).fetch_one(&mut *connection).await.unwrap();
    connection.execute("rollback").await.unwrap();
    after - before
}

fn calls_of_functions() -> Vec<String> {
    let claims = [
        "'run', 'agent', run_id(200000), '{coder}', '{}', 'host-a'",
        "'run', 'harness', run_id(200000), '{host-a}', '{}', 'host-a'",
        "'roles', 'agent', null, '{coder}', '{}', 'host-a'",
        "'roles', 'agent', null, '{tester,coder}', array[run_id(200000)], 'host-a'",
        "'roles', 'harness', null, '{host-a}', '{}', 'host-a'",
        "'pairs', 'agent', null, '{coder,coder}', array[run_id(1), run_id(200000)], 'host-a'",
        "'served', 'agent', null, '{}', array[run_id(1)], 'host-a'",
    ];
    let reads = [
        "run_id(50000), 'nodes', '{1,2}', 'work', null, 'stale', 29000",
        "run_id(200000), 'live', '{1,2}', 'work', null, 'stale', 5",
        "run_id(200000), 'all', '{}', 'work', null, 'stale', 5",
    ];
    let transition = transition();
    let asks = r#"[{"slot": "1", "digest": "d", "ask": {"kind": "question"}}]"#;
    let day = r#"{"zone": "UTC", "project": {"tokens": 1}, "host": {"tokens": 1}}"#;
    let others = [
        commit(std::slice::from_ref(&transition)),
        format!("select planctl_vote_1('ask', 'ann', 'approve', 'd', null, '{{}}', '[{transition}]')"),
        format!("select planctl_draft_asks_1(1, 'd', 'List it', '{{}}', '{asks}')"),
        "select planctl_answer_draft_1('of a draft', 'ann', 'approve', 'd', null, '{}', true)".to_owned(),
        "select planctl_seal_settings(run_id(50000))".to_owned(),
        "select planctl_sweep_outputs(0, 100)".to_owned(),
        "select planctl_prune_2(0, 50, null)".to_owned(),
        "select planctl_prune_2(0, 50, run_id(60000))".to_owned(),
        "select planctl_prune_drafts_2(0)".to_owned(),
        format!("select planctl_days_1(1, 'host-a', '{day}')"),
        "select planctl_spent_today_1('UTC', 1)".to_owned(),
        "select planctl_quiet_until_1('UTC', '22:00', '07:00')".to_owned(),
    ];
    let claims = claims.iter().map(|of| claim(of));
    let reads = reads.iter().map(|of| format!("select planctl_read_2({of})"));
    others.into_iter().chain(claims).chain(reads).collect()
}

#[test]
fn each_function_that_a_statement_calls_is_looked_at() {
    let calls = calls_of_functions().join("\n");
    let called = STATEMENTS.iter().flat_map(|(name, text)| {
        let functions = text.split("planctl_").skip(1).filter_map(|rest| rest.split_once('('));
        let functions =
            functions.filter(|(function, _)| function.chars().all(|c| c.is_alphanumeric() || c == '_'));
        functions.map(move |(function, _)| (name, format!("planctl_{function}(")))
    });
    let missing: Vec<_> = called.filter(|(_, function)| !calls.contains(function.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The server makes the plans of a function once in a session, from the tables' statistics at that time.
#[tokio::test]
async fn b2_functions_read_few_rows_also_by_plans_that_were_made_when_the_tables_were_nearly_empty() {
    let database = database().await;
    let mut connection = connect(&database).await;
    connection.execute(RUN_ID).await.unwrap();
    connection.execute(UNDER_WAY).await.unwrap();
    connection.execute(DRAFT).await.unwrap();
    for call in calls_of_functions() {
        rows_read(&mut connection, &call).await;
    }
    // Nobody analyses the tables: the server goes on with the plans that it has.
    connection.execute(PAST).await.unwrap();
    assert_reads_little(&mut connection).await;
}

/// A session that begins on the full tables makes its plans by their statistics.
#[tokio::test]
async fn b2_functions_read_few_rows_in_a_session_that_begins_now() {
    let (database, mut connection) = with_a_past().await;
    connection.execute(UNDER_WAY).await.unwrap();
    connection.execute(DRAFT).await.unwrap();
    connection.execute("analyze").await.unwrap();
    assert_reads_little(&mut connect(&database).await).await;
}

async fn assert_reads_little(connection: &mut PgConnection) {
    let mut troubles = Vec::new();
    for call in calls_of_functions() {
        let read = rows_read(connection, &call).await;
        if read > 1000 {
            troubles.push(format!("{read} rows: {call}"));
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

/// Explains a statement that was carried out, after the server has planned it as often as it does before it keeps a plan.
async fn explained(connection: &mut PgConnection, values: &str) -> Result<Value, sqlx::Error> {
    let execute =
        format!("execute looked_at{}", if values.is_empty() { String::new() } else { format!("({values})") });
    for _ in 0..6 {
        connection.execute(AssertSqlSafe(format!("explain {execute}"))).await?;
    }
    let analyze = format!("explain (analyze, timing off, format json) {execute}");
    let row = connection.fetch_one(sqlx::raw_sql(AssertSqlSafe(analyze))).await?;
    Ok(serde_json::from_str(row.try_get_unchecked::<&str, _>(0)?).unwrap())
}

#[tokio::test]
async fn b2_no_statement_reads_through_a_hundred_thousand_runs_that_have_ended() {
    let (_database, mut connection) = with_a_past().await;
    let mut troubles = Vec::new();
    let of_the_data = STATEMENTS.iter().filter(|(name, _)| {
        !["connections: ", "migrate: ", "server: "].iter().any(|family| name.starts_with(family))
            && !CALLS.contains(name)
            && !OF_ONE_HISTORY.contains(name)
    });
    for (name, text) in of_the_data {
        connection.execute(AssertSqlSafe(format!("prepare looked_at as {text}"))).await.unwrap();
        let kinds: Vec<String> = sqlx::query_scalar(
            "select unnest(parameter_types)::text from pg_prepared_statements where name = 'looked_at'",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let listed = |of| kinds.iter().map(|kind| value(kind, of)).collect::<Vec<_>>().join(", ");
        let of_all = OF_ALL.iter().filter(|(known, _)| known == name).map(|(_, values)| (*values).to_owned());
        for values in VALUES.iter().map(listed).chain(of_all) {
            connection.execute("begin").await.unwrap();
            match explained(&mut connection, &values).await {
                Ok(plan) if filtered(&plan[0]["Plan"]) > FILTERED_MAX => {
                    troubles
                        .push(format!("{name} ({values}) throws {} rows away", filtered(&plan[0]["Plan"])));
                }
                Ok(_) => {}
                Err(error) => {
                    // A fence ends a statement, or a constraint does that these values break.
                    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
                    if code.is_none_or(|code| !code.starts_with("PL") && !code.starts_with("23")) {
                        troubles.push(format!("{name} ({values}): {error}"));
                    }
                }
            }
            connection.execute("rollback").await.unwrap();
        }
        connection.execute("deallocate looked_at").await.unwrap();
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

#[tokio::test]
async fn b8_a_claim_of_several_roles_reads_what_is_due_first_and_no_more() {
    /// 20,000 items wait: one claim needs the first of each role, and a few more that others may be at.
    const READ_MAX: i64 = 100;
    let (_database, mut connection) = with_a_past().await;
    let waiting = "insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at,
        span_micros, generation, created_at, home)
      select 'own' || n, run_id(n), '2', 1, 1, 'agent', case when n % 2 = 0 then 'coder' else 'tester' end, 'ready', '{}',
        now(), now(), 1, 0, now(), 'host-a' from generate_series(1, 20000) n";
    connection.execute(waiting).await.unwrap();
    connection.execute("analyze items").await.unwrap();
    let claim = claim("'roles', 'agent', null, '{tester,coder}', '{}', 'host-a'");
    let read = rows_read(&mut connection, &claim).await;
    assert!(read > 0 && read <= READ_MAX, "{read} rows");
}
