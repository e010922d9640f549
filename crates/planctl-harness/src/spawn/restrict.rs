//! Makes what a process takes upon itself before it becomes the command: a Landlock domain and seccomp filters.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use nix::libc;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

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
/// The highest capability that is looked at; later ones fail to be dropped on a kernel that lacks them, which is as good.
const CAPABILITY_MAX: u32 = 63;

/// Holds the rules that the child applies; it makes system calls only, so everything is prepared.
pub(super) struct Restrictions {
    ruleset: OwnedFd,
}

impl Restrictions {
    /// Prepares a confinement that holds without namespaces (tier 1a).
    pub(super) fn alone(confinement: &Confinement) -> io::Result<Restrictions> {
        if abi() < ABI_ALONE {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let mut rules = Rules::begin()?;
        let mut hidden = LeftOut::default();
        confinement.hidden.iter().for_each(|path| hidden.insert(&path_of(path)));
        let mut left_out = hidden.clone();
        left_out.insert(Path::new("/dev"));
        // Landlock grants only: what is hidden is left out of what may be read, and its folders may be listed.
        rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
        rules.allow_around(Path::new("/"), rules.read, &left_out)?;
        rules.finish(confinement, &["/dev/shm"], &hidden)
    }

    /// Prepares the second line of defence behind namespaces and mounts (tier 1b); call it when the mounts stand.
    pub(super) fn behind_mounts(confinement: &Confinement) -> io::Result<Restrictions> {
        if abi() < 1 {
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
        use std::os::fd::AsRawFd;
        let filters = filters();
        // SAFETY: system calls on values that live as long as the process.
        unsafe {
            drop_capabilities()?;
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            check(libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset.as_raw_fd(), 0_u32))?;
            for filter in filters {
                let program = libc::sock_fprog {
                    len: filter.len() as u16,
                    filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
                };
                check(libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0_u32,
                    std::ptr::from_ref(&program),
                ))?;
            }
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
        for capability in (0..=CAPABILITY_MAX).filter(|capability| !CAPABILITIES.contains(capability)) {
            // Refused where the kernel has no such capability, or we have none to drop.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
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
pub(super) fn abi() -> i32 {
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
    ruleset: RulesetCreated,
    read: BitFlags<AccessFs>,
    all: BitFlags<AccessFs>,
}

impl Rules {
    /// Begins with everything that the kernel can refuse refused.
    fn begin() -> io::Result<Rules> {
        let abi = ABI::from(abi().min(ABI_MAX));
        let all = AccessFs::from_all(abi);
        let mut ruleset =
            Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(all);
        let scopes = Scope::from_all(abi);
        if !scopes.is_empty() {
            ruleset = ruleset.and_then(|ruleset| ruleset.scope(scopes));
        }
        let ruleset = ruleset.and_then(Ruleset::create).map_err(io::Error::other)?;
        Ok(Rules { ruleset, read: AccessFs::from_read(abi), all })
    }

    /// Allows access beneath a path; one that isn't there, or is a link, is passed over.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = openat(CWD, path, flags, Mode::empty()) else { return Ok(()) };
        let access = match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::Directory => access,
            FileType::Symlink => return Ok(()),
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => access & (AccessFs::from_file(ABI::V5) & self.all),
        };
        let rule = PathBeneath::new(file.as_fd(), access);
        (&mut self.ruleset).add_rule(rule).map_err(io::Error::other)?;
        Ok(())
    }

    /// Allows access beneath a path but for what is left out within it, and what is beneath that.
    fn allow_around(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
        left_out: &LeftOut,
    ) -> io::Result<()> {
        match left_out.within(path) {
            Some(left_out) => self.allow_entries(path, access, left_out),
            None => self.allow(path, access),
        }
    }

    /// Allows access to the entries of a folder, each but for what is left out of it.
    fn allow_entries(
        &mut self,
        folder: &Path,
        access: BitFlags<AccessFs>,
        left_out: &LeftOut,
    ) -> io::Result<()> {
        if left_out.entries.is_empty() {
            return self.allow(folder, access);
        }
        // The command can't read a folder that we can't list either.
        let is_closed = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
        };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_closed(&error) => return Ok(()),
            // Nothing is beneath a file.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return self.allow(folder, access),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            match left_out.entries.get(&entry.file_name()) {
                None => self.allow(&entry.path(), access)?,
                Some(within) if !within.is_whole => self.allow_entries(&entry.path(), access, within)?,
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
        let ruleset: Option<OwnedFd> = self.ruleset.into();
        let ruleset = ruleset.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        Ok(Restrictions { ruleset })
    }
}

/// Returns the filters, made once: what leads out of the sandbox, or reaches into another process, fails with EPERM.
fn filters() -> &'static [BpfProgram] {
    static FILTERS: OnceLock<Vec<BpfProgram>> = OnceLock::new();
    // The rules are constant, and a test makes them.
    FILTERS.get_or_init(|| make_filters().expect("the rules are well formed"))
}

/// Says whether the filters can be made; call it before the child, which must not allocate.
pub(super) fn prepare_filters() {
    filters();
}

/// The families of sockets that builds and tests use. Others lead past every filter of files and addresses: to the
/// hypervisor, to raw packets, into the kernel's own protocols.
const SOCKETS: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

const DENIED: &[i64] = &[
    // Into other processes: a contract's own shell is one of them (sec cheat 49).
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces, by which a confined command could rearrange what it sees.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    // Parts of the kernel that most escapes begin with, and that builds and tests do without.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    // The host itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

fn make_filters() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let namespaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let has_flag = |argument: u8, flag: i32| {
        let flag = u64::from(flag.cast_unsigned());
        let condition =
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
        SeccompRule::new(vec![condition])
    };
    let is_ioctl = |request: u64| {
        let condition = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?;
        SeccompRule::new(vec![condition])
    };
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let rules = namespaces.iter().map(|flag| has_flag(0, *flag)).collect::<Result<_, _>>()?;
        denied.insert(call, rules);
    }
    // The limits of another process: a CPU limit of nothing would end planctl.
    let is_other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    denied.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is_other])?]);
    let is_no = |family: i32| {
        let family = u64::from(family.cast_unsigned());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let is_other = SOCKETS.map(is_no).into_iter().collect::<Result<_, _>>()?;
    denied.insert(libc::SYS_socket, vec![SeccompRule::new(is_other)?]);
    // Typing into a terminal that somebody else reads.
    denied.insert(libc::SYS_ioctl, vec![is_ioctl(libc::TIOCSTI)?, is_ioctl(libc::TIOCLINUX)?]);
    // Its flags are in memory, where a filter can't look: the C library falls back to `clone`.
    let absent: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let filter = |rules, errno: i32| -> Result<BpfProgram, seccompiler::BackendError> {
        let action = SeccompAction::Errno(errno.cast_unsigned());
        SeccompFilter::new(rules, SeccompAction::Allow, action, std::env::consts::ARCH.try_into()?)?
            .try_into()
    };
    let mut absent = filter(absent, libc::ENOSYS)?;
    absent.splice(0..0, refuse_x32());
    Ok(vec![absent, filter(denied, libc::EPERM)?])
}

/// The second set of numbers that x86-64 kernels may have for the same calls, which no other rule here names.
fn refuse_x32() -> Vec<sock_filter> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refuse },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_made() {
        let filters = make_filters().unwrap();
        assert!(filters.iter().all(|filter| filter.len() > 3 && filter.len() < 4096));
    }
}
