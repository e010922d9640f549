//! Notices what is done to protected entries while a contract runs, also when it is undone before the end (cheat 48).
//!
//! Code under test runs inside of the contract with the user's rights, so it can swap a test and put it back. Two surveys
//! tell nothing of that where a folder on the way was swapped. The kernel's notifications do, and they also tell a write
//! from a mere `chmod`, which contracts do to their own scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use super::survey::{Survey, bytes_of_name, name_of};
use super::{Baseline, EntryKind};

/// Watches the protected entries of a workspace, and the folders on the way to them.
pub(crate) struct Watch {
    /// Nothing where the system has no room for another watch: then only the stamps of two surveys tell.
    events: Option<OwnedFd>,
    /// By watch: the entry itself, or names in a folder with the entries below each.
    targets: BTreeMap<i32, Target>,
}

#[derive(Default)]
struct Target {
    itself: BTreeSet<String>,
    names: BTreeMap<OsString, String>,
}

impl Watch {
    /// Begins to watch the protected entries, without those that the step may change itself.
    pub(crate) fn start(workspace: &Path, baseline: &Baseline) -> Watch {
        let mut watch = Watch {
            events: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok(),
            targets: BTreeMap::new(),
        };
        for (name, state) in &baseline.files {
            if state.kind == EntryKind::Absent || baseline.may_change(name) {
                continue;
            }
            let paths = [Some(name), state.at.as_ref()];
            for path in paths.into_iter().flatten() {
                watch.add(workspace, Path::new(&bytes_of_name(path)), name);
            }
        }
        watch
    }

    fn add(&mut self, workspace: &Path, path: &Path, name: &str) {
        let itself = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        if let Some(target) = self.target(&workspace.join(path), itself) {
            target.itself.insert(name.to_owned());
        }
        let moves = WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::DELETE;
        let mut folder = PathBuf::from(workspace);
        for part in path {
            if let Some(target) = self.target(&folder, moves) {
                target.names.entry(part.to_owned()).or_insert_with(|| name.to_owned());
            }
            folder.push(part);
        }
    }

    fn target(&mut self, path: &Path, flags: WatchFlags) -> Option<&mut Target> {
        let events = self.events.as_ref()?;
        match add_watch(events, path, flags | WatchFlags::MASK_ADD) {
            Ok(number) => Some(self.targets.entry(number).or_default()),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => None,
            Err(_) => {
                // A watch with gaps is none.
                self.events = None;
                None
            }
        }
    }

    /// Begins to watch whether folders of a workspace are moved.
    pub(crate) fn watch_moves<'a>(workspace: &Path, folders: impl Iterator<Item = &'a Path>) -> Watch {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        let mut watch = Watch { events, targets: BTreeMap::new() };
        for folder in folders {
            let (Some(around), Some(name)) = (folder.parent(), folder.file_name()) else { continue };
            if let Some(target) =
                watch.target(&workspace.join(around), WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO)
            {
                target.names.insert(name.to_owned(), name_of(folder));
            }
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
    pub(crate) fn finish(self, before: &Survey, after: &Survey) -> BTreeSet<String> {
        let touched: BTreeSet<&str> = after.touched_since(before).collect();
        if self.events.is_none() {
            return touched.into_iter().map(ToOwned::to_owned).collect();
        }
        let mut found = BTreeSet::new();
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
            found.extend(name.and_then(|name| target.names.get(name)).cloned());
        });
        if is_whole { found } else { before.entries.keys().cloned().collect() }
    }

    /// Reads what happened; returns whether that is all that did.
    fn read_events(self, mut see: impl FnMut(ReadFlags, Option<&OsStr>, &Target)) -> bool {
        let Some(events) = self.events else { return false };
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(events, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                return false;
            }
            let Some(target) = self.targets.get(&event.wd()) else { continue };
            see(event.events(), event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())), target);
        }
        true
    }
}
