//! `planctl library`: plans that are found by what a message says. It reads files; only what runs taught needs the database.

mod authoring;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_api::wire::{LibraryEntryView, LibraryList, LibraryStats, RunState, RunView};
use planctl_lang::library::{Entry, Fate, Matcher, Question, Success, Weighed, best, entry_json, weigh};
use planctl_lang::workflow::{Language, missing_next};
use planctl_server::library::{FOLDER, FoundEntry, Library, Origin, match_view, project_file};

use super::Context;
use crate::args::{LibraryCommand, MatcherWord, Matching};
use crate::client::{Client, Handle, NoAnswer};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::plan_files;
use crate::show::{self, BAD, BOLD, CARE, FAINT, GOOD, styled};

pub use authoring::plan_of;

/// The database is waited for so long at most; without it a message is matched as the entries are written.
const WITHIN: Duration = Duration::from_secs(2);
/// The most bytes of a message that are read.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Does what was asked about the library.
pub async fn run(context: &Context, command: LibraryCommand) -> Answer {
    match command {
        LibraryCommand::Ls { domain } => list(context, domain.as_deref()),
        LibraryCommand::Show { id } => print_entry(context, &id),
        LibraryCommand::Match(matching) => print_matches(context, &matching).await,
        LibraryCommand::Stats => stats(context).await,
        LibraryCommand::New(how) => authoring::new(context, &how),
        LibraryCommand::Edit { id } => authoring::edit(context, &id).await,
        LibraryCommand::Import { file, replace, user } => authoring::import(context, &file, replace, user),
        LibraryCommand::Export { ids, output } => authoring::export(context, &ids, output.as_deref()),
    }
}

/// Returns the entry of this name.
pub fn find_entry<'l>(library: &'l Library, id: &str) -> Result<&'l FoundEntry, Failure> {
    library.entry(id).ok_or_else(|| {
        let near = planctl_lang::did_you_mean(id, library.found.iter().map(|found| found.entry.id.as_str()));
        let missing = Failure::not_found(format!("there is no entry `{}` in the library", show::safe(id)));
        match near {
            Some(near) => missing.help(format!("did you mean `{}`?", show::safe(near))),
            None => missing.next("planctl library ls"),
        }
    })
}

/// Returns the plan that a person means, as it is seen from here: a file, an entry of the library, or what a sentence finds there.
/// An entry that is not of this project becomes a file of it.
pub fn plan_for(context: &Context, given: &Path) -> Result<PathBuf, Failure> {
    let words = given.to_string_lossy();
    if let Some(file) = plan_files::lookup(context.workspace(), given)? {
        return Ok(file);
    }
    if given.extension().is_some() {
        return Err(plan_files::missing(context, given));
    }
    let library = plan_files::library(context);
    let entries: Vec<Entry> = library.found.iter().map(|found| found.entry.clone()).collect();
    let question = Question { message: &words, ..Question::default() };
    let id = match library.entry(&words) {
        Some(found) => found.entry.id.clone(),
        None => match best(&entries, &question) {
            Some(weighed) => weighed.entry.id.clone(),
            None => {
                let word = show::shell_word(&words);
                return Err(Failure::not_found(format!(
                    "no plan of the library fits {word}, and no file is called so"
                ))
                .next(format!("planctl library match --explain {word}")));
            }
        },
    };
    Ok(plan_files::path_from_here(context, &file_of_entry(context, &library, &id)?))
}

/// Returns the command that begins with an entry. One of this project that is a plan in markdown is not written once more.
fn command_to_begin(context: &Context, library: &Library, id: &str) -> String {
    let found = library.entry(id).filter(|found| found.origin == Origin::Project);
    let is_plan = |file: &&Path| Language::of(&file.to_string_lossy()).is_none();
    let own = found.and_then(FoundEntry::file).filter(is_plan);
    match own.and_then(|file| file.strip_prefix(context.workspace()).ok()) {
        Some(plan) => format!("planctl run {}", next::path_word(&plan.to_string_lossy())),
        None => format!("planctl new --from {}", show::shell_word(id)),
    }
}

