//! The first process of a confined command's namespaces: starts it, collects orphans, and takes all with it at its end.
//!
//! The kernel kills every process of a PID namespace before its first one is gone, so no process outlives it (A15). It
//! stands outside the command's Landlock domain: the command can neither signal nor trace it.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::libc;
use nix::sys::signalfd::SignalFd;
use rustix::net::SendFlags;
use rustix::process::{Pid, Signal};

use super::cgroups::{Delegated, Group};
use super::child::{self, NotStarted, Stack};
use super::guardian;
use super::namespaces::{self, Tree};
use super::restrict::Restrictions;
use super::tree::{self, Reaper};
use super::users::{self, Range, Users};
use super::wire::{self, Confinement, Outcome, PROXY_PORT, Request, Stage};

/// A confined command as its guardian has it.
pub(super) struct Init {
    /// The first process's id, as the guardian sees it.
    pub(super) process: i32,
    /// The ids that its users have on the host, where those are its own; others get them when this is dropped.
    pub(super) range: Option<Range>,
    /// Its cgroup, where it has one of its own.
    pub(super) group: Option<Group>,
    record: std::fs::File,
}

/// Reports how the first process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) outcome: Outcome,
    /// Processes that the command left alive.
    pub(super) stragglers: u32,
}

impl Init {
    /// Reads what it said; `None` where it was killed before it could. Call it when it is dead.
    pub(super) fn record(mut self) -> Option<Record> {
        let mut bytes = [0; Record::BYTES];
        self.record.read_exact(&mut bytes).ok()?;
        Record::decode(bytes)
    }
}

impl Record {
    const BYTES: usize = 16;

    fn encode(self) -> [u8; Record::BYTES] {
        let (kind, first, second) = match self.outcome {
            Outcome::NotStarted { stage, errno } => (0, stage as i32, errno),
            Outcome::Exited(code) => (1, code, 0),
            Outcome::Signalled(signal) => (2, signal, 0),
        };
        let mut bytes = [0; Record::BYTES];
        for (place, number) in [kind, first, second, self.stragglers.cast_signed()].into_iter().enumerate() {
            bytes[place * 4..place * 4 + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: [u8; Record::BYTES]) -> Option<Record> {
        let number = |place: usize| -> Option<i32> {
            Some(i32::from_le_bytes(bytes[place * 4..place * 4 + 4].try_into().ok()?))
        };
        let (first, second) = (number(1)?, number(2)?);
        let outcome = match number(0)? {
            0 => {
                Outcome::NotStarted { stage: Stage::from_number(u64::try_from(first).ok()?)?, errno: second }
            }
            1 => Outcome::Exited(first),
            2 => Outcome::Signalled(first),
            _ => return None,
        };
        Some(Record { outcome, stragglers: number(3)?.cast_unsigned() })
    }
}

/// Starts the first process; whether the command could be started stands in its record.
pub(super) fn start(
    request: &Request,
    confinement: &Confinement,
    streams: &[OwnedFd; 3],
    handoff: Option<&OwnedFd>,
    cgroup: Option<&Delegated>,
) -> Result<Init, NotStarted> {
    let failed = |error: std::io::Error| NotStarted {
        stage: Stage::Isolate,
        errno: error.raw_os_error().unwrap_or(libc::EPERM),
    };
    let (record, record_end) = std::io::pipe().map_err(failed)?;
    let (mapped, mut mapped_end) = std::io::pipe().map_err(failed)?;
    let group =
        cgroup.map(|cgroup| cgroup.create_group(&request.limits)).transpose().map_err(failed)?.flatten();
    let users = match confinement.has_own_users {
        true => Some(Users::prepare(confinement, streams).map_err(failed)?),
        false => None,
    };
    let flags = namespaces::flags(confinement) | libc::SIGCHLD;
    let process = match &users {
        Some(users) => users.clone_first(flags, &request.limits),
        None => users::clone(flags),
    };
    let process = process.map_err(failed)?;
    if process == 0 {
        let first = First { request, confinement, streams, handoff, record: record_end.into() };
        let outcome = first.run(mapped.into(), users);
        // SAFETY: ends the process without the guardian's exit handlers.
        unsafe { libc::_exit(outcome) }
    }
    let range = users.map(|users| users.range);
    // Where it doesn't succeed, the child reads the end of the pipe and leaves.
    rustix::process::setpgid(Pid::from_raw(process), Pid::from_raw(process)).ok();
    let admitted = group.as_ref().map_or(Ok(()), |group| group.add_process(process));
    if let Err(error) = admitted.and_then(|()| namespaces::map_users(process, range.as_ref())) {
        drop(mapped_end);
        tree::signal(process, Signal::KILL);
        return Err(failed(error));
    }
    mapped_end.write_all(&[1]).map_err(failed)?;
    drop(record_end);
    Ok(Init { process, range, group, record: std::fs::File::from(OwnedFd::from(record)) })
}

struct First<'a> {
    request: &'a Request,
    confinement: &'a Confinement,
    streams: &'a [OwnedFd; 3],
    /// Where the listener of a proxy is handed out.
    handoff: Option<&'a OwnedFd>,
    record: OwnedFd,
}

impl First<'_> {
    fn run(self, mapped: OwnedFd, users: Option<Users>) -> i32 {
        let (trees, closed) = users.map_or((None, Vec::new()), |users| (Some(users.trees), users.closed));
        let copies = trees.iter().flatten().map(|tree| tree.copy.as_raw_fd());
        self.close_the_rest(copies.chain([mapped.as_raw_fd()]));
        let record = self.live(mapped, trees, closed).unwrap_or_else(|errno| Record {
            outcome: Outcome::NotStarted { stage: Stage::Isolate, errno },
            stragglers: 0,
        });
        let mut pipe = std::fs::File::from(self.record);
        // A guardian that doesn't read is gone, and we with it.
        i32::from(pipe.write_all(&record.encode()).is_err())
    }

