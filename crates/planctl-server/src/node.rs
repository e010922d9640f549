//! One planctl process: its place at the database, its identity, its health, and the services that it offers.
//!
//! A server node serves every workspace of its host; [`Services`] is its handle on one workspace, for one actor.

pub mod database;
pub(crate) mod doctor;
pub(crate) mod drafter;
pub(crate) mod file_digests;
pub(crate) mod health;
pub(crate) mod in_flight;
pub(crate) mod instance;
pub(crate) mod intents;
pub(crate) mod metrics;
pub(crate) mod quarantine;
pub(crate) mod runtime;
pub(crate) mod secrets;
pub(crate) mod services;
pub(crate) mod sessions;
pub mod singleton;
pub(crate) mod spool;
pub(crate) mod systemd;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use planctl_api::Next;
use planctl_engine::{RunId, Tier};
use planctl_harness::{Spawner, blocking_in_place, probe_isolation};
use planctl_store::cluster::{Announce, Cluster, ClusterOptions};
use planctl_store::{Holder, Listener, PgConnectOptions, Settings, Store, StoreError};

use crate::mutex::lock;
use crate::node::file_digests::FileDigests;
use crate::node::in_flight::InFlight;
use crate::node::instance::Instance;
use crate::node::intents::Intents;
use crate::node::metrics::Metrics;
use crate::node::quarantine::Quarantine;
use crate::node::secrets::Secrets;
use crate::node::services::{Caller, ServiceError, Services};
use crate::node::sessions::Sessions;
use crate::node::spool::Spool;
use crate::traces::Traces;
use planctl_config::{Config, DatabaseUrl, Postgres, TraceConfig};

/// Options of a server node.
#[derive(Clone, Debug)]
pub struct ServerNodeOptions {
    /// Where planctl keeps what is not in the database: the private cluster, trust, instances.
    pub state_dir: PathBuf,
    /// The database that was named; the private cluster otherwise.
    pub database_url: Option<DatabaseUrl>,
    /// Where the private cluster's programs come from.
    pub postgres: Postgres,
    /// Hears how far the fetching of those programs is.
    pub announce: Option<Announce>,
    /// Hears what this process waits for; where nobody does, it is logged.
    pub say: Option<fn(&str)>,
    /// How long the server of a private cluster goes on when it was started for this node, and nobody uses it any more.
    pub stop_after: Duration,
    /// This program, to be started as the helper that minds child processes, and, where the server is to go on, as its watcher
    /// ([`database::WATCH_POSTGRES`]).
    pub program: PathBuf,
    /// Says that the schema is brought up to date; without it an older one is refused.
    pub migrates: bool,
    /// Where traces are sent, as far as the environment does not say.
    pub traces: TraceConfig,
    /// How the store uses the database.
    pub store: Settings,
}

/// A process's place at the database. Cheap to clone; all clones share it.
#[derive(Clone)]
pub struct ServerNode {
    pub(crate) store: Store,
    inner: Arc<Inner>,
}

struct Inner {
    state_dir: PathBuf,
    say: Option<fn(&str)>,
    program: PathBuf,
    host: String,
    boot: String,
    process: OnceLock<Process>,
    daemon: OnceLock<Daemon>,
    offered: tokio::sync::OnceCell<Tier>,
    cluster: Option<Cluster>,
    database_line: String,
    notifier: tokio::task::JoinHandle<()>,
    in_flight: InFlight,
    /// Runs that this process admitted or saw open, whose plan file may lack its newest marks.
    unmarked: Mutex<BTreeSet<RunId>>,
    quarantine: Quarantine,
    plan_digests: Arc<FileDigests>,
    intents: Intents,
    sessions: Sessions,
    metrics: Arc<Metrics>,
    traces: Option<Traces>,
}

/// State of a process that executes items.
struct Process {
    instance: Instance,
    spawner: Spawner,
}

/// The work that a daemon does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daemon {
    /// Says that its command line names an agent for every role.
    pub(crate) serves_all: bool,
}

