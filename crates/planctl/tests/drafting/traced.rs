//! A process that is killed before a deed of its choice: a file that gets its name or reaches the disk, a message that is sent.
//!
//! The kernel stops the process at each system call (`ptrace`), so each of its deeds is reached, whatever the machine's pace.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The system calls that leave something behind which outlives the process, or tell another process.
const DEEDS: [libc::c_long; 9] = [
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_writev,
];
#[cfg(target_arch = "x86_64")]
const OLD_DEEDS: [libc::c_long; 3] = [libc::SYS_rename, libc::SYS_link, libc::SYS_unlink];
#[cfg(not(target_arch = "x86_64"))]
const OLD_DEEDS: [libc::c_long; 0] = [];

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was killed before the deed.
    Killed,
    /// It ended by itself with this code, after so many deeds.
    Itself { code: i32, deeds: usize },
}

/// Runs a command, and kills it with SIGKILL before its deed of this number, counted from 1.
pub fn killed_before(deed: usize, mut command: Command) -> End {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the child calls nothing but ptrace between fork and exec.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(std::io::Error::from)) };
    #[expect(clippy::zombie_processes, reason = "each of its threads is waited for below")]
    let child = command.spawn().unwrap();
    let main = Pid::from_raw(i32::try_from(child.id()).unwrap());
    // The first stop is that of exec.
    assert!(matches!(waitpid(main, None).unwrap(), WaitStatus::Stopped(_, Signal::SIGTRAP)));
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(main, options).unwrap();
    resume(main, None);
    let (mut deeds, mut is_killed, mut seen) = (0, false, BTreeSet::from([main]));
    loop {
        // Only what this thread traces: other tests wait for their own children.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        match waitpid(None, Some(flags)).unwrap() {
            WaitStatus::PtraceSyscall(thread) => {
                if is_deed(thread) {
                    deeds += 1;
                    if deeds == deed {
                        is_killed = true;
                        kill(main, Signal::SIGKILL).unwrap();
                    }
                }
                resume(thread, None);
            }
            WaitStatus::PtraceEvent(thread, _, _) => resume(thread, None),
            // A thread begins with a stop of its own.
            WaitStatus::Stopped(thread, Signal::SIGSTOP) if seen.insert(thread) => resume(thread, None),
            WaitStatus::Stopped(thread, signal) => resume(thread, Some(signal)),
            WaitStatus::Exited(thread, code) if thread == main => return End::Itself { code, deeds },
            WaitStatus::Signaled(thread, signal, _) if thread == main => {
                assert!(is_killed && signal == Signal::SIGKILL, "{signal}");
                return End::Killed;
            }
            WaitStatus::Exited(..)
            | WaitStatus::Signaled(..)
            | WaitStatus::Continued(_)
            | WaitStatus::StillAlive => {}
        }
    }
}

/// Lets a thread go on to its next system call. One that was killed meanwhile is gone.
fn resume(thread: Pid, signal: Option<Signal>) {
    if let Err(error) = ptrace::syscall(thread, signal) {
        assert_eq!(error, nix::errno::Errno::ESRCH);
    }
}

/// Says whether a thread is about to do a deed.
fn is_deed(thread: Pid) -> bool {
    let Ok(info) = ptrace::syscall_info(thread) else { return false };
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    // SAFETY: at an entry, the kernel fills in this part.
    let number = unsafe { info.u.entry.nr };
    let Ok(number) = libc::c_long::try_from(number) else { return false };
    DEEDS.contains(&number) || OLD_DEEDS.contains(&number)
}
