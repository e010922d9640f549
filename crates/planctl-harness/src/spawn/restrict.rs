//! Makes what a process takes upon itself before it becomes the command: a Landlock domain and a seccomp filter.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
use nix::libc;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::filter::filter;
use super::wire::Confinement;

/// The ABI that tier 1a needs: without scopes (ABI 6) a command could signal planctl and its guardians. Where namespaces
/// keep them apart, any ABI serves.
const ABI_ALONE: i32 = 6;
/// The newest ABI of which the rights are used.
const ABI_MAX: i32 = 6;

/// Devices that a confined command may use; no other is in reach.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Capabilities that root keeps inside: those over files and users that are mapped there. The rest (mounts, tracing,
/// modules, devices, network, handles of files) would lead out.
const CAPABILITIES: [u32; 8] = [
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    4,  // CAP_FSETID
    5,  // CAP_KILL
    6,  // CAP_SETGID
    7,  // CAP_SETUID
    10, // CAP_NET_BIND_SERVICE
];
/// The highest capability that can be: their sets have 64 bits.
const CAPABILITY_MAX: u32 = 63;

/// Holds the rules that the child applies; it makes system calls only, so everything is prepared.
pub(super) struct Restrictions {
    ruleset: OwnedFd,
}

impl Restrictions {
    /// Prepares a confinement that holds without namespaces (tier 1a).
    pub(super) fn alone(confinement: &Confinement) -> io::Result<Restrictions> {
        if landlock_abi() < ABI_ALONE {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let mut rules = Rules::begin()?;
        let mut hidden = LeftOut::default();
        confinement.hidden.iter().for_each(|path| hidden.insert(&path_of(path)));
        let mut left_out = hidden.clone();
        left_out.insert(Path::new("/dev"));
        // Landlock grants only: hidden files are left out of the readable ones, and their folders may be listed.
        rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
        rules.allow_around(Path::new("/"), rules.read, &left_out)?;
        rules.finish(confinement, &["/dev/shm"], &hidden)
    }

    /// Prepares the second line of defence behind namespaces and mounts (tier 1b); call it when the mounts stand.
    pub(super) fn behind_mounts(confinement: &Confinement) -> io::Result<Restrictions> {
        if landlock_abi() < 1 {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let mut rules = Rules::begin()?;
        rules.allow(Path::new("/"), rules.read)?;
        rules.finish(confinement, &["/tmp", "/var/tmp", "/dev/shm"], &LeftOut::default())
    }

    /// Applies everything to this process for good.
    ///
    /// # Errors
    ///
    /// The system's error number.
    ///
    /// # Safety
    ///
    /// Makes system calls only, so it may run between `clone` and `exec` on a borrowed stack.
    pub(super) unsafe fn apply(&self) -> Result<(), i32> {
        let filter = filter();
        // SAFETY: system calls on values that live as long as the process.
        unsafe {
            drop_capabilities()?;
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            check(libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset.as_raw_fd(), 0_u32))?;
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            check(libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0_u32,
                std::ptr::from_ref(&program),
            ))?;
        }
        Ok(())
    }
}

fn check(result: i64) -> Result<(), i32> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM)) }
}

