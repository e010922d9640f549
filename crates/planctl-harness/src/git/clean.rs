//! A repository under a configuration of planctl's own: it replaces the repository's `config`, `hooks`, `info`, `rr-cache`
//! and grafts, while objects, references and worktrees are the repository's (A10).
//!
//! Git takes those files from the folder that `GIT_COMMON_DIR` names. [`add_clean_repository`] describes such a folder: a
//! new `config` with the settings that [`is_harmless`](super::config::is_harmless) lists, and links to what holds data.
//! It is a copy, so a process that changes the repository's own configuration meanwhile changes nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{Setting, UserSettings, bytes_of, draw, harmless_settings, is_conversion};
use super::{git_common, git_folder, git_top_level};
use crate::folder_content::FolderContent;

/// Names the entries of a repository's common folder that are data.
const LINKED: [&str; 8] =
    ["objects", "refs", "packed-refs", "reftable", "logs", "worktrees", "modules", "lfs"];
/// Names the settings of `core` by which git reads files beside the objects that say what is in them. Nobody checks
/// such a file against the commits and packs that it describes.
const UNCHECKED: [&str; 2] = ["commitGraph", "multiPackIndex"];

/// Where a repository is: the folder of one checkout, and the one that it shares with its worktrees.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct GitFolders {
    /// `.git`, or what a `.git` file names.
    pub(crate) own: PathBuf,
    /// Where references and objects are.
    pub(crate) common: PathBuf,
}

impl GitFolders {
    /// Finds the repository of the checkout that a folder lies in, and the checkout's top.
    pub(crate) fn find(folder: &Path) -> Option<(GitFolders, PathBuf)> {
        let top = git_top_level(folder)?.canonicalize().ok()?;
        Some((GitFolders::of(git_folder(&top)?)?, top))
    }

    /// Returns the links among what a repository shares with its worktrees, each with its target.
    pub(crate) fn links(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let named = LINKED.into_iter().chain(["refs/heads"]);
        named.filter_map(|name| Some((name.to_owned(), std::fs::read_link(self.common.join(name)).ok()?)))
    }

    /// Returns the folders of a repository by its own.
    pub(crate) fn of(own: PathBuf) -> Option<GitFolders> {
        let own = own.canonicalize().ok()?;
        let common = git_common(&own).canonicalize().ok()?;
        Some(GitFolders { own, common })
    }
}

/// Names the settings of a repository that are used.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RepositorySettings {
    settings: Vec<Setting>,
    ignored: Vec<u8>,
    /// The commits of a shallow clone whose parents it lacks, one in a line.
    shallow: Vec<u8>,
}

impl RepositorySettings {
    /// Reads them as they are at this moment.
    pub(crate) fn read(common: &Path) -> RepositorySettings {
        RepositorySettings {
            settings: harmless_settings(&common.join("config")),
            ignored: bytes_of(&common.join("info/exclude")),
            shallow: bytes_of(&common.join("shallow")),
        }
    }

    /// Returns these settings, but with the remotes, the line ends and the ignored files that there were before, and no commit without its
    /// parents that had them: a worker that leads `origin` elsewhere, or hides a file or a commit from git, changes nothing.
    /// Remotes that are new since then count, and so do parents that were fetched.
    pub(crate) fn with_those_before(mut self, before: &RepositorySettings) -> RepositorySettings {
        let remote = |setting: &Setting| match setting.section.as_str() {
            "remote" => setting.subsection.clone(),
            _ => None,
        };
        let converts = |setting: &Setting| {
            setting.section == "core" && setting.subsection.is_none() && is_conversion(&setting.name)
        };
        let known: Vec<String> = before.settings.iter().filter_map(remote).collect();
        let is_as_before = |setting: &Setting| {
            converts(setting) || remote(setting).is_some_and(|name| known.contains(&name))
        };
        self.settings.retain(|setting| !is_as_before(setting));
        self.settings.extend(before.settings.iter().filter(|setting| is_as_before(setting)).cloned());
        self.ignored.clone_from(&before.ignored);
        let lines = |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let known: Vec<Vec<u8>> = lines(&before.shallow);
        let still: Vec<Vec<u8>> = lines(&self.shallow);
        self.shallow = still.into_iter().filter(|line| known.contains(line)).flatten().collect();
        self
    }
}

