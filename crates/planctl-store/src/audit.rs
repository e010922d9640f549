//! Checks a run from the outside: its history against itself, and what is stored against the fold of its inputs.
//!
//! The names in brackets are the invariants of PROMISES 1.3.

mod beside;
mod bundled;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use planctl_engine::{
    Attempt, Budget, Digest, Earned, Event, Excerpt, Fact, Graph, HarnessResult, NodeId, NodeState, Run,
    RunId, RunStatus, Timestamp, Work, advance,
};
use uuid::Uuid;

use crate::apply::is_of_speaker;
use crate::error::StoreError;
use crate::history::{HistoryLine, Input, Said, excerpts_of, genesis};
use crate::runs::RunView;
use crate::store::Store;

pub(crate) use beside::AUDIT_BESIDE;
pub use bundled::{BundleAudit, Bundled};

/// One thing that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which invariant is broken: `I1` to `I25`.
    pub invariant: &'static str,
    /// The line of history where it shows, if it shows in one.
    pub seq: Option<i64>,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "{} at line {seq}: {}", self.invariant, self.what),
            None => write!(f, "{}: {}", self.invariant, self.what),
        }
    }
}

/// How many lines are read at once.
const PAGE: i64 = 1000;

impl Store {
    /// Checks one run: numbers without gaps [I1], the fold of its inputs [I2], command ids [I3], the chain [I4], legal
    /// inputs only [I5, I9, I13–I16, I24], items [I6, I8], a reason to move [I7], verdicts [I10, I11, I12], its approval
    /// [I12, I18], its workspace [I20], answers that were given [I22], outputs [I23], and that success was earned [I25]: each
    /// node passed by a verdict, was decided by a person, or failed and was left by an edge that names the failure.
    ///
    /// Run it on a run that nobody moves meanwhile, or run it again where it finds something.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection. A row that does not read is a finding.
    pub async fn audit(&self, run: RunId) -> Result<Vec<Finding>, StoreError> {
        let view = match self.run_view(run).await {
            Err(StoreError::Corrupt { what, .. }) => {
                return Ok(vec![Finding { invariant: "I2", seq: None, what }]);
            }
            view => view?,
        };
        let around = view.run.around.as_ref().map(|around| around.budget).unwrap_or_default();
        let mut audit = Audit::new(view.run.id, view.run.created_at, around);
        match self.audit_all(&mut audit, &view).await {
            Err(StoreError::Corrupt { what, .. }) => audit.add_finding("I2", None, what),
            audited => audited?,
        }
        Ok(audit.findings)
    }

