//! Test support: a cluster that all tests of a machine share, and a database for each test.
//!
//! ```no_run
//! # async fn a_test() {
//! use planctl_store::testing::TestCluster;
//!
//! let database = TestCluster::shared()
//!     .fresh_database("migrated-4f1c", async |options| {
//!         sqlx::PgPool::connect_with(options).await.map(drop).map_err(Into::into)
//!     })
//!     .await;
//! let pool = sqlx::PgPool::connect_with(database.connect_options()).await;
//! # }
//! ```
//!
//! Tests of programs that start their private cluster have [`lay_private_cluster`].

mod past;
mod private;

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::future::Future;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::cluster::{Cluster, ClusterOptions, Linger};
use crate::{Settings, Store};

use private::{WATCHER, lay_shared_cluster, remove_if_there};

pub use past::{Floor, PAST, RUN_ID, fill_with_past};
pub use private::{LaidCluster, lay_private_cluster};

/// Settings of a server that no power cut can hit.
pub(super) const HASTY: &[(&str, &str)] = &[("fsync", "off"), ("full_page_writes", "off")];

/// Numbers the databases and directories of one process.
pub(super) static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A private cluster for tests.
#[derive(Debug)]
pub struct TestCluster {
    cluster: Cluster,
    options: ClusterOptions,
    /// Removed after the cluster has stopped, so it is the last field.
    _place: Option<Scratch>,
}

