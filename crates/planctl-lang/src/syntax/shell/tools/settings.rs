//! Settings of tools that lie in several files of the workspace.

use std::collections::BTreeSet;

use planctl_glob::is_glob;

use super::super::following::Follower;
use super::super::values::{escape_glob, expand_braces, joined, normalise, parent};

/// The most files of settings that are read for one of them.
const FILES_MAX: usize = 20;
/// Endings that may be left out of a name.
const ENDINGS: [&str; 6] = ["", ".json", ".js", ".mjs", ".cjs", ".ts"];
/// The words before the name of another file.
const WORDS: [&str; 5] = ["extends", "extend", "from", "import", "require"];

impl Follower<'_> {
    /// Protects the files that settings extend, or import, and those that these do.
    pub(super) fn settings(&mut self, names: &str) {
        let mut paths: Vec<String> = expand_braces(names).into_iter().filter(|path| !is_glob(path)).collect();
        let mut read = BTreeSet::new();
        while let Some(path) = paths.pop().filter(|_| read.len() < FILES_MAX) {
            let Some(text) = self.look.read(&path).filter(|_| read.insert(path.clone())) else { continue };
            for name in named_settings(&text) {
                let place = normalise(&joined(parent(&path), name));
                let is_there = |path: &String| self.look.read(path).is_some();
                let found = ENDINGS.iter().map(|ending| format!("{place}{ending}")).find(is_there);
                found.iter().for_each(|path| self.keep(escape_glob(path)));
                paths.extend(found);
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
