//! The baseline of an approval: the protected files as they are where the plan will run.

use std::path::PathBuf;

use planctl_api::Next;
use planctl_api::wire::calls::Approving;
use planctl_harness::Baseline;
use planctl_store::{PlanId, RunRow};

use crate::node::services::{ServiceError, Services};
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;
use crate::workspaces::baselines::Unnamed;
use crate::workspaces::by_products;

impl Services {
    pub(super) async fn baseline_of_checked(
        &self,
        of: (PlanId, Option<&RunRow>),
        checked: &Checked,
        now: &Baseline,
        given: &Approving,
        unnamed: &Unnamed,
    ) -> Result<Baseline, ServiceError> {
        match &checked.verification.graph {
            Some(graph) => self.baseline_to_bind(of, graph, now, &given.accept_changed, unnamed).await,
            None => Ok(now.clone()),
        }
    }

    /// Returns where a plan's protected files lie: where its run works, else in the workspace.
    pub(super) fn place_of(&self, run: Option<&RunRow>) -> Result<PathBuf, ServiceError> {
        match run.filter(|run| run.is_in_worktree() || run.is_under_way_within()) {
            Some(run) => Ok(PathBuf::from(run.present_folder())),
            None => {
                self.caller.workspace.clone().ok_or_else(|| ServiceError::broken("no workspace is named"))
            }
        }
    }

    /// Returns for which folder a plan is approved, and the protected files there: those of its run that is under way.
    pub(super) async fn where_approved(
        &self,
        run: Option<&RunRow>,
        checked: &Checked,
    ) -> Result<(String, Baseline), ServiceError> {
        let folder = match run.filter(|run| run.is_under_way_within()) {
            Some(run) => RunSettings::of(run)?.folder,
            None => String::new(),
        };
        if !checked.folder.is_empty() && checked.folder != folder {
            return Err(ServiceError::Conflict {
                what: format!(
                    "approve {} in the folder {}: no run of it works there",
                    checked.path, checked.folder
                ),
                next: Next::ShowRuns,
            });
        }
        let baseline = match run.filter(|run| run.is_in_worktree() || run.is_under_way_within()) {
            // Its contracts run in its worktree, so the protected files are taken from there.
            Some(run) => self.baseline_in_place(run, checked).await?,
            None => {
                let mut baseline = checked.baseline.clone();
                let (place, graph) = (self.place_of(None)?, checked.verification.graph.as_ref());
                let plan_file = place.join(&checked.path);
                let of = (plan_file.as_path(), graph);
                by_products::leave_out(self.spawner()?, self.state_dir(), &place, of, &mut baseline).await;
                baseline
            }
        };
        Ok((folder, baseline))
    }

    async fn baseline_in_place(&self, run: &RunRow, checked: &Checked) -> Result<Baseline, ServiceError> {
        let Some(graph) = checked.verification.graph.clone() else { return Ok(checked.baseline.clone()) };
        self.baseline_of_run_now(run, &graph).await
    }
}
