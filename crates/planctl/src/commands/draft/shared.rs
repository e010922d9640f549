//! The copy of a draft in the database, with which another machine goes on where this one is lost.

use std::sync::{MutexGuard, PoisonError};

use planctl_api::wire::calls::PlaceCall;
use planctl_api::wire::draft_records::{DraftRecordCall, DraftRecordView};
use serde::Serialize;

use super::kept::{CopyState, Kept, Text};
use crate::client::Client;
use crate::failure::{Exit, Failure};

impl Kept<'_> {
    /// Takes over what another machine kept of this draft, where that is newer.
    pub async fn take_newest(&self) -> Result<(), Failure> {
        // A text that can't be read is no reason to begin anew where there is a copy.
        let own = self.text().ok().flatten().map_or(0, |own| own.version);
        let take = async |client: &Client| {
            let version = client.take_draft(self.key()).await?;
            // A version that was not copied yet is newer than the copy.
            let is_newer = version > 0 && version >= own;
            let view =
                if is_newer { client.draft_record(self.key()).await? } else { DraftRecordView::default() };
            Ok((version, view))
        };
        let Ok(taken) = self.database.ask_if_there_is_one(take).await else {
            self.stay_alone();
            return Ok(());
        };
        let Some((version, view)) = taken else { return Ok(()) };
        self.copy_state().known = version;
        match view.record {
            Some(record) => self.put(&Text { version: view.version, record }),
            None => Ok(()),
        }
    }

    /// Stores a record here, then in the database, where there is one.
    pub async fn keep(&self, record: &impl Serialize, goal: &str) -> Result<(), Failure> {
        self.write(record)?;
        self.copy(goal).await
    }

    /// Copies what is kept here into the database, where there is one. Without its answer the draft is kept on this machine alone.
    pub async fn copy(&self, goal: &str) -> Result<(), Failure> {
        let state = *self.copy_state();
        let Some(own) = self.text()?.filter(|own| own.version > state.known && !state.is_alone) else {
            return Ok(());
        };
        let version = own.version;
        let call = DraftRecordCall {
            place: PlaceCall::default(),
            goal: goal.to_owned(),
            record: own.record,
            version,
            known: state.known,
        };
        let keep = async |client: &Client| match client.keep_draft(self.key(), call).await {
            // The copy of another machine is not written over.
            Err(failure) if failure.exit == Exit::Conflict => Ok(Err(failure)),
            Err(failure) => Err(failure),
            Ok(()) => Ok(Ok(())),
        };
        match self.database.ask_if_there_is_one(keep).await {
            Ok(Some(kept)) => {
                kept?;
                self.copy_state().known = version;
            }
            Ok(None) => {}
            Err(_) => self.stay_alone(),
        }
        Ok(())
    }

    fn stay_alone(&self) {
        self.copy_state().is_alone = true;
        self.database
            .context()
            .say("the database gave no answer, so this draft is kept on this machine alone");
    }

    // A writer that panicked left a whole state.
    fn copy_state(&self) -> MutexGuard<'_, CopyState> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
