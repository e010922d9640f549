//! Where a run stands: a small head, and one record for each node that was ever entered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Reserved, Spent, Usage};
use crate::contract::{Contract, Ending, Excerpt, RedFirst, RehearsalResult, Tampering, Verdict};
use crate::effect::AskKind;
use crate::event::{Overrun, Refusal};
use crate::graph::{Carry, Graph, NodeKind, Signal};
use crate::ids::{Actor, At, Attempt, Digest, ItemId, NodeId, Role, RunId};
use crate::pace::Handover;
use crate::ready_queue::ReadyQueue;
use crate::time::Timestamp;

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
    /// Since when time counts; `None` while the run is held or not active.
    pub clock_since: Option<Timestamp>,
    /// When work last moved; staleness is measured from here.
    pub moved_at: Timestamp,
    /// Nodes with an agent's item, a gate or a rehearsal out.
    pub out: u32,
    /// Nodes that wait for a person.
    pub held: u32,
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
    pub(crate) fn reserved_beside(&self, node: &NodeId) -> Reserved {
        let others = self.reserved.iter().filter(|(other, _)| *other != node).map(|(_, reserved)| *reserved);
        others.fold(Reserved::default(), |sum, one| Reserved {
            tokens: sum.tokens.saturating_add(one.tokens),
            micro_usd: sum.micro_usd.saturating_add(one.micro_usd),
        })
    }

    /// Returns what is left of the budget for an attempt at a node: without what was used, and without what others that are
    /// under way are expected to use. A part that is absent has no limit.
    pub fn left_for(&self, node: &NodeId) -> Budget {
        let others = self.reserved_beside(node);
        let left =
            |limit: u64, spent: u64, reserved: u64| limit.saturating_sub(spent).saturating_sub(reserved);
        Budget {
            tokens: self.budget.tokens.map(|limit| left(limit, self.spent.tokens, others.tokens)),
            micro_usd: self.budget.micro_usd.map(|limit| left(limit, self.spent.micro_usd, others.micro_usd)),
            time: self.budget.time.map(|limit| limit.saturating_sub(self.spent.time)),
        }
    }

    /// Returns the highest budget that the run of a node's sub-plan may have. What that run used is charged here when it is
    /// over, but its time passes here as well.
    pub fn most_for(&self, node: &NodeId, within: &Head, now: Timestamp) -> Budget {
        let left = |limit: Duration| limit.saturating_sub(self.time_spent(now));
        let time = self.budget.time.map(|limit| left(limit).saturating_add(within.time_spent(now)));
        Budget { time, ..self.left_for(node) }
    }

    /// Returns the time that was used up to `now`; it stands still while the run is held.
    pub fn time_spent(&self, now: Timestamp) -> Duration {
        let running = self.clock_since.map_or(Duration::ZERO, |since| now.since(since));
        self.spent.time.saturating_add(running)
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
    /// A person asked for a revision of the plan.
    Paused,
    /// Nothing more happens, unless a failed run is resumed.
    Ended {
        /// How it ended.
        end: End,
    },
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It reached a successful exit.
    Done,
    /// It reached a failed exit.
    Failed,
    /// A person's answer ended it.
    Aborted,
    /// A person cancelled it, or rejected its plan.
    Cancelled,
}

/// How many nodes settled which way; steps only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// By a passing gate.
    pub passed: u32,
    /// With attempts exhausted.
    pub failed: u32,
    /// By a person or by `skip`.
    pub skipped: u32,
    /// By a named person, with a reason.
    pub waived: u32,
    /// With attempts exhausted under `warn`.
    pub warned: u32,
}

impl Outcomes {
    /// Returns how many settled in any way.
    pub fn total(self) -> u32 {
        self.passed + self.failed + self.skipped + self.waived + self.warned
    }

    fn slot(&mut self, outcome: Outcome) -> &mut u32 {
        match outcome {
            Outcome::Passed => &mut self.passed,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Waived => &mut self.waived,
            Outcome::Warned => &mut self.warned,
        }
    }
}

/// How a node settled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A gate of that very attempt passed.
    Passed,
    /// Its attempts are exhausted.
    Failed,
    /// It was left out.
    Skipped,
    /// A named person let it count as met.
    Waived,
    /// Its attempts are exhausted and the plan goes on.
    Warned,
}

