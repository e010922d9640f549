//! Globs of plans, configuration and claims: parsed once, within limits, into a type that can't fail afterwards.
//!
//! Globs come from workers, from plans and from configuration that nobody trusts. A glob becomes a regular expression, and
//! both its reading and its compiling recurse into braces: unlimited, one request ended the daemon. So length
//! and depth are checked before anything else reads the text, and no other crate uses the library beneath.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

/// The most bytes of one glob.
pub const BYTES_MAX: usize = 1024;
/// The most levels of braces, one within another.
pub const LEVELS_MAX: usize = 10;
/// The most characters of a refused glob that its message shows.
const SHOWN_CHARACTERS: usize = 60;

/// A pattern over paths: `*` and `?` stay within one folder, `**` goes through all below, `[ab]` is one character of
/// these, `{a,b}` one of these texts, and `\` takes the next character as it is.
#[derive(Clone)]
pub struct Glob {
    glob: globset::Glob,
    /// Compiled when it is first asked: most globs of a run's settings are read again and again, and never asked.
    matcher: OnceLock<GlobMatcher>,
}

/// Why a text can't be used as a glob.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{glob}` is not a glob: {reason}")]
pub struct NotAGlob {
    /// The text, cut where it is long.
    pub glob: String,
    /// The defect.
    pub reason: String,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    ///
    /// When the text is longer than [`BYTES_MAX`], has more than [`LEVELS_MAX`] levels of braces, or is not a glob.
    pub fn parse(text: &str) -> Result<Glob, NotAGlob> {
        let refused = |reason: String| {
            let cut = text.chars().count() > SHOWN_CHARACTERS;
            let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
            NotAGlob { glob: if cut { format!("{shown}…") } else { shown }, reason }
        };
        if text.len() > BYTES_MAX {
            return Err(refused(format!("it has {} bytes, and {BYTES_MAX} are allowed", text.len())));
        }
        if levels(text) > LEVELS_MAX {
            return Err(refused(format!("its braces have more than {LEVELS_MAX} levels")));
        }
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| refused(error.kind().to_string()))?;
        Ok(Glob { glob, matcher: OnceLock::new() })
    }

    /// Says whether a path matches; names are bytes, so one that is not UTF-8 can match too.
    pub fn matches(&self, path: impl AsRef<Path>) -> bool {
        self.matcher.get_or_init(|| self.glob.compile_matcher()).is_match(path)
    }

    /// Returns the glob as it was written.
    pub fn text(&self) -> &str {
        self.glob.glob()
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Glob) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Glob {}

impl Hash for Glob {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.text().hash(hasher);
    }
}

impl PartialOrd for Glob {
    fn partial_cmp(&self, other: &Glob) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Glob {
    fn cmp(&self, other: &Glob) -> std::cmp::Ordering {
        self.text().cmp(other.text())
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Glob({:?})", self.text())
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl Serialize for Glob {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Glob, D::Error> {
        let text = String::deserialize(deserializer)?;
        Glob::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Says whether a path is a glob: it holds `*`, `?`, `[` or `{`.
pub fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// Writes a glob for people: of a long list in braces, the first two names.
pub fn shortened(glob: &str) -> String {
    let Some((before, rest)) = glob.split_once('{').filter(|_| glob.len() > SHOWN_CHARACTERS) else {
        return glob.to_owned();
    };
    let Some((list, after)) = rest.split_once('}') else { return glob.to_owned() };
    let first: Vec<&str> = list.split(',').take(2).collect();
    format!("{before}{{{},…}}{after}", first.join(","))
}

/// Counts the deepest level of braces; an escaped brace, or one between brackets, is counted too: that errs on the safe side.
fn levels(text: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' => level += 1,
            b'}' => level = level.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(level);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_stays_within_a_folder_and_two_do_not() {
        let matches = |glob: &str, path: &str| Glob::parse(glob).unwrap().matches(path);
        assert!(matches("src/*.rs", "src/main.rs") && !matches("src/*.rs", "src/deep/main.rs"));
        assert!(matches("src/**/*.rs", "src/deep/er/main.rs") && matches("**/*.rs", "main.rs"));
        assert!(matches("{a,b}/[xy]?", "b/yz") && !matches("{a,b}/[xy]?", "c/yz"));
        assert!(matches("a\\*", "a*") && !matches("a\\*", "ab"));
        let bytes = OsStr::from_bytes(b"tests/\xff.sh");
        assert!(Glob::parse("tests/*.sh").unwrap().matches(bytes), "a name that is not UTF-8");
    }

    #[test]
    fn hole_4_a_glob_beyond_a_limit_is_refused_before_it_is_read() {
        let nested = |levels: usize| format!("{}x{}", "{a,".repeat(levels), "}".repeat(levels));
        assert!(Glob::parse(&nested(LEVELS_MAX)).unwrap().matches("x"));
        for levels in [LEVELS_MAX + 1, 200] {
            let refused = Glob::parse(&nested(levels)).unwrap_err().to_string();
            assert!(refused.ends_with("is not a glob: its braces have more than 10 levels"), "{refused}");
        }
        let refused = Glob::parse(&nested(50_000)).unwrap_err();
        assert_eq!(refused.reason, "it has 200001 bytes, and 1024 are allowed");
        assert!(refused.glob.chars().count() <= 61, "the message does not repeat all of it");
        assert!(Glob::parse(&"x".repeat(BYTES_MAX)).is_ok());
        assert!(Glob::parse(&"x".repeat(BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_glob_is_stored_as_its_text_and_one_that_is_none_is_not_taken_up() {
        let glob = Glob::parse("tests/**").unwrap();
        assert_eq!(serde_json::to_string(&glob).unwrap(), "\"tests/**\"");
        assert_eq!(serde_json::from_str::<Glob>("\"tests/**\"").unwrap(), glob);
        assert!(serde_json::from_str::<Glob>("\"[\"").is_err());
    }

    proptest! {
        #[test]
        fn hole_4_no_text_panics(text in "[{},*?\\[\\]!\\\\/a^é-]{0,400}", path in "[a/é]{0,40}") {
            if let Ok(glob) = Glob::parse(&text) {
                glob.matches(&path);
            }
        }

        #[test]
        fn hole_4_no_text_within_the_limits_panics(
            opened in 0_usize..=LEVELS_MAX,
            inner in "[*?a,/]{0,200}",
            repeated in 1_usize..8,
        ) {
            let part = format!("{}{inner}{}", "{a,".repeat(opened), "}".repeat(opened));
            if let Ok(glob) = Glob::parse(&part.repeat(repeated)) {
                glob.matches("a/a/a");
            }
        }
    }
}
