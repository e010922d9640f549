//! Applies one event to one run: the engine's only entry point.

mod agent;
mod choose;
mod clock;
mod dispatch;
mod exceeded;
mod harness;
mod hold;
mod human;
mod join;
mod option;
mod pace;
mod regroup;
mod revise;
mod route;
mod settle;
mod sub_plan;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use choose::Chosen;

use crate::budget::Usage;
use crate::effect::{Effect, Purpose};
use crate::event::{AgentSaid, ClockEvent, Decision, Event, HarnessResult};
use crate::fact::Fact;
use crate::graph::{Confirmation, Gated, Graph, Node, NodeKind, Question, Signal, Task};
use crate::ids::{At, Attempt, ItemId, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::run::{Head, NodeState, Run, RunStatus};
use crate::scope::Scope;
use crate::time::Timestamp;
use crate::timer::TimerId;

pub use option::{key_of, match_option, plain_label};

/// The result of one event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    /// The run after it.
    pub run: Run,
    /// Rows to write. The item that the event answers is closed beside them, unless one of them dispatches it again.
    pub effects: Vec<Effect>,
    /// The facts that followed, for people to read.
    pub facts: Vec<Fact>,
    /// Usage that was charged because its item was taken back, as its holder last reported it: a part of the input, without
    /// which the same event does not give the same answer again.
    pub noted: BTreeMap<NodeId, Usage>,
}

/// Decides what one event does to one run.
///
/// Pure: the same four arguments always give the same answer. A refusal changes nothing.
///
/// # Errors
///
/// A [`Refusal`] where the event does not fit the run; [`Refusal::NotLoaded`] where `run` is a part that lacks records
/// the event touches.
///
/// # Panics
///
/// Where an invariant of the run is broken, which no event can do.
pub fn advance(graph: &Graph, run: &Run, event: &Event, now: Timestamp) -> Result<Advance, Refusal> {
    let mut transition = Transition {
        graph,
        run: run.clone(),
        now,
        effects: Vec::new(),
        facts: Vec::new(),
        noted: BTreeMap::new(),
        exhausted_here: BTreeSet::new(),
        open: Vec::new(),
        replayed: None,
        dead_end: None,
    };
    match event {
        Event::Agent(event) => agent::apply_event(&mut transition, event)?,
        Event::Harness(event) => harness::apply_event(&mut transition, event)?,
        Event::Human(event) => human::apply_event(&mut transition, event)?,
        Event::Clock(event) => clock::apply_event(&mut transition, event)?,
    }
    route::arrive_at_all(&mut transition)?;
    turns::count_turn(&mut transition, event)?;
    transition.finish(event, &run.head);
    Ok(Advance {
        run: transition.run,
        effects: transition.effects,
        facts: transition.facts,
        noted: transition.noted,
    })
}

/// Names the records that an event may read or change, as the best guess before anything is loaded.
///
/// The guess is complete for what an agent, a gate or a lease brings; where a decision needs more, [`advance`] says so
/// with [`Refusal::NotLoaded`].
pub fn initial_scope(graph: &Graph, event: &Event) -> Scope {
    let with_successors = |node: &NodeId| Scope::Nodes(reachable_nodes(graph, node));
    match event {
        Event::Agent(event) => with_successors(&event.at.node),
        Event::Harness(event) => with_successors(&event.at.node),
        Event::Clock(ClockEvent::LeaseLost { at, .. } | ClockEvent::Overran { at, .. }) => {
            with_successors(&at.node)
        }
        Event::Clock(ClockEvent::Admitted) => with_successors(graph.start()),
        Event::Clock(
            ClockEvent::Due { .. }
            | ClockEvent::Metered
            | ClockEvent::DaySpent { .. }
            | ClockEvent::DayAllows { .. },
        ) => Scope::Live(BTreeSet::new()),
        Event::Clock(ClockEvent::SetAside { node, .. }) => Scope::Nodes(BTreeSet::from([node.clone()])),
        Event::Clock(ClockEvent::Unattended { .. }) => Scope::Nodes(BTreeSet::new()),
        Event::Human(event) => match &event.decision {
            Decision::Resume { from: None } => Scope::Nodes(BTreeSet::from([graph.start().clone()])),
            Decision::Resume { from: Some(_) } => Scope::All,
            Decision::Submit => with_successors(graph.start()),
            Decision::Answer { .. } | Decision::Vote { .. } | Decision::Cancel | Decision::Pause => {
                Scope::Live(BTreeSet::new())
            }
            Decision::Revise { .. } => Scope::All,
        },
    }
}

