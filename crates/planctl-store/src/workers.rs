//! Workers that were seen: their names, the items they hold, whether somebody paused them.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{At, ItemId, Role, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::page::Page;
use crate::rows::{at_of, micros, time_at};
use crate::store::Store;

pub(crate) const SEE_WORKER: &str = "insert into workers (id, roles, agent, host, version, capacity) \
     values ($1, $2::text[], $3, $4, $5, $6) on conflict (id) do update set roles = excluded.roles, agent = excluded.agent, \
     host = excluded.host, version = excluded.version, capacity = excluded.capacity, last_seen_at = clock_timestamp() \
     returning xmax = 0 as is_new";
pub(crate) const WORKERS: &str = "select id, roles, agent, host, version, capacity, paused, first_seen_at, last_seen_at \
     from workers where (paused or last_seen_at >= clock_timestamp() - interval '1 day') \
     and ($1::text is null or id > $1) order by id limit $2";
pub(crate) const ITEMS_HELD: &str = "select i.instance, i.id, i.node, i.visit, i.attempt, i.lease_until, r.name from items i \
     join runs r on r.id = i.run where i.state = 'leased' order by i.id";
pub(crate) const IS_PAUSED: &str = "select exists (select from workers where id = $1 and paused) as paused";
pub(crate) const PAUSED_OF: &str = "select role, min(k.id) as id from workers k, unnest(k.roles) as role where role = any($1) \
     and k.last_seen_at >= clock_timestamp() - $2::bigint * interval '1 microsecond' group by role having bool_and(k.paused)";
pub(crate) const PAUSE_WORKER: &str = "update workers set paused = $2 where id = $1";
pub(crate) const WORKERS_SINCE: &str = "select count(*) from workers where last_seen_at >= clock_timestamp() - $1::bigint * interval '1 microsecond'";
// A row that another session has locked is of a worker that is active.
pub(crate) const DELETE_OLD_WORKERS: &str = "delete from workers where id in (select id from workers \
     where not paused and (last_seen_at < clock_timestamp() - interval '1 day' or id in \
     (select id from workers where not paused order by last_seen_at desc, id offset $1)) for update skip locked)";

/// The most workers that are kept, so that a client that claims under ever new names can't fill the table. Paused
/// workers are kept besides, since a deleted one could work again.
const WORKERS_MAX: i64 = 1000;

/// A worker as it presents itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenWorker<'a> {
    /// Its id, which its leases carry too ([`crate::Holder::instance`]).
    pub id: &'a str,
    /// The roles that it serves.
    pub roles: &'a [Role],
    /// The agent that works there, in a line, as in `exec:./worker.sh`.
    pub agent: &'a str,
    /// Where it runs.
    pub host: &'a str,
    /// The version of its program.
    pub version: &'a str,
    /// How many items it holds at once at most.
    pub capacity: i32,
}

/// A worker that was seen within a day, or is paused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerRow {
    /// Its id.
    pub id: String,
    /// The roles that it serves.
    pub roles: Vec<Role>,
    /// The agent that works there, in a line.
    pub agent: String,
    /// Where it runs.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// How many items it holds at once at most.
    pub capacity: i32,
    /// Says that it shall get no more work.
    pub is_paused: bool,
    /// The items that it holds.
    pub holds: Vec<HeldItem>,
    /// When it was first seen.
    pub first_seen_at: Timestamp,
    /// When it was last noted.
    pub last_seen_at: Timestamp,
}

/// An item that a worker holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldItem {
    /// Its id.
    pub item: ItemId,
    /// The name of its run.
    pub run: String,
    /// Its try.
    pub at: At,
    /// When the lease ends unless it is renewed.
    pub lease_until: Timestamp,
}

impl WorkerRow {
    fn from_row(row: &PgRow, holds: Vec<HeldItem>) -> Result<WorkerRow, StoreError> {
        Ok(WorkerRow {
            id: row.try_get("id")?,
            roles: row.try_get::<Vec<String>, _>("roles")?.into_iter().map(Role::new).collect(),
            agent: row.try_get("agent")?,
            host: row.try_get("host")?,
            version: row.try_get("version")?,
            capacity: row.try_get("capacity")?,
            is_paused: row.try_get("paused")?,
            holds,
            first_seen_at: time_at(row, "first_seen_at")?,
            last_seen_at: time_at(row, "last_seen_at")?,
        })
    }
}

