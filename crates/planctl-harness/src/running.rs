//! Carries one command from its start to its end: moves bytes, watches the time, asks the guardian to end it.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};

use planctl_engine::Resource;

use crate::blocking::brief_file_work;
use crate::capture::{Capture, Captured};
use crate::isolation::Confinement;
use crate::open_files::is_shortage;
use crate::process::{Command, End, Finished, Input, Stream};
use crate::proxy::Handoff;
use crate::spawn::{Cause, GuardianSocket, Order, Outcome, Report, Request, Spawner, Stage, receive};

/// How much is read from a pipe at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// The most that is read after the end; a pipe holds 1 MiB at most unless somebody is privileged.
const DRAIN_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How soon a command is started again that the machine was short of something for, and how late.
const SHORTAGE_LOOK: Duration = Duration::from_millis(20);
const SHORTAGE_LOOK_MAX: Duration = Duration::from_secs(1);
/// How long a shortage is waited out.
const SHORTAGE_WAIT: Duration = Duration::from_secs(60);
/// Longer than anything runs.
const NEVER: Duration = Duration::from_secs(86_400 * 365);
/// How much of a command's output is read in a second: more than anybody reads, and little work for this process. The pipe
/// holds up a command that prints more.
const READ_BYTES_PER_SECOND: f64 = (256 << 20) as f64;
/// How much may be read at once after a while of less, and how much after each pause, which no timer keeps exactly.
const READ_BYTES_BURST: f64 = (64 << 20) as f64;
const READ_BYTES_AFTER_PAUSE: f64 = (8 << 20) as f64;
/// How long after the deadline and the grace a guardian may be silent before it counts as lost.
const SILENCE: Duration = Duration::from_secs(20);

