//! Brings the schema up to date: forward only, one transaction per migration, one migrator at a time.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection, Executor, Row};

use crate::connections::RetryPolicy;
use crate::error::StoreError;
use crate::store::Store;

/// Every migration, oldest first: version, name, text.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "plans", include_str!("../../../migrations/0001_plans.sql")),
    (2, "runs", include_str!("../../../migrations/0002_runs.sql")),
    (3, "daemon", include_str!("../../../migrations/0003_daemon.sql")),
    (4, "graphs", include_str!("../../../migrations/0004_graphs.sql")),
    (5, "sub_plans", include_str!("../../../migrations/0005_sub_plans.sql")),
    (6, "claims", include_str!("../../../migrations/0006_claims.sql")),
    (7, "keys", include_str!("../../../migrations/0007_keys.sql")),
    (8, "sealed_settings", include_str!("../../../migrations/0008_sealed_settings.sql")),
    (9, "roles", include_str!("../../../migrations/0009_roles.sql")),
    (10, "upkeep", include_str!("../../../migrations/0010_upkeep.sql")),
    (11, "commit", include_str!("../../../migrations/0011_commit.sql")),
    (12, "claim", include_str!("../../../migrations/0012_claim.sql")),
    (13, "names", include_str!("../../../migrations/0013_names.sql")),
    (15, "library", include_str!("../../../migrations/0015_library.sql")),
    (18, "messages", include_str!("../../../migrations/0018_messages.sql")),
    (19, "votes", include_str!("../../../migrations/0019_votes.sql")),
    (21, "traces", include_str!("../../../migrations/0021_traces.sql")),
    (22, "quiet", include_str!("../../../migrations/0022_quiet.sql")),
    (23, "attendance", include_str!("../../../migrations/0023_attendance.sql")),
    (24, "days", include_str!("../../../migrations/0024_days.sql")),
    (25, "draft_asks", include_str!("../../../migrations/0025_draft_asks.sql")),
    (27, "usage_sums", include_str!("../../../migrations/0027_usage_sums.sql")),
    (29, "acknowledgements", include_str!("../../../migrations/0029_acknowledgements.sql")),
    (30, "deadlines", include_str!("../../../migrations/0030_deadlines.sql")),
    (32, "draft_records", include_str!("../../../migrations/0032_draft_records.sql")),
    (35, "decisions", include_str!("../../../migrations/0035_decisions.sql")),
    (37, "judges", include_str!("../../../migrations/0037_judges.sql")),
    (38, "taken_back", include_str!("../../../migrations/0038_taken_back.sql")),
    (39, "counts", include_str!("../../../migrations/0039_counts.sql")),
    (40, "left_at", include_str!("../../../migrations/0040_left_at.sql")),
    (41, "revoked", include_str!("../../../migrations/0041_revoked.sql")),
    (42, "prune", include_str!("../../../migrations/0042_prune.sql")),
    (43, "spent", include_str!("../../../migrations/0043_spent.sql")),
    (44, "waiting", include_str!("../../../migrations/0044_waiting.sql")),
    (45, "analyze", include_str!("../../../migrations/0045_analyze.sql")),
];

/// Reads the digest through the whole row, since tables of earlier versions have no such column.
pub(crate) const SCHEMA_APPLIED: &str = "select version, name, to_jsonb(m) ->> 'digest' as digest \
     from planctl_migrations m order by version";
/// Reads the catalog itself: a session that waited for another migrator may still remember that the name was unknown.
pub(crate) const SCHEMA_EXISTS: &str = "select exists (select from pg_class where relname = 'planctl_migrations' \
     and relnamespace = current_schema()::regnamespace) as known";
/// Lists none where planctl's are there: another process may have made them since somebody looked.
pub(crate) const SCHEMA_TABLES: &str = "select c.relname::text as name from pg_class c \
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') \
       and not exists (select from pg_class m where m.relname = 'planctl_migrations' \
         and m.relnamespace = current_schema()::regnamespace) \
       and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e') \
     order by 1 limit 8";
pub(crate) const SCHEMA_FUNCTIONS: &str = "select p.oid::regprocedure::text as name from pg_proc p \
     where p.pronamespace = current_schema()::regnamespace and p.proname = any($1)";
