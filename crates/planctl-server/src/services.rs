//! What every door may ask for: the command line today, a socket tomorrow. One handle, opened once per process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use planctl_engine::{Actor, Digest, HumanEvent, Role, RunId};
use planctl_harness::{ProtectError, Spawner};
use planctl_store::cluster::{Cluster, ClusterError, ClusterOptions};
use planctl_store::{
    Holder, Listener, PgConnectOptions, Proof, RunRow, Settings, Store, StoreError, WorkspaceId,
};

use crate::check::CheckError;
use crate::config::{Config, DatabaseUrl};
use crate::instance::Instance;

/// What a process has to know before it can open the services.
#[derive(Clone, Debug)]
pub struct Open {
    /// Where planctl keeps what is not in the database: the private cluster, trust, instances.
    pub state_dir: PathBuf,
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    /// The effective configuration.
    pub config: Config,
    /// The database that was named; the private cluster otherwise.
    pub database_url: Option<DatabaseUrl>,
    /// Who speaks, for the record.
    pub actor: Actor,
    /// This program, to be started as the helper that minds child processes.
    pub program: PathBuf,
}

/// The handle on everything that needs the database.
pub struct Services {
    pub(crate) store: Store,
    pub(crate) open: Open,
    pub(crate) workspace: WorkspaceId,
    pub(crate) host: String,
    boot: String,
    process: OnceLock<Process>,
    cluster: Option<Cluster>,
    database_line: String,
    rings: tokio::task::JoinHandle<()>,
}

/// What only a process that works needs.
struct Process {
    instance: Instance,
    spawner: Spawner,
}

/// Why a service could not do what was asked; each text fits after "could not".
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The plan's file can't be read.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The private cluster can't be had.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Protected files can't be digested.
    #[error("protect files: {0}")]
    Protect(#[from] ProtectError),
    /// The plan has errors; only a verified plan can be approved or run.
    #[error("use {plan}: it is not verified")]
    NotVerified {
        /// The plan's path.
        plan: String,
    },
    /// Nobody serves a role, so the run would wait for ever.
    #[error("start: no agent serves the role `{role}`")]
    NoAgent {
        /// The role.
        role: Role,
    },
    /// The isolation that the configuration asks for is not to be had.
    #[error("start: isolation `{wanted}` is not available, this host offers tier {offered}")]
    Isolation {
        /// What is asked for.
        wanted: String,
        /// What there is.
        offered: u8,
    },
    /// The run is not in a state for what was asked.
    #[error("{what}")]
    Conflict {
        /// What does not fit.
        what: String,
        /// What to type instead.
        help: String,
    },
    /// There is no such thing.
    #[error("find {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// A file or a process of planctl's own failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something that cannot be is so: a defect of planctl.
    #[error("go on: {what} (this is a defect of planctl)")]
    Broken {
        /// What it is.
        what: String,
    },
}

impl ServiceError {
    pub(crate) fn broken(what: impl Into<String>) -> ServiceError {
        ServiceError::Broken { what: what.into() }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServiceError {
        let what = what.into();
        move |source| ServiceError::Io { what, source }
    }
}

impl From<io::Error> for ServiceError {
    fn from(source: io::Error) -> ServiceError {
        ServiceError::Io { what: "read the workspace".to_owned(), source }
    }
}

impl Services {
    /// Connects to the database, starts the private cluster where none is named, and brings the schema up to date.
    ///
    /// # Errors
    ///
    /// Those of the cluster, of the connection and of the migration.
    pub async fn open(open: Open) -> Result<Services, ServiceError> {
        let (cluster, options, database_line) = match &open.database_url {
            Some(url) => {
                let options: PgConnectOptions = url
                    .expose()
                    .parse()
                    .map_err(|source| ServiceError::Store(StoreError::from_configuration(source)))?;
                (None, options, url.to_string())
            }
            None => {
                let mut wanted = ClusterOptions::new(&open.state_dir);
                wanted.bin_dir.clone_from(&open.config.postgres.bin_dir);
                wanted.download = open.config.postgres.download;
                let cluster = Cluster::attach(wanted).await?;
                let options = cluster.connect_options();
                let line = cluster.describe();
                (Some(cluster), options, line)
            }
        };
        let store = Store::connect(options, Settings::default()).await?;
        store.migrate().await?;
        let host = planctl_harness::host_id();
        let path = open.workspace.to_string_lossy();
        let workspace = store.workspace(&host, &path).await?;
        let ringing = store.clone();
        let rings = tokio::spawn(async move { ringing.carry_rings().await });
        Ok(Services {
            store,
            workspace,
            host,
            boot: planctl_harness::boot_id(),
            process: OnceLock::new(),
            cluster,
            database_line,
            rings,
            open,
        })
    }

