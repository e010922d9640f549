//! Removes runs that ended long ago, whole: what stays is as sound as it was.
//!
//! Only the owner of the tables may; planctl's own role can delete no history. Each removed run leaves its name and the hash
//! that its history ended in.

use std::time::Duration;

use sqlx::Row;
use uuid::Uuid;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::outputs::UNPROVEN_FOR;
use crate::rows::micros;
use crate::store::Store;

pub(crate) const PRUNE: &str = "select gone, last from planctl_prune_2($1, $2, $3)";
pub(crate) const PRUNE_DRAFTS: &str = "select planctl_prune_drafts_2($1) as gone";
pub(crate) const TO_PRUNE: &str = "select count(*) as runs from runs where ended_at < clock_timestamp() - $1::bigint * interval '1 microsecond'";

/// The outputs that histories of runs name which are old enough to go.
pub(crate) const OUTPUTS_TO_PRUNE: &str = "select distinct o.digest from runs r join history h on h.run = r.id \
     cross join lateral regexp_matches(h.body::text, 'sha256:[0-9a-f]{64}', 'g') m join outputs o on o.digest = m[1] \
     where r.ended_at < clock_timestamp() - $1::bigint * interval '1 microsecond' and h.kind = 'input'";
/// Of some outputs it deletes those that nothing else names, after it has read all that may: by the owner's hand alone.
pub(crate) const PRUNE_OUTPUTS: &str = "with naming as ( \
       select body::text as text from history where kind = 'input' union all select body::text from refusals \
       union all select protected::text from approvals union all select config::text from approvals \
       union all select settings::text from runs union all select record::text from nodes union all select work::text from items) \
     delete from outputs o where o.digest = any($1) and o.runs is null \
     and o.created_at < clock_timestamp() - $2::bigint * interval '1 microsecond' and o.digest not in ( \
       select m[1] from naming n cross join lateral regexp_matches(n.text, 'sha256:[0-9a-f]{64}', 'g') m where m[1] = any($1))";

/// How many runs are looked at in one transaction.
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

    /// Removes runs that ended longer ago than this, the outputs that they alone named, and drafts whose asks were over then; returns how many runs went.
    ///
    /// # Errors
    ///
    /// [`StoreError::Denied`] to everybody but the owner of the tables, and those of the connection. Runs that were
    /// removed before an error stay removed.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, StoreError> {
        let (span, age) = (micros(older_than), micros(UNPROVEN_FOR));
        let rows = repeated!(self, connection => sqlx::query(OUTPUTS_TO_PRUNE).bind(span).fetch_all(&mut *connection))?;
        let named = rows.iter().map(|row| row.try_get("digest")).collect::<Result<Vec<String>, _>>()?;
        let mut removed = 0;
        let mut after = None;
        loop {
            let row = repeated!(self, connection => sqlx::query(PRUNE)
                .bind(span)
                .bind(AT_ONCE)
                .bind(after)
                .fetch_one(&mut *connection))?;
            removed += u64::try_from(row.try_get::<i64, _>("gone")?).unwrap_or(0);
            after = row.try_get::<Option<Uuid>, _>("last")?;
            if after.is_none() {
                break;
            }
        }
        repeated!(self, connection => sqlx::query(PRUNE_DRAFTS).bind(span).fetch_one(&mut *connection))?;
        if removed > 0 && !named.is_empty() {
            repeated!(self, connection => sqlx::query(PRUNE_OUTPUTS).bind(&named).bind(age).execute(&mut *connection))?;
        }
        Ok(removed)
    }
}
