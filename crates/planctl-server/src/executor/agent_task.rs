//! An item of an agent: the worker works, and its report is stored.

use std::path::Path;

use planctl_api::wire::{PromptView, moment};
use planctl_engine::{AgentSaid, Fault, FaultKind, Role, Task, Work};
use planctl_harness::{Agent, Assignment, Masks, Output, Stream, TreeName, brief_file_work};
use planctl_store::Claimed;

use super::{Cancel, Executor};
use crate::clock;
use crate::executor::slots::Slot;
use crate::node::in_flight::InFlightGuard;
use crate::node::services::ServiceError;
use crate::node::spool::Spool;

impl Executor {
    /// Lets an agent work and reports what came of it; returns what was claimed with the report.
    pub(super) async fn run_agent(
        &self,
        claimed: &Claimed,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let claimed = &self.in_its_place(claimed).await?;
        let Work::Agent { role, timeout, brief, .. } = &claimed.item.work else {
            return Err(ServiceError::broken(format!("item {} is not for an agent", claimed.item.id)));
        };
        let held = self.in_flight.hold(&claimed.item.id);
        let task = task_of(claimed)?;
        self.begin_activity(claimed, false);
        if self.settings.is_guided(role) {
            return self.wait_for_session(claimed, slot).await;
        }
        let agent = match self.prepared_agent(claimed, role)? {
            Ok(agent) => agent,
            Err(fault) => return self.apply_report(claimed, AgentSaid::Faulted(fault), slot).await,
        };
        let assignment = self.prompt_input().assignment(claimed, task, role, *timeout, brief).await?;
        Spool::in_state(&self.state_dir).add_prompt(self.run, &delivered(claimed, task, &assignment));
        let mut watch = self.output_sink(claimed, "worker");
        let name = TreeName::of_agent(self.run, &claimed.item.at.node);
        let spawner = self.spawner.with_name(name.clone());
        let work = async |mut cancel| {
            end_earlier_agent(&name, (slot, &held), &mut watch, &mut cancel).await?;
            Some(agent.run_item(&spawner, &assignment, &mut watch, cancel).await)
        };
        let Some(worked) = self.while_renewing(claimed, &slot.stop, slot, work).await else {
            return Ok(None);
        };
        let Some(mut worked) = worked else {
            return self.apply_report(claimed, AgentSaid::Released, slot).await;
        };
        worked.said = masked(self.masks(), worked.said, &mut worked.outputs)?;
        self.store_outputs(&worked.outputs).await?;
        self.apply_report(claimed, worked.said, slot).await
    }

    /// Returns the agent of a role with all that it is given, or what keeps it from the work.
    fn prepared_agent(&self, claimed: &Claimed, role: &Role) -> Result<Result<Agent, Fault>, ServiceError> {
        let denied = |message| Ok(Err(Fault::new(FaultKind::Permission, message)));
        let place = Path::new(&claimed.workspace);
        // A claim is only made for roles that are served, so this is a race with a change.
        let Some(mut agent) = self.settings.agent(role, &self.scratch) else {
            return Ok(Err(Fault::new(FaultKind::Transient, format!("no agent serves the role `{role}`"))));
        };
        let variables = match self.secrets.open(&self.settings.variables(role)) {
            Ok(variables) => variables,
            Err(what) => return denied(format!("it lacks {what}")),
        };
        if let Err(error) = self.settings.can_isolate_network(role) {
            return denied(format!("could not {error}"));
        }
        if let Some(message) = self.lost_place_reason(claimed) {
            return denied(message);
        }
        if !brief_file_work(|| place.is_dir()) {
            let message = format!("the workspace {} is not there", claimed.workspace);
            return Ok(Err(Fault::new(FaultKind::Transient, message)));
        }
        if let Some(message) = self.settings.changed_scripts(place)? {
            return denied(message);
        }
        agent.environment = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        agent.masks = self.masks().clone();
        agent.isolation = self.isolation(&claimed.workspace);
        Ok(Ok(agent))
    }
}

/// Ends what is left on this host of an earlier agent of the step. Says after a moment what it waits for; returns `None` where it
/// shall wait no longer.
async fn end_earlier_agent(
    name: &TreeName,
    (slot, held): (&Slot, &InFlightGuard),
    watch: &mut impl FnMut(Stream, &[u8]),
    cancel: &mut Cancel,
) -> Option<()> {
    let _waiting = slot.wait_with_slot();
    let hears = |words: &str| {
        watch(Stream::Stderr, format!("planctl {words}\n").as_bytes());
        held.set_obstacle(Some(words.to_owned()));
    };
    tokio::select! {
        () = name.end_earlier_agent(hears) => held.set_obstacle(None),
        () = cancel => return None,
    }
    Some(())
}

/// Returns what an agent is told, as it is kept.
pub(super) fn delivered(claimed: &Claimed, task: &Task, assignment: &Assignment) -> PromptView {
    PromptView {
        at: moment(clock::now()),
        step: task.step,
        title: assignment.step_title.clone(),
        visit: claimed.item.at.visit,
        attempt: assignment.attempt,
        role: assignment.role.clone(),
        prompt: assignment.prompt.clone(),
    }
}

pub(super) fn task_of(claimed: &Claimed) -> Result<&Task, ServiceError> {
    claimed
        .graph
        .task(&claimed.item.at.node)
        .ok_or_else(|| ServiceError::broken(format!("item {} is of no step", claimed.item.id)))
}

/// Masks secret values in what a worker said, before it is stored.
pub(crate) fn masked(
    masks: &Masks,
    said: AgentSaid,
    outputs: &mut [Output],
) -> Result<AgentSaid, ServiceError> {
    masks
        .mask_stored(said, outputs)
        .map_err(|error| ServiceError::broken(format!("a report does not read: {error}")))
}
