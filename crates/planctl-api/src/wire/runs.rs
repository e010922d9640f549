//! Runs and their steps, as they stand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::amounts::{BudgetView, DayBudgetView, SpentView};
use super::branches::{JoinView, PassageView};
use super::pace::LevelView;
use super::worktrees::WorktreeView;
use crate::next::Next;

/// Where a run stands (DESIGN 11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its plan waits for approval.
    AwaitingApproval,
    /// Approved; waits for the workspace.
    Queued,
    /// Steps are worked on.
    Running,
    /// Nothing goes on until a person answers.
    Waiting,
    /// A person paused it, or asked for a revision of the plan.
    Paused,
    /// It reached its exit.
    Done,
    /// It failed, or a person's answer aborted it.
    Failed,
    /// A person cancelled it, or rejected its plan.
    Cancelled,
}

impl RunState {
    /// All states, in the order of a run's life.
    pub const ALL: [RunState; 8] = [
        RunState::AwaitingApproval,
        RunState::Queued,
        RunState::Running,
        RunState::Waiting,
        RunState::Paused,
        RunState::Done,
        RunState::Failed,
        RunState::Cancelled,
    ];

    /// Returns the word that JSON uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunState::AwaitingApproval => "awaiting_approval",
            RunState::Queued => "queued",
            RunState::Running => "running",
            RunState::Waiting => "waiting",
            RunState::Paused => "paused",
            RunState::Done => "done",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        }
    }

    /// Says whether nothing more happens unless a person takes the run up again.
    pub fn is_over(self) -> bool {
        match self {
            RunState::Done | RunState::Failed | RunState::Cancelled => true,
            RunState::AwaitingApproval
            | RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::Paused => false,
        }
    }
}

/// The process that works on a run, or does as soon as there is something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkedOnBy {
    /// The daemon that answers.
    Daemon,
    /// A process that works on this run, as `planctl run` does.
    Run,
    /// A worker that has its work, or that was seen within a minute and asks for such work.
    Worker,
    /// A session of an interactive agent, whose hooks work on it (guided mode).
    Session,
    /// Its workspace is on another host, of which this one knows nothing.
    Elsewhere,
}

/// Where a step stands (DESIGN 11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not entered yet.
    Pending,
    /// Its work waits for a worker.
    Ready,
    /// A worker has it.
    Working,
    /// Its contract is run.
    Checking,
    /// Its work goes out again after a delay.
    Resting,
    /// A person is asked.
    Waiting,
    /// A gate passed.
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

impl StepState {
    /// Says whether it is neither over nor still to come.
    pub fn is_under_way(self) -> bool {
        self != StepState::Pending && !self.is_settled()
    }

    /// Says whether it is over, for this visit.
    pub fn is_settled(self) -> bool {
        match self {
            StepState::Passed
            | StepState::Failed
            | StepState::Skipped
            | StepState::Waived
            | StepState::Warned => true,
            StepState::Pending
            | StepState::Ready
            | StepState::Working
            | StepState::Checking
            | StepState::Resting
            | StepState::Waiting => false,
        }
    }
}

/// One run: the answer of `plan status RUN --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunView {
    /// Its name: `fix-auth-3`.
    pub run: String,
    /// Its UUID.
    pub id: String,
    /// The plan's path, relative to the workspace where it lies inside.
    pub plan: String,
    /// The plan's title.
    pub title: String,
    /// The digest of the revision it executes.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The folder of the workspace in which it works; left out where that is the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The git worktree that it works in; `null` where it works in the workspace itself.
    #[serde(default)]
    pub worktree: Option<WorktreeView>,
    /// Where it stands.
    pub state: RunState,
    /// How it ended: `done`, `failed`, `aborted` (by a person's answer), `cancelled`.
    #[schemars(extend("enum" = ["done", "failed", "aborted", "cancelled", null]))]
    pub end: Option<String>,
    /// The cause of its end, where it failed or was cancelled; or a remark for people.
    pub reason: Option<String>,
    /// The steps, in the author's order.
    pub steps: Vec<StepView>,
    /// The run's other nodes: those that are no steps of the plan.
    #[serde(default)]
    pub passages: Vec<PassageView>,
    /// Where branches meet that are still under way.
    #[serde(default)]
    pub joins: Vec<JoinView>,
    /// The highest PACE level of a step that is not over: `primary`, `alternate`, `contingent`, `emergency`.
    #[serde(default = "super::pace::primary")]
    #[schemars(extend("enum" = ["primary", "alternate", "contingent", "emergency"]))]
    pub pace_level: String,
    /// The thing that it waits for.
    pub waiting_on: Option<WaitingOn>,
    /// The process that works on it, or does as soon as there is something to do; `null` where there is none, and of runs that are over.
    #[serde(default)]
    pub worked_on_by: Option<WorkedOnBy>,
    /// Where the run stands that has the workspace for which this one waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<HolderView>,
    /// The amounts that it has used.
    pub spent: SpentView,
    /// The limits of the run; `null` parts have no limit.
    pub budget: BudgetView,
    /// The budgets of the day that it shares with other runs, as they are at this moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub day_budgets: Vec<DayBudgetView>,
    /// The command that serves every role, where `--exec` named one.
    pub exec: Option<String>,
    /// The agent that serves every role, where `--agent` named one: `codex:-m gpt-x`.
    pub agent: Option<String>,
    /// Says that what the plan itself asks answers itself (`--auto-answer`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_answer: bool,
    /// The person who approved what it executes, or the policy: `policy:NAME`.
    #[serde(default)]
    pub approved_by: Option<String>,
    /// When, RFC 3339.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub approved_at: Option<String>,
    /// Says that the plan's file is another text than the approved one that the run executes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_plan_file_changed: bool,
    /// Says that it failed by itself, and that no person has acknowledged that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_acknowledgement: bool,
    /// The person who acknowledged that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_by: Option<String>,
    /// When it began, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub ended_at: Option<String>,
}

