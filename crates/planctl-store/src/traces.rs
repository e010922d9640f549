//! How far a collector knows the histories of a host's runs, and which process of that host tells it.
//!
//! Nothing here is part of a transition: spans are made from lines that have committed. A mark moves once a collector took the
//! spans, so a process that dies in between has them sent again, under the same ids.

use std::time::Duration;

use planctl_engine::RunId;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{micros, run_id, stored_run};
use crate::store::Store;

/// Writes only where the lease is another's that ran out, or half over.
pub(crate) const HOLD_TRACES: &str = "insert into traced_hosts as t (host, holder, held_until) \
       values ($1, $2, clock_timestamp() + $3::bigint * interval '1 microsecond') \
     on conflict (host) do update set holder = excluded.holder, held_until = excluded.held_until \
       where t.held_until < clock_timestamp() \
         or (t.holder = excluded.holder and t.held_until < clock_timestamp() + $3::bigint * interval '0.5 microsecond')";
pub(crate) const HOLDS_TRACES: &str =
    "select holder = $2 and held_until > clock_timestamp() as holds from traced_hosts where host = $1";
pub(crate) const LEAVE_TRACES: &str =
    "update traced_hosts set held_until = clock_timestamp() where host = $1 and holder = $2";
/// The runs that ended since the mark, or a moment before it: a transition that ended a run a moment earlier may have committed
/// a moment later.
macro_rules! ended_since_mark {
    () => {
        "runs r where r.ended_at > (select h.ended_at from traced_hosts h where h.host = $1) - interval '30 seconds'"
    };
}
pub(crate) const RUNS_TO_TRACE: &str = concat!(
    "select u.id, coalesce(t.seq, 0) as traced from (select r.id, r.seq, r.workspace from runs r where r.ended_at is null ",
    "union all select r.id, r.seq, r.workspace from ",
    ended_since_mark!(),
    ") u join workspaces w on w.id = u.workspace left join traced_runs t on t.run = u.id ",
    "where w.host = $1 and u.seq > coalesce(t.seq, 0) order by u.id limit $2"
);
pub(crate) const MARK_TRACED: &str = "insert into traced_runs as t (run, seq) \
     select r.id, m.seq from unnest($1::uuid[], $2::bigint[]) as m (run, seq) join runs r on r.id = m.run \
     on conflict (run) do update set seq = greatest(t.seq, excluded.seq)";
/// Moves the mark of a host where all is known of the runs that ended since, so that a look reads few of them.
pub(crate) const MARK_ENDED: &str = concat!(
    "update traced_hosts t set ended_at = clock_timestamp() where t.host = $1 ",
    "and t.ended_at < clock_timestamp() - interval '1 minute' and not exists (select from (select r.id, r.seq, r.workspace from ",
    ended_since_mark!(),
    ") u join workspaces w on w.id = u.workspace left join traced_runs t on t.run = u.id ",
    "where w.host = $1 and u.seq > coalesce(t.seq, 0))"
);

/// A run with lines of history that no collector knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UntracedRun {
    /// The run.
    pub run: RunId,
    /// The last line that a collector knows.
    pub seq: i64,
}

impl Store {
    /// Makes this holder the one that sends the traces of a host, for so long, where no other is; says whether it is.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn acquire_trace_lease(
        &self,
        host: &str,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        repeated!(self, connection => sqlx::query(HOLD_TRACES)
            .bind(host)
            .bind(holder)
            .bind(micros(lease))
            .execute(&mut *connection))?;
        let row = repeated!(self, connection => sqlx::query(HOLDS_TRACES).bind(host).bind(holder).fetch_one(&mut *connection))?;
        Ok(row.try_get("holds")?)
    }

    /// Lets another process send the traces of a host.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn release_trace_lease(&self, host: &str, holder: &str) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(LEAVE_TRACES).bind(host).bind(holder).execute(&mut *connection))?;
        Ok(())
    }

    /// Returns runs of a host with lines that no collector knows, the oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_to_trace(&self, host: &str, limit: i64) -> Result<Vec<UntracedRun>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(RUNS_TO_TRACE).bind(host).bind(limit).fetch_all(&mut *connection))?;
        let read =
            |row: &PgRow| Ok(UntracedRun { run: run_id(row.try_get("id")?), seq: row.try_get("traced")? });
        rows.iter().map(read).collect()
    }

    /// Notes that a collector knows these runs up to these lines.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn mark_traced(&self, traced: &[UntracedRun]) -> Result<(), StoreError> {
        let runs: Vec<_> = traced.iter().map(|traced| stored_run(traced.run)).collect();
        let lines: Vec<i64> = traced.iter().map(|traced| traced.seq).collect();
        repeated!(self, connection => sqlx::query(MARK_TRACED).bind(&runs).bind(&lines).execute(&mut *connection))?;
        Ok(())
    }

    /// Notes that a collector knows all runs of a host that are over, where it does.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn mark_ended_traced(&self, host: &str) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(MARK_ENDED).bind(host).execute(&mut *connection))?;
        Ok(())
    }
}
