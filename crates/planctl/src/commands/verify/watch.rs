//! `plan verify --watch`: verifies again whenever something changes that the verdict depends on.

mod files;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use notify::{EventKind, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, NoCache, new_debouncer_opt};
use tokio::sync::mpsc;

use self::files::{Folders, Interest};
use super::{Looked, report, verify_all};
use crate::args::VerifyArgs;
use crate::client;
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::show;
use crate::stop::Stop;
use crate::terminal;

/// Changes within this time after one belong to it: editors write a file in several steps.
const TOGETHER: Duration = Duration::from_millis(100);

/// The formats in which answers can follow one another.
const FORMATS: [Format; 3] = [Format::Human, Format::Plain, Format::Jsonl];

type Debouncer = notify_debouncer_full::Debouncer<notify::RecommendedWatcher, NoCache>;

/// Verifies, and again at every change, until a signal ends it.
pub async fn watch(context: &Context, args: &VerifyArgs) -> Answer {
    let format = context.format(&FORMATS)?;
    let mut stop = Stop::listen()?;
    let (sender, mut changes) = mpsc::unbounded_channel();
    // Where nobody receives any more, we are about to end.
    let forward = move |found: DebounceEventResult| sender.send(found).unwrap_or(());
    let debouncer = new_debouncer_opt(TOGETHER, None, forward, NoCache::new(), notify::Config::default());
    let mut debouncer: Debouncer = debouncer.map_err(|error| watch_failure(&error))?;
    let mut folders = Folders::default();
    // A configuration file stays of interest while it can't be used.
    let mut configuration = BTreeSet::new();
    let mut changed = None;
    loop {
        let round = tokio::select! {
            exit = stop.wait_for_signal() => return Ok(exit),
            round = verify_until_stable(context, args, &mut configuration, (&mut debouncer, &mut folders)) => round?,
        };
        clear(format);
        context.say(&stamp(changed.as_deref()));
        show_round(context, &round, format)?;
        show::flush()?;
        let plans =
            if args.files.len() == 1 { "1 plan".to_owned() } else { format!("{} plans", args.files.len()) };
        context.say(&show::styled(show::FAINT, &format!("watching {plans}; Ctrl-C ends")));
        changed = tokio::select! {
            exit = stop.wait_for_signal() => return Ok(exit),
            changed = next_change(&mut changes, &round.interest) => changed?,
        };
    }
}

/// The findings of one verification, and the files that could change them.
struct Round {
    looked: Result<Vec<Looked>, Failure>,
    interest: Interest,
}

/// Verifies until everything that the verdict depends on was watched before it was looked at.
async fn verify_until_stable(
    context: &Context,
    args: &VerifyArgs,
    configuration: &mut BTreeSet<PathBuf>,
    (debouncer, folders): (&mut Debouncer, &mut Folders),
) -> Result<Round, Failure> {
    const ROUNDS_MAX: u32 = 5;
    let mut rounds = 0;
    loop {
        // The configuration is read anew each time.
        let fresh = context.in_workspace(context.workspace())?;
        let looked = verify_all(&fresh, &args.files, &args.levels.0, None).await;
        let mut interest = Interest::new(context.workspace(), &args.files);
        configuration.extend(fresh.config_files());
        configuration.iter().for_each(|file| interest.add(file));
        if let Ok(looked) = &looked {
            looked
                .iter()
                .filter_map(|one| one.found.as_ref().ok())
                .for_each(|checked| interest.add_plan(checked));
        }
        let is_new = folders.follow(&interest, debouncer).map_err(|error| watch_failure(&error))?;
        rounds += 1;
        if !is_new || rounds == ROUNDS_MAX {
            return Ok(Round { looked, interest });
        }
    }
}

fn show_round(context: &Context, round: &Round, format: Format) -> Result<(), Failure> {
    match &round.looked {
        Ok(looked) => report::print(context, looked, format),
        // A configuration that can't be used is mended while we wait.
        Err(failure) => {
            next::say_failure(failure);
            Ok(())
        }
    }
}

/// Waits for a change that matters; returns what changed.
async fn next_change(
    changes: &mut mpsc::UnboundedReceiver<DebounceEventResult>,
    interest: &Interest,
) -> Result<Option<PathBuf>, Failure> {
    while let Some(found) = changes.recv().await {
        match found {
            Ok(events) => {
                if let Some(path) = events.iter().find_map(|event| relevant_path(event, interest)) {
                    return Ok(Some(path));
                }
            }
            // The kernel may have dropped events, so anything may have changed.
            Err(_) => return Ok(None),
        }
    }
    Err(Failure::new(Exit::Temporary, "could not go on watching: the watcher has ended"))
}

fn relevant_path(event: &DebouncedEvent, interest: &Interest) -> Option<PathBuf> {
    match event.kind {
        // Reading a plan is no change; we do it ourselves.
        EventKind::Access(_) => None,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => {
            if event.need_rescan() {
                return Some(PathBuf::new());
            }
            event.paths.iter().find(|path| interest.concerns(path)).cloned()
        }
    }
}

fn stamp(changed: Option<&std::path::Path>) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(client::now_unix_micros()) * 1000);
    let at = at.map_or_else(
        |_| String::new(),
        |at| format!("{:02}:{:02}:{:02} ", at.hour(), at.minute(), at.second()),
    );
    let what = match changed.and_then(std::path::Path::file_name) {
        Some(name) => format!("{} changed, verified again", show::safe(&name.to_string_lossy())),
        None => "verified".to_owned(),
    };
    show::styled(show::FAINT, &format!("{at}{what}"))
}

/// Clears the screen, where there is one; earlier output is about another text.
fn clear(format: Format) {
    if format == Format::Human && std::io::stdout().is_terminal() && !terminal::is_dumb() {
        std::io::stdout().write_all(b"\x1b[H\x1b[2J\x1b[3J").unwrap_or(());
    }
}

fn watch_failure(error: &notify::Error) -> Failure {
    let failure = Failure::new(Exit::Temporary, format!("could not watch for changes: {error}"));
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            failure.help("raise the limit: sysctl fs.inotify.max_user_watches=524288")
        }
        notify::ErrorKind::Generic(_)
        | notify::ErrorKind::Io(_)
        | notify::ErrorKind::PathNotFound
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_) => failure,
    }
}

/// Returns how a folder is watched.
fn mode(is_deep: bool) -> RecursiveMode {
    if is_deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive }
}