/// Returns a node and what may be looked at when it is left: its successors, through those at which nobody works, and
/// the nodes that conditions on the way name.
fn reachable_nodes(graph: &Graph, node: &NodeId) -> BTreeSet<NodeId> {
    let mut reach = BTreeSet::from([node.clone()]);
    let mut open = vec![node.clone()];
    while let Some(id) = open.pop() {
        for edge in graph.edges_from(&id) {
            if let Some(when) = &edge.when {
                reach.extend(choose::nodes_named(when));
            }
            if !reach.insert(edge.to.clone()) {
                continue;
            }
            let Some(target) = graph.node(&edge.to) else { continue };
            match &target.kind {
                NodeKind::Decision(_) | NodeKind::Fork(_) => open.push(edge.to.clone()),
                NodeKind::Join(_) => {
                    reach.extend(graph.fork_of(&edge.to).cloned());
                    open.push(edge.to.clone());
                }
                NodeKind::Exit { success: true } => {
                    reach.extend(graph.goals().iter().map(|goal| goal.node.clone()));
                }
                NodeKind::Start
                | NodeKind::Task(_)
                | NodeKind::Call(_)
                | NodeKind::Human(_)
                | NodeKind::Checkpoint
                | NodeKind::SubPlan(_)
                | NodeKind::Escalate { .. }
                | NodeKind::Exit { success: false } => {}
            }
        }
    }
    reach
}

/// One event's work in progress.
struct Transition<'a> {
    graph: &'a Graph,
    run: Run,
    now: Timestamp,
    effects: Vec<Effect>,
    facts: Vec<Fact>,
    /// Usage that was charged with items that were taken back.
    noted: BTreeMap<NodeId, Usage>,
    /// Nodes entered beyond their visits during this transition; a second time ends the chain with a question.
    exhausted_here: BTreeSet<NodeId>,
    /// Edges followed at whose end nobody has arrived yet; the last comes first.
    open: Vec<(Chosen, Signal)>,
    /// Settled nodes walked through, while the run is taken up from its start.
    replayed: Option<BTreeSet<NodeId>>,
    /// The last node reached that may wait for something that never comes.
    dead_end: Option<NodeId>,
}

impl<'a> Transition<'a> {
    fn refuse_unless_active(&self) -> Result<(), Refusal> {
        if self.run.head.status == RunStatus::Active {
            return Ok(());
        }
        Err(Refusal::NotActive)
    }

