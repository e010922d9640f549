//! Keeps the files that a step is judged by: their digests at approval, and what differs from them (A4).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use planctl_engine::{Digest, FileChange, Tampering};
use serde::{Deserialize, Serialize};

use crate::beneath::{LastLink, Root, Unreadable};
use crate::digest::digest_of_file;
use crate::walk::{NotAGlob, expand};

/// The most files that one step's globs may protect.
pub const PROTECTED_FILES_MAX: usize = 10_000;

/// What the protected files were when the plan was approved.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// Each protected file, relative to the workspace.
    pub files: BTreeMap<String, FileState>,
    /// Patterns of protected files; a new file that matches one is a change too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub globs: BTreeSet<String>,
}

/// What was approved of one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileState {
    /// Of its content.
    pub digest: Digest,
    /// Says that it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
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
    /// A pattern matches more files than can be kept.
    #[error("`{glob}` matches more than {PROTECTED_FILES_MAX} files")]
    TooMany {
        /// The pattern.
        glob: String,
    },
}

impl Baseline {
    /// Takes the state of those of the named files that exist and are regular, and of all that match a glob.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened, or a glob cannot be used.
    pub fn take<'a>(
        workspace: &Path,
        files: impl IntoIterator<Item = &'a str>,
        globs: impl IntoIterator<Item = &'a str>,
    ) -> Result<Baseline, ProtectError> {
        let mut baseline =
            Baseline { files: BTreeMap::new(), globs: globs.into_iter().map(ToOwned::to_owned).collect() };
        let mut paths: BTreeSet<String> = files.into_iter().map(clean).collect();
        for glob in &baseline.globs {
            paths.extend(matching(workspace, glob)?);
        }
        if paths.is_empty() {
            return Ok(baseline);
        }
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        for path in paths {
            if let Ok(state) = state(&root, &path) {
                baseline.files.insert(path, state);
            }
        }
        Ok(baseline)
    }

    /// Says whether nothing is protected, so that comparing costs nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.globs.is_empty()
    }

    /// Says whether a file is protected: it was there and named, or one of the globs matches it.
    pub fn covers(&self, path: &str) -> bool {
        let path = clean(path);
        let matches = |glob: &String| crate::walk::matcher(glob).is_ok_and(|glob| glob.is_match(&path));
        self.files.contains_key(&path) || self.globs.iter().any(matches)
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
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        for path in files.into_iter().map(clean) {
            if !self.covers(&path) {
                continue;
            }
            match state(&root, &path) {
                Ok(state) => {
                    self.files.insert(path, state);
                }
                Err(_) => {
                    self.files.remove(&path);
                }
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
        let mut comparison = Comparison::default();
        if self.is_empty() {
            return Ok(comparison);
        }
        let root = Root::open(workspace).map_err(ProtectError::Workspace)?;
        for (path, approved) in &self.files {
            let (found, change) = match state(&root, path) {
                Ok(found) if found == *approved => (Some(found.digest), None),
                Ok(found) => (Some(found.digest), Some(FileChange::Changed)),
                Err(Unreadable::Missing) => (None, Some(FileChange::Deleted)),
                Err(
                    Unreadable::Outside
                    | Unreadable::Symlink
                    | Unreadable::NotRegular(_)
                    | Unreadable::ForeignHardLink,
                ) => (None, Some(FileChange::Replaced)),
                Err(Unreadable::TooLarge { .. } | Unreadable::Refused(_)) => {
                    (None, Some(FileChange::Changed))
                }
            };
            comparison.digests.insert(path.clone(), found);
            comparison.tampered.extend(change.map(|change| Tampering { path: path.clone(), change }));
        }
        for glob in &self.globs {
            for path in matching(workspace, glob)? {
                if !self.files.contains_key(&path) && !comparison.digests.contains_key(&path) {
                    comparison
                        .digests
                        .insert(path.clone(), state(&root, &path).ok().map(|state| state.digest));
                    comparison.tampered.push(Tampering { path, change: FileChange::Created });
                }
            }
        }
        Ok(comparison)
    }
}

/// How the workspace compares with a baseline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// The digest of each protected file; `None` where there is no regular file.
    pub digests: BTreeMap<String, Option<Digest>>,
    /// What differs.
    pub tampered: Vec<Tampering>,
}

