//! The database as `planctl db` handles it: where it is, and how it is stopped, reset and installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use planctl_api::Next;
use planctl_store::cluster::{self, Client, Cluster, ClusterOptions, Linger};
use planctl_store::{Settings, Store, StoreError};
use rustix::process::Pid;

use crate::node::services::{ServiceError, Services};
use planctl_api::wire::DatabaseView;
use planctl_config::{Config, DatabaseUrl, Postgres};

pub use planctl_store::cluster::{Announce, ClusterError, ClusterStatus, Fetching, Stopped};

/// Returns planctl's state directory (DESIGN 9).
///
/// # Errors
///
/// [`ClusterError`] where no home directory is known.
pub fn state_dir() -> Result<PathBuf, ClusterError> {
    cluster::state_dir()
}

/// Creates planctl's state directory if it is missing, so that the database's user can pass through it.
///
/// # Errors
///
/// [`ClusterError`] where it can't be made.
pub fn ensure_state_dir(state_dir: &Path) -> Result<(), ClusterError> {
    cluster::ensure_state_dir(state_dir)
}

/// The word by which planctl starts itself as the watcher of a private Postgres.
pub const WATCH_POSTGRES: &str = "__watch-postgres";

/// Returns what the private cluster is made from.
pub fn cluster_options(state_dir: &Path, postgres: &Postgres, announce: Option<Announce>) -> ClusterOptions {
    ClusterOptions {
        announce,
        bin_dir: postgres.bin_dir.clone(),
        download: postgres.download,
        ..ClusterOptions::new(state_dir)
    }
}

/// Returns how a server that this process starts goes on after it; `program` is planctl's.
pub(super) fn linger(idle: Duration, program: &Path) -> Option<Linger> {
    let arguments = vec![WATCH_POSTGRES.into()];
    (!idle.is_zero()).then(|| Linger { idle, program: program.into(), arguments })
}

/// Is the watcher of a private Postgres, to its end: stops it once no process has used it for a while.
///
/// # Errors
///
/// [`ClusterError`] where the cluster's folder can't be read; without a word where the arguments are not those of a watcher.
pub fn watch_postgres(mut arguments: impl Iterator<Item = OsString>) -> Result<(), ClusterError> {
    let server = arguments.next().and_then(|word| Pid::from_raw(word.to_str()?.parse().ok()?));
    let attached = arguments.next().map(PathBuf::from);
    let idle = arguments.next().and_then(|word| word.to_str()?.parse().ok()).map(Duration::from_millis);
    match (server, attached, idle) {
        (Some(server), Some(attached), Some(idle)) => cluster::stop_when_idle(server, &attached, idle),
        _ => Ok(()),
    }
}

/// The database that the configuration names, reachable as long as this lives.
#[derive(Debug)]
pub enum Database {
    /// The private one; this process keeps it up.
    Private(Box<Cluster>, Box<ClusterOptions>),
    /// One that somebody else runs.
    Given(DatabaseUrl, Box<ClusterOptions>),
}

/// As whom a program of Postgres works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rights {
    /// As a role that reads; in a database that somebody else runs, in transactions that only read.
    Reader,
    /// As the owner of the tables, who is the private cluster's superuser.
    Owner,
}

impl Database {
    /// Makes the configured database reachable, without looking into it.
    ///
    /// # Errors
    ///
    /// [`ClusterError`] where the private cluster can't be started.
    pub async fn reach(
        state_dir: &Path,
        config: &Config,
        announce: Option<Announce>,
    ) -> Result<Database, ClusterError> {
        let options = cluster_options(state_dir, &config.postgres, announce);
        match &config.database {
            Some(url) => Ok(Database::Given(url.clone(), Box::new(options))),
            None => {
                let cluster = Cluster::attach(options.clone()).await?;
                Ok(Database::Private(Box::new(cluster), Box::new(options)))
            }
        }
    }

    /// Runs psql or pg_dump on this terminal to its end.
    ///
    /// # Errors
    ///
    /// [`ClusterError`] where the program can't be started.
    pub fn run(
        &self,
        name: &'static str,
        rights: Rights,
        arguments: Vec<OsString>,
    ) -> Result<ExitStatus, ClusterError> {
        let (url, password, options) = match self {
            Database::Private(cluster, options) => match rights {
                Rights::Reader => (cluster.reading_url(), None, options),
                Rights::Owner => (cluster.url(), None, options),
            },
            Database::Given(url, options) => {
                let (url, password) = url.without_password();
                (url, password, options)
            }
        };
        Client { name, url, password, is_reading: rights == Rights::Reader, arguments }.run(options)
    }
}

