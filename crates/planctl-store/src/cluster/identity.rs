//! The user that runs Postgres: this process's, or as root another one, since Postgres refuses root.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::User;
use rustix::process::{Signal, geteuid, getgid, getpid, getppid};

use super::ClusterError;

/// The user that every image has and that owns nothing.
const NOBODY: u32 = 65534;

/// The capabilities that root needs to hand the cluster to another user: chown, dac_override, kill, setgid, setuid
/// (capabilities(7)).
const NEEDED_CAPABILITIES: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 7;

/// The user that runs Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The user that runs planctl.
    Own { uid: u32, gid: u32 },
    /// Another user with a name, which root becomes.
    Named { name: String, uid: u32, gid: u32 },
    /// `nobody` within a user namespace, while the files stay ours on disk.
    Mapped { uid: u32, gid: u32 },
}

impl Identity {
    /// Decides who runs Postgres; data that exist already fix it by their owner.
    pub(crate) fn detect(data: Option<&Path>) -> Result<Identity, ClusterError> {
        let owner = match data {
            Some(path) => Some((path, owner_of(path)?)),
            None => None,
        };
        if geteuid().is_root() { Identity::detect_for_root(owner) } else { Identity::detect_for_user(owner) }
    }

    fn detect_for_user(data: Option<(&Path, u32)>) -> Result<Identity, ClusterError> {
        let (uid, gid) = (geteuid().as_raw(), getgid().as_raw());
        if let Some((path, owner)) = data
            && owner != uid
        {
            return Err(foreign_owner_error(path, owner));
        }
        if user(uid).is_some() {
            return Ok(Identity::Own { uid, gid });
        }
        // Postgres looks its user up by number and gives up where there is no such entry.
        mapped_identity(&format!("user {uid} has no entry in /etc/passwd"))
    }

    fn detect_for_root(data: Option<(&Path, u32)>) -> Result<Identity, ClusterError> {
        match data {
            Some((_, 0)) => mapped_identity("the data belong to root"),
            Some((path, owner)) => user(owner)
                .and_then(|user| become_user(&user))
                .ok_or_else(|| foreign_owner_error(path, owner)),
            None => ["postgres", "nobody"]
                .into_iter()
                .filter_map(|name| User::from_name(name).ok().flatten())
                .find_map(|user| become_user(&user))
                .map_or_else(|| mapped_identity("this process may not change its user"), Ok),
        }
    }

    /// Returns the user that the files belong to on disk.
    pub(crate) fn disk_uid(&self) -> u32 {
        match self {
            Identity::Own { uid, .. } | Identity::Named { uid, .. } | Identity::Mapped { uid, .. } => *uid,
        }
    }

    /// Returns the group that the files belong to on disk.
    pub(crate) fn disk_gid(&self) -> u32 {
        match self {
            Identity::Own { gid, .. } | Identity::Named { gid, .. } | Identity::Mapped { gid, .. } => *gid,
        }
    }

    /// Returns the name that people know it by.
    pub(crate) fn name(&self) -> String {
        match self {
            Identity::Own { uid, .. } | Identity::Mapped { uid, .. } => user_name(*uid),
            Identity::Named { name, .. } => name.clone(),
        }
    }

    /// Returns true if files that we create must be handed over to it.
    pub(crate) fn needs_chown(&self) -> bool {
        matches!(self, Identity::Named { .. })
    }

    /// Says why a program that was prepared could not be started.
    pub(crate) fn spawn_error(&self, program: &str, error: &io::Error) -> ClusterError {
        match self {
            Identity::Mapped { .. } => ClusterError::NoUser {
                reason: format!("{program} could not be started in a user namespace: {error}"),
            },
            Identity::Own { .. } | Identity::Named { .. } => ClusterError::Program {
                program: program.to_owned(),
                reason: format!("as user \"{}\": {error}", self.name()),
            },
        }
    }

