//! P23: daemons of earlier versions and of this one share a database while they are replaced one by one.

use std::fs;
use std::path::Path;

use sqlx::{Executor as _, PgConnection, SqlSafeStr as _};
use uuid::Uuid;

use crate::withdrawn::locking;
use crate::world::{HOST, world_of};

/// Claims as earlier versions wrote them: by the newest schema that their daemons knew.
const CLAIMS: [(u32, &str); 2] =
    [(5, include_str!("earlier/claim_5.sql")), (9, include_str!("earlier/claim_9.sql"))];

#[tokio::test]
async fn p23_b8_daemons_of_earlier_versions_claim_on_the_schema_of_this_one() {
    for (version, claim) in CLAIMS {
        let world = world_of(locking()).await;
        let [first, second] =
            [world.begun_at("/one", &locking()).await, world.begun_at("/two", &locking()).await];
        let mut aside = world.aside().await;
        let mut claimed = Vec::new();
        for run in [&first, &second] {
            let rows = sqlx::query(claim)
                .bind("agent")
                .bind(Uuid::from_u128(run.id.as_u128()))
                .bind(vec!["coder"])
                .bind(run.name.as_bytes())
                .bind(HOST)
                .bind("boot")
                .bind("earlier")
                .bind(true)
                .bind(15_000_000_i64)
                .fetch_all(&mut aside)
                .await;
            claimed.push(rows.unwrap_or_else(|error| panic!("schema {version}: {error}")).len());
        }
        assert_eq!(claimed, [1, 0], "schema {version}: one of them has the lock that both need");
        assert!(
            world.claim(second.id, "this one").await.is_none(),
            "schema {version}: the lock holds here, too"
        );
    }
}

/// The words by which a migration takes something away that an earlier version still uses.
const TAKES_AWAY: [&str; 7] =
    ["drop", "rename", "truncate", "set not null", "alter column", "create or replace", "add constraint"];

#[test]
fn p23_b8_migrations_only_add() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let mut looked_at = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Those before were made while no version was out that could run beside them.
        if name.as_str() < "0010" {
            continue;
        }
        looked_at += 1;
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        let code: String = text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
            // No statement names an index: without it, an earlier version finds the same rows in more time.
            .replace("drop index", "")
            // Names of runs are counted in each workspace since 0013: a wider constraint of the same name refuses nothing that
            // earlier versions write.
            // Since 0018 a history may go with its whole run; to what earlier versions do, the triggers answer as before.
            .replace("drop trigger history_is_final on history", "")
            .replace("drop trigger settings_are_final on run_settings", "")
            // Since 0037 the sums of usage tell estimated tokens, too. A trigger alone calls the function, and what earlier versions
            // write is summed as before.
            .replace("create or replace function planctl_usage_is_told(", "")
            // Since 0039 counts that no column holds are cut. To all that earlier versions got an answer for, the answer is the same.
            .replace("create or replace function planctl_use_1(", "")
            .replace("create or replace function planctl_run_uses(", "")
            .replace("create or replace function planctl_run_within_used(", "")
            .replace("create or replace function planctl_days_1(", "")
            .replace("create or replace function planctl_spent_today_1(", "")
            // Since 0043 the trigger that counts what runs use is not called where nothing was used.
            .replace("drop trigger runs_use on runs", "")
            // Since 0041 a claim gives out no work beside a revoked holder that it saw too late, for earlier versions as well.
            .replace("create or replace function planctl_claim_1(", "")
            // Since 0044 a transition leases work to one who waits for it. To what earlier versions write, it answers as before.
            .replace("create or replace function planctl_commit_1(", "")
            // Since 0025 an ask may be of a draft. Earlier versions read asks together with their runs, and so see no others.
            .replace("alter column run drop not null", "")
            .replace("alter column node drop not null", "")
            .replace("alter column visit drop not null", "")
            .replace("alter column attempt drop not null", "")
            .replace("drop constraint runs_stem_number_key", "")
            .replace("add constraint runs_stem_number_key", "");
        let found: Vec<_> = TAKES_AWAY.iter().filter(|words| code.contains(**words)).collect();
        assert!(found.is_empty(), "{name} takes away what earlier versions use: {found:?}");
    }
    assert!(looked_at > 0);
}

/// The statements by which daemons of the version before this one write, by name: those that knew schema 10.
const WRITES: &str = include_str!("earlier/writes_10.sql");

fn writes() -> Vec<(&'static str, &'static str)> {
    let statements = WRITES.split("-- ").filter_map(|part| part.split_once('\n'));
    statements.map(|(name, text)| (name, text.trim().trim_end_matches(';'))).collect()
}

#[tokio::test]
async fn p23_b8_what_daemons_of_the_version_before_write_prepares_on_the_schema_of_this_one() {
    let database = crate::world::database().await;
    let mut connection = crate::world::connect(&database).await;
    let writes = writes();
    assert!(writes.len() > 40, "{}", writes.len());
    for (name, text) in writes {
        if let Err(error) = connection.prepare(text.into_sql_str()).await {
            panic!("{name} of schema 10 does not prepare: {error}");
        }
    }
}

/// Says which columns without a default the rows of the version before lack.
async fn columns_without_value(connection: &mut PgConnection) -> Vec<String> {
    let needed: Vec<(String, String)> = sqlx::query_as(
        "select table_name::text, column_name::text from information_schema.columns where table_schema = 'public' \
         and is_nullable = 'NO' and column_default is null and is_identity = 'NO' and is_generated = 'NEVER'",
    )
    .fetch_all(connection)
    .await
    .unwrap();
    let mut lacking = Vec::new();
    let mut inserts = 0;
    for (name, text) in writes() {
        for insert in text.split("insert into ").skip(1) {
            let Some((table, rest)) = insert.split_once(" (") else { continue };
            let columns: Vec<&str> = rest.split(')').next().unwrap().split(',').map(str::trim).collect();
            inserts += 1;
            let of_table = needed.iter().filter(|(of, _)| of == table);
            let lacks = of_table.filter(|(_, column)| !columns.contains(&column.as_str()));
            lacking.extend(lacks.map(|(table, column)| format!("{name}: {table}.{column}")));
        }
    }
    assert!(inserts > 15, "{inserts}");
    lacking
}

#[tokio::test]
async fn p23_b8_rows_of_the_version_before_have_a_value_for_each_column_that_needs_one() {
    let database = crate::world::database().await;
    let mut connection = crate::world::connect(&database).await;
    assert_eq!(columns_without_value(&mut connection).await, Vec::<String>::new());
    connection.execute("alter table notes add column colour text not null").await.unwrap();
    assert_eq!(columns_without_value(&mut connection).await, ["topics: post note: notes.colour"]);
}
