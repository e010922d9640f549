//! Whether a plan's file is the text that a run executes: a file that changed is never run and never overwritten.

use std::path::{Path, PathBuf};

use planctl_harness::{Unreadable, read_plan};
use planctl_lang::{Source, digest};
use planctl_store::RunRow;

use crate::node::ServerNode;
use crate::node::runtime::blocking;
use crate::node::services::ServiceError;

impl ServerNode {
    /// Says whether the plan's file is the text that a run of this host executes.
    ///
    /// # Errors
    ///
    /// Those of a thread that could not be had.
    pub(crate) async fn look_at_plan_file(&self, run: &RunRow) -> Result<PlanFile, ServiceError> {
        if run.host != self.host() {
            return Ok(PlanFile::Unseen);
        }
        let (file, revision) = (plan_file(run), run.revision.clone());
        let looked = move || {
            let Ok(Some(bytes)) = bytes_of(&file) else { return PlanFile::Unseen };
            match Source::from_bytes(file.to_string_lossy().into_owned(), bytes) {
                Ok(source) if digest(&source) == revision => PlanFile::Runs,
                Ok(_) | Err(_) => PlanFile::Changed,
            }
        };
        blocking(looked).await
    }
}

/// Whether a plan's file is the text that a run executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlanFile {
    /// It is, except for the marks.
    Runs,
    /// It is another text: the run goes on with the one that was approved.
    Changed,
    /// It is not there, can't be read, or is on another host.
    Unseen,
}

/// Returns where the plan's file of a run is.
pub(crate) fn plan_file(run: &RunRow) -> PathBuf {
    PathBuf::from(&run.workspace_path).join(&run.plan_path)
}

/// Reads a plan's file; nothing where there is none.
pub(crate) fn bytes_of(file: &Path) -> Result<Option<Vec<u8>>, String> {
    match read_plan(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Unreadable::Missing) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
