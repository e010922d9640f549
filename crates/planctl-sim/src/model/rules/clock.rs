//! The rules for time that passes.

use planctl_engine::{AskKind, ClockEvent, Level, NodeId, NodeKind, TimerId};

use super::super::journal::{Entry, elapsed};
use super::super::{Model, NodePosition, Status};
use super::{Fits, No, time_after};

impl Model {
    pub(super) fn time_passed(&mut self, event: &ClockEvent) -> Fits {
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
                if !matches!(self.place(&at.node), NodePosition::WithAgent | NodePosition::Resting) {
                    return Err(No);
                }
                self.charge_so_far(&at.node);
                self.ask(&at.node, AskKind::Day, "day");
                Ok(())
            }
            ClockEvent::DayAllows { node } => {
                self.must_be(&[Status::Active])?;
                if !matches!(self.place(node), NodePosition::WithPerson(AskKind::Day, _)) {
                    return Err(No);
                }
                self.tell(format!("answered {node} continue"));
                self.put(node, NodePosition::Nowhere);
                self.begin(node);
                Ok(())
            }
            ClockEvent::SetAside { node, run, budget } => {
                self.must_be(&[Status::Active])?;
                if !matches!(self.place(node), NodePosition::Within) || self.child(node) != Some(*run) {
                    return Err(No);
                }
                self.promise_a_raise(node, *budget)
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
                    NodePosition::WithAgent | NodePosition::Resting => {
                        self.charge_told(&at.node, noted.as_ref());
                        if *interrupted {
                            self.interrupted(&at.node, NodePosition::WithAgent);
                        } else {
                            self.delivery_lost(&at.node);
                        }
                    }
                    place @ (NodePosition::Rehearsed
                    | NodePosition::Saved { .. }
                    | NodePosition::Forking { .. }
                    | NodePosition::Within
                    | NodePosition::WithHarness { .. }) => {
                        self.charge_judge(&at.node, noted.as_ref());
                        self.interrupted(&at.node, place);
                    }
                    NodePosition::Nowhere
                    | NodePosition::InLine
                    | NodePosition::WithPerson(..)
                    | NodePosition::Over(_) => {
                        return Err(No);
                    }
                }
                Ok(())
            }
            ClockEvent::Overran { at, noted } => {
                self.check_try(at)?;
                if !matches!(self.place(&at.node), NodePosition::WithAgent | NodePosition::Resting) {
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
        let at_work = |model: &Model, node: &NodeId| {
            matches!(model.place(node), NodePosition::WithAgent | NodePosition::Resting)
        };
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
            self.stale_timer = Some(time_after(self.now, limit));
            return Ok(());
        }
        if elapsed(moved_at, self.now) < limit {
            self.stale_timer = Some(time_after(moved_at, limit));
            return Ok(());
        }
        self.stale_timer = Some(time_after(self.now, limit));
        // A run within this one has a limit of its own.
        if self.out().iter().any(|node| self.place(node) == NodePosition::Within) {
            return Ok(());
        }
        self.tell("expired".to_owned());
        for node in self.out() {
            if matches!(self.place(&node), NodePosition::WithAgent | NodePosition::Resting) {
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
        if !matches!(self.place(node), NodePosition::WithPerson(AskKind::Choice, _)) {
            return Err(No);
        }
        self.tell(format!("answered {node} choose"));
        self.chosen(node, &default.answer);
        Ok(())
    }
}
