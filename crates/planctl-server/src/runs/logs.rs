//! The attempts of a run: the reports of workers and the results of gates.

use std::collections::BTreeMap;

use planctl_api::wire::{
    AttemptView, GateView, JudgementView, LogView, ObservedView, Paged, SpentView, StepName, TestsView,
    WorkView, moment, usd,
};
use planctl_engine::{
    AgentEvent, AgentSaid, Attempt, Contract, Event, Evidence, Excerpt, Fact, Graph, HarnessResult, Node,
    Observation, Overrun, RehearsalResult, Report, RunId, Timestamp, Usage, Verdict,
};
use planctl_store::{Page, Said};

use crate::node::services::{ServiceError, Services};
use crate::runs::shown::step_named;
use crate::runs::words::{ending_words, evidence_words, exit_code, tampered, verdict_word};

impl Services {
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
        let row = self.store.run(run).await?;
        let graph = self.store.graph_of(&row).await?;
        let node = match step {
            Some(step) => Some(&step_named(&graph, &step.to_string(), &row.name)?.id),
            None => None,
        };
        // Attempts by their place in the order in which they began, which nothing that happens later changes.
        let mut attempts: BTreeMap<usize, AttemptView> = BTreeMap::new();
        let mut places: BTreeMap<(u32, u16), usize> = BTreeMap::new();
        let first = page.after.unwrap_or(0);
        let end = first.saturating_add(usize::try_from(page.limit).unwrap_or(0));
        let mut lines = self.history_of(run, node);
        while let Some(line) = lines.next().await? {
            let input = match &line.said {
                Said::Input(input) => input,
                Said::Fact(fact) => {
                    note_fact(fact, &graph, &places, &mut attempts);
                    continue;
                }
            };
            let Some(at) = input.event.at() else { continue };
            let Some((node, number)) = graph.node(&at.node).and_then(|node| Some((node, node.step()?)))
            else {
                continue;
            };
            let own_step = number;
            // A rehearsal, and the record for a judge, come before a try and are shown with it; so is what kept them from the first.
            let is_before = at.attempt == Attempt::NONE
                || matches!(&input.event, Event::Harness(event)
                    if matches!(event.found, HarnessResult::Rehearsed(_) | HarnessResult::Recorded { .. }));
            let number = if is_before { at.attempt.next() } else { at.attempt }.number();
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
                observed: None,
                late: Vec::new(),
            });
            self.add_event(entry, node, line.at, &input.event).await?;
        }
        for refused in self.store.refusals(run).await? {
            let Event::Agent(event) = &refused.event else { continue };
            let step = graph.node(&event.at.node).and_then(Node::step);
            let place = step.and_then(|step| places.get(&(step, event.at.attempt.number())));
            if let Some(entry) = place.and_then(|place| attempts.get_mut(place)) {
                entry.late.extend(self.work_view(refused.at, event).await?);
            }
        }
        let next = (places.len() > end).then(|| LogView::cursor(end));
        let attempts = attempts.into_values().collect();
        Ok(LogView { run: row.name, attempts, next })
    }

    /// Adds a worker's report or a gate's result to its attempt.
    async fn add_event(
        &self,
        entry: &mut AttemptView,
        node: &Node,
        at: Timestamp,
        event: &Event,
    ) -> Result<(), ServiceError> {
        match event {
            Event::Agent(event) => {
                if let AgentSaid::Reported(report) = &event.said {
                    entry.observed = report.observation.as_deref().map(|seen| observed_view(at, seen));
                }
                if let Some(work) = self.work_view(at, event).await? {
                    entry.work = Some(work);
                }
            }
            Event::Harness(event) => match &event.found {
                HarnessResult::Evidence(evidence) => {
                    if let Some(gated) = node.gated() {
                        entry.gate = Some(self.gate_view(at, gated.contract, evidence).await?);
                    }
                }
                HarnessResult::Rehearsed(evidence) => {
                    if let Some(contract) = node.gated().map(|gated| gated.contract) {
                        let mut seen = self.gate_view(at, contract, evidence).await?;
                        seen.verdict = contract
                            .rehearsal_result(evidence)
                            .map_or("red", RehearsalResult::as_str)
                            .to_owned();
                        entry.before.push(seen);
                    }
                }
                HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Merged { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(_) => {}
            },
            Event::Human(_) | Event::Clock(_) => {}
        }
        Ok(())
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
            denied: Vec::new(),
            cut_off: None,
            session: None,
        };
        Ok(match &event.said {
            AgentSaid::Reported(report) => Some(self.report_view(at, report, event.reported_usage()).await?),
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
        let told = report.circumstances.as_deref().cloned().unwrap_or_default();
        Ok(WorkView {
            denied: told.denied,
            cut_off: told.cut_off.map(|fault| fault.message),
            session: told.session,
            at: moment(at),
            ending: report.ending.map(ending_words),
            seconds: report.duration.as_secs_f64(),
            spent: used.map(|usage| SpentView {
                tokens: usage.tokens(),
                cached_tokens: Some(usage.cached_input_tokens),
                estimated_tokens: usage.tokens_estimated.then(|| usage.tokens()),
                usd: usd(usage.micro_usd.unwrap_or(0)),
                estimated_usd: usage.estimated.then(|| usd(usage.micro_usd.unwrap_or(0))),
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
            ending: evidence_words(evidence),
            exit_code: exit_code(evidence.ending),
            tests: evidence.tests.map(|tests| TestsView { passed: tests.passed, least: tests.least }),
            seconds: evidence.duration.as_secs_f64(),
            isolation: evidence.isolation.to_string(),
            git_head: evidence.git_head.clone(),
            tampered: tampered(&evidence.tampered),
            stdout: self.text_of(&evidence.stdout).await?,
            stdout_bytes: evidence.stdout.bytes,
            stderr: self.text_of(&evidence.stderr).await?,
            stderr_bytes: evidence.stderr.bytes,
            judgement: evidence.judgement.as_deref().map(|judgement| JudgementView {
                by: judgement.by.clone(),
                passes: judgement.passes,
                reason: judgement.reason.clone(),
                quotes: judgement.quotes.clone(),
                tokens: judgement.usage.as_ref().map(Usage::tokens),
                tokens_estimated: judgement.usage.as_ref().is_some_and(|usage| usage.tokens_estimated),
                usd: judgement.usage.as_ref().and_then(|usage| usage.micro_usd).map(usd),
            }),
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
}

/// Notes what a fact says of an attempt that is shown.
fn note_fact(
    fact: &Fact,
    graph: &Graph,
    places: &BTreeMap<(u32, u16), usize>,
    attempts: &mut BTreeMap<usize, AttemptView>,
) {
    if let Fact::NodeVerified { node, attempt, vacuous: true, .. } = fact
        && let Some(step) = graph.node(node).and_then(Node::step)
        && let Some(place) = places.get(&(step, attempt.number()))
        && let Some(attempt) = attempts.get_mut(place)
        && let Some(gate) = &mut attempt.gate
    {
        gate.vacuous = true;
    }
    if let Fact::NodeObserved { node, attempt, check, refuted, .. } = fact
        && let Some(step) = graph.node(node).and_then(Node::step)
        && let Some(place) = places.get(&(step, attempt.number()))
        && let Some(observed) = attempts.get_mut(place).and_then(|entry| entry.observed.as_mut())
    {
        observed.check = check.describe();
        observed.refuted.clone_from(refuted);
    }
}

/// Shows what was observed; the fact that follows from it says how it was judged.
fn observed_view(at: Timestamp, seen: &Observation) -> ObservedView {
    ObservedView {
        at: moment(at),
        check: String::new(),
        refuted: None,
        command: seen.command.clone(),
        exit_code: seen.exit_code,
        output: seen.output.clone(),
    }
}