impl TestCluster {
    /// Returns the cluster that all test processes of this user share, started by the first of them.
    ///
    /// It lives under `/tmp`, its data in `/dev/shm` where there is room: a database is three hundred files, and making and
    /// removing those costs more than what a test does with them. It ends a second after the last test process did, and
    /// has `fsync` off: its data survive a `kill -9` of every process, but not a power cut. Each process keeps it up while it
    /// lives.
    ///
    /// # Panics
    ///
    /// When there is no cluster to be had: a test can't go on then.
    pub fn shared() -> &'static TestCluster {
        static SHARED: OnceLock<TestCluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            if !on_path("flock") {
                // Without the watcher nothing would end a server that outlives its owner.
                return TestCluster::private();
            }
            let state = shared_dir().join("shared");
            lay_shared_cluster(&state)
                .unwrap_or_else(|error| panic!("could not lay the test cluster: {error}"));
            let mut options = ClusterOptions::new(state);
            options.linger = Some(Linger {
                idle: Duration::from_secs(1),
                program: "sh".into(),
                arguments: ["-c", WATCHER, "planctl-watcher"].map(OsString::from).to_vec(),
            });
            // Databases of tests are gone before their rows would be worth a vacuum.
            options.settings = [("max_connections", "300"), ("max_wal_size", "128MB"), ("autovacuum", "off")]
                .iter()
                .chain(HASTY)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            TestCluster::attach(options, None)
        })
    }

    /// Starts a cluster of this test alone, with the settings of the product; it goes when it is dropped.
    ///
    /// For tests that kill or stop the server, and for measurements.
    ///
    /// # Panics
    ///
    /// When it can't be started: a test can't go on then.
    pub fn private() -> TestCluster {
        TestCluster::private_with([])
    }

    /// Starts a cluster of this test alone, with settings of the server that win over the product's.
    ///
    /// # Panics
    ///
    /// When it can't be started: a test can't go on then.
    pub fn private_with<const N: usize>(settings: [(&str, String); N]) -> TestCluster {
        let place = Scratch::new();
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
        let options = ClusterOptions { settings, ..ClusterOptions::new(place.0.join("state")) };
        TestCluster::attach(options, Some(place))
    }

    fn attach(options: ClusterOptions, place: Option<Scratch>) -> TestCluster {
        let cluster =
            apart(Cluster::attach(options.clone())).unwrap_or_else(|error| panic!("could not {error}"));
        TestCluster { cluster, options, _place: place }
    }

    /// Returns the attachment.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns what the cluster was made from, to attach other processes to it, or to stop its server.
    pub fn options(&self) -> &ClusterOptions {
        &self.options
    }

    /// Makes a database for one test, as a copy of a template that `migrate` prepares once.
    ///
    /// `template` must name the template's content (a digest of the migrations): a template of that name is taken as it
    /// is, even if another process or an earlier run of the tests made it.
    ///
    /// # Panics
    ///
    /// When the database can't be made: a test can't go on then.
    pub async fn fresh_database<M>(&self, template: &str, migrate: M) -> TestDatabase
    where
        M: AsyncFnOnce(PgConnectOptions) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let name = format!("t_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        match self.copy_template(&name, &template_name(template), migrate).await {
            Ok(()) => TestDatabase { admin: self.admin_options(), name, proxy_port: None },
            Err(error) => panic!("could not make a database from the template {template}: {error}"),
        }
    }

    /// Makes a database with planctl's schema for one test, as a copy of one that is migrated once.
    ///
    /// # Panics
    ///
    /// When the database can't be made: a test can't go on then.
    pub async fn migrated_database(&self) -> TestDatabase {
        self.fresh_database(&Store::schema_fingerprint(), migrate).await
    }

    /// Makes an empty database for one test.
    ///
    /// # Panics
    ///
    /// When the database can't be made: a test can't go on then.
    pub async fn empty_database(&self) -> TestDatabase {
        self.fresh_database("empty", async |_| Ok(())).await
    }

    /// Drops a template that no test will ask for again. One of planctl's schema stays, for the next run of the tests.
    ///
    /// # Panics
    ///
    /// When it can't be dropped.
    pub async fn drop_template(&self, template: &str) {
        let name = template_name(template);
        let dropped = async {
            let mut admin = PgConnection::connect_with(&self.admin_options()).await?;
            run(&mut admin, format!("alter database {name} is_template false")).await?;
            run(&mut admin, format!("drop database {name}")).await
        };
        if let Err(error) = dropped.await {
            panic!("could not drop the template {template}: {error}");
        }
    }

    async fn copy_template<M>(
        &self,
        name: &str,
        template: &str,
        migrate: M,
    ) -> Result<(), Box<dyn Error + Send + Sync>>
    where
        M: AsyncFnOnce(PgConnectOptions) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let mut admin = PgConnection::connect_with(&self.admin_options()).await?;
        drop_stale_databases(&mut admin).await?;
        if !is_complete(&mut admin, template).await? {
            // Released with the connection, also when `migrate` fails or this process dies.
            sqlx::query("select pg_advisory_lock(hashtext($1))").bind(template).execute(&mut admin).await?;
            if !is_complete(&mut admin, template).await? {
                run(&mut admin, format!("drop database if exists {template} with (force)")).await?;
                run(&mut admin, format!("create database {template}")).await?;
                migrate(self.admin_options().database(template)).await?;
                run(&mut admin, format!("alter database {template} is_template true")).await?;
            }
        }
        // Version 14 has no other way. The usual one of later versions writes the whole database to the WAL as well.
        let by_files = if self.cluster.major() > 14 { "strategy file_copy" } else { "" };
        run(&mut admin, format!("create database {name} template {template} {by_files}")).await?;
        admin.close().await?;
        Ok(())
    }

    fn admin_options(&self) -> PgConnectOptions {
        self.cluster.owner_options().database("postgres")
    }
}

/// Brings a database to planctl's newest schema.
pub(super) async fn migrate(options: PgConnectOptions) -> Result<(), Box<dyn Error + Send + Sync>> {
    let store = Store::connect(options, Settings::default()).await?;
    store.migrate().await?;
    store.close().await;
    Ok(())
}

/// Sets the store's estimate of the database's clock, as an answer of the database does.
pub fn observe_server_time(store: &crate::Store, time: planctl_engine::Timestamp) {
    store.server_clock().observe(time);
}

/// Returns how many transitions the commit queue holds.
pub fn commits_queued(store: &crate::Store) -> usize {
    store.commit_queue().len()
}

/// A database of one test, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    admin: PgConnectOptions,
    name: String,
    proxy_port: Option<u16>,
}

impl TestDatabase {
    /// Makes a database with planctl's schema in the shared cluster, for tests that have no runtime.
    ///
    /// # Panics
    ///
    /// When the database can't be made: a test can't go on then.
    pub fn migrated() -> TestDatabase {
        apart(TestCluster::shared().migrated_database())
    }

