//! Writes plan files whole or not at all: another writer's change is never overwritten.

use std::path::Path;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::show;

/// Replaces a plan's text, keeping its mode; refuses where the file is another by now, may not be written, or is a link
/// that leads out of the workspace.
pub fn replace(context: &Context, file: &Path, old: &str, new: &str) -> Result<(), Failure> {
    let name = show::safe(&file.display().to_string());
    let refused = |why: String| Failure::new(Exit::Denied, format!("could not write {name}: {why}"));
    let found = std::fs::metadata(file).map_err(|error| refused(error.to_string()))?;
    if found.permissions().readonly() {
        return Err(refused("it is read-only".into()).help(format!("chmod u+w {name}")));
    }
    let is_link = std::fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink());
    let target = file.canonicalize().map_err(|error| refused(error.to_string()))?;
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
        Err(error) => Err(refused(error.to_string())),
    }
}

/// Makes a file that is not there yet, with its folders; refuses where it is.
pub fn create(file: &Path, text: &str) -> Result<(), Failure> {
    let name = show::safe(&file.display().to_string());
    match planctl_harness::create_plan(file, text.as_bytes()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(Failure::new(Exit::Conflict, format!("{name} is there already; nothing was written")))
        }
        Err(error) => Err(Failure::new(Exit::Denied, format!("could not write {name}: {error}"))),
    }
}
