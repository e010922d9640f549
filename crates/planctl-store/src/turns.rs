//! The turns of a workspace: runs have it one after the other, first come first served within the class delay. Those that
//! work in worktrees of their own wait for nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{ClockEvent, Event, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::proof::Proof;
use crate::rows::{micros, run_id, stored_run, stored_runs};
use crate::store::Store;
use crate::withdrawn::is_ending;

/// After this long without anybody who waits with it, a queued run is passed over.
const WANTED_FOR: Duration = Duration::from_secs(15);

pub(crate) const WANT: &str = "update runs set wanted_at = clock_timestamp() where id = $1 and status = 'queued' \
     and (wanted_at is null or wanted_at < clock_timestamp() - interval '1 second')";
/// The run that has the workspace, else the one whose turn it is before this one's. A run that ended, be it this one
/// before it was taken up, has the workspace until those who worked for it have ended.
pub(crate) const AHEAD: &str = concat!(
    "select r.id, a.name, a.is_ending from runs r cross join lateral (select * from ( \
       (select r.name, true as is_ending, 0 as place where r.active and r.status <> 'active' and ",
    is_ending!("r.id"),
    ") union all \
       (select o.name, o.status <> 'active', 1 from runs o where o.workspace = r.workspace and o.active and not o.apart \
         and o.id <> r.id and not r.apart and (o.status = 'active' or ",
    is_ending!("o.id"),
    ") limit 1) \
       union all \
       (select o.name, false, 2 from runs o where o.workspace = r.workspace and o.status = 'queued' and not o.apart \
         and not r.apart and (o.turn_at, o.id) < (r.turn_at, r.id) \
         and o.wanted_at > clock_timestamp() - $2::bigint * interval '1 microsecond' order by o.turn_at, o.id limit 1) \
     ) every order by place limit 1) a where r.id = any($1)"
);

/// The run for which another one waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// Its name.
    pub run: String,
    /// Says that it is over, and that only the end of those who worked for it is waited for.
    pub is_ending: bool,
}

impl Store {
    /// Gives a queued run its workspace, where it is free and no other run that waits for it was first.
    ///
    /// # Errors
    ///
    /// [`StoreError::WorkspaceBusy`], which names the run it waits for; [`StoreError::Refused`] where it is not queued; and
    /// those of the connection.
    pub async fn admit_run(&self, run: RunId) -> Result<(), StoreError> {
        let id = stored_run(run);
        repeated!(self, connection => sqlx::query(WANT).bind(id).execute(&mut *connection))?;
        if let Some(ahead) = self.waits_for(run).await? {
            return Err(StoreError::WorkspaceBusy { run: ahead.run });
        }
        self.reclaim_workspace(run).await?;
        self.apply(run, &Event::Clock(ClockEvent::Admitted), &Proof::Clock, None).await.map(drop)
    }

    /// Returns the run for which a queued one waits: the one that has the workspace, else the one that was first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn waits_for(&self, run: RunId) -> Result<Option<Ahead>, StoreError> {
        Ok(self.each_waits_for(&[run]).await?.remove(&run))
    }

    /// Returns the same for each of some runs.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn each_waits_for(&self, runs: &[RunId]) -> Result<BTreeMap<RunId, Ahead>, StoreError> {
        let ids = stored_runs(runs);
        let rows = repeated!(self, connection => sqlx::query(AHEAD).bind(&ids).bind(micros(WANTED_FOR)).fetch_all(&mut *connection))?;
        let ahead = |row: &PgRow| {
            let ahead = Ahead { run: row.try_get("name")?, is_ending: row.try_get("is_ending")? };
            Ok((run_id(row.try_get("id")?), ahead))
        };
        rows.iter().map(ahead).collect()
    }
}