/// Adds a folder that stands for a repository's common one; nothing of the repository changes.
pub(crate) fn add_clean_repository(folder: &mut FolderContent, common: &Path, settings: &RepositorySettings) {
    folder.file("config", draw(settings.settings.iter().chain(&unchecked_off())));
    folder.file("info/exclude", settings.ignored.clone());
    if !settings.shallow.is_empty() {
        folder.file("shallow", settings.shallow.clone());
    }
    for name in LINKED {
        let target = common.join(name);
        // A link to nothing would let git write where nothing of the repository is.
        if target.symlink_metadata().is_ok() {
            folder.link(name, target);
        }
    }
}

/// Describes a bare repository of planctl's own that finds the objects of another, by that one's common folder, and reads files
/// as that one does at this moment. Its own references and objects are nobody else's.
pub(crate) fn add_borrowing_repository(folder: &mut FolderContent, common: &Path) {
    let RepositorySettings { settings, ignored, shallow } = RepositorySettings::read(common);
    let is_of_references =
        |setting: &Setting| setting.section == "extensions" && setting.name == "refstorage";
    let settings = settings.iter().filter(|setting| !is_of_references(setting));
    folder.file("HEAD", "ref: refs/heads/none\n");
    folder.file("config", draw(settings.chain(&[core("bare", "true")])));
    folder.file("info/exclude", ignored);
    if !shallow.is_empty() {
        folder.file("shallow", shallow);
    }
    for name in ["refs", "worktrees"] {
        folder.folder(name);
    }
    folder.file("objects/info/alternates", [common.join("objects").as_os_str().as_bytes(), b"\n"].concat());
    match common.join("lfs") {
        files if files.symlink_metadata().is_ok() => folder.link("lfs", files),
        _ => drop(folder.folder("lfs")),
    }
}

/// Returns a setting of the section `core`.
fn core(name: &str, value: &str) -> Setting {
    Setting { section: "core".to_owned(), subsection: None, name: name.to_owned(), value: value.to_owned() }
}

fn unchecked_off() -> [Setting; 2] {
    UNCHECKED.map(|name| core(name, "false"))
}

/// Adds a user's configuration of planctl's own, beside the list of files that the user ignores, to a folder at `path`;
/// returns the variables with which git reads these, and neither the user's nor the system's. `trusted` are folders of other
/// users, perhaps.
pub(crate) fn add_user_settings(
    folder: &mut FolderContent,
    path: &Path,
    user: &UserSettings,
    trusted: &[&Path],
) -> [(OsString, OsString); 2] {
    let ignored = match user.ignored.is_empty() {
        true => PathBuf::from("/dev/null"),
        false => path.join("gitignore"),
    };
    if !user.ignored.is_empty() {
        folder.file("gitignore", user.ignored.clone());
    }
    // Git refuses to look at what belongs to somebody else, for that could start programs; here nothing is started.
    let trusted = trusted
        .iter()
        .map(|path| Setting { section: "safe".to_owned(), ..core("directory", &path.to_string_lossy()) });
    // A clone that a contract makes takes these files with it.
    let added = trusted.chain(unchecked_off()).chain([core("excludesFile", &ignored.to_string_lossy())]);
    let added: Vec<Setting> = added.collect();
    folder.file("gitconfig", draw(user.settings.iter().chain(&added)));
    [("GIT_CONFIG_GLOBAL".into(), path.join("gitconfig").into()), ("GIT_CONFIG_NOSYSTEM".into(), "1".into())]
}
