//! The request and answer types of the API, as JSON says them (DESIGN 11).

pub mod calls;
pub mod work;

use std::collections::BTreeMap;

use planctl_engine::{Budget, Spent, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::next::{Next, known};

mod branches;
mod bundle;
pub mod daemon;
pub mod draft;
pub mod draft_asks;
mod edits;
pub mod goal;
mod library;
pub mod messages;
mod pace;
mod pages;
mod plans;
mod printed;
mod run_page;
mod salute;
pub mod schema;
mod sessions;
mod settings;
mod timeline;
pub mod tools;
mod topics;
mod traversal;
mod workers;
mod worktrees;

pub use branches::{BranchState, BranchView, ChoiceView, JoinView, LookedView, PassageView, WeighedView};
pub use bundle::{BUNDLE_VERSION, BundleLine, BundlePage, BundledEvent, BundledRun};
pub use daemon::{DaemonHealthView, DaemonInfo, DaemonState, DaemonView, LoopView, PageLink, TroubleView};
pub use edits::{PlanEditCheck, PlanEditFinding, PlanEditView};
pub use library::{
    EntryFate, EntryOrigin, EntryRuns, EntryStats, FollowUpView, LibraryEntryView, LibraryList, LibraryMatch,
    LibraryPage, LibraryRuns, LibraryStats, LibraryTrouble, TriggerHit, WeighedEntry,
};
pub use pace::{LevelView, RungView};
pub use pages::Paged;
pub use plans::{KeptDecision, KeptRevision, PlanList, PlanSummary, RevisionList, RevisionPage};
pub use printed::{OutputLine, OutputView, PromptList, PromptView};
pub use run_page::{PictureView, RunPage, StepTally};
pub use salute::{
    ActivityView, DutyView, EquipmentView, LocationView, PastView, PlaceView, SaluteView, SizeView, TimesView,
};
pub use sessions::{CheckView, GuardList, GuardView, GuideState, GuideView, SessionStep, SessionView};
pub use settings::{ConfigFile, ConfigPaths, ConfigValue, ConfigView, IgnoredKey, IgnoredView, OriginView};
pub use timeline::{BarKind, TimelineBar, TimelineLane, TimelineView};
pub use topics::{NoteView, TopicList, TopicSummary, TopicView};
pub use traversal::{CheckpointView, ParallelView, SideBySide, TraversalEvent, TraversalView, VisitedView};
pub use workers::{
    EffectsView, PaceView, RoleList, RoleView, RoleWork, RoleWorkList, WorkerEvent, WorkerLine,
    WorkerTestView,
};
pub use worktrees::{CleanCall, CleanView, CleanedView, WorktreeView};

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
    pub const fn word(self) -> &'static str {
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
    /// Returns the word that JSON uses.
    pub fn word(self) -> &'static str {
        match self {
            StepState::Pending => "pending",
            StepState::Ready => "ready",
            StepState::Working => "working",
            StepState::Checking => "checking",
            StepState::Resting => "resting",
            StepState::Waiting => "waiting",
            StepState::Passed => "passed",
            StepState::Failed => "failed",
            StepState::Skipped => "skipped",
            StepState::Waived => "waived",
            StepState::Warned => "warned",
        }
    }

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
    #[serde(default = "pace::primary")]
    #[schemars(extend("enum" = ["primary", "alternate", "contingent", "emergency"]))]
    pub pace_level: String,
    /// The thing that it waits for.
    pub waiting_on: Option<WaitingOn>,
    /// The process that works on it, or does as soon as there is something to do; `null` where there is none, and of runs that are over.
    #[serde(default)]
    pub worked_on_by: Option<WorkedOnBy>,
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
    /// The trouble that kept its worker from the work, of a resting step.
    #[serde(default)]
    pub trouble: Option<String>,
    /// The amounts that its attempts have used.
    pub spent: SpentView,
    /// When a resting step goes out again, or a working one began, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
}

impl StepView {
    /// Returns its number and title.
    pub fn name(&self) -> StepName {
        StepName { number: self.number, title: self.title.clone() }
    }
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
}