/// Brings the schema up to date, or checks that it is.
async fn prepare_schema(store: &Store, migrates: bool) -> Result<(), StoreError> {
    if migrates { store.migrate().await } else { store.check_schema().await }
}

/// Connects to the private cluster as the role that is no superuser. Where that role or the schema is missing, as in a cluster
/// that is new or of an earlier planctl, the owner of the tables provides it.
async fn private_store(cluster: &Cluster, options: &ServerNodeOptions) -> Result<Store, ServiceError> {
    let connected = async || {
        let store = Store::connect(cluster.connect_options(), options.store.clone()).await?;
        store.check_schema().await?;
        Ok::<_, StoreError>(store)
    };
    match connected().await {
        Ok(store) => return Ok(store),
        Err(StoreError::Denied { .. }) => cluster.create_roles().await.map_err(StoreError::from)?,
        Err(StoreError::OlderSchema { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let owner = Store::connect(cluster.owner_options(), options.store.clone()).await?;
    prepare_schema(&owner, options.migrates).await?;
    Ok(connected().await?)
}

impl ServerNode {
    /// Connects to the database, starts the private cluster where none is named, and brings the schema up to date.
    ///
    /// # Errors
    ///
    /// Those of the cluster, of the connection and of the migration.
    pub async fn open(options: ServerNodeOptions) -> Result<ServerNode, ServiceError> {
        let (cluster, store, database_line) = match &options.database_url {
            Some(url) => {
                let connect: PgConnectOptions = url
                    .expose()
                    .parse()
                    .map_err(|source| ServiceError::Store(StoreError::from_configuration(source)))?;
                let store = Store::connect(connect, options.store.clone()).await?;
                prepare_schema(&store, options.migrates).await?;
                (None, store, url.to_string())
            }
            None => {
                let wanted =
                    database::cluster_options(&options.state_dir, &options.postgres, options.announce);
                let linger = database::linger(options.stop_after, &options.program);
                let cluster = Cluster::attach(ClusterOptions { linger, ..wanted }).await?;
                let store = private_store(&cluster, &options).await?;
                let line = cluster.describe();
                (Some(cluster), store, line)
            }
        };
        // A wrong setting keeps nobody from working.
        let traces = Traces::from_config(&options.traces).unwrap_or_else(|error| {
            tracing::warn!(%error, "no traces are sent");
            None
        });
        let listening = store.clone();
        let notifier = tokio::spawn(async move { listening.exchange_notifications().await });
        let (host, boot) = blocking_in_place(|| (planctl_harness::host_id(), planctl_harness::boot_id()));
        let inner = Inner {
            state_dir: options.state_dir,
            say: options.say,
            program: options.program,
            host: host.to_owned(),
            boot: boot.to_owned(),
            process: OnceLock::new(),
            daemon: OnceLock::new(),
            offered: tokio::sync::OnceCell::new(),
            cluster,
            database_line,
            notifier,
            in_flight: InFlight::default(),
            unmarked: Mutex::default(),
            quarantine: Quarantine::default(),
            plan_digests: Arc::default(),
            intents: Intents::default(),
            sessions: Sessions::default(),
            metrics: Arc::default(),
            traces,
        };
        Ok(ServerNode { store, inner: Arc::new(inner) })
    }

    /// Opens the services of one workspace for somebody.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn services(&self, mut caller: Caller) -> Result<Services, ServiceError> {
        caller.config = self.seal_secrets(caller.config)?;
        let workspace = match &caller.workspace {
            Some(path) if caller.is_looking => {
                Some(self.store.find_workspace(self.host(), &path.to_string_lossy()).await?)
            }
            Some(path) => Some(self.store.workspace(self.host(), &path.to_string_lossy()).await?),
            None => None,
        };
        Ok(Services::new(self.clone(), caller, workspace))
    }

    /// Keeps the values of variables of a configuration, and puts their seals in their place.
    pub(crate) fn seal_secrets(&self, mut config: Config) -> Result<Config, ServiceError> {
        let keep = self.secrets().seal_config(&mut config);
        keep.map_err(ServiceError::io("keep the values of variables in the state directory"))?;
        Ok(config)
    }

    /// Returns the place of live output and prompts.
    pub(crate) fn spool(&self) -> Spool {
        Spool::in_state(self.state_dir())
    }

    /// Returns the values of configured variables, which are not stored in the database.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::in_state(self.state_dir())
    }

    /// Says in one line which database is used, without any password.
    pub fn database_line(&self) -> &str {
        &self.inner.database_line
    }

    /// Returns the private cluster, where it is the one in use.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.inner.cluster.as_ref()
    }

    /// Returns the store, for tests and for tools that read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the directory that holds what is not in the database.
    pub fn state_dir(&self) -> &Path {
        &self.inner.state_dir
    }

    /// Returns the directory of the locks on workspaces and on plans' files.
    pub(crate) fn locks_dir(&self) -> PathBuf {
        self.state_dir().join("workspaces")
    }

    /// Says to people what this process waits for.
    pub(crate) fn say(&self, words: &str) {
        match self.inner.say {
            Some(say) => say(words),
            None => tracing::warn!("{words}"),
        }
    }

    /// Returns the id of this host.
    pub fn host(&self) -> &str {
        &self.inner.host
    }

    /// Returns what starts and ends child processes.
    ///
    /// # Errors
    ///
    /// When the helper can't be started.
    pub fn spawner(&self) -> Result<&Spawner, ServiceError> {
        Ok(&self.process()?.spawner)
    }

    /// Refuses to start work by settings that are not those a person approved.
    pub(crate) async fn refuse_changed_settings(
        &self,
        run: RunId,
        name: &str,
        settings: &str,
    ) -> Result<(), ServiceError> {
        match self.store.settings_fault(run, settings).await? {
            None => Ok(()),
            Some(fault) => Err(ServiceError::Conflict {
                what: format!("start work of {name}: {fault}"),
                next: Next::AuditRun { run: name.to_owned() },
            }),
        }
    }

    /// Returns the best isolation tier that this host offers, which is tried once.
    ///
    /// # Errors
    ///
    /// When no process can be started.
    pub(crate) async fn offered_tier(&self) -> Result<Tier, ServiceError> {
        let tried = self.inner.offered.get_or_try_init(|| async {
            let wrong = || ServiceError::io("try which isolation this host offers");
            let start = || Spawner::start(&self.inner.program, None);
            let spawner = blocking_in_place(start).map_err(wrong())?;
            let offered = probe_isolation(&spawner).await.map_err(wrong())?;
            blocking_in_place(|| spawner.shutdown());
            Ok::<_, ServiceError>(offered.tier)
        });
        tried.await.copied()
    }

    /// Registers for the transitions of a run. A notification only says "look again" and may be lost, so callers also
    /// look every second.
    pub fn listen(&self, run: RunId) -> Listener {
        self.store.listen_to(run)
    }

    /// Leaves: the private cluster goes too where this process is the last that uses it.
    pub async fn close(self) {
        self.inner.notifier.abort();
        self.store.close().await;
        if let Some(process) = self.inner.process.get() {
            process.spawner.shutdown();
        }
    }

    /// Leaves the database while others may still use it. A Postgres that this process runs is killed after `grace_period`.
    pub(crate) async fn close_within(self, grace_period: Duration) {
        let inner = self.inner.clone();
        self.close().await;
        let left = tokio::task::spawn_blocking(move || {
            if let Some(cluster) = &inner.cluster {
                cluster.detach(grace_period);
            }
        });
        if let Err(error) = left.await {
            tracing::error!(%error, "could not leave the private Postgres");
        }
    }

    pub(crate) fn holder(&self) -> Result<Holder, ServiceError> {
        Ok(Holder {
            host: self.inner.host.clone(),
            boot: self.inner.boot.clone(),
            instance: self.process()?.instance.id().to_owned(),
            own: true,
        })
    }

    /// Begins to count as the daemon of this host.
    pub(crate) fn begin_as_daemon(&self, daemon: Daemon) {
        self.inner.daemon.get_or_init(|| daemon);
    }

    /// Returns the work that this process does as a daemon, where it is one.
    pub(crate) fn daemon(&self) -> Option<Daemon> {
        self.inner.daemon.get().copied()
    }

    /// Refuses to go on where the state directory is not where it was.
    ///
    /// # Errors
    ///
    /// [`ServiceError::StateDirGone`].
    pub(crate) fn check_state_dir(&self) -> Result<(), ServiceError> {
        match self.process()?.instance.is_in_place() {
            true => Ok(()),
            false => Err(ServiceError::StateDirGone { state_dir: self.state_dir().to_owned() }),
        }
    }

    /// Lets every view know that this process works on a run.
    pub(crate) fn mark_worked_on(&self, run: RunId) -> Result<(), ServiceError> {
        let wrong = ServiceError::io("say which run this process works on");
        self.process()?.instance.mark_worked_on(run).map_err(wrong)
    }

    /// Lets every view know that this process works on no run any more.
    pub(crate) fn clear_worked_on(&self) -> Result<(), ServiceError> {
        let wrong = ServiceError::io("say that this process works on no run");
        self.process()?.instance.clear_worked_on().map_err(wrong)
    }

    /// Returns the items that this process works on.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.inner.in_flight
    }

    /// Returns the pieces of a goal that steps serve, of plans that were read.
    pub(crate) fn intents(&self) -> &Intents {
        &self.inner.intents
    }

    /// Returns the digests of plans' files.
    pub(crate) fn plan_digests(&self) -> &Arc<FileDigests> {
        &self.inner.plan_digests
    }

    /// Returns the runs of which nothing is looked at for a while.
    pub(crate) fn quarantine(&self) -> &Quarantine {
        &self.inner.quarantine
    }

    /// Returns where traces are sent, where they are.
    pub(crate) fn traces(&self) -> Option<&Traces> {
        self.inner.traces.as_ref()
    }

    /// Returns the counters of this process.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.inner.metrics
    }

    /// Returns the steps at which interactive agents work.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.inner.sessions
    }

    pub(crate) fn boot(&self) -> &str {
        &self.inner.boot
    }

    fn process(&self) -> Result<&Process, ServiceError> {
        if let Some(process) = self.inner.process.get() {
            return Ok(process);
        }
        let process = blocking_in_place(|| self.begin_process())?;
        Ok(self.inner.process.get_or_init(|| process))
    }

    fn begin_process(&self) -> Result<Process, ServiceError> {
        let wrong = ServiceError::io(format!("use the state directory {}", self.state_dir().display()));
        let instance = Instance::begin(self.state_dir()).map_err(wrong)?;
        let wrong = || ServiceError::io("start the helper for child processes");
        let lock = instance.lock().map_err(wrong())?;
        let spawner = Spawner::start(&self.inner.program, Some(lock)).map_err(wrong())?;
        let spawner = spawner.with_scratch(scratch_in(self.state_dir())?);
        Ok(Process { instance, spawner })
    }

    /// Returns the runs whose plan file may lack its newest marks.
    pub(crate) fn unmarked(&self) -> MutexGuard<'_, BTreeSet<RunId>> {
        lock(&self.inner.unmarked)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.notifier.abort();
    }
}

/// Returns the folder of a state directory for the private folders of attempts; folders of crashed attempts are removed.
///
/// # Errors
///
/// When the folder can't be made or looked at.
pub fn scratch_in(state_dir: &Path) -> Result<PathBuf, ServiceError> {
    crate::state_folders::private_in(state_dir, "work")
        .map_err(ServiceError::io(format!("use {}", state_dir.join("work").display())))
}
