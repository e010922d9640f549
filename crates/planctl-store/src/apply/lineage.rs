//! Notices a database that lost history (P17): after a failover to a standby that lagged behind, or after a restore.
//!
//! A process keeps the newest line of history that it committed of each run. Histories are only ever added to, so a run
//! whose history does not hold that line any more was set back. Such a run is refused until this process restarts: it is
//! stored as another process or an operator left it, and what this process knows of it is of a timeline that is lost.
//!
//! Transitions that are decided on a snapshot are fenced besides: the writing statement compares the run's `chain`, the hash of
//! its newest line, with the one that the transition was decided on. So a state of a lost timeline is never written over a
//! run that has reached the same `seq` on another way.

use crate::cache::Committed;
use crate::error::StoreError;

impl Committed {
    /// Compares what was committed with what is stored: the run's newest line, and the hash of the line committed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if that line is missing or differs.
    pub(super) fn check(&self, newest: i64, found: Option<Vec<u8>>) -> Result<(), StoreError> {
        if found.as_deref() == Some(&self.hash[..]) {
            return Ok(());
        }
        let seq = self.seq;
        let what = if newest < seq {
            format!("its history ends with line {newest}, and line {seq} was committed")
        } else {
            format!("line {seq} of its history is not the one that was committed")
        };
        Err(StoreError::corrupt(format!(
            "{what}: the database lost history, by a failover or a restore (HISTORY_REGRESSED); to go on from what is \
             stored, restart planctl"
        )))
    }
}