    /// Makes an empty database in the shared cluster, for tests that have no runtime.
    ///
    /// # Panics
    ///
    /// When the database can't be made: a test can't go on then.
    pub fn empty() -> TestDatabase {
        apart(TestCluster::shared().empty_database())
    }

    /// Returns what sqlx needs to connect to it.
    pub fn connect_options(&self) -> PgConnectOptions {
        let Some(port) = self.proxy_port else { return self.admin.clone().database(&self.name) };
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(port)
            .username(self.admin.get_username())
            .database(&self.name)
            .ssl_mode(sqlx::postgres::PgSslMode::Disable)
    }

    /// Has those who connect to it from now on go through a proxy, which listens on this port of the loopback.
    pub fn go_through(&mut self, proxy_port: u16) {
        self.proxy_port = Some(proxy_port);
    }

    /// Returns its address, for programs that are given one.
    pub fn url(&self) -> String {
        use sqlx::ConnectOptions as _;
        self.connect_options().to_url_lossy().to_string()
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let statement = format!("drop database if exists {} with (force)", self.name);
        let dropped = apart(async {
            let mut admin = PgConnection::connect_with(&self.admin).await?;
            run(&mut admin, statement).await?;
            admin.close().await
        });
        if let Err(error) = dropped {
            // A test may have stopped its server; the next run of the tests drops what is left.
            tracing::debug!(%error, database = %self.name, "could not drop a test's database");
        }
    }
}

/// Drops the databases of test processes that are over.
async fn drop_stale_databases(admin: &mut PgConnection) -> Result<(), sqlx::Error> {
    let names: Vec<String> =
        sqlx::query_scalar("select datname::text from pg_database where datname ~ '^t_[0-9]+_[0-9]+$'")
            .fetch_all(&mut *admin)
            .await?;
    for name in names {
        let alive = name.split('_').nth(1).is_some_and(|pid| Path::new("/proc").join(pid).exists());
        if !alive {
            run(admin, format!("drop database if exists {name} with (force)")).await?;
        }
    }
    Ok(())
}

async fn is_complete(admin: &mut PgConnection, template: &str) -> Result<bool, sqlx::Error> {
    let complete: Option<bool> =
        sqlx::query_scalar("select datistemplate from pg_database where datname = $1")
            .bind(template)
            .fetch_optional(admin)
            .await?;
    Ok(complete == Some(true))
}

async fn run(admin: &mut PgConnection, statement: String) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(statement)).execute(admin).await.map(drop)
}

/// Runs a future to its end on a thread of its own, so that the caller may be in any runtime.
pub(super) fn apart<F>(future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a test machine has threads and sockets to spare").block_on(future)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn template_name(template: &str) -> String {
    let digest = Sha256::digest(template.as_bytes());
    format!("template_{}", planctl_engine::hex(&digest[..8]))
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Returns the folder of what all tests of this user share; one of another user is refused.
pub(super) fn shared_dir() -> PathBuf {
    let uid = geteuid().as_raw();
    let dir = PathBuf::from(format!("/tmp/planctl-tests-{uid}"));
    make_open_dir(&dir);
    let meta = fs::symlink_metadata(&dir)
        .unwrap_or_else(|error| panic!("could not read {}: {error}", dir.display()));
    assert!(meta.is_dir() && meta.uid() == uid, "{} belongs to another user; remove it", dir.display());
    dir
}

/// Makes a directory that other users can pass through but not write to.
pub(super) fn make_open_dir(dir: &Path) {
    if let Err(error) = DirBuilder::new().mode(0o711).create(dir)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        panic!("could not create {}: {error}", dir.display());
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o711))
        .unwrap_or_else(|error| panic!("could not open up {}: {error}", dir.display()));
}

/// A directory of this test alone.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/tmp/planctl-test-{}-{number}", std::process::id()));
        remove_if_there(fs::remove_dir_all(&dir))
            .unwrap_or_else(|error| panic!("could not remove {}: {error}", dir.display()));
        make_open_dir(&dir);
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "could not remove a test's directory");
        }
    }
}
