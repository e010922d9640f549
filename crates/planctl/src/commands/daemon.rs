//! `planctl daemon …`: started, stopped, looked at, and installed as a service.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use clap::FromArgMatches as _;
use planctl_api::wire::DaemonInfo;
use planctl_config::Agent;
use planctl_harness::Detached;
use planctl_server::daemon::{DaemonOptions, serve};
use planctl_server::http::socket_of;
use planctl_server::singleton::{SingletonError, SingletonLock, SingletonState, singleton_state};
use planctl_server::{Caps, Doctor, Drafter, Health, ServerNode, ServiceError, StoreError};
use rustix::process::{Pid, Signal, kill_process};

use super::Context;
use super::draft::of_page::PageDrafts;
use crate::args::{self, AtOnce, Cli, Command, DaemonCommand};
use crate::client;
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::secrecy;
use crate::show::{self, GOOD, styled};
use crate::stop::Stop;

mod logs;
mod status;
mod unit;

/// How often is looked whether the daemon is there, or gone.
const LOOK: Duration = Duration::from_millis(20);
/// How long a daemon may take until it is ready, the making of the private Postgres included.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// How long it may take until it is gone: the ten seconds that it has, and its Postgres.
const GONE_WITHIN: Duration = Duration::from_secs(15);
/// How many lines of a log are shown where a start failed.
const LINES_SHOWN: usize = 20;
/// A log that is longer than this at a start is rotated.
const LOG_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Does what was typed.
pub async fn run(context: &Context, command: DaemonCommand) -> Answer {
    match command {
        DaemonCommand::Run { work, detached, .. } => foreground(context, work, detached).await,
        DaemonCommand::Start { work } => start(context, work).await,
        DaemonCommand::Restart => restart(context).await,
        DaemonCommand::Stop => stop(context).await,
        DaemonCommand::Status => status::run(context).await,
        DaemonCommand::Logs { follow, tail } => {
            logs::run(&log_path(&context.state_dir()?), follow, tail).await
        }
        DaemonCommand::Migrate { check } => migrate(context, check).await,
        DaemonCommand::InstallService { user, system, run_as, print, work } => {
            unit::install(context, unit::Wish { user, system, run_as, print, work })
        }
    }
}

async fn foreground(context: &Context, work: AtOnce, is_detached: bool) -> Answer {
    refuse_remote(&work)?;
    if is_detached {
        planctl_harness::detach_from_terminal().map_err(|error| {
            Failure::new(Exit::Temporary, format!("could not leave the terminal: {error}"))
        })?;
    }
    let ready = |info: &DaemonInfo| tracing::info!(pid = info.pid, socket = %info.socket, "ready");
    serve_here(context, options(context, work, None)?, ready).await
}

/// Is the daemon of the state directory in this process, until a signal asks it to stop.
pub(super) async fn serve_here(
    context: &Context,
    options: DaemonOptions,
    ready: impl FnOnce(&DaemonInfo),
) -> Answer {
    let state_dir = context.state_dir()?;
    refuse_long(&state_dir)?;
    let mut signals = Stop::listen()?;
    let health = Health::default();
    let singleton =
        SingletonLock::acquire(&state_dir).map_err(|error| singleton_failure(error, &state_dir))?;
    let opening = open(context, true);
    let server_node = tokio::select! {
        server_node = opening => server_node?,
        exit = signals.wait_for_signal() => return Err(Failure::new(exit, "stopped before it was ready")),
    };
    tracing::info!("using {}", server_node.database_line());
    let stop = async {
        signals.wait_for_signal().await;
    };
    serve(server_node, &singleton, &options, &health, ready, stop).await.map_err(client::failure)?;
    Ok(Exit::Yes)
}

