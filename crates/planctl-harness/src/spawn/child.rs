//! Starts one command from a guardian without copying its page tables.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::libc;

use super::filter::filter;
use super::restrict::Restrictions;
use super::wire::{Request, Stage};

/// Enough for the few frames between clone and exec.
const STACK_BYTES: usize = 64 * 1024;

/// The stack that a guardian lends to each child it starts.
pub(super) struct Stack(Vec<u128>);

impl Stack {
    pub(super) fn new() -> Stack {
        Stack(vec![0; STACK_BYTES / size_of::<u128>()])
    }
}

/// Why a command could not be started.
pub(super) struct NotStarted {
    pub(super) stage: Stage,
    pub(super) errno: i32,
}

/// Everything the child needs, made beforehand: it must not allocate.
struct Plan<'a> {
    program: *const c_char,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    directory: *const c_char,
    streams: [RawFd; 3],
    limits: [(libc::__rlimit_resource_t, Option<u64>); 2],
    restrictions: Option<&'a Restrictions>,
    failed: Option<(Stage, c_int)>,
}

/// Starts the command in a session of its own and returns its process id once it runs.
///
/// `streams` become its standard input, output and error; it has no other descriptor.
pub(super) fn start(
    request: &Request,
    streams: &[OwnedFd; 3],
    stack: &mut Stack,
    restrictions: Option<&Restrictions>,
) -> Result<i32, NotStarted> {
    if restrictions.is_some() {
        // Made here: the child must not allocate.
        filter();
    }
    let mut plan = Plan {
        program: request.program.as_ptr(),
        arguments: pointers(&request.arguments),
        environment: pointers(&request.environment),
        directory: request.directory.as_ptr(),
        streams: [streams[0].as_raw_fd(), streams[1].as_raw_fd(), streams[2].as_raw_fd()],
        limits: [
            (libc::RLIMIT_FSIZE, request.limits.file_bytes),
            (libc::RLIMIT_NOFILE, request.limits.open_files),
        ],
        restrictions,
        failed: None,
    };
    let top = stack.0.as_mut_ptr_range().end;
    // SAFETY: the child runs `enter` on `stack`, which nobody else uses; CLONE_VFORK suspends this thread, the only one
    // of the process, until the child has called exec or _exit, so `plan` outlives its use and nothing is shared at
    // the same time. `u128` keeps the stack's end aligned to 16 bytes.
    let pid = unsafe {
        libc::clone(
            child_main,
            top.cast::<c_void>(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            ptr::from_mut(&mut plan).cast::<c_void>(),
        )
    };
    if pid < 0 {
        return Err(NotStarted { stage: Stage::Fork, errno: errno() });
    }
    // SAFETY: the child wrote it before it ended, through a pointer made from this very variable.
    match unsafe { ptr::read_volatile(&raw const plan.failed) } {
        Some((stage, errno)) => Err(NotStarted { stage, errno }),
        None => Ok(pid),
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

fn errno() -> c_int {
    // SAFETY: always a valid pointer to this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// The child: makes system calls only, then becomes the command.
extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to its plan and is suspended while this runs.
    let plan = unsafe { &mut *plan.cast::<Plan<'_>>() };
    // SAFETY: system calls on values that `start` made and that live until exec.
    plan.failed = Some(unsafe { become_command(plan) });
    // SAFETY: ends the child without running the guardian's exit handlers.
    unsafe { libc::_exit(127) }
}

/// Returns only when it failed.
unsafe fn become_command(plan: &Plan<'_>) -> (Stage, c_int) {
    // SAFETY: each call gets values that are valid for it; see `enter`.
    unsafe {
        if libc::setsid() < 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return (Stage::Prepare, errno());
        }
        for (target, source) in plan.streams.iter().enumerate() {
            if libc::dup2(*source, target as c_int) < 0 {
                return (Stage::Prepare, errno());
            }
        }
        if libc::chdir(plan.directory) < 0 {
            return (Stage::Directory, errno());
        }
        for (resource, limit) in plan.limits {
            let Some(limit) = limit else { continue };
            let both = libc::rlimit { rlim_cur: limit, rlim_max: limit };
            if libc::setrlimit(resource, &both) < 0 {
                return (Stage::Prepare, errno());
            }
        }
        if let Some(restrictions) = plan.restrictions
            && let Err(errno) = restrictions.apply()
        {
            return (Stage::Isolate, errno);
        }
        // Everything the guardian has open closes at exec by itself; this is for what it may not know of.
        libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, 0 as libc::c_uint);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        libc::execve(plan.program, plan.arguments.as_ptr(), plan.environment.as_ptr());
        (Stage::Execute, errno())
    }
}