impl Database {
    /// Connects as the owner of the tables, whatever schema is there.
    async fn connect_as_owner(&self) -> Result<Store, ServiceError> {
        let options = match self {
            Database::Private(cluster, _) => {
                cluster.create_roles().await.map_err(StoreError::from)?;
                cluster.owner_options()
            }
            Database::Given(url, _) => url.expose().parse().map_err(StoreError::from_configuration)?,
        };
        Ok(Store::connect(options, Settings::default()).await?)
    }

    /// Removes the runs that ended longer ago than this, or only counts them; returns how many.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn prune(&self, older_than: Duration, dry_run: bool) -> Result<u64, ServiceError> {
        let store = self.connect_as_owner().await?;
        store.migrate().await?;
        let pruned =
            if dry_run { store.runs_to_prune(older_than).await } else { store.prune(older_than).await };
        store.close().await;
        Ok(pruned?)
    }

    /// Makes a database that nobody has used ready for a backup: it holds no tables, and the roles are there to which rights are given
    /// in it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where the database is not empty, and those of the connection.
    pub async fn prepare_restore(&self) -> Result<(), ServiceError> {
        let store = self.connect_as_owner().await?;
        let dropped = store.drop_unused_schema().await;
        store.close().await;
        match dropped {
            Ok(true) => return Ok(()),
            Err(error) if error.is_retryable() => return Err(error.into()),
            Ok(false) | Err(_) => {}
        }
        let next = match self {
            Database::Private(..) => "restore into an empty database; the private one is emptied by a reset",
            Database::Given(..) => "restore into an empty database: dropdb and createdb of Postgres make one",
        };
        let what = "restore: the database is not empty".to_owned();
        Err(ServiceError::Conflict { what, next: Next::by_hand(next) })
    }
}

/// Returns what is known of the private cluster without starting it.
///
/// # Errors
///
/// [`ClusterError`] where nothing can be known.
pub fn status(state_dir: &Path, postgres: &Postgres) -> Result<ClusterStatus, ClusterError> {
    Cluster::status(&cluster_options(state_dir, postgres, None))
}

/// Stops the private cluster's server.
///
/// # Errors
///
/// [`ClusterError`] where the cluster can't be stopped.
pub fn stop(state_dir: &Path, postgres: &Postgres) -> Result<Stopped, ClusterError> {
    Cluster::stop(&cluster_options(state_dir, postgres, None))
}

/// Removes all data of the private cluster.
///
/// # Errors
///
/// [`ClusterError::InUse`] while a process is attached.
pub fn reset(state_dir: &Path, postgres: &Postgres) -> Result<(), ClusterError> {
    Cluster::reset(&cluster_options(state_dir, postgres, None))
}

/// Installs a Postgres package for the private cluster and returns the directory of its programs.
///
/// # Errors
///
/// [`ClusterError::BadPackage`] where it is none.
pub fn install(state_dir: &Path, postgres: &Postgres, package: &Path) -> Result<PathBuf, ClusterError> {
    Cluster::install_from_file(&cluster_options(state_dir, postgres, None), package)
}

impl Services {
    /// Returns how the database is.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn database(&self) -> Result<DatabaseView, ServiceError> {
        let facts = self.store().server_facts().await?;
        let lossy = facts
            .lossy
            .iter()
            .map(|name| format!("{name} is off: a power cut can take back what planctl was told is stored"));
        Ok(DatabaseView {
            kind: if self.cluster().is_some() { "private" } else { "given" }.to_owned(),
            place: match self.cluster() {
                Some(cluster) => cluster.data_dir().display().to_string(),
                None => self.database_line().to_owned(),
            },
            version: Some(facts.version),
            is_up: true,
            schema: u32::try_from(facts.schema).ok(),
            schema_known: u32::try_from(facts.schema_known).ok(),
            bytes: Some(facts.bytes),
            warnings: lossy.collect(),
            role: Some(facts.role),
            role_may: facts.role_may.into_iter().map(str::to_owned).collect(),
        })
    }
}
