//! Notices what is done, while a contract runs, to what its git reads and to the programs that planctl puts before all others, also
//! when it is undone before the end.
//!
//! Code under test runs inside of the contract with the user's rights, and what it does there counts for the commands that come
//! after it. It can lead them to another repository, or to other settings, put another object in the place of one, or another program
//! in the place of `git` and `grep`. Honest commands do none of that: git adds objects, writes each once, and packs and removes some.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use planctl_engine::{Contract, Ending, Evidence};
use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::watch::{MOVES, Watch};
use crate::git::clean::GitFolders;
use crate::git::front::GitFiles;
use crate::git::newer::{is_folder_of_objects, is_object_file, object_files_of, object_folders_of};

/// How many files of objects are watched by themselves: a watch takes 5 µs, and the system has a few thousand at least.
const OBJECT_FILES_MAX: usize = 2_000;
/// The events of a file's content.
const WRITES: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);

/// The files and folders that git reads in a repository's folder, without the ends of a shallow clone, which a contract may move.
const READ: [&str; 16] = [
    "config",
    "info",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "remotes",
    "branches",
    "objects",
    "refs",
    "packed-refs",
    "reftable",
    "logs",
    "worktrees",
    "modules",
    "lfs",
];

/// Watches a contract's git and what it reads, from the beginning of the contract to its end.
pub(crate) struct Exchanges {
    watch: Watch,
    bin: PathBuf,
    settings: PathBuf,
}

/// The events of a contract's time.
#[derive(Default, Debug)]
pub(crate) struct Exchanged {
    /// Says whether the contract asked git for anything; true where nobody can tell.
    pub(crate) has_asked_git: bool,
    /// A program that planctl gives to contracts.
    pub(crate) program: Option<String>,
    /// A part of a repository.
    pub(crate) repository: Option<String>,
}

impl Exchanges {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// Says what is missing for that.
    pub(crate) fn begin(files: &GitFiles) -> Result<Exchanges, String> {
        let GitFiles { bin, settings, top, repositories } = files;
        let mut watch = Watch::new();
        add_settings(&mut watch, settings, repositories.len());
        for path in [bin, top] {
            watch.add_way(path, &path.display().to_string());
        }
        watch.add_entry(bin);
        watch.add_path(bin, MOVES);
        watch.add_path(&bin.join("git"), WRITES | WatchFlags::OPEN);
        watch.add_entry(&top.join(".git"));
        if top.join(".git").is_file() {
            watch.add_path(&top.join(".git"), WRITES);
        }
        for GitFolders { own, common } in repositories {
            let objects = common.join("objects");
            for path in [own, common, &objects] {
                watch.add_entry(path);
            }
            for file in [own.join("commondir"), objects.join("info/alternates")] {
                watch.add_entry(&file);
                watch.add_path(&file, WRITES);
            }
            // A folder that comes later has objects alone that were not there before.
            for folder in object_folders_of(&objects) {
                watch.add_entry(&folder);
                watch.add_path(&folder, MOVES | WRITES);
            }
            // A write by another name of a file is no event in its folder.
            for file in object_files_of(&objects).take(OBJECT_FILES_MAX) {
                watch.add_path_if_room(&file, WRITES);
            }
        }
        watch.require_room()?;
        Ok(Exchanges { watch, bin: bin.clone(), settings: settings.clone() })
    }

    /// Says what happened since.
    pub(crate) fn finish(self) -> Exchanged {
        let Exchanges { watch, bin, settings } = self;
        let mut found = Exchanged::default();
        let mut seen: BTreeMap<PathBuf, Vec<ReadFlags>> = BTreeMap::new();
        let is_whole = watch.read_events(|flags, name, target| {
            found.has_asked_git |= flags.contains(ReadFlags::OPEN);
            let is_written = flags.intersects(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE);
            let mut note = |path: PathBuf| seen.entry(path).or_default().push(flags);
            if let Some(path) = name.and_then(|name| target.names.get(name)) {
                note(path.into());
            }
            for at in &target.paths {
                match name.map(|name| at.join(name)) {
                    None if is_written => note(at.clone()),
                    Some(path) if path.starts_with(&bin) || is_object_file(&path) => note(path),
                    Some(path) if path.starts_with(&settings) && is_index(&path) => note(path),
                    None | Some(_) => {}
                }
            }
        });
        for path in seen.iter().filter(|(path, seen)| !is_of_git(path, seen)).map(|(path, _)| path) {
            let place = if path.starts_with(&bin) { &mut found.program } else { &mut found.repository };
            *place = Some(path.display().to_string());
        }
        if !is_whole {
            found.has_asked_git = true;
            found.repository = Some("more of git's folders than can be followed".to_owned());
        }
        found
    }
}

/// Begins to watch the settings of a contract's git: what planctl put there, what git reads besides, and the indexes of its commands.
fn add_settings(watch: &mut Watch, settings: &Path, repositories: usize) {
    let mut read = vec![settings.to_owned(), settings.join("gitconfig"), settings.join("gitignore")];
    for clean in (0..repositories).map(|number| settings.join(number.to_string())) {
        watch.add_path(&clean, MOVES | WRITES);
        read.extend(READ.map(|name| clean.join(name)));
        read.push(clean);
    }
    for path in &read {
        watch.add_entry(path);
        if path.is_file() {
            watch.add_path(path, WRITES);
        }
    }
}

/// Says whether a path is that of an index of one command.
fn is_index(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.starts_with("index.") && !name.ends_with(".lock")
}

/// Says whether that is all that the `git` of a contract does to the index of a command: it is moved to its place as often as its name
/// says, and removed.
fn is_of_front(path: &Path, seen: &[ReadFlags]) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let moves = name.split('.').nth(1).and_then(|moves| moves.parse().ok()).unwrap_or(0);
    let (moved, rest) = seen.split_at(seen.len().min(moves));
    moved.iter().all(|flags| flags.contains(ReadFlags::MOVED_TO)) && matches!(rest, [] | [ReadFlags::DELETE])
}

/// Says whether that is all that git itself does to a file or folder of objects: it writes each once, and packs and removes them when
/// it clears up.
fn is_of_git(path: &Path, seen: &[ReadFlags]) -> bool {
    let is_file = is_object_file(path);
    let is_loose = is_file && path.extension().is_none();
    match seen {
        _ if is_index(path) => is_of_front(path, seen),
        [one] if is_file => one.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::DELETE),
        [first, last] if is_loose => first.contains(ReadFlags::CREATE) && last.contains(ReadFlags::DELETE),
        [one] => is_folder_of_objects(path) && one.contains(ReadFlags::DELETE),
        _ => false,
    }
}

impl Exchanged {
    /// Says why the contract's exit code proves nothing; `None` where it does.
    pub(crate) fn describe(&self, contract: &Contract, evidence: &Evidence) -> Option<String> {
        // One that fails passes nothing.
        let is_expected = evidence.ending == Ending::Exited { code: i32::from(contract.expect) };
        if !is_expected || !evidence.tampered.is_empty() {
            return None;
        }
        let (path, what) = match (&self.program, &self.repository) {
            (Some(path), _) => (path, "which planctl puts before other programs"),
            (None, Some(path)) if self.has_asked_git => (path, "by which the contract's git goes"),
            (None, _) => return None,
        };
        Some(format!("{path}, {what}, changed while the contract ran"))
    }
}
