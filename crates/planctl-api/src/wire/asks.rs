//! Asks, with what a person needs to answer them, and what came of an answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::{BudgetView, ShortfallView};
use super::attempts::AttemptSummary;
use super::evidence::{ContractView, DriftView, FailureView, StepFilesView, WorkspaceChanges};
use super::pace::LevelView;
use super::runs::StepName;
use crate::next::{Next, deserialize_known};

/// Open and answered asks: the answer of `approvals ls --json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AskList {
    /// The asks, first those that block most runs, then most steps, then the oldest.
    pub asks: Vec<AskView>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One ask in a list.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AskView {
    /// Its number for people.
    pub id: u64,
    /// `plan`, `escalation`, `budget`, `question` (a worker's), `choice` (the plan's).
    #[schemars(extend("enum" = ["plan", "escalation", "budget", "question", "choice", "insertion", "effect", "prompt", "synthesis", "day_budget"]))]
    pub kind: String,
    /// The run's name, the only one of its workspace; absent where a draft asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The run's id; absent where a draft asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The name of the draft that asks, where it is no run: its goal in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
    /// The canonical path of the workspace of the run or the draft.
    pub workspace: String,
    /// The plan's path; empty where a draft asks.
    pub plan: String,
    /// The plan's title; of a draft its goal.
    #[serde(default)]
    pub title: String,
    /// The step it is about.
    pub step: Option<StepName>,
    /// The role of the step, whose worker wrote the question or the proposed step.
    #[serde(default)]
    pub role: Option<String>,
    /// The question, in one line.
    pub asks: String,
    /// Why it came up: `exhausted`, `budget`, …
    pub reason: String,
    /// The question or the failure alone, without the step's name.
    #[serde(default)]
    pub about: String,
    /// The answers it takes, in the words of the command line.
    pub answers: Vec<String>,
    /// Says that it is about branches that work in worktrees of their own: `skip` goes on without anything that they did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_branches: bool,
    /// The options of a choice; empty where any text answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The options once more, each with the step that it leads to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leads_to: Vec<OptionView>,
    /// The answer that the plan declares as the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<String>,
    /// The runs and steps that wait for its answer, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlocksView>,
    /// The answer of a rule, where nobody gives one in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineView>,
    /// When it was opened, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub opened_at: String,
    /// The answer, once given.
    pub answer: Option<AnswerView>,
}

/// The runs and steps that wait for the answer to an ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BlocksView {
    /// Runs: its own, those around it, and those that wait until it leaves the workspace.
    pub runs: u64,
    /// Steps of its own run and of those around it that can't be done before.
    pub steps: u64,
}

/// One option of a choice, and where it leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OptionView {
    /// The option, as it is written in `options`.
    pub name: String,
    /// The node that it leads to.
    #[serde(default)]
    pub node: Option<String>,
    /// The number of that step.
    #[serde(default)]
    pub number: Option<u32>,
    /// The title of that step, or how the run ends there.
    #[serde(default)]
    pub title: Option<String>,
}

/// How an ask was answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AnswerView {
    /// The word of the command line.
    pub answer: String,
    /// The option that was chosen, of a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The person who answered.
    pub by: String,
    /// Why, or words for the worker.
    pub note: Option<String>,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: Option<String>,
}

/// One ask with what a person should see to decide: the answer of `approvals show ID --json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AskPage {
    /// The ask.
    #[serde(flatten)]
    pub ask: AskView,
    /// The message of the plan or the worker about it.
    pub message: Option<String>,
    /// Why a proposed step can't be put into the plan as it is.
    #[serde(default)]
    pub unfit: Option<String>,
    /// The contract of the step.
    pub contract: Option<ContractView>,
    /// Says that the step is a call of a tool, and `contract` the call as the plan has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_call: bool,
    /// The newest failure.
    pub failure: Option<FailureView>,
    /// Says that the step's contract passed before the work, so that its pass proves nothing.
    #[serde(default)]
    pub vacuous: bool,
    /// The PACE level at which a person is asked; `null` where the step's own role had it.
    #[serde(default)]
    pub pace: Option<LevelView>,
    /// The amount that is short, of a budget ask.
    pub shortfall: Option<ShortfallView>,
    /// The prompt that waits for a person's word, of a prompt approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<HeldPromptView>,
    /// Where and by whom it will be run, of a plan ask.
    pub will_run: Option<WillRun>,
    /// The plan that will run, of a plan ask.
    pub plan_text: Option<String>,
    /// The changes since the revision approved before, of a plan ask; the changes to the text, of a proposed step.
    pub diff: Option<String>,
    /// The changes to the plan's meaning, of a proposed step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<planctl_lang::Change>,
    /// Protected files that a proposed step would be allowed to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_change: Vec<String>,
    /// Protected files that differ from what was approved last. The approval of a plan has to name them; a proposed step
    /// leaves them what was approved, so that the next gate tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<DriftView>,
    /// Protected files that are not as the newest commit of the workspace has them, of an ask that approves files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    /// The newest attempts at the step, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptSummary>,
    /// The end of the newest worker's report. It is no evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// The differences between the workspace and its newest commit; absent where the two can't be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_changes: Option<WorkspaceChanges>,
    /// The approval under which the run works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedView>,
    /// The rules that leave its answer to several people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<AskRuleView>,
    /// The votes on it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<VoteView>,
}

