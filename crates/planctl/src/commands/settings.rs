//! Settings files of agents: read, changed in one place with all else as it was, shown as a difference, written whole.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;

use super::{Context, changes};
use crate::failure::{Exit, Failure};
use crate::show;

/// Returns a file's text; `None` where it is not there.
pub fn text_of(file: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::of_io(format!("read {}", file.display()), &error)),
    }
}

/// Returns the person's home directory.
pub fn home() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.ok_or_else(|| Failure::new(Exit::Configuration, "could not find your home: HOME is not set"))
}

/// The program that agents start: by its name where that leads here, so that the file fits other machines too.
pub fn own_program() -> Result<String, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Temporary, format!("could not find planctl's own program: {error}"))
    })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|folder| folder.join("planctl")).find(|file| file.is_file());
    let is_first = first.and_then(|file| file.canonicalize().ok()) == own.canonicalize().ok();
    Ok(if is_first { "planctl".to_owned() } else { own.to_string_lossy().into_owned() })
}

/// Reads JSON with comments, so that they stay when it is written again.
pub fn parsed(text: &str, file: &Path) -> Result<CstRootNode, Failure> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| {
        let place = format!("{}:{}:{}", file.display(), error.line_display(), error.column_display());
        unreadable(&place, &error.kind().to_string())
    })
}

/// Refuses a file that can't be read as what it should be.
pub fn unreadable(place: &str, why: &str) -> Failure {
    Failure::new(Exit::Configuration, format!("could not read {place}: {why}"))
        .help("planctl changes no file that it can't read; correct it, then try again")
}

/// Ends a text with a line's end.
pub fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A change of a settings file that a person asked for.
pub struct Change<'a> {
    /// The file.
    pub file: &'a Path,
    /// Its text; `None` where it is not there.
    pub before: Option<&'a str>,
    /// Its text from now on; an empty one removes the file.
    pub after: &'a str,
    /// The state of a file that needs no change: `has the hooks`.
    pub unchanged: &'a str,
    /// Show what would change; write nothing.
    pub dry_run: bool,
}

/// Shows what changes and writes it; says whether the file was written.
pub fn change(context: &Context, change: &Change<'_>) -> Result<bool, Failure> {
    let Change { file, before, after, unchanged, dry_run } = *change;
    let (shown, before) = (show::safe(&file.display().to_string()), before.unwrap_or_default());
    if before == after {
        show::print(&format!("{shown} {unchanged} already\n"))?;
        return Ok(false);
    }
    show::print(&changes::draw_lines(&planctl_server::diff::unified(before, after)))?;
    if dry_run {
        context.say("nothing was written: --dry-run");
        return Ok(false);
    }
    if after.is_empty() {
        let refused = |error| Failure::of_io(format!("remove {shown}"), &error);
        std::fs::remove_file(file).map_err(refused)?;
        show::print(&format!("removed {shown}\n"))?;
        return Ok(false);
    }
    write(file, after)?;
    show::print(&format!("wrote {shown}\n"))?;
    Ok(true)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let refused = |error: std::io::Error| Failure::of_io(format!("write {}", file.display()), &error);
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(refused)?;
    // A link leads to the file that is meant.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let mode = std::fs::metadata(&target).map(|found| found.permissions());
    let folder = target.parent().unwrap_or(folder);
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(refused)?;
    std::io::Write::write_all(&mut draft, text.as_bytes()).map_err(refused)?;
    let mode = mode.unwrap_or_else(|_| std::os::unix::fs::PermissionsExt::from_mode(0o644));
    draft.as_file().set_permissions(mode).map_err(refused)?;
    draft.persist(&target).map_err(|error| refused(error.error))?;
    Ok(())
}
