//! The model's people: a person's decisions about a run, and the effect of each answer.

use std::collections::BTreeSet;

use planctl_engine::{
    Answer, AskKind, Budget, Decision, Graph, HumanEvent, ItemId, NodeId, NodeKind, Outcome, Role, Signal,
};

use super::journal::Entry;
use super::money::{carried_over, raised};
use super::rules::{Fits, No};
use super::ways::{ChosenEdge, bare};
use super::{Knowledge, Model, NodePosition, Status};

impl Model {
    pub(super) fn human_decided(&mut self, event: &HumanEvent, revision: Option<&Graph>) -> Fits {
        match &event.decision {
            Decision::Submit => {
                self.must_be(&[Status::New])?;
                self.status = Status::Awaiting;
                self.ask(&self.graph.start().clone(), AskKind::Plan, "submitted");
                Ok(())
            }
            Decision::Answer { item, answer } => self.answered(event, item, answer),
            Decision::Vote { item, answer, .. } => self.asked(item, answer).map(drop),
            Decision::Cancel => {
                if matches!(self.status, Status::Done | Status::Failed | Status::Aborted | Status::Cancelled)
                {
                    return Err(No);
                }
                self.end(Status::Cancelled);
                self.tell("cancelled".to_owned());
                Ok(())
            }
            Decision::Pause => {
                self.must_be(&[Status::Queued, Status::Requeued, Status::Active])?;
                if self.status == Status::Active {
                    self.stopped_at = self.live();
                    self.end(Status::Paused);
                }
                self.status = Status::Paused;
                self.tell("paused".to_owned());
                Ok(())
            }
            Decision::Resume { from } => {
                self.must_be(&[Status::Failed, Status::Aborted, Status::Paused])?;
                if let Some(from) = from {
                    let is_passed_over = |stopped: &NodeId| {
                        self.behind(stopped).contains(from)
                            && !self.behind(from).contains(stopped)
                            && matches!(self.settled(stopped), None | Some(Outcome::Failed))
                    };
                    if self.settled(from) != Some(Outcome::Passed)
                        || !self.can_repeat(from)
                        || self.stopped_at.iter().any(is_passed_over)
                    {
                        return Err(No);
                    }
                    let behind: BTreeSet<NodeId> = self.behind(from).into_iter().collect();
                    for node in &behind {
                        self.journal.push(Entry::Refilled { node: node.clone() });
                        if let NodeKind::Join(_) = self.kind(node) {
                            self.await_from(node, &behind);
                        }
                    }
                    self.stopped_at = vec![from.clone()];
                    self.tell(format!("reopened {from}"));
                }
                self.status = self.queued_again();
                Ok(())
            }
            Decision::Revise { changed, added, branches, .. } => {
                self.must_be(&[Status::Paused])?;
                let is_met =
                    |id: &NodeId| matches!(self.settled(id), Some(outcome) if outcome != Outcome::Failed);
                if changed.iter().any(is_met) {
                    return Err(No);
                }
                for node in changed {
                    self.journal.push(Entry::Proposed { node: node.clone(), gave_up: None });
                }
                if let Some(graph) = revision {
                    self.graph = std::sync::Arc::new(graph.clone());
                }
                self.recount(branches);
                if self.adds_behind(added) {
                    return Err(No);
                }
                self.budget = carried_over(self.graph.budget(), self.budget);
                self.journal.push(Entry::Unnoticed);
                self.status = self.queued_again();
                Ok(())
            }
        }
    }

    /// Returns how a run is queued that stopped: one that had not begun begins.
    fn queued_again(&self) -> Status {
        match self.settled(self.graph.start()) {
            Some(_) => Status::Requeued,
            None => Status::Queued,
        }
    }

    /// Returns where an ask is, if it is open and takes an answer.
    fn asked(&self, item: &ItemId, answer: &Answer) -> Result<(NodeId, AskKind), No> {
        let held = self.live().into_iter().find_map(|node| {
            if let NodePosition::WithPerson(kind, open) = self.place(&node)
                && open == *item
            {
                return Some((node, kind));
            }
            None
        });
        let (node, kind) = held.ok_or(No)?;
        self.must_be(&[if kind == AskKind::Plan { Status::Awaiting } else { Status::Active }])?;
        let fits = match answer {
            Answer::Approve => matches!(kind, AskKind::Plan | AskKind::Effect | AskKind::Prompt),
            Answer::Reject => {
                matches!(kind, AskKind::Plan | AskKind::Insertion | AskKind::Effect | AskKind::Prompt)
            }
            Answer::Retry => kind == AskKind::Escalation,
            Answer::Reply => kind == AskKind::Question,
            // Nobody in the simulation answers so.
            Answer::Allow { .. } | Answer::Restore => false,
            Answer::Raise { .. } => matches!(kind, AskKind::Budget | AskKind::Day),
            Answer::Choose { .. } => kind == AskKind::Choice,
            Answer::Abort => kind != AskKind::Plan,
            Answer::Revise => !matches!(kind, AskKind::Plan | AskKind::Budget | AskKind::Day),
            Answer::Skip => {
                matches!(kind, AskKind::Escalation | AskKind::Question | AskKind::Choice)
            }
            Answer::Waive => {
                let merges_or_parts = self.graph.forks_or_merges_worktrees(&node);
                matches!(kind, AskKind::Escalation | AskKind::Question) && !merges_or_parts
            }
            Answer::Reassign { .. } => {
                let is_task = matches!(self.kind(&node), NodeKind::Task(_));
                matches!(kind, AskKind::Escalation | AskKind::Question) && is_task
            }
        };
        if fits { Ok((node, kind)) } else { Err(No) }
    }