impl Store {
    /// Notes that a worker is there. For a new one, those that were not seen for longest are forgotten where there are
    /// too many.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn record_worker_seen(&self, worker: &SeenWorker<'_>) -> Result<(), StoreError> {
        let roles: Vec<&str> = worker.roles.iter().map(Role::as_str).collect();
        let row = repeated!(self, connection => sqlx::query(SEE_WORKER)
            .bind(worker.id)
            .bind(&roles)
            .bind(worker.agent)
            .bind(worker.host)
            .bind(worker.version)
            .bind(worker.capacity)
            .fetch_one(&mut *connection))?;
        if row.try_get("is_new")? {
            self.delete_old_workers().await?;
        }
        Ok(())
    }

    /// Returns how many workers were seen lately.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn count_workers_seen(&self, lately: Duration) -> Result<u64, StoreError> {
        let lately = micros(lately);
        let row = repeated!(self, connection => sqlx::query(WORKERS_SINCE).bind(lately).fetch_one(&mut *connection))?;
        Ok(u64::try_from(row.try_get::<i64, _>("count")?).unwrap_or(0))
    }

    /// Says whether a worker is paused, and finds nothing to claim.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn is_paused(&self, id: &str) -> Result<bool, StoreError> {
        let row = repeated!(self, connection => sqlx::query(IS_PAUSED).bind(id).fetch_one(&mut *connection))?;
        Ok(row.try_get("paused")?)
    }

    /// Returns workers that were seen within a day, and those that are paused, by id, with what they hold.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn workers(&self, page: &Page<String>) -> Result<Vec<WorkerRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(WORKERS).bind(&page.after).bind(page.limit).fetch_all(&mut *connection))?;
        let mut held = self.held_items().await?;
        rows.iter()
            .map(|row| {
                WorkerRow::from_row(row, held.remove(row.try_get::<&str, _>("id")?).unwrap_or_default())
            })
            .collect()
    }

    /// Returns what is leased, by who holds it.
    async fn held_items(&self) -> Result<BTreeMap<String, Vec<HeldItem>>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(ITEMS_HELD).fetch_all(&mut *connection))?;
        let mut held: BTreeMap<String, Vec<HeldItem>> = BTreeMap::new();
        for row in &rows {
            let item = HeldItem {
                item: ItemId::new(row.try_get::<String, _>("id")?),
                run: row.try_get("name")?,
                at: at_of(row)?,
                lease_until: time_at(row, "lease_until")?,
            };
            held.entry(row.try_get("instance")?).or_default().push(item);
        }
        Ok(held)
    }

    /// Returns, of these roles, each whose workers that were seen lately are all paused, with the name of one of them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn paused_workers(
        &self,
        roles: &[&Role],
        lately: Duration,
    ) -> Result<BTreeMap<Role, String>, StoreError> {
        let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let lately = micros(lately);
        let rows = repeated!(self, connection => sqlx::query(PAUSED_OF).bind(&roles).bind(lately).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| Ok((Role::new(row.try_get::<String, _>("role")?), row.try_get("id")?)))
            .collect()
    }

    /// Pauses a worker, or lets it work again; a paused worker keeps the items that it holds and gets no more.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn pause_worker(&self, id: &str, is_paused: bool) -> Result<(), StoreError> {
        let done = repeated!(self, connection => sqlx::query(PAUSE_WORKER).bind(id).bind(is_paused).execute(&mut *connection))?;
        match done.rows_affected() {
            0 => Err(StoreError::not_found(format!("worker {id}"))),
            _ => Ok(()),
        }
    }

    /// Deletes workers that were not seen for a day, and the longest unseen beyond the maximum. Paused workers stay.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn delete_old_workers(&self) -> Result<u64, StoreError> {
        let deleted = repeated!(self, connection => sqlx::query(DELETE_OLD_WORKERS).bind(WORKERS_MAX).execute(&mut *connection))?;
        Ok(deleted.rows_affected())
    }
}
