//! The spans of one run, made line by line from its history.
//!
//! A run has a span from each beginning to the next end. Below it is one for each entering of a node; below that one for each try,
//! with the wait for a worker (`claim`), the agent's `work` and the `contract` or `call` in it; and one for each question to a
//! person (`ask`). Names are few, ids stand in attributes, and nothing that a program printed or a person wrote is in a span.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry::{SpanId, TraceId};
use planctl_engine::{
    AgentEvent, AgentSaid, At, Attempt, ClockEvent, End, Ending, Event, Evidence, Fact, Graph, HarnessEvent,
    HarnessResult, Inconclusive, ItemId, NodeId, NodeKind, Outcome, Role, RunId, Timestamp, Usage, Verdict,
};
use planctl_store::{HistoryLine, RunRow, Said};

use super::ids;
use super::span::{Kind, Span, Value, short};

/// The spans of a run that have begun and are not over.
pub(crate) struct RunSpans {
    run: RunId,
    name: String,
    plan: String,
    /// The span of the run around it, where it carries out a node of that one's plan.
    around: Option<(TraceId, SpanId)>,
    /// The last line that was taken.
    pub(crate) seq: i64,
    stage: u32,
    /// When the stage began; `None` while the run is over.
    began: Option<Timestamp>,
    steps: BTreeMap<NodeId, Step>,
    asks: BTreeMap<ItemId, Ask>,
}

/// A node that was entered and has not settled.
struct Step {
    visit: u16,
    began: Timestamp,
    attempt: Option<Try>,
    /// The run that carries out its plan.
    within: Option<RunId>,
    /// When the item that is out was due.
    out_since: Timestamp,
    /// Says that an agent has reported, so that the item that is out is the gate.
    is_reported: bool,
}

/// A try that is not over.
struct Try {
    attempt: Attempt,
    began: Timestamp,
    verdict: Option<Verdict>,
}

/// A question that a person has not answered.
struct Ask {
    node: NodeId,
    kind: &'static str,
    reason: &'static str,
    began: Timestamp,
    parent: SpanId,
}

impl RunSpans {
    /// Begins before the first line.
    pub(crate) fn of(run: &RunRow) -> RunSpans {
        let around = run.around.as_ref().map(|around| (ids::trace(around.run), ids::run(around.run, 0)));
        RunSpans {
            run: run.id,
            name: run.name.clone(),
            plan: run.plan_path.clone(),
            around,
            seq: 0,
            stage: 0,
            began: Some(run.created_at),
            steps: BTreeMap::new(),
            asks: BTreeMap::new(),
        }
    }

    /// Says whether spans are open that a later line may end.
    pub(crate) fn is_open(&self) -> bool {
        self.began.is_some()
    }

    /// Takes the next line, and adds the spans that end with it.
    pub(crate) fn add_line(&mut self, graph: &Graph, line: &HistoryLine, over: &mut Vec<Span>) {
        match &line.said {
            Said::Input(input) => match &input.event {
                Event::Agent(event) => self.agent(graph, event, line, over),
                Event::Harness(event) => self.harness(graph, event, line, over),
                Event::Clock(ClockEvent::LeaseLost { at, interrupted, .. }) => {
                    let why = if *interrupted { "interrupted" } else { "lease lost" };
                    self.end_lost_work(graph, at, why, line, over);
                }
                Event::Clock(ClockEvent::Overran { at, .. }) => {
                    self.end_lost_work(graph, at, "overran", line, over)
                }
                Event::Clock(
                    ClockEvent::Admitted
                    | ClockEvent::Due { .. }
                    | ClockEvent::Metered
                    | ClockEvent::DaySpent { .. }
                    | ClockEvent::DayAllows { .. }
                    | ClockEvent::SetAside { .. }
                    | ClockEvent::Unattended { .. },
                )
                | Event::Human(_) => {}
            },
            Said::Fact(fact) => self.fact(graph, fact, line, over),
        }
        self.seq = line.seq;
    }