/// Returns the file of an entry; one that is not of this project becomes a file of it.
pub fn file_of_entry(context: &Context, library: &Library, id: &str) -> Result<PathBuf, Failure> {
    let found = find_entry(library, id)?;
    let of_project = found.file().filter(|_| found.origin == Origin::Project);
    if let Some(file) = of_project.filter(|file| Language::of(&file.to_string_lossy()).is_none()) {
        return Ok(file.to_owned());
    }
    let file_with = |ending: &str| context.workspace().join(format!("{FOLDER}/{id}.{ending}"));
    let is_plan =
        |file: &PathBuf| file.exists() && (found.file() != Some(file.as_path()) || found.stands_alone());
    if let Some(file) = ["md", "json"].map(file_with).into_iter().find(is_plan) {
        return Ok(file);
    }
    let ending = plan_files::ending_of(found);
    let file = file_with(ending);
    super::write::create(&file, plan_of(found, Some(&file))?.text())?;
    context.say(&format!("wrote {FOLDER}/{}.{ending}, the library's plan", show::safe(id)));
    Ok(file)
}

/// Returns the id and the title of the plan that a message calls for.
pub fn suggest_plan(context: &Context, message: &str) -> Option<(String, String)> {
    let entries: Vec<Entry> =
        plan_files::library(context).found.into_iter().map(|found| found.entry).collect();
    let weighed = best(&entries, &Question { message, ..Question::default() })?;
    Some((weighed.entry.id.clone(), weighed.entry.title.clone()))
}

fn list(context: &Context, domain: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let library = plan_files::library(context);
    let fits = |found: &&FoundEntry| {
        domain.is_none_or(|domain| {
            found.entry.domains.is_empty() || found.entry.domains.iter().any(|own| own == domain)
        })
    };
    let found: Vec<&FoundEntry> = library.found.iter().filter(fits).collect();
    if is_json {
        let entries = found.iter().map(|found| found.view()).collect();
        show::print_json(&LibraryList { entries, troubles: library.troubles_view() })?;
    } else {
        let rows = found.iter().map(|found| row(context, found)).collect();
        show::print(&show::table(&["PLAN", "FROM", "STEPS", "DOMAINS", "TRIGGERS"], rows))?;
    }
    say_troubles(&library);
    Ok(if library.troubles.is_empty() { Exit::Yes } else { Exit::No })
}

fn row(context: &Context, found: &FoundEntry) -> Vec<String> {
    let entry = &found.entry;
    let from = match found.file() {
        Some(file) => {
            show::safe(&file.strip_prefix(context.workspace()).unwrap_or(file).display().to_string())
        }
        None => "planctl".to_owned(),
    };
    let hides: Vec<&str> = found.hides.iter().map(|origin| origin_words(*origin)).collect();
    let from = if hides.is_empty() { from } else { format!("{from} (not {})", hides.join(", ")) };
    let threshold = entry.written_threshold();
    let triggers = entry.triggers.iter().map(|trigger| show::safe(trigger)).collect::<Vec<_>>().join(", ");
    vec![
        show::safe(&entry.id),
        from,
        entry.steps.to_string(),
        if entry.domains.is_empty() { "all".to_owned() } else { show::safe(&entry.domains.join(", ")) },
        format!("{threshold} of: {triggers}"),
    ]
}

fn origin_words(origin: Origin) -> &'static str {
    match origin {
        Origin::Project => "the project's",
        Origin::User => "yours",
        Origin::BuiltIn => "planctl's",
    }
}

fn print_entry(context: &Context, id: &str) -> Answer {
    let is_json = context.is_json()?;
    let library = plan_files::library(context);
    let found = find_entry(&library, id)?;
    if is_json {
        let is_markdown = Language::of(found.source.path()).is_none();
        let text = is_markdown.then(|| found.source.text().to_owned());
        show::print_json(&LibraryEntryView { text, ..found.view() })?;
    } else {
        show::print(&show::plan_block(&text_of(found)))?;
    }
    say_missing_next(context, &library, [&found.entry]);
    Ok(Exit::Yes)
}

/// Returns what is written of an entry: its file, or its part of a library of JSON.
fn text_of(found: &FoundEntry) -> String {
    if Language::of(found.source.path()).is_none() {
        return found.source.text().to_owned();
    }
    let json = entry_json(&found.source, &found.entry.id).unwrap_or_default();
    serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"
}

