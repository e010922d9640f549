//! The executor of a run in this process: claims one item, does it, and applies the result.
//!
//! Each item goes the same way: claim, do, apply. Outside effects happen at least once. The lease decides whether their
//! result counts, so an executor that was too slow or cut off changes nothing.

mod agent_task;
mod call_task;
mod context;
mod gate_task;
mod harness_task;
mod judge_prompt;
mod judge_task;
mod lease_renewal;
mod place;
mod prepare;
pub(crate) mod progress;
pub(crate) mod prompt_input;
mod session_task;
pub(crate) mod slots;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use planctl_api::wire::OutputLine;
use planctl_config::Agent;
use planctl_engine::{
    AgentEvent, AgentSaid, Event, Fault, FaultKind, HarnessEvent, HarnessResult, Inconclusive, Node, NodeId,
    Role, RunId, Work,
};
use planctl_harness::{Baseline, ContractRunner, Masks, Output, Spawner};
use planctl_store::{
    Claim, ClaimLane, Claimed, Holder, NextClaim, RunConfig, Store, StoreError, WorktreeRow,
};
use tokio::sync::watch;

use crate::clock;
use crate::executor::progress::{Activity, LiveActivity};
use crate::executor::prompt_input::PromptInput;
use crate::executor::slots::Slot;
use crate::node::in_flight::InFlight;
use crate::node::metrics::Metrics;
use crate::node::secrets::Secrets;
use crate::node::services::ServiceError;
use crate::node::sessions::Sessions;
use crate::node::spool::Spool;
use crate::runs::settings::RunSettings;
use crate::traces::Traces;
pub(crate) use agent_task::masked;

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
    /// The plans in whose files planctl marks what comes of the run, with the run of each: its own, and those around it.
    pub(crate) marked_plans: BTreeMap<String, RunId>,
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
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Option<Traces>,
    /// The steps at which interactive agents work.
    pub(crate) sessions: Sessions,
    /// Says that what is to be stored waits for the database however long it is away.
    pub(crate) outlasts_outages: bool,
    /// Where the values of configured variables are kept.
    pub(crate) secrets: Secrets,
    /// The values masked in workers' output; read at the first work.
    pub(crate) masks: OnceLock<Masks>,
    /// Where contracts run; made at the first gate.
    pub(crate) runner: OnceLock<ContractRunner>,
    /// Where the repositories are noted as they were when the run that is not part of another was taken up first.
    pub(crate) repositories_noted: PathBuf,
}

impl Executor {
    /// Sees a claimed item through, and what follows from it and is the harness's: the gate, a rehearsal, a call, a decision.
    /// Returns the work that was claimed with the last of these.
    pub(crate) async fn execute(
        &self,
        claimed: &Claimed,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let done = match &claimed.item.work {
            Work::Agent { .. } => self.run_agent(claimed, slot).await,
            Work::Harness { .. } | Work::Human { .. } => self.evaluate(claimed, slot).await,
        };
        let next = match done {
            Ok(next) => self.run_gates(next, slot).await,
            Err(error) => Err(error),
        };
        self.activity.end();
        next
    }

    /// Evaluates a gate and those that follow from its verdict; returns the work that was claimed with the last verdict.
    async fn run_gates(
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
        let slot = Slot::for_one_run(stop);
        let next = self.apply_report(claimed, said, &slot).await?;
        self.run_gates(next, &slot).await
    }

    /// Applies what came of the work on an item; returns what was claimed with it.
    async fn apply_report(
        &self,
        claimed: &Claimed,
        said: AgentSaid,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let said = self.settings.priced(said);
        let event = Event::Agent(AgentEvent::new(claimed.item.at.clone(), said));
        self.apply_event(claimed, &event, self.next_claim(slot).as_ref()).await
    }

