//! The model's rules: the effect of each event, in the order in which the design tells it.

use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, AskKind, At, Budget, ChildEnd, ClockEvent, Contract, Digest, End, Ending, Event,
    Evidence, FaultKind, Graph, HarnessEvent, HarnessResult, Hints, Inconclusive, Judge, Level, NodeId,
    NodeKind, Observation, Outcome, RedFirst, RehearsalResult, Report, Signal, TimerId, Timestamp,
};

use crate::plans::SEEN;

use super::journal::{Entry, elapsed};
use super::verbs::evaluation;
use super::{Before, Knowledge, Model, Place, Status};

/// Says whether an output shows what steps of the simulation are to show.
fn shows(seen: &Observation) -> bool {
    matches!(seen.exit_code, None | Some(0)) && seen.output.to_lowercase().contains(SEEN)
}

/// The event does not fit.
pub(super) struct No;

pub(super) type Fits = Result<(), No>;

impl Model {
    /// Hears an event: returns what followed, in words, or `None` where the event does not fit, which changes nothing.
    ///
    /// A revision comes with its graph.
    pub fn hear(&mut self, event: &Event, revision: Option<&Graph>, now: Timestamp) -> Option<Vec<String>> {
        let so_far = std::mem::take(&mut self.so_far);
        let mut next = Model { so_far, ..self.clone() };
        next.now = now;
        next.tellings.clear();
        next.beyond.clear();
        next.open.clear();
        (next.replayed, next.dead_end) = (None, None);
        let heard = match event {
            Event::Agent(event) => next.agent_said(event),
            Event::Harness(event) => next.harness_found(event),
            Event::Human(event) => next.human_decided(event, revision),
            Event::Clock(event) => next.time_passed(event),
        };
        heard.ok()?;
        next.walk_on();
        next.close(event, self.budget);
        next.so_far.clear();
        *self = next;
        Some(self.tellings.clone())
    }

    fn close(&mut self, event: &Event, before: Budget) {
        let is_running =
            self.status == Status::Active && self.out().iter().any(|node| !self.child_waits(node));
        let is_progress = match event {
            Event::Agent(event) => match event.said {
                AgentSaid::Reported(_) | AgentSaid::Asked { .. } | AgentSaid::Overran { .. } => true,
                AgentSaid::Faulted(_) | AgentSaid::Released => false,
            },
            Event::Harness(event) => !matches!(event.found, HarnessResult::Nothing(_)),
            Event::Human(_) => true,
            Event::Clock(ClockEvent::Admitted | ClockEvent::Overran { .. }) => true,
            Event::Clock(
                ClockEvent::Due { .. }
                | ClockEvent::LeaseLost { .. }
                | ClockEvent::Metered
                | ClockEvent::DaySpent { .. }
                | ClockEvent::DayAllows { .. }
                | ClockEvent::Unattended { .. },
            ) => false,
        };
        let ran_before = self.heard().next_back().is_some_and(|(_, was_running, _)| was_running);
        self.journal.push(Entry::Heard { at: self.now, is_running, is_progress });
        if !is_running {
            self.budget_timer = None;
        } else if !ran_before || self.budget.time != before.time {
            self.budget_timer = self.budget_ends().or(self.budget_timer);
        }
        if self.status == Status::Active && self.is_mostly_used() && !self.is_noticed() {
            self.journal.push(Entry::Noticed);
            self.tell("budget noticed".to_owned());
        }
    }