impl Outcome {
    /// Returns the word that history and people use.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Waived => "waived",
            Outcome::Warned => "warned",
        }
    }

    /// Returns the word by which conditions know it (DOT X3; one of [`crate::condition::STATUS_WORDS`]).
    pub fn status_word(self) -> &'static str {
        match self {
            Outcome::Passed | Outcome::Waived => "success",
            Outcome::Warned => "partial_success",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "fail",
        }
    }
}

/// The state and history of one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Where it stands.
    pub state: NodeState,
    /// Its counters.
    pub tally: Tally,
    /// The newest failure, for the next prompt and the ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Failure>>,
    /// A worker's question, until it is answered in a way that goes into the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The newest words of a person for the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The role a person reassigned it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How it came to the PACE level it is at; `None` is the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Box<Handover>>,
    /// The rehearsal of the contract before the work, where the plan asks for one (`red_first`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// From where a routing node was entered; stored only for nodes that ask or decide nothing themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "came")]
    pub entered_from: Option<EnteredFrom>,
    /// Further details of its newest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "known")]
    pub attempt_details: Option<Box<AttemptDetails>>,
    /// The run's context as it left the node: the values that workers and people set, by name (DOT X1).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// The arrivals at a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Box<Arrivals>>,
    /// The files that a checkpoint recorded, or with which a fork's branches began: the name under which the harness finds
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
    /// The run of a sub-plan, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
    /// How often it failed for good in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<Recurrence>,
    /// A report whose gate waits until a person has said what becomes of a step that it proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<Unchecked>,
    /// Protected files that a person accepted for this node, as its gate had found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Tampering>,
    /// The edge's setting of how much its agent is told (DOT A18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Box<Carry>>,
}

/// The reported work of an attempt that no gate has judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unchecked {
    /// Says that the worker gave up.
    pub gave_up: bool,
    /// Says that a gate did judge it, and a person has it judged once more, as an attempt of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_judged_anew: bool,
}

/// From where a node was entered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EnteredFrom {
    /// The node before.
    pub from: NodeId,
    /// The signal of that node.
    pub signal: Signal,
}

/// The details of a node's newest attempt beside its outcome; conditions and the choice of edges look at them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AttemptDetails {
    /// The exit code of its gate; kept where a condition asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of its gate's output, or a person's answer; kept where a condition asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The label that its worker prefers, or a person chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The nodes that its worker suggests to go on with, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<NodeId>,
}

/// The branches that have come into a join since its fork was entered.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// Branches that ended well: runs of neighbours, first and last of each, so that thousands take no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub met: Vec<(u16, u16)>,
    /// Branches that failed, with the node at which they did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<u16, NodeId>,
    /// Branches begun, where the fork begins them one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<u16>,
    /// The outcome with which the join settles once the worktrees of its branches are merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merging: Option<Outcome>,
    /// The results of the branches, where a condition asks for them (DOT P6).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<u16, BranchResult>,
}

/// The result of one branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BranchResult {
    /// The node by which it came into the join.
    pub node: NodeId,
    /// The end of the output of that node's last gate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl Arrivals {
    /// Says whether a branch has come.
    pub fn has(&self, branch: u16) -> bool {
        let is_met = self.met.iter().any(|(first, last)| (*first..=*last).contains(&branch));
        is_met || self.failed.contains_key(&branch)
    }

    /// Returns the branches that ended well.
    pub fn well(&self) -> impl Iterator<Item = u16> {
        self.met.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Returns how many branches have come.
    pub fn count(&self) -> u16 {
        let met: u16 = self.met.iter().map(|(first, last)| last - first + 1).sum();
        met.saturating_add(u16::try_from(self.failed.len()).unwrap_or(u16::MAX))
    }

    /// Forgets a branch, however it came.
    pub(crate) fn forget(&mut self, branch: u16) {
        self.failed.remove(&branch);
        self.results.remove(&branch);
        let Some(at) = self.met.iter().position(|(first, last)| (*first..=*last).contains(&branch)) else {
            return;
        };
        let (first, last) = self.met.remove(at);
        if branch < last {
            self.met.insert(at, (branch + 1, last));
        }
        if first < branch {
            self.met.insert(at, (first, branch - 1));
        }
    }

    /// Notes a branch that ended well.
    pub(crate) fn meet(&mut self, branch: u16) {
        let at = self.met.partition_point(|(first, _)| *first <= branch);
        self.met.insert(at, (branch, branch));
        self.met.dedup_by(|later, earlier| {
            let is_neighbour = later.0 <= earlier.1.saturating_add(1);
            if is_neighbour {
                earlier.1 = earlier.1.max(later.1);
            }
            is_neighbour
        });
    }
}

