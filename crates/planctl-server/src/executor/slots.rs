//! Slots for gates: how many this process runs at once. A gate that waits for its workspace occupies none, nor does one whose
//! contract has ended.
//!
//! A gate whose workspace is in use gives its slot back while it waits, so that gates of other workspaces have it. Of a run
//! that works in one place no second one is claimed meanwhile: it could only wait behind the first. Nor is one claimed
//! before the first has come to the workspace: gates have it in the order in which they became due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use planctl_engine::RunId;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::mutex::lock;
use crate::node::runtime::stopped;

/// How many gates this process runs at once. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct GateSlots {
    gates: Arc<Semaphore>,
    /// Counts the shares of items, with a slot or without.
    under_way: TaskTracker,
    waited_in: Arc<Mutex<BTreeMap<RunId, usize>>>,
    on_their_way: Arc<Mutex<OnTheirWay>>,
}

/// Gates that were claimed and have not come to their workspace.
#[derive(Debug, Default)]
struct OnTheirWay {
    runs: BTreeSet<RunId>,
    /// Says that a claim passed one of these runs over, and has to be made again.
    was_passed_over: bool,
}

impl GateSlots {
    /// Offers slots for so many gates, and for one at least.
    pub fn new(gates: usize) -> GateSlots {
        GateSlots {
            gates: Arc::new(Semaphore::new(gates.max(1))),
            under_way: TaskTracker::new(),
            waited_in: Arc::default(),
            on_their_way: Arc::default(),
        }
    }

    /// Returns a slot for one gate once there is one.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.gates.clone().acquire_owned().await
    }

    pub(crate) fn is_full(&self) -> bool {
        self.gates.available_permits() == 0
    }

    /// Says whether a gate of the run waits for its workspace.
    pub(crate) fn has_waiting_gate(&self, run: RunId) -> bool {
        lock(&self.waited_in).contains_key(&run)
    }

    /// Returns the runs of which no gate is claimed now: one waits for its workspace, or is on its way there.
    pub(crate) fn runs_to_skip(&self) -> Vec<RunId> {
        let mut runs: BTreeSet<RunId> = lock(&self.waited_in).keys().copied().collect();
        let mut on_their_way = self.on_their_way();
        on_their_way.was_passed_over = !on_their_way.runs.is_empty();
        runs.extend(&on_their_way.runs);
        runs.into_iter().collect()
    }

    /// Waits until no item has a share, an agent's neither; for those who begin no more of them.
    pub(crate) async fn wait_until_idle(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    fn on_their_way(&self) -> MutexGuard<'_, OnTheirWay> {
        lock(&self.on_their_way)
    }
}

/// The share of one item in this process: its slot, and the signals that end it.
pub(crate) struct Slot {
    /// True once no work is claimed any more, and agents and gates that wait must end.
    pub(crate) stop: watch::Receiver<bool>,
    /// True once gates must end, too.
    pub(crate) cut: watch::Receiver<bool>,
    /// For a worker's share: true once no work is claimed any more.
    work: Option<watch::Receiver<bool>>,
    slots: Option<GateSlots>,
    _under_way: Option<TaskTrackerToken>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Says that others have its slot.
    is_released: AtomicBool,
    is_waiting: AtomicBool,
    is_on_its_way: AtomicBool,
}

impl Slot {
    /// Returns the share of an item in a process with several.
    pub(crate) fn new(
        slots: GateSlots,
        permit: OwnedSemaphorePermit,
        stop: watch::Receiver<bool>,
        cut: watch::Receiver<bool>,
        work: Option<watch::Receiver<bool>>,
    ) -> Slot {
        let permit = Mutex::new(Some(permit));
        Slot {
            stop,
            cut,
            work,
            _under_way: Some(slots.under_way.token()),
            slots: Some(slots),
            permit,
            is_released: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            is_on_its_way: AtomicBool::new(false),
        }
    }

    /// Returns the share of an item in a process that works on one run only.
    pub(crate) fn for_one_run(stop: &watch::Receiver<bool>) -> Slot {
        Slot {
            stop: stop.clone(),
            cut: stop.clone(),
            work: Some(stop.clone()),
            slots: None,
            _under_way: None,
            permit: Mutex::new(None),
            is_released: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            is_on_its_way: AtomicBool::new(false),
        }
    }

    /// Says that this is a gate of the run, which others of it let go first.
    pub(crate) fn mark_first_in_run(self, run: RunId) -> Slot {
        if let Some(slots) = &self.slots {
            slots.on_their_way().runs.insert(run);
            self.is_on_its_way.store(true, Ordering::Relaxed);
        }
        self
    }

    /// Says that a gate of the run has come to its workspace, or will not; returns true if gates are to be claimed again.
    pub(crate) fn has_come(&self, run: RunId) -> bool {
        let was_on_its_way = self.is_on_its_way.swap(false, Ordering::Relaxed);
        let Some(slots) = self.slots.as_ref().filter(|_| was_on_its_way) else { return false };
        let mut on_their_way = slots.on_their_way();
        on_their_way.runs.remove(&run) && std::mem::take(&mut on_their_way.was_passed_over)
    }

    /// Says whether the work that follows from an item may be claimed for the same share.
    pub(crate) fn may_claim_next(&self) -> bool {
        self.work.as_ref().is_some_and(|stop| !*stop.borrow())
    }

    /// Says that the item waits for what others do, so that nothing of it runs.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Says whether a gate of the run waits for its workspace.
    pub(crate) fn has_waiting_gate(&self, run: RunId) -> bool {
        self.slots.as_ref().is_some_and(|slots| slots.has_waiting_gate(run))
    }

