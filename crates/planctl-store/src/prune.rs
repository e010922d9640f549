//! Removes runs that ended long ago, whole: what stays is as sound as it was.
//!
//! Only the owner of the tables may; planctl's own role can delete no history. Each removed run leaves its name and the hash
//! that its history ended in.

use std::time::Duration;

use sqlx::Row;

use crate::connections::repeated;
use crate::effects::micros;
use crate::error::StoreError;
use crate::store::Store;

pub(crate) const PRUNE: &str = "select planctl_prune_1($1, $2) as gone";
pub(crate) const TO_PRUNE: &str = "select count(*) as runs from runs where ended_at < clock_timestamp() - $1::bigint * interval '1 microsecond'";

/// How many runs go in one transaction.
const AT_ONCE: i32 = 50;

impl Store {
    /// Counts the runs that ended longer ago than this.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_to_prune(&self, older_than: Duration) -> Result<u64, StoreError> {
        let row = repeated!(self, connection => sqlx::query(TO_PRUNE).bind(micros(older_than)).fetch_one(&mut *connection))?;
        Ok(u64::try_from(row.try_get::<i64, _>("runs")?).unwrap_or(0))
    }

    /// Removes runs that ended longer ago than this; returns how many went.
    ///
    /// # Errors
    ///
    /// [`StoreError::Denied`] to everybody but the owner of the tables, and those of the connection. Runs that were
    /// removed before an error stay removed.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let row = repeated!(self, connection => sqlx::query(PRUNE)
                .bind(micros(older_than))
                .bind(AT_ONCE)
                .fetch_one(&mut *connection))?;
            let gone = u64::try_from(row.try_get::<i64, _>("gone")?).unwrap_or(0);
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }
}
