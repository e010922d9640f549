//! The model's branches where a run is taken up: which go on, and where they stood.

use std::collections::BTreeSet;

use planctl_engine::{Edge, Fork, NodeId, NodeKind, Outcome, Signal};

use super::Model;
use super::journal::Entry;
use super::ways::ChosenEdge;

impl Model {
    /// Says whether a join has had branches begun, or come.
    pub(super) fn has_begun(&self, join: &NodeId) -> bool {
        self.of(join).any(|entry| matches!(entry, Entry::Round { .. } | Entry::Arrived { .. }))
    }

    /// The forks around a node, the innermost first, each with its join and the branch of the node.
    pub(super) fn around(&self, node: &NodeId) -> Vec<(NodeId, NodeId, usize)> {
        let mut around = Vec::new();
        if matches!(self.kind(node), NodeKind::Escalate { .. } | NodeKind::Exit { .. }) {
            return around;
        }
        for (id, fork) in self.forks() {
            let Some(join) = fork.join else { continue };
            let leads_there = |edge: &Edge| self.walk(&edge.to, &join).contains(node);
            if let Some(branch) = self.edges_of(&id).iter().position(leads_there) {
                around.push((id, join, branch));
            }
        }
        around.sort_by_key(|(fork, join, _)| self.inside(fork, join).len());
        around
    }

    /// Has the joins around a node at which a run goes on wait for it, and begins beside it what was taken back.
    pub(super) fn go_on_beside(&mut self, node: &NodeId) {
        if !self.is_live(node) {
            return;
        }
        for (fork, join, branch) in self.around(node) {
            if self.is_in_worktree(&join) || !self.has_begun(&join) {
                continue;
            }
            if self.settled(&join).is_some() {
                self.await_branch(&join, branch);
            }
            let waiting = self.come(&join).waiting;
            let NodeKind::Fork(Fork { max, .. }) = self.kind(&fork) else { continue };
            let most = max.map_or(usize::MAX, usize::from);
            let own = waiting.iter().filter(|(other, _)| **other == branch);
            for (next, places) in own.chain(waiting.iter().filter(|(other, _)| **other != branch)) {
                if *next != branch && self.under_way(&join) >= most {
                    break;
                }
                self.journal.push(Entry::Called { node: join.clone(), branch: *next });
                self.go_on_with(&fork, *next, places);
            }
        }
    }

    /// How many branches of a join somebody works on, or a way is gone on.
    fn under_way(&self, join: &NodeId) -> usize {
        let ways = self.open.iter().map(|way| way.edge.from.clone());
        let places = self.live().into_iter().chain(ways);
        let of_it = |node: NodeId| {
            let mut around = self.around(&node).into_iter();
            around.find(|(_, other, _)| other == join).map(|(.., branch)| branch)
        };
        places.filter_map(of_it).collect::<BTreeSet<usize>>().len()
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
                Some(_) | None => self.revive(place),
            }
        }
    }
}