    /// Says in one line which database is used, without any password.
    pub fn database_line(&self) -> &str {
        &self.database_line
    }

    /// Returns the private cluster, where it is the one in use.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Returns the store, for tests and for tools that read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the directory that holds what is not in the database.
    pub fn state_dir(&self) -> &Path {
        &self.open.state_dir
    }

    /// Returns who speaks.
    pub fn actor(&self) -> &Actor {
        &self.open.actor
    }

    /// Returns what starts and ends child processes.
    ///
    /// # Errors
    ///
    /// When the helper can't be started.
    pub fn spawner(&self) -> Result<&Spawner, ServiceError> {
        Ok(&self.process()?.spawner)
    }

    /// Registers for the transitions of a run. A ring says only "look again"; look again every second without one too.
    pub fn listen(&self, run: RunId) -> Listener {
        self.store.listen_to(run)
    }

    /// Finds the run that a person means: a name, an id, the beginning of either, `@last`, or a plan's path.
    ///
    /// # Errors
    ///
    /// Those of the store: not found, ambiguous, unavailable.
    pub async fn find(&self, given: &str) -> Result<RunId, ServiceError> {
        Ok(self.find_row(given).await?.id)
    }

    pub(crate) async fn find_row(&self, given: &str) -> Result<RunRow, ServiceError> {
        let path = crate::check::plan_path(Path::new(given), &self.open.workspace);
        match self.store.find_run(given, Some(self.workspace)).await {
            Err(StoreError::NotFound { .. }) if path != given && !given.starts_with('@') => {
                Ok(self.store.find_run(&path, Some(self.workspace)).await?)
            }
            found => Ok(found?),
        }
    }

    /// Ends the services: the private cluster goes too where this process is the last that uses it.
    pub async fn close(self) {
        self.rings.abort();
        self.store.close().await;
        if let Some(process) = self.process.get() {
            process.spawner.shutdown();
        }
    }

    pub(crate) fn holder(&self) -> Result<Holder, ServiceError> {
        Ok(Holder {
            host: self.host.clone(),
            boot: self.boot.clone(),
            instance: self.process()?.instance.id().to_owned(),
            own: true,
        })
    }

    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }

    fn process(&self) -> Result<&Process, ServiceError> {
        if let Some(process) = self.process.get() {
            return Ok(process);
        }
        let wrong = ServiceError::io(format!("use the state directory {}", self.open.state_dir.display()));
        let instance = Instance::begin(&self.open.state_dir).map_err(wrong)?;
        let wrong = || ServiceError::io("start the helper for child processes");
        let lock = instance.lock().map_err(wrong())?;
        let spawner = Spawner::start(&self.open.program, Some(lock)).map_err(wrong())?;
        Ok(self.process.get_or_init(|| Process { instance, spawner }))
    }

    /// Feeds a person's decision to a run.
    pub(crate) async fn decide(
        &self,
        run: RunId,
        decision: planctl_engine::Decision,
        note: Option<&str>,
    ) -> Result<planctl_store::Applied, ServiceError> {
        let proof = match decision {
            planctl_engine::Decision::Submit => Proof::Submit,
            planctl_engine::Decision::Answer { .. }
            | planctl_engine::Decision::Cancel
            | planctl_engine::Decision::Resume
            | planctl_engine::Decision::Revise { .. } => Proof::Person { key: None },
        };
        let event = planctl_engine::Event::Human(HumanEvent {
            by: self.open.actor.clone(),
            note: note.map(str::to_owned),
            decision,
        });
        Ok(self.store.apply(run, &event, &proof, None).await?)
    }

    pub(crate) fn config_digest(&self) -> Digest {
        self.open.config.digest()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.rings.abort();
    }
}
