//! Checks that parts make a graph: one start, edges that lead somewhere, a path to an end from everywhere (G-12).

use std::collections::{BTreeMap, BTreeSet};

use super::{Confirmation, Edge, GraphDefect, GraphParts, NodeKind, On};
use crate::ids::NodeId;
use crate::outcome::Outcome;
use crate::pace;

/// Refuses nodes that cannot be: two of one name, a second start, limits that can never be met.
pub(super) fn refuse_misfits(parts: &GraphParts) -> Result<(), GraphDefect> {
    let mut names = BTreeSet::new();
    for node in &parts.nodes {
        if !names.insert(&node.id) {
            return Err(GraphDefect::DuplicateNode(node.id.clone()));
        }
        let is_start = matches!(node.kind, NodeKind::Start);
        if is_start != (node.id == parts.start) {
            return Err(GraphDefect::Start(node.id.clone()));
        }
        let is_allowed =
            |on_exhausted| matches!(on_exhausted, Outcome::Failed | Outcome::Skipped | Outcome::Warned);
        let fits = match &node.kind {
            NodeKind::Task(task) => is_allowed(task.on_exhausted) && pace::levels_rise(&task.pace),
            NodeKind::Call(call) => is_allowed(call.on_exhausted),
            NodeKind::SubPlan(plan) => is_allowed(plan.on_exhausted) && !plan.path.is_empty(),
            NodeKind::Fork(fork) => fork.max != Some(0),
            NodeKind::Human(question) => question.default.as_ref().is_none_or(|default| {
                question.options.is_empty() || question.options.contains(&default.answer)
            }),
            NodeKind::Start
            | NodeKind::Decision(_)
            | NodeKind::Checkpoint
            | NodeKind::Join(_)
            | NodeKind::Escalate { .. }
            | NodeKind::Exit { .. } => true,
        };
        let confirms = |confirmation: &Confirmation| {
            let question = &confirmation.question;
            node.task().is_some()
                && question.default.is_none()
                && question.options.len() > 1
                && question.options.last() == Some(&confirmation.refusal)
                && (confirmation.check.is_none() || node.task().is_some_and(|task| task.contract.is_none()))
        };
        let fits = fits && node.confirmation.as_deref().is_none_or(confirms);
        if !fits || node.max_visits == 0 || parts.limits.parallel == 0 {
            return Err(GraphDefect::Impossible(node.id.clone()));
        }
    }
    match names.contains(&parts.start) {
        true => Ok(()),
        false => Err(GraphDefect::Start(parts.start.clone())),
    }
}

/// Sorts the edges by the node they leave, and refuses those that lead nowhere.
pub(super) fn edges_by_source(parts: &GraphParts) -> Result<BTreeMap<NodeId, Vec<Edge>>, GraphDefect> {
    let kinds: BTreeMap<&NodeId, &NodeKind> = parts.nodes.iter().map(|node| (&node.id, &node.kind)).collect();
    let mut outgoing: BTreeMap<NodeId, Vec<Edge>> = BTreeMap::new();
    for edge in &parts.edges {
        let (Some(source), Some(target)) = (kinds.get(&edge.from), kinds.get(&edge.to)) else {
            return Err(GraphDefect::Dangling { from: edge.from.clone(), to: edge.to.clone() });
        };
        // An epoch begins with something that is done.
        let begins_nowhere = edge.restart.is_some()
            && matches!(target, NodeKind::Join(_) | NodeKind::Exit { .. } | NodeKind::Escalate { .. });
        if !is_allowed(source, target, edge.on) || begins_nowhere {
            return Err(GraphDefect::MisplacedEdge(edge.from.clone()));
        }
        outgoing.entry(edge.from.clone()).or_default().push(edge.clone());
    }
    for (from, edges) in &outgoing {
        let targets: BTreeSet<&NodeId> = edges.iter().map(|edge| &edge.to).collect();
        if matches!(kinds.get(from), Some(NodeKind::Fork(_))) && targets.len() < edges.len() {
            return Err(GraphDefect::DuplicateEdge(from.clone()));
        }
    }
    Ok(outgoing)
}

fn is_allowed(source: &NodeKind, target: &NodeKind, on: On) -> bool {
    let failing = matches!(on, On::Fail | On::Retry | On::Exhaust);
    match (source, target) {
        (NodeKind::Exit { .. }, _) | (_, NodeKind::Start) | (NodeKind::Start, NodeKind::Escalate { .. }) => {
            false
        }
        (NodeKind::Start | NodeKind::Fork(_) | NodeKind::Escalate { .. }, _) => !failing,
        (
            NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::SubPlan(_)
            | NodeKind::Join(_),
            _,
        ) => true,
    }
}

pub(super) fn refuse_unreachable(
    parts: &GraphParts,
    outgoing: &BTreeMap<NodeId, Vec<Edge>>,
) -> Result<(), GraphDefect> {
    let mut open = vec![&parts.start];
    open.extend(parts.goals.iter().filter_map(|goal| goal.retry.as_ref()));
    let mut seen: BTreeSet<&NodeId> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for edge in outgoing.get(id).into_iter().flatten() {
            if seen.insert(&edge.to) {
                open.push(&edge.to);
            }
        }
    }
    match parts.nodes.iter().find(|node| !seen.contains(&node.id)) {
        Some(node) => Err(GraphDefect::Unreachable(node.id.clone())),
        None => Ok(()),
    }
}

/// Refuses nodes from which no way leads to an exit, or to a person who is asked on purpose; from the start it has to be the
/// exit of a run that succeeds.
pub(super) fn refuse_dead_ends(parts: &GraphParts) -> Result<(), GraphDefect> {
    let kinds: BTreeMap<&NodeId, &NodeKind> = parts.nodes.iter().map(|node| (&node.id, &node.kind)).collect();
    let mut incoming: BTreeMap<&NodeId, Vec<&NodeId>> = BTreeMap::new();
    let mut asking: Vec<&NodeId> = Vec::new();
    for edge in &parts.edges {
        incoming.entry(&edge.to).or_default().push(&edge.from);
        let asks = matches!(kinds.get(&edge.to), Some(NodeKind::Escalate { .. }));
        if asks && matches!(edge.on, On::Success | On::Always) {
            asking.push(&edge.from);
        }
    }
    let leading_to = |is_end: fn(&NodeKind) -> bool| {
        let ends = parts.nodes.iter().filter(|node| is_end(&node.kind)).map(|node| &node.id);
        let mut open: Vec<&NodeId> = asking.iter().copied().chain(ends).collect();
        let mut saved: BTreeSet<&NodeId> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            for from in incoming.get(id).into_iter().flatten() {
                if saved.insert(from) {
                    open.push(from);
                }
            }
        }
        saved
    };
    if !leading_to(|kind| matches!(kind, NodeKind::Exit { success: true })).contains(&parts.start) {
        return Err(GraphDefect::NoExit(parts.start.clone()));
    }
    let saved = leading_to(|kind| matches!(kind, NodeKind::Exit { .. }));
    let is_stuck =
        |node: &&super::Node| !matches!(node.kind, NodeKind::Escalate { .. }) && !saved.contains(&node.id);
    match parts.nodes.iter().find(is_stuck) {
        Some(node) => Err(GraphDefect::NoExit(node.id.clone())),
        None => Ok(()),
    }
}
