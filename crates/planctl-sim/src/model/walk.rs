//! The model's walk: follows each edge that a run takes, until something waits everywhere.

use planctl_engine::{AskKind, Decider, Edge, Level, Node, NodeId, NodeKind, On, Outcome, Signal};

use super::journal::Entry;
use super::ways::ChosenEdge;
use super::{Model, NodePosition, Status};

impl Model {
    /// Walks all ways that were taken, the newest first, and then sends out who waits in line.
    pub(super) fn walk_on(&mut self) {
        loop {
            while let Some(way) = self.open.pop() {
                self.arrive(&way);
                if self.status != Status::Active {
                    self.open.clear();
                }
            }
            if !self.next_in_line() {
                break;
            }
        }
        let is_quiet = self.live().is_empty();
        if self.status == Status::Active && is_quiet {
            let node = self.dead_end.clone().unwrap_or_else(|| self.graph.start().clone());
            self.ask(&node, AskKind::Escalation, "no_edge");
        }
    }

    /// Leaves a node by the way that fits what it came to; a person is asked where none does.
    pub(super) fn leave(&mut self, node: &NodeId, why: Signal) {
        if let NodeKind::Fork(fork) = self.kind(node) {
            let is_left_out = matches!(self.settled(node), Some(Outcome::Skipped | Outcome::Waived));
            return match fork.join.filter(|_| fork.in_worktree && is_left_out) {
                Some(join) if matches!(self.settled(&join), None | Some(Outcome::Failed)) => self.begin(node),
                Some(join) => self.leave(&join, Signal::Success),
                None => self.spread(node),
            };
        }
        match self.way(node, why) {
            Some(way) => self.open.push(way),
            None => {
                let subject = self.rewind_to(node);
                self.ask(&subject, AskKind::Escalation, "no_edge");
            }
        }
    }

    fn arrive(&mut self, ChosenEdge { edge, why, by }: &ChosenEdge) {
        let (to, why) = (&edge.to, *why);
        if self.replay_skips(to) {
            return self.leave(to, Signal::Success);
        }
        self.tell(format!("{} -{}-> {to}{}", edge.from, word(why), by.map_or("", decider)));
        let why = match &edge.restart {
            None => why,
            Some(restart) if self.begin_anew(edge, &restart.keeps) => Signal::Success,
            Some(_) => return,
        };
        // A node under way already is not begun twice; a failure is of another node than the one at which the plan escalates.
        if !matches!(self.kind(to), NodeKind::Join(_) | NodeKind::Escalate { .. }) && self.is_live(to) {
            return;
        }
        match self.kind(to) {
            NodeKind::Start => {}
            NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::Human(_) | NodeKind::SubPlan(_) => {
                let refills = self.refills(to, why);
                match why {
                    Signal::Success if refills => self.lower_level(to),
                    Signal::Success => {}
                    Signal::Retry | Signal::Exhausted => self.pass_on_failure(&edge.from, to),
                }
                self.bring_context(edge);
                self.enter(to, refills);
            }
            NodeKind::Decision(choice) if choice.command.is_some() => {
                self.bring_context(edge);
                self.enter(to, self.refills(to, why));
            }
            NodeKind::Checkpoint => {
                self.note_from(edge, why);
                self.enter(to, why == Signal::Success);
            }
            NodeKind::Decision(_) => {
                self.note_from(edge, why);
                if self.count_passage(to) {
                    self.pass_on(to);
                }
            }
            NodeKind::Fork(_) => {
                self.note_from(edge, why);
                self.enter_fork(to);
            }
            NodeKind::Join(_) => self.join(edge, why),
            NodeKind::Escalate { .. } => self.come_to_ask(edge, why),
            NodeKind::Exit { success: true } => self.finish(&edge.from, to),
            NodeKind::Exit { success: false } => {
                self.end_at(Status::Failed, &edge.from);
                self.tell(format!("failed at {}", self.subject(&edge.from)));
            }
        }
    }

