//! Writes plan files whole or not at all: another writer's change is never overwritten.

use std::path::Path;

use planctl_lang::workflow::Language;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::show;

/// Replaces a plan's text, keeping its mode; refuses where the file is another by now, may not be written, or is a link
/// that leads out of the workspace.
pub fn replace(context: &Context, file: &Path, old: &str, new: &str) -> Result<(), Failure> {
    let name = show::safe(&file.display().to_string());
    let refused = |why: String| Failure::new(Exit::Denied, format!("could not write {name}: {why}"));
    let failed = |error: std::io::Error| Failure::of_io(format!("write {name}"), &error);
    let found = std::fs::metadata(file).map_err(failed)?;
    if found.permissions().readonly() {
        return Err(refused("it is read-only".into()).help(format!("chmod u+w {name}")));
    }
    let is_link = std::fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink());
    let target = file.canonicalize().map_err(failed)?;
    if is_link && !target.starts_with(context.workspace()) {
        let target = show::safe(&target.display().to_string());
        return Err(refused(format!("it is a link out of the workspace, to {target}"))
            .help("name the file itself, if it is to be changed"));
    }
    match planctl_harness::write_plan(file, old.as_bytes(), new.as_bytes()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let changed = format!("{name} was changed by somebody else meanwhile; nothing was written");
            Err(Failure::new(Exit::Conflict, changed).help("try again"))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Makes the file of a plan in a language, markdown where it is none; refuses a name by which it would be read as another.
pub fn create_plan(file: &Path, text: &str, language: Option<Language>) -> Result<(), Failure> {
    refuse_other_language(file, language)?;
    create(file, text)
}

/// Refuses a name by which a text would be read as one of another language, and one that no file can have.
pub fn refuse_other_language(file: &Path, language: Option<Language>) -> Result<(), Failure> {
    let path = file.display().to_string();
    let name = show::safe(&path);
    if path.ends_with('/') || file.is_dir() {
        return Err(Failure::usage(format!("{name} is a folder, and a plan is a file"))
            .help(format!("name the file: {}/NAME.md", name.trim_end_matches('/'))));
    }
    let named = Language::of(&path);
    if named == language {
        return Ok(());
    }
    let words = |language: Option<Language>| language.map_or("markdown", Language::name);
    let ending = language.map_or("md", Language::ending);
    let message = format!("the plan is {}, and {name} would be read as {}", words(language), words(named));
    Err(Failure::usage(message).help(format!(
        "name a file that ends with .{ending}; planctl graph render writes a plan in another language"
    )))
}

/// Makes a file that is not there yet, with its folders; refuses where it is.
pub fn create(file: &Path, text: &str) -> Result<(), Failure> {
    let name = show::safe(&file.display().to_string());
    match planctl_harness::create_plan(file, text.as_bytes()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(Failure::new(Exit::Conflict, format!("{name} is there already; nothing was written")))
        }
        Err(error) => Err(Failure::of_io(format!("write {name}"), &error)),
    }
}
