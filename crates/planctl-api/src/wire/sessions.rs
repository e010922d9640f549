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
    /// The task, with what failed before.
    pub prompt: String,
}

/// The run and the guards that hold the sessions of a workspace: the answer of `guide status --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuideView {
    /// The workspace.
    pub workspace: String,
    /// The run to which its sessions are held; `null` where there is none.
    pub run: Option<RunView>,
    /// The guards.
    pub guards: Vec<GuardView>,
    /// The agents whose settings have planctl's hooks.
    pub hooks: Vec<String>,
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
