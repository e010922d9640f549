//! The model's verbs: an attempt fails, a node is exhausted, left, entered, begun, held.

use std::time::Duration;

use planctl_engine::{
    AskKind, At, Attempt, Contract, HumanEvent, ItemId, Level, NodeId, NodeKind, Outcome, RedFirst,
    RehearsalResult, Signal, Usage,
};

use super::journal::Entry;
use super::money::Means;
use super::{Before, Model, NodePosition, Status};

impl Model {
    pub(super) fn attempt_failed(&mut self, node: &NodeId, how: &str, gave_up: bool) {
        self.journal.push(Entry::Failed { node: node.clone() });
        self.tell_next(node, Some(self.attempt(node)));
        if gave_up || self.is_used_up(node) {
            self.exhausted(node, Some(how));
        } else if let Some(way) = self.way(node, Signal::Retry) {
            self.put(node, NodePosition::Nowhere);
            self.open.push(way);
        } else {
            self.tell(format!("retry {node}#{}", self.attempt(node) + 1));
            self.begin(node);
        }
    }

    /// Goes on from a node that has no attempt left; `how` its last one failed, where one did, and it was not only entered
    /// too often.
    pub(super) fn exhausted(&mut self, node: &NodeId, how: Option<&str>) {
        let way = match how {
            Some(_) => self.way_of(node, Signal::Exhausted, Some(self.on_exhausted(node))),
            None => self.way_out(node, self.on_exhausted(node)),
        };
        let Some(way) = way else {
            let why = if how.is_some() { "no_edge" } else { "visits_limit" };
            return self.escalate(node, why, Level::Primary);
        };
        let target = self.kind(&way.edge.to);
        if !matches!(target, NodeKind::Escalate { .. }) {
            let may_come_back = !matches!(target, NodeKind::Exit { .. });
            if let Some(how) = how
                && may_come_back
                && self.recurs(node, how)
            {
                return self.escalate(node, "same_failure", Level::Primary);
            }
            self.settle(node, self.on_exhausted(node));
        }
        self.open.push(way);
    }

    /// Notes how a node failed for good, and says whether it did so too often in a row.
    fn recurs(&mut self, node: &NodeId, how: &str) -> bool {
        let before = self.recurred(node).filter(|(before, _)| before == how);
        let times = before.map_or(0, |(_, times)| times) + 1;
        let is_too_often = times >= usize::from(self.graph.limits().same_failures);
        // After a person was asked the count begins anew.
        let how = (!is_too_often).then(|| (how.to_owned(), times));
        self.journal.push(Entry::Recurred { node: node.clone(), how });
        is_too_often
    }

    /// Says whether the node failed as often as it may be tried.
    pub(super) fn is_used_up(&self, node: &NodeId) -> bool {
        self.failed(node) > self.retries(node) + self.granted(node)
    }

    fn retries(&self, node: &NodeId) -> usize {
        self.graph.gated(node).map_or(0, |gated| gated.max_retries.into())
    }

    pub(super) fn on_exhausted(&self, node: &NodeId) -> Outcome {
        if let NodeKind::SubPlan(plan) = self.kind(node) {
            return plan.on_exhausted;
        }
        self.graph.gated(node).map_or(Outcome::Failed, |gated| gated.on_exhausted)
    }

    pub(super) fn enter(&mut self, node: &NodeId, refills: bool) {
        let known = match self.before(node) {
            _ if self.red_first(node) == RedFirst::Off && !self.is_for_judge(node) => Before::Unasked,
            // A contract that was red once can fail, and is not asked again.
            red @ Before::Showed(_, RehearsalResult::Red) if self.is_of_contract(node, &red) => red,
            // Nor are files kept twice, unless it is to be red by now.
            kept @ Before::Kept(_)
                if self.red_first(node) == RedFirst::Off && self.is_of_contract(node, &kept) =>
            {
                kept
            }
            Before::Unasked | Before::Due | Before::Showed(..) | Before::Kept(_) => Before::Due,
        };
        self.journal.push(Entry::Before { node: node.clone(), known });
        if self.visits(node) >= self.most_visits(node) {
            return self.beyond_visits(node);
        }
        self.journal.push(Entry::Entered { node: node.clone(), refills });
        if refills {
            self.tell_next(node, None);
            self.journal.push(Entry::Noted { node: node.clone(), note: None });
        }
        self.tell(format!("entered {node} visit {}", self.visits(node)));
        self.begin(node);
    }

