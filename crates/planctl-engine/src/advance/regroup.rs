//! Branches under another revision of the plan: those that it adds are begun, those that it takes away are awaited no more.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Edge, Graph, NodeKind, Signal};
use crate::ids::NodeId;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{EnteredFrom, NodeState};

use super::{Transition, join};

/// Finds the branches of every join again, by their numbers in the revision before where these changed. A join at which the run can go
/// on for another reason than the nodes at which it stopped is one of those as well.
pub(super) fn find_branches(
    transition: &mut Transition<'_>,
    renumbered: &BTreeMap<NodeId, Vec<Option<u16>>>,
) -> Result<(), Refusal> {
    let graph = transition.graph;
    let joins = graph.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Join(_)));
    for join in joins.map(|node| &node.id) {
        let numbers = renumbered.get(join);
        if let Some(numbers) = numbers {
            renumber(transition, join, numbers)?;
        }
        if transition.run.record(join)?.arrivals.is_none() {
            continue;
        }
        let is_restored = restore_lost_places(transition, join)?;
        if numbers.is_some() || is_restored {
            open_again(transition, join)?;
        }
    }
    Ok(())
}

fn renumber(transition: &mut Transition<'_>, join: &NodeId, numbers: &[Option<u16>]) -> Result<(), Refusal> {
    let graph = transition.graph;
    let fork = graph.fork_of(join);
    if transition.run.record(join)?.arrivals.is_some() {
        let arrivals = transition.run.record_mut(join)?.arrivals.get_or_insert_default();
        arrivals.renumber(numbers, fork);
    }
    if fork.is_none() {
        // The way from a step that passed leads to the join from here on.
        for from in graph.edges().iter().filter(|edge| edge.to == *join).map(|edge| &edge.from) {
            let branch = graph.branch_number(join, from);
            let is_added = branch.is_some_and(|branch| numbers.get(usize::from(branch)) == Some(&None));
            let leads_there = graph.edge_for(from, Signal::Success).is_some_and(|edge| edge.to == *join);
            if let (Some(branch), true) = (branch, is_added && leads_there && transition.is_met(from)?) {
                let record = transition.run.record_mut(join)?;
                record.arrivals.get_or_insert_default().record_success(branch);
            }
        }
    }
    Ok(())
}

/// Has the run go on at a join whose branches changed, where it can, or where those are gone with which it failed.
fn open_again(transition: &mut Transition<'_>, join: &NodeId) -> Result<(), Refusal> {
    let graph = transition.graph;
    let is_stop = transition.run.head.stopped_at.contains(join);
    let record = transition.run.record_mut(join)?;
    let failed = record.arrivals.as_ref().and_then(|arrivals| arrivals.failed.values().next().cloned());
    let has_failed = record.state.outcome() == Some(Outcome::Failed);
    let is_undone = is_stop && has_failed && failed.is_none();
    if record.entered_from.as_ref().is_some_and(|entered| graph.branch_number(join, &entered.from).is_none())
    {
        record.entered_from = failed.map(|from| EnteredFrom { from, signal: Signal::Exhausted });
    }
    if is_undone {
        transition.set_state(join, NodeState::Pending)?;
    }
    if !is_stop && join::can_go_on(transition, join)? && still_waits(transition, join)? {
        transition.run.head.stopped_at.push(join.clone());
    }
    Ok(())
}

/// Says whether a join still waits for the branches that its fork began: no join around them went on without it, and the run does not
/// come to the fork again, which then begins all of them anew.
fn still_waits(transition: &Transition<'_>, join: &NodeId) -> Result<bool, Refusal> {
    let graph = transition.graph;
    let Some(fork) = graph.fork_of(join) else { return Ok(true) };
    for (outer, _) in graph.branches_around(fork) {
        if transition.is_met(&outer)? {
            return Ok(false);
        }
    }
    let stopped = transition.run.head.stopped_at.iter().filter(|node| graph.node(node).is_some());
    let leads_on = |edge: &Edge| edge.from != *join && edge.restart.is_none();
    Ok(!reached(graph, stopped.cloned().collect(), leads_on).contains(fork))
}

/// Has branches go on behind what is met of them, where the node is gone at which they failed or the run stopped; says whether there
/// are any.
fn restore_lost_places(transition: &mut Transition<'_>, join: &NodeId) -> Result<bool, Refusal> {
    let graph = transition.graph;
    let Some(fork) = graph.fork_of(join) else { return Ok(false) };
    let stopped = &transition.run.head.stopped_at;
    let is_stop_lost = stopped.iter().any(|node| graph.node(node).is_none());
    let is_open = transition.state(join)?.outcome().is_none();
    let mut restored = BTreeMap::new();
    for (branch, members) in (0..).zip(graph.branch_members(join)) {
        let Some(arrivals) = &transition.run.record(join)?.arrivals else { continue };
        let is_lost = match arrivals.failed.get(&branch) {
            Some(failed) => graph.node(failed).is_none(),
            None => {
                let is_elsewhere = arrivals.has(branch)
                    || arrivals.waiting.contains_key(&branch)
                    || arrivals.is_yet_to_begin(branch);
                is_stop_lost && is_open && !is_elsewhere && stopped.iter().all(|node| !members.contains(node))
            }
        };
        if is_lost {
            restored.insert(branch, last_met(transition, &members, fork)?);
        }
    }
    let is_any = !restored.is_empty();
    if is_any {
        let arrivals = transition.run.record_mut(join)?.arrivals.get_or_insert_default();
        for (branch, places) in restored {
            arrivals.forget_branch(branch);
            arrivals.waiting.insert(branch, places);
        }
    }
    Ok(is_any)
}

