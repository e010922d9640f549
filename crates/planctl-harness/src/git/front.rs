//! The program `git` that contracts find first on their `PATH`: it starts the real git, and shows it the workspace's own
//! repository under a clean configuration and a clean index.
//!
//! Git believes its index: a file whose entry says "assume unchanged", "skip this file", or the size and time that the file
//! has by now, is not looked into. So `git diff --quiet HEAD` passes over a change that a worker hides in that way.
//! Read-only commands get an index that is made anew: staged entries stay staged, and every file is read. Commands that
//! change something get the repository's own index, or what they do would be lost.
//!
//! It is a script and no mode of planctl's own program, since a sandbox hides that program from contracts.

use std::io;
use std::path::{Path, PathBuf};

use super::clean::{GitFolders, RepositorySettings, add_clean_repository};
use crate::folder_content::FolderContent;

/// How many submodules have a clean configuration of their own.
const SUBMODULES_MAX: usize = 64;

/// The script, with places for the shell, the real git and the table of repositories.
const SCRIPT: &str = include_str!("front.sh");

/// The repositories of a workspace, as they were when this was made.
#[derive(Clone, Debug)]
pub(crate) struct Repositories {
    before: Vec<(GitFolders, RepositorySettings)>,
}

impl Repositories {
    /// Notes what the repositories of a workspace say before anybody works there.
    pub(crate) fn snapshot(workspace: &Path) -> Repositories {
        let noted = |folders: GitFolders| {
            let settings = RepositorySettings::read(&folders.common);
            (folders, settings)
        };
        let found = GitFolders::find(workspace).map(|(folders, _)| folders);
        Repositories { before: repositories(found).into_iter().map(noted).collect() }
    }

    /// Adds the program to a private folder at `path`, for a workspace in this repository; returns the folder that belongs on
    /// the `PATH`, or `None` where the workspace lies in no checkout.
    pub(crate) fn add_front(
        &self,
        folder: &mut FolderContent,
        path: &Path,
        found: Option<GitFolders>,
        bash: &Path,
        git: &Path,
    ) -> io::Result<Option<PathBuf>> {
        let mut table = String::new();
        for (number, folders) in repositories(found).into_iter().enumerate() {
            let mut settings = RepositorySettings::read(&folders.common);
            if let Some((_, before)) = self.before.iter().find(|(known, _)| known.common == folders.common) {
                settings = settings.with_those_before(before);
            }
            let clean = Path::new("git").join(number.to_string());
            add_clean_repository(folder.folder(&clean), &folders.common, &settings);
            let (own, common) = (quoted(&folders.own)?, quoted(&folders.common)?);
            table.push_str(&format!("{own}) common={common} clean={} ;;\n", quoted(&path.join(clean))?));
        }
        if table.is_empty() {
            return Ok(None);
        }
        let script = SCRIPT
            .replace("@BASH@", &bash.to_string_lossy())
            .replace("@GIT@", &quoted(git)?)
            .replace("@REPOSITORIES@", &table);
        folder.program("bin/git", script);
        Ok(Some(path.join("bin")))
    }
}

/// Lists the repository of a workspace and those of its submodules.
fn repositories(found: Option<GitFolders>) -> Vec<GitFolders> {
    let Some(folders) = found else { return Vec::new() };
    let mut waiting = vec![folders.common.join("modules"), folders.own.join("modules")];
    let mut found = vec![folders];
    // A submodule's name may hold slashes, so its folder may lie deeper.
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if found.len() > SUBMODULES_MAX || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if path.join("HEAD").symlink_metadata().is_ok() {
                waiting.push(path.join("modules"));
                found.extend(GitFolders::of(path).filter(|folders| !found.contains(folders)));
            } else {
                waiting.push(path);
            }
        }
    }
    found
}

/// Writes a path as a word of the script.
fn quoted(path: &Path) -> io::Result<String> {
    let text = path.to_str().ok_or_else(|| io::Error::other("its path is not UTF-8"))?;
    shlex::try_quote(text).map(std::borrow::Cow::into_owned).map_err(io::Error::other)
}
