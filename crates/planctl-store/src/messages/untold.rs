//! The asks and runs of which people have not been told yet.

use std::time::Duration;

use planctl_engine::{Role, RunId, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{micros, run_id, stored_run, stored_time, time_at};
use crate::store::Store;

macro_rules! asks_of_host {
    ($key:literal, $from:literal, $which:literal) => {
        concat!(
            "select a.number, w.path, ",
            $key,
            " as key, coalesce(n.reminders, 0) as reminders from ",
            $from,
            " left join runs r on r.id = a.run left join drafts d on d.id = a.draft ",
            "join workspaces w on w.id = coalesce(r.workspace, d.workspace) where w.host = $1 and ",
            $which,
            " limit $2"
        )
    };
}
/// Only the names: an ask's work may hold the end of an output.
pub(crate) const ASKS_UNTOLD: &str = asks_of_host!(
    "'ask/' || a.number || '/opened'",
    "asks a left join announced_asks n on n.ask = a.number",
    "a.closed_at is null and n.ask is null and a.number > coalesce($3, 0) order by a.number"
);
pub(crate) const ASKS_TO_REMIND: &str = asks_of_host!(
    "'ask/' || a.number || '/reminder/' || n.reminders + 1",
    "announced_asks n join asks a on a.number = n.ask",
    "n.remind_at <= clock_timestamp() and a.closed_at is null order by n.remind_at"
);
pub(crate) const ASKS_DECIDED: &str = asks_of_host!(
    "'ask/' || a.number || '/decided'",
    "announced_asks n join asks a on a.number = n.ask",
    "a.closed_at is not null order by a.number"
);
/// Looks back a little: a transition that ended a run a moment earlier may have committed a moment later.
pub(crate) const RUNS_ENDED_UNTOLD: &str = "select * from (select r.id, w.path, r.ended_at, \
       'run/' || r.id || '/ended/' || (extract(epoch from r.ended_at) * 1000000)::bigint as key \
     from runs r join workspaces w on w.id = r.workspace where w.host = $1 \
       and r.ended_at > (select n.ended_at from announced_runs n where n.host = $1) - interval '30 seconds' \
       and ($3::timestamptz is null or (r.ended_at, r.id) > ($3, $4::uuid)) \
       and not exists (select from sub_plans c where c.run = r.id)) e \
     where not exists (select from messages m where m.key = e.key) order by e.ended_at, e.id limit $2";
/// The first mark of a host is the time at which it is made, so that nobody is told of runs that ended long ago.
pub(crate) const MARK_RUNS: &str = "insert into announced_runs (host, ended_at) values ($1, coalesce($2, clock_timestamp())) \
     on conflict (host) do update set ended_at = excluded.ended_at where $2 > announced_runs.ended_at";
/// After a raise the run has another budget, of which people may be told anew.
pub(crate) const BUDGETS_NOTICED: &str = "select * from (select r.id, w.path, \
       'run/' || r.id || '/budget/' || md5(r.head ->> 'budget') as key \
     from runs r join workspaces w on w.id = r.workspace \
     where r.ended_at is null and w.host = $1 and (r.head ->> 'noticed')::boolean) b \
     where ($3::uuid is null or b.id > $3) and not exists (select from messages m where m.key = b.key) order by b.id limit $2";
/// Work for which a run waits and that no worker asks for; the daemon of its host does not do it either, by the run's settings.
pub(crate) const ROLES_UNSERVED: &str = "select * from (select r.id, w.path, i.target as role, \
       'run/' || r.id || '/none/' || i.target || '/' || min(i.id) as key \
     from items i join runs r on r.id = i.run join workspaces w on w.id = r.workspace \
     where i.state = 'ready' and i.served_on is null and i.home = $1 and i.lane = 'agent' \
       and i.available_at <= clock_timestamp() - $3::bigint * interval '1 microsecond' \
       and not exists (select from workers k where not k.paused and i.target = any(k.roles) \
         and k.last_seen_at >= clock_timestamp() - $4::bigint * interval '1 microsecond') \
     group by r.id, w.path, i.target) u \
     where ($5::text is null or u.key > $5) and not exists (select from messages m where m.key = u.key) order by u.key limit $2";

/// Something to tell: the number or id by which it is read, and the workspace whose configuration names the channels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Untold<T> {
    /// The ask's number, or the run's id.
    pub of: T,
    /// The canonical path of the workspace.
    pub workspace_path: String,
    /// The key of its message.
    pub key: String,
    /// How many reminders there were, of an ask.
    pub reminders: u32,
}

