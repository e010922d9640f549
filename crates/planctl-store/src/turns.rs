//! Whose turn a workspace is: runs have it one after the other, first come first served within the class delay. Those
//! that work in worktrees of their own wait for nobody.

use std::time::Duration;

use planctl_engine::{ClockEvent, Event, RunId};
use sqlx::Row;

use crate::connections::repeated;
use crate::effects::micros;
use crate::error::StoreError;
use crate::proof::Proof;
use crate::rows::stored_run;
use crate::store::Store;

/// After this long without anybody who waits with it, a queued run is passed over.
const WANTED_FOR: Duration = Duration::from_secs(15);

pub(crate) const WANT: &str = "update runs set wanted_at = clock_timestamp() where id = $1 and status = 'queued' \
     and (wanted_at is null or wanted_at < clock_timestamp() - interval '1 second')";
/// The run that has the workspace, else the one whose turn it is before this one's.
pub(crate) const AHEAD: &str = "select a.name from runs r join lateral ( \
       (select o.name, 0 as place from runs o where o.workspace = r.workspace and o.active and not o.apart and o.id <> r.id limit 1) \
       union all \
       (select o.name, 1 from runs o where o.workspace = r.workspace and o.status = 'queued' and not o.apart \
         and (o.turn_at, o.id) < (r.turn_at, r.id) \
         and o.wanted_at > clock_timestamp() - $2::bigint * interval '1 microsecond' order by o.turn_at, o.id limit 1) \
     ) a on true where r.id = $1 and not r.apart order by a.place limit 1";

impl Store {
    /// Gives a queued run its workspace, where it is free and no other run that waits for it was first.
    ///
    /// # Errors
    ///
    /// [`StoreError::WorkspaceBusy`], which names the run it waits for; [`StoreError::Refused`] where it is not queued; and
    /// those of the connection.
    pub async fn admit(&self, run: RunId) -> Result<(), StoreError> {
        let id = stored_run(run);
        repeated!(self, lent => sqlx::query(WANT).bind(id).execute(&mut *lent))?;
        if let Some(run) = self.waits_for(run).await? {
            return Err(StoreError::WorkspaceBusy { run });
        }
        self.apply(run, &Event::Clock(ClockEvent::Admitted), &Proof::Clock, None).await.map(drop)
    }

    /// Returns the name of the run for which a queued one waits: the one that has the workspace, else the one that was
    /// first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn waits_for(&self, run: RunId) -> Result<Option<String>, StoreError> {
        let id = stored_run(run);
        let row = repeated!(self, lent => sqlx::query(AHEAD).bind(id).bind(micros(WANTED_FOR)).fetch_optional(&mut *lent))?;
        Ok(row.map(|row| row.try_get("name")).transpose()?)
    }
}
