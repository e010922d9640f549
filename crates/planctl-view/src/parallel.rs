//! Which nodes may be worked on at once (G-29): the branches of each fork.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{Graph, NodeId, NodeKind};

/// The most forks that are looked at; each costs a walk over its branches.
const FORKS_MAX: usize = 500;

/// A fork, and the nodes of each of its branches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SideBySide {
    /// The fork.
    pub fork: NodeId,
    /// Where its branches meet, where it names that.
    pub join: Option<NodeId>,
    /// The branches, in the author's order: nodes that lie on this branch alone. Two nodes of two branches may be under way
    /// at once.
    pub branches: Vec<Vec<NodeId>>,
}

/// Returns the forks of a graph with their branches.
pub fn parallel_branches(graph: &Graph) -> Vec<SideBySide> {
    let forks = graph.nodes().iter().filter_map(|node| match &node.kind {
        NodeKind::Fork(fork) => Some((&node.id, fork.join.as_ref())),
        NodeKind::Start
        | NodeKind::Task(_)
        | NodeKind::Call(_)
        | NodeKind::Decision(_)
        | NodeKind::Human(_)
        | NodeKind::Checkpoint
        | NodeKind::Join(_)
        | NodeKind::SubPlan(_)
        | NodeKind::Escalate { .. }
        | NodeKind::Exit { .. } => None,
    });
    forks.take(FORKS_MAX).map(|(fork, join)| branches_of_fork(graph, fork, join)).collect()
}

fn branches_of_fork(graph: &Graph, fork: &NodeId, join: Option<&NodeId>) -> SideBySide {
    let ends = |id: &NodeId| id == fork || Some(id) == join;
    let walked: Vec<BTreeSet<&NodeId>> =
        graph.edges_from(fork).iter().map(|edge| graph.branch_from(&edge.to, ends)).collect();
    let mut on: BTreeMap<&NodeId, usize> = BTreeMap::new();
    for id in walked.iter().flatten() {
        *on.entry(id).or_default() += 1;
    }
    let own =
        |ids: &BTreeSet<&NodeId>| ids.iter().filter(|id| on[*id] == 1).map(|id| (*id).clone()).collect();
    SideBySide { fork: fork.clone(), join: join.cloned(), branches: walked.iter().map(own).collect() }
}