/// Amounts used.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpentView {
    /// Tokens, input and output together, those from a cache included.
    pub tokens: u64,
    /// Those of them that came from a cache, as far as workers tell; `null` in lists. Those of a run within this one are
    /// shown with that run.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    /// US dollars.
    pub usd: f64,
    /// How much of that is an estimate, from tokens and a price, where the agent reported no money; `null` in lists. That of a run
    /// within this one is shown with that run.
    #[serde(default)]
    pub estimated_usd: Option<f64>,
    /// Seconds during which the run was not held.
    pub seconds: f64,
    /// Attempts whose worker reported no usage: shown, not charged.
    pub unmetered: u32,
}

impl From<Spent> for SpentView {
    fn from(spent: Spent) -> SpentView {
        SpentView {
            tokens: spent.tokens,
            cached_tokens: None,
            usd: usd(spent.micro_usd),
            estimated_usd: None,
            seconds: spent.time.as_secs_f64(),
            unmetered: spent.unmetered,
        }
    }
}

/// Limits.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BudgetView {
    /// Tokens.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

impl From<Budget> for BudgetView {
    fn from(budget: Budget) -> BudgetView {
        BudgetView {
            tokens: budget.tokens,
            usd: budget.micro_usd.map(usd),
            seconds: budget.time.map(|time| time.as_secs_f64()),
        }
    }
}

/// The amounts that runs used today: the answer of `GET /v1/spent-today`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpentToday {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
}

/// The use of a day's budget that runs share, and when the next day begins.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DayBudgetView {
    /// The runs that share it: those of a workspace (`project`), or those of its machine (`host`).
    #[schemars(extend("enum" = ["project", "host"]))]
    pub of: String,
    /// The canonical path of the workspace; of a machine's budget that of a workspace which sets it.
    pub workspace: String,
    /// Tokens that were used today.
    pub tokens: u64,
    /// US dollars that were used today.
    pub usd: f64,
    /// The limits, with what people added for today; `null` parts have no limit.
    pub limit: BudgetView,
    /// When the next day begins and nothing of it is used, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub renews_at: String,
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

/// The differences between a workspace and its newest commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkspaceChanges {
    /// The commit.
    pub commit: String,
    /// The files that differ, by path; the plan's own file is left out, since planctl draws marks in it.
    pub files: Vec<ChangedFile>,
    /// How many more files differ.
    pub more: usize,
    /// The lines that differ, as a unified diff.
    pub diff: String,
    /// Says that the diff is cut, since it was too long.
    pub is_cut: bool,
}

/// A file of a workspace that differs from the newest commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ChangedFile {
    /// Its path in the workspace.
    pub path: String,
    /// `added`, `changed`, `deleted`.
    #[schemars(extend("enum" = ["added", "changed", "deleted"]))]
    pub change: String,
    /// How many lines were added; `null` of a file that is no text.
    pub added: Option<u64>,
    /// How many lines were removed.
    pub removed: Option<u64>,
    /// Says that the plan protects it: a contract is judged by it.
    pub protected: bool,
    /// Says that it is protected, and that this step is allowed to change it.
    pub may_change: bool,
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

/// The files that a step is judged by, and those that its worker may change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepFilesView {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// Protected files that decide its contract, and globs of such files.
    pub judged_by: Vec<String>,
    /// Files and globs that its worker may change, also where a contract is judged by them.
    pub may_change: Vec<String>,
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

/// A contract.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ContractView {
    /// The script.
    pub command: String,
    /// The exit code that passes.
    pub exit_code: u8,
    /// How long one evaluation may take, in seconds.
    pub timeout_seconds: f64,
    /// The judge that is asked about the work once the command has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeView>,
}

impl ContractView {
    /// Shows a contract.
    pub fn of(contract: &planctl_engine::Contract) -> ContractView {
        ContractView {
            command: contract.command.clone(),
            exit_code: contract.expect,
            timeout_seconds: contract.timeout.as_secs_f64(),
            judge: contract.judge.as_deref().map(|judge| JudgeView {
                by: judge.by.clone(),
                question: judge.question.clone(),
                alone: contract.is_judged_alone(),
            }),
        }
    }
}

/// A judge of a step's work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct JudgeView {
    /// The model or the role that is asked.
    pub by: String,
    /// The question.
    pub question: String,
    /// Says that its answer alone decides: no command can fail.
    pub alone: bool,
}

