//! Branches: where they begin, and what happens as each comes to its join.

use std::collections::{BTreeMap, BTreeSet};

use crate::ask::Reason;
use crate::event::Conflict;
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::graph::{Edge, Fork, Graph, JoinPolicy, NodeKind, Signal};
use crate::ids::{Attempt, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{Arrivals, BranchResult, EnteredFrom, NodeState};

use super::settle::Said;
use super::{Transition, dispatch, hold, revise, route, settle};

/// The name under which conditions find how the branches of the last join ended, and behind which, with the branch's number
/// from 0, `.outcome`, `.node` and `.output` of each (DOT P6).
const RESULTS: &str = "parallel.results";
/// The names under which conditions find the best branch of the last join: the first of those that ended well, else of
/// those that failed (DOT P7).
const BEST: &str = "parallel.fan_in.best_id";
const BEST_OUTCOME: &str = "parallel.fan_in.best_outcome";

/// Goes along the edges of a fork: all of them, or as many as may be under way at once. Where they lead to a join of its own, branches
/// that are under way since it was entered before are taken back: the join waits for none of them.
pub(super) fn start_branches(
    transition: &mut Transition<'_>,
    node: &NodeId,
    fork: &Fork,
) -> Result<(), Refusal> {
    transition.set_state(node, NodeState::Settled { outcome: Outcome::Passed })?;
    let edges = transition.graph.edges_from(node);
    // Nothing tells when branches end that meet nowhere: all of them begin.
    let max = fork.join.as_ref().and(fork.max);
    let at_once = max.map_or(edges.len(), usize::from).min(edges.len());
    if let Some(join) = &fork.join {
        if transition.run.record(join)?.arrivals.is_some() {
            take_back_branches(transition, join)?;
        }
        let begun = max.map(|_| u16::try_from(at_once).unwrap_or(u16::MAX));
        *wait_anew(transition, join)? = Arrivals { begun, ..Arrivals::default() };
    } else if transition.run.record(node)?.tally.visits > 1 {
        // Entered again before all its branches of the time before were begun: each is begun once.
        transition.open.retain(|(chosen, _)| chosen.edge.from != *node);
        begin_anew(transition, node)?;
    }
    // The stack is read from its end: the edge pushed last is looked at first.
    for edge in edges[..at_once].iter().rev() {
        route::follow(transition, edge.clone(), Signal::Success);
    }
    Ok(())
}

/// Has a join wait again; the caller says which arrivals of its branches it keeps.
fn wait_anew<'t>(transition: &'t mut Transition<'_>, join: &NodeId) -> Result<&'t mut Arrivals, Refusal> {
    transition.withdraw(join)?;
    transition.set_state(join, NodeState::Pending)?;
    let record = transition.run.record_mut(join)?;
    record.entered_from = None;
    Ok(record.arrivals.get_or_insert_default())
}

/// Has the joins behind a fork that names none wait again for what the fork begins once more.
fn begin_anew(transition: &mut Transition<'_>, fork: &NodeId) -> Result<(), Refusal> {
    for (join, branches) in transition.graph.awaited_behind(fork) {
        if transition.run.record(&join)?.arrivals.is_none() {
            continue;
        }
        let arrivals = wait_anew(transition, &join)?;
        for branch in branches {
            arrivals.forget_branch(branch);
        }
    }
    Ok(())
}

/// Has a join without a fork of its own wait again for branches that come from some nodes; other nodes stay as they are.
pub(super) fn await_branches_of(
    transition: &mut Transition<'_>,
    join: &NodeId,
    from: &BTreeSet<&NodeId>,
) -> Result<(), Refusal> {
    let graph = transition.graph;
    if graph.fork_of(join).is_some() || transition.run.record(join)?.arrivals.is_none() {
        return Ok(());
    }
    let arrivals = wait_anew(transition, join)?;
    for branch in from.iter().filter_map(|from| graph.branch_number(join, from)) {
        arrivals.forget_branch(branch);
    }
    Ok(())
}

/// Notes that a branch came into a join, which goes on once enough have.
pub(super) fn arrive(transition: &mut Transition<'_>, edge: &Edge, signal: Signal) -> Result<(), Refusal> {
    let (join, from) = (&edge.to, &edge.from);
    let branch =
        transition.graph.branch_number(join, from).ok_or_else(|| Refusal::NoSuchNode(from.clone()))?;
    let is_met = signal == Signal::Success || transition.is_passed_over(from)?;
    let is_over = transition.state(join)?.outcome().is_some() || awaits_merge(transition, join)?;
    let is_forked = transition.graph.fork_of(join).is_some();
    let context = transition.run.record(from)?.context.clone();
    let result = branch_result(transition, from)?;
    transition.dead_end = Some(join.clone());
    let record = transition.run.record_mut(join)?;
    let arrivals = record.arrivals.get_or_insert_default();
    let is_known = arrivals.has(branch);
    let is_late = !is_forked && is_over && !is_known && !transition.graph.comes_round(join, from);
    if is_late {
        return route::end_late_branch(transition, join);
    }
    if is_forked && (is_over || is_known) {
        return Ok(());
    }
    // A branch may arrive again in a loop, where no fork begins all branches anew: the newest arrival counts.
    arrivals.forget_branch(branch);
    if is_met {
        arrivals.record_success(branch);
    } else {
        arrivals.failed.insert(branch, from.clone());
    }
    if let Some(result) = result.filter(|_| branch < RESULTS_MAX) {
        arrivals.results.insert(branch, result);
    }
    if record.entered_from.is_none() || !is_met {
        record.entered_from = Some(EnteredFrom { from: from.clone(), signal });
    }
    if !is_forked {
        record.context.extend(context);
    }
    match outcome(transition, join)? {
        None => begin_next(transition, join),
        Some(outcome) => {
            take_back_branches(transition, join)?;
            complete(transition, join, outcome)
        }
    }
}

/// Returns how a join comes out, once enough branches have come.
fn outcome(transition: &Transition<'_>, join: &NodeId) -> Result<Option<Outcome>, Refusal> {
    let Some(NodeKind::Join(awaited)) = transition.graph.node(join).map(|node| &node.kind) else {
        return Err(Refusal::NoSuchNode(join.clone()));
    };
    let Some(arrivals) = &transition.run.record(join)?.arrivals else { return Ok(None) };
    let (met, failed) = (!arrivals.met.is_empty(), !arrivals.failed.is_empty());
    let all = arrivals.count() >= transition.graph.branches_into(join);
    Ok(match awaited.policy {
        JoinPolicy::All if !all => None,
        JoinPolicy::Any if !met && !all => None,
        JoinPolicy::All if !failed => Some(Outcome::Passed),
        JoinPolicy::Any if met => Some(Outcome::Passed),
        JoinPolicy::All | JoinPolicy::Any if awaited.partial => Some(Outcome::Warned),
        JoinPolicy::All | JoinPolicy::Any => Some(Outcome::Failed),
    })
}

/// Says whether a join that waits can go on by itself: branches wait for their turn, or enough have come for the revision of the plan.
pub(super) fn can_go_on(transition: &Transition<'_>, join: &NodeId) -> Result<bool, Refusal> {
    let record = transition.run.record(join)?;
    let waits = record.arrivals.as_ref().is_some_and(|arrivals| !arrivals.waiting.is_empty());
    let is_idle = record.state == NodeState::Pending && !awaits_merge(transition, join)?;
    Ok(is_idle && (waits || outcome(transition, join)?.is_some()))
}

/// Goes on at a join that can; says whether it did.
pub(super) fn go_on(transition: &mut Transition<'_>, join: &NodeId) -> Result<bool, Refusal> {
    if !can_go_on(transition, join)? {
        return Ok(false);
    }
    match outcome(transition, join)? {
        Some(outcome) => {
            take_back_branches(transition, join)?;
            complete(transition, join, outcome)?;
        }
        None => take_up_waiting(transition, join)?,
    }
    Ok(true)
}

/// Returns what is kept of the branch that ends with a node; nothing where no condition asks for it.
fn branch_result(transition: &Transition<'_>, from: &NodeId) -> Result<Option<BranchResult>, Refusal> {
    if !transition.graph.conditions_ask_for("parallel.results.")
        && !transition.graph.conditions_ask_for("parallel.fan_in.")
    {
        return Ok(None);
    }
    let node = transition.last_acting_node(from)?;
    let known = transition.run.record(&node)?.attempt_details.as_ref();
    let output = known.and_then(|known| known.output.clone()).unwrap_or_default();
    Ok(Some(BranchResult { node, output }))
}

/// Begins the next branch of a fork that begins them one after another; one that has come already, as the run was taken up within it,
/// is left out. One that waits where it stood goes on before others begin.
fn begin_next(transition: &mut Transition<'_>, join: &NodeId) -> Result<(), Refusal> {
    let Some(fork) = transition.graph.fork_of(join) else { return Ok(()) };
    let arrivals = transition.run.record_mut(join)?.arrivals.get_or_insert_default();
    if let Some((branch, nodes)) = arrivals.waiting.pop_first() {
        return take_up_branch(transition, fork, branch, nodes);
    }
    let Some(begun) = arrivals.begun else { return Ok(()) };
    let mut left = (begun..).zip(transition.graph.edges_from(fork).iter().skip(usize::from(begun)));
    let Some((branch, edge)) = left.find(|(branch, _)| !arrivals.has(*branch)) else { return Ok(()) };
    arrivals.begun = Some(branch + 1);
    route::follow(transition, edge.clone(), Signal::Success);
    Ok(())
}

/// Has a branch go on at the nodes at which it stood; where they are gone, it begins.
fn take_up_branch(
    transition: &mut Transition<'_>,
    fork: &NodeId,
    branch: u16,
    nodes: BTreeSet<NodeId>,
) -> Result<(), Refusal> {
    let stood: Vec<NodeId> =
        nodes.into_iter().filter(|node| node != fork && transition.graph.node(node).is_some()).collect();
    if stood.is_empty()
        && let Some(edge) = transition.graph.edges_from(fork).get(usize::from(branch))
    {
        route::follow(transition, edge.clone(), Signal::Success);
    }
    for node in stood {
        match transition.is_met(&node)? {
            // The way from it was not gone to its end.
            true => route::leave(transition, &node, Signal::Success)?,
            false => revise::take_up_at(transition, &node)?,
        }
    }
    Ok(())
}

/// Takes back what is still under way on the branches of a join that needs no more of them (DOT P4), or new ones. With every
/// branch there, one that left its fork early may still have company behind it, and ways that nobody has gone yet. Of a join without a
/// fork of its own, what leads nowhere else is of its branches.
fn take_back_branches(transition: &mut Transition<'_>, join: &NodeId) -> Result<(), Refusal> {
    let graph = transition.graph;
    let is_any = matches!(
        graph.node(join).map(|node| &node.kind),
        Some(NodeKind::Join(awaited)) if awaited.policy == JoinPolicy::Any
    );
    let members = match graph.fork_of(join) {
        None if is_any => graph.leading_only_to(join),
        Some(_) | None => graph.members_of(join),
    };
    if members.is_empty() {
        return Ok(());
    }
    for live in transition.run.live_nodes()?.into_iter().filter(|live| members.contains(live)) {
        transition.withdraw(&live)?;
        note_taken_back(transition, join, &live)?;
    }
    let fork = transition.graph.fork_of(join).cloned();
    let is_other = |from: &NodeId| !members.contains(from) && Some(from) != fork.as_ref();
    let dropped = transition.open.iter().map(|(chosen, _)| chosen.edge.clone());
    let dropped: Vec<Edge> = dropped.filter(|edge| !is_other(&edge.from)).collect();
    transition.open.retain(|(chosen, _)| is_other(&chosen.edge.from));
    for edge in dropped.iter().filter(|edge| Some(&edge.from) != fork.as_ref()) {
        note_taken_back(transition, join, &edge.from)?;
    }
    Ok(())
}

/// Notes where branches stood that end before the join whose branches are taken back: they go on there, should the run be taken up
/// on one of them.
fn note_taken_back(transition: &mut Transition<'_>, join: &NodeId, node: &NodeId) -> Result<(), Refusal> {
    let members = transition.graph.members_of(join);
    for (inner, branch) in transition.graph.branches_around(node) {
        if members.contains(&inner) && transition.run.record(&inner)?.arrivals.is_some() {
            let arrivals = transition.run.record_mut(&inner)?.arrivals.get_or_insert_default();
            arrivals.waiting.entry(branch).or_default().insert(node.clone());
        }
    }
    Ok(())
}

/// Has the joins around a node at which a run is taken up wait for its branch, and other branches go on that were taken back: as many as
/// may be under way at once.
pub(super) fn resume_branches_around(transition: &mut Transition<'_>, node: &NodeId) -> Result<(), Refusal> {
    let is_left = transition.open.iter().any(|(chosen, _)| chosen.edge.from == *node);
    if !is_left && !transition.state(node)?.is_live() {
        return Ok(());
    }
    for (join, branch) in transition.graph.branches_around(node) {
        let Some(fork) = transition.graph.fork_of(&join).cloned() else { continue };
        let is_apart = transition.graph.forks_or_merges_worktrees(&join);
        if is_apart || transition.run.record(&join)?.arrivals.is_none() {
            continue;
        }
        if transition.state(&join)?.outcome().is_some() {
            await_branch(transition, &join, Some(branch))?;
        }
        let arrivals = transition.run.record_mut(&join)?.arrivals.get_or_insert_default();
        if let Some(nodes) = arrivals.waiting.remove(&branch) {
            take_up_branch(transition, &fork, branch, nodes)?;
        }
        take_up_waiting(transition, &join)?;
    }
    Ok(())
}

/// Has branches of a join go on that wait for their turn: as many as may be under way at once.
fn take_up_waiting(transition: &mut Transition<'_>, join: &NodeId) -> Result<(), Refusal> {
    let Some(fork) = transition.graph.fork_of(join) else { return Ok(()) };
    let arrivals = transition.run.record_mut(join)?.arrivals.get_or_insert_default();
    let mut waiting = std::mem::take(&mut arrivals.waiting);
    let most = most_at_once(transition.graph, join);
    while branches_under_way(transition, join)? < most
        && let Some((branch, nodes)) = waiting.pop_first()
    {
        take_up_branch(transition, fork, branch, nodes)?;
    }
    transition.run.record_mut(join)?.arrivals.get_or_insert_default().waiting = waiting;
    Ok(())
}

/// Counts the branches of a join on which somebody works or a way is followed.
fn branches_under_way(transition: &Transition<'_>, join: &NodeId) -> Result<usize, Refusal> {
    let fork = transition.graph.fork_of(join);
    let open = transition.open.iter().map(|(chosen, _)| {
        let Edge { from, to, .. } = &chosen.edge;
        if Some(from) == fork { to.clone() } else { from.clone() }
    });
    let nodes = transition.run.live_nodes()?.into_iter().chain(open);
    let branches: BTreeSet<u16> = nodes
        .filter_map(|node| {
            let mut around = transition.graph.branches_around(&node).into_iter();
            around.find(|(other, _)| other == join).map(|(_, branch)| branch)
        })
        .collect();
    Ok(branches.len())
}

fn complete(transition: &mut Transition<'_>, join: &NodeId, outcome: Outcome) -> Result<(), Refusal> {
    let fork = transition.graph.fork_of(join).cloned();
    let forked = match &fork {
        Some(fork) => Some(transition.run.record(fork)?.context.clone()),
        None => None,
    };
    let branches = transition.graph.branches_into(join);
    let record = transition.run.record_mut(join)?;
    let arrivals = record.arrivals.get_or_insert_default();
    let word = |branch| match (arrivals.failed.contains_key(&branch), arrivals.has(branch)) {
        (true, _) => "fail",
        (false, true) => "success",
        (false, false) => "skipped",
    };
    let failed = u16::try_from(arrivals.failed.len()).unwrap_or(u16::MAX);
    let met = arrivals.count().saturating_sub(failed);
    // Of very many branches only a few are worth a condition, and the context stays small.
    let outcomes: Vec<&str> = (0..branches.min(RESULTS_MAX)).map(word).collect();
    let mut results = BTreeMap::from([(RESULTS.to_owned(), outcomes.join(","))]);
    for (branch, result) in &arrivals.results {
        let outcome = word(*branch);
        for (what, value) in
            [("outcome", outcome), ("node", result.node.as_str()), ("output", result.output.as_str())]
        {
            let name = format!("{RESULTS}.{branch}.{what}");
            if transition.graph.conditions_ask_for(&name) {
                results.insert(name, value.to_owned());
            }
        }
    }
    let ranked = |(branch, _): &(&u16, &BranchResult)| arrivals.failed.contains_key(*branch);
    if let Some((branch, best)) = arrivals.results.iter().min_by_key(ranked)
        && transition.graph.conditions_ask_for("parallel.fan_in.")
    {
        results.insert(BEST.to_owned(), best.node.as_str().to_owned());
        results.insert(BEST_OUTCOME.to_owned(), word(*branch).to_owned());
    }
    // A branch's context stays its own (DOT P1).
    if let Some(context) = forked {
        record.context = context;
        record.context.extend(results);
    }
    record.tally.visits = record.tally.visits.saturating_add(1);
    transition.withdraw(join)?;
    let is_in_worktree = transition.graph.forks_or_merges_worktrees(join);
    if is_in_worktree && outcome != Outcome::Failed {
        transition.run.record_mut(join)?.arrivals.get_or_insert_default().merging = Some(outcome);
    }
    transition.facts.push(Fact::BranchesJoined { node: join.clone(), met, failed });
    if is_in_worktree && outcome != Outcome::Failed {
        return dispatch::dispatch_node(transition, join);
    }
    settle_join(transition, join, outcome)
}

/// Settles a join and goes on from it.
fn settle_join(transition: &mut Transition<'_>, join: &NodeId, outcome: Outcome) -> Result<(), Refusal> {
    settle::settle(transition, join, outcome, None)?;
    let signal = if outcome == Outcome::Failed { Signal::Exhausted } else { Signal::Success };
    route::leave(transition, join, signal)
}

/// Says whether branches that came into a join are to be merged before it settles.
pub(super) fn awaits_merge(transition: &Transition<'_>, join: &NodeId) -> Result<bool, Refusal> {
    let record = transition.run.record(join)?;
    let is_open = matches!(record.state.outcome(), None | Some(Outcome::Failed))
        && transition.graph.forks_or_merges_worktrees(join);
    Ok(is_open && record.arrivals.as_ref().is_some_and(|arrivals| arrivals.merging.is_some()))
}

/// Has worktrees made for the branches of a fork that is entered; a run that is taken up from its start walks past branches
/// that are merged already.
pub(super) fn begin_in_worktrees(
    transition: &mut Transition<'_>,
    node: &NodeId,
    fork: &Fork,
) -> Result<(), Refusal> {
    if transition.replayed.is_some()
        && let Some(join) = &fork.join
        && transition.state(join)?.outcome().is_some_and(|outcome| outcome != Outcome::Failed)
    {
        transition.set_state(node, NodeState::Settled { outcome: Outcome::Passed })?;
        return route::leave(transition, join, Signal::Success);
    }
    fork_worktrees(transition, node, fork)
}

/// Has worktrees made for the branches of a fork. Branches that are under way since they were made before are taken back: they
/// would end in worktrees that nobody merges.
pub(super) fn fork_worktrees(
    transition: &mut Transition<'_>,
    node: &NodeId,
    fork: &Fork,
) -> Result<(), Refusal> {
    if let Some(join) = &fork.join
        && transition.run.record(node)?.tally.attempt != Attempt::NONE
    {
        take_back_branches(transition, join)?;
        transition.withdraw(join)?;
    }
    dispatch::dispatch_worktrees(transition, node)
}

/// Settles the join of a fork that a person leaves out, whose branches would have worktrees: without worktrees of their own they
/// would meet in one workspace, and nothing would merge what they did. Nothing is to be done at any other node.
pub(super) fn settle_skipped_fork(
    transition: &mut Transition<'_>,
    node: &NodeId,
    outcome: Outcome,
    said: Said<'_>,
) -> Result<(), Refusal> {
    let Some(NodeKind::Fork(Fork { join: Some(join), in_worktree: true, .. })) =
        transition.graph.node(node).map(|node| &node.kind)
    else {
        return Ok(());
    };
    let context = transition.run.record(node)?.context.clone();
    *wait_anew(transition, join)? = Arrivals::default();
    transition.run.record_mut(join)?.context = context;
    settle::settle(transition, join, outcome, Some(said))
}

/// Goes on behind branches that a person left out; where their join is open again, their fork is tried anew.
pub(super) fn continue_behind_join(
    transition: &mut Transition<'_>,
    join: &NodeId,
    fork: &NodeId,
) -> Result<(), Refusal> {
    match transition.state(join)?.outcome() {
        None | Some(Outcome::Failed) => dispatch::dispatch_node(transition, fork),
        Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned) => {
            route::leave(transition, join, Signal::Success)
        }
    }
}

