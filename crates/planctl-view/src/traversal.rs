//! Where a run is on its way through the graph, in the words of seed 2 (G-30) and of checkpoints of DOT (K1).

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{Fact, Graph, Node, NodeId, NodeKind, On, Outcome, Run};

/// The most nodes of the path.
pub const PATH_MAX: usize = 50;

/// Where a run is on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traversal {
    /// Says that the graph is more than a row of steps.
    pub is_graph: bool,
    /// Where something is done: of several nodes the one that was entered last.
    pub current: Option<NodeId>,
    /// The node that was over last.
    pub last: Option<NodeId>,
    /// The nodes that were entered.
    pub visited: BTreeMap<NodeId, Visited>,
    /// The nodes in the order in which they were entered, the newest [`PATH_MAX`].
    pub path: Vec<NodeId>,
    /// How many nodes the graph has.
    pub total: usize,
    /// The nodes that are over and count as met, those that were last at the end.
    pub completed: Vec<NodeId>,
    /// The values that conditions can look at where the run is.
    pub context: BTreeMap<String, String>,
}

/// The record of a node that was entered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visited {
    /// How it ended, where it did, in the words of conditions.
    pub outcome: Option<&'static str>,
    /// How often it was tried.
    pub attempts: u16,
    /// How often it failed since its allowance was last refilled.
    pub failed: u16,
    /// How often it was entered.
    pub visits: u16,
}

/// Says where a run is, which is wholly loaded; `newest` are its newest facts, in their order.
pub fn traversal(graph: &Graph, run: &Run, newest: &[Fact]) -> Traversal {
    let records = run.records();
    let visited: BTreeMap<NodeId, Visited> = records
        .iter()
        .filter(|(id, record)| record.tally.visits > 0 && graph.node(id).is_some())
        .map(|(id, record)| {
            let tally = record.tally;
            let visited = Visited {
                outcome: record.state.outcome().map(Outcome::status_word),
                attempts: tally.attempt.number(),
                failed: tally.failed,
                visits: tally.visits,
            };
            (id.clone(), visited)
        })
        .collect();
    let entered = newest.iter().filter_map(|fact| {
        let (Fact::NodeEntered { node, .. }
        | Fact::BranchesJoined { node, .. }
        | Fact::RetryTriggered { node, .. }) = fact
        else {
            return None;
        };
        Some(node)
    });
    let mut path: Vec<NodeId> = entered.cloned().collect();
    path.drain(..path.len().saturating_sub(PATH_MAX));
    let is_live = |id: &NodeId| records.get(id).is_some_and(|record| record.state.is_live());
    let live = || records.keys().find(|id| is_live(id));
    let current = path.iter().rev().find(|id| is_live(id)).or_else(live).cloned();
    let settled: Vec<&NodeId> = newest
        .iter()
        .filter_map(|fact| if let Fact::NodeSettled { node, .. } = fact { Some(node) } else { None })
        .collect();
    let last = settled.last().map(|id| (*id).clone());
    let completed = completed(run, graph, &settled);
    let place = current.as_ref().or(last.as_ref()).and_then(|id| records.get(id));
    Traversal {
        is_graph: is_nonlinear(graph),
        context: place.map(|record| record.context.clone()).unwrap_or_default(),
        total: graph.nodes().len(),
        current,
        last,
        visited,
        path,
        completed,
    }
}

fn completed(run: &Run, graph: &Graph, settled: &[&NodeId]) -> Vec<NodeId> {
    let is_met = |id: &NodeId| {
        let outcome = run.records().get(id).and_then(|record| record.state.outcome());
        graph.node(id).is_some() && !matches!(outcome, None | Some(Outcome::Failed))
    };
    let mut seen = BTreeSet::new();
    let mut newest: Vec<NodeId> =
        settled.iter().rev().filter(|id| is_met(id) && seen.insert(**id)).map(|id| (*id).clone()).collect();
    newest.reverse();
    let older = run.records().keys().filter(|id| is_met(id) && !seen.contains(id)).cloned();
    older.chain(newest.iter().cloned()).collect()
}

/// Says whether a graph is more than steps that follow each other and end, or ask, where they fail.
fn is_nonlinear(graph: &Graph) -> bool {
    let is_plain = |node: &Node| match &node.kind {
        NodeKind::Start
        | NodeKind::Task(_)
        | NodeKind::Call(_)
        | NodeKind::Human(_)
        | NodeKind::Escalate { .. }
        | NodeKind::Exit { .. } => {
            let onward = graph.edges_from(&node.id).iter();
            onward.filter(|edge| matches!(edge.on, On::Success | On::Always)).count() <= 1
        }
        NodeKind::Decision(_)
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::Join(_)
        | NodeKind::SubPlan(_) => false,
    };
    let leads_on = |id: &NodeId| {
        let target = graph.node(id).map(|node| &node.kind);
        !matches!(target, Some(NodeKind::Exit { .. } | NodeKind::Escalate { .. }))
    };
    let skips = |id: &NodeId, to: &NodeId| {
        graph.edges_from(id).iter().any(|edge| edge.on == On::Success && edge.to == *to)
    };
    let goes_back = graph.edges().iter().any(|edge| {
        let is_failing = matches!(edge.on, On::Fail | On::Exhaust | On::Retry);
        is_failing && leads_on(&edge.to) && !skips(&edge.from, &edge.to)
    });
    goes_back || !graph.nodes().iter().all(is_plain)
}
