//! The kernel's notifications of files, for everything that this process watches: a user has few instances of them, 128 as a
//! rule, and a daemon runs more contracts than that needs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;

/// The most events that one listener keeps: those of some thousand calls of git.
const EVENTS_MAX: usize = 65_536;

/// The process's only instance, from the first listener on. Two that begin at once need no second one.
static SHARED: Mutex<Option<&'static Notifications>> = Mutex::new(None);

/// An instance, and who listens to it.
struct Notifications {
    events: OwnedFd,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    last: u64,
    /// By the kernel's number of a file or folder: the events that each listener asked for.
    watched: BTreeMap<i32, BTreeMap<u64, WatchFlags>>,
    heard: BTreeMap<u64, Heard>,
}

/// The events of one listener.
#[derive(Default)]
pub(super) struct Heard {
    /// Each with the kernel's number of the file or folder, and the name of the entry in it.
    pub(super) events: Vec<(i32, ReadFlags, Option<OsString>)>,
    /// Says whether there were more than could be kept.
    pub(super) has_gaps: bool,
}

/// Hears the events of the files and folders that it watches, from its beginning until it is dropped.
pub(super) struct Listener {
    shared: &'static Notifications,
    number: u64,
    watched: Vec<i32>,
}

impl Listener {
    /// Begins to listen, and watches nothing yet.
    ///
    /// # Errors
    ///
    /// Where the user, or the system, has no instance left.
    pub(super) fn begin() -> Result<Listener, Errno> {
        let shared = Notifications::shared()?;
        let mut listeners = shared.read();
        listeners.last += 1;
        let number = listeners.last;
        listeners.heard.insert(number, Heard::default());
        Ok(Listener { shared, number, watched: Vec::new() })
    }

    /// Watches a file or folder too; returns the kernel's number of it.
    ///
    /// # Errors
    ///
    /// Where it is not there or can't be read, or the user has no watch left.
    pub(super) fn add(&mut self, path: &Path, events: WatchFlags) -> Result<i32, Errno> {
        let mut listeners = self.shared.lock();
        let at = add_watch(&self.shared.events, path, events | WatchFlags::MASK_ADD)?;
        let listening = listeners.watched.entry(at).or_default();
        *listening.entry(self.number).or_insert_with(|| {
            self.watched.push(at);
            events
        }) |= events;
        Ok(at)
    }

    /// Returns all that happened since the beginning, or since the last call.
    pub(super) fn take(&self) -> Heard {
        self.shared.read().heard.get_mut(&self.number).map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = self.shared.lock();
        listeners.heard.remove(&self.number);
        for at in &self.watched {
            let Some(listening) = listeners.watched.get_mut(at) else { continue };
            listening.remove(&self.number);
            if listening.is_empty() {
                listeners.watched.remove(at);
                // One that is gone has no watch any more.
                remove_watch(&self.shared.events, *at).ok();
            }
        }
    }
}

impl Notifications {
    fn shared() -> Result<&'static Notifications, Errno> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        match *shared {
            Some(started) => Ok(started),
            None => Ok(*shared.insert(Notifications::start()?)),
        }
    }

    fn start() -> Result<&'static Notifications, Errno> {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let started: &'static Notifications =
            Box::leak(Box::new(Notifications { events, listeners: Mutex::default() }));
        // The kernel's own queue is short, and a contract may take an hour. Without the thread it is read at both ends of each.
        let is_there = || poll(&mut [PollFd::new(&started.events, PollFlags::IN)], None);
        let read = move || {
            while matches!(is_there(), Ok(_) | Err(Errno::INTR)) {
                drop(started.read());
            }
        };
        std::thread::Builder::new().name("file-events".to_owned()).spawn(read).ok();
        Ok(started)
    }

    /// Locks the list. No panic leaves it half changed.
    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands all that happened until now to those who listen.
    fn read(&self) -> MutexGuard<'_, Listeners> {
        let mut listeners = self.lock();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(&self.events, &mut buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
            listeners.tell(event.wd(), event.events(), name);
        }
        listeners
    }
}

impl Listeners {
    fn tell(&mut self, at: i32, flags: ReadFlags, name: Option<OsString>) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.heard.values_mut().for_each(|heard| heard.has_gaps = true);
        }
        for (number, events) in self.watched.get(&at).into_iter().flatten() {
            let Some(heard) = self.heard.get_mut(number) else { continue };
            if events.intersects(WatchFlags::from_bits_retain(flags.bits())) {
                heard.has_gaps |= heard.events.len() >= EVENTS_MAX;
                if !heard.has_gaps {
                    heard.events.push((at, flags, name.clone()));
                }
            }
        }
    }
}
