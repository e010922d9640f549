//! `planctl config …`: the effective values, the origin of each, and the files of the configuration.

use std::path::Path;

use planctl_api::wire::{ConfigPaths, ConfigView};
use planctl_config::{
    CandidateFile, Distrusted, Entry, FileOwner, Key, Loaded, Origin, Standing, prices_known,
};

use super::Context;
use crate::args::ConfigCommand;
use crate::failure::{Answer, Exit};
use crate::show;

/// Does what was typed.
pub fn run(context: &Context, command: &ConfigCommand) -> Answer {
    match command {
        ConfigCommand::Show { origin } => show_all(context, *origin),
        ConfigCommand::Path => paths(context),
    }
}

fn show_all(context: &Context, with_origin: bool) -> Answer {
    let is_json = context.is_json()?;
    let loaded = context.load(context.workspace())?;
    if is_json {
        show::print_json(&ConfigView::of(&loaded))?;
    } else {
        show::print(&show::safe_block(&config_text(&loaded, with_origin)))?;
    }
    Ok(Exit::Yes)
}

/// Writes the configuration as planctl.toml would say it.
fn config_text(loaded: &Loaded, with_origin: bool) -> String {
    let entries = loaded.entries();
    let lines: Vec<String> = entries.iter().map(line).collect();
    let width = lines.iter().map(|line| line.chars().count()).filter(|width| *width <= 50).max().unwrap_or(0);
    let mut text = String::new();
    let mut table: &[String] = &[];
    for (entry, line) in entries.iter().zip(&lines) {
        let of = &entry.key.0[..entry.table];
        if of != table {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}[{}]\n", Key::write_path(of)));
            table = of;
        }
        let origins = origins(entry);
        if line.is_empty() {
            continue;
        }
        // A price that nobody set says what it is, whether or not that is asked.
        let is_known = entry.origins.contains(&Origin::PriceTable);
        if (with_origin || is_known) && !origins.is_empty() {
            text.push_str(&format!("{line:<width$}  # {origins}\n"));
        } else {
            text.push_str(&format!("{line}\n"));
        }
    }
    if let Some(distrusted) = &loaded.distrusted {
        text.push_str(&left_out(distrusted));
    }
    text
}

// A string, a list and a number are written alike in JSON and in TOML; only DEL is not.
fn line(entry: &Entry) -> String {
    let name = Key::write_path(&entry.key.0[entry.table..]);
    if name.is_empty() {
        return String::new();
    }
    let value = match entry.value.as_array() {
        Some(list) => {
            let items: Vec<String> = list.iter().map(ToString::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        None => entry.value.to_string(),
    };
    format!("{name} = {}", value.replace('\u{7f}', "\\u007f"))
}

fn origins(entry: &Entry) -> String {
    let said = |origin: &Origin| match origin {
        Origin::Flag(name) | Origin::Variable(name) => (*name).to_owned(),
        Origin::File { path, line } => format!("{}:{line}", path_from_here(path)),
        Origin::PriceTable => format!("planctl's own price, {}", prices_known()),
        Origin::Default => "default".to_owned(),
    };
    entry.origins.iter().map(said).collect::<Vec<_>>().join(", ")
}

fn left_out(distrusted: &Distrusted) -> String {
    let path = path_from_here(&distrusted.path);
    let mut text = format!("\n# {path} {}, so what it says here is ignored:\n", distrusted.why);
    for ignored in &distrusted.keys {
        let place = ignored.line.map(|line| format!("  {path}:{line}")).unwrap_or_default();
        text.push_str(&format!("#   {}{place}\n", ignored.key));
    }
    let dir = show::shell_word(&distrusted.dir.display().to_string());
    text.push_str(&format!("# read it, then type: planctl trust {dir}\n"));
    text
}

// As a person would type it from where they are.
fn path_from_here(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).ok();
    let near = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    near.unwrap_or(path).display().to_string()
}

fn paths(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let places = context.config_places()?;
    if is_json {
        show::print_json(&ConfigPaths::of(&places))?;
        return Ok(Exit::Yes);
    }
    let has_project = places.iter().any(|place| !matches!(place.of, FileOwner::User));
    let rows =
        places.iter().map(|place| vec![place.path.display().to_string(), trust_words(place).to_owned()]);
    show::print(&show::table(&["FILE", "WHAT IT IS"], rows.collect()))?;
    if !has_project {
        let workspace = show::safe(&context.workspace().display().to_string());
        show::print(&format!("no planctl.toml in {workspace} or above; planctl init writes one\n"))?;
    }
    Ok(Exit::Yes)
}

fn trust_words(place: &CandidateFile) -> &'static str {
    match place.of {
        FileOwner::User if place.is_there => "yours, for all projects",
        FileOwner::User => "yours, for all projects; not there",
        FileOwner::Named if place.is_there => "named, in place of the project's",
        FileOwner::Named => "named, in place of the project's; not there",
        FileOwner::Project(Standing::Trusted) => "the project's, trusted",
        FileOwner::Project(Standing::Changed) => "the project's, changed since it was trusted",
        FileOwner::Project(Standing::Unknown) => "the project's, not trusted",
    }
}
