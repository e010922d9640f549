//! The model's branches where a run is taken up: which go on, and where they stood.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{Edge, Fork, NodeId, NodeKind, Outcome, Signal};

use super::branches::Come;
use super::journal::Entry;
use super::ways::ChosenEdge;
use super::{Model, NodePosition};

impl Model {
    /// Says whether a join has had branches begun, or come.
    pub(super) fn has_begun(&self, join: &NodeId) -> bool {
        self.of(join).any(|entry| matches!(entry, Entry::Round { .. } | Entry::Arrived { .. }))
    }

    /// The forks around a node, the innermost first, each with its join and the branch of the node.
    pub(super) fn around(&self, node: &NodeId) -> Vec<(NodeId, NodeId, usize)> {
        let mut around = Vec::new();
        if matches!(self.kind(node), NodeKind::Exit { .. }) {
            return around;
        }
        let is_ask = matches!(self.kind(node), NodeKind::Escalate { .. });
        for (id, fork) in self.forks() {
            let Some(join) = fork.join else { continue };
            let leads_there = |edge: &Edge| self.walk(&edge.to, &join).contains(node);
            let edges = self.edges_of(&id);
            let is_shared = is_ask && edges.iter().filter(|edge| leads_there(edge)).count() > 1;
            if let Some(branch) = edges.iter().position(leads_there).filter(|_| !is_shared) {
                around.push((id, join, branch));
            }
        }
        around.sort_by_key(|(fork, join, _)| self.inside(fork, join).len());
        around
    }

    /// Has the joins around a node at which a run goes on wait for it, and begins beside it what was taken back.
    pub(super) fn go_on_beside(&mut self, node: &NodeId) {
        if !self.is_live(node) && !self.open.iter().any(|way| way.edge.from == *node) {
            return;
        }
        for (fork, join, branch) in self.around(node) {
            if self.is_in_worktree(&join) || !self.has_begun(&join) {
                continue;
            }
            if self.settled(&join).is_some() {
                self.await_branch(&join, branch);
            }
            if let Some(places) = self.come(&join).waiting.get(&branch) {
                self.journal.push(Entry::Called { node: join.clone(), branch });
                self.go_on_with(&fork, branch, places);
            }
            self.call_those_that_wait(&fork, &join);
        }
    }

    /// Has branches go on whose turn comes later, as far as there is room.
    fn call_those_that_wait(&mut self, fork: &NodeId, join: &NodeId) {
        let NodeKind::Fork(Fork { max, .. }) = self.kind(fork) else { return };
        for (next, places) in self.come(join).waiting {
            if self.under_way(join) >= max.map_or(usize::MAX, usize::from) {
                break;
            }
            self.journal.push(Entry::Called { node: join.clone(), branch: next });
            self.go_on_with(fork, next, &places);
        }
    }

    /// Says whether a join at which nothing is out has all it needs, or branches whose turn comes.
    fn goes_on_alone(&self, join: &NodeId) -> bool {
        let NodeKind::Join(rule) = self.kind(join) else { return false };
        let is_quiet = self.place(join) == NodePosition::Nowhere && !self.awaits_merge(join);
        let has_enough = self.has_begun(join) && self.joined(join, &rule).is_some();
        is_quiet && (!self.come(join).waiting.is_empty() || has_enough)
    }

    /// Has a join go on that has all it needs, or branches whose turn comes; says whether it is one.
    fn go_on_alone(&mut self, join: &NodeId) -> bool {
        let NodeKind::Join(rule) = self.kind(join) else { return false };
        if !self.goes_on_alone(join) {
            return false;
        }
        let fork = self.fork_of(join);
        match (self.joined(join, &rule), fork) {
            (Some(outcome), fork) => self.go_on_from(join, outcome, fork.as_ref()),
            (None, Some(fork)) => self.call_those_that_wait(&fork, join),
            (None, None) => {}
        }
        true
    }