    fn agent_said(&mut self, event: &AgentEvent) -> Fits {
        self.check_try(&event.at)?;
        let node = &event.at.node;
        self.graph.task(node).ok_or(No)?;
        if !matches!(self.place(node), Place::WithAgent | Place::Resting) {
            return Err(No);
        }
        let used = event.said.usage().or(event.noted.as_ref());
        match &event.said {
            AgentSaid::Reported(report) => {
                self.charge(node, used, report.duration);
                self.hear_hints(node, report.hints.as_deref());
                let proposal = report.hints.as_ref().and_then(|hints| hints.insert_step.as_ref());
                if proposal.is_some_and(|text| !text.trim().is_empty()) {
                    let gave_up = Some(report.gave_up);
                    self.journal.push(Entry::Proposed { node: node.clone(), gave_up });
                    self.ask(node, AskKind::Insertion, "proposed");
                } else if self.is_confirmed(node) {
                    self.looked_at(node, report);
                } else {
                    self.put(node, Place::WithHarness { gave_up: report.gave_up });
                }
            }
            AgentSaid::Asked { .. } => {
                self.charge(node, used, Duration::ZERO);
                self.ask(node, AskKind::Question, "asked");
            }
            AgentSaid::Overran { duration, .. } => {
                self.charge(node, used, *duration);
                self.attempt_failed(node, "overran", false);
            }
            AgentSaid::Faulted(fault) => {
                self.charge_told(node, used);
                match fault.kind {
                    FaultKind::Transient => self.delivery_lost(node),
                    FaultKind::Permission => {
                        self.tell_next(node, Some(self.attempt(node)));
                        self.escalate(node, "permission", Level::Primary);
                    }
                    FaultKind::Permanent => {
                        self.tell_next(node, Some(self.attempt(node)));
                        self.escalate(node, "undelivered", Level::Primary);
                    }
                }
            }
            AgentSaid::Released => {
                self.charge_told(node, used);
                self.interrupted(node, Place::WithAgent);
            }
        }
        Ok(())
    }

    /// Says whether a step has no contract: what was seen of it, or a person, decides.
    pub(super) fn is_confirmed(&self, node: &NodeId) -> bool {
        self.graph.node(node).is_some_and(|node| node.confirmation.is_some())
    }

    /// Decides about a step by what its worker's program reported; where it reported nothing, a person does.
    fn looked_at(&mut self, node: &NodeId, report: &Report) {
        let Some(seen) = report.observation.as_deref() else {
            return self.ask(node, AskKind::Choice, "planned");
        };
        let holds = shows(seen);
        let word = if holds { "passed" } else { "failed" };
        self.tell(format!("observed {node}#{} {word}", self.attempt(node)));
        if holds {
            self.settle(node, Outcome::Passed);
            self.leave(node, Signal::Success);
        } else {
            // The first reason counts, and an output without a code is judged like one of a command that did not fail.
            let has_failed = seen.exit_code.is_some_and(|code| code != 0);
            let how = format!("unobserved {has_failed} {}", seen.output);
            self.attempt_failed(node, &how, report.gave_up);
        }
    }

    /// Takes over what a worker says of the way on, but for the names that are ours.
    fn hear_hints(&mut self, node: &NodeId, hints: Option<&Hints>) {
        let known = hints.map(|hints| Knowledge {
            label: hints.label.clone(),
            suggested: hints.suggested.clone(),
            ..Knowledge::default()
        });
        if known.is_some() || self.known(node).is_some() {
            self.journal.push(Entry::Known { node: node.clone(), known });
        }
        let mut context = self.context(node);
        let mut refused = Vec::new();
        for (name, value) in hints.iter().flat_map(|hints| &hints.context) {
            if is_ours(name) {
                refused.push(name.as_str());
            } else {
                context.insert(name.clone(), value.clone());
            }
        }
        if !refused.is_empty() {
            self.tell(format!("not noted {node} {}", refused.join(" ")));
        }
        self.set_context(node, context);
    }

