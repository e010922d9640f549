//! Checks that must hold after every event, independent of the reference model (HOUSE 3.6, PROMISES 1.3).

mod graphs;
mod ledger;
#[cfg(feature = "stored")]
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{
    AgentSaid, At, ClockEvent, Decision, Earned, End, Ending, Event, Fact, Graph, HarnessResult, HumanEvent,
    ItemId, NodeId, NodeKind, NodeState, Outcome, Outcomes, Purpose, RedFirst, RehearsalResult, Run,
    RunStatus, Spent, TimerId, Timestamp, Usage, Verdict, Work, advance,
};

use crate::plans::SEEN;
use crate::store::{Entry, Store};

pub use graphs::effects_are_sound;
pub use ledger::Ledger;

/// Checks the state that an event led to.
///
/// # Errors
///
/// Tells which invariant broke.
pub fn after_event(store: &Store) -> Result<(), String> {
    let entry = store.history.last().ok_or("nothing happened")?;
    items_match_states(store)?;
    someone_moves_the_run(store)?;
    counters_are_true(store)?;
    limits_hold(store)?;
    facts_follow_from(store, entry)?;
    nothing_follows_the_end(store)?;
    red_comes_first(store)?;
    graphs::after_event(store, entry)?;
    if store.plan().is_linear {
        steps_run_in_order(store)?;
    }
    Ok(())
}

/// Checks what only the whole history shows.
///
/// # Errors
///
/// Tells which invariant broke.
pub fn at_the_end(store: &Store, beginning: Timestamp) -> Result<(), String> {
    verdicts_are_single(store)?;
    success_is_earned(store)?;
    usage_is_charged_once(store)?;
    let mut run = Run::new(store.run, &store.plans[0].graph, beginning);
    for (seq, entry) in store.history.iter().enumerate() {
        let graph = &store.plans[entry.plan].graph;
        let run_before = run.with_noted(entry.noted.clone());
        let next = advance(graph, &run_before, &entry.event, entry.at)
            .map_err(|refusal| format!("I2 the fold refuses event {}: {refusal}", seq + 1))?;
        if next.facts != entry.facts {
            return Err(format!("I2 the fold of event {} gives other facts: {:?}", seq + 1, next.facts));
        }
        run = next.run;
    }
    ensure(run == store.whole, || format!("I2 the fold gives another run: {run:?}\n{:?}", store.whole))?;
    #[cfg(feature = "stored")]
    stored::everything_reads_back(store)?;
    Ok(())
}

