//! Timers that have come due.

use planctl_engine::{ClockEvent, Event, RunId, TimerId};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::{StoreError, Unread};
use crate::rows::{run_id, stored_runs};
use crate::store::Store;

pub(crate) const TIMERS_DUE: &str = "select run, timer from timers where at <= clock_timestamp() and run <> all($2::uuid[]) order by at limit $1";

/// A timer that has come due; applied with `Proof::Clock`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueTimer {
    /// The run.
    pub run: RunId,
    /// The timer.
    pub timer: TimerId,
}

impl DueTimer {
    /// Returns the news for the engine.
    pub fn event(&self) -> Event {
        Event::Clock(ClockEvent::Due { timer: self.timer.clone() })
    }
}

impl Store {
    /// Returns timers that have come due, but none of these runs; one that this planctl does not know is unread.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn due_timers(
        &self,
        except: &[RunId],
        limit: i64,
    ) -> Result<Vec<Result<DueTimer, Unread>>, StoreError> {
        let except = stored_runs(except);
        let rows = repeated!(self, connection => sqlx::query(TIMERS_DUE).bind(limit).bind(&except).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| {
                let (run, word): (_, &str) = (run_id(row.try_get("run")?), row.try_get("timer")?);
                let unknown = || Unread::new(run, StoreError::corrupt(format!("a timer is named `{word}`")));
                Ok(TimerId::parse(word).map(|timer| DueTimer { run, timer }).ok_or_else(unknown))
            })
            .collect()
    }
}