    fn harness_found(&mut self, event: &HarnessEvent) -> Fits {
        self.check_try(&event.at)?;
        let node = &event.at.node;
        match (&event.found, self.place(node)) {
            (HarnessResult::Evidence(evidence), Place::WithHarness { gave_up }) => {
                self.evaluated(node, evidence, gave_up)
            }
            (HarnessResult::Rehearsed(evidence), Place::Rehearsed) => self.rehearsed(node, evidence),
            (HarnessResult::Recorded { .. }, Place::Rehearsed) if self.red_first(node) == RedFirst::Off => {
                let known = Before::Kept(self.contract(node).ok_or(No)?.digest);
                self.journal.push(Entry::Before { node: node.clone(), known });
                self.begin(node);
                Ok(())
            }
            (HarnessResult::Recorded { name }, Place::Saved { restores: false }) => {
                self.journal.push(Entry::Saved { node: node.clone(), name: name.clone() });
                self.tell(format!("saved {node}"));
                self.put(node, Place::Over(Outcome::Passed));
                self.leave(node, Signal::Success);
                Ok(())
            }
            (HarnessResult::Restored, Place::Saved { restores: true }) => {
                self.tell(format!("restored {node}"));
                self.put(node, Place::Over(Outcome::Passed));
                self.leave(node, Signal::Success);
                Ok(())
            }
            (HarnessResult::Forked { base }, Place::Forking { merges: false }) => {
                self.journal.push(Entry::Saved { node: node.clone(), name: base.clone() });
                self.tell(format!("parted {node}"));
                self.spread(node);
                Ok(())
            }
            (HarnessResult::Merged { files, .. }, Place::Forking { merges: true }) => {
                let outcome = self.merging(node).ok_or(No)?;
                self.tell(format!("merged {node} {files}"));
                self.tell_next(node, None);
                self.journal.push(Entry::Merging { node: node.clone(), outcome: None });
                self.end_join(node, outcome);
                Ok(())
            }
            (HarnessResult::Conflicted(_), Place::Forking { merges: true }) => {
                self.tell(format!("conflicted {node}"));
                self.ask(node, AskKind::Escalation, "conflict");
                Ok(())
            }
            (HarnessResult::Begun { run, budget, waits }, Place::Within) => {
                self.promise_what_a_run_may_use(node, *budget);
                if self.child(node) != Some(*run) {
                    self.tell(format!("began {node}"));
                }
                self.journal.push(Entry::Child { node: node.clone(), run: *run, waits: *waits });
                Ok(())
            }
            (HarnessResult::Ended(child), Place::Within) => {
                self.child_ended(node, child);
                Ok(())
            }
            (
                HarnessResult::Nothing(why),
                place @ (Place::Rehearsed
                | Place::Saved { .. }
                | Place::Forking { .. }
                | Place::Within
                | Place::WithHarness { .. }),
            ) => {
                match why {
                    Inconclusive::Interrupted => self.interrupted(node, place),
                    Inconclusive::ToolMissing { .. } | Inconclusive::Unstable { .. } => {
                        self.told_nothing(node, &place);
                    }
                    Inconclusive::Unjudged { usage, .. } => {
                        self.charge_judge(node, usage.as_ref());
                        self.told_nothing(node, &place);
                    }
                    Inconclusive::Unapproved { prompt } => {
                        let Place::WithHarness { gave_up } = place else { return Err(No) };
                        self.judge_of(node).filter(|judge| judge.approval).ok_or(No)?;
                        self.journal.push(Entry::Proposed { node: node.clone(), gave_up: Some(gave_up) });
                        self.journal
                            .push(Entry::Prompted { node: node.clone(), prompt: prompt.digest.clone() });
                        self.ask(node, AskKind::Prompt, "prompt");
                    }
                    Inconclusive::Unfunded { estimate } => {
                        let Place::WithHarness { gave_up } = place else { return Err(No) };
                        self.judge_of(node).ok_or(No)?;
                        if self.can_pay(estimate.tokens, estimate.micro_usd) {
                            self.told_nothing(node, &place);
                        } else {
                            self.journal.push(Entry::Proposed { node: node.clone(), gave_up: Some(gave_up) });
                            self.ask(node, AskKind::Budget, "budget");
                        }
                    }
                }
                Ok(())
            }
            (
                HarnessResult::Evidence(_)
                | HarnessResult::Rehearsed(_)
                | HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Merged { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(_),
                _,
            ) => Err(No),
        }
    }

    fn judge_of(&self, node: &NodeId) -> Option<Judge> {
        self.contract(node)?.judge.map(|judge| *judge)
    }

    fn evaluated(&mut self, node: &NodeId, evidence: &Evidence, gave_up: bool) -> Fits {
        let contract = self.contract(node).ok_or(No)?;
        let verdict = verdict(&contract, evidence).ok_or(No)?;
        let judgement = evidence.judgement.as_deref();
        let verdict = match (verdict, &contract.judge) {
            ("passed", Some(judge)) => {
                let answer = judgement.filter(|answer| answer.question == judge.digest).ok_or(No)?;
                let approved = self.prompt(node).filter(|(_, is_approved)| *is_approved);
                if judge.approval && approved.map(|(prompt, _)| prompt) != answer.prompt {
                    return Err(No);
                }
                if judge.approval && answer.prompt.is_none() {
                    return Err(No);
                }
                if answer.passes { "passed" } else { "failed" }
            }
            (verdict, _) => verdict,
        };
        self.charge_judge(node, judgement.and_then(|judgement| judgement.usage.as_ref()));
        if self.graph.is_watched(node) {
            let code = if let Ending::Exited { code } = evidence.ending { Some(code) } else { None };
            let output = Some(evidence.stdout.tail.trim().to_owned());
            let known = self.known(node).unwrap_or_default();
            let known = Some(Knowledge { exit_code: code, output, ..known });
            self.journal.push(Entry::Known { node: node.clone(), known });
        }
        if matches!(self.kind(node), NodeKind::Call(_)) && self.graph.conditions_ask_for("tool.") {
            let mut context = self.context(node);
            let code =
                if let Ending::Exited { code } = evidence.ending { code.to_string() } else { String::new() };
            context.insert("tool.exit_code".to_owned(), code);
            context.insert("tool.output".to_owned(), evidence.stdout.tail.trim().to_owned());
            self.set_context(node, context);
        }
        let is_answer = matches!(evidence.ending, Ending::Exited { .. }) && verdict != "tampered";
        if is_answer && matches!(self.kind(node), NodeKind::Decision(_)) {
            let is_met = verdict == "passed";
            self.tell(format!("decided {node} {is_met}"));
            self.put(node, Place::Over(Outcome::Passed));
            self.leave(node, if is_met { Signal::Success } else { Signal::Exhausted });
            return Ok(());
        }
        let was_green = matches!(self.before(node), Before::Showed(_, RehearsalResult::Green));
        let vacuous = if was_green && verdict == "passed" { " vacuous" } else { "" };
        self.tell(format!("verified {node}#{} {verdict}{vacuous}", self.attempt(node)));
        if verdict == "passed" {
            self.settle(node, Outcome::Passed);
            self.leave(node, Signal::Success);
        } else {
            let printed: String =
                [&evidence.stdout.tail, &evidence.stderr.tail].map(String::as_str).join("|");
            let words: String = printed.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            let how = match judgement {
                Some(_) => format!("judged {words}"),
                None => format!("{verdict} {:?} {words}", evidence.ending),
            };
            self.attempt_failed(node, &how, gave_up);
        }
        Ok(())
    }

    /// Goes on from a plan within the plan as its run ended, and counts what that used.
    fn child_ended(&mut self, node: &NodeId, child: &ChildEnd) {
        let spent = &child.spent;
        self.journal.push(Entry::ChildCharged {
            tokens: spent.tokens,
            micro_usd: spent.micro_usd,
            metered: spent.metered as usize,
            unmetered: spent.unmetered as usize,
        });
        self.journal.push(Entry::Child { node: node.clone(), run: child.run, waits: false });
        self.tell(format!("ended {node} {:?}", child.end));
        let NodeKind::SubPlan(plan) = self.kind(node) else { return };
        let is_met = plan.until.is_none_or(|until| self.is_true_at(node, &until));
        if child.end == End::Done && is_met {
            self.settle(node, Outcome::Passed);
            self.leave(node, Signal::Success);
        } else if child.end == End::Done && self.failed(node) + 1 < usize::from(plan.cycles) {
            self.journal.push(Entry::Failed { node: node.clone() });
            self.tell(format!("retry {node}#{}", self.attempt(node) + 1));
            self.begin(node);
        } else {
            self.journal.push(Entry::Failed { node: node.clone() });
            self.tell_next(node, Some(self.attempt(node)));
            self.exhausted(node, Some(&format!("{:?}", child.end)));
        }
    }

    fn rehearsed(&mut self, node: &NodeId, evidence: &Evidence) -> Fits {
        let contract = self.contract(node).ok_or(No)?;
        let showed = match verdict(&contract, evidence).ok_or(No)? {
            "passed" => RehearsalResult::Green,
            "tampered" => RehearsalResult::Tampered,
            _ => RehearsalResult::Red,
        };
        self.tell(format!("rehearsed {node} {}", showed.word()));
        let known = Before::Showed(contract.digest, showed);
        self.journal.push(Entry::Before { node: node.clone(), known });
        if self.awaits_rehearsal(node) {
            self.ask(node, AskKind::Escalation, "not_red");
        } else {
            self.begin(node);
        }
        Ok(())
    }

    fn told_nothing(&mut self, node: &NodeId, place: &Place) {
        self.journal.push(Entry::Repeated { node: node.clone() });
        if self.repeats(node) < usize::from(self.graph.limits().repeats) {
            self.tell(format!("{} repeated {node}#{}", evaluation(place), self.attempt(node)));
            return;
        }
        // A worker is told of attempts alone, and nothing else that is evaluated is one.
        if matches!(place, Place::WithHarness { .. }) {
            self.tell_next(node, Some(self.attempt(node)));
        }
        self.ask(node, AskKind::Escalation, "inconclusive");
    }

    fn time_passed(&mut self, event: &ClockEvent) -> Fits {
        match event {
            ClockEvent::Admitted => {
                self.must_be(&[Status::Queued, Status::Requeued])?;
                self.activate(self.status == Status::Requeued)
            }
            ClockEvent::Due { timer: TimerId::Answer(node) } => self.unanswered(node),
            ClockEvent::Due { timer: TimerId::Stale } => self.stood_still(),
            ClockEvent::Due { timer: TimerId::Budget } => {
                self.must_be(&[Status::Active])?;
                self.budget_timer = None;
                let was_running = self.heard().next_back().is_some_and(|(_, was_running, _)| was_running);
                if !self.stop_overspending() && was_running {
                    self.budget_timer = self.budget_ends();
                }
                Ok(())
            }
            ClockEvent::Metered => {
                self.must_be(&[Status::Active])?;
                if self.stop_overspending() { Ok(()) } else { Err(No) }
            }
            ClockEvent::DaySpent { at, .. } => {
                self.must_be(&[Status::Active])?;
                self.check_try(at)?;
                if !matches!(self.place(&at.node), Place::WithAgent | Place::Resting) {
                    return Err(No);
                }
                self.charge_so_far(&at.node);
                self.ask(&at.node, AskKind::Day, "day");
                Ok(())
            }
            ClockEvent::DayAllows { node } => {
                self.must_be(&[Status::Active])?;
                if !matches!(self.place(node), Place::WithPerson(AskKind::Day, _)) {
                    return Err(No);
                }
                self.tell(format!("answered {node} continue"));
                self.put(node, Place::Nowhere);
                self.begin(node);
                Ok(())
            }
            ClockEvent::Unattended { since } => {
                self.must_be(&[Status::Active])?;
                let (heard, was_running, _) = self.heard().next_back().ok_or(No)?;
                let from = heard.max(*since);
                if !was_running || from >= self.now {
                    return Err(No);
                }
                self.journal.push(Entry::Unattended { time: elapsed(from, self.now) });
                self.budget_timer = self.budget_ends().or(self.budget_timer);
                Ok(())
            }
            ClockEvent::LeaseLost { at, interrupted, noted } => {
                self.check_try(at)?;
                match self.place(&at.node) {
                    Place::WithAgent | Place::Resting => {
                        self.charge_told(&at.node, noted.as_ref());
                        if *interrupted {
                            self.interrupted(&at.node, Place::WithAgent);
                        } else {
                            self.delivery_lost(&at.node);
                        }
                    }
                    place @ (Place::Rehearsed
                    | Place::Saved { .. }
                    | Place::Forking { .. }
                    | Place::Within
                    | Place::WithHarness { .. }) => {
                        self.interrupted(&at.node, place);
                    }
                    Place::Nowhere | Place::InLine | Place::WithPerson(..) | Place::Over(_) => {
                        return Err(No);
                    }
                }
                Ok(())
            }
            ClockEvent::Overran { at, noted } => {
                self.check_try(at)?;
                if !matches!(self.place(&at.node), Place::WithAgent | Place::Resting) {
                    return Err(No);
                }
                let deadline = self.deadline(&at.node).ok_or(No)?;
                self.charge(&at.node, noted.as_ref(), deadline);
                self.attempt_failed(&at.node, "overran", false);
                Ok(())
            }
        }
    }

    /// Stops all who work once more is used than is allowed, with what they said so far; says whether it is (P-73).
    fn stop_overspending(&mut self) -> bool {
        let at_work =
            |model: &Model, node: &NodeId| matches!(model.place(node), Place::WithAgent | Place::Resting);
        let working: Vec<NodeId> = self.out().into_iter().filter(|node| at_work(self, node)).collect();
        if working.is_empty() || !self.overspends(&working) {
            return false;
        }
        for node in &working {
            self.charge_so_far(node);
        }
        for node in &working {
            self.ask(node, AskKind::Budget, "budget");
        }
        true
    }

    fn stood_still(&mut self) -> Fits {
        self.must_be(&[Status::Active])?;
        let limit = self.graph.limits().stale_after.ok_or(No)?;
        let moved_at = self.moved_at().ok_or(No)?;
        if self.out().is_empty() {
            self.stale_timer = Some(later(self.now, limit));
            return Ok(());
        }
        if elapsed(moved_at, self.now) < limit {
            self.stale_timer = Some(later(moved_at, limit));
            return Ok(());
        }
        self.stale_timer = Some(later(self.now, limit));
        // A run within this one has a limit of its own.
        if self.out().iter().any(|node| self.place(node) == Place::Within) {
            return Ok(());
        }
        self.tell("expired".to_owned());
        for node in self.out() {
            if matches!(self.place(&node), Place::WithAgent | Place::Resting) {
                self.charge_so_far(&node);
                self.escalate(&node, "stale", Level::Primary);
            } else {
                self.ask(&node, AskKind::Escalation, "stale");
            }
        }
        Ok(())
    }

    /// Lets the answer count that the plan declares for the case that nobody gives one.
    fn unanswered(&mut self, node: &NodeId) -> Fits {
        self.must_be(&[Status::Active])?;
        let NodeKind::Human(question) = self.kind(node) else { return Err(No) };
        let default = question.default.ok_or(No)?;
        if !matches!(self.place(node), Place::WithPerson(AskKind::Choice, _)) {
            return Err(No);
        }
        self.tell(format!("answered {node} choose"));
        self.chosen(node, &default.answer);
        Ok(())
    }

    /// Lets the run go on: from the start, or where it stopped.
    fn activate(&mut self, resumed: bool) -> Fits {
        self.status = Status::Active;
        self.stale_timer = self.graph.limits().stale_after.map(|limit| later(self.now, limit));
        self.tell(format!("activated {}", if resumed { "again" } else { "first" }));
        let start = self.graph.start().clone();
        if !resumed {
            self.settle(&start, Outcome::Passed);
            self.leave(&start, Signal::Success);
            return Ok(());
        }
        let stops = std::mem::take(&mut self.stopped_at);
        let stops: Vec<NodeId> = stops.into_iter().filter(|node| self.graph.node(node).is_some()).collect();
        if stops.is_empty() {
            self.replayed = Some(Vec::new());
            self.leave(&start, Signal::Success);
        }
        for stop in stops {
            self.dead_end = Some(stop.clone());
            self.revive(&stop);
        }
        Ok(())
    }

    /// Checks that the run goes on and the event speaks of the newest try at a node.
    fn check_try(&self, at: &At) -> Fits {
        self.must_be(&[Status::Active])?;
        self.graph.node(&at.node).ok_or(No)?;
        let is_newest = usize::from(at.attempt.number()) == self.attempt(&at.node)
            && usize::from(at.visit) == self.visits(&at.node);
        if is_newest { Ok(()) } else { Err(No) }
    }

    pub(super) fn must_be(&self, any_of: &[Status]) -> Fits {
        if any_of.contains(&self.status) { Ok(()) } else { Err(No) }
    }
}

/// Says whether a name is one of those that a run's context has by itself.
fn is_ours(name: &str) -> bool {
    let name = name.trim_start_matches("context.");
    let own = ["outcome", "preferred_label", "current_node", "last_stage", "last_response", "exit_code"];
    let families = ["internal.", "graph.", "parallel.", "human.", "tool.", "stack.", "retry.", "failure_"];
    own.contains(&name) || families.iter().any(|family| name.starts_with(family))
}

/// The verdict by the prose: other contract, no verdict; protected file changed, tampered; only the expected exit passes.
fn verdict(contract: &Contract, evidence: &Evidence) -> Option<&'static str> {
    let same: &Digest = &contract.digest;
    if *same != evidence.contract {
        return None;
    }
    Some(match evidence.ending {
        _ if !evidence.tampered.is_empty() => "tampered",
        Ending::TimedOut => "timed out",
        Ending::Exited { code } if code == i32::from(contract.expect) => "passed",
        Ending::Exited { .. } | Ending::Signalled { .. } | Ending::OverLimit { .. } | Ending::NotRun => {
            "failed"
        }
    })
}

pub(super) fn later(from: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_micros(from.as_micros() + i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 4))
}
