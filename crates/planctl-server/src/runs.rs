//! Runs for people and programs: their settings, status, logs and history.

mod acknowledge;
pub(crate) mod ask_rules;
pub(crate) mod attempts;
mod branches;
pub(crate) mod bundle;
mod decisions;
mod logs;
pub(crate) mod plan_file;
pub(crate) mod policy_approvals;
mod read;
mod reports;
mod run_page;
mod run_picture;
mod sentences;
pub(crate) mod settings;
pub(crate) mod shown;
mod timeline;
mod traversal;
mod unproved;
pub(crate) mod words;
pub(crate) mod worked_on;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use planctl_engine::{DayScope, Fact, Graph, NodeId, RunId, RunStatus};
use planctl_store::{
    DayRow, HistoryLine, Page, Records, RunRow, Said, Store, StoreError, Unread, UsageSums, WantedRuns,
};
use serde_json::{Map, Value};

use crate::clock;
use crate::node::services::{ServiceError, Services};
use crate::runs::plan_file::PlanFile;
use crate::runs::shown::Shown;
use crate::runs::worked_on::Presence;
use planctl_api::wire::{
    DayBudgetView, EventLine, HolderView, OutputView, Paged, PromptList, RunList, RunSummary, RunView,
    SpentToday, SpentView, StepState, StepView, UnreadRun, moment, usd,
};

/// Within how many lines of its history a run has begun.
const BEGINNING: i64 = 20;
/// How many of the newest lines tell where a run is.
const NEWEST: i64 = 400;
/// How many lines of history are read at once.
const LINES_AT_ONCE: i64 = 1000;

/// A run's history from its beginning, of which no more is in memory than is read at once.
struct Lines<'a> {
    store: &'a Store,
    run: RunId,
    /// The only node that is told of.
    node: Option<NodeId>,
    read: VecDeque<HistoryLine>,
    after: i64,
}

impl Lines<'_> {
    async fn next(&mut self) -> Result<Option<HistoryLine>, StoreError> {
        if self.read.is_empty() {
            let (run, after) = (self.run, self.after);
            let lines = match &self.node {
                Some(node) => self.store.history_of_node(run, node, after, LINES_AT_ONCE).await?,
                None => self.store.history(run, after, LINES_AT_ONCE).await?,
            };
            self.read = lines.into();
            self.after = self.read.back().map_or(self.after, |line| line.seq);
        }
        Ok(self.read.pop_front())
    }
}

fn id_of(row: &Result<RunRow, Unread>) -> RunId {
    match row {
        Ok(row) => row.id,
        Err(unread) => unread.run,
    }
}

/// Returns of each workspace its first run in a list of runs, the newest of which come first.
fn newest_of_each_workspace(runs: &[Shown]) -> Vec<&Shown> {
    let mut seen = BTreeSet::new();
    runs.iter().filter(|shown| seen.insert(&shown.view.run.workspace_path)).collect()
}

fn day_budget_view(day: &DayRow, workspace: &str) -> DayBudgetView {
    DayBudgetView {
        of: match day.day.of {
            DayScope::Project => "project",
            DayScope::Host => "host",
        }
        .to_owned(),
        workspace: workspace.to_owned(),
        tokens: day.tokens,
        usd: usd(day.micro_usd),
        limit: day.limit.into(),
        renews_at: moment(day.day.until),
    }
}

fn add_sums(spent: &mut SpentView, sums: UsageSums) {
    spent.cached_tokens = Some(sums.cached_tokens);
    spent.estimated_tokens = Some(sums.estimated_tokens);
    spent.estimated_usd = Some(usd(sums.estimated_micro_usd));
}

