//! Makes the seccomp filter of confined commands: calls that lead out of the sandbox, or reach into another process, fail.
//!
//! The kernel runs a new filter once for each system call that there is, to learn which are always allowed; so this one is
//! a binary search. A chain of comparisons took a quarter of a millisecond per command to install.

use std::sync::OnceLock;

use nix::libc::{self, sock_filter};

/// When a call is refused.
enum Refused {
    Always(i32),
    /// Where an argument has one of these bits.
    WithBit(u8, u32),
    /// Where an argument is one of these values.
    With(u8, Vec<u32>),
    /// Where an argument is none of these values.
    Unless(u8, Vec<u32>),
}

/// The families of sockets that builds and tests use. Others lead past every filter of files and addresses: to the
/// hypervisor, to raw packets, into the kernel's own protocols.
const SOCKETS: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

const DENIED: &[i64] = &[
    // Into other processes: a contract's own shell is one of them.
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

/// Returns the filter, made once per process; call it before the child, which must not allocate.
pub(super) fn filter() -> &'static [sock_filter] {
    static FILTER: OnceLock<Vec<sock_filter>> = OnceLock::new();
    FILTER.get_or_init(|| make(&refusals()))
}

/// Lists each call that is refused, in the order of their numbers.
fn refusals() -> Vec<(u32, Refused)> {
    let bits = NAMESPACES.cast_unsigned();
    let mut refusals: Vec<(i64, Refused)> =
        DENIED.iter().map(|call| (*call, Refused::Always(libc::EPERM))).collect();
    refusals.extend([
        (libc::SYS_clone, Refused::WithBit(0, bits)),
        (libc::SYS_unshare, Refused::WithBit(0, bits)),
        // Its flags are in memory, where a filter can't look: the C library falls back to `clone`.
        (libc::SYS_clone3, Refused::Always(libc::ENOSYS)),
        // The limits of another process: a CPU limit of nothing would end planctl.
        (libc::SYS_prlimit64, Refused::Unless(0, vec![0])),
        (libc::SYS_socket, Refused::Unless(0, SOCKETS.map(i32::cast_unsigned).to_vec())),
        // Typing into a terminal that somebody else reads.
        (libc::SYS_ioctl, Refused::With(1, vec![libc::TIOCSTI as u32, libc::TIOCLINUX as u32])),
    ]);
    let mut refusals: Vec<(u32, Refused)> =
        refusals.into_iter().map(|(call, refused)| (call as u32, refused)).collect();
    refusals.sort_by_key(|(call, _)| *call);
    refusals
}

const ALLOW: sock_filter = end(libc::SECCOMP_RET_ALLOW);
/// Calls by the numbers of another architecture, of which no rule here speaks, end the process.
const KILL: sock_filter = end(libc::SECCOMP_RET_KILL_PROCESS);

/// `AUDIT_ARCH_*` of the architecture that planctl is built for.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else if cfg!(target_arch = "aarch64") {
    0xc000_00b7
} else {
    panic!("name the architecture's number here")
};
/// The second set of numbers that x86-64 kernels may have for the same calls begins here.
const X32: u32 = 0x4000_0000;

/// Where the kernel's `seccomp_data` has the call's number, the architecture and the arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const ARGUMENTS: u32 = 16;

const fn end(action: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: action }
}

const fn refuse(errno: i32) -> sock_filter {
    end(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned())
}

const fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

/// Skips `over` instructions where the loaded word compares with `value` as asked, else `or`.
fn jump(comparison: u32, value: u32, over: usize, or: usize) -> sock_filter {
    // A program of a few hundred instructions; a test makes it.
    let skip = |count: usize| u8::try_from(count).expect("jumps are short");
    sock_filter {
        code: (libc::BPF_JMP | comparison | libc::BPF_K) as u16,
        jt: skip(over),
        jf: skip(or),
        k: value,
    }
}

fn make(refusals: &[(u32, Refused)]) -> Vec<sock_filter> {
    let mut program =
        vec![load(ARCHITECTURE_OFFSET), jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0), KILL, load(NUMBER)];
    if cfg!(target_arch = "x86_64") {
        program.extend([jump(libc::BPF_JGE, X32, 0, 1), refuse(libc::ENOSYS)]);
    }
    program.extend(search(refusals));
    program
}

/// Finds the loaded number among the refused calls.
fn search(refusals: &[(u32, Refused)]) -> Vec<sock_filter> {
    /// So many are compared one by one.
    const FEW: usize = 4;
    if refusals.len() <= FEW {
        return compare(refusals);
    }
    let (less, more) = refusals.split_at(refusals.len() / 2);
    let (smaller, greater) = (search(less), search(more));
    let first = jump(libc::BPF_JGE, more[0].0, smaller.len(), 0);
    [vec![first], smaller, greater].concat()
}

fn compare(refusals: &[(u32, Refused)]) -> Vec<sock_filter> {
    let mut comparisons = Vec::new();
    let mut refused = vec![ALLOW];
    for (left, (call, refusal)) in (0..refusals.len()).rev().zip(refusals) {
        comparisons.push(jump(libc::BPF_JEQ, *call, left + refused.len(), 0));
        refused.extend(decide(refusal));
    }
    [comparisons, refused].concat()
}

