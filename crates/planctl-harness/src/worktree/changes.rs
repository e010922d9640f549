//! The differences between a workspace and its newest commit, for people: files, counts of lines, and the lines themselves; and
//! which of its files git tracks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::call::Git;
use super::{PATHS_AT_ONCE, WorktreeError};
use crate::blocking::blocking_in_place;
use crate::git::index::tracked_files;
use crate::git::{git_head, git_top_level};
use crate::protect::{bytes_of_name, name_of};
use crate::spawn::Spawner;

/// How deep repositories may lie within one another for their files to be read.
const REPOSITORIES_DEEP_MAX: usize = 16;
/// How many of them one call of git names.
const REPOSITORIES_AT_ONCE: usize = 256;

/// The differences between a workspace and its newest commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes {
    /// The commit; or the recorded tree with which it was compared.
    pub commit: String,
    /// The files that differ, by path relative to the workspace.
    pub files: BTreeMap<String, Change>,
    /// The lines that differ, as a unified diff, from its beginning.
    pub diff: String,
    /// Says that the diff was longer than what is given of it.
    pub is_cut: bool,
}

/// The way in which one file differs from the newest commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// How many lines were added and removed; nothing of a file that is no text.
    pub lines: Option<(u64, u64)>,
}

/// The kinds of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// The commit does not have the file.
    Added,
    /// Both have it.
    Changed,
    /// Only the commit has it.
    Deleted,
}

/// Compares a folder with the newest commit of its repository, but for one file; nothing where there is no commit. Every file
/// is read, the index is not believed, and files that git ignores don't count. At most `bytes` of the diff are given.
///
/// # Errors
///
/// Those of git.
pub async fn changes_since_head(
    spawner: &Spawner,
    folder: &Path,
    but: &str,
    bytes: usize,
) -> Result<Option<Changes>, WorktreeError> {
    let found = blocking_in_place(|| (git_top_level(folder), git_head(folder)));
    let (Some(_), Some(commit)) = found else { return Ok(None) };
    let mut git = Git::open(spawner, folder)?;
    git.with_index_of("HEAD").await?;
    let within = || [OsString::from("--"), ".".into(), format!(":(exclude,literal){but}").into()];
    enter_repositories(&git, &within()[1..]).await?;
    // Untracked files become known without their content being stored.
    let known = ["add", "--intent-to-add"].map(OsString::from);
    git.call_checked(known.into_iter().chain(within())).await?;
    changes_between(&git, &commit, "--relative", but, bytes).await.map(Some)
}

/// Has the index enter the repositories below a folder that it knows nothing of, so that `git add` takes their files as it
/// takes others: of a repository within another one git notes a commit and nothing else.
///
/// # Errors
///
/// Those of git.
pub(crate) async fn enter_repositories(git: &Git<'_>, within: &[OsString]) -> Result<(), WorktreeError> {
    for _ in 0..REPOSITORIES_DEEP_MAX {
        let words = ["ls-files", "--others", "--exclude-standard", "-z", "--"].map(OsString::from);
        let listed = git.call_checked(words.iter().chain(within)).await?;
        let found: Vec<&[u8]> = listed.records().filter(|path| path.ends_with(b"/")).collect();
        if found.is_empty() {
            return Ok(());
        }
        let empty = git.call_checked(["hash-object", "-t", "blob", "/dev/null"]).await?.text();
        for some in found.chunks(REPOSITORIES_AT_ONCE) {
            let words = ["update-index", "--add"].map(OsString::from);
            // Where the index has a file of a folder, git goes into it. `git add` finds no such file, and forgets the entry.
            let entries = some.iter().flat_map(|path| {
                let entry = [format!("100644,{empty},").as_bytes(), path, b".planctl-entered"].concat();
                [OsString::from("--cacheinfo"), OsString::from_vec(entry)]
            });
            git.call_checked(words.into_iter().chain(entries)).await?;
        }
    }
    Ok(())
}

