//! The model's rules: what each event does, in the order in which the design tells it.

use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, Answer, AskKind, At, Budget, ClockEvent, Contract, Decision, Digest, Ending,
    Event, Evidence, FaultKind, Found, Graph, HarnessEvent, HumanEvent, Inconclusive, ItemId, Level, NodeId,
    On, Outcome, Role, Showing, TimerId, Timestamp,
};

use super::journal::{Entry, elapsed};
use super::money::{carried_over, raised};
use super::{Before, Model, Place, Status};

/// The event does not fit.
pub(super) struct No;

pub(super) type Fits = Result<(), No>;

impl Model {
    /// Hears an event: returns what followed, in words, or `None` where the event does not fit, which changes nothing.
    ///
    /// A revision comes with its graph.
    pub fn hear(&mut self, event: &Event, revision: Option<&Graph>, now: Timestamp) -> Option<Vec<String>> {
        let mut next = self.clone();
        next.now = now;
        next.tellings.clear();
        next.beyond.clear();
        let heard = match event {
            Event::Agent(event) => next.agent_said(event),
            Event::Harness(event) => next.harness_found(event),
            Event::Human(event) => next.human_decided(event, revision),
            Event::Clock(event) => next.time_passed(event),
        };
        heard.ok()?;
        next.close(event);
        *self = next;
        Some(self.tellings.clone())
    }

    fn close(&mut self, event: &Event) {
        let is_running = self.status == Status::Active && self.node_out().is_some();
        let is_progress = match event {
            Event::Agent(event) => match event.said {
                AgentSaid::Reported(_) | AgentSaid::Asked { .. } | AgentSaid::Overran { .. } => true,
                AgentSaid::Faulted(_) | AgentSaid::Released => false,
            },
            Event::Harness(event) => !matches!(event.found, Found::Nothing(_)),
            Event::Human(_) => true,
            Event::Clock(ClockEvent::Admitted | ClockEvent::Overran { .. }) => true,
            Event::Clock(ClockEvent::Due { .. } | ClockEvent::LeaseLost { .. }) => false,
        };
        self.journal.push(Entry::Heard { at: self.now, is_running, is_progress });
        if self.status == Status::Active && self.is_mostly_used() && !self.is_noticed() {
            self.journal.push(Entry::Noticed);
            self.tell("budget noticed".to_owned());
        }
    }

    fn agent_said(&mut self, event: &AgentEvent) -> Fits {
        self.check_try(&event.at)?;
        let node = &event.at.node;
        if !matches!(self.place(node), Place::WithAgent | Place::Resting) {
            return Err(No);
        }
        match &event.said {
            AgentSaid::Reported(report) => {
                self.charge(node, report.usage.as_ref(), report.duration);
                self.put(node, Place::WithHarness { gave_up: report.gave_up });
            }
            AgentSaid::Asked { usage, .. } => {
                self.charge(node, usage.as_ref(), Duration::ZERO);
                self.ask(node, AskKind::Question, "asked");
            }
            AgentSaid::Overran { duration, usage } => {
                self.charge(node, usage.as_ref(), *duration);
                self.attempt_failed(node, false);
            }
            AgentSaid::Faulted(fault) => match fault.kind {
                FaultKind::Transient => self.delivery_lost(node),
                FaultKind::Permission => {
                    self.tell_next(node, Some(self.attempt(node)));
                    self.escalate(node, "permission", Level::Primary);
                }
            },
            AgentSaid::Released => self.interrupted(node, Place::WithAgent),
        }
        Ok(())
    }

    fn harness_found(&mut self, event: &HarnessEvent) -> Fits {
        self.check_try(&event.at)?;
        let node = &event.at.node;
        let place = self.place(node);
        let contract = self.graph.task(node).ok_or(No)?.contract.clone();
        match (&event.found, place) {
            (Found::Evidence(evidence), Place::WithHarness { gave_up }) => {
                let verdict = verdict(&contract, evidence).ok_or(No)?;
                let was_green = matches!(self.before(node), Before::Showed(_, Showing::Green));
                let vacuous = if was_green && verdict == "passed" { " vacuous" } else { "" };
                self.tell(format!("verified {node}#{} {verdict}{vacuous}", self.attempt(node)));
                if verdict == "passed" {
                    self.settle(node, Outcome::Passed);
                    self.leave(node);
                } else {
                    self.attempt_failed(node, gave_up);
                }
            }
            (Found::Rehearsed(evidence), Place::Rehearsed) => {
                let showed = match verdict(&contract, evidence).ok_or(No)? {
                    "passed" => Showing::Green,
                    "tampered" => Showing::Tampered,
                    _ => Showing::Red,
                };
                self.tell(format!("rehearsed {node} {}", showed.word()));
                let known = Before::Showed(contract.digest, showed);
                self.journal.push(Entry::Before { node: node.clone(), known });
                if self.awaits_rehearsal(node) {
                    self.ask(node, AskKind::Escalation, "not_red");
                } else {
                    self.begin(node);
                }
            }
            (
                Found::Nothing(Inconclusive::Interrupted),
                place @ (Place::Rehearsed | Place::WithHarness { .. }),
            ) => {
                self.interrupted(node, place);
            }
            (Found::Nothing(_), place @ (Place::Rehearsed | Place::WithHarness { .. })) => {
                self.journal.push(Entry::Repeated { node: node.clone() });
                if self.repeats(node) < usize::from(self.graph.limits().repeats) {
                    let what = if place == Place::Rehearsed { "rehearsal" } else { "gate" };
                    self.tell(format!("{what} repeated {node}#{}", self.attempt(node)));
                    return Ok(());
                }
                // A worker is told of attempts alone, and a rehearsal is of none.
                if place != Place::Rehearsed {
                    self.tell_next(node, Some(self.attempt(node)));
                }
                self.ask(node, AskKind::Escalation, "inconclusive");
            }
            (Found::Recorded { .. } | Found::Restored, _) => return Err(No),
            (Found::Evidence(_) | Found::Rehearsed(_) | Found::Nothing(_), _) => return Err(No),
        }
        Ok(())
    }