    /// Resolves when nothing is taken on any more.
    pub(crate) async fn wait_closed(&self) {
        stopped(&mut self.stop.clone()).await;
    }

    /// Begins to wait for the workspace: the slot is others' until that is over. `run` names the run where all of it works
    /// in that workspace.
    pub(crate) fn release_while_waiting(&self, run: Option<RunId>) -> WaitingGate<'_> {
        self.is_waiting.store(true, Ordering::Relaxed);
        if let (Some(slots), Some(run)) = (&self.slots, run) {
            *lock(&slots.waited_in).entry(run).or_default() += 1;
        }
        self.release();
        WaitingGate { slot: self, run }
    }

    /// Begins to wait for what others do, and keeps the slot.
    pub(crate) fn wait_with_slot(&self) -> WaitingGate<'_> {
        self.is_waiting.store(true, Ordering::Relaxed);
        WaitingGate { slot: self, run: None }
    }

    /// Lets another gate run while this one's verdict is stored. Where work may follow under the same slot, it stays its own.
    pub(crate) fn release_while_storing(&self) {
        if self.work.is_none() {
            self.release();
        }
    }

    /// Gives the slot to others.
    fn release(&self) {
        let released = lock(&self.permit).take();
        if released.is_some() {
            self.is_released.store(true, Ordering::Relaxed);
        }
    }

    /// Begins to wait for a slot where it was given to others and none is free.
    pub(crate) fn wait_again(&self) -> Option<WaitingGate<'_>> {
        let slots = self.slots.as_ref().filter(|_| self.is_released.load(Ordering::Relaxed))?;
        if let Ok(permit) = slots.gates.clone().try_acquire_owned() {
            self.take(permit);
            return None;
        }
        Some(self.wait_with_slot())
    }

    async fn reacquire(&self) {
        // Gates that have a slot run, and wait for nobody.
        if let Some(slots) = self.slots.as_ref().filter(|_| self.is_released.load(Ordering::Relaxed))
            && let Ok(permit) = slots.acquire().await
        {
            self.take(permit);
        }
    }

    fn take(&self, permit: OwnedSemaphorePermit) {
        *lock(&self.permit) = Some(permit);
        self.is_released.store(false, Ordering::Relaxed);
    }
}

/// A gate that waits for its workspace, until this is dropped.
pub(crate) struct WaitingGate<'a> {
    slot: &'a Slot,
    run: Option<RunId>,
}

impl WaitingGate<'_> {
    /// Waits for a slot again, once the gate needs one.
    pub(crate) async fn reacquire(self) {
        self.slot.reacquire().await;
    }
}

impl Drop for WaitingGate<'_> {
    fn drop(&mut self) {
        self.slot.is_waiting.store(false, Ordering::Relaxed);
        let (Some(slots), Some(run)) = (&self.slot.slots, self.run) else { return };
        let mut waited_in = lock(&slots.waited_in);
        if let Some(count) = waited_in.get_mut(&run) {
            *count -= 1;
            if *count == 0 {
                waited_in.remove(&run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;
    use tokio::task::unconstrained;

    use super::*;

    async fn slot(slots: &GateSlots, work: Option<watch::Receiver<bool>>) -> Slot {
        let never = watch::channel(false).1;
        Slot::new(slots.clone(), slots.acquire().await.unwrap(), never.clone(), never, work)
    }

    #[tokio::test]
    async fn a_gate_whose_verdict_is_stored_leaves_its_slot_to_others_and_is_under_way_all_the_same() {
        let slots = GateSlots::new(1);
        let first = slot(&slots, None).await;
        assert!(slots.acquire().now_or_never().is_none());
        first.release_while_storing();
        let second = slot(&slots, None).await;
        let waiting = first.wait_again().expect("the slot is the second gate's");
        assert!(waiting.reacquire().now_or_never().is_none());
        drop(second);
        assert!(slots.wait_until_idle().now_or_never().is_none(), "the first verdict is not stored");
        drop(first);
        assert!(slots.wait_until_idle().now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_waits_for_the_end_of_a_gate_waits_until_its_verdict_is_stored() {
        let slots = GateSlots::new(1);
        let gate = slot(&slots, None).await;
        let mut idle = pin!(slots.wait_until_idle());
        assert!(idle.as_mut().now_or_never().is_none(), "the gate runs");
        gate.release_while_storing();
        assert!(idle.as_mut().now_or_never().is_none(), "its verdict is not stored");
        drop(gate);
        assert!(idle.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_gate_has_a_slot_however_many_others_wait_for_their_workspaces() {
        let slots = GateSlots::new(1);
        let mut waiting = Vec::new();
        for _ in 0..2_000 {
            let gate = unconstrained(slot(&slots, None)).now_or_never().expect("the slot is free");
            drop(gate.release_while_waiting(None));
            waiting.push(gate);
        }
        assert!(waiting[0].wait_again().is_none(), "it has the slot");
        assert!(slots.is_full());
    }

    #[tokio::test]
    async fn a_gate_that_follows_under_the_same_slot_waits_for_a_slot_again() {
        let slots = GateSlots::new(1);
        let first = slot(&slots, None).await;
        first.release_while_storing();
        assert!(first.wait_again().is_none());
        assert!(slots.is_full());
        assert!(first.wait_again().is_none(), "it has one");
    }

    #[tokio::test]
    async fn a_slot_under_which_work_may_follow_is_not_given_to_others() {
        let slots = GateSlots::new(1);
        let first = slot(&slots, Some(watch::channel(false).1)).await;
        first.release_while_storing();
        assert!(slots.is_full());
    }
}
