//! Finds and ends everything that lives under this process.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::libc;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::Timespec;

use super::wire::Outcome;

/// How long processes that are about to end by themselves (the last of a process substitution) may take.
const SELF_END_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a killed process may take to die before it is reported as a survivor.
const DEATH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait between two looks; a SIGCHLD cuts it short.
const ROUND: Duration = Duration::from_millis(5);

/// Collects children that ended, and what they used.
#[derive(Default)]
pub(super) struct Reaper {
    main: i32,
    /// How the command ended, once it did.
    pub(super) outcome: Option<Outcome>,
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) max_rss_kib: u64,
}

impl Reaper {
    /// Collects for the command with this process id.
    pub(super) fn of(main: i32) -> Reaper {
        Reaper { main, ..Reaper::default() }
    }

    /// Collects all children that have ended; says whether any child is left. `ended` sees each.
    pub(super) fn reap(&mut self, ended: impl FnMut(i32)) -> bool {
        self.collect_with(0, ended, |_| ())
    }

    /// Does the same, and tells of children that were stopped.
    pub(super) fn collect_watching(&mut self, ended: impl FnMut(i32), stopped: impl FnMut(i32)) -> bool {
        self.collect_with(libc::WUNTRACED, ended, stopped)
    }

    fn collect_with(
        &mut self,
        options: i32,
        mut ended: impl FnMut(i32),
        mut stopped: impl FnMut(i32),
    ) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: all-zero is a valid rusage.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live variables of the right type.
            let pid =
                unsafe { libc::wait4(-1, &mut status, options | libc::WNOHANG | libc::__WALL, &mut usage) };
            if pid == 0 {
                return true;
            }
            if pid < 0 {
                return std::io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD);
            }
            if libc::WIFSTOPPED(status) {
                stopped(pid);
                continue;
            }
            self.user += duration(usage.ru_utime);
            self.system += duration(usage.ru_stime);
            self.max_rss_kib = self.max_rss_kib.max(u64::try_from(usage.ru_maxrss).unwrap_or(0));
            // The number may be given out again once the command is collected.
            if pid == self.main && self.outcome.is_none() {
                self.outcome = Some(if libc::WIFSIGNALED(status) {
                    Outcome::Signalled(libc::WTERMSIG(status))
                } else {
                    Outcome::Exited(libc::WEXITSTATUS(status))
                });
            }
            ended(pid);
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// How ending a tree went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ended {
    /// Processes other than the command itself that had to be killed.
    pub(super) killed: u32,
    /// Processes that would not die.
    pub(super) survivors: u32,
}

/// Waits a moment for children that are about to end by themselves; says whether any is left.
pub(super) fn wait_for_children(reaper: &mut Reaper, signals: &impl AsFd, drain: impl Fn()) -> bool {
    let until = Instant::now() + SELF_END_TIMEOUT;
    loop {
        drain();
        if !reaper.reap(|_| ()) {
            return false;
        }
        let now = Instant::now();
        if now >= until {
            return true;
        }
        wait_readable(signals, until - now);
    }
}

/// Ends every descendant but those under `keep`: stops them all so that none can fork away, kills them, and
/// repeats until there is none.
///
/// `ended` sees every child that is collected on the way.
pub(super) fn kill_descendants(
    reaper: &mut Reaper,
    keep: &BTreeSet<i32>,
    signals: &impl AsFd,
    drain: impl Fn(),
    mut ended: impl FnMut(i32),
) -> Ended {
    let until = Instant::now() + DEATH_TIMEOUT;
    let mut killed = BTreeSet::new();
    loop {
        let alive = stop_all(keep);
        for pid in &alive {
            signal(*pid, Signal::KILL);
            if *pid != reaper.main {
                killed.insert(*pid);
            }
        }
        if alive.is_empty() && keep.is_empty() && !std::path::Path::new("/proc/self").exists() {
            end_group(reaper.main);
        }
        // With nobody left but zombies, one more collection empties the list.
        drain();
        let any_left = reaper.reap(&mut ended);
        let stragglers = u32::try_from(killed.len()).unwrap_or(u32::MAX);
        if !any_left || (alive.is_empty() && !keep.is_empty()) {
            return Ended { killed: stragglers, survivors: 0 };
        }
        if Instant::now() >= until {
            return Ended { killed: stragglers, survivors: u32::try_from(alive.len()).unwrap_or(u32::MAX) };
        }
        wait_readable(signals, ROUND);
    }
}

/// Kills the command's own group: all that can be named on a system without `/proc`.
fn end_group(main: i32) {
    if let Some(group) = Pid::from_raw(main) {
        // A group that is gone is as good.
        kill_process_group(group, Signal::KILL).ok();
    }
}

/// Stops descendants until a look finds none that wasn't stopped before, and returns them.
fn stop_all(keep: &BTreeSet<i32>) -> BTreeSet<i32> {
    let mut stopped = BTreeSet::new();
    // A tree that forks faster than we look is met again in the caller's next round.
    for _ in 0..16 {
        let found: Vec<i32> = descendants(keep).into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if found.is_empty() {
            break;
        }
        for pid in found {
            signal(pid, Signal::STOP);
        }
    }
    stopped
}

/// Sends a signal; a process that is gone already is as good as one that got it.
pub(super) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // The only other failure is a process of another user, which the caller meets again as a survivor.
        kill_process(pid, signal).ok();
    }
}

fn wait_readable(descriptor: &impl AsFd, at_most: Duration) {
    let timeout = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
    // Woken early or not, the caller looks again.
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)).ok();
}

/// Lists the living descendants of this process, except `keep` and what is under them.
pub(super) fn descendants(keep: &BTreeSet<i32>) -> Vec<i32> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let mut living = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        let Some((state, parent)) = state_and_parent(&stat) else { continue };
        children.entry(parent).or_default().push(pid);
        if !matches!(state, b'Z' | b'X') {
            living.insert(pid);
        }
    }
    let mut found = Vec::new();
    let mut look_under = vec![own];
    while let Some(parent) = look_under.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if keep.contains(child) {
                continue;
            }
            look_under.push(*child);
            if living.contains(child) {
                found.push(*child);
            }
        }
    }
    found
}

/// Reads the two fields after the command's name, which may itself hold spaces and brackets.
fn state_and_parent(stat: &[u8]) -> Option<(u8, i32)> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = stat[after_name..].split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let state = *fields.next()?.first()?;
    let parent = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some((state, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_brackets_and_spaces_does_not_confuse_the_reader() {
        assert_eq!(state_and_parent(b"12 (a) R 1 (b) S 34 12 12 0"), Some((b'S', 34)));
        assert_eq!(state_and_parent(b"12 (a"), None);
    }
}