    /// Sends a node's work out, or out again.
    pub(super) fn begin(&mut self, node: &NodeId) {
        match self.kind(node) {
            NodeKind::Task(_) | NodeKind::Call(_) | NodeKind::SubPlan(_) => self.attempt_next(node),
            NodeKind::Decision(choice) if choice.command.is_some() => self.attempt_next(node),
            NodeKind::Human(_) => {
                self.ask(node, AskKind::Choice, "planned");
            }
            NodeKind::Checkpoint if !self.has_room(node) => self.stand_in_line(node),
            NodeKind::Checkpoint => {
                let is_failing = self.entered_from(node).is_some_and(|(_, why)| why != Signal::Success);
                let restores = is_failing && self.saved(node).is_some();
                self.journal.push(Entry::Rehearsing { node: node.clone() });
                self.put(node, NodePosition::Saved { restores });
            }
            NodeKind::Fork(fork) if fork.in_worktree => {
                self.leave_worktrees(node);
                self.part(node, false);
            }
            NodeKind::Join(_) if self.awaits_merge(node) => self.part(node, true),
            NodeKind::Decision(_) => self.pass_on(node),
            NodeKind::Start | NodeKind::Fork(_) => self.leave(node, Signal::Success),
            NodeKind::Join(_) | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => self.revive(node),
        }
    }

    fn attempt_next(&mut self, node: &NodeId) {
        let asks = matches!(self.kind(node), NodeKind::Call(call) if call.approval.is_some());
        if asks && !self.is_allowed(node) {
            self.ask(node, AskKind::Effect, "effect");
        } else if !self.has_room(node) {
            self.stand_in_line(node);
        } else if let Some(gave_up) = self.proposed(node) {
            self.journal.push(Entry::Proposed { node: node.clone(), gave_up: None });
            if self.is_confirmed(node) {
                // The output that was seen with the report is not kept for so long.
                self.ask(node, AskKind::Choice, "planned");
            } else {
                self.put(node, NodePosition::WithHarness { gave_up });
            }
        } else if self.attempts_of_run() as u64 >= u64::from(self.graph.limits().attempts) {
            self.ask(node, AskKind::Escalation, "attempts_limit");
        } else if self.may_spend(node) {
            self.send_out(node);
        }
    }

    /// Promises a node what it is expected to use; where that is too much, a person is asked, or it waits for others.
    fn may_spend(&mut self, node: &NodeId) -> bool {
        match self.means(node) {
            Means::None => self.ask(node, AskKind::Budget, "budget"),
            Means::Promised => self.stand_in_line(node),
            Means::Enough { tokens, micro_usd } => {
                if self.is_paid(node) {
                    let is_sub_plan = matches!(self.kind(node), NodeKind::SubPlan(_));
                    let (tokens, micro_usd) =
                        if is_sub_plan { self.left_beside(node) } else { (tokens, micro_usd) };
                    self.journal.push(Entry::Promised { node: node.clone(), tokens, micro_usd });
                }
                return true;
            }
        }
        false
    }

    /// Has the contract rehearsed or the next attempt made.
    fn send_out(&mut self, node: &NodeId) {
        if self.awaits_rehearsal(node) {
            self.journal.push(Entry::Rehearsing { node: node.clone() });
            self.put(node, NodePosition::Rehearsed);
        } else {
            self.journal.push(Entry::Begun { node: node.clone() });
            let kind = self.kind(node);
            if let NodeKind::SubPlan(_) = kind {
                return self.put(node, NodePosition::Within);
            }
            let by_agent = matches!(kind, NodeKind::Task(_));
            self.put(
                node,
                if by_agent { NodePosition::WithAgent } else { NodePosition::WithHarness { gave_up: false } },
            );
        }
    }

    /// Has the worktrees of a fork's branches made, or merged at the join.
    fn part(&mut self, node: &NodeId, merges: bool) {
        if !self.has_room(node) {
            return self.stand_in_line(node);
        }
        self.journal.push(Entry::Branched { node: node.clone() });
        self.put(node, NodePosition::Forking { merges });
    }

    fn stand_in_line(&mut self, node: &NodeId) {
        self.tell(format!("queued {node}"));
        self.put(node, NodePosition::InLine);
    }

    /// Says whether a node may be under way beside those that are.
    fn has_room(&self, node: &NodeId) -> bool {
        let out: Vec<NodeId> = self.out();
        if out.contains(node) {
            return true;
        }
        let own = self.excludes(node);
        let is_shared = |other: &NodeId| self.excludes(other).iter().any(|name| own.contains(name));
        out.len() < usize::from(self.graph.limits().parallel) && !out.iter().any(is_shared)
    }

    /// Says whether a node that waits has room, and is not waiting for what others were promised.
    fn may_go(&self, node: &NodeId) -> bool {
        let waits = self.proposed(node).is_none() && matches!(self.means(node), Means::Promised);
        self.has_room(node) && !waits
    }