/// Begins the branches of a fork, which have their worktrees.
pub(super) fn on_worktrees_forked(
    transition: &mut Transition<'_>,
    node: &NodeId,
    base: &str,
) -> Result<(), Refusal> {
    let fork = match transition.graph.node(node).map(|node| &node.kind) {
        Some(NodeKind::Fork(fork)) if *transition.state(node)? == NodeState::Branching => fork.clone(),
        Some(_) | None => return Err(Refusal::WrongState),
    };
    transition.run.record_mut(node)?.saved = Some(base.to_owned());
    transition.facts.push(Fact::BranchesForked { node: node.clone(), base: base.to_owned() });
    start_branches(transition, node, &fork)
}

/// Goes on from a join whose branches are merged.
pub(super) fn on_merged(transition: &mut Transition<'_>, join: &NodeId, files: u32) -> Result<(), Refusal> {
    let outcome = outcome_being_merged(transition, join)?;
    transition.facts.push(Fact::BranchesMerged { node: join.clone(), files });
    transition.run.record_mut(join)?.failure = None;
    transition.run.record_mut(join)?.arrivals.get_or_insert_default().merging = None;
    settle_join(transition, join, outcome)
}

/// Asks a person about branches that don't fit together.
pub(super) fn on_conflict(
    transition: &mut Transition<'_>,
    join: &NodeId,
    conflict: &Conflict,
) -> Result<(), Refusal> {
    outcome_being_merged(transition, join)?;
    let files = conflict.files.clone();
    transition.facts.push(Fact::MergeConflicted { node: join.clone(), files: files.clone() });
    let what = Failing::Conflict { branch: conflict.branch, files, folder: conflict.folder.clone() };
    let failure =
        Failure { stdout: conflict.hunks.clone(), ..settle::failure_without_gate(transition, join, what)? };
    let message = format!(
        "edit the files in {} until no conflict mark is left in them, then answer retry; skip goes on without anything \
         that the branches did",
        conflict.folder
    );
    hold::with_failure(transition, join, Reason::Conflict, Some(message), failure)
}

