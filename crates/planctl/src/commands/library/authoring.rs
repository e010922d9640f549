//! Entries that people write, take over and hand on (H-53, G-43).

use std::path::{Path, PathBuf};

use planctl_lang::library::{entries, entry_json, entry_markdown};
use planctl_lang::workflow::{Language, Library as Placement};
use planctl_lang::{Source, instantiate};
use planctl_server::library::{FOLDER, FoundEntry, Library, Origin};
use serde_json::{Map, Value, json};

use super::{find_entry, say_missing_next, say_troubles};
use crate::args::NewEntry;
use crate::commands::{editing, expand, new, write};
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::plan_files::{self, user_folder};
use crate::show::{self, CARE, styled};

/// How many former libraries of one name are kept.
const BACKUPS_MAX: usize = 1_000;

/// Returns an entry as the text of a plan for this file: markdown, or the entry itself where the file is JSON.
pub fn plan_of(found: &FoundEntry, file: Option<&Path>) -> Result<Source, Failure> {
    let (source, id) = (&found.source, found.entry.id.as_str());
    let broken = || Failure::new(Exit::No, format!("the entry `{}` can't be read", show::safe(id)));
    let is_json = file.is_some_and(|file| Language::of(&file.to_string_lossy()) == Some(Language::Json));
    if is_json {
        let mut entry = entry_json(source, id).ok_or_else(broken)?;
        for key in ["domains", "triggers", "trigger_threshold"] {
            entry.remove(key);
        }
        entry.insert("library".to_owned(), json!(id));
        return Ok(Source::new(format!("{id}.json"), pretty(&entry)));
    }
    let written = entry_markdown(source, id).ok_or_else(broken)?;
    for lost in &written.lost {
        show::say(&styled(CARE, &format!("warning: a plan in markdown does not say {}", show::safe(lost))));
    }
    let help =
        format!("a file that ends with .json keeps it: planctl new plans/{}.json --from {0}", show::safe(id));
    if !written.changed.is_empty() {
        let changed = show::safe(&written.changed.join(", "));
        let message =
            format!("a plan in markdown would be judged in another way: {changed} can't be written");
        return Err(Failure::new(Exit::No, message).help(help));
    }
    if !written.is_compared {
        let warning = "warning: the entry has errors, so nothing could compare the plan with it";
        show::say(&styled(CARE, warning));
    }
    if !written.lost.is_empty() {
        show::say(&format!("help: {help}"));
    }
    Ok(Source::new(format!("{id}.md"), written.text))
}

fn pretty(entry: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(entry).unwrap_or_default() + "\n"
}

/// Writes a new entry.
pub fn new(context: &Context, how: &NewEntry) -> Answer {
    let is_name = !how.id.is_empty() && how.id.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    if !is_name {
        return Err(Failure::usage(format!("`{}` can't be the name of an entry", show::safe(&how.id)))
            .help("use letters, digits, `-` and `_`"));
    }
    if how.triggers.iter().chain(&how.domains).any(|words| words.trim().is_empty()) {
        return Err(Failure::usage("a trigger or a domain is empty"));
    }
    let words = how.id.replace(['-', '_'], " ");
    let triggers = if how.triggers.is_empty() { vec![words] } else { how.triggers.clone() };
    let (source, _) = new::template(context, how.from.as_deref(), None)?;
    let place = Placement::found_by(&how.domains, &triggers, Some(how.threshold));
    let title = new::title_of(&how.id);
    let text = instantiate(&source, Some(&title), &context.actor(), Some(&place));
    let file = folder(context, how.user)?.join(format!("{}.md", how.id));
    new::put(context, &file, &text, how.force)?;
    let word = show::shell_word(&how.id);
    show::print(&format!(
        "wrote {}\n{}\n",
        show::safe(&file.display().to_string()),
        next::line(&format!("planctl library edit {word}"))
    ))?;
    Ok(Exit::Yes)
}

/// Returns the folder of the project's or the user's entries, as people name it.
pub fn folder(context: &Context, is_user: bool) -> Result<PathBuf, Failure> {
    if !is_user {
        let folder = context.workspace().join(FOLDER);
        let here = std::env::current_dir().ok();
        return Ok(here
            .and_then(|here| folder.strip_prefix(here).ok().map(Path::to_owned))
            .unwrap_or(folder));
    }
    let nowhere = || Failure::new(Exit::Configuration, "could not find your configuration: HOME is not set");
    Ok(user_folder().ok_or_else(nowhere)?.join(FOLDER))
}

