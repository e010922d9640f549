//! The model's rules: the effect of each event, in the order in which the design tells it.

mod clock;
mod harness;

use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, AskKind, At, Budget, ClockEvent, Event, FaultKind, Graph, HarnessResult, Hints,
    Level, NodeId, Observation, Outcome, Report, Signal, Timestamp,
};

use super::journal::Entry;
use super::{Knowledge, Model, NodePosition, Status};
use crate::plans::SEEN;

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
                | ClockEvent::SetAside { .. }
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
        if !matches!(self.place(node), NodePosition::WithAgent | NodePosition::Resting) {
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
                    self.put(node, NodePosition::WithHarness { gave_up: report.gave_up });
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
                self.interrupted(node, NodePosition::WithAgent);
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

    /// Lets the run go on: from the start, or where it stopped.
    fn activate(&mut self, resumed: bool) -> Fits {
        self.status = Status::Active;
        self.stale_timer = self.graph.limits().stale_after.map(|limit| time_after(self.now, limit));
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
        for stop in &stops {
            self.dead_end = Some(stop.clone());
            self.take_up_at(stop);
        }
        for stop in &stops {
            self.go_on_beside(stop);
            for (fork, ..) in self.around(stop) {
                self.go_on_beside(&fork);
            }
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

pub(super) fn time_after(from: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_micros(from.as_micros() + i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 4))
}
