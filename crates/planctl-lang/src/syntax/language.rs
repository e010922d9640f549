//! The languages of plans, by the names of their files.

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
}
