//! Where the branches of a run stand: which have come into their join, which are under way, which wait.

use std::collections::BTreeSet;

use planctl_engine::{Graph, JoinPolicy, Node, NodeId, NodeKind, NodeState, Record, Run, RunStatus};

/// A join that waits for branches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joining {
    /// The join.
    pub join: NodeId,
    /// Where its branches began, where one fork began them all.
    pub fork: Option<NodeId>,
    /// How many it waits for.
    pub policy: JoinPolicy,
    /// Its branches, in the author's order.
    pub branches: Vec<Branch>,
}

/// One branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// Where it stands.
    pub stands: Stands,
    /// Its nodes that are live; of one that failed, the node at which it did.
    pub at: Vec<NodeId>,
}

/// Where a branch stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    /// It came well into the join.
    Joined,
    /// It came into the join, and failed.
    Failed,
    /// Work or a gate of it is out.
    UnderWay,
    /// It waits for a person.
    Held,
    /// It has not begun, or waits until there is room for it.
    Queued,
    /// The run ended before it came into the join.
    Left,
}

/// Returns the joins of a run, wholly loaded, whose branches have begun and which have not gone on.
pub fn open_joins(graph: &Graph, run: &Run) -> Vec<Joining> {
    let joins = graph.nodes().iter().filter_map(|node| match &node.kind {
        NodeKind::Join(join) => Some((node, join.policy)),
        NodeKind::Start
        | NodeKind::Task(_)
        | NodeKind::Call(_)
        | NodeKind::Decision(_)
        | NodeKind::Human(_)
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::SubPlan(_)
        | NodeKind::Escalate { .. }
        | NodeKind::Exit { .. } => None,
    });
    joins.filter_map(|(node, policy)| join_progress(graph, run, node, policy)).collect()
}

fn join_progress(graph: &Graph, run: &Run, node: &Node, policy: JoinPolicy) -> Option<Joining> {
    let join = &node.id;
    let record = run.records().get(join);
    let is_over = record.is_some_and(|record| record.state.outcome().is_some());
    let fork = graph.fork_of(join);
    let has_begun = match fork {
        Some(_) => record.is_some_and(|record| record.arrivals.is_some()),
        None => run.records().iter().any(|(id, own)| {
            own.tally.visits > 0 && graph.edges_from(id).iter().any(|edge| edge.to == *join)
        }),
    };
    if is_over || !has_begun {
        return None;
    }
    let members = graph.branch_members(join);
    let branches =
        members.iter().zip(0_u16..).map(|(members, branch)| branch_progress(run, record, members, branch));
    Some(Joining { join: join.clone(), fork: fork.cloned(), policy, branches: branches.collect() })
}

fn branch_progress(run: &Run, join: Option<&Record>, members: &BTreeSet<NodeId>, branch: u16) -> Branch {
    let arrivals = join.and_then(|join| join.arrivals.as_deref());
    if let Some(failed) = arrivals.and_then(|arrivals| arrivals.failed.get(&branch)) {
        return Branch { stands: Stands::Failed, at: vec![failed.clone()] };
    }
    if arrivals.is_some_and(|arrivals| arrivals.has(branch)) {
        return Branch { stands: Stands::Joined, at: Vec::new() };
    }
    let live: Vec<(&NodeId, &NodeState)> = members
        .iter()
        .filter_map(|id| Some((id, &run.records().get(id)?.state)))
        .filter(|(_, state)| state.is_live())
        .collect();
    let stands = if matches!(run.head.status, RunStatus::Ended { .. }) {
        Stands::Left
    } else if live.iter().any(|(_, state)| state.is_out()) {
        Stands::UnderWay
    } else if live.iter().any(|(_, state)| state.is_held()) {
        Stands::Held
    } else {
        Stands::Queued
    };
    Branch { stands, at: live.into_iter().map(|(id, _)| id.clone()).collect() }
}