    /// Claims what follows a report or a verdict: a gate, or work that this share may do as well. Nothing is claimed where a
    /// gate could only wait for the workspace behind another gate of the run.
    fn next_claim(&self, slot: &Slot) -> Option<NextClaim> {
        let claim = || NextClaim {
            served: if slot.may_claim_next() { self.settings.served() } else { Vec::new() },
            holder: self.holder.clone(),
            lease: self.store.own_lease(),
        };
        (!slot.has_waiting_gate(self.run)).then(claim)
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
                let found = HarnessResult::Nothing(Inconclusive::ToolMissing { what });
                Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found })
            }
        };
        self.apply_event(claimed, &event, None).await.map(drop)
    }

    /// Says what came of an item; late news is dropped, since the store keeps it as a note.
    async fn apply_event(
        &self,
        claimed: &Claimed,
        event: &Event,
        next_claim: Option<&NextClaim>,
    ) -> Result<Option<Claimed>, ServiceError> {
        let applied = loop {
            match self.store.apply(self.run, event, &claimed.proof(), next_claim).await {
                Err(error) if self.retries_after(&error) => {}
                applied => break applied,
            }
        };
        match applied {
            Ok(applied) => {
                if !applied.duplicate {
                    self.metrics.count_event(self.agent_of(claimed), event, &applied.facts);
                }
                Ok(applied.claimed_next)
            }
            Err(StoreError::StaleLease | StoreError::Refused(_)) => {
                tracing::debug!(item.id = %claimed.item.id, "what was said came too late");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the name of the agent that works on an item.
    fn agent_of(&self, claimed: &Claimed) -> &'static str {
        let Work::Agent { role, .. } = &claimed.item.work else { return "" };
        self.settings.worker_for(role).map_or("", Agent::name)
    }

    async fn store_outputs(&self, outputs: &[Output]) -> Result<(), ServiceError> {
        for output in outputs {
            loop {
                match self.store.put_output(&output.digest, &output.bytes).await {
                    Err(error) if self.retries_after(&error) => {}
                    kept => break kept?,
                }
            }
        }
        Ok(())
    }

    /// Says that the same call is tried again: the executor of a daemon does so for as long as the database is away.
    fn retries_after(&self, error: &StoreError) -> bool {
        let waits = error.is_retryable() && self.outlasts_outages;
        if waits {
            tracing::debug!(%error, "what came of an item waits for the database");
        }
        waits
    }

    fn begin_activity(&self, claimed: &Claimed, is_gate: bool) {
        self.activity.begin(Activity {
            step: claimed.graph.node(&claimed.item.at.node).and_then(Node::step),
            attempt: claimed.item.at.attempt,
            is_gate,
            since: clock::instant(),
            printed_at: None,
            last_line: None,
            begun_line: Vec::new(),
        });
    }

    /// Returns what hears a worker or a contract print: the live view, and the file that others read.
    fn output_sink<S>(&self, claimed: &Claimed, from: &str) -> impl FnMut(S, &[u8]) + use<S> {
        let (activity, masks) = (self.activity.clone(), self.masks().clone());
        let at = &claimed.item.at;
        let line = OutputLine {
            step: claimed.graph.node(&at.node).and_then(Node::step),
            node: at.node.as_str().to_owned(),
            visit: at.visit,
            attempt: at.attempt.number(),
            from: from.to_owned(),
            text: String::new(),
        };
        let mut printer = Spool::in_state(&self.state_dir).open_printer(self.run, line, masks.clone());
        move |_, bytes| {
            activity.printed(&masks.mask_bytes(bytes));
            printer.feed(bytes);
        }
    }

    fn masks(&self) -> &Masks {
        self.masks.get_or_init(|| self.settings.masks(&self.secrets))
    }

    fn prompt_input(&self) -> PromptInput<'_> {
        PromptInput {
            store: &self.store,
            plan: &self.plan,
            settings: &self.settings,
            masks: self.masks(),
            traces: self.traces.as_ref(),
        }
    }
}
