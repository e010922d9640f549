//! Where a run stands: a small head, and one record for each node that was ever entered.

mod arrivals;
mod record;
mod responder;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, BudgetPart, Reserved, Shortfall, Spent, Usage};
use crate::graph::{Graph, NodeKind};
use crate::ids::{At, Attempt, NodeId, RunId};
use crate::outcome::{End, Outcomes};
use crate::ready_queue::ReadyQueue;
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

pub use arrivals::{Arrivals, BranchResult};
pub use record::{
    AttemptDetails, EnteredFrom, Note, PromptWord, Record, Recurrence, Rehearsal, Tally, Unchecked,
};
pub use state::NodeState;

/// One execution of an approved revision, as far as it is loaded.
///
/// The store loads the head and the records that an event touches; tests and the simulator load everything. A record
/// inside the scope that is not there is that of a node never entered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Which run this is.
    pub id: RunId,
    /// The counters that every transition may change.
    pub head: Head,
    /// The records that were loaded; a request for another is refused with [`Refusal::NotLoaded`].
    pub scope: Scope,
    pub(crate) nodes: BTreeMap<NodeId, Record>,
    /// Usage that the holders of items have reported so far, beside the state: it is charged where an item is taken back.
    pub(crate) noted: BTreeMap<NodeId, Usage>,
}

/// The part of a run that every transition reads and may write: one small row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Whether the run goes on.
    pub status: RunStatus,
    /// The budget of the run: the plan's and the amounts that people added.
    pub budget: Budget,
    /// The amounts that it has used; `time` is exact at the last transition.
    pub spent: Spent,
    /// Since when time counts; `None` while the run and those within it are held, or it is not active.
    pub clock_since: Option<Timestamp>,
    /// When work last moved; staleness is measured from here.
    pub moved_at: Timestamp,
    /// Nodes with an agent's item, a gate or a rehearsal out.
    pub out: u32,
    /// Nodes that wait for a person.
    pub held: u32,
    /// Those of the nodes with something out at which a sub-plan's run waits for a person.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u32,
    /// How many nodes have settled, by outcome.
    pub settled: Outcomes,
    /// Attempts of all nodes together.
    pub attempts: u32,
    /// Asks opened so far; gives each its ordinal.
    pub asks: u32,
    /// Says that the notice "most of the budget is used" was given since the last raise.
    pub noticed: bool,
    /// Events accepted so far.
    pub transitions: u32,
    /// Where a failed or paused run goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped_at: Vec<NodeId>,
    /// Nodes that wait until fewer others are worked on, first to last.
    #[serde(default, skip_serializing_if = "ReadyQueue::is_empty")]
    pub ready: ReadyQueue,
    /// Names that steps in flight hold exclusively (`Task::excludes`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub busy: BTreeSet<String>,
    /// The use that is expected of attempts under way, of parts that the budget limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reserved: BTreeMap<NodeId, Reserved>,
    /// How often it has begun anew over an edge that says so (DOT E12); it survives everything that the run survives.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub restarts: u16,
    /// Turns since one more node was met than ever before, where the plan counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u32,
    /// The most nodes that were met at once, where the plan counts turns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub met_most: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Head {
    /// Returns what attempts at other nodes than this one are expected to use.
    pub(crate) fn reserved_by_others(&self, node: &NodeId) -> Reserved {
        let others = self.reserved.iter().filter(|(other, _)| *other != node).map(|(_, reserved)| *reserved);
        others.fold(Reserved::default(), |sum, one| Reserved {
            tokens: sum.tokens.saturating_add(one.tokens),
            micro_usd: sum.micro_usd.saturating_add(one.micro_usd),
        })
    }

    /// Returns what is left of the budget for an attempt at a node: without what was used, and without what others that are
    /// under way are expected to use. A part that is absent has no limit.
    pub fn budget_left_for(&self, node: &NodeId) -> Budget {
        let others = self.reserved_by_others(node);
        let left =
            |limit: u64, spent: u64, reserved: u64| limit.saturating_sub(spent).saturating_sub(reserved);
        Budget {
            tokens: self.budget.tokens.map(|limit| left(limit, self.spent.tokens, others.tokens)),
            micro_usd: self.budget.micro_usd.map(|limit| left(limit, self.spent.micro_usd, others.micro_usd)),
            time: self.budget.time.map(|limit| limit.saturating_sub(self.spent.time)),
        }
    }

    /// Returns the most that the run of a node's sub-plan may use when it begins: what was set aside for it, and no more than is left.
    /// Another attempt may go out until the run around it hears of that, and counts on what is not set aside.
    pub fn budget_set_aside_for(&self, node: &NodeId) -> Budget {
        let (left, own) = (self.budget_left_for(node), self.reserved.get(node).copied().unwrap_or_default());
        Budget {
            tokens: left.tokens.map(|left| left.min(own.tokens)),
            micro_usd: left.micro_usd.map(|left| left.min(own.micro_usd)),
            time: left.time,
        }
    }

    /// Returns which part of the budget does not suffice for this much more, beside what was used.
    pub fn short_of(&self, estimate: Reserved, steps_remaining: u32) -> Option<Shortfall> {
        let (budget, spent) = (self.budget, self.spent);
        let parts = [
            (BudgetPart::Tokens, budget.tokens, spent.tokens, estimate.tokens),
            (BudgetPart::MicroUsd, budget.micro_usd, spent.micro_usd, estimate.micro_usd),
        ];
        parts.into_iter().find_map(|(part, limit, spent, estimate)| {
            let limit = limit.filter(|limit| spent.saturating_add(estimate) > *limit)?;
            Some(Shortfall { part, limit, spent, estimate, steps_remaining, day: None })
        })
    }

    /// Returns the highest budget that the run of a node's sub-plan may have. Its usage is charged here when it is over,
    /// but its time passes here as well.
    pub fn budget_max_for_sub_plan(&self, node: &NodeId, within: &Head, now: Timestamp) -> Budget {
        let left = |limit: Duration| limit.saturating_sub(self.time_spent(now));
        let time = self.budget.time.map(|limit| left(limit).saturating_add(within.time_spent(now)));
        Budget { time, ..self.budget_left_for(node) }
    }

    /// Returns the time that was used up to `now`; it stands still while the run is held.
    pub fn time_spent(&self, now: Timestamp) -> Duration {
        let running = self.clock_since.map_or(Duration::ZERO, |since| now.since(since));
        self.spent.time.saturating_add(running)
    }

    /// Says whether nothing goes on until a person decides, so that no time is used.
    pub fn is_waiting(&self) -> bool {
        match self.status {
            RunStatus::Awaiting | RunStatus::Paused => true,
            RunStatus::Active => self.clock_since.is_none(),
            RunStatus::New | RunStatus::Queued { .. } | RunStatus::Ended { .. } => false,
        }
    }

    /// Says whether the tokens or the money that were used, together with what workers report of their attempts so far, are more
    /// than the budget allows.
    pub fn is_overspent<'u>(&self, reported: impl Iterator<Item = &'u Usage> + Clone) -> bool {
        let tokens =
            reported.clone().fold(self.spent.tokens, |sum, usage| sum.saturating_add(usage.tokens()));
        let micro_usd = reported
            .fold(self.spent.micro_usd, |sum, usage| sum.saturating_add(usage.micro_usd.unwrap_or(0)));
        self.budget.tokens.is_some_and(|limit| tokens > limit)
            || self.budget.micro_usd.is_some_and(|limit| micro_usd > limit)
    }
}

