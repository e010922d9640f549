//! Repairs: a run of the draft failed, and the writer is asked again with the goal, the failure and what has passed (M-40).

use serde::{Deserialize, Serialize};

/// The most repairs of a draft; what fails as often needs a person.
pub const REPAIRS_MAX: usize = 3;
/// The most bytes of a failure that the writer is told, its end.
const FAILURE_BYTES_MAX: usize = 8 * 1024;

/// A run of a draft, or of a resolved goal, that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FailedRun {
    /// The run's name.
    pub run: String,
    /// The digest of the text that ran: a run may fail again with another one.
    pub digest: String,
    /// The step that failed.
    pub step: u32,
    /// The failure, as the contract printed it.
    pub failure: String,
    /// The steps that passed before.
    pub passed: Vec<u32>,
}

/// A failed run that the writer was told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Repair {
    /// The run.
    pub failed: FailedRun,
    /// The contracts of the steps that passed. They are green by now, as they should be.
    pub passed: Vec<String>,
    /// How many rounds there were before it.
    pub after: usize,
}

impl FailedRun {
    /// Returns the failure as the writer is told it.
    pub(crate) fn failure_text(&self) -> &str {
        let mut start = self.failure.len().saturating_sub(FAILURE_BYTES_MAX);
        while !self.failure.is_char_boundary(start) {
            start += 1;
        }
        &self.failure[start..]
    }
}
