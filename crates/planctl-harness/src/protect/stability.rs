//! Notices what is changed of the workspace's own files while a contract runs: its verdict would be of a mixture (A5).
//!
//! The kernel does not say who changed a file. It does not have to: any other writer also writes while no contract runs, and
//! the wait before a repeated gate shows that. A file that changed in two gates and in no moment between them, and is as the
//! first left it, is the contract's own product (a formatter's, a generator's). One that differs each time (a time stamp, a
//! counter) takes a third gate. Products are remembered, so that this is found out once per contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use planctl_engine::Digest;
use serde::{Deserialize, Serialize};

use super::survey::name_of;
use super::watch::Watch;
use crate::beneath::{LastLink, Root};
use crate::context::GLOB_FILES_MAX;
use crate::digest::digest_within;
use crate::git::index::tracked_files;
use crate::stamp::Stamp;

/// In a workspace of more, only subscribed files are watched.
pub(crate) const TRACKED_FILES_MAX: usize = 50_000;
/// How many names a message lists.
const NAMES_MAX: usize = 5;
/// In how many waits between two gates a file must stay untouched to count as the contract's own.
const UNTOUCHED_MIN: u8 = 2;

/// The files that must stay as they are while a contract runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stability {
    /// Whether the files that git tracks in the workspace count.
    pub tracked: bool,
    /// The files and patterns that the step subscribes to.
    pub subscribed: BTreeSet<String>,
    /// Files that others rightfully write meanwhile: planctl its marks, the workers of other steps their own.
    pub except: BTreeSet<String>,
    /// The files that the contract wrote in earlier gates.
    pub written: Written,
}

/// The files that one contract wrote, by path.
pub type Written = BTreeMap<String, ContractWrite>;

/// A file that changed while a contract ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ContractWrite {
    stamp: Stamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    /// How many gates in a row found it as the gate before had left it.
    #[serde(default)]
    untouched: u8,
    /// Whether it is the contract's own product.
    #[serde(default)]
    is_product: bool,
}

/// The files of a workspace as they were before a contract.
pub(crate) struct Steady {
    root: Root,
    files: Vec<PathBuf>,
    before: Vec<Stamp>,
    folders: Watch,
    stability: Stability,
}

/// The entries that changed while a contract ran.
#[derive(Default)]
pub(crate) struct Unsteady {
    /// The message about entries that somebody else changed; `None` where there are none.
    pub(crate) what: Option<String>,
    /// The files that the contract wrote, as far as known by now; empty where nothing changed.
    pub(crate) written: Written,
}

impl Steady {
    /// Looks at the files, those of the newest commit among them; `None` where there is nothing to look at.
    pub(crate) fn begin(stability: Stability, committed: &[PathBuf], workspace: &Path) -> Option<Steady> {
        let mut files = if stability.tracked { tracked_files(workspace) } else { Vec::new() };
        // A file that the index does not name is tracked nevertheless, where the commit has it.
        match files.len().max(committed.len()) > TRACKED_FILES_MAX {
            true => files.clear(),
            false => files.extend_from_slice(committed),
        }
        for path in &stability.subscribed {
            let found = crate::walk::expand(workspace, path, GLOB_FILES_MAX);
            files.extend(found.unwrap_or_default().files.into_iter().map(PathBuf::from));
        }
        let is_excepted = Excepted::of(&stability.except);
        files.retain(|path| !is_excepted.has(path));
        // By bytes: to compare paths part by part takes longer than to look at the files.
        files.sort_unstable_by(|one, two| one.as_os_str().cmp(two.as_os_str()));
        files.dedup_by(|one, two| one.as_os_str() == two.as_os_str());
        if files.is_empty() {
            return None;
        }
        let root = Root::open(workspace).ok()?;
        // The watch comes first, so that nothing falls between it and the stamps.
        let folders = Watch::watch_moves(workspace, folders_of(&files));
        let before = files.iter().map(|file| root.stamp(file)).collect();
        Some(Steady { root, files, before, folders, stability })
    }

    /// Looks again, after the contract.
    pub(crate) fn finish(self) -> Unsteady {
        let Steady { root, files, before, folders, stability } = self;
        let mut changes: Vec<Change> = Vec::new();
        let mut left = super::PROTECTED_BYTES_MAX;
        for (file, before) in files.iter().zip(before) {
            let after = root.stamp(file);
            if after != before {
                let read = root.open_file(file, LastLink::Refuse).ok();
                let digest = read.and_then(|read| digest_within(&read, &mut left).ok().flatten());
                changes.push(Change { path: name_of(file), before, after, digest });
            }
        }
        // A folder's own times tell nothing: each entry made in it changes them.
        let moved = folders.moved_folders().into_iter();
        let none = Stamp::default();
        changes.extend(moved.map(|path| Change { path, before: none, after: none, digest: None }));
        judge(stability.written, changes)
    }
}