pub(crate) const SCHEMA_RECORD: &str =
    "insert into planctl_migrations (version, name, digest) values ($1, $2, $3)";
const SCHEMA_CREATE: &str = "create table if not exists planctl_migrations (version bigint primary key, \
     name text not null, applied_at timestamptz not null default clock_timestamp(), digest text)";
const SCHEMA_DIGEST: &str = "alter table planctl_migrations add column if not exists digest text";
/// The key is the letters "plan" and "ctl" as numbers; held to the transaction's end.
pub(crate) const SCHEMA_LOCK: &str = "select pg_advisory_xact_lock(1886155118, 6517868)";
/// A migration may take longer than the timeouts of the hot path allow.
const SCHEMA_WITHOUT_TIMEOUTS: &str = "set local statement_timeout = 0; set local lock_timeout = 0; \
     set local idle_in_transaction_session_timeout = 0";

impl Store {
    /// Brings the schema up to date; does nothing where it is.
    ///
    /// # Errors
    ///
    /// [`StoreError::Foreign`] where the database holds somebody else's tables, [`StoreError::NewerSchema`] where a
    /// newer planctl was here, and those of the connection.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate(self).await
    }

    /// Checks that the schema is the one this planctl knows, without changing it.
    ///
    /// # Errors
    ///
    /// [`StoreError::OlderSchema`], [`StoreError::NewerSchema`], [`StoreError::Foreign`], and those of the connection.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        check(self).await
    }

    /// Takes planctl's tables away where none of them holds a row; says whether the database holds nothing now.
    ///
    /// # Errors
    ///
    /// Those of [`Store::migrate`].
    pub async fn drop_unused_schema(&self) -> Result<bool, StoreError> {
        drop_unused(self).await
    }

    /// Names the schema's content, for those who keep a migrated database to copy.
    pub fn schema_fingerprint() -> String {
        fingerprint()
    }
}

pub(crate) fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |(version, _, _)| *version)
}

fn fingerprint() -> String {
    let mut hasher = Sha256::new();
    hasher.update(SCHEMA_CREATE);
    for (_, name, text) in MIGRATIONS {
        hasher.update(name);
        hasher.update(text);
    }
    planctl_engine::hex(&hasher.finalize())
}

fn digest_of(text: &str) -> String {
    planctl_engine::hex(&Sha256::digest(text))
}

/// Brings the schema up to date. A server that goes away meanwhile is waited for as any statement waits: all of it is one
/// transaction, so it begins again with what is there then.
async fn migrate(store: &Store) -> Result<(), StoreError> {
    let mut retries = RetryPolicy::new(store.settings());
    loop {
        match migrate_once(store).await {
            Err(StoreError::Unavailable { source }) => retries.wait_or_fail(source).await?,
            migrated => return migrated,
        }
    }
}

