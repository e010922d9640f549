//! Keeps the files that a step is judged by: their state at approval, and what differs from it (A4).
//!
//! A [`Baseline`] holds what was approved. `survey` looks at what is there, link for link and byte for byte; `watch` notices
//! what is changed and put back while a contract runs, which no two surveys tell; `comparing` does both around a contract.
//! `exchanges` notices the same of what a contract's git reads. `stability` looks at the files that nobody protects, but that
//! nobody may change while a contract runs; `guarded` does both of these around a contract. All hear of events by `notifications`.

mod comparing;
mod exchanges;
mod guarded;
mod notifications;
mod stability;
mod survey;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use planctl_engine::{Digest, FileChange, Tampering};
use planctl_glob::{Glob, NotAGlob, is_glob};
use serde::{Deserialize, Serialize};

use crate::beneath::{LastLink, Root};
use crate::digest::digest_of;
use crate::excerpt::Output;

pub(crate) use comparing::Comparing;
pub use comparing::{put_entry, read_entry};
pub(crate) use exchanges::Exchanged;
pub(crate) use guarded::Guarded;
pub(crate) use stability::TRACKED_FILES_MAX;
pub use stability::{ContractWrite, Stability, Written};
pub(crate) use survey::{bytes_of_name, name_of};

use survey::Survey;
use watch::Watch;

/// The most entries of folders among which one pattern's files are looked for.
const ENTRIES_MAX: usize = 1_000_000;
/// The most files that one step's globs may protect.
pub const PROTECTED_FILES_MAX: usize = 10_000;
/// The most bytes of all protected files together: they are read before and after each contract.
pub const PROTECTED_BYTES_MAX: u64 = 4 << 30;
/// The most bytes of one file, and of all, of which copies are kept; a plan has as many at most.
const COPY_BYTES_MAX: u64 = 1 << 20;
const COPIES_BYTES_MAX: u64 = 64 << 20;

/// The protected files as they were when the plan was approved.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// Each protected entry, relative to the workspace. A name that is not UTF-8 stands here with its bytes as `\xNN`.
    pub files: BTreeMap<String, FileState>,
    /// Patterns of protected files; a new entry that matches one is a change too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub globs: BTreeSet<String>,
    /// Names and patterns of entries that decide contracts: an entry that matches and is not in `files` was not there at
    /// approval, so it is a change. With the digests of the contracts that each decides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deciding: BTreeMap<String, BTreeSet<Digest>>,
    /// Plan files, and links to them, among all these: planctl draws marks into them ([`Baseline::take_marks`]).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub marked: BTreeSet<String>,
    /// Names and patterns of entries that the step at hand may change itself: not compared.
    #[serde(skip)]
    pub free: BTreeSet<String>,
    /// Entries below protected patterns that an earlier contract made. As long as they are just that, they are removed before
    /// a contract runs, so that none is judged by what another one, and the code that it tested, left behind.
    #[serde(skip)]
    pub by_products: BTreeMap<String, Digest>,
}

/// The approved state of one entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileState {
    /// Of its content; of the text of a link that leads to no regular file of the workspace. Of a file that is too large to
    /// be read it says the length, and is the digest of nothing that was approved.
    pub digest: Digest,
    /// Says that it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// The text of the link that stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Where it lies, where links on the way lead elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "EntryKind::is_file")]
    pub kind: EntryKind,
}

/// The kind of entry that a protected path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file, or a link to one within the workspace.
    #[default]
    File,
    /// A link that leads to no regular file of the workspace.
    Link,
    /// A folder.
    Folder,
    /// A pipe, a socket, a device, or another user's file.
    Other,
    /// An entry that the system does not let us read.
    Unreadable,
    /// Nothing.
    Absent,
}

impl EntryKind {
    fn is_file(&self) -> bool {
        *self == EntryKind::File
    }
}

impl FileState {
    /// Returns the digest of the content, where there is a regular file.
    pub fn content(&self) -> Option<Digest> {
        self.kind.is_file().then(|| self.digest.clone())
    }

