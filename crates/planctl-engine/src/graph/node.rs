//! The places of a graph, and what each does when it is entered.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AskDeadline, Backoff, Profile};
use crate::condition::Condition;
use crate::contract::Contract;
use crate::ids::{NodeId, Role};
use crate::observation::OutputCheck;
use crate::outcome::Outcome;
use crate::pace::{Level, PaceLevel};

/// One place in the graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name, unique in the graph.
    pub id: NodeId,
    /// Its heading, for people.
    pub title: String,
    /// The work of the node.
    pub kind: NodeKind,
    /// How often it may be entered; the next entry counts as exhausted.
    pub max_visits: u16,
    /// Its number among the plan's steps, from 1, where it is one and not a task, which carries its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// How long it waits before it is tried again; where nothing is said, it follows at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The profile that it asks of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<Profile>>,
    /// Has a person confirm the work of a task (DESIGN 10, H-30): after its contract passed, or instead of a contract where
    /// its command is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Box<Confirmation>>,
    /// How long an ask at it waits, and the answer then; as the graph says where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_deadline: Option<AskDeadline>,
}

/// The confirmation that a person is asked for after a task's work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The question; its last option is the refusal, each of the others confirms the work.
    pub question: Question,
    /// The option that says that the work is not done. It spends an attempt, as a contract that failed does.
    pub refusal: String,
    /// The check of an output that takes the person's place where an agent's own program reports one (DESIGN 10); only
    /// where there is no contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<OutputCheck>,
}

/// The work of a node when it is entered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum NodeKind {
    /// Where a run begins; holds it until the plan is approved.
    Start,
    /// Work for an agent, then a gate.
    Task(Box<Task>),
    /// A command that the harness runs, without an agent: its exit code decides (DESIGN 6, DOT S7).
    Call(Box<Call>),
    /// Chooses the way on; nobody works at it (G-05).
    Decision(Choice),
    /// Asks a person to choose, or to say something; held until they do (G-51).
    Human(Box<Question>),
    /// Records the state of the workspace; entered over a failing path, it restores what it recorded (G-08).
    Checkpoint,
    /// Goes along all of its edges at once.
    Fork(Fork),
    /// Waits for branches.
    Join(Join),
    /// Carries out another plan, as a run of its own (DOT S8, N1).
    SubPlan(Box<SubPlan>),
    /// Escalates the node that led here to the next PACE level's responder; where nothing failed, to a person.
    Escalate {
        /// The reason that the person is given beside the failure itself.
        reason: Option<String>,
        /// The PACE level to which it raises the step at least (G-06); `None` is the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pace_level: Option<Level>,
    },
    /// Ends the run.
    Exit {
        /// Says whether the run is done or failed.
        success: bool,
    },
}

impl NodeKind {
    /// Returns the word for what a node of this kind does.
    pub fn as_str(&self) -> &'static str {
        match self {
            NodeKind::Start => "start",
            NodeKind::Task(_) => "task",
            NodeKind::Call(_) => "call",
            NodeKind::Decision(_) => "decision",
            NodeKind::Human(_) => "human",
            NodeKind::Checkpoint => "checkpoint",
            NodeKind::Fork(_) => "fork",
            NodeKind::Join(_) => "join",
            NodeKind::SubPlan(_) => "sub-plan",
            NodeKind::Escalate { .. } => "escalate",
            NodeKind::Exit { .. } => "exit",
        }
    }
}

/// Another plan, carried out as a run of its own under this run's claim of the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubPlan {
    /// The plan's file, relative to the workspace.
    pub path: String,
    /// The folder in which it works, relative to where the run around it works; the same place where nothing is said
    /// (DOT A6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The approver of its plan (DOT N3).
    pub approval: ChildApproval,
    /// How the node settles where its run does not end well: failed, skipped or warned.
    #[serde(rename = "lapse")]
    pub on_exhausted: Outcome,
    /// The condition that must hold once its run is done; until then another run of it follows (DOT N1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Condition>,
    /// How many runs it may take until that holds.
    #[serde(default = "default_cycles", skip_serializing_if = "is_default_cycles")]
    pub cycles: u16,
}

