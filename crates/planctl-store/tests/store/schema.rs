//! The schema: every statement prepares, and only databases of ours are touched.

use std::time::{Duration, Instant};

use planctl_store::testing::TestCluster;
use planctl_store::{Begun, Request, RequestKey, STATEMENTS, Settings, Store, StoreError};
use sqlx::{Connection as _, Executor as _, PgConnection, SqlSafeStr as _};

use crate::world::database;

#[tokio::test]
async fn every_statement_prepares_against_a_migrated_database() {
    let database = database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    assert!(STATEMENTS.len() > 50);
    for (name, text) in STATEMENTS {
        if let Err(error) = connection.prepare(text.into_sql_str()).await {
            panic!("{name} does not prepare: {error}");
        }
    }
}

#[tokio::test]
async fn row_103_a_database_of_something_else_is_refused_and_left_alone() {
    let database = TestCluster::shared().empty_database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    connection.execute("create table customers (id int)").await.unwrap();
    let store = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
    let refused = store.migrate().await;
    assert!(
        matches!(&refused, Err(StoreError::Foreign { tables }) if tables == &["customers"]),
        "{refused:?}"
    );
    let tables: i64 = sqlx::query_scalar("select count(*) from pg_tables where schemaname = 'public'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(tables, 1);
}

/// Another planctl that ends takes the private server with it, in the middle of any statement.
#[tokio::test]
async fn a_migration_whose_session_is_ended_begins_again() {
    let database = TestCluster::shared().empty_database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    connection
        .execute(
            "create sequence hits; \
             create function cut() returns event_trigger language plpgsql as $$ begin \
               if nextval('hits') = 3 then perform pg_terminate_backend(pg_backend_pid()); end if; end $$; \
             create event trigger cut on ddl_command_end execute function cut()",
        )
        .await
        .unwrap();
    let store = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
    store.migrate().await.unwrap();
    store.check_schema().await.unwrap();
    let hits: i64 =
        sqlx::query_scalar("select last_value from hits").fetch_one(&mut connection).await.unwrap();
    assert!(hits > 3, "the first try was cut");
}

#[tokio::test]
async fn a_database_of_a_newer_planctl_is_refused() {
    let database = database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    connection.execute("insert into planctl_migrations (version, name) values (900, 'later')").await.unwrap();
    let store = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
    for outcome in [store.migrate().await, store.check_schema().await] {
        assert!(matches!(outcome, Err(StoreError::NewerSchema { found: 900, .. })), "{outcome:?}");
    }
}

#[tokio::test]
async fn row_101_a_wrong_password_is_told_and_not_shown() {
    let cluster = TestCluster::private();
    let database = cluster.empty_database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    let rules: String = sqlx::query_scalar("show hba_file").fetch_one(&mut connection).await.unwrap();
    let text = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, format!("local all picky scram-sha-256\n{text}")).unwrap();
    connection.execute("create role picky login password 'right'").await.unwrap();
    connection.execute("select pg_reload_conf()").await.unwrap();
    let picky = |password: &str| database.connect_options().username("picky").password(password);
    // The server takes its new rules a moment later; until then anybody is let in.
    let refused = loop {
        match Store::connect(picky("hunter2"), Settings::default()).await {
            Ok(store) => store.close().await,
            Err(error) => break error,
        }
    };
    let text = refused.to_string();
    assert!(matches!(refused, StoreError::Denied { .. }) && text.contains("password"), "{refused:?}");
    assert!(!format!("{text} {refused:?}").contains("hunter2"), "{refused:?}");
    Store::connect(picky("right"), Settings::default()).await.unwrap().close().await;
}

#[tokio::test]
async fn row_104_a_postgres_that_is_too_old_is_named() {
    let database = database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    // The version that a server reports counts, so this one reports an older one.
    let older = "create function public.current_setting(text) returns text language sql as \
        $$ select case $1 when 'server_version_num' then '110022' when 'server_version' then '11.22' \
        else pg_catalog.current_setting($1) end $$";
    connection.execute(older).await.unwrap();
    let options = database.connect_options().options([("search_path", "public,pg_catalog")]);
    let refused = Store::connect(options, Settings::default()).await;
    let error = refused.err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, StoreError::OldPostgres { .. }), "{error:?}");
    assert!(text.contains("Postgres 11.22") && text.contains("14 or newer"), "{text}");
}