/// A judge's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct JudgementView {
    /// The model or the role that was asked.
    pub by: String,
    /// Whether the work passes.
    pub passes: bool,
    /// Why.
    pub reason: String,
    /// Lines that show it.
    pub quotes: Vec<String>,
    /// The tokens that it took, where they are known.
    pub tokens: Option<u64>,
    /// Its cost in US dollars, where that is known.
    pub usd: Option<f64>,
}

/// A failed attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FailureView {
    /// Which try; 0 before the work.
    pub attempt: u16,
    /// The failure, in one line: `contract exit 1`.
    pub what: String,
    /// Protected files that had changed, each with what happened.
    pub tampered: Vec<TamperView>,
    /// The end of standard output.
    pub stdout_tail: String,
    /// The end of standard error.
    pub stderr_tail: String,
}

/// A protected file that is not what was approved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TamperView {
    /// The file, relative to the workspace.
    pub path: String,
    /// `changed`, `deleted`, `created`, `replaced`.
    #[schemars(extend("enum" = ["changed", "deleted", "created", "replaced"]))]
    pub change: String,
    /// The difference from the approved copy, line by line, of an open ask; left out where one of them is no text, or no
    /// copy is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// A protected file that differs from what was approved last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DriftView {
    /// The file, relative to the workspace.
    pub path: String,
    /// `changed`, `deleted`, `created`, `replaced`.
    #[schemars(extend("enum" = ["changed", "deleted", "created", "replaced"]))]
    pub change: String,
    /// The digest that was approved; `null` where the file was not there.
    pub before: Option<String>,
    /// The digest that it has; `null` where it is gone.
    pub now: Option<String>,
}

/// The part of a budget that is short.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ShortfallView {
    /// `tokens`, `usd`, `seconds`.
    #[schemars(extend("enum" = ["tokens", "usd", "seconds"]))]
    pub part: String,
    /// The limit.
    pub limit: f64,
    /// The amount used.
    pub spent: f64,
    /// The amount needed beyond the limit for the next step.
    pub needed: f64,
    /// Steps that have not settled.
    pub steps_remaining: u32,
    /// Of the budget of a day, when the next day begins and it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// A decision that was recorded: the answer of every deciding command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, deserialize_with = "known")]
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

/// The attempts of a run's steps: the answer of `plan logs --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LogView {
    /// The run's name.
    pub run: String,
    /// The attempts, in the order they began.
    pub attempts: Vec<AttemptView>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One attempt: the work and the gate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AttemptView {
    /// The step.
    pub step: StepName,
    /// Which entering of the node.
    pub visit: u16,
    /// Which try.
    pub attempt: u16,
    /// The results of the contract before this try, each time it was evaluated; no verdicts.
    #[serde(default)]
    pub before: Vec<GateView>,
    /// The worker's report, where there is one.
    pub work: Option<WorkView>,
    /// The gate's result, where a gate ran.
    pub gate: Option<GateView>,
    /// The observation that judged it in place of a gate, where one did.
    #[serde(default)]
    pub observed: Option<ObservedView>,
    /// Reports that arrived after their lease had expired: kept to be read, they changed nothing.
    #[serde(default)]
    pub late: Vec<WorkView>,
}

/// An attempt that was judged by the output of a tool, as the session's own program reported it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ObservedView {
    /// When it was judged, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The claim that was checked: `the output contains "On branch"`.
    pub check: String,
    /// Why it does not hold; `null` where it holds.
    pub refuted: Option<String>,
    /// The command whose output it was, where it was a command.
    pub command: Option<String>,
    /// The exit code, where the agent told it.
    pub exit_code: Option<i32>,
    /// The output, as much as is kept.
    pub output: String,
}

