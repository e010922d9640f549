//! Near names, which a person may have meant.

use std::cell::Cell;
use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization as _;

use super::escape;

/// The known word that is nearest to what was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nearest<'a> {
    pub word: &'a str,
    /// Says that no other known word is as near, so that nothing else can have been meant.
    pub is_only: bool,
}

/// Returns the nearest of the known words to what was found, where one is near enough to be meant.
pub(crate) fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<Nearest<'a>> {
    let found = found.to_lowercase();
    let allowed = match found.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, Nearest<'a>)> = None;
    let count = found.chars().count();
    for word in known {
        // A word that is that much longer or shorter is not meant.
        if count.abs_diff(word.chars().count()) > allowed {
            continue;
        }
        let edits = distance(&found, &word.to_lowercase());
        match &mut best {
            Some((least, nearest)) if edits == *least => nearest.is_only &= nearest.word == word,
            Some((least, _)) if edits > *least => {}
            _ => best = Some((edits, Nearest { word, is_only: true })),
        }
    }
    best.filter(|(edits, _)| *edits <= allowed).map(|(_, nearest)| nearest)
}

/// Asks whether the nearest word was meant; where none is near, says something else.
pub(crate) fn ask_or_say(near: Option<&str>, otherwise: impl Into<String>) -> String {
    near.map_or_else(|| otherwise.into(), |near| format!("did you mean `{}`?", escape(near)))
}

/// Paths that exist, arranged so that near ones are found without comparing all.
pub(crate) struct Existing<'a> {
    by_form: BTreeMap<String, Vec<&'a str>>,
    by_name: BTreeMap<&'a str, Vec<&'a str>>,
    signed: Vec<(u64, &'a str)>,
    /// How many more pairs of paths are compared letter by letter.
    comparisons: Cell<u32>,
}

const CANDIDATES_MAX: usize = 20_000;
const COMPARISONS_MAX: u32 = 20_000;
const NEAR_MAX: usize = 3;
const EDITS_MAX: usize = 3;

impl<'a> Existing<'a> {
    pub(crate) fn read(paths: impl Iterator<Item = &'a str>) -> Existing<'a> {
        let mut existing = Existing {
            by_form: BTreeMap::new(),
            by_name: BTreeMap::new(),
            signed: Vec::new(),
            comparisons: Cell::new(COMPARISONS_MAX),
        };
        for path in paths.take(CANDIDATES_MAX) {
            existing.by_form.entry(comparable_path(path)).or_default().push(path);
            existing.by_name.entry(file_name(path)).or_default().push(path);
            existing.signed.push((signature(path), path));
        }
        existing
    }

    /// Returns the path that is this one in another Unicode form.
    pub(crate) fn in_other_form(&self, path: &str) -> Option<&'a str> {
        let same = self.by_form.get(&comparable_path(path))?;
        same.iter().copied().find(|other| *other != path && other.nfc().eq(path.nfc()))
    }

    /// Returns up to three near paths, the nearest first (row 47).
    pub(crate) fn near(&self, path: &str) -> Vec<&'a str> {
        let mut near: Vec<(usize, &'a str)> = Vec::new();
        let same_form = self.by_form.get(&comparable_path(path)).into_iter().flatten();
        near.extend(same_form.take(NEAR_MAX).map(|other| (0, *other)));
        let same_name = self.by_name.get(file_name(path)).into_iter().flatten();
        near.extend(same_name.take(NEAR_MAX).map(|other| (1, *other)));
        near.extend(self.few_edits(path));
        near.sort_unstable();
        let mut found: Vec<&str> = Vec::new();
        for (_, other) in near {
            if found.len() < NEAR_MAX && !found.contains(&other) {
                found.push(other);
            }
        }
        found
    }

    fn few_edits(&self, path: &str) -> impl Iterator<Item = (usize, &'a str)> {
        let own = signature(path);
        let most = EDITS_MAX.min(path.chars().count() / 3);
        // An edit changes at most two of the characters that a path has.
        let could_be = move |other: &&(u64, &'a str)| {
            (own ^ other.0).count_ones() <= 2 * 3 && path.len().abs_diff(other.1.len()) <= 4 * EDITS_MAX
        };
        let left = self.comparisons.get();
        let candidates: Vec<_> = if left == 0 {
            Vec::new()
        } else {
            self.signed.iter().filter(could_be).take(usize::try_from(left).unwrap_or(0)).collect()
        };
        self.comparisons.set(left.saturating_sub(u32::try_from(candidates.len()).unwrap_or(left)));
        candidates.into_iter().filter_map(move |(_, other)| {
            let edits = edits(path, other, most)?;
            (edits <= most).then_some((edits, *other))
        })
    }
}

// The common ends of two paths need no comparison, nor do paths whose lengths tell that it takes more edits than these.
fn edits(one: &str, other: &str, most: usize) -> Option<usize> {
    if one.chars().count().abs_diff(other.chars().count()) > most {
        return None;
    }
    let prefix: usize =
        one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (one, other) = (&one[prefix..], &other[prefix..]);
    let suffix: usize = one
        .chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    let (one, other) = (&one[..one.len() - suffix], &other[..other.len() - suffix]);
    let is_short = |text: &str| text.chars().nth(32).is_none();
    (is_short(one) && is_short(other)).then(|| distance(one, other))
}

fn comparable_path(path: &str) -> String {
    if path.is_ascii() { path.to_ascii_lowercase() } else { path.nfc().collect::<String>().to_lowercase() }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn signature(path: &str) -> u64 {
    path.chars().fold(0, |bits, character| bits | 1 << (u32::from(character) % 64))
}

// Edits between two words, a swap of neighbours counting as one; words are short, so the table is small.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    // The row before last, the last, and this one.
    let mut rows = [[0_usize; 65]; 3];
    rows[1] = std::array::from_fn(|at| at);
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let change = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = best;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_meant_alone_or_among_others() {
        let nearest =
            |found| nearest(found, ["skip", "ship", "escalate"]).map(|near| (near.word, near.is_only));
        assert_eq!(nearest("esclate"), Some(("escalate", true)));
        assert_eq!(nearest("slip"), Some(("skip", false)));
        assert_eq!(nearest("abort"), None);
    }

    #[test]
    fn near_paths_are_found_by_form_name_and_edits() {
        let paths = [
            "docs/analysis.md",
            "Docs/Other.md",
            "src/caf\u{e9}.py",
            "a/b/main.rs",
            "x/very/long/way/to/the/file/that/is/meant/here/one.txt",
        ]
        .map(str::to_owned);
        let existing = Existing::read(paths.iter().map(String::as_str));
        assert_eq!(existing.near("doc/anaylsis.md"), ["docs/analysis.md"]);
        assert_eq!(existing.near("docs/other.md"), ["Docs/Other.md"]);
        assert_eq!(existing.near("src/main.rs"), ["a/b/main.rs"]);
        assert_eq!(existing.near("x/very/long/way/to/the/file/that/is/meant/here/two.txt").len(), 1);
        assert_eq!(existing.near("x.c"), [""; 0]);
        assert_eq!(existing.in_other_form("src/cafe\u{301}.py"), Some("src/caf\u{e9}.py"));
        assert_eq!(existing.in_other_form("src/caf\u{e9}.py"), None);
    }
}