pub(super) fn options(
    context: &Context,
    work: AtOnce,
    otherwise: Option<Agent>,
) -> Result<DaemonOptions, Failure> {
    let usual = DaemonOptions::default();
    let here = context.in_workspace(context.workspace())?;
    // It waits for its own processes, on a thread that may wait.
    let look = move || tokio::runtime::Handle::current().block_on(super::doctor::examine(&here));
    Ok(DaemonOptions {
        workers: work.workers.map_or(usual.workers, usize::from),
        gates: work.gates.map_or(usual.gates, usize::from),
        otherwise,
        listen: work.listen,
        hosts: work.hosts,
        caps: Caps {
            open_runs: work.max_open_runs.unwrap_or(usual.caps.open_runs),
            open_asks: work.max_open_asks.unwrap_or(usual.caps.open_asks),
        },
        doctor: Some(Doctor::new(look)),
        drafter: Some(Drafter::new(
            PageDrafts(context.in_workspace(context.workspace())?),
            context.state_dir()?,
        )),
        command: crate::next::words_elsewhere,
    })
}

/// Refuses a port that other machines reach, unless that was meant (row 106).
pub(super) fn refuse_remote(work: &AtOnce) -> Result<(), Failure> {
    match work.listen {
        Some(address) if !address.ip().is_loopback() && !work.allow_remote => {
            Err(Failure::usage(format!("could not listen on {address}: other machines reach that address"))
                .help("take 127.0.0.1, or say --allow-remote and put a proxy with TLS before it"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses a state directory in which a daemon could not listen, since the system takes short paths of sockets only.
pub(super) fn refuse_long(state_dir: &Path) -> Result<(), Failure> {
    let socket = socket_of(state_dir);
    std::os::unix::net::SocketAddr::from_pathname(&socket).map(drop).map_err(|error| {
        Failure::new(Exit::Configuration, format!("could not listen on {}: {error}", socket.display()))
            .help("set PLANCTL_STATE_DIR to a shorter path; without a daemon it works as it is")
    })
}

async fn open(context: &Context, migrates: bool) -> Result<ServerNode, Failure> {
    // A service ends with all its processes.
    client::take_place(context, migrates, Duration::ZERO).await?.map_err(client::failure)
}

async fn start(context: &Context, work: AtOnce) -> Answer {
    refuse_remote(&work)?;
    let listen = work.listen;
    start_with(context, &detached_arguments(context, work)?, listen).await
}

/// Stops the daemon and starts it with the arguments that it had.
///
/// # Errors
///
/// When a service manager runs it, which restarts it itself.
async fn restart(context: &Context) -> Answer {
    let SingletonState::Running(info) = read_singleton(&context.state_dir()?)? else {
        return start_with(context, &[OsString::from("daemon"), "run".into(), "--detached".into()], None)
            .await;
    };
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", info.pid)).unwrap_or_default();
    if let Some(unit) = groups.lines().find_map(|line| {
        line.rsplit('/').next().filter(|unit| unit.ends_with(".service") && unit.starts_with("planctl"))
    }) {
        return Err(Failure::new(
            Exit::Conflict,
            format!("systemd runs the daemon, as {}", show::safe(unit)),
        )
        .next(format!("systemctl --user restart {unit}, or sudo systemctl restart {unit}")));
    }
    let had = std::fs::read(format!("/proc/{}/cmdline", info.pid)).map_err(|error| {
        Failure::new(Exit::Temporary, format!("could not read with which options the daemon runs: {error}"))
    })?;
    let mut words: Vec<OsString> = had
        .split(|byte| *byte == 0)
        .skip(1)
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    if !words.iter().any(|word| word == "--detached") {
        words.push("--detached".into());
    }
    stop(context).await?;
    start_with(context, &words, None).await
}

async fn start_with(context: &Context, words: &[OsString], listen: Option<SocketAddr>) -> Answer {
    let state_dir = context.state_dir()?;
    refuse_long(&state_dir)?;
    // A faulty configuration is reported here, where somebody reads it.
    context.config()?;
    let asked = planctl_server::instant();
    loop {
        match read_singleton(&state_dir)? {
            // One that was killed keeps its lock until the kernel has ended the last of its threads.
            SingletonState::Running(info) if is_dying(info.pid) && asked.elapsed() < GONE_WITHIN => {
                tokio::time::sleep(LOOK).await;
            }
            SingletonState::Running(info) => return report_running(context, &info, listen, words),
            SingletonState::Busy { .. } | SingletonState::Nobody => break,
        }
    }
    let path = log_path(&state_dir);
    planctl_server::database::ensure_state_dir(&state_dir).map_err(client::cluster_failure)?;
    let log =
        open_log(&path).map_err(|error| Failure::of_state(format!("write {}", path.display()), &error))?;
    let from = log.metadata().map_or(0, |found| found.len());
    let mut daemon = Detached::start(Path::new("/proc/self/exe"), words, &variables(context), log)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not start the daemon: {error}")))?;
    let began = planctl_server::instant();
    while began.elapsed() < READY_WITHIN {
        if let SingletonState::Running(info) = read_singleton(&state_dir)?
            && info.pid == daemon.pid()
        {
            context.say(&format!("{} pid {} · log {}", styled(GOOD, "started"), info.pid, path.display()));
            context.say(&next::line("planctl daemon status"));
            return Ok(Exit::Yes);
        }
        if let Ok(Some(status)) = daemon.ended() {
            match read_singleton(&state_dir)? {
                // Another start was quicker.
                SingletonState::Running(info) => return report_running(context, &info, listen, words),
                SingletonState::Busy { .. } => {}
                SingletonState::Nobody => {
                    return Err(not_started(status, &logs::read_after(&path, from), &path));
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Failure::new(Exit::Temporary, format!("the daemon (pid {}) is not ready yet", daemon.pid()))
        .next("planctl daemon logs"))
}

/// Says whether a process has ended or is about to: its first thread is gone, even if other threads still run, or was told to
/// end by `kill -9` and has not got that far.
fn is_dying(pid: u32) -> bool {
    const SIGKILL: u64 = 1 << 8;
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let value = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(key, value)| (key == name).then(|| value.trim()))
    };
    let is_killed = |name| {
        value(name)
            .and_then(|mask| u64::from_str_radix(mask, 16).ok())
            .is_some_and(|mask| mask & SIGKILL != 0)
    };
    value("State").is_none_or(|state| state.starts_with(['Z', 'X']))
        || is_killed("SigPnd")
        || is_killed("ShdPnd")
}

/// Says that a daemon is there, unless it does not listen where this one should, or lacks another setting that was asked for.
fn report_running(
    context: &Context,
    info: &DaemonInfo,
    listen: Option<SocketAddr>,
    asked: &[OsString],
) -> Answer {
    let there = info.tcp.as_deref().and_then(|tcp| tcp.parse::<SocketAddr>().ok());
    let is_asked_for = |address: SocketAddr| {
        there.is_some_and(|there| {
            there.ip() == address.ip() && (address.port() == 0 || there.port() == address.port())
        })
    };
    match listen {
        Some(address) if !is_asked_for(address) => Err(Failure::new(
            Exit::Conflict,
            format!("a daemon is there already, pid {}, and does not listen on {address}", info.pid),
        )
        .help("stop it first")
        .next("planctl daemon stop")),
        Some(_) | None => {
            let missing = missing_settings(asked, info.pid)?;
            if !missing.is_empty() {
                let missing = missing.join(", ");
                let message = format!("a daemon is there already, pid {}, without {missing}", info.pid);
                let failure =
                    Failure::new(Exit::Conflict, message).help("stop it first, and start it with that");
                return Err(failure.next("planctl daemon stop"));
            }
            context.say(&format!("a daemon is there already: pid {}", info.pid));
            Ok(Exit::Yes)
        }
    }
}

/// Returns the settings that were asked for and a running daemon does not have, as they are typed.
fn missing_settings(asked: &[OsString], pid: u32) -> Result<Vec<String>, Failure> {
    // Another user's process tells nothing.
    let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return Ok(Vec::new()) };
    let words = line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let parsed = args::command().try_get_matches_from(words.filter(|word| !word.is_empty())).ok();
    let cli = parsed.and_then(|matches| Cli::from_arg_matches(&matches).ok());
    let Some(Cli { global, command: Command::Daemon(DaemonCommand::Run { work, .. }) }) = cli else {
        return Ok(Vec::new());
    };
    // It has the usual of each setting that was not typed, which somebody may ask for by its number.
    let usual = DaemonOptions::default();
    let number = |usual: usize| u16::try_from(usual).ok();
    let work = AtOnce {
        workers: work.workers.or(number(usual.workers)),
        gates: work.gates.or(number(usual.gates)),
        max_open_runs: work.max_open_runs.or(Some(usual.caps.open_runs)),
        max_open_asks: work.max_open_asks.or(Some(usual.caps.open_asks)),
        ..work
    };
    let had = daemon_arguments(global.config, work)?;
    let had: Vec<_> = settings(&had).collect();
    let missing = settings(asked).filter(|setting| !had.contains(setting));
    let typed = |setting: &[OsString]| {
        let words: Vec<_> = setting.iter().map(|word| show::shell_word(&word.to_string_lossy())).collect();
        words.join(" ")
    };
    Ok(missing.map(typed).collect())
}

/// Returns the flags of a daemon with their values. Where it listens is compared apart, and how it was started is no setting.
fn settings(words: &[OsString]) -> impl Iterator<Item = &[OsString]> {
    let begins_flag = |_: &OsString, next: &OsString| !next.as_encoded_bytes().starts_with(b"-");
    let is_setting = |flag: &&[OsString]| {
        let name = flag[0].as_encoded_bytes();
        name.starts_with(b"--") && name != b"--listen" && name != b"--detached"
    };
    words.chunk_by(begins_flag).filter(is_setting)
}

fn detached_arguments(context: &Context, work: AtOnce) -> Result<Vec<OsString>, Failure> {
    let mut words = daemon_arguments(context.config_named(), work)?;
    words.push("--detached".into());
    words.extend((0..context.verbosity()).map(|_| "-v".into()));
    Ok(words)
}

/// Passes on what was typed; a password in the database's address stays out of the list of processes.
fn daemon_arguments(config: Option<PathBuf>, work: AtOnce) -> Result<Vec<OsString>, Failure> {
    let mut words: Vec<OsString> = ["daemon", "run"].into_iter().map(OsString::from).collect();
    let mut say = |flag: &str, value: OsString| words.extend([flag.into(), value]);
    let numbers = [
        ("--workers", work.workers.map(u32::from)),
        ("--gates", work.gates.map(u32::from)),
        ("--max-open-runs", work.max_open_runs),
        ("--max-open-asks", work.max_open_asks),
    ];
    for (flag, number) in numbers {
        if let Some(number) = number {
            say(flag, number.to_string().into());
        }
    }
    if let Some(listen) = work.listen {
        say("--listen", listen.to_string().into());
    }
    for host in work.hosts {
        say("--host", host.into());
    }
    if let Some(file) = config {
        let file = std::path::absolute(&file).map_err(|error| {
            Failure::new(Exit::Temporary, format!("could not find {}: {error}", file.display()))
        })?;
        say("--config", file.into());
    }
    if work.allow_remote {
        words.push("--allow-remote".into());
    }
    Ok(words)
}

fn variables(context: &Context) -> Vec<(&'static str, OsString)> {
    let named = context.named_database().map(OsString::from);
    let url = named.or_else(|| secrecy::variable("PLANCTL_DATABASE_URL"));
    url.map(|url| ("PLANCTL_DATABASE_URL", url)).into_iter().collect()
}

fn not_started(status: ExitStatus, said: &str, log: &Path) -> Failure {
    let exit = Exit::ALL.into_iter().find(|exit| Some(i32::from(exit.code())) == status.code());
    let exit = exit.filter(|exit| *exit != Exit::Yes).unwrap_or(Exit::Temporary);
    if said.trim().is_empty() {
        return Failure::new(
            exit,
            format!("the daemon did not start and said nothing; it ended with {status}"),
        )
        .help(format!("is there room on the disk of its log, {}?", log.display()));
    }
    let mut message = "the daemon did not start; it said:".to_owned();
    for line in reason_lines(said.trim_end()) {
        message.push_str(&format!("\n  {}", show::safe(line)));
    }
    Failure::new(exit, message).help(format!("all that it said is in {}", log.display()))
}

/// Returns the lines that show the reason: the sentence with "could not" and the last lines after it, else the last lines.
fn reason_lines(said: &str) -> Vec<&str> {
    let sentence = said.lines().position(|line| line.starts_with("could not"));
    let (sentence, after) = match sentence {
        Some(at) => (said.lines().nth(at), said.lines().count() - at - 1),
        None => (None, said.lines().count()),
    };
    let last = show::last_lines(said, after.min(LINES_SHOWN));
    sentence.into_iter().chain(last).collect()
}

async fn stop(context: &Context) -> Answer {
    let state_dir = context.state_dir()?;
    let pid = match read_singleton(&state_dir)? {
        SingletonState::Nobody => {
            context.say(&format!("no daemon is there for {}", state_dir.display()));
            return Ok(Exit::Yes);
        }
        SingletonState::Running(info) => Some(info.pid),
        SingletonState::Busy { pid } => pid,
    };
    let process = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).unwrap_or(0)));
    let Some(process) = process else {
        return Err(
            Failure::new(Exit::Temporary, "a daemon is just being started").next("planctl daemon stop")
        );
    };
    let asked = planctl_server::instant();
    match kill_process(process, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => {
            return Err(Failure::new(
                Exit::Denied,
                format!("could not stop the daemon, pid {process}: {error}"),
            )
            .help("ask as the user who started it, or as root"));
        }
    }
    while asked.elapsed() < GONE_WITHIN {
        if read_singleton(&state_dir)? == SingletonState::Nobody {
            context.say(&format!(
                "{} within {}",
                styled(GOOD, "stopped"),
                show::seconds(asked.elapsed().as_secs_f64())
            ));
            return Ok(Exit::Yes);
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Failure::new(
        Exit::Temporary,
        format!("the daemon, pid {process}, has not stopped within {} s", GONE_WITHIN.as_secs()),
    )
    .help(format!("kill -9 {process} loses nothing: the next daemon goes on")))
}

async fn migrate(context: &Context, is_check: bool) -> Answer {
    let opened = client::take_place(context, !is_check, client::stop_after(context)?).await?;
    match opened {
        Ok(server_node) => {
            let line = server_node.database_line().to_owned();
            server_node.close().await;
            let what = if is_check { "the schema is up to date" } else { "the schema is brought up to date" };
            context.say(&format!("{what}: {}", show::safe(&line)));
            Ok(Exit::Yes)
        }
        Err(ServiceError::Store(StoreError::OlderSchema { found, known })) if is_check => {
            Err(Failure::new(Exit::No, format!("the schema is {found}, and this planctl needs {known}"))
                .next("planctl daemon migrate"))
        }
        Err(error) => Err(client::failure(error)),
    }
}

fn read_singleton(state_dir: &Path) -> Result<SingletonState, Failure> {
    singleton_state(state_dir)
        .map_err(|error| Failure::of_state(format!("read {}", state_dir.display()), &error))
}

fn singleton_failure(error: SingletonError, state_dir: &Path) -> Failure {
    match error {
        SingletonError::Taken(ref there) => {
            let who = match there {
                SingletonState::Running(info) => {
                    format!(
                        "pid {}, started {}",
                        info.pid,
                        show::ago(&info.started_at, client::now_unix_seconds())
                    )
                }
                SingletonState::Busy { pid: Some(pid) } => format!("pid {pid}"),
                SingletonState::Busy { pid: None } | SingletonState::Nobody => {
                    "it is just starting or stopping".to_owned()
                }
            };
            Failure::new(Exit::Conflict, format!("could not {error}: {who}"))
                .help(format!(
                    "one daemon serves {}; another needs a state directory of its own (PLANCTL_STATE_DIR)",
                    state_dir.display()
                ))
                .next("planctl daemon status")
        }
        SingletonError::Io { path, source } => {
            Failure::of_state(format!("use the state directory {}", path.display()), &source)
        }
        SingletonError::StateDir(error) => client::cluster_failure(error),
    }
}

fn log_path(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.log")
}

fn open_log(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > LOG_BYTES_MAX) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}