/// A worker's report.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkView {
    /// When it reported, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// How its process ended, in words: `exit 0`.
    pub ending: Option<String>,
    /// How long it worked, in seconds.
    pub seconds: f64,
    /// The usage; `null` is unmetered.
    pub spent: Option<SpentView>,
    /// Says that its money was worked out from tokens and a configured price, not reported.
    #[serde(default)]
    pub estimated: bool,
    /// Its words, as much as is kept.
    pub text: String,
    /// How many bytes there were in all.
    pub bytes: u64,
    /// The actions that its permissions denied it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The trouble of its service that cut it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
    /// Its own name of its session, by which a person takes it up (`claude --resume SESSION`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The result of one gate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GateView {
    /// When the verdict was recorded, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// `passed`, `failed`, `timed_out`, `tampered`; before the work no verdict but `red`, `green`, `tampered`.
    #[schemars(extend("enum" = ["passed", "failed", "timed_out", "tampered", "red", "green"]))]
    pub verdict: String,
    /// Says that it passed and proves nothing: the contract passed before the work, too.
    #[serde(default)]
    pub vacuous: bool,
    /// The command that ran.
    pub command: String,
    /// The exit code that passes.
    pub expected: u8,
    /// How it ended, in words: `exit 1`, `signal 9`.
    pub ending: String,
    /// The exit code, where it exited.
    pub exit_code: Option<i32>,
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// The isolation tier that held: `0`, `1a`, `1b` or `2`.
    pub isolation: String,
    /// The commit that HEAD named.
    pub git_head: Option<String>,
    /// Protected files that had changed.
    pub tampered: Vec<TamperView>,
    /// Standard output, as much as is kept.
    pub stdout: String,
    /// How many bytes of it there were in all.
    pub stdout_bytes: u64,
    /// Standard error, as much as is kept.
    pub stderr: String,
    /// How many bytes of it there were in all.
    pub stderr_bytes: u64,
    /// The answer of the contract's judge, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<JudgementView>,
}

/// Why a step is where it is: the answer of `why RUN STEP --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WhyView {
    /// The run's name.
    pub run: String,
    /// The step; of a node that is none, its number is 0.
    pub step: StepView,
    /// The piece of a goal that the step serves, where its plan says so.
    #[serde(default)]
    pub intent: Option<String>,
    /// The events, one sentence each, oldest first.
    pub because: Vec<BecauseView>,
    /// Its attempts, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptSummary>,
    /// Every way that was taken from it, and those that were not, oldest first.
    #[serde(default)]
    pub choices: Vec<ChoiceView>,
    /// The next step.
    #[serde(default, deserialize_with = "known")]
    pub next: Option<Next>,
}

/// One attempt at a step, in short.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AttemptSummary {
    /// Which entering of the node.
    pub visit: u16,
    /// Which try.
    pub attempt: u16,
    /// The last line that its worker said.
    pub said: Option<String>,
    /// How long its worker worked, in seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The usage; `null` is unmetered.
    #[serde(default)]
    pub spent: Option<SpentView>,
    /// Says that its money was worked out from tokens and a configured price, not reported.
    #[serde(default)]
    pub estimated: bool,
    /// The contract's verdict: `passed`, `failed`, `timed_out`, `tampered`.
    #[schemars(extend("enum" = ["passed", "failed", "timed_out", "tampered", null]))]
    pub verdict: Option<String>,
    /// Why it failed, in one line.
    pub failure: Option<String>,
    /// An earlier attempt at whose end the contract printed the same, save for numbers.
    #[serde(default)]
    pub same_as: Option<u16>,
    /// The first line that the contract printed here and not in the attempt before.
    #[serde(default)]
    pub first_difference: Option<String>,
}

/// One sentence of an explanation, with its place in history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BecauseView {
    /// The place in the run's history.
    pub seq: u64,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The attempt that it is about, where it is about one.
    #[serde(default)]
    pub attempt: Option<u16>,
    /// The event.
    pub text: String,
}

/// The context of an agent that drives itself: the answer of `plan context --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ContextView {
    /// The run's name.
    pub run: String,
    /// Which form: `long`, `compact` or `workflow`.
    #[schemars(extend("enum" = ["long", "compact", "workflow"]))]
    pub form: String,
    /// The text; empty where nothing is under way.
    pub text: String,
}

/// The result of an audit: the answer of `audit --json`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditView {
    /// The runs that were checked.
    pub runs: Vec<AuditedRun>,
    /// Names the page of older runs, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl AuditView {
    /// Says whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.runs.iter().all(|run| run.problems.is_empty())
    }
}

