//! The loops of a process that works: each *claims, works, applies*, and restarts after any error.
//!
//! A daemon runs them for all workspaces of its host, `plan run` for its own run. Any number do on one database, and none leads. Every wait is a row, so a loop that is cut off
//! anywhere loses nothing: the next turn, here or in another process, finds the same rows.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use planctl_engine::{RunId, Work};
use planctl_store::{Claim, ClaimLane, Claimed, News};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::Instrument as _;

use crate::daemon::run_loop::Family;
use crate::executor::slots::{GateSlots, Slot};
use crate::node::ServerNode;
use crate::node::health::{ADMISSIONS, CLEARINGS, Health};
use crate::node::quarantine::words_of;
use crate::node::runtime::stopped;
use crate::node::services::ServiceError;

pub(crate) mod admit;
pub(crate) mod agents;
mod background_jobs;
mod executor_cache;
pub(crate) mod gates;
pub(crate) mod leases;
pub(crate) mod marks;
pub(crate) mod messages;
pub(crate) mod pulse;
pub(crate) mod room;
mod sweep;
pub(crate) mod traces;
mod wake;

pub(crate) use background_jobs::BackgroundJobs;
pub(crate) use executor_cache::ExecutorCache;
pub(crate) use wake::{TurnResult, Wake};

/// How long a loop waits after an error.
const AFTER_ERROR: Duration = Duration::from_millis(500);

/// The state that all loops share.
pub(crate) struct Shared {
    pub(crate) server_node: ServerNode,
    pub(crate) health: Health,
    pub(crate) executors: ExecutorCache,
    pub(crate) scope: Scope,
    /// True once no work is claimed any more.
    pub(crate) stop: watch::Receiver<bool>,
    /// True once agents, and gates that wait, must end.
    halt: watch::Receiver<bool>,
    /// True once gates must end, too.
    cut: watch::Receiver<bool>,
    pub(crate) gates: GateSlots,
    pub(crate) workers: Arc<Semaphore>,
    /// Runs that begin in a worktree, which has to be made.
    pub(crate) admissions: BackgroundJobs,
    /// Runs that are over, and leave worktrees and checkpoints.
    pub(crate) clearings: BackgroundJobs,
    /// Nothing moves, nobody works and no work is to be had; kept up by the loop of the leases.
    is_resting: AtomicBool,
}

/// Which runs a process works on.
pub(crate) enum Scope {
    /// Those of all workspaces of this host.
    Host,
    /// One, and those within it.
    Run(Family),
}

/// The senders of the three signals that end the work of a process.
pub(crate) struct Signals {
    stop: watch::Sender<bool>,
    halt: watch::Sender<bool>,
    cut: watch::Sender<bool>,
}

/// The receivers of the three signals.
pub(crate) struct Seen {
    stop: watch::Receiver<bool>,
    halt: watch::Receiver<bool>,
    cut: watch::Receiver<bool>,
}

impl Signals {
    pub(crate) fn new() -> (Signals, Seen) {
        let ((stop, stopped), (halt, halted), (cut, is_cut)) =
            (watch::channel(false), watch::channel(false), watch::channel(false));
        (Signals { stop, halt, cut }, Seen { stop: stopped, halt: halted, cut: is_cut })
    }

    /// Ends the claiming of work.
    pub(crate) fn stop_claiming(&self) {
        self.stop.send_replace(true);
    }

    /// Ends agents, and gates that wait.
    pub(crate) fn stop_agents(&self) {
        self.halt.send_replace(true);
    }

    /// Ends gates, too.
    pub(crate) fn stop_gates(&self) {
        self.cut.send_replace(true);
    }
}

impl Shared {
    /// Begins with nothing under way; so many workers and gates have a slot at once.
    pub(crate) fn new(
        server_node: ServerNode,
        health: Health,
        executors: ExecutorCache,
        scope: Scope,
        seen: Seen,
        (workers, gates): (usize, usize),
    ) -> Shared {
        Shared {
            server_node,
            health,
            executors,
            scope,
            stop: seen.stop,
            halt: seen.halt,
            cut: seen.cut,
            gates: GateSlots::new(gates),
            workers: Arc::new(Semaphore::new(workers.max(1))),
            admissions: BackgroundJobs::new(ADMISSIONS),
            clearings: BackgroundJobs::new(CLEARINGS),
            is_resting: AtomicBool::new(false),
        }
    }

