//! The person: submits, approves, answers asks (also wrongly, late and twice), cancels, pauses, resumes, revises.

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_engine::{
    Actor, Answer, AskKind, Budget, Decision, Digest, Event, HumanEvent, ItemId, NodeId, NodeKind, Outcome,
    Role, RunStatus, TimerId, Work,
};

use super::World;
use crate::dice::truth;
use crate::faults::Trouble;
use crate::plans;
use crate::store::{Proof, RowPlace};

/// Asks answered in the calm phase before the person stops.
const ANSWERS_IN_CALM_MAX: u32 = 15;

impl World {
    pub(super) fn answer(&mut self) -> Result<(), String> {
        let asks = self.store.open_items().filter_map(|row| match &row.item.work {
            Work::Human { ask } => Some((row.item.id.clone(), ask.kind, ask.options.clone())),
            Work::Agent { .. } | Work::Harness { .. } => None,
        });
        let asks: Vec<_> = asks.collect();
        let Some((id, kind, options)) = self.any_of(asks) else { return Ok(()) };
        if self.strikes(Trouble::AnswerLate)
            && let Some(closed) = self.closed_ask()
        {
            let (answer, note) = self.fitting(kind, &options);
            self.decided(Decision::Answer { item: closed, answer }, note)?;
        }
        if self.strikes(Trouble::AnswerWrong) {
            let answer = self.any_answer();
            let note = self.dice.happens(300).then(|| "  ".to_owned());
            return self.decided(Decision::Answer { item: id, answer }, note);
        }
        let (answer, note) = self.fitting(kind, &options);
        // Others may have to agree; whether they are asked first is drawn by a sequence of its own.
        if truth(self.options.seed, &["vote", id.as_str()], 0).is_multiple_of(4) {
            let vote = Decision::Vote { item: id.clone(), answer: answer.clone(), about: String::new() };
            self.decided(vote, None)?;
        }
        let decision = Decision::Answer { item: id, answer };
        if self.strikes(Trouble::AnswerDoubled) {
            self.decided(decision.clone(), note.clone())?;
        }
        self.decided(decision, note)
    }

    /// Decides about the run as a whole.
    pub(super) fn decide(&mut self) -> Result<(), String> {
        match self.store.head.status {
            RunStatus::New => self.decided(Decision::Submit, None),
            RunStatus::Paused => {
                if self.options.has_pauses && self.dice.happens(500) {
                    return self.resume();
                }
                self.revise()
            }
            RunStatus::Ended { .. } => {
                if self.strikes(Trouble::RunResumed) {
                    return self.resume();
                }
                Ok(())
            }
            RunStatus::Awaiting | RunStatus::Queued { .. } | RunStatus::Active => {
                // Beside other runs it matters whose work a cancellation takes back.
                let is_at_work = self.gate.is_some() || self.workers.iter().any(Option::is_some);
                let may_cancel = self.options.runs == 1 || is_at_work;
                if may_cancel && self.strikes(Trouble::RunCancelled) {
                    return self.decided(Decision::Cancel, Some("enough".to_owned()));
                }
                if self.strikes(Trouble::RunPaused) {
                    return self.decided(Decision::Pause, Some("later".to_owned()));
                }
                if self.strikes(Trouble::TimerOdd) {
                    let timer = self.any_timer();
                    let event = planctl_engine::ClockEvent::Due { timer };
                    return self.say(Event::Clock(event), Proof::Anyone);
                }
                Ok(())
            }
        }
    }

    /// Takes the run up where it stopped, or at a step that passed.
    fn resume(&mut self) -> Result<(), String> {
        let passed =
            self.store.nodes.iter().filter(|(_, record)| record.state.outcome() == Some(Outcome::Passed));
        let passed: Vec<NodeId> = passed.map(|(node, _)| node.clone()).collect();
        let from = if self.dice.happens(300) { self.any_of(passed) } else { None };
        self.decided(Decision::Resume { from }, None)
    }

    /// Names a timer that may or may not be armed.
    pub(super) fn any_timer(&mut self) -> TimerId {
        let asks = self.store.plan().graph.nodes().iter();
        let asks = asks.filter(|node| matches!(node.kind, NodeKind::Human(_))).map(|node| node.id.clone());
        let asks: Vec<NodeId> = asks.collect();
        match self.any_of(asks) {
            Some(node) if self.dice.happens(500) => TimerId::Answer(node),
            Some(_) | None if self.dice.happens(500) => TimerId::Stale,
            Some(_) | None => TimerId::Budget,
        }
    }