/// Invariant 2 of the house: a state with an item has exactly that item out, and nothing else is out (I6).
fn items_match_states(store: &Store) -> Result<(), String> {
    let mut expected: BTreeSet<ItemId> = BTreeSet::new();
    for (node, record) in store.whole.records() {
        let at = store.whole.newest_try(node).map_err(|refusal| refusal.to_string())?;
        match &record.state {
            NodeState::Working { attempt } | NodeState::Resting { attempt, .. } => {
                ensure(*attempt == at.attempt, || format!("{node} works on an attempt not its newest"))?;
                expected.insert(ItemId::agent(store.run, &at));
            }
            NodeState::Checking { attempt, .. } => {
                ensure(*attempt == at.attempt, || format!("{node} checks an attempt not its newest"))?;
                expected.insert(ItemId::gate(store.run, &at, record.tally.held_gates));
            }
            NodeState::Rehearsing => {
                expected.insert(ItemId::rehearsal(store.run, &at, record.tally.rehearsals));
            }
            NodeState::Held { item, .. } => {
                expected.insert(item.clone());
            }
            NodeState::Saving { .. } => {
                expected.insert(ItemId::checkpoint(store.run, &at, record.tally.rehearsals));
            }
            NodeState::Nested { .. } => {
                expected.insert(ItemId::sub_plan(store.run, &at));
            }
            NodeState::Branching => {
                expected.insert(ItemId::branches(store.run, &at));
            }
            NodeState::Pending | NodeState::Ready | NodeState::Settled { .. } => {}
        }
    }
    let out: BTreeSet<ItemId> = store.open_items().map(|row| row.item.id.clone()).collect();
    ensure(out == expected, || format!("items out are {out:?}, the states say {expected:?}"))?;
    for row in store.open_items() {
        let state = &store.whole.records()[&row.item.at.node].state;
        if let NodeState::Resting { until, .. } = state {
            ensure(row.item.available_at == *until, || "a resting item is available at another time".into())?;
        }
        let lane_fits = match row.item.work {
            Work::Agent { .. } => matches!(state, NodeState::Working { .. } | NodeState::Resting { .. }),
            Work::Harness { purpose: Purpose::Verdict } => matches!(state, NodeState::Checking { .. }),
            Work::Harness { purpose: Purpose::Rehearsal } => *state == NodeState::Rehearsing,
            Work::Harness { purpose: Purpose::Record } => *state == NodeState::Saving { restores: false },
            Work::Harness { purpose: Purpose::Restoration } => *state == NodeState::Saving { restores: true },
            Work::Harness { purpose: Purpose::Fork | Purpose::Merge } => *state == NodeState::Branching,
            Work::Harness { purpose: Purpose::SubPlan } => matches!(state, NodeState::Nested { .. }),
            Work::Human { .. } => state.is_held(),
        };
        ensure(lane_fits, || format!("item {} is in another lane than its node", row.item.id))?;
    }
    Ok(())
}

/// Invariant 5: an active run has an item out; one that rests has none, and no timer (I7).
fn someone_moves_the_run(store: &Store) -> Result<(), String> {
    let open = store.open_items().count();
    let armed = store.timers.contains_key(&TimerId::Stale);
    let rests = store.head.status != RunStatus::Active;
    ensure(!rests || store.timers.is_empty(), || format!("timers of a run that rests: {:?}", store.timers))?;
    match store.head.status {
        RunStatus::Active => {
            let fits = if store.plan().is_woven { open >= 1 } else { open == 1 };
            ensure(fits, || format!("I7 an active run has {open} items out"))?;
            let must = store.plan().graph.limits().stale_after.is_some();
            ensure(armed == must, || format!("staleness timer armed: {armed}, should be: {must}"))
        }
        RunStatus::Awaiting => ensure(open == 1 && !armed, || "I7 the plan ask is not out".into()),
        RunStatus::New | RunStatus::Queued { .. } | RunStatus::Paused | RunStatus::Ended { .. } => {
            ensure(open == 0 && !armed, || format!("a run that rests has {open} items out, timer: {armed}"))
        }
    }
}

/// A run is done only if each node on its way passed by a verdict, was decided by a person, or failed and was left by an edge
/// that names the failure (DESIGN 6).
fn success_is_earned(store: &Store) -> Result<(), String> {
    let mut earned = Earned::default();
    for entry in &store.history {
        let graph = &store.plans[entry.plan].graph;
        if let Some(broken) = entry.facts.iter().find_map(|fact| earned.check_fact(graph, fact)) {
            return Err(format!("unearned: {broken}"));
        }
    }
    Ok(())
}

