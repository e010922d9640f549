//! Gives a command users of its own (tier 2): 65,536 ids of the host that own nothing and that nobody else has.
//!
//! The command's user namespace maps its ids to that range, so on the host its root is a user without rights. The files
//! that it may use keep their owners: their trees are attached by idmapped mounts, which only the host's root can make.
//! So the guardian makes them, and the first process of the namespaces attaches them.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;
use rustix::fs::{FileType, fstat};

use super::cgroups::TASKS_PER_PROCESS;
use super::namespaces::{self, Tree};
use super::tree;
use super::wire::{Confinement, Limits};

/// How many ids a command has.
const IDS: u32 = 65_536;
/// Where the ranges begin: above what systemd gives to containers, and directory services to people.
const FIRST: u32 = 0x7800_0000;
/// How many ranges there are; at `0x7FFE_0000` systemd's own begin again.
const SLOTS: u32 = 0x7FE;
/// A file of which each command locks one byte, so that all planctls of a host share the ranges. The kernel frees the byte
/// with the last process that has the file open, however that ends.
const LOCKS: &str = "/run/planctl-users";
/// Files that give ids to others: of each line, the fields with a first id, and the field with how many.
const NAMED: [(&str, &[usize], Option<usize>); 3] =
    [("/etc/subuid", &[1], Some(2)), ("/etc/subgid", &[1], Some(2)), ("/etc/passwd", &[2, 3], None)];
/// The host's ids that one command has for as long as this lives.
pub(super) struct Range {
    first: u32,
    _lock: File,
}

/// All that a command with users of its own is started with.
pub(super) struct Users {
    pub(super) range: Range,
    /// Writable and shown trees, to be attached by the first process.
    pub(super) trees: Vec<Tree>,
    /// Folders that only their owner on the host can enter, and in which a tree is to be attached.
    pub(super) closed: Vec<CString>,
}

impl Range {
    /// Takes a range that nobody has.
    fn acquire() -> io::Result<Range> {
        let lock = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(LOCKS)?;
        let mut named = Vec::new();
        for (path, firsts, count) in NAMED {
            // A host without the file gives no ids away in it.
            let text = std::fs::read(path).unwrap_or_default();
            named.extend(ids_in(&String::from_utf8_lossy(&text), firsts, count));
        }
        for slot in 0..SLOTS {
            let first = FIRST + slot * IDS;
            if !is_named(&named, first) && lock_byte(&lock, slot)? {
                return Ok(Range { first, _lock: lock });
            }
        }
        Err(io::Error::from_raw_os_error(libc::EUSERS))
    }

    /// Says which ids of the host the command's own are, in the words of `uid_map` and `gid_map`.
    pub(super) fn map(&self) -> String {
        format!("0 {} {IDS}\n", self.first)
    }

    /// Says the same of ids on disk, where their owner is to be the command's root. Root on disk takes the owner's place: its
    /// files in the workspace, as planctl's own git makes them, stay the command's to write.
    fn map_of_files(&self, owner: u32) -> String {
        let first = self.first;
        if owner == 0 {
            return self.map();
        }
        let place = owner.min(IDS - 1);
        let lines =
            [(owner, 0, 1), (0, place, 1), (1, 1, place - 1), (place + 1, place + 1, IDS - 1 - place)];
        let lines = lines.iter().filter(|(_, _, count)| *count > 0);
        lines.map(|(disk, inside, count)| format!("{disk} {} {count}\n", first + inside)).collect()
    }
}

/// Locks one byte of the file; says whether it was free.
fn lock_byte(file: &File, byte: u32) -> io::Result<bool> {
    // SAFETY: all-zero is a valid lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte.into();
    lock.l_len = 1;
    // SAFETY: the descriptor is open and the structure is the kernel's own.
    match namespaces::check(
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }.into(),
    ) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lists ids that are somebody's, each as the first one and how many.
fn ids_in(text: &str, firsts: &[usize], count: Option<usize>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let number = |field: usize| fields.get(field).and_then(|field| field.trim().parse::<u64>().ok());
        let count = count.map_or(Some(1), number);
        found.extend(firsts.iter().filter_map(|field| Some((number(*field)?, count?))));
    }
    found
}