async fn migrate_once(store: &Store) -> Result<(), StoreError> {
    let found = version(store).await?;
    if found == Some(newest()) {
        return Ok(());
    }
    let mut connection = store.connections().acquire().await?;
    let result = migrate_on(&mut connection).await;
    match result {
        Ok(()) => {
            connection.recycle(Ok(()))?;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

async fn migrate_on(connection: &mut sqlx::PgConnection) -> Result<(), StoreError> {
    let mut transaction = connection.begin().await?;
    transaction.execute(SCHEMA_WITHOUT_TIMEOUTS).await?;
    transaction.execute(SCHEMA_LOCK).await?;
    let known: bool = sqlx::query(SCHEMA_EXISTS).fetch_one(&mut *transaction).await?.try_get("known")?;
    let found = if known {
        let found = check_applied(&sqlx::query(SCHEMA_APPLIED).fetch_all(&mut *transaction).await?)?;
        transaction.execute(SCHEMA_DIGEST).await?;
        found
    } else {
        refuse_foreign(&mut transaction).await?;
        transaction.execute(SCHEMA_CREATE).await?;
        0
    };
    for (version, name, text) in MIGRATIONS.iter().filter(|(version, _, _)| *version > found) {
        transaction.execute(*text).await?;
        let record = sqlx::query(SCHEMA_RECORD).bind(version).bind(name).bind(digest_of(text));
        record.execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Returns the names that migrations up to a version create, each after these words.
fn created(words: &str, up_to: i64) -> BTreeSet<&'static str> {
    let applied = MIGRATIONS.iter().filter(|(version, ..)| *version <= up_to);
    let lines = applied.flat_map(|(_, _, text)| text.lines());
    let names = lines.filter_map(|line| line.strip_prefix(words)?.split([' ', '(']).next());
    names.collect()
}

async fn drop_unused(store: &Store) -> Result<bool, StoreError> {
    let found = version(store).await?;
    let mut connection = store.connections().acquire().await?;
    let Some(found) = found else {
        refuse_foreign(&mut connection).await?;
        return Ok(true);
    };
    let mut transaction = connection.begin().await?;
    transaction.execute(SCHEMA_WITHOUT_TIMEOUTS).await?;
    transaction.execute(SCHEMA_LOCK).await?;
    let tables = created("create table ", found);
    for table in &tables {
        let is_used = sqlx::query_scalar(AssertSqlSafe(format!("select exists (select from {table})")));
        if is_used.fetch_one(&mut *transaction).await? {
            return Ok(false);
        }
    }
    for table in tables.into_iter().chain(["planctl_migrations"]) {
        transaction.execute(AssertSqlSafe(format!("drop table {table} cascade"))).await?;
    }
    let names = created("create function ", found);
    let names: Vec<&str> = names.into_iter().collect();
    let functions: Vec<String> =
        sqlx::query_scalar(SCHEMA_FUNCTIONS).bind(&names).fetch_all(&mut *transaction).await?;
    for function in functions {
        transaction.execute(AssertSqlSafe(format!("drop function {function} cascade"))).await?;
    }
    refuse_foreign(&mut transaction).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Returns the newest of the migrations that were applied; refuses a newer schema than this program knows, and one that
/// no planctl has made: with a migration left out, or one of another text (row 102).
fn check_applied(applied: &[sqlx::postgres::PgRow]) -> Result<i64, StoreError> {
    let found = match applied.last() {
        Some(last) => last.try_get("version")?,
        None => 0,
    };
    if found > newest() {
        return Err(StoreError::NewerSchema { found, known: newest() });
    }
    let mut applied = applied.iter();
    for (version, name, text) in MIGRATIONS.iter().filter(|(version, _, _)| *version <= found) {
        let Some(row) =
            applied.next().filter(|row| row.try_get("version").is_ok_and(|at: i64| at == *version))
        else {
            return Err(StoreError::HalfMigrated {
                what: format!("{version} ({name}) is missing below {found}"),
            });
        };
        if row.try_get::<Option<String>, _>("digest")?.is_some_and(|digest| digest != digest_of(text)) {
            let what = format!("{version} ({name}) was not the one that this planctl knows");
            return Err(StoreError::HalfMigrated { what });
        }
    }
    match applied.next() {
        None => Ok(found),
        Some(_) => Err(StoreError::HalfMigrated { what: "one was applied that no planctl has".to_owned() }),
    }
}

async fn refuse_foreign(connection: &mut sqlx::PgConnection) -> Result<(), StoreError> {
    let rows = sqlx::query(SCHEMA_TABLES).fetch_all(connection).await?;
    let tables = rows.iter().map(|row| row.try_get("name")).collect::<Result<Vec<String>, _>>()?;
    if tables.is_empty() { Ok(()) } else { Err(StoreError::Foreign { tables }) }
}

async fn check(store: &Store) -> Result<(), StoreError> {
    match version(store).await? {
        Some(found) if found == newest() => Ok(()),
        Some(found) => Err(StoreError::OlderSchema { found, known: newest() }),
        None => {
            let mut connection = store.connections().acquire().await?;
            refuse_foreign(&mut connection).await?;
            connection.recycle(Ok(()))?;
            Err(StoreError::OlderSchema { found: 0, known: newest() })
        }
    }
}

/// Returns the schema's version, or `None` where there is no schema of ours; refuses a newer one.
pub(crate) async fn version(store: &Store) -> Result<Option<i64>, StoreError> {
    let row = crate::connections::repeated!(store, connection => sqlx::query(SCHEMA_EXISTS).fetch_one(&mut *connection))?;
    if !row.try_get::<bool, _>("known")? {
        return Ok(None);
    }
    let rows = crate::connections::repeated!(store, connection => sqlx::query(SCHEMA_APPLIED).fetch_all(&mut *connection))?;
    check_applied(&rows).map(Some)
}
