//! Effects: rows that the engine asks the store to write. None of them is an action.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::Shortfall;
use crate::contract::PromptToJudge;
use crate::graph::{AskDeadline, Fidelity, WorkKind};
use crate::ids::{At, ItemId, NodeId, Role, RunId};
use crate::pace::Handover;
use crate::run::{Failure, Note};
use crate::time::Timestamp;

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

/// Names one timer of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerId {
    /// The run stands still for too long.
    Stale,
    /// The time that the budget allows is over.
    Budget,
    /// Nobody answered what this node asks in time.
    Answer(NodeId),
}

impl TimerId {
    /// Returns the name it is stored under.
    pub fn word(&self) -> Cow<'static, str> {
        match self {
            TimerId::Stale => Cow::Borrowed("stale"),
            TimerId::Budget => Cow::Borrowed("budget"),
            TimerId::Answer(node) => Cow::Owned(format!("answer {node}")),
        }
    }

    /// Reads the name it is stored under.
    pub fn parse(word: &str) -> Option<TimerId> {
        match word.split_once(' ') {
            None if word == "budget" => Some(TimerId::Budget),
            None => (word == "stale").then_some(TimerId::Stale),
            Some(("answer", node)) => Some(TimerId::Answer(NodeId::new(node))),
            Some(_) => None,
        }
    }
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

/// Why a person is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// May this plan run?
    Plan,
    /// A step cannot go on by itself.
    Escalation,
    /// The budget does not suffice.
    Budget,
    /// A worker asks something.
    Question,
    /// The plan asks something.
    Choice,
    /// A worker proposes a further step (H-51).
    Insertion,
    /// May this call have its effects (M-35)?
    Effect,
    /// May this prompt be sent to a model (M-35)?
    Prompt,
    /// May an agent write this capability, as a step of a plan (M-39a)? Only a draft asks so; no run does.
    Synthesis,
    /// The budget of the day is used up.
    #[serde(rename = "day_budget")]
    Day,
}

impl AskKind {
    /// All kinds.
    pub const ALL: [AskKind; 10] = [
        AskKind::Plan,
        AskKind::Escalation,
        AskKind::Budget,
        AskKind::Question,
        AskKind::Choice,
        AskKind::Insertion,
        AskKind::Effect,
        AskKind::Prompt,
        AskKind::Synthesis,
        AskKind::Day,
    ];

    /// Returns the word that history and people use.
    pub fn word(self) -> &'static str {
        match self {
            AskKind::Plan => "plan",
            AskKind::Escalation => "escalation",
            AskKind::Budget => "budget",
            AskKind::Question => "question",
            AskKind::Choice => "choice",
            AskKind::Insertion => "insertion",
            AskKind::Effect => "effect",
            AskKind::Prompt => "prompt",
            AskKind::Synthesis => "synthesis",
            AskKind::Day => "day_budget",
        }
    }

    /// Returns the answers it takes where its newest failure is this one.
    pub fn answers_for_failure(self, failure: Option<&Failure>) -> &'static [&'static str] {
        match self {
            AskKind::Escalation if failure.is_some_and(|failure| !failure.tampered().is_empty()) => {
                &["allow", "restore", "retry", "skip", "waive", "reassign", "revise", "abort"]
            }
            AskKind::Plan
            | AskKind::Escalation
            | AskKind::Budget
            | AskKind::Question
            | AskKind::Choice
            | AskKind::Insertion
            | AskKind::Effect
            | AskKind::Prompt
            | AskKind::Synthesis
            | AskKind::Day => self.answers(),
        }
    }

    /// Returns the answers it takes, in the words of the command line.
    pub fn answers(self) -> &'static [&'static str] {
        match self {
            AskKind::Plan | AskKind::Synthesis => &["approve", "reject"],
            AskKind::Escalation => &["retry", "skip", "waive", "reassign", "revise", "abort"],
            AskKind::Budget | AskKind::Day => &["raise", "abort"],
            AskKind::Question => &["answer", "skip", "waive", "reassign", "revise", "abort"],
            AskKind::Choice => &["choose", "skip", "revise", "abort"],
            AskKind::Insertion => &["revise", "reject", "abort"],
            AskKind::Effect | AskKind::Prompt => &["approve", "reject", "revise", "abort"],
        }
    }
}

/// Why an ask came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The plan was submitted.
    Submitted,
    /// All attempts failed and the plan says to escalate.
    Exhausted,
    /// No edge fits the outcome (G-19).
    NoEdge,
    /// Workers were lost or could not run, time after time.
    Undelivered,
    /// The worker lacks a permission.
    Permission,
    /// Our own stops interrupted it, time after time.
    Interrupted,
    /// The gate told nothing, time after time.
    Inconclusive,
    /// The contract was not red before the work, and the plan or the configuration demands it.
    NotRed,
    /// The run stood still for too long.
    Stale,
    /// The run has made as many attempts as a run may.
    AttemptsLimit,
    /// A node was entered as often as it may be (`max_visits`, X-08).
    VisitsLimit,
    /// The budget does not suffice for the next dispatch.
    Budget,
    /// The worker asked.
    Asked,
    /// The step is entered anew over a success path; only of a PACE level, which is the primary again.
    Reentered,
    /// The plan has a person asked here.
    Planned,
    /// The step failed in the same way time after time.
    SameFailure,
    /// The worker proposes a further step.
    Proposed,
    /// The changes of two branches conflict.
    Conflict,
    /// A call has effects that a person has to allow.
    Effect,
    /// A person has to approve the prompt to a judge.
    Prompt,
    /// The budget of the day is used up.
    Day,
}

impl Reason {
    /// Returns the word that history uses.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Submitted => "submitted",
            Reason::Exhausted => "exhausted",
            Reason::NoEdge => "no_edge",
            Reason::Undelivered => "undelivered",
            Reason::Permission => "permission",
            Reason::Interrupted => "interrupted",
            Reason::Inconclusive => "inconclusive",
            Reason::NotRed => "not_red",
            Reason::Stale => "stale",
            Reason::AttemptsLimit => "attempts_limit",
            Reason::VisitsLimit => "visits_limit",
            Reason::Budget => "budget",
            Reason::Asked => "asked",
            Reason::Reentered => "reentered",
            Reason::Planned => "planned",
            Reason::SameFailure => "same_failure",
            Reason::Proposed => "proposed",
            Reason::Conflict => "conflict",
            Reason::Effect => "effect",
            Reason::Prompt => "prompt",
            Reason::Day => "day",
        }
    }
}
