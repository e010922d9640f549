//! Places to run clusters in, other processes that attach to them, and waiting with a deadline.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use planctl_store::cluster::{self, Cluster, ClusterOptions, Linger};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use sqlx::{Connection as _, Row as _};

const DEADLINE: Duration = Duration::from_secs(60);

/// A directory that every user can pass through, removed at the end.
pub struct ClusterDir {
    root: tempfile::TempDir,
}

impl ClusterDir {
    pub fn new() -> ClusterDir {
        let root = tempfile::Builder::new().prefix("planctl-cluster-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        ClusterDir { root }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    pub fn options(&self) -> ClusterOptions {
        ClusterOptions::new(self.state())
    }

    /// Returns options for a server that goes on after its owner, watched by this test's program.
    pub fn lingering(&self, idle: Duration) -> ClusterOptions {
        ClusterOptions { linger: Some(lingering(idle)), ..self.options() }
    }

    pub fn give_to(&self, uid: u32) {
        chown(self.root(), Some(uid), None).unwrap();
    }

    /// Copies this test's program to where every user can start it. Another process does so, because a child that another
    /// test starts meanwhile inherits every file that this one has open for writing, and such a file can't be started.
    fn program(&self) -> PathBuf {
        let copy = self.root().join("program");
        if !copy.exists() {
            let own = std::env::current_exe().unwrap();
            assert!(Command::new("cp").arg(own).arg(&copy).status().unwrap().success());
        }
        copy
    }
}

/// Another process that is attached to the cluster of a place until it is killed or dropped.
pub struct Child {
    process: std::process::Child,
    lines: mpsc::Receiver<String>,
}

impl Child {
    /// Starts the process without waiting for it.
    pub fn start(place: &ClusterDir) -> Child {
        Child::spawn(Child::command(place, Command::new(std::env::current_exe().unwrap())))
    }

    /// Starts the process and waits until it is attached.
    pub fn attach(place: &ClusterDir) -> Child {
        let child = Child::start(place);
        child.await_attached();
        child
    }

    /// Starts the process, whose server goes on after it, and waits until it is attached.
    pub fn attach_lingering(place: &ClusterDir, idle: Duration) -> Child {
        let mut command = Child::command(place, Command::new(std::env::current_exe().unwrap()));
        command.env("CLUSTER_TEST_IDLE_SECONDS", idle.as_secs().to_string());
        let child = Child::spawn(command);
        child.await_attached();
        child
    }

    pub fn attach_as(place: &ClusterDir, uid: u32) -> Child {
        let mut command = Child::command(place, Command::new(place.program()));
        command.uid(uid).gid(uid);
        Child::spawn(command)
    }

    /// Starts the process as root of a user namespace in which there are no other users.
    pub fn attach_as_bare_root(place: &ClusterDir) -> Option<Child> {
        let works = Command::new("unshare").args(["--map-root-user", "true"]).output();
        if !works.is_ok_and(|output| output.status.success()) {
            return None;
        }
        let mut command = Command::new("unshare");
        command.arg("--map-root-user").arg(place.program());
        Some(Child::spawn(Child::command(place, command)))
    }

    fn command(place: &ClusterDir, mut command: Command) -> Command {
        command.args(["--exact", "child_process", "--ignored", "--nocapture"]);
        command.env("CLUSTER_TEST_STATE_DIR", place.state()).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command
    }

    fn spawn(mut command: Command) -> Child {
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Child { process, lines }
    }

    /// Waits until the process says that it is attached, and returns what it says.
    pub fn await_attached(&self) -> String {
        loop {
            let line = self.lines.recv_timeout(DEADLINE).expect("the child process attaches");
            if let Some(at) = line.find("attached ") {
                return line[at..].to_owned();
            }
        }
    }