/// Returns the nodes of a branch that are met and lead to one that is not; the fork, where none is, or it was entered more than once.
fn last_met(
    transition: &Transition<'_>,
    members: &BTreeSet<NodeId>,
    fork: &NodeId,
) -> Result<BTreeSet<NodeId>, Refusal> {
    let graph = transition.graph;
    let mut last = BTreeSet::new();
    // A step may have passed when the fork was entered before, and not since: the branch begins.
    if transition.run.record(fork)?.tally.visits > 1 {
        return Ok(BTreeSet::from([fork.clone()]));
    }
    for node in members {
        if let Some(next) = graph.edge_for(node, Signal::Success)
            && !graph.is_fork(node)
            && transition.is_met(node)?
            && !transition.is_met(&next.to)?
        {
            last.insert(node.clone());
        }
    }
    if last.is_empty() {
        last.insert(fork.clone());
    }
    Ok(last)
}

/// Refuses nodes that a revision adds behind one that has passed, unless the run comes there from where it goes on.
pub(super) fn refuse_what_nothing_begins(
    transition: &Transition<'_>,
    added: &[NodeId],
) -> Result<(), Refusal> {
    let graph = transition.graph;
    let places = places_to_go_on_from(transition)?;
    if added.is_empty() || places.is_empty() {
        return Ok(());
    }
    // The run may go back to where an unmet goal says.
    let again = graph.goals().iter().filter_map(|goal| goal.retry.clone());
    let ahead = reached(graph, places.into_iter().chain(again).collect(), |_| true);
    for node in added.iter().filter(|node| !ahead.contains(*node)) {
        for edge in graph.edges().iter().filter(|edge| edge.to == *node) {
            let is_on_the_way =
                graph.is_fork(&edge.from) || graph.edge_for(&edge.from, Signal::Success) == Some(edge);
            if is_on_the_way && transition.is_met(&edge.from)? {
                return Err(Refusal::NeverBegun(first_step(graph, node, &ahead)));
            }
        }
    }
    Ok(())
}

/// Returns the nodes at which a paused run goes on, those to which it goes back from them, and where branches wait for their turn; none where it
/// walks from its start.
fn places_to_go_on_from(transition: &Transition<'_>) -> Result<Vec<NodeId>, Refusal> {
    let (graph, run) = (transition.graph, &transition.run);
    let mut places: Vec<NodeId> =
        run.head.stopped_at.iter().filter(|node| graph.node(node).is_some()).cloned().collect();
    if places.is_empty() {
        return Ok(places);
    }
    for (join, record) in run.records() {
        let is_open = matches!(record.state.outcome(), None | Some(Outcome::Failed));
        let Some(arrivals) = record.arrivals.as_ref().filter(|_| is_open) else { continue };
        let Some(fork) = graph.fork_of(join) else { continue };
        if !still_waits(transition, join)? {
            continue;
        }
        places.extend(arrivals.waiting.values().flatten().filter(|node| *node != fork).cloned());
        for (branch, edge) in (0..).zip(graph.edges_from(fork)) {
            let waits = arrivals.waiting.get(&branch).is_some_and(|nodes| nodes.contains(fork));
            places.extend((arrivals.is_yet_to_begin(branch) || waits).then(|| edge.to.clone()));
        }
    }
    let mut at = 0;
    while let Some(place) = places.get(at) {
        let record = run.record(place)?;
        let failed = record.arrivals.iter().flat_map(|arrivals| arrivals.failed.values());
        let before = record.entered_from.iter().map(|entered| &entered.from).chain(failed);
        let before: Vec<NodeId> = before.filter(|node| !places.contains(node)).cloned().collect();
        places.extend(before);
        at += 1;
    }
    Ok(places)
}

/// Returns some nodes and all to which edges lead from them that are ways on.
fn reached(graph: &Graph, from: Vec<NodeId>, leads_on: impl Fn(&Edge) -> bool) -> BTreeSet<NodeId> {
    let (mut seen, mut open) = (BTreeSet::new(), from);
    while let Some(id) = open.pop() {
        if seen.insert(id.clone()) {
            let edges = graph.edges_from(&id).iter().filter(|edge| leads_on(edge));
            open.extend(edges.map(|edge| edge.to.clone()));
        }
    }
    seen
}

/// Returns the first step that a way leads to from a node and that does not lie ahead; the node itself, where there is none.
fn first_step(graph: &Graph, node: &NodeId, ahead: &BTreeSet<NodeId>) -> NodeId {
    let (mut seen, mut open) = (BTreeSet::new(), std::collections::VecDeque::from([node]));
    while let Some(id) = open.pop_front() {
        if ahead.contains(id) || !seen.insert(id) {
            continue;
        }
        if graph.node(id).is_some_and(|node| node.step().is_some()) {
            return id.clone();
        }
        open.extend(graph.edges_from(id).iter().map(|edge| &edge.to));
    }
    node.clone()
}