    fn live(&self, mapped: OwnedFd, trees: Option<Vec<Tree>>, closed: Vec<CString>) -> Result<Record, i32> {
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EPERM);
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| error.raw_os_error())?;
        let mut byte = [0];
        std::fs::File::from(mapped).read_exact(&mut byte).map_err(errno)?;
        let mut confinement = self.confinement.clone();
        confinement.hidden.extend(closed);
        namespaces::set_up_mounts(&confinement, trees).map_err(errno)?;
        if let Some(handoff) = self.handoff {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map_err(errno)?;
            wire::send(handoff, &[0], &[listener.as_fd()], SendFlags::empty()).map_err(errno)?;
        }
        let restrictions = Restrictions::behind_mounts(&confinement).map_err(errno)?;
        let signals = guardian::signals().map_err(|error| error as i32)?;
        let mut stack = Stack::new();
        let main = match child::start(self.request, self.streams, &mut stack, Some(&restrictions)) {
            Ok(main) => main,
            Err(NotStarted { stage, errno }) => {
                return Ok(Record { outcome: Outcome::NotStarted { stage, errno }, stragglers: 0 });
            }
        };
        Ok(watch(main, &signals))
    }

    /// Closes what belongs to the guardian: its line, and the locks that it holds.
    fn close_the_rest(&self, others: impl Iterator<Item = RawFd>) {
        let mut kept: Vec<RawFd> = self.streams.iter().map(AsRawFd::as_raw_fd).collect();
        kept.extend(self.handoff.map(AsRawFd::as_raw_fd));
        kept.extend(others.chain([self.record.as_raw_fd()]));
        kept.sort_unstable();
        let mut from = 3;
        for descriptor in kept.into_iter().filter(|descriptor| *descriptor >= 3) {
            close_range(from, descriptor - 1);
            from = descriptor + 1;
        }
        close_range(from, RawFd::MAX);
    }
}

fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: the code that owns these descriptors never runs again in this process.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Waits for the command's end, and a moment for what is about to end with it.
fn watch(main: i32, signals: &SignalFd) -> Record {
    let mut reaper = Reaper::of(main);
    let mut is_asked = false;
    loop {
        guardian::wait_readable([signals.as_fd()], Some(Duration::from_secs(60)));
        let heard = guardian::read_signals(signals);
        if heard.terminate {
            is_asked = true;
            if let Some(group) = Pid::from_raw(main) {
                // A group that is gone, or stopped for good, is met by the guardian's KILL.
                rustix::process::kill_process_group(group, Signal::TERM).ok();
                rustix::process::kill_process_group(group, Signal::CONT).ok();
            }
        }
        let any_left = reaper.reap(|_| ());
        if let Some(outcome) = reaper.outcome {
            let drain = || {
                guardian::read_signals(signals);
            };
            let settles = any_left && !is_asked;
            let leaves =
                if settles { tree::wait_for_children(&mut reaper, signals, drain) } else { any_left };
            let left = if leaves { tree::descendants(&BTreeSet::new()).len() } else { 0 };
            return Record { outcome, stragglers: u32::try_from(left).unwrap_or(u32::MAX) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        for outcome in [
            Outcome::NotStarted { stage: Stage::Isolate, errno: 1 },
            Outcome::Exited(255),
            Outcome::Signalled(9),
        ] {
            let record = Record { outcome, stragglers: 3 };
            assert_eq!(Record::decode(record.encode()), Some(record));
        }
    }
}
