//! The words of intents and of capabilities' names: without fillers, as one of several, verbs by what they do.

use std::collections::BTreeSet;

use crate::intents::{singular, words_of};

/// Words that say nothing of what is wanted.
const FILLERS: [&str; 34] = [
    "a", "all", "an", "and", "any", "at", "by", "each", "every", "first", "for", "from", "i", "in", "into",
    "it", "its", "me", "my", "of", "on", "or", "our", "please", "that", "the", "their", "them", "this", "to",
    "user", "with", "which", "using",
];

/// The kind of what a verb does; intents of the same kind are comparable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Deed {
    List,
    Get,
    Search,
    Create,
    Update,
    Delete,
    Close,
    Send,
    Run,
    Merge,
}

const DEEDS: [(Deed, &[&str]); 10] = [
    (Deed::List, &["list", "show", "enumerate", "browse"]),
    (Deed::Get, &["get", "fetch", "read", "retrieve", "view", "describe", "load", "count", "check"]),
    (Deed::Search, &["search", "find", "query", "lookup"]),
    (Deed::Create, &["create", "add", "make", "open", "insert", "file", "write"]),
    (Deed::Update, &["update", "edit", "change", "set", "modify", "rename", "patch", "assign"]),
    (Deed::Delete, &["delete", "remove", "drop", "destroy", "erase"]),
    (Deed::Close, &["close", "resolve", "finish", "archive"]),
    (Deed::Send, &["send", "post", "publish", "notify", "email", "announce"]),
    (Deed::Run, &["run", "execute", "start", "trigger", "launch"]),
    (Deed::Merge, &["merge", "join", "combine"]),
];

impl Deed {
    /// Returns its word: what intents of this kind are counted under.
    pub(crate) fn as_str(self) -> &'static str {
        let own = DEEDS.iter().find(|(deed, _)| *deed == self);
        own.and_then(|(_, words)| words.first()).copied().unwrap_or("other")
    }

    /// Returns the kind of what a verb does.
    pub(crate) fn of(word: &str) -> Option<Deed> {
        DEEDS.iter().find(|(_, words)| words.contains(&word)).map(|(deed, _)| *deed)
    }

    /// Returns the verbs that do it.
    pub(super) fn verbs(self) -> &'static [&'static str] {
        DEEDS.iter().find(|(deed, _)| *deed == self).map_or(&[], |(_, words)| words)
    }

    /// Says how well a tool that does the one serves an intent that wants the other.
    pub(super) fn serves(self, wanted: Deed) -> f64 {
        let looks = |deed| matches!(deed, Deed::List | Deed::Get | Deed::Search);
        if self == wanted {
            1.0
        } else if looks(self) && looks(wanted) {
            0.85
        } else {
            0.3
        }
    }
}

/// A text as it is compared: its verb, and its other words that say something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Wording {
    pub(super) deed: Option<Deed>,
    pub(super) verb: Option<String>,
    pub(super) nouns: BTreeSet<String>,
}

impl Wording {
    /// Reads an intent. Values that stand in it (`owner/repo`, `"text"`, `#12`) are arguments and no words of what is wanted.
    pub(super) fn read_intent(text: &str) -> Wording {
        let plain = crate::signals::without_quoted(text);
        let words = plain.split_whitespace().filter(|word| !is_value(word));
        Wording::of(&words.collect::<Vec<_>>().join(" "))
    }

    /// Reads a name or a text.
    pub(super) fn of(text: &str) -> Wording {
        let mut wording = Wording::default();
        for word in words_of(text) {
            if wording.deed.is_none()
                && let Some(deed) = Deed::of(&word)
            {
                (wording.deed, wording.verb) = (Some(deed), Some(word));
            } else if !FILLERS.contains(&word.as_str()) {
                wording.nouns.insert(singular(&word));
            }
        }
        wording
    }
}

/// Says whether a word is a value: it has a slash, an at sign or a digit, which words of what is wanted have not.
fn is_value(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '#' && c != '@');
    word.contains(['/', '@', '#', '=']) || word.contains(|c: char| c.is_ascii_digit())
}

/// Words for the same thing in names of parameters.
const SAME: [(&str, &str); 7] = [
    ("per", "size"),
    ("limit", "size"),
    ("count", "size"),
    ("max", "size"),
    ("repository", "repo"),
    ("label", "tag"),
    ("status", "state"),
];

/// Returns the words of a topic or of a parameter's name, words for the same thing as one (M-25).
pub(super) fn topic_words(text: &str) -> BTreeSet<String> {
    let words = words_of(text).into_iter().map(|word| singular(&word));
    let telling = words.filter(|word| !FILLERS.contains(&word.as_str()));
    telling
        .map(|word| {
            let same = SAME.iter().find(|(from, _)| *from == word);
            same.map_or(word, |(_, to)| (*to).to_owned())
        })
        .collect()
}

/// Says how much of two sets of words is the same, from 0 to 1.
pub(super) fn likeness(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let both = one.intersection(other).count();
    if both == 0 {
        return 0.0;
    }
    2.0 * both as f64 / (one.len() + other.len()) as f64
}

/// Returns a file's name of an intent's words.
pub(super) fn slug(text: &str) -> String {
    let words = words_of(text).into_iter().filter(|word| !FILLERS.contains(&word.as_str()));
    let ascii = words.map(|word| word.chars().filter(char::is_ascii_alphanumeric).collect::<String>());
    ascii.filter(|word| !word.is_empty()).take(5).collect::<Vec<_>>().join("-")
}
