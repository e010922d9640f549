//! The effect of an approval on the newest run of its plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use planctl_api::Next;
use planctl_api::wire::Decided;
use planctl_engine::{Actor, Answer, Decision, Digest, End, RunId, RunStatus};
use planctl_harness::{FolderIdentity, RepositoryIdentity, blocking_in_place};
use planctl_store::{Approval, Plan, RunRow, StoreError};

use crate::node::services::{ServiceError, Services};
use crate::plans::agent_scripts::approved_worker;
use crate::plans::start::settings_json;
use crate::runs::policy_approvals::policy_of;
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;

/// An approval that is stored, with the plan that it is of and the plans within.
pub(super) struct Kept<'a> {
    pub(super) plan: &'a Plan,
    pub(super) approval: &'a Approval,
    pub(super) sub_plans: &'a BTreeMap<String, Digest>,
}

impl Services {
    /// Lets the newest run of a plan go on under an approval, where it waits for one, and says so in what was decided.
    pub(super) async fn apply_approval(
        &self,
        run: &RunRow,
        checked: &Checked,
        kept: &Kept<'_>,
        note: Option<&str>,
        decided: &mut Decided,
    ) -> Result<(), ServiceError> {
        match run.head.status {
            RunStatus::Awaiting if run.revision == kept.approval.digest => {
                self.plan_worktree_anew(run, checked).await?;
                let ask = self.answer_plan_ask(run, kept.approval, kept.sub_plans, note).await?;
                decided.ask = ask.and_then(|ask| u64::try_from(ask).ok());
                decided.run = Some(run.name.clone());
            }
            RunStatus::Paused => {
                self.revise(run, kept.plan, checked, kept.approval, kept.sub_plans).await?;
                decided.next = Some(Next::ResumeRun { run: run.name.clone() });
                decided.run = Some(run.name.clone());
            }
            RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Ended { end: End::Failed | End::Aborted }
                if run.revision == kept.approval.digest =>
            {
                // The protected files may have been approved anew: the run is held to what holds now.
                self.bind_approval(run.id, kept.approval, kept.sub_plans).await?;
            }
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Ended { .. } => {}
        }
        Ok(())
    }

    pub(super) async fn answer_plan_ask(
        &self,
        run: &RunRow,
        approval: &Approval,
        sub_plans: &BTreeMap<String, Digest>,
        note: Option<&str>,
    ) -> Result<Option<i64>, ServiceError> {
        self.bind_approval(run.id, approval, sub_plans).await?;
        let Some(ask) = self.plan_ask(run).await? else { return Ok(None) };
        let decision = Decision::Answer { item: ask.item, answer: Answer::Approve };
        let decider = match policy_of(approval).is_some() {
            true => &self.with_actor(Actor::from(approval.by.as_str())),
            false => self,
        };
        match decider.decide(run.id, decision, note).await {
            // Somebody else approved it at the same moment.
            Ok(_) | Err(ServiceError::Store(StoreError::Refused(_))) => Ok(Some(ask.number)),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn revise(
        &self,
        run: &RunRow,
        plan: &Plan,
        checked: &Checked,
        approval: &Approval,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<(), ServiceError> {
        let old = self.store.revision(run.plan, &run.revision).await?;
        let new = self.store.revision(plan.id, &checked.verification.digest).await?;
        let budget_max = self.set_aside_for_revision(run, &new.graph).await?;
        self.bind_approval(run.id, approval, sub_plans).await?;
        let revision = checked.verification.digest.clone();
        let decision = Decision::revise(revision, &old.graph, &new.graph, budget_max);
        self.decide(run.id, decision, approval.note.as_deref()).await?;
        Ok(())
    }

    /// Lets a run go by an approval that was given under the configuration of the caller, which may be newer than the run:
    /// the run uses the approved one.
    pub(super) async fn bind_approval(
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
            asks: kept.asks.clone(),
            ..RunSettings::new(&self.caller.config, worker, isolation)
        };
        // The sealed scripts stay, even if the files have changed, unless other agents serve the run.
        pinned.scripts.clone_from(&kept.scripts);
        // A new approval is for the folder that is there at that time.
        let workspace = self.caller.workspace.as_deref();
        let home = workspace.and_then(|workspace| blocking_in_place(|| FolderIdentity::of(workspace)).ok());
        pinned.home = home.or(kept.home.clone());
        pinned.repository = match workspace {
            Some(workspace) => blocking_in_place(|| RepositoryIdentity::of(workspace)),
            None => kept.repository.clone(),
        };
        if !pinned.agents().eq(kept.agents()) {
            let place = PathBuf::from(self.store.run(run).await?.present_folder());
            pinned = pinned.with_scripts_of(&place)?;
            self.store_script_copies(&place, &pinned).await?;
        }
        let text = settings_json(&pinned);
        if text != before {
            self.store.set_run_settings(run, &text, &pinned.served()).await?;
        }
        Ok(())
    }
}
