//! An item of an interactive agent: a session that a person started works on it until its turn ends.

use planctl_api::wire::{CheckView, SessionStep};
use planctl_engine::{AgentSaid, Report, Work};
use planctl_harness::excerpt_of;
use planctl_store::Claimed;

use super::Executor;
use super::agent_task::{delivered, masked, task_of};
use crate::clock;
use crate::executor::slots::Slot;
use crate::node::services::ServiceError;
use crate::node::sessions::TurnEnd;
use crate::node::spool::Spool;

impl Executor {
    /// Waits until the session ends its turn, and reports that; returns what was claimed with the report. The session has as
    /// much time as it needs, and takes no worker's slot meanwhile.
    pub(super) async fn wait_for_session(
        &self,
        claimed: &Claimed,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let Work::Agent { role, timeout, brief, .. } = &claimed.item.work else {
            return Err(ServiceError::broken(format!("item {} is not for an agent", claimed.item.id)));
        };
        let task = task_of(claimed)?;
        let assignment = self.prompt_input().assignment(claimed, task, role, *timeout, brief).await?;
        Spool::in_state(&self.state_dir).add_prompt(self.run, &delivered(claimed, task, &assignment));
        let node = claimed.graph.node(&claimed.item.at.node);
        let check = node.and_then(|node| node.confirmation.as_deref()?.check.as_ref());
        let began = clock::instant();
        let waiting = slot.release_while_waiting(None);
        let work = async |cancel| {
            let step = SessionStep {
                item: assignment.item,
                step: task.step,
                title: assignment.step_title,
                attempt: assignment.attempt,
                attempts_max: assignment.attempts_max,
                workspace: claimed.workspace.clone(),
                check: check.map(|check| CheckView {
                    what: check.describe(),
                    takes_any_tool: check.takes_any_tool(),
                }),
                prompt: assignment.prompt,
            };
            let mut at_work = self.sessions.begin(self.run, &claimed.item.id, step);
            tokio::select! {
                end = at_work.until_turn_ends() => end,
                () = cancel => None,
            }
        };
        let ended = self.while_renewing(claimed, &slot.stop, slot, work).await;
        drop(waiting);
        let Some(end) = ended else { return Ok(None) };
        // The session goes on with the step whoever has its item; only the process that waited for it leaves.
        if end.is_none() && self.store.hand_back(claimed).await? {
            return Ok(None);
        }
        let mut outputs = Vec::new();
        let said = match end {
            None => AgentSaid::Released,
            Some(TurnEnd::Asked(question)) => AgentSaid::Asked { question, usage: None },
            Some(TurnEnd::Reported { last_words, observation }) => {
                let (text, stored) = excerpt_of(&last_words);
                outputs = stored;
                AgentSaid::Reported(Report {
                    text,
                    gave_up: false,
                    ending: None,
                    duration: began.elapsed(),
                    usage: None,
                    hints: None,
                    circumstances: None,
                    observation: observation.map(Box::new),
                })
            }
        };
        let said = masked(self.masks(), said, &mut outputs)?;
        self.store_outputs(&outputs).await?;
        self.apply_report(claimed, said, slot).await
    }
}
