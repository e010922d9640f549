//! One Postgres server process: starts it, says when it is ready, and stops it.

use std::fs::{self, File};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{Connection as _, Executor as _};

use super::access;
use super::binaries::Binaries;
use super::data::NAME;
use super::error::At as _;
use super::identity::Identity;
use super::layout::{Layout, PORT};
use super::{ClusterError, ClusterOptions};

/// How often is looked whether another process's server, or its lock, is there.
pub(crate) const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// How long a server may take to stop before it is killed, where nobody is in more of a hurry.
pub(crate) const STOP: Duration = Duration::from_secs(15);

/// How long the system may take to end what was killed.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// How often a stopping server is looked at.
const STOP_LOOK: Duration = Duration::from_millis(2);

/// How many lines of the log go into an error.
const TAIL_LINES: usize = 20;

/// The lines that the server logs when a client connects too early.
const PING_LINES: [&str; 4] = [
    "the database system is starting up",
    "the database system is shutting down",
    "the database system is not yet accepting connections",
    "Consistent recovery state has not been yet reached",
];

/// The log begins anew at this size; one older log is kept.
const LOG_BYTES_MAX: u64 = 10 << 20;

/// The settings of the private cluster. `fsync` and `synchronous_commit` are named so that no file can switch them off.
///
/// Memory that sessions share is mapped from files of the data directory. By default it lies in `/dev/shm`: there confined workers
/// may write, logind removes it when its user logs out (`RemoveIPC`), so that no session can begin any more, and that of a killed
/// server whose directory is removed stays.
const SETTINGS: [&str; 17] = [
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "shared_buffers=64MB",
    "dynamic_shared_memory_type=mmap",
    "max_connections=100",
    "autovacuum_naptime=5s",
    "fsync=on",
    "recovery_init_sync_method=syncfs",
    "synchronous_commit=on",
    "full_page_writes=on",
    "log_destination=stderr",
    "logging_collector=off",
    "log_checkpoints=off",
    "log_timezone=UTC",
    "timezone=UTC",
    "lc_messages=C",
    "cluster_name=planctl",
];

const LOCK_ROLES: &str = "select pg_advisory_lock(1886155118, 6517869)";
const FIND_DATABASE: &str = "select from pg_database where datname = 'planctl'";
const CREATE_DATABASE: &str = "create database planctl";
const CREATE_ROLES: &str = "do $$ begin \
     if not exists (select from pg_roles where rolname = 'planctl_app') then create role planctl_app login; end if; \
     if not exists (select from pg_roles where rolname = 'planctl_read') then create role planctl_read login; end if; \
     end $$";

/// Where a server is reached.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) socket_dir: PathBuf,
}

impl Endpoint {
    /// Returns what sqlx needs to connect as the superuser.
    pub(crate) fn connect_options(&self, database: &str) -> PgConnectOptions {
        self.connect_options_as(NAME, database)
    }

    /// Returns what sqlx needs to connect as a role.
    pub(crate) fn connect_options_as(&self, role: &str, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("localhost")
            .socket(&self.socket_dir)
            .port(PORT)
            .username(role)
            .database(database)
            .ssl_mode(PgSslMode::Disable)
            .application_name(NAME)
    }

    /// Says whether the server's socket is there.
    pub(crate) fn has_socket(&self) -> bool {
        self.socket_dir.join(format!(".s.PGSQL.{PORT}")).exists()
    }

    /// Creates the database, and the roles without rights of a superuser, where an earlier planctl did not.
    pub(crate) async fn create_roles(&self) -> Result<(), sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.connect_options("postgres")).await?;
        let created = create_missing(&mut connection).await;
        connection.close().await?;
        created
    }
}

/// Two processes may do this at once; one that comes second finds the database and the roles of the first.
async fn create_missing(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute(LOCK_ROLES).await?;
    if connection.fetch_optional(FIND_DATABASE).await?.is_none() {
        connection.execute(CREATE_DATABASE).await?;
    }
    connection.execute(CREATE_ROLES).await.map(drop)
}

/// A server that this process started, or found running.
#[derive(Debug)]
pub(crate) enum Server {
    /// Our child.
    Started(Child),
    /// Another process's child.
    Adopted { pid: Pid, data: PathBuf },
}