    /// Waits until nothing is under way; the loops have ended.
    pub(crate) async fn wait_until_idle(&self) {
        self.gates.wait_until_idle().await;
        self.admissions.wait_until_idle().await;
        self.clearings.wait_until_idle().await;
    }

    /// Takes note of an error: a daemon goes on, and the command that works on one run ends.
    pub(crate) fn note_error(&self, what: &'static str, error: ServiceError) {
        match &self.scope {
            Scope::Host => self.health.record_error(what, &error),
            Scope::Run(family) => family.end_with(Err(error)),
        }
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Relaxed)
    }

    /// Lets the loops rest for longer where nothing moves. Once something does, each looks: its own news may have been lost.
    pub(crate) fn set_resting(&self, is_resting: bool) {
        let is_host = matches!(self.scope, Scope::Host);
        if self.is_resting.swap(is_resting && is_host, Ordering::Relaxed) && !is_resting {
            self.server_node.store().wake_listeners(News::Any);
        }
    }

    fn poll_interval<T: Turns>(&self) -> Duration {
        match self.scope {
            Scope::Host => T::PACE,
            Scope::Run(_) => T::PACE_OF_ONE,
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits for this long, or until nothing is taken on any more.
    pub(crate) async fn pause(&self, span: Duration) {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = tokio::time::sleep(span) => {}
            () = stopped(&mut stop) => {}
        }
    }

    /// Claims something of the runs that the process works on, and nothing of these.
    pub(crate) async fn claim(
        &self,
        lane: ClaimLane,
        except: Vec<RunId>,
    ) -> Result<Option<Claimed>, ServiceError> {
        let store = self.server_node.store();
        let (holder, lease) = (self.server_node.holder()?, store.own_lease());
        let runs = match &self.scope {
            Scope::Host => vec![None],
            Scope::Run(family) => family.open_runs().into_iter().map(Some).collect(),
        };
        let mut claim = Claim { lane, run: None, except, holder, lease };
        for run in runs.into_iter().filter(|run| run.is_none_or(|run| !claim.except.contains(&run))) {
            claim.run = run;
            if let Some(claimed) = store.claim(&claim).await? {
                return Ok(Some(claimed));
            }
        }
        Ok(None)
    }

    /// Executes one claimed item in a task of its own. Errors and panics are contained: its lease
    /// runs out, and it is taken up again.
    ///
    /// Where the process works on one run, the work that follows from a worker's item is claimed with the verdict and done under
    /// the same permit. Where it works on many, work is claimed in the order in which it is due, so that no run waits for
    /// another's steps.
    pub(crate) fn spawn_item(
        self: &Arc<Self>,
        claimed: Claimed,
        what: &'static str,
        permit: OwnedSemaphorePermit,
    ) {
        let is_followed =
            matches!(self.scope, Scope::Run(_)) && matches!(claimed.item.work, Work::Agent { .. });
        let work = is_followed.then(|| self.stop.clone());
        let mut slot = Slot::new(self.gates.clone(), permit, self.halt.clone(), self.cut.clone(), work);
        if matches!(claimed.item.work, Work::Harness { .. }) {
            slot = slot.mark_first_in_run(claimed.item.run);
        }
        self.server_node.metrics().count_claim(&claimed.item);
        let shared = self.clone();
        tokio::spawn(async move {
            let at_work = shared.health.count_at_work(what);
            let mut next = Some(claimed);
            while let Some(claimed) = next.take() {
                // Every line that is logged while an item is done has its ids.
                let ids = tracing::error_span!(
                    "item",
                    run.id = %claimed.item.run,
                    run.name = %claimed.run_name,
                    node.id = %claimed.item.at.node,
                    attempt = claimed.item.at.attempt.number(),
                    item.id = %claimed.item.id,
                );
                next = shared.execute_contained(&claimed, &slot).instrument(ids).await;
                if slot.has_come(claimed.item.run) {
                    shared.server_node.store().wake_listeners(News::Gates);
                }
            }
            drop((at_work, slot));
        });
    }

    /// Executes one claimed item; returns the work that was claimed with its verdict.
    async fn execute_contained(&self, claimed: &Claimed, slot: &Slot) -> Option<Claimed> {
        let run = &claimed.run_name;
        match AssertUnwindSafe(self.execute_item(claimed, slot)).catch_unwind().await {
            Ok(Ok(next)) => return next,
            Ok(Err(error)) => match &self.scope {
                Scope::Host => {
                    tracing::error!(%error, "an item was not seen through");
                    self.health.set_last_error(format!("run {run}: could not {error}"));
                }
                Scope::Run(family) => family.end_with(Err(error)),
            },
            Err(panic) => {
                let words = words_of(&*panic);
                tracing::error!("a defect of planctl: {words}");
                self.health.set_last_error(format!("run {run}: a defect of planctl: {words}"));
                self.record_defect(claimed, &words).await;
            }
        }
        None
    }

    /// Records in the run's history that planctl itself failed at an item. The item is tried again after a pause,
    /// and after some tries a person is asked. Where even that fails, the lease runs out.
    async fn record_defect(&self, claimed: &Claimed, words: &str) {
        let reporting = async {
            let executor = self.executors.for_item(&self.server_node, claimed).await?;
            executor.record_defect(claimed, words).await
        };
        match AssertUnwindSafe(reporting).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a defect could not be put on record"),
            Err(panic) => tracing::warn!(error = words_of(&*panic), "a defect could not be put on record"),
        }
    }

    async fn execute_item(&self, claimed: &Claimed, slot: &Slot) -> Result<Option<Claimed>, ServiceError> {
        #[cfg(debug_assertions)]
        planted_defect(&claimed.run_name);
        let executor = self.executors.for_item(&self.server_node, claimed).await?;
        executor.execute(claimed, slot).await
    }
}