    fn fact(&mut self, graph: &Graph, fact: &Fact, line: &HistoryLine, over: &mut Vec<Span>) {
        let at = line.at;
        match fact {
            Fact::PlanActivated { .. } => {
                if self.began.is_none() {
                    self.stage += 1;
                    self.began = Some(at);
                }
            }
            Fact::NodeEntered { node, visit, attempt, .. } => {
                self.close_step(graph, node, at, None, over);
                let gated = graph.gated(node).is_some();
                let attempt = gated.then_some(Try { attempt: *attempt, began: at, verdict: None });
                let step = Step {
                    visit: *visit,
                    began: at,
                    attempt,
                    within: None,
                    out_since: at,
                    is_reported: false,
                };
                self.steps.insert(node.clone(), step);
            }
            Fact::NodeVerified { node, verdict, .. } => {
                if let Some(open) = self.steps.get_mut(node).and_then(|step| step.attempt.as_mut()) {
                    open.verdict = Some(*verdict);
                }
            }
            Fact::RetryTriggered { node, attempt, .. } => {
                self.begin_try(graph, node, *attempt, (at, at), over);
            }
            Fact::NodeResting { node, until, .. } => self.out_again(node, *until),
            Fact::NodeInterrupted { node, .. } => self.out_again(node, at),
            Fact::SubPlanBegan { node, run } => {
                if let Some(step) = self.steps.get_mut(node) {
                    step.within = Some(*run);
                }
            }
            Fact::NodeSettled { node, outcome, .. } => {
                self.close_step(graph, node, at, Some(*outcome), over);
            }
            Fact::AskOpened { node, item, kind, reason, .. } => {
                let parent = self.parent_at(node);
                let (kind, reason) = (kind.as_str(), reason.as_str());
                let ask = Ask { node: node.clone(), kind, reason, began: at, parent };
                self.asks.insert(item.clone(), ask);
            }
            Fact::AskAnswered { node, item, answer, .. } => {
                self.begin_next_try(graph, node, item, answer, at, over);
                self.close_ask(graph, item, at, Some(answer), over);
            }
            Fact::PlanCompleted { .. } => self.close(graph, at, End::Done, over),
            Fact::PlanFailed { end, .. } => self.close(graph, at, *end, over),
            Fact::PlanCancelled { .. } => self.close(graph, at, End::Cancelled, over),
            Fact::NodeObserved { .. }
            | Fact::NodeRehearsed { .. }
            | Fact::EdgeFollowed { .. }
            | Fact::EpochBegan { .. }
            | Fact::FidelityReduced { .. }
            | Fact::ContextRefused { .. }
            | Fact::NodeQueued { .. }
            | Fact::NodeDecided { .. }
            | Fact::CheckpointSaved { .. }
            | Fact::CheckpointRestored { .. }
            | Fact::BranchesForked { .. }
            | Fact::BranchesMerged { .. }
            | Fact::MergeConflicted { .. }
            | Fact::SubPlanEnded { .. }
            | Fact::BranchesJoined { .. }
            | Fact::GoalUnmet { .. }
            | Fact::GateRepeated { .. }
            | Fact::PlanEscalated { .. }
            | Fact::PaceChanged { .. }
            | Fact::BudgetNoticed { .. }
            | Fact::PlanExpired { .. }
            | Fact::NodeReopened { .. }
            | Fact::PlanPaused { .. } => {}
        }
    }

    /// Has the try that a person was asked about be over since the question, where their answer begins another one.
    fn begin_next_try(
        &mut self,
        graph: &Graph,
        node: &NodeId,
        item: &ItemId,
        answer: &str,
        at: Timestamp,
        over: &mut Vec<Span>,
    ) {
        let begins = matches!(answer, "retry" | "restore" | "reassign");
        let Some(asked) = self.asks.get(item).filter(|_| begins).map(|ask| ask.began) else { return };
        let last = self.steps.get(node).and_then(|step| step.attempt.as_ref());
        // One without a verdict may not have been sent out.
        let Some(last) = last.filter(|last| last.verdict.is_some()) else { return };
        self.begin_try(graph, node, last.attempt.next(), (asked, at), over);
    }

    /// Ends the try that is open at a moment, and begins another at a later one.
    fn begin_try(
        &mut self,
        graph: &Graph,
        node: &NodeId,
        attempt: Attempt,
        (ended, began): (Timestamp, Timestamp),
        over: &mut Vec<Span>,
    ) {
        self.close_attempt(graph, node, ended, over);
        if let Some(step) = self.steps.get_mut(node) {
            step.attempt = Some(Try { attempt, began, verdict: None });
            step.out_since = began;
            step.is_reported = false;
        }
    }