impl Server {
    /// Starts Postgres itself, without `pg_ctl`, whose polling costs 0.1 s.
    ///
    /// The server gets SIGINT, a fast shutdown, when the calling thread ends, unless it is to linger.
    pub(crate) fn spawn(
        options: &ClusterOptions,
        layout: &Layout,
        binaries: &Binaries,
        identity: &Identity,
    ) -> Result<Server, ClusterError> {
        let socket_dir = layout.make_socket_dir(identity)?;
        let log = open_log(&layout.log())?;
        let errors = log.try_clone().at("open", &layout.log())?;
        let mut command = Command::new(binaries.program("postgres"));
        command.arg("-D").arg(layout.data_dir(binaries.major)).arg("-p").arg(PORT.to_string());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for setting in access::write_access_files(layout, identity)? {
            command.arg("-c").arg(setting);
        }
        let quoted = socket_dir.to_string_lossy().replace('"', "\"\"");
        command.arg("-c").arg(format!("unix_socket_directories=\"{quoted}\""));
        for (name, value) in &options.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        identity.prepare(&mut command, if options.linger.is_none() { Some(Signal::INT) } else { None });
        command.stdout(log).stderr(errors);
        let child = command.spawn().map_err(|error| identity.spawn_error("postgres", &error))?;
        let mut server = Server::Started(child);
        if let (Some(linger), Server::Started(child)) = (&options.linger, &server)
            && let Err(error) = linger.start_watcher(child, layout)
        {
            server.stop(STOP);
            return Err(error);
        }
        Ok(server)
    }

    /// Returns its process; nothing where the number can't be one.
    pub(crate) fn pid(&self) -> Option<Pid> {
        match self {
            Server::Started(child) => Pid::from_raw(child.id().cast_signed()),
            Server::Adopted { pid, .. } => Some(*pid),
        }
    }

    /// Returns how it ended, if it has.
    pub(crate) fn exit_description(&mut self) -> Option<String> {
        match self {
            Server::Started(child) => match child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(describe(status)),
                Err(error) => Some(format!("its exit status is unknown: {error}")),
            },
            Server::Adopted { pid, data } => (postmaster(data) != Some(*pid)).then(|| "it ended".to_owned()),
        }
    }

    /// Stops it: fast for two thirds of the timeout, at once for the rest, and in the end by force.
    pub(crate) fn stop(&mut self, timeout: Duration) {
        let Some(pid) = self.pid() else { return };
        for (signal, timeout) in [(Signal::INT, timeout * 2 / 3), (Signal::QUIT, timeout / 3)] {
            if self.exit_description().is_some() || kill_process(pid, signal).is_err() {
                return;
            }
            if wait_until(timeout, || self.exit_description().is_some()) {
                return;
            }
        }
        let backends = kill_family(pid);
        wait_until(KILLED_WITHIN, || {
            self.exit_description().is_some() && backends.iter().all(|pid| is_gone(*pid))
        });
    }
}

/// Waits until a condition holds, or for the timeout.
fn wait_until(timeout: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(STOP_LOOK);
    }
    true
}

/// Kills a server and its backends, which it returns. Each is a process group of its own, and one that hangs would outlive
/// the server and keep every other from the data.
fn kill_family(server: Pid) -> Vec<Pid> {
    // One that stands still starts no more of them.
    send_signal(server, Signal::STOP);
    let backends = children(server);
    for process in backends.iter().chain([&server]) {
        send_signal(*process, Signal::KILL);
    }
    backends
}

/// Sends a signal to a process that may be gone.
fn send_signal(process: Pid, signal: Signal) {
    if let Err(error) = kill_process(process, signal) {
        tracing::debug!(pid = process.as_raw_nonzero(), %error, "a process of Postgres got no signal");
    }
}

/// Stops a postmaster that isn't our child, and returns true once it is gone.
pub(crate) fn stop_postmaster(data: &Path, pid: Pid) -> bool {
    let mut server = Server::Adopted { pid, data: data.to_owned() };
    server.stop(STOP);
    server.exit_description().is_some()
}