/// Whether a run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunStatus {
    /// Nothing has been said yet; the first event submits it.
    New,
    /// A person has to approve the plan.
    Awaiting,
    /// Approved or resumed; waits until it has the workspace.
    Queued {
        /// Says that it goes on where it ended, and does not begin.
        resuming: bool,
    },
    /// Steps are worked on, or wait for a person.
    Active,
    /// A person stopped it, or asked for a revision of the plan.
    Paused,
    /// Nothing more happens, unless a failed run is resumed.
    Ended {
        /// How it ended.
        end: End,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_yet(count: &u16) -> bool {
    *count == 0
}

impl Run {
    /// Returns a run of which nothing has been said yet.
    pub fn new(id: RunId, graph: &Graph, now: Timestamp) -> Run {
        let head = Head {
            status: RunStatus::New,
            budget: graph.budget(),
            spent: Spent::default(),
            clock_since: None,
            moved_at: now,
            out: 0,
            held: 0,
            waiting: 0,
            settled: Outcomes::default(),
            attempts: 0,
            asks: 0,
            noticed: false,
            transitions: 0,
            stopped_at: Vec::new(),
            ready: ReadyQueue::default(),
            busy: BTreeSet::new(),
            reserved: BTreeMap::new(),
            restarts: 0,
            turns: 0,
            met_most: 0,
        };
        Run { id, head, scope: Scope::All, nodes: BTreeMap::new(), noted: BTreeMap::new() }
    }

    /// Returns the same run, which may use no more than is left of a budget around it.
    #[must_use]
    pub fn within(mut self, around: Budget) -> Run {
        self.head.budget = self.head.budget.within(around);
        self
    }

    /// Puts a run together from what was stored.
    pub fn from_parts(id: RunId, head: Head, scope: Scope, nodes: BTreeMap<NodeId, Record>) -> Run {
        Run { id, head, scope, nodes, noted: BTreeMap::new() }
    }

    /// Returns the same run with what those who hold its items have said so far that they use, by node.
    #[must_use]
    pub fn with_noted(mut self, noted: BTreeMap<NodeId, Usage>) -> Run {
        self.noted = noted;
        self
    }

    /// Returns the records that are loaded and not those of nodes never entered.
    pub fn records(&self) -> &BTreeMap<NodeId, Record> {
        &self.nodes
    }

    /// Returns the record of a node, the default one where it was never entered.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotLoaded`] where the node lies outside the scope.
    pub fn record(&self, id: &NodeId) -> Result<&Record, Refusal> {
        static NEVER: Record = Record {
            state: NodeState::Pending,
            tally: Tally {
                visits: 0,
                attempt: Attempt::NONE,
                failed: 0,
                granted: 0,
                deliveries: 0,
                interruptions: 0,
                repeats: 0,
                rehearsals: 0,
                held_gates: 0,
                spent: Spent { tokens: 0, micro_usd: 0, time: Duration::ZERO, metered: 0, unmetered: 0 },
            },
            failure: None,
            question: None,
            note: None,
            role: None,
            pace: None,
            rehearsal: None,
            entered_from: None,
            attempt_details: None,
            context: BTreeMap::new(),
            arrivals: None,
            saved: None,
            child: None,
            recurrence: None,
            unchecked: None,
            circumstances: None,
            allowed: Vec::new(),
            carry: None,
            is_observed: false,
            is_allowed: false,
            prompt: None,
        };
        let found = self.nodes.get(id);
        if !self.scope.covers(id, found.is_some()) {
            return Err(Refusal::NotLoaded(Scope::Nodes(BTreeSet::from([id.clone()]))));
        }
        Ok(found.unwrap_or(&NEVER))
    }

    /// Returns the record of a node to change it.
    pub(crate) fn record_mut(&mut self, id: &NodeId) -> Result<&mut Record, Refusal> {
        self.record(id)?;
        Ok(self.nodes.entry(id.clone()).or_default())
    }

    /// Returns the names of all live nodes.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotLoaded`] where not all of them are loaded.
    pub(crate) fn live_nodes(&self) -> Result<Vec<NodeId>, Refusal> {
        let live: Vec<NodeId> = self
            .nodes
            .iter()
            .filter(|(_, record)| record.state.is_live())
            .map(|(id, _)| id.clone())
            .collect();
        let expected = usize::try_from(self.head.out + self.head.held).unwrap_or(usize::MAX);
        if live.len() < expected.saturating_add(self.head.ready.len()) {
            return Err(Refusal::NotLoaded(Scope::Live(BTreeSet::new())));
        }
        Ok(live)
    }

    /// Returns where the newest try at a node stands.
    pub fn newest_try(&self, id: &NodeId) -> Result<At, Refusal> {
        let tally = self.record(id)?.tally;
        Ok(At { node: id.clone(), visit: tally.visits, attempt: tally.attempt })
    }

    /// Moves a node to another state and keeps the head's counters true.
    pub(crate) fn set_state(&mut self, graph: &Graph, id: &NodeId, state: NodeState) -> Result<(), Refusal> {
        let record = self.record_mut(id)?;
        let before = std::mem::replace(&mut record.state, state.clone());
        let head = &mut self.head;
        head.out = head.out + u32::from(state.is_out()) - u32::from(before.is_out());
        head.held = head.held + u32::from(state.is_held()) - u32::from(before.is_held());
        head.waiting =
            head.waiting + u32::from(state.waits_in_sub_plan()) - u32::from(before.waits_in_sub_plan());
        if !state.keeps_reservation() {
            head.reserved.remove(id);
        }
        if before == NodeState::Ready {
            head.ready.remove(graph, id);
        }
        if state == NodeState::Ready {
            head.ready.push(graph, id);
        }
        let Some(node) = graph.node(id) else { return Ok(()) };
        if let NodeKind::Task(task) = &node.kind
            && !task.excludes.is_empty()
        {
            for name in &task.excludes {
                if state.is_out() {
                    head.busy.insert(name.clone());
                } else if before.is_out() {
                    head.busy.remove(name);
                }
            }
        }
        if node.step().is_some() {
            if let Some(outcome) = before.outcome() {
                *head.settled.counter_mut(outcome) -= 1;
            }
            if let Some(outcome) = state.outcome() {
                *head.settled.counter_mut(outcome) += 1;
            }
        }
        Ok(())
    }

    /// Counts the settled steps anew, as another revision has them: a step that failed may be no part of it.
    pub(crate) fn count_settled_steps(&mut self, graph: &Graph) {
        self.head.settled = Outcomes::default();
        let is_step = |id: &NodeId| graph.node(id).is_some_and(|node| node.step().is_some());
        for (_, record) in self.nodes.iter().filter(|(id, _)| is_step(id)) {
            if let Some(outcome) = record.state.outcome() {
                *self.head.settled.counter_mut(outcome) += 1;
            }
        }
    }

    /// Forgets where all nodes but the start stand, and keeps what was used and how often each was tried.
    pub(crate) fn begin_anew(&mut self, graph: &Graph) -> Result<(), Refusal> {
        if self.scope != Scope::All {
            return Err(Refusal::NotLoaded(Scope::All));
        }
        let entered: Vec<NodeId> = self.nodes.keys().filter(|id| *id != graph.start()).cloned().collect();
        for id in entered {
            self.set_state(graph, &id, NodeState::Pending)?;
            let record = self.record_mut(&id)?;
            let Tally { attempt, rehearsals, spent, .. } = record.tally;
            *record = Record {
                tally: Tally { attempt, rehearsals, spent, ..Tally::default() },
                ..Record::default()
            };
        }
        Ok(())
    }

    /// Returns the time the run has used up to `now`; it stands still while the run is held.
    pub fn time_spent(&self, now: Timestamp) -> Duration {
        self.head.time_spent(now)
    }
}