/// Decides on one call.
fn decide(refused: &Refused) -> Vec<sock_filter> {
    const REFUSE: sock_filter = refuse(libc::EPERM);
    let look = |argument: u8, comparison: u32, values: &[u32], holds: sock_filter, or: sock_filter| {
        let half = if cfg!(target_endian = "big") { 4 } else { 0 };
        let mut program = vec![load(ARGUMENTS + u32::from(argument) * 8 + half)];
        let comparisons = (1..=values.len()).rev().zip(values);
        program.extend(comparisons.map(|(left, value)| jump(comparison, *value, left, 0)));
        program.extend([or, holds]);
        program
    };
    match refused {
        Refused::Always(errno) => vec![refuse(*errno)],
        Refused::WithBit(argument, bits) => look(*argument, libc::BPF_JSET, &[*bits], REFUSE, ALLOW),
        Refused::With(argument, values) => look(*argument, libc::BPF_JEQ, values, REFUSE, ALLOW),
        Refused::Unless(argument, values) => look(*argument, libc::BPF_JEQ, values, ALLOW, REFUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter on a call as the kernel would; returns its answer and the number of instructions.
    fn answer(architecture: u32, call: u32, arguments: [u64; 6]) -> (u32, usize) {
        let data = |offset: u32| match offset {
            NUMBER => call,
            ARCHITECTURE_OFFSET => architecture,
            _ => {
                let argument = arguments[(offset - ARGUMENTS) as usize / 8].to_ne_bytes();
                let half = (offset - ARGUMENTS) as usize % 8;
                u32::from_ne_bytes(argument[half..half + 4].try_into().unwrap())
            }
        };
        let program = filter();
        let (mut at, mut loaded) = (0, 0);
        for steps in 1.. {
            let instruction = program[at];
            let holds = match u32::from(instruction.code) & !(libc::BPF_JMP | libc::BPF_K) {
                _ if instruction.code == load(0).code => {
                    loaded = data(instruction.k);
                    at += 1;
                    continue;
                }
                _ if instruction.code == ALLOW.code => return (instruction.k, steps),
                libc::BPF_JEQ => loaded == instruction.k,
                libc::BPF_JGE => loaded >= instruction.k,
                libc::BPF_JSET => loaded & instruction.k != 0,
                other => panic!("{other:#x}"),
            };
            at += 1 + usize::from(if holds { instruction.jt } else { instruction.jf });
        }
        unreachable!()
    }

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    #[test]
    fn each_call_is_answered_as_the_lists_say_within_a_few_steps() {
        let listed: Vec<u32> = DENIED.iter().map(|call| *call as u32).collect();
        for call in 0..1000 {
            let (answer, steps) = answer(ARCHITECTURE, call, [0; 6]);
            let expected = match i64::from(call) {
                _ if listed.contains(&call) => EPERM,
                libc::SYS_clone3 => ENOSYS,
                // No family of sockets that is named.
                libc::SYS_socket => EPERM,
                _ => ALLOWED,
            };
            assert_eq!(answer, expected, "call {call}");
            assert!(steps <= 20, "{steps} steps for call {call}");
        }
    }

    #[test]
    fn arguments_decide_where_they_should() {
        let by = |call: i64, arguments| answer(ARCHITECTURE, call as u32, arguments).0;
        for flag in 0..32 {
            let flag = 1_u64 << flag;
            let expected = if flag & NAMESPACES as u64 != 0 { EPERM } else { ALLOWED };
            for call in [libc::SYS_clone, libc::SYS_unshare] {
                assert_eq!(by(call, [flag, 0, 0, 0, 0, 0]), expected, "{call} with {flag:#x}");
            }
        }
        for family in 0..64 {
            let expected = if SOCKETS.contains(&(family as i32)) { ALLOWED } else { EPERM };
            assert_eq!(by(libc::SYS_socket, [family, 1, 0, 0, 0, 0]), expected, "family {family}");
        }
        assert_eq!(by(libc::SYS_prlimit64, [0, 7, 0, 0, 0, 0]), ALLOWED);
        assert_eq!(by(libc::SYS_prlimit64, [1, 7, 0, 0, 0, 0]), EPERM);
        // The upper half of an argument that the kernel takes as a word of 32 bits is noise.
        assert_eq!(by(libc::SYS_ioctl, [0, libc::TIOCSTI | 1 << 40, 0, 0, 0, 0]), EPERM);
        assert_eq!(by(libc::SYS_ioctl, [0, libc::TIOCLINUX, 0, 0, 0, 0]), EPERM);
        assert_eq!(by(libc::SYS_ioctl, [libc::TIOCSTI, libc::TCGETS, 0, 0, 0, 0]), ALLOWED);
    }

    #[test]
    fn numbers_of_other_architectures_are_no_way_around() {
        assert_eq!(answer(0x4000_0003, 26, [0; 6]).0, libc::SECCOMP_RET_KILL_PROCESS);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(answer(ARCHITECTURE, X32, [0; 6]).0, ENOSYS);
            assert_eq!(answer(ARCHITECTURE, X32 + libc::SYS_ptrace as u32, [0; 6]).0, ENOSYS);
        }
    }
}
