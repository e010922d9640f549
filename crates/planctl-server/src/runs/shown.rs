//! One run as people and programs see it: its state, its steps, the thing that it waits for.

use std::collections::BTreeMap;
use std::sync::Arc;

use planctl_api::Next;
use planctl_api::wire::{
    BeforeView, JoinView, LevelView, LockView, PassageView, RunState, RunSummary, RunView, SpentView,
    StepName, StepState, StepView, WaitingOn, WorktreeView, moment,
};
use planctl_config::Agent;
use planctl_engine::{
    AskKind, End, Graph, Level, Node, NodeId, NodeKind, NodeState, Outcome, Record, Rehearsal, Role, Run,
    RunStatus, Scope, Spent, Verdict, Work,
};
use planctl_store::{Ahead, AwaitedLock, OpenItem, RunRow, RunView as StoredView, WorktreeRow};

use super::words::{end_word, ending_words, exit_code, failure_line, verdict_word};
use crate::node::services::ServiceError;
use crate::runs::branches;
use crate::runs::settings::RunSettings;

/// A run with what is needed to show it.
pub(super) struct Shown {
    pub(super) view: StoredView,
    pub(super) graph: Arc<Graph>,
    /// The settings under which it works.
    pub(super) settings: RunSettings,
    /// The run that a queued one waits for.
    pub(super) ahead: Option<Ahead>,
    /// Says that its work waits for the end of somebody whose lease was taken back.
    pub(super) is_held_back: bool,
    /// The locks that its items wait for.
    pub(super) locks: Vec<AwaitedLock>,
    /// A worker of each role whose workers are all paused.
    pub(super) paused: Arc<BTreeMap<Role, String>>,
    /// The trouble that kept workers from the work of nodes that rest, or keeps them from it.
    pub(super) troubles: BTreeMap<NodeId, String>,
    /// The newest runs of the plans that its nodes carry out.
    pub(super) within: BTreeMap<NodeId, Inner>,
}

/// A run within another.
pub(super) struct Inner {
    pub(super) name: String,
    /// Where it stands, and what it waits for, while the run around it waits for its end.
    pub(super) waits: Option<(RunState, Option<WaitingOn>)>,
}

impl Shown {
    /// Finds the step that is meant.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where the plan has none.
    pub(super) fn step_named(&self, given: &str) -> Result<&Node, ServiceError> {
        step_named(&self.graph, given, &self.view.run.name)
    }

    fn item(&self, node: &NodeId) -> Option<&OpenItem> {
        self.view.items.iter().find(|item| item.at.node == *node)
    }

    pub(super) fn state(&self) -> RunState {
        let state = run_state(&self.view.run);
        let is_still = |inner: &&Inner| match inner.waits {
            Some((RunState::Waiting | RunState::AwaitingApproval | RunState::Paused, _)) => true,
            Some((
                RunState::Queued
                | RunState::Running
                | RunState::Done
                | RunState::Failed
                | RunState::Cancelled,
                _,
            ))
            | None => false,
        };
        let still = self.within.values().filter(is_still).count();
        let out = usize::try_from(self.view.run.head.out).unwrap_or(usize::MAX);
        if state == RunState::Running && still > 0 && still >= out { RunState::Waiting } else { state }
    }

    /// Returns what a run within this one waits for.
    fn waiting_within(&self) -> Option<WaitingOn> {
        self.within.values().find_map(|inner| {
            let (_, waiting) = inner.waits.as_ref()?;
            let waiting = waiting.clone()?;
            Some(WaitingOn { run: waiting.run.or_else(|| Some(inner.name.clone())), ..waiting })
        })
    }

    pub(super) fn steps(&self) -> Vec<StepView> {
        let none = Record::default();
        let steps = self.graph.numbered_steps();
        steps
            .into_iter()
            .map(|(number, node)| self.step(number, node, self.view.records.get(&node.id).unwrap_or(&none)))
            .collect()
    }

