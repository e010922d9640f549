//! How the database is: its version, its size, its schema, and whether what it confirms is on the disk.

use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::migrate;
use crate::store::Store;

pub(crate) const SERVER_FACTS: &str = "select current_setting('server_version') as version, \
     current_setting('fsync') = 'on' as fsync, current_setting('full_page_writes') = 'on' as full_page_writes, \
     current_setting('synchronous_commit') <> 'off' as synchronous_commit, \
     pg_database_size(current_database()) as bytes";

/// What is known of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerFacts {
    /// The server's version: "15.14".
    pub version: String,
    /// The newest migration applied; zero where there is none.
    pub schema: i64,
    /// The newest migration this program knows.
    pub schema_known: i64,
    /// What the database takes on disk, in bytes.
    pub bytes: u64,
    /// Settings that let a power cut take back what was confirmed, by name.
    pub lossy: Vec<&'static str>,
}

impl Store {
    /// Returns how the database is.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn server_facts(&self) -> Result<ServerFacts, StoreError> {
        let row = repeated!(self, lent => sqlx::query(SERVER_FACTS).fetch_one(&mut *lent))?;
        let mut lossy = Vec::new();
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            if !row.try_get::<bool, _>(name)? {
                lossy.push(name);
            }
        }
        let bytes: i64 = row.try_get("bytes")?;
        Ok(ServerFacts {
            version: row.try_get("version")?,
            schema: migrate::version(self).await?.unwrap_or(0),
            schema_known: migrate::newest(),
            bytes: u64::try_from(bytes).unwrap_or(0),
            lossy,
        })
    }
}