    fn excludes(&self, node: &NodeId) -> Vec<String> {
        self.graph.task(node).map_or(Vec::new(), |task| task.excludes.clone())
    }

    /// Sends out who has waited longest and has room; says whether there was one.
    pub(super) fn next_in_line(&mut self) -> bool {
        if self.status != Status::Active {
            return false;
        }
        let Some(next) = self.line().into_iter().find(|node| self.may_go(node)) else { return false };
        self.put(&next, NodePosition::Nowhere);
        self.begin(&next);
        true
    }

    /// Returns the nodes that wait for room, the first first.
    pub(super) fn line(&self) -> Vec<NodeId> {
        let since = |node: &NodeId| {
            self.journal.iter().rposition(
                |entry| matches!(entry, Entry::Moved { node: moved, to: NodePosition::InLine } if moved == node),
            )
        };
        let mut line: Vec<NodeId> =
            self.live().into_iter().filter(|node| self.place(node) == NodePosition::InLine).collect();
        line.sort_by_key(since);
        line
    }

    /// Returns the plan's `red_first` for a contract; one that guards, and one that is none, are left alone.
    pub(super) fn red_first(&self, node: &NodeId) -> RedFirst {
        let contract = self.graph.task(node).map(|task| &task.contract);
        let asks = contract.filter(|contract| !contract.guard && !contract.command.is_empty());
        asks.map_or(RedFirst::Off, |contract| contract.red_first)
    }

    fn is_for_judge(&self, node: &NodeId) -> bool {
        self.graph.task(node).is_some_and(|task| task.contract.judge.is_some())
    }

    fn is_of_contract(&self, node: &NodeId, known: &Before) -> bool {
        let digest = self.graph.task(node).map(|task| &task.contract.digest);
        matches!(known, Before::Showed(of, _) | Before::Kept(of) if Some(of) == digest)
    }

    /// Says whether the contract is to be rehearsed before anybody works: it is due, or red is demanded and it wasn't.
    pub(super) fn awaits_rehearsal(&self, node: &NodeId) -> bool {
        match self.before(node) {
            Before::Due => true,
            Before::Showed(_, showed) => {
                showed != RehearsalResult::Red && self.red_first(node) == RedFirst::Deny
            }
            Before::Unasked | Before::Kept(_) => false,
        }
    }

    pub(super) fn delivery_lost(&mut self, node: &NodeId) {
        self.journal.push(Entry::Lost { node: node.clone() });
        if self.deliveries(node) >= usize::from(self.graph.limits().deliveries) {
            self.tell_next(node, Some(self.attempt(node)));
            self.escalate(node, "undelivered", Level::Primary);
        } else if self.may_spend(node) {
            self.tell(format!("resting {node}#{}", self.attempt(node)));
            self.put(node, NodePosition::Resting);
        }
    }

    pub(super) fn interrupted(&mut self, node: &NodeId, back_to: NodePosition) {
        self.journal.push(Entry::Interrupted { node: node.clone() });
        if self.interruptions(node) >= usize::from(self.graph.limits().interruptions) {
            return self.ask(node, AskKind::Escalation, "interrupted");
        }
        if back_to == NodePosition::WithAgent && !self.may_spend(node) {
            return;
        }
        let what = if back_to == NodePosition::WithAgent {
            "interrupted".to_owned()
        } else {
            format!("{} repeated", evaluation(&back_to))
        };
        self.tell(format!("{what} {node}#{}", self.attempt(node)));
        self.put(node, back_to);
    }

    pub(super) fn settle(&mut self, node: &NodeId, outcome: Outcome) {
        self.put(node, NodePosition::Over(outcome));
        self.tell(format!("settled {node} {}", outcome.as_str()));
    }

    /// Asks a person about a node, who alone says how it is left.
    pub(super) fn ask(&mut self, node: &NodeId, kind: AskKind, why: &str) {
        self.open.retain(|way| way.edge.from != *node);
        self.journal.push(Entry::Asked { node: node.clone(), at: self.now });
        let at = At {
            node: node.clone(),
            visit: self.visits(node) as u16,
            attempt: Attempt::from_number(self.attempt(node) as u16),
        };
        let item = ItemId::ask(self.id, &at, kind.as_str(), self.asks() as u32);
        if kind == AskKind::Escalation {
            self.tell(format!("escalated {node} {why}"));
        }
        self.tell(format!("ask {node} {} {why}", kind.as_str()));
        self.put(node, NodePosition::WithPerson(kind, item));
    }

    /// Ends the run, or pauses it: items under way are withdrawn.
    pub(super) fn end(&mut self, status: Status) {
        for node in self.live() {
            self.put(&node, NodePosition::Nowhere);
        }
        self.status = status;
        self.stale_timer = None;
    }