/// A final failure of a node that keeps coming back (DOT E14).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recurrence {
    /// The signature of the failure: a hash of its text without digits.
    pub signature: u64,
    /// How often in a row.
    pub count: u16,
}

/// The rehearsal of a contract before the work of a visit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "rehearsal", rename_all = "snake_case")]
pub enum Rehearsal {
    /// It has to be rehearsed before anybody works.
    Due,
    /// It was rehearsed.
    Done {
        /// The sha256 of the command that ran.
        contract: Digest,
        /// The result of the rehearsal.
        showed: RehearsalResult,
        /// How the command ended.
        ending: Ending,
    },
}

impl Record {
    /// Says whether the contract passed before the work too, so that its pass proves nothing.
    pub fn is_vacuous(&self) -> bool {
        matches!(self.rehearsal, Some(Rehearsal::Done { showed: RehearsalResult::Green, .. }))
    }

    /// Says whether the contract has to be rehearsed before the next attempt.
    ///
    /// Where red is demanded, a rehearsal that was not red does not suffice: the next one comes before any work.
    pub(crate) fn awaits_rehearsal(&self, contract: &Contract) -> bool {
        match &self.rehearsal {
            None | Some(Rehearsal::Done { showed: RehearsalResult::Red, .. }) => false,
            Some(Rehearsal::Due) => true,
            Some(Rehearsal::Done { showed: RehearsalResult::Green | RehearsalResult::Tampered, .. }) => {
                contract.rehearsal() == RedFirst::Deny
            }
        }
    }

    /// Says whether this very contract was red before the work once: then it can fail, and needs no other rehearsal.
    pub(crate) fn has_been_red(&self, contract: &Contract) -> bool {
        matches!(
            &self.rehearsal,
            Some(Rehearsal::Done { contract: rehearsed, showed: RehearsalResult::Red, .. })
                if *rehearsed == contract.digest
        )
    }
}

/// Where a node stands. A state with an item has exactly that item out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeState {
    /// Not entered, or left without settling.
    #[default]
    Pending,
    /// Entered, and waiting until fewer others are worked on, or until a file is free.
    Ready,
    /// A checkpoint's item is out: the workspace is recorded, or restored.
    Saving {
        /// Says that what was recorded is restored.
        restores: bool,
    },
    /// The harness makes the worktrees of a fork's branches, or merges them at the join.
    Branching,
    /// A sub-plan's run is to begin, or under way.
    Nested {
        /// Which try.
        attempt: Attempt,
    },
    /// A rehearsal of the contract is out, before any work of this visit.
    Rehearsing,
    /// An agent's item is out, claimed or not.
    Working {
        /// Which try.
        attempt: Attempt,
    },
    /// An agent's item is out and may not be claimed before `until`.
    Resting {
        /// Which try.
        attempt: Attempt,
        /// When it may be claimed.
        until: Timestamp,
    },
    /// The gate is out.
    Checking {
        /// Which try.
        attempt: Attempt,
        /// Says that the worker gave up: a failing gate then exhausts the node.
        gave_up: bool,
    },
    /// A person is asked.
    Held {
        /// Why.
        ask: AskKind,
        /// The ask.
        item: ItemId,
    },
    /// It is over, for this visit.
    Settled {
        /// How.
        outcome: Outcome,
    },
}

impl NodeState {
    /// Says whether an agent's item, a gate or a rehearsal is out.
    pub fn is_out(&self) -> bool {
        match self {
            NodeState::Rehearsing
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Nested { .. }
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Checking { .. } => true,
            NodeState::Pending | NodeState::Ready | NodeState::Held { .. } | NodeState::Settled { .. } => {
                false
            }
        }
    }

