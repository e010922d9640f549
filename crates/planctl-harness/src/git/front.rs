//! The program `git` that contracts find first on their `PATH`: it starts the real git, and shows it the workspace's own
//! repository under a clean configuration and a clean index.
//!
//! Git believes its index: a file whose entry says "assume unchanged", "skip this file", or the size and time that the file
//! has by now, is not looked into. So `git diff --quiet HEAD` passes over a change that a worker hides in that way.
//! Read-only commands get an index each that is made anew: staged entries stay staged, and every file is read. Commands that
//! change something get the repository's own index, or what they do would be lost.
//!
//! The user's settings are a second copy of those that the contract has, of which only the names and addresses count that the
//! contract sets: code under test can write what the contract can write. Nobody writes the copy
//! ([`Exchanges`](crate::protect::Exchanges)).
//!
//! It is a script and no mode of planctl's own program, since a sandbox hides that program from contracts.

use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::clean::{GitFolders, RepositorySettings, add_clean_repository, add_user_settings};
use super::config::UserSettings;
use super::newer::{NewerObjects, ObjectsBefore};
use crate::folder_content::FolderContent;

/// How many submodules have a clean configuration of their own.
const SUBMODULES_MAX: usize = 64;

/// The folder of a private one with the settings of git, and a folder for each repository.
const SETTINGS: &str = "git";

/// The script, with places for the shell, the real git, the settings and the table of repositories.
const SCRIPT: &str = include_str!("front.sh");

/// A contract's git, and what it reads.
#[derive(Clone, Debug)]
pub(crate) struct GitFiles {
    /// The folder of programs that come before all others on the `PATH`.
    pub(crate) bin: PathBuf,
    /// The folder of settings.
    pub(crate) settings: PathBuf,
    /// The top of the checkout.
    pub(crate) top: PathBuf,
    /// The repositories of the checkout and of its submodules.
    pub(crate) repositories: Vec<GitFolders>,
}

/// The repositories of a workspace, as they were when this was made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Repositories {
    before: Vec<RepositoryBefore>,
}

/// A repository as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RepositoryBefore {
    folders: GitFolders,
    settings: RepositorySettings,
    objects: ObjectsBefore,
    /// The newer objects that were the last ones to be what their names say. One change of that list is the only step.
    #[serde(skip)]
    verified: Arc<Mutex<NewerObjects>>,
}

impl Repositories {
    /// Notes what the repositories of a workspace say before anybody works there.
    pub(crate) fn snapshot(workspace: &Path) -> Repositories {
        let noted = |folders: GitFolders| RepositoryBefore {
            settings: RepositorySettings::read(&folders.common),
            objects: ObjectsBefore::snapshot(&folders.common),
            verified: Arc::default(),
            folders,
        };
        let found = GitFolders::find(workspace).map(|(folders, _)| folders);
        Repositories { before: repositories(found).into_iter().map(noted).collect() }
    }

    /// Returns the repositories as they were when they were noted in a file, with those that are not in it as they are here;
    /// notes all of them there. A process that takes a run up again knows by that what came since the run began.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub(crate) fn noted(self, file: &Path) -> io::Result<Repositories> {
        let mut noted: Repositories = match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Repositories::default(),
            Err(error) => return Err(error),
        };
        let known: Vec<PathBuf> = noted.before.iter().map(|known| known.folders.common.clone()).collect();
        noted.before.extend(self.before.into_iter().filter(|own| !known.contains(&own.folders.common)));
        if noted.before.len() > known.len() {
            let folder = file.parent().unwrap_or(Path::new("."));
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut next = tempfile::NamedTempFile::new_in(folder)?;
            next.write_all(&serde_json::to_vec(&noted)?)?;
            next.persist(file)?;
        }
        Ok(noted)
    }

    /// Lists the objects that came since and are not verified as they are, by git's own folder of a checkout of each repository.
    pub(crate) fn unverified(&self) -> Vec<(&Path, NewerObjects)> {
        let newer = self.before.iter().map(|known| (known, known.objects.newer(&known.folders.common)));
        let is_verified = |known: &RepositoryBefore, newer: &NewerObjects| {
            *known.verified.lock().unwrap_or_else(PoisonError::into_inner) == *newer
        };
        let left = newer.filter(|(known, newer)| !newer.is_empty() && !is_verified(known, newer));
        left.map(|(known, newer)| (known.folders.own.as_path(), newer)).collect()
    }

    /// Notes that objects are what their names say.
    pub(crate) fn mark_verified(&self, own: &Path, newer: NewerObjects) {
        if let Some(known) = self.before.iter().find(|known| known.folders.own == own) {
            *known.verified.lock().unwrap_or_else(PoisonError::into_inner) = newer;
        }
    }

    /// Adds the program to a private folder at `path`, for a workspace in this repository and below this top; returns `None` where
    /// the workspace lies in no checkout.
    pub(crate) fn add_front(
        &self,
        folder: &mut FolderContent,
        path: &Path,
        found: Option<(GitFolders, PathBuf)>,
        user: &UserSettings,
        (bash, git): (&Path, &Path),
    ) -> io::Result<Option<GitFiles>> {
        let Some((found, top)) = found else { return Ok(None) };
        let at = path.join(SETTINGS);
        // Git may look at a repository that is listed below, whoever owns it.
        let [(_, global), _] = add_user_settings(folder.folder(SETTINGS), &at, user, &[Path::new("*")]);
        let repositories = repositories(Some(found));
        let mut table = String::new();
        for (number, folders) in repositories.iter().enumerate() {
            let mut settings = RepositorySettings::read(&folders.common);
            if let Some(known) = self.before.iter().find(|known| known.folders.common == folders.common) {
                settings = settings.with_those_before(&known.settings);
            }
            let clean = Path::new(SETTINGS).join(number.to_string());
            add_clean_repository(folder.folder(&clean), &folders.common, &settings);
            let (own, common) = (quoted(&folders.own)?, quoted(&folders.common)?);
            table.push_str(&format!("{own}) common={common} clean={} ;;\n", quoted(&path.join(clean))?));
        }
        let script = SCRIPT
            .replace("@BASH@", &bash.to_string_lossy())
            .replace("@GIT@", &quoted(git)?)
            .replace("@SETTINGS@", &quoted(Path::new(&global))?)
            .replace("@REPOSITORIES@", &table);
        folder.program("bin/git", script);
        Ok(Some(GitFiles { bin: path.join("bin"), settings: at, top, repositories }))
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
