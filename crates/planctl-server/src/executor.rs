//! The executor of a run in this process: claims one item, does it, and applies the result.
//!
//! Each item goes the same way: claim, do, apply. Outside effects happen at least once. The lease decides whether their
//! result counts, so an executor that was too slow or cut off changes nothing.

mod context;
mod prepare;
pub(crate) mod progress;
pub(crate) mod prompt_input;
pub(crate) mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, Digest, Event, Fault, FaultKind, Found, Gated, HarnessEvent, Inconclusive, Node,
    NodeId, Purpose, Role, RunId, Subscription, Task, Work,
};
use planctl_harness::{
    Baseline, Checkpoints, ContractRunner, Isolation, Masks, Output, Spawner, Stability, WorkspaceLock,
    Written,
};
use planctl_store::{
    Claim, ClaimLane, Claimed, Holder, News, NextClaim, Renewal, RunConfig, Store, StoreError, WorktreeRow,
};
use tokio::sync::watch;

use crate::clock;
use crate::executor::progress::{Activity, LiveActivity};
use crate::executor::prompt_input::PromptInput;
use crate::executor::slots::Slot;
use crate::node::in_flight::InFlight;
use crate::node::runtime::blocking;
use crate::node::secrets::Secrets;
use crate::node::services::ServiceError;
use crate::plans::sub_plans::{Within, around_folder, folder_problem};
use crate::runs::settings::RunSettings;
use crate::verify::protection;
use crate::workspaces::branch_worktrees::{self, Branches};
use crate::workspaces::by_products;
use crate::workspaces::checkpoints::kept_in;
use crate::workspaces::contract_writes;
use crate::workspaces::worktrees::shell_word;

/// How many renewals of a lease may fail before it runs out.
const HEARTBEATS: u32 = 3;

/// How long a gate waits before it tries the workspace's lock again.
const LOCKED_AGAIN: Duration = Duration::from_millis(10);

/// Resolves when what is under way shall end.
type Cancel = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Works the items of one run in this process.
pub struct Executor {
    pub(crate) store: Store,
    pub(crate) spawner: Spawner,
    pub(crate) holder: Holder,
    pub(crate) scratch: PathBuf,
    pub(crate) locks: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) run: RunId,
    pub(crate) plan: String,
    /// The plans in whose files planctl marks what comes of the run: its own, and those of the runs around it.
    pub(crate) marked_plans: BTreeSet<String>,
    pub(crate) workspace: PathBuf,
    /// The workspace that the plan is of.
    pub(crate) home: String,
    pub(crate) worktree: Option<WorktreeRow>,
    /// Workspaces of other plans, which are hidden from what is confined.
    pub(crate) neighbours: Vec<PathBuf>,
    pub(crate) settings: RunSettings,
    pub(crate) approved: Baseline,
    /// Steps that may change protected files, whose passing gates move the baseline of the others.
    pub(crate) movers: Vec<NodeId>,
    /// Says that no branches of the run work in worktrees of their own.
    pub(crate) is_in_one_place: bool,
    /// How many of the run's items may be under way at once.
    pub(crate) at_once: usize,
    /// The terms of the run for which this executor was made; where they change, another is due.
    pub(crate) made_for: RunConfig,
    pub(crate) activity: LiveActivity,
    /// The items that this process works on.
    pub(crate) in_flight: InFlight,
    /// Says that what is to be stored waits for the database however long it is away.
    pub(crate) outlasts_outages: bool,
    /// Where the values of configured variables are kept.
    pub(crate) secrets: Secrets,
    /// The values masked in workers' output; read at the first work.
    pub(crate) masks: OnceLock<Masks>,
    /// Where contracts run; made at the first gate.
    pub(crate) runner: OnceLock<ContractRunner>,
}

impl Executor {
    /// Sees a claimed item through, and what follows from it and is the harness's: the gate, a rehearsal, a call, a decision.
    /// Returns the work that was claimed with the last of these.
    pub(crate) async fn see_through(
        &self,
        claimed: &Claimed,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let done = match &claimed.item.work {
            Work::Agent { .. } => self.work(claimed, slot).await,
            Work::Harness { .. } | Work::Human { .. } => self.evaluate(claimed, slot).await,
        };
        let next = match done {
            Ok(next) => self.pass_gates(next, slot).await,
            Err(error) => Err(error),
        };
        self.activity.end();
        next
    }