    fn answered(&mut self, event: &HumanEvent, item: &ItemId, answer: &Answer) -> Fits {
        let (node, kind) = self.asked(item, answer)?;
        let has_note = event.note.as_ref().is_some_and(|note| !note.trim().is_empty());
        let needs_note = matches!(answer, Answer::Skip | Answer::Waive | Answer::Reply);
        if needs_note && !has_note {
            return Err(No);
        }
        if let Answer::Choose { option } = answer
            && !self.offers(&node, option)
        {
            return Err(No);
        }
        self.tell(format!("answered {node} {}", answer_word(answer)));
        self.put(&node, NodePosition::Nowhere);
        let is_question = matches!(self.kind(&node), NodeKind::Human(_));
        if is_question && (kind, answer) == (AskKind::Choice, &Answer::Skip) {
            // A question that nobody answers has failed.
            self.settle(&node, Outcome::Failed);
            self.leave(&node, Signal::Exhausted);
            return Ok(());
        }
        match (kind, answer) {
            (AskKind::Effect, Answer::Approve) => {
                self.journal.push(Entry::Allowed { node: node.clone() });
                self.begin(&node);
                Ok(())
            }
            (AskKind::Prompt, Answer::Approve) => {
                self.journal.push(Entry::PromptApproved { node: node.clone() });
                self.begin(&node);
                Ok(())
            }
            (AskKind::Effect | AskKind::Prompt, Answer::Reject) => {
                self.journal.push(Entry::Proposed { node: node.clone(), gave_up: None });
                let outcome = self.on_exhausted(&node);
                self.settle(&node, outcome);
                self.leave(&node, Signal::Exhausted);
                Ok(())
            }
            // The budget of the run is what it was.
            (AskKind::Day, Answer::Raise { .. }) => {
                self.begin(&node);
                Ok(())
            }
            _ => self.carry_out(event, &node, answer),
        }
    }

    fn carry_out(&mut self, event: &HumanEvent, node: &NodeId, answer: &Answer) -> Fits {
        match answer {
            Answer::Approve => self.status = Status::Queued,
            Answer::Reject if self.proposed(node).is_some() => self.begin(node),
            Answer::Reject => {
                self.end(Status::Cancelled);
                self.tell("cancelled".to_owned());
            }
            Answer::Retry | Answer::Restore | Answer::Allow { .. } => self.grant(event, node, None),
            Answer::Reassign { role } => self.grant(event, node, Some(role)),
            Answer::Reply => {
                self.note_down(event, node);
                self.begin(node);
            }
            Answer::Skip | Answer::Waive => {
                let outcome = if *answer == Answer::Skip { Outcome::Skipped } else { Outcome::Waived };
                self.settle(node, outcome);
                self.leave_out(node, outcome);
                if self.edges_of(node).is_empty() {
                    self.end_at(Status::Failed, node);
                    self.tell(format!("failed at {}", self.subject(node)));
                } else {
                    self.leave(node, Signal::Success);
                }
            }
            Answer::Abort => {
                self.settle(node, Outcome::Failed);
                self.end_at(Status::Aborted, node);
                self.tell(format!("failed at {}", self.subject(node)));
            }
            Answer::Revise => {
                self.end_at(Status::Paused, node);
                self.tell(format!("paused at {node}"));
            }
            Answer::Choose { option } => self.chosen(node, option),
            Answer::Raise { by } => self.raise(node, *by)?,
        }
        Ok(())
    }

    /// Says whether a question of the plan takes an answer: one of its options, or any words where it has none.
    fn offers(&self, node: &NodeId, answer: &str) -> bool {
        let confirmation = self.graph.node(node).and_then(|node| node.confirmation.as_deref());
        let question = match (self.kind(node), confirmation) {
            (NodeKind::Human(question), _) => *question,
            (_, Some(confirmation)) => confirmation.question.clone(),
            (_, None) => return false,
        };
        let is_one = question.options.iter().any(|option| bare(option) == bare(answer));
        is_one || question.options.is_empty() && !answer.trim().is_empty()
    }

    /// Goes the way that an answer names.
    pub(super) fn chosen(&mut self, node: &NodeId, answer: &str) {
        if self.is_confirmed(node) && bare(answer) == "not done" {
            return self.attempt_failed(node, "unconfirmed", false);
        }
        let mut context = self.context(node);
        context.insert("human.gate.selected".to_owned(), answer.to_owned());
        self.set_context(node, context);
        let said = Some(answer.to_owned());
        let known = Knowledge { label: said.clone(), output: said, ..Knowledge::default() };
        self.journal.push(Entry::Known { node: node.clone(), known: Some(known) });
        self.settle(node, Outcome::Passed);
        let named = self.edges_of(node).into_iter().find(|edge| {
            let name = edge.label.as_deref().unwrap_or(edge.to.as_str());
            bare(name) == bare(answer)
        });
        match named {
            Some(edge) => self.open.push(ChosenEdge { edge, why: Signal::Success, by: None }),
            None => self.leave(node, Signal::Success),
        }
    }

    fn grant(&mut self, event: &HumanEvent, node: &NodeId, role: Option<&Role>) {
        self.note_down(event, node);
        // Where work is left, a rehearsal alone is tried again.
        if !self.awaits_rehearsal(node) || self.is_used_up(node) {
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
        Answer::Allow { .. } => "allow",
        Answer::Restore => "restore",
        Answer::Choose { .. } => "choose",
    }
}
