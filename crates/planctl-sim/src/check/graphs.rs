//! Checks of graphs after every event: joins wait, limits hold, goals are met, visits are kept.

use std::collections::BTreeSet;

use planctl_engine::{
    AskKind, ClockEvent, Digest, Effect, Event, Fact, Fork, Graph, HarnessEvent, HarnessResult, JoinPolicy,
    Node, NodeId, NodeKind, NodeState, Outcome, Purpose, Signal, Work,
};

use super::ensure;
use crate::store::{Entry, Store};

pub(super) fn after_event(store: &Store, entry: &Entry) -> Result<(), String> {
    no_more_at_once_than_may_be(store)?;
    visits_are_kept(store)?;
    branches_work_in_their_places(store)?;
    nobody_goes_on_before_a_run_within(store)?;
    each_effect_is_allowed(store)?;
    each_judgement_is_of_an_approved_prompt(store, entry)?;
    for fact in &entry.facts {
        match fact {
            Fact::BranchesJoined { node, met, failed } => {
                let facts = before(store, fact);
                join_waited(&store.plan().graph, facts, node, (usize::from(*met), usize::from(*failed)))?;
            }
            Fact::EdgeFollowed { from, .. } => branches_take_turns(store, from)?,
            Fact::CheckpointSaved { node, .. } => record_was_due(before(store, fact), node)?,
            Fact::PlanCompleted { .. } => goals_are_met(store)?,
            Fact::BranchesForked { .. } | Fact::BranchesMerged { .. } | Fact::SubPlanBegan { .. } => {
                done_once(before(store, fact), fact)?;
            }
            Fact::NodeSettled { node, outcome: Outcome::Passed, by, .. } => {
                let is_question =
                    store.plan().graph.node(node).is_some_and(|node| matches!(node.kind, NodeKind::Human(_)));
                ensure(!is_question || by.is_some(), || format!("nobody answered what {node} asks"))?;
            }
            Fact::PlanActivated { .. }
            | Fact::NodeEntered { .. }
            | Fact::NodeVerified { .. }
            | Fact::NodeObserved { .. }
            | Fact::NodeRehearsed { .. }
            | Fact::RetryTriggered { .. }
            | Fact::EpochBegan { .. }
            | Fact::FidelityReduced { .. }
            | Fact::ContextRefused { .. }
            | Fact::NodeQueued { .. }
            | Fact::NodeDecided { .. }
            | Fact::CheckpointRestored { .. }
            | Fact::GoalUnmet { .. }
            | Fact::MergeConflicted { .. }
            | Fact::SubPlanEnded { .. }
            | Fact::NodeSettled { .. }
            | Fact::NodeResting { .. }
            | Fact::NodeInterrupted { .. }
            | Fact::GateRepeated { .. }
            | Fact::AskOpened { .. }
            | Fact::AskAnswered { .. }
            | Fact::PlanEscalated { .. }
            | Fact::PaceChanged { .. }
            | Fact::BudgetNoticed { .. }
            | Fact::PlanExpired { .. }
            | Fact::NodeReopened { .. }
            | Fact::PlanPaused { .. }
            | Fact::PlanFailed { .. }
            | Fact::PlanCancelled { .. } => {}
        }
    }
    Ok(())
}

/// A person allowed each attempt at a call whose effects ask for that (M-36).
fn each_effect_is_allowed(store: &Store) -> Result<(), String> {
    let asks = |node: &&Node| node.call().is_some_and(|call| call.approval.is_some());
    for node in store.plan().graph.nodes().iter().filter(asks) {
        let is_allowed = |fact: &&Fact| {
            matches!(fact, Fact::AskAnswered { node: of, kind: AskKind::Effect, answer, .. }
                if *of == node.id && answer == "approve")
        };
        let allowed = store.history.iter().flat_map(|entry| &entry.facts).filter(is_allowed).count();
        let tried = store.nodes.get(&node.id).map_or(0, |record| record.tally.attempt.number());
        let name = &node.id;
        ensure(usize::from(tried) <= allowed, || {
            format!("{name} was tried {tried} times, and allowed {allowed} times")
        })?;
    }
    Ok(())
}

