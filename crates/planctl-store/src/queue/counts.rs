//! How much waits in the queue, by role.

use std::time::Duration;

use planctl_engine::Role;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::page::Page;
use crate::rows::micros;
use crate::store::Store;

/// The target of an item is its role, the kind of an ask, or a host.
pub(crate) const ITEM_GROUPS: &str = "select lane, case lane when 'harness' then '' else target end as target, state, \
     count(*) as count from items group by 1, 2, 3 order by 1, 2, 3";
/// Counted in one pass: the asks answered within each of these times, and not within the one before.
pub(crate) const ASK_WAITS: &str = "select count(*) as count, \
     coalesce(sum(extract(epoch from closed_at - created_at)), 0)::double precision as seconds, \
     count(*) filter (where closed_at - created_at <= interval '1 minute') as in_1, \
     count(*) filter (where closed_at - created_at > interval '1 minute' and closed_at - created_at <= interval '5 minutes') as in_2, \
     count(*) filter (where closed_at - created_at > interval '5 minutes' and closed_at - created_at <= interval '15 minutes') as in_3, \
     count(*) filter (where closed_at - created_at > interval '15 minutes' and closed_at - created_at <= interval '1 hour') as in_4, \
     count(*) filter (where closed_at - created_at > interval '1 hour' and closed_at - created_at <= interval '4 hours') as in_5, \
     count(*) filter (where closed_at - created_at > interval '4 hours' and closed_at - created_at <= interval '1 day') as in_6 \
     from asks where closed_at is not null";
/// The bounds of these counts in seconds.
const ASK_WAIT_BOUNDS: [(&str, f64); 6] = [
    ("in_1", 60.0),
    ("in_2", 300.0),
    ("in_3", 900.0),
    ("in_4", 3600.0),
    ("in_5", 14_400.0),
    ("in_6", 86_400.0),
];
pub(crate) const ITEM_COUNTS: &str = "select count(*) filter (where lane = 'agent' and state = 'ready') as queued, \
     count(*) filter (where lane = 'agent' and state = 'leased') as working, \
     count(*) filter (where lane = 'harness' and state <> 'withdrawn') as gates, count(*) filter (where lane = 'human') as asks, \
     (extract(epoch from clock_timestamp() - min(available_at) filter (where lane = 'agent' and state = 'ready')) \
       * 1000000)::bigint as oldest_micros from items";

pub(crate) const ROLES: &str = "select role, sum(queued)::bigint as queued, sum(served)::bigint as served, \
       sum(working)::bigint as working, (extract(epoch from clock_timestamp() - min(oldest)) * 1000000)::bigint as oldest_micros, \
       array_remove(array_agg(worker order by worker), null) as workers from ( \
     select target as role, count(*) filter (where state = 'ready') as queued, \
       count(*) filter (where state = 'ready' and served_on is not null) as served, \
       count(*) filter (where state = 'leased') as working, min(available_at) filter (where state = 'ready') as oldest, \
       null::text as worker from items where lane = 'agent' group by target \
     union all select unnest(roles), 0, 0, 0, null, id from workers \
       where not paused and last_seen_at >= clock_timestamp() - $3::bigint * interval '1 microsecond') known \
     where $1::text is null or role > $1 group by role order by role limit $2";

/// Items that are out, by what they wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ItemCounts {
    /// Work that nobody has claimed.
    pub queued: u64,
    /// Work that somebody does.
    pub working: u64,
    /// Contracts to evaluate.
    pub gates: u64,
    /// Asks of people.
    pub asks: u64,
    /// How long the oldest unclaimed work has been due.
    pub oldest_queued: Option<Duration>,
}

/// A role, with the work that is out for it and who does such work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleRow {
    /// The role.
    pub role: Role,
    /// Work that nobody has claimed.
    pub queued: u64,
    /// How much of that a daemon does by the settings of its run.
    pub served: u64,
    /// Work that somebody does.
    pub working: u64,
    /// How old the oldest unclaimed work is.
    pub oldest_queued: Option<Duration>,
    /// The ids of the workers.
    pub workers: Vec<String>,
}

impl RoleRow {
    pub(super) fn from_row(row: &PgRow) -> Result<RoleRow, StoreError> {
        Ok(RoleRow {
            role: Role::new(row.try_get::<String, _>("role")?),
            queued: count_at(row, "queued")?,
            served: count_at(row, "served")?,
            working: count_at(row, "working")?,
            oldest_queued: age_at(row, "oldest_micros")?,
            workers: row.try_get("workers")?,
        })
    }
}

/// Items of one lane, target and state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemGroup {
    /// The lane: agent, harness or human.
    pub lane: String,
    /// The role, or the kind of an ask; empty for the harness.
    pub target: String,
    /// ready, leased or withdrawn.
    pub state: String,
    /// How many.
    pub count: i64,
}

/// How long asks waited that are over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AskWaits {
    /// How many are over.
    pub count: u64,
    /// How long they waited together.
    pub seconds: f64,
    /// Bounds in seconds, and how many waited that long at most and longer than the bound before.
    pub within: [(f64, u64); ASK_WAIT_BOUNDS.len()],
}

impl Store {
    /// Counts the items that are out, by what they wait for.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn item_counts(&self) -> Result<ItemCounts, StoreError> {
        let row = repeated!(self, connection => sqlx::query(ITEM_COUNTS).fetch_one(&mut *connection))?;
        Ok(ItemCounts {
            queued: count_at(&row, "queued")?,
            working: count_at(&row, "working")?,
            gates: count_at(&row, "gates")?,
            asks: count_at(&row, "asks")?,
            oldest_queued: age_at(&row, "oldest_micros")?,
        })
    }

    /// Counts the items that are out by lane, target and state.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn item_groups(&self) -> Result<Vec<ItemGroup>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(ITEM_GROUPS).fetch_all(&mut *connection))?;
        let read = |row: &PgRow| {
            Ok(ItemGroup {
                lane: row.try_get("lane")?,
                target: row.try_get("target")?,
                state: row.try_get("state")?,
                count: row.try_get("count")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Says how long the asks waited that are over.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn ask_waits(&self) -> Result<AskWaits, StoreError> {
        let row = repeated!(self, connection => sqlx::query(ASK_WAITS).fetch_one(&mut *connection))?;
        let mut within = [(0.0, 0); ASK_WAIT_BOUNDS.len()];
        for (bucket, (column, bound)) in within.iter_mut().zip(ASK_WAIT_BOUNDS) {
            *bucket = (bound, count_at(&row, column)?);
        }
        Ok(AskWaits { count: count_at(&row, "count")?, seconds: row.try_get("seconds")?, within })
    }

    /// Returns the roles that have work out, or workers who were seen within this time and are not paused; by name.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn roles(&self, page: &Page<String>, seen: Duration) -> Result<Vec<RoleRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(ROLES)
            .bind(&page.after)
            .bind(page.limit)
            .bind(micros(seen))
            .fetch_all(&mut *connection))?;
        rows.iter().map(RoleRow::from_row).collect()
    }
}

fn count_at(row: &PgRow, column: &str) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or(0))
}

fn age_at(row: &PgRow, column: &str) -> Result<Option<Duration>, StoreError> {
    let age: Option<i64> = row.try_get(column)?;
    Ok(age.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or(0))))
}