    fn task(&self, id: &NodeId) -> Result<&'a Task, Refusal> {
        self.graph.task(id).ok_or_else(|| Refusal::NoSuchNode(id.clone()))
    }

    fn gated(&self, id: &NodeId) -> Result<Gated<'a>, Refusal> {
        self.graph.gated(id).ok_or_else(|| Refusal::NoSuchNode(id.clone()))
    }

    fn refuse_unless_served_by_harness(&self, id: &NodeId) -> Result<(), Refusal> {
        let is_served = |node: &Node| {
            node.gated().is_some()
                || matches!(node.kind, NodeKind::Checkpoint)
                || matches!(node.kind, NodeKind::SubPlan(_))
                || self.graph.forks_or_merges_worktrees(&node.id)
        };
        match self.graph.node(id) {
            Some(node) if is_served(node) => Ok(()),
            Some(_) | None => Err(Refusal::NoSuchNode(id.clone())),
        }
    }

    fn question(&self, id: &NodeId) -> Result<&'a Question, Refusal> {
        if let Some(confirmation) = self.confirmation(id) {
            return Ok(&confirmation.question);
        }
        match self.graph.node(id).map(|node| &node.kind) {
            Some(NodeKind::Human(question)) => Ok(question),
            Some(_) | None => Err(Refusal::NoSuchNode(id.clone())),
        }
    }

    /// Returns what a person is asked about the work of a task, where one confirms it.
    fn confirmation(&self, id: &NodeId) -> Option<&'a Confirmation> {
        self.graph.node(id)?.confirmation.as_deref()
    }

    /// Says whether the harness has nothing to evaluate of a task's work.
    fn is_without_contract(&self, id: &NodeId) -> bool {
        self.graph.task(id).is_some_and(|task| task.contract.is_none())
    }

    /// Returns the node that last worked, decided or asked on the way to one that only passes on what came.
    fn last_acting_node(&self, id: &NodeId) -> Result<NodeId, Refusal> {
        let mut seen = BTreeSet::new();
        let mut subject = id;
        while self.graph.node(subject).is_some_and(Node::is_routing) {
            match &self.run.record(subject)?.entered_from {
                Some(entered_from)
                    if seen.insert(subject) && !self.awaits_branches(&entered_from.from)? =>
                {
                    subject = &entered_from.from
                }
                // A way back that went in circles leads to nobody.
                Some(_) => return Ok(id.clone()),
                None => break,
            }
        }
        Ok(subject.clone())
    }

    /// Says whether a join waits for branches. Work done before its fork was entered again belongs to an earlier pass and is
    /// not awaited.
    fn awaits_branches(&self, id: &NodeId) -> Result<bool, Refusal> {
        let is_join = matches!(self.graph.node(id).map(|node| &node.kind), Some(NodeKind::Join(_)));
        Ok(is_join && self.state(id)?.outcome().is_none())
    }

    /// Says whether a run that is taken up from its start walks through a node, since it is settled as met.
    fn replay_skips(&mut self, id: &NodeId) -> Result<bool, Refusal> {
        let Some(replayed) = &self.replayed else { return Ok(false) };
        if replayed.contains(id) {
            return Ok(false);
        }
        let works = self.graph.node(id).is_some_and(|node| {
            node.gated().is_some() || node.step().is_some() || matches!(node.kind, NodeKind::SubPlan(_))
        });
        let is_met = self.is_met(id)?;
        if let Some(replayed) = &mut self.replayed {
            replayed.insert(id.clone());
        }
        Ok(works && is_met)
    }

    /// Says whether a node is settled, and the run goes on behind it.
    fn is_met(&self, id: &NodeId) -> Result<bool, Refusal> {
        let outcome = self.state(id)?.outcome();
        Ok(matches!(outcome, Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned)))
    }

    fn state(&self, id: &NodeId) -> Result<&NodeState, Refusal> {
        Ok(&self.run.record(id)?.state)
    }

    fn set_state(&mut self, id: &NodeId, state: NodeState) -> Result<(), Refusal> {
        let is_over = self.state(id)?.is_held() && !state.is_held();
        self.run.set_state(self.graph, id, state)?;
        if is_over && self.question(id).is_ok_and(|question| question.default.is_some()) {
            self.effects.push(Effect::Disarm(TimerId::Answer(id.clone())));
        }
        Ok(())
    }

    /// Says that a node was left out, or only warned about.
    fn is_passed_over(&self, id: &NodeId) -> Result<bool, Refusal> {
        Ok(matches!(self.state(id)?.outcome(), Some(Outcome::Skipped | Outcome::Warned)))
    }

    /// Refuses news of another try than the newest.
    fn refuse_unless_newest(&self, at: &At, attempt: Attempt) -> Result<(), Refusal> {
        let newest = at.attempt == attempt && at.visit == self.run.record(&at.node)?.tally.visits;
        if newest { Ok(()) } else { Err(Refusal::StaleAttempt) }
    }

    /// Refuses news of a try whose agent's item is not out.
    fn refuse_unless_working(&self, at: &At) -> Result<(), Refusal> {
        self.refuse_unless_active()?;
        self.task(&at.node)?;
        let (NodeState::Working { attempt } | NodeState::Resting { attempt, .. }) = self.state(&at.node)?
        else {
            return Err(Refusal::WrongState);
        };
        self.refuse_unless_newest(at, *attempt)
    }

    /// Returns the try that a gate or a rehearsal is out for, if one is.
    fn attempt_in_evaluation(&self, id: &NodeId) -> Result<Option<Attempt>, Refusal> {
        Ok(match self.state(id)? {
            NodeState::Checking { attempt, .. } | NodeState::Nested { attempt, .. } => Some(*attempt),
            NodeState::Rehearsing | NodeState::Saving { .. } | NodeState::Branching => {
                Some(self.run.record(id)?.tally.attempt)
            }
            NodeState::Pending
            | NodeState::Ready
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Held { .. }
            | NodeState::Settled { .. } => None,
        })
    }

    /// Returns what the evaluation that is out, or comes next, is for.
    fn purpose(&self, id: &NodeId) -> Result<Purpose, Refusal> {
        Ok(match self.state(id)? {
            NodeState::Rehearsing => Purpose::Rehearsal,
            NodeState::Saving { restores: false } => Purpose::Record,
            NodeState::Saving { restores: true } => Purpose::Restoration,
            NodeState::Nested { .. } => Purpose::SubPlan,
            NodeState::Branching => match self.graph.node(id).map(|node| &node.kind) {
                Some(NodeKind::Fork(_)) => Purpose::Fork,
                Some(_) | None => Purpose::Merge,
            },
            NodeState::Pending
            | NodeState::Ready
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Checking { .. }
            | NodeState::Held { .. }
            | NodeState::Settled { .. } => Purpose::Verdict,
        })
    }

    /// Returns the item that a live state has out.
    fn outstanding_item(&self, id: &NodeId) -> Result<Option<ItemId>, Refusal> {
        let at = self.run.newest_try(id)?;
        Ok(match self.state(id)? {
            NodeState::Working { .. } | NodeState::Resting { .. } => Some(ItemId::agent(self.run.id, &at)),
            NodeState::Checking { .. } => {
                let ordinal = self.run.record(id)?.tally.held_gates;
                Some(ItemId::gate(self.run.id, &at, ordinal))
            }
            NodeState::Rehearsing => {
                let ordinal = self.run.record(id)?.tally.rehearsals;
                Some(ItemId::rehearsal(self.run.id, &at, ordinal))
            }
            NodeState::Saving { .. } => {
                let ordinal = self.run.record(id)?.tally.rehearsals;
                Some(ItemId::checkpoint(self.run.id, &at, ordinal))
            }
            NodeState::Branching => Some(ItemId::branches(self.run.id, &at)),
            NodeState::Nested { .. } => Some(ItemId::sub_plan(self.run.id, &at)),
            NodeState::Held { item, .. } => Some(item.clone()),
            NodeState::Pending | NodeState::Ready | NodeState::Settled { .. } => None,
        })
    }

    /// Takes back the item that a node has out and leaves the node pending.
    fn withdraw(&mut self, id: &NodeId) -> Result<(), Refusal> {
        if let Some(item) = self.outstanding_item(id)? {
            self.take_back(item);
            self.charge_noted_usage(id)?;
            self.set_state(id, NodeState::Pending)?;
        } else if *self.state(id)? == NodeState::Ready {
            self.set_state(id, NodeState::Pending)?;
        }
        Ok(())
    }

    /// Charges what the holder of an item that is taken back has said so far that it uses: nobody reports that any more.
    fn charge_noted_usage(&mut self, id: &NodeId) -> Result<(), Refusal> {
        let is_gate = matches!(self.state(id)?, NodeState::Checking { .. });
        if !is_gate && !matches!(self.state(id)?, NodeState::Working { .. } | NodeState::Resting { .. }) {
            return Ok(());
        }
        let Some(usage) = self.run.noted.remove(id) else { return Ok(()) };
        match is_gate {
            true => harness::charge_judge(self, id, Some(&usage))?,
            false => agent::charge_if_reported(self, id, Some(&usage))?,
        }
        self.noted.insert(id.clone(), usage);
        Ok(())
    }

    /// Has an item taken back; one that this very event sends out never goes out.
    fn take_back(&mut self, item: ItemId) {
        let sends = |effect: &Effect| matches!(effect, Effect::Dispatch(sent) if sent.id == item);
        match self.effects.iter().rposition(sends) {
            Some(at) => {
                self.effects.remove(at);
            }
            None => self.effects.push(Effect::Withdraw(item)),
        }
    }

    fn arm_stale(&mut self, from: Timestamp) {
        if let Some(limit) = self.graph.limits().stale_after {
            self.effects.push(Effect::Arm { timer: TimerId::Stale, at: from.after(limit) });
        }
    }

    fn disarm_stale(&mut self) {
        if self.graph.limits().stale_after.is_some() {
            self.effects.push(Effect::Disarm(TimerId::Stale));
        }
    }

    /// Arms the timer for when the budget's time is over; where it is over already, nothing is to be awaited.
    fn arm_budget(&mut self) {
        let Some(limit) = self.run.head.budget.time else { return };
        if let Some(left) = limit.checked_sub(self.run.time_spent(self.now)) {
            // A budget that is used up exactly is not exceeded.
            let at = self.now.after(left.saturating_add(Duration::from_micros(1)));
            self.effects.push(Effect::Arm { timer: TimerId::Budget, at });
        }
    }

    fn finish(&mut self, event: &Event, before: &Head) {
        let now = self.now;
        let spent = self.run.time_spent(now);
        let head = &mut self.run.head;
        head.spent.time = spent;
        let is_running = head.status == RunStatus::Active && head.out > head.waiting;
        head.clock_since = is_running.then_some(now);
        match (before.clock_since, is_running) {
            (Some(_), true) if before.budget.time == head.budget.time => {}
            (_, true) => self.arm_budget(),
            (Some(_), false) if head.budget.time.is_some() => {
                self.effects.push(Effect::Disarm(TimerId::Budget));
            }
            (_, false) => {}
        }
        let head = &mut self.run.head;
        head.transitions = head.transitions.saturating_add(1);
        self.run.noted.clear();
        let head = &mut self.run.head;
        if is_progress(event) {
            head.moved_at = now;
        }
        note_budget_thresholds(head, &mut self.facts);
        if cfg!(debug_assertions) {
            assert_invariants(&self.run);
        }
    }
}

