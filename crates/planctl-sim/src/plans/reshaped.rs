//! Revisions that change the branches of a fork: one more, one less, or another order.

use std::collections::BTreeSet;

use planctl_engine::{Edge, Graph, GraphParts, NodeId, NodeKind, On, Outcome};

use crate::dice::Dice;

/// Changes the branches of a fork or two; steps in `fixed` stay. A graph that the engine refuses stays as it is.
pub(super) fn reshape(dice: &mut Dice, graph: &Graph, fixed: &BTreeSet<NodeId>) -> Graph {
    let mut graph = graph.clone();
    for _ in 0..dice.between(1, 2) {
        let forks: Vec<NodeId> = graph
            .nodes()
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Fork(_)))
            .map(|node| node.id.clone())
            .collect();
        if forks.is_empty() {
            return graph;
        }
        let fork = dice.pick(&forks).clone();
        let reshaped = match dice.below(4) {
            0 | 1 => with_branch(dice, &graph, &fork),
            2 => without_branch(dice, &graph, &fork, fixed),
            _ => in_another_order(&graph, &fork),
        };
        graph = reshaped.and_then(|parts| Graph::new(parts).ok()).unwrap_or(graph);
    }
    graph
}

/// Adds a branch of one step at any place among those of a fork.
fn with_branch(dice: &mut Dice, graph: &Graph, fork: &NodeId) -> Option<GraphParts> {
    let NodeKind::Fork(kind) = &graph.node(fork)?.kind else { return None };
    let join = kind.join.clone().or_else(|| {
        let mut ends = graph.edges().iter().map(|edge| &edge.to);
        ends.find(|id| graph.node(id).is_some_and(|node| matches!(node.kind, NodeKind::Join(_)))).cloned()
    })?;
    let id = (1..).map(|number| NodeId::new(format!("more{number}"))).find(|id| graph.node(id).is_none())?;
    let mut parts = GraphParts::from(graph.clone());
    let number = 100 + parts.nodes.len() as u64;
    let mut node = super::step(dice, number, *dice.clone().pick(&[Outcome::Failed, Outcome::Skipped]));
    node.id = id.clone();
    parts.nodes.push(node);
    let at = parts.edges.iter().position(|edge| edge.from == *fork)?;
    let at = at + dice.below(graph.edges_from(fork).len() as u64 + 1) as usize;
    parts.edges.insert(at.min(parts.edges.len()), Edge::new(fork.clone(), id.clone(), On::Always));
    parts.edges.push(Edge::new(id.clone(), join.clone(), On::Success));
    if dice.happens(600) {
        parts.edges.push(Edge::new(id, join, On::Exhaust));
    }
    Some(parts)
}

/// Takes a branch out, with all to which no other way leads.
fn without_branch(
    dice: &mut Dice,
    graph: &Graph,
    fork: &NodeId,
    fixed: &BTreeSet<NodeId>,
) -> Option<GraphParts> {
    let head = dice.pick(graph.edges_from(fork)).to.clone();
    let mut parts = GraphParts::from(graph.clone());
    parts.edges.retain(|edge| edge.from != *fork || edge.to != head);
    let (mut left, mut open) = (BTreeSet::new(), vec![parts.start.clone()]);
    while let Some(id) = open.pop() {
        if left.insert(id.clone()) {
            open.extend(parts.edges.iter().filter(|edge| edge.from == id).map(|edge| edge.to.clone()));
        }
    }
    let goals = parts.goals.iter().flat_map(|goal| [Some(&goal.node), goal.retry.as_ref()]).flatten();
    if parts.nodes.iter().any(|node| !left.contains(&node.id) && fixed.contains(&node.id))
        || goals.into_iter().any(|goal| !left.contains(goal))
    {
        return None;
    }
    parts.nodes.retain(|node| left.contains(&node.id));
    parts.edges.retain(|edge| left.contains(&edge.from));
    Some(parts)
}

/// Has the last branch of a fork come first.
fn in_another_order(graph: &Graph, fork: &NodeId) -> Option<GraphParts> {
    let mut parts = GraphParts::from(graph.clone());
    let last = parts.edges.iter().rposition(|edge| edge.from == *fork)?;
    let edge = parts.edges.remove(last);
    let first = parts.edges.iter().position(|edge| edge.from == *fork)?;
    parts.edges.insert(first, edge);
    Some(parts)
}