/// One step of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepView {
    /// Its number in the plan.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// Its node in the graph.
    pub node: String,
    /// The kind of node: `task`, `call`, `decision`, `human`, `checkpoint` …
    #[serde(default = "task_word")]
    #[schemars(extend("enum" = ["start", "task", "call", "decision", "human", "checkpoint", "fork", "join", "escalate", "sub-plan", "exit"]))]
    pub kind: String,
    /// The performer: a role, `harness` or `human`.
    pub role: String,
    /// Where it stands.
    pub state: StepState,
    /// Attempts begun.
    pub attempts: u32,
    /// Attempts it may take as things stand, those that people granted included.
    pub attempts_allowed: u32,
    /// How often the run came to it: more than once in a loop.
    #[serde(default)]
    pub visits: u32,
    /// How often it may be come to.
    #[serde(default)]
    pub visits_allowed: u32,
    /// The newest attempt's verdict: `passed`, `failed`, `timed_out`, `tampered`.
    #[schemars(extend("enum" = ["passed", "failed", "timed_out", "tampered", null]))]
    pub verdict: Option<String>,
    /// How far it is known that its work is done: `proved` by its contract, `confirmed` by a person, `judged` by a model alone,
    /// `observed` by the agent's own program, `claimed` by the agent, which passes nothing; `null` where nobody has said so.
    #[serde(default)]
    #[schemars(extend("enum" = ["claimed", "observed", "judged", "confirmed", "proved", null]))]
    pub grade: Option<String>,
    /// Says that the contract passed before the work too, so that its pass proves nothing.
    #[serde(default)]
    pub vacuous: bool,
    /// The result of the contract before the work; `null` where that was not asked for, or is still to come.
    #[serde(default)]
    pub before: Option<BeforeView>,
    /// The PACE level that handles it; `null` where its own role has it.
    #[serde(default)]
    pub pace: Option<LevelView>,
    /// The isolation tier that held at the newest gate: `0`, `1a`, `1b` or `2`.
    pub isolation: Option<String>,
    /// How the newest gate or attempt failed, in one line.
    pub failure: Option<String>,
    /// The newest run of the plan that it carries out.
    #[serde(default)]
    pub run: Option<String>,
    /// The lock that its work waits for; `null` where it waits for none.
    #[serde(default)]
    pub lock: Option<LockView>,
    /// The trouble that kept its worker from the work, of a resting step; of a working one, what its worker waits for before it begins.
    #[serde(default)]
    pub trouble: Option<String>,
    /// The amounts that its attempts have used.
    pub spent: SpentView,
    /// When a resting step goes out again, or a working one began, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Says that the session of an interactive agent does its work, in its own turns (guided mode).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guided: bool,
}

/// A lock that somebody else has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LockView {
    /// Its name.
    pub name: String,
    /// The run that has it.
    pub run: String,
}

fn task_word() -> String {
    "task".to_owned()
}

/// The result of a contract before the work (`red_first`); never a verdict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BeforeView {
    /// `red` (it can fail, as it should), `green` (its pass will prove nothing), `tampered` (it can't be told).
    #[schemars(extend("enum" = ["red", "green", "tampered"]))]
    pub showed: String,
    /// How it ended, in words: `exit 1`.
    pub ending: String,
    /// The exit code, where it exited.
    pub exit_code: Option<i32>,
}

/// The thing that a run waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WaitingOn {
    /// `plan`, `escalation`, `budget`, `question` (a person), `worker`, `workspace`, `ending` (of an agent whose work was taken
    /// back), `worktree` (it could not be made), `lock`, `revision` (of a paused run, which may be resumed, too).
    #[schemars(extend("enum" = ["plan", "escalation", "budget", "question", "choice", "insertion", "effect", "prompt", "day_budget", "worker", "workspace", "ending", "worktree", "lock", "revision"]))]
    pub kind: String,
    /// The number of the ask.
    pub id: Option<u64>,
    /// The role that no worker serves yet.
    pub role: Option<String>,
    /// A worker of the role that is paused, where no other one asks for its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// The run that has the workspace or the lock, whose agent is being ended, or the run within this one that waits.
    pub run: Option<String>,
    /// The lock.
    #[serde(default)]
    pub lock: Option<String>,
}

