//! One ask with the evidence on it, as a person needs it to decide.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use planctl_api::wire::{
    AskPage, AskView, ContractView, DriftView, HeldPromptView, LevelView, PlanWithin, StepFilesView, WillRun,
};
use planctl_config::WorkspaceMode;
use planctl_engine::{AskKind, ChildApproval, Graph, Node, NodeKind, Record};
use planctl_harness::{Baseline, JudgePrompt, Masks};
use planctl_lang::{Change, Insertion, Source, insert_step, insertion};
use planctl_store::{Approval, AskRow, Revision, RunRow, StoreError};

use super::ask_view::{ask_view, failure_view, shortfall_view};
use crate::node::services::{ServiceError, Services};
use crate::plans::canonical;
use crate::plans::sub_plans::folder_of;
use crate::runs::settings::RunSettings;
use crate::verify::check;
use crate::workspaces::baselines::baseline_of;

/// The change of a plan that an ask is about.
#[derive(Default)]
struct AskedChange {
    /// The settings, commands and plans that an approval lets run.
    will_run: Option<WillRun>,
    /// The reason for which a proposed step does not fit.
    unfit: Option<String>,
    diff: Option<String>,
    changes: Vec<Change>,
    /// Protected files that a proposed step may change.
    may_change: Vec<String>,
    drift: Vec<DriftView>,
    /// Files that judge the plan, and differ from the last commit.
    uncommitted: Vec<String>,
}

impl Services {
    /// Shows one ask, open or answered, with the evidence on it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] with not found, and those of the connection.
    pub async fn ask(&self, id: u64) -> Result<AskPage, ServiceError> {
        let row = match self.store.ask(i64::try_from(id).unwrap_or(i64::MAX)).await {
            Err(StoreError::NoAsk { number }) => return self.draft_ask(number).await,
            row => row?,
        };
        let run = self.store.run(row.run).await?;
        let revision = self.kept_text(run.plan, &run.plan_path, &run.revision).await?;
        let answer = if row.is_open { None } else { self.answer_of(&row).await? };
        let blocks = if row.is_open { Some(self.blocked_by(&row).await?) } else { None };
        let gated = revision.graph.gated(&row.at.node);
        let is_plan = row.ask.kind == AskKind::Plan;
        let record = self.record_of(&row).await?;
        let approval = match run.approval.filter(|_| !is_plan) {
            Some(approval) => Some(self.store.approval(approval).await?),
            None => None,
        };
        let change = match row.ask.kind {
            AskKind::Plan => self.change_by_approval(&run, &revision).await?,
            AskKind::Insertion => self.change_by_insertion(&row, &run, &revision, approval.as_ref()).await?,
            AskKind::Escalation
            | AskKind::Budget
            | AskKind::Question
            | AskKind::Choice
            | AskKind::Effect
            | AskKind::Prompt
            | AskKind::Synthesis
            | AskKind::Day => AskedChange::default(),
        };
        let mut failure = row.ask.failure.as_deref().map(failure_view);
        if let Some(view) = failure.as_mut().filter(|_| row.is_open) {
            self.compare_tampered(&run, &mut view.tampered).await?;
        }
        let (rules, votes) = self.votes_shown(&row).await?;
        let node = revision.graph.node(&row.at.node).filter(|node| node.gated().is_some());
        let (mut attempts, mut last_words, mut workspace_changes) = (Vec::new(), None, None);
        if let Some(node) = node.filter(|_| !is_plan) {
            (attempts, last_words) = self.newest_attempts(&run, node).await?;
            if row.is_open {
                workspace_changes =
                    self.workspace_changes(&run, &revision.graph, node, approval.as_ref()).await?;
            }
        }
        let approved = match &approval {
            Some(approval) => Some(self.approved(&run, approval).await?),
            None => None,
        };
        Ok(AskPage {
            ask: AskView { blocks, ..ask_view(&row, &revision.graph, answer) },
            message: row.ask.message.clone(),
            unfit: change.unfit,
            contract: gated
                .filter(|gated| !gated.contract.is_none())
                .map(|gated| ContractView::of(gated.contract)),
            is_call: node.is_some_and(|node| matches!(node.kind, NodeKind::Call(_))),
            failure,
            vacuous: record.as_ref().is_some_and(Record::is_vacuous),
            pace: revision
                .graph
                .task(&row.at.node)
                .zip(record.as_ref())
                .and_then(|(task, record)| LevelView::of(task, record)),
            shortfall: row.ask.shortfall.as_ref().map(shortfall_view),
            prompt: self.prompt_shown(&row).await?,
            will_run: change.will_run,
            plan_text: is_plan.then(|| revision.source.clone()),
            diff: change.diff,
            changes: change.changes,
            may_change: change.may_change,
            drift: change.drift,
            uncommitted: change.uncommitted,
            attempts,
            last_words,
            workspace_changes,
            approved,
            rules,
            votes,
        })
    }

