//! Reports about a run: SALUTE, its traversal, the context of an agent, the reason for a step, the audit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planctl_api::wire::{
    AuditView, AuditedRun, AuditedStep, BecauseView, CheckpointView, ChoiceView, ContextView, Paged,
    SaluteView, StepState, StepView, TraversalView, WhyView, moment,
};
use planctl_engine::{Fact, Graph, Node, NodeId, NodeKind, Record, RunId, Timestamp, hex};
use planctl_lang::Source;
use planctl_lang::workflow::{self, Language, Workflow};
use planctl_store::{Approval, Page, RunRow, Said, StoreError, WantedRuns};
use planctl_view::{Form, Scene};

use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::runs::attempts::Attempts;
use crate::runs::policy_approvals::fault_of;
use crate::runs::shown::{named, next_for};
use crate::runs::{BEGINNING, LINES_AT_ONCE, NEWEST, branches, id_of, traversal};

impl Services {
    /// Draws up the SALUTE report of a run (G-38).
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn salute(&self, run: RunId) -> Result<SaluteView, ServiceError> {
        let shown = self.shown(run).await?;
        let (facts, _) = self.newest_facts(run).await?;
        let row = &shown.view.run;
        let mut salute = planctl_view::salute(&shown.graph, &shown.loaded(), &facts, row.read_at);
        salute.time.active = row.time_spent();
        salute.equipment.spent.time = row.time_spent();
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
        Ok(traversal::view(row, &shown.graph, &shown.loaded(), (&first, &newest)))
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
        let text = planctl_view::context(&scene, form);
        Ok(ContextView { run: row.name.clone(), form: form.as_str().to_owned(), text })
    }

    /// Explains why a step is where it is, from the history: a step by its number, any node by its name.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where the plan has no such step, and those of the store.
    pub async fn why(&self, run: RunId, step: &str) -> Result<WhyView, ServiceError> {
        let shown = self.shown_in_part(run, |graph| around(graph, step)).await?;
        let node = shown.step_named(step)?;
        let (mut because, mut choices) = (Vec::new(), Vec::new());
        let mut attempts = Attempts::at(node);
        let mut lines = self.history_of(run, Some(&node.id));
        while let Some(line) = lines.next().await? {
            let fact = match &line.said {
                Said::Fact(fact) => fact,
                Said::Input(input) => {
                    attempts.note(&input.event);
                    continue;
                }
            };
            let seq = u64::try_from(line.seq).unwrap_or(0);
            let leads_here = matches!(&**fact, Fact::EdgeFollowed { to, .. } if *to == node.id);
            let is_own = fact.node() == Some(&node.id);
            if (is_own || leads_here) && !planctl_view::is_echo(&shown.graph, fact) {
                because.push(BecauseView {
                    seq,
                    at: moment(line.at),
                    attempt: if is_own { attempt_of(fact) } else { None },
                    text: planctl_view::sentence(&shown.graph, fact),
                });
            }
            if let Some(choice) = planctl_view::choice(&shown.graph, fact).filter(|_| is_own) {
                choices.push(branches::choice_view(seq, choice));
            }
        }
        let came = !because.is_empty();
        if !came {
            (because, choices) = self.ways_past(run, &shown.graph, node).await?;
        }
        let none = Record::default();
        let record = shown.view.records.get(&node.id).unwrap_or(&none);
        let step = shown.step(node.step().unwrap_or(0), node, record);
        let next = next_for(&shown.waiting_on(), &step);
        let row = &shown.view.run;
        let intent = self.intent_of(row, step.number).await?;
        Ok(WhyView {
            run: row.name.clone(),
            step,
            intent,
            is_gone_past: !came && !because.is_empty(),
            because,
            attempts: attempts.summaries(),
            choices,
            next,
        })
    }

    /// Returns the ways that the decisions before a node took, to which the run never came.
    async fn ways_past(
        &self,
        run: RunId,
        graph: &Graph,
        node: &Node,
    ) -> Result<(Vec<BecauseView>, Vec<ChoiceView>), ServiceError> {
        let (mut because, mut choices) = (Vec::new(), Vec::new());
        let leads_here = graph.edges().iter().filter(|edge| edge.to == node.id).map(|edge| &edge.from);
        let decides =
            |from: &&NodeId| matches!(graph.node(from).map(|node| &node.kind), Some(NodeKind::Decision(_)));
        for from in leads_here.filter(decides).collect::<BTreeSet<_>>() {
            let mut lines = self.history_of(run, Some(from));
            while let Some(line) = lines.next().await? {
                let Said::Fact(fact) = &line.said else { continue };
                if !matches!(&**fact, Fact::EdgeFollowed { from: left, .. } if left == from) {
                    continue;
                }
                let seq = u64::try_from(line.seq).unwrap_or(0);
                let text = planctl_view::sentence(graph, fact);
                because.push(BecauseView { seq, at: moment(line.at), attempt: None, text });
                choices.extend(
                    planctl_view::choice(graph, fact).map(|choice| branches::choice_view(seq, choice)),
                );
            }
        }
        Ok((because, choices))
    }

    /// Returns the piece of a goal that a step serves, as its plan says. A plan's text is parsed once.
    async fn intent_of(&self, run: &RunRow, number: u32) -> Result<Option<String>, ServiceError> {
        if Language::of(&run.plan_path).is_some() {
            return Ok(None);
        }
        let kept = self.server_node.intents();
        let found = match kept.of(&run.revision) {
            Some(found) => found,
            None => {
                let source = self.store.revision(run.plan, &run.revision).await?.source;
                let path = run.plan_path.clone();
                let found = Arc::new(blocking(move || intents(&path, &source)).await?);
                kept.keep(&run.revision, &found);
                found
            }
        };
        Ok(found.get(&number).cloned())
    }

