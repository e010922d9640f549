//! Settings of tools that lie in several files of the workspace.

use std::collections::BTreeSet;

use planctl_glob::is_glob;

use super::super::following::Follower;
use super::super::values::{escape_glob, expand_braces, joined, normalise, parent};

/// The most files of settings that are read for one of them.
const FILES_MAX: usize = 20;
/// Endings that may be left out of a name.
const ENDINGS: [&str; 7] = ["", ".json", ".js", ".mjs", ".cjs", ".ts", ".rb"];
/// The words before the name of another file.
const WORDS: [&str; 6] = ["extends", "extend", "from", "import", "require", "eval_gemfile"];
/// Keys whose values name code that a tool loads besides the tests.
const KEYS: [&str; 24] = [
    "setupFiles",
    "setupFilesAfterEnv",
    "globalSetup",
    "globalTeardown",
    "setupTestFrameworkScriptFile",
    "testEnvironment",
    "environment",
    "transform",
    "resolver",
    "preset",
    "runner",
    "testRunner",
    "testSequencer",
    "reporters",
    "reporter",
    "snapshotSerializers",
    "plugins",
    "rulesdir",
    "jsPlugins",
    "bootstrap",
    "require_once",
    "customRules",
    "errorBaseline",
    "ref",
];
/// The same of settings that write names without quotes.
const BARE_KEYS: [&str; 5] = ["inherit_from", "includes", "require", "auto_prepend_file", "auto_append_file"];
/// Folders of packages that somebody else wrote.
const PACKAGES: [&str; 2] = ["node_modules", "vendor"];
/// Keys of cargo's own configuration: other files of it, and programs that it starts in place of its own.
const CARGO_KEYS: [&str; 7] =
    ["include", "path", "rustc", "rustc-wrapper", "rustc-workspace-wrapper", "rustdoc", "linker"];
/// The folder of the settings, as jest and vitest write it.
const ROOTS: [&str; 2] = ["<rootDir>/", "{projectRoot}/"];

impl Follower<'_> {
    /// Protects the files that settings extend, or import, and those that these do.
    pub(super) fn settings(&mut self, names: &str) {
        self.settings_of(names, names.contains(".cargo/config"));
    }

    /// Protects what configuration of cargo includes and runs: it names files from its own folder, programs from the one above.
    pub(super) fn settings_of_cargo(&mut self, path: &str) {
        self.settings_of(path, true);
    }

    fn settings_of(&mut self, names: &str, is_of_cargo: bool) {
        let mut paths: Vec<String> = expand_braces(names).into_iter().filter(|path| !is_glob(path)).collect();
        let mut read = BTreeSet::new();
        while let Some(path) = paths.pop().filter(|_| read.len() < FILES_MAX) {
            let Some(text) = self.look.read(&path).filter(|_| read.insert(path.clone())) else { continue };
            let loads: &[&str] = match is_of_cargo {
                true => &CARGO_KEYS,
                false if path.contains(".mocharc") => &["require", "file"],
                false => &[],
            };
            let loaded = KEYS.iter().chain(loads).flat_map(|key| values_of_key(&text, key));
            let bare = BARE_KEYS.iter().flat_map(|key| bare_values_of_key(&text, key));
            for name in named_settings(&text).into_iter().chain(loaded).chain(bare).chain(required(&text)) {
                let name = ROOTS.iter().find_map(|root| name.strip_prefix(root)).unwrap_or(name);
                let above = is_of_cargo.then(|| parent(parent(&path)));
                // Those of PHP name files from the folder that it works in.
                let of_php = path.ends_with(".ini").then_some("");
                let places = [parent(&path)].into_iter().chain(above).chain(of_php);
                let places: Vec<String> = places.map(|folder| normalise(&joined(folder, name))).collect();
                let is_package = |path: &String| path.split('/').any(|part| PACKAGES.contains(&part));
                let is_there = |path: &String| !is_package(path) && self.look.read(path).is_some();
                let named = places.iter().flat_map(|place| ENDINGS.map(|ending| format!("{place}{ending}")));
                match named.into_iter().find(is_there) {
                    Some(found) => {
                        self.keep(escape_glob(&found));
                        paths.push(found);
                    }
                    // A file that may be missing decides as soon as it is there.
                    None if is_of_cargo && name.ends_with(".toml") => self.fix(escape_glob(&places[0])),
                    None => {}
                }
            }
        }
    }
}

// `"extends": ["./base.json"]`, `extend = "base.toml"`, `import rules from "./rules.js"`, `require('./rules')`
fn named_settings(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, word) in WORDS.iter().flat_map(|word| text.match_indices(word)) {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if text[..at].ends_with(is_part) && !text[..at].ends_with("...") {
            continue;
        }
        let rest = text[at + word.len()..].trim_start_matches(['"', '\'']).trim_start();
        let sign = if word.starts_with("extend") { rest.strip_prefix([':', '=']) } else { Some(rest) };
        let Some(rest) = sign.map(|rest| rest.trim_start_matches('(').trim_start()) else { continue };
        match rest.split_once('[').filter(|(before, _)| before.is_empty()) {
            Some((_, list)) => {
                let list = list.split(']').next().unwrap_or_default();
                found.extend(list.split(['"', '\'']).skip(1).step_by(2));
            }
            None => {
                found.extend(rest.strip_prefix(['"', '\'']).and_then(|rest| rest.split(['"', '\'']).next()))
            }
        }
    }
    found
}

// `setupFiles: ["./a.js"]`, `"transform": { "\\.js$": "./b.js" }`, `bootstrap="c.php"`: the texts in quotes up to the end of the value.
pub(super) fn values_of_key<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let places = text.match_indices(key).filter(|(at, _)| !text[..*at].ends_with(is_part));
    let value = |(at, _): (usize, &str)| {
        let rest = text[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
        let rest = rest.strip_prefix([':', '='])?.trim_start();
        let end = match rest.chars().next()? {
            '[' => rest.find(']'),
            '{' => rest.find('}'),
            _ => rest.find('\n'),
        };
        Some(&rest[..end.unwrap_or(rest.len())])
    };
    places.filter_map(value).flat_map(|value| value.split(['"', '\'', '`']).skip(1).step_by(2)).collect()
}

// `inherit_from: .todo.yml`, `auto_prepend_file = a.php`, `includes: [a.neon, b.neon]`, and a list in the lines below.
fn bare_values_of_key<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let mut lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim()).peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let value = line.strip_prefix(key).and_then(|rest| rest.trim_start().strip_prefix([':', '=']));
        let Some(value) = value else { continue };
        found.extend(value.trim().trim_matches(['[', ']']).split(','));
        while let Some(item) = lines.next_if(|line| line.starts_with("- ")) {
            found.push(&item[2..]);
        }
    }
    found
        .into_iter()
        .map(|name| name.trim().trim_matches(['"', '\'']))
        .filter(|name| !name.is_empty())
        .collect()
}

// `--require ./a.rb` in `.rspec`, `-r a` in a line of its own.
fn required(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter_map(|line| {
        let value = line.strip_prefix("--require").or_else(|| line.strip_prefix("-r"))?;
        value.strip_prefix([' ', '=']).map(str::trim)
    })
}
