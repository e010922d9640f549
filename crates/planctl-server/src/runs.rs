//! Runs for people and programs: their settings, status, logs and history.

mod branches;
pub(crate) mod plan_file;
pub(crate) mod settings;
mod traversal;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use planctl_api::Next;
use planctl_engine::view::{Form, Scene};
use planctl_engine::{
    AgentEvent, AgentSaid, Contract, End, Ending, Event, Evidence, Excerpt, Fact, Found, Graph, Level, Node,
    NodeId, NodeState, Outcome, Overrun, Record, Rehearsal, RehearsalResult, Report, Run, RunId, RunStatus,
    Scope, Spent, Timestamp, Usage, Verdict, Work, view,
};
use planctl_lang::Source;
use planctl_lang::workflow::{self, Language, Workflow};
use planctl_store::{
    Ahead, AwaitedLock, HistoryLine, OpenItem, Page, RunRow, RunView as StoredView, Said, Store, StoreError,
    Unread, WorktreeRow,
};
use serde_json::{Map, Value};

use crate::node::services::{ServiceError, Services};
use crate::runs::plan_file::PlanFile;
use crate::runs::settings::RunSettings;
use planctl_api::wire::{
    AttemptView, AuditView, AuditedRun, BecauseView, BeforeView, CheckpointView, ContextView, EventLine,
    GateView, JoinView, LevelView, LockView, LogView, Paged, PassageView, RunList, RunState, RunSummary,
    RunView, SaluteView, SpentView, StepName, StepState, StepView, TamperView, TraversalView, UnreadRun,
    WaitingOn, WhyView, WorkView, WorktreeView, moment, usd,
};
use planctl_config::Agent;

/// Within how many lines of its history a run has begun.
const BEGINNING: i64 = 20;
/// How many of the newest lines tell where a run is.
const NEWEST: i64 = 400;
/// How many lines of history are read at once.
const LINES_AT_ONCE: i64 = 1000;

/// A run with what is needed to show it.
struct Shown {
    view: StoredView,
    graph: Arc<Graph>,
    /// The run that a queued one waits for.
    ahead: Option<Ahead>,
    /// Says that its work waits for the end of somebody whose lease was taken back.
    is_held_back: bool,
    /// The locks that its items wait for.
    locks: Vec<AwaitedLock>,
    /// The trouble that kept workers from the work of nodes that rest.
    troubles: BTreeMap<NodeId, String>,
    /// The newest runs of the plans that its nodes carry out.
    within: BTreeMap<NodeId, Inner>,
}

/// A run's history from its beginning, of which no more is in memory than is read at once.
struct Lines<'a> {
    store: &'a Store,
    run: RunId,
    read: VecDeque<HistoryLine>,
    after: i64,
}

