//! The guardian: looks after one command at a time and reports when its whole tree is dead.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;

use super::cgroups::{Delegated, Group};
use super::child::{self, NotStarted, Stack};
use super::init::{self, Init};
use super::named::{self, TreeName};
use super::restrict::Restrictions;
use super::tree::{self, Reaper};
use super::usage;
use super::wire::{self, Cause, Order, Outcome, PACKET_BYTES_MAX, Report, Request, Stage};

/// Children are likelier victims than planctl when memory runs out (A19).
const OOM_SCORE: &str = "500";
/// How often a guardian looks at what a tree uses that may use only so much.
const USAGE_LOOK: Duration = Duration::from_millis(100);
/// How long a guardian waits for processes that would not die, before it gives up its locks.
const SURVIVORS_WAIT: Duration = Duration::from_secs(3600);

/// Signals that guardians and helper read from a descriptor instead of being interrupted by.
pub(super) fn signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(NixSignal::SIGCHLD);
    set.add(NixSignal::SIGTERM);
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// The events of the descriptor since the last look.
#[derive(Clone, Copy, Default)]
pub(super) struct Heard {
    pub(super) child: bool,
    pub(super) terminate: bool,
}

/// Reads all pending signals.
pub(super) fn read_signals(signals: &SignalFd) -> Heard {
    let mut heard = Heard::default();
    while let Ok(Some(signal)) = signals.read_signal() {
        match signal.ssi_signo as i32 {
            nix::libc::SIGCHLD => heard.child = true,
            nix::libc::SIGTERM => heard.terminate = true,
            _ => {}
        }
    }
    heard
}

/// Waits until one of these is readable; says which. No timeout waits for ever.
pub(super) fn wait_readable<const COUNT: usize>(
    descriptors: [BorrowedFd<'_>; COUNT],
    timeout: Option<Duration>,
) -> [bool; COUNT] {
    let timeout = timeout
        .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    let mut polled = descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => polled.map(|descriptor| !descriptor.revents().is_empty()),
        // An interruption is a look without news.
        Err(_) => [false; COUNT],
    }
}

/// Serves one run after the other until planctl or the helper is gone; the life of a freshly forked process.
pub(super) fn guardian_main(line: OwnedFd, helper: Pid, cgroup: Option<&Delegated>) {
    let prepared = rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .and_then(|()| rustix::process::set_parent_process_death_signal(Some(Signal::TERM)));
    if prepared.is_err() || rustix::process::getppid() != Some(helper) {
        return;
    }
    // Only a preference: the kernel may refuse it.
    std::fs::write("/proc/self/oom_score_adj", OOM_SCORE).ok();
    let Ok(signals) = signals() else { return };
    let (stack, buffer) = (Stack::new(), vec![0; PACKET_BYTES_MAX]);
    let mut guardian = Guardian { helper, line, signals, cgroup, stack, buffer };
    while guardian.serve_next() {}
}

struct Guardian<'a> {
    /// The process that forked this one, and ends what this one leaves behind.
    helper: Pid,
    line: OwnedFd,
    signals: SignalFd,
    /// Where commands with namespaces get cgroups of their own.
    cgroup: Option<&'a Delegated>,
    stack: Stack,
    buffer: Vec<u8>,
}

/// A message from planctl.
enum Received {
    Order(Order),
    Nonsense,
    Closed,
}