/// A person approved the very prompt that a judge answered, where its plan asks for that (M-35).
fn each_judgement_is_of_an_approved_prompt(store: &Store, entry: &Entry) -> Result<(), String> {
    let Event::Harness(HarnessEvent { at, found: HarnessResult::Evidence(evidence) }) = &entry.event else {
        return Ok(());
    };
    let judge = store.plan().graph.gated(&at.node).and_then(|gated| gated.contract.judge.as_deref());
    let (Some(judgement), Some(true)) = (&evidence.judgement, judge.map(|judge| judge.approval)) else {
        return Ok(());
    };
    let is_word = |fact: &&Fact| {
        matches!(fact, Fact::AskAnswered { node, kind: AskKind::Prompt, answer, option, .. }
            if *node == at.node && answer == "approve" && option.as_deref() == judgement.prompt.as_ref().map(Digest::as_str))
    };
    let is_approved = store.history.iter().flat_map(|entry| &entry.facts).any(|fact| is_word(&fact));
    ensure(is_approved, || format!("the judge of {} answered a prompt that nobody approved", at.node))
}

/// No more nodes are under way than the plan allows, and no two that may change one file.
fn no_more_at_once_than_may_be(store: &Store) -> Result<(), String> {
    let graph = &store.plan().graph;
    let records = store.whole.records();
    let out: Vec<&NodeId> =
        records.iter().filter(|(_, record)| record.state.is_out()).map(|(id, _)| id).collect();
    let most = usize::from(graph.limits().parallel);
    ensure(out.len() <= most, || format!("{out:?} are under way at once, and may be {most}"))?;
    let mut names = BTreeSet::new();
    for name in out.iter().filter_map(|id| graph.task(id)).flat_map(|task| &task.excludes) {
        ensure(names.insert(name), || format!("two steps under way may change {name}"))?;
    }
    Ok(())
}

/// A step of a branch with a worktree of its own is worked on between the fork and the merge, and a join of such branches
/// has settled well only by a merge, or by a person.
fn branches_work_in_their_places(store: &Store) -> Result<(), String> {
    let graph = &store.plan().graph;
    let record = |id: &NodeId| store.whole.records().get(id);
    for (id, _) in store.whole.records().iter().filter(|(_, record)| record.state.is_out()) {
        let Some(branch) = graph.worktree_branch(id) else { continue };
        let is_forked = record(&branch.fork).is_some_and(|fork| fork.saved.is_some());
        ensure(is_forked, || {
            format!("{id} is worked on, and the branches of {} were not forked", branch.fork)
        })?;
        let is_forking = record(&branch.fork).is_some_and(|fork| fork.state == NodeState::Branching);
        ensure(!is_forking, || format!("{id} is worked on while {} parts its branches anew", branch.fork))?;
        let is_merging = record(&branch.join).is_some_and(|join| join.state == NodeState::Branching);
        ensure(!is_merging, || format!("{id} is worked on while {} merges its branch", branch.join))?;
    }
    let Some(entry) = store.history.last() else { return Ok(()) };
    for fact in &entry.facts {
        let Fact::NodeSettled { node, outcome: Outcome::Passed | Outcome::Warned, by: None, .. } = fact
        else {
            continue;
        };
        let merges =
            |other: &Fact| matches!(other, Fact::BranchesMerged { node: merged, .. } if merged == node);
        let is_join = graph.node(node).is_some_and(|node| matches!(node.kind, NodeKind::Join(_)));
        ensure(!is_join || !graph.forks_or_merges_worktrees(node) || entry.facts.iter().any(merges), || {
            format!("{node} goes on, and its branches were not merged")
        })?;
    }
    Ok(())
}

/// The way on from a plan within the plan is open once its run is over, and as that ended.
fn nobody_goes_on_before_a_run_within(store: &Store) -> Result<(), String> {
    let Some(entry) = store.history.last() else { return Ok(()) };
    // A run that walks again from its start passes what is settled, and says so no second time.
    let may_replay = matches!(entry.event, Event::Clock(ClockEvent::Admitted));
    for (at, fact) in entry.facts.iter().enumerate() {
        let Fact::EdgeFollowed { from, signal: Signal::Success, .. } = fact else { continue };
        if store.plan().graph.sub_plan(from).is_none() {
            continue;
        }
        let settled = entry.facts[..at].iter().rev().find_map(|before| {
            if let Fact::NodeSettled { node, outcome, .. } = before
                && node == from
            {
                return Some(*outcome);
            }
            None
        });
        ensure(settled.map_or(may_replay, |outcome| outcome != Outcome::Failed), || {
            format!("the run goes on from {from}, whose own run is not over or came to nothing: {settled:?}")
        })?;
    }
    Ok(())
}

