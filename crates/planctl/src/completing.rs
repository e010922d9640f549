//! Completes what commands and flags don't tell: runs, asks, roles, plans, templates.
//!
//! The shell calls planctl again while a person types, so nothing here may take long, fail aloud, or begin a database:
//! without one there are no runs.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use planctl_harness::KnownAgent;
use planctl_lang::Code;

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::Global;
use crate::{plan_files, secrecy, show};
/// A person waits for so long at most.
const WITHIN: Duration = Duration::from_secs(2);

/// Completes the name of a run.
pub fn run() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching_candidates(typed, runs()))
}

/// Completes the path of a plan.
pub fn plan() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let known = matching_candidates(typed, plan_files());
        if known.is_empty() { PathCompleter::any().complete(typed) } else { known }
    })
}

/// Completes a plan's path or a run's name.
pub fn plan_or_run() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let known = matching_candidates(typed, plan_files().into_iter().chain(runs()).collect());
        if known.is_empty() { PathCompleter::any().complete(typed) } else { known }
    })
}

/// Completes the number of an open ask.
pub fn ask() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching_candidates(typed, asks()))
}

/// Completes a plan's path or the number of an open ask.
pub fn plan_or_ask() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let known = matching_candidates(typed, asks().into_iter().chain(plan_files()).collect());
        if known.is_empty() { PathCompleter::any().complete(typed) } else { known }
    })
}

/// Completes a role of planctl.toml.
pub fn role() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching_candidates(typed, roles()))
}

/// Completes an agent that planctl knows.
pub fn agent() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let known = KnownAgent::all().map(|agent| (agent.name().to_owned(), String::new()));
        matching_candidates(typed, known.collect())
    })
}

/// Completes the code of a finding.
pub fn code() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let known = Code::ALL.iter().map(|code| (code.to_string(), code.title().to_owned()));
        matching_candidates(typed, known.collect())
    })
}

/// Completes an entry of the library.
pub fn entry() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching_candidates(typed, entries()))
}

/// Completes a template of `plan new`.
pub fn template() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut known = entries();
        let others = planctl_lang::TEMPLATES.iter().map(|one| (one.name.to_owned(), String::new()));
        known.extend(
            others.filter(|(name, _)| !known.iter().any(|(entry, _)| entry == name)).collect::<Vec<_>>(),
        );
        let known = matching_candidates(typed, known);
        if known.is_empty() { PathCompleter::any().complete(typed) } else { known }
    })
}

/// A word, and what it stands for.
type Completion = (String, String);

fn matching_candidates(typed: &OsStr, known: Vec<Completion>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fit = known.into_iter().filter(|(word, _)| word.starts_with(&*typed));
    fit.map(|(word, help)| {
        CompletionCandidate::new(word).help((!help.is_empty()).then(|| show::safe(&help).into()))
    })
    .collect()
}

/// Returns a context for the flags that the line has so far: they say which database, daemon and project are meant.
fn context() -> Option<Context> {
    let text = |flag| Some(flag_typed(flag, std::env::args_os())?.to_string_lossy().into_owned());
    let path = |flag| flag_typed(flag, std::env::args_os()).map(PathBuf::from);
    Context::new(Global {
        quiet: true,
        no_input: true,
        database_url: text("--database-url"),
        server: text("--server"),
        config: path("--config"),
        workspace: path("--workspace"),
        ..Global::default()
    })
    .ok()
}

/// Returns the value that a flag has on a line: `--flag value` or `--flag=value`.
pub fn flag_typed(flag: &str, line: impl Iterator<Item = OsString>) -> Option<OsString> {
    let mut words = line;
    while let Some(word) = words.next() {
        if word == flag {
            return words.next().filter(|value| !value.is_empty());
        }
        if let Some(value) = word.to_str().and_then(|word| word.strip_prefix(flag)?.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

/// Asks the daemon, or the database where there is one.
fn query_daemon<T: Default>(question: impl AsyncFnOnce(Client) -> Result<T, Failure>) -> T {
    let answer = || {
        let context = context()?;
        let is_named = context.server().is_some()
            || context.named_database().is_some()
            || secrecy::variable("PLANCTL_DATABASE_URL").is_some();
        let is_begun = is_named || context.state_dir().ok()?.join("pg").exists();
        let runtime = is_begun.then(planctl_server::runtime)?.ok()?;
        let answer = runtime.block_on(async {
            let asked = async { question(Client::open_quietly(&context).await?).await };
            tokio::time::timeout(WITHIN, asked).await
        });
        answer.ok()?.ok()
    };
    answer().unwrap_or_default()
}

fn runs() -> Vec<Completion> {
    let mut known = query_daemon(async |client| {
        let runs = client.list(false).await?.runs;
        client.close().await;
        let word = |run: planctl_api::wire::RunSummary| {
            let help = format!("{}, {}", show::run_state(run.state), show::plan(&run.plan, &run.title));
            (run.run, help)
        };
        Ok(runs.into_iter().map(word).collect::<Vec<Completion>>())
    });
    known.push(("@last".to_owned(), "the newest run".to_owned()));
    known
}

fn asks() -> Vec<Completion> {
    query_daemon(async |client| {
        let asks = client.asks(None).await?.asks;
        client.close().await;
        Ok(asks
            .into_iter()
            .map(|ask| (ask.id.to_string(), format!("{}: {}", planctl_api::words::asker(&ask), ask.asks)))
            .collect())
    })
}

fn roles() -> Vec<Completion> {
    let known = || {
        let context = context()?;
        let roles = &context.config().ok()?.config.roles;
        Some(roles.keys().map(|role| (role.to_string(), String::new())).collect())
    };
    known().unwrap_or_default()
}

fn entries() -> Vec<Completion> {
    let found = context().map(|context| plan_files::library(&context).found).unwrap_or_default();
    found.into_iter().map(|found| (found.entry.id, found.entry.title)).collect()
}

fn plan_files() -> Vec<Completion> {
    context().map(|context| plan_files::plan_words(&context)).unwrap_or_default()
}