/// Returns the process that works on a data directory: the one its `postmaster.pid` names, if that is no other by now.
pub(crate) fn postmaster(data: &Path) -> Option<Pid> {
    read_postmaster(data).map(|(pid, _)| pid)
}

/// Returns the process that works on a data directory, once it takes connections. It writes that down for `pg_ctl`; a connection
/// that asks for it would cost it a process.
pub(crate) fn ready_postmaster(data: &Path) -> Option<Pid> {
    read_postmaster(data).filter(|(_, status)| status == "ready").map(|(pid, _)| pid)
}

/// Returns the process that works on a data directory, and its word for what it does.
fn read_postmaster(data: &Path) -> Option<(Pid, String)> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    let number: i32 = lines.next()?.trim().parse().ok()?;
    let pid = Pid::from_raw(number.checked_abs()?)?;
    test_kill_process(pid).ok()?;
    if !works_in(number, data) {
        return None;
    }
    // Data directory, time of start, port, socket directory, address and shared memory stand between.
    let status = lines.nth(6).unwrap_or_default().trim_end().to_owned();
    Some((pid, status))
}

/// Says whether a process works in a data directory: a zombie works nowhere any more, and a stranger who got the number elsewhere.
fn works_in(number: i32, data: &Path) -> bool {
    match fs::read_link(format!("/proc/{number}/cwd")) {
        Ok(folder) => data.canonicalize().is_ok_and(|data| folder == data),
        // In a container, root may not look into the processes of others. Their name is open to everybody.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|name| name.trim_end() == "postgres")
                && !is_zombie(&number.to_string())
        }
        Err(_) => false,
    }
}

/// Lets Postgres take over from a server that was killed and that nobody reaps.
///
/// Postgres takes any process id that exists for a live server, also that of a zombie, which stays for ever where
/// process 1 doesn't reap. The files must stay, since Postgres finds backends of the dead server by them; so their first
/// line is set to our own id, which Postgres knows as its parent's and therefore as stale.
pub(crate) fn make_zombie_pid_stale(
    data: &Path,
    endpoint: &Endpoint,
    identity: &Identity,
) -> Result<(), ClusterError> {
    let socket_lock = endpoint.socket_dir.join(format!(".s.PGSQL.{PORT}.lock"));
    for path in [data.join("postmaster.pid"), socket_lock] {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Some((number, rest)) = text.split_once('\n') else { continue };
        if !is_zombie(number.trim()) {
            continue;
        }
        let new = path.with_extension("planctl");
        fs::write(&new, format!("{}\n{rest}", std::process::id())).at("write", &new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).at("close", &new)?;
        chown(&new, Some(identity.disk_uid()), Some(identity.disk_gid())).at("hand over", &new)?;
        fs::rename(&new, &path).at("move", &new)?;
    }
    Ok(())
}

fn is_zombie(number: &str) -> bool {
    stat(number).is_some_and(|(state, _)| state == "Z")
}

fn is_gone(pid: Pid) -> bool {
    stat(&pid.as_raw_nonzero().to_string()).is_none_or(|(state, _)| state == "Z")
}

fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().to_string();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| stat(name).is_some_and(|(_, its_parent)| its_parent == parent))
        .filter_map(|name| Pid::from_raw(name.parse().ok()?))
        .collect()
}

/// Returns a process's state and the number of its parent.
fn stat(number: &str) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}

/// Returns the last useful lines of the log: each ping of a server that starts up leaves lines too.
pub(crate) fn log_tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let is_ping = |line: &str| PING_LINES.iter().any(|ping| line.contains(ping));
    let useful: Vec<&str> = text.lines().filter(|line| !is_ping(line)).collect();
    tail(&useful.join("\n"))
}

/// Returns the last lines of a text, indented.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    let kept: Vec<String> = lines[from..].iter().map(|line| format!("  {line}")).collect();
    if kept.is_empty() { "  (nothing)".to_owned() } else { kept.join("\n") }
}

pub(crate) fn open_log(path: &Path) -> Result<File, ClusterError> {
    let too_long = fs::metadata(path).is_ok_and(|meta| meta.len() > LOG_BYTES_MAX);
    if too_long {
        fs::rename(path, path.with_extension("log.1")).at("rename", path)?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).at("open", path)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
