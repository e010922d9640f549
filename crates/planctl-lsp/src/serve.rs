//! One conversation over standard input and output, from its first message to its end.
//!
//! A thread reads, a thread writes, and one loop between them owns the [`Session`]. Nothing but the
//! protocol goes to standard output; logs go to standard error.

use std::io::{self, BufReader};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::{mpsc, oneshot};

use super::client::Client;
use super::frames::{self, Frame};
use super::host::Host;
use super::session::Session;

/// How many messages may wait to be handled before the editor has to.
const MESSAGES_WAITING_MAX: usize = 64;
/// How long an editor may take to read the last answers.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves one editor until it says goodbye, hangs up, or dies; says whether it ended in order.
pub async fn serve(host: &dyn Host) -> bool {
    let mut inbox = listen();
    let (client, writer) = Client::new(io::stdout());
    let mut session = Session::new(host, client);
    let mut parent: Option<oneshot::Receiver<()>> = None;
    let is_in_order = loop {
        tokio::select! {
            // Edits go first, so that findings they outdate are not published.
            biased;
            frame = inbox.recv() => match frame {
                Some(frame) => session.handle_frame(frame),
                None => break false,
            },
            done = session.next_finished() => session.on_job_end(done),
            () = parent_has_exited(&mut parent) => break false,
        }
        if let Some(is_in_order) = session.exit() {
            break is_in_order;
        }
        if let (None, Some(pid)) = (&parent, session.take_parent()) {
            match watch_process(pid) {
                Ok(watched) => parent = Some(watched),
                Err(rustix::io::Errno::SRCH) => break false,
                // Its end of the pipe closes all the same when it dies.
                Err(error) => tracing::debug!(%error, "the editor's process can't be watched"),
            }
        }
    };
    session.close().await;
    let written = tokio::task::spawn_blocking(move || writer.join());
    if tokio::time::timeout(GOODBYE, written).await.is_err() {
        tracing::debug!("the editor did not read the last answers");
    }
    is_in_order
}

fn listen() -> mpsc::Receiver<Frame> {
    let (sender, receiver) = mpsc::channel(MESSAGES_WAITING_MAX);
    std::thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        loop {
            match frames::read(&mut input) {
                Ok(Some(frame)) => {
                    if sender.blocking_send(frame).is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    return tracing::error!("the editor's messages can't be read any further: {error}");
                }
            }
        }
    });
    receiver
}

/// Watches a process from a thread; the receiver hears of its end.
fn watch_process(pid: i32) -> Result<oneshot::Receiver<()>, rustix::io::Errno> {
    let pid = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let ended = loop {
            match poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {
                Err(rustix::io::Errno::INTR) => {}
                ended => break ended,
            }
        };
        if ended.is_ok() && sender.send(()).is_err() {
            tracing::debug!("the server ended before the editor did");
        }
    });
    Ok(receiver)
}

/// Waits for the watched process to end; for ever where there is none.
async fn parent_has_exited(parent: &mut Option<oneshot::Receiver<()>>) {
    let ended = match parent {
        Some(parent) => parent.await,
        None => return std::future::pending().await,
    };
    if ended.is_err() {
        *parent = None;
        tracing::debug!("the editor's process can't be watched any more");
        std::future::pending::<()>().await;
    }
}