    fn revise(&mut self) -> Result<(), String> {
        let old = self.store.plan().clone();
        let is_met = |id: &NodeId| {
            let outcome = self.store.nodes.get(id).and_then(|record| record.state.outcome());
            matches!(outcome, Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned))
        };
        let mut fixed: BTreeSet<NodeId> =
            old.graph.nodes().iter().map(|node| node.id.clone()).filter(is_met).collect();
        if self.strikes(Trouble::RevisionForged) {
            fixed.clear();
        }
        let plan = plans::revise(&mut self.dice, &old, &fixed);
        let revision = Digest::new(format!("sha256:revision{}", self.store.plans.len()));
        let event = Event::Human(HumanEvent {
            by: Actor::from("owner"),
            note: None,
            decision: Decision::revise(revision, &old.graph, &plan.graph, None),
        });
        self.say_with(event, Proof::Anyone, Some(plan))
    }

    pub(super) fn decided(&mut self, decision: Decision, note: Option<String>) -> Result<(), String> {
        let event = HumanEvent { by: Actor::from("owner"), note, decision };
        self.say(Event::Human(event), Proof::Anyone)
    }

    pub(super) fn closed_ask(&mut self) -> Option<ItemId> {
        let closed: Vec<ItemId> = self
            .store
            .items
            .values()
            .filter(|row| row.place == RowPlace::Closed && matches!(row.item.work, Work::Human { .. }))
            .map(|row| row.item.id.clone())
            .collect();
        (!closed.is_empty()).then(|| self.dice.pick(&closed).clone())
    }

    fn fitting(&mut self, kind: AskKind, options: &[String]) -> (Answer, Option<String>) {
        if self.is_calm {
            self.answers_in_calm += 1;
        }
        let is_patient = self.answers_in_calm <= ANSWERS_IN_CALM_MAX;
        let number = self.keys;
        let words = Some(format!("words {number}"));
        let answer = match kind {
            AskKind::Plan | AskKind::Synthesis if self.is_calm || self.dice.happens(900) => Answer::Approve,
            AskKind::Plan | AskKind::Synthesis => Answer::Reject,
            AskKind::Escalation
            | AskKind::Question
            | AskKind::Budget
            | AskKind::Choice
            | AskKind::Insertion
            | AskKind::Effect
            | AskKind::Prompt
            | AskKind::Day
                if !is_patient =>
            {
                Answer::Abort
            }
            AskKind::Choice if self.dice.happens(900) => {
                let option =
                    if options.is_empty() { "Blue".to_owned() } else { self.dice.pick(options).clone() };
                Answer::Choose { option }
            }
            AskKind::Choice if self.dice.happens(500) => Answer::Revise,
            AskKind::Budget | AskKind::Day if self.is_calm || self.dice.happens(850) => self.raise(),
            AskKind::Insertion if self.dice.happens(600) => Answer::Reject,
            AskKind::Insertion if self.dice.happens(600) => Answer::Revise,
            AskKind::Effect | AskKind::Prompt if self.dice.happens(800) => Answer::Approve,
            AskKind::Effect | AskKind::Prompt => Answer::Reject,
            AskKind::Budget | AskKind::Day | AskKind::Choice | AskKind::Insertion => Answer::Abort,
            AskKind::Question if self.dice.happens(600) => Answer::Reply,
            AskKind::Escalation if self.dice.happens(400) => Answer::Retry,
            AskKind::Escalation | AskKind::Question => match self.dice.below(6) {
                0 | 1 => Answer::Skip,
                2 => Answer::Waive,
                3 => Answer::Reassign { role: Role::from("senior") },
                4 => Answer::Revise,
                _ => Answer::Abort,
            },
        };
        let may_be_silent = !matches!(answer, Answer::Skip | Answer::Waive | Answer::Reply);
        let note = if may_be_silent && self.dice.happens(500) { None } else { words };
        (answer, note)
    }

    fn raise(&mut self) -> Answer {
        let large = self.is_calm;
        let mut part = |most: u64| {
            if large { Some(most * 1000) } else { self.dice.happens(700).then(|| self.dice.below(most)) }
        };
        let (tokens, micro_usd, seconds) = (part(20_000), part(900_000), part(2_000));
        Answer::Raise { by: Budget { tokens, micro_usd, time: seconds.map(Duration::from_secs) } }
    }

    pub(super) fn any_answer(&mut self) -> Answer {
        let all = [
            Answer::Approve,
            Answer::Reject,
            Answer::Retry,
            Answer::Skip,
            Answer::Waive,
            Answer::Abort,
            Answer::Revise,
            Answer::Reassign { role: Role::from("junior") },
            Answer::Raise { by: Budget::default() },
            Answer::Reply,
            Answer::Choose { option: "NO".to_owned() },
            Answer::Choose { option: "maybe".to_owned() },
        ];
        self.dice.pick(&all).clone()
    }
}
