//! The model's branches: where they begin, what has come into a join, and what is left of the others.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{Edge, Fork, Join, JoinPolicy, NodeId, NodeKind, Outcome, Signal};

use super::journal::Entry;
use super::ways::ChosenEdge;
use super::{Model, NodePosition};

/// The arrivals at a join since it began to wait.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Come {
    /// Branches that came well.
    pub met: BTreeSet<usize>,
    /// Branches that failed, and where.
    pub failed: BTreeMap<usize, NodeId>,
    /// How many were begun, where they are begun one after another.
    pub begun: Option<usize>,
    /// Branches whose turn comes later, and where they go on.
    pub waiting: BTreeMap<usize, BTreeSet<NodeId>>,
}

impl Come {
    pub(super) fn has(&self, branch: usize) -> bool {
        self.met.contains(&branch) || self.failed.contains_key(&branch)
    }

    /// Says whether the turn of a branch has come, where they are begun one after another.
    pub(super) fn has_begun(&self, branch: usize) -> bool {
        self.begun.is_none_or(|begun| branch < begun)
    }
}

impl Model {
    /// Says whether a step may be done anew by itself: it has a contract or a judge, and no way from a fork leads to it that has not come
    /// through the fork's join.
    pub(super) fn can_repeat(&self, node: &NodeId) -> bool {
        let has_contract = self
            .graph
            .gated(node)
            .is_some_and(|gated| !gated.contract.command.trim().is_empty() || gated.contract.judge.is_some());
        let forks = self.graph.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Fork(_)));
        let is_beside = |fork: &NodeId| {
            let is_joined = |id: &NodeId| self.graph.fork_of(id) == Some(fork);
            self.edges_of(fork).iter().any(|edge| self.leads_to(&edge.to, is_joined).contains(node))
        };
        has_contract && !forks.map(|fork| &fork.id).any(is_beside)
    }

    /// A node and everything behind it.
    pub(super) fn behind(&self, node: &NodeId) -> Vec<NodeId> {
        self.leads_to(node, |_| false)
    }

    /// Follows all ways within an epoch from a node, up to those that end a way, exits and escalations.
    pub(super) fn leads_to(&self, first: &NodeId, ends: impl Fn(&NodeId) -> bool) -> Vec<NodeId> {
        let leads_on = |id: &NodeId| {
            let kind = self.graph.node(id).map(|node| &node.kind);
            !ends(id) && !matches!(kind, None | Some(NodeKind::Exit { .. } | NodeKind::Escalate { .. }))
        };
        let mut reached: Vec<NodeId> = Some(first.clone()).into_iter().filter(leads_on).collect();
        let mut next = 0;
        while let Some(from) = reached.get(next).cloned() {
            next += 1;
            for edge in self.edges_of(&from).iter().filter(|edge| edge.restart.is_none()) {
                if leads_on(&edge.to) && !reached.contains(&edge.to) {
                    reached.push(edge.to.clone());
                }
            }
        }
        reached
    }

    /// Begins the branches of a fork, once they have worktrees where they want any; a run that walks again from its start
    /// passes branches that are merged already.
    pub(super) fn begin_branches(&mut self, node: &NodeId) {
        let NodeKind::Fork(fork) = self.kind(node) else { return };
        if !fork.in_worktree {
            return self.spread(node);
        }
        if let Some(join) = fork.join.clone().filter(|_| self.replayed.is_some())
            && matches!(self.settled(&join), Some(outcome) if outcome != Outcome::Failed)
        {
            self.put(node, NodePosition::Over(Outcome::Passed));
            return self.leave(&join, Signal::Success);
        }
        self.begin(node);
    }

    /// Takes back what is under way in worktrees of a fork that were made before, as they are made anew.
    pub(super) fn leave_worktrees(&mut self, node: &NodeId) {
        let NodeKind::Fork(Fork { join: Some(join), .. }) = self.kind(node) else { return };
        if self.attempt(node) == 0 {
            return;
        }
        self.take_back(node, &join);
        if self.is_live(&join) {
            self.put(&join, NodePosition::Nowhere);
        }
    }

    /// Takes back what is under way between a fork and its join.
    fn take_back(&mut self, fork: &NodeId, join: &NodeId) {
        let inside = self.inside(fork, join);
        let ways = self.open.iter().map(|way| way.edge.from.clone());
        let stood: BTreeSet<NodeId> =
            self.live().into_iter().chain(ways).filter(|node| inside.contains(node)).collect();
        for live in self.live().into_iter().filter(|live| inside.contains(live)) {
            self.put(&live, NodePosition::Nowhere);
        }
        self.open.retain(|way| !inside.contains(&way.edge.from) && way.edge.from != *fork);
        for at in stood {
            for (_, inner, branch) in self.around(&at) {
                if inside.contains(&inner) && self.has_begun(&inner) {
                    self.journal.push(Entry::Waits { node: inner, branch, at: at.clone() });
                }
            }
        }
    }

    /// Takes back what is under way where nothing but a join is ahead.
    fn take_back_leading_to(&mut self, join: &NodeId) {
        let all: Vec<NodeId> = self.graph.nodes().iter().map(|node| node.id.clone()).collect();
        let is_way_past = |id: &NodeId| {
            matches!(self.kind(id), NodeKind::Exit { success: true })
                || self.edges_of(id).iter().any(|edge| edge.restart.is_some())
        };
        let leads_there_only = |id: &NodeId| {
            let past = self.reached(id, std::slice::from_ref(join), false);
            id != join
                && self.reached(id, &[], false).contains(join)
                && !is_way_past(id)
                && !past.iter().any(is_way_past)
        };
        let of_it: BTreeSet<NodeId> = all.into_iter().filter(leads_there_only).collect();
        for live in self.live().into_iter().filter(|live| of_it.contains(live)) {
            self.put(&live, NodePosition::Nowhere);
        }
        self.open.retain(|way| !of_it.contains(&way.edge.from));
    }

    /// Says whether the branches of a join have come, and what they did in their worktrees is still to be merged.
    pub(super) fn awaits_merge(&self, join: &NodeId) -> bool {
        let is_open = matches!(self.settled(join), None | Some(Outcome::Failed));
        is_open && self.is_in_worktree(join) && self.merging(join).is_some()
    }

    pub(super) fn is_in_worktree(&self, join: &NodeId) -> bool {
        self.forks().iter().any(|(_, fork)| fork.in_worktree && fork.join.as_ref() == Some(join))
    }

    /// The forks around a node whose branches have worktrees of their own, the outermost first, each with its join.
    pub(super) fn forks_apart_around(&self, node: &NodeId) -> Vec<(NodeId, NodeId)> {
        let mut around: Vec<(NodeId, NodeId, usize)> = Vec::new();
        for (id, fork) in self.forks() {
            let Some(join) = fork.join.filter(|_| fork.in_worktree) else { continue };
            let inside = self.inside(&id, &join);
            if inside.contains(node) {
                around.push((id, join, inside.len()));
            }
        }
        around.sort_by_key(|(_, _, size)| std::cmp::Reverse(*size));
        around.into_iter().map(|(fork, join, _)| (fork, join)).collect()
    }

    /// Begins the branches of a fork, or as many as may be under way at once.
    pub(super) fn spread(&mut self, node: &NodeId) {
        let NodeKind::Fork(fork) = self.kind(node) else { return };
        self.put(node, NodePosition::Over(Outcome::Passed));
        let edges = self.edges_of(node);
        // Branches that meet nowhere have nobody who would begin one later.
        let at_once = match (&fork.join, fork.max) {
            (Some(_), Some(max)) => edges.len().min(max.into()),
            (Some(_), None) | (None, _) => edges.len(),
        };
        if let Some(join) = &fork.join {
            if self.of(join).any(|entry| matches!(entry, Entry::Round { .. } | Entry::Arrived { .. })) {
                self.take_back(node, join);
            }
            self.put(join, NodePosition::Nowhere);
            self.journal.push(Entry::Round { node: join.clone() });
            self.journal.push(Entry::EnteredFrom { node: join.clone(), from: None });
            if fork.max.is_some() {
                self.journal.push(Entry::Begins { node: join.clone(), branches: at_once });
            }
        } else if self.visits(node) > 1 {
            self.open.retain(|way| way.edge.from != *node);
            self.await_behind(node);
        }
        // The last that is put on the pile is looked at first.
        for edge in edges[..at_once].iter().rev() {
            self.open.push(ChosenEdge { edge: edge.clone(), why: Signal::Success, by: None });
        }
    }

    /// Settles the join of branches that nobody begins, as a person left their fork out.
    pub(super) fn leave_out(&mut self, fork: &NodeId, outcome: Outcome) {
        let NodeKind::Fork(Fork { in_worktree: true, join: Some(join), .. }) = self.kind(fork) else {
            return;
        };
        self.put(&join, NodePosition::Nowhere);
        self.journal.push(Entry::Round { node: join.clone() });
        self.journal.push(Entry::EnteredFrom { node: join.clone(), from: None });
        self.set_context(&join, self.context(fork));
        self.settle(&join, outcome);
    }

    /// Hears that a branch came into a join.
    pub(super) fn join(&mut self, edge: &Edge, why: Signal) {
        let (from, node) = (&edge.from, &edge.to);
        let NodeKind::Join(rule) = self.kind(node) else { return };
        let fork = self.fork_of(node);
        let branch = self.branch(node, from);
        let passed_over = matches!(self.settled(from), Some(Outcome::Skipped | Outcome::Warned));
        let met = why == Signal::Success || passed_over;
        self.dead_end = Some(node.clone());
        if self.come(node).has(branch) || self.settled(node).is_some() || self.awaits_merge(node) {
            let is_late =
                self.settled(node).is_some() && !self.come(node).has(branch) && !self.comes_round(node, from);
            if fork.is_none() && is_late {
                let exits = self.graph.nodes().iter().map(|node| node.id.clone());
                let is_reached = |id: &NodeId| {
                    matches!(self.kind(id), NodeKind::Exit { success: true })
                        && self.entered_from(id).is_some()
                };
                let reached = exits.filter(is_reached);
                if let Some(exit) = reached.collect::<Vec<_>>().first() {
                    self.finish(node, exit);
                }
                return;
            }
            if fork.is_some() {
                return;
            }
            self.journal.push(Entry::Forgotten { node: node.clone(), branch });
        }
        self.journal.push(Entry::Arrived { node: node.clone(), branch, from: from.clone(), met });
        if !met || self.entered_from(node).is_none() {
            let from = Some((from.clone(), why));
            self.journal.push(Entry::EnteredFrom { node: node.clone(), from });
        }
        if fork.is_none() {
            let mut context = self.context(node);
            context.extend(self.context(from));
            self.set_context(node, context);
        }
        match self.joined(node, &rule) {
            Some(outcome) => self.go_on_from(node, outcome, fork.as_ref()),
            None => self.begin_another(node, fork.as_ref()),
        }
    }

    /// Says how a join came out, once enough branches have come.
    pub(super) fn joined(&self, node: &NodeId, rule: &Join) -> Option<Outcome> {
        let come = self.come(node);
        let all_are_there = come.met.len() + come.failed.len() >= self.branches_of(node);
        let is_good = match rule.policy {
            JoinPolicy::All if all_are_there => come.failed.is_empty(),
            JoinPolicy::Any if !come.met.is_empty() => true,
            JoinPolicy::Any if all_are_there => false,
            JoinPolicy::All | JoinPolicy::Any => return None,
        };
        Some(match (is_good, rule.partial) {
            (true, _) => Outcome::Passed,
            (false, true) => Outcome::Warned,
            (false, false) => Outcome::Failed,
        })
    }

    pub(super) fn go_on_from(&mut self, node: &NodeId, outcome: Outcome, fork: Option<&NodeId>) {
        match (fork, self.kind(node)) {
            (Some(fork), _) => self.take_back(fork, node),
            (None, NodeKind::Join(Join { policy: JoinPolicy::Any, .. })) => self.take_back_leading_to(node),
            (None, _) => {}
        }
        let come = self.come(node);
        if let Some(fork) = fork {
            let words = (0..self.branches_of(node).min(64)).map(|branch| {
                if come.failed.contains_key(&branch) {
                    "fail"
                } else if come.met.contains(&branch) {
                    "success"
                } else {
                    "skipped"
                }
            });
            let mut context = self.context(fork);
            context.insert("parallel.results".to_owned(), words.collect::<Vec<_>>().join(","));
            self.set_context(node, context);
        }
        self.journal.push(Entry::Entered { node: node.clone(), refills: false });
        self.tell(format!("joined {node} {} {}", come.met.len(), come.failed.len()));
        if self.is_live(node) {
            self.put(node, NodePosition::Nowhere);
        }
        if self.is_in_worktree(node) && outcome != Outcome::Failed {
            self.journal.push(Entry::Merging { node: node.clone(), outcome: Some(outcome) });
            return self.begin(node);
        }
        self.end_join(node, outcome);
    }

    /// Goes on from a join that needs nothing more.
    pub(super) fn end_join(&mut self, node: &NodeId, outcome: Outcome) {
        self.settle(node, outcome);
        self.leave(node, if outcome == Outcome::Failed { Signal::Exhausted } else { Signal::Success });
    }

    /// Begins one more branch, where the fork begins them one after another.
    fn begin_another(&mut self, node: &NodeId, fork: Option<&NodeId>) {
        let come = self.come(node);
        if let (Some(fork), Some((branch, places))) = (fork, come.waiting.first_key_value()) {
            self.journal.push(Entry::Called { node: node.clone(), branch: *branch });
            return self.go_on_with(fork, *branch, places);
        }
        let (Some(fork), Some(begun)) = (fork, come.begun) else { return };
        let left = self.edges_of(fork).into_iter().enumerate().skip(begun);
        if let Some((branch, edge)) = left.into_iter().find(|(branch, _)| !come.has(*branch)) {
            self.journal.push(Entry::Begins { node: node.clone(), branches: branch + 1 });
            self.open.push(ChosenEdge { edge, why: Signal::Success, by: None });
        }
    }

    /// Says whether a run that went on from a join comes to it again from a node, and the branch of that node is not one that
    /// the join awaits again because its fork is entered anew on the way.
    fn comes_round(&self, join: &NodeId, from: &NodeId) -> bool {
        let begins_it_anew = |fork: &NodeId| {
            let again = self.begun_again(fork);
            again.contains(join) && again.contains(from) && from != fork
        };
        let forks: Vec<NodeId> =
            self.forks().into_iter().filter(|(_, fork)| fork.join.is_none()).map(|(id, _)| id).collect();
        let but: Vec<NodeId> = forks.into_iter().filter(begins_it_anew).collect();
        let mut seen = self.reached(join, &but, false);
        let is_end = |id: &NodeId| matches!(self.kind(id), NodeKind::Exit { success: true });
        if seen.iter().any(is_end) {
            let retries = self.graph.goals().iter().filter_map(|goal| goal.retry.clone());
            for retry in retries.filter(|retry| !but.contains(retry)) {
                seen.extend(self.reached(&retry, &but, false));
                seen.insert(retry);
            }
        }
        seen.contains(from)
    }

    /// Returns the arrivals at a join since its fork was entered.
    pub(super) fn come(&self, node: &NodeId) -> Come {
        let mut come = Come::default();
        for entry in self.of(node) {
            if let Entry::Round { .. } = entry {
                come = Come::default();
            }
            if let Entry::Recounted { come: other, .. } = entry {
                come = other.clone();
            }
            if let Entry::Begins { branches, .. } = entry {
                come.begun = Some(*branches);
            }
            if let Entry::Arrived { branch, .. } | Entry::Forgotten { branch, .. } = entry {
                come.met.remove(branch);
                come.failed.remove(branch);
                come.waiting.remove(branch);
            }
            if let Entry::Waits { branch, at, .. } = entry {
                come.waiting.entry(*branch).or_default().insert(at.clone());
            }
            if let Entry::Called { branch, .. } = entry {
                come.waiting.remove(branch);
            }
            if let Entry::Arrived { branch, from, met, .. } = entry {
                if *met {
                    come.met.insert(*branch);
                } else {
                    come.failed.insert(*branch, from.clone());
                }
            }
        }
        come
    }

    /// Has the joins ahead of a fork that names none wait once more for what it begins again.
    fn await_behind(&mut self, fork: &NodeId) {
        let mut again = self.begun_again(fork);
        let ahead: Vec<NodeId> =
            again.iter().filter(|id| matches!(self.kind(id), NodeKind::Join(_))).cloned().collect();
        again.remove(fork);
        for join in ahead {
            self.await_from(&join, &again);
        }
    }

    /// The nodes that a fork begins again where it is entered once more: all behind it that do not lie before it as well.
    fn begun_again(&self, fork: &NodeId) -> BTreeSet<NodeId> {
        let start = self.graph.start().clone();
        let is_before =
            |id: &NodeId| id == fork || !self.reached(&start, std::slice::from_ref(id), true).contains(fork);
        let all = self.graph.nodes().iter().map(|node| node.id.clone());
        let before: Vec<NodeId> = all.filter(is_before).collect();
        self.reached(fork, &before, false)
    }

    /// Has a join that no fork names, if it was come to, wait once more for the branches that end at some nodes.
    pub(super) fn await_from(&mut self, join: &NodeId, again: &BTreeSet<NodeId>) {
        let is_untouched = self.come(join) == Come::default()
            && self.entered_from(join).is_none()
            && self.settled(join).is_none();
        if self.fork_of(join).is_some() || is_untouched {
            return;
        }
        self.put(join, NodePosition::Nowhere);
        self.journal.push(Entry::EnteredFrom { node: join.clone(), from: None });
        for (branch, from) in self.needed(join).into_iter().enumerate() {
            if again.contains(&from) {
                self.journal.push(Entry::Forgotten { node: join.clone(), branch });
            }
        }
    }

    /// All nodes that ways lead to from one, which is not among them unless a way leads back; some are never passed. Ways over
    /// which the run begins anew are among them, or are not.
    pub(super) fn reached(&self, from: &NodeId, but: &[NodeId], begins_anew: bool) -> BTreeSet<NodeId> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        if but.contains(from) && !matches!(self.kind(from), NodeKind::Fork(_)) {
            return seen;
        }
        while let Some(id) = open.pop() {
            for edge in if begins_anew { self.edges_of(&id) } else { self.edges_on(&id) } {
                if !but.contains(&edge.to) && seen.insert(edge.to.clone()) {
                    open.push(edge.to);
                }
            }
        }
        seen
    }

    /// Has a join wait once more for the branch that comes from a node.
    pub(super) fn await_again(&mut self, join: &NodeId, from: &NodeId) {
        self.await_branch(join, self.branch(join, from));
    }

    pub(super) fn await_branch(&mut self, join: &NodeId, branch: usize) {
        self.put(join, NodePosition::Nowhere);
        self.journal.push(Entry::Forgotten { node: join.clone(), branch });
        self.journal.push(Entry::Merging { node: join.clone(), outcome: None });
        let other = self.come(join).failed.into_values().next();
        let from = other.map(|other| (other, Signal::Exhausted));
        self.journal.push(Entry::EnteredFrom { node: join.clone(), from });
    }

    /// Has a join wait once more for what failed, or for what decided its way; returns where those branches ended.
    pub(super) fn reopen(&mut self, join: &NodeId) -> BTreeSet<NodeId> {
        self.put(join, NodePosition::Nowhere);
        let failed = self.come(join).failed;
        let entered_from = self.entered_from(join);
        for branch in failed.keys() {
            self.journal.push(Entry::Forgotten { node: join.clone(), branch: *branch });
        }
        self.journal.push(Entry::EnteredFrom { node: join.clone(), from: None });
        if let (true, Some((from, _))) = (failed.is_empty(), entered_from) {
            self.await_again(join, &from);
            return BTreeSet::from([from]);
        }
        let fork =
            self.forks().into_iter().map(|(_, fork)| fork).find(|fork| fork.join.as_ref() == Some(join));
        let room = fork.and_then(|fork| fork.max).map_or(failed.len(), usize::from);
        for (branch, at) in failed.iter().skip(room) {
            self.journal.push(Entry::Waits { node: join.clone(), branch: *branch, at: at.clone() });
        }
        failed.into_values().take(room).collect()
    }

    pub(super) fn edges_of(&self, node: &NodeId) -> Vec<Edge> {
        self.graph.edges().iter().filter(|edge| edge.from == *node).cloned().collect()
    }

    /// The edges of a node that lead on; one over which the run begins anew belongs to no branch.
    fn edges_on(&self, node: &NodeId) -> Vec<Edge> {
        self.edges_of(node).into_iter().filter(|edge| edge.restart.is_none()).collect()
    }

    pub(super) fn forks(&self) -> Vec<(NodeId, Fork)> {
        let nodes = self.graph.nodes().iter();
        let forks = nodes.filter_map(|node| {
            if let NodeKind::Fork(fork) = &node.kind { Some((node.id.clone(), fork.clone())) } else { None }
        });
        forks.collect()
    }

    /// The fork whose branches meet at a join.
    pub(super) fn fork_of(&self, join: &NodeId) -> Option<NodeId> {
        self.forks().into_iter().find(|(_, fork)| fork.join.as_ref() == Some(join)).map(|(id, _)| id)
    }

    /// The nodes between a fork and its join; ways out are part of it, and what they lead to is not.
    pub(super) fn inside(&self, fork: &NodeId, join: &NodeId) -> BTreeSet<NodeId> {
        let starts: Vec<NodeId> = self.edges_of(fork).into_iter().map(|edge| edge.to).collect();
        starts.iter().flat_map(|start| self.walk(start, join)).collect()
    }

    /// All nodes on the ways from one to a join.
    pub(super) fn walk(&self, start: &NodeId, join: &NodeId) -> BTreeSet<NodeId> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(id) = open.pop() {
            if id == *join || !seen.insert(id.clone()) {
                continue;
            }
            if !matches!(self.kind(&id), NodeKind::Escalate { .. } | NodeKind::Exit { .. }) {
                open.extend(self.edges_on(&id).into_iter().map(|edge| edge.to));
            }
        }
        seen
    }

    /// The branch by which a node leads into a join: that of the fork's edge behind it, else the node is one itself.
    pub(super) fn branch(&self, join: &NodeId, from: &NodeId) -> usize {
        if let Some(fork) = self.fork_of(join) {
            let is_it =
                |edge: &Edge| (edge.to == *join && *from == fork) || self.walk(&edge.to, join).contains(from);
            return self.edges_of(&fork).iter().position(is_it).unwrap_or(usize::MAX);
        }
        self.needed(join).iter().position(|need| need == from).unwrap_or(usize::MAX)
    }

    pub(super) fn branches_of(&self, join: &NodeId) -> usize {
        match self.fork_of(join) {
            Some(fork) => self.edges_of(&fork).len(),
            None => self.needed(join).len(),
        }
    }

    /// The nodes that lead into a join, each once, in the author's order.
    pub(super) fn needed(&self, join: &NodeId) -> Vec<NodeId> {
        let mut needed: Vec<NodeId> = Vec::new();
        for edge in self.graph.edges().iter().filter(|edge| edge.to == *join) {
            if !needed.contains(&edge.from) {
                needed.push(edge.from.clone());
            }
        }
        needed
    }
}