    /// Shows what a plan that waits for its approval would change: its text, what it runs, and the files that judge it.
    async fn change_by_approval(
        &self,
        run: &RunRow,
        revision: &Revision,
    ) -> Result<AskedChange, ServiceError> {
        let diff = match self.store.last_approval(run.plan).await? {
            Some(before) if before.digest != run.revision => {
                let old = self.kept_text(run.plan, &run.plan_path, &before.digest).await?.source;
                Some(crate::verify::diff::unified(&canonical(&old), &canonical(&revision.source)))
            }
            Some(_) | None => None,
        };
        let place = Path::new(run.present_folder());
        let (view, shown) = self.will_run(run, &revision.graph).await?;
        Ok(AskedChange {
            drift: self.drift(run.plan, None, &revision.graph, &shown).await?,
            uncommitted: self.differing_from_head(place, &shown).await,
            will_run: Some(view),
            diff,
            ..AskedChange::default()
        })
    }

    /// Shows what a step that a worker proposes would change.
    async fn change_by_insertion(
        &self,
        row: &AskRow,
        run: &RunRow,
        revision: &Revision,
        approval: Option<&Approval>,
    ) -> Result<AskedChange, ServiceError> {
        let (text, insertion) = match preview_insertion(row, &revision.graph, &revision.source) {
            Ok(preview) => preview,
            Err(why) => return Ok(AskedChange { unfit: Some(why), ..AskedChange::default() }),
        };
        let place = Path::new(run.present_folder());
        let approved = approval.map(baseline_of).transpose()?.unwrap_or_default();
        let own = Baseline { free: insertion.may_change, ..Baseline::default() };
        let now = self.baseline_of_run_now(run, &revision.graph).await.unwrap_or_default();
        Ok(AskedChange {
            drift: self.drift(run.plan, Some(run), &revision.graph, &now).await?,
            uncommitted: self.differing_from_head(place, &now).await,
            may_change: approved.files.keys().filter(|path| own.may_change(path)).cloned().collect(),
            diff: Some(text),
            changes: insertion.changes,
            ..AskedChange::default()
        })
    }

    /// Shows the prompt that an ask is about, whole.
    async fn prompt_shown(&self, row: &AskRow) -> Result<Option<HeldPromptView>, ServiceError> {
        let Some(prompt) = row.ask.prompt.as_deref() else { return Ok(None) };
        let kept = self.store.output(&prompt.digest).await?;
        let kept = kept.and_then(|bytes| serde_json::from_slice::<JudgePrompt>(&bytes).ok());
        Ok(Some(HeldPromptView {
            digest: prompt.digest.as_str().to_owned(),
            name: prompt.by.clone(),
            model: prompt.model.clone(),
            url: prompt.url.clone(),
            tokens: prompt.tokens,
            text: kept.map(|prompt| prompt.whole()),
        }))
    }

    async fn will_run(&self, run: &RunRow, graph: &Arc<Graph>) -> Result<(WillRun, Baseline), ServiceError> {
        let settings: RunSettings = serde_json::from_str(&run.settings).unwrap_or_default();
        let plans = self.plans_within(run, graph, &settings).await?;
        // Where the workspace is on another host there is nothing to look at; approving there takes the files as they are.
        let baseline = match &settings.shown {
            Some(shown) => shown.clone(),
            None => self.baseline_of_run_now(run, graph).await.unwrap_or_default(),
        };
        let mut protected = baseline.clone();
        settings.protect_scripts(&mut protected);
        let masks = settings.masks(&self.server_node.secrets());
        Ok((WillRun { plans, ..will_run(run, graph, &settings, &masks, &protected) }, baseline))
    }