    /// Returns where a step stands.
    pub(super) fn step_state(&self, node: &Node, record: &Record) -> StepState {
        let state = match &record.state {
            NodeState::Pending => StepState::Pending,
            NodeState::Ready => StepState::Ready,
            NodeState::Working { .. } | NodeState::Resting { .. } => match self.item(&node.id) {
                Some(item) if item.is_leased => StepState::Working,
                Some(item) if item.available_at > self.view.run.read_at => StepState::Resting,
                Some(_) | None => StepState::Ready,
            },
            NodeState::Rehearsing
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Checking { .. } => StepState::Checking,
            NodeState::Nested { .. } => StepState::Working,
            NodeState::Held { .. } => StepState::Waiting,
            NodeState::Settled { outcome } => match outcome {
                Outcome::Passed => StepState::Passed,
                Outcome::Failed => StepState::Failed,
                Outcome::Skipped => StepState::Skipped,
                Outcome::Waived => StepState::Waived,
                Outcome::Warned => StepState::Warned,
            },
        };
        if self.asks_by_itself(node) {
            StepState::Waiting
        } else if state == StepState::Pending && self.was_answered(node) {
            StepState::Passed
        } else {
            state
        }
    }

    pub(super) fn step(&self, number: u32, node: &Node, record: &Record) -> StepView {
        let (item, tally) = (self.item(&node.id), &record.tally);
        let state = self.step_state(node, record);
        let failure = record.failure.as_deref().filter(|_| !self.has_failure_of_node_before(node, record));
        let is_judged = node.task().is_none_or(|task| !task.contract.is_none());
        let verdict = match (failure, state) {
            (_, StepState::Passed) if !is_judged => None,
            (_, StepState::Passed) => Some("passed".to_owned()),
            (Some(failure), _) => match &failure.what {
                planctl_engine::Failing::Contract { verdict, .. } if failure.attempt == tally.attempt => {
                    Some(verdict_word(*verdict).to_owned())
                }
                planctl_engine::Failing::Judged { .. } | planctl_engine::Failing::TooFewTests { .. }
                    if failure.attempt == tally.attempt =>
                {
                    Some(verdict_word(Verdict::Failed).to_owned())
                }
                planctl_engine::Failing::Contract { .. }
                | planctl_engine::Failing::Judged { .. }
                | planctl_engine::Failing::TooFewTests { .. }
                | planctl_engine::Failing::Overran { .. }
                | planctl_engine::Failing::Undelivered { .. }
                | planctl_engine::Failing::Permission { .. }
                | planctl_engine::Failing::Inconclusive { .. }
                | planctl_engine::Failing::Conflict { .. }
                | planctl_engine::Failing::SubPlan { .. }
                | planctl_engine::Failing::Unconfirmed { .. }
                | planctl_engine::Failing::Unobserved { .. }
                | planctl_engine::Failing::NotRed { .. } => None,
            },
            (None, _) => None,
        };
        let has_gate = verdict.is_some();
        let before = rehearsal_view(record);
        let within = self.within.get(&node.id);
        StepView {
            number,
            title: node.title.clone(),
            node: node.id.as_str().to_owned(),
            kind: node.kind.as_str().to_owned(),
            role: self.role_of(node, record).to_owned(),
            state,
            attempts: u32::from(tally.attempt.number()),
            attempts_allowed: self.attempts_allowed(node, record),
            visits: u32::from(tally.visits),
            visits_allowed: u32::from(node.max_visits),
            verdict,
            grade: record.grade(node).map(|grade| grade.as_str().to_owned()),
            vacuous: record.is_vacuous(),
            before,
            pace: self.graph.task(&node.id).and_then(|task| LevelView::of(task, record)),
            isolation: has_gate.then(|| self.settings.isolation.to_string()),
            failure: failure.filter(|_| state != StepState::Passed).map(failure_line),
            run: within.map(|inner| inner.name.clone()),
            lock: item
                .and_then(|item| self.locks.iter().find(|lock| lock.item == item.id))
                .map(|lock| LockView { name: lock.lock.clone(), run: lock.run.clone() }),
            trouble: self
                .troubles
                .get(&node.id)
                .filter(|_| matches!(state, StepState::Resting | StepState::Working))
                .cloned(),
            spent: SpentView::from(tally.spent),
            // The item of a plan within is put off until its run moves.
            since: item.map(|item| {
                let out_at = if within.is_some() { item.created_at } else { item.available_at };
                moment(item.claimed_at.unwrap_or(out_at))
            }),
            guided: self.graph.task(&node.id).is_some_and(|task| self.settings.is_guided(&task.role)),
        }
    }

