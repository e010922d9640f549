//! Says how planctl, its helper and the guardians speak: one packet per message, descriptors beside it.

use std::ffi::CString;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::named::TreeName;

/// The port in the worker's network, where nothing else listens before it does.
pub(crate) const PROXY_PORT: u16 = 3128;

/// The most bytes in one packet; a longer message travels in a memory file.
pub(crate) const PACKET_BYTES_MAX: usize = 32 * 1024;
/// The most descriptors beside one packet.
const DESCRIPTORS_MAX: usize = 9;

/// Asks the helper to keep the descriptor open as long as it lives.
pub(crate) const HOLD: u8 = b'H';
/// Asks the helper for a guardian at the other end of the descriptor.
pub(crate) const GUARD: u8 = b'G';

/// The content of a packet to a guardian; `R` is a request, or a reference to one.
#[derive(Serialize, Deserialize)]
enum Body<R> {
    /// A command to run.
    Run(R),
    /// A command to run, which the last descriptor holds as such a packet.
    RunFromFile,
    /// The command with this id is to end.
    Kill { id: u64, grace: Duration },
}

/// One packet as it arrived.
pub(crate) struct Packet {
    pub(crate) length: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Sends one packet; never raises SIGPIPE.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one packet"));
    }
    loop {
        match sendmsg(socket.as_fd(), &[IoSlice::new(bytes)], &mut ancillary, flags | SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one packet; `None` says that the other side is gone.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Option<Packet>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(buffer)],
            &mut ancillary,
            flags | RecvFlags::CMSG_CLOEXEC,
        ) {
            Ok(received) => break received,
            Err(rustix::io::Errno::INTR) => {}
            // The other side left with our packets unread.
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    Ok(Some(Packet { length: received.bytes, descriptors }))
}

/// An order to a guardian.
pub(crate) enum Order {
    /// Start this; the descriptors are stdin, stdout, stderr, then those to keep open until the tree is dead. The first of
    /// these is where the listener of a proxy is handed out, where there shall be one.
    Run(Box<Request>, Vec<OwnedFd>),
    /// End the command with this id: TERM, and KILL after the grace.
    Kill { id: u64, grace: Duration },
}

impl Order {
    /// Sends a run; the first three descriptors become the command's standard streams.
    pub(crate) fn send_run(
        socket: impl AsFd,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = encoded(&Body::Run(request))?;
        if bytes.len() <= PACKET_BYTES_MAX {
            return send(socket, &bytes, descriptors, SendFlags::empty());
        }
        let mut file = std::fs::File::from(memfd_create("planctl-request", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        let mut all = descriptors.to_vec();
        all.push(file.as_fd());
        send(socket, &encoded(&Body::<&Request>::RunFromFile)?, &all, SendFlags::empty())
    }

    /// Sends a kill.
    pub(crate) fn send_kill(socket: impl AsFd, id: u64, grace: Duration) -> io::Result<()> {
        send(socket, &encoded(&Body::<&Request>::Kill { id, grace })?, &[], SendFlags::DONTWAIT)
    }

    /// Reads what arrived; `None` is a packet that makes no sense.
    pub(crate) fn decode(bytes: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Order> {
        match postcard::from_bytes(bytes).ok()? {
            Body::Run(request) => Some(Order::Run(request, descriptors)),
            Body::RunFromFile => {
                let mut file = std::fs::File::from(descriptors.pop()?);
                let mut body = Vec::new();
                file.seek(SeekFrom::Start(0)).ok()?;
                file.read_to_end(&mut body).ok()?;
                match postcard::from_bytes(&body).ok()? {
                    Body::Run(request) => Some(Order::Run(request, descriptors)),
                    Body::RunFromFile | Body::Kill { .. } => None,
                }
            }
            Body::Kill { id, grace } => Some(Order::Kill { id, grace }),
        }
    }
}

fn encoded(message: &impl Serialize) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(message).map_err(io::Error::other)
}

/// Limits of the command's resources; `None` leaves what planctl has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Seconds of CPU time of the whole tree; the guardian looks.
    pub(crate) cpu_seconds: Option<u64>,
    /// Bytes of memory of the whole tree (A19); the guardian looks.
    pub(crate) memory_bytes: Option<u64>,
    /// Processes of the tree at a time (A18); the guardian looks.
    pub(crate) processes: Option<u64>,
    /// Bytes in one file (RLIMIT_FSIZE, A22).
    pub(crate) file_bytes: Option<u64>,
    /// Files that one process has open (RLIMIT_NOFILE).
    pub(crate) open_files: Option<u64>,
}

/// How a command is kept apart; see [`crate::Confinement`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Says that it has namespaces and mounts of its own (tier 1b), beside Landlock and seccomp (tier 1a).
    pub(crate) has_namespaces: bool,
    /// Says that its users are its own, with ids of the host that nobody else has (tier 2).
    pub(crate) has_own_users: bool,
    /// Says that one of them is a network.
    pub(crate) has_own_network: bool,
    /// Says that a listener in it is handed out on the fourth descriptor.
    pub(crate) has_proxy: bool,
    pub(crate) writable: Vec<CString>,
    pub(crate) read_only: Vec<CString>,
    pub(crate) pinned: Vec<CString>,
    pub(crate) hidden: Vec<CString>,
    pub(crate) shown: Vec<CString>,
}

