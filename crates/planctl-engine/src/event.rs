//! Everything that may happen to a run, grouped by who says so.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, BudgetPart, Day, Spent, Usage};
use crate::contract::{Ending, Evidence, Excerpt, Inconclusive};
use crate::ids::{Actor, At, Digest, ItemId, NodeId, Role, RunId};
use crate::observation::Observation;
use crate::outcome::{End, Outcomes};
use crate::time::Timestamp;
use crate::timer::TimerId;

/// One input. Agents build [`AgentEvent`]s only, and none of those can pass a step that has a contract (P-28).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "speaker", rename_all = "snake_case")]
pub enum Event {
    /// A worker said something of its try.
    Agent(AgentEvent),
    /// The harness evaluated a contract: the only carrier of a verdict.
    Harness(HarnessEvent),
    /// A person decided.
    Human(HumanEvent),
    /// Time passed, or a lease ran out.
    Clock(ClockEvent),
}

/// An event of a worker about one try.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentEvent {
    /// The try.
    pub at: At,
    /// The content of the event.
    pub said: AgentSaid,
    /// The usage that the worker reported before, under the same lease; the usage of this event replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Usage>,
}

impl AgentEvent {
    /// Makes one of a worker that has said nothing before.
    pub fn new(at: At, said: AgentSaid) -> AgentEvent {
        AgentEvent { at, said, noted: None }
    }

    /// Returns what was used, where it was told.
    pub fn reported_usage(&self) -> Option<&Usage> {
        self.said.usage().or(self.noted.as_ref())
    }
}

/// The events that a worker, or the process that minds it, can send.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum AgentSaid {
    /// The work ended; the gate follows regardless of the report's contents.
    Reported(Report),
    /// The worker needs an answer before it can go on.
    Asked {
        /// The question.
        question: String,
        /// The usage so far.
        usage: Option<Usage>,
    },
    /// The worker ran past a limit of its time and was ended; there is no gate.
    Overran {
        /// Which limit.
        #[serde(default, skip_serializing_if = "Overrun::is_deadline")]
        past: Overrun,
        /// How long it ran.
        duration: Duration,
        /// The usage so far.
        usage: Option<Usage>,
    },
    /// Infrastructure trouble: nothing is known about the work.
    Faulted(Fault),
    /// Our own process stopped and gives the work back.
    Released,
}

/// Which limit of its time a worker ran past.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// The end of its time.
    #[default]
    Deadline,
    /// How long it may print nothing.
    Silence,
}

impl Overrun {
    /// Says whether it was the end of its time, as in all histories that do not say.
    pub(crate) fn is_deadline(&self) -> bool {
        *self == Overrun::Deadline
    }
}

impl AgentSaid {
    /// Returns what was used, where it is told.
    pub fn usage(&self) -> Option<&Usage> {
        match self {
            AgentSaid::Reported(report) => report.usage.as_ref(),
            AgentSaid::Asked { usage, .. } | AgentSaid::Overran { usage, .. } => usage.as_ref(),
            AgentSaid::Faulted(fault) => fault.usage.as_ref(),
            AgentSaid::Released => None,
        }
    }

    /// Returns what was used, where it is told, to be completed by who minds the worker.
    pub fn usage_mut(&mut self) -> Option<&mut Usage> {
        match self {
            AgentSaid::Reported(report) => report.usage.as_mut(),
            AgentSaid::Asked { usage, .. } | AgentSaid::Overran { usage, .. } => usage.as_mut(),
            AgentSaid::Faulted(fault) => fault.usage.as_mut(),
            AgentSaid::Released => None,
        }
    }
}

/// An agent's report of its work; decides nothing (P-36).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Its last words.
    pub text: Excerpt,
    /// Says that the worker gave up: the gate runs, and a failing one is not retried.
    pub gave_up: bool,
    /// How its process ended, for the record.
    pub ending: Option<Ending>,
    /// How long it worked.
    pub duration: Duration,
    /// The usage; `None` is unmetered.
    pub usage: Option<Usage>,
    /// The agent's hints about the next edge; used to choose among the edges of a pass, and never for the pass itself (DOT
    /// X4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Box<Hints>>,
    /// The circumstances of the work, where it tells of some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Box<Circumstances>>,
    /// The output that the agent's own program reported, of a session at a step whose plan checks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Box<Observation>>,
}