fn clean(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

fn matching(workspace: &Path, glob: &str) -> Result<Vec<String>, ProtectError> {
    let found = expand(workspace, glob, PROTECTED_FILES_MAX)?;
    if found.is_cut {
        return Err(ProtectError::TooMany { glob: glob.to_owned() });
    }
    Ok(found.files)
}

fn state(root: &Root, path: &str) -> Result<FileState, Unreadable> {
    let file = root.open_file(Path::new(path), LastLink::Refuse)?;
    let mode = file.metadata().map_err(Unreadable::Refused)?.permissions().mode();
    let digest = digest_of_file(file).map_err(Unreadable::Refused)?;
    Ok(FileState { digest, executable: mode & 0o111 != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tests/deep")).unwrap();
        std::fs::write(folder.path().join("tests/a.sh"), "exit 1").unwrap();
        std::fs::write(folder.path().join("tests/deep/b.sh"), "exit 1").unwrap();
        std::fs::write(folder.path().join("check.sh"), "exit 1").unwrap();
        folder
    }

    fn changes(baseline: &Baseline, folder: &tempfile::TempDir) -> Vec<(String, FileChange)> {
        let comparison = baseline.compare(folder.path()).unwrap();
        comparison.tampered.into_iter().map(|tampering| (tampering.path, tampering.change)).collect()
    }

    #[test]
    fn a4_every_way_to_change_a_protected_file_is_seen() {
        type Attack = fn(&Path);
        let attacks: [(Attack, FileChange); 9] = [
            (|file| std::fs::write(file, "exit 0").unwrap(), FileChange::Changed),
            (|file| std::fs::write(file, "").unwrap(), FileChange::Changed),
            (|file| std::fs::remove_file(file).unwrap(), FileChange::Deleted),
            (
                |file| std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap(),
                FileChange::Changed,
            ),
            (
                |file| {
                    std::fs::write(file.with_extension("new"), "exit 0").unwrap();
                    std::fs::rename(file.with_extension("new"), file).unwrap();
                },
                FileChange::Changed,
            ),
            (
                |file| {
                    std::fs::rename(file, file.with_extension("old")).unwrap();
                    std::os::unix::fs::symlink("check.old", file).unwrap();
                },
                FileChange::Replaced,
            ),
            (
                |file| {
                    std::fs::remove_file(file).unwrap();
                    std::fs::create_dir(file).unwrap();
                },
                FileChange::Replaced,
            ),
            (
                |file| {
                    std::fs::remove_file(file).unwrap();
                    rustix::fs::mkfifoat(rustix::fs::CWD, file, rustix::fs::Mode::RUSR).unwrap();
                },
                FileChange::Replaced,
            ),
            (
                |file| {
                    std::fs::remove_file(file).unwrap();
                    std::os::unix::fs::symlink("/dev/zero", file).unwrap();
                },
                FileChange::Replaced,
            ),
        ];
        for (number, (attack, change)) in attacks.into_iter().enumerate() {
            let folder = workspace();
            let baseline = Baseline::take(folder.path(), ["check.sh"], []).unwrap();
            assert_eq!(changes(&baseline, &folder), []);
            attack(&folder.path().join("check.sh"));
            assert_eq!(changes(&baseline, &folder), [("check.sh".to_owned(), change)], "attack {number}");
        }
    }

    #[test]
    fn a_glob_protects_what_it_matches_and_what_would_match() {
        let folder = workspace();
        let baseline = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
        assert_eq!(baseline.files.keys().collect::<Vec<_>>(), ["tests/a.sh", "tests/deep/b.sh"]);
        std::fs::write(folder.path().join("tests/deep/c.sh"), "").unwrap();
        std::fs::write(folder.path().join("elsewhere.sh"), "").unwrap();
        assert_eq!(changes(&baseline, &folder), [("tests/deep/c.sh".to_owned(), FileChange::Created)]);
    }

    #[test]
    fn files_that_do_not_exist_at_approval_are_not_protected() {
        let folder = workspace();
        let baseline = Baseline::take(folder.path(), ["later.sh", "tests", "./check.sh"], []).unwrap();
        assert_eq!(baseline.files.keys().collect::<Vec<_>>(), ["check.sh"]);
        assert!(Baseline::take(Path::new("/nowhere"), [], []).unwrap().is_empty());
    }

    #[test]
    fn the_baseline_moves_where_a_passed_step_was_meant_to_write() {
        let folder = workspace();
        let mut baseline = Baseline::take(folder.path(), ["check.sh", "tests/a.sh"], []).unwrap();
        std::fs::write(folder.path().join("check.sh"), "new").unwrap();
        std::fs::write(folder.path().join("tests/a.sh"), "new").unwrap();
        baseline.move_files(folder.path(), ["check.sh", "unknown.sh"]).unwrap();
        assert_eq!(changes(&baseline, &folder), [("tests/a.sh".to_owned(), FileChange::Changed)]);
    }
}
