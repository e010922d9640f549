//! Timers that have come due.

use planctl_engine::{ClockEvent, Event, RunId, TimerId};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::run_id;
use crate::store::Store;

pub(crate) const TIMERS_DUE: &str =
    "select run, timer from timers where at <= clock_timestamp() order by at limit $1";

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
    /// Returns timers that have come due.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] for a timer this planctl does not know, and those of the connection.
    pub async fn due_timers(&self, limit: i64) -> Result<Vec<DueTimer>, StoreError> {
        let rows = repeated!(self, lent => sqlx::query(TIMERS_DUE).bind(limit).fetch_all(&mut *lent))?;
        rows.iter()
            .map(|row| {
                let word: &str = row.try_get("timer")?;
                let timer = TimerId::read(word)
                    .ok_or_else(|| StoreError::corrupt(format!("a timer is named `{word}`")))?;
                Ok(DueTimer { run: run_id(row.try_get("run")?), timer })
            })
            .collect()
    }
}
