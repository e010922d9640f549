//! Readers of the command lines of tools: which files each runs and reads by itself.

mod cargo;
mod go_and_node;
mod just;
mod make;
mod npm;
mod php_and_ruby;
mod python;
mod scripts;
mod settings;

use planctl_glob::is_glob;

use super::deciding::{FileLocation, TEMPORARY};
use super::following::{At, Follower};
use super::programs::{Program, Reads, is_python, is_shell, program, started_by_runner};
use super::values::{Value, expand_braces, joined, parent};
use super::{Arguments, Call, Trait, Word};

/// Headers of the C library that tests include.
const HEADERS: [&str; 16] = [
    "assert.h",
    "ctype.h",
    "errno.h",
    "limits.h",
    "math.h",
    "setjmp.h",
    "signal.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "time.h",
    "unistd.h",
    "cassert",
];

impl Follower<'_> {
    /// Takes note of the files that decide a command: the script that it runs, and those that its program reads.
    pub(super) fn tools(&mut self, words: &[Word], at: At) {
        let (name, rest) = (words[0].text(), &words[1..]);
        if name.contains('/') {
            self.run_code(&words[0], at);
        }
        let program = program(name);
        let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(&word.raw.as_str()));
        let next = rest.first().map_or("", |word| word.text());
        match program {
            shell if is_shell(shell) && !has(&["-c", "-lc", "-ec", "-n"]) => self.script_of(rest, at),
            "source" | "." => self.script_of(rest, at),
            python if is_python(python) => self.python(rest, at),
            "pytest" | "py.test" => self.pytest_run(rest, at),
            "coverage" if next == "run" => self.python(&rest[1..], at),
            "node" => self.node(rest, at),
            "ruby" | "perl" | "php" | "lua" | "Rscript" | "tsx" | "ts-node" => {
                self.interpreted(program, rest, at);
            }
            "npx" | "bunx" | "pnpx" => self.npx(rest, at),
            "npm" | "pnpm" | "yarn" | "bun" => self.npm(words, at),
            "composer" => self.composer(rest),
            "make" | "gmake" => self.make(rest, at),
            "just" => self.just(rest, at),
            "bats" | "prove" | "shellspec" | "busted" | "jest" | "vitest" | "mocha" | "ava" | "rspec"
            | "phpunit" | "pest" | "tap" | "behave" | "cucumber" | "robot" => {
                self.test_files(rest);
                if program == "rspec" {
                    self.ruby_paths(rest, &["lib", "spec"]);
                }
            }
            "rake" => self.rake(rest),
            "go" => self.go(rest),
            "cc" | "gcc" | "g++" | "c++" | "clang" | "clang++" => self.headers(rest),
            _ => {
                if let Some(inner) = started_by_runner(words) {
                    self.run(inner, at);
                }
            }
        }
        self.read_by(program, rest, at);
        self.has_built |= Call::of(words).does(Trait::Makes);
    }

    /// Protects folders of headers from new ones that go before those of the C library. Existing files are the project's own.
    fn headers(&mut self, rest: &[Word]) {
        for (_, word) in Arguments::read(rest, "I", &[]).valued {
            for value in self.shell.resolved(word).unwrap_or_default() {
                let folder = value.text.strip_prefix("-I").unwrap_or(&value.text);
                let FileLocation::Inside(folder) = self.place(folder, value.is_pattern) else { continue };
                let is_free = |name: &&&str| self.look.has(&joined(&folder, name)) != Some(true);
                let free: Vec<&str> = HEADERS.iter().filter(is_free).copied().collect();
                self.fix(joined(&folder, &format!("{{{}}}", free.join(","))));
            }
        }
    }

    fn script_of(&mut self, rest: &[Word], at: At) {
        if let Some(word) = rest.iter().find(|word| !word.raw.starts_with('-') && word.raw != "-") {
            self.run_code(word, at);
        }
    }

    /// Protects what the table says of a program.
    fn read_by(&mut self, program: &str, rest: &[Word], at: At) {
        let Some(tool) = Program::reads(program, rest) else { return };
        let outside = self.shell.folder.clone();
        for folder in values_of(rest, tool.folder) {
            self.change_folder(&folder);
        }
        // A folder is named in the place of the file in it.
        let (folders, files): (Vec<Word>, Vec<Word>) =
            values_of(rest, tool.file).into_iter().partition(|file| self.is_folder(file.text()));
        for folder in &folders {
            self.change_folder(folder);
        }
        for file in &files {
            self.run_file(file, at);
            self.within(file.text()).iter().for_each(|path| self.settings(path));
        }
        if program == "cargo" {
            self.cargo(rest, &files);
        }
        if program != "pytest" && program != "py.test" {
            self.read_in_folder(tool, !files.is_empty());
        }
        if !tool.below.is_empty() {
            self.read_below(tool, rest);
        }
        self.shell.folder = outside;
    }

    /// Protects folders that a program is given, and those around files, from new settings of its own; the folder that it works in where
    /// it is given none.
    fn read_below(&mut self, tool: &Reads, rest: &[Word]) {
        let literal = |value: Value| match value.is_pattern {
            true => value.text.split_inclusive('/').take_while(|part| !is_glob(part)).collect(),
            false => value.text,
        };
        let words = rest.iter().flat_map(|word| self.shell.resolved(word).unwrap_or_default());
        let paths = words.filter_map(|value| self.within(&literal(value)));
        let mut given: Vec<String> =
            paths.filter(|path| path.is_empty() || self.look.has(path) == Some(true)).collect();
        if given.is_empty() {
            given.extend(self.folder_here());
        }
        for path in given {
            let is_file = self.look.read(&path).is_some();
            let folder = if is_file { parent(&path) } else { &path };
            for name in tool.below {
                for path in upward(folder).map(|folder| joined(folder, name)) {
                    self.settings(&path);
                    self.fix(path);
                }
            }
            if !is_file {
                self.fix(joined(folder, &format!("**/{{{}}}", tool.below.join(","))));
            }
        }
    }

    fn read_in_folder(&mut self, tool: &Reads, names_its_own: bool) {
        let mut names =
            tool.kept.iter().chain(tool.fixed).chain(tool.above).filter(|name| !name.contains(' '));
        if names.next().is_none() {
            return;
        }
        let Some(folder) = self.folder_here() else { return };
        // Where it is given no targets, nothing is known of its tests; a configuration of it alone judges nothing.
        let is_given_targets = !tool.kept.is_empty() && tool.kept.iter().all(|name| name.contains(' '));
        if is_given_targets
            && self.deciding.paths_and_patterns().next().is_none()
            && !self.has_any(&folder, tool.fixed)
        {
            return;
        }
        for name in tool.kept.iter().filter(|name| !name.contains(' ')) {
            self.keep(joined(&folder, name));
            self.settings(&joined(&folder, name));
        }
        // Where the project has yet to be made, all of it is the work.
        let main: Vec<&&str> = tool.kept.iter().filter(|name| !name.contains(['*', ' '])).collect();
        let is_there =
            |name: &&&str| upward(&folder).any(|folder| self.look.has(&joined(folder, name)) != Some(false));
        // Settings alone are a project to a tool that has no file of its own besides them.
        let settings = if tool.fixed.is_empty() { tool.above } else { tool.fixed };
        let has_own = main.is_empty() || main.iter().any(is_there);
        if !names_its_own && !has_own && !self.has_any(&folder, settings) {
            return;
        }
        for name in tool.fixed.iter().filter(|_| !names_its_own) {
            self.fix(joined(&folder, name));
            self.settings(&joined(&folder, name));
        }
        for (name, folder) in
            tool.above.iter().flat_map(|name| upward(&folder).map(move |folder| (name, folder)))
        {
            self.fix(joined(folder, name));
            self.settings(&joined(folder, name));
        }
    }

    /// Protects folders below the next one upward that has a file from a new one of that name, which would go before it.
    fn fix_nearer(&mut self, folder: &str, name: &str) {
        let has = |path: &str| self.look.has(path) == Some(true);
        let nearer: Vec<&str> =
            upward(folder).take_while(|folder| !has(&joined(folder, name)) && !folder.is_empty()).collect();
        let is_above = nearer.last().is_some_and(|last| has(&joined(parent(last), name)));
        // A folder that is not there yet is the work, with all that it will hold.
        for folder in nearer.into_iter().filter(|folder| is_above && has(folder)).collect::<Vec<_>>() {
            self.fix(joined(folder, name));
        }
    }

    fn has_any(&self, folder: &str, names: &[&str]) -> bool {
        let names = names.iter().flat_map(|name| expand_braces(name));
        names.into_iter().any(|name| self.look.has(&joined(folder, &name)) == Some(true))
    }

    /// Protects files that a runner of tests is given, and all that is there in folders.
    fn test_files(&mut self, rest: &[Word]) {
        for word in Arguments::read(rest, "ctkgpr", &["config", "reporter", "grep"]).positional {
            for value in self.shell.resolved(word).unwrap_or_default() {
                let FileLocation::Inside(path) = self.place(&value.text, value.is_pattern) else { continue };
                if path.contains(['/', '.']) || self.look.has(&path) == Some(true) {
                    self.keep(format!("{path}/**"));
                    self.keep(path);
                }
            }
        }
    }

    pub(super) fn is_folder(&self, text: &str) -> bool {
        let is_folder = |path: &str| self.look.read(path).is_none() && self.look.has(path) == Some(true);
        self.within(text).is_some_and(|path| path.is_empty() || is_folder(&path))
    }

    /// Returns the folder of now as a path of the workspace, for patterns below it. A temporary folder is taken for a copy of the whole.
    fn folder_here(&self) -> Option<String> {
        let is_temporary = |folder: &str| format!("{folder}/").starts_with(TEMPORARY);
        let copy =
            || self.shell.folder.as_deref().filter(|folder| is_temporary(folder)).map(|_| String::new());
        self.within(".").or_else(copy)
    }

    /// Returns a path of the workspace, which is empty for its top.
    fn within(&self, text: &str) -> Option<String> {
        match self.place(text, false) {
            FileLocation::Inside(path) => Some(path),
            FileLocation::Outside if self.shell.located(text).is_some_and(|path| path.is_empty()) => {
                Some(String::new())
            }
            FileLocation::Outside | FileLocation::Unknown => None,
        }
    }
}

/// Returns a folder and all above it, to the top of the workspace.
fn upward(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| (!folder.is_empty()).then(|| parent(folder)))
}

/// Returns the values of options: `-f X`, `--file X`, `--file=X`.
pub(super) fn values_of(rest: &[Word], names: &[&str]) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        if word.raw == "--" {
            break;
        }
        if names.contains(&word.raw.as_str()) {
            found.extend(rest.get(at + 1).cloned());
        } else if let Some((name, value)) = word.text().split_once('=')
            && names.contains(&name)
            && name.starts_with("--")
        {
            found.push(Value::plain(value, word.span).to_word());
        }
    }
    found
}

// Returns the command that `uv run --frozen pytest` starts.
fn after_options(words: &[Word]) -> &[Word] {
    let options = words.iter().take_while(|word| word.raw.starts_with('-')).count();
    &words[options..]
}