    /// Makes a command run as this user, in a session of its own, without our environment.
    ///
    /// `on_parent_death` arrives when the *thread* that starts the command ends, however it ends.
    pub(crate) fn prepare(&self, command: &mut Command, on_parent_death: Option<Signal>) {
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C");
        command.current_dir("/").stdin(Stdio::null());
        if let Identity::Named { uid, gid, .. } = self {
            // The standard library empties the supplementary groups, then sets group and user, before the hook below.
            command.uid(*uid).gid(*gid);
        }
        let map = match self {
            Identity::Mapped { uid, gid } => {
                Some((format!("{NOBODY} {uid} 1\n"), format!("{NOBODY} {gid} 1\n")))
            }
            Identity::Own { .. } | Identity::Named { .. } => None,
        };
        let parent = getpid();
        let hook = move || {
            if let Some((uids, gids)) = &map {
                // The maps of a process that is not dumpable belong to root; the program that follows has nothing to hide.
                rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
                enter_user_namespace(uids.as_bytes(), gids.as_bytes())?;
            }
            // A change of user clears the death signal, so it comes after.
            rustix::process::set_parent_process_death_signal(on_parent_death)?;
            if on_parent_death.is_some() && getppid() != Some(parent) {
                return Err(io::Error::from(rustix::io::Errno::SRCH));
            }
            rustix::process::setsid()?;
            // A process that the server starts for a statement stays its descendant, so planctl still recognises it as a
            // worker's.
            rustix::process::set_child_subreaper(Some(getpid()))?;
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
            Ok(())
        };
        // SAFETY: between fork and exec the hook makes only system calls on values made before; it neither allocates
        // nor takes a lock.
        unsafe { command.pre_exec(hook) };
    }
}

/// Makes the calling single-threaded process `nobody` in a user namespace of its own.
fn enter_user_namespace(uids: &[u8], gids: &[u8]) -> io::Result<()> {
    // SAFETY: the child shares no file descriptor table or file system state with other threads.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWUSER)? };
    write_proc(c"/proc/self/setgroups", b"deny\n")?;
    write_proc(c"/proc/self/uid_map", uids)?;
    write_proc(c"/proc/self/gid_map", gids)
}

fn write_proc(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let fd = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fs::File::from(fd).write_all(text)
}

fn mapped_identity(why: &str) -> Result<Identity, ClusterError> {
    let allowed = fs::read_to_string("/proc/sys/user/max_user_namespaces")
        .is_ok_and(|text| text.trim().parse::<u64>().is_ok_and(|count| count > 0));
    if !allowed {
        return Err(ClusterError::NoUser {
            reason: format!("{why}, and user namespaces are switched off here"),
        });
    }
    if user(NOBODY).is_none() {
        return Err(ClusterError::NoUser {
            reason: format!("{why}, and there is no user {NOBODY} to appear as"),
        });
    }
    Ok(Identity::Mapped { uid: geteuid().as_raw(), gid: getgid().as_raw() })
}

fn become_user(user: &User) -> Option<Identity> {
    let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
    let able = uid != 0
        && has_capabilities()
        && is_mapped("/proc/self/uid_map", uid)
        && is_mapped("/proc/self/gid_map", gid);
    able.then(|| Identity::Named { name: user.name.clone(), uid, gid })
}

fn has_capabilities() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|held| held & NEEDED_CAPABILITIES == NEEDED_CAPABILITIES)
}

fn is_mapped(map: &str, id: u32) -> bool {
    let text = fs::read_to_string(map).unwrap_or_default();
    text.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (Some(first), Some(_), Some(count)) = (numbers.next(), numbers.next(), numbers.next()) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(id))
    })
}

fn owner_of(path: &Path) -> Result<u32, ClusterError> {
    use super::error::At as _;
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::symlink_metadata(path).at("read", path)?.uid())
}

fn foreign_owner_error(path: &Path, owner: u32) -> ClusterError {
    ClusterError::ForeignOwner {
        path: path.to_owned(),
        owner: user_name(owner),
        me: user_name(geteuid().as_raw()),
    }
}

fn user(uid: u32) -> Option<User> {
    User::from_uid(uid.into()).ok().flatten()
}

fn user_name(uid: u32) -> String {
    user(uid).map_or_else(|| format!("user {uid}"), |user| user.name)
}