    /// Says how another state differs from this one, which was approved.
    pub fn change_to(&self, found: &FileState) -> Option<FileChange> {
        if self == found {
            return None;
        }
        Some(match (self.kind, found.kind) {
            (EntryKind::Absent, _) => FileChange::Created,
            (_, EntryKind::Absent) => FileChange::Deleted,
            (_, EntryKind::Unreadable) => FileChange::Changed,
            (own, other) if own != other => FileChange::Replaced,
            _ if self.link != found.link || self.at != found.at => FileChange::Replaced,
            _ => FileChange::Changed,
        })
    }
}

/// Why a baseline could not be taken or compared.
#[derive(Debug, thiserror::Error)]
pub enum ProtectError {
    /// The workspace cannot be opened.
    #[error("the workspace cannot be opened: {0}")]
    Workspace(#[source] io::Error),
    /// A pattern cannot be read.
    #[error(transparent)]
    NotAGlob(#[from] NotAGlob),
    /// A pattern matches more files than can be kept, or leads to more than can be looked at.
    #[error(
        "`{glob}` matches more than {PROTECTED_FILES_MAX} files, or the folders that it leads to have more than {ENTRIES_MAX} entries"
    )]
    TooMany {
        /// The pattern.
        glob: String,
    },
    /// The files have more bytes than can be compared again and again.
    #[error("`{path}`, with the files before it, has more than 4 GiB, which is the limit of protected files")]
    TooLarge {
        /// The file that is one too many.
        path: String,
    },
}