    /// Begins the try that news is of, where it began without a line of its own: after a person's word on what the last one did.
    fn note_try(&mut self, graph: &Graph, at: &At, over: &mut Vec<Span>) {
        let Some(step) = self.steps.get(&at.node).filter(|step| step.visit == at.visit) else { return };
        if step.attempt.as_ref().is_some_and(|open| at.attempt > open.attempt) {
            let since = step.out_since;
            self.begin_try(graph, &at.node, at.attempt, (since, since), over);
        }
    }

    fn agent(&mut self, graph: &Graph, event: &AgentEvent, line: &HistoryLine, over: &mut Vec<Span>) {
        self.note_try(graph, &event.at, over);
        let (outcome, duration, failed) = match &event.said {
            AgentSaid::Reported(report) if report.gave_up => ("gave up", Some(report.duration), true),
            AgentSaid::Reported(report) => ("reported", Some(report.duration), false),
            AgentSaid::Overran { duration, .. } => ("overran", Some(*duration), true),
            AgentSaid::Asked { .. } => ("asked", None, false),
            AgentSaid::Faulted(_) => ("faulted", None, true),
            AgentSaid::Released => ("released", None, false),
        };
        let Some(out_since) = self.out_since(&event.at) else { return };
        let began = duration.map_or(out_since, |span| begin_time(line.at, span, out_since));
        if began > out_since {
            let claim = self.span_below_try(graph, "claim", &event.at, (out_since, began), line);
            over.push(claim);
        }
        let mut work = self.span_below_try(graph, "work", &event.at, (began, line.at), line);
        work.text("outcome", outcome);
        if let Some(role) = graph.task(&event.at.node).map(|task| &task.role) {
            work.text("role", Role::as_str(role));
        }
        if let Some(usage) = event.reported_usage() {
            add_usage(&mut work, usage);
        }
        work.failed = failed.then(|| outcome.to_owned());
        over.push(work);
        if let Some(step) = self.steps.get_mut(&event.at.node) {
            step.out_since = line.at;
            step.is_reported = matches!(event.said, AgentSaid::Reported(_));
        }
    }