fn counters_are_true(store: &Store) -> Result<(), String> {
    let head = &store.head;
    let states = || store.whole.records().iter().map(|(id, record)| (id, &record.state));
    let count = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    ensure(count(head.transitions) == store.history.len(), || "I1 transitions are not gap-free".into())?;
    ensure(count(head.out) == states().filter(|(_, state)| state.is_out()).count(), || "out is off".into())?;
    ensure(count(head.held) == states().filter(|(_, s)| s.is_held()).count(), || "held is off".into())?;
    let graph = &store.plan().graph;
    let mut settled = Outcomes::default();
    for (_, state) in states().filter(|(id, _)| graph.node(id).is_some_and(|node| node.step().is_some())) {
        match state.outcome() {
            Some(Outcome::Passed) => settled.passed += 1,
            Some(Outcome::Failed) => settled.failed += 1,
            Some(Outcome::Skipped) => settled.skipped += 1,
            Some(Outcome::Waived) => settled.waived += 1,
            Some(Outcome::Warned) => settled.warned += 1,
            None => {}
        }
    }
    ensure(head.settled == settled, || {
        format!("settled steps are counted as {:?} and are {settled:?}", head.settled)
    })?;
    let mut attempts = 0;
    // Branches that are forked or merged are numbered as well, and are nobody's attempt, also where a revision takes them out.
    let is_attempt = |id: &NodeId| {
        let mut known = store.plans.iter().filter_map(|plan| plan.graph.node(id));
        !known.any(|node| matches!(node.kind, NodeKind::Fork(_) | NodeKind::Join(_)))
    };
    for (_, record) in store.whole.records().iter().filter(|(id, _)| is_attempt(id)) {
        attempts += usize::from(record.tally.attempt.number());
    }
    ensure(attempts == count(head.attempts), || format!("{attempts} attempts, counted {}", head.attempts))
}

/// Invariant 4: transitions, visits, attempts and deliveries stay within their limits (I14, I15).
fn limits_hold(store: &Store) -> Result<(), String> {
    let graph = &store.plan().graph;
    let limits = graph.limits();
    ensure(store.head.attempts <= limits.attempts, || "more attempts than a run may make".into())?;
    for (id, record) in store.whole.records() {
        let tally = record.tally;
        let visits = graph.node(id).map_or(0, |node| node.max_visits);
        // A join ends what its fork began, and a person says how often one is asked on purpose.
        let is_bound = graph
            .node(id)
            .is_some_and(|node| !matches!(node.kind, NodeKind::Join(_) | NodeKind::Escalate { .. }));
        ensure(tally.visits <= visits || !is_bound, || format!("{id} was entered {} times", tally.visits))?;
        ensure(tally.deliveries <= limits.deliveries, || format!("I15 {id} lost too many deliveries"))?;
        ensure(tally.interruptions <= limits.interruptions, || format!("{id} was interrupted too often"))?;
        ensure(tally.repeats <= limits.repeats, || format!("the gate of {id} was repeated too often"))?;
        let Some(task) = graph.task(id) else { continue };
        let is_under_way = record.state.is_out();
        // Each attempt under way must have been allowed: failures so far leave room for one more.
        let allowed = 1 + u32::from(task.max_retries) + u32::from(tally.granted);
        let is_linear = store.plan().is_linear && store.plans.len() == 1;
        ensure(!(is_linear && is_under_way) || u32::from(tally.failed) < allowed, || {
            format!("I14 {id} is tried after {} failures, allowed are {allowed} attempts", tally.failed)
        })?;
    }
    Ok(())
}

