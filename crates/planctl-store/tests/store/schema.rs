//! The schema: every statement prepares, and only databases of ours are touched.

use planctl_store::testing::TestCluster;
use planctl_store::{STATEMENTS, Settings, Store, StoreError};
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
async fn a_database_of_something_else_is_refused_and_left_alone() {
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
async fn a_wrong_password_or_a_missing_database_is_denied_without_waiting() {
    let database = TestCluster::shared().empty_database().await;
    let missing = database.connect_options().database("there_is_no_such_database");
    let began = std::time::Instant::now();
    let outcome = Store::connect(missing, Settings::default()).await;
    assert!(matches!(outcome, Err(StoreError::Denied { .. })));
    assert!(began.elapsed() < std::time::Duration::from_secs(4));
}

#[tokio::test]
async fn claims_find_their_items_by_index_on_a_table_that_is_nearly_empty() {
    let database = database().await;
    let mut connection = PgConnection::connect_with(&database.connect_options()).await.unwrap();
    connection.execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan").await.unwrap();
    let claims =
        [("claim in run", 9, "items_"), ("claim", 10, "items_due"), ("claim served", 10, "items_served")];
    for (name, parameters, index) in claims {
        let (_, text) = STATEMENTS.iter().find(|(known, _)| *known == format!("queue: {name}")).unwrap();
        let nulls = vec!["null"; parameters].join(", ");
        let explain = format!("deallocate all; prepare claim as {text}; explain execute claim ({nulls})");
        let plan: Vec<String> = connection
            .fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(explain)))
            .await
            .unwrap()
            .iter()
            .map(|row| sqlx::Row::get(row, 0))
            .collect();
        let plan = plan.join("\n");
        assert!(plan.contains(&format!("using {index}")), "{name}: {plan}");
        assert!(!plan.contains("Seq Scan"), "{name}: {plan}");
    }
}
