//! The words a person types.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches as _;
use clap::error::ErrorKind;
use planctl_server::database;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

mod amounts;
mod api;
mod args;
mod attention;
mod caller;
mod checking;
mod client;
mod commands;
mod completing;
mod completions;
mod context;
mod decide;
mod drawing;
mod failure;
mod flags;
mod guidance;
mod gutter;
mod limits;
mod model;
mod next;
mod person;
mod plan_files;
mod progress;
mod reports;
mod secrecy;
mod session_agent;
mod show;
mod stop;
mod terminal;
mod tips;
mod tls;
mod transport;

use args::{Cli, Command, DaemonCommand, LogFormat};
use failure::{Answer, Exit, Failure};
use flags::Color;

/// Reading a large plan makes and frees many small texts, which this one does faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long calls of the system that are under way may take at the end.
const CALLS_END_WITHIN: Duration = Duration::from_millis(400);

/// How many lines of the log may wait for a slow reader before lines are left out. The memory for them is taken, and written
/// to, when a command starts.
const LOG_LINES_MAX: usize = 8_192;

fn main() -> ExitCode {
    secrecy::wipe_environment();
    secrecy::set_missing_home();
    // The helper that starts child processes is this program again; it has to run before any thread is started.
    if std::env::args_os().nth(1).is_some_and(|word| word == "__spawn") {
        return ExitCode::from(u8::try_from(planctl_harness::helper_main()).unwrap_or(70));
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == "__tool") {
        return ExitCode::from(planctl_tools::main());
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == planctl_server::judge::ASK_JUDGE) {
        return ExitCode::from(commands::judge::main());
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == database::WATCH_POSTGRES) {
        return ExitCode::from(u8::from(database::watch_postgres(std::env::args_os().skip(2)).is_err()));
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == "hook") {
        secrecy::hide_process();
        if let Some(exit) = commands::guide::hook() {
            return exit;
        }
    }
    completions::answer();
    secrecy::hide_process();
    let (cli, command) = match parsed() {
        Ok(parsed) => parsed,
        Err(error) => return misused(&error),
    };
    let server = cli.global.server.clone().or_else(|| std::env::var("PLANCTL_SERVER").ok());
    // A worker that stays holds a token for long, and calls nothing for which the daemon looks who it is.
    // Behind TLS it sees a proxy.
    if command != "worker run" && server.is_some_and(|server| server.starts_with("http://")) {
        secrecy::make_dumpable();
    }
    colour(cli.global.color);
    let is_json =
        matches!(&cli.command, Command::Daemon(DaemonCommand::Run { log_format: LogFormat::Json, .. }));
    let _logs = log(cli.global.verbose, &cli.command);
    quieten_the_parser(is_json);
    let permitted = caller::refuse_worker(&command);
    if permitted.is_ok() {
        secrecy::warn_of_root(&command, is_json);
    }
    let exit = match permitted.and_then(|()| started(cli)).and_then(|exit| show::flush().map(|()| exit)) {
        Ok(exit) => exit,
        Err(failure) => {
            next::say_failure(&failure);
            failure.exit
        }
    };
    ExitCode::from(exit.code())
}

/// Reads what was typed, and returns the words of the command with it.
fn parsed() -> Result<(Cli, String), clap::Error> {
    let mut command = args::command();
    let mut typed: Vec<OsString> = std::env::args_os().collect();
    // Alone it is the version, as many tools have it; to a command it says more.
    if typed.len() == 2 && typed[1] == "-v" {
        typed[1] = "version".into();
    }
    let mut matches = command.try_get_matches_from_mut(&typed).map_err(|mut error| {
        let words: Vec<String> =
            typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        tips::add(&mut error, &command, &words);
        error
    })?;
    let words = caller::path_of(&matches);
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, words))
}

// A panic of the bash parser costs one finding and says nothing to anybody. Any other may be the end of this process. Whoever
// collects logs in JSON can't read any other line.
fn quieten_the_parser(is_json: bool) {
    let said = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if planctl_lang::is_reading_contract() {
            return;
        }
        if is_json {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            let what = panic.payload_as_str().unwrap_or("no word");
            tracing::error!(place, "a panic: {what}");
            return;
        }
        terminal::restore_modes();
        said(panic);
    }));
}

fn started(cli: Cli) -> Answer {
    if let Some(directory) = &cli.global.directory {
        std::env::set_current_dir(directory).map_err(|error| {
            Failure::not_found(format!("could not work in {}: {error}", directory.display()))
        })?;
    }
    let runtime = planctl_server::runtime()
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not start: {error}")))?;
    let answer = runtime.block_on(commands::run(cli));
    // A call that still waits for the system, as for a file system that is away, must not keep this process here.
    runtime.shutdown_timeout(CALLS_END_WITHIN);
    answer
}

fn misused(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            ExitCode::from(Exit::Temporary.code())
        }
        Ok(()) | Err(_) if is_help && error.exit_code() == 0 => ExitCode::SUCCESS,
        Ok(()) | Err(_) => ExitCode::from(Exit::Usage.code()),
    }
}

fn colour(choice: Color) {
    match choice {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Writes logs to standard error; `PLANCTL_LOG` filters them, and a filter that can't be read is said once (row 109).
fn log(verbose: u8, command: &Command) -> WorkerGuard {
    let daemon = if let Command::Daemon(DaemonCommand::Run { log_format, .. }) = command {
        Some(*log_format)
    } else {
        None
    };
    let default = match verbose {
        // Nobody else tells what a daemon does.
        0 if daemon.is_some() => {
            "planctl=info,planctl_server=info,planctl_store=info,planctl_harness=info,sqlx=error,warn"
        }
        0 if matches!(command, Command::Dev { .. }) => "planctl=warn,planctl_server=warn,error",
        0 => "error",
        1 => "planctl=info,planctl_server=info,planctl_store=info,planctl_harness=info,warn",
        _ => "debug",
    };
    let wanted = std::env::var("PLANCTL_LOG").ok().filter(|text| !text.is_empty());
    let (filter, unread) = match wanted.as_deref().map(tracing_subscriber::EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (tracing_subscriber::EnvFilter::new(default), Some(error)),
        None => (tracing_subscriber::EnvFilter::new(default), None),
    };
    // A separate thread writes the log, so that a stopped terminal does not block the work.
    let (writer, logs) =
        NonBlockingBuilder::default().buffered_lines_limit(LOG_LINES_MAX).finish(std::io::stderr());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match daemon {
        Some(LogFormat::Json) => lines.json().init(),
        Some(LogFormat::Human) | None => lines.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    if let Some(error) = unread {
        let said = show::safe(&format!("PLANCTL_LOG can't be read and is left aside: {error}"));
        if daemon == Some(LogFormat::Json) { tracing::warn!("{said}") } else { show::say(&said) }
    }
    logs
}