/// The circumstances of an attempt's work: they weigh how a failed contract is taken, and never whether one passed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Circumstances {
    /// The trouble of infrastructure that cut it off, in the middle of it as like as not: a contract that fails after it says
    /// nothing of the worker, and spends a delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<Fault>,
    /// The actions that its permissions denied it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The worker's own name of its session, by which a person takes it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A worker's hints about the next edge.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hints {
    /// The label of the edge it prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The nodes it suggests to go on with, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<NodeId>,
    /// Values that conditions may look at, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// The text of a step that it proposes to come after its own; a person decides (H-51).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_step: Option<String>,
}

/// Infrastructure trouble; spends a delivery, never an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of trouble.
    pub kind: FaultKind,
    /// The message about it.
    pub message: String,
    /// The usage until then, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Fault {
    /// Makes one before anything was used.
    pub fn new(kind: FaultKind, message: String) -> Fault {
        Fault { kind, message, usage: None }
    }
}

/// The kind of infrastructure trouble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A rate limit, the network, an API error, a process that would not start: later it may work.
    Transient,
    /// A permission or a login is missing (exit 77): a person is asked at once.
    Permission,
    /// It can't start as things are, such as a program that is not installed: a person is asked at once.
    Permanent,
}

/// An event of the harness about one try.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HarnessEvent {
    /// The try.
    pub at: At,
    /// The result.
    pub found: HarnessResult,
}

/// The result of an item in the harness's lane.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum HarnessResult {
    /// The contract was evaluated; the verdict follows from the evidence.
    Evidence(Box<Evidence>),
    /// The contract was evaluated before the work; no verdict follows from it.
    Rehearsed(Box<Evidence>),
    /// The workspace's state was recorded under this name.
    Recorded {
        /// The name under which it is found again.
        name: String,
    },
    /// The workspace is as it was recorded.
    Restored,
    /// The branches have their worktrees.
    #[serde(rename = "parted")]
    Forked {
        /// The commit that all of them begin with.
        base: String,
    },
    /// The changes of the branches are merged into the workspace.
    Merged {
        /// Files of the workspace that changed.
        files: u32,
        /// Protected files that the branches may change, as they are now; none where there is no such file.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        protected: BTreeMap<String, Option<Digest>>,
    },
    /// The changes of the branches conflict; nothing of the workspace changed.
    Conflicted(Box<Conflict>),
    /// The run of a sub-plan has begun, waits for a person, or goes on.
    Begun {
        /// The run.
        run: RunId,
        /// Its own budget; a part that is absent has no limit.
        #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
        budget: Budget,
        /// Says that nothing of it goes on until a person decides.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// The run of a sub-plan is over.
    Ended(Box<ChildEnd>),
    /// The evaluation, checkpoint or restore was inconclusive, or did not take place.
    Nothing(Inconclusive),
}

impl HarnessResult {
    /// Returns what a judge used for it.
    pub fn judge_usage(&self) -> Option<&Usage> {
        match self {
            HarnessResult::Evidence(evidence) => evidence.judgement.as_deref()?.usage.as_ref(),
            HarnessResult::Nothing(Inconclusive::Unjudged { usage, .. }) => usage.as_ref(),
            HarnessResult::Nothing(Inconclusive::Unheard { usage }) => Some(usage),
            HarnessResult::Rehearsed(_)
            | HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Conflicted(_)
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_)
            | HarnessResult::Nothing(_) => None,
        }
    }
}

/// A conflict between branches that are merged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conflict {
    /// The branch that does not fit to what was merged before it, counted from 0; none where the workspace itself was
    /// changed meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<u16>,
    /// The files that conflict.
    pub files: Vec<String>,
    /// The folder in which a person makes them fit.
    pub folder: String,
    /// The conflicting hunks, or the end of them.
    pub hunks: Excerpt,
}

