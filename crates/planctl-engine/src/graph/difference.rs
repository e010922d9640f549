//! The differences between two revisions of a graph.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fork, Graph, Node, NodeKind};
use crate::budget::Budget;
use crate::contract::RedFirst;
use crate::event::Decision;
use crate::ids::{Digest, NodeId};

impl Decision {
    /// Returns the decision to go on with another revision.
    pub fn revise(revision: Digest, old: &Graph, new: &Graph, budget_max: Option<Budget>) -> Decision {
        let is_added = |node: &&Node| old.node(&node.id).is_none();
        let joins = new.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Join(_)));
        let branches = joins.filter_map(|join| Some((join.id.clone(), renumbered(old, new, &join.id)?)));
        Decision::Revise {
            revision,
            changed: changed_nodes(old, new),
            added: new.nodes().iter().filter(is_added).map(|node| node.id.clone()).collect(),
            branches: branches.collect(),
            budget_max,
        }
    }
}

/// Names the nodes that differ between two revisions, or are in one of them only.
///
/// The `red_first` setting and the PACE levels change nothing about a settled step, so they are no difference.
pub fn changed_nodes(old: &Graph, new: &Graph) -> Vec<NodeId> {
    let is_same = |node: &&Node| {
        let other = new.node(&node.id);
        other.is_some_and(|other| other == *node || is_alike(node, other)) && keeps_worktrees(old, new, node)
    };
    let changed_or_gone = old.nodes().iter().filter(|node| !is_same(node));
    let added = new.nodes().iter().filter(|node| old.node(&node.id).is_none());
    changed_or_gone.chain(added).map(|node| node.id.clone()).collect()
}

fn is_alike(one: &Node, other: &Node) -> bool {
    let without = |node: &Node| {
        let mut node = node.clone();
        if let NodeKind::Task(task) = &mut node.kind {
            task.contract.red_first = RedFirst::Off;
            task.pace = Vec::new();
        }
        node
    };
    without(one) == without(other)
}

/// Says whether the branches of a fork begin as they did, where each has a worktree: those were made for them, by their numbers.
fn keeps_worktrees(old: &Graph, new: &Graph, node: &Node) -> bool {
    let heads = |graph: &'_ Graph| -> Vec<NodeId> {
        graph.edges_from(&node.id).iter().map(|edge| edge.to.clone()).collect()
    };
    !matches!(node.kind, NodeKind::Fork(Fork { in_worktree: true, .. })) || heads(old) == heads(new)
}

/// Returns for each branch of a join the number that it had before, nothing for a branch that is added; `None` where all are
/// as they were. A branch stays the same that begins with the same node, else one that shares a node with it.
fn renumbered(old: &Graph, new: &Graph, join: &NodeId) -> Option<Vec<Option<u16>>> {
    let (before, after) = (branches(old, join), branches(new, join));
    let heads: BTreeMap<&NodeId, u16> = before.iter().map(|(head, _)| head).zip(0..).collect();
    let mut numbers: Vec<Option<u16>> = after.iter().map(|(head, _)| heads.get(head).copied()).collect();
    let mut taken: BTreeSet<u16> = numbers.iter().flatten().copied().collect();
    for (number, (_, members)) in numbers.iter_mut().zip(&after).filter(|(number, _)| number.is_none()) {
        let shares = |(at, (_, own)): &(u16, &(NodeId, BTreeSet<NodeId>))| {
            !taken.contains(at) && !own.is_disjoint(members)
        };
        *number = (0..).zip(&before).find(shares).map(|(at, _)| at);
        taken.extend(*number);
    }
    let is_as_it_was =
        before.len() == after.len() && numbers.iter().copied().eq((0..).map(Some).take(after.len()));
    (!is_as_it_was).then_some(numbers)
}

/// Returns the node with which each branch of a join begins, and all of its nodes; of a join without a fork of its own, the one that
/// leads into it. A graph without the join has none.
fn branches(graph: &Graph, join: &NodeId) -> Vec<(NodeId, BTreeSet<NodeId>)> {
    let members = graph.branch_members(join);
    let heads: Vec<NodeId> = match graph.fork_of(join) {
        Some(fork) => graph.edges_from(fork).iter().map(|edge| edge.to.clone()).collect(),
        None => members.iter().flatten().cloned().collect(),
    };
    heads.into_iter().zip(members).collect()
}
