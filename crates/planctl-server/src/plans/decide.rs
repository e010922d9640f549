//! A person's decision about a run: applied once, and seen in the plan's file.

use planctl_engine::{Decision, Event, HumanEvent, RunId};
use planctl_store::{Applied, NewVote, Proof};

use crate::node::services::{ServiceError, Services};

impl Services {
    /// Applies a person's decision to a run, and draws the marks into the plan's file, which nobody else does without a daemon (P-27).
    /// Where the same request did so before, nothing more happens.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn decide(
        &self,
        run: RunId,
        decision: Decision,
        note: Option<&str>,
    ) -> Result<Applied, ServiceError> {
        self.decide_with(run, decision, note, None).await
    }

    /// Does the same for a decision that a vote makes; the vote is written with it.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn decide_with(
        &self,
        run: RunId,
        decision: Decision,
        note: Option<&str>,
        vote: Option<Box<NewVote>>,
    ) -> Result<Applied, ServiceError> {
        let key = self.caller.request.map(|request| request.decision_key(run, &decision));
        let proof = match (&decision, vote) {
            (Decision::Submit, _) => Proof::Submit,
            (Decision::Answer { .. } | Decision::Vote { .. }, Some(vote)) => Proof::Vote { key, vote },
            (
                Decision::Answer { .. }
                | Decision::Vote { .. }
                | Decision::Cancel
                | Decision::Pause
                | Decision::Resume { .. }
                | Decision::Revise { .. },
                _,
            ) => Proof::Person { key },
        };
        let is_submitted = decision == Decision::Submit;
        let by = self.caller.actor.clone();
        let event = Event::Human(HumanEvent { by, note: note.map(str::to_owned), decision });
        let applied = self.store.apply(run, &event, &proof, None).await?;
        if !is_submitted {
            self.server_node.draw_marks_if_possible(run).await;
        }
        // A daemon looks after what ended runs leave by itself.
        if self.server_node.daemon().is_none()
            && let Err(error) = self.server_node.clear_up(run).await
        {
            tracing::warn!(%error, run.id = %run, "what the run leaves was not looked at");
        }
        Ok(applied)
    }

    /// Says whether the same request made this decision before, and was not answered.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn has_decided(&self, run: RunId, decision: &Decision) -> Result<bool, ServiceError> {
        match self.caller.request {
            Some(request) => Ok(self.store.is_accepted(&request.decision_key(run, decision)).await?),
            None => Ok(false),
        }
    }
}