impl Lines<'_> {
    async fn next(&mut self) -> Result<Option<HistoryLine>, StoreError> {
        if self.read.is_empty() {
            self.read = self.store.history(self.run, self.after, LINES_AT_ONCE).await?.into();
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

/// A run within another.
struct Inner {
    name: String,
    /// Where it stands, and what it waits for, while the run around it waits for its end.
    waits: Option<(RunState, Option<WaitingOn>)>,
}

impl Services {
    /// Shows a run.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn status(&self, run: RunId) -> Result<RunView, ServiceError> {
        let shown = self.shown(run).await?;
        let row = &shown.view.run;
        // A plan that is revised is changed by its author, and waits for that.
        let is_executed = row.head.status != RunStatus::Paused;
        self.server_node.draw_marks_before_answering(row).await;
        let file = self.server_node.look_at_plan_file(row).await?;
        Ok(RunView { is_plan_file_changed: is_executed && file == PlanFile::Changed, ..shown.view() })
    }

    /// Lists runs of this workspace, or of all, newest first.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn list(&self, is_everywhere: bool, page: &Page<RunId>) -> Result<RunList, ServiceError> {
        let workspace = self.workspace.filter(|_| !is_everywhere);
        let (mut runs, mut unread) = (Vec::new(), Vec::new());
        let rows = self.store.runs(workspace, page).await?;
        let next = page.next(&rows, id_of).map(RunList::cursor);
        for row in rows {
            let run = id_of(&row);
            let summary = match row {
                Ok(row) => self.summary(row).await,
                Err(unread) => Err(unread.error.into()),
            };
            match summary {
                Ok(summary) => runs.push(summary),
                // An error in one run keeps nobody from seeing the others.
                Err(ServiceError::Store(error @ StoreError::Corrupt { .. })) => {
                    let (run, what) = (self.store.name_of(run).await?, format!("could not {error}"));
                    unread.push(UnreadRun { run, what });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(RunList { runs, unread, next })
    }

    async fn summary(&self, row: RunRow) -> Result<RunSummary, ServiceError> {
        let shown = match row.head.status {
            // Nothing of a line about these stands in the records of their steps, and most runs are such.
            RunStatus::Ended { end: End::Done | End::Cancelled } => {
                let graph = self.store.graph_of(&row).await?;
                let view = StoredView { run: row, records: BTreeMap::new(), items: Vec::new() };
                let (troubles, within) = (BTreeMap::new(), BTreeMap::new());
                let (ahead, is_held_back, locks) = (None, false, Vec::new());
                Shown { view, graph, ahead, is_held_back, locks, troubles, within }
            }
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Paused
            | RunStatus::Ended { end: End::Failed | End::Aborted } => self.shown(row.id).await?,
        };
        Ok(shown.summary())
    }

    async fn shown(&self, run: RunId) -> Result<Shown, ServiceError> {
        let view = self.store.run_view(run).await?;
        let graph = self.store.graph_of(&view.run).await?;
        let ahead = match view.run.head.status {
            RunStatus::Queued { .. } => self.store.waits_for(run).await?,
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Active
            | RunStatus::Paused
            | RunStatus::Ended { .. } => None,
        };
        let has_locks = graph.steps().iter().any(|(_, task)| !task.locks.is_empty());
        let is_out = view.items.iter().any(|item| matches!(item.work, Work::Agent { .. }) && !item.is_leased);
        let locks = if has_locks && is_out { self.store.awaited_locks(run).await? } else { Vec::new() };
        let is_held_back = is_out && self.store.is_held_back(run).await?;
        let mut troubles = BTreeMap::new();
        for (node, record) in &view.records {
            if matches!(record.state, NodeState::Resting { .. })
                && let Some(Fact::NodeResting { message, .. }) = self.store.newest_rest(run, node).await?
            {
                troubles.insert(node.clone(), message);
            }
        }
        let mut within = BTreeMap::new();
        for (node, _) in graph.sub_plans() {
            let Some(record) = view.records.get(&node.id) else { continue };
            let Some(child) = record.child else { continue };
            let waits = match record.state {
                NodeState::Nested { .. } => {
                    let inner = Box::pin(self.shown(child)).await?;
                    Some((inner.state(), inner.waiting_on()))
                }
                NodeState::Pending
                | NodeState::Ready
                | NodeState::Rehearsing
                | NodeState::Saving { .. }
                | NodeState::Branching
                | NodeState::Working { .. }
                | NodeState::Resting { .. }
                | NodeState::Checking { .. }
                | NodeState::Held { .. }
                | NodeState::Settled { .. } => None,
            };
            within.insert(node.id.clone(), Inner { name: self.store.run(child).await?.name, waits });
        }
        Ok(Shown { view, graph, ahead, is_held_back, locks, troubles, within })
    }

    /// Returns at most `limit` lines of a run's history after line `since`.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn events(&self, run: RunId, since: u64, limit: usize) -> Result<Vec<EventLine>, ServiceError> {
        let name = self.store.run(run).await?.name;
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(LINES_AT_ONCE).min(LINES_AT_ONCE);
        let lines = self.store.history(run, since, limit).await?;
        Ok(lines.iter().map(|line| event_line(&name, line)).collect())
    }

    /// Returns the newest lines of a run's history, at most `count`, in their order.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn newest_events(&self, run: RunId, count: usize) -> Result<Vec<EventLine>, ServiceError> {
        let name = self.store.run(run).await?.name;
        let count = i64::try_from(count).unwrap_or(LINES_AT_ONCE).min(LINES_AT_ONCE);
        let lines = self.store.newest_lines(run, count).await?;
        Ok(lines.iter().map(|line| event_line(&name, line)).collect())
    }

    fn history_of(&self, run: RunId) -> Lines<'_> {
        Lines { store: &self.store, run, read: VecDeque::new(), after: 0 }
    }

    /// Shows the attempts of a run's steps: the workers' reports and the gates' results.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn logs(
        &self,
        run: RunId,
        step: Option<u32>,
        attempt: Option<u16>,
        page: &Page<usize>,
    ) -> Result<LogView, ServiceError> {
        let shown = self.shown(run).await?;
        if let Some(step) = step
            && shown.named(&step.to_string()).is_none()
        {
            return Err(ServiceError::NotFound { what: format!("step {step} in {}", shown.view.run.name) });
        }
        // Attempts by their place in the order in which they began, which nothing that happens later changes.
        let mut attempts: BTreeMap<usize, AttemptView> = BTreeMap::new();
        let mut places: BTreeMap<(u32, u16), usize> = BTreeMap::new();
        let first = page.after.unwrap_or(0);
        let end = first.saturating_add(usize::try_from(page.limit).unwrap_or(0));
        let mut lines = self.history_of(run);
        while let Some(line) = lines.next().await? {
            let input = match &line.said {
                Said::Input(input) => input,
                Said::Fact(fact) => {
                    if let Fact::NodeVerified { node, attempt, vacuous: true, .. } = &**fact
                        && let Some(step) = shown.graph.node(node).and_then(Node::step)
                        && let Some(place) = places.get(&(step, attempt.number()))
                        && let Some(attempt) = attempts.get_mut(place)
                        && let Some(gate) = &mut attempt.gate
                    {
                        gate.vacuous = true;
                    }
                    continue;
                }
            };
            let Some(at) = input.event.at() else { continue };
            let Some((node, number)) = shown.graph.node(&at.node).and_then(|node| Some((node, node.step()?)))
            else {
                continue;
            };
            let own_step = number;
            // A rehearsal is shown with the try that it comes before.
            let is_rehearsal =
                matches!(&input.event, Event::Harness(event) if matches!(event.found, Found::Rehearsed(_)));
            let number = if is_rehearsal { at.attempt.next() } else { at.attempt }.number();
            if step.is_some_and(|step| step != own_step) || attempt.is_some_and(|attempt| attempt != number) {
                continue;
            }
            let newest = places.len();
            let place = *places.entry((own_step, number)).or_insert(newest);
            if !(first..end).contains(&place) {
                continue;
            }
            let entry = attempts.entry(place).or_insert_with(|| AttemptView {
                step: StepName { number: own_step, title: node.title.clone() },
                visit: at.visit,
                attempt: number,
                before: Vec::new(),
                work: None,
                gate: None,
                late: Vec::new(),
            });
            match &input.event {
                Event::Agent(event) => {
                    if let Some(work) = self.work_view(line.at, event).await? {
                        entry.work = Some(work);
                    }
                }
                Event::Harness(event) => match &event.found {
                    Found::Evidence(evidence) => {
                        if let Some(gated) = node.gated() {
                            entry.gate = Some(self.gate_view(line.at, gated.contract, evidence).await?);
                        }
                    }
                    Found::Rehearsed(evidence) => {
                        if let Some(contract) = node.gated().map(|gated| gated.contract) {
                            let mut seen = self.gate_view(line.at, contract, evidence).await?;
                            seen.verdict =
                                contract.shown(evidence).map_or("red", RehearsalResult::word).to_owned();
                            entry.before.push(seen);
                        }
                    }
                    Found::Recorded { .. }
                    | Found::Restored
                    | Found::Forked { .. }
                    | Found::Merged { .. }
                    | Found::Conflicted(_)
                    | Found::Begun { .. }
                    | Found::Ended(_)
                    | Found::Nothing(_) => {}
                },
                Event::Human(_) | Event::Clock(_) => {}
            }
        }
        for refused in self.store.refusals(run).await? {
            let Event::Agent(event) = &refused.event else { continue };
            let step = shown.graph.node(&event.at.node).and_then(Node::step);
            let place = step.and_then(|step| places.get(&(step, event.at.attempt.number())));
            if let Some(entry) = place.and_then(|place| attempts.get_mut(place)) {
                entry.late.extend(self.work_view(refused.at, event).await?);
            }
        }
        let next = (places.len() > end).then(|| LogView::cursor(end));
        let attempts = attempts.into_values().collect();
        Ok(LogView { run: shown.view.run.name, attempts, next })
    }

    async fn work_view(&self, at: Timestamp, event: &AgentEvent) -> Result<Option<WorkView>, ServiceError> {
        let plain = |text: String| WorkView {
            at: moment(at),
            ending: None,
            seconds: 0.0,
            spent: None,
            estimated: false,
            bytes: text.len() as u64,
            text,
        };
        Ok(match &event.said {
            AgentSaid::Reported(report) => Some(self.report_view(at, report, event.used()).await?),
            AgentSaid::Asked { question, .. } => Some(plain(format!("asked: {question}"))),
            AgentSaid::Overran { past, duration, .. } => Some(WorkView {
                ending: Some(match past {
                    Overrun::Deadline => "ended at its deadline".to_owned(),
                    Overrun::Silence => "ended after too long a silence".to_owned(),
                }),
                seconds: duration.as_secs_f64(),
                ..plain(String::new())
            }),
            AgentSaid::Faulted(fault) => {
                Some(WorkView { ending: Some("could not work".to_owned()), ..plain(fault.message.clone()) })
            }
            AgentSaid::Released => None,
        })
    }

    async fn report_view(
        &self,
        at: Timestamp,
        report: &Report,
        used: Option<&Usage>,
    ) -> Result<WorkView, ServiceError> {
        Ok(WorkView {
            at: moment(at),
            ending: report.ending.map(ending_words),
            seconds: report.duration.as_secs_f64(),
            spent: used.map(|usage| SpentView {
                tokens: usage.tokens(),
                usd: usd(usage.micro_usd.unwrap_or(0)),
                seconds: report.duration.as_secs_f64(),
                unmetered: 0,
            }),
            estimated: used.is_some_and(|usage| usage.estimated),
            text: self.text_of(&report.text).await?,
            bytes: report.text.bytes,
        })
    }

    async fn gate_view(
        &self,
        at: Timestamp,
        contract: &Contract,
        evidence: &Evidence,
    ) -> Result<GateView, ServiceError> {
        let verdict = contract.judge(evidence).unwrap_or(Verdict::Failed);
        Ok(GateView {
            at: moment(at),
            verdict: verdict_word(verdict).to_owned(),
            vacuous: false,
            command: contract.command.clone(),
            expected: contract.expect,
            ending: ending_words(evidence.ending),
            exit_code: exit_code(evidence.ending),
            seconds: evidence.duration.as_secs_f64(),
            isolation: evidence.isolation.to_string(),
            git_head: evidence.git_head.clone(),
            tampered: tampered(&evidence.tampered),
            stdout: self.text_of(&evidence.stdout).await?,
            stdout_bytes: evidence.stdout.bytes,
            stderr: self.text_of(&evidence.stderr).await?,
            stderr_bytes: evidence.stderr.bytes,
        })
    }

    async fn text_of(&self, excerpt: &Excerpt) -> Result<String, ServiceError> {
        if let Some(digest) = &excerpt.stored
            && let Some(bytes) = self.store.output(digest).await?
        {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(excerpt.tail.clone())
    }

    /// Draws up the SALUTE report of a run (G-38).
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn salute(&self, run: RunId) -> Result<SaluteView, ServiceError> {
        let shown = self.shown(run).await?;
        let (facts, _) = self.newest_facts(run).await?;
        let row = &shown.view.run;
        let salute = view::salute(&shown.graph, &shown.loaded(), &facts, row.read_at);
        Ok(SaluteView::of(&salute, shown.view(), row.host.clone(), row.read_at))
    }

    /// Says where a run is on its way through its graph, in the words of seed 2 (G-30 to G-37).
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn traversal(&self, run: RunId) -> Result<TraversalView, ServiceError> {
        let first = self.store.history(run, 0, BEGINNING).await?;
        let newest = self.store.newest_lines(run, NEWEST).await?;
        let shown = self.shown(run).await?;
        let row = &shown.view.run;
        let source = self.store.revision(row.plan, &row.revision).await?.source;
        let workflow = workflow_of(&row.plan_path, &source, &shown.graph);
        let stale = workflow.and_then(|workflow| workflow.library.stale_after_turns);
        let way = traversal::view(row, &shown.graph, &shown.loaded(), (&first, &newest));
        Ok(TraversalView { stale_after_turns: stale.map(|turns| turns.value), ..way })
    }

    /// Says what a run is resumed from, in the words of DOT's checkpoints (K1, K9).
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn checkpoint(&self, run: RunId) -> Result<CheckpointView, ServiceError> {
        let newest = self.store.newest_lines(run, NEWEST).await?;
        let shown = self.shown(run).await?;
        Ok(traversal::checkpoint(&shown.view.run, &shown.graph, &shown.loaded(), &newest))
    }

    /// Returns a run's beginning and its newest facts, in their order, and says whether some between are left out.
    async fn newest_facts(&self, run: RunId) -> Result<(Vec<(Timestamp, Fact)>, bool), ServiceError> {
        let mut lines = self.store.newest_lines(run, LINES_AT_ONCE).await?;
        let is_cut = lines.first().is_some_and(|line| line.seq > 1);
        if is_cut {
            let mut first = self.store.history(run, 0, BEGINNING).await?;
            let begins = |said: &Said| matches!(said, Said::Fact(fact) if matches!(**fact, Fact::PlanActivated { .. }));
            first.retain(|line| begins(&line.said) && line.seq < lines[0].seq);
            lines.splice(0..0, first);
        }
        let facts = lines.into_iter().filter_map(|line| match line.said {
            Said::Fact(fact) => Some((line.at, *fact)),
            Said::Input(_) => None,
        });
        Ok((facts.collect(), is_cut))
    }

    /// Writes the brief of a run for an agent that claims no items (rows H-40, H-41, G-33).
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn context(&self, run: RunId, form: Form) -> Result<ContextView, ServiceError> {
        let shown = self.shown(run).await?;
        let (facts, is_cut) = self.newest_facts(run).await?;
        let facts: Vec<Fact> = facts.into_iter().map(|(_, fact)| fact).collect();
        let row = &shown.view.run;
        let source = self.store.revision(row.plan, &row.revision).await?.source;
        let workflow = workflow_of(&row.plan_path, &source, &shown.graph);
        let manual = workflow.as_ref().map(workflow::manual).unwrap_or_default();
        let loaded = shown.loaded();
        let scene = Scene {
            plan: shown.graph.title(),
            graph: &shown.graph,
            run: &loaded,
            history: &facts,
            is_cut,
            manual: &manual,
        };
        let text = view::context(&scene, form);
        Ok(ContextView { run: row.name.clone(), form: form.word().to_owned(), text })
    }

    /// Explains why a step is where it is, from the history: a step by its number, any node by its name.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where the plan has no such step, and those of the store.
    pub async fn why(&self, run: RunId, step: &str) -> Result<WhyView, ServiceError> {
        let shown = self.shown(run).await?;
        let node = shown.named(step).ok_or_else(|| ServiceError::NotFound {
            what: format!("step {step} in {}", shown.view.run.name),
        })?;
        let (mut because, mut choices) = (Vec::new(), Vec::new());
        let mut lines = self.history_of(run);
        while let Some(line) = lines.next().await? {
            let Said::Fact(fact) = &line.said else { continue };
            let seq = u64::try_from(line.seq).unwrap_or(0);
            let leads_here = matches!(&**fact, Fact::EdgeFollowed { to, .. } if *to == node.id);
            let is_own = fact.node() == Some(&node.id);
            if is_own || leads_here {
                because.push(BecauseView {
                    seq,
                    at: moment(line.at),
                    text: view::sentence(&shown.graph, fact),
                });
            }
            if let Some(choice) = view::choice(&shown.graph, fact).filter(|_| is_own) {
                choices.push(branches::choice_view(seq, choice));
            }
        }
        let none = Record::default();
        let record = shown.view.records.get(&node.id).unwrap_or(&none);
        let step = shown.step(node.step().unwrap_or(0), node, record);
        let next = next_for(&shown.waiting_on(), &step);
        Ok(WhyView { run: shown.view.run.name.clone(), step, because, choices, next })
    }

    /// Checks the history of a run, or of all: gaps, chain, fold, invariants.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn audit(&self, run: Option<RunId>) -> Result<AuditView, ServiceError> {
        let all = match run {
            Some(run) => vec![run],
            None => self.store.runs(None, &Page::ALL).await?.iter().map(id_of).collect(),
        };
        let mut runs = Vec::new();
        for run in all {
            let findings = self.store.audit(run).await?;
            let last = match self.store.newest_lines(run, 1).await {
                // The audit has said so.
                Err(StoreError::Corrupt { .. }) => None,
                lines => lines?.pop(),
            };
            runs.push(AuditedRun {
                run: self.store.name_of(run).await?,
                events: last.as_ref().map_or(0, |line| u64::try_from(line.seq).unwrap_or(0)),
                head: last.map(|line| line.hash.iter().map(|byte| format!("{byte:02x}")).collect()),
                problems: findings.iter().map(ToString::to_string).collect(),
            });
        }
        Ok(AuditView { runs })
    }
}