/// A prompt that is sent to a model only once a person has approved it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HeldPromptView {
    /// The digest of the prompt as it would be sent; the approval is for it alone.
    pub digest: String,
    /// The model's name in the configuration.
    pub name: String,
    /// The model's name at its service.
    pub model: String,
    /// The address to which it would be sent.
    pub url: String,
    /// The most tokens that the prompt and one answer are expected to use.
    pub tokens: u64,
    /// The whole text; `null` where it is kept no longer.
    pub text: Option<String>,
}

/// A rule that leaves the answer of an ask to several people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AskRuleView {
    /// Its name in the configuration.
    pub rule: String,
    /// How many people have to give the same answer.
    pub needed: u64,
    /// How many of which people, in words.
    pub demands: String,
}

/// A person's vote for an answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VoteView {
    /// The person.
    pub by: String,
    /// The answer, in the word of the command line.
    pub answer: String,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why it counts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
}

/// The answer of a rule, or of the plan's own text, to an ask that nobody answers in time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeadlineView {
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The answer, in the word of the command line.
    pub answer: String,
    /// The rule's name in the configuration; `the plan` where the plan's own text says it.
    pub rule: String,
}

/// The approval under which a run works.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ApprovedView {
    /// The person, or the policy.
    pub by: String,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The digest of the text that runs.
    pub digest: String,
    /// Whether the plan's file has another text by now; `null` where it can't be read from here.
    pub file_changed: Option<bool>,
    /// The lines in which the file differs from the text that runs, as a unified diff; left out where it does not, or can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Where a plan will run, who will work, and what nobody may change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WillRun {
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The folder of the workspace in which it works; left out where that is the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// `shared`: it works in the workspace itself; `worktree`: in a git worktree of it, on a branch of its own.
    #[schemars(extend("enum" = ["shared", "worktree"]))]
    pub mode: String,
    /// Whether its changes in the worktree are committed when it is done: `none`, `commit`.
    #[schemars(extend("enum" = ["none", "commit"]))]
    pub git: String,
    /// The limits of the run.
    pub budget: BudgetView,
    /// The agent that serves each role of the plan, by role; `null` where nothing does.
    pub workers: BTreeMap<String, Option<String>>,
    /// Files that no worker may change, relative to the workspace.
    pub protected: Vec<String>,
    /// The digest of each protected file that the ask shows; an answer binds these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
    /// The steps that are judged by protected files or may change any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepFilesView>,
    /// The isolation tier that contracts and workers run in: `0`, `1a`, `1b` or `2`.
    pub isolation: String,
    /// The plans that it carries out as steps of its own, and those within them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanWithin>,
}

/// A plan that another one carries out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanWithin {
    /// Its path, relative to the workspace.
    pub plan: String,
    /// The plan that carries it out.
    pub within: String,
    /// The folder of the workspace in which it works; left out where that is the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The digest of the text that runs.
    pub digest: String,
    /// Its title.
    pub title: String,
    /// How many steps it has.
    pub steps: u32,
    /// Says that the approval of the plan around it covers it too; else a person is asked when its turn comes.
    pub is_approved_too: bool,
    /// The text that is approved too; `null` where a person is asked later.
    pub text: Option<String>,
}

/// A decision that was recorded: the answer of every deciding command.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Decided {
    /// The run it moved, where there is one.
    pub run: Option<String>,
    /// That run's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The canonical path of that run's workspace, where it may be another than the caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The ask it answered, where there was one.
    pub ask: Option<u64>,
    /// The decision, in the word of the command line.
    pub decision: String,
    /// The person who decided.
    pub by: String,
    /// The next step.
    #[serde(default, deserialize_with = "deserialize_known")]
    pub next: Option<Next>,
    /// Says that the very same decision was recorded before and nothing changed.
    pub repeated: bool,
    /// Says that it is one vote of several that a rule demands, and decides nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voted: Option<VotedView>,
}

/// How far the votes on an answer have come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VotedView {
    /// The rule that wants most more votes.
    pub rule: String,
    /// The votes for the answer that count by it.
    pub have: u64,
    /// The votes that it wants.
    pub needed: u64,
}