impl Services {
    /// Shows a run.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn status(&self, run: RunId) -> Result<RunView, ServiceError> {
        let shown = self.shown(run).await?;
        let mut view = self.with_surroundings(&shown, shown.view()).await?;
        self.add_usage_sums(run, &mut view).await?;
        Ok(view)
    }

    /// Adds to a run what its records do not say: its reason, its plan's file, who approved it, who works on it.
    async fn with_surroundings(&self, shown: &Shown, view: RunView) -> Result<RunView, ServiceError> {
        let row = &shown.view.run;
        // A plan that is revised is changed by its author, and waits for that.
        let is_executed = row.head.status != RunStatus::Paused;
        self.server_node.draw_marks_before_answering(row).await;
        let file = self.server_node.look_at_plan_file(row).await?;
        let (approved_by, approved_at) = match row.approval {
            Some(approval) => {
                let approval = self.store.approval(approval).await?;
                (Some(approval.by), Some(moment(approval.at)))
            }
            None => (None, None),
        };
        let is_plan_file_changed = is_executed && file == PlanFile::Changed;
        let presence = Presence::of(&self.server_node)?;
        let worked_on_by = presence.worker_on(&shown.view, &shown.settings).await?;
        let holder = self.holder_of(shown, &presence).await?;
        let reason = self.reason_of(shown).await?;
        let day_budgets = self.day_budgets(&[shown]).await?;
        Ok(RunView {
            reason,
            is_plan_file_changed,
            approved_by,
            approved_at,
            worked_on_by,
            holder,
            day_budgets,
            ..view
        })
    }

    /// Returns where the run stands that has the workspace for which a queued one waits.
    async fn holder_of(
        &self,
        shown: &Shown,
        presence: &Presence,
    ) -> Result<Option<HolderView>, ServiceError> {
        if shown.ahead.is_none() {
            return Ok(None);
        }
        let Some(row) = self.server_node.holder_before(&shown.view.run).await? else { return Ok(None) };
        // A holder that does not read keeps nobody from seeing those behind it.
        let Some(Ok(holder)) = self.shown_each(vec![row], Records::Open).await?.pop() else {
            return Ok(None);
        };
        Ok(Some(HolderView {
            run: holder.view.run.name.clone(),
            state: holder.state(),
            waiting_on: holder.waiting_on(),
            worked_on_by: presence.worker_on(&holder.view, &holder.settings).await?,
        }))
    }

    /// Returns the budgets of the day that runs have; none is read where no run has any.
    async fn day_budgets(&self, runs: &[&Shown]) -> Result<Vec<DayBudgetView>, ServiceError> {
        let limited = runs.iter().filter(|shown| !shown.settings.day.is_none());
        let workspaces: BTreeMap<RunId, &str> =
            limited.map(|shown| (shown.view.run.id, shown.view.run.workspace_path.as_str())).collect();
        if workspaces.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<RunId> = workspaces.keys().copied().collect();
        let days = self.store.days(&ids).await?;
        let days =
            days.into_iter().filter_map(|(run, day)| Some(day_budget_view(&day, workspaces.get(&run)?)));
        Ok(days.collect())
    }

    /// Adds to what a run used how much of it came from a cache, and how much of it is an estimate.
    async fn add_usage_sums(&self, run: RunId, view: &mut RunView) -> Result<(), ServiceError> {
        if view.spent.tokens == 0 && view.spent.usd == 0.0 {
            return Ok(());
        }
        let sums = self.store.usage_sums(run).await?;
        let of_run = sums.values().fold(UsageSums::default(), |sum, more| UsageSums {
            cached_tokens: sum.cached_tokens.saturating_add(more.cached_tokens),
            estimated_tokens: sum.estimated_tokens.saturating_add(more.estimated_tokens),
            estimated_micro_usd: sum.estimated_micro_usd.saturating_add(more.estimated_micro_usd),
        });
        add_sums(&mut view.spent, of_run);
        for step in &mut view.steps {
            add_sums(
                &mut step.spent,
                sums.get(&NodeId::new(step.node.as_str())).copied().unwrap_or_default(),
            );
        }
        Ok(())
    }

    /// Returns what runs of this workspace used today, or of all; the day is this machine's.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn spent_today(&self, is_everywhere: bool) -> Result<SpentToday, ServiceError> {
        let workspace = self.workspace.filter(|_| !is_everywhere);
        let (tokens, micro_usd) = self.store.spent_today(&clock::time_zone(), workspace).await?;
        Ok(SpentToday { tokens, usd: micro_usd as f64 / 1e6 })
    }

    /// Lists runs of this workspace, or of all, newest first.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn list(
        &self,
        is_everywhere: bool,
        wanted: WantedRuns<'_>,
        page: &Page<RunId>,
    ) -> Result<RunList, ServiceError> {
        let workspace = self.workspace.filter(|_| !is_everywhere);
        let rows = self.store.runs(&WantedRuns { workspace, ..wanted }, page).await?;
        let next = page.next(&rows, id_of).map(RunList::cursor);
        let (mut runs, mut unread, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match row {
                Ok(row) => read.push(row),
                Err(row) => unread.push(row),
            }
        }
        let presence = Presence::of(&self.server_node)?;
        let mut shown_runs = Vec::new();
        for shown in self.shown_each(read, Records::Open).await? {
            match shown {
                Ok(shown) => shown_runs.push(shown),
                // An error in one run keeps nobody from seeing the others.
                Err(run) => unread.push(run),
            }
        }
        for shown in &shown_runs {
            let worked_on_by = presence.worker_on(&shown.view, &shown.settings).await?;
            runs.push(RunSummary { worked_on_by, ..shown.summary() });
        }
        let day_budgets = self.day_budgets(&newest_of_each_workspace(&shown_runs)).await?;
        let mut named = Vec::with_capacity(unread.len());
        for Unread { run, error } in unread {
            let what = format!("could not {error}");
            named.push(UnreadRun { run: self.store.name_of(run).await?, what });
        }
        Ok(RunList { runs, day_budgets, unread: named, next })
    }

    /// Says whether an agent that is no session works on a step of a run.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn is_worked_on_by_agents(&self, run: RunId) -> Result<bool, ServiceError> {
        let shown = self.shown(run).await?;
        let settings = &shown.settings;
        let is_theirs = |step: &StepView| {
            step.state == StepState::Working && !settings.is_guided(&step.role.as_str().into())
        };
        Ok(shown.steps().iter().any(is_theirs))
    }

    /// Returns at most `limit` lines of a run's history after line `since`.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn events(&self, run: RunId, since: u64, limit: usize) -> Result<Vec<EventLine>, ServiceError> {
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(LINES_AT_ONCE).min(LINES_AT_ONCE);
        self.event_lines(run, &self.store.history(run, since, limit).await?).await
    }

    /// Returns the newest lines of a run's history, at most `count`, in their order.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn newest_events(&self, run: RunId, count: usize) -> Result<Vec<EventLine>, ServiceError> {
        let count = i64::try_from(count).unwrap_or(LINES_AT_ONCE).min(LINES_AT_ONCE);
        self.event_lines(run, &self.store.newest_lines(run, count).await?).await
    }

    /// Turns lines of a run's history into events, whose sentences call a run within it by its name.
    async fn event_lines(&self, run: RunId, lines: &[HistoryLine]) -> Result<Vec<EventLine>, ServiceError> {
        let row = self.store.run(run).await?;
        let graph = self.store.graph_of(&row).await?;
        let mut events = Vec::with_capacity(lines.len());
        for line in lines {
            events.push(event_line(&row.name, line, self.sentence_of(&graph, line).await));
        }
        Ok(events)
    }

    async fn sentence_of(&self, graph: &Graph, line: &HistoryLine) -> Option<String> {
        if let Said::Fact(fact) = &line.said
            && let Fact::SubPlanBegan { node, run } = &**fact
            && let Ok(within) = self.store.run(*run).await
        {
            return Some(planctl_view::sub_plan_began(graph, node, &within.name));
        }
        sentences::sentence(graph, line)
    }

    /// Returns what workers and contracts of a run printed after a place, as far as this machine has it.
    ///
    /// # Errors
    ///
    /// When the state directory can't be read.
    pub fn output(&self, run: RunId, since: u64) -> Result<OutputView, ServiceError> {
        let output = self.server_node.spool().output(run, since);
        output.map_err(ServiceError::io("read what was printed"))
    }

    /// Returns the prompts of a run that this machine's planctl delivered.
    ///
    /// # Errors
    ///
    /// When the state directory can't be read, and those of the store.
    pub async fn prompts(
        &self,
        run: RunId,
        step: Option<u32>,
        attempt: Option<u16>,
    ) -> Result<PromptList, ServiceError> {
        let all = self.server_node.spool().prompts(run);
        let mut prompts = all.map_err(ServiceError::io("read the prompts"))?;
        prompts.retain(|prompt| {
            step.is_none_or(|step| prompt.step == step)
                && attempt.is_none_or(|attempt| prompt.attempt == attempt)
        });
        Ok(PromptList { run: self.store.name_of(run).await?, prompts })
    }

    /// Reads a run's history, or what it has of one node and of the edges that led there.
    fn history_of(&self, run: RunId, node: Option<&NodeId>) -> Lines<'_> {
        Lines { store: &self.store, run, node: node.cloned(), read: VecDeque::new(), after: 0 }
    }
}

fn event_line(run: &str, line: &HistoryLine, sentence: Option<String>) -> EventLine {
    let mut data = match serde_json::from_str::<Value>(&line.body) {
        Ok(Value::Object(data)) => data,
        Ok(_) | Err(_) => Map::new(),
    };
    if let Some(Value::Object(event)) = data.remove("event").filter(Value::is_object) {
        data.extend(event);
    }
    // These stand in fields of their own.
    for name in ["at", "node", "visit", "attempt", "seq", "run", "cause"] {
        data.remove(name);
    }
    EventLine {
        run: run.to_owned(),
        seq: u64::try_from(line.seq).unwrap_or(0),
        at: moment(line.at),
        event: line.name.clone(),
        node: line.node.as_ref().map(|node| node.as_str().to_owned()),
        visit: line.visit,
        attempt: line.attempt,
        cause: line.cause.clone(),
        sentence,
        data,
    }
}
