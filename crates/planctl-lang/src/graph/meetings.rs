//! Branches of a graph in DOT or JSON that meet at a node which is not a join get a join before it, as in markdown (DOT P3, P9).

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;

use crate::text::{Spanned, escape};
use crate::tree::workflow::{EdgeTree, Kind, NodeTree, Origin, Workflow, node_flags, reached};

/// Begins the name of a join that nobody wrote; no name of DOT begins with a dash.
const JOIN: &str = "-join-";
/// The most forks whose branches are looked at; each costs a walk over the graph.
const FORKS_MAX: usize = 500;

/// Returns the graph with a join before each node at which branches of one fork meet; nothing where none do.
pub(super) fn insert_joins(workflow: &Workflow) -> Option<Workflow> {
    let forks = (0..workflow.nodes.len()).filter(|at| workflow.nodes[*at].kind.value == Kind::Fork);
    let out_edges = workflow.out_edges();
    // By the node where they meet: the edges that come there from branches.
    let mut meetings: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for fork in forks.take(FORKS_MAX) {
        for (at, from) in first_meetings(workflow, &out_edges, fork) {
            meetings.entry(at).or_default().extend(from);
        }
    }
    if meetings.is_empty() {
        return None;
    }
    let mut workflow = workflow.clone();
    for (at, from) in meetings {
        let node = workflow.nodes[at].clone();
        let from: BTreeSet<String> = from.iter().map(|at| workflow.nodes[*at].id.value.clone()).collect();
        let here = node.id.span;
        let name = Spanned::new(format!("{JOIN}{}", node.id.value), here);
        let comes = |edge: &&mut EdgeTree| edge.to.value == node.id.value && from.contains(&edge.from.value);
        for edge in workflow.edges.iter_mut().filter(comes) {
            edge.to.value.clone_from(&name.value);
        }
        let join = NodeTree::new(name.clone(), node.span, Spanned::new(Kind::Join, here));
        let mut join = NodeTree { origin: Origin::Meeting, ..join };
        let title = format!("all branches that lead to {}", escape(&node.id.value));
        join.attributes.label = Spanned::new(title, here).into();
        workflow.nodes.push(join);
        let edge = EdgeTree::new(name, node.id, here, Spanned::new(On::Success, here));
        workflow.edges.push(EdgeTree { origin: Origin::Meeting, ..edge });
    }
    Some(workflow)
}

/// Returns the nodes at which branches of a fork meet first, each with the nodes of branches from which edges lead there. Where a
/// way leads back to before the fork, and where a run ends badly or asks, branches do not meet.
fn first_meetings(
    workflow: &Workflow,
    out_edges: &[Vec<(usize, &EdgeTree)>],
    fork: usize,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let kind = |at: usize| workflow.nodes[at].kind.value;
    let count = out_edges.len();
    let next = |at: usize| out_edges[at].iter().map(|(to, _)| *to);
    let entry = workflow.entry().filter(|entry| *entry != fork);
    let past_fork = |at: usize| next(at).filter(|to| *to != fork);
    let before = node_flags(count, entry.into_iter().chain(reached(count, entry, past_fork)));
    let ends_branch = |at: usize| {
        let is_end = matches!(kind(at), Kind::Join | Kind::Escalate | Kind::Start)
            || workflow.nodes[at].is_failed_exit();
        is_end || at == fork || (before[at] && reached(count, [at], next).any(|at| at == fork))
    };
    // By which branch each node is come to; by several is where they met before it.
    let mut branch_of: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    let mut open: Vec<(usize, usize)> =
        out_edges[fork].iter().enumerate().map(|(branch, (to, _))| (*to, branch)).collect();
    while let Some((at, branch)) = open.pop() {
        if ends_branch(at) {
            continue;
        }
        let known = branch_of.get(&at).copied();
        let now = match known {
            None => Some(branch),
            Some(Some(known)) if known == branch => continue,
            Some(None) => continue,
            Some(Some(_)) => None,
        };
        branch_of.insert(at, now);
        // Every branch that meets there leads to the nodes behind the meeting.
        open.extend(out_edges[at].iter().filter(|(_, edge)| !edge.loop_restart).map(|(to, _)| (*to, branch)));
    }
    let mut meetings = BTreeMap::new();
    for at in branch_of.keys().filter(|at| branch_of[*at].is_none()) {
        let mut from: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (source, edges) in out_edges.iter().enumerate() {
            if !edges.iter().any(|(to, edge)| to == at && !edge.loop_restart) {
                continue;
            }
            if let Some(Some(branch)) = branch_of.get(&source) {
                from.entry(*branch).or_default().insert(source);
            }
        }
        if from.len() > 1 {
            meetings.insert(*at, from.into_values().flatten().collect());
        }
    }
    meetings
}
