//! The languages of plans, by the names of their files.

use super::dot::value_text;

/// The languages that graphs are written in, beside markdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// Graphviz DOT.
    Dot,
    /// JSON: a library, an entry of one, or a graph as planctl writes it.
    Json,
}

impl Language {
    /// Returns the language of a file that holds graphs, by its name; nothing for markdown.
    pub fn of(path: &str) -> Option<Language> {
        match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "dot" | "gv" => Some(Language::Dot),
            "json" | "jsonc" => Some(Language::Json),
            _ => None,
        }
    }

    /// Returns its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Language::Dot => "DOT",
            Language::Json => "JSON",
        }
    }

    /// Returns the usual ending of its files, without the dot.
    pub fn ending(self) -> &'static str {
        match self {
            Language::Dot => "dot",
            Language::Json => "json",
        }
    }

    /// Returns how a file gives an attribute a value: `max_visits=3`, `"max_visits": 3`.
    pub(crate) fn attribute(self, name: &str, value: &str) -> String {
        let is_number = value == "N" || value.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Language::Dot => format!("`{}={}`", value_text(name), value_text(value)),
            Language::Json if is_number => format!("`\"{name}\": {value}`"),
            Language::Json => format!("`\"{name}\": \"{value}\"`"),
        }
    }
}
