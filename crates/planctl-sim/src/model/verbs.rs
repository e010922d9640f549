//! The model's verbs: an attempt fails, a node is exhausted, left, entered, begun, held.

use std::time::Duration;

use planctl_engine::{
    AskKind, At, Attempt, Edge, HumanEvent, ItemId, Level, NodeId, NodeKind, On, Outcome, RedFirst, Showing,
    Usage,
};

use super::journal::Entry;
use super::{Before, Model, Place, Status};

impl Model {
    pub(super) fn attempt_failed(&mut self, node: &NodeId, gave_up: bool) {
        self.journal.push(Entry::Failed { node: node.clone() });
        self.tell_next(node, Some(self.attempt(node)));
        let planned = self.graph.task(node).map_or(0, |task| usize::from(task.max_retries));
        if gave_up || self.failed(node) > planned + self.granted(node) {
            self.exhausted(node);
        } else if let Some(edge) = self.edge(node, &[On::Retry]) {
            self.put(node, Place::Nowhere);
            self.go(&edge, "retry");
        } else {
            self.tell(format!("retry {node}#{}", self.attempt(node) + 1));
            self.begin(node);
        }
    }

    pub(super) fn exhausted(&mut self, node: &NodeId) {
        let Some(edge) = self.edge(node, &[On::Exhaust, On::Fail, On::Always]) else {
            return self.escalate(node, "no_edge", Level::Primary);
        };
        if !matches!(self.kind(&edge.to), NodeKind::Escalate { .. }) {
            let lapse = self.graph.task(node).map_or(Outcome::Failed, |task| task.lapse);
            self.settle(node, lapse);
        }
        self.go(&edge, "exhausted");
    }

    pub(super) fn leave(&mut self, node: &NodeId) {
        match self.edge(node, &[On::Success, On::Always]) {
            Some(edge) => self.go(&edge, "success"),
            None => self.ask(node, AskKind::Escalation, "no_edge"),
        }
    }

    pub(super) fn go(&mut self, edge: &Edge, why: &str) {
        self.tell(format!("{} -{why}-> {}", edge.from, edge.to));
        match self.kind(&edge.to) {
            NodeKind::Exit { success: true } => {
                self.end(Status::Done, None);
                self.tell("completed".to_owned());
            }
            NodeKind::Exit { success: false } => {
                self.end(Status::Failed, Some(&edge.from));
                self.tell(format!("failed at {}", edge.from));
            }
            NodeKind::Escalate { .. } => {
                let named = self.level_named(&edge.to);
                self.escalate(&edge.from, "exhausted", named);
            }
            NodeKind::Task(_)
            | NodeKind::Start
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Fork(_)
            | NodeKind::Join(_) => {
                let passed_over =
                    matches!(self.settled(&edge.from), Some(Outcome::Skipped | Outcome::Warned));
                if why != "success" && edge.from != edge.to && !passed_over {
                    self.tell_next(&edge.to, self.failure_of(&edge.from));
                }
                if why == "success" {
                    self.lower_level(&edge.to);
                }
                self.enter(&edge.to, why == "success");
            }
        }
    }

    pub(super) fn enter(&mut self, node: &NodeId, refills: bool) {
        let most = self.graph.node(node).map_or(0, |node| usize::from(node.max_visits));
        let known = match self.before(node) {
            _ if self.red_first(node) == RedFirst::Off => Before::Unasked,
            // What was red once can fail, and is not asked again.
            red @ Before::Showed(_, Showing::Red) if self.is_of_contract(node, &red) => red,
            Before::Unasked | Before::Due | Before::Showed(..) => Before::Due,
        };
        self.journal.push(Entry::Before { node: node.clone(), known });
        if self.visits(node) >= most {
            if self.beyond.contains(node) {
                return self.ask(node, AskKind::Escalation, "exhausted");
            }
            self.beyond.push(node.clone());
            return self.exhausted(node);
        }
        self.journal.push(Entry::Entered { node: node.clone(), refills });
        if refills {
            self.tell_next(node, None);
            self.journal.push(Entry::Noted { node: node.clone(), note: None });
        }
        self.tell(format!("entered {node} visit {}", self.visits(node)));
        self.begin(node);
    }

    pub(super) fn begin(&mut self, node: &NodeId) {
        if self.attempts_of_run() as u64 >= u64::from(self.graph.limits().attempts) {
            self.ask(node, AskKind::Escalation, "attempts_limit");
        } else if self.is_short(node) {
            self.ask(node, AskKind::Budget, "budget");
        } else if self.awaits_rehearsal(node) {
            self.journal.push(Entry::Rehearsing { node: node.clone() });
            self.put(node, Place::Rehearsed);
        } else {
            self.journal.push(Entry::Begun { node: node.clone() });
            self.put(node, Place::WithAgent);
        }
    }

    /// What the plan asks of a contract before the work; one that guards is left alone.
    fn red_first(&self, node: &NodeId) -> RedFirst {
        let contract = self.graph.task(node).map(|task| &task.contract);
        contract.filter(|contract| !contract.guard).map_or(RedFirst::Off, |contract| contract.red_first)
    }