    fn human_decided(&mut self, event: &HumanEvent, revision: Option<&Graph>) -> Fits {
        match &event.decision {
            Decision::Submit => {
                self.must_be(&[Status::New])?;
                self.status = Status::Awaiting;
                self.ask(&self.graph.start().clone(), AskKind::Plan, "submitted");
                Ok(())
            }
            Decision::Answer { item, answer } => self.answered(event, item, answer),
            Decision::Cancel => {
                if matches!(self.status, Status::Done | Status::Failed | Status::Aborted | Status::Cancelled)
                {
                    return Err(No);
                }
                if let Some(node) = self.node_live() {
                    self.put(&node, Place::Nowhere);
                }
                self.end(Status::Cancelled, None);
                self.tell("cancelled".to_owned());
                Ok(())
            }
            Decision::Resume => {
                self.must_be(&[Status::Failed, Status::Aborted])?;
                self.status = Status::Requeued;
                Ok(())
            }
            Decision::Revise { changed, .. } => {
                self.must_be(&[Status::Paused])?;
                let is_met =
                    |id: &NodeId| matches!(self.settled(id), Some(outcome) if outcome != Outcome::Failed);
                if changed.iter().any(is_met) {
                    return Err(No);
                }
                if let Some(graph) = revision {
                    self.graph = std::sync::Arc::new(graph.clone());
                }
                self.budget = carried_over(self.graph.budget(), self.budget);
                self.journal.push(Entry::Unnoticed);
                self.status = Status::Requeued;
                Ok(())
            }
        }
    }

    fn answered(&mut self, event: &HumanEvent, item: &ItemId, answer: &Answer) -> Fits {
        let node = self.node_live().ok_or(No)?;
        let Place::WithPerson(kind, open) = self.place(&node) else { return Err(No) };
        if open != *item {
            return Err(No);
        }
        self.must_be(&[if kind == AskKind::Plan { Status::Awaiting } else { Status::Active }])?;
        let fits = match answer {
            Answer::Approve | Answer::Reject => kind == AskKind::Plan,
            Answer::Retry => kind == AskKind::Escalation,
            Answer::Reply => kind == AskKind::Question,
            Answer::Raise { .. } => kind == AskKind::Budget,
            Answer::Choose { .. } => kind == AskKind::Choice,
            Answer::Abort => kind != AskKind::Plan,
            Answer::Skip | Answer::Waive | Answer::Revise | Answer::Reassign { .. } => {
                matches!(kind, AskKind::Escalation | AskKind::Question)
            }
        };
        let has_note = event.note.as_ref().is_some_and(|note| !note.trim().is_empty());
        let needs_note = matches!(answer, Answer::Skip | Answer::Waive | Answer::Reply);
        if !fits || (needs_note && !has_note) {
            return Err(No);
        }
        self.tell(format!("answered {node} {}", answer_word(answer)));
        self.put(&node, Place::Nowhere);
        self.carry_out(event, &node, answer)
    }

    fn carry_out(&mut self, event: &HumanEvent, node: &NodeId, answer: &Answer) -> Fits {
        match answer {
            Answer::Approve => self.status = Status::Queued,
            Answer::Reject => {
                self.end(Status::Cancelled, None);
                self.tell("cancelled".to_owned());
            }
            Answer::Retry => self.grant(event, node, None),
            Answer::Reassign { role } => self.grant(event, node, Some(role)),
            Answer::Reply => {
                self.note_down(event, node);
                self.begin(node);
            }
            Answer::Skip | Answer::Waive => {
                let outcome = if *answer == Answer::Skip { Outcome::Skipped } else { Outcome::Waived };
                self.settle(node, outcome);
                self.leave(node);
            }
            Answer::Abort => {
                self.settle(node, Outcome::Failed);
                self.end(Status::Aborted, Some(node));
                self.tell(format!("failed at {node}"));
            }
            Answer::Revise => {
                self.end(Status::Paused, Some(node));
                self.tell(format!("paused at {node}"));
            }
            Answer::Choose { .. } => return Err(No),
            Answer::Raise { by } => self.raise(node, *by)?,
        }
        Ok(())
    }