async fn print_matches(context: &Context, matching: &Matching) -> Answer {
    let is_json = context.is_json()?;
    let message = match matching.message.as_str() {
        "-" => read_piped()?,
        message => message.to_owned(),
    };
    let library = plan_files::library(context);
    let allowed =
        matching.role.as_deref().map(|role| entries_allowed_to(context, &library, role)).transpose()?;
    let entries = entries_with_learning(context, &library).await?;
    let question = Question {
        message: &message,
        domain: matching.domain.as_deref(),
        allowed: allowed.as_deref(),
        matcher: match matching.matcher {
            MatcherWord::Words => Matcher::Words,
            MatcherWord::Substring => Matcher::Substring,
        },
    };
    let weighed = weigh(&entries, &question);
    let taken = weighed.iter().find(|weighed| weighed.fate == Fate::Taken).map(|weighed| weighed.entry);
    if is_json {
        show::print_json(&match_view(&weighed))?;
    } else if matching.explain {
        show::print(&explain_weighed(weighed))?;
    } else if let Some(entry) = taken {
        let title = styled(FAINT, &show::safe(&entry.title));
        show::print(&format!("{}  {title}\n", show::safe(&entry.id)))?;
    }
    say_troubles(&library);
    match taken {
        _ if is_json => {}
        Some(entry) => {
            show::say(&next::line(&command_to_begin(context, &library, &entry.id)));
        }
        // Programs read nothing on standard output as no match (H-08).
        None if matching.explain => {}
        None => show::say("no plan of the library matches; `--explain` says why"),
    }
    Ok(Exit::Yes)
}

fn read_piped() -> Result<String, Failure> {
    let mut message = String::new();
    std::io::stdin()
        .take(MESSAGE_BYTES_MAX)
        .read_to_string(&mut message)
        .map_err(|error| Failure::usage(format!("could not read the message: {error}")))?;
    Ok(message)
}

/// Returns the entries that a role may take (G-39): by its list of plans, which names paths, files or names.
fn entries_allowed_to(context: &Context, library: &Library, role: &str) -> Result<Vec<String>, Failure> {
    let config = &context.config()?.config;
    let Some((_, settings)) = config.roles.iter().find(|(name, _)| name.as_str() == role) else {
        return Err(Failure::not_found(format!("there is no role `{}` in planctl.toml", show::safe(role)))
            .next("planctl roles ls"));
    };
    let takes = |found: &&FoundEntry| {
        let path = found.file().map_or_else(|| found.entry.id.clone().into(), Path::to_owned);
        let path = path.strip_prefix(context.workspace()).unwrap_or(&path);
        let list = settings.plans.as_deref();
        planctl_config::takes_plan(list, &found.entry.id)
            || planctl_config::takes_plan(list, &path.to_string_lossy())
    };
    Ok(library.found.iter().filter(takes).map(|found| found.entry.id.clone()).collect())
}

/// Returns the entries with what their runs taught, where the configuration lets them learn and there is a database.
async fn entries_with_learning(context: &Context, library: &Library) -> Result<Vec<Entry>, Failure> {
    let mut entries: Vec<Entry> = library.found.iter().map(|found| found.entry.clone()).collect();
    if !context.config()?.config.library.learn {
        return Ok(entries);
    }
    match Client::ask_if_there_is_one(context, WITHIN, async |client| successes(&client).await).await {
        Ok(Some(successes)) => {
            for entry in &mut entries {
                entry.success = successes.get(&entry.id).copied();
            }
        }
        Ok(None) => {}
        Err(NoAnswer) => {
            context.say(&styled(
                CARE,
                "warning: the database does not answer: thresholds are as they are written",
            ));
        }
    }
    Ok(entries)
}

async fn successes(client: &Client) -> Result<BTreeMap<String, Success>, Failure> {
    let runs = client.library_runs().await?.entries;
    Ok(runs.into_iter().map(|one| (one.id, Success { ended: one.ended, done: one.done })).collect())
}

async fn stats(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let learns = context.config()?.config.library.learn;
    let library = plan_files::library(context);
    let successes = successes(&Client::open(context).await?).await?;
    let view = library.stats(&successes, learns);
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&draw_stats(&view))?;
    }
    say_troubles(&library);
    Ok(Exit::Yes)
}