    fn harness(&mut self, graph: &Graph, event: &HarnessEvent, line: &HistoryLine, over: &mut Vec<Span>) {
        self.note_try(graph, &event.at, over);
        let Some(out_since) = self.out_since(&event.at) else { return };
        let (evidence, is_rehearsal) = match &event.found {
            HarnessResult::Evidence(evidence) => (evidence, false),
            HarnessResult::Rehearsed(evidence) => (evidence, true),
            HarnessResult::Nothing(why) => {
                let name = self.gate_name(graph, &event.at);
                let mut span = self.span_below_try(graph, name, &event.at, (out_since, line.at), line);
                let why = match why {
                    Inconclusive::Interrupted | Inconclusive::Unheard { .. } => "interrupted",
                    Inconclusive::ToolMissing { .. } => "a tool is missing",
                    Inconclusive::Unstable { .. } => "the workspace changed",
                    Inconclusive::Unjudged { .. } => "the judge gave no answer",
                    Inconclusive::Unapproved { .. } => "the prompt to the judge waits for a person",
                    Inconclusive::Unfunded { .. } => "the budget does not suffice for the judge",
                };
                span.failed = Some(why.to_owned());
                over.push(span);
                return;
            }
            HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Conflicted(_)
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_) => return,
        };
        let name = if is_rehearsal { "rehearsal" } else { self.gate_name(graph, &event.at) };
        let began = begin_time(line.at, evidence.duration, out_since);
        let mut span = self.span_below_try(graph, name, &event.at, (began, line.at), line);
        add_evidence(&mut span, evidence);
        let gated = graph.gated(&event.at.node);
        let has_passed = gated.is_some_and(|gated| gated.contract.judge(evidence) == Some(Verdict::Passed));
        span.failed = (!has_passed && !is_rehearsal).then(|| "failed".to_owned());
        over.push(span);
        if let Some(step) = self.steps.get_mut(&event.at.node) {
            step.out_since = line.at;
        }
    }

    /// Ends the work of a holder that was not heard of again.
    fn end_lost_work(&mut self, graph: &Graph, at: &At, why: &str, line: &HistoryLine, over: &mut Vec<Span>) {
        self.note_try(graph, at, over);
        let Some(out_since) = self.out_since(at) else { return };
        let is_work =
            graph.task(&at.node).is_some() && !self.steps.get(&at.node).is_some_and(|step| step.is_reported);
        let name = if is_work { "work" } else { self.gate_name(graph, at) };
        let mut span = self.span_below_try(graph, name, at, (out_since, line.at), line);
        span.failed = Some(why.to_owned());
        over.push(span);
        self.out_again(&at.node, line.at);
    }

    fn out_since(&self, at: &At) -> Option<Timestamp> {
        self.steps.get(&at.node).filter(|step| step.visit == at.visit).map(|step| step.out_since)
    }

    fn out_again(&mut self, node: &NodeId, at: Timestamp) {
        if let Some(step) = self.steps.get_mut(node) {
            step.out_since = at;
        }
    }

    fn gate_name(&self, graph: &Graph, at: &At) -> &'static str {
        match graph.node(&at.node).map(|node| &node.kind) {
            Some(NodeKind::Call(_)) => "call",
            Some(_) | None => "contract",
        }
    }

    /// Returns the span below which something at a node belongs: that of its entering, or that of the run.
    fn parent_at(&self, node: &NodeId) -> SpanId {
        match self.steps.get(node) {
            Some(step) => ids::step(self.run, node, step.visit),
            None => ids::run(self.run, self.stage),
        }
    }

    /// Ends all spans that are open, as if the run were over.
    pub(super) fn close_all(&mut self, graph: &Graph, at: Timestamp, over: &mut Vec<Span>) {
        self.close(graph, at, End::Cancelled, over);
    }

    fn close(&mut self, graph: &Graph, at: Timestamp, end: End, over: &mut Vec<Span>) {
        let Some(began) = self.began.take() else { return };
        for item in self.asks.keys().cloned().collect::<Vec<_>>() {
            self.close_ask(graph, &item, at, None, over);
        }
        for node in self.steps.keys().cloned().collect::<Vec<_>>() {
            self.close_step(graph, &node, at, None, over);
        }
        let name = format!("run {}", short(&self.plan));
        let mut span = self.span(ids::run(self.run, self.stage), None, &name, (began, at));
        if self.stage > 0 {
            span.parent = Some(ids::run(self.run, 0));
        }
        let (word, failed) = match end {
            End::Done => ("done", false),
            End::Failed => ("failed", true),
            End::Aborted => ("aborted", true),
            End::Cancelled => ("cancelled", false),
        };
        span.text("outcome", word);
        span.text("plan", &self.plan);
        span.failed = failed.then(|| word.to_owned());
        span.links.extend(self.around);
        over.push(span);
    }

    fn close_step(
        &mut self,
        graph: &Graph,
        node: &NodeId,
        at: Timestamp,
        outcome: Option<Outcome>,
        over: &mut Vec<Span>,
    ) {
        self.close_attempt(graph, node, at, over);
        let Some(step) = self.steps.remove(node) else { return };
        let id = ids::step(self.run, node, step.visit);
        let parent = ids::run(self.run, self.stage);
        let number = graph.node(node).and_then(planctl_engine::Node::step);
        let name = number
            .map_or_else(|| format!("node {}", short(node.as_str())), |number| format!("step {number}"));
        let mut span = self.span(id, Some(parent), &name, (step.began, at));
        span.text("node.id", node.as_str());
        span.number("visit", step.visit);
        if let Some(number) = number {
            span.number("step", number);
        }
        if let Some(outcome) = outcome {
            span.text("outcome", outcome.as_str());
        }
        span.failed = matches!(outcome, Some(Outcome::Failed | Outcome::Warned)).then(|| "failed".to_owned());
        span.links.extend(step.within.map(|run| (ids::trace(run), ids::run(run, 0))));
        over.push(span);
    }

    fn close_attempt(&mut self, graph: &Graph, node: &NodeId, at: Timestamp, over: &mut Vec<Span>) {
        let Some(step) = self.steps.get_mut(node) else { return };
        let Some(open) = step.attempt.take() else { return };
        let at_try = At { node: node.clone(), visit: step.visit, attempt: open.attempt };
        // One that a person took the place of before it began, as in a skipped step, was none.
        if open.attempt == Attempt::NONE {
            return;
        }
        let parent = ids::step(self.run, node, at_try.visit);
        let mut span = self.span(ids::attempt(self.run, &at_try), Some(parent), "attempt", (open.began, at));
        set_try(&mut span, graph, &at_try);
        if let Some(verdict) = open.verdict {
            span.text("verdict", verdict.as_str());
            span.failed = (verdict != Verdict::Passed).then(|| verdict.as_str().to_owned());
        }
        over.push(span);
    }

    fn close_ask(
        &mut self,
        graph: &Graph,
        item: &ItemId,
        at: Timestamp,
        answer: Option<&str>,
        over: &mut Vec<Span>,
    ) {
        let Some(ask) = self.asks.remove(item) else { return };
        let id = ids::of_item(self.run, "ask", item);
        let mut span = self.span(id, Some(ask.parent), "ask", (ask.began, at));
        span.text("item.id", item.as_str());
        span.text("node.id", ask.node.as_str());
        if let Some(step) = graph.node(&ask.node).and_then(planctl_engine::Node::step) {
            span.number("step", step);
        }
        span.text("kind", ask.kind);
        span.text("reason", ask.reason);
        span.text("answer", answer.unwrap_or("taken back"));
        over.push(span);
    }

    /// Makes a span below a try, which ends with a line.
    fn span_below_try(
        &self,
        graph: &Graph,
        name: &'static str,
        at: &At,
        (began, ended): (Timestamp, Timestamp),
        line: &HistoryLine,
    ) -> Span {
        let parent = ids::attempt(self.run, at);
        let mut span =
            self.span(ids::of_line(self.run, name, line.seq), Some(parent), name, (began.min(ended), ended));
        set_try(&mut span, graph, at);
        if let Some(item) = &line.item {
            span.text("item.id", item.as_str());
        }
        if let Some(generation) = line.generation {
            span.number("generation", generation);
        }
        span
    }

    fn span(
        &self,
        id: SpanId,
        parent: Option<SpanId>,
        name: &str,
        (began, ended): (Timestamp, Timestamp),
    ) -> Span {
        let mut span = Span {
            trace: ids::trace(self.run),
            id,
            parent,
            name: name.to_owned(),
            kind: Kind::Internal,
            began,
            ended,
            attributes: Vec::new(),
            links: Vec::new(),
            failed: None,
        };
        span.text("run.id", &self.run.to_string());
        span.text("run.name", &self.name);
        span
    }
}

