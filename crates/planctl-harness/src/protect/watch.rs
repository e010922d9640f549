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

use super::survey::{Survey, bytes_of_name};
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
    /// Begins to watch what is protected; what the step may change itself is left out.
    pub(crate) fn start(workspace: &Path, baseline: &Baseline) -> Watch {
        let mut watch = Watch {
            events: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok(),
            targets: BTreeMap::new(),
        };
        for (name, state) in &baseline.files {
            if state.kind == EntryKind::Absent || baseline.frees(name) {
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

    /// Names what was written, moved or swapped since the start, given what was there then and is there at the end.
    pub(crate) fn finish(self, before: &Survey, after: &Survey) -> BTreeSet<String> {
        let touched: BTreeSet<&str> = after.touched_since(before).collect();
        let owned = |touched: &BTreeSet<&str>| touched.iter().map(|name| (*name).to_owned()).collect();
        let Some(events) = self.events else { return owned(&touched) };
        let mut found = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(events, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                return before.entries.keys().cloned().collect();
            }
            let Some(target) = self.targets.get(&event.wd()) else { continue };
            let written = event.events().contains(ReadFlags::MODIFY);
            for name in &target.itself {
                // A mapped file is written without a notification, but it was opened for that and its times change. A
                // `touch` looks the same, so it counts as a write too.
                let is_mapped =
                    event.events().contains(ReadFlags::CLOSE_WRITE) && touched.contains(name.as_str());
                if written || is_mapped {
                    found.insert(name.clone());
                }
            }
            let part = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            if let Some(name) = part.and_then(|part| target.names.get(part)) {
                found.insert(name.clone());
            }
        }
        found
    }
}
