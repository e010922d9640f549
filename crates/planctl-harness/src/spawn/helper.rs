//! The helper process: forks guardians on request and ends what a dead guardian left behind.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal, sigprocmask};
use nix::sys::signalfd::SignalFd;
use nix::unistd::ForkResult;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::RecvFlags;
use rustix::process::{Resource, Rlimit, Signal};

use super::cgroups::Delegated;
use super::filter::filter;
use super::guardian::{self, Heard, read_signals, wait_readable};
use super::tree::{self, Reaper};
use super::wire::{self, GUARD, HOLD};
use crate::open_files;

/// How long guardians may take to end their trees when planctl is gone, before the helper ends everything itself.
const GUARDIANS_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the helper (`planctl __spawn`) and returns its exit status.
///
/// Call it first thing in `main`: the process must have one thread, and its standard input must be the socket that
/// [`Spawner`](super::Spawner) gave it. It ends when planctl does, after everything that was started is dead.
pub fn helper_main() -> i32 {
    open_files::take_from(std::env::args_os().nth(2));
    match Helper::prepare() {
        Ok(mut helper) => {
            helper.serve();
            0
        }
        // Nobody reads an error here; planctl sees the closed socket.
        Err(_) => 70,
    }
}

struct Helper {
    control: OwnedFd,
    signals: SignalFd,
    held: Vec<OwnedFd>,
    guardians: BTreeSet<i32>,
    reaper: Reaper,
    cgroup: Option<Delegated>,
}

impl Helper {
    fn prepare() -> std::io::Result<Helper> {
        // A session of its own: neither Ctrl-C nor a closed terminal may end it before planctl.
        rustix::process::setsid().ok();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::thread::set_name(c"planctl-spawn")?;
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        // Descriptors that planctl inherited and passed on must not stay open for the life of this process. Where the kernel
        // lacks the call, only that is lost. SAFETY: nothing here owns a descriptor above 2 yet.
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
        let control = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        reset_signals()?;
        // Every guardian inherits it.
        filter();
        Ok(Helper {
            control,
            signals: guardian::signals()?,
            held: Vec::new(),
            guardians: BTreeSet::new(),
            reaper: Reaper::default(),
            // One that can't be made ready is none; `doctor` says what was found.
            cgroup: Delegated::find().ok().filter(|cgroup| cgroup.prepare().is_ok()),
        })
    }

    fn serve(&mut self) {
        let mut buffer = [0; 16];
        loop {
            let [request, signal] = wait_readable([self.control.as_fd(), self.signals.as_fd()], None);
            let heard = if signal { read_signals(&self.signals) } else { Heard::default() };
            if heard.child {
                self.reap_guardians();
            }
            if heard.terminate {
                return self.leave(true);
            }
            if !request {
                continue;
            }
            let Ok(Some(packet)) = wire::receive(&self.control, &mut buffer, RecvFlags::empty()) else {
                return self.leave(false);
            };
            for descriptor in packet.descriptors {
                match buffer[0] {
                    HOLD => self.held.push(descriptor),
                    GUARD => self.fork_guardian(descriptor),
                    _ => {}
                }
            }
        }
    }

    fn fork_guardian(&mut self, line: OwnedFd) {
        let own = rustix::process::getpid();
        // SAFETY: this process has one thread, so the child may do anything.
        match unsafe { nix::unistd::fork() } {
            Ok(ForkResult::Parent { child }) => {
                self.guardians.insert(child.as_raw());
            }
            Ok(ForkResult::Child) => {
                // The socket to planctl must close when the helper does, not when the last guardian does.
                rustix::stdio::stdin().try_clone_to_owned().map(|null| replace(&self.control, &null)).ok();
                guardian::guardian_main(line, own, self.cgroup.as_ref());
                std::process::exit(0);
            }
            // The line closes, and planctl sees that there is no guardian.
            Err(_) => {}
        }
    }

    /// Collects dead guardians and ends the processes that they left to us.
    fn reap_guardians(&mut self) {
        let guardians = &mut self.guardians;
        let mut guardian_died = false;
        // A guardian that somebody stopped guards nothing; dead, it leaves its tree to us.
        let end_stopped = |pid| tree::signal(pid, Signal::KILL);
        self.reaper.collect_watching(|pid| guardian_died |= guardians.remove(&pid), end_stopped);
        if guardian_died {
            self.end_all_but_guardians();
        }
    }

    fn end_all_but_guardians(&mut self) {
        let keep = self.guardians.clone();
        let signals = &self.signals;
        let guardians = &mut self.guardians;
        let drain = || {
            read_signals(signals);
        };
        if !tree::descendants(&keep).is_empty() {
            tree::kill_descendants(&mut self.reaper, &keep, signals, drain, |pid| {
                guardians.remove(&pid);
            });
        }
    }

    /// Waits until all guardians have ended their trees; then nothing is left and the locks may go.
    fn leave(&mut self, tell_guardians: bool) {
        if tell_guardians {
            for guardian in &self.guardians {
                tree::signal(*guardian, Signal::TERM);
            }
        }
        let until = Instant::now() + GUARDIANS_TIMEOUT;
        while Instant::now() < until {
            if !self.reaper.reap(|_| ()) {
                return;
            }
            wait_readable([self.signals.as_fd()], Some(Duration::from_millis(100)));
            read_signals(&self.signals);
        }
        let signals = &self.signals;
        let drain = || {
            read_signals(signals);
        };
        tree::kill_descendants(&mut self.reaper, &BTreeSet::new(), signals, drain, |_| ());
    }
}

/// Makes `target` name what `source` names.
fn replace(target: &OwnedFd, source: &OwnedFd) {
    use std::os::fd::AsRawFd;
    // SAFETY: both descriptors are open and ours; `target` goes on owning its number.
    unsafe { libc::dup2(source.as_raw_fd(), target.as_raw_fd()) };
    fcntl_setfd(target.as_fd(), FdFlags::CLOEXEC).ok();
}

/// Gives every signal its default action, so that commands inherit none of planctl's, and blocks the two we read.
fn reset_signals() -> nix::Result<()> {
    // The kernel's sigaction: handler (0 is the default action), flags, restorer, mask.
    let default = [0_u64; 4];
    for number in 1..=64_i64 {
        // SAFETY: installs no handler. Not by way of libc, which leaves its own two signals as they were inherited; KILL
        // and STOP refuse, which is as good.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, number, default.as_ptr(), std::ptr::null::<u64>(), 8_usize)
        };
    }
    let mut set = SigSet::empty();
    set.add(NixSignal::SIGCHLD);
    set.add(NixSignal::SIGTERM);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&set), None)
}