    /// Says that the failure in a node's record is that of the node before it, which its worker is told.
    fn has_failure_of_node_before(&self, node: &Node, record: &Record) -> bool {
        let has_failed = |record: &Record| record.state.outcome() == Some(Outcome::Failed);
        let is_of = |(other, own): (&NodeId, &Record)| {
            *other != node.id && has_failed(own) && own.failure == record.failure
        };
        record.failure.is_some() && !has_failed(record) && self.view.records.iter().any(is_of)
    }

    /// Says that a step which has a person asked was come to, and its ask is open: it is about the node before.
    fn asks_by_itself(&self, node: &Node) -> bool {
        let NodeKind::Escalate { reason, .. } = &node.kind else { return false };
        let leads_here = |from: &NodeId| self.graph.edges_from(from).iter().any(|edge| edge.to == node.id);
        self.view.items.iter().any(|item| match &item.work {
            Work::Human { ask } => {
                ask.kind == AskKind::Escalation && ask.message == *reason && leads_here(&item.at.node)
            }
            Work::Agent { .. } | Work::Harness { .. } => false,
        })
    }

    /// Says that a step which has a person asked was come to, and that its ask was answered: with one more attempt for the
    /// node before, or with the end of that node without one.
    fn was_answered(&self, node: &Node) -> bool {
        if !matches!(node.kind, NodeKind::Escalate { .. }) {
            return false;
        }
        self.view.records.iter().any(|(from, record)| {
            let leads_here = self.graph.edges_from(from).iter().any(|edge| edge.to == node.id);
            let was_let_go = matches!(record.state.outcome(), Some(Outcome::Skipped | Outcome::Waived));
            leads_here && (record.tally.granted > 0 || was_let_go)
        })
    }

    /// Returns the nodes that are no steps and that the run came to; of joins, also those that wait.
    fn routing_node_views(&self) -> Vec<PassageView> {
        let others = self.graph.nodes().iter().filter(|node| node.step().is_none());
        let entered = others.filter_map(|node| Some((node, self.view.records.get(&node.id)?)));
        let passages = entered.map(|(node, record)| {
            let shown = self.step(0, node, record);
            PassageView {
                node: shown.node,
                kind: shown.kind,
                title: shown.title,
                state: shown.state,
                visits: shown.visits,
                leaves_out: merges_worktrees(&self.graph, node)
                    && matches!(shown.state, StepState::Skipped | StepState::Waived),
            }
        });
        passages.collect()
    }

    /// Returns where branches meet that are still under way.
    fn joins(&self) -> Vec<JoinView> {
        let title = |join: &NodeId| self.graph.node(join).map_or(String::new(), |node| node.title.clone());
        let joining = planctl_view::open_joins(&self.graph, &self.loaded());
        joining
            .into_iter()
            .map(|joining| branches::join_view(joining.clone(), title(&joining.join)))
            .collect()
    }

    /// Returns the run as the engine knows it.
    pub(super) fn loaded(&self) -> Run {
        let row = &self.view.run;
        Run::from_parts(row.id, row.head.clone(), Scope::All, self.view.records.clone())
    }

    /// Returns the highest PACE level of a step that is not over.
    fn level(&self) -> Level {
        let open = self.view.records.values().filter(|record| record.state.outcome().is_none());
        open.map(Record::level).max().unwrap_or_default()
    }

