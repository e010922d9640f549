//! Writes plan files whole or not at all: another writer's change is never overwritten.

use std::io::ErrorKind;
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
    let refused = |why: String| Failure::new(Exit::Denied, format!("could not write {name}: {why}"));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| refused(error.to_string()))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let draft = tempfile::Builder::new().permissions(mode).tempfile_in(folder);
    let mut draft = draft.map_err(|error| refused(error.to_string()))?;
    std::io::Write::write_all(&mut draft, text.as_bytes())
        .and_then(|()| draft.as_file().sync_all())
        .map_err(|error| refused(error.to_string()))?;
    match draft.persist_noclobber(file) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::new(Exit::Conflict, format!("{name} is there already; nothing was written")))
        }
        Err(error) => Err(refused(error.error.to_string())),
    }
}
