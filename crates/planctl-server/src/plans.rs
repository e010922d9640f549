//! Plans: a plan's life (approved, rejected, started, taken up), its revisions, and the plans within it.

mod agent_scripts;
mod apply_approval;
mod baseline;
mod decide;
mod follow;
mod handed_in_revision;
pub(crate) mod policies;
mod repairs;
mod resume;
mod revisions;
mod rules;
pub(crate) mod start;
pub(crate) mod sub_plans;

use std::path::PathBuf;
use std::sync::Arc;

use planctl_api::wire::Decided;
use planctl_api::wire::calls::{Approving, StandingView};
use planctl_api::{Next, Starting};
use planctl_config::{Agent, digest_of_approved, with_worker};
use planctl_engine::{
    Answer, AskKind, Budget, Decision, Digest, End, Event, Graph, HumanEvent, NodeId, Refusal, RunStatus,
    changed_nodes,
};
use planctl_harness::Baseline;
use planctl_lang::Source;
use planctl_store::{Approval, NewApproval, NewRevision, Plan, PlanStatus, RunRow, StoreError};
use serde_json::{Value, json};

use crate::node::services::{ServiceError, Services};
use crate::plans::agent_scripts::approved_worker;
use crate::plans::start::refuse_missing_programs;
use crate::plans::sub_plans::Home;
use crate::runs::policy_approvals::policy_of;
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;
use crate::workspaces::baselines::Unnamed;

use apply_approval::Kept;

pub(crate) use crate::plans::revisions::KnownFile;

/// Where a plan stands before anything is done with it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The approval that holds for this text, configuration and workspace.
    pub approval: Option<Approval>,
    /// The text that was approved last, where it is another one.
    pub approved_before: Option<String>,
    /// The newest run of the plan.
    pub newest_run: Option<RunRow>,
}

/// The parts of a plan that an approval covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Approved<'a> {
    /// Its text.
    pub(crate) digest: &'a Digest,
    /// The configuration, with the folder in which it works.
    pub(crate) config: &'a Value,
    /// The protected files there.
    pub(crate) baseline: &'a Baseline,
    /// The agent that serves every role, where the approval is of nothing else.
    pub(crate) worker: Option<&'a Agent>,
}

/// A run that waits for its approval, as it was handed in.
#[derive(Clone, Debug)]
pub(crate) struct HandedIn {
    run: RunRow,
    plan: Plan,
    graph: Arc<Graph>,
    place: PathBuf,
    settings: RunSettings,
    /// The protected files as they are now.
    baseline: Baseline,
}

impl HandedIn {
    /// Returns the digest of the protected files: the rest of what an approval is of can't change.
    pub(crate) fn digest(&self) -> String {
        digest_of_approved(&json!(self.baseline)).as_str().to_owned()
    }
}

