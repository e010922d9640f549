//! Notices what is done to protected entries while a contract runs, also when it is undone before the end (cheat 48).
//!
//! Code under test runs inside of the contract with the user's rights, so it can swap a test and put it back. Two surveys
//! tell nothing of that where a folder on the way was swapped. The kernel's notifications do, and they also tell a write
//! from a mere `chmod`, which contracts do to their own scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use planctl_glob::is_glob;
use rustix::fs::inotify::{ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::notifications::Listener;
use super::survey::{Pattern, Survey, bytes_of_name, name_of};
use super::{Baseline, EntryKind, FileState};

/// The most folders in which new entries that match a pattern are watched for: the system has a few thousand watches at least.
const PATTERN_FOLDERS_MAX: usize = 2_000;
/// The events of entries that come to a folder or leave it.
pub(super) const MOVES: WatchFlags =
    WatchFlags::MOVED_FROM.union(WatchFlags::MOVED_TO).union(WatchFlags::CREATE).union(WatchFlags::DELETE);

/// Watches the protected entries of a workspace, and the folders on the way to them.
pub(crate) struct Watch {
    /// Nothing where something can't be watched: then only the stamps of two surveys tell.
    events: Result<Listener, Errno>,
    /// By watch: the entry itself, or names in a folder with the entries below each.
    targets: BTreeMap<i32, Target>,
    /// The watch of each folder of names, and for which events: most folders have many names.
    folders: BTreeMap<OsString, (i32, WatchFlags)>,
    patterns: Vec<Pattern>,
}

#[derive(Default)]
pub(super) struct Target {
    itself: BTreeSet<String>,
    /// By the name of an entry in the folder.
    pub(super) names: BTreeMap<OsString, String>,
    /// The watched file or folder itself, of which every event counts.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Where it lies, and the place of a pattern that entries in it may match.
    patterns: BTreeSet<(PathBuf, usize)>,
}

impl Watch {
    /// Begins to watch the protected entries, without those that the step may change itself.
    pub(crate) fn start(workspace: &Path, baseline: &Baseline) -> Watch {
        let mut watch = Watch::new();
        let is_watched = |(name, state): &(&String, &FileState)| {
            state.kind != EntryKind::Absent && !baseline.may_change(name)
        };
        let watched = || baseline.files.iter().filter(is_watched);
        if let Some((name, _)) = watched().next() {
            watch.add_way(workspace, name);
        }
        for (name, state) in watched() {
            let paths = [Some(name), state.at.as_ref()];
            for path in paths.into_iter().flatten() {
                watch.add(workspace, Path::new(&bytes_of_name(path)), name);
            }
        }
        watch
    }

    /// Watches nothing yet.
    pub(super) fn new() -> Watch {
        let events = Listener::begin();
        Watch { events, targets: BTreeMap::new(), folders: BTreeMap::new(), patterns: Vec::new() }
    }

    /// Begins to watch for entries that would decide the contract and that a survey did not find (sec-42): of one that comes
    /// and goes, a second survey finds nothing. In a folder that the contract itself makes, and takes away, they stay unseen.
    pub(crate) fn add_absent(&mut self, workspace: &Path, baseline: &Baseline, survey: &Survey) {
        let (patterns, names) = baseline.deciding.keys().partition::<Vec<_>, _>(|name| is_glob(name));
        for name in names {
            let path = PathBuf::from(bytes_of_name(name));
            let (Some(folder), Some(entry)) = (path.parent(), path.file_name()) else { continue };
            self.add_name(&workspace.join(folder), entry, MOVES, || name.clone());
        }
        let targets_max = self.targets.len() + PATTERN_FOLDERS_MAX;
        let walked = |glob: &&String| Some((Pattern::read(glob).ok()?, survey.folders.get(*glob)?));
        for (pattern, folders) in patterns.iter().filter_map(walked) {
            let at = self.patterns.len();
            self.patterns.push(pattern);
            for folder in folders {
                if self.targets.len() >= targets_max {
                    return;
                }
                // There may be more of them than the system has watches for: the others stay.
                if let Ok(number) = self.watch(&workspace.join(folder), MOVES) {
                    self.targets.entry(number).or_default().patterns.insert((folder.clone(), at));
                }
            }
        }
    }

    fn add(&mut self, workspace: &Path, path: &Path, name: &str) {
        let itself = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        if let Some(target) = self.target(&workspace.join(path), itself) {
            target.itself.insert(name.to_owned());
        }
        let mut folder = PathBuf::from(workspace);
        for part in path {
            self.add_name(&folder, part, MOVES, || name.to_owned());
            folder.push(part);
        }
    }

    fn target(&mut self, path: &Path, flags: WatchFlags) -> Option<&mut Target> {
        let number = self.watch_if_there(path, flags)?;
        Some(self.targets.entry(number).or_default())
    }

    fn watch_if_there(&mut self, path: &Path, flags: WatchFlags) -> Option<i32> {
        match self.watch(path, flags) {
            Ok(number) => Some(number),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(error) => {
                // A watch with gaps is none.
                self.events = Err(error);
                None
            }
        }
    }

    fn watch(&mut self, path: &Path, flags: WatchFlags) -> Result<i32, Errno> {
        self.events.as_mut().map_err(|error| *error)?.add(path, flags)
    }

    /// Begins to watch a file, or a folder and the entries in it, if it is there.
    pub(super) fn add_path(&mut self, path: &Path, events: WatchFlags) {
        if let Some(target) = self.target(path, events) {
            target.paths.insert(path.to_owned());
        }
    }

    /// Begins to watch a file, unless the system has no room for it.
    pub(super) fn add_path_if_room(&mut self, path: &Path, events: WatchFlags) {
        if let Ok(number) = self.watch(path, events) {
            self.targets.entry(number).or_default().paths.insert(path.to_owned());
        }
    }

    /// Begins to watch whether a file or folder comes to its folder or leaves it.
    pub(super) fn add_entry(&mut self, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        self.add_name(folder, name, MOVES, || path.display().to_string());
    }

    /// Begins to watch whether a folder, or one above it, is moved, which counts as an event of an entry. Those above that can't be
    /// read stay unseen.
    pub(super) fn add_way(&mut self, path: &Path, entry: &str) {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for path in path.ancestors() {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
            if let Ok(number) = self.watch(folder, WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO) {
                let names = &mut self.targets.entry(number).or_default().names;
                names.entry(name.to_owned()).or_insert_with(|| entry.to_owned());
            }
        }
    }

    /// Begins to watch for events at a name in a folder, which belong to an entry.
    fn add_name(&mut self, folder: &Path, name: &OsStr, events: WatchFlags, entry: impl FnOnce() -> String) {
        let known = self.folders.get(folder.as_os_str()).filter(|(_, watched)| watched.contains(events));
        let number = match known {
            Some((number, _)) => *number,
            None => {
                let Some(number) = self.watch_if_there(folder, events) else { return };
                self.folders.insert(folder.into(), (number, events));
                number
            }
        };
        self.targets.entry(number).or_default().names.entry(name.to_owned()).or_insert_with(entry);
    }

    /// Refuses to go on where the system has no room for these watches.
    ///
    /// # Errors
    ///
    /// Says, as something that is missing, which limit has to be raised.
    pub(super) fn require_room(&self) -> Result<(), String> {
        let limit = match &self.events {
            Err(Errno::MFILE) => "fs.inotify.max_user_instances",
            Err(Errno::NOSPC) => "fs.inotify.max_user_watches",
            Ok(_) | Err(_) => return Ok(()),
        };
        Err(format!("room to watch files while a contract runs; raise `{limit}` by sysctl"))
    }

    /// Begins to watch whether folders of a workspace are moved.
    pub(crate) fn watch_moves<'a>(workspace: &Path, folders: impl Iterator<Item = &'a Path>) -> Watch {
        let mut watch = Watch::new();
        for folder in folders {
            let (Some(around), Some(name)) = (folder.parent(), folder.file_name()) else { continue };
            let moves = WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
            watch.add_name(&workspace.join(around), name, moves, || name_of(folder));
        }
        watch
    }

    /// Names the folders that were moved since the start. Where too much happened to be told, it names none.
    pub(crate) fn moved_folders(self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.read_events(|_, name, target| {
            found.extend(name.and_then(|name| target.names.get(name)).cloned())
        });
        found
    }

    /// Names what was written, moved or swapped since the start, given what was there then and is there at the end.
    pub(crate) fn finish(mut self, before: &Survey, after: &Survey) -> BTreeSet<String> {
        let touched: BTreeSet<&str> = after.touched_since(before).collect();
        if self.events.is_err() {
            return touched.into_iter().map(ToOwned::to_owned).collect();
        }
        let mut found = BTreeSet::new();
        let patterns = std::mem::take(&mut self.patterns);
        let is_whole = self.read_events(|flags, name, target| {
            let is_written = flags.contains(ReadFlags::MODIFY);
            for name in &target.itself {
                // A mapped file is written without a notification, but it was opened for that and its times change. A
                // `touch` looks the same, so it counts as a write too.
                let is_mapped = flags.contains(ReadFlags::CLOSE_WRITE) && touched.contains(name.as_str());
                if is_written || is_mapped {
                    found.insert(name.clone());
                }
            }
            let Some(name) = name else { return };
            found.extend(target.names.get(name).cloned());
            let paths = target.patterns.iter().map(|(folder, at)| (folder.join(name), at));
            found.extend(
                paths.filter(|(path, at)| patterns[**at].matches(path)).map(|(path, _)| name_of(&path)),
            );
        });
        if is_whole { found } else { before.entries.keys().cloned().collect() }
    }

    /// Reads what happened; returns whether that is all that did.
    pub(super) fn read_events(self, mut see: impl FnMut(ReadFlags, Option<&OsStr>, &Target)) -> bool {
        let Ok(listener) = &self.events else { return false };
        let heard = listener.take();
        for (at, flags, name) in &heard.events {
            if let Some(target) = self.targets.get(at) {
                see(*flags, name.as_deref(), target);
            }
        }
        !heard.has_gaps
    }
}