const fn default_cycles() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_default_cycles(count: &u16) -> bool {
    *count == default_cycles()
}

/// The approver of a sub-plan's plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildApproval {
    /// A person is asked when its turn comes.
    #[default]
    Ask,
    /// The approval of this plan covers it too, as its text was then.
    Inherit,
}

impl ChildApproval {
    /// Returns the word as plans have it.
    pub fn as_str(self) -> &'static str {
        match self {
            ChildApproval::Ask => "ask",
            ChildApproval::Inherit => "inherit",
        }
    }
}

/// A command without an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The command, and the exit code it must give.
    pub contract: Contract,
    /// Attempts beyond the first.
    pub max_retries: u16,
    /// How the node settles when its attempts are exhausted: failed, skipped or warned.
    #[serde(rename = "lapse")]
    pub on_exhausted: Outcome,
    /// Files that the command names.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub contract_files: BTreeSet<String>,
    /// Files and globs that it may change: those that the command writes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty", alias = "own_files")]
    pub may_change: BTreeSet<String>,
    /// The role for which it is made, whose allowed and denied effects hold for it (M-34).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Why a person has to allow each attempt before it is made, where one has to (M-36).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

/// How the way on is chosen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// A description of the decision, for people (G-26).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The command whose exit code decides: as expected takes the edge of a success, any other that of a failure.
    /// Without one, what led here is passed through to the edges' conditions (DOT ruling 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<Contract>>,
}

/// A question that the plan itself asks a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The options; the edge labelled with the chosen one is taken. Empty: any text answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// How long the person has, where an answer is declared for the case that they say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
    /// The answer that is declared as the usual one, whether or not it counts after a time (DOT H9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<String>,
}

/// The answer that counts when nobody gave one in time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultAnswer {
    /// After how long.
    pub after: Duration,
    /// The answer.
    pub answer: String,
}

/// Where branches begin.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// Where its branches meet, which begins anew whenever the fork is entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<NodeId>,
    /// How many of its branches are under way at once; all, where nothing is said (DOT P2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u16>,
    /// Has each branch work in a git worktree of its own; the join merges what they did. Needs a join.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "apart")]
    pub in_worktree: bool,
}

/// Where branches end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// How many suffice.
    pub policy: JoinPolicy,
    /// Lets the run go on though a branch failed: the join settles as warned (DOT P3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// How many branches a join waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinPolicy {
    /// All of them; one that failed fails the join.
    All,
    /// The first that succeeds; the others are taken back (DOT P4).
    Any,
}

impl Node {
    /// Returns a node that is no step and may be entered ten times (DESIGN 6).
    pub fn new(id: impl Into<NodeId>, title: impl Into<String>, kind: NodeKind) -> Node {
        Node {
            id: id.into(),
            title: title.into(),
            kind,
            max_visits: 10,
            step: None,
            backoff: None,
            profile: None,
            confirmation: None,
            ask_deadline: None,
        }
    }

    /// Returns its number among the plan's steps, where it is one.
    pub fn step(&self) -> Option<u32> {
        self.task().map(|task| task.step).or(self.step)
    }

    /// Returns what is decided at it, where it is a decision that says so.
    pub fn decision_description(&self) -> Option<&str> {
        if let NodeKind::Decision(choice) = &self.kind { choice.description.as_deref() } else { None }
    }

    /// Returns the plan that it carries out, where it carries out one.
    pub fn sub_plan(&self) -> Option<&SubPlan> {
        if let NodeKind::SubPlan(plan) = &self.kind { Some(plan) } else { None }
    }

    /// Returns the task, where it is one.
    pub fn task(&self) -> Option<&Task> {
        if let NodeKind::Task(task) = &self.kind { Some(task) } else { None }
    }

    /// Returns the call, where it is one.
    pub fn call(&self) -> Option<&Call> {
        if let NodeKind::Call(call) = &self.kind { Some(call) } else { None }
    }

