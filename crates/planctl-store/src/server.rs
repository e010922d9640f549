//! How the database is: its version, its size, its schema, and whether what it confirms is on the disk.

use std::time::Duration;

use sqlx::Row;

use crate::connections::repeated;
use crate::error::{Resource, StoreError, lacked_resource};
use crate::migrate;
use crate::store::Store;

pub(crate) const SERVER_FACTS: &str = "select current_setting('server_version') as version, \
     current_setting('fsync') = 'on' as fsync, current_setting('full_page_writes') = 'on' as full_page_writes, \
     current_setting('synchronous_commit') <> 'off' as synchronous_commit, \
     pg_database_size(current_database()) as bytes, current_user::text as role, \
     (select r.rolsuper from pg_roles r where r.rolname = current_user) as is_superuser, \
     (to_regclass('history') is not null and has_table_privilege('history', 'update')) as changes_history, \
     pg_has_role(current_user, 'pg_execute_server_program', 'usage') as starts_programs";

/// Succeeds only where the disk has room for some megabytes, of which nothing stays: more rows than fit into this little memory.
pub(crate) const NEEDS_ROOM: &str =
    "select set_config('work_mem', '64kB', true); select count(*) from generate_series(1, 200000)";

/// A statement that a shortage keeps back is tried again sooner than this, and meets it again.
const TRIED_AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// The version and settings of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerFacts {
    /// The server's version: "15.14".
    pub version: String,
    /// The newest migration applied; zero where there is none.
    pub schema: i64,
    /// The newest migration this program knows.
    pub schema_known: i64,
    /// The size of the database on disk, in bytes.
    pub bytes: u64,
    /// Settings that let a power cut take back what was confirmed, by name.
    pub lossy: Vec<&'static str>,
    /// The role as which planctl works.
    pub role: String,
    /// The privileges of that role that planctl does not need.
    pub role_may: Vec<&'static str>,
}

impl Store {
    /// Returns the resource that the server lacks, with its words: a statement met that since the last call, and nothing says that
    /// there is enough again. The server answers whatever needs none of it all the same.
    pub async fn shortage(&self) -> Option<(Resource, String)> {
        let met = self.connections().shortage()?;
        let lasts = met.met_at.elapsed() < TRIED_AGAIN_WITHIN;
        if lasts || (met.of == Resource::Disk && self.lacks_room().await) {
            return Some((met.of, met.words));
        }
        self.connections().forget_shortage();
        None
    }

    /// Returns why no connection can be opened, in the words of the server or the system; `None` where the last one could.
    pub fn connection_refusal(&self) -> Option<String> {
        self.connections().unopened()
    }

    async fn lacks_room(&self) -> bool {
        let Ok(mut connection) = self.connections().acquire().await else { return false };
        let result = sqlx::raw_sql(NEEDS_ROOM).execute(&mut *connection).await;
        connection.recycle(result).is_err_and(|error| lacked_resource(&error).is_some())
    }

    /// Returns how the database is.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn server_facts(&self) -> Result<ServerFacts, StoreError> {
        let row = repeated!(self, connection => sqlx::query(SERVER_FACTS).fetch_one(&mut *connection))?;
        let mut lossy = Vec::new();
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            if !row.try_get::<bool, _>(name)? {
                lossy.push(name);
            }
        }
        let rights = [
            ("is_superuser", "do everything, as a superuser"),
            ("changes_history", "change history"),
            ("starts_programs", "start programs on the server"),
        ];
        let mut role_may = Vec::new();
        for (right, words) in rights {
            if row.try_get::<Option<bool>, _>(right)?.unwrap_or(false) {
                role_may.push(words);
            }
        }
        let bytes: i64 = row.try_get("bytes")?;
        Ok(ServerFacts {
            version: row.try_get("version")?,
            schema: migrate::version(self).await?.unwrap_or(0),
            schema_known: migrate::newest(),
            bytes: u64::try_from(bytes).unwrap_or(0),
            lossy,
            role: row.try_get("role")?,
            role_may,
        })
    }
}