/// The result of an audit of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditedRun {
    /// The run's name.
    pub run: String,
    /// Rows of history that were checked.
    pub events: u64,
    /// The hash of the newest row of its chain.
    pub head: Option<String>,
    /// The person who approved what it executes, or the policy: `policy:NAME`.
    #[serde(default)]
    pub approved_by: Option<String>,
    /// The note of that approval; of a policy's, who handed the plan in and what the policy allows.
    #[serde(default)]
    pub approval_note: Option<String>,
    /// Its steps that passed, each with what that rests on.
    #[serde(default)]
    pub passed: Vec<AuditedStep>,
    /// The problems, one line each.
    pub problems: Vec<String>,
}

/// A step that passed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditedStep {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// `proved` by its contract, `confirmed` by a person, `judged` by a model alone, or `observed` by the agent's own program.
    #[schemars(extend("enum" = ["observed", "judged", "confirmed", "proved"]))]
    pub grade: String,
}

/// The database in use: the answer of `db status --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DatabaseView {
    /// `private` or `given`.
    #[schemars(extend("enum" = ["private", "given"]))]
    pub kind: String,
    /// Where it is, without any password.
    pub place: String,
    /// The server's version.
    pub version: Option<String>,
    /// Says that it answers.
    pub is_up: bool,
    /// Migrations applied.
    pub schema: Option<u32>,
    /// Migrations this program knows.
    pub schema_known: Option<u32>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
    /// Warnings, one line each: durability settings that are off.
    pub warnings: Vec<String>,
    /// The role as which planctl works; `null` while the private cluster rests.
    #[serde(default)]
    pub role: Option<String>,
    /// The privileges of that role that planctl does not need.
    #[serde(default)]
    pub role_may: Vec<String>,
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

/// The answer of `version --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VersionView {
    /// The version of planctl.
    pub version: String,
}

/// The features that this machine has and lacks: the answer of `doctor --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DoctorView {
    /// How many checks found what keeps planctl from working.
    pub problems: usize,
    /// How many checks found what a person should look at.
    pub warnings: usize,
    /// The checks.
    pub checks: Vec<HealthView>,
}

/// One check of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HealthView {
    /// The name of the check.
    pub check: String,
    /// The result.
    pub health: Health,
    /// The observation, in one line.
    pub found: String,
    /// How to mend it.
    pub help: Option<String>,
}

/// The result of one check of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Good,
    /// A person should look.
    Warning,
    /// planctl can't work so.
    Problem,
}

/// The names of all JSON Schemas: the answer of `schema --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SchemaList {
    /// The schemas.
    pub schemas: Vec<SchemaName>,
}

/// One JSON Schema.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SchemaName {
    /// The name to give `planctl schema`.
    pub name: String,
    /// The subject of the schema.
    pub describes: String,
}

/// Writes a time as RFC 3339 in UTC, to the microsecond.
pub fn moment(at: Timestamp) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1000)
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{} µs", at.as_micros()))
}

/// Returns millionths of a dollar as dollars.
pub fn usd(micro_usd: u64) -> f64 {
    // A double is exact up to nine billion dollars in millionths.
    micro_usd as f64 / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_with_the_words_of_design_11() {
        for state in RunState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        let words = ["pending", "ready", "working", "checking", "resting", "waiting"];
        let states: Vec<StepState> =
            words.iter().map(|word| serde_json::from_value(Value::from(*word)).unwrap()).collect();
        assert!(states.iter().zip(words).all(|(state, word)| state.word() == word));
    }

    #[test]
    fn the_data_of_an_event_stands_beside_its_fields() {
        let line = EventLine {
            run: "hello-1".into(),
            seq: 7,
            at: moment(Timestamp::from_micros(1_000_000)),
            event: "node_verified".into(),
            node: Some("1".into()),
            visit: Some(1),
            attempt: Some(2),
            cause: "harness.evaluated".into(),
            data: Map::from_iter([("verdict".to_owned(), Value::from("failed"))]),
            sentence: None,
        };
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""at":"1970-01-01T00:00:01Z""#) && text.contains(r#""verdict":"failed""#));
        assert_eq!(serde_json::from_str::<EventLine>(&text).unwrap(), line);
    }
}