    /// Begins the run anew where an edge leads that says so, with what the next epoch is to know; a person is asked where it
    /// did so too often.
    fn begin_anew(&mut self, edge: &Edge, keeps: &[String]) -> bool {
        if self.restarts() >= usize::from(self.graph.limits().restarts) {
            let subject = self.rewind_to(&edge.from);
            self.ask(&subject, AskKind::Escalation, "exhausted");
            return false;
        }
        let mut context = self.context(&edge.from);
        context.retain(|name, _| keeps.contains(name));
        for node in self.live() {
            self.put(&node, NodePosition::Nowhere);
        }
        self.open.clear();
        self.beyond.clear();
        self.journal.push(Entry::BeganAnew);
        self.tell(format!("epoch {} at {}", self.restarts(), edge.to));
        self.set_context(&edge.from, context);
        true
    }

    /// Says whether a node that is entered has all its attempts again: over a success path, unless it left over its retry edge
    /// and has not settled since.
    fn refills(&self, node: &NodeId, why: Signal) -> bool {
        let retries = self.graph.edges_from(node).iter().any(|edge| edge.on == On::Retry);
        let is_unsettled = self.place(node) == NodePosition::Nowhere && self.failed(node) > 0;
        why == Signal::Success && !(retries && is_unsettled)
    }

    /// Leaves a decision as the way by which it was entered says, also where a person has it tried again.
    pub(super) fn pass_on(&mut self, node: &NodeId) {
        let (onward, status) = match self.entered_from(node) {
            Some((from, why)) => (self.onward(&from, why), self.settled(&self.subject(&from))),
            None => (Signal::Success, None),
        };
        let status = if onward == Signal::Success { status } else { Some(Outcome::Failed) };
        self.put(node, NodePosition::Over(status.unwrap_or(Outcome::Passed)));
        self.leave(node, onward);
    }

    fn enter_fork(&mut self, node: &NodeId) {
        if self.count_passage(node) {
            self.begin_branches(node);
        }
    }

    /// Where a plan escalates: about the node that failed, else because the plan wants a person to look.
    fn come_to_ask(&mut self, edge: &Edge, why: Signal) {
        let is_own = self.subject(&edge.from) == edge.from;
        let came_to = if is_own { why } else { self.onward(&edge.from, why) };
        if came_to != Signal::Success {
            let named = self.level_named(&edge.to);
            let subject = self.rewind_to(&edge.from);
            let is_capped = self.beyond.contains(&edge.from);
            return self.escalate(&subject, if is_capped { "visits_limit" } else { "exhausted" }, named);
        }
        if self.is_live(&edge.to) {
            return;
        }
        self.note_from(edge, why);
        self.ask_planned(&edge.to);
    }

    /// Has a person look, as the plan wants.
    pub(super) fn ask_planned(&mut self, node: &NodeId) {
        self.journal.push(Entry::Entered { node: node.clone(), refills: false });
        self.ask(node, AskKind::Escalation, "planned");
    }

    /// Ends the run well, unless something that must have passed has not.
    pub(super) fn finish(&mut self, from: &NodeId, exit: &NodeId) {
        // Other branches are waited for.
        if !self.open.is_empty() || !self.live().is_empty() {
            self.dead_end = Some(from.clone());
            let from = Some((from.clone(), Signal::Success));
            self.journal.push(Entry::EnteredFrom { node: exit.clone(), from });
            return;
        }
        for goal in self.graph.goals().to_vec() {
            if matches!(self.settled(&goal.node), Some(Outcome::Passed | Outcome::Waived)) {
                continue;
            }
            self.tell(format!("unmet {}", goal.node));
            match goal.retry {
                Some(retry) => {
                    let edge = Edge::new(from.clone(), retry, On::Fail);
                    self.open.push(ChosenEdge { edge, why: Signal::Exhausted, by: None });
                }
                None => {
                    self.end_at(Status::Failed, &goal.node);
                    self.tell(format!("failed at {}", self.subject(&goal.node)));
                }
            }
            return;
        }
        self.end(Status::Done);
        self.tell("completed".to_owned());
    }