/// Branches are forked once for each time that their fork is done, and begin with another base each time; they are merged once
/// for each time that they meet, and a run within the run begins once.
fn done_once<'f>(facts: impl Iterator<Item = &'f Fact>, fact: &Fact) -> Result<(), String> {
    let mut is_done = false;
    for other in facts {
        is_done = match (fact, other) {
            (Fact::BranchesMerged { node, .. }, Fact::BranchesJoined { node: joined, .. })
                if joined == node =>
            {
                false
            }
            (Fact::BranchesForked { node, base }, Fact::BranchesForked { node: forked, base: before })
                if forked == node && before == base =>
            {
                true
            }
            (Fact::BranchesMerged { node, .. }, Fact::BranchesMerged { node: merged, .. })
                if merged == node =>
            {
                true
            }
            (Fact::SubPlanBegan { run, .. }, Fact::SubPlanBegan { run: begun, .. }) if begun == run => true,
            (_, _) => is_done,
        };
    }
    ensure(!is_done, || format!("this was done already: {fact:?}"))
}

/// The count of a node's visits is the number of entries in the history.
fn visits_are_kept(store: &Store) -> Result<(), String> {
    let begins = |fact: &Fact| matches!(fact, Fact::EpochBegan { .. });
    let epoch = facts(store).enumerate().filter(|(_, fact)| begins(fact)).last().map_or(0, |(at, _)| at);
    for (id, record) in store.whole.records() {
        let Some(node) = store.plan().graph.node(id) else { continue };
        let is_told = !matches!(node.kind, NodeKind::Join(_) | NodeKind::Escalate { .. });
        let in_epoch = facts(store).skip(epoch);
        let told =
            in_epoch.filter(|fact| matches!(fact, Fact::NodeEntered { node, .. } if node == id)).count();
        ensure(!is_told || told == usize::from(record.tally.visits), || {
            format!("{id} was entered {told} times, and {} are counted", record.tally.visits)
        })?;
    }
    Ok(())
}

/// A join goes on when enough branches have come, and counts each once.
fn join_waited<'f>(
    graph: &Graph,
    facts: impl Iterator<Item = &'f Fact>,
    join: &NodeId,
    (met, failed): (usize, usize),
) -> Result<(), String> {
    let Some(NodeKind::Join(rule)) = graph.node(join).map(|node| &node.kind) else {
        return Err(format!("{join} is no join"));
    };
    let fork = forks(graph).into_iter().find(|(_, fork)| fork.join.as_ref() == Some(join));
    let mut came = BTreeSet::new();
    for fact in facts {
        if fork.as_ref().is_some_and(|(fork, _)| begins_anew(fact, fork)) {
            came.clear();
        }
        if let Fact::EdgeFollowed { from, to, .. } = fact
            && to == join
        {
            came.insert(from);
        }
    }
    let sources: BTreeSet<&NodeId> =
        graph.edges().iter().filter(|edge| edge.to == *join).map(|edge| &edge.from).collect();
    let branches = fork.map_or(sources.len(), |(fork, _)| graph.edges_from(&fork).len());
    let count = met + failed;
    ensure(count <= came.len() && count <= branches, || {
        format!("{join} counts {count} of {branches} branches, and {came:?} came")
    })?;
    let is_enough = match rule.policy {
        JoinPolicy::All => count == branches,
        JoinPolicy::Any => met > 0 || count == branches,
    };
    ensure(is_enough, || format!("{join} goes on after {met} and {failed} of {branches} branches"))
}

/// Says whether a fork begins its branches anew: it is entered, a person has it tried again, or its worktrees are made.
fn begins_anew(fact: &Fact, fork: &NodeId) -> bool {
    matches!(
        fact,
        Fact::NodeEntered { node, .. } | Fact::AskAnswered { node, .. } | Fact::BranchesForked { node, .. }
            if node == fork
    ) || matches!(fact, Fact::EpochBegan { .. })
}

/// No more branches of a fork are under way than it allows, and each is begun once.
fn branches_take_turns(store: &Store, id: &NodeId) -> Result<(), String> {
    let graph = &store.plan().graph;
    let Some(NodeKind::Fork(Fork { join: Some(join), max, .. })) = graph.node(id).map(|node| &node.kind)
    else {
        return Ok(());
    };
    let mut begun = BTreeSet::new();
    for fact in facts(store) {
        // A run that is taken up may go on at the fork itself, which it enters no second time. So it may where a person has done
        // again what led to a question of the plan.
        let is_retry = matches!(fact, Fact::AskAnswered { node, answer, .. }
            if answer == "retry" && is_escalation(graph, node));
        if begins_anew(fact, id) || is_retry || matches!(fact, Fact::PlanActivated { .. }) {
            begun.clear();
        }
        if let Fact::EdgeFollowed { from, to, .. } = fact
            && from == id
        {
            ensure(begun.insert(to), || format!("{id} begins the branch at {to} twice"))?;
        }
    }
    let Some(max) = max else { return Ok(()) };
    let arrivals = store.whole.records().get(join).and_then(|record| record.arrivals.as_deref());
    let came = arrivals.map_or(0, |arrivals| usize::from(arrivals.count()));
    let is_over = store.whole.records().get(join).is_some_and(|record| record.state.outcome().is_some());
    ensure(is_over || begun.len() <= came + usize::from(*max), || {
        format!("{id} has begun {} branches, of which {came} came, and may have {max} under way", begun.len())
    })
}