/// Reads the source of a run for what is said there and not in the graph that runs; of a library, the plan of its title.
fn workflow_of(path: &str, source: &str, graph: &Graph) -> Option<Workflow> {
    let (mut workflows, _) = workflow::read(&Source::new(path, source), Language::of(path)?);
    let is_it = |read: &Workflow| read.title() == graph.title();
    let at = if workflows.len() == 1 { 0 } else { workflows.iter().position(is_it)? };
    Some(workflows.swap_remove(at))
}

impl Shown {
    /// Finds a step by its number, else a node by its name.
    fn named(&self, given: &str) -> Option<&Node> {
        let number = given.parse::<u32>().ok();
        let step =
            number.and_then(|number| self.graph.nodes().iter().find(|node| node.step() == Some(number)));
        step.or_else(|| self.graph.node(&NodeId::new(given)))
    }

    fn item(&self, node: &NodeId) -> Option<&OpenItem> {
        self.view.items.iter().find(|item| item.at.node == *node)
    }

    fn state(&self) -> RunState {
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

    fn steps(&self) -> Vec<StepView> {
        let none = Record::default();
        let steps = self.graph.numbered();
        steps
            .into_iter()
            .map(|(number, node)| self.step(number, node, self.view.records.get(&node.id).unwrap_or(&none)))
            .collect()
    }

    fn step(&self, number: u32, node: &Node, record: &Record) -> StepView {
        let item = self.item(&node.id);
        let tally = &record.tally;
        let state = match &record.state {
            NodeState::Pending => StepState::Pending,
            NodeState::Ready => StepState::Ready,
            NodeState::Working { .. } | NodeState::Resting { .. } => match item {
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
        let is_judged = node.task().is_none_or(|task| !task.contract.command.is_empty());
        let verdict = match (&record.failure, state) {
            (_, StepState::Passed) if !is_judged => None,
            (_, StepState::Passed) => Some("passed".to_owned()),
            (Some(failure), _) => match &failure.what {
                planctl_engine::Failing::Contract { verdict, .. } if failure.attempt == tally.attempt => {
                    Some(verdict_word(*verdict).to_owned())
                }
                planctl_engine::Failing::Contract { .. }
                | planctl_engine::Failing::Overran { .. }
                | planctl_engine::Failing::Undelivered { .. }
                | planctl_engine::Failing::Permission { .. }
                | planctl_engine::Failing::Inconclusive { .. }
                | planctl_engine::Failing::Conflict { .. }
                | planctl_engine::Failing::SubPlan { .. }
                | planctl_engine::Failing::Unconfirmed { .. }
                | planctl_engine::Failing::NotRed { .. } => None,
            },
            (None, _) => None,
        };
        let has_gate = verdict.is_some();
        let before = before_view(record);
        StepView {
            number,
            title: node.title.clone(),
            node: node.id.as_str().to_owned(),
            kind: view::kind_word(&node.kind).to_owned(),
            role: self.role_of(node, record).to_owned(),
            state,
            attempts: u32::from(tally.attempt.number()),
            attempts_allowed: self.allowed(node, record),
            visits: u32::from(tally.visits),
            visits_allowed: u32::from(node.max_visits),
            verdict,
            vacuous: record.is_vacuous(),
            before,
            pace: self.graph.task(&node.id).and_then(|task| LevelView::of(task, record)),
            isolation: has_gate.then(|| self.settings().isolation.to_string()),
            failure: record.failure.as_deref().filter(|_| state != StepState::Passed).map(failure_line),
            run: self.within.get(&node.id).map(|inner| inner.name.clone()),
            lock: item
                .and_then(|item| self.locks.iter().find(|lock| lock.item == item.id))
                .map(|lock| LockView { name: lock.lock.clone(), run: lock.run.clone() }),
            trouble: self.troubles.get(&node.id).filter(|_| state == StepState::Resting).cloned(),
            spent: SpentView::from(tally.spent),
            since: item.map(|item| moment(item.available_at)),
        }
    }

    /// Returns the nodes that are no steps and that the run came to; of joins, also those that wait.
    fn passages(&self) -> Vec<PassageView> {
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
            }
        });
        passages.collect()
    }