/// Returns the folders on the way to files.
fn folders_of(files: &[PathBuf]) -> impl Iterator<Item = &Path> {
    let (mut folders, mut last) = (BTreeSet::new(), None);
    for file in files {
        let parent = file.parent().map(Path::as_os_str);
        if parent != last {
            folders.extend(file.ancestors().skip(1).map(Path::as_os_str));
            last = parent;
        }
    }
    folders.into_iter().filter(|folder| !folder.is_empty()).map(Path::new)
}

/// Names and patterns, read once.
struct Excepted<'a> {
    names: BTreeSet<&'a str>,
    globs: Vec<planctl_glob::Glob>,
}

impl Excepted<'_> {
    fn of(except: &BTreeSet<String>) -> Excepted<'_> {
        let globs = except.iter().filter(|name| planctl_glob::is_glob(name));
        Excepted {
            names: except.iter().map(|name| name.strip_prefix("./").unwrap_or(name)).collect(),
            globs: globs.filter_map(|glob| planctl_glob::Glob::parse(glob).ok()).collect(),
        }
    }

    fn has(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| self.names.contains(path))
            || self.globs.iter().any(|glob| glob.matches(path))
    }
}

struct Change {
    path: String,
    before: Stamp,
    after: Stamp,
    digest: Option<Digest>,
}

fn judge(mut known: Written, changes: Vec<Change>) -> Unsteady {
    if changes.is_empty() {
        return Unsteady::default();
    }
    let (mut written, mut others) = (Written::new(), Vec::new());
    for Change { path, before, after, digest } in changes {
        let earlier = known.remove(&path);
        let untouched = earlier.as_ref().filter(|earlier| earlier.stamp == before);
        let is_same = untouched.is_some_and(|earlier| digest.is_some() && earlier.digest == digest);
        let untouched = untouched.map_or(0, |earlier| earlier.untouched.saturating_add(1));
        let is_known = earlier.is_some_and(|earlier| earlier.is_product);
        let is_product = is_known || is_same || untouched >= UNTOUCHED_MIN;
        if !is_product {
            others.push(path.clone());
        }
        written.insert(path, ContractWrite { stamp: after, digest, untouched, is_product });
    }
    written.extend(known.into_iter().filter(|(_, write)| write.is_product));
    Unsteady { what: (!others.is_empty()).then(|| words(&others)), written }
}

fn words(others: &[String]) -> String {
    let named: Vec<&str> = others.iter().take(NAMES_MAX).map(String::as_str).collect();
    let more = others.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "{}{more} changed while the contract ran; end the program that writes there, or do not edit it until the step \
         is judged",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::digest_of;

    fn stamp(folder: &Path) -> Stamp {
        Stamp::of(&folder.symlink_metadata().unwrap())
    }

    /// Three stamps that differ.
    fn stamps() -> [Stamp; 3] {
        let folder = tempfile::tempdir().unwrap();
        ["a", "ab", "abc"].map(|text| {
            let file = folder.path().join(text);
            std::fs::write(&file, text).unwrap();
            stamp(&file)
        })
    }

    fn change(before: Stamp, after: Stamp, text: &str) -> Vec<Change> {
        vec![Change { path: "f".to_owned(), before, after, digest: Some(digest_of(text.as_bytes())) }]
    }

    #[test]
    fn a5_what_a_contract_writes_each_time_and_nobody_between_is_its_own() {
        let [one, two, three] = stamps();
        let first = judge(Written::new(), change(one, two, "x"));
        assert!(first.what.is_some_and(|what| what.starts_with("f changed while the contract ran")));
        let second = judge(first.written.clone(), change(two, three, "x"));
        assert_eq!(second.what, None, "as the first gate left it");
        let later = judge(second.written, change(one, two, "y"));
        assert_eq!(later.what, None, "a product stays one, also when a worker changed it between");
        let outside = judge(first.written.clone(), change(one, two, "x"));
        assert!(outside.what.is_some(), "somebody changed it between the gates");
        let other = judge(first.written, change(two, three, "y"));
        assert!(other.what.is_some(), "it says something else");
        assert_eq!(
            judge(other.written, change(three, one, "z")).what,
            None,
            "nobody changed it between, twice"
        );
    }

    #[test]
    fn a5_what_changed_once_is_forgotten_with_the_next_gate_that_changes_something_else() {
        let [one, two, _] = stamps();
        let first = judge(Written::new(), change(one, two, "x"));
        let mut other = change(one, two, "x");
        other[0].path = "g".to_owned();
        assert_eq!(judge(first.written, other).written.keys().collect::<Vec<_>>(), ["g"]);
        assert!(judge(Written::new(), Vec::new()).written.is_empty());
    }
}
