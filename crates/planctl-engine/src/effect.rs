//! Effects: rows that the engine asks the store to write. None of them is an action.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ask::{AskKind, Reason};
use crate::budget::Shortfall;
use crate::contract::PromptToJudge;
use crate::failure::Failure;
use crate::graph::{AskDeadline, Fidelity, WorkKind};
use crate::ids::{At, ItemId, Role, RunId};
use crate::pace::Handover;
use crate::run::Note;
use crate::time::Timestamp;
use crate::timer::TimerId;

/// One row to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Put work in a lane. An item that is out already goes back to its lane under a new generation.
    Dispatch(Box<Item>),
    /// Withdraw an item; its holder learns so and can report no more.
    Withdraw(ItemId),
    /// Wake the run at a time.
    Arm {
        /// Which timer.
        timer: TimerId,
        /// When.
        at: Timestamp,
    },
    /// Forget a timer.
    Disarm(TimerId),
}

/// One thing for one pair of hands to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Item {
    /// Its derived name.
    pub id: ItemId,
    /// The run it belongs to.
    pub run: RunId,
    /// The try it belongs to.
    pub at: At,
    /// Before when it may not be claimed.
    pub available_at: Timestamp,
    /// The work to do, and its lane.
    pub work: Work,
}

/// The work of an item; each kind has its lane.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "lane", rename_all = "snake_case")]
pub enum Work {
    /// A step's task, for a worker of a role.
    Agent {
        /// The role that may claim it.
        role: Role,
        /// CODE or REVIEW.
        work: WorkKind,
        /// How long a worker may take from its claim.
        timeout: Duration,
        /// The context that the prompt gives beside the task.
        brief: Box<Brief>,
    },
    /// One evaluation of the node's contract.
    Harness {
        /// The purpose of the evaluation.
        #[serde(default, skip_serializing_if = "Purpose::is_verdict")]
        purpose: Purpose,
    },
    /// A question for a person.
    Human {
        /// The question to the person.
        ask: Box<Ask>,
    },
}

/// The purpose of an evaluation of a contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The verdict on an attempt.
    #[default]
    Verdict,
    /// A look at the contract before the work; it decides no step (`red_first`).
    Rehearsal,
    /// A record of the workspace's state, of a checkpoint.
    Record,
    /// The state of the workspace as the checkpoint recorded it.
    Restoration,
    /// Git worktrees for the branches of a fork, with the workspace as it is.
    #[serde(rename = "parting")]
    Fork,
    /// The branches that came well into a join, merged into the workspace.
    Merge,
    /// The run of a sub-plan: begun, and looked at when it is over.
    SubPlan,
}

impl Purpose {
    /// Says whether the verdict is wanted.
    pub fn is_verdict(&self) -> bool {
        *self == Purpose::Verdict
    }
}

/// The context that a worker is given beside the task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Brief {
    /// The attempt before, where it failed (P-49).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Failure>>,
    /// The question of the previous worker, which the note answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Words of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// How the step came to the worker, where another had it before (PACE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Box<Handover>>,
    /// A summary of the run so far, where its graph says how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<Box<SoFar>>,
}

/// How much of the run a worker is told, and with what it belongs together (DOT F1 to F3).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SoFar {
    /// How much; the most that a prompt can tell, where more was wished.
    pub fidelity: Fidelity,
    /// The thread: work of one thread may share a session, where the worker keeps one.
    pub thread: String,
    /// The values that conditions can look at, as they are at the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
}

/// Why a person is needed, and what they should know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The kind, which decides the answers it takes.
    pub kind: AskKind,
    /// Why it came up.
    pub reason: Reason,
    /// The message of the plan or the worker about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The newest failure of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Failure>>,
    /// The amount that is short, of a budget ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Shortfall>,
    /// The options of a choice; none means that any text answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The prompt that waits, of a prompt approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<PromptToJudge>>,
    /// The answer that the plan's own text gives to it, where nobody gives one in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<AskDeadline>,
}