    fn is_of_contract(&self, node: &NodeId, known: &Before) -> bool {
        let digest = self.graph.task(node).map(|task| &task.contract.digest);
        matches!(known, Before::Showed(of, _) if Some(of) == digest)
    }

    /// Says whether the contract is to be rehearsed before anybody works: it is due, or red is demanded and it wasn't.
    pub(super) fn awaits_rehearsal(&self, node: &NodeId) -> bool {
        match self.before(node) {
            Before::Due => true,
            Before::Showed(_, showed) => showed != Showing::Red && self.red_first(node) == RedFirst::Deny,
            Before::Unasked => false,
        }
    }

    pub(super) fn delivery_lost(&mut self, node: &NodeId) {
        self.journal.push(Entry::Lost { node: node.clone() });
        if self.deliveries(node) >= usize::from(self.graph.limits().deliveries) {
            self.tell_next(node, Some(self.attempt(node)));
            self.escalate(node, "undelivered", Level::Primary);
        } else {
            self.tell(format!("resting {node}#{}", self.attempt(node)));
            self.put(node, Place::Resting);
        }
    }

    pub(super) fn interrupted(&mut self, node: &NodeId, back_to: Place) {
        self.journal.push(Entry::Interrupted { node: node.clone() });
        if self.interruptions(node) >= usize::from(self.graph.limits().interruptions) {
            return self.ask(node, AskKind::Escalation, "interrupted");
        }
        let what = match back_to {
            Place::WithAgent => "interrupted",
            Place::Rehearsed => "rehearsal repeated",
            Place::Nowhere
            | Place::Resting
            | Place::WithHarness { .. }
            | Place::WithPerson(..)
            | Place::Over(_) => "gate repeated",
        };
        self.tell(format!("{what} {node}#{}", self.attempt(node)));
        self.put(node, back_to);
    }

    pub(super) fn settle(&mut self, node: &NodeId, outcome: Outcome) {
        self.put(node, Place::Over(outcome));
        self.tell(format!("settled {node} {}", outcome.word()));
    }

    pub(super) fn ask(&mut self, node: &NodeId, kind: AskKind, why: &str) {
        self.journal.push(Entry::Asked { node: node.clone() });
        let at = At {
            node: node.clone(),
            visit: self.visits(node) as u16,
            attempt: Attempt::from_number(self.attempt(node) as u16),
        };
        let item = ItemId::ask(self.id, &at, kind.word(), self.asks() as u32);
        if kind == AskKind::Escalation {
            self.tell(format!("escalated {node} {why}"));
        }
        self.tell(format!("ask {node} {} {why}", kind.word()));
        self.put(node, Place::WithPerson(kind, item));
    }

    pub(super) fn end(&mut self, status: Status, stopped_at: Option<&NodeId>) {
        self.status = status;
        self.stopped_at = stopped_at.cloned();
        self.stale_timer = None;
    }

    pub(super) fn charge(&mut self, node: &NodeId, usage: Option<&Usage>, time: Duration) {
        let usage = usage.map(|u| (u.input_tokens + u.output_tokens, u.micro_usd.unwrap_or(0)));
        self.journal.push(Entry::Charged { node: node.clone(), usage, time });
    }

    pub(super) fn note_down(&mut self, event: &HumanEvent, node: &NodeId) {
        self.journal.push(Entry::Noted { node: node.clone(), note: event.note.clone() });
    }

    pub(super) fn tell_next(&mut self, node: &NodeId, failed: Option<usize>) {
        self.journal.push(Entry::Told { node: node.clone(), failed });
    }

    pub(super) fn put(&mut self, node: &NodeId, to: Place) {
        self.journal.push(Entry::Moved { node: node.clone(), to });
    }

    pub(super) fn tell(&mut self, what: String) {
        self.tellings.push(what);
    }

    pub(super) fn kind(&self, id: &NodeId) -> NodeKind {
        self.graph.node(id).map_or(NodeKind::Start, |node| node.kind.clone())
    }

    pub(super) fn edge(&self, from: &NodeId, any_of: &[On]) -> Option<Edge> {
        let all: Vec<&Edge> = self.graph.edges_from(from).iter().collect();
        any_of.iter().find_map(|on| all.iter().find(|edge| edge.on == *on).map(|edge| (*edge).clone()))
    }

    /// The node with work out, for an agent or the harness.
    pub(super) fn node_out(&self) -> Option<NodeId> {
        self.node_live().filter(|id| !matches!(self.place(id), Place::WithPerson(..)))
    }

    /// The one node that is with someone.
    pub(super) fn node_live(&self) -> Option<NodeId> {
        let ids = self.graph.nodes().iter().map(|node| &node.id);
        ids.into_iter().find(|id| !matches!(self.place(id), Place::Nowhere | Place::Over(_))).cloned()
    }
}