    /// Returns where branches meet that are still under way.
    fn joins(&self) -> Vec<JoinView> {
        let title = |join: &NodeId| self.graph.node(join).map_or(String::new(), |node| node.title.clone());
        let joining = view::joining(&self.graph, &self.loaded());
        joining
            .into_iter()
            .map(|joining| branches::join_view(joining.clone(), title(&joining.join)))
            .collect()
    }

    /// Returns the run as the engine knows it.
    fn loaded(&self) -> Run {
        let row = &self.view.run;
        Run::loaded(row.id, row.head.clone(), Scope::All, self.view.records.clone())
    }

    /// Returns the highest PACE level of a step that is not over.
    fn level(&self) -> Level {
        let open = self.view.records.values().filter(|record| record.state.outcome().is_none());
        open.map(Record::level).max().unwrap_or_default()
    }

    /// Returns the performer of a step: a role, the harness or a person.
    fn role_of<'s>(&'s self, node: &'s Node, record: &'s Record) -> &'s str {
        match self.graph.task(&node.id) {
            Some(task) => record.worker(task).as_str(),
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
    fn allowed(&self, node: &Node, record: &Record) -> u32 {
        let tally = &record.tally;
        let used = u32::from(tally.attempt.number()).saturating_sub(u32::from(tally.failed));
        let running = u32::from(record.state.is_out());
        let before = used.saturating_sub(running);
        let before =
            if record.state.outcome() == Some(Outcome::Passed) { before.saturating_sub(1) } else { before };
        before + 1 + u32::from(node.gated().map_or(0, |gated| gated.max_retries)) + u32::from(tally.granted)
    }

    fn waiting_on(&self) -> Option<WaitingOn> {
        let of =
            |kind: &str| WaitingOn { kind: kind.to_owned(), id: None, role: None, run: None, lock: None };
        match self.view.run.head.status {
            RunStatus::Queued { .. } if trouble_of(&self.view.run).is_some() => Some(of("worktree")),
            RunStatus::Queued { .. } => Some(match &self.ahead {
                Some(Ahead { run, is_ending: true }) => WaitingOn { run: Some(run.clone()), ..of("ending") },
                ahead => WaitingOn { run: ahead.as_ref().map(|ahead| ahead.run.clone()), ..of("workspace") },
            }),
            RunStatus::Paused => Some(of("revision")),
            RunStatus::Awaiting | RunStatus::Active => {
                let own = self.view.items.iter().find_map(|item| match &item.work {
                    Work::Human { ask } => Some(WaitingOn {
                        id: item.number.and_then(|number| u64::try_from(number).ok()),
                        ..of(ask.kind.word())
                    }),
                    Work::Agent { .. } if !item.is_leased && self.is_held_back => {
                        Some(WaitingOn { run: Some(self.view.run.name.clone()), ..of("ending") })
                    }
                    Work::Agent { role, .. } if !item.is_leased && !self.is_served(role.as_str()) => {
                        Some(WaitingOn { role: Some(role.as_str().to_owned()), ..of("worker") })
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

    fn is_served(&self, role: &str) -> bool {
        self.settings().serves(&role.into(), &self.view.run.plan_path)
    }

    fn settings(&self) -> RunSettings {
        serde_json::from_str(&self.view.run.settings).unwrap_or_default()
    }

    fn spent(&self) -> SpentView {
        let head = &self.view.run.head;
        let running = head.clock_since.map(|since| self.view.run.read_at.since(since)).unwrap_or_default();
        SpentView::from(Spent { time: head.spent.time + running, ..head.spent })
    }

    fn reason(&self) -> Option<String> {
        match self.view.run.head.status {
            RunStatus::Ended { end } => {
                let failed = self.view.records.iter().find_map(|(node, record)| {
                    let failure = record
                        .failure
                        .as_deref()
                        .filter(|_| record.state.outcome() == Some(Outcome::Failed))?;
                    Some(format!("{}: {}", view::node_name(&self.graph, node), failure_line(failure)))
                });
                match end {
                    End::Done => {
                        let passed = |record: &&Record| record.state.outcome() == Some(Outcome::Passed);
                        let records = self.view.records.values().filter(passed);
                        let vacuous = match records.filter(|record| record.is_vacuous()).count() {
                            0 => String::new(),
                            count => format!(", of which {count} proves nothing (green before the work)"),
                        };
                        Some(view::outcomes_line(self.view.run.head.settled) + &vacuous)
                    }
                    End::Failed => failed.or(Some("a step failed".to_owned())),
                    End::Aborted => Some(format!("aborted by a person; {}", failed.unwrap_or_default()))
                        .map(|text| text.trim_end_matches("; ").to_owned()),
                    End::Cancelled => Some("cancelled by a person".to_owned()),
                }
            }
            RunStatus::Queued { .. } => trouble_of(&self.view.run).map(str::to_owned),
            RunStatus::New | RunStatus::Awaiting | RunStatus::Active | RunStatus::Paused => None,
        }
    }

    fn view(&self) -> RunView {
        let row = &self.view.run;
        RunView {
            run: row.name.clone(),
            id: row.id.to_string(),
            plan: row.plan_path.clone(),
            title: self.graph.title().to_owned(),
            digest: row.revision.as_str().to_owned(),
            workspace: row.workspace_path.clone(),
            folder: Some(self.settings().folder).filter(|folder| !folder.is_empty()),
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
            reason: self.reason(),
            steps: self.steps(),
            passages: self.passages(),
            joins: self.joins(),
            pace_level: self.level().word().to_owned(),
            waiting_on: self.waiting_on(),
            spent: self.spent(),
            budget: row.head.budget.into(),
            exec: match self.settings().worker {
                Some(Agent::Exec(command)) => Some(command),
                Some(Agent::Known { .. }) | None => None,
            },
            agent: match self.settings().worker {
                Some(agent @ Agent::Known { .. }) => Some(agent.to_string()),
                Some(Agent::Exec(_)) | None => None,
            },
            auto_answer: self.settings().auto_answer,
            is_plan_file_changed: false,
            started_at: row.started_at.map(moment),
            ended_at: row.ended_at.map(moment),
        }
    }

    fn summary(&self) -> RunSummary {
        let row = &self.view.run;
        let steps = self.steps();
        let current = steps.iter().find(|step| {
            !matches!(
                step.state,
                StepState::Pending
                    | StepState::Passed
                    | StepState::Skipped
                    | StepState::Waived
                    | StepState::Warned
            )
        });
        RunSummary {
            run: row.name.clone(),
            plan: row.plan_path.clone(),
            digest: row.revision.as_str().to_owned(),
            workspace: row.workspace_path.clone(),
            worktree: row.worktree.as_ref().map(worktree_view),
            state: self.state(),
            steps_settled: row.head.settled.total(),
            steps_total: self.graph.task_count(),
            step: current.map(StepView::name),
            under_way: steps.iter().filter(|step| step.state.is_under_way()).map(StepView::name).collect(),
            waiting_on: self.waiting_on(),
            spent: self.spent(),
            budget: row.head.budget.into(),
            started_at: row.started_at.map(moment),
            ended_at: row.ended_at.map(moment),
        }
    }
}

/// Says where a run stands, in the words of DESIGN 11.
pub(crate) fn run_state(row: &RunRow) -> RunState {
    match row.head.status {
        RunStatus::New | RunStatus::Awaiting => RunState::AwaitingApproval,
        RunStatus::Queued { .. } if trouble_of(row).is_some() => RunState::Waiting,
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
    }
}

/// Says what the contract showed before the work, where it was rehearsed.
fn before_view(record: &Record) -> Option<BeforeView> {
    match &record.rehearsal {
        Some(Rehearsal::Done { showed, ending, .. }) => Some(BeforeView {
            showed: showed.word().to_owned(),
            ending: ending_words(*ending),
            exit_code: exit_code(*ending),
        }),
        Some(Rehearsal::Due) | None => None,
    }
}

fn end_word(end: End) -> &'static str {
    match end {
        End::Done => "done",
        End::Failed => "failed",
        End::Aborted => "aborted",
        End::Cancelled => "cancelled",
    }
}

fn next_for(waiting: &Option<WaitingOn>, step: &StepView) -> Option<Next> {
    match (waiting, step.state) {
        (Some(WaitingOn { id: Some(id), .. }), StepState::Waiting) => Some(Next::ShowAsk { ask: *id }),
        (Some(_) | None, _) => None,
    }
}

fn event_line(run: &str, line: &HistoryLine) -> EventLine {
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
        data,
    }
}

/// Returns the word of a verdict in JSON.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::TimedOut => "timed_out",
        Verdict::Tampered => "tampered",
    }
}

pub(crate) fn ending_words(ending: Ending) -> String {
    match ending {
        Ending::Exited { code } => format!("exit {code}"),
        Ending::Signalled { signal } => format!("signal {signal}"),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::OverLimit { resource, max } => resource.exceeded(max),
        Ending::NotRun => "not run".to_owned(),
    }
}

fn exit_code(ending: Ending) -> Option<i32> {
    match ending {
        Ending::Exited { code } => Some(code),
        Ending::Signalled { .. } | Ending::TimedOut | Ending::OverLimit { .. } | Ending::NotRun => None,
    }
}

pub(crate) fn tampered(files: &[planctl_engine::Tampering]) -> Vec<TamperView> {
    files
        .iter()
        .map(|file| TamperView { path: file.path.clone(), change: file.change.word().to_owned(), diff: None })
        .collect()
}

/// Tells a run that waits for its worktree from others.
pub(crate) fn trouble_of(run: &RunRow) -> Option<&str> {
    match run.head.status {
        RunStatus::Queued { .. } => run.worktree.as_ref()?.trouble.as_deref(),
        RunStatus::New
        | RunStatus::Awaiting
        | RunStatus::Active
        | RunStatus::Paused
        | RunStatus::Ended { .. } => None,
    }
}

/// The most characters of a stranger's text within a line.
const QUOTED_CHARACTERS_MAX: usize = 160;

/// Quotes what a worker or a contract wrote within a line of planctl's: nothing in it ends the quotation.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED_CHARACTERS_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", cut.replace('"', "'"))
}

/// Says in one line how an attempt failed, with the last line it printed.
pub(crate) fn failure_line(failure: &planctl_engine::Failure) -> String {
    let line = view::failing_line(&failure.what);
    let last = [&failure.stderr, &failure.stdout]
        .into_iter()
        .find_map(|excerpt| excerpt.tail.lines().rev().map(str::trim).find(|line| !line.is_empty()));
    match last {
        Some(last) => format!("{line} {}", quoted(last)),
        None => line,
    }
}
