//! Big texts by their digest, written before the report that names them.
//!
//! An output that comes under a lease is written only while that lease is held. A report that names it may still be refused,
//! so the output carries the runs under whose leases it came until the sweep has found it in the history of one of them;
//! where none names it, the sweep deletes it.

use std::time::Duration;

use planctl_engine::{Digest, ItemId};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::micros;
use crate::store::Store;
use crate::token::Token;

/// Long after the last try of any report that names an output.
pub(crate) const UNPROVEN_FOR: Duration = Duration::from_secs(24 * 3_600);
/// How many outputs one statement of the sweep looks at.
const SWEPT_AT_ONCE: i64 = 100;

/// One that is there gets young again, so that nobody who prunes deletes it before the report that names it comes.
pub(crate) const PUT_OUTPUT: &str = "insert into outputs (digest, bytes) values ($1, $2) \
     on conflict (digest) do update set runs = null, created_at = clock_timestamp() \
     where outputs.runs is not null or outputs.created_at < clock_timestamp() - interval '12 hours'";
/// One that is there is as young as its newest copy, so that no sweep deletes it before the report comes.
pub(crate) const PUT_OUTPUT_UNDER: &str = "insert into outputs (digest, bytes, runs) select $1, $2, array[i.run] from items i \
     where i.id = $3 and i.generation = $4 and i.token_hash = $5 and i.state = 'leased' \
     on conflict (digest) do update set created_at = clock_timestamp(), \
       runs = case when outputs.runs @> excluded.runs then outputs.runs else outputs.runs || excluded.runs end \
     where outputs.runs is not null";
pub(crate) const GET_OUTPUT: &str = "select bytes from outputs where digest = $1";
pub(crate) const SWEEP_OUTPUTS: &str = "select looked_at, swept from planctl_sweep_outputs($1, $2)";

impl Store {
    /// Keeps bytes under their digest; does nothing where there are none.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn put_output(&self, digest: &Digest, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        repeated!(self, connection => sqlx::query(PUT_OUTPUT).bind(digest.as_str()).bind(bytes).execute(&mut *connection))?;
        Ok(())
    }

    /// Keeps bytes under their digest for the holder of a lease; does nothing where the lease is not held, or there are no
    /// bytes.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn put_output_under(
        &self,
        item: &ItemId,
        generation: i64,
        token: &Token,
        digest: &Digest,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let hash = token.hash();
        repeated!(self, connection => sqlx::query(PUT_OUTPUT_UNDER)
            .bind(digest.as_str())
            .bind(bytes)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Returns the bytes kept under a digest.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn output(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(GET_OUTPUT).bind(digest.as_str()).fetch_optional(&mut *connection))?;
        Ok(row.map(|row| row.try_get("bytes")).transpose()?)
    }

    /// Deletes outputs that came under leases a day ago and that no history names; returns how many.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn sweep_outputs(&self) -> Result<u64, StoreError> {
        let mut swept = 0;
        loop {
            let row = repeated!(self, connection => sqlx::query(SWEEP_OUTPUTS)
                .bind(micros(UNPROVEN_FOR))
                .bind(SWEPT_AT_ONCE)
                .fetch_one(&mut *connection))?;
            swept += u64::try_from(row.try_get::<i64, _>("swept")?).unwrap_or(0);
            if row.try_get::<i64, _>("looked_at")? < SWEPT_AT_ONCE {
                return Ok(swept);
            }
        }
    }
}