    /// Says whether somebody works on the node, or is about to, so that what the attempt is expected to use stays set aside.
    fn keeps_reservation(&self) -> bool {
        match self {
            NodeState::Rehearsing
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Nested { .. } => true,
            NodeState::Pending
            | NodeState::Ready
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Checking { .. }
            | NodeState::Held { .. }
            | NodeState::Settled { .. } => false,
        }
    }

    /// Says whether a person is asked.
    pub fn is_held(&self) -> bool {
        matches!(self, NodeState::Held { .. })
    }

    /// Says whether the node is neither pending nor settled.
    pub fn is_live(&self) -> bool {
        self.is_out() || self.is_held() || *self == NodeState::Ready
    }

    /// Returns how the node settled, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            NodeState::Settled { outcome } => Some(*outcome),
            NodeState::Pending
            | NodeState::Ready
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Nested { .. }
            | NodeState::Rehearsing
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Checking { .. }
            | NodeState::Held { .. } => None,
        }
    }
}

/// The counters of one node. Failed gates, lost workers and our own interruptions are three things.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Enterings.
    pub visits: u16,
    /// The newest attempt, or none.
    pub attempt: Attempt,
    /// Attempts failed since the allowance was last refilled.
    pub failed: u16,
    /// Attempts that people, or a PACE level that took over with none left, added since then.
    pub granted: u16,
    /// Deliveries of the newest attempt lost to infrastructure trouble.
    pub deliveries: u16,
    /// Interruptions of the newest attempt's work or gate, or of the newest rehearsal, by our own stops.
    pub interruptions: u16,
    /// Gates of the newest attempt, or of the newest rehearsal, that told nothing.
    pub repeats: u16,
    /// Rehearsals of the contract; of a checkpoint, how often the workspace was to be recorded or restored.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub rehearsals: u16,
    /// The amounts that the node's attempts have used.
    pub spent: Spent,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_yet(count: &u16) -> bool {
    *count == 0
}

/// A failed attempt, as the next worker and the person asked are told of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Which try failed.
    pub attempt: Attempt,
    /// The reason of the failure.
    pub what: Failing,
    /// How long the gate ran.
    pub duration: Duration,
    /// The end of standard output.
    pub stdout: Excerpt,
    /// The end of standard error.
    pub stderr: Excerpt,
}

/// The reasons for which an attempt, or a delivery of it, fails.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "failing", rename_all = "snake_case")]
pub enum Failing {
    /// The contract did not pass.
    Contract {
        /// The verdict.
        verdict: Verdict,
        /// How the command ended.
        ending: Ending,
        /// Protected files that had changed.
        tampered: Vec<Tampering>,
    },
    /// The work ran past a limit of its time; there was no gate.
    Overran {
        /// Which limit.
        #[serde(default, skip_serializing_if = "Overrun::is_deadline")]
        past: Overrun,
    },
    /// The worker could not run, time after time.
    Undelivered {
        /// The last message.
        message: String,
    },
    /// The worker lacks a permission (exit 77).
    Permission {
        /// The worker's message.
        message: String,
    },
    /// The gate told nothing, time after time.
    Inconclusive {
        /// The missing or unstable thing.
        message: String,
    },
    /// The changes of the branches conflict.
    Conflict {
        /// The branch that does not fit to what was merged before it, counted from 0; none where the workspace itself
        /// was changed meanwhile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<u16>,
        /// The files that conflict.
        files: Vec<String>,
        /// The folder in which a person makes them fit.
        folder: String,
    },
    /// The run of a sub-plan did not end well.
    SubPlan {
        /// The run's name.
        name: String,
        /// How it ended.
        end: End,
    },
    /// A person looked at the work, and says that it is not done.
    Unconfirmed {
        /// The person who refused the work.
        by: Actor,
        /// The note of that person.
        note: Option<String>,
    },
    /// The contract was not red before the work.
    NotRed {
        /// The result of the rehearsal.
        showed: RehearsalResult,
        /// How the command ended.
        ending: Ending,
        /// Protected files that had changed.
        tampered: Vec<Tampering>,
    },
}

impl Failure {
    /// Returns the protected files for which a gate did not judge the attempt.
    pub fn tampered(&self) -> &[Tampering] {
        match &self.what {
            Failing::Contract { verdict: Verdict::Tampered, tampered, .. } => tampered,
            Failing::Contract { .. }
            | Failing::Overran { .. }
            | Failing::Undelivered { .. }
            | Failing::Permission { .. }
            | Failing::Inconclusive { .. }
            | Failing::Conflict { .. }
            | Failing::SubPlan { .. }
            | Failing::Unconfirmed { .. }
            | Failing::NotRed { .. } => &[],
        }
    }
}

