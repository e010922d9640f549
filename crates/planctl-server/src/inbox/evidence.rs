//! The evidence beside an ask about a step: the attempts, the workspace as it is, and the approval it works under.

use std::path::Path;

use planctl_api::wire::{ApprovedView, AttemptSummary, ChangedFile, WorkspaceChanges, moment};
use planctl_engine::{Graph, Node};
use planctl_harness::{Baseline, ChangeKind, changes_since_head};
use planctl_store::{Approval, RunRow, Said};

use crate::node::services::{ServiceError, Services};
use crate::plans::canonical;
use crate::runs::attempts::Attempts;
use crate::runs::plan_file::ReadPlanFile;
use crate::verify::diff::unified;
use crate::workspaces::baselines::baseline_of;
use crate::workspaces::branch_worktrees;

/// The most reports and findings of a step that are looked at.
const LOOKED_AT: i64 = 64;
/// The most files of a workspace that are named.
const FILES_MAX: usize = 50;
/// The most bytes of a workspace's diff that are shown.
const DIFF_BYTES_MAX: usize = 64 * 1024;

impl Services {
    /// Returns the newest attempts at a node, and the end of its worker's newest report.
    pub(super) async fn newest_attempts(
        &self,
        run: &RunRow,
        node: &Node,
    ) -> Result<(Vec<AttemptSummary>, Option<String>), ServiceError> {
        let mut attempts = Attempts::at(node);
        for line in self.store.newest_inputs_at(run.id, &node.id, LOOKED_AT).await? {
            if let Said::Input(input) = &line.said {
                attempts.note(&input.event);
            }
        }
        let last_words = attempts.last_words();
        Ok((attempts.summaries(), last_words))
    }

    /// Compares the place where a step works with its newest commit; nothing where it is on another host, or is no
    /// repository.
    pub(super) async fn workspace_changes(
        &self,
        run: &RunRow,
        graph: &Graph,
        node: &Node,
        approval: Option<&Approval>,
    ) -> Result<Option<WorkspaceChanges>, ServiceError> {
        if run.host != self.server_node.host() {
            return Ok(None);
        }
        let place = run.present_folder();
        let state_dir = self.state_dir();
        let place =
            branch_worktrees::place_of(&self.store, state_dir, run.id, graph, &node.id, place).await?;
        let compared =
            changes_since_head(self.spawner()?, Path::new(&place), &run.plan_path, DIFF_BYTES_MAX).await;
        let changes = match compared {
            Ok(Some(changes)) => changes,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, place, "the workspace was not compared with HEAD");
                return Ok(None);
            }
        };
        let protected = approval.map(baseline_of).transpose()?.unwrap_or_default().files;
        let free = node.gated().map(|gated| gated.may_change.clone()).unwrap_or_default();
        let own = Baseline { free, ..Baseline::default() };
        let more = changes.files.len().saturating_sub(FILES_MAX);
        let files = changes.files.into_iter().take(FILES_MAX).map(|(path, change)| ChangedFile {
            protected: protected.contains_key(&path),
            may_change: protected.contains_key(&path) && own.may_change(&path),
            path,
            change: match change.kind {
                ChangeKind::Added => "added",
                ChangeKind::Changed => "changed",
                ChangeKind::Deleted => "deleted",
            }
            .to_owned(),
            added: change.lines.map(|(added, _)| added),
            removed: change.lines.map(|(_, removed)| removed),
        });
        Ok(Some(WorkspaceChanges {
            commit: changes.commit,
            files: files.collect(),
            more,
            diff: changes.diff,
            is_cut: changes.is_cut,
        }))
    }

    /// Shows the approval that a run works under.
    pub(super) async fn approved(
        &self,
        run: &RunRow,
        approval: &Approval,
    ) -> Result<ApprovedView, ServiceError> {
        let read = self.server_node.read_plan_file(run).await?;
        let file_changed = read.as_ref().map(|read| !read.is_executed);
        let diff = match read {
            Some(ReadPlanFile { is_executed: false, text: Some(text) }) => {
                Some(self.diff_since_approval(run, &text).await?)
            }
            Some(_) | None => None,
        };
        Ok(ApprovedView {
            by: approval.by.clone(),
            at: moment(approval.at),
            digest: run.revision.as_str().to_owned(),
            file_changed,
            diff,
        })
    }

    /// Compares the text of the plan's file with the one that a run executes.
    async fn diff_since_approval(&self, run: &RunRow, text: &str) -> Result<String, ServiceError> {
        let approved = self.kept_text(run.plan, &run.plan_path, &run.revision).await?.source;
        Ok(unified(&canonical(&approved), &canonical(text)))
    }
}