    /// Returns the performer of a step: a role, the harness or a person.
    fn role_of<'s>(&'s self, node: &'s Node, record: &'s Record) -> &'s str {
        match self.graph.task(&node.id) {
            Some(task) => record.worker_role(task).as_str(),
            None if node.gated().is_some() || self.graph.sub_plan(&node.id).is_some() => "harness",
            // Nobody is asked where the way on is chosen, or the workspace recorded.
            None if matches!(
                node.kind,
                planctl_engine::NodeKind::Decision(_) | planctl_engine::NodeKind::Checkpoint
            ) =>
            {
                "harness"
            }
            None => "human",
        }
    }

    /// Returns how many attempts the step may come to in this visit, as things stand.
    fn attempts_allowed(&self, node: &Node, record: &Record) -> u32 {
        let tally = &record.tally;
        let used = u32::from(tally.attempt.number()).saturating_sub(u32::from(tally.failed));
        let running = u32::from(record.state.is_out());
        let before = used.saturating_sub(running);
        let before =
            if record.state.outcome() == Some(Outcome::Passed) { before.saturating_sub(1) } else { before };
        before + 1 + u32::from(node.gated().map_or(0, |gated| gated.max_retries)) + u32::from(tally.granted)
    }

    pub(super) fn waiting_on(&self) -> Option<WaitingOn> {
        let of = |kind: &str| WaitingOn { kind: kind.to_owned(), ..WaitingOn::default() };
        match self.view.run.head.status {
            RunStatus::Queued { .. } if worktree_trouble(&self.view.run).is_some() => Some(of("worktree")),
            RunStatus::Queued { .. } => Some(match &self.ahead {
                Some(Ahead { run, is_ending: true }) => WaitingOn { run: Some(run.clone()), ..of("ending") },
                ahead => WaitingOn { run: ahead.as_ref().map(|ahead| ahead.run.clone()), ..of("workspace") },
            }),
            RunStatus::Paused => Some(of("revision")),
            RunStatus::Awaiting | RunStatus::Active => {
                let own = self.view.items.iter().find_map(|item| match &item.work {
                    Work::Human { ask } => Some(WaitingOn {
                        id: item.number.and_then(|number| u64::try_from(number).ok()),
                        ..of(ask.kind.as_str())
                    }),
                    Work::Agent { .. } if !item.is_leased && self.is_held_back => {
                        Some(WaitingOn { run: Some(self.view.run.name.clone()), ..of("ending") })
                    }
                    Work::Agent { role, .. } if !item.is_leased && !self.is_served(role.as_str()) => {
                        let paused = self.paused.get(role).cloned();
                        Some(WaitingOn { role: Some(role.as_str().to_owned()), paused, ..of("worker") })
                    }
                    Work::Agent { .. } => {
                        let awaited = self.locks.iter().find(|lock| lock.item == item.id)?;
                        let lock = Some(awaited.lock.clone());
                        Some(WaitingOn { run: Some(awaited.run.clone()), lock, ..of("lock") })
                    }
                    Work::Harness { .. } => None,
                });
                own.or_else(|| self.waiting_within())
            }
            RunStatus::New | RunStatus::Ended { .. } => None,
        }
    }

    pub(super) fn is_served(&self, role: &str) -> bool {
        self.settings.serves(&role.into(), &self.view.run.plan_path)
    }

    fn spent(&self) -> SpentView {
        let run = &self.view.run;
        SpentView::from(Spent { time: run.time_spent(), ..run.head.spent })
    }

    /// Says why it ended otherwise than done, or stands still; `ended_by` says who ended it, where somebody did.
    pub(super) fn reason(&self, ended_by: Option<String>) -> Option<String> {
        match self.view.run.head.status {
            RunStatus::Ended { end } => {
                let failed = self.view.records.iter().find_map(|(node, record)| {
                    let failure = record
                        .failure
                        .as_deref()
                        .filter(|_| record.state.outcome() == Some(Outcome::Failed))?;
                    Some(format!("{}: {}", planctl_view::node_name(&self.graph, node), failure_line(failure)))
                });
                match end {
                    // The database counts what a run that is done rests on.
                    End::Done => None,
                    End::Failed => failed.or(Some("a step failed".to_owned())),
                    End::Aborted => {
                        let ended_by = ended_by.unwrap_or_else(|| "aborted by a person".to_owned());
                        Some(failed.map_or(ended_by.clone(), |failed| format!("{ended_by}; {failed}")))
                    }
                    End::Cancelled => Some(ended_by.unwrap_or_else(|| "cancelled by a person".to_owned())),
                }
            }
            RunStatus::Queued { .. } => worktree_trouble(&self.view.run).map(str::to_owned),
            RunStatus::Paused => ended_by,
            RunStatus::New | RunStatus::Awaiting | RunStatus::Active => None,
        }
    }

    pub(super) fn view(&self) -> RunView {
        RunView {
            steps: self.steps(),
            passages: self.routing_node_views(),
            joins: self.joins(),
            ..self.view_without_nodes()
        }
    }

    /// Returns the run without what it says of its nodes one by one.
    pub(super) fn view_without_nodes(&self) -> RunView {
        let row = &self.view.run;
        RunView {
            run: row.name.clone(),
            id: row.id.to_string(),
            plan: row.plan_path.clone(),
            title: self.graph.title().to_owned(),
            digest: row.revision.as_str().to_owned(),
            workspace: row.workspace_path.clone(),
            folder: Some(self.settings.folder.clone()).filter(|folder| !folder.is_empty()),
            worktree: row.worktree.as_ref().map(worktree_view),
            state: self.state(),
            end: match row.head.status {
                RunStatus::Ended { end } => Some(end_word(end).to_owned()),
                RunStatus::New
                | RunStatus::Awaiting
                | RunStatus::Queued { .. }
                | RunStatus::Active
                | RunStatus::Paused => None,
            },
            reason: None,
            steps: Vec::new(),
            passages: Vec::new(),
            joins: Vec::new(),
            pace_level: self.level().as_str().to_owned(),
            waiting_on: self.waiting_on(),
            worked_on_by: None,
            holder: None,
            spent: self.spent(),
            budget: row.head.budget.into(),
            day_budgets: Vec::new(),
            exec: match &self.settings.worker {
                Some(Agent::Exec(command)) => Some(command.clone()),
                Some(Agent::Known { .. } | Agent::Session) | None => None,
            },
            agent: match &self.settings.worker {
                Some(agent @ (Agent::Known { .. } | Agent::Session)) => Some(agent.to_string()),
                Some(Agent::Exec(_)) | None => None,
            },
            auto_answer: self.settings.auto_answer,
            approved_by: None,
            approved_at: None,
            is_plan_file_changed: false,
            awaits_acknowledgement: row.awaits_acknowledgement(),
            acknowledged_by: row.acknowledged_by.clone(),
            started_at: row.started_at.map(moment),
            ended_at: row.ended_at.map(moment),
        }
    }

    pub(super) fn summary(&self) -> RunSummary {
        let row = &self.view.run;
        let none = Record::default();
        let state = |node: &Node| self.step_state(node, self.view.records.get(&node.id).unwrap_or(&none));
        let steps: Vec<_> = self
            .graph
            .numbered_steps()
            .into_iter()
            .map(|(number, node)| (number, node, state(node)))
            .collect();
        let name =
            |&(number, node, _): &(u32, &Node, StepState)| StepName { number, title: node.title.clone() };
        let current = steps.iter().find(|(_, _, state)| *state == StepState::Failed || state.is_under_way());
        RunSummary {
            run: row.name.clone(),
            plan: row.plan_path.clone(),
            title: self.graph.title().to_owned(),
            digest: row.revision.as_str().to_owned(),
            workspace: row.workspace_path.clone(),
            worktree: row.worktree.as_ref().map(worktree_view),
            state: self.state(),
            steps_settled: row.head.settled.total(),
            steps_total: self.graph.task_count(),
            step: current.map(name),
            under_way: steps.iter().filter(|(_, _, state)| state.is_under_way()).map(name).collect(),
            waiting_on: self.waiting_on(),
            worked_on_by: None,
            awaits_acknowledgement: row.awaits_acknowledgement(),
            reason: self.reason(None).filter(|_| run_state(row) == RunState::Failed),
            spent: self.spent(),
            budget: row.head.budget.into(),
            started_at: row.started_at.map(moment),
            ended_at: row.ended_at.map(moment),
        }
    }
}

