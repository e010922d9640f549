//! Room for gates in this process, so that who applies a report can take the gate along in the same transaction.

use std::time::Duration;

use planctl_engine::RunId;
use planctl_store::Claimed;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use crate::executor::slots::GateSlots;

/// How long a report waits for room.
const SOON: Duration = Duration::from_millis(30);

/// A gate that was taken along, with the room it was promised.
#[derive(Debug)]
pub struct TakenGate {
    /// The leased gate.
    pub claimed: Claimed,
    /// Its room; given back when it is dropped.
    pub room: OwnedSemaphorePermit,
}

/// How many gates this process runs at once, and a way to those who run them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Slots {
    rooms: GateSlots,
    taken: mpsc::UnboundedSender<TakenGate>,
}

impl Slots {
    /// Offers room for gates; what is handed over comes out of the receiver.
    pub fn new(rooms: GateSlots) -> (Slots, mpsc::UnboundedReceiver<TakenGate>) {
        let (taken, receiver) = mpsc::unbounded_channel();
        (Slots { rooms, taken }, receiver)
    }

    /// Returns room for one gate of a run, if there is some soon: where contracts are short, room comes within that time, and
    /// putting the gate in the queue and claiming it apart would cost everybody more. None where it could only wait for
    /// the workspace behind another.
    pub async fn room_soon(&self, run: RunId) -> Option<OwnedSemaphorePermit> {
        if self.rooms.is_waited_in(run) {
            return None;
        }
        timeout(SOON, self.rooms.one()).await.ok()?.ok()
    }

    /// Hands a gate over to the loop that runs it. Where nobody does any more, its lease runs out and it is claimed anew.
    pub fn hand(&self, gate: TakenGate) {
        if let Err(refused) = self.taken.send(gate) {
            tracing::debug!(item.id = %refused.0.claimed.item.id, "a gate came too late for this process");
        }
    }
}
