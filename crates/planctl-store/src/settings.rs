//! How the store uses the database.

use std::time::Duration;

/// How the store uses the database.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most connections to hold, beside the one that listens.
    pub connections: usize,
    /// How long a call goes on trying while the database is away.
    pub deadline: Duration,
    /// How long the first connection is tried for.
    pub connect_deadline: Duration,
    /// The longest a statement may take.
    pub statement_timeout: Duration,
    /// The longest a statement waits for a row that another has.
    pub lock_timeout: Duration,
    /// The longest a transaction of ours may stand still.
    pub idle_in_transaction_timeout: Duration,
    /// How long a lease of one of planctl's own processes lasts without a renewal.
    pub own_lease: Duration,
    /// How long a lease of a remote worker lasts without a renewal.
    pub remote_lease: Duration,
    /// Says that notifications go to other processes and come from them. Without, only polling finds their changes.
    pub notifies: bool,
    /// The name that the server shows for these sessions.
    pub application_name: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            connections: 10,
            deadline: Duration::from_secs(60),
            connect_deadline: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            lock_timeout: Duration::from_secs(5),
            idle_in_transaction_timeout: Duration::from_secs(5),
            own_lease: Duration::from_secs(15),
            remote_lease: Duration::from_secs(60),
            notifies: true,
            application_name: "planctl".to_owned(),
        }
    }
}
