//! Big texts by their digest, written before the report that names them.

use planctl_engine::Digest;
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::store::Store;

pub(crate) const PUT_OUTPUT: &str =
    "insert into outputs (digest, bytes) values ($1, $2) on conflict (digest) do nothing";
pub(crate) const GET_OUTPUT: &str = "select bytes from outputs where digest = $1";

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
        repeated!(self, lent => sqlx::query(PUT_OUTPUT).bind(digest.as_str()).bind(bytes).execute(&mut *lent))?;
        Ok(())
    }

    /// Returns the bytes kept under a digest.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn output(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let row = repeated!(self, lent => sqlx::query(GET_OUTPUT).bind(digest.as_str()).fetch_optional(&mut *lent))?;
        Ok(row.map(|row| row.try_get("bytes")).transpose()?)
    }
}
