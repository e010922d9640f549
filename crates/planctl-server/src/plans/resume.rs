//! Pauses, resumes and cancels runs.

use std::path::PathBuf;

use planctl_api::wire::Decided;
use planctl_api::wire::calls::ResumeCall;
use planctl_api::{Next, Starting};
use planctl_config::Agent;
use planctl_engine::{Decision, End, NodeId, RunId, RunStatus};
use planctl_store::{RunRow, StoreError};

use crate::node::quarantine::SweepReport;
use crate::node::services::{ServiceError, Services};
use crate::plans::start::{refuse_missing_programs, refuse_other_worker, settings_json};
use crate::runs::plan_file::PlanFile;
use crate::runs::settings::RunSettings;

impl Services {
    /// Takes up a run by itself: a failed or paused one is queued again, even if its plan's file has changed; on wish it begins
    /// anew with a step that passed. One that goes on by itself can't do that.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where the run is over for good, waits for an approval or has lost it, and those of the
    /// store.
    pub async fn resume(&self, run: RunId, call: &ResumeCall) -> Result<Decided, ServiceError> {
        loop {
            let row = self.store.run(run).await?;
            match self.resume_as_it_stands(&row, call).await {
                Err(error) if self.has_moved(Some(&row), &error).await? => {}
                resumed => return resumed,
            }
        }
    }

    /// Says that a decision was refused as the run it is about had moved since it was looked at, so that it is made anew.
    pub(super) async fn has_moved(
        &self,
        before: Option<&RunRow>,
        error: &ServiceError,
    ) -> Result<bool, ServiceError> {
        match (error, before) {
            (ServiceError::Store(StoreError::Refused(_)), Some(before)) => {
                Ok(self.store.run(before.id).await?.head.status != before.head.status)
            }
            _ => Ok(false),
        }
    }

    async fn resume_as_it_stands(
        &self,
        row: &RunRow,
        ResumeCall { worker, from, note, place: _ }: &ResumeCall,
    ) -> Result<Decided, ServiceError> {
        let worker = worker.as_ref();
        let from = match *from {
            Some(step) => Some(self.node_of_step(row, step).await?),
            None => None,
        };
        let next = Next::WatchRun { run: row.name.clone() };
        let decided = |repeated| self.decided(row, "resume", Some(next), repeated);
        match row.head.status {
            RunStatus::Ended { end: End::Failed | End::Aborted } | RunStatus::Paused => {
                let is_over = row.head.status != RunStatus::Paused;
                if let Some(around) = row.around.as_ref().filter(|_| is_over) {
                    let around = self.store.run(around.run).await?.name;
                    return Err(ServiceError::Conflict {
                        what: format!("resume {}: it is a part of {around}", row.name),
                        next: Next::show(around),
                    });
                }
                self.refuse_without_worktree(row)?;
                self.refuse_unless_approval_holds(row).await?;
                self.change_worker(row, worker).await?;
                self.decide(row.id, Decision::Resume { from }, note.as_deref()).await?;
                Ok(decided(false))
            }
            RunStatus::Queued { .. } | RunStatus::Active if from.is_some() => Err(ServiceError::Conflict {
                what: format!("begin {} anew at a step: it goes on", row.name),
                next: Next::show(&row.name),
            }),
            RunStatus::Queued { .. } | RunStatus::Active => {
                self.server_node.try_worktree_again(row).await?;
                self.change_worker(row, worker).await?;
                Ok(decided(true))
            }
            RunStatus::New | RunStatus::Awaiting => Err(ServiceError::Conflict {
                what: format!("resume {}: its plan is not approved", row.name),
                next: Next::approve(&row.plan_path),
            }),
            RunStatus::Ended { end: End::Done | End::Cancelled } => Err(ServiceError::Conflict {
                what: format!("resume {}: it is over", row.name),
                next: start(row, Starting::Again)?,
            }),
        }
    }

    async fn node_of_step(&self, run: &RunRow, step: u32) -> Result<NodeId, ServiceError> {
        let graph = self.store.graph_of(run).await?;
        let node = graph.nodes().iter().find(|node| node.step() == Some(step)).map(|node| node.id.clone());
        node.ok_or_else(|| ServiceError::NotFound { what: format!("step {step} in {}", run.name) })
    }

    /// Pauses a run until it is resumed, or another revision of its plan is approved.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where it was not approved or is over, and those of the store.
    pub async fn pause(&self, run: RunId, note: Option<&str>) -> Result<Decided, ServiceError> {
        loop {
            let row = self.store.run(run).await?;
            match self.pause_as_it_stands(&row, note).await {
                Err(error) if self.has_moved(Some(&row), &error).await? => {}
                paused => return paused,
            }
        }
    }

    async fn pause_as_it_stands(&self, row: &RunRow, note: Option<&str>) -> Result<Decided, ServiceError> {
        let repeated = match row.head.status {
            RunStatus::Paused => true,
            RunStatus::Queued { .. } | RunStatus::Active => {
                self.decide(row.id, Decision::Pause, note).await?;
                false
            }
            RunStatus::New | RunStatus::Awaiting => {
                return Err(ServiceError::Conflict {
                    what: format!("pause {}: its plan is not approved", row.name),
                    next: Next::approve(&row.plan_path),
                });
            }
            RunStatus::Ended { .. } => {
                return Err(ServiceError::Conflict {
                    what: format!("pause {}: it is over", row.name),
                    next: Next::show(&row.name),
                });
            }
        };
        // Runs within it end: it begins others when it goes on.
        self.server_node.sweep_sub_plans(&mut SweepReport::default()).await?;
        let next = Next::ResumeRun { run: row.name.clone() };
        Ok(self.decided(row, "pause", Some(next), repeated))
    }