/// Finds a step by its number, else a node by its name, else the only one with this title, or whose title begins so.
pub(super) fn named<'g>(graph: &'g Graph, given: &str) -> Option<&'g Node> {
    let nodes = graph.nodes();
    let number = given.parse::<u32>().ok();
    let step = number.and_then(|number| nodes.iter().find(|node| node.step() == Some(number)));
    step.or_else(|| graph.node(&NodeId::new(given))).or_else(|| {
        let given = given.to_lowercase();
        let titled = |is_meant: &dyn Fn(&str) -> bool| {
            let mut meant = nodes.iter().filter(|node| is_meant(&node.title.to_lowercase()));
            meant.next().filter(|_| meant.next().is_none())
        };
        titled(&|title| title == given).or_else(|| titled(&|title| title.starts_with(&given)))
    })
}

/// Says whether branches that worked in worktrees of their own are merged at a node.
pub(super) fn merges_worktrees(graph: &Graph, node: &Node) -> bool {
    matches!(node.kind, NodeKind::Join(_)) && graph.forks_or_merges_worktrees(&node.id)
}

/// Finds the step of a run's graph that is meant.
///
/// # Errors
///
/// [`ServiceError::NotFound`] where the plan has none.
pub(super) fn step_named<'g>(graph: &'g Graph, given: &str, run: &str) -> Result<&'g Node, ServiceError> {
    named(graph, given).ok_or_else(|| ServiceError::NotFound { what: format!("step {given} in {run}") })
}

