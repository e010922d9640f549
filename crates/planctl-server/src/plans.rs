//! Plans: a plan's life (approved, rejected, started, taken up), its revisions, and the plans within it.

mod agent_scripts;
mod decide;
mod revisions;
pub(crate) mod sub_plans;

use std::collections::BTreeMap;
use std::path::PathBuf;

use planctl_api::{Next, Starting};
use planctl_engine::{Answer, AskKind, Decision, Digest, End, Graph, RunId, RunStatus, Tier, changed_nodes};
use planctl_harness::{Baseline, FolderIdentity};
use planctl_lang::Source;
use planctl_store::{
    Approval, NewApproval, NewRevision, NewRun, NewWorktree, Plan, PlanId, PlanStatus, RunRow, StoreError,
};
use serde_json::Value;

use crate::node::quarantine::SweepReport;
use crate::node::services::{ServiceError, Services};
use crate::plans::agent_scripts::approved_worker;
use crate::plans::sub_plans::Home;
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;
use crate::workspaces::baselines::Unnamed;
use crate::workspaces::by_products;
use crate::workspaces::notes;
use planctl_api::wire::Decided;
use planctl_api::wire::calls::{Approving, StandingView, Start};
use planctl_config::{Agent, WorkspaceMode, digest_of_approved, with_worker};

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

