//! The steps of a run that wait until a node is left.

use std::collections::BTreeSet;

use planctl_engine::{Graph, NodeId};

/// Counts the steps at a node and beyond it that have not settled: they wait until the node is left.
pub fn steps_waiting(graph: &Graph, node: &NodeId, settled: &BTreeSet<NodeId>) -> u64 {
    let mut seen = BTreeSet::from([node]);
    let mut open = vec![node];
    while let Some(id) = open.pop() {
        open.extend(graph.edges_from(id).iter().map(|edge| &edge.to).filter(|to| seen.insert(*to)));
    }
    let waits = |id: &&NodeId| {
        let is_step = graph.node(id).is_some_and(|node| node.step().is_some());
        is_step && (*id == node || !settled.contains(*id))
    };
    seen.into_iter().filter(waits).count() as u64
}