/// Returns when something began that took so long until now; not before it was due, whatever a worker says.
fn begin_time(ended: Timestamp, took: Duration, due: Timestamp) -> Timestamp {
    let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(ended.as_micros().saturating_sub(took)).max(due)
}

fn set_try(span: &mut Span, graph: &Graph, at: &At) {
    span.text("node.id", at.node.as_str());
    span.number("visit", at.visit);
    if at.attempt != Attempt::NONE {
        span.number("attempt", at.attempt.number());
    }
    if let Some(step) = graph.node(&at.node).and_then(planctl_engine::Node::step) {
        span.number("step", step);
    }
}

fn add_usage(span: &mut Span, usage: &Usage) {
    span.number("gen_ai.usage.input_tokens", usage.input_tokens);
    span.number("gen_ai.usage.output_tokens", usage.output_tokens);
    if let Some(model) = &usage.model {
        span.text("gen_ai.response.model", model);
    }
    if let Some(micro_usd) = usage.micro_usd {
        span.attributes.push(("cost_usd", Value::Amount(planctl_api::wire::usd(micro_usd))));
        span.attributes.push(("cost_estimated", Value::Truth(usage.estimated)));
    }
}

fn add_evidence(span: &mut Span, evidence: &Evidence) {
    match &evidence.ending {
        Ending::Exited { code } => span.number("exit_code", *code),
        Ending::Signalled { signal } => span.number("signal", *signal),
        Ending::TimedOut => span.text("ending", "timed out"),
        Ending::OverLimit { .. } => span.text("ending", "over a limit"),
        Ending::NotRun => span.text("ending", "not run"),
    }
    span.text("isolation", &evidence.isolation.to_string());
    if !evidence.tampered.is_empty() {
        span.number("tampered_files", i64::try_from(evidence.tampered.len()).unwrap_or(i64::MAX));
    }
}