/// A step passes by the evidence of that very attempt alone, and what people did is named (invariant 1, I24).
fn facts_follow_from(store: &Store, entry: &Entry) -> Result<(), String> {
    let graph = &store.plan().graph;
    for fact in &entry.facts {
        if let Fact::NodeSettled { node, outcome, by, .. } = fact {
            let is_named = by.is_some() && matches!(entry.event, Event::Human(_));
            let within = graph.sub_plan(node);
            let lapses = match (graph.gated(node), within) {
                (Some(gated), _) => gated.on_exhausted == *outcome,
                (None, Some(plan)) => plan.on_exhausted == *outcome,
                (None, None) => *outcome != Outcome::Skipped,
            };
            let is_founded = match outcome {
                Outcome::Passed if within.is_some() => ended_well(entry, node),
                Outcome::Passed if is_unproved(graph, node) => is_named || sees(entry, node),
                Outcome::Passed => graph.gated(node).is_none() || proves(graph, store, entry, node),
                Outcome::Waived => is_named,
                Outcome::Failed | Outcome::Skipped | Outcome::Warned => is_named || lapses,
            };
            ensure(is_founded, || format!("nothing founds that {node} is {}", outcome.as_str()))?;
        }
        if let Fact::NodeObserved { node, refuted, .. } = fact {
            ensure(is_unproved(graph, node) && refuted.is_none() == sees(entry, node), || {
                format!("{node} is judged against what was seen of it")
            })?;
        }
        if let Fact::NodeVerified { node, verdict, vacuous: true, .. } = fact {
            let is_green = showed_last(store, node) == Some(RehearsalResult::Green);
            ensure(*verdict == Verdict::Passed && is_green, || {
                format!("{node} is said to prove nothing, and its contract was red before")
            })?;
        }
        if let Fact::NodeVerified { node, attempt, verdict, .. } = fact {
            let newest = store.whole.newest_try(node).map_err(|refusal| refusal.to_string())?.attempt;
            ensure(*attempt == newest || begins_anew(entry, node), || {
                format!("I24 a verdict on {node}#{attempt}, not the newest")
            })?;
            ensure((*verdict == Verdict::Passed) == proves(graph, store, entry, node), || {
                format!("{node}#{attempt} is {} against its evidence", verdict.as_str())
            })?;
        }
        if let Fact::NodeResting { deliveries, until, .. } = fact {
            let most = Duration::from_secs(300.min(1 << (u32::from(*deliveries).min(20) - 1)));
            let wait = until.since(entry.at);
            ensure(wait <= most && wait * 2 >= most, || {
                format!("delivery {deliveries} rests {wait:?}, expected {:?} to {most:?}", most / 2)
            })?;
        }
    }
    Ok(())
}

/// Says whether an event is that the run of a plan within the plan is done.
fn ended_well(entry: &Entry, node: &NodeId) -> bool {
    let Event::Harness(event) = &entry.event else { return false };
    matches!(&event.found, HarnessResult::Ended(child) if child.end == End::Done && event.at.node == *node)
}

/// Says whether a step has no contract.
fn is_unproved(graph: &Graph, node: &NodeId) -> bool {
    graph.task(node).is_some_and(|task| task.contract.command.is_empty() && task.contract.judge.is_none())
}

/// Says whether an event is a report of a node with an output that shows what it is to show: by its own reading.
fn sees(entry: &Entry, node: &NodeId) -> bool {
    let Event::Agent(event) = &entry.event else { return false };
    let AgentSaid::Reported(report) = &event.said else { return false };
    event.at.node == *node
        && report.observation.as_deref().is_some_and(|seen| {
            seen.exit_code.unwrap_or(0) == 0
                && seen.output.to_ascii_uppercase().contains(&SEEN.to_ascii_uppercase())
        })
}

/// Says whether the next try at a node began with an event.
fn begins_anew(entry: &Entry, node: &NodeId) -> bool {
    entry.facts.iter().any(|fact| {
        matches!(fact, Fact::RetryTriggered { node: n, .. } | Fact::NodeEntered { node: n, .. }
            | Fact::PaceChanged { node: n, .. } if n == node)
    })
}

/// Says whether an event is passing evidence of the newest attempt at a node: by its own reading of the evidence.
fn proves(graph: &Graph, store: &Store, entry: &Entry, node: &NodeId) -> bool {
    let Event::Harness(event) = &entry.event else { return false };
    let HarnessResult::Evidence(evidence) = &event.found else { return false };
    let Some(gated) = graph.gated(node) else { return false };
    let verified = entry.facts.iter().any(|fact| {
        matches!(fact, Fact::NodeVerified { node: n, attempt, .. } if n == node && *attempt == event.at.attempt)
    });
    let leads_elsewhere = store.whole.records()[node].tally.attempt > event.at.attempt;
    event.at.node == *node
        && verified
        && (leads_elsewhere || store.whole.records()[node].tally.attempt == event.at.attempt)
        && evidence.contract == gated.contract.digest
        && evidence.tampered.is_empty()
        && evidence.ending == Ending::Exited { code: gated.contract.expect.into() }
        && gated
            .contract
            .min_tests
            .is_none_or(|least| evidence.tests.is_some_and(|tests| tests.passed >= least))
        && gated.contract.judge.as_deref().is_none_or(|judge| {
            let answer = evidence.judgement.as_deref();
            answer.is_some_and(|answer| answer.passes && answer.question == judge.digest)
        })
}

