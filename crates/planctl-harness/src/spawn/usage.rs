//! Looks at what a tree of processes uses, where it may use only so much.
//!
//! The kernel's own limits count per process or per user, or need a cgroup of the run's own. The guardian is the
//! sub-reaper of the tree, so it can add up what lies beneath it in every tier and say which limit was met.

use std::time::Duration;

use nix::libc;

use super::wire::{Cause, Limits};

/// The resources that a tree uses at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Usage {
    processes: u64,
    /// Without mapped files and shared memory.
    memory_bytes: u64,
    /// Of the living, and of those that they have collected.
    cpu: Duration,
}

/// Says whether there is anything to look at.
pub(super) fn is_limited(limits: &Limits) -> bool {
    limits.cpu_seconds.is_some() || limits.memory_bytes.is_some() || limits.processes.is_some()
}

/// Returns which limit the tree beneath this process exceeds; `collected` is the CPU time of those that ended.
pub(super) fn exceeded(limits: &Limits, collected: Duration) -> Option<Cause> {
    let mut usage = Usage::default();
    let mut look_under = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = look_under.pop() {
        for child in children(parent) {
            usage.add(child, limits);
            look_under.push(child);
        }
        // A bomb grows faster than it can be counted.
        if limits.processes.is_some_and(|max| usage.processes > max) {
            return Some(Cause::OverProcesses);
        }
    }
    let is_over = |limit: Option<u64>, used: u64| limit.is_some_and(|max| used > max);
    if is_over(limits.memory_bytes, usage.memory_bytes) {
        return Some(Cause::OverMemory);
    }
    let cpu = usage.cpu + collected;
    limits.cpu_seconds.is_some_and(|max| cpu > Duration::from_secs(max)).then_some(Cause::OverCpu)
}

impl Usage {
    fn add(&mut self, process: i32, limits: &Limits) {
        self.processes += 1;
        let read = |name: &str| std::fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
        if limits.memory_bytes.is_some() {
            self.memory_bytes += anonymous_bytes(&read("status"));
        }
        if limits.cpu_seconds.is_some() {
            self.cpu += cpu_time(&read("stat"));
        }
    }
}

/// Lists the children that each thread of a process has.
fn children(process: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists =
        threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn anonymous_bytes(status: &[u8]) -> u64 {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"RssAnon:"));
    let number = line.and_then(|line| std::str::from_utf8(line).ok());
    let kib = number.and_then(|number| number.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Adds up the four times that follow the command's name, which may itself hold spaces and brackets.
fn cpu_time(stat: &[u8]) -> Duration {
    let after_name = stat.iter().rposition(|byte| *byte == b')').map_or(stat.len(), |at| at + 1);
    let fields = std::str::from_utf8(&stat[after_name..]).unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    // SAFETY: asks for a constant of the system.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Duration::from_secs(ticks) / u32::try_from(per_second).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_of_a_process_are_read() {
        assert_eq!(anonymous_bytes(b"Name:\tx\nRssAnon:\t     512 kB\nRssFile:\t 9 kB\n"), 512 * 1024);
        assert_eq!(anonymous_bytes(b""), 0);
        let stat = b"7 (a) b) S 1 7 7 0 -1 0 1 2 3 4 100 50 25 25 20 0 1";
        assert_eq!(cpu_time(stat), Duration::from_secs(2));
    }
}
