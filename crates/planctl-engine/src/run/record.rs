//! The record of one node: its state, its counters, and what its next attempt is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Arrivals, NodeState};
use crate::ask::AskKind;
use crate::budget::Spent;
use crate::contract::{Contract, Ending, RedFirst, RehearsalResult, Tampering};
use crate::event::Circumstances;
use crate::failure::Failure;
use crate::graph::{Carry, Node, NodeKind, Signal};
use crate::ids::{Actor, Attempt, Digest, NodeId, Role, RunId};
use crate::observation::Grade;
use crate::outcome::Outcome;
use crate::pace::Handover;

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
    /// A report whose gate waits for a person: for what becomes of a step that it proposes, for a word on the prompt to its judge,
    /// or for more budget to ask that judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<Unchecked>,
    /// The circumstances that its newest report told of, where it told of some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Box<Circumstances>>,
    /// Protected files that a person accepted for this node, as its gate had found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Tampering>,
    /// The edge's setting of how much its agent is told (DOT A18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Box<Carry>>,
    /// Says that its newest attempt passed by an observation, and by nothing better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_observed: bool,
    /// Says that a person allowed the next attempt of a call, and no other (M-36).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_allowed: bool,
    /// The prompt to the judge of its newest attempt that waits for a person's word, or has it (M-35).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptWord>,
}

/// A person's word on a prompt to a judge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PromptWord {
    /// The sha256 of the prompt.
    pub digest: Digest,
    /// Says that a person approved it.
    pub is_approved: bool,
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
    /// It is not rehearsed; the files are recorded for its judge.
    Recorded {
        /// The sha256 of the command.
        contract: Digest,
    },
}

impl Record {
    /// Returns what its newest report told of the circumstances.
    pub fn newest_circumstances(&self) -> Circumstances {
        self.circumstances.as_deref().cloned().unwrap_or_default()
    }

    /// Returns how far it is known that the node's work is done; `None` where nobody has said so, or where it is known that it
    /// is not.
    pub fn grade(&self, node: &Node) -> Option<Grade> {
        let is_task = node.task().is_some();
        if self.state.outcome() == Some(Outcome::Passed) {
            let contract = node.gated().map(|gated| gated.contract);
            if contract.is_some_and(Contract::is_judged_alone) {
                let is_confirmed = node.confirmation.is_some();
                return Some(if is_confirmed { Grade::Confirmed } else { Grade::Judged });
            }
            let is_proved = contract.is_some_and(|contract| !contract.is_none());
            let by_person = is_task || matches!(node.kind, NodeKind::Human(_));
            return match (is_proved, is_task && self.is_observed) {
                (true, _) => Some(Grade::Proved),
                (false, true) => Some(Grade::Observed),
                (false, false) => by_person.then_some(Grade::Confirmed),
            };
        }
        let is_asked = matches!(self.state, NodeState::Held { ask: AskKind::Choice, .. });
        let waits = is_asked && node.confirmation.is_some();
        (is_task && (waits || matches!(self.state, NodeState::Checking { .. }))).then_some(Grade::Claimed)
    }

    /// Says whether the contract passed before the work too, so that its pass proves nothing.
    pub fn is_vacuous(&self) -> bool {
        matches!(self.rehearsal, Some(Rehearsal::Done { showed: RehearsalResult::Green, .. }))
    }

    /// Says whether the contract has to be rehearsed before the next attempt.
    ///
    /// Where red is demanded, a rehearsal that was not red does not suffice: the next one comes before any work.
    pub(crate) fn awaits_rehearsal(&self, contract: &Contract) -> bool {
        match &self.rehearsal {
            None
            | Some(Rehearsal::Recorded { .. } | Rehearsal::Done { showed: RehearsalResult::Red, .. }) => {
                false
            }
            Some(Rehearsal::Due) => true,
            Some(Rehearsal::Done { showed: RehearsalResult::Green | RehearsalResult::Tampered, .. }) => {
                contract.rehearsal_mode() == RedFirst::Deny
            }
        }
    }

    /// Says whether this very contract needs no other rehearsal: it was red before the work once, so it can fail, or it is
    /// not to be red and its judge's files are recorded.
    pub(crate) fn is_prepared_for(&self, contract: &Contract) -> bool {
        match &self.rehearsal {
            Some(Rehearsal::Done { contract: rehearsed, showed, .. }) => {
                *rehearsed == contract.digest && *showed == RehearsalResult::Red
            }
            Some(Rehearsal::Recorded { contract: recorded }) => {
                *recorded == contract.digest && contract.rehearsal_mode().is_off()
            }
            Some(Rehearsal::Due) | None => false,
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
    /// How many gates of the newest attempt, or of the newest rehearsal, were inconclusive.
    pub repeats: u16,
    /// Rehearsals of the contract; of a checkpoint, how often the workspace was to be recorded or restored.
    #[serde(default, skip_serializing_if = "super::is_none_yet")]
    pub rehearsals: u16,
    /// Gates of the newest attempt after which a person was asked about its judge.
    #[serde(default, skip_serializing_if = "super::is_none_yet")]
    pub held_gates: u16,
    /// The amounts that the node's attempts have used.
    pub spent: Spent,
}

/// Words of a person for the worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// The author.
    pub by: Actor,
    /// The text of the note.
    pub text: String,
}
