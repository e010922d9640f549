//! Makes the executor of a run: its approved settings, its place of work, the environment of its commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use planctl_engine::{Graph, Node, NodeKind, RunId, Tier};
use planctl_harness::{Baseline, blocking_in_place, git_top_level};
use planctl_store::RunRow;

use crate::executor::Executor;
use crate::executor::progress::LiveActivity;
use crate::node::ServerNode;
use crate::node::scratch_in;
use crate::node::services::ServiceError;
use crate::runs::plan_file::within_folder;
use crate::runs::settings::RunSettings;
use crate::verify::protection::is_mover;
use crate::workspaces::baselines::baseline_of;
use crate::workspaces::checkpoints::repositories_noted_in;
use crate::workspaces::neighbours::{NEIGHBOURS_MAX, neighbours};

impl ServerNode {
    /// Returns the executor that works on one active run in this process.
    ///
    /// # Errors
    ///
    /// Those of the store, and those of the helper for child processes.
    pub async fn executor(&self, run: RunId) -> Result<Executor, ServiceError> {
        self.executor_of(&self.store.run(run).await?, LiveActivity::default()).await
    }

    pub(crate) async fn executor_of(
        &self,
        row: &RunRow,
        activity: LiveActivity,
    ) -> Result<Executor, ServiceError> {
        let mut approved: Baseline = match row.approval {
            Some(approval) => baseline_of(&self.store.approval(approval).await?)?,
            None => return Err(ServiceError::broken(format!("{} is active without an approval", row.name))),
        };
        self.refuse_changed_settings(row.id, &row.name, &row.settings).await?;
        let settings = RunSettings::of(row)?;
        settings.protect_scripts(&mut approved);
        let (marked_plans, top) = self.marked_plans(row).await?;
        let plans = marked_plans.keys().chain(settings.sub_plans.keys());
        for plan in plans.filter_map(|plan| within_folder(&settings.folder, plan)) {
            approved.note_plan(plan);
        }
        let graph = self.store.graph_of(row).await?;
        let moves = |node: &Node| {
            let own = node.gated().is_some_and(|gated| is_mover(&approved, &gated));
            own || matches!(node.kind, NodeKind::Join(_)) && graph.forks_or_merges_worktrees(&node.id)
        };
        let movers = graph.nodes().iter().filter(|node| moves(node)).map(|node| node.id.clone()).collect();
        let neighbours = self.neighbours(row, &settings, &graph).await?;
        let executor = Executor {
            store: self.store.clone(),
            spawner: self.spawner()?.clone(),
            holder: self.holder()?,
            scratch: scratch_in(self.state_dir())?,
            locks: self.locks_dir(),
            state_dir: self.state_dir().to_owned(),
            run: row.id,
            plan: row.plan_path.clone(),
            marked_plans,
            workspace: row.place().into(),
            home: row.workspace_path.clone(),
            worktree: row.worktree.clone(),
            neighbours,
            settings,
            approved,
            movers,
            is_in_one_place: graph.nodes().iter().all(|node| graph.worktree_branch(&node.id).is_none()),
            at_once: usize::from(graph.limits().parallel),
            made_for: row.run_config(),
            activity,
            in_flight: self.in_flight().clone(),
            metrics: self.metrics().clone(),
            traces: self.traces().cloned(),
            sessions: self.sessions().clone(),
            outlasts_outages: false,
            secrets: self.secrets(),
            masks: std::sync::OnceLock::new(),
            runner: std::sync::OnceLock::new(),
            repositories_noted: repositories_noted_in(self.state_dir(), top),
        };
        // Notes the state of the workspace's repositories before any work; the gate reports a variable that is refused.
        executor.runner(&executor.workspace).ok();
        Ok(executor)
    }

    /// Returns the workspaces that are hidden from the commands of a run, where it is confined.
    async fn neighbours(
        &self,
        row: &RunRow,
        settings: &RunSettings,
        graph: &Graph,
    ) -> Result<Vec<PathBuf>, ServiceError> {
        if settings.isolation == Tier::SameUser {
            return Ok(Vec::new());
        }
        let known = self.store.other_workspaces(self.host(), &row.workspace_path, NEIGHBOURS_MAX).await?;
        let contracts = graph.nodes().iter().filter_map(Node::gated);
        let contracts = contracts.map(|gated| gated.contract.command.clone());
        // Commands and PATH of the configuration, and those of the plan.
        let commands: Vec<String> = std::iter::once(row.settings.clone()).chain(contracts).collect();
        let home = Path::new(&row.workspace_path);
        Ok(blocking_in_place(|| {
            let own = [Path::new(row.place()), home, git_top_level(home).unwrap_or(home)];
            neighbours(known, &own, &commands.join("\n"))
        }))
    }

    /// Returns the plans in whose files the state of a run is marked, with the run of each; and the run that is around all of them.
    async fn marked_plans(&self, row: &RunRow) -> Result<(BTreeMap<String, RunId>, RunId), ServiceError> {
        let mut plans = BTreeMap::from([(row.plan_path.clone(), row.id)]);
        let (mut top, mut around) = (row.id, row.around.as_ref().map(|around| around.run));
        while let Some(run) = around {
            let row = self.store.run(run).await?;
            top = run;
            around = row.around.as_ref().map(|around| around.run);
            plans.insert(row.plan_path, row.id);
        }
        Ok((plans, top))
    }
}