/// Opens an entry in the person's editor, and verifies it.
pub async fn edit(context: &Context, id: &str) -> Answer {
    let library = plan_files::library(context);
    match library.entry(id) {
        Some(found) if found.origin == Origin::BuiltIn => {
            let word = show::shell_word(id);
            Err(Failure::new(Exit::Denied, format!("`{}` is planctl's own", show::safe(id)))
                .help("make an entry of that name of your own, which then takes precedence over it")
                .next(format!("planctl library new {word} --from {word}")))
        }
        Some(found) => editing::edit_file(context, Path::new(found.source.path())).await,
        // An entry that can't be read is what an editor is for.
        None => match broken_file(&library, id) {
            Some(file) => editing::edit_file(context, &file).await,
            None => find_entry(&library, id).map(|_| Exit::Yes),
        },
    }
}

fn broken_file(library: &Library, id: &str) -> Option<PathBuf> {
    let mut files = library.troubles.iter().map(|trouble| PathBuf::from(&trouble.path));
    files.find(|file| file.file_stem().is_some_and(|stem| stem.to_string_lossy() == id))
}

/// Takes a library of JSON over, as it is written.
pub fn import(context: &Context, file: &Path, is_replacing: bool, is_user: bool) -> Answer {
    let name = show::safe(&file.display().to_string());
    planctl_harness::read_plan(file).map_err(|error| plan_files::unreadable(file, &error))?;
    if Language::of(&file.to_string_lossy()) != Some(Language::Json) {
        return Err(Failure::usage(format!("{name} is not JSON"))
            .help("a plan in markdown becomes an entry by `domains` and `triggers` in its frontmatter"));
    }
    let source = expand::read_any(file)?;
    let (found, findings) = entries(&source);
    for finding in &findings {
        show::say(&finding.render(&source, true));
    }
    if findings.iter().any(planctl_lang::Diagnostic::is_error) || found.is_empty() {
        return Err(Failure::new(
            Exit::No,
            format!("could not import {name}: it is not a library that can be read"),
        ));
    }
    let base = file.file_name().unwrap_or_default();
    let target = folder(context, is_user)?.join(base);
    let shown = show::safe(&target.display().to_string());
    if !target.exists() {
        write::create(&target, source.text())?;
    } else if !is_replacing {
        return Err(Failure::new(Exit::Conflict, format!("{shown} is there already; nothing was written"))
            .help("--replace writes over it, and keeps the former one beside it"));
    } else {
        let old = expand::read_any(&target)?;
        if old.text() != source.text() {
            let backup = put_backup(&target, old.text())?;
            context.say(&format!("the former one is {}", show::safe(&backup.display().to_string())));
            write::replace(context, &target, old.text(), source.text())?;
        }
    }
    let ids: Vec<String> = found.iter().map(|entry| show::safe(&entry.id)).collect();
    show::print(&format!("wrote {shown}: {}\n", ids.join(", ")))?;
    let library = plan_files::library(context);
    say_troubles(&library);
    say_missing_next(context, &library, &found);
    Ok(Exit::Yes)
}

/// Keeps a former text beside its file, under a name that nothing has (G-43).
pub fn put_backup(file: &Path, text: &str) -> Result<PathBuf, Failure> {
    for number in 1..BACKUPS_MAX {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 1 { ".bak".to_owned() } else { format!(".bak{number}") });
        let backup = PathBuf::from(name);
        match write::create(&backup, text) {
            Ok(()) => return Ok(backup),
            Err(failure) if failure.exit == Exit::Conflict => {}
            Err(failure) => return Err(failure),
        }
    }
    let name = show::safe(&file.display().to_string());
    Err(Failure::new(Exit::Conflict, format!("{name} has {BACKUPS_MAX} former ones; delete some")))
}

/// Writes entries as one library of JSON.
pub fn export(context: &Context, ids: &[String], output: Option<&Path>) -> Answer {
    let library = plan_files::library(context);
    let chosen: Vec<&FoundEntry> = if ids.is_empty() {
        library.found.iter().collect()
    } else {
        ids.iter().map(|id| find_entry(&library, id)).collect::<Result<_, _>>()?
    };
    let mut plans = Map::new();
    for found in chosen {
        if let Some(entry) = entry_json(&found.source, &found.entry.id) {
            plans.insert(found.entry.id.clone(), Value::Object(entry));
        }
    }
    let count = plans.len();
    let library_json = json!({
        "_meta": { "version": "1.0", "description": "Plans of planctl" },
        "plans": plans,
    });
    let text = serde_json::to_string_pretty(&library_json).unwrap_or_default() + "\n";
    match output {
        None => show::print(&text)?,
        Some(output) => {
            write::create(output, &text)?;
            let name = show::safe(&output.display().to_string());
            show::print(&format!("wrote {name}: {}\n", show::counted(count, "plan")))?;
        }
    }
    say_troubles(&library);
    Ok(Exit::Yes)
}