impl Services {
    /// Says where a plan stands.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn standing(&self, checked: &Checked) -> Result<Standing, ServiceError> {
        let Some(plan) = self.store.plan_at(self.own_workspace()?, &checked.path).await? else {
            return Ok(Standing { approval: None, approved_before: None, newest_run: None });
        };
        let digest = &checked.verification.digest;
        let approval = self.store.approval_for(plan.id, digest, &self.config_digest()).await?;
        let newest_run = self.store.newest_run_of(plan.id).await?;
        let approved_before = self.approved_before(&plan, checked).await?;
        Ok(Standing { approval, approved_before, newest_run })
    }

    /// Says what a person has to know before a plan is run; `again` asks for a new run of one that is done or failed.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn standing_view(
        &self,
        checked: &Checked,
        worker: Option<&Agent>,
        again: bool,
    ) -> Result<StandingView, ServiceError> {
        let standing = self.standing(checked).await?;
        let begins = standing.newest_run.as_ref().is_none_or(|run| match run.head.status {
            RunStatus::New | RunStatus::Awaiting | RunStatus::Ended { end: End::Cancelled } => true,
            // Of the same text it is taken up, or found done.
            RunStatus::Ended { end: End::Done | End::Failed | End::Aborted } => {
                again || run.revision != checked.verification.digest
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused => false,
        });
        let is_of_this_text = |run: &RunRow| run.revision == checked.verification.digest;
        let goes_on = !begins && standing.newest_run.as_ref().is_some_and(is_of_this_text);
        let needs_approval = begins && standing.approval.is_none();
        let plan = match self.own_workspace().ok().filter(|_| needs_approval) {
            Some(workspace) => self.store.plan_at(workspace, &checked.path).await?,
            None => None,
        };
        let (mut drift, mut uncommitted) = (Vec::new(), Vec::new());
        if let Some(graph) = checked.verification.graph.as_ref().filter(|_| needs_approval) {
            let (_, now) = self.where_approved(None, checked).await?;
            uncommitted = self.differing_from_head(&self.place_of(None)?, &now).await;
            if let Some(plan) = plan {
                drift = self.drift(plan.id, None, graph, &now).await?;
            }
        }
        if let Some(graph) = checked.verification.graph.as_ref().filter(|_| needs_approval) {
            // Nobody is asked to approve work that could not begin.
            let settings = RunSettings::new(&self.caller.config, worker.cloned(), self.tier().await?);
            refuse_missing_programs(graph, &settings)?;
        }
        let (mut by_policy, mut no_policy) = (None, Vec::new());
        if needs_approval {
            match self.policy_for(checked, worker, standing.newest_run.as_ref()).await? {
                Ok(policy) => by_policy = Some(policy.name),
                Err(refusals) => no_policy = refusals,
            }
        }
        let served = match checked.verification.graph.as_ref() {
            Some(graph) if worker.is_none() => {
                let taken_up = standing.newest_run.as_ref().filter(|_| goes_on);
                self.served_unconfigured(graph, taken_up).await?
            }
            Some(_) | None => Vec::new(),
        };
        Ok(StandingView {
            approved_before: standing.approved_before,
            needs_approval: needs_approval && by_policy.is_none(),
            by_policy,
            no_policy,
            goes_on,
            drift,
            uncommitted,
            served,
        })
    }

    async fn approved_before(&self, plan: &Plan, checked: &Checked) -> Result<Option<String>, ServiceError> {
        match self.store.last_approval(plan.id).await? {
            Some(last) if last.digest != checked.verification.digest => {
                Ok(Some(canonical(&self.store.revision(plan.id, &last.digest).await?.source)))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Approves a verified plan: this text, the effective configuration, this workspace, the protected files as they are.
    ///
    /// A run that waits for this approval goes on; one that was paused for a revision goes on with this one. Protected files
    /// that differ from what was approved last are refused unless they are named; those of a paused run stay what was
    /// approved, so that its next gate tells.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotVerified`], a conflict where the revision changes settled steps or protected files differ, and
    /// those of the store.
    pub async fn approve(&self, checked: &Checked, given: &Approving) -> Result<Decided, ServiceError> {
        let plan = self.store_revision(checked).await?;
        loop {
            let newest = self.store.newest_run_of(plan.id).await?;
            match self.approve_as_it_stands(checked, given, &plan, newest.as_ref()).await {
                Err(error) if self.has_moved(newest.as_ref(), &error).await? => {}
                approved => return approved,
            }
        }
    }

    async fn approve_as_it_stands(
        &self,
        checked: &Checked,
        given: &Approving,
        plan: &Plan,
        newest: Option<&RunRow>,
    ) -> Result<Decided, ServiceError> {
        let note = given.note.as_deref();
        if let Some(decided) = self.approve_by_vote(checked, newest, given).await? {
            return Ok(decided);
        }
        if let Some(run) = newest.filter(|run| run.head.status == RunStatus::Paused) {
            self.refuse_unless_revisable(run, plan, checked).await?;
        }
        let (folder, now) = self.where_approved(newest, checked).await?;
        let awaiting = newest.filter(|run| {
            run.head.status == RunStatus::Awaiting && run.revision == checked.verification.digest
        });
        if let Some(run) = awaiting {
            let settings = RunSettings::of(run)?;
            self.refuse_unless_as_shown(run, settings.shown.as_ref(), &now)?;
            self.refuse_changed_scripts(run, &settings)?;
        }
        let paused = newest.filter(|run| run.head.status == RunStatus::Paused);
        let unnamed = match paused {
            Some(_) => Unnamed::Keep,
            None => Unnamed::Refuse(Next::approve(&checked.path)),
        };
        let baseline = self.baseline_of_checked((plan.id, paused), checked, &now, given, &unnamed).await?;
        let config = self.caller.config.approved_in(&folder);
        let approving = Approved {
            digest: &checked.verification.digest,
            config: &config,
            baseline: &baseline,
            worker: given.worker.as_ref(),
        };
        let (approval, repeated) = self.record_approval(plan, &approving, note).await?;
        self.keep_copies(&self.place_of(newest)?, &baseline).await?;
        let sub_plans = self.keep_sub_plans(checked, &folder, None).await?;
        if let Some(graph) = &checked.verification.graph {
            self.approve_inherited(&self.home()?, graph, &config, &sub_plans, given).await?;
        }
        let file = checked.file.display().to_string();
        // A worker that is named here has to be named there as well.
        let worker = given.worker.as_ref().map(Agent::to_string);
        let mut next = Next::StartRun { plan: file.clone(), how: Starting::Usual, worker: worker.clone() };
        match newest.map(|run| (run, &run.head.status)) {
            // The marks that the run of this very text left stay.
            Some((run, RunStatus::Ended { end })) if run.revision == approval.digest => {
                if *end == End::Done {
                    next = Next::start_again_with(&file, worker);
                }
                self.server_node.draw_marks_if_possible(run.id).await;
            }
            None | Some((_, RunStatus::Ended { .. })) => self.draw_status(checked).await?,
            Some(_) => {}
        }
        let mut decided = Decided {
            decision: "approve".to_owned(),
            by: approval.by.clone(),
            next: Some(next),
            repeated,
            ..Decided::default()
        };
        if let Some(run) = newest {
            let kept = Kept { plan, approval: &approval, sub_plans: &sub_plans };
            self.apply_approval(run, checked, &kept, note, &mut decided).await?;
        }
        Ok(decided)
    }

    /// Rejects a plan: it is a draft again, its approval is void, and a run that has not begun is cancelled (P16).
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where the plan is not known, [`ServiceError::Conflict`] where a run of it is under way,
    /// and those of the store.
    pub async fn reject(&self, checked: &Checked, note: &str) -> Result<Decided, ServiceError> {
        let plan = self.store.plan_at(self.own_workspace()?, &checked.path).await?.ok_or_else(|| {
            ServiceError::NotFound {
                what: format!("plan {}: it was never approved or run here", checked.path),
            }
        })?;
        loop {
            let newest = self.store.newest_run_of(plan.id).await?;
            match self.reject_as_it_stands(checked, note, &plan, newest.as_ref()).await {
                Err(error) if self.has_moved(newest.as_ref(), &error).await? => {}
                rejected => return rejected,
            }
        }
    }

    async fn reject_as_it_stands(
        &self,
        checked: &Checked,
        note: &str,
        plan: &Plan,
        newest: Option<&RunRow>,
    ) -> Result<Decided, ServiceError> {
        let mut decided = Decided {
            decision: "reject".to_owned(),
            by: self.caller.actor.to_string(),
            next: Some(Next::EditPlan { plan: checked.file.display().to_string() }),
            repeated: plan.status == PlanStatus::Draft,
            ..Decided::default()
        };
        if let Some(run) = newest {
            match run.head.status {
                RunStatus::Active => {
                    return Err(ServiceError::Conflict {
                        what: format!("reject {}: {} is under way", checked.path, run.name),
                        next: Next::cancel(&run.name),
                    });
                }
                RunStatus::Awaiting => {
                    if let Some(ask) = self.plan_ask(run).await? {
                        let reject = Decision::Answer { item: ask.item, answer: Answer::Reject };
                        self.decide(run.id, reject, Some(note)).await?;
                        decided.ask = u64::try_from(ask.number).ok();
                        decided.run = Some(run.name.clone());
                    }
                }
                RunStatus::New | RunStatus::Queued { .. } => {
                    self.decide(run.id, Decision::Cancel, Some(note)).await?;
                    decided.run = Some(run.name.clone());
                }
                RunStatus::Paused | RunStatus::Ended { .. } => {}
            }
        }
        self.store.void_approvals(plan.id, note).await?;
        if self.store.plan(plan.id).await?.status != PlanStatus::Draft {
            self.store.move_plan(plan.id, PlanStatus::Draft, self.caller.actor.as_str(), note).await?;
        }
        match newest {
            Some(run) => self.server_node.mark_now(run.id).await?,
            None => self.draw_status(checked).await?,
        }
        Ok(decided)
    }

    /// Writes how a plan stands into its file, where no run does.
    async fn draw_status(&self, checked: &Checked) -> Result<(), ServiceError> {
        let Some(plan) = self.store.plan_at(self.own_workspace()?, &checked.path).await? else {
            return Ok(());
        };
        let (file, digest) = (self.own_folder()?.join(&checked.path), checked.verification.digest.clone());
        self.server_node.draw_status_if_possible(file, digest, plan.status).await;
        Ok(())
    }

    /// Keeps the verified text as the plan's newest revision.
    pub(crate) async fn store_revision(&self, checked: &Checked) -> Result<Plan, ServiceError> {
        let Some(graph) = checked.verification.graph.as_ref().filter(|_| checked.verification.is_verified())
        else {
            return Err(ServiceError::NotVerified { plan: checked.path.clone() });
        };
        let by = self.caller.actor.as_str();
        let plan = self
            .store
            .save_revision(&NewRevision {
                workspace: self.own_workspace()?,
                path: &checked.path,
                digest: &checked.verification.digest,
                source: checked.source.text(),
                graph,
                by,
            })
            .await?;
        self.place_in_library(&plan, checked).await?;
        if plan.status == PlanStatus::Draft {
            match self.store.move_plan(plan.id, PlanStatus::Verified, "planctl", "every check passed").await {
                // Another process was quicker, and has gone on from there.
                Ok(_) | Err(StoreError::IllegalTransition { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.store.plan(plan.id).await?)
    }

    /// Records an approval unless one holds that is of the protected files as they are; says whether one did.
    pub(crate) async fn record_approval(
        &self,
        plan: &Plan,
        approved: &Approved<'_>,
        note: Option<&str>,
    ) -> Result<(Approval, bool), ServiceError> {
        let Approved { digest, config, baseline, worker } = *approved;
        let config_digest = digest_of_approved(config);
        let config = with_worker(config.clone(), worker).to_string();
        let by = self.caller.actor.as_str();
        let protected =
            serde_json::to_string(baseline).map_err(|error| ServiceError::broken(error.to_string()))?;
        let new = NewApproval {
            plan: plan.id,
            digest,
            config_digest: &config_digest,
            config: &config,
            protected: &protected,
            by,
            note,
        };
        // A person who approves what a policy approved repeats nothing.
        let repeats = |held: &Approval| {
            held.protected == protected
                && approved_worker(held).is_ok_and(|approved| approved.as_ref() == worker)
                && policy_of(held).is_some() == self.caller.actor.policy_name().is_some()
        };
        let (approval, repeated) = self.store.approve(&new, repeats).await?;
        if plan.status == PlanStatus::Verified {
            match self.store.move_plan(plan.id, PlanStatus::Approved, by, note.unwrap_or("approved")).await {
                Err(StoreError::IllegalTransition { from, .. }) if from == PlanStatus::Draft.as_str() => {
                    return Err(ServiceError::Conflict {
                        what: format!("approve {}: it was rejected, or changed, meanwhile", plan.path),
                        next: Next::approve(&plan.path),
                    });
                }
                // A run of it may have begun meanwhile, as it was approved by others.
                Ok(_) | Err(StoreError::IllegalTransition { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((approval, repeated))
    }

    /// Returns what an approval of a run is of, as it was handed in, its configuration too, with the protected files as they are
    /// now. Refuses it where something of it has changed since.
    pub(crate) async fn submission(
        &self,
        (run, ask): (RunRow, i64),
        plan: Plan,
        graph: Arc<Graph>,
        given: &Approving,
    ) -> Result<HandedIn, ServiceError> {
        let place = PathBuf::from(run.present_folder());
        let now = self.baseline_of_run_now(&run, &graph).await?;
        let settings = RunSettings::of(&run)?;
        self.refuse_unless_as_shown(&run, settings.shown.as_ref(), &now)?;
        self.refuse_changed_scripts(&run, &settings)?;
        let unnamed =
            Unnamed::Refuse(Next::AnswerAsk { ask: ask.unsigned_abs(), answers: vec!["approve".to_owned()] });
        let accepted = &given.accept_changed;
        let baseline = self.baseline_to_bind((plan.id, None), &graph, &now, accepted, &unnamed).await?;
        Ok(HandedIn { run, plan, graph, place, settings, baseline })
    }

    /// Records an approval of a run as it was handed in.
    pub(crate) async fn approve_as_handed_in(
        &self,
        handed_in: &HandedIn,
        note: Option<&str>,
        given: &Approving,
    ) -> Result<(), ServiceError> {
        let HandedIn { run, plan, graph, place, settings, baseline } = handed_in;
        let config = settings.approved();
        let approving = Approved { digest: &run.revision, config: &config, baseline, worker: None };
        let (approval, _) = self.record_approval(plan, &approving, note).await?;
        self.keep_copies(place, baseline).await?;
        self.approve_inherited(&Home::of(run), graph, &config, &settings.sub_plans, given).await?;
        Ok(self.store.attach_approval(run.id, approval.id).await?)
    }

    pub(crate) async fn plan_ask(&self, run: &RunRow) -> Result<Option<planctl_store::AskRow>, ServiceError> {
        let asks = self.store.asks(Some(run.id), None).await?;
        Ok(asks.into_iter().find(|ask| ask.ask.kind == AskKind::Plan))
    }

    /// Refuses another text for a run before anything is written of its approval: one that changes settled steps, and of a run that is
    /// paused also one with which it could not go on.
    async fn refuse_unless_revisable(
        &self,
        run: &RunRow,
        plan: &Plan,
        checked: &Checked,
    ) -> Result<(), ServiceError> {
        let new = self.store.revision(plan.id, &checked.verification.digest).await?;
        if let Some(node) = self.settled_and_changed(run, &new.graph).await?.first() {
            return Err(ServiceError::Conflict {
                what: format!(
                    "go on with this revision: it changes step {node}, which is settled in {}",
                    run.name
                ),
                next: Next::KeepStep { step: node.to_string(), run: run.name.clone() },
            });
        }
        if run.head.status != RunStatus::Paused {
            return Ok(());
        }
        let old = self.store.graph_of(run).await?;
        let decision = Decision::revise(checked.verification.digest.clone(), &old, &new.graph, None);
        let event = Event::Human(HumanEvent { by: self.caller.actor.clone(), note: None, decision });
        match self.store.refusal_of(run.id, &event).await? {
            Some(refusal) => Err(StoreError::Refused(refusal).into()),
            None => Ok(()),
        }
    }

    /// Returns the steps of a run that are over and that another graph would change.
    pub(crate) async fn settled_and_changed(
        &self,
        run: &RunRow,
        new: &Graph,
    ) -> Result<Vec<NodeId>, ServiceError> {
        let old = self.store.graph_of(run).await?;
        let changed: Vec<NodeId> = changed_nodes(&old, new).into_iter().collect();
        let records = self.store.records_of(run.id, &changed).await?;
        let is_over = |node: &NodeId| {
            let outcome = records.get(node).and_then(|record| record.state.outcome());
            outcome.is_some_and(|outcome| outcome != planctl_engine::Outcome::Failed)
        };
        Ok(changed.into_iter().filter(|node| old.gated(node).is_some() && is_over(node)).collect())
    }

    /// Sets aside what the run of a sub-plan may use with another graph, in the budget around it; returns as much as it may use at
    /// all (P15). `None` where the run is within no other.
    async fn set_aside_for_revision(
        &self,
        run: &RunRow,
        new: &Graph,
    ) -> Result<Option<Budget>, ServiceError> {
        let Some(around) = &run.around else { return Ok(None) };
        let most = self.store.budget_max_for(run, &around.item).await?;
        match self.store.set_aside(run, around, new.budget().within(most)).await {
            Err(StoreError::Refused(Refusal::NotLeft)) => Err(ServiceError::Conflict {
                what: format!(
                    "approve another text of {}: another step took what was left meanwhile",
                    run.name
                ),
                next: Next::approve(&run.plan_path),
            }),
            // The run around it has not heard that this one began, so all that is left is set aside, or it waits no more.
            Ok(()) | Err(StoreError::Refused(_)) => Ok(Some(most)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns a plan's text without what planctl itself wrote into it, so that a difference shows only what people changed.
pub(crate) fn canonical(text: &str) -> String {
    match Source::from_bytes("", text.as_bytes().to_vec()) {
        Ok(source) => planctl_lang::canonical(&source),
        Err(_) => text.to_owned(),
    }
}
