//! Facts: the consequences of an event, for people to read and programs to follow.

use serde::{Deserialize, Serialize};

use crate::ask::{AskKind, Reason};
use crate::budget::{Shortfall, Spent};
use crate::choosing::Choosing;
use crate::contract::{Ending, RehearsalResult, Tampering, Verdict};
use crate::effect::Purpose;
use crate::graph::{Fidelity, On, Signal};
use crate::ids::{Actor, Attempt, ItemId, NodeId, Role, RunId};
use crate::observation::OutputCheck;
use crate::outcome::{End, Outcome, Outcomes};
use crate::pace::{Level, Responder};
use crate::time::Timestamp;

/// One thing that followed. The name of each variant is the name of the event in history (G-34).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact {
    /// The run began, or went on after it had ended or was paused.
    PlanActivated {
        /// Says that it went on.
        resumed: bool,
    },
    /// A node was entered; its work is out, unless an ask follows that holds it back.
    NodeEntered {
        /// The node.
        node: NodeId,
        /// Which entering.
        visit: u16,
        /// Which try it begins with.
        attempt: Attempt,
        /// Says that its contract is evaluated before the work goes out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rehearses: bool,
    },
    /// The harness said its verdict.
    NodeVerified {
        /// The node.
        node: NodeId,
        /// Which try.
        attempt: Attempt,
        /// The verdict.
        verdict: Verdict,
        /// Says that it passed and proves nothing: the contract passed before the work, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        vacuous: bool,
    },
    /// The plan's check of an output was made, as the agent's own program reported it; no contract ran.
    NodeObserved {
        /// The node.
        node: NodeId,
        /// Which try.
        attempt: Attempt,
        /// The check.
        check: OutputCheck,
        /// The command whose output it was, where it was a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// Why the check does not hold; where it does, nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refuted: Option<String>,
    },
    /// The contract was evaluated before the work, since the plan or the configuration asks for it (`red_first`).
    NodeRehearsed {
        /// The node.
        node: NodeId,
        /// The result of the rehearsal.
        showed: RehearsalResult,
        /// How the command ended.
        ending: Ending,
        /// Protected files that had changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tampered: Vec<Tampering>,
    },
    /// The next try is due; it is out, unless an ask follows that holds it back.
    RetryTriggered {
        /// The node.
        node: NodeId,
        /// The try that begins.
        attempt: Attempt,
        /// Tries left after it.
        left: u16,
    },
    /// The run went along an edge.
    EdgeFollowed {
        /// Where it left.
        from: NodeId,
        /// Where it led.
        to: NodeId,
        /// The signal with which the node was left.
        signal: Signal,
        /// The condition of the edge.
        on: On,
        /// Its label.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Which edges were tried and why this one won, where more than the outcome decided (DOT E15).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choosing: Option<Box<Choosing>>,
    },
    /// The run began anew where an edge led, as its next epoch (DOT E12): all nodes are as they were before it began, but for
    /// what was used and how often each was tried.
    EpochBegan {
        /// Which epoch, from 1; the one before it ended here.
        epoch: u16,
        /// The node at which the epoch before ended.
        after: NodeId,
        /// Where it began anew.
        node: NodeId,
        /// Names of the context that were kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    /// An agent is told less of the run than was wished, since it keeps its own sessions (DOT F1).
    FidelityReduced {
        /// The node.
        node: NodeId,
        /// The fidelity that the graph asks for.
        asked: Fidelity,
        /// The fidelity that was possible.
        given: Fidelity,
    },
    /// A worker noted values under names of the context that planctl itself writes; they were left out.
    ContextRefused {
        /// The node.
        node: NodeId,
        /// Which try.
        attempt: Attempt,
        /// The names.
        names: Vec<String>,
    },
    /// A node waits until fewer others are worked on, or until a file is free that another step may change.
    NodeQueued {
        /// The node.
        node: NodeId,
    },
    /// A command decided the way on.
    NodeDecided {
        /// The node.
        node: NodeId,
        /// Says that its exit code was the expected one.
        met: bool,
        /// How it ended.
        ending: Ending,
    },
    /// A checkpoint recorded the workspace.
    CheckpointSaved {
        /// The node.
        node: NodeId,
        /// The name under which it is found again.
        name: String,
    },
    /// The workspace is again as a checkpoint recorded it.
    CheckpointRestored {
        /// The node.
        node: NodeId,
    },
    /// The branches of a fork have git worktrees of their own.
    #[serde(rename = "branches_parted")]
    BranchesForked {
        /// The fork.
        node: NodeId,
        /// The commit that all of them begin with.
        base: String,
    },
    /// The changes of the branches, made in their worktrees, are merged into the workspace.
    BranchesMerged {
        /// The join.
        node: NodeId,
        /// Files of the workspace that changed.
        files: u32,
    },
    /// The changes of the branches conflict.
    MergeConflicted {
        /// The join.
        node: NodeId,
        /// The files that conflict.
        files: Vec<String>,
    },
    /// The run of a sub-plan began.
    SubPlanBegan {
        /// The node.
        node: NodeId,
        /// The run.
        run: RunId,
    },
    /// The run of a sub-plan is over.
    SubPlanEnded {
        /// The node.
        node: NodeId,
        /// The run's name.
        name: String,
        /// How it ended.
        end: End,
        /// The amounts that it used.
        spent: Spent,
    },
    /// Enough branches came into a join.
    BranchesJoined {
        /// The join.
        node: NodeId,
        /// Branches that ended well.
        met: u16,
        /// Branches that failed.
        failed: u16,
    },
    /// A run that reached a successful exit may not end yet.
    GoalUnmet {
        /// The node that must have passed.
        node: NodeId,
        /// Where the run goes on; without it, the run fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<NodeId>,
    },
    /// A node settled.
    NodeSettled {
        /// The node.
        node: NodeId,
        /// How.
        outcome: Outcome,
        /// The person who waived or skipped it, where one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why they did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Work could not be delivered and goes out again.
    NodeResting {
        /// The node.
        node: NodeId,
        /// Which try.
        attempt: Attempt,
        /// Deliveries lost so far.
        deliveries: u16,
        /// When it may be claimed again.
        until: Timestamp,
        /// The message.
        message: String,
    },
    /// Our own stop interrupted the work; it goes out again at once.
    NodeInterrupted {
        /// The node.
        node: NodeId,
        /// Which try.
        attempt: Attempt,
        /// Interruptions so far.
        interruptions: u16,
    },
    /// A gate was inconclusive and runs again.
    GateRepeated {
        /// The node.
        node: NodeId,
        /// Which try; of a rehearsal, the one before.
        attempt: Attempt,
        /// The purpose of the evaluation.
        #[serde(default, skip_serializing_if = "Purpose::is_verdict")]
        purpose: Purpose,
        /// Why it was inconclusive.
        why: String,
    },
    /// A person is asked.
    AskOpened {
        /// The node that is held.
        node: NodeId,
        /// The ask.
        item: ItemId,
        /// Its kind.
        kind: AskKind,
        /// Why it came up.
        reason: Reason,
        /// The amount that is short, of a budget ask.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortfall: Option<Shortfall>,
    },
    /// A person answered.
    AskAnswered {
        /// The node that was held.
        node: NodeId,
        /// The ask.
        item: ItemId,
        /// Its kind.
        kind: AskKind,
        /// The answer, in the words of the command line.
        answer: String,
        /// The person who answered.
        by: Actor,
        /// Why, or words for the worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The role of a reassignment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        /// The chosen option.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// A step cannot go on by itself.
    PlanEscalated {
        /// The node.
        node: NodeId,
        /// Why.
        reason: Reason,
        /// A remark beside it, such as the reason that an escalate node gives (G-27).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Another PACE level handles a step.
    PaceChanged {
        /// The node.
        node: NodeId,
        /// The level before.
        from: Level,
        /// The level now.
        to: Level,
        /// The responder of that level.
        responder: Responder,
        /// Why.
        reason: Reason,
    },
    /// Most of the budget is used.
    BudgetNoticed {
        /// The percentage of the part that is used most.
        percent: u32,
    },
    /// The run stood still for too long.
    PlanExpired {
        /// For how many seconds.
        seconds: u64,
        /// For how many turns, where the plan counts those.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turns: Option<u32>,
    },
    /// A person has a step done anew that had passed, and with it everything behind.
    NodeReopened {
        /// The node.
        node: NodeId,
        /// The person.
        by: Actor,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The run waits until it is resumed, or another revision of the plan is approved.
    PlanPaused {
        /// The node whose ask was answered with `revise`; none where the run was paused by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// The person who paused the run by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The run reached a successful exit.
    PlanCompleted {
        /// How its steps settled.
        settled: Outcomes,
    },
    /// The run failed.
    PlanFailed {
        /// The node it failed at.
        node: NodeId,
        /// Failed by the plan's policy, or aborted by a person.
        end: End,
    },
    /// The run was cancelled, or its plan rejected.
    PlanCancelled {
        /// The person who did it.
        by: Actor,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
}

impl Fact {
    /// Returns its name in history.
    pub fn name(&self) -> &'static str {
        match self {
            Fact::PlanActivated { .. } => "plan_activated",
            Fact::NodeEntered { .. } => "node_entered",
            Fact::NodeVerified { .. } => "node_verified",
            Fact::NodeObserved { .. } => "node_observed",
            Fact::NodeRehearsed { .. } => "node_rehearsed",
            Fact::RetryTriggered { .. } => "retry_triggered",
            Fact::EdgeFollowed { .. } => "edge_followed",
            Fact::EpochBegan { .. } => "epoch_began",
            Fact::FidelityReduced { .. } => "fidelity_reduced",
            Fact::ContextRefused { .. } => "context_refused",
            Fact::NodeQueued { .. } => "node_queued",
            Fact::NodeDecided { .. } => "node_decided",
            Fact::CheckpointSaved { .. } => "checkpoint_saved",
            Fact::CheckpointRestored { .. } => "checkpoint_restored",
            Fact::BranchesForked { .. } => "branches_parted",
            Fact::BranchesMerged { .. } => "branches_merged",
            Fact::MergeConflicted { .. } => "merge_conflicted",
            Fact::SubPlanBegan { .. } => "sub_plan_began",
            Fact::SubPlanEnded { .. } => "sub_plan_ended",
            Fact::BranchesJoined { .. } => "branches_joined",
            Fact::GoalUnmet { .. } => "goal_unmet",
            Fact::NodeSettled { .. } => "node_settled",
            Fact::NodeResting { .. } => "node_resting",
            Fact::NodeInterrupted { .. } => "node_interrupted",
            Fact::GateRepeated { .. } => "gate_repeated",
            Fact::AskOpened { .. } => "ask_opened",
            Fact::AskAnswered { .. } => "ask_answered",
            Fact::PlanEscalated { .. } => "plan_escalated",
            Fact::PaceChanged { .. } => "pace_changed",
            Fact::BudgetNoticed { .. } => "budget_noticed",
            Fact::PlanExpired { .. } => "plan_expired",
            Fact::NodeReopened { .. } => "node_reopened",
            Fact::PlanPaused { .. } => "plan_paused",
            Fact::PlanCompleted { .. } => "plan_completed",
            Fact::PlanFailed { .. } => "plan_failed",
            Fact::PlanCancelled { .. } => "plan_cancelled",
        }
    }

    /// Returns the node it is about, where it is about one.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Fact::NodeEntered { node, .. }
            | Fact::NodeVerified { node, .. }
            | Fact::NodeObserved { node, .. }
            | Fact::NodeRehearsed { node, .. }
            | Fact::RetryTriggered { node, .. }
            | Fact::NodeSettled { node, .. }
            | Fact::NodeQueued { node }
            | Fact::EpochBegan { node, .. }
            | Fact::FidelityReduced { node, .. }
            | Fact::ContextRefused { node, .. }
            | Fact::NodeDecided { node, .. }
            | Fact::CheckpointSaved { node, .. }
            | Fact::CheckpointRestored { node }
            | Fact::BranchesForked { node, .. }
            | Fact::BranchesMerged { node, .. }
            | Fact::MergeConflicted { node, .. }
            | Fact::SubPlanBegan { node, .. }
            | Fact::SubPlanEnded { node, .. }
            | Fact::BranchesJoined { node, .. }
            | Fact::GoalUnmet { node, .. }
            | Fact::NodeResting { node, .. }
            | Fact::NodeInterrupted { node, .. }
            | Fact::GateRepeated { node, .. }
            | Fact::AskOpened { node, .. }
            | Fact::AskAnswered { node, .. }
            | Fact::PlanEscalated { node, .. }
            | Fact::PaceChanged { node, .. }
            | Fact::NodeReopened { node, .. }
            | Fact::PlanFailed { node, .. } => Some(node),
            Fact::PlanPaused { node, .. } => node.as_ref(),
            Fact::EdgeFollowed { from, .. } => Some(from),
            Fact::PlanActivated { .. }
            | Fact::BudgetNoticed { .. }
            | Fact::PlanExpired { .. }
            | Fact::PlanCompleted { .. }
            | Fact::PlanCancelled { .. } => None,
        }
    }
}