    /// Evaluates a gate and those that follow from its verdict; returns the work that was claimed with the last verdict.
    async fn pass_gates(
        &self,
        mut next: Option<Claimed>,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        while let Some(gate) = next.as_ref().filter(|next| !matches!(next.item.work, Work::Agent { .. })) {
            next = self.evaluate(gate, slot).await?;
        }
        Ok(next)
    }

    /// Claims work for an agent of one of these roles, if there is some.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn claim_work(&self, roles: &[Role]) -> Result<Option<Claimed>, ServiceError> {
        if roles.is_empty() {
            return Ok(None);
        }
        self.claim(ClaimLane::Agent(roles.to_vec())).await
    }

    async fn claim(&self, lane: ClaimLane) -> Result<Option<Claimed>, ServiceError> {
        let claim = Claim {
            lane,
            run: Some(self.run),
            except: Vec::new(),
            holder: self.holder.clone(),
            lease: self.store.own_lease(),
        };
        Ok(self.store.claim(&claim).await?)
    }

    /// Says what came of the work on an item, and runs the gate that follows from it. Returns the work that was claimed with
    /// the verdict, where the run serves its role itself.
    ///
    /// # Errors
    ///
    /// Those of the store; late news is no error.
    pub async fn report(
        &self,
        claimed: &Claimed,
        said: AgentSaid,
        stop: &watch::Receiver<bool>,
    ) -> Result<Option<Claimed>, ServiceError> {
        let slot = Slot::alone(stop);
        let next = self.reported(claimed, said, &slot).await?;
        self.pass_gates(next, &slot).await
    }

    /// Says what came of the work on an item; returns what was claimed with it.
    async fn reported(
        &self,
        claimed: &Claimed,
        said: AgentSaid,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let said = self.settings.priced(said);
        let event = Event::Agent(AgentEvent::new(claimed.item.at.clone(), said));
        self.say(claimed, &event, self.next_claim(slot).as_ref()).await
    }

    /// Claims what follows a report or a verdict: a gate, or work that this share may do as well. Nothing is claimed where a
    /// gate could only wait for the workspace behind another gate of the run.
    fn next_claim(&self, slot: &Slot) -> Option<NextClaim> {
        let claim = || NextClaim {
            served: if slot.takes_work() { self.settings.served() } else { Vec::new() },
            holder: self.holder.clone(),
            lease: self.store.own_lease(),
        };
        (!slot.is_waited_in(self.run)).then(claim)
    }

    /// Says of an item that planctl itself failed at it.
    pub(crate) async fn record_defect(&self, claimed: &Claimed, words: &str) -> Result<(), ServiceError> {
        let what = format!("planctl itself (a defect: {words})");
        let event = match &claimed.item.work {
            Work::Agent { .. } => {
                let message = format!("the work could not be done by {what}");
                let said = AgentSaid::Faulted(Fault::new(FaultKind::Transient, message));
                Event::Agent(AgentEvent::new(claimed.item.at.clone(), said))
            }
            Work::Harness { .. } | Work::Human { .. } => {
                let found = Found::Nothing(Inconclusive::ToolMissing { what });
                Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found })
            }
        };
        self.say(claimed, &event, None).await.map(drop)
    }

    /// Lets an agent work and reports what came of it; returns what was claimed with the report.
    async fn work(&self, claimed: &Claimed, slot: &Slot) -> Result<Option<Claimed>, ServiceError> {
        let claimed = &self.placed(claimed).await?;
        let Work::Agent { role, timeout, brief, .. } = &claimed.item.work else {
            return Err(ServiceError::broken(format!("item {} is not for an agent", claimed.item.id)));
        };
        let _held = self.in_flight.hold(&claimed.item.id);
        let task = task_of(claimed)?;
        self.begin(claimed, false);
        let Some(mut agent) = self.settings.agent(role, &self.scratch) else {
            return self.reported(claimed, no_agent(role), slot).await;
        };
        match self.secrets.open(&self.settings.variables(role)) {
            Ok(variables) => {
                agent.environment =
                    variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            }
            Err(what) => {
                let said = AgentSaid::Faulted(Fault::new(FaultKind::Permission, format!("it lacks {what}")));
                return self.reported(claimed, said, slot).await;
            }
        }
        if let Err(error) = self.settings.can_isolate_network(role) {
            let said = AgentSaid::Faulted(Fault::new(FaultKind::Permission, format!("could not {error}")));
            return self.reported(claimed, said, slot).await;
        }
        agent.masks = self.masks().clone();
        agent.isolation = self.isolation(&claimed.workspace);
        if let Some(message) = self.lost_place(claimed) {
            let said = AgentSaid::Faulted(Fault::new(FaultKind::Permission, message));
            return self.reported(claimed, said, slot).await;
        }
        if !Path::new(&claimed.workspace).is_dir() {
            let message = format!("the workspace {} is not there", claimed.workspace);
            let said = AgentSaid::Faulted(Fault::new(FaultKind::Transient, message));
            return self.reported(claimed, said, slot).await;
        }
        let place = Path::new(&claimed.workspace);
        if let Some(message) = self.settings.changed_scripts(place)? {
            let said = AgentSaid::Faulted(Fault::new(FaultKind::Permission, message));
            return self.reported(claimed, said, slot).await;
        }
        let assignment = self.prompt_input().assignment(claimed, task, role, *timeout, brief).await?;
        let (activity, masks) = (self.activity.clone(), self.masks().clone());
        let mut watch = move |_, bytes: &[u8]| activity.printed(&masks.bytes(bytes));
        let work = async |cancel| agent.work(&self.spawner, &assignment, &mut watch, cancel).await;
        let Some(mut worked) = self.minded(claimed, &slot.stop, slot, work).await else { return Ok(None) };
        worked.said = masked(self.masks(), worked.said, &mut worked.outputs)?;
        self.keep(&worked.outputs).await?;
        self.reported(claimed, worked.said, slot).await
    }

    /// Evaluates a contract and says what was found; returns what was claimed with the verdict.
    async fn evaluate(&self, claimed: &Claimed, slot: &Slot) -> Result<Option<Claimed>, ServiceError> {
        let _held = self.in_flight.hold(&claimed.item.id);
        let claimed = &self.placed(claimed).await?;
        match claimed.item.work {
            Work::Harness { purpose: purpose @ (Purpose::Record | Purpose::Restoration) } => {
                return self.checkpoint(claimed, purpose, slot).await;
            }
            Work::Harness { purpose: purpose @ (Purpose::Fork | Purpose::Merge) } => {
                return self.branch(claimed, purpose, slot).await;
            }
            Work::Harness { purpose: Purpose::SubPlan } => return self.sub_plan(claimed, slot).await,
            Work::Harness { purpose: Purpose::Verdict | Purpose::Rehearsal }
            | Work::Agent { .. }
            | Work::Human { .. } => {}
        }
        let gated = gated_of(claimed)?;
        let is_rehearsal = claimed.item.work == Work::Harness { purpose: Purpose::Rehearsal };
        self.begin(claimed, true);
        let runner = match self.lost_place(claimed) {
            Some(what) => Err(what),
            None => self.runner(Path::new(&claimed.workspace)),
        };
        let (found, outputs) = match runner {
            Err(what) => (Found::Nothing(Inconclusive::ToolMissing { what }), Vec::new()),
            Ok(runner) => {
                let baseline = Arc::new(self.baseline(claimed).await?);
                let (activity, masks) = (self.activity.clone(), self.masks().clone());
                let mut watch = move |_, bytes: &[u8]| activity.printed(&masks.bytes(bytes));
                let work = async |mut cancel: Cancel| {
                    let Some(lock) = self.workspace_lock(claimed, slot, &mut cancel).await? else {
                        return Ok((Found::Nothing(Inconclusive::Interrupted), Vec::new()));
                    };
                    let runner = runner.with_locks(lock.descriptors());
                    // A call is nothing but its command, which may want to know where it stands; a contract judges work alone.
                    let is_call = claimed.graph.task(&claimed.item.at.node).is_none();
                    let runner = if is_call { runner.at_node(claimed.item.at.node.as_str()) } else { runner };
                    let runner =
                        if is_rehearsal { runner } else { runner.with_stability(self.stability(claimed)) };
                    let gate = runner.evaluate(gated.contract, &baseline, &mut watch, cancel).await;
                    // One that was replaced meanwhile was judged in part, or not at all.
                    if let Some(what) = self.replaced_home(&claimed.run_name) {
                        return Ok((Found::Nothing(Inconclusive::Unstable { what }), Vec::new()));
                    }
                    self.note_by_products(claimed, gate.made);
                    self.note_written(claimed, &gated.contract.digest, gate.written);
                    let found = self.with_moved_files(claimed, gate.found, &gated).await?;
                    Ok::<_, ServiceError>((found, gate.outputs))
                };
                match self.minded(claimed, &slot.cut, slot, work).await {
                    Some(gate) => gate?,
                    None => return Ok(None),
                }
            }
        };
        self.keep(&outputs).await?;
        let found = match found {
            Found::Evidence(evidence) if is_rehearsal => Found::Rehearsed(evidence),
            other @ (Found::Evidence(_)
            | Found::Rehearsed(_)
            | Found::Recorded { .. }
            | Found::Restored
            | Found::Forked { .. }
            | Found::Merged { .. }
            | Found::Conflicted(_)
            | Found::Begun { .. }
            | Found::Ended(_)
            | Found::Nothing(_)) => other,
        };
        // A gate that is repeated may have to wait; the items that follow a verdict are due at once.
        let is_verdict = matches!(found, Found::Evidence(_));
        let next_claim = self.next_claim(slot).filter(|_| is_verdict);
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        self.say(claimed, &event, next_claim.as_ref()).await
    }

    /// Records the workspace, or makes it again what a checkpoint recorded; returns what was claimed with that.
    async fn checkpoint(
        &self,
        claimed: &Claimed,
        purpose: Purpose,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        self.begin(claimed, true);
        let node = &claimed.item.at.node;
        let saved = match purpose {
            Purpose::Restoration => {
                let view = self.store.run_view(self.run).await?;
                view.records.get(node).and_then(|record| record.saved.clone())
            }
            Purpose::Record
            | Purpose::Verdict
            | Purpose::Rehearsal
            | Purpose::Fork
            | Purpose::Merge
            | Purpose::SubPlan => None,
        };
        let kept = kept_in(&self.state_dir, self.run, &claimed.graph, node);
        let workspace = Path::new(&claimed.workspace);
        let work = async |mut cancel: Cancel| {
            let Some(lock) = self.workspace_lock(claimed, slot, &mut cancel).await? else {
                return Ok(Found::Nothing(Inconclusive::Interrupted));
            };
            let checkpoints = Checkpoints::new(self.spawner.holding(lock.descriptors()), kept.clone());
            let found = match (self.lost_place(claimed), &saved) {
                (Some(what), _) => Err(what),
                (None, Some(name)) => {
                    let restored = checkpoints.restore(workspace, name).await;
                    restored.map(|()| Found::Restored).map_err(|error| error.to_string())
                }
                (None, None) => {
                    let recorded = checkpoints.record(workspace).await;
                    recorded.map(|name| Found::Recorded { name }).map_err(|error| error.to_string())
                }
            };
            drop(lock);
            let nothing = |what| Found::Nothing(Inconclusive::ToolMissing { what });
            Ok::<_, ServiceError>(found.unwrap_or_else(nothing))
        };
        let Some(found) = self.minded(claimed, &slot.cut, slot, work).await else { return Ok(None) };
        let found = found?;
        // An inconclusive gate is repeated after a wait; the successor of a record is due at once.
        let is_done = !matches!(found, Found::Nothing(_));
        let next_claim = self.next_claim(slot).filter(|_| is_done);
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        self.say(claimed, &event, next_claim.as_ref()).await
    }

    /// Begins the run of a sub-plan, or says how it ended; returns what was claimed with that.
    async fn sub_plan(&self, claimed: &Claimed, slot: &Slot) -> Result<Option<Claimed>, ServiceError> {
        let plan = claimed.graph.sub_plan(&claimed.item.at.node);
        let plan =
            plan.ok_or_else(|| ServiceError::broken(format!("item {} is of no sub-plan", claimed.item.id)))?;
        self.begin(claimed, true);
        let within = Within { store: &self.store, settings: &self.settings, state_dir: &self.state_dir };
        let work = async |_: Cancel| within.look(claimed, plan).await;
        let Some(found) = self.minded(claimed, &slot.cut, slot, work).await else { return Ok(None) };
        let found = found?;
        let goes_on = matches!(found, Found::Ended(_));
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        let next_claim = self.next_claim(slot).filter(|_| goes_on);
        self.say(claimed, &event, next_claim.as_ref()).await
    }

    /// Makes worktrees for branches, or merges them; returns what was claimed with that.
    async fn branch(
        &self,
        claimed: &Claimed,
        purpose: Purpose,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        self.begin(claimed, true);
        let branches = |spawner: &Spawner| Branches::new(&self.store, spawner, &self.state_dir);
        let work = async |mut cancel: Cancel| {
            let Some(lock) = self.workspace_lock(claimed, slot, &mut cancel).await? else {
                return Ok((Found::Nothing(Inconclusive::Interrupted), Vec::new()));
            };
            let done = match self.lost_place(claimed) {
                Some(what) => Ok((Found::Nothing(Inconclusive::ToolMissing { what }), Vec::new())),
                None => {
                    let branches = branches(&self.spawner.holding(lock.descriptors()));
                    branches.do_at(claimed, purpose, &self.approved).await
                }
            };
            drop(lock);
            done
        };
        let Some(done) = self.minded(claimed, &slot.cut, slot, work).await else { return Ok(None) };
        let (found, outputs) = done?;
        self.keep(&outputs).await?;
        let merged = if matches!(found, Found::Merged { .. }) {
            branches(&self.spawner).merged_at(claimed).await?
        } else {
            None
        };
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        let next = self.say(claimed, &event, self.next_claim(slot).as_ref()).await?;
        if let Some(attempt) = merged {
            branches(&self.spawner).clear_merged(claimed, attempt).await?;
        }
        Ok(next)
    }

    /// Does something under a lease that is renewed meanwhile; stops it when the lease is gone or the process stops.
    ///
    /// Returns `None` where nobody waits for the answer any more.
    async fn minded<T, F, W>(
        &self,
        claimed: &Claimed,
        stop: &watch::Receiver<bool>,
        slot: &Slot,
        work: W,
    ) -> Option<T>
    where
        W: FnOnce(Cancel) -> F,
        F: Future<Output = T>,
    {
        let (ended, mut gone) = watch::channel(false);
        let mut stopping = stop.clone();
        let cancel = Box::pin(async move {
            tokio::select! {
                _ = gone.wait_for(|gone| *gone) => {}
                () = async {
                    if stopping.wait_for(|stop| *stop).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                } => {}
            }
        });
        let mut work = std::pin::pin!(work(cancel));
        // Runs concurrently with the work, which goes on while a renewal waits for the database.
        let mut until_lost = std::pin::pin!(self.renewed_until_lost(claimed, slot));
        tokio::select! {
            done = &mut work => return Some(done),
            () = &mut until_lost => {}
        }
        tracing::info!(item.id = %claimed.item.id, "the lease is over; what was done under it counts for nothing");
        ended.send_replace(true);
        work.await;
        // All work under the lease has ended, so the next holder need not wait for the end of the lease.
        if let Err(error) = self.store.acknowledge(claimed).await {
            tracing::warn!(%error, item.id = %claimed.item.id, "what waits for the end of an item waits out its lease");
        }
        None
    }

    /// Renews a lease again and again; ends when it is gone. An item that only waits may do so for as long as it has to.
    async fn renewed_until_lost(&self, claimed: &Claimed, slot: &Slot) {
        let notifications = self.store.listen_to_revocations(self.run);
        loop {
            tokio::select! {
                () = notifications.notified() => {}
                () = tokio::time::sleep(self.store.own_lease() / HEARTBEATS) => {}
            }
            let lease = self.store.own_lease();
            let renewed = match slot.is_waiting() {
                true => self.store.renew_waiting(claimed, lease).await,
                false => self.store.renew(claimed, lease).await,
            };
            match renewed {
                Ok(Renewal::Held { .. }) => {}
                Ok(Renewal::Cancelled | Renewal::Lost) => return,
                // The lease may outlive an outage; the event at the end is fenced in any case.
                Err(error) => tracing::warn!(%error, item.id = %claimed.item.id, "a lease was not renewed"),
            }
        }
    }

    /// Says what came of an item; late news is dropped, since the store keeps it as a note.
    async fn say(
        &self,
        claimed: &Claimed,
        event: &Event,
        next_claim: Option<&NextClaim>,
    ) -> Result<Option<Claimed>, ServiceError> {
        let applied = loop {
            match self.store.apply(self.run, event, &claimed.proof(), next_claim).await {
                Err(error) if self.waits_out(&error) => {}
                applied => break applied,
            }
        };
        match applied {
            Ok(applied) => Ok(applied.claimed_next),
            Err(StoreError::StaleLease | StoreError::Refused(_)) => {
                tracing::debug!(item.id = %claimed.item.id, "what was said came too late");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn keep(&self, outputs: &[Output]) -> Result<(), ServiceError> {
        for output in outputs {
            loop {
                match self.store.put_output(&output.digest, &output.bytes).await {
                    Err(error) if self.waits_out(&error) => {}
                    kept => break kept?,
                }
            }
        }
        Ok(())
    }

    /// Says that the same call is tried again: the executor of a daemon does so for as long as the database is away.
    fn waits_out(&self, error: &StoreError) -> bool {
        let waits = error.is_retryable() && self.outlasts_outages;
        if waits {
            tracing::debug!(%error, "what came of an item waits for the database");
        }
        waits
    }

    fn begin(&self, claimed: &Claimed, is_gate: bool) {
        self.activity.begin(Activity {
            step: claimed.graph.node(&claimed.item.at.node).and_then(Node::step),
            attempt: claimed.item.at.attempt,
            is_gate,
            since: clock::instant(),
            printed_at: None,
            last_line: None,
        });
    }

    /// Says why nothing can be done where the run works: somebody broke its worktree, or its folder is another by now.
    fn lost_place(&self, claimed: &Claimed) -> Option<String> {
        let own = self.worktree.as_ref();
        let lost = self.replaced_home(&claimed.run_name);
        let lost = lost.or_else(|| own.and_then(|own| crate::workspaces::worktrees::lost(own, &self.home)));
        let lost = lost
            .or_else(|| branch_worktrees::lost(&claimed.graph, &claimed.item.at.node, &claimed.workspace));
        lost.or_else(|| folder_problem(&self.settings.folder, &claimed.workspace))
    }

    /// Says that another folder stands in place of the workspace, which nobody approved anything in.
    fn replaced_home(&self, run: &str) -> Option<String> {
        let what = self.settings.home.as_ref()?.replaced_at(Path::new(&self.home))?;
        let (home, plan) = (shell_word(&self.home), shell_word(&self.plan));
        Some(format!(
            "the workspace {home} in which {run} was approved: {what} stands there now; put it back, or, where you mean \
             this one, approve {plan} there; then answer retry"
        ))
    }

    /// Puts an item into the place where it is worked on.
    async fn placed(&self, claimed: &Claimed) -> Result<Claimed, ServiceError> {
        let mut placed = claimed.clone();
        let workspace = self.workspace.to_string_lossy();
        let node = &claimed.item.at.node;
        placed.workspace = branch_worktrees::place_of(
            &self.store,
            &self.state_dir,
            self.run,
            &claimed.graph,
            node,
            &workspace,
        )
        .await?;
        Ok(placed)
    }

    fn masks(&self) -> &Masks {
        self.masks.get_or_init(|| self.settings.masks(&self.secrets))
    }

    fn prompt_input(&self) -> PromptInput<'_> {
        PromptInput { store: &self.store, plan: &self.plan, settings: &self.settings, masks: self.masks() }
    }

    /// Says how the run's contracts and workers are isolated where they work.
    fn isolation(&self, place: &str) -> Isolation {
        let state_dir = self.state_dir.canonicalize();
        Isolation {
            tier: self.settings.isolation,
            hidden: state_dir.into_iter().chain(self.neighbours.iter().cloned()).collect(),
            // Steps of a run that works in a folder may change the workspace around it, too.
            writable: around_folder(&self.settings.folder, place).map(Path::to_owned).into_iter().collect(),
        }
    }

    pub(crate) fn runner(&self, workspace: &Path) -> Result<ContractRunner, String> {
        let is_own = workspace == self.workspace;
        if let Some(runner) = self.runner.get().filter(|_| is_own) {
            return Ok(runner.clone());
        }
        let path = crate::verify::check::joined_path(&self.settings.contract_path);
        let env = self.secrets.open(&self.settings.contract_env)?;
        let runner = ContractRunner::new(self.spawner.clone(), workspace, Some(&path), env)
            .map_err(|refused| refused.to_string())?
            .with_isolation(self.isolation(&workspace.to_string_lossy()))
            .with_limits(self.settings.contract_limits);
        Ok(if is_own { self.runner.get_or_init(|| runner).clone() } else { runner })
    }

    /// Takes the workspace for one gate: no two run in it at once on this host, and none beside what is left of an earlier
    /// one, since the trees hold the lock until they are dead (P9, P11). Returns `None` where the gate shall end.
    ///
    /// While it waits it takes no slot; then it has the workspace first, and a slot soon after.
    async fn workspace_lock(
        &self,
        claimed: &Claimed,
        slot: &Slot,
        cancel: &mut Cancel,
    ) -> Result<Option<WorkspaceLock>, ServiceError> {
        // Contracts in a folder and in the workspace around it see the same files.
        let around = around_folder(&self.settings.folder, &claimed.workspace);
        let workspace = around.unwrap_or(Path::new(&claimed.workspace));
        let take = || {
            let taken = WorkspaceLock::try_take(&self.locks, workspace);
            taken.map_err(ServiceError::io("lock the workspace"))
        };
        let taken = take()?;
        let waiting = taken.is_none().then(|| slot.wait(self.is_in_one_place.then_some(self.run)));
        if slot.has_come(self.run) {
            self.store.wake(News::Gates);
        }
        let Some(waiting) = waiting else { return Ok(taken) };
        let waiting = async {
            loop {
                tokio::time::sleep(LOCKED_AGAIN).await;
                if let Some(lock) = take()? {
                    waiting.over().await;
                    return Ok(Some(lock));
                }
            }
        };
        let lock = tokio::select! {
            lock = waiting => lock,
            () = cancel => Ok(None),
            () = slot.closes() => Ok(None),
        };
        // Gates of the run that nobody claimed behind this one can be claimed by now.
        self.store.wake(News::Gates);
        lock
    }

    async fn baseline(&self, claimed: &Claimed) -> Result<Baseline, ServiceError> {
        if self.approved.is_empty() {
            return Ok(Baseline::default());
        }
        let moved = self.moved(claimed).await?;
        let (approved, graph, node) =
            (self.approved.clone(), claimed.graph.clone(), claimed.item.at.node.clone());
        let workspace = PathBuf::from(&claimed.workspace);
        let taken = blocking(move || match graph.gated(&node) {
            Some(gated) => protection::baseline_of_step(&approved, &gated, &moved, &workspace),
            None => Ok(Baseline::default()),
        });
        let mut baseline = taken.await??;
        // The rights that a person allowed are those that an earlier attempt asked for.
        if claimed.item.at.attempt.number() > 1 {
            let mut view = self.store.run_view(self.run).await?;
            let allowed = view.records.remove(&claimed.item.at.node).map(|record| record.allowed);
            let (allowed, workspace) = (allowed.unwrap_or_default(), PathBuf::from(&claimed.workspace));
            let with_allowed = blocking(move || baseline.allow(&workspace, &allowed).map(|()| baseline));
            baseline = with_allowed.await??;
        }
        if !baseline.globs.is_empty() || !baseline.deciding.is_empty() {
            baseline.by_products = by_products::read(&self.state_dir, Path::new(&claimed.workspace));
        }
        Ok(baseline)
    }

    /// Remembers what a contract made below protected patterns, but for what a step of the plan is meant to make. Where
    /// steps work side by side, it may as well be the work of another one.
    fn note_by_products(&self, claimed: &Claimed, made: BTreeMap<String, Digest>) {
        let is_somebodys = |path: &String| {
            let mut steps = claimed.graph.nodes().iter().filter_map(Node::gated);
            steps.any(|gated| protection::rights(&gated).frees(path))
        };
        let made: BTreeMap<String, Digest> =
            made.into_iter().filter(|(path, _)| !is_somebodys(path)).collect();
        if made.is_empty() || self.at_once > 1 {
            return;
        }
        let workspace = Path::new(&claimed.workspace);
        if let Err(error) = by_products::add(&self.state_dir, workspace, made) {
            tracing::warn!(%error, run.id = %self.run, "what a contract made will be taken for its worker's");
        }
    }

    /// Returns the files that must stay as they are while the contract of a step runs (A5). A call has no judge: it may
    /// change any file.
    fn stability(&self, claimed: &Claimed) -> Stability {
        let node = &claimed.item.at.node;
        let Some(task) = claimed.graph.task(node) else { return Stability::default() };
        let subscribed = task.subscriptions.iter().filter_map(|subscription| match subscription {
            Subscription::File { path } => Some(path.clone()),
            Subscription::Topic { .. } => None,
        });
        let plans = self.marked_plans.iter().chain(self.settings.sub_plans.keys());
        let folder = Path::new(&self.settings.folder);
        let below = plans.filter_map(|plan| Path::new(plan).strip_prefix(folder).ok());
        let mut except: BTreeSet<String> = below.map(|plan| plan.to_string_lossy().into_owned()).collect();
        // Where steps work side by side in one place, most changes are rightful work of the others.
        let is_shared = self.at_once > 1 && Path::new(&claimed.workspace) == self.workspace;
        if is_shared {
            let others = claimed.graph.nodes().iter().filter(|other| other.id != *node);
            except.extend(others.filter_map(Node::gated).flat_map(|gated| gated.may_change.iter().cloned()));
        }
        let (state_dir, workspace) = (&self.state_dir, Path::new(&claimed.workspace));
        Stability {
            tracked: !is_shared,
            subscribed: subscribed.collect(),
            except,
            written: contract_writes::read(state_dir, workspace, &task.contract.digest),
        }
    }

    fn note_written(&self, claimed: &Claimed, contract: &Digest, written: Written) {
        if written.is_empty() {
            return;
        }
        let workspace = Path::new(&claimed.workspace);
        if let Err(error) = contract_writes::note(&self.state_dir, workspace, contract, written) {
            tracing::warn!(%error, run.id = %self.run, "what a contract wrote will be taken for somebody else's");
        }
    }

    /// Returns protected files that earlier steps rightfully changed, as their passing gates found them.
    async fn moved(&self, claimed: &Claimed) -> Result<BTreeMap<String, Option<Digest>>, ServiceError> {
        let mut moved = BTreeMap::new();
        let (graph, own) = (&claimed.graph, &claimed.item.at.node);
        let others = self.movers.iter().filter(|node| *node != own);
        let nodes: Vec<_> =
            others.filter(|node| branch_worktrees::is_seen_by(graph, node, own)).cloned().collect();
        if nodes.is_empty() {
            return Ok(moved);
        }
        for (node, files) in self.store.found_files(self.run, &nodes).await? {
            let Some(other) = graph.gated(&node) else {
                moved.extend(files);
                continue;
            };
            moved.extend(
                files.into_iter().filter(|(path, _)| protection::may_move(&self.approved, &other, path)),
            );
        }
        Ok(moved)
    }

    /// Records the state of protected files that the step itself may change, for the gates after it.
    async fn with_moved_files(
        &self,
        claimed: &Claimed,
        found: Found,
        gated: &Gated<'_>,
    ) -> Result<Found, ServiceError> {
        match found {
            Found::Evidence(mut evidence) if protection::is_mover(&self.approved, gated) => {
                let known = self.moved(claimed).await?;
                let (approved, graph) = (self.approved.clone(), claimed.graph.clone());
                let (node, workspace) = (claimed.item.at.node.clone(), PathBuf::from(&claimed.workspace));
                let moved = blocking(move || match graph.gated(&node) {
                    Some(gated) => protection::moved_by(&approved, &gated, &known, &workspace),
                    None => Ok(BTreeMap::new()),
                });
                evidence.protected.extend(moved.await??);
                Ok(Found::Evidence(evidence))
            }
            Found::Evidence(_)
            | Found::Rehearsed(_)
            | Found::Recorded { .. }
            | Found::Restored
            | Found::Forked { .. }
            | Found::Merged { .. }
            | Found::Conflicted(_)
            | Found::Begun { .. }
            | Found::Ended(_)
            | Found::Nothing(_) => Ok(found),
        }
    }
}

fn gated_of(claimed: &Claimed) -> Result<Gated<'_>, ServiceError> {
    let gated = claimed.graph.gated(&claimed.item.at.node);
    gated.ok_or_else(|| ServiceError::broken(format!("item {} is of no step", claimed.item.id)))
}

fn task_of(claimed: &Claimed) -> Result<&Task, ServiceError> {
    claimed
        .graph
        .task(&claimed.item.at.node)
        .ok_or_else(|| ServiceError::broken(format!("item {} is of no step", claimed.item.id)))
}

/// Says that nobody can do the work; a claim is only made for roles that are served, so this is a race with a change.
fn no_agent(role: &Role) -> AgentSaid {
    let message = format!("no agent serves the role `{role}`");
    AgentSaid::Faulted(Fault::new(FaultKind::Transient, message))
}

/// Masks secret values in what a worker said, before it is stored.
pub(crate) fn masked(
    masks: &Masks,
    said: AgentSaid,
    outputs: &mut [Output],
) -> Result<AgentSaid, ServiceError> {
    masks
        .stored(said, outputs)
        .map_err(|error| ServiceError::broken(format!("a report does not read: {error}")))
}
