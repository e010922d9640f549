//! Plans that are known, and their kept revisions, as the daemon lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::BudgetView;
use super::evidence::ContractView;
use super::pace::RungView;

/// Plans, those that were met last first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanList {
    /// The plans.
    pub plans: Vec<PlanSummary>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One plan: a file of a workspace that was approved or run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanSummary {
    /// Its number, which names it in paths of the API.
    pub id: u64,
    /// Its path, relative to the workspace where it lies inside.
    pub plan: String,
    /// The title of its newest revision; empty where that does not read.
    pub title: String,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The id of the host that has the workspace.
    pub host: String,
    /// Where it stands.
    #[schemars(extend("enum" = ["draft", "verified", "approved", "in-progress", "done", "failed"]))]
    pub status: String,
    /// The digest of its newest revision.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first met, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When its status or its text last changed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
}

/// The kept revisions of a plan, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RevisionList {
    /// The revisions.
    pub revisions: Vec<KeptRevision>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One exact text of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KeptRevision {
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first kept, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The newest approval of it, whether or not that still holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<KeptDecision>,
    /// The newest rejection of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<KeptDecision>,
}

/// A decision about a kept revision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KeptDecision {
    /// The person who decided, or the policy: `policy:NAME`.
    pub by: String,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The newest decision about a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanDecisionView {
    /// `approved` or `rejected`.
    #[schemars(extend("enum" = ["approved", "rejected"]))]
    pub decision: String,
    /// The person, the time and the reason.
    #[serde(flatten)]
    pub given: KeptDecision,
}

impl KeptRevision {
    /// Returns the newest decision about it.
    pub fn decided(&self) -> Option<PlanDecisionView> {
        let given = |word: &str, given: &Option<KeptDecision>| {
            Some(PlanDecisionView { decision: word.to_owned(), given: given.clone()? })
        };
        let both = [given("approved", &self.approved), given("rejected", &self.rejected)];
        both.into_iter().flatten().max_by(|a, b| a.given.at.cmp(&b.given.at))
    }
}

/// A kept revision with its text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RevisionPage {
    /// The plan's path, relative to the workspace where it lies inside.
    pub plan: String,
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first kept, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The text, as it was approved or run.
    pub source: String,
}

/// A plan as it would run: the answer of `plan show --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanView {
    /// The plan's path, relative to the workspace where it lies inside.
    pub plan: String,
    /// Its title.
    pub title: String,
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// The status in the file; the database has the record (`plan status`).
    pub status: Option<String>,
    /// Its owner.
    pub owner: Option<String>,
    /// The plan's context, as its author wrote it.
    #[serde(default)]
    pub context: Option<String>,
    /// How soon its work is taken up beside that of other runs.
    #[serde(default = "normal")]
    #[schemars(extend("enum" = ["low", "normal", "high", "urgent"]))]
    pub priority: String,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// `shared`: it works in the workspace itself; `worktree`: in a git worktree of it, on a branch of its own.
    #[schemars(extend("enum" = ["shared", "worktree"]))]
    pub mode: String,
    /// Whether its changes in the worktree are committed when it is done: `none`, `commit`.
    #[schemars(extend("enum" = ["none", "commit"]))]
    pub git: String,
    /// The limits of a run.
    pub budget: BudgetView,
    /// How long asks wait, and the answer then: of the whole plan, and of each step that says so itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask_deadlines: Vec<String>,
    /// The steps that agents work on.
    pub steps: Vec<PlanStepView>,
    /// The steps at which something else happens: calls, decisions, questions, checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<PlanNodeView>,
    /// How steps follow each other, a way on each line, where that is not the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<String>,
    /// Files that no worker may change, relative to the workspace, sorted.
    pub protected: Vec<String>,
    /// The defaults that apply to the whole plan.
    pub defaults: Vec<DefaultView>,
    /// The isolation that contracts run in.
    pub isolation: String,
    /// The newest decision about this text, as far as a database knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<PlanDecisionView>,
    /// The approval policies' words on it, a line for each; none where there are no policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
}

fn normal() -> String {
    "normal".to_owned()
}

/// One step of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanStepView {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The performer: a role, `harness` or `human`.
    pub role: String,
    /// The agent that serves the role, as configured.
    pub agent: Option<String>,
    /// The permissions that it has without a person, in words; `null` is the agent's usual.
    pub permissions: Option<String>,
    /// The responders that take over when the role can't go on, level by level (PACE); a person where it is empty.
    #[serde(default)]
    pub pace: Vec<RungView>,
    /// The worker's task.
    pub task: String,
    /// The files and topics that the worker is given to read.
    pub subscriptions: Vec<String>,
    /// The locks that no two steps hold at once, across runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// The contract that decides the step; its command is empty where a person alone decides.
    pub contract: ContractView,
    /// The question to the person who confirms its work, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<String>,
    /// Protected files that decide its contract, and globs of such files.
    pub judged_by: Vec<String>,
    /// Files and globs that its worker may change, also where a contract is judged by them.
    pub may_change: Vec<String>,
    /// The policy in the words of the plan.
    pub on_fail: String,
    /// The check of the contract before the work: `off`, `warn`, `deny`.
    #[schemars(extend("enum" = ["off", "warn", "deny"]))]
    pub red_first: String,
    /// How long one attempt's work may take, in seconds.
    pub timeout_seconds: f64,
    /// The defaults that apply to the step.
    pub defaults: Vec<DefaultView>,
}

/// A step of a plan at which no agent works.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanNodeView {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The kind of node: `call`, `decision`, `human`, `checkpoint`, `sub_plan`, `escalate`.
    pub kind: String,
    /// The description of a decision, where its author wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The command that the harness runs, where it runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractView>,
    /// The question or message to a person, where there is one; the plan that runs, and its approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    /// The options that the person may choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A value that applies though the plan does not say it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DefaultView {
    /// The field that would say it.
    pub field: String,
    /// The value in the words of a plan.
    pub value: String,
    /// Where it comes from.
    pub from: DefaultFrom,
}

/// Where a value comes from that the plan does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultFrom {
    /// planctl's own.
    Planctl,
    /// planctl.toml or the person's configuration.
    Configuration,
}

/// The changes between two revisions of a plan: the answer of `plan diff --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanDiffView {
    /// The plan's path.
    pub plan: String,
    /// The older text.
    pub since: RevisionView,
    /// The newer text.
    pub until: RevisionView,
    /// Says that the texts differ.
    pub changed: bool,
    /// The differences in meaning; empty where only wording without effect differs.
    pub changes: Vec<planctl_lang::Change>,
    /// The lines that differ, as a unified diff.
    pub diff: String,
}

/// One text of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RevisionView {
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first kept; absent for the file as it is now.
    pub at: Option<String>,
    /// The reason to compare with it: an approval, a run, the file.
    pub what: String,
}

/// The answer of `plan fmt --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FormatView {
    /// Whether nothing was to be written.
    pub check: bool,
    /// The plans that could be read, as they were named.
    pub files: Vec<FormattedView>,
}

/// A plan and its form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FormattedView {
    /// The plan, as it was named; `-` is standard input.
    pub file: String,
    /// Whether it had another form than planctl's.
    pub changed: bool,
    /// The lines that differ, as a unified difference; empty where none does.
    pub diff: String,
    /// The formatted text, of standard input; null for files, which hold it.
    pub text: Option<String>,
}