    fn pass_on_failure(&mut self, from: &NodeId, to: &NodeId) {
        let from = self.subject(from);
        let passed_over = matches!(self.settled(&from), Some(Outcome::Skipped | Outcome::Warned));
        if from != *to && !passed_over && self.is_gated(to) {
            self.tell_next(to, self.failure_of(&from));
        }
    }

    fn note_from(&mut self, edge: &Edge, why: Signal) {
        self.bring_context(edge);
        // Nothing of the epoch before lies behind the node at which one begins.
        let from = edge.restart.is_none().then(|| (edge.from.clone(), why));
        self.journal.push(Entry::EnteredFrom { node: edge.to.clone(), from });
    }

    fn bring_context(&mut self, edge: &Edge) {
        let context = self.context(&edge.from);
        self.set_context(&edge.to, context);
    }

    fn count_passage(&mut self, node: &NodeId) -> bool {
        if self.visits(node) >= self.most_visits(node) {
            self.beyond_visits(node);
            return false;
        }
        self.journal.push(Entry::Entered { node: node.clone(), refills: false });
        self.tell(format!("entered {node} visit {}", self.visits(node)));
        true
    }

    pub(super) fn beyond_visits(&mut self, node: &NodeId) {
        if !self.is_routing(node) && !self.beyond.contains(node) {
            self.beyond.push(node.clone());
            return self.exhausted(node, None);
        }
        let subject = self.rewind_to(node);
        self.ask(&subject, AskKind::Escalation, "visits_limit");
    }

    /// Returns the signal with which a run goes on from a routing node: the one it was entered with, where a skipped step
    /// counts as met.
    fn onward(&self, from: &NodeId, why: Signal) -> Signal {
        let outcome = self.settled(&self.subject(from));
        match why {
            Signal::Success => Signal::Success,
            Signal::Retry | Signal::Exhausted => match outcome {
                Some(Outcome::Skipped | Outcome::Warned) => Signal::Success,
                Some(Outcome::Passed | Outcome::Failed | Outcome::Waived) | None => Signal::Exhausted,
            },
        }
    }

    /// The node that last did something on the way to this one; itself, where the way goes in circles.
    pub(super) fn subject(&self, node: &NodeId) -> NodeId {
        let mut behind = vec![node.clone()];
        loop {
            let last = behind[behind.len() - 1].clone();
            if !self.is_routing(&last) {
                return last;
            }
            match self.entered_from(&last) {
                None => return last,
                Some(_) if behind[..behind.len() - 1].contains(&last) => return node.clone(),
                // A waiting join has no arrivals from before its fork was entered again.
                Some((from, _)) if self.is_join(&from) && self.settled(&from).is_none() => {
                    return node.clone();
                }
                Some((from, _)) => behind.push(from),
            }
        }
    }

    /// The subject of a node, to which the run goes back; joins on the way wait for it again.
    fn rewind_to(&mut self, node: &NodeId) -> NodeId {
        let subject = self.subject(node);
        let mut at = node.clone();
        if subject != at && self.is_live(&subject) {
            self.put(&subject, NodePosition::Nowhere);
        }
        while at != subject {
            let Some((from, _)) = self.entered_from(&at) else { break };
            if let NodeKind::Join(_) = self.kind(&at) {
                self.await_again(&at, &from);
            }
            at = from;
        }
        subject
    }

