//! The place of plans in the library: what their runs taught.

use planctl_api::wire::{EntryRuns, LibraryRuns};
use planctl_lang::library::{RUNS_NEWEST, place_of};
use planctl_store::Plan;

use crate::node::services::{ServiceError, Services};
use crate::verify::check::Checked;

impl Services {
    /// Records which entry of the library a kept plan was made of, and which plan is to follow it.
    pub(super) async fn place_in_library(&self, plan: &Plan, checked: &Checked) -> Result<(), ServiceError> {
        let place = place_of(&checked.source);
        if place.entry.is_none() && place.next.is_none() {
            return Ok(());
        }
        let digest = &checked.verification.digest;
        let (entry, next) = (place.entry.as_deref(), place.next.as_deref());
        Ok(self.store.place_in_library(plan.id, digest, entry, next).await?)
    }

    /// Says how the newest runs of each entry's plans ended in this workspace.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn library_runs(&self) -> Result<LibraryRuns, ServiceError> {
        let ended = self.store.ended_runs(self.own_workspace()?, RUNS_NEWEST).await?;
        let entries =
            ended.into_iter().map(|(id, runs)| EntryRuns { id, ended: runs.ended, done: runs.done });
        Ok(LibraryRuns { entries: entries.collect() })
    }
}