impl WaitingOn {
    /// Says that a person's answer is waited for.
    pub fn is_for_people(&self) -> bool {
        self.id.is_some() || self.kind == "revision" || self.kind == "worktree"
    }

    /// Returns the next step that brings a worker to the role that waits for one.
    pub fn worker_wanted(&self) -> Option<Next> {
        let role = self.role.clone().filter(|_| self.kind == "worker")?;
        Some(match &self.paused {
            Some(worker) => Next::ResumeWorker { worker: worker.clone() },
            None => Next::ServeRole { role },
        })
    }
}

/// The run that has the workspace for which another one waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HolderView {
    /// Its name.
    pub run: String,
    /// Where it stands.
    pub state: RunState,
    /// The thing that it waits for.
    pub waiting_on: Option<WaitingOn>,
    /// The process that works on it, or does as soon as there is something to do; `null` where there is none.
    pub worked_on_by: Option<WorkedOnBy>,
}

impl HolderView {
    /// Returns the ask without whose answer it does not go on.
    pub fn ask(&self) -> Option<u64> {
        self.waiting_on.as_ref().filter(|_| self.state == RunState::Waiting)?.id
    }

    /// Says that it would go on and nobody is there to work on it.
    pub fn is_left_alone(&self) -> bool {
        self.state == RunState::Running && self.worked_on_by.is_none()
    }

    /// Says that it does not go on before a person does something.
    pub fn is_for_people(&self) -> bool {
        self.ask().is_some() || self.is_left_alone()
    }
}

/// Several runs, newest first: the answer of `status --json` and `run ls --json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// The budgets of the day of the workspaces of these runs, by the newest of them in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub day_budgets: Vec<DayBudgetView>,
    /// Those of which what is stored does not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadRun>,
    /// Names the page of older runs, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A run that can't be shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnreadRun {
    /// Its name.
    pub run: String,
    /// The part that does not read.
    pub what: String,
}

/// One run in a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunSummary {
    /// Its name.
    pub run: String,
    /// The plan's path.
    pub plan: String,
    /// The plan's title.
    #[serde(default)]
    pub title: String,
    /// The digest of the revision it executes.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The git worktree that it works in; `null` where it works in the workspace itself.
    #[serde(default)]
    pub worktree: Option<WorktreeView>,
    /// Where it stands.
    pub state: RunState,
    /// Steps that have settled.
    pub steps_settled: u32,
    /// All steps.
    pub steps_total: u32,
    /// The step it is at; the first of several.
    pub step: Option<StepName>,
    /// All steps that are under way.
    #[serde(default)]
    pub under_way: Vec<StepName>,
    /// The thing that it waits for.
    pub waiting_on: Option<WaitingOn>,
    /// The process that works on it, or does as soon as there is something to do; `null` where there is none, and of runs that are over.
    #[serde(default)]
    pub worked_on_by: Option<WorkedOnBy>,
    /// Says that it failed by itself, and that no person has acknowledged that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_acknowledgement: bool,
    /// The cause of its failure, where it failed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The amounts that it has used.
    pub spent: SpentView,
    /// The limits of the run; `null` parts have no limit.
    pub budget: BudgetView,
    /// When it began, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub ended_at: Option<String>,
}

/// A step's number and title.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepName {
    /// Its number in the plan.
    pub number: u32,
    /// Its title.
    pub title: String,
}

/// One line of `events --run RUN --json`: an input or a fact of the history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventLine {
    /// The run's name.
    pub run: String,
    /// Its place in the run's history, from 1, gap-free.
    pub seq: u64,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// Its name: `agent.reported`, `node_verified`.
    pub event: String,
    /// The node it is about.
    pub node: Option<String>,
    /// Which entering of the node.
    pub visit: Option<u16>,
    /// Which try.
    pub attempt: Option<u16>,
    /// The speaker and kind of the input it followed from.
    pub cause: String,
    /// Its meaning in one sentence; left out where only planctl needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The event's own data.
    #[serde(flatten)]
    pub data: Map<String, Value>,
}

/// The plans of a workspace: the answer of `plan ls --json`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanFileList {
    /// The plans, by their paths.
    pub plans: Vec<PlanFileView>,
}

/// A plan's file, and its newest run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanFileView {
    /// Its path in the workspace.
    pub path: String,
    /// Its title.
    pub title: Option<String>,
    /// The status in its frontmatter.
    pub status: Option<String>,
    /// How many steps it has.
    pub steps: u32,
    /// Its newest run.
    pub run: Option<String>,
    /// The state of that run.
    pub run_state: Option<RunState>,
    /// The process that works on that run; `null` where there is none.
    #[serde(default)]
    pub worked_on_by: Option<WorkedOnBy>,
}