    /// Takes a run up at a node at which it stopped, or where something can be done for that.
    pub(super) fn revive(&mut self, node: &NodeId) {
        let (mut seen, mut open) = (Vec::new(), vec![node.clone()]);
        while let Some(id) = open.pop() {
            if seen.contains(&id) || self.is_live(&id) {
                continue;
            }
            seen.push(id.clone());
            if let Some(fork) = self.pending_fork(&id) {
                if !self.is_live(&fork) {
                    self.enter_fork(&fork);
                }
                continue;
            }
            match self.kind(&id) {
                NodeKind::Task(_) if self.proposed(&id).is_some() => self.begin(&id),
                NodeKind::Task(_)
                | NodeKind::Call(_)
                | NodeKind::Human(_)
                | NodeKind::SubPlan(_)
                | NodeKind::Checkpoint => self.enter(&id, true),
                NodeKind::Decision(choice) if choice.command.is_some() => self.enter(&id, true),
                NodeKind::Join(_) if self.awaits_merge(&id) => self.begin(&id),
                NodeKind::Join(_) => open.extend(self.reopen(&id)),
                NodeKind::Fork(fork)
                    if fork.in_worktree && matches!(self.settled(&id), None | Some(Outcome::Failed)) =>
                {
                    self.begin(&id);
                }
                NodeKind::Start => self.leave(&id, Signal::Success),
                NodeKind::Decision(_) | NodeKind::Fork(_)
                    if self.visits(&id) > 0 && self.subject(&id) == id =>
                {
                    self.begin(&id);
                }
                NodeKind::Decision(_)
                | NodeKind::Fork(_)
                | NodeKind::Escalate { .. }
                | NodeKind::Exit { .. } => open.extend(self.entered_from(&id).map(|(from, _)| from)),
            }
        }
    }

    /// The outermost fork around a node to which nobody came that was never entered; else that whose branches have no worktrees now, and
    /// should.
    fn pending_fork(&self, node: &NodeId) -> Option<NodeId> {
        let never = self.around(node).into_iter().rev().find(|(_, join, _)| !self.has_begun(join));
        if let (0, Some((fork, ..))) = (self.visits(node), never) {
            return Some(fork);
        }
        let around = self.forks_apart_around(node);
        around
            .into_iter()
            .find(|(fork, join)| {
                self.saved(fork).is_none() || self.is_live(fork) || self.settled(join).is_some()
            })
            .map(|(fork, _)| fork)
    }

    fn is_join(&self, node: &NodeId) -> bool {
        matches!(self.kind(node), NodeKind::Join(_))
    }

    /// A run whose stops are gone walks from its start through what is settled as met, each node once.
    fn replay_skips(&mut self, node: &NodeId) -> bool {
        let Some(walked) = &mut self.replayed else { return false };
        if walked.contains(node) {
            return false;
        }
        walked.push(node.clone());
        let is_step = self.graph.node(node).is_some_and(|node| node.step().is_some());
        let works = is_step || self.is_gated(node) || matches!(self.kind(node), NodeKind::SubPlan(_));
        works && matches!(self.settled(node), Some(outcome) if outcome != Outcome::Failed)
    }

    pub(super) fn entered_from(&self, node: &NodeId) -> Option<(NodeId, Signal)> {
        self.newest(node, |entry| {
            if let Entry::EnteredFrom { from, .. } = entry { Some(from.clone()) } else { None }
        })?
    }

    pub(super) fn level_named(&self, ask: &NodeId) -> Level {
        if let NodeKind::Escalate { pace_level: Some(level), .. } = self.kind(ask) {
            level
        } else {
            Level::Primary
        }
    }

    pub(super) fn is_routing(&self, node: &NodeId) -> bool {
        match self.kind(node) {
            NodeKind::Decision(choice) => choice.command.is_none(),
            NodeKind::Start | NodeKind::Checkpoint | NodeKind::Fork(_) | NodeKind::Join(_) => true,
            NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Human(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Escalate { .. }
            | NodeKind::Exit { .. } => false,
        }
    }

    pub(super) fn most_visits(&self, node: &NodeId) -> usize {
        self.graph.node(node).map_or(0, |node: &Node| usize::from(node.max_visits))
    }
}

pub(super) fn word(why: Signal) -> &'static str {
    match why {
        Signal::Success => "success",
        Signal::Retry => "retry",
        Signal::Exhausted => "exhausted",
    }
}

fn decider(by: Decider) -> &'static str {
    match by {
        Decider::Condition => " by condition",
        Decider::Outcome => " by outcome",
        Decider::Label => " by label",
        Decider::Suggestion => " by suggestion",
        Decider::Weight => " by weight",
    }
}
