//! A text for a paused run that several people approve, another one or its own anew: it is handed in as a run of its own, whose plan
//! ask the rule decides. That run never works. Once its text is approved, the paused run goes on with it, and it ends.

use planctl_api::Next;
use planctl_api::wire::Decided;
use planctl_api::wire::calls::{Approving, Start};
use planctl_engine::{Actor, Answer, Decision, Event, HumanEvent, RunId, RunStatus};
use planctl_store::{Proof, RunRow, StoreError};

use crate::node::ServerNode;
use crate::node::services::{ServiceError, Services};
use crate::plans::start::settings_json;
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;

impl Services {
    /// Hands a text for a paused run in, unless it waits already, and votes for it as the caller. A person who has no vote
    /// hands it in for those who have.
    ///
    /// # Errors
    ///
    /// A conflict where the text changes settled steps, or where the run works elsewhere than in its workspace itself; and those of
    /// an answer.
    pub(super) async fn hand_in_revision(
        &self,
        paused: &RunRow,
        checked: &Checked,
        given: &Approving,
    ) -> Result<Decided, ServiceError> {
        let plan = self.store_revision(checked).await?;
        self.refuse_unless_revisable(paused, &plan, checked).await?;
        let settings = RunSettings::of(paused)?;
        if paused.worktree.is_some() || paused.around.is_some() || !settings.folder.is_empty() {
            return Err(ServiceError::Conflict {
                what: format!(
                    "hand in another text for {}: it works in a worktree or in another run, and several people approve it; \
                     cancel it, and hand the text in again",
                    paused.name
                ),
                next: Next::cancel(&paused.name),
            });
        }
        let handed_in = match self.store.revision_waiting(paused.id).await? {
            Some(waiting) if waiting.revision == checked.verification.digest => waiting,
            waiting => {
                if let Some(other) = waiting {
                    let note = "another text was handed in before this one was approved";
                    self.decide(other.id, Decision::Cancel, Some(note)).await?;
                }
                self.refuse_over_caps().await?;
                let worker = given.worker.clone().or(settings.worker);
                let start = Start { worker, waits_for_workers: true, ..Start::default() };
                let sub_plans = self.keep_sub_plans(checked, "", start.worker.as_ref()).await?;
                self.make_run((checked, &plan, None), None, &start, sub_plans, Some(paused)).await?.0
            }
        };
        let Some(ask) = self.plan_ask(&handed_in).await? else {
            return Err(ServiceError::broken("a text that was handed in has no ask"));
        };
        let (number, under) = (ask.number.unsigned_abs(), Some(&self.caller.config));
        match self.answer_under(number, Answer::Approve, given, under).await {
            Err(ServiceError::NotAsked { .. }) => Ok(Decided {
                run: Some(handed_in.name),
                run_id: Some(handed_in.id.to_string()),
                ask: Some(number),
                decision: "hand in".to_owned(),
                by: self.caller.actor.to_string(),
                next: Some(Next::ShowAsk { ask: number }),
                ..Decided::default()
            }),
            Ok(decided) => Ok(decided),
            Err(error) => Err(error),
        }
    }
}

impl ServerNode {
    /// Lets a paused run go on with the text of one that was handed in for it and is approved, and ends that one. Each process that
    /// finds the two does so, however the last one ended.
    pub(crate) async fn go_on_with_revision(
        &self,
        handed_in: &RunRow,
        run: RunId,
    ) -> Result<(), ServiceError> {
        let Some(approval) = handed_in.approval else {
            return Err(ServiceError::broken("a text that goes on is not approved"));
        };
        let approval = self.store().approval(approval).await?;
        let by = Actor::from(approval.by.as_str());
        let decided = |decision: Decision, note: Option<String>| {
            Event::Human(HumanEvent { by: by.clone(), note, decision })
        };
        let paused = self.store().run(run).await?;
        if paused.head.status == RunStatus::Paused {
            let kept = RunSettings::of(&paused)?;
            let (folder, auto_answer) = (kept.folder, kept.auto_answer);
            let pinned = RunSettings {
                folder,
                auto_answer,
                revises: None,
                shown: None,
                ..RunSettings::of(handed_in)?
            };
            self.store().attach_approval(run, approval.id).await?;
            self.store().set_run_settings(run, &settings_json(&pinned), &pinned.served()).await?;
            let (old, new) = (self.store().graph_of(&paused).await?, self.store().graph_of(handed_in).await?);
            let revise = Decision::revise(handed_in.revision.clone(), &old, &new, None);
            self.apply_unless_refused(run, &decided(revise, approval.note.clone())).await?;
        }
        let revised = self.store().run(run).await?;
        let note = match revised.revision == handed_in.revision {
            true => format!("{} goes on with this text", revised.name),
            false => format!("{} does not wait for another text any more", revised.name),
        };
        self.apply_unless_refused(handed_in.id, &decided(Decision::Cancel, Some(note))).await?;
        self.draw_marks_if_possible(run).await;
        Ok(())
    }

    /// Applies a person's decision that somebody else may have carried out meanwhile.
    async fn apply_unless_refused(&self, run: RunId, event: &Event) -> Result<(), ServiceError> {
        match self.store().apply(run, event, &Proof::Person { key: None }, None).await {
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