/// Drops what root must not have inside; another user has none of it.
unsafe fn drop_capabilities() -> Result<(), i32> {
    #[repr(C)]
    struct Header {
        version: u32,
        process: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`.
    const VERSION: u32 = 0x2008_0522;
    let mut header = Header { version: VERSION, process: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: the kernel reads and writes the two structures, which have its layout.
    unsafe {
        check(libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()))?;
        if data.iter().all(|half| half.permitted == 0) {
            return Ok(());
        }
        for capability in 0..=CAPABILITY_MAX {
            // It is refused where we have none to drop. The first that the kernel does not know is the end of them.
            if !CAPABILITIES.contains(&capability)
                && libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0
                && *libc::__errno_location() == libc::EINVAL
            {
                break;
            }
        }
        let kept = CAPABILITIES.iter().fold(0_u32, |bits, capability| bits | 1 << capability);
        let permitted = data[0].permitted & kept;
        data = [Data { effective: permitted, permitted, inheritable: 0 }, Data::default()];
        header = Header { version: VERSION, process: 0 };
        check(libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()))
    }
}

fn path_of(text: &CStr) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.to_bytes()))
}

/// Returns the Landlock ABI of the running kernel; 0 where there is none.
pub(super) fn landlock_abi() -> i32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads nothing and returns a number.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    i32::try_from(abi).unwrap_or(0).max(0)
}

/// Paths that are left out of a rule, as a tree of their components: the folders around one may have many entries, and
/// there may be many paths.
#[derive(Clone, Default)]
struct LeftOut {
    /// Says that this path itself is left out, with all beneath it.
    is_whole: bool,
    entries: HashMap<OsString, LeftOut>,
}

impl LeftOut {
    /// Leaves out an absolute path.
    fn insert(&mut self, path: &Path) {
        let names = path.iter().skip(1);
        names.fold(self, |place, name| place.entries.entry(name.to_owned()).or_default()).is_whole = true;
    }

    /// Returns what is left out within an absolute path.
    fn within(&self, path: &Path) -> Option<&LeftOut> {
        path.iter().skip(1).try_fold(self, |place, name| place.entries.get(name))
    }
}

/// A ruleset in the making.
struct Rules {
    ruleset: OwnedFd,
    read: BitFlags<AccessFs>,
    all: BitFlags<AccessFs>,
}

impl Rules {
    /// Begins with everything that the kernel can refuse refused.
    fn begin() -> io::Result<Rules> {
        let abi = ABI::from(landlock_abi().min(ABI_MAX));
        let all = AccessFs::from_all(abi);
        let mut ruleset =
            Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(all);
        let scopes = Scope::from_all(abi);
        if !scopes.is_empty() {
            ruleset = ruleset.and_then(|ruleset| ruleset.scope(scopes));
        }
        let ruleset = ruleset.and_then(Ruleset::create).map_err(io::Error::other)?;
        let ruleset = Option::from(ruleset).ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        Ok(Rules { ruleset, read: AccessFs::from_read(abi), all })
    }

    /// Allows access beneath a path; one that isn't there is passed over.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        self.allow_in(CWD, path, access)
    }

    /// Allows access beneath a name in an open folder.
    fn allow_in(
        &mut self,
        folder: BorrowedFd<'_>,
        name: impl Arg,
        access: BitFlags<AccessFs>,
    ) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return Ok(()) };
        match self.add_rule(&file, access) {
            // The kernel refuses rights of folders for what is none; a rule for a link stands for the link alone.
            Err(Errno::INVAL) => self.add_rule(&file, access & AccessFs::from_file(ABI::V5))?,
            added => added?,
        }
        Ok(())
    }

    /// Adds a rule as the kernel takes it: the library looks each file up once more, which costs as much as the rule.
    fn add_rule(&self, file: &OwnedFd, access: BitFlags<AccessFs>) -> Result<(), Errno> {
        /// `struct landlock_path_beneath_attr`.
        #[repr(C, packed)]
        struct PathBeneath {
            allowed: u64,
            parent: i32,
        }
        /// `LANDLOCK_RULE_PATH_BENEATH`.
        const PATH_BENEATH: u32 = 1;
        if access.is_empty() {
            return Ok(());
        }
        let rule = PathBeneath { allowed: access.bits(), parent: file.as_raw_fd() };
        // SAFETY: the kernel reads the structure, which has its layout.
        let added = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.ruleset.as_raw_fd(),
                PATH_BENEATH,
                std::ptr::from_ref(&rule),
                0_u32,
            )
        };
        check(added).map_err(Errno::from_raw_os_error)
    }

    /// Allows access beneath a path but for what is left out within it, and what is beneath that.
    fn allow_around(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
        left_out: &LeftOut,
    ) -> io::Result<()> {
        match left_out.within(path) {
            Some(left_out) => self.allow_entries(CWD, path, access, left_out),
            None => self.allow(path, access),
        }
    }

    /// Allows access to the entries of a folder, each but for what is left out of it.
    ///
    /// There may be hundreds: they are opened by name from the open folder, which costs half of what a path does.
    fn allow_entries(
        &mut self,
        parent: BorrowedFd<'_>,
        folder: impl Arg + Copy,
        access: BitFlags<AccessFs>,
        left_out: &LeftOut,
    ) -> io::Result<()> {
        if left_out.entries.is_empty() {
            return self.allow_in(parent, folder, access);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut entries = match openat(parent, folder, flags, Mode::empty()) {
            Ok(folder) => Dir::new(folder)?,
            // The command can't read a folder that we can't list either; a link leads to what has rules of its own.
            Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::LOOP) => return Ok(()),
            // Nothing is beneath a file.
            Err(Errno::NOTDIR) => return self.allow_in(parent, folder, access),
            Err(error) => return Err(error.into()),
        };
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type() == FileType::Symlink || matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match left_out.entries.get(OsStr::from_bytes(name.to_bytes())) {
                None => self.allow_in(entries.fd()?, name, access)?,
                Some(within) if !within.is_whole => {
                    self.allow_entries(entries.fd()?, name, access, within)?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Allows what every confined command needs, and what this one may write.
    fn finish(
        mut self,
        confinement: &Confinement,
        folders: &[&str],
        hidden: &LeftOut,
    ) -> io::Result<Restrictions> {
        let use_device =
            self.all & (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::ReadDir);
        for device in DEVICES {
            self.allow(&Path::new("/dev").join(device), use_device)?;
        }
        for folder in ["/dev/pts", "/dev/ptmx"] {
            self.allow(Path::new(folder), use_device)?;
        }
        for path in &confinement.shown {
            self.allow_around(&path_of(path), self.read, hidden)?;
        }
        let writable = confinement.writable.iter().map(|path| path_of(path));
        for path in folders.iter().map(PathBuf::from).chain(writable) {
            self.allow_around(&path, self.all, hidden)?;
        }
        Ok(Restrictions { ruleset: self.ruleset })
    }
}