macro_rules! untold {
    ($store:ident, $statement:expr, $host:expr, $limit:expr, $of:expr $(, $more:expr)*) => {{
        let rows = repeated!($store, connection => sqlx::query($statement)
            .bind($host)
            .bind($limit)
            $(.bind($more))*
            .fetch_all(&mut *connection))?;
        let read = |row: &PgRow| -> Result<_, StoreError> {
            let reminders: Option<i32> = row.try_get("reminders").ok();
            Ok(Untold {
                of: $of(row)?,
                workspace_path: row.try_get("path")?,
                key: row.try_get("key")?,
                reminders: reminders.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
            })
        };
        rows.iter().map(read).collect()
    }};
}

impl Store {
    /// Returns the open asks of a host that nobody was told of, by number: those that come after one of them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn unannounced_asks(
        &self,
        host: &str,
        after: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Untold<i64>>, StoreError> {
        untold!(self, ASKS_UNTOLD, host, limit, number, after)
    }

    /// Returns the open asks of a host of which people are to be reminded.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn asks_to_remind(&self, host: &str, limit: i64) -> Result<Vec<Untold<i64>>, StoreError> {
        untold!(self, ASKS_TO_REMIND, host, limit, number)
    }

    /// Returns the asks of a host that were announced and are over.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn asks_decided(&self, host: &str, limit: i64) -> Result<Vec<Untold<i64>>, StoreError> {
        untold!(self, ASKS_DECIDED, host, limit, number)
    }

    /// Returns the runs of a host that ended since the mark and that nobody was told of, each with the time of its end, in the
    /// order of these times: those that come after one of them. Runs within others are left out.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn unannounced_ended_runs(
        &self,
        host: &str,
        after: Option<(RunId, Timestamp)>,
        limit: i64,
    ) -> Result<Vec<Untold<(RunId, Timestamp)>>, StoreError> {
        let (id, ended_at) = (after.map(|run| stored_run(run.0)), after.map(|run| stored_time(run.1)));
        let ended = |row: &PgRow| -> Result<_, StoreError> { Ok((run(row)?, time_at(row, "ended_at")?)) };
        untold!(self, RUNS_ENDED_UNTOLD, host, limit, ended, ended_at, id)
    }

    /// Returns the open runs of a host of whose budget most is used, and that nobody was told of, by id: those that come after one
    /// of them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_near_budget(
        &self,
        host: &str,
        after: Option<RunId>,
        limit: i64,
    ) -> Result<Vec<Untold<RunId>>, StoreError> {
        untold!(self, BUDGETS_NOTICED, host, limit, run, after.map(stored_run))
    }

    /// Notes that runs of a host that ended up to this time were looked at; without a time, makes the first mark.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn mark_ended_runs(&self, host: &str, ended_at: Option<Timestamp>) -> Result<(), StoreError> {
        let ended_at = ended_at.map(stored_time);
        repeated!(self, connection => sqlx::query(MARK_RUNS).bind(host).bind(ended_at).execute(&mut *connection))?;
        Ok(())
    }

    /// Returns the runs of a host, each with a role, whose work has waited for so long while no worker asked for it; a worker
    /// counts for a while after it was seen. They come in the order of their keys: those after one of these.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn roles_unserved(
        &self,
        host: &str,
        (after, limit): (Option<&str>, i64),
        waited: Duration,
        seen_for: Duration,
    ) -> Result<Vec<Untold<(RunId, Role)>>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(ROLES_UNSERVED)
            .bind(host)
            .bind(limit)
            .bind(micros(waited))
            .bind(micros(seen_for))
            .bind(after)
            .fetch_all(&mut *connection))?;
        let read = |row: &PgRow| {
            Ok(Untold {
                of: (run(row)?, Role::from(row.try_get::<&str, _>("role")?)),
                workspace_path: row.try_get("path")?,
                key: row.try_get("key")?,
                reminders: 0,
            })
        };
        rows.iter().map(read).collect()
    }
}

fn number(row: &PgRow) -> Result<i64, StoreError> {
    Ok(row.try_get("number")?)
}

fn run(row: &PgRow) -> Result<RunId, StoreError> {
    Ok(run_id(row.try_get("id")?))
}