/// The result of a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Started {
    /// A run is ready to be worked on.
    Ready {
        /// The run.
        run: RunId,
        /// Its name.
        name: String,
        /// Says that it had begun before and goes on.
        is_taken_up: bool,
    },
    /// The plan's run is done, and nobody asked for another.
    AlreadyDone {
        /// The run's name.
        name: String,
    },
    /// A person has to approve first; the ask is open.
    NeedsApproval {
        /// The run that waits.
        run: RunId,
        /// Its name.
        name: String,
        /// The ask's number.
        ask: i64,
    },
    /// The text is not the one that was approved.
    ChangedSinceApproval {
        /// The text that was approved.
        approved_text: String,
        /// The unfinished run that goes on with it, where there is one.
        run: Option<String>,
    },
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
    pub async fn standing_view(&self, checked: &Checked, again: bool) -> Result<StandingView, ServiceError> {
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
        let approved_before = standing.approved_before;
        Ok(StandingView { approved_before, needs_approval, goes_on, drift, uncommitted })
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
        let note = given.note.as_deref();
        let plan = self.keep(checked).await?;
        let newest = self.store.newest_run_of(plan.id).await?;
        if let Some(run) = newest.as_ref().filter(|run| run.head.status == RunStatus::Paused) {
            self.refuse_unless_revisable(run, &plan, checked).await?;
        }
        let (folder, now) = self.where_approved(newest.as_ref(), checked).await?;
        let awaiting = newest.as_ref().filter(|run| {
            run.head.status == RunStatus::Awaiting && run.revision == checked.verification.digest
        });
        if let Some(run) = awaiting {
            let settings = RunSettings::of(run)?;
            self.refuse_unless_as_shown(run, settings.shown.as_ref(), &now)?;
            self.refuse_changed_scripts(run, &settings)?;
        }
        let paused = newest.as_ref().filter(|run| run.head.status == RunStatus::Paused);
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
        let (approval, repeated) = self.record_approval(&plan, &approving, note).await?;
        self.keep_copies(&self.place_of(newest.as_ref())?, &baseline).await?;
        let sub_plans = self.keep_sub_plans(checked, &folder, None).await?;
        if let Some(graph) = &checked.verification.graph {
            self.approve_inherited(&self.home()?, graph, &config, &sub_plans, given).await?;
        }
        if newest.as_ref().is_none_or(|run| matches!(run.head.status, RunStatus::Ended { .. })) {
            self.draw_status(checked).await?;
        }
        let mut decided = Decided {
            run: None,
            ask: None,
            decision: "approve".to_owned(),
            by: approval.by.clone(),
            next: Some(Next::start(checked.file.display().to_string())),
            repeated,
        };
        let Some(run) = newest else { return Ok(decided) };
        match run.head.status {
            RunStatus::Awaiting if run.revision == approval.digest => {
                self.plan_worktree_anew(&run, checked).await?;
                let ask = self.answer_plan_ask(&run, &approval, &sub_plans, note).await?;
                decided.ask = ask.and_then(|ask| u64::try_from(ask).ok());
                decided.run = Some(run.name);
            }
            RunStatus::Paused => {
                self.revise(&run, &plan, checked, &approval, &sub_plans).await?;
                decided.next = Some(Next::ResumeRun { run: run.name.clone() });
                decided.run = Some(run.name);
            }
            RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Ended { end: End::Failed | End::Aborted }
                if run.revision == approval.digest =>
            {
                // The protected files may have been approved anew: the run is held to what holds now.
                self.bind(run.id, &approval, &sub_plans).await?;
            }
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Ended { .. } => {}
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
            ServiceError::NotFound { what: format!("plan {}: it was never handed in", checked.path) }
        })?;
        let mut decided = Decided {
            run: None,
            ask: None,
            decision: "reject".to_owned(),
            by: self.caller.actor.to_string(),
            next: Some(Next::EditPlan { plan: checked.file.display().to_string() }),
            repeated: plan.status == PlanStatus::Draft,
        };
        let newest = self.store.newest_run_of(plan.id).await?;
        if let Some(run) = &newest {
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

    /// Starts a run of a verified plan, or takes up the one that is not finished.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotVerified`], [`ServiceError::NoAgent`], [`ServiceError::Isolation`], and those of the store.
    pub async fn start(&self, checked: &Checked, start: &Start) -> Result<Started, ServiceError> {
        // Two that start one plan at the same moment share its run; the second takes up what the first began.
        let starting = format!("starting/{}", notes::name_of(self.own_folder()?));
        let _starting = crate::node::instance::one_at_a_time(self.server_node.state_dir(), &starting).await?;
        if let Some(request) = self.caller.request
            && let Some(run) = self.store.run_of_request(request).await?
        {
            return self.started_before(&run, checked, start).await;
        }
        let standing = self.standing(checked).await?;
        let is_approved = start.approve.is_some() || standing.approval.is_some();
        if let Some(run) = &standing.newest_run
            && let Some(started) = self.take_up(run, checked, start, is_approved).await?
        {
            return Ok(started);
        }
        if standing.approval.is_none()
            && start.approve.is_none()
            && checked.verification.is_verified()
            && let Some(approved_text) = standing.approved_before
        {
            return Ok(Started::ChangedSinceApproval { approved_text, run: None });
        }
        if let Some(approval) = standing.approval.as_ref().filter(|_| start.approve.is_none()) {
            refuse_other_worker(approval, start.worker.as_ref(), &checked.path)?;
        }
        self.refuse_unless_startable(checked, start).await?;
        self.refuse_over_caps().await?;
        let planned = self.planned_worktree(checked).await?;
        if let Some(graph) = &checked.verification.graph {
            self.refuse_unless_branches_can_fork(graph).await?;
        }
        let plan = self.keep(checked).await?;
        let sub_plans = self.keep_sub_plans(checked, "", start.worker.as_ref()).await?;
        let approval = self.approval_at_start(None, &plan, checked, start, &sub_plans).await?;
        let shown = match approval {
            Some(_) => None,
            None => Some(self.where_approved(None, checked).await?.1),
        };
        let isolation = self.tier().await?;
        let settings = RunSettings {
            sub_plans,
            shown,
            auto_answer: start.auto_answer,
            home: FolderIdentity::of(&self.place_of(None)?).ok(),
            ..RunSettings::new(&self.caller.config, start.worker.clone(), isolation)
                .with_scripts_of(&self.place_of(None)?)?
        };
        self.keep_scripts(&self.place_of(None)?, &settings).await?;
        let new = NewRun {
            plan: plan.id,
            revision: &checked.verification.digest,
            stem: &stem(checked),
            approval: approval.as_ref().map(|approval| approval.id),
            settings: &settings_json(&settings),
            served: &settings.served(),
            request: self.caller.request,
        };
        let run = match &planned {
            None => self.store.create_run(&new).await?,
            Some(planned) => {
                let worktree = NewWorktree {
                    folder: &planned.folder,
                    inside: &planned.inside,
                    base: &planned.base,
                    left_behind: planned.left_behind,
                };
                self.store.create_run_apart(&new, &worktree).await?
            }
        };
        self.decide(run.id, Decision::Submit, None).await?;
        self.approved_or_asked(&run, approval.as_ref(), &settings.sub_plans, false).await
    }

    /// Says what came of a start whose run was made and whose answer got lost.
    async fn started_before(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
    ) -> Result<Started, ServiceError> {
        match run.head.status {
            RunStatus::New | RunStatus::Awaiting => {
                self.refuse_unless_startable(checked, start).await?;
                let folder = RunSettings::of(run)?.folder;
                let sub_plans = self.keep_sub_plans(checked, &folder, start.worker.as_ref()).await?;
                self.hand_in(run, checked, start, &sub_plans, false).await
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused | RunStatus::Ended { .. } => {
                Ok(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up: false })
            }
        }
    }

    /// Submits a run that has not begun, and approves it where the start says so.
    async fn hand_in(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
        sub_plans: &BTreeMap<String, Digest>,
        is_taken_up: bool,
    ) -> Result<Started, ServiceError> {
        if run.head.status == RunStatus::New {
            self.decide(run.id, Decision::Submit, None).await?;
        }
        self.plan_worktree_anew(run, checked).await?;
        self.take_over(run, start.worker.as_ref()).await?;
        let plan = self.keep(checked).await?;
        let approval = self.approval_at_start(Some(run), &plan, checked, start, sub_plans).await?;
        self.approved_or_asked(run, approval.as_ref(), sub_plans, is_taken_up).await
    }

    /// Refuses one more run where as much is open as may be (row 92).
    async fn refuse_over_caps(&self) -> Result<(), ServiceError> {
        let caps = self.caller.caps;
        let (runs, asks) = self.store.open_counts().await?;
        let full = |what: String, next: Next| Err(ServiceError::TooMany { what, next });
        if runs >= u64::from(caps.open_runs) {
            let what = format!("start: {runs} runs are open, and {} may be at once", caps.open_runs);
            return full(what, Next::ShowAllRuns);
        }
        if asks >= u64::from(caps.open_asks) {
            let what = format!("start: {asks} asks wait for a person, and {} may at once", caps.open_asks);
            return full(what, Next::ShowAsks);
        }
        Ok(())
    }

    /// Goes on with a plan's newest run, where it is not over; `None` where a new one is due.
    async fn take_up(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
        is_approved: bool,
    ) -> Result<Option<Started>, ServiceError> {
        let is_same_text = run.revision == checked.verification.digest;
        let is_same_place =
            run.worktree.is_some() == (self.caller.config.workspace.mode == WorkspaceMode::Worktree);
        match run.head.status {
            // A run within another one's is that one's affair.
            RunStatus::Ended { .. } if run.around.is_some() => return Ok(None),
            RunStatus::Ended { end: End::Done } if is_same_text && !start.again => {
                return Ok(Some(Started::AlreadyDone { name: run.name.clone() }));
            }
            RunStatus::Ended { end: End::Failed | End::Aborted } if is_same_text && !start.again => {
                self.refuse_other_place(run)?;
                if let Some(given) = &start.approve {
                    self.approve(checked, given).await?;
                }
                self.resume(run.id, start.worker.as_ref()).await?;
            }
            RunStatus::Ended { .. } => return Ok(None),
            RunStatus::New | RunStatus::Awaiting if !is_same_text || !is_same_place => {
                let note = Some(match is_same_text {
                    true => "it shall work in another kind of workspace",
                    false => "the plan's text changed before it was approved",
                });
                self.decide(run.id, Decision::Cancel, note).await?;
                return Ok(None);
            }
            RunStatus::New | RunStatus::Awaiting => {
                self.refuse_unless_startable(checked, start).await?;
                let folder = RunSettings::of(run)?.folder;
                let sub_plans = self.keep_sub_plans(checked, &folder, start.worker.as_ref()).await?;
                // A person is shown the plan that will run; a plan handed in otherwise is asked anew (P18).
                if !is_approved && !self.is_handed_in_alike(run, checked, start, &sub_plans).await? {
                    let note = "its configuration, its worker, a protected file or a plan within it changed before it \
                        was approved";
                    self.decide(run.id, Decision::Cancel, Some(note)).await?;
                    return Ok(None);
                }
                return Ok(Some(self.hand_in(run, checked, start, &sub_plans, true).await?));
            }
            RunStatus::Paused if !is_same_text && start.approve.is_some() => {
                self.take_over(run, start.worker.as_ref()).await?;
                self.approve(checked, start.approve.as_ref().unwrap_or(&Approving::default())).await?;
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused if !is_same_text => {
                let approved_text = canonical(&self.store.revision(run.plan, &run.revision).await?.source);
                // A paused run waits for just such a change; the others go on with the text that was approved.
                let goes_on = run.head.status != RunStatus::Paused;
                let run = goes_on.then(|| run.name.clone());
                return Ok(Some(Started::ChangedSinceApproval { approved_text, run }));
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused => {
                self.refuse_other_place(run)?;
                self.server_node.try_worktree_again(run).await?;
                self.take_over(run, start.worker.as_ref()).await?;
            }
        }
        Ok(Some(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up: true }))
    }

    /// Says whether a run that waits for its approval would be the same if it were handed in now.
    async fn is_handed_in_alike(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<bool, ServiceError> {
        let kept = RunSettings::of(run)?;
        let is_same_worker = start.worker.is_none() || start.worker == kept.worker;
        let is_same_script = kept.changed_scripts(&self.place_of(Some(run))?)?.is_none();
        let (_, now) = self.where_approved(Some(run), checked).await?;
        Ok(is_same_worker
            && is_same_script
            && kept.config == self.caller.config.approved()
            && kept.sub_plans == *sub_plans
            && self.refuse_unless_as_shown(run, kept.shown.as_ref(), &now).is_ok())
    }

    /// Takes up a run by itself: a failed one is queued again, even if its plan's file has changed.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where the run is over for good, waits for an approval or has lost it, and those of the
    /// store.
    pub async fn resume(&self, run: RunId, worker: Option<&Agent>) -> Result<Decided, ServiceError> {
        let row = self.store.run(run).await?;
        let decided = |repeated| Decided {
            run: Some(row.name.clone()),
            ask: None,
            decision: "resume".to_owned(),
            by: self.caller.actor.to_string(),
            next: Some(Next::WatchRun { run: row.name.clone() }),
            repeated,
        };
        match row.head.status {
            RunStatus::Ended { end: End::Failed | End::Aborted } => {
                if let Some(around) = &row.around {
                    let around = self.store.run(around.run).await?.name;
                    return Err(ServiceError::Conflict {
                        what: format!("resume {}: it is a part of {around}", row.name),
                        next: Next::show(around),
                    });
                }
                self.refuse_without_worktree(&row)?;
                self.refuse_unless_approval_holds(&row).await?;
                self.take_over(&row, worker).await?;
                match self.decide(run, Decision::Resume, None).await {
                    Ok(_) => Ok(decided(false)),
                    // Somebody else resumed it at the same moment.
                    Err(ServiceError::Store(StoreError::Refused(_))) => Ok(decided(true)),
                    Err(error) => Err(error),
                }
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused => {
                self.server_node.try_worktree_again(&row).await?;
                self.take_over(&row, worker).await?;
                Ok(decided(true))
            }
            RunStatus::New | RunStatus::Awaiting => Err(ServiceError::Conflict {
                what: format!("resume {}: its plan is not approved", row.name),
                next: Next::approve(&row.plan_path),
            }),
            RunStatus::Ended { end: End::Done | End::Cancelled } => Err(ServiceError::Conflict {
                what: format!("resume {}: it is over", row.name),
                next: Next::start_again(&row.plan_path),
            }),
        }
    }

    /// Cancels a run for good.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where it is over already, and those of the store.
    pub async fn cancel(&self, run: RunId, note: Option<&str>) -> Result<Decided, ServiceError> {
        let row = self.store.run(run).await?;
        let repeated = match row.head.status {
            RunStatus::Ended { end: End::Cancelled } => true,
            RunStatus::Ended { .. } => {
                return Err(ServiceError::Conflict {
                    what: format!("cancel {}: it is over", row.name),
                    next: Next::show(&row.name),
                });
            }
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Paused => {
                match self.decide(run, Decision::Cancel, note).await {
                    Ok(_) => false,
                    // Somebody else did so at the same moment.
                    Err(error) => match self.store.run(run).await?.head.status {
                        RunStatus::Ended { end: End::Cancelled } => true,
                        RunStatus::Ended { .. }
                        | RunStatus::New
                        | RunStatus::Awaiting
                        | RunStatus::Queued { .. }
                        | RunStatus::Active
                        | RunStatus::Paused => return Err(error),
                    },
                }
            }
        };
        // Runs within it end with it.
        self.server_node.sweep_sub_plans(&mut SweepReport::default()).await?;
        Ok(Decided {
            run: Some(row.name),
            ask: None,
            decision: "cancel".to_owned(),
            by: self.caller.actor.to_string(),
            next: Some(Next::start_again(&row.plan_path)),
            repeated,
        })
    }

    /// Refuses to go on with a run whose approval was withdrawn; one that was given since serves too.
    async fn refuse_unless_approval_holds(&self, run: &RunRow) -> Result<(), ServiceError> {
        if let Some(approval) = run.approval
            && self.store.approval(approval).await?.voided_at.is_none()
        {
            return Ok(());
        }
        let RunSettings { folder, sub_plans, .. } = RunSettings::of(run)?;
        let config = self.caller.config.digest_in(&folder);
        match self.store.approval_for(run.plan, &run.revision, &config).await? {
            Some(approval) => self.bind(run.id, &approval, &sub_plans).await,
            None => Err(ServiceError::Conflict {
                what: format!("resume {}: its approval no longer holds", run.name),
                next: Next::approve(&run.plan_path),
            }),
        }
    }

    /// Keeps the verified text as the plan's newest revision.
    pub(crate) async fn keep(&self, checked: &Checked) -> Result<Plan, ServiceError> {
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
        if plan.status == PlanStatus::Draft {
            self.store.move_plan(plan.id, PlanStatus::Verified, "planctl", "every check passed").await?;
        }
        Ok(self.store.plan(plan.id).await?)
    }

    /// Returns the approval that serves a start: the one given with it, else one that holds.
    async fn approval_at_start(
        &self,
        run: Option<&RunRow>,
        plan: &Plan,
        checked: &Checked,
        start: &Start,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<Option<Approval>, ServiceError> {
        let digest = &checked.verification.digest;
        // One that works in a worktree of its own begins with what is committed.
        let run = run.filter(|run| run.is_under_way_within());
        let (folder, now) = self.where_approved(run, checked).await?;
        match &start.approve {
            Some(given) => {
                let note = given.note.as_deref();
                let with = Next::StartRun { plan: checked.path.clone(), how: Starting::Approved };
                let unnamed = Unnamed::Refuse(with);
                let baseline =
                    self.baseline_of_checked((plan.id, None), checked, &now, given, &unnamed).await?;
                let config = self.caller.config.approved_in(&folder);
                let approving = Approved { digest, config: &config, baseline: &baseline, worker: None };
                let (approval, _) = self.record_approval(plan, &approving, note).await?;
                self.keep_copies(&self.place_of(run)?, &baseline).await?;
                if let Some(graph) = &checked.verification.graph {
                    self.approve_inherited(&self.home()?, graph, &config, sub_plans, given).await?;
                }
                Ok(Some(approval))
            }
            None => {
                let config = self.caller.config.digest_in(&folder);
                Ok(self.store.approval_for(plan.id, digest, &config).await?)
            }
        }
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
        let (approval, repeated) = match self.store.approval_for(plan.id, digest, &config_digest).await? {
            Some(approval)
                if approval.protected == protected && approved_worker(&approval)?.as_ref() == worker =>
            {
                (approval, true)
            }
            Some(_) | None => {
                let new = NewApproval {
                    plan: plan.id,
                    digest,
                    config_digest: &config_digest,
                    config: &config,
                    protected: &protected,
                    by,
                    note,
                };
                (self.store.approve(&new).await?, false)
            }
        };
        if plan.status == PlanStatus::Verified {
            self.store.move_plan(plan.id, PlanStatus::Approved, by, note.unwrap_or("approved")).await?;
        }
        Ok((approval, repeated))
    }

    /// Records an approval of a run as it was handed in, its configuration too, with the protected files as they are now.
    pub(crate) async fn approve_as_handed_in(
        &self,
        (run, ask): (&RunRow, i64),
        plan: &Plan,
        graph: &Graph,
        given: &Approving,
    ) -> Result<(), ServiceError> {
        let place = PathBuf::from(run.place_now());
        let now = self.baseline_now(graph, &place).await?;
        let settings = RunSettings::of(run)?;
        self.refuse_unless_as_shown(run, settings.shown.as_ref(), &now)?;
        self.refuse_changed_scripts(run, &settings)?;
        let unnamed =
            Unnamed::Refuse(Next::AnswerAsk { ask: ask.unsigned_abs(), answers: vec!["approve".to_owned()] });
        let accepted = &given.accept_changed;
        let baseline = self.baseline_to_bind((plan.id, None), graph, &now, accepted, &unnamed).await?;
        let config = settings.approved();
        let approving =
            Approved { digest: &run.revision, config: &config, baseline: &baseline, worker: None };
        let (approval, _) = self.record_approval(plan, &approving, given.note.as_deref()).await?;
        self.keep_copies(&place, &baseline).await?;
        self.approve_inherited(&Home::of(run), graph, &config, &settings.sub_plans, given).await?;
        Ok(self.store.attach_approval(run.id, approval.id).await?)
    }

    async fn baseline_of_checked(
        &self,
        of: (PlanId, Option<&RunRow>),
        checked: &Checked,
        now: &Baseline,
        given: &Approving,
        unnamed: &Unnamed,
    ) -> Result<Baseline, ServiceError> {
        match &checked.verification.graph {
            Some(graph) => self.baseline_to_bind(of, graph, now, &given.accept_changed, unnamed).await,
            None => Ok(now.clone()),
        }
    }

    /// Returns where a plan's protected files lie: where its run works, else in the workspace.
    fn place_of(&self, run: Option<&RunRow>) -> Result<PathBuf, ServiceError> {
        match run.filter(|run| run.is_in_worktree() || run.is_under_way_within()) {
            Some(run) => Ok(PathBuf::from(run.place_now())),
            None => {
                self.caller.workspace.clone().ok_or_else(|| ServiceError::broken("no workspace is named"))
            }
        }
    }

    /// Returns for which folder a plan is approved, and the protected files there: those of its run that is under way.
    async fn where_approved(
        &self,
        run: Option<&RunRow>,
        checked: &Checked,
    ) -> Result<(String, Baseline), ServiceError> {
        let folder = match run.filter(|run| run.is_under_way_within()) {
            Some(run) => RunSettings::of(run)?.folder,
            None => String::new(),
        };
        if !checked.folder.is_empty() && checked.folder != folder {
            return Err(ServiceError::Conflict {
                what: format!(
                    "approve {} in the folder {}: no run of it works there",
                    checked.path, checked.folder
                ),
                next: Next::ShowRuns,
            });
        }
        let baseline = match run.filter(|run| run.is_in_worktree() || run.is_under_way_within()) {
            // Its contracts run in its worktree, so the protected files are taken from there.
            Some(run) => self.baseline_in_place(run, checked).await?,
            None => {
                let mut baseline = checked.baseline.clone();
                by_products::leave_out(self.state_dir(), &self.place_of(None)?, &mut baseline);
                baseline
            }
        };
        Ok((folder, baseline))
    }

    async fn baseline_in_place(&self, run: &RunRow, checked: &Checked) -> Result<Baseline, ServiceError> {
        let Some(graph) = checked.verification.graph.clone() else { return Ok(checked.baseline.clone()) };
        self.baseline_now(&graph, &PathBuf::from(run.place_now())).await
    }

    /// Answers the plan ask of a run whose approval holds; says which ask a person has to answer otherwise.
    async fn approved_or_asked(
        &self,
        run: &RunRow,
        approval: Option<&Approval>,
        sub_plans: &BTreeMap<String, Digest>,
        is_taken_up: bool,
    ) -> Result<Started, ServiceError> {
        if let Some(approval) = approval {
            self.answer_plan_ask(run, approval, sub_plans, approval.note.as_deref()).await?;
            return Ok(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up });
        }
        match self.plan_ask(run).await? {
            Some(ask) => Ok(Started::NeedsApproval { run: run.id, name: run.name.clone(), ask: ask.number }),
            None => Ok(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up }),
        }
    }

    pub(crate) async fn plan_ask(&self, run: &RunRow) -> Result<Option<planctl_store::AskRow>, ServiceError> {
        let asks = self.store.asks(Some(run.id), None).await?;
        Ok(asks.into_iter().find(|ask| ask.ask.kind == AskKind::Plan))
    }

    async fn answer_plan_ask(
        &self,
        run: &RunRow,
        approval: &Approval,
        sub_plans: &BTreeMap<String, Digest>,
        note: Option<&str>,
    ) -> Result<Option<i64>, ServiceError> {
        self.bind(run.id, approval, sub_plans).await?;
        let Some(ask) = self.plan_ask(run).await? else { return Ok(None) };
        let decision = Decision::Answer { item: ask.item, answer: Answer::Approve };
        match self.decide(run.id, decision, note).await {
            // Somebody else approved it at the same moment.
            Ok(_) | Err(ServiceError::Store(StoreError::Refused(_))) => Ok(Some(ask.number)),
            Err(error) => Err(error),
        }
    }

    async fn refuse_unless_revisable(
        &self,
        run: &RunRow,
        plan: &Plan,
        checked: &Checked,
    ) -> Result<(), ServiceError> {
        let old = self.store.revision(run.plan, &run.revision).await?;
        let new = self.store.revision(plan.id, &checked.verification.digest).await?;
        let view = self.store.run_view(run.id).await?;
        let changed = changed_nodes(&old.graph, &new.graph);
        let settled = changed.iter().find(|node| {
            let outcome = view.records.get(*node).and_then(|record| record.state.outcome());
            old.graph.gated(node).is_some()
                && outcome.is_some_and(|outcome| outcome != planctl_engine::Outcome::Failed)
        });
        match settled {
            Some(node) => Err(ServiceError::Conflict {
                what: format!(
                    "go on with this revision: it changes step {node}, which is settled in {}",
                    run.name
                ),
                next: Next::KeepStep { step: node.to_string(), run: run.name.clone() },
            }),
            None => Ok(()),
        }
    }

    async fn revise(
        &self,
        run: &RunRow,
        plan: &Plan,
        checked: &Checked,
        approval: &Approval,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<(), ServiceError> {
        let old = self.store.revision(run.plan, &run.revision).await?;
        let new = self.store.revision(plan.id, &checked.verification.digest).await?;
        self.bind(run.id, approval, sub_plans).await?;
        let decision = Decision::Revise {
            revision: checked.verification.digest.clone(),
            changed: changed_nodes(&old.graph, &new.graph),
        };
        self.decide(run.id, decision, approval.note.as_deref()).await?;
        Ok(())
    }

    /// Lets a run go by an approval that was given under the configuration of the caller, which may be newer than the run:
    /// the run uses the approved one.
    async fn bind(
        &self,
        run: RunId,
        approval: &Approval,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<(), ServiceError> {
        self.store.attach_approval(run, approval.id).await?;
        let before = self.store.run(run).await?.settings;
        let kept = RunSettings::parse(&before)?;
        let isolation = self.tier().await?;
        let worker = approved_worker(approval)?.or_else(|| kept.worker.clone());
        let mut pinned = RunSettings {
            sub_plans: sub_plans.clone(),
            folder: kept.folder.clone(),
            auto_answer: kept.auto_answer,
            ..RunSettings::new(&self.caller.config, worker, isolation)
        };
        // The sealed scripts stay, even if the files have changed, unless other agents serve the run.
        pinned.scripts.clone_from(&kept.scripts);
        // A new approval is for the folder that is there at that time.
        let home = self.caller.workspace.as_ref().and_then(|workspace| FolderIdentity::of(workspace).ok());
        pinned.home = home.or(kept.home.clone());
        if !pinned.agents().eq(kept.agents()) {
            let place = PathBuf::from(self.store.run(run).await?.place_now());
            pinned = pinned.with_scripts_of(&place)?;
            self.keep_scripts(&place, &pinned).await?;
        }
        let text = settings_json(&pinned);
        if text != before {
            self.store.set_run_settings(run, &text, &pinned.served()).await?;
        }
        Ok(())
    }

    /// Notes something else that serves a run's roles.
    async fn take_over(&self, run: &RunRow, worker: Option<&Agent>) -> Result<(), ServiceError> {
        let Some(worker) = worker else { return Ok(()) };
        if let Some(approval) = run.approval {
            refuse_other_worker(&self.store.approval(approval).await?, Some(worker), &run.plan_path)?;
        }
        let place = PathBuf::from(run.place_now());
        let settings = RunSettings { worker: Some(worker.clone()), ..RunSettings::of(run)? };
        let settings = settings.with_scripts_of(&place)?;
        self.keep_scripts(&place, &settings).await?;
        let text = settings_json(&settings);
        Ok(self.store.set_run_settings(run.id, &text, &settings.served()).await?)
    }

    /// Refuses to approve a run whose agents' scripts are not those that its ask shows.
    fn refuse_changed_scripts(&self, run: &RunRow, settings: &RunSettings) -> Result<(), ServiceError> {
        match settings.changed_scripts(std::path::Path::new(run.place_now()))? {
            None => Ok(()),
            Some(changed) => Err(ServiceError::Conflict {
                what: format!("approve {}: {changed}", run.name),
                next: Next::start(&run.plan_path),
            }),
        }
    }

    /// Keeps copies of the agents' scripts, so that they can be put back.
    async fn keep_scripts(
        &self,
        place: &std::path::Path,
        settings: &RunSettings,
    ) -> Result<(), ServiceError> {
        match &settings.scripts {
            Some(scripts) => self.keep_copies(place, scripts).await,
            None => Ok(()),
        }
    }

    /// Returns the isolation tier that a run gets here.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Isolation`] where the host does not offer what is demanded.
    pub(crate) async fn tier(&self) -> Result<Tier, ServiceError> {
        let wanted = self.caller.config.isolation;
        let offered =
            if wanted.needs_probe() { self.server_node.offered_tier().await? } else { Tier::SameUser };
        wanted.tier(offered).ok_or_else(|| ServiceError::Isolation { wanted: wanted.to_string(), offered })
    }

    /// Refuses a run that could not go on: unverified, without an agent for a role, or below the isolation asked for.
    async fn refuse_unless_startable(&self, checked: &Checked, start: &Start) -> Result<(), ServiceError> {
        let Some(graph) = checked.verification.graph.as_ref().filter(|_| checked.verification.is_verified())
        else {
            return Err(ServiceError::NotVerified { plan: checked.path.clone() });
        };
        let isolation = self.tier().await?;
        let settings = RunSettings::new(&self.caller.config, start.worker.clone(), isolation);
        for (_, task) in graph.steps() {
            let role = &task.role;
            if settings.worker_for(role).is_none() && !start.waits_for_workers {
                return Err(ServiceError::NoAgent { role: role.clone() });
            }
            for role in task.roles() {
                if !settings.may_take(role, &checked.path) {
                    return Err(ServiceError::NotForRole { role: role.clone(), plan: checked.path.clone() });
                }
                if let Err(what) = settings.can_be_held(role) {
                    return Err(ServiceError::Unheld { role: role.clone(), what });
                }
                settings.can_isolate_network(role)?;
            }
        }
        Ok(())
    }
}

/// Refuses a worker that is not the one which was approved.
fn refuse_other_worker(approval: &Approval, worker: Option<&Agent>, plan: &str) -> Result<(), ServiceError> {
    let Some(approved) = approved_worker(approval)?.filter(|approved| Some(approved) != worker) else {
        return Ok(());
    };
    let named = worker.map_or("what is configured".to_owned(), Agent::shown);
    Err(ServiceError::Conflict {
        what: format!("start {plan} with {named}: it was approved for {}", approved.shown()),
        next: Next::UseApprovedWorker {
            plan: plan.to_owned(),
            approved: approved.to_string(),
            named: worker.map(Agent::to_string),
        },
    })
}

pub(crate) fn settings_json(settings: &RunSettings) -> String {
    serde_json::to_string(settings).expect("settings have string keys and no failing serializer")
}

/// Returns a plan's text without what planctl itself wrote into it, so that a difference shows only what people changed.
pub(crate) fn canonical(text: &str) -> String {
    match Source::from_bytes("", text.as_bytes().to_vec()) {
        Ok(source) => planctl_lang::canonical(&source),
        Err(_) => text.to_owned(),
    }
}

/// Returns what a run's name begins with: the plan file's name without its ending, as plain characters.
fn stem(checked: &Checked) -> String {
    stem_of(&checked.file)
}

/// Returns what the names of runs of a plan's file begin with.
pub(crate) fn stem_of(file: &std::path::Path) -> String {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c.to_ascii_lowercase() } else { '-' })
        .take(60)
        .collect();
    let plain = plain.trim_matches(|c| c == '-' || c == '.').to_owned();
    if plain.is_empty() { "plan".to_owned() } else { plain }
}