    async fn audit_all(&self, audit: &mut Audit, view: &RunView) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let lines = match self.history(view.run.id, after, PAGE).await {
                Ok(lines) => lines,
                Err(StoreError::Corrupt { what, .. }) => {
                    audit.add_finding("I4", None, format!("after line {after}: {what}"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let Some(last) = lines.last() else { break };
            after = last.seq;
            for line in &lines {
                self.audit_line(audit, line).await?;
            }
        }
        audit.finish(view);
        self.audit_beside(audit, view).await
    }

    async fn audit_line(&self, audit: &mut Audit, line: &HistoryLine) -> Result<(), StoreError> {
        if let Some(digest) = line.said.graph() {
            match self.stored_graph(digest).await {
                Ok(graph) => audit.use_graph(digest, graph),
                Err(StoreError::Corrupt { what, .. }) => audit.add_finding("I12", Some(line.seq), what),
                Err(error) => return Err(error),
            }
        }
        audit.check_line(line);
        Ok(())
    }
}

struct Audit {
    run: RunId,
    /// The budget that the run around it left for it.
    around: Budget,
    created: Timestamp,
    seq: i64,
    chain: Vec<u8>,
    graph: Option<Arc<Graph>>,
    named_graph: Option<Digest>,
    folded: Option<Run>,
    /// Facts that the newest input must be followed by, and how many were seen.
    expected: Vec<Fact>,
    seen: usize,
    cause: String,
    commands: BTreeSet<Uuid>,
    generations: BTreeMap<String, i64>,
    verdicts: BTreeSet<(NodeId, Attempt)>,
    outputs: BTreeSet<String>,
    earned: Earned,
    findings: Vec<Finding>,
}

impl Audit {
    fn new(run: RunId, created: Timestamp, around: Budget) -> Audit {
        Audit {
            run,
            around,
            created,
            seq: 0,
            chain: genesis(run).to_vec(),
            graph: None,
            named_graph: None,
            folded: None,
            expected: Vec::new(),
            seen: 0,
            cause: String::new(),
            commands: BTreeSet::new(),
            generations: BTreeMap::new(),
            verdicts: BTreeSet::new(),
            outputs: BTreeSet::new(),
            earned: Earned::default(),
            findings: Vec::new(),
        }
    }

    fn add_finding(&mut self, invariant: &'static str, seq: Option<i64>, what: impl Into<String>) {
        self.findings.push(Finding { invariant, seq, what: what.into() });
    }

    /// Lets a graph decide from the next line on.
    fn use_graph(&mut self, digest: &Digest, graph: Arc<Graph>) {
        self.graph = Some(graph);
        self.named_graph = Some(digest.clone());
    }

    fn check_line(&mut self, line: &HistoryLine) {
        self.check_number_and_chain(line);
        match &line.said {
            Said::Input(input) => self.check_input(line, input),
            Said::Fact(fact) => self.check_fact(line, fact),
        }
    }

    fn check_number_and_chain(&mut self, line: &HistoryLine) {
        if line.seq != self.seq + 1 {
            self.add_finding("I1", Some(line.seq), format!("it follows line {}", self.seq));
        }
        self.seq = line.seq;
        if line.expected_hash(&self.chain)[..] != line.hash[..] {
            self.add_finding("I4", Some(line.seq), "its hash does not fit what it says and the line before");
        }
        self.chain = line.hash.clone();
    }

    fn check_input(&mut self, line: &HistoryLine, input: &Input) {
        let event = &input.event;
        self.check_facts_complete(line.seq - 1);
        self.seen = 0;
        self.expected.clear();
        self.cause = line.name.clone();
        if line.name != event.kind() {
            self.add_finding(
                "I5",
                Some(line.seq),
                format!("it is named {} and says {}", line.name, event.kind()),
            );
        }
        match line.command {
            Some(command) if self.commands.insert(command) => {}
            Some(_) => self.add_finding("I3", Some(line.seq), "its command id occurred before"),
            None => self.add_finding("I3", Some(line.seq), "it has no command id"),
        }
        self.check_lease(line, event);
        self.check_texts(line, event);
        let Some(graph) = self.graph.clone() else {
            self.add_finding("I2", Some(line.seq), "no graph was named before it");
            return;
        };
        let begin = || Run::new(self.run, &graph, self.created).within(self.around);
        let run = self.folded.take().unwrap_or_else(begin).with_noted(input.noted.clone());
        match advance(&graph, &run, event, line.at) {
            Ok(after) => {
                self.expected = after.facts;
                self.folded = Some(after.run);
            }
            Err(refusal) => {
                self.add_finding("I5", Some(line.seq), format!("the engine refuses it: {refusal}"));
                self.folded = Some(run);
            }
        }
    }

    /// Checks the lease under which an agent or a gate spoke: its generations rise [I8].
    fn check_lease(&mut self, line: &HistoryLine, event: &Event) {
        let speaks_under_lease = matches!(event, Event::Agent(_) | Event::Harness(_));
        let (Some(item), Some(generation)) = (&line.item, line.generation) else {
            if speaks_under_lease {
                self.add_finding("I11", Some(line.seq), "it came under no lease");
            }
            return;
        };
        if !is_of_speaker(item, self.run, event) {
            self.add_finding("I11", Some(line.seq), format!("it came under {item}, which is not of its try"));
        }
        let before = self.generations.insert(item.as_str().to_owned(), generation);
        if before.is_some_and(|before| before >= generation) {
            self.add_finding("I8", Some(line.seq), format!("generation {generation} of {item} was over"));
        }
        if let Event::Harness(harness) = event
            && let HarnessResult::Evidence(evidence) | HarnessResult::Rehearsed(evidence) = &harness.found
        {
            let gated = self.graph.as_ref().and_then(|graph| graph.gated(&harness.at.node));
            if gated.is_none_or(|gated| gated.contract.digest != evidence.contract) {
                self.add_finding("I12", Some(line.seq), "its evidence is not of the approved contract");
            }
        }
    }

    /// Checks that no text is longer than history may hold [I23].
    fn check_texts(&mut self, line: &HistoryLine, event: &Event) {
        for text in excerpts_of(event) {
            // A byte that is no UTF-8 takes three as the replacement character.
            if text.tail.len() > 3 * Excerpt::TAIL_BYTES_MAX {
                self.add_finding(
                    "I23",
                    Some(line.seq),
                    format!("it holds {} bytes of output", text.tail.len()),
                );
            }
            self.outputs.extend(text.stored.iter().map(|digest| digest.as_str().to_owned()));
        }
    }

    fn check_fact(&mut self, line: &HistoryLine, fact: &Fact) {
        if self.expected.get(self.seen) != Some(fact) {
            self.add_finding(
                "I2",
                Some(line.seq),
                format!("{} does not follow from the input before it", line.name),
            );
        }
        if line.name != fact.name() || line.cause != self.cause {
            self.add_finding("I2", Some(line.seq), "its name or cause is not what it says");
        }
        self.seen += 1;
        if let Some(graph) = self.graph.clone()
            && let Some(unearned) = self.earned.check_fact(&graph, fact)
        {
            self.add_finding("I25", Some(line.seq), unearned);
        }
        if let Fact::NodeVerified { node, attempt, .. } | Fact::NodeObserved { node, attempt, .. } = fact
            && !self.verdicts.insert((node.clone(), *attempt))
        {
            self.add_finding(
                "I10",
                Some(line.seq),
                format!("attempt {attempt} at {node} has a second verdict"),
            );
        }
    }

    fn check_facts_complete(&mut self, seq: i64) {
        if self.seen != self.expected.len() {
            let missing = self.expected.len().abs_diff(self.seen);
            self.add_finding(
                "I2",
                Some(seq),
                format!("{missing} facts are missing or too many after the input"),
            );
        }
    }

    /// Compares the end of the history with what its run says of it.
    fn check_end(&mut self, seq: i64, chain: &[u8]) {
        self.check_facts_complete(self.seq);
        if seq != self.seq {
            self.add_finding("I1", None, format!("the run counts {seq} lines and has {}", self.seq));
        }
        if chain != self.chain {
            self.add_finding("I4", None, "the run's own hash is not that of its last line");
        }
    }

    /// Compares what is stored with the fold.
    fn finish(&mut self, view: &RunView) {
        self.check_end(view.run.seq, &view.run.chain);
        if let Some(folded) = self.folded.take() {
            if folded.head != view.run.head {
                self.add_finding("I2", None, "the run's counters are not the fold of its inputs");
            }
            if *folded.records() != view.records {
                let differs = |id: &&NodeId| folded.records().get(*id) != view.records.get(*id);
                let ids: BTreeSet<&NodeId> = folded.records().keys().chain(view.records.keys()).collect();
                let ids: Vec<&str> = ids.iter().filter(|id| differs(id)).map(|id| id.as_str()).collect();
                self.add_finding(
                    "I2",
                    None,
                    format!("nodes are not the fold of the inputs: {}", ids.join(", ")),
                );
            }
        }
        self.check_items(view);
    }

    /// Checks that exactly the items are out that the states of the nodes call for [I6, I7].
    fn check_items(&mut self, view: &RunView) {
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for (id, record) in &view.records {
            let at = planctl_engine::At {
                node: id.clone(),
                visit: record.tally.visits,
                attempt: record.tally.attempt,
            };
            let item = match &record.state {
                NodeState::Working { .. } | NodeState::Resting { .. } => {
                    Some(planctl_engine::ItemId::agent(self.run, &at))
                }
                NodeState::Checking { .. } => {
                    Some(planctl_engine::ItemId::gate(self.run, &at, record.tally.held_gates))
                }
                NodeState::Rehearsing => {
                    Some(planctl_engine::ItemId::rehearsal(self.run, &at, record.tally.rehearsals))
                }
                NodeState::Saving { .. } => {
                    Some(planctl_engine::ItemId::checkpoint(self.run, &at, record.tally.rehearsals))
                }
                NodeState::Branching => Some(planctl_engine::ItemId::branches(self.run, &at)),
                NodeState::Nested { .. } => Some(planctl_engine::ItemId::sub_plan(self.run, &at)),
                NodeState::Held { item, .. } => Some(item.clone()),
                NodeState::Pending | NodeState::Ready | NodeState::Settled { .. } => None,
            };
            wanted.extend(item.map(|item| item.as_str().to_owned()));
        }
        let out: BTreeSet<String> = view.items.iter().map(|item| item.id.as_str().to_owned()).collect();
        for missing in wanted.difference(&out) {
            self.add_finding("I7", None, format!("item {missing} should be out and is not"));
        }
        for extra in out.difference(&wanted) {
            self.add_finding("I6", None, format!("item {extra} is out and should not be"));
        }
        let is_stuck = view.run.head.status == RunStatus::Active && out.is_empty();
        if is_stuck {
            self.add_finding("I7", None, "the run is active and nothing can move it");
        }
        for item in &view.items {
            let is_for_people = matches!(item.work, Work::Human { .. });
            if is_for_people != item.number.is_some() {
                self.add_finding("I7", None, format!("item {} is numbered wrongly", item.id.as_str()));
            }
        }
    }
}