impl Guardian<'_> {
    /// Returns whether there may be another run.
    fn serve_next(&mut self) -> bool {
        // The signal of its end may have come together with that of a command, and was passed over.
        if rustix::process::getppid() != Some(self.helper) {
            return false;
        }
        loop {
            let [order, signal] = wait_readable([self.line.as_fd(), self.signals.as_fd()], None);
            if signal && read_signals(&self.signals).terminate {
                return false;
            }
            if !order {
                continue;
            }
            return match self.read() {
                Received::Closed => false,
                Received::Order(Order::Run(request, descriptors)) => self.serve(&request, descriptors),
                // A kill that came after the end it asked for.
                Received::Order(Order::Kill { .. }) | Received::Nonsense => true,
            };
        }
    }

    fn read(&mut self) -> Received {
        match wire::receive(&self.line, &mut self.buffer, RecvFlags::empty()) {
            Ok(Some(packet)) => Order::decode(&self.buffer[..packet.length], packet.descriptors)
                .map_or(Received::Nonsense, Received::Order),
            Ok(None) | Err(_) => Received::Closed,
        }
    }

    fn serve(&mut self, request: &Request, mut descriptors: Vec<OwnedFd>) -> bool {
        // Descriptors beyond the three streams are held open until the tree is dead.
        let mut held = descriptors.split_off(descriptors.len().min(3));
        let Ok(streams) = <[OwnedFd; 3]>::try_from(descriptors) else { return false };
        let started = Instant::now();
        let name = request.name.as_ref().map(TreeName::take).transpose();
        let name = name.map_err(|error| NotStarted { stage: Stage::Name, errno: error.raw_os_error() });
        let begun = name.and_then(|name| Ok((self.start(request, &streams, held.first())?, name)));
        let ((main, mut init), name) = match begun {
            Ok(begun) => begun,
            Err(NotStarted { stage, errno }) => {
                // The half-made child is still to be collected.
                while Reaper::default().reap(|_| ()) {
                    wait_readable([self.signals.as_fd()], Some(Duration::from_millis(5)));
                }
                let outcome = Outcome::NotStarted { stage, errno };
                return self.report(
                    request.id,
                    outcome,
                    Cause::Itself,
                    started.elapsed(),
                    &Reaper::default(),
                    (0, 0),
                );
            }
        };
        drop(streams);
        let group = init.as_mut().and_then(|init| init.group.take());
        let range = init.as_mut().and_then(|init| init.range.take());
        let mut reaper = Reaper::of(main);
        let mut watched = self.watch(request, main, started, &mut reaper, name.as_ref());
        held.extend(name.into_iter().chain(watched.asker.take()));
        let held = (held, range);
        let drain = || {
            read_signals(&self.signals);
        };
        let ended = if watched.any_left {
            let leaves = watched.cause == Cause::Abandoned && !request.grace_if_abandoned.is_zero();
            let waits = watched.main_ended && (watched.cause == Cause::Itself || leaves);
            if waits && !tree::wait_for_children(&mut reaper, &self.signals, drain) {
                tree::Ended::default()
            } else {
                tree::kill_descendants(&mut reaper, &BTreeSet::new(), &self.signals, drain, |_| ())
            }
        } else {
            tree::Ended::default()
        };
        if watched.cause == Cause::Itself && group.as_ref().is_some_and(Group::is_over_memory) {
            watched.cause = Cause::OverMemory;
        }
        let mut outcome = reaper.outcome.unwrap_or(Outcome::Signalled(nix::libc::SIGKILL));
        let mut counts = (ended.killed, ended.survivors);
        if let Some(init) = init
            && ended.survivors == 0
        {
            match init.record() {
                Some(record) => (outcome, counts.0) = (record.outcome, record.stragglers),
                // It was killed with all the rest, the command among them.
                None => {
                    (outcome, counts.0) = (Outcome::Signalled(nix::libc::SIGKILL), counts.0.saturating_sub(1))
                }
            }
        }
        // A caller that hears the report finds the locks free, unless something still lives.
        let held = (ended.survivors > 0).then_some((held, group));
        let reported = self.report(request.id, outcome, watched.cause, watched.duration, &reaper, counts);
        if ended.survivors > 0 {
            self.kill_survivors(&mut reaper);
            drop(held);
            return false;
        }
        reported && !watched.alone
    }

    /// Starts the command, with as much between it and the host as is asked for, or not at all.
    ///
    /// Returns the process to wait for; where namespaces are wanted it is the first one of theirs.
    fn start(
        &mut self,
        request: &Request,
        streams: &[OwnedFd; 3],
        handoff: Option<&OwnedFd>,
    ) -> Result<(i32, Option<Init>), NotStarted> {
        let Some(confinement) = &request.confinement else {
            return Ok((child::start(request, streams, &mut self.stack, None)?, None));
        };
        if confinement.has_namespaces {
            let handoff = handoff.filter(|_| confinement.has_proxy);
            let init = init::start(request, confinement, streams, handoff, self.cgroup)?;
            return Ok((init.process, Some(init)));
        }
        let restrictions = Restrictions::alone(confinement).map_err(|error| NotStarted {
            stage: Stage::Isolate,
            errno: error.raw_os_error().unwrap_or(nix::libc::EPERM),
        })?;
        Ok((child::start(request, streams, &mut self.stack, Some(&restrictions))?, None))
    }

    /// Waits for an order, somebody who asks for the tree's name, or a signal; says which of these came.
    fn wait_for_news(
        &self,
        is_alone: bool,
        name: Option<&OwnedFd>,
        timeout: Option<Duration>,
    ) -> (bool, Option<OwnedFd>, bool) {
        let signals = self.signals.as_fd();
        // A closed line is always readable.
        let line = if is_alone { signals } else { self.line.as_fd() };
        let asking = name.map_or(signals, OwnedFd::as_fd);
        let [order, asked, signal] = wait_readable([line, asking, signals], timeout);
        (order && !is_alone, name.filter(|_| asked).and_then(named::accept_asker), signal)
    }

    /// Waits for the command's end, or for a reason to end it.
    fn watch(
        &mut self,
        request: &Request,
        main: i32,
        started: Instant,
        reaper: &mut Reaper,
        name: Option<&OwnedFd>,
    ) -> Watched {
        let deadline = request.deadline.and_then(|deadline| started.checked_add(deadline));
        let mut watched = Watched {
            cause: Cause::Itself,
            any_left: true,
            main_ended: false,
            alone: false,
            asker: None,
            duration: Duration::ZERO,
        };
        let mut kill_at: Option<Instant> = None;
        // When one whose planctl is gone is asked to end.
        let mut terminate_at: Option<Instant> = None;
        let mut look_at = usage::is_limited(&request.limits).then(|| started + USAGE_LOOK);
        loop {
            let next =
                kill_at.or(terminate_at).or(if watched.cause == Cause::Itself { deadline } else { None });
            let next = [next, look_at].into_iter().flatten().min();
            let timeout = next.map(|at| at.saturating_duration_since(Instant::now()));
            let (order, asker, signal) = self.wait_for_news(watched.alone, name, timeout);
            let heard = if signal { read_signals(&self.signals) } else { Heard::default() };
            if heard.child {
                watched.any_left = reaper.reap(|_| ());
            }
            watched.duration = started.elapsed();
            watched.main_ended = reaper.outcome.is_some();
            if watched.main_ended || !watched.any_left {
                return watched;
            }
            let mut is_left = heard.terminate || asker.is_some();
            watched.asker = watched.asker.or(asker);
            if order {
                match self.read() {
                    Received::Closed => is_left = true,
                    Received::Order(Order::Kill { id, grace }) if id == request.id => {
                        if watched.cause == Cause::Itself {
                            watched.cause = Cause::Asked;
                        }
                        kill_at = Some(terminate_group(main, grace));
                    }
                    Received::Order(Order::Kill { .. } | Order::Run(..)) | Received::Nonsense => {}
                }
            }
            if is_left && !watched.alone {
                watched.cause = Cause::Abandoned;
                watched.alone = true;
                if request.grace_if_abandoned.is_zero() {
                    return watched;
                }
                terminate_at =
                    started.elapsed().checked_add(request.grace_if_abandoned).map(|after| started + after);
            }
            let now = Instant::now();
            if look_at.is_some_and(|at| now >= at) {
                if let Some(over) = usage::exceeded(&request.limits, reaper.user + reaper.system) {
                    watched.cause = over;
                    return watched;
                }
                look_at = Some(now + USAGE_LOOK);
            }
            if terminate_at.take_if(|at| now >= *at).is_some() {
                kill_at = Some(terminate_group(main, request.grace_if_abandoned));
            }
            if watched.cause == Cause::Itself && deadline.is_some_and(|deadline| now >= deadline) {
                watched.cause = Cause::Deadline;
                kill_at = Some(terminate_group(main, request.grace));
            }
            if kill_at.is_some_and(|at| now >= at) {
                return watched;
            }
        }
    }

    fn report(
        &self,
        id: u64,
        outcome: Outcome,
        cause: Cause,
        duration: Duration,
        reaper: &Reaper,
        (stragglers, survivors): (u32, u32),
    ) -> bool {
        let report = Report {
            id,
            outcome,
            cause,
            duration,
            user: reaper.user,
            system: reaper.system,
            max_rss_kib: reaper.max_rss_kib,
            stragglers,
            survivors,
        };
        report.encode().and_then(|report| wire::send(&self.line, &report, &[], SendFlags::DONTWAIT)).is_ok()
    }

    /// Keeps killing, and keeps the locks, as long as something of the tree lives.
    fn kill_survivors(&self, reaper: &mut Reaper) {
        let until = Instant::now() + SURVIVORS_WAIT;
        let drain = || {
            read_signals(&self.signals);
        };
        while Instant::now() < until
            && tree::kill_descendants(reaper, &BTreeSet::new(), &self.signals, drain, |_| ()).survivors > 0
        {
        }
    }
}

/// The result of watching a command.
struct Watched {
    cause: Cause,
    any_left: bool,
    main_ended: bool,
    /// Says that nobody is there to serve any more.
    alone: bool,
    /// The line of somebody who waits for the end of the tree.
    asker: Option<OwnedFd>,
    duration: Duration,
}

/// Asks the command's group to end, and returns when to stop asking.
fn terminate_group(main: i32, grace: Duration) -> Instant {
    if !grace.is_zero()
        && let Some(group) = Pid::from_raw(main)
    {
        // A group that is gone, or stopped for good, is met by KILL at the returned time.
        rustix::process::kill_process_group(group, Signal::TERM).ok();
        rustix::process::kill_process_group(group, Signal::CONT).ok();
    }
    Instant::now() + grace
}
