//! Gate slots of this process, so that a report can claim the gate that follows in the same transaction.

use std::time::Duration;

use planctl_engine::RunId;
use planctl_store::Claimed;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use crate::executor::slots::GateSlots;

/// How long a report waits for a slot.
const SOON: Duration = Duration::from_millis(30);

/// A gate that was claimed with a report, with the slot that was reserved for it.
#[derive(Debug)]
pub struct TakenGate {
    /// The leased gate.
    pub claimed: Claimed,
    /// Its slot; released on drop.
    pub slot: OwnedSemaphorePermit,
}

/// The gate slots of this process, and a channel to the loop that runs claimed gates. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Slots {
    gate_slots: GateSlots,
    taken: mpsc::UnboundedSender<TakenGate>,
}

impl Slots {
    /// Returns the slots, and the receiver of the gates that were claimed with reports.
    pub fn new(gate_slots: GateSlots) -> (Slots, mpsc::UnboundedReceiver<TakenGate>) {
        let (taken, receiver) = mpsc::unbounded_channel();
        (Slots { gate_slots, taken }, receiver)
    }

    /// Returns a slot for one gate of a run if one is free within `SOON`: with short contracts one usually is, and a separate
    /// claim of the gate would cost more. Returns `None` where the gate would have to wait for the workspace behind another.
    pub async fn try_slot(&self, run: RunId) -> Option<OwnedSemaphorePermit> {
        if self.gate_slots.has_waiting_gate(run) {
            return None;
        }
        timeout(SOON, self.gate_slots.acquire()).await.ok()?.ok()
    }

    /// Sends a gate to the loop that runs it. If that loop has ended, the lease expires and the gate is claimed again.
    pub fn run(&self, gate: TakenGate) {
        if let Err(refused) = self.taken.send(gate) {
            tracing::debug!(item.id = %refused.0.claimed.item.id, "a gate came too late for this process");
        }
    }
}
