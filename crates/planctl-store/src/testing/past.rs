//! A database with a long past, and the least that a commit on it costs.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

/// The least that a durable commit costs: one row, one statement, one connection; measurements print it beside theirs.
#[derive(Debug)]
pub struct Floor {
    connection: PgConnection,
}

impl Floor {
    /// Makes a table of one row in a store's database.
    ///
    /// # Panics
    ///
    /// When the database doesn't do it: a measurement can't go on then.
    pub async fn connect(store: &crate::Store) -> Floor {
        // The role by which planctl works makes no tables.
        let options = store.connections().options().clone().username(crate::cluster::OWNER);
        let mut connection = PgConnection::connect_with(&options)
            .await
            .unwrap_or_else(|error| panic!("could not connect for the floor: {error}"));
        for statement in [
            "create table if not exists planctl_floor (id int primary key, n int not null) with (fillfactor = 50)",
            "insert into planctl_floor values (1, 0) on conflict do nothing",
        ] {
            if let Err(error) = sqlx::query(statement).execute(&mut connection).await {
                panic!("could not make the floor: {error}");
            }
        }
        Floor { connection }
    }

    /// Commits a change of the row.
    ///
    /// # Panics
    ///
    /// When the database doesn't do it: a measurement can't go on then.
    pub async fn commit(&mut self) {
        let statement = "update planctl_floor set n = n + 1 where id = 1";
        if let Err(error) = sqlx::query(statement).execute(&mut self.connection).await {
            panic!("could not commit: {error}");
        }
    }
}

/// Fills a database with a hundred thousand runs that have ended, with what runs leave behind, and with work that waits on
/// another host; needs [`RUN_ID`].
pub const PAST: &str = include_str!("past.sql");

/// Makes ids of runs from numbers.
pub const RUN_ID: &str = "create function run_id(n bigint) returns uuid language sql immutable as
  $$ select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid $$";

/// Fills a store's database with [`PAST`], and with a million lines of history.
///
/// # Panics
///
/// When the database doesn't do it: a measurement can't go on then.
pub async fn fill_with_past(store: &crate::Store) {
    const LINES: &str = "insert into history
        (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
      select run_id(n), s, now(), 'fact', 'x', 'x', '1', 1, 1, null, null, null, '{}', sha256('x')
      from generate_series(1, 100000) n, generate_series(10, 19) s where n <> 50000";
    let options = store.connections().options().clone().username(crate::cluster::OWNER);
    let filled = async {
        let mut connection = PgConnection::connect_with(&options).await?;
        for statement in [RUN_ID, PAST, LINES] {
            sqlx::raw_sql(statement).execute(&mut connection).await?;
        }
        Ok::<(), sqlx::Error>(())
    };
    if let Err(error) = filled.await {
        panic!("could not fill the database: {error}");
    }
}