/// Says whether an id of the range that begins with this one is somebody's.
fn is_named(named: &[(u64, u64)], first: u32) -> bool {
    let (from, to) = (u64::from(first), u64::from(first) + u64::from(IDS));
    named.iter().any(|(first, count)| *first < to && from < first.saturating_add(*count))
}

impl Users {
    /// Takes a range and makes the trees that the confinement names usable by it.
    pub(super) fn prepare(confinement: &Confinement, streams: &[OwnedFd; 3]) -> io::Result<Users> {
        let range = Range::acquire()?;
        let trees = namespaces::copy_trees(confinement)?;
        let mut owners: BTreeMap<(u32, u32), OwnedFd> = BTreeMap::new();
        for tree in &trees {
            let found = fstat(&tree.copy)?;
            let owner = (found.st_uid, found.st_gid);
            let namespace = match owners.entry(owner) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(create_user_namespace(
                    &range.map_of_files(owner.0),
                    &range.map_of_files(owner.1),
                )?),
            };
            tree.map_owners(namespace.as_fd())?;
        }
        for stream in streams {
            // A process that opens /dev/stderr opens the pipe anew, as a user.
            if FileType::from_raw_mode(fstat(stream)?.st_mode) == FileType::Fifo {
                // SAFETY: the descriptor is open.
                namespaces::check(
                    unsafe { libc::fchown(stream.as_raw_fd(), range.first, range.first) }.into(),
                )?;
            }
        }
        let closed = inaccessible_folders(&trees)?;
        Ok(Users { range, trees, closed })
    }

    /// Clones this process as `clone` does: returns 0 in the new one, which is a user of the range from its beginning, and
    /// its id here.
    ///
    /// The namespace belongs to who makes it, and the kernel counts all processes in it against that user's limit, whichever
    /// users they become inside. So a process between makes it, which is of the range already.
    pub(super) fn clone_first(&self, flags: i32, limits: &Limits) -> io::Result<i32> {
        let (mut told, mut tell) = io::pipe()?;
        let middle = clone(libc::SIGCHLD)?;
        if middle == 0 {
            let process = self.enter(limits).and_then(|()| clone(flags | libc::CLONE_PARENT));
            if matches!(process, Ok(0)) {
                return Ok(0);
            }
            let number = process.unwrap_or_else(|error| -error.raw_os_error().unwrap_or(libc::EPERM));
            // A guardian that doesn't read is gone, and the first process goes with it.
            tell.write_all(&number.to_le_bytes()).ok();
            // SAFETY: ends the process without the guardian's exit handlers.
            unsafe { libc::_exit(0) }
        }
        drop(tell);
        let mut bytes = [0; 4];
        let read = told.read_exact(&mut bytes);
        kill_and_reap(middle);
        read?;
        match i32::from_le_bytes(bytes) {
            errno @ ..0 => Err(io::Error::from_raw_os_error(-errno)),
            process => Ok(process),
        }
    }

    /// Makes this process the first user of the range, with the rights of the host's root for a moment yet.
    fn enter(&self, limits: &Limits) -> io::Result<()> {
        let id = self.range.first;
        // SAFETY: system calls that change this process alone; the list of groups is empty.
        unsafe {
            let keeps_rights = libc::SECBIT_NO_SETUID_FIXUP as libc::c_ulong;
            namespaces::check(libc::prctl(libc::PR_SET_SECUREBITS, keeps_rights, 0, 0, 0).into())?;
            namespaces::check(libc::setgroups(0, std::ptr::null()).into())?;
            namespaces::check(libc::setresgid(id, id, id).into())?;
            namespaces::check(libc::setresuid(id, id, id).into())?;
            if let Some(processes) = limits.processes {
                let tasks = processes.saturating_mul(TASKS_PER_PROCESS);
                let both = libc::rlimit { rlim_cur: tasks, rlim_max: tasks };
                namespaces::check(libc::setrlimit(libc::RLIMIT_NPROC, &raw const both).into())?;
            }
        }
        Ok(())
    }
}