impl Spawner {
    /// Runs a command to its end; waits until it can be started, where the machine is short of files, processes or memory
    /// for the moment.
    ///
    /// `watch` sees the output as it comes. When `cancel` resolves the command gets TERM, and KILL after its grace;
    /// when the returned future is dropped, its tree is killed after `grace_if_abandoned`.
    ///
    /// # Errors
    ///
    /// When the helper cannot be started or planctl is out of descriptors for longer than a minute; a command that cannot be
    /// started is an [`End`], no error.
    pub async fn run(
        &self,
        command: &Command,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> io::Result<Finished> {
        let mut cancel = pin!(cancel);
        let (began, mut pause) = (Instant::now(), SHORTAGE_LOOK);
        loop {
            let finished = self.run_at_once(command, watch, cancel.as_mut()).await;
            if !is_shortage(errno_of(&finished)) || began.elapsed() >= SHORTAGE_WAIT {
                return finished;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(SHORTAGE_LOOK_MAX),
                () = cancel.as_mut() => {
                    return Ok(end_before_start(End::Cancelled));
                }
            }
        }
    }

    async fn run_at_once(
        &self,
        command: &Command,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> io::Result<Finished> {
        let id = self.next_id();
        let request = match brief_file_work(|| command.request(id, self.name())) {
            Ok(request) => request,
            Err(errno) => return Ok(end_before_start(End::NotStarted { stage: Stage::Execute, errno })),
        };
        let hosts = command.confinement.as_ref().and_then(Confinement::hosts);
        let handoff = hosts.map(Handoff::open).transpose()?;
        let (mut streams, line) = Streams::open(self, command, &request, handoff.as_ref())?;
        // SAFETY: the line owns its descriptor and returns the same one until `into_inner` or the drop gives it up.
        let line = unsafe { AsyncFd::register_with_interest(line, Interest::READABLE) }?;
        let mut run = Run {
            id,
            command,
            line: &line,
            stopped: None,
            stdout: Capture::new(command.kept_bytes),
            stderr: Capture::new(command.kept_bytes),
        };
        let report = tokio::select! {
            biased;
            report = run.run_until_report(&mut streams, watch, cancel) => report?,
            never = serve_proxy(handoff) => match never {},
        };
        run.drain(&mut streams, watch);
        let (stopped, stdout, stderr) = (run.stopped, run.stdout.finish(), run.stderr.finish());
        if report.as_ref().is_some_and(|report| report.survivors == 0 && report.cause != Cause::Abandoned) {
            self.release_guardian(GuardianSocket(line.into_inner().0));
        }
        Ok(assemble_finished(report, stopped, stdout, stderr))
    }
}

/// Leads out of a command's network where a proxy shall.
async fn serve_proxy(handoff: Option<Handoff>) -> Infallible {
    match handoff {
        Some(handoff) => handoff.serve().await,
        None => pending().await,
    }
}

fn end_before_start(end: End) -> Finished {
    assemble_finished(None, Some(end), Captured::default(), Captured::default())
}

/// Returns why a command did not start.
fn errno_of(finished: &io::Result<Finished>) -> Option<i32> {
    match finished {
        Ok(Finished { end: End::NotStarted { errno, .. }, .. }) => Some(*errno),
        Ok(_) => None,
        Err(error) => error.raw_os_error(),
    }
}

fn assemble_finished(
    report: Option<Report>,
    stopped: Option<End>,
    stdout: Captured,
    stderr: Captured,
) -> Finished {
    let end = match &report {
        None => stopped.unwrap_or(End::HelperLost),
        Some(Report { outcome: Outcome::NotStarted { stage, errno }, .. }) => {
            End::NotStarted { stage: *stage, errno: *errno }
        }
        Some(Report { cause: Cause::Deadline, .. }) => End::TimedOut,
        Some(Report { cause: Cause::Abandoned, .. }) => End::HelperLost,
        Some(Report { cause: Cause::OverCpu, .. }) => End::OverLimit(Resource::Cpu),
        Some(Report { cause: Cause::OverMemory, .. }) => End::OverLimit(Resource::Memory),
        Some(Report { cause: Cause::OverProcesses, .. }) => End::OverLimit(Resource::Processes),
        // A status that followed our own signal says nothing (INTERFACE 3.3, rule 3).
        Some(Report { cause: Cause::Asked, .. }) => stopped.unwrap_or(End::Cancelled),
        Some(Report { outcome: Outcome::Exited(code), .. }) => End::Exited(*code),
        Some(Report { outcome: Outcome::Signalled(signal), .. }) => End::Signalled(*signal),
    };
    let report = report.as_ref();
    Finished {
        end,
        stdout,
        stderr,
        duration: report.map_or(Duration::ZERO, |report| report.duration),
        user: report.map_or(Duration::ZERO, |report| report.user),
        system: report.map_or(Duration::ZERO, |report| report.system),
        max_rss_kib: report.map_or(0, |report| report.max_rss_kib),
        stragglers: report.map_or(0, |report| report.stragglers),
        survivors: report.map_or(0, |report| report.survivors),
    }
}

/// Our ends of the command's streams; `None` once closed.
struct Streams<'a> {
    input: Option<(pipe::Sender, &'a [u8])>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
}

impl<'a> Streams<'a> {
    /// Opens the pipes and hands the request to a guardian; a guardian that died while idle is passed over.
    fn open(
        spawner: &Spawner,
        command: &'a Command,
        request: &Request,
        handoff: Option<&Handoff>,
    ) -> io::Result<(Streams<'a>, GuardianSocket)> {
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        let (input, input_end): (_, OwnedFd) = match &command.input {
            Input::Null => (None, std::fs::File::open("/dev/null")?.into()),
            Input::Bytes(bytes) => {
                let (end, ours) = io::pipe()?;
                (Some((pipe::Sender::from_owned_fd(ours.into())?, bytes.as_slice())), end.into())
            }
        };
        let mut descriptors: Vec<BorrowedFd<'_>> =
            vec![input_end.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()];
        descriptors.extend(handoff.map(Handoff::worker_end));
        descriptors.extend(spawner.locks().iter().chain(&command.locks).map(|lock| lock.as_fd()));
        let line = spawner.acquire_guardian()?;
        let line = match Order::send_run(&line.0, request, &descriptors) {
            Ok(()) => line,
            Err(_) => {
                let another = spawner.acquire_guardian()?;
                Order::send_run(&another.0, request, &descriptors)?;
                another
            }
        };
        let streams = Streams {
            input,
            stdout: Some(pipe::Receiver::from_owned_fd(stdout.into())?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr.into())?),
        };
        Ok((streams, line))
    }

    /// Resolves when the command may read more; never without anything left to write.
    async fn writable(&self) {
        match &self.input {
            // An error shows again at the write.
            Some((sender, _)) => drop(sender.writable().await),
            None => std::future::pending().await,
        }
    }

    /// Writes what fits and closes the stream after the last byte, or when nobody reads.
    fn write(&mut self) {
        let Some((sender, rest)) = &mut self.input else { return };
        let done = match sender.try_write(rest) {
            Ok(count) => {
                *rest = &rest[count..];
                rest.is_empty()
            }
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        if done {
            self.input = None;
        }
    }
}

async fn readable(stream: &Option<pipe::Receiver>) {
    match stream {
        // An error shows again at the read.
        Some(receiver) => drop(receiver.readable().await),
        None => std::future::pending().await,
    }
}

/// Waits until there is something to read on one of the two.
async fn either_readable(streams: &Streams<'_>) {
    tokio::select! {
        () = readable(&streams.stdout) => {}
        () = readable(&streams.stderr) => {}
    }
}

/// How much may be read right now.
struct Allowance {
    bytes: f64,
    at: Instant,
}

impl Allowance {
    fn new(at: Instant) -> Allowance {
        Allowance { bytes: READ_BYTES_BURST, at }
    }

    fn consume(&mut self, bytes: u64) {
        let now = Instant::now();
        let grown = now.duration_since(self.at).as_secs_f64() * READ_BYTES_PER_SECOND;
        (self.bytes, self.at) = ((self.bytes + grown).min(READ_BYTES_BURST) - bytes as f64, now);
    }

    /// Returns when reading goes on, where it has to pause.
    fn reads_again(&self) -> Option<Instant> {
        (self.bytes < 0.0).then(|| {
            let missing = READ_BYTES_AFTER_PAUSE - self.bytes;
            self.at + Duration::from_secs_f64(missing / READ_BYTES_PER_SECOND)
        })
    }
}

struct Run<'a> {
    id: u64,
    command: &'a Command,
    line: &'a AsyncFd<GuardianSocket>,
    /// Why we asked the guardian to end it.
    stopped: Option<End>,
    stdout: Capture,
    stderr: Capture,
}

impl std::os::fd::AsRawFd for GuardianSocket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

impl Run<'_> {
    /// Moves bytes until the guardian reports; `None` when it never will.
    async fn run_until_report(
        &mut self,
        streams: &mut Streams<'_>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> io::Result<Option<Report>> {
        let mut cancel = pin!(cancel);
        let mut buffer = Vec::with_capacity(CHUNK_BYTES);
        let started = Instant::now();
        let never = started + NEVER;
        // A configured time may be longer than `Instant` can add.
        let after = |span: Duration| Instant::now() + span.min(NEVER);
        let idle_timeout = self.command.idle_timeout.unwrap_or(NEVER);
        let mut idle_at = after(idle_timeout);
        let mut lost_at = self.command.deadline.map_or(never, |deadline| {
            after(deadline.saturating_add(self.command.grace).saturating_add(SILENCE))
        });
        if streams.input.is_some() {
            streams.write();
        }
        let mut allowance = Allowance::new(started);
        loop {
            let mut stop = None;
            let reads_again = allowance.reads_again();
            tokio::select! {
                biased;
                report = self.receive_report() => return report,
                () = &mut cancel, if self.stopped.is_none() => stop = Some(End::Cancelled),
                () = streams.writable() => streams.write(),
                () = sleep_until(reads_again.unwrap_or(never)), if reads_again.is_some() => allowance.consume(0),
                () = either_readable(streams), if reads_again.is_none() => {
                    // Both, so that neither waits for the other's end.
                    let before = self.printed();
                    self.read(Stream::Stdout, &mut streams.stdout, &mut buffer, watch);
                    self.read(Stream::Stderr, &mut streams.stderr, &mut buffer, watch);
                    let count = self.printed() - before;
                    if count > 0 {
                        idle_at = after(idle_timeout);
                        allowance.consume(count);
                    }
                }
                () = sleep_until(idle_at.min(lost_at)) => {
                    if Instant::now() >= lost_at {
                        return Ok(None);
                    }
                    stop = Some(End::IdleTimedOut);
                }
            }
            if self.is_flooded() {
                stop = Some(End::Flooded);
            }
            if let Some(end) = stop
                && self.stopped.is_none()
            {
                let grace = if end == End::Flooded { Duration::ZERO } else { self.command.grace };
                self.stopped = Some(end);
                idle_at = never;
                lost_at = lost_at.min(after(grace.saturating_add(SILENCE)));
                // A guardian that is gone shows as a closed line.
                Order::send_kill(&self.line.get_ref().0, self.id, grace).ok();
            }
        }
    }