fn is_escalation(graph: &Graph, id: &NodeId) -> bool {
    matches!(graph.node(id).map(|node| &node.kind), Some(NodeKind::Escalate { .. }))
}

/// A checkpoint that is entered over a failing way restores what it recorded. A way that comes while it is under way enters
/// nothing.
fn record_was_due<'f>(facts: impl Iterator<Item = &'f Fact>, id: &NodeId) -> Result<(), String> {
    let (mut restores, mut has_recorded) = (false, false);
    let mut came = None;
    for fact in facts {
        let way = came.take();
        if let Fact::EdgeFollowed { to, signal, .. } = fact
            && to == id
        {
            came = Some(*signal);
        }
        // A person who is asked about one entry too many may have it recorded or restored all the same.
        if let (Fact::NodeEntered { node, .. } | Fact::PlanEscalated { node, .. }, Some(signal)) = (fact, way)
            && node == id
        {
            restores = has_recorded && signal != Signal::Success;
        }
        if matches!(fact, Fact::EpochBegan { .. }) {
            // The node is entered over a new beginning, on any edge.
            (restores, has_recorded, came) = (false, false, way.map(|_| Signal::Success));
        }
        has_recorded |= matches!(fact, Fact::CheckpointSaved { node, .. } if node == id);
    }
    ensure(!restores, || format!("{id} records what it should have restored"))
}

fn goals_are_met(store: &Store) -> Result<(), String> {
    for goal in store.plan().graph.goals() {
        let outcome = store.whole.records().get(&goal.node).and_then(|record| record.state.outcome());
        ensure(matches!(outcome, Some(Outcome::Passed | Outcome::Waived)), || {
            format!("the run is done, and {} is {outcome:?}", goal.node)
        })?;
    }
    Ok(())
}

fn facts(store: &Store) -> impl Iterator<Item = &Fact> {
    store.history.iter().flat_map(|entry| &entry.facts)
}

/// The facts before this one.
fn before<'f>(store: &'f Store, fact: &'f Fact) -> impl Iterator<Item = &'f Fact> {
    facts(store).take_while(move |other| !std::ptr::eq(*other, fact))
}

fn forks(graph: &Graph) -> Vec<(NodeId, Fork)> {
    let nodes = graph.nodes().iter();
    nodes
        .filter_map(|node| {
            if let NodeKind::Fork(fork) = &node.kind { Some((node.id.clone(), fork.clone())) } else { None }
        })
        .collect()
}

/// Checks that what an event dispatched speaks of nodes that are in the graph.
///
/// # Errors
///
/// Tells which does not.
pub fn effects_are_sound(graph: &Graph, effects: &[Effect]) -> Result<(), String> {
    for effect in effects {
        if let Effect::Dispatch(item) = effect {
            let is_kept = !effects.contains(&Effect::Withdraw(item.id.clone()));
            ensure(is_kept, || format!("{} is sent out and taken back by one event", item.id))?;
            let node = graph.node(&item.at.node).ok_or_else(|| format!("{} is for no node", item.id))?;
            let fits = match item.work {
                Work::Agent { .. } => matches!(node.kind, NodeKind::Task(_)),
                Work::Harness { purpose: Purpose::Verdict | Purpose::Rehearsal } => node.gated().is_some(),
                Work::Harness { purpose: Purpose::Record | Purpose::Restoration } => {
                    matches!(node.kind, NodeKind::Checkpoint)
                }
                Work::Harness { purpose: Purpose::Fork | Purpose::Merge } => {
                    graph.forks_or_merges_worktrees(&node.id)
                }
                Work::Harness { purpose: Purpose::SubPlan } => matches!(node.kind, NodeKind::SubPlan(_)),
                Work::Human { .. } => true,
            };
            ensure(fits, || format!("{} is no work", item.id))?;
        }
    }
    Ok(())
}