    /// Returns what the harness evaluates here, where it evaluates something.
    pub fn gated(&self) -> Option<Gated<'_>> {
        const NOTHING: &BTreeSet<String> = &BTreeSet::new();
        match &self.kind {
            NodeKind::Task(task) => Some(Gated {
                contract: &task.contract,
                max_retries: task.max_retries,
                on_exhausted: task.on_exhausted,
                protects: &task.protects,
                contract_files: &task.contract_files,
                may_change: &task.may_change,
            }),
            NodeKind::Call(call) => Some(Gated {
                contract: &call.contract,
                max_retries: call.max_retries,
                on_exhausted: call.on_exhausted,
                protects: &[],
                contract_files: &call.contract_files,
                may_change: &call.may_change,
            }),
            NodeKind::Decision(Choice { command: Some(contract), .. }) => Some(Gated {
                contract,
                max_retries: 0,
                on_exhausted: Outcome::Failed,
                protects: &[],
                contract_files: NOTHING,
                may_change: NOTHING,
            }),
            NodeKind::Start
            | NodeKind::Decision(Choice { command: None, .. })
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Fork(_)
            | NodeKind::Join(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Escalate { .. }
            | NodeKind::Exit { .. } => None,
        }
    }

    /// Says whether nothing happens at it: the run only passes through, and nobody can be asked about it alone.
    pub fn is_routing(&self) -> bool {
        match &self.kind {
            NodeKind::Decision(decision) => decision.command.is_none(),
            NodeKind::Start | NodeKind::Checkpoint | NodeKind::Fork(_) | NodeKind::Join(_) => true,
            NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Human(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Escalate { .. }
            | NodeKind::Exit { .. } => false,
        }
    }
}

/// The common part of tasks, calls and decisions by command: the harness evaluates a contract for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gated<'g> {
    /// The contract that decides.
    pub contract: &'g Contract,
    /// Attempts beyond the first that a failing gate may take.
    pub max_retries: u16,
    /// How the node settles when its attempts are exhausted.
    pub on_exhausted: Outcome,
    /// Globs whose files must stay as they are.
    pub protects: &'g [String],
    /// Files that the contract names.
    pub contract_files: &'g BTreeSet<String>,
    /// Files and globs that the node's worker, or its command, may change.
    pub may_change: &'g BTreeSet<String>,
}

/// A step as its author wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The step's number in the plan, from 1.
    pub step: u32,
    /// The role that does it.
    pub role: Role,
    /// The responders that take over when that role can't go on, level by level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pace: Vec<PaceLevel>,
    /// The kind of work; sent along with the item (P-31).
    pub work: WorkKind,
    /// The worker's task: the text of `**task:**`.
    pub prompt: String,
    /// The files and topics that the worker is given to read.
    pub subscriptions: Vec<Subscription>,
    /// The contract that decides the step.
    pub contract: Contract,
    /// Attempts beyond the first that a failing gate may take (`retry(N)`, X-28).
    pub max_retries: u16,
    /// How the node settles when its attempts are exhausted: failed, skipped or warned.
    #[serde(rename = "lapse")]
    pub on_exhausted: Outcome,
    /// How long one attempt's work may take.
    pub work_timeout: Duration,
    /// Globs whose files no worker of this step may change (`**protects:**`).
    pub protects: Vec<String>,
    /// Locks that no two steps hold at once, across runs (`**locks:**`): held from the start of an attempt to its verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// Names that exclude each other: two steps of a run that share one are never in flight at once. They are files that both
    /// may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "apart")]
    pub excludes: Vec<String>,
    /// Files that the contract names, the candidates for protection (DESIGN 8).
    pub contract_files: BTreeSet<String>,
    /// Files and globs that its worker may change (`**changes:**`, else what the task plainly makes or changes).
    #[serde(alias = "own_files")]
    pub may_change: BTreeSet<String>,
}

/// The kind of an agent item's work (P-31).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkKind {
    /// Making something.
    Code,
    /// Judging something; its judgement is text, never a verdict.
    Review,
}

/// Something a worker is given to read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Subscription {
    /// A file or glob relative to the workspace.
    File {
        /// The path or glob.
        path: String,
    },
    /// A named stream of notes.
    Topic {
        /// The topic's name.
        name: String,
    },
}