/// How the run of a sub-plan ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChildEnd {
    /// The run.
    pub run: RunId,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub end: End,
    /// How its steps settled.
    pub settled: Outcomes,
    /// The amounts that it used.
    pub spent: Spent,
}

/// An event of a person: one decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HumanEvent {
    /// The person.
    pub by: Actor,
    /// Why, or words for the worker.
    pub note: Option<String>,
    /// The decision.
    pub decision: Decision,
}

/// The decisions that a person can take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Hand the plan in; opens the plan ask.
    Submit,
    /// Answer an ask.
    Answer {
        /// The ask.
        item: ItemId,
        /// The answer.
        answer: Answer,
    },
    /// Answer an ask that a rule leaves to several people: a vote, which decides nothing by itself.
    Vote {
        /// The ask.
        item: ItemId,
        /// The answer.
        answer: Answer,
        /// The digest of what the ask showed.
        about: String,
    },
    /// End the run for good.
    Cancel,
    /// Stop the run until it is resumed, or another revision is approved.
    Pause,
    /// Take a failed or paused run up again.
    Resume {
        /// The step to do anew, though it had passed: its contract holds no longer. Left out, the run goes on where it stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<NodeId>,
    },
    /// Go on with another revision of the steps not yet passed.
    Revise {
        /// The approved revision.
        revision: Digest,
        /// Nodes that differ from the revision before, or are gone or added.
        changed: Vec<NodeId>,
        /// Nodes that the revision before does not have.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<NodeId>,
        /// Joins whose branches are others than before, or in another order: for each branch its number in the revision before,
        /// nothing for one that is added.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        branches: BTreeMap<NodeId, Vec<Option<u16>>>,
        /// As much as the run may use in all, by what is left of the budget around it; none where it is within no other run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_max: Option<Budget>,
    },
}

/// An answer to an ask.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The plan may run.
    Approve,
    /// The plan may not run.
    Reject,
    /// Try once more, with the note in the prompt.
    Retry,
    /// Leave the step out.
    Skip,
    /// Let the step count as met; shows for ever.
    Waive,
    /// End the run as failed.
    Abort,
    /// Pause the run until another revision is approved.
    Revise,
    /// Give the step to another role and try once more.
    Reassign {
        /// The role.
        role: Role,
    },
    /// Add to the budget.
    Raise {
        /// How much.
        by: Budget,
    },
    /// Answer the worker's question; the next attempt spends no allowance.
    Reply,
    /// Accept protected files as the gate found them, for this step alone; its contract judges what was done, and nobody
    /// works again.
    Allow {
        /// Which; none means all that the ask names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
    },
    /// Try once more, with the approved copies of protected files put back before.
    Restore,
    /// Answer what the plan asks.
    Choose {
        /// One of the options; where there are none, any text.
        option: String,
    },
}

impl Answer {
    /// Returns the word of the command line.
    pub fn as_str(&self) -> &'static str {
        match self {
            Answer::Approve => "approve",
            Answer::Reject => "reject",
            Answer::Retry => "retry",
            Answer::Skip => "skip",
            Answer::Waive => "waive",
            Answer::Abort => "abort",
            Answer::Revise => "revise",
            Answer::Reassign { .. } => "reassign",
            Answer::Raise { .. } => "raise",
            Answer::Reply => "answer",
            Answer::Allow { .. } => "allow",
            Answer::Restore => "restore",
            Answer::Choose { .. } => "choose",
        }
    }
}

