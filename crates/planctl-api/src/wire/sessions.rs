//! Guided mode: the work of an interactive agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{RunState, RunView, WaitingOn};

/// The work of a session: the run where it stands, and the steps that the session works on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionView {
    /// The run.
    pub run: RunView,
    /// The steps that the session works on; several where branches go side by side.
    pub steps: Vec<SessionStep>,
    /// Says that an agent which is no session works on a step, or its work is judged: a reviewer, for whom the session waits.
    #[serde(default)]
    pub others_work: bool,
}

impl SessionView {
    /// Says whether nothing goes on before a person acts, or ever.
    pub fn is_settled(&self) -> bool {
        let run = &self.run;
        run.state.is_over()
            || matches!(run.state, RunState::AwaitingApproval | RunState::Waiting | RunState::Paused)
            || run.waiting_on.as_ref().is_some_and(WaitingOn::is_for_people)
    }
}

/// A step that a session works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionStep {
    /// The item: one for each attempt.
    pub item: String,
    /// The step's number.
    pub step: u32,
    /// Its title.
    pub title: String,
    /// Which try.
    pub attempt: u16,
    /// How many tries it has.
    pub attempts_max: u16,
    /// The folder to work in.
    pub workspace: String,
    /// The check of an output that the step passes by, where it has no contract; `null` where a contract or a person decides.
    #[serde(default)]
    pub check: Option<CheckView>,
    /// The task, with what failed before.
    pub prompt: String,
}

/// A check of an output that the session's own program reports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CheckView {
    /// The claim that is checked: `the output contains "On branch"`.
    pub what: String,
    /// Says that the output of any tool is looked at, not of commands alone.
    pub takes_any_tool: bool,
}

/// The run and the guards that hold the sessions of a workspace: the answer of `guide status --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuideView {
    /// The workspace.
    pub workspace: String,
    /// The run to which its sessions are held; `null` where there is none.
    pub run: Option<RunView>,
    /// Where the plan stands, with the names of seed 3; `null` where there is none.
    #[serde(default)]
    pub state: Option<GuideState>,
    /// The guards.
    pub guards: Vec<GuardView>,
    /// The agents whose settings have planctl's hooks.
    pub hooks: Vec<String>,
}

/// Where the plan of a guided session stands (H-15). Steps are counted from 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuideState {
    /// The library's entry, else the plan's path.
    pub plan_id: String,
    /// The plan's title.
    pub plan_name: String,
    /// The first of the domains that the plan is for; empty where it names none.
    pub domain: String,
    /// The step to work on; `null` where none is.
    pub current_step: Option<u32>,
    /// The steps that are done.
    pub steps_completed: Vec<u32>,
    /// The steps that failed or were left out.
    pub steps_failed: Vec<u32>,
    /// How many steps there are.
    pub total_steps: u32,
    /// After how many turns without progress a person is asked; `null` where the plan does not count them.
    pub stale_after_turns: Option<u32>,
    /// The turns since the plan got further: a turn is a session's report that its contract or check judged.
    pub turns_since_progress: u32,
    /// The turn at which the plan began.
    pub started_turn: Option<u32>,
    /// The output of the newest command that the session's program reported, where a step passes by one; else empty.
    pub last_tool_output: String,
    /// How often a contract or a check failed (H-39).
    pub verification_failures: u32,
    /// How often a tool of the session failed, which decides nothing (H-39).
    pub tool_failures: u32,
}

/// The guards of a workspace: the answer of `guard ls --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuardList {
    /// The guards.
    pub guards: Vec<GuardView>,
}

/// A command that must succeed before a session may stop as done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuardView {
    /// Its number in the workspace.
    pub number: u32,
    /// The command.
    pub command: String,
    /// The files that it is about; empty where it is about all.
    pub paths: Vec<String>,
    /// Whether it `holds`, `fails`, or was not tried yet (`untried`).
    #[schemars(extend("enum" = ["holds", "fails", "untried"]))]
    pub state: String,
    /// Its run, while it fails.
    pub run: Option<String>,
}