/// Says where a run stands, in the words of DESIGN 11.
pub(crate) fn run_state(row: &RunRow) -> RunState {
    match row.head.status {
        RunStatus::New | RunStatus::Awaiting => RunState::AwaitingApproval,
        RunStatus::Queued { .. } if worktree_trouble(row).is_some() => RunState::Waiting,
        RunStatus::Queued { .. } => RunState::Queued,
        RunStatus::Active if row.head.out == 0 => RunState::Waiting,
        RunStatus::Active => RunState::Running,
        RunStatus::Paused => RunState::Paused,
        RunStatus::Ended { end: End::Done } => RunState::Done,
        RunStatus::Ended { end: End::Failed | End::Aborted } => RunState::Failed,
        RunStatus::Ended { end: End::Cancelled } => RunState::Cancelled,
    }
}

fn worktree_view(row: &WorktreeRow) -> WorktreeView {
    WorktreeView {
        path: row.path.clone(),
        branch: row.branch.clone(),
        base: row.base.clone(),
        is_made: row.made_at.is_some(),
        is_removed: row.removed_at.is_some(),
        left_behind: u32::try_from(row.left_behind).unwrap_or(0),
        uncommitted: row.uncommitted.and_then(|count| u32::try_from(count).ok()),
        commit: row.result.clone(),
        trouble: row.trouble.clone().filter(|_| row.made_at.is_some()),
    }
}

/// Says what the contract showed before the work, where it was rehearsed.
fn rehearsal_view(record: &Record) -> Option<BeforeView> {
    match &record.rehearsal {
        Some(Rehearsal::Done { showed, ending, .. }) => Some(BeforeView {
            showed: showed.as_str().to_owned(),
            ending: ending_words(*ending),
            exit_code: exit_code(*ending),
        }),
        Some(Rehearsal::Due | Rehearsal::Recorded { .. }) | None => None,
    }
}

pub(super) fn next_for(waiting: &Option<WaitingOn>, step: &StepView) -> Option<Next> {
    match (waiting, step.state) {
        (Some(WaitingOn { id: Some(id), .. }), StepState::Waiting) => Some(Next::ShowAsk { ask: *id }),
        (Some(waiting), StepState::Ready) if waiting.role.as_ref() == Some(&step.role) => {
            waiting.worker_wanted()
        }
        (Some(_) | None, _) => None,
    }
}

/// Tells a run that waits for its worktree from others.
pub(crate) fn worktree_trouble(run: &RunRow) -> Option<&str> {
    match run.head.status {
        RunStatus::Queued { .. } => run.worktree.as_ref()?.trouble.as_deref(),
        RunStatus::New
        | RunStatus::Awaiting
        | RunStatus::Active
        | RunStatus::Paused
        | RunStatus::Ended { .. } => None,
    }
}