/// Says which run follows one that is done, and waits for approval, or why none does.
pub async fn follow_up(client: &Client, handle: Handle, view: &RunView) -> Result<Option<String>, Failure> {
    if view.state != RunState::Done {
        return Ok(None);
    }
    let follow_up = client.follow_up(handle).await?;
    let line = match (follow_up.run, follow_up.trouble) {
        (Some(run), _) => format!("{} follows: planctl approvals", show::safe(&run)),
        (None, Some(trouble)) => {
            styled(CARE, &format!("warning: no plan follows: could not {}", show::safe(&trouble)))
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(line))
}

fn draw_stats(view: &LibraryStats) -> String {
    let rows = view.entries.iter().map(|entry| {
        let rate = match entry.ended {
            0 => "-".to_owned(),
            ended => format!("{} %", u64::from(entry.done) * 100 / u64::from(ended)),
        };
        vec![
            show::safe(&entry.id),
            entry.ended.to_string(),
            entry.done.to_string(),
            rate,
            threshold_words(entry.written_threshold, entry.threshold),
        ]
    });
    let table = show::table(&["PLAN", "ENDED", "DONE", "RATE", "THRESHOLD"], rows.collect());
    if view.learns {
        table
    } else {
        table + "thresholds don't follow: `learn = false` in [library] of planctl.toml\n"
    }
}

fn threshold_words(written: u32, threshold: u32) -> String {
    if written == threshold {
        threshold.to_string()
    } else {
        format!("{threshold} (written {written}; most of its newest runs failed)")
    }
}

/// Says what each entry weighs: the one that is taken first, then the nearest.
fn explain_weighed(mut weighed: Vec<Weighed<'_>>) -> String {
    weighed.sort_by_key(|one| (one.fate != Fate::Taken, std::cmp::Reverse(one.score())));
    let mut text = String::new();
    for one in weighed {
        let mark = if one.fate == Fate::Taken { styled(GOOD, "✔") } else { styled(BAD, "✘") };
        let hits: Vec<String> = one.hits.iter().map(|hit| hit_words(hit.trigger, &hit.found)).collect();
        let hits = if hits.is_empty() { "no trigger".to_owned() } else { hits.join(", ") };
        let domain = if one.is_of_domain { " · its domain (+1)" } else { "" };
        let threshold = threshold_words(one.entry.written_threshold(), one.entry.threshold());
        text.push_str(&format!(
            "{mark} {}  score {}: {hits}{domain} · threshold {threshold}\n    {}\n",
            styled(BOLD, &show::safe(&one.entry.id)),
            one.score(),
            fate_words(&one)
        ));
    }
    text
}

fn hit_words(trigger: &str, found: &str) -> String {
    if trigger.to_lowercase() == found {
        format!("\"{}\"", show::safe(trigger))
    } else {
        format!("\"{}\" in \"{}\"", show::safe(trigger), show::safe(found))
    }
}

fn fate_words(weighed: &Weighed<'_>) -> String {
    let list = |list: &[String]| show::safe(&list.join(", "));
    match weighed.fate {
        Fate::Taken => "taken".to_owned(),
        Fate::NoMessage => "the message is empty".to_owned(),
        Fate::NotOfRole => "the role may not take it".to_owned(),
        Fate::OtherDomain => format!("it is for {}", list(&weighed.entry.domains)),
        Fate::TooFewHits => {
            format!("{} of its triggers, and {} are needed", weighed.hits.len(), weighed.entry.threshold())
        }
        Fate::NoScore => "nothing speaks for it".to_owned(),
        Fate::Outscored { by } => format!("{} scores higher", show::safe(by)),
        Fate::Later { than } => format!("{} scores the same and stands before it", show::safe(than)),
    }
}

/// Says which of these entries are to be followed by a plan that is not there.
fn say_missing_next<'e>(context: &Context, library: &Library, entries: impl IntoIterator<Item = &'e Entry>) {
    let workspace = context.workspace();
    for entry in entries {
        let Some(next) = &entry.then else { continue };
        if project_file(workspace, next).is_some() || library.entry(next).is_some() {
            continue;
        }
        let finding = missing_next(next, &library.names(workspace));
        let (id, code) = (show::safe(&entry.id), finding.code.as_str());
        show::say(&styled(CARE, &format!("warning[{code}]: {id}: {}", finding.message)));
        if let Some(help) = &finding.help {
            show::say(&format!("help: {help}"));
        }
    }
}

fn say_troubles(library: &Library) {
    for trouble in &library.troubles {
        let at = trouble.at.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
        let text = format!("{}{at}: {}", show::safe(&trouble.path), show::safe(&trouble.message));
        show::say(&styled(CARE, &format!("warning: {text}")));
    }
}
