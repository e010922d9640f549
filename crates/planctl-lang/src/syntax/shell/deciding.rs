//! The files that decide a contract: those that it runs, in any form of naming them, and those that its tools read by
//! themselves.

use std::collections::BTreeSet;
use std::path::Path;

use planctl_glob::is_glob;

use super::following::{At, Follower};
use super::values::{escape_glob, normalise};
use super::{FileUse, Reading, Script, Use, Word, read};
use crate::text::Span;
use crate::text::paths::leaves_workspace;

/// Where temporary folders and files of a contract lie.
pub(super) const TEMPORARY: &str = "/tmp/";

/// The files that decide a contract, as paths relative to the workspace and as patterns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deciding {
    /// Protected where they are there at approval. One that comes later is no change: a source, or another test.
    pub kept: BTreeSet<String>,
    /// Protected, and a new one is a change too: it would be run, or go before what is there.
    pub fixed: BTreeSet<String>,
    /// Where the contract runs a file that nobody can tell from its text.
    pub untold: Vec<Span>,
}

impl Deciding {
    pub(super) fn untold(&mut self, span: Span) {
        if !self.untold.contains(&span) {
            self.untold.push(span);
        }
    }

    /// Returns all of them.
    pub fn paths_and_patterns(&self) -> impl Iterator<Item = &str> {
        self.kept.union(&self.fixed).map(String::as_str)
    }
}

/// The part of the workspace that a contract's reader can see.
pub trait Look {
    /// Returns the text of a small file.
    fn read(&self, path: &str) -> Option<String>;

    /// Says whether something is there; nothing where nobody looks.
    fn has(&self, path: &str) -> Option<bool>;

    /// Returns the path within the workspace that an absolute one means.
    fn inside(&self, absolute: &str) -> Option<String>;

    /// Returns the files that a pattern matches.
    fn matching(&self, pattern: &str) -> Vec<String>;
}

/// Sees nothing: the contract's text alone counts.
pub struct Unseen;

impl Look for Unseen {
    fn read(&self, _: &str) -> Option<String> {
        None
    }

    fn has(&self, _: &str) -> Option<bool> {
        None
    }

    fn inside(&self, _: &str) -> Option<String> {
        None
    }

    fn matching(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Returns what decides a contract. Where it can't be read as bash, nothing is known.
pub fn deciding(command: &str, look: &dyn Look) -> Deciding {
    match read(command) {
        Reading::Read(script) => Follower::follow(&script, look).decided(),
        Reading::Refused { .. } | Reading::TooDeep => Deciding::default(),
    }
}

/// Returns the files that a script names, and what decides it as far as its text tells.
pub(crate) fn files_and_deciding(script: &Script) -> (Vec<FileUse>, Deciding) {
    let mut follower = Follower::follow(script, &Unseen);
    let deciding = follower.decided();
    (follower.found, deciding)
}

impl Follower<'_> {
    /// Returns what decides, less what the contract itself makes.
    pub(super) fn decided(&mut self) -> Deciding {
        let mut deciding = std::mem::take(&mut self.deciding);
        for file in self.found.iter().filter(|file| file.how == Use::Writes && file.is_certain) {
            deciding.fixed.remove(&escape_glob(&normalise(&file.path)));
        }
        let is_copied = |path: &str| self.copied.iter().any(|place| Path::new(path).starts_with(place));
        let (copies, fixed) = deciding.fixed.into_iter().partition(|path| !is_glob(path) && is_copied(path));
        deciding.fixed = fixed;
        deciding.kept.extend::<BTreeSet<String>>(copies);
        deciding.kept.retain(|path| !deciding.fixed.contains(path));
        deciding
    }

    /// Takes note of a file that is run.
    pub(super) fn run_file(&mut self, word: &Word, at: At) {
        let Some(values) = self.shell.resolved(word) else {
            // Input of another command is looked at there, and so is the command in `bash <(…)`.
            if at.decides && !word.raw.starts_with('(') {
                self.deciding.untold(word.span);
            }
            return;
        };
        for value in values {
            self.decides_by(&value.text, value.is_pattern, value.span, at);
        }
    }

    /// Takes note of a file, or of several, that a command is decided by.
    pub(super) fn decides_by(&mut self, text: &str, is_pattern: bool, span: Span, at: At) {
        let path = match self.place(text, is_pattern) {
            FileLocation::Inside(path) => path,
            FileLocation::Outside => return,
            FileLocation::Unknown => return self.deciding.untold(span),
        };
        // A file run after a build may be a product of it.
        let may_be_new = at.decides && (is_pattern || !self.has_built);
        if at.decides && !is_pattern {
            self.read_script(&path);
        }
        if may_be_new { self.fix(path) } else { self.keep(path) }
    }

    pub(super) fn keep(&mut self, path: String) {
        self.deciding.kept.insert(path);
    }

    pub(super) fn fix(&mut self, path: String) {
        self.deciding.fixed.insert(path);
    }

    /// Returns where something lies, as a path or a pattern.
    pub(super) fn place(&self, text: &str, is_pattern: bool) -> FileLocation {
        let Some(located) = self.shell.located(text) else { return FileLocation::Unknown };
        let inside = || self.look.inside(&located).or_else(|| self.copied_from(&located));
        let located = located.starts_with('/').then(inside).flatten().unwrap_or(located);
        if located.is_empty() || located.contains('\n') || leaves_workspace(&located).is_some() {
            return FileLocation::Outside;
        }
        if !is_pattern {
            return FileLocation::Inside(escape_glob(&located));
        }
        // The characters of the folder on the way are no pattern's.
        let folder = self.shell.folder.as_deref().unwrap_or_default();
        match located.strip_prefix(folder) {
            Some(rest) if is_glob(folder) => FileLocation::Inside(format!("{}{rest}", escape_glob(folder))),
            Some(_) | None => FileLocation::Inside(located),
        }
    }

    /// Returns the path of the workspace that a path in a temporary folder ends with: what a contract runs there it has copied.
    fn copied_from(&self, located: &str) -> Option<String> {
        let parts: Vec<&str> = located.strip_prefix(TEMPORARY)?.split('/').collect();
        let at = parts.iter().position(|part| self.look.has(part) == Some(true))?;
        Some(parts[at..].join("/"))
    }
}

/// Where a file lies.
pub(super) enum FileLocation {
    /// In the workspace.
    Inside(String),
    /// Elsewhere, where no worker's change is looked for.
    Outside,
    /// In a folder that nobody can tell.
    Unknown,
}