/// Nobody works on a step that demands red before its contract was red, and one that guards is never rehearsed.
fn red_comes_first(store: &Store) -> Result<(), String> {
    for (id, record) in store.whole.records() {
        let Some(task) = store.plan().graph.task(id) else { continue };
        let must_be_red = task.contract.rehearsal_mode() == RedFirst::Deny;
        // Work reported before a revision demanded red is judged all the same.
        let is_worked_on = matches!(record.state, NodeState::Working { .. } | NodeState::Resting { .. });
        let must_be_red = must_be_red && demanded_red_on_entry(store, id);
        ensure(
            !must_be_red || !is_worked_on || showed_last(store, id) == Some(RehearsalResult::Red),
            || format!("{id} is worked on, and its contract was not red before"),
        )?;
        let may_be_prepared = !task.contract.guard || task.contract.judge.is_some();
        ensure(may_be_prepared || record.state != NodeState::Rehearsing, || {
            format!("{id} guards, and its contract is rehearsed")
        })?;
    }
    Ok(())
}

/// Says whether red was demanded of a step when it was entered last. A revision that demands it later finds the work begun.
fn demanded_red_on_entry(store: &Store, node: &NodeId) -> bool {
    let is_entry = |fact: &Fact| matches!(fact, Fact::NodeEntered { node: entered, .. } if entered == node);
    let entry = store.history.iter().rev().find(|entry| entry.facts.iter().any(is_entry));
    let contract =
        entry.and_then(|entry| store.plans[entry.plan].graph.task(node)).map(|task| &task.contract);
    contract.is_none_or(|contract| contract.red_first == RedFirst::Deny && !contract.guard)
}

/// Returns what the newest rehearsal of a step showed, as history tells it.
fn showed_last(store: &Store, node: &NodeId) -> Option<RehearsalResult> {
    let facts = store.history.iter().rev().flat_map(|entry| entry.facts.iter().rev());
    facts.into_iter().find_map(|fact| {
        if let Fact::NodeRehearsed { node: rehearsed, showed, .. } = fact
            && rehearsed == node
        {
            Some(*showed)
        } else {
            None
        }
    })
}

/// I16: after the end only a failed run moves again, by a person's resume.
fn nothing_follows_the_end(store: &Store) -> Result<(), String> {
    let Some((last, before)) = store.history.split_last() else { return Ok(()) };
    let ended = before.last().is_some_and(|entry| {
        entry.facts.iter().any(|fact| {
            matches!(fact, Fact::PlanCompleted { .. } | Fact::PlanFailed { .. } | Fact::PlanCancelled { .. })
        })
    });
    ensure(!ended || last.event.kind() == "human.resumed", || {
        format!("I16 {} was accepted after the end", last.event.kind())
    })
}

