//! The one handle on the database: connections, settings, the cache of compiled graphs, and the notifier.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use crate::cache::{Cache, Sound};
use crate::commit_queue::CommitQueue;
use crate::connections::Connections;
use crate::error::StoreError;
use crate::notifier::Notifier;
use crate::races::Races;
use crate::random;
use crate::server_clock::{LastLook, ServerClock};
use crate::settings::Settings;
use crate::waiting::{WaitingByHost, WaitingWorkers};

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
    last_look: tokio::sync::Mutex<LastLook>,
    notifier: Arc<Notifier>,
    races: Races,
    waiting: WaitingByHost,
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
            last_look: tokio::sync::Mutex::default(),
            notifier: Arc::new(Notifier::default()),
            races: Races::default(),
            waiting: WaitingByHost::default(),
            name: random::digits(),
            sound: Sound::default(),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Returns how long a lease of one of planctl's own processes lasts without a renewal.
    pub fn own_lease(&self) -> Duration {
        self.inner.settings.own_lease
    }

    /// Returns how long a lease of a remote worker lasts without a renewal.
    pub fn remote_lease(&self) -> Duration {
        self.inner.settings.remote_lease
    }

    /// Has transitions of this process lease work to these workers, which wait for it in workspaces on a host, for as long as
    /// they are kept.
    pub fn serve_waiting(&self, host: &str, workers: Weak<dyn WaitingWorkers>) {
        self.waiting().add(host, workers);
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

    pub(crate) fn last_look(&self) -> &tokio::sync::Mutex<LastLook> {
        &self.inner.last_look
    }

    pub(crate) fn races(&self) -> &Races {
        &self.inner.races
    }

    pub(crate) fn waiting(&self) -> &WaitingByHost {
        &self.inner.waiting
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.inner.notifier
    }

    /// The name that this store's own notifications carry, so that it can ignore them.
    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }
}