    pub fn kill9(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops the process's threads, so that it can't bring its server back.
    pub fn stop_process(&self) {
        let pid = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

/// The other process: attaches, says so, and stays until its standard input ends.
pub fn child_process() {
    let state = std::env::var_os("CLUSTER_TEST_STATE_DIR").expect("started by a test of this file");
    let idle = std::env::var("CLUSTER_TEST_IDLE_SECONDS").ok().map(|idle| idle.parse().unwrap());
    let linger = idle.map(|idle| lingering(Duration::from_secs(idle)));
    let options = ClusterOptions { linger, ..ClusterOptions::new(state) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cluster = runtime.block_on(Cluster::attach(options)).unwrap();
    let answer = runtime.block_on(query(&cluster, "select '1'")).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "attached owner={} answer={answer}", cluster.is_owner()).unwrap();
    out.flush().unwrap();
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}

/// Lets a server go on after its owner, watched by this test's program.
fn lingering(idle: Duration) -> Linger {
    let arguments = ["--exact", "watcher_process", "--ignored"].map(OsString::from).to_vec();
    Linger { idle, program: std::env::current_exe().unwrap().into(), arguments }
}

/// The watcher of a lingering server; the words that follow are no test's name.
pub fn watcher_process() {
    let words: Vec<String> = std::env::args().collect();
    let [.., server, attached, idle] = words.as_slice() else { panic!("started by a test of this file") };
    let server = Pid::from_raw(server.parse().unwrap()).unwrap();
    cluster::stop_when_idle(server, Path::new(attached), Duration::from_millis(idle.parse().unwrap()))
        .unwrap();
}

/// Returns the process that watches a server.
pub fn watcher_of(server: u32) -> u32 {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_watcher = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        words.contains(&b"watcher_process".as_slice()) && words.contains(&server.to_string().as_bytes())
    };
    processes.filter_map(|name| name.parse().ok()).find(is_watcher).expect("the server is watched")
}

/// Runs one query on a connection of its own and returns its first value as text.
pub async fn query(cluster: &Cluster, sql: &str) -> Result<String, sqlx::Error> {
    let mut connection = sqlx::PgConnection::connect_with(&cluster.owner_options()).await?;
    let row = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_optional(&mut connection).await?;
    Ok(row.and_then(|row| row.try_get::<String, _>(0).ok()).unwrap_or_default())
}

/// Connects to a database of the server that planctl has nothing in.
pub async fn server(cluster: &Cluster) -> sqlx::PgConnection {
    sqlx::PgConnection::connect_with(&cluster.owner_options().database("postgres")).await.unwrap()
}

/// Counts the sessions that the database planctl has had, once all are over: each is counted at its end at the latest.
pub async fn sessions(cluster: &Cluster) -> i64 {
    let mut server = server(cluster).await;
    let open =
        "select count(*) from pg_stat_activity where datname = 'planctl' and backend_type = 'client backend'";
    soon_async("all sessions are over", async || {
        sqlx::query_scalar::<_, i64>(open).fetch_one(&mut server).await.unwrap() == 0
    })
    .await;
    let counted = "select sessions from pg_stat_database where datname = 'planctl'";
    sqlx::query_scalar(counted).fetch_one(&mut server).await.unwrap()
}

pub async fn count(cluster: &Cluster, table: &str) -> Result<i64, sqlx::Error> {
    let text = query(cluster, &format!("select count(*)::text from {table}")).await?;
    Ok(text.parse().expect("a count is a number"))
}

pub async fn wait_for_rows(pool: &sqlx::PgPool, rows: i64) {
    soon_async("the pool is served again", async || {
        let count = sqlx::query_scalar::<_, i64>("select count(*) from kept").fetch_one(pool).await;
        matches!(count, Ok(count) if count == rows)
    })
    .await;
}

/// Waits until something holds, looking every few milliseconds, and fails after a minute.
pub fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub async fn soon_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds().await {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub fn kill9(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// Kills a server with all its processes.
pub fn kill9_servers(server: u32) {
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
    kill9(server);
    for child in children.split_whitespace() {
        // It may have noticed and gone by itself.
        if let Err(error) = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL) {
            assert_eq!(error, rustix::io::Errno::SRCH);
        }
    }
}

pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Prints a figure, seen with `--nocapture`.
#[expect(clippy::print_stderr, reason = "figures are for people who run the test by hand")]
pub fn say(text: &str) {
    eprintln!("  {text}");
}