#[tokio::test]
async fn two_migrators_at_once_make_one_schema() {
    let database = TestCluster::shared().empty_database().await;
    let one = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
    let two = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
    assert!(matches!(one.check_schema().await, Err(StoreError::OlderSchema { found: 0, .. })));
    let (first, second) = tokio::join!(one.migrate(), two.migrate());
    first.unwrap();
    second.unwrap();
    one.check_schema().await.unwrap();
}

#[tokio::test]
async fn row_101_a_wrong_password_or_a_missing_database_is_denied_without_waiting() {
    let database = TestCluster::shared().empty_database().await;
    let missing = database.connect_options().database("there_is_no_such_database");
    let settings = Settings { connect_deadline: Duration::from_secs(60), ..Settings::default() };
    let (began, most) = (Instant::now(), settings.connect_deadline);
    let outcome = Store::connect(missing, settings).await;
    assert!(matches!(outcome, Err(StoreError::Denied { .. })));
    assert!(began.elapsed() < most);
}

/// Tables as version 6 left them, which had kept the secrets of tokens with the answers of those who made them.
#[tokio::test]
async fn secrets_that_were_kept_with_answers_are_gone_after_the_migration() {
    const BEFORE: [(&str, &str); 6] = [
        ("plans", include_str!("../../../../migrations/0001_plans.sql")),
        ("runs", include_str!("../../../../migrations/0002_runs.sql")),
        ("daemon", include_str!("../../../../migrations/0003_daemon.sql")),
        ("graphs", include_str!("../../../../migrations/0004_graphs.sql")),
        ("sub_plans", include_str!("../../../../migrations/0005_sub_plans.sql")),
        ("claims", include_str!("../../../../migrations/0006_claims.sql")),
    ];
    let database = TestCluster::shared().empty_database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    connection
        .execute(
            "create table planctl_migrations (version bigint primary key, name text not null, \
             applied_at timestamptz not null default clock_timestamp())",
        )
        .await
        .unwrap();
    for (version, (name, text)) in (1_i64..).zip(BEFORE) {
        connection.execute(text).await.unwrap();
        let applied = sqlx::query("insert into planctl_migrations (version, name) values ($1, $2)");
        applied.bind(version).bind(name).execute(&mut connection).await.unwrap();
    }
    let secret = format!("planctl_admin_{}", "5e".repeat(32));
    for (key, route, answer) in [
        ("one", "POST /v1/tokens", format!(r#"{{"token": {{"id": "a"}}, "secret": "{secret}"}}"#)),
        ("two", "POST /v1/topics/t", r#"{"topic": "t"}"#.to_owned()),
    ] {
        let insert = "insert into requests (principal, key, route, body_hash, call, status, answer) \
             values ('ann', $1, $2, sha256('{}'), gen_random_uuid(), 200, convert_to($3, 'UTF8'))";
        sqlx::query(insert).bind(key).bind(route).bind(answer).execute(&mut connection).await.unwrap();
    }
    let store = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
    store.migrate().await.unwrap();
    let kept: Vec<(i32, String)> =
        sqlx::query_as("select status, convert_from(answer, 'UTF8') from requests order by key")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert!(kept[0].0 == 409 && kept[0].1.contains("shown once") && !kept[0].1.contains("5e5e"), "{kept:?}");
    assert_eq!(kept[1], (200, r#"{"topic": "t"}"#.to_owned()));
    let request = Request::new("ann", RequestKey::parse("one").unwrap(), "POST /v1/tokens", b"{}");
    let begun = store.begin_request(&request).await.unwrap();
    assert!(matches!(begun, Begun::Answered { status: 409, .. }), "{begun:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_schema_that_another_process_makes_meanwhile_is_not_taken_for_somebody_elses() {
    let database = TestCluster::shared().empty_database().await;
    let store = || Store::connect(database.connect_options(), Settings::default());
    let mut looking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = store().await.unwrap();
        looking.spawn(async move {
            loop {
                match store.check_schema().await {
                    Ok(()) => return,
                    Err(StoreError::OlderSchema { found: 0, .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    store().await.unwrap().migrate().await.unwrap();
    while let Some(looked) = looking.join_next().await {
        looked.unwrap();
    }
}