    /// Counts the branches of all joins as another revision does, which the plan is from here on.
    pub(super) fn recount(&mut self, before: &BTreeMap<NodeId, Vec<Option<u16>>>) {
        let joins = self.graph.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Join(_)));
        let joins: Vec<NodeId> = joins.map(|node| node.id.clone()).collect();
        for join in joins {
            let numbers = before.get(&join);
            if let Some(numbers) = numbers {
                self.renumber(&join, numbers);
            }
            let is_mended = self.mend_branches(&join);
            let is_news = self.has_begun(&join) && (numbers.is_some() || is_mended);
            if is_news {
                self.open_again(&join);
            }
        }
    }

    /// Has the run go on at a join whose branches changed, where it can, or where those are gone with which it failed.
    fn open_again(&mut self, join: &NodeId) {
        let failed = self.come(join).failed.into_values().next();
        let is_stop = self.stopped_at.contains(join);
        let is_undone = is_stop && self.settled(join) == Some(Outcome::Failed) && failed.is_none();
        if let Some((from, _)) = self.entered_from(join)
            && self.branch(join, &from) == usize::MAX
        {
            let from = failed.map(|from| (from, Signal::Exhausted));
            self.journal.push(Entry::EnteredFrom { node: join.clone(), from });
        }
        if is_undone {
            self.put(join, NodePosition::Nowhere);
        }
        if !is_stop && self.goes_on_alone(join) && self.still_waits(join) {
            self.stopped_at.push(join.clone());
        }
    }

    /// Says whether branches that a fork began are still wanted: no join around them is over, and none of the places at which the run
    /// stopped leads to the fork again, but through its own join.
    fn still_waits(&self, join: &NodeId) -> bool {
        let Some(fork) = self.fork_of(join) else { return true };
        let is_over = self.around(&fork).iter().any(|(_, outer, _)| self.is_met(outer));
        let leads_there = |stop: &NodeId| {
            *stop == fork || self.reached(stop, std::slice::from_ref(join), false).contains(&fork)
        };
        let known = |stop: &&NodeId| self.graph.node(stop).is_some();
        !is_over && !self.stopped_at.iter().filter(known).any(leads_there)
    }

    fn renumber(&mut self, join: &NodeId, numbers: &[Option<u16>]) {
        let fork = self.fork_of(join);
        if self.has_begun(join) {
            let old = self.come(join);
            let mut come = Come { begun: old.begun.map(|_| numbers.len()), ..Come::default() };
            for (branch, number) in numbers.iter().enumerate() {
                let known = number.map(usize::from);
                let is_begun = known.is_some_and(|known| old.has_begun(known));
                let has_come = known.is_some_and(|known| old.has(known));
                if let Some(fork) = fork.clone().filter(|_| !is_begun && !has_come) {
                    come.waiting.insert(branch, BTreeSet::from([fork]));
                }
                let Some(known) = known else { continue };
                if old.met.contains(&known) {
                    come.met.insert(branch);
                }
                if let Some(at) = old.failed.get(&known) {
                    come.failed.insert(branch, at.clone());
                }
                if let Some(at) = old.waiting.get(&known) {
                    come.waiting.insert(branch, at.clone());
                }
            }
            self.journal.push(Entry::Recounted { node: join.clone(), come });
        }
        if fork.is_none() {
            for (branch, from) in self.needed(join).into_iter().enumerate() {
                let leads_there =
                    self.graph.edge_for(&from, Signal::Success).is_some_and(|edge| edge.to == *join);
                if numbers.get(branch) == Some(&None) && leads_there && self.is_met(&from) {
                    self.journal.push(Entry::Arrived { node: join.clone(), branch, from, met: true });
                }
            }
        }
    }

    /// Has branches go on behind what is met of them that stood at a node which is gone; says whether there are any.
    fn mend_branches(&mut self, join: &NodeId) -> bool {
        let Some(fork) = self.fork_of(join).filter(|_| self.has_begun(join)) else { return false };
        let come = self.come(join);
        let is_gone = |node: &NodeId| self.graph.node(node).is_none();
        let is_open = self.settled(join).is_none() && self.stopped_at.iter().any(is_gone);
        let mut mended = Vec::new();
        for (branch, edge) in self.edges_of(&fork).into_iter().enumerate() {
            let members = self.leads_to(&edge.to, |id| id == join);
            let stands_nowhere = come.has_begun(branch)
                && !come.has(branch)
                && !come.waiting.contains_key(&branch)
                && !self.stopped_at.iter().any(|stop| members.contains(stop));
            let is_lost = match come.failed.get(&branch) {
                Some(at) => is_gone(at),
                None => is_open && stands_nowhere,
            };
            if is_lost {
                let leads_on = |node: &NodeId| {
                    let next = self.graph.edge_for(node, Signal::Success);
                    !self.graph.is_fork(node)
                        && self.is_met(node)
                        && next.is_some_and(|edge| !self.is_met(&edge.to))
                };
                // Nodes of a branch may be met from an earlier round.
                let is_first_round = self.visits(&fork) < 2;
                let known = members.into_iter().filter(|_| is_first_round);
                let mut places: BTreeSet<NodeId> = known.filter(leads_on).collect();
                if places.is_empty() {
                    places.insert(fork.clone());
                }
                mended.push((branch, places));
            }
        }
        let is_any = !mended.is_empty();
        for (branch, places) in mended {
            self.journal.push(Entry::Forgotten { node: join.clone(), branch });
            for at in places {
                self.journal.push(Entry::Waits { node: join.clone(), branch, at });
            }
        }
        is_any
    }

    /// Says whether one of the nodes that a revision adds is behind what is done, and not ahead of where the run goes on.
    pub(super) fn adds_behind(&self, added: &[NodeId]) -> bool {
        let mut places: Vec<NodeId> =
            self.stopped_at.iter().filter(|stop| self.graph.node(stop).is_some()).cloned().collect();
        if places.is_empty() {
            return false;
        }
        for (id, fork) in self.forks() {
            let Some(join) = fork.join else { continue };
            let is_open = matches!(self.settled(&join), None | Some(Outcome::Failed));
            if !self.has_begun(&join) || !is_open || !self.still_waits(&join) {
                continue;
            }
            let come = self.come(&join);
            places.extend(come.waiting.values().flatten().filter(|at| **at != id).cloned());
            for (branch, edge) in self.edges_of(&id).into_iter().enumerate() {
                let waits = come.waiting.get(&branch).is_some_and(|at| at.contains(&id));
                if waits || !come.has_begun(branch) {
                    places.push(edge.to);
                }
            }
        }
        let mut next = 0;
        while let Some(place) = places.get(next).cloned() {
            next += 1;
            let failed = self.come(&place).failed.into_values();
            for before in self.entered_from(&place).map(|(from, _)| from).into_iter().chain(failed) {
                if !places.contains(&before) {
                    places.push(before);
                }
            }
        }
        places.extend(self.graph.goals().iter().filter_map(|goal| goal.retry.clone()));
        let mut ahead: BTreeSet<NodeId> = BTreeSet::new();
        while let Some(id) = places.pop() {
            if ahead.insert(id.clone()) {
                places.extend(self.edges_of(&id).into_iter().map(|edge| edge.to));
            }
        }
        let is_on_the_way = |edge: &&Edge| {
            self.graph.is_fork(&edge.from) || self.graph.edge_for(&edge.from, Signal::Success) == Some(*edge)
        };
        let mut ways = self.graph.edges().iter().filter(is_on_the_way);
        ways.any(|edge| added.contains(&edge.to) && !ahead.contains(&edge.to) && self.is_met(&edge.from))
    }

    fn is_met(&self, node: &NodeId) -> bool {
        matches!(self.settled(node), Some(outcome) if outcome != Outcome::Failed)
    }

    /// How many branches of a join somebody works on, or a way is gone on.
    fn under_way(&self, join: &NodeId) -> usize {
        // A branch that begins is one on which somebody is.
        let fork = self.fork_of(join);
        let ways = self.open.iter().map(|way| match fork.as_ref() == Some(&way.edge.from) {
            true => way.edge.to.clone(),
            false => way.edge.from.clone(),
        });
        let places = self.live().into_iter().chain(ways);
        let of_it = |node: NodeId| {
            let mut around = self.around(&node).into_iter();
            around.find(|(_, other, _)| other == join).map(|(.., branch)| branch)
        };
        places.filter_map(of_it).collect::<BTreeSet<usize>>().len()
    }

    /// Takes the run up where it stopped, or a branch where it stood.
    pub(super) fn take_up_at(&mut self, stop: &NodeId) {
        let is_unanswered = matches!(self.settled(stop), None | Some(Outcome::Failed));
        if matches!(self.kind(stop), NodeKind::Escalate { .. }) && is_unanswered && !self.is_live(stop) {
            self.ask_planned(stop);
        } else if !self.go_on_alone(stop) {
            self.revive(stop);
        }
    }

    /// Takes a branch up where it stood, or at its beginning.
    pub(super) fn go_on_with(&mut self, fork: &NodeId, branch: usize, places: &BTreeSet<NodeId>) {
        let known: Vec<&NodeId> =
            places.iter().filter(|place| *place != fork && self.graph.node(place).is_some()).collect();
        let beginning = self.edges_of(fork).into_iter().nth(branch).filter(|_| known.is_empty());
        self.open.extend(beginning.map(|edge| ChosenEdge { edge, why: Signal::Success, by: None }));
        for place in known {
            match self.settled(place) {
                Some(outcome) if outcome != Outcome::Failed => self.leave(place, Signal::Success),
                Some(_) | None => self.take_up_at(place),
            }
        }
    }
}