impl Failing {
    /// Returns its class, in one word (DOT R4): conditions look at it as `failure_class`.
    pub fn word(&self) -> &'static str {
        match self {
            Failing::Contract { .. } => "contract",
            Failing::Overran { .. } => "overran",
            Failing::Undelivered { .. } => "undelivered",
            Failing::Permission { .. } => "permission",
            Failing::Inconclusive { .. } => "inconclusive",
            Failing::Conflict { .. } => "conflict",
            Failing::SubPlan { .. } => "sub_plan",
            Failing::Unconfirmed { .. } => "unconfirmed",
            Failing::NotRed { .. } => "not_red",
        }
    }
}

/// Words of a person for the worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// The author.
    pub by: Actor,
    /// The text of the note.
    pub text: String,
}

/// Which records an event may read or change, beyond the head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// These.
    Nodes(BTreeSet<NodeId>),
    /// These, and all that are live.
    Live(BTreeSet<NodeId>),
    /// All.
    All,
}

impl Scope {
    /// Returns what covers both scopes.
    pub fn union(self, other: Scope) -> Scope {
        match (self, other) {
            (Scope::All, _) | (_, Scope::All) => Scope::All,
            (Scope::Nodes(mut these), Scope::Nodes(those)) => {
                these.extend(those);
                Scope::Nodes(these)
            }
            (Scope::Live(mut these), Scope::Nodes(those) | Scope::Live(those))
            | (Scope::Nodes(mut these), Scope::Live(those)) => {
                these.extend(those);
                Scope::Live(these)
            }
        }
    }

    /// Says whether this scope includes every record of another.
    pub fn includes(&self, other: &Scope) -> bool {
        match (self, other) {
            (Scope::All, _) => true,
            (Scope::Nodes(these), Scope::Nodes(those))
            | (Scope::Live(these), Scope::Nodes(those) | Scope::Live(those)) => those.is_subset(these),
            (Scope::Nodes(_), Scope::Live(_) | Scope::All) | (Scope::Live(_), Scope::All) => false,
        }
    }

    fn covers(&self, id: &NodeId, is_present: bool) -> bool {
        match self {
            Scope::Nodes(ids) => ids.contains(id),
            Scope::Live(ids) => ids.contains(id) || is_present,
            Scope::All => true,
        }
    }
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
    pub fn loaded(id: RunId, head: Head, scope: Scope, nodes: BTreeMap<NodeId, Record>) -> Run {
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
            allowed: Vec::new(),
            carry: None,
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
    pub(crate) fn live(&self) -> Result<Vec<NodeId>, Refusal> {
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
    pub fn at(&self, id: &NodeId) -> Result<At, Refusal> {
        let tally = self.record(id)?.tally;
        Ok(At { node: id.clone(), visit: tally.visits, attempt: tally.attempt })
    }

    /// Moves a node to another state and keeps the head's counters true.
    pub(crate) fn set(&mut self, graph: &Graph, id: &NodeId, state: NodeState) -> Result<(), Refusal> {
        let record = self.record_mut(id)?;
        let before = std::mem::replace(&mut record.state, state.clone());
        let head = &mut self.head;
        head.out = head.out + u32::from(state.is_out()) - u32::from(before.is_out());
        head.held = head.held + u32::from(state.is_held()) - u32::from(before.is_held());
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
                *head.settled.slot(outcome) -= 1;
            }
            if let Some(outcome) = state.outcome() {
                *head.settled.slot(outcome) += 1;
            }
        }
        Ok(())
    }

    /// Forgets where all nodes but the start stand, and keeps what was used and how often each was tried.
    pub(crate) fn begin_anew(&mut self, graph: &Graph) -> Result<(), Refusal> {
        if self.scope != Scope::All {
            return Err(Refusal::NotLoaded(Scope::All));
        }
        let entered: Vec<NodeId> = self.nodes.keys().filter(|id| *id != graph.start()).cloned().collect();
        for id in entered {
            self.set(graph, &id, NodeState::Pending)?;
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
