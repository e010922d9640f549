//! The files that a verdict depends on, and the folders that have to be watched for them: a file that is replaced, or
//! is not there yet, can only be seen from its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use planctl_config::FILE_NAME;
use planctl_lang::read;
use planctl_server::check::Checked;

use super::{Debouncer, mode};

/// The files that could change a verdict.
#[derive(Debug, Default)]
pub struct Interest {
    workspace: PathBuf,
    files: BTreeSet<PathBuf>,
    /// Folders below which everything counts: a glob may match there.
    trees: BTreeSet<PathBuf>,
}

impl Interest {
    /// Begins with the plans themselves, and the workspace's configuration, also where there is none yet.
    pub fn new(workspace: &Path, plans: &[PathBuf]) -> Interest {
        let mut interest = Interest { workspace: workspace.to_owned(), ..Interest::default() };
        plans.iter().for_each(|plan| interest.add(plan));
        interest.add(&workspace.join(FILE_NAME));
        interest
    }

    /// Adds everything that verifying a plan asked about.
    pub fn add_plan(&mut self, checked: &Checked) {
        let wants = read(&checked.source).wants();
        for file in &wants.files {
            self.add(&self.workspace.join(file));
        }
        for glob in &wants.globs {
            let is_fixed =
                |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
            let fixed: PathBuf = Path::new(glob).components().take_while(is_fixed).collect();
            self.trees.insert(self.workspace.join(fixed));
        }
    }

    /// Adds one file: both its name and what it leads to, since a link may be replaced, and so may the file behind it.
    pub fn add(&mut self, file: &Path) {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        if let Ok(behind) = file.canonicalize() {
            self.files.insert(behind);
        }
        let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
        match (folder, file.file_name()) {
            (Some(folder), Some(name)) => self.files.insert(folder.join(name)),
            (None, _) | (_, None) => self.files.insert(file),
        };
    }

    /// Says whether a change at this path could change a verdict.
    pub fn concerns(&self, path: &Path) -> bool {
        if self.files.contains(path) || self.trees.iter().any(|tree| path.starts_with(tree)) {
            return true;
        }
        // A folder above one of them came, went or was renamed.
        let after = self.files.range(path.to_owned()..).next();
        let tree = self.trees.range(path.to_owned()..).next();
        after.into_iter().chain(tree).any(|one| one.starts_with(path))
    }

    /// Returns the folders to watch, each with whether all below it counts.
    fn folders(&self) -> BTreeMap<PathBuf, bool> {
        let mut folders = BTreeMap::new();
        for file in &self.files {
            let folder = file.ancestors().skip(1).find(|folder| folder.is_dir());
            folders.entry(folder.unwrap_or(Path::new("/")).to_owned()).or_insert(false);
        }
        for tree in &self.trees {
            let folder = tree.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
            let is_deep = folder == tree;
            *folders.entry(folder.to_owned()).or_insert(is_deep) |= is_deep;
        }
        folders
    }
}

/// The folders that are watched, each with how, and which folder it was: another of the same name is watched anew.
#[derive(Debug, Default)]
pub struct Folders(BTreeMap<PathBuf, (bool, u64)>);

impl Folders {
    /// Watches what has to be watched and nothing else; says whether anything is watched that was not before.
    pub fn follow(&mut self, interest: &Interest, debouncer: &mut Debouncer) -> notify::Result<bool> {
        let wanted: BTreeMap<PathBuf, (bool, u64)> = interest
            .folders()
            .into_iter()
            .filter_map(|(folder, is_deep)| {
                let inode = std::fs::metadata(&folder).ok()?.ino();
                Some((folder, (is_deep, inode)))
            })
            .collect();
        let gone: Vec<PathBuf> = self
            .0
            .iter()
            .filter(|(folder, how)| wanted.get(*folder) != Some(how))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in gone {
            self.0.remove(&folder);
            // The kernel stops watching a folder that is removed by itself.
            debouncer.unwatch(&folder).unwrap_or(());
        }
        let mut is_new = false;
        for (folder, how) in wanted {
            if self.0.contains_key(&folder) {
                continue;
            }
            match debouncer.watch(&folder, mode(how.0)) {
                Ok(()) => {
                    self.0.insert(folder, how);
                    is_new = true;
                }
                // It went while we looked; its parent tells when it is back.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => is_new = true,
                Err(error) => return Err(error),
            }
        }
        Ok(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_its_folders_and_all_that_a_glob_may_match_are_of_interest() {
        let interest = Interest {
            workspace: "/w".into(),
            files: ["/w/plans/a.md".into(), "/w/b".into()].into(),
            trees: ["/w/src".into()].into(),
        };
        for path in ["/w/plans/a.md", "/w/plans", "/w", "/w/src", "/w/src/x/y.rs"] {
            assert!(interest.concerns(Path::new(path)), "{path}");
        }
        for path in ["/w/plans/a", "/w/plans/b.md", "/w/plans/a.md~", "/w/srcs", "/w/bb"] {
            assert!(!interest.concerns(Path::new(path)), "{path}");
        }
    }
}