/// One kind of turn that is taken again and again.
pub(crate) trait Turns {
    /// The name of the loop, for people.
    const NAME: &'static str;
    /// The least time from one turn to the next, however many notifications arrive.
    const PACE: Duration;

    /// The same where a process works on one run, and nobody else's load counts.
    const PACE_OF_ONE: Duration = Self::PACE;

    /// The news that wakes it.
    fn news(_: &Shared) -> News {
        News::Any
    }

    /// Returns for how long nothing that it takes on will be due; `None` where that is not known.
    async fn due(&self, _: &Shared) -> Result<Option<Duration>, ServiceError> {
        Ok(None)
    }

    /// Looks, does, applies, once.
    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError>;
}

/// Takes turns until nothing is taken on any more.
pub(crate) async fn take_turns<T: Turns>(shared: &Arc<Shared>, make: impl Fn() -> T) {
    while !shared.is_stopping() {
        let taking = AssertUnwindSafe(keep_turning(shared, make()));
        match taking.catch_unwind().await {
            Ok(()) => return,
            Err(panic) => {
                let words = words_of(&*panic);
                tracing::error!("a defect of planctl in the loop {}: {words}", T::NAME);
                shared.health.set_last_error(format!("{}: a defect of planctl: {words}", T::NAME));
                shared.pause(AFTER_ERROR).await;
            }
        }
    }
}

async fn keep_turning<T: Turns>(shared: &Arc<Shared>, mut turns: T) {
    let wake = Wake::new(shared.server_node.store(), T::news(shared));
    while !shared.is_stopping() {
        shared.health.record_turn(T::NAME);
        match turns.turn(shared).await {
            Ok(found) => wake.wait(shared, found, shared.poll_interval::<T>(), turns.due(shared)).await,
            Err(error) => {
                shared.note_error(T::NAME, error);
                shared.pause(AFTER_ERROR).await;
            }
        }
    }
}

/// Fails at the work of the run that a test names, as a defect would; debug builds only.
#[cfg(debug_assertions)]
fn planted_defect(run: &str) {
    assert!(
        std::env::var("PLANCTL_PLANTED_DEFECT").map_or(true, |wanted| wanted != run),
        "planted for a test"
    );
}
