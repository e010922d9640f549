//! Where each value comes from: kept beside the values, layer for layer.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

/// The name of a configuration file, in a project and in the user's configuration directory.
pub const FILE_NAME: &str = "planctl.toml";

/// A key of planctl.toml, word for word: `contracts`, `env`, `CI`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(pub Vec<String>);

impl Key {
    /// Makes a key of its words.
    pub fn of(words: &[&str]) -> Key {
        Key(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// Returns the key's own words as a file writes them, dotted and quoted where they have to be.
    pub fn write_path(words: &[String]) -> String {
        let bare = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        let quoted = |word: &str| serde_json::Value::from(word).to_string();
        let words = words.iter().map(|word| if bare(word) { word.clone() } else { quoted(word) });
        words.collect::<Vec<_>>().join(".")
    }

    fn begins_with(&self, prefix: &[String]) -> bool {
        self.0.starts_with(prefix)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Key::write_path(&self.0))
    }
}

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// A line of a file.
    File {
        /// Which.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The table of prices that planctl knows by itself.
    PriceTable,
    /// Nobody said anything.
    Default,
}

/// A key that a file has and that does not count, since nobody trusted the file as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ignored {
    /// The key, for people.
    pub key: String,
    /// Where it stands; `None` where the file says it in several places.
    pub line: Option<usize>,
}

/// Where each value of a layer comes from. Tables that are merged name by name (variables, levels, effects) have an origin
/// for each name; every other key has one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origins(BTreeMap<Key, Origin>);

impl Origins {
    /// Makes the origins of a source with one key.
    pub(crate) fn single(words: &[&str], origin: Origin) -> Origins {
        Origins(BTreeMap::from([(Key::of(words), origin)]))
    }

    /// Reads where the keys of a file stand.
    pub(crate) fn read(path: &Path, text: &str, root: &DeTable<'_>) -> Origins {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        let mut places = Places { path, ends, found: BTreeMap::new() };
        places.table(&mut Vec::new(), root);
        Origins(places.found)
    }

    /// Returns where a value comes from.
    pub fn get(&self, key: &Key) -> Option<&Origin> {
        self.0.get(key)
    }

    /// Takes out a key with all beneath it, and says that it was there and does not count.
    pub(crate) fn remove_ignored(&mut self, words: &[&str], shown: String) -> Ignored {
        let prefix = Key::of(words).0;
        let taken: Vec<Key> = self.0.keys().filter(|key| key.begins_with(&prefix)).cloned().collect();
        let origins = taken.iter().filter_map(|key| self.0.remove(key));
        let lines = origins.filter_map(|origin| match origin {
            Origin::File { line, .. } => Some(line),
            Origin::Flag(_) | Origin::Variable(_) | Origin::PriceTable | Origin::Default => None,
        });
        Ignored { key: shown, line: lines.min() }
    }

    /// Takes out one key alone.
    pub(crate) fn remove(&mut self, words: &[&str]) -> Option<Origin> {
        self.0.remove(&Key::of(words))
    }

    /// Lets these origins go before weaker ones, as [`super::layer::Layer::layered_over`] does with the values.
    pub(crate) fn layered_over(mut self, weaker: Origins) -> Origins {
        let added: Vec<(Key, Origin)> = weaker.0.into_iter().filter(|(key, _)| !self.replaces(key)).collect();
        self.0.extend(added);
        self
    }

    fn replaces(&self, key: &Key) -> bool {
        let words: Vec<&str> = key.0.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["roles", role, "env", ..] => self.contains_key(&["roles", role, "env"]),
            ["roles", role, "permissions" | "allow"] => {
                self.contains_key(&["roles", role, "permissions"])
                    || self.contains_key(&["roles", role, "allow"])
            }
            ["roles", role, "effects", _, name] => ["allow", "deny"]
                .iter()
                .any(|list| self.0.contains_key(&Key::of(&["roles", role, "effects", list, name]))),
            ["prices", model, ..] => self.contains_key(&["prices", model]),
            ["approval", policy, ..] => self.contains_key(&["approval", policy]),
            ["asks", rule, ..] => self.contains_key(&["asks", rule]),
            ["servers", server, ..] => self.contains_key(&["servers", server]),
            _ => self.0.contains_key(key),
        }
    }

    fn contains_key(&self, words: &[&str]) -> bool {
        let prefix = Key::of(words);
        self.0.range(&prefix..).next().is_some_and(|(key, _)| key.begins_with(&prefix.0))
    }
}

struct Places<'a> {
    path: &'a Path,
    ends: Vec<usize>,
    found: BTreeMap<Key, Origin>,
}

impl Places<'_> {
    fn table(&mut self, at: &mut Vec<String>, table: &DeTable<'_>) {
        for (key, value) in table {
            at.push(key.get_ref().to_string());
            let inner = value.get_ref().as_table().filter(|inner| !inner.is_empty());
            let entries = value.get_ref().as_array().filter(|_| is_merged_by_name(at));
            if let Some(inner) = inner {
                self.table(at, inner);
            } else if let Some(entries) = entries {
                for entry in entries {
                    self.name(at, entry.get_ref().as_str().unwrap_or_default(), entry.span().start);
                }
            } else {
                self.add(at.clone(), key.span().start);
            }
            at.pop();
        }
    }

    fn name(&mut self, list: &[String], name: &str, start: usize) {
        // In which of the lists a code stands is its value; the code is the key.
        let key = if list.first().is_some_and(|word| word == "verify") {
            let is_all = name.eq_ignore_ascii_case("warnings");
            let name = if is_all { name.to_ascii_lowercase() } else { name.to_ascii_uppercase() };
            vec![list[0].clone(), name]
        } else {
            [list, &[name.to_owned()]].concat()
        };
        self.add(key, start);
    }

    fn add(&mut self, key: Vec<String>, start: usize) {
        let line = self.ends.partition_point(|end| *end < start) + 1;
        self.found.insert(Key(key), Origin::File { path: self.path.to_owned(), line });
    }
}

fn is_merged_by_name(key: &[String]) -> bool {
    let words: Vec<&str> = key.iter().map(String::as_str).collect();
    matches!(
        words.as_slice(),
        ["verify", "allow" | "warn" | "deny"] | ["roles", _, "effects", "allow" | "deny"]
    )
}
