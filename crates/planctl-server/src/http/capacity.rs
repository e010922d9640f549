//! Limits for all callers together: bytes of bodies in memory, and connections without a valid token.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::guard::Peer;
use crate::mutex::lock;
use planctl_api::{Code, Problem};

/// How many bytes of bodies are in memory at once, of callers on the socket, and of those on the port.
const BODY_BYTES_MAX: u32 = 32 << 20;

/// The bytes of bodies that may still arrive.
pub(super) struct Bodies {
    local: Arc<Semaphore>,
    network: Arc<Semaphore>,
}

/// The bytes that a body takes up; given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct HeldBytes(Option<OwnedSemaphorePermit>);

impl Default for Bodies {
    fn default() -> Bodies {
        let bytes = || Arc::new(Semaphore::new(BODY_BYTES_MAX as usize));
        Bodies { local: bytes(), network: bytes() }
    }
}

impl Bodies {
    /// Reads a body. Bytes are counted as they arrive, since a length that is announced may never come.
    ///
    /// # Errors
    ///
    /// [`Code::TooLarge`], [`Code::BadRequest`] where it breaks off, and [`Code::TooMany`] where the bodies of all callers
    /// together take up too much.
    pub(super) async fn read(
        &self,
        peer: Peer,
        mut body: Body,
        bytes_max: usize,
    ) -> Result<(Bytes, HeldBytes), Problem> {
        let free = match peer {
            Peer::Local { .. } => &self.local,
            Peer::Network(_) => &self.network,
        };
        // Put together at the end: a buffer that grows leaves a copy behind in the allocator each time.
        let (mut parts, mut length, mut held) = (Vec::new(), 0, HeldBytes::default());
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| Problem::new(Code::BadRequest, format!("the body broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len();
            if length > bytes_max {
                let detail = format!("the body is larger than {bytes_max} bytes");
                return Err(Problem::new(Code::TooLarge, detail));
            }
            let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let taken = Arc::clone(free).try_acquire_many_owned(count);
            let taken = taken.map_err(|_| {
                Problem::new(
                    Code::TooMany,
                    "others send so much that there is no room for this body; ask again",
                )
            })?;
            match &mut held.0 {
                Some(before) => before.merge(taken),
                None => held.0 = Some(taken),
            }
            parts.push(data);
        }
        Ok((parts.concat().into(), held))
    }
}

/// Connections to the port that have not shown a valid token, oldest first. One too many ends the oldest. A client that has
/// a token shows it at once and leaves this list.
#[derive(Clone)]
pub(super) struct Strangers(Arc<Mutex<Queue>>);

struct Queue {
    /// How many of them there may be.
    most: usize,
    made: u64,
    open: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// The slot of one connection without a valid token. It is freed when a token is shown, or on drop.
#[derive(Clone)]
pub(super) struct StrangerSlot(Arc<OfStranger>);

struct OfStranger {
    number: u64,
    strangers: Strangers,
}

impl Strangers {
    /// Reserves half of a port's connections for clients with a token.
    pub(super) fn of(connections_max: usize) -> Strangers {
        let queue = Queue { most: (connections_max / 2).max(1), made: 0, open: VecDeque::new() };
        Strangers(Arc::new(Mutex::new(queue)))
    }

    /// Adds a connection; the receiver resolves when the connection must end.
    pub(super) fn admit(&self) -> (StrangerSlot, oneshot::Receiver<()>) {
        let (make_way, must_go) = oneshot::channel();
        let mut queue = lock(&self.0);
        queue.made += 1;
        let number = queue.made;
        queue.open.push_back((number, make_way));
        if queue.open.len() > queue.most
            && let Some((_, oldest)) = queue.open.pop_front()
            && oldest.send(()).is_err()
        {
            tracing::debug!("a connection that had to make way had ended");
        }
        drop(queue);
        (StrangerSlot(Arc::new(OfStranger { number, strangers: self.clone() })), must_go)
    }
}

impl StrangerSlot {
    /// Notes that the connection has shown a valid token.
    pub(super) fn note_token(&self) {
        self.0.leave();
    }
}

impl OfStranger {
    fn leave(&self) {
        let mut queue = lock(&self.strangers.0);
        if let Ok(at) = queue.open.binary_search_by_key(&self.number, |(number, _)| *number) {
            queue.open.remove(at);
        }
    }
}

impl Drop for OfStranger {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hole_16_the_oldest_stranger_makes_way_and_who_is_known_stays() {
        const STRANGERS_MAX: usize = 1024;
        let strangers = Strangers::of(2 * STRANGERS_MAX);
        let (known, mut stays) = strangers.admit();
        known.note_token();
        let (_oldest, mut goes) = strangers.admit();
        let others: Vec<_> = (0..STRANGERS_MAX).map(|_| strangers.admit()).collect();
        assert_eq!(goes.try_recv(), Ok(()));
        // The sender of a known connection was dropped without a message.
        assert_eq!(stays.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(lock(&strangers.0).open.len(), STRANGERS_MAX);
        drop(others);
        assert!(lock(&strangers.0).open.is_empty());
    }
}