/// Returns what a join settles as whose branches are being merged.
fn outcome_being_merged(transition: &Transition<'_>, join: &NodeId) -> Result<Outcome, Refusal> {
    let record = transition.run.record(join)?;
    let merging = record.arrivals.as_ref().and_then(|arrivals| arrivals.merging);
    merging.filter(|_| record.state == NodeState::Branching).ok_or(Refusal::WrongState)
}

/// The most branches whose results a condition can look at.
const RESULTS_MAX: u16 = 64;

/// Returns how many branches of a join may be under way at once.
fn most_at_once(graph: &Graph, join: &NodeId) -> usize {
    match graph.fork_of(join).and_then(|fork| graph.node(fork)).map(|node| &node.kind) {
        Some(NodeKind::Fork(fork)) => fork.max.map_or(usize::MAX, usize::from),
        Some(_) | None => usize::MAX,
    }
}

/// Opens a join again for a branch that comes once more; the others stay as they came.
pub(super) fn reopen_for_branch(
    transition: &mut Transition<'_>,
    join: &NodeId,
    from: &NodeId,
) -> Result<(), Refusal> {
    await_branch(transition, join, transition.graph.branch_number(join, from))
}

fn await_branch(transition: &mut Transition<'_>, join: &NodeId, branch: Option<u16>) -> Result<(), Refusal> {
    transition.set_state(join, NodeState::Pending)?;
    let record = transition.run.record_mut(join)?;
    let arrivals = record.arrivals.get_or_insert_default();
    arrivals.merging = None;
    if let Some(branch) = branch {
        arrivals.forget_branch(branch);
    }
    let other = arrivals.failed.values().next().cloned();
    record.entered_from = other.map(|from| EnteredFrom { from, signal: Signal::Exhausted });
    Ok(())
}

/// Opens a join again whose branches failed, and returns the nodes at which they did; where none did, the one by which
/// its way on was decided. Branches beyond those that may be under way at once wait.
pub(super) fn reopen(transition: &mut Transition<'_>, join: &NodeId) -> Result<BTreeSet<NodeId>, Refusal> {
    transition.set_state(join, NodeState::Pending)?;
    let most = most_at_once(transition.graph, join);
    let record = transition.run.record_mut(join)?;
    let arrivals = record.arrivals.get_or_insert_default();
    let mut branches = std::mem::take(&mut arrivals.failed).into_iter();
    let failed: BTreeSet<NodeId> = branches.by_ref().take(most).map(|(_, node)| node).collect();
    arrivals.waiting.extend(branches.map(|(branch, node)| (branch, BTreeSet::from([node]))));
    let entered_from = record.entered_from.take();
    if let (true, Some(entered_from)) = (failed.is_empty(), entered_from) {
        reopen_for_branch(transition, join, &entered_from.from)?;
        return Ok(BTreeSet::from([entered_from.from]));
    }
    Ok(failed)
}