/// Compares a commit or a tree with the workspace, or with another tree that `with` names, but for one file.
pub(crate) async fn changes_between(
    git: &Git<'_>,
    since: &str,
    with: &str,
    but: &str,
    bytes: usize,
) -> Result<Changes, WorktreeError> {
    let within = || [OsString::from("--"), ".".into(), format!(":(exclude,literal){but}").into()];
    let compare = ["diff", "--no-ext-diff", "--no-textconv", "--no-renames"];
    let sides = [since, with];
    let asked = |form: &[&str]| {
        let words = compare.iter().chain(form).chain(&sides).map(OsString::from);
        words.chain(within()).collect::<Vec<OsString>>()
    };
    let listed = git.call_checked(asked(&["--raw", "--numstat", "-z"])).await?;
    let files = files_of(listed.records());
    let mut printed = git.call_checked(asked(&["--no-color"])).await?.printed;
    let is_cut = printed.len() > bytes;
    if is_cut {
        // A line is told whole or not at all.
        let end = printed[..bytes].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        printed.truncate(end);
    }
    let diff = String::from_utf8_lossy(&printed).into_owned();
    Ok(Changes { commit: since.to_owned(), files, diff, is_cut })
}

/// Reads the records of `--raw --numstat -z`: first a line of modes and a path for each file, then the counts of each.
fn files_of<'a>(records: impl Iterator<Item = &'a [u8]>) -> BTreeMap<String, Change> {
    let mut files = BTreeMap::new();
    let mut records = records.map(String::from_utf8_lossy);
    while let Some(record) = records.next() {
        if let Some(modes) = record.strip_prefix(':') {
            let kind = match modes.rsplit(' ').next().and_then(|status| status.chars().next()) {
                Some('A') => ChangeKind::Added,
                Some('D') => ChangeKind::Deleted,
                Some(_) | None => ChangeKind::Changed,
            };
            if let Some(path) = records.next() {
                files.insert(path.into_owned(), Change { kind, lines: None });
            }
        } else if let [added, removed, path] = *record.splitn(3, '\t').collect::<Vec<_>>()
            && let Some(change) = files.get_mut(path)
        {
            change.lines = added.parse().ok().zip(removed.parse().ok());
        }
    }
    files
}

/// Returns those of some files of a folder that git tracks: by the index, or by the newest commit, where the index can't be
/// read. None where the folder lies in no checkout.
///
/// # Errors
///
/// Those of git.
pub async fn tracked_of(
    spawner: &Spawner,
    folder: &Path,
    names: &BTreeSet<String>,
) -> Result<BTreeSet<String>, WorktreeError> {
    let (files, head) = blocking_in_place(|| (tracked_files(folder), git_head(folder)));
    let mut tracked: BTreeSet<String> =
        files.iter().map(|file| name_of(file)).filter(|name| names.contains(name)).collect();
    let others: Vec<OsString> = names.difference(&tracked).map(|name| bytes_of_name(name)).collect();
    if head.is_none() || others.is_empty() {
        return Ok(tracked);
    }
    let git = Git::open(spawner, folder)?;
    for some in others.chunks(PATHS_AT_ONCE) {
        let words = ["--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", "HEAD", "--"];
        let called =
            git.call_checked(words.map(OsString::from).into_iter().chain(some.iter().cloned())).await?;
        let paths = called.records().map(|path| name_of(Path::new(OsStr::from_bytes(path))));
        tracked.extend(paths.filter(|name| names.contains(name)));
    }
    Ok(tracked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_of_git_are_read_also_of_files_that_are_no_text_and_of_odd_names() {
        let printed = b":100644 100644 aa bb M\0src/a b.rs\0:000000 100644 00 cc A\0new\tname\0:100644 000000 dd 00 D\0gone\0\
            3\t1\tsrc/a b.rs\0-\t-\tnew\tname\0" as &[u8];
        let records = printed.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        let files = files_of(records);
        let change = |kind, lines| Change { kind, lines };
        assert_eq!(files["src/a b.rs"], change(ChangeKind::Changed, Some((3, 1))));
        assert_eq!(files["new\tname"], change(ChangeKind::Added, None));
        assert_eq!(files["gone"], change(ChangeKind::Deleted, None));
        assert_eq!(files.len(), 3);
    }
}