impl Baseline {
    /// Takes the state of those of the named entries that are files or links, and of all that match a glob.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened, or a glob cannot be used.
    pub fn take<'a>(
        workspace: &Path,
        files: impl IntoIterator<Item = &'a str>,
        globs: impl IntoIterator<Item = &'a str>,
    ) -> Result<Baseline, ProtectError> {
        let globs = globs.into_iter().map(ToOwned::to_owned).collect();
        let mut baseline = Baseline { globs, ..Baseline::default() };
        let named: BTreeSet<String> = files.into_iter().map(clean).collect();
        if named.is_empty() && baseline.globs.is_empty() {
            return Ok(baseline);
        }
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        let survey = Survey::whole(&root, named.iter(), &baseline.globs)?;
        for (path, seen) in survey.entries {
            let is_named = named.contains(&path);
            if !is_named || matches!(seen.state.kind, EntryKind::File | EntryKind::Link) {
                baseline.files.insert(path, seen.state);
            }
        }
        baseline.add_targets(&root, &named)?;
        Ok(baseline)
    }

    /// Protects names and patterns of entries of which a new one is a change too. Existing entries are taken as they are.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened, or a pattern cannot be used.
    pub fn add_deciding(
        &mut self,
        workspace: &Path,
        names: BTreeMap<String, BTreeSet<Digest>>,
    ) -> Result<(), ProtectError> {
        if names.is_empty() {
            return Ok(());
        }
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        let (patterns, plain) = names.into_iter().partition::<BTreeMap<_, _>, _>(|(name, _)| is_glob(name));
        let survey = Survey::whole(&root, plain.keys(), patterns.keys())?;
        let named: BTreeSet<String> = survey.entries.keys().cloned().collect();
        for (path, seen) in survey.entries {
            match seen.state.kind {
                // A folder decides nothing by itself.
                EntryKind::Folder => continue,
                EntryKind::Absent => {}
                EntryKind::File if survey.harmless.contains(&path) => {}
                EntryKind::File | EntryKind::Link | EntryKind::Other | EntryKind::Unreadable => {
                    self.files.entry(path.clone()).or_insert(seen.state);
                }
            }
            if let Some(contracts) = plain.get(&path) {
                self.deciding.insert(path, contracts.clone());
            }
        }
        self.deciding.extend(patterns);
        self.add_targets(&root, &named)
    }

    /// Protects the files of the workspace that named links lead to, so that a change of one is told by its own name.
    fn add_targets(&mut self, root: &Root, named: &BTreeSet<String>) -> Result<(), ProtectError> {
        let links = self.files.iter().filter(|(path, state)| state.link.is_some() && named.contains(*path));
        let targets: BTreeSet<String> = links.filter_map(|(_, state)| state.at.clone()).collect();
        if targets.is_empty() {
            return Ok(());
        }
        for (path, seen) in Survey::whole(root, targets.iter(), [])?.entries {
            if seen.state.kind.is_file() {
                self.files.entry(path).or_insert(seen.state);
            }
        }
        Ok(())
    }

    /// Notes that planctl draws marks into a file, where it is protected, by its own name or by that of a link to it.
    pub fn note_plan(&mut self, plan: &str) {
        let plan = clean(plan);
        let is_it =
            |(name, state): &(&String, &FileState)| **name == plan || state.at.as_ref() == Some(&plan);
        let names: Vec<String> = self.files.iter().filter(is_it).map(|(name, _)| name.clone()).collect();
        self.marked.extend(names);
    }

    /// Takes the content of a protected plan as it is for the approved one, where a reader of it finds only marks changed.
    ///
    /// The marks must stay as they are until the comparison is over ([`PlanFileLock`](crate::PlanFileLock)).
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened.
    pub fn take_marks(
        &mut self,
        workspace: &Path,
        plan: &str,
        is_approved_text: impl Fn(Vec<u8>) -> bool,
    ) -> Result<(), ProtectError> {
        let plan = clean(plan);
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        for name in &self.marked {
            let Some(state) = self.files.get_mut(name).filter(|state| state.kind.is_file()) else { continue };
            if *name != plan && state.at.as_ref() != Some(&plan) {
                continue;
            }
            let path = bytes_of_name(name);
            let read = root.read(Path::new(&path), LastLink::Follow, COPY_BYTES_MAX);
            let digest = read.as_ref().ok().map(|bytes| digest_of(bytes));
            if let Some(digest) = digest.filter(|_| read.is_ok_and(&is_approved_text)) {
                state.digest = digest;
            }
        }
        Ok(())
    }

    /// Says whether nothing is protected, so that comparing costs nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.globs.is_empty() && self.deciding.is_empty()
    }

    /// Says whether a file is protected: it was there and named, or a pattern matches it.
    pub fn covers(&self, path: &str) -> bool {
        let path = clean(path);
        let mut patterns = self.globs.iter().chain(self.deciding.keys());
        self.files.contains_key(&path) || patterns.any(|glob| matches(glob, &path))
    }

    /// Says whether an entry, where it comes, decides the step's contract: code under test may not make it either.
    pub(crate) fn decides(&self, path: &str) -> bool {
        self.deciding.contains_key(path) || self.deciding.keys().any(|name| matches(name, path))
    }

    /// Says whether the step at hand may change an entry: one that its own patterns protect it may not.
    pub fn may_change(&self, path: &str) -> bool {
        let is_free = self.free.contains(path) || self.free.iter().any(|glob| matches(glob, path));
        is_free && !self.globs.iter().any(|glob| matches(glob, path))
    }

    /// Takes the files anew that an earlier step was meant to write and that passed its contract (DESIGN 8); a file
    /// that is gone leaves the set.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened.
    pub fn move_files<'a>(
        &mut self,
        workspace: &Path,
        files: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ProtectError> {
        let covered: Vec<String> = files.into_iter().map(clean).filter(|path| self.covers(path)).collect();
        let moved = Baseline::take(workspace, covered.iter().map(String::as_str), [])?;
        for path in covered {
            match moved.files.get(&path) {
                Some(state) => self.files.insert(path, state.clone()),
                None => self.files.remove(&path),
            };
        }
        Ok(())
    }

    /// Returns the names and patterns of all that is protected, for people: a long list in a pattern is cut.
    pub fn shown(&self) -> Vec<String> {
        let all: BTreeSet<&String> =
            self.files.keys().chain(&self.globs).chain(self.deciding.keys()).collect();
        all.into_iter().map(|name| planctl_glob::shortened(name)).collect()
    }

    /// Reads copies of protected files that still are what was approved: at most 1 MiB of each and 64 MiB in all.
    pub fn copies(&self, workspace: &Path) -> Vec<Output> {
        let Ok(root) = Root::open(workspace) else { return Vec::new() };
        let (mut copies, mut left) = (Vec::new(), COPIES_BYTES_MAX);
        for (name, state) in self.files.iter().filter(|(_, state)| state.kind.is_file()) {
            let path = bytes_of_name(name);
            let Ok(bytes) = root.read(Path::new(&path), LastLink::Follow, COPY_BYTES_MAX.min(left)) else {
                continue;
            };
            if digest_of(&bytes) == state.digest {
                left -= bytes.len() as u64;
                copies.push(Output { digest: state.digest.clone(), bytes });
            }
        }
        copies
    }

    /// Accepts entries as a gate found them, as long as they are just that.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened.
    pub fn allow(&mut self, workspace: &Path, allowed: &[Tampering]) -> Result<(), ProtectError> {
        let now = Baseline::take(workspace, allowed.iter().map(|file| file.path.as_str()), [])?;
        for file in allowed {
            match (now.files.get(&file.path), &file.digest) {
                (Some(state), Some(digest)) if state.content().as_ref() == Some(digest) => {
                    self.files.insert(file.path.clone(), state.clone());
                }
                (None, None) if file.change == FileChange::Deleted => {
                    self.files.remove(&file.path);
                }
                (Some(_) | None, _) => {}
            }
        }
        Ok(())
    }

    /// Compares the workspace with the baseline.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened, or a glob matches too much to be sure.
    pub fn compare(&self, workspace: &Path) -> Result<Comparison, ProtectError> {
        if self.is_empty() {
            return Ok(Comparison::default());
        }
        Ok(self.compare_survey(&self.survey(workspace, None)?))
    }

    /// Looks at everything that is protected; `before` spares the digests of entries that nobody touched since.
    pub(crate) fn survey(&self, workspace: &Path, before: Option<&Survey>) -> Result<Survey, ProtectError> {
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        let (patterns, plain) = self.deciding.keys().partition::<Vec<_>, _>(|name| is_glob(name));
        let patterns = self.globs.iter().chain(patterns);
        Survey::take(&root, self.files.keys().chain(plain), patterns, before)
    }

    /// Says whether an entry is protected for what programs find in it, and they find nothing.
    fn is_harmless(&self, survey: &Survey, path: &str) -> bool {
        survey.harmless.contains(path) && !self.globs.iter().any(|glob| matches(glob, path))
    }

    /// Says what of a survey differs from what was approved.
    pub(crate) fn compare_survey(&self, survey: &Survey) -> Comparison {
        let mut comparison = Comparison::default();
        for (path, seen) in &survey.entries {
            if self.may_change(path) {
                continue;
            }
            let found = seen.state.content();
            let change = match self.files.get(path) {
                Some(approved) => approved.change_to(&seen.state),
                None if seen.state.kind == EntryKind::Absent => continue,
                None => Some(FileChange::Created),
            };
            if change == Some(FileChange::Created) && self.is_harmless(survey, path) {
                continue;
            }
            comparison.digests.insert(path.clone(), found.clone());
            if let Some(change) = change {
                comparison.tampered.push(Tampering { path: path.clone(), change, digest: found });
            }
        }
        comparison
    }
}

/// How the workspace compares with a baseline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// The digest of each protected file; `None` where there is no regular file.
    pub digests: BTreeMap<String, Option<Digest>>,
    /// The entries that differ.
    pub tampered: Vec<Tampering>,
}

fn clean(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

fn matches(glob: &str, path: &str) -> bool {
    Glob::parse(glob).is_ok_and(|glob| glob.matches(bytes_of_name(path)))
}

#[cfg(test)]
mod tests;
