//! Tells whether a call of git names a branch, a tag or a commit that may not be there: git fails then, and prints nothing.

use super::Call;

/// Calls that look at what they name.
const LOOKS: [&str; 7] = ["diff", "log", "show", "rev-list", "shortlog", "diff-tree", "cherry"];
/// Options whose value is the next word.
const VALUED: [&str; 14] = [
    "-n",
    "-S",
    "-G",
    "-L",
    "-O",
    "--since",
    "--until",
    "--after",
    "--before",
    "--author",
    "--grep",
    "--committer",
    "--format",
    "--max-count",
];
/// The usual names of branches; any other word may be a file's.
const BRANCHES: [&str; 5] = ["main", "master", "develop", "dev", "trunk"];
const REMOTES: [&str; 3] = ["origin/", "upstream/", "refs/"];

/// Says whether a call names one.
pub(super) fn names_revision(call: &Call<'_>) -> bool {
    if !call.is_of("git") || !LOOKS.contains(&call.verb()) {
        return false;
    }
    let words = call.verb_at().map_or(&[][..], |at| &call.words()[at + 1..]);
    let end = words.iter().position(|word| *word == "--");
    let operands = words[..end.unwrap_or(words.len())].iter().enumerate().filter(|(at, word)| {
        let is_value = at.checked_sub(1).is_some_and(|before| VALUED.contains(&words[before]));
        !is_value && !word.starts_with(['-', ':'])
    });
    operands.flat_map(|(_, word)| word.split("..")).any(|word| may_be_absent(word, end.is_some()))
}

fn may_be_absent(word: &str, is_revision: bool) -> bool {
    let name = word.trim_matches('.').split(['~', '^', '@', ':']).next().unwrap_or_default();
    // The name of a commit is taken from a repository that has it.
    let is_commit = name.len() >= 7 && name.chars().all(|c| c.is_ascii_hexdigit());
    if name.is_empty() || name == "HEAD" || is_commit || name.contains('$') {
        return false;
    }
    is_revision || BRANCHES.contains(&name) || REMOTES.iter().any(|remote| name.starts_with(remote))
}