    /// Lists the plans that a run carries out, as they were kept when it was made, and those within them.
    async fn plans_within(
        &self,
        run: &RunRow,
        graph: &Arc<Graph>,
        settings: &RunSettings,
    ) -> Result<Vec<PlanWithin>, ServiceError> {
        let (mut plans, mut seen) = (Vec::new(), BTreeSet::new());
        let first = (run.plan_path.clone(), settings.folder.clone(), graph.clone(), true);
        let mut open = VecDeque::from([first]);
        let home = Path::new(&run.workspace_path);
        while let Some((around, place, graph, is_approved)) = open.pop_front() {
            for (_, within) in graph.sub_plans() {
                let Some(digest) = settings.sub_plans.get(&within.path) else { continue };
                let is_approved_too = is_approved && within.approval == ChildApproval::Inherit;
                let folder = folder_of(&place, within);
                if !seen.insert((around.clone(), within.path.clone(), folder.clone(), is_approved_too)) {
                    continue;
                }
                let path = check::plan_path(&home.join(&within.path), home);
                let Some(kept) = self.store.plan_at(run.workspace, &path).await? else { continue };
                let revision = self.kept_text(kept.id, &path, digest).await?;
                plans.push(PlanWithin {
                    plan: path.clone(),
                    within: around.clone(),
                    folder: Some(folder.clone()).filter(|folder| !folder.is_empty()),
                    digest: digest.as_str().to_owned(),
                    title: revision.graph.title().to_owned(),
                    steps: revision.graph.task_count(),
                    is_approved_too,
                    text: is_approved_too.then(|| revision.source.clone()),
                });
                open.push_back((path, folder, revision.graph.clone(), is_approved_too));
            }
        }
        Ok(plans)
    }

    /// Returns what is remembered of the step that is held.
    async fn record_of(&self, row: &AskRow) -> Result<Option<Record>, ServiceError> {
        if row.ask.kind == AskKind::Plan {
            return Ok(None);
        }
        let mut view = self.store.run_view(row.run).await?;
        Ok(view.records.remove(&row.at.node))
    }
}

/// Says what a proposed step would change in a plan's text and meaning, or why it cannot be put in.
fn preview_insertion(row: &AskRow, graph: &Graph, source: &str) -> Result<(String, Insertion), String> {
    let step = graph.node(&row.at.node).and_then(Node::step).unwrap_or(0);
    let text = row.ask.message.as_deref().unwrap_or_default();
    let before = Source::new(row.plan_path.as_str(), source);
    match insert_step(&before, step, text) {
        Ok(text) => {
            let after = Source::new(row.plan_path.as_str(), text);
            let diff = crate::verify::diff::unified(&canonical(source), &canonical(after.text()));
            Ok((diff, insertion(&before, &after)))
        }
        Err(found) => {
            let why: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            Err(why.join("; "))
        }
    }
}

fn will_run(
    run: &RunRow,
    graph: &Graph,
    settings: &RunSettings,
    masks: &Masks,
    baseline: &Baseline,
) -> WillRun {
    let mode = if run.worktree.is_some() { WorkspaceMode::Worktree } else { WorkspaceMode::Shared };
    // A command that a person typed may hold a value which no page shows.
    let shown = |role| settings.shown(role).map(|worker| masks.text(&worker).into_owned());
    let workers = graph
        .steps()
        .into_iter()
        .flat_map(|(_, task)| task.roles())
        .map(|role| (role.as_str().to_owned(), shown(role)));
    WillRun {
        workspace: run.workspace_path.clone(),
        folder: Some(settings.folder.clone()).filter(|folder| !folder.is_empty()),
        mode: mode.as_str().to_owned(),
        git: settings.commits.as_str().to_owned(),
        budget: graph.budget().into(),
        workers: workers.collect(),
        digests: baseline
            .files
            .iter()
            .map(|(path, state)| (path.clone(), state.digest.as_str().to_owned()))
            .collect(),
        protected: baseline.shown(),
        steps: graph.nodes().iter().filter_map(|node| step_files(node, baseline)).collect(),
        isolation: settings.isolation.to_string(),
        plans: Vec::new(),
    }
}

fn step_files(node: &Node, baseline: &Baseline) -> Option<StepFilesView> {
    let gated = node.gated()?;
    let view = StepFilesView {
        number: node.step()?,
        title: node.title.clone(),
        judged_by: crate::verify::protection::judges_of(baseline, &gated),
        may_change: gated.may_change.iter().cloned().collect(),
    };
    Some(view).filter(|view| !view.judged_by.is_empty() || !view.may_change.is_empty())
}