/// Finds the outermost folder around each tree that others than its owner can't enter. To the command nothing in it is
/// there, so an empty folder in its place takes nothing away, and the tree can be reached.
fn inaccessible_folders(trees: &[Tree]) -> io::Result<Vec<CString>> {
    let mut found = BTreeSet::new();
    for tree in trees {
        let path = Path::new(OsStr::from_bytes(tree.path.to_bytes()));
        let mut around: Vec<&Path> = path.ancestors().skip(1).collect();
        around.reverse();
        let is_tree =
            |folder: &Path| trees.iter().any(|tree| tree.path.to_bytes() == folder.as_os_str().as_bytes());
        for folder in around.into_iter().take_while(|folder| !is_tree(folder)) {
            if folder.metadata()?.mode() & libc::S_IXOTH == 0 {
                found.insert(CString::new(folder.as_os_str().as_bytes())?);
                break;
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Makes a user namespace with these maps in which nobody lives.
fn create_user_namespace(users: &str, groups: &str) -> io::Result<OwnedFd> {
    let (mut wait, end) = io::pipe()?;
    let process = clone(libc::CLONE_NEWUSER | libc::SIGCHLD)?;
    if process == 0 {
        drop(end);
        // The end comes when the guardian drops its side, or is gone.
        wait.read_exact(&mut [0]).ok();
        // SAFETY: ends the process without the guardian's exit handlers.
        unsafe { libc::_exit(0) }
    }
    let made = std::fs::write(format!("/proc/{process}/uid_map"), users)
        .and_then(|()| std::fs::write(format!("/proc/{process}/gid_map"), groups))
        .and_then(|()| File::open(format!("/proc/{process}/ns/user")));
    drop(end);
    kill_and_reap(process);
    made.map(OwnedFd::from)
}

/// Clones this process, which has one thread; the child goes on with a copy of its memory.
pub(super) fn clone(flags: i32) -> io::Result<i32> {
    // SAFETY: without a stack of its own the child goes on with a copy of ours, as after fork.
    let process = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    namespaces::check(process)?;
    Ok(i32::try_from(process).unwrap_or(i32::MAX))
}

/// Waits for a child that is about to end.
fn kill_and_reap(process: i32) {
    tree::signal(process, rustix::process::Signal::KILL);
    // SAFETY: no status is wanted.
    unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range() -> Range {
        Range { first: 1_000_000, _lock: tempfile::tempfile().expect("a file") }
    }

    #[test]
    fn the_owner_on_disk_is_root_inside_and_every_id_has_one_place() {
        for owner in [0, 1, 1000, 65_534, 65_535, 65_536, 4_000_000] {
            let mut disk = Vec::new();
            let mut host = Vec::new();
            for line in range().map_of_files(owner).lines() {
                let numbers: Vec<u32> =
                    line.split(' ').map(|number| number.parse().expect("a number")).collect();
                disk.extend(numbers[0]..numbers[0] + numbers[2]);
                host.extend(numbers[1]..numbers[1] + numbers[2]);
            }
            let at = disk.iter().position(|id| *id == owner).expect("the owner has a place");
            assert_eq!(host[at], 1_000_000, "{owner}");
            assert!(disk.contains(&0), "{owner}");
            for ids in [&mut disk, &mut host] {
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), 65_536, "{owner}");
            }
            assert_eq!((host[0], host[65_535]), (1_000_000, 1_065_535), "{owner}");
        }
    }

    #[test]
    fn ranges_with_ids_of_others_are_found() {
        let [(_, firsts, count), _, (_, users, _)] = NAMED;
        let mut named = ids_in("ann:2013200385:65536\nbroken:x:1\n", firsts, count);
        assert!(is_named(&named, FIRST), "its end lies in the first range");
        assert!(!is_named(&named, FIRST + IDS));
        named.extend(ids_in("bob:x:1000:2013396991:Bob:/:/bin/sh\n", users, None));
        assert_eq!(named[1..], [(1000, 1), (2_013_396_991, 1)]);
        assert!(is_named(&named, FIRST + IDS), "the last id of the second range");
        assert!(!is_named(&named, FIRST + 2 * IDS));
    }

    #[test]
    fn a_byte_is_locked_once_until_its_holder_is_gone() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let (one, other) = (file.reopen().expect("open"), file.reopen().expect("open"));
        assert!(lock_byte(&one, 3).expect("a lock") && lock_byte(&other, 4).expect("a lock"));
        assert!(!lock_byte(&other, 3).expect("a lock"));
        drop(one);
        assert!(lock_byte(&other, 3).expect("a lock"));
    }
}
