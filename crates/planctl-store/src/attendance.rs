//! Attendance: processes that work on runs say so again and again, so that the time in which none did counts for no budget.

use planctl_engine::{ClockEvent, Event, RunId, Timestamp};
use sqlx::Row;
use uuid::Uuid;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{optional_time_at, run_id, stored_run, stored_runs, time_at};
use crate::store::Store;

/// When a process was last known to work on a run `r` in a workspace `w`, where each has left it, or has been silent for a while.
/// A process that left wrote the same moment twice; one that comes back, of whatever release, moves `at` alone. An interactive
/// agent works without a process of planctl, so the runs of such agents are never left. Neither is a run on whose host no process
/// ever said that it works, nor one of whose work somebody holds a live lease: a process of an older release renews those and says
/// nothing.
macro_rules! left_at {
    () => {
        "(select max(a.at) from attendance a where a.host = w.host \
         and a.run in (r.id, '00000000-0000-0000-0000-000000000000'::uuid) \
         and r.settings ->> 'worker' is distinct from 'session' \
         and not exists (select from items i where i.run = r.id and i.state = 'leased' and i.lease_until > clock_timestamp()) \
         having bool_and(a.at < clock_timestamp() - interval '15 seconds' or a.at is not distinct from a.left_at))"
    };
}
pub(crate) use left_at;

pub(crate) const ATTEND: &str = "insert into attendance (host, run, at) select $1, x.run, clock_timestamp() from unnest($2::uuid[]) as x (run) \
     on conflict (host, run) do update set at = excluded.at";
pub(crate) const LEFT: &str = concat!(
    "select id, left_at from (select r.id, ",
    left_at!(),
    " as left_at from workspaces w join runs r on r.workspace = w.id where w.host = $1 and r.ended_at is null ",
    "and ($2::uuid[] is null or r.id = any($2)) and r.status = 'active' and r.head ->> 'clock_since' is not null) left_runs ",
    "where left_at is not null order by id"
);
pub(crate) const LEFT_AT: &str = concat!(
    "select ",
    left_at!(),
    " as left_at from runs r join workspaces w on w.id = r.workspace where r.id = $1"
);
pub(crate) const LEAVE: &str = "update attendance set at = m.moment, left_at = m.moment from (select clock_timestamp() as moment) m \
     where host = $1 and run = any($2)";
pub(crate) const FORGET_ATTENDANCE: &str = "delete from attendance a where a.run <> '00000000-0000-0000-0000-000000000000'::uuid \
     and not exists (select from runs r where r.id = a.run and r.ended_at is null)";

/// A run whose time counts, and on which no process works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftRun {
    /// The run.
    pub run: RunId,
    /// When a process was last known to work on it.
    pub since: Timestamp,
}

impl LeftRun {
    /// Returns the news for the engine.
    pub fn event(&self) -> Event {
        Event::Clock(ClockEvent::Unattended { since: self.since })
    }
}

impl Store {
    /// Returns the runs of a host, or these of them, whose time counts though no process works on them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn left_runs(&self, host: &str, runs: Option<&[RunId]>) -> Result<Vec<LeftRun>, StoreError> {
        let runs = runs.map(stored_runs);
        let rows = repeated!(self, connection => sqlx::query(LEFT).bind(host).bind(&runs).fetch_all(&mut *connection))?;
        let read = |row: &sqlx::postgres::PgRow| {
            Ok(LeftRun { run: run_id(row.try_get("id")?), since: time_at(row, "left_at")? })
        };
        rows.iter().map(read).collect()
    }

    /// Says that the calling process works on these runs of a host, or on all of them. The time that went by while nobody did is
    /// known by what was said before, so it is taken off first: see [`Store::left_runs`].
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn attend(&self, host: &str, runs: Option<&[RunId]>) -> Result<(), StoreError> {
        let runs = attended_runs(runs);
        repeated!(self, connection => sqlx::query(ATTEND).bind(host).bind(&runs).execute(&mut *connection))?;
        Ok(())
    }

    /// Says that the calling process works on these runs of a host, or on all of them, no longer. Returns the runs on which no other
    /// process works, which have to be told that their time counts up to this moment.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn leave(&self, host: &str, runs: Option<&[RunId]>) -> Result<Vec<LeftRun>, StoreError> {
        let noted = attended_runs(runs);
        repeated!(self, connection => sqlx::query(LEAVE).bind(host).bind(&noted).execute(&mut *connection))?;
        self.left_runs(host, runs).await
    }

    /// Forgets who worked on runs that are over.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn forget_attendance(&self) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(FORGET_ATTENDANCE).execute(&mut *connection))?;
        Ok(())
    }

    /// Returns when a process was last known to work on a run, where that is a while ago.
    pub(crate) async fn left_at(&self, run: RunId) -> Result<Option<Timestamp>, StoreError> {
        let run = stored_run(run);
        let row =
            repeated!(self, connection => sqlx::query(LEFT_AT).bind(run).fetch_optional(&mut *connection))?;
        Ok(row.map(|row| optional_time_at(&row, "left_at")).transpose()?.flatten())
    }
}

/// Returns the ids of the rows in which a process says that it works on these runs, or on all of its host.
fn attended_runs(runs: Option<&[RunId]>) -> Vec<Uuid> {
    runs.map_or_else(|| vec![Uuid::nil()], stored_runs)
}
