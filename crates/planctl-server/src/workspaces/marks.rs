//! Draws the status and the steps' marks back into the plan file: a projection for people, off the critical path.
//!
//! The database is the record. The file is written at most once a second and at every hold, decision and end, and only while it
//! still is the text that runs: a file that changed is never overwritten (DESIGN 4).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use planctl_engine::{Digest, NodeState, Outcome, RunId, RunStatus};
use planctl_harness::{PlanFileLock, write_plan};
use planctl_lang::{Mark, Source, annotate, digest};
use planctl_store::{PlanStatus, RunRow, RunView};

use crate::node::ServerNode;
use crate::node::runtime::blocking;
use crate::node::services::ServiceError;
use crate::runs::plan_file::{PlanFile, bytes_of, plan_file};

/// A plan's file after its marks were drawn.
pub(crate) struct Drawn {
    /// Whether it is the text that runs.
    pub(crate) file: PlanFile,
    /// Its path.
    pub(crate) path: PathBuf,
    /// The run.
    pub(crate) run: String,
    /// Why it could not be read or written.
    pub(crate) trouble: Option<String>,
}

impl Drawn {
    /// Says that the file is another text than the one that runs, or could not be read or written.
    pub(crate) fn is_troubled(&self) -> bool {
        self.file == PlanFile::Changed || self.trouble.is_some()
    }

    /// Says so in the log.
    pub(crate) fn warn_of_trouble(&self) {
        let (file, run) = (self.path.display(), &self.run);
        match &self.trouble {
            Some(trouble) => tracing::warn!(error = trouble, run.name = run, "{file} was not marked"),
            None if self.file == PlanFile::Changed => tracing::warn!(
                run.name = run,
                "{file} was changed during the run, which goes on with the approved text; the file is left as it is"
            ),
            None => {}
        }
    }
}

impl ServerNode {
    /// Draws the marks once, as the run stands, and looks after what it leaves where it is over.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn mark_now(&self, run: RunId) -> Result<(), ServiceError> {
        self.clear_up(run).await?;
        self.draw_marks(run).await.map(drop)
    }

    /// Draws the marks of a run that rests or is over before an answer says so, where this process draws them: a caller
    /// that waits for the run then finds them in the file (P-27).
    pub(crate) async fn draw_marks_before_answering(&self, run: &RunRow) {
        let is_over = matches!(run.head.status, RunStatus::Ended { .. });
        if (is_over || run.head.out == 0) && self.unmarked().contains(&run.id) {
            self.draw_marks_if_possible(run.id).await;
        }
    }

    /// Draws the marks after a committed transition; logs a failure.
    pub(crate) async fn draw_marks_if_possible(&self, run: RunId) {
        match self.draw_marks(run).await {
            Ok(drawn) if drawn.trouble.is_some() => drawn.warn_of_trouble(),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, run.id = %run, "the plan file was not marked"),
        }
    }

    /// Writes the status of a plan without an active run into its file; logs a failure.
    pub(crate) async fn draw_status_if_possible(&self, file: PathBuf, revision: Digest, status: PlanStatus) {
        let none = BTreeMap::new();
        let locks = self.locks_dir();
        let write = move || write_marks(&locks, &file, &revision, status.as_str(), &none);
        match blocking(write).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the plan file was not marked"),
            Err(error) => tracing::warn!(%error, "the plan file was not marked"),
        }
    }

    /// Draws the marks once, as the run stands, and says whether the file is the text that runs. A file that can't be read or
    /// written is left alone.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn draw_marks(&self, run: RunId) -> Result<Drawn, ServiceError> {
        let view = self.store.run_view(run).await?;
        let path = plan_file(&view.run);
        let drawn = |file, trouble| Drawn { file, path: path.clone(), run: view.run.name.clone(), trouble };
        if view.run.host != self.host() {
            return Ok(drawn(PlanFile::Unseen, None));
        }
        let plan = self.store.plan(view.run.plan).await?;
        let graph = self.store.graph_of(&view.run).await?;
        let marks: BTreeMap<u32, Mark> = graph
            .numbered_steps()
            .iter()
            .filter_map(|(step, node)| Some((*step, mark_of(&view, &node.id)?)))
            .collect();
        let (file, locks) = (path.clone(), self.locks_dir());
        let (revision, status) = (view.run.revision.clone(), plan.status.as_str());
        let write = move || write_marks(&locks, &file, &revision, status, &marks);
        Ok(match blocking(write).await? {
            Ok(file) => drawn(file, None),
            Err(trouble) => drawn(PlanFile::Unseen, Some(trouble)),
        })
    }
}

/// Writes a status and marks into a plan's file, if it still is this text.
fn write_marks(
    locks: &Path,
    file: &Path,
    revision: &Digest,
    status: &str,
    marks: &BTreeMap<u32, Mark>,
) -> Result<PlanFile, String> {
    let Some(bytes) = bytes_of(file)? else { return Ok(PlanFile::Unseen) };
    let shown = file.to_string_lossy().into_owned();
    let Ok(source) = Source::from_bytes(shown, bytes) else { return Ok(PlanFile::Changed) };
    if digest(&source) != *revision {
        return Ok(PlanFile::Changed);
    }
    let text = annotate(&source, status, marks);
    if text == source.text() {
        return Ok(PlanFile::Runs);
    }
    let lock = PlanFileLock::try_take(locks, file).map_err(|error| error.to_string())?;
    if lock.is_none() {
        return Ok(PlanFile::Held);
    }
    // A concurrent change of the file by somebody else is kept.
    write_plan(file, source.text().as_bytes(), text.as_bytes())
        .map(|_| PlanFile::Runs)
        .map_err(|error| error.to_string())
}

fn mark_of(view: &RunView, node: &planctl_engine::NodeId) -> Option<Mark> {
    let record = view.records.get(node)?;
    match &record.state {
        NodeState::Pending | NodeState::Ready => None,
        NodeState::Rehearsing
        | NodeState::Saving { .. }
        | NodeState::Branching
        | NodeState::Nested { .. }
        | NodeState::Working { .. }
        | NodeState::Resting { .. }
        | NodeState::Checking { .. }
        | NodeState::Held { .. } => Some(Mark::Working),
        NodeState::Settled { outcome } => Some(match outcome {
            Outcome::Passed if record.is_vacuous() => Mark::Vacuous,
            Outcome::Passed => Mark::Passed,
            Outcome::Failed => Mark::Failed,
            Outcome::Skipped => Mark::Skipped,
            Outcome::Waived => Mark::Waived,
            Outcome::Warned => Mark::Warned,
        }),
    }
}