    /// Cancels a run for good.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where it is over already, and those of the store.
    pub async fn cancel(&self, run: RunId, note: Option<&str>) -> Result<Decided, ServiceError> {
        loop {
            let row = self.store.run(run).await?;
            match self.cancel_as_it_stands(&row, note).await {
                Err(error) if self.has_moved(Some(&row), &error).await? => {}
                cancelled => return cancelled,
            }
        }
    }

    async fn cancel_as_it_stands(&self, row: &RunRow, note: Option<&str>) -> Result<Decided, ServiceError> {
        let again = start(row, Starting::Again)?;
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
                self.decide(row.id, Decision::Cancel, note).await?;
                false
            }
        };
        // Runs within it end with it.
        self.server_node.sweep_sub_plans(&mut SweepReport::default()).await?;
        Ok(self.decided(row, "cancel", Some(again), repeated))
    }

    /// Tells the caller's decision about a run.
    pub(crate) fn decided(
        &self,
        row: &RunRow,
        decision: &str,
        next: Option<Next>,
        repeated: bool,
    ) -> Decided {
        Decided {
            run: Some(row.name.clone()),
            run_id: Some(row.id.to_string()),
            workspace: Some(row.workspace_path.clone()),
            decision: decision.to_owned(),
            by: self.caller.actor.to_string(),
            next,
            repeated,
            ..Decided::default()
        }
    }

    /// Refuses to go on with a run whose approval was withdrawn; one that was given since serves too.
    async fn refuse_unless_approval_holds(&self, run: &RunRow) -> Result<(), ServiceError> {
        if let Some(approval) = run.approval
            && self.store.approval(approval).await?.voided_at.is_none()
        {
            return Ok(());
        }
        let is_over = matches!(run.head.status, RunStatus::Ended { .. });
        let RunSettings { folder, sub_plans, .. } = RunSettings::of(run)?;
        let config = self.caller.config.digest_in(&folder);
        match self.store.approval_for(run.plan, &run.revision, &config).await? {
            Some(approval) => self.bind_approval(run.id, &approval, &sub_plans).await,
            // An approval of the plan as it is would be of another text than the run's.
            None if is_over && self.is_text_changed(run).await? => Err(ServiceError::Conflict {
                what: format!(
                    "resume {}: its approval no longer holds, and {} is not the text any more that it runs",
                    run.name, run.plan_path
                ),
                next: start(run, Starting::Usual)?,
            }),
            None => Err(ServiceError::Conflict {
                what: format!("resume {}: its approval no longer holds", run.name),
                next: Next::approve(&run.plan_path),
            }),
        }
    }

    /// Says whether a plan's file, or the text that was handed in last, is another than the one that a run runs by.
    async fn is_text_changed(&self, run: &RunRow) -> Result<bool, ServiceError> {
        Ok(self.store.plan(run.plan).await?.digest != run.revision
            || self.server_node.look_at_plan_file(run).await? == PlanFile::Changed)
    }

    /// Notes something else that serves a run's roles.
    pub(super) async fn change_worker(
        &self,
        run: &RunRow,
        worker: Option<&Agent>,
    ) -> Result<(), ServiceError> {
        let mut settings = RunSettings::of(run)?;
        if worker.is_some() {
            settings.worker = worker.cloned();
        }
        let graph = self.store.graph_of(run).await?;
        refuse_missing_programs(&graph, &settings)?;
        let Some(worker) = worker else { return Ok(()) };
        if let Some(approval) = run.approval {
            refuse_other_worker(&self.store.approval(approval).await?, Some(worker), &run.plan_path)?;
        }
        let place = PathBuf::from(run.present_folder());
        let settings = settings.with_scripts_of(&place)?;
        self.store_script_copies(&place, &settings).await?;
        let text = settings_json(&settings);
        Ok(self.store.set_run_settings(run.id, &text, &settings.served()).await?)
    }

    /// Refuses to approve a run whose agents' scripts are not those that its ask shows.
    pub(super) fn refuse_changed_scripts(
        &self,
        run: &RunRow,
        settings: &RunSettings,
    ) -> Result<(), ServiceError> {
        match settings.changed_scripts(std::path::Path::new(run.present_folder()))? {
            None => Ok(()),
            Some(changed) => Err(ServiceError::Conflict {
                what: format!("approve {}: {changed}", run.name),
                next: Next::start(&run.plan_path),
            }),
        }
    }
}

/// Returns the step that starts a run of a run's plan, with the same worker.
fn start(run: &RunRow, how: Starting) -> Result<Next, ServiceError> {
    let worker = RunSettings::of(run)?.worker.map(|worker| worker.to_string());
    Ok(Next::StartRun { plan: run.plan_path.clone(), how, worker })
}
