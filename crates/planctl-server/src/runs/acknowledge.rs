//! A person acknowledges that a run failed: it leaves the list of what needs somebody, and stays as it is.

use planctl_api::Next;
use planctl_api::wire::Decided;
use planctl_engine::{End, RunId, RunStatus};

use crate::node::services::{ServiceError, Services};

impl Services {
    /// Records that the caller has seen that a run failed.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where it did not fail, and those of the store.
    pub async fn acknowledge(&self, run: RunId, note: Option<&str>) -> Result<Decided, ServiceError> {
        let row = self.store.run(run).await?;
        let has_failed = matches!(row.head.status, RunStatus::Ended { end: End::Failed | End::Aborted });
        if !has_failed {
            return Err(ServiceError::Conflict {
                what: format!("acknowledge {}: it has not failed", row.name),
                next: Next::show(&row.name),
            });
        }
        let actor = self.caller.actor.to_string();
        let is_first = self.store.acknowledge_failure(run, &actor, note).await?;
        let by = if is_first { actor } else { row.acknowledged_by.clone().unwrap_or(actor) };
        Ok(Decided { by, ..self.decided(&row, "acknowledge", None, !is_first) })
    }
}