    /// Checks the histories of a page of runs, the newest first: gaps, chain, fold, invariants.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn audit_runs(&self, page: &Page<RunId>) -> Result<AuditView, ServiceError> {
        let rows = self.store.runs(&WantedRuns::default(), page).await?;
        let next = page.next(&rows, id_of).map(AuditView::cursor);
        let mut runs = Vec::with_capacity(rows.len());
        for row in &rows {
            let workspace = row.as_ref().ok().map(|row| row.workspace_path.clone());
            runs.push(AuditedRun { workspace, ..self.audit(id_of(row)).await? });
        }
        Ok(AuditView { runs, next })
    }

    /// Checks the history of a run: gaps, chain, fold, invariants.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn audit(&self, run: RunId) -> Result<AuditedRun, ServiceError> {
        let findings = self.store.audit(run).await?;
        let mut problems: Vec<String> = findings.iter().map(ToString::to_string).collect();
        let approval = self.audited_approval(run, &mut problems).await?;
        let last = match self.store.newest_lines(run, 1).await {
            // The audit has said so.
            Err(StoreError::Corrupt { .. }) => None,
            lines => lines?.pop(),
        };
        let passed = self.passed_steps(run).await?;
        Ok(AuditedRun {
            run: self.store.name_of(run).await?,
            workspace: None,
            events: last.as_ref().map_or(0, |line| u64::try_from(line.seq).unwrap_or(0)),
            head: last.map(|line| hex(&line.hash)),
            approved_by: approval.as_ref().map(|approval| approval.by.clone()),
            approval_note: approval.and_then(|approval| approval.note),
            passed,
            problems,
        })
    }

    /// Returns the steps of a run that passed, with what each rests on; none where the run can't be read.
    async fn passed_steps(&self, run: RunId) -> Result<Vec<AuditedStep>, ServiceError> {
        let shown = match self.shown(run).await {
            // The audit has said so.
            Err(ServiceError::Store(StoreError::Corrupt { .. })) => return Ok(Vec::new()),
            shown => shown?,
        };
        let passed = shown.steps().into_iter().filter(|step| step.state == StepState::Passed);
        let graded = passed.filter_map(|StepView { number, title, grade, .. }| {
            Some(AuditedStep { number, title, grade: grade? })
        });
        Ok(graded.collect())
    }

    /// Checks the source text of a run [I12], and an approval that a policy gave against the policy's bounds [I18]; returns
    /// the approval.
    async fn audited_approval(
        &self,
        run: RunId,
        problems: &mut Vec<String>,
    ) -> Result<Option<Approval>, ServiceError> {
        let row = match self.store.run(run).await {
            // The audit has said so.
            Err(StoreError::Corrupt { .. }) => return Ok(None),
            row => row?,
        };
        let kept = match self.kept_text(row.plan, &row.plan_path, &row.revision).await {
            Err(ServiceError::Store(StoreError::Corrupt { what, .. })) => {
                problems.push(format!("I12: {what}"));
                None
            }
            kept => Some(kept?),
        };
        let Some(approval) = row.approval else { return Ok(None) };
        let approval = self.store.approval(approval).await?;
        if let Some(kept) = kept {
            let fault = fault_of(&approval, &row.plan_path, &kept.graph)?;
            problems.extend(fault.map(|what| format!("I18: {what}")));
        }
        Ok(Some(approval))
    }
}

/// Returns the attempt that begins or ends with a fact.
fn attempt_of(fact: &Fact) -> Option<u16> {
    let (Fact::NodeEntered { attempt, .. }
    | Fact::NodeVerified { attempt, .. }
    | Fact::NodeObserved { attempt, .. }
    | Fact::RetryTriggered { attempt, .. }
    | Fact::NodeResting { attempt, .. }
    | Fact::NodeInterrupted { attempt, .. }
    | Fact::GateRepeated { attempt, .. }) = fact
    else {
        return None;
    };
    Some(attempt.number()).filter(|number| *number > 0)
}

/// Returns the node that is meant and those before it, which say what became of an ask of its own.
fn around(graph: &Graph, step: &str) -> Vec<NodeId> {
    let Some(node) = named(graph, step) else { return Vec::new() };
    let before = graph.edges().iter().filter(|edge| edge.to == node.id).map(|edge| edge.from.clone());
    before.chain([node.id.clone()]).collect()
}

/// Returns the pieces of a goal that the steps of a plan in markdown serve, as it says.
fn intents(path: &str, source: &str) -> BTreeMap<u32, String> {
    let (tree, _) = planctl_lang::parse(&Source::new(path, source));
    let said = tree.steps.into_iter().filter_map(|step| Some((step.node.number?, step.intent?.value)));
    said.collect()
}

/// Reads the source of a run for what is said there and not in the graph that runs; of a library, the plan of its title.
fn workflow_of(path: &str, source: &str, graph: &Graph) -> Option<Workflow> {
    let (mut workflows, _) = workflow::read(&Source::new(path, source), Language::of(path)?);
    let is_it = |read: &Workflow| read.title() == graph.title();
    let at = if workflows.len() == 1 { 0 } else { workflows.iter().position(is_it)? };
    Some(workflows.swap_remove(at))
}