    async fn receive_report(&self) -> io::Result<Option<Report>> {
        let mut buffer = [0; 256];
        loop {
            let mut ready = self.line.readable().await?;
            let received = ready.try_io(|line| receive(&line.get_ref().0, &mut buffer, RecvFlags::DONTWAIT));
            match received {
                Ok(Ok(Some(packet))) => {
                    // A report of an earlier run can't be here: a line is given back after its report only.
                    if let Some(report) =
                        Report::decode(&buffer[..packet.length]).filter(|report| report.id == self.id)
                    {
                        return Ok(Some(report));
                    }
                }
                Ok(Ok(None)) => return Ok(None),
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }

    /// Returns how many bytes came on both streams.
    fn printed(&self) -> u64 {
        self.stdout.bytes() + self.stderr.bytes()
    }

    /// Reads once.
    fn read(
        &mut self,
        stream: Stream,
        receiver: &mut Option<pipe::Receiver>,
        buffer: &mut Vec<u8>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) {
        let Some(open) = receiver else { return };
        buffer.clear();
        match open.try_read_buf(buffer) {
            Ok(0) => *receiver = None,
            Ok(_) => {
                self.keep(stream, buffer);
                watch(stream, buffer);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => *receiver = None,
        }
    }

    fn keep(&mut self, stream: Stream, chunk: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.push(chunk),
            Stream::Stderr => self.stderr.push(chunk),
        }
    }

    fn is_flooded(&self) -> bool {
        self.command.output_bytes_max.is_some_and(|most| self.printed() > most)
    }

    /// Reads the rest of the pipes without waiting: processes that inherited them are dead or not ours (PROMISES 3.2, 4).
    fn drain(&mut self, streams: &mut Streams<'_>, watch: &mut (dyn FnMut(Stream, &[u8]) + Send)) {
        let mut buffer = Vec::with_capacity(CHUNK_BYTES);
        let most = self.printed() + DRAIN_BYTES_MAX;
        for (stream, receiver) in
            [(Stream::Stdout, streams.stdout.take()), (Stream::Stderr, streams.stderr.take())]
        {
            let Some(receiver) = receiver else { continue };
            let Ok(pipe) = receiver.into_nonblocking_fd() else { continue };
            while self.printed() < most {
                buffer.clear();
                match rustix::io::read(&pipe, spare_capacity(&mut buffer)) {
                    Ok(0) => break,
                    Ok(_) => {
                        self.keep(stream, &buffer);
                        watch(stream, &buffer);
                    }
                    Err(Errno::INTR) => {}
                    // Empty, though somebody still has it open.
                    Err(_) => break,
                }
            }
        }
    }
}
