//! Why a person is needed, and the answers that each kind of ask takes.

use serde::{Deserialize, Serialize};

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
    pub fn as_str(self) -> &'static str {
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

    /// Returns the answers that some ask of this kind takes, in the words of the command line;
    /// [`Ask::answers`](crate::Ask::answers) are those of one.
    pub fn answers(self) -> &'static [&'static str] {
        match self {
            AskKind::Plan | AskKind::Synthesis => &["approve", "reject"],
            AskKind::Escalation => {
                &["allow", "restore", "retry", "skip", "waive", "reassign", "revise", "abort"]
            }
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
    /// The gate was inconclusive, time after time.
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
    pub fn as_str(self) -> &'static str {
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