/// I13: in a linear plan a step is worked on when all before it are settled and met, and a passed one never again.
fn steps_run_in_order(store: &Store) -> Result<(), String> {
    let steps = store.plan().graph.steps();
    let outcome = |id: &NodeId| store.whole.records().get(id).and_then(|record| record.state.outcome());
    let is_done = store.head.status == (RunStatus::Ended { end: End::Done });
    for (index, (node, _)) in steps.iter().enumerate() {
        let is_live = store.whole.records().get(&node.id).is_some_and(|record| record.state.is_live());
        if !is_live && !is_done {
            continue;
        }
        let through = if is_done { steps.len() } else { index };
        for (earlier, _) in &steps[..through] {
            let is_met = matches!(
                outcome(&earlier.id),
                Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned)
            );
            ensure(is_met, || format!("I13 {} goes on before {} is met", node.id, earlier.id))?;
        }
    }
    let mut passed = BTreeSet::new();
    for entry in &store.history {
        // A person may have a step done anew, and with it those behind.
        if let Event::Human(HumanEvent { decision: Decision::Resume { from: Some(from) }, .. }) = &entry.event
        {
            let again = steps.iter().skip_while(|(node, _)| node.id != *from);
            for (node, _) in again {
                passed.remove(&node.id);
            }
        }
        for fact in &entry.facts {
            if let Fact::NodeSettled { node, outcome: Outcome::Passed, .. } = fact {
                passed.insert(node);
            }
            if let Fact::NodeEntered { node, .. } = fact {
                ensure(!passed.contains(node), || format!("{node} runs again after it passed"))?;
            }
        }
    }
    Ok(())
}

/// I10: one verdict for each attempt, for ever.
fn verdicts_are_single(store: &Store) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for fact in store.history.iter().flat_map(|entry| &entry.facts) {
        if let Fact::NodeVerified { node, attempt, .. } = fact {
            ensure(seen.insert((node, attempt)), || format!("I10 {node}#{attempt} has two verdicts"))?;
        }
    }
    Ok(())
}

/// Usage that workers reported is charged once each, to the run and to the node.
fn usage_is_charged_once(store: &Store) -> Result<(), String> {
    let add = |run: &mut (u64, u64), node: &mut (u64, u64), usage: &Usage| {
        for sum in [run, node] {
            sum.0 += usage.input_tokens + usage.output_tokens;
            sum.1 += usage.micro_usd.unwrap_or(0);
        }
    };
    let mut run = (0, 0);
    let mut nodes: BTreeMap<&NodeId, (u64, u64)> = BTreeMap::new();
    for entry in &store.history {
        if let Event::Harness(event) = &entry.event
            && let HarnessResult::Ended(child) = &event.found
        {
            run = (run.0 + child.spent.tokens, run.1 + child.spent.micro_usd);
        }
        for (node, usage) in &entry.noted {
            add(&mut run, nodes.entry(node).or_default(), usage);
        }
        let (at, usage): (&At, Option<&Usage>) = match &entry.event {
            Event::Agent(event) => {
                let said = match &event.said {
                    AgentSaid::Reported(report) => report.usage.as_ref(),
                    AgentSaid::Asked { usage, .. } | AgentSaid::Overran { usage, .. } => usage.as_ref(),
                    AgentSaid::Faulted(fault) => fault.usage.as_ref(),
                    AgentSaid::Released => None,
                };
                (&event.at, said.or(event.noted.as_ref()))
            }
            Event::Clock(ClockEvent::LeaseLost { at, noted, .. } | ClockEvent::Overran { at, noted }) => {
                (at, noted.as_ref())
            }
            Event::Harness(event) => (&event.at, event.found.judge_usage()),
            Event::Clock(
                ClockEvent::Admitted
                | ClockEvent::Due { .. }
                | ClockEvent::Metered
                | ClockEvent::DaySpent { .. }
                | ClockEvent::DayAllows { .. }
                | ClockEvent::SetAside { .. }
                | ClockEvent::Unattended { .. },
            )
            | Event::Human(_) => continue,
        };
        let Some(usage) = usage else { continue };
        add(&mut run, nodes.entry(&at.node).or_default(), usage);
    }
    let pair = |spent: &Spent| (spent.tokens, spent.micro_usd);
    ensure(pair(&store.head.spent) == run, || format!("charged {:?}, reported {run:?}", store.head.spent))?;
    for (id, record) in store.whole.records() {
        let reported = nodes.get(id).copied().unwrap_or_default();
        ensure(pair(&record.tally.spent) == reported, || format!("{id}: charged {:?}", record.tally.spent))?;
    }
    Ok(())
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