/// One command to start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    /// `NAME=value` each; the command has no other.
    pub(crate) environment: Vec<CString>,
    pub(crate) directory: CString,
    pub(crate) deadline: Option<Duration>,
    /// Between TERM and KILL at the deadline.
    pub(crate) grace: Duration,
    /// When planctl is gone, how long it may go on, and again between TERM and KILL.
    pub(crate) grace_if_abandoned: Duration,
    pub(crate) limits: Limits,
    pub(crate) confinement: Option<Box<Confinement>>,
    pub(crate) name: Option<TreeName>,
}

/// Where starting a command went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// No process could be made.
    Fork,
    /// The limits, session or streams could not be set.
    Prepare,
    /// The working directory is not there or not ours to enter.
    Directory,
    /// The program could not be executed.
    Execute,
    /// The isolation that was asked for could not be had, so nothing was started.
    Isolate,
    /// Another tree has its name.
    Name,
}

impl Stage {
    pub(crate) fn from_number(number: u64) -> Option<Stage> {
        [Stage::Fork, Stage::Prepare, Stage::Directory, Stage::Execute, Stage::Isolate]
            .into_iter()
            .find(|stage| *stage as u64 == number)
    }
}

/// How the command itself ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    NotStarted { stage: Stage, errno: i32 },
    Exited(i32),
    Signalled(i32),
}

/// The cause of its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// The command itself, or somebody we don't know.
    Itself,
    /// The guardian, at the deadline.
    Deadline,
    /// The guardian, when asked by planctl.
    Asked,
    /// The guardian, when the helper was gone, or the name of the tree was asked for.
    Abandoned,
    /// The guardian, since the tree used more CPU time than it may.
    OverCpu,
    /// The guardian, since the tree used more memory than it may.
    OverMemory,
    /// The guardian, since the tree had more processes than it may.
    OverProcesses,
}

/// The report of a guardian when a tree is dead.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) id: u64,
    pub(crate) outcome: Outcome,
    pub(crate) cause: Cause,
    pub(crate) duration: Duration,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) max_rss_kib: u64,
    /// Processes that the command left alive and the guardian ended.
    pub(crate) stragglers: u32,
    /// Processes that would not die; the guardian goes on waiting for them and holds the locks.
    pub(crate) survivors: u32,
}

impl Report {
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        encoded(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Report> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use planctl_engine::{NodeId, RunId};

    use super::*;

    fn request(argument: &str) -> Request {
        Request {
            id: 7,
            program: c"/bin/bash".into(),
            arguments: vec![c"bash".into(), CString::new(argument).expect("no NUL")],
            environment: vec![c"A=1".into(), c"".into()],
            directory: c"/".into(),
            deadline: Some(Duration::from_millis(1500)),
            grace: Duration::ZERO,
            grace_if_abandoned: Duration::from_secs(1),
            limits: Limits { memory_bytes: Some(1 << 30), open_files: Some(64), ..Limits::default() },
            name: Some(TreeName::of_agent(RunId::from_u128(7), &NodeId::new("step"))),
            confinement: Some(Box::new(Confinement {
                has_namespaces: true,
                has_own_users: true,
                writable: vec![c"/workspace".into()],
                hidden: vec![c"/root/.ssh".into(), c"/root/.aws".into()],
                ..Confinement::default()
            })),
        }
    }

    #[test]
    fn a_request_reads_back_as_it_was_sent_small_and_large() {
        for argument in ["-c".to_owned(), "x".repeat(100_000)] {
            let (ours, theirs) = rustix::net::socketpair(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::SEQPACKET,
                rustix::net::SocketFlags::CLOEXEC,
                None,
            )
            .expect("a socket pair");
            let null = std::fs::File::open("/dev/null").expect("/dev/null");
            Order::send_run(&ours, &request(&argument), &[null.as_fd(), null.as_fd(), null.as_fd()])
                .expect("sent");
            let mut buffer = vec![0; PACKET_BYTES_MAX];
            let packet = receive(&theirs, &mut buffer, RecvFlags::empty()).expect("received").expect("open");
            let Some(Order::Run(read, descriptors)) =
                Order::decode(&buffer[..packet.length], packet.descriptors)
            else {
                panic!("a run order");
            };
            assert_eq!(*read, request(&argument));
            assert_eq!(descriptors.len(), 3);
        }
    }

    #[test]
    fn a_report_reads_back_as_it_was_sent() {
        for outcome in [
            Outcome::NotStarted { stage: Stage::Directory, errno: 2 },
            Outcome::Exited(255),
            Outcome::Signalled(9),
        ] {
            let report = Report {
                id: 3,
                outcome,
                cause: Cause::Asked,
                duration: Duration::from_micros(12),
                user: Duration::from_millis(1),
                system: Duration::ZERO,
                max_rss_kib: 4096,
                stragglers: 2,
                survivors: 0,
            };
            assert_eq!(Report::decode(&report.encode().expect("encoded")), Some(report));
        }
    }

    #[test]
    fn a_packet_that_is_cut_short_is_no_order() {
        let bytes = encoded(&Body::Run(request("-c"))).expect("encoded");
        for length in 0..bytes.len() {
            assert!(Order::decode(&bytes[..length], Vec::new()).is_none(), "{length} bytes");
        }
    }
}