/// Says whether an event moves the work, as staleness understands it: our own trouble does not.
fn is_progress(event: &Event) -> bool {
    match event {
        Event::Agent(event) => !matches!(event.said, AgentSaid::Faulted(_) | AgentSaid::Released),
        Event::Harness(event) => match event.found {
            HarnessResult::Evidence(_)
            | HarnessResult::Rehearsed(_)
            | HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Conflicted(_)
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_) => true,
            HarnessResult::Nothing(_) => false,
        },
        Event::Human(_) | Event::Clock(ClockEvent::Admitted | ClockEvent::Overran { .. }) => true,
        Event::Clock(
            ClockEvent::Due { .. }
            | ClockEvent::LeaseLost { .. }
            | ClockEvent::Metered
            | ClockEvent::DaySpent { .. }
            | ClockEvent::DayAllows { .. }
            | ClockEvent::SetAside { .. }
            | ClockEvent::Unattended { .. },
        ) => false,
    }
}

/// The percentage of a budget whose use is worth a word.
const NOTICE_PERCENT: u128 = 80;

fn note_budget_thresholds(head: &mut Head, facts: &mut Vec<Fact>) {
    let percent = |limit: Option<u128>, spent: u128| match limit {
        Some(limit) if limit > 0 => spent.saturating_mul(100) / limit,
        Some(_) | None => 0,
    };
    let used = percent(head.budget.tokens.map(u128::from), u128::from(head.spent.tokens))
        .max(percent(head.budget.micro_usd.map(u128::from), u128::from(head.spent.micro_usd)))
        .max(percent(head.budget.time.map(|t| t.as_micros()), head.spent.time.as_micros()));
    if used >= NOTICE_PERCENT && !head.noticed && head.status == RunStatus::Active {
        head.noticed = true;
        facts.push(Fact::BudgetNoticed { percent: u32::try_from(used).unwrap_or(u32::MAX) });
    }
}

/// Asserts what must hold after every event (HOUSE 3.6), as far as the loaded part shows it.
fn assert_invariants(run: &Run) {
    let out = run.records().values().filter(|record| record.state.is_out()).count();
    let held = run.records().values().filter(|record| record.state.is_held()).count();
    let counted = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    assert!(out <= counted(run.head.out) && held <= counted(run.head.held), "live nodes are counted");
    if run.scope == Scope::All {
        assert!(
            out == counted(run.head.out) && held == counted(run.head.held),
            "live nodes are counted exactly"
        );
    }
    match run.head.status {
        RunStatus::Active => {
            assert!(run.head.out + run.head.held > 0, "an active run has an item out");
        }
        RunStatus::Awaiting => assert!(run.head.held == 1, "an awaiting run has its plan ask open"),
        RunStatus::New | RunStatus::Queued { .. } | RunStatus::Paused | RunStatus::Ended { .. } => {
            let is_still = run.head.out + run.head.held == 0;
            assert!(is_still, "a run that rests has no item out");
        }
    }
}