    /// Ends the run at a node; it goes on there, and where else something was under way.
    pub(super) fn end_at(&mut self, status: Status, node: &NodeId) {
        self.stopped_at = vec![node.clone()];
        self.stopped_at.extend(self.live());
        self.end(status);
    }

    pub(super) fn charge(&mut self, node: &NodeId, usage: Option<&Usage>, time: Duration) {
        let usage = usage.map(|u| (u.input_tokens + u.output_tokens, u.micro_usd.unwrap_or(0)));
        self.journal.push(Entry::Charged { node: node.clone(), usage, time });
    }

    /// Charges what a judge used, which is no work of its own.
    pub(super) fn charge_judge(&mut self, node: &NodeId, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            let usage = (usage.input_tokens + usage.output_tokens, usage.micro_usd.unwrap_or(0));
            self.journal.push(Entry::Judged { node: node.clone(), usage });
        }
    }

    /// Charges what came to nothing, where anything is told of it.
    pub(super) fn charge_told(&mut self, node: &NodeId, usage: Option<&Usage>) {
        if usage.is_some() {
            self.charge(node, usage, Duration::ZERO);
        }
    }

    /// Charges what the worker at a node said so far that it uses, or what its judge may have used, when the work is taken back.
    pub(super) fn charge_so_far(&mut self, node: &NodeId) {
        match self.place(node) {
            NodePosition::WithAgent | NodePosition::Resting => {
                if let Some(usage) = self.so_far.remove(node) {
                    self.charge(node, Some(&usage), Duration::ZERO);
                }
            }
            NodePosition::WithHarness { .. } => {
                let usage = self.so_far.remove(node);
                self.charge_judge(node, usage.as_ref());
            }
            NodePosition::Nowhere
            | NodePosition::InLine
            | NodePosition::Rehearsed
            | NodePosition::Saved { .. }
            | NodePosition::Forking { .. }
            | NodePosition::Within
            | NodePosition::WithPerson(..)
            | NodePosition::Over(_) => {}
        }
    }

    pub(super) fn note_down(&mut self, event: &HumanEvent, node: &NodeId) {
        self.journal.push(Entry::Noted { node: node.clone(), note: event.note.clone() });
    }

    pub(super) fn tell_next(&mut self, node: &NodeId, failed: Option<usize>) {
        self.journal.push(Entry::Briefed { node: node.clone(), failed });
    }

    pub(super) fn put(&mut self, node: &NodeId, to: NodePosition) {
        self.charge_so_far(node);
        self.journal.push(Entry::Moved { node: node.clone(), to });
    }

    pub(super) fn tell(&mut self, what: String) {
        self.tellings.push(what);
    }

    pub(super) fn kind(&self, id: &NodeId) -> NodeKind {
        self.graph.node(id).map_or(NodeKind::Start, |node| node.kind.clone())
    }

    /// Says whether the harness evaluates something at a node.
    pub(super) fn is_gated(&self, node: &NodeId) -> bool {
        self.contract(node).is_some()
    }

    /// Returns the contract that the harness evaluates at a node.
    pub(super) fn contract(&self, node: &NodeId) -> Option<Contract> {
        self.graph.gated(node).map(|gated| gated.contract.clone())
    }

    /// The nodes with work out, for an agent or the harness, by name.
    pub(super) fn out(&self) -> Vec<NodeId> {
        let is_out =
            |id: &NodeId| !matches!(self.place(id), NodePosition::WithPerson(..) | NodePosition::InLine);
        self.live().into_iter().filter(is_out).collect()
    }

    /// The nodes that are with someone, or wait in line, by name.
    pub(super) fn live(&self) -> Vec<NodeId> {
        let ids = self.graph.nodes().iter().map(|node| &node.id);
        ids.filter(|id| self.is_live(id)).cloned().collect()
    }

    pub(super) fn is_live(&self, id: &NodeId) -> bool {
        !matches!(self.place(id), NodePosition::Nowhere | NodePosition::Over(_))
    }
}

/// Returns the name of an evaluation by the harness.
pub(super) fn evaluation(place: &NodePosition) -> &'static str {
    match place {
        NodePosition::Rehearsed => "rehearsal",
        NodePosition::Saved { restores: false } => "record",
        NodePosition::Saved { restores: true } => "restoration",
        NodePosition::Forking { merges: false } => "parting",
        NodePosition::Forking { merges: true } => "merge",
        NodePosition::Within => "sub-plan",
        NodePosition::Nowhere
        | NodePosition::InLine
        | NodePosition::WithAgent
        | NodePosition::Resting
        | NodePosition::WithHarness { .. }
        | NodePosition::WithPerson(..)
        | NodePosition::Over(_) => "gate",
    }
}
