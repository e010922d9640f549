//! Shell scripts that a contract runs, and what these run in their turn.

use std::path::Path;

use super::super::deciding::FileLocation;
use super::super::following::{At, DEPTH_MAX, Follower};
use super::super::values::{TOP, Value, parent};
use super::super::{Reading, Word, read};
use crate::text::Span;

/// The most scripts that are read.
const SCRIPTS_MAX: usize = 50;

impl Follower<'_> {
    /// Takes note of code that is run or sourced. A script may run the code under test, so of what it runs only that decides with it which
    /// is in the script's own folder, or below; beside a script at the top of the workspace, all may be the code under test.
    pub(in super::super) fn run_code(&mut self, word: &Word, at: At) {
        let Some(folder) = self.script_folder.clone() else { return self.run_file(word, at) };
        if folder.is_empty() || !at.decides {
            return;
        }
        for value in self.shell.resolved(word).unwrap_or_default() {
            if let FileLocation::Inside(path) = self.place(&value.text, value.is_pattern)
                && Path::new(&path).starts_with(&folder)
            {
                if !value.is_pattern {
                    self.read_script(&path);
                }
                self.keep(path);
            }
        }
    }

    /// Protects what a shell script runs, and what its tools read.
    pub(in super::super) fn read_script(&mut self, path: &str) {
        let is_more = self.depth < DEPTH_MAX && self.scripts_read.len() < SCRIPTS_MAX;
        if !is_more || !self.scripts_read.insert(path.to_owned()) {
            return;
        }
        let Some(text) = self.look.read(path).filter(|text| is_shell_script(path, text)) else { return };
        let Reading::Read(script) = read(&text) else { return };
        let mut inner = Follower::new(self.look);
        inner.depth = self.depth + 1;
        inner.script_folder = Some(parent(path).to_owned());
        inner.scripts_read = std::mem::take(&mut self.scripts_read);
        inner.shell.folder = self.shell.folder.clone();
        let own = vec![Value::plain(format!("{TOP}/{path}"), Span::default())];
        inner.shell.variables.extend(["0", "BASH_SOURCE"].map(|name| (name.to_owned(), own.clone())));
        inner.script(&script, At { wanted: true, decides: true });
        let mut decided = inner.decided();
        self.scripts_read = inner.scripts_read;
        // Places in it are none of the contract's.
        self.deciding.kept.append(&mut decided.kept);
        self.deciding.fixed.append(&mut decided.fixed);
    }
}

fn is_shell_script(path: &str, text: &str) -> bool {
    match text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        Some(program) => program.contains("sh"),
        None => path.ends_with(".sh") || path.ends_with(".bash"),
    }
}
