//! Shell scripts that a contract runs, and the files that these source.

use std::path::Path;

use planctl_glob::is_glob;

use super::super::deciding::FileLocation;
use super::super::following::{At, DEPTH_MAX, Follower};
use super::super::values::{TOP, Value, parent};
use super::super::{Reading, Word, read};
use crate::text::Span;

/// The most scripts that are read.
const SCRIPTS_MAX: usize = 50;

impl Follower<'_> {
    /// Protects the files that a shell script sources from its own folder, and below: files of elsewhere may be the code under test, and
    /// so may those beside a script that lies at the top of the workspace.
    pub(in super::super) fn read_script(&mut self, path: &str) {
        let is_more = self.depth < DEPTH_MAX && self.scripts_read.len() < SCRIPTS_MAX && !is_glob(path);
        if !is_more || !self.scripts_read.insert(path.to_owned()) {
            return;
        }
        let Some(text) = self.look.read(path).filter(|text| is_shell_script(path, text)) else { return };
        let Reading::Read(script) = read(&text) else { return };
        // Nothing else of it decides: a script may run what it tests.
        let mut inner = Follower::new(self.look);
        inner.depth = self.depth + 1;
        inner.script_folder = Some(parent(path).to_owned());
        inner.scripts_read = std::mem::take(&mut self.scripts_read);
        inner.shell.folder = self.shell.folder.clone();
        let own = vec![Value::plain(format!("{TOP}/{path}"), Span::default())];
        inner.shell.variables.extend(["0", "BASH_SOURCE"].map(|name| (name.to_owned(), own.clone())));
        inner.script(&script, At { wanted: true, decides: true });
        self.scripts_read = inner.scripts_read;
        self.sourced.append(&mut inner.sourced);
    }

    /// Takes note of a file that a script sources.
    pub(super) fn source(&mut self, rest: &[Word]) {
        let Some(folder) = self.script_folder.clone().filter(|folder| !folder.is_empty()) else { return };
        for value in rest.first().and_then(|word| self.shell.resolved(word)).unwrap_or_default() {
            if let FileLocation::Inside(path) = self.place(&value.text, value.is_pattern)
                && Path::new(&path).starts_with(&folder)
            {
                self.sourced.insert(path);
            }
        }
    }
}

fn is_shell_script(path: &str, text: &str) -> bool {
    match text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        Some(program) => program.contains("sh"),
        None => path.ends_with(".sh") || path.ends_with(".bash"),
    }
}
