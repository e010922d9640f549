//! Gives a command a cgroup of its own, where systemd delegated one to planctl: the kernel then holds the limits of its memory
//! and its processes, which a look every now and then comes too late for.
//!
//! A group of the unified hierarchy that has processes can't give controllers to the groups beneath it. So planctl's own
//! processes move into one beneath the delegated group, beside those of the commands.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::wire::Limits;

/// The attribute of a group that systemd sets where a unit says `Delegate=`.
const DELEGATED: &str = "user.delegate";
/// The controllers that commands are limited by.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The group of planctl's own processes.
const OWN: &str = "planctl";
/// How the groups of commands begin; the guardian's process id follows.
const COMMAND: &str = "planctl-command-";
/// The kernel's limit counts threads as well, and the guardian, which names the limit, has to see more processes than
/// it allows: so the kernel's is so many times that of the guardian.
pub(super) const TASKS_PER_PROCESS: u64 = 2;

/// A delegated cgroup.
pub(super) struct Delegated {
    folder: PathBuf,
    /// The controllers that it has.
    pub(super) controllers: String,
}

impl Delegated {
    /// Looks for the group that this process is in, or the one around it, to be delegated.
    ///
    /// # Errors
    ///
    /// Says why none is.
    pub(super) fn find() -> Result<Delegated, &'static str> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or("no unified hierarchy")?;
        let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let mount = mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists());
        let own = mount.ok_or("no unified hierarchy")?.join(own);
        let mut near = own.ancestors().take(2);
        let folder = near.find(|group| is_delegated(group)).ok_or("not delegated (Delegate= of systemd)")?;
        let controllers = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        if !CONTROLLERS.iter().all(|name| controllers.split_ascii_whitespace().any(|found| found == *name)) {
            return Err("delegated without memory and pids");
        }
        let is_ours = |name: &str| rustix::fs::access(folder.join(name), Access::WRITE_OK).is_ok();
        if !is_ours("cgroup.procs") || !is_ours("cgroup.subtree_control") {
            return Err("delegated to another user");
        }
        Ok(Delegated { folder: folder.to_owned(), controllers: controllers.trim().to_owned() })
    }

    /// Makes the group ready for those of commands, and removes what a crash left of them.
    pub(super) fn prepare(&self) -> io::Result<()> {
        let own = self.folder.join(OWN);
        make(&own)?;
        let processes = || fs::read_to_string(self.folder.join("cgroup.procs"));
        // The next look finds processes that were forked during this one.
        for _ in 0..16 {
            let processes = processes()?;
            if processes.is_empty() {
                break;
            }
            for process in processes.lines() {
                // One that is gone is as good.
                fs::write(own.join("cgroup.procs"), process).ok();
            }
        }
        let controllers = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
        fs::write(self.folder.join("cgroup.subtree_control"), controllers)?;
        for group in fs::read_dir(&self.folder)?.flatten() {
            if group.file_name().as_encoded_bytes().starts_with(COMMAND.as_bytes()) {
                // The kernel refuses it where a process is in it.
                fs::remove_dir(group.path()).ok();
            }
        }
        Ok(())
    }

    /// Makes the group for the command of the running guardian; `None` where nothing is limited that a group could hold.
    pub(super) fn create_group(&self, limits: &Limits) -> io::Result<Option<Group>> {
        if limits.memory_bytes.is_none() && limits.processes.is_none() {
            return Ok(None);
        }
        let guardian = rustix::process::getpid().as_raw_nonzero();
        let folder = self.folder.join(format!("{COMMAND}{guardian}"));
        make(&folder)?;
        let group = Group { folder };
        let most = |limit: Option<u64>| limit.map_or_else(|| "max".to_owned(), |limit| limit.to_string());
        let tasks = limits.processes.map(|processes| processes.saturating_mul(TASKS_PER_PROCESS));
        group.write("pids.max", &most(tasks))?;
        group.write("memory.max", &most(limits.memory_bytes))?;
        // All of it ends, or a command goes on with half of its processes.
        group.write("memory.oom.group", "1")?;
        // A kernel without swap for groups has no such file.
        group.write("memory.swap.max", if limits.memory_bytes.is_some() { "0" } else { "max" }).ok();
        Ok(Some(group))
    }
}

fn is_delegated(group: &Path) -> bool {
    let mut value = [0_u8; 1];
    matches!(rustix::fs::getxattr(group, DELEGATED, &mut value), Ok(1)) && value == *b"1"
}

fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The cgroup of one command; gone when this is dropped, if all that was in it is dead.
pub(super) struct Group {
    folder: PathBuf,
}

impl Group {
    /// Takes in a process that has not begun yet; its children belong to the group, too.
    pub(super) fn add_process(&self, process: i32) -> io::Result<()> {
        self.write("cgroup.procs", &process.to_string())
    }

    /// Says whether the kernel ended the command since it used more memory than it may.
    pub(super) fn is_over_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|kills| kills != "0")
    }

    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(name), value)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Where something still lives the group stays, with its limits; the next helper removes it.
        fs::remove_dir(&self.folder).ok();
    }
}