/// The events of the clock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "tick", rename_all = "snake_case")]
pub enum ClockEvent {
    /// The run has the workspace.
    Admitted,
    /// An armed timer came due.
    Due {
        /// Which.
        timer: TimerId,
    },
    /// The lease of the try's item ran out.
    LeaseLost {
        /// The try.
        at: At,
        /// Says that the holder was one of our own processes, which stopped or died: no delivery is spent.
        interrupted: bool,
        /// The usage that the worker had reported so far, or the most that the judge of a gate may have used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noted: Option<Usage>,
    },
    /// The hard deadline of the try's work passed while its worker was away.
    Overran {
        /// The try.
        at: At,
        /// The usage that the worker had reported so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noted: Option<Usage>,
    },
    /// A worker reported what it has used so far; refused where the budget allows that.
    Metered,
    /// The budget of the day is used up, so that nobody is given the try's work.
    DaySpent {
        /// The try.
        at: At,
        /// The part that is used up.
        part: BudgetPart,
        /// The limit of the day, in the part's unit.
        limit: u64,
        /// The amount that all runs used, in the part's unit.
        spent: u64,
        /// The day.
        day: Day,
    },
    /// Another day began, or somebody raised the budget of this one: what waits for that at a node goes on.
    DayAllows {
        /// The node.
        node: NodeId,
    },
    /// A person raises what the run of a sub-plan may use: so much is set aside for it first, in the budget around it.
    SetAside {
        /// The node whose plan it carries out.
        node: NodeId,
        /// The run within.
        run: RunId,
        /// All that it may use then; a part without limit is left as it is.
        budget: Budget,
    },
    /// No process worked on the run for a while, so that time does not count.
    Unattended {
        /// When one was last known to work on it.
        since: Timestamp,
    },
}

impl Event {
    /// Returns the speaker and kind, as history names the input: `agent.reported`.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Agent(event) => match event.said {
                AgentSaid::Reported(_) => "agent.reported",
                AgentSaid::Asked { .. } => "agent.asked",
                AgentSaid::Overran { .. } => "agent.overran",
                AgentSaid::Faulted(_) => "agent.faulted",
                AgentSaid::Released => "agent.released",
            },
            Event::Harness(event) => match event.found {
                HarnessResult::Evidence(_) => "harness.evaluated",
                HarnessResult::Rehearsed(_) => "harness.rehearsed",
                HarnessResult::Recorded { .. } => "harness.recorded",
                HarnessResult::Restored => "harness.restored",
                HarnessResult::Forked { .. } => "harness.parted",
                HarnessResult::Merged { .. } => "harness.merged",
                HarnessResult::Conflicted(_) => "harness.conflicted",
                HarnessResult::Begun { .. } => "harness.begun",
                HarnessResult::Ended(_) => "harness.ended",
                HarnessResult::Nothing(_) => "harness.inconclusive",
            },
            Event::Human(event) => match event.decision {
                Decision::Submit => "human.submitted",
                Decision::Answer { .. } => "human.answered",
                Decision::Vote { .. } => "human.voted",
                Decision::Cancel => "human.cancelled",
                Decision::Pause => "human.paused",
                Decision::Resume { .. } => "human.resumed",
                Decision::Revise { .. } => "human.revised",
            },
            Event::Clock(event) => match event {
                ClockEvent::Admitted => "clock.admitted",
                ClockEvent::Due { .. } => "clock.due",
                ClockEvent::LeaseLost { .. } => "clock.lease_lost",
                ClockEvent::Overran { .. } => "clock.overran",
                ClockEvent::Metered => "clock.metered",
                ClockEvent::DaySpent { .. } => "clock.day_spent",
                ClockEvent::DayAllows { .. } => "clock.day_allows",
                ClockEvent::SetAside { .. } => "clock.set_aside",
                ClockEvent::Unattended { .. } => "clock.unattended",
            },
        }
    }

    /// Returns the try the event speaks of, where it speaks of one.
    pub fn at(&self) -> Option<&At> {
        match self {
            Event::Agent(event) => Some(&event.at),
            Event::Harness(event) => Some(&event.at),
            Event::Human(_) => None,
            Event::Clock(
                ClockEvent::LeaseLost { at, .. }
                | ClockEvent::Overran { at, .. }
                | ClockEvent::DaySpent { at, .. },
            ) => Some(at),
            Event::Clock(
                ClockEvent::Admitted
                | ClockEvent::Due { .. }
                | ClockEvent::Metered
                | ClockEvent::DayAllows { .. }
                | ClockEvent::SetAside { .. }
                | ClockEvent::Unattended { .. },
            ) => None,
        }
    }
}
