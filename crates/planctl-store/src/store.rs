//! The one handle on the database: connections, settings, the cache of compiled graphs, and the notifier.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use crate::apply::CommitQueue;
use crate::cache::Cache;
use crate::connections::Connections;
use crate::error::StoreError;
use crate::listen::Notifier;
use crate::races::Races;
use crate::sealed::Sound;
use crate::server_clock::ServerClock;
use crate::{migrate, random};

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

/// Makes the engine's decisions durable. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    connections: Connections,
    settings: Settings,
    cache: Cache,
    commit_queue: CommitQueue,
    server_clock: ServerClock,
    notifier: Arc<Notifier>,
    races: Races,
    name: String,
    sound: Sound,
}

impl Store {
    /// Connects and keeps a few connections warm. Creates nothing: see [`Store::migrate`] and [`Store::check_schema`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] where nothing answers, [`StoreError::Denied`] where the server says no, and
    /// [`StoreError::OldPostgres`].
    pub async fn connect(options: PgConnectOptions, settings: Settings) -> Result<Store, StoreError> {
        let connections = Connections::new(options, settings.clone());
        connections.warm().await?;
        let inner = Inner {
            connections,
            settings,
            cache: Cache::default(),
            commit_queue: CommitQueue::default(),
            server_clock: ServerClock::default(),
            notifier: Arc::new(Notifier::default()),
            races: Races::default(),
            name: random::hex(),
            sound: Sound::default(),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Brings the schema up to date; does nothing where it is.
    ///
    /// # Errors
    ///
    /// [`StoreError::Foreign`] where the database holds somebody else's tables, [`StoreError::NewerSchema`] where a
    /// newer planctl was here, and those of the connection.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate::migrate(self).await
    }

    /// Checks that the schema is the one this planctl knows, without changing it.
    ///
    /// # Errors
    ///
    /// [`StoreError::OlderSchema`], [`StoreError::NewerSchema`], [`StoreError::Foreign`], and those of the connection.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        migrate::check(self).await
    }

    /// Names the schema's content, for those who keep a migrated database to copy.
    pub fn schema_fingerprint() -> String {
        migrate::fingerprint()
    }

    /// Returns how long a lease of one of planctl's own processes lasts without a renewal.
    pub fn own_lease(&self) -> Duration {
        self.inner.settings.own_lease
    }

    /// Returns how long a lease of a remote worker lasts without a renewal.
    pub fn remote_lease(&self) -> Duration {
        self.inner.settings.remote_lease
    }

    /// Closes the connections; calls that are under way end with an error.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }

    /// Returns how often this process called the database, each time for one statement or one transaction.
    pub fn database_calls(&self) -> u64 {
        self.connections().acquisitions()
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.inner.connections
    }

    pub(crate) fn sound(&self) -> &Sound {
        &self.inner.sound
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    pub(crate) fn commit_queue(&self) -> &CommitQueue {
        &self.inner.commit_queue
    }

    pub(crate) fn server_clock(&self) -> &ServerClock {
        &self.inner.server_clock
    }

    pub(crate) fn races(&self) -> &Races {
        &self.inner.races
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.inner.notifier
    }

    /// The name that this store's own notifications carry, so that it can ignore them.
    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }
}