    fn grant(&mut self, event: &HumanEvent, node: &NodeId, role: Option<&Role>) {
        self.note_down(event, node);
        // Before the work nothing of the allowance is used; what is tried again is the rehearsal.
        if !self.awaits_rehearsal(node) {
            self.journal.push(Entry::Granted { node: node.clone() });
        }
        if let Some(role) = role {
            self.journal.push(Entry::Reassigned { node: node.clone(), role: role.clone() });
        }
        self.begin(node);
    }

    fn raise(&mut self, node: &NodeId, by: Budget) -> Fits {
        let budget = raised(self.budget, by);
        if budget == self.budget {
            return Err(No);
        }
        self.budget = budget;
        self.journal.push(Entry::Unnoticed);
        self.begin(node);
        Ok(())
    }

    fn time_passed(&mut self, event: &ClockEvent) -> Fits {
        match event {
            ClockEvent::Admitted => {
                self.must_be(&[Status::Queued, Status::Requeued])?;
                self.activate(self.status == Status::Requeued)
            }
            ClockEvent::Due { timer: TimerId::Answer(_) } => Err(No),
            ClockEvent::Due { timer: TimerId::Stale } => self.stood_still(),
            ClockEvent::LeaseLost { at, interrupted } => {
                self.check_try(at)?;
                match self.place(&at.node) {
                    Place::WithAgent | Place::Resting if *interrupted => {
                        self.interrupted(&at.node, Place::WithAgent);
                    }
                    Place::WithAgent | Place::Resting => self.delivery_lost(&at.node),
                    place @ (Place::Rehearsed | Place::WithHarness { .. }) => {
                        self.interrupted(&at.node, place);
                    }
                    Place::Nowhere | Place::WithPerson(..) | Place::Over(_) => return Err(No),
                }
                Ok(())
            }
            ClockEvent::Overran { at } => {
                self.check_try(at)?;
                if !matches!(self.place(&at.node), Place::WithAgent | Place::Resting) {
                    return Err(No);
                }
                let deadline = self.deadline(&at.node).ok_or(No)?;
                self.charge(&at.node, None, deadline);
                self.attempt_failed(&at.node, false);
                Ok(())
            }
        }
    }

    fn stood_still(&mut self) -> Fits {
        self.must_be(&[Status::Active])?;
        let limit = self.graph.limits().stale_after.ok_or(No)?;
        let moved_at = self.moved_at().ok_or(No)?;
        let Some(node) = self.node_out() else {
            self.stale_timer = Some(later(self.now, limit));
            return Ok(());
        };
        if elapsed(moved_at, self.now) < limit {
            self.stale_timer = Some(later(moved_at, limit));
            return Ok(());
        }
        self.stale_timer = Some(later(self.now, limit));
        self.tell("expired".to_owned());
        if matches!(self.place(&node), Place::WithAgent | Place::Resting) {
            self.escalate(&node, "stale", Level::Primary);
        } else {
            self.ask(&node, AskKind::Escalation, "stale");
        }
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
            self.leave(&start);
            return Ok(());
        }
        match self.stopped_at.take().filter(|node| self.graph.task(node).is_some()) {
            Some(node) => self.enter(&node, true),
            None => self.enter_first_open(start)?,
        }
        Ok(())
    }

    fn enter_first_open(&mut self, start: NodeId) -> Fits {
        let mut from = start;
        for _ in 0..=self.graph.nodes().len() {
            let edge = self.edge(&from, &[On::Success, On::Always]).ok_or(No)?;
            if self.graph.task(&edge.to).is_none() || self.settled(&edge.to).is_none() {
                self.go(&edge, "success");
                return Ok(());
            }
            from = edge.to;
        }
        Err(No)
    }

    /// Checks that the run goes on and the event speaks of the newest try at a step.
    fn check_try(&self, at: &At) -> Fits {
        self.must_be(&[Status::Active])?;
        self.graph.task(&at.node).ok_or(No)?;
        let is_newest = usize::from(at.attempt.number()) == self.attempt(&at.node)
            && usize::from(at.visit) == self.visits(&at.node);
        if is_newest { Ok(()) } else { Err(No) }
    }

    fn must_be(&self, any_of: &[Status]) -> Fits {
        if any_of.contains(&self.status) { Ok(()) } else { Err(No) }
    }
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
        Ending::Exited { .. } | Ending::Signalled { .. } | Ending::NotRun => "failed",
    })
}

fn answer_word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Approve => "approve",
        Answer::Reject => "reject",
        Answer::Retry => "retry",
        Answer::Skip => "skip",
        Answer::Waive => "waive",
        Answer::Abort => "abort",
        Answer::Revise => "revise",
        Answer::Reassign { .. } => "reassign",
        Answer::Raise { .. } => "raise",
        Answer::Reply => "answer",
        Answer::Choose { .. } => "choose",
    }
}

fn later(from: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_micros(from.as_micros() + i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 4))
}
