//! The arguments of the tools, from which their schemas are made.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::planning::{NewStep, StepStatus};

/// Of `plan_verify`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanVerify {
    /// The plan's path in the workspace, such as plans/fix.md.
    pub path: String,
    /// Its text, to verify it without a file; the file's text where it is left out.
    #[serde(default)]
    pub text: Option<String>,
    /// The workspace, an absolute path: over HTTP only, where it is needed, together with the text.
    #[serde(default)]
    pub workspace: Option<String>,
}

/// Of `code_explain`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeExplain {
    /// The code, such as P203.
    pub code: String,
}

/// Of `plan_draft`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanDraft {
    /// The path of the file in the workspace, such as plans/fix.md; its name ends with .md.
    pub path: String,
    /// The plan's whole text.
    pub text: String,
}

/// Of `plan_submit`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanSubmit {
    /// The plan's path in the workspace.
    pub path: String,
}

/// Of `run_status`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStatus {
    /// A run's name, @last, or a plan's path; the runs of the workspace are listed where it is left out.
    #[serde(default)]
    pub run: Option<String>,
    /// The workspace, an absolute path: over HTTP, where runs are named by a plan's path.
    #[serde(default)]
    pub workspace: Option<String>,
}

/// Of `run_logs`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLogs {
    /// A run's name, @last, or a plan's path.
    pub run: String,
    /// The number of one step.
    #[serde(default)]
    pub step: Option<u32>,
    /// The number of one attempt.
    #[serde(default)]
    pub attempt: Option<u16>,
    /// The next page, as the answer before named it.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The workspace, an absolute path: over HTTP, where runs are named by a plan's path.
    #[serde(default)]
    pub workspace: Option<String>,
}

/// Of `item_claim`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemClaim {
    /// The roles whose work is wanted; those of the token where it is left out.
    #[serde(default)]
    pub roles: Vec<String>,
    /// How long to wait for work, in seconds: 0 to 30.
    #[serde(default)]
    pub wait_seconds: u64,
    /// How long the lease lasts without a heartbeat, in seconds: 5 to 600.
    #[serde(default)]
    pub lease_seconds: Option<u64>,
}

/// Of `item_heartbeat`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemHeartbeat {
    /// The item, as the claim named it.
    pub item: String,
    /// The token of its lease, from the claim.
    pub token: String,
}

/// Of `item_complete`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemComplete {
    /// The item, as the claim named it.
    pub item: String,
    /// The token of its lease, from the claim.
    pub token: String,
    /// A report of the work.
    pub text: String,
    /// Says that you gave up: the contract runs, and a failing one is not retried.
    #[serde(default)]
    pub gave_up: bool,
}

/// Of `person_ask`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonAsk {
    /// The item, as the claim named it.
    pub item: String,
    /// The token of its lease, from the claim.
    pub token: String,
    /// The question.
    pub question: String,
}

/// Of `planning_setup_plan`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupPlan {
    /// The objective: 1 to 240 ASCII characters.
    pub objective: String,
    /// First steps.
    #[serde(default)]
    pub initial_steps: Vec<NewStep>,
    /// The session whose list is replaced; a session begins where it is left out.
    #[serde(default)]
    pub session: Option<String>,
}

/// Of `planning_add_step`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddStep {
    /// The steps, at least one.
    pub steps: Vec<NewStep>,
    /// The session, as planning_setup_plan returned it.
    #[serde(default)]
    pub session: Option<String>,
}

/// Of `planning_update_step`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateStep {
    /// The step's id, such as S001.
    pub step_id: String,
    /// Another title: 1 to 160 ASCII characters.
    #[serde(default)]
    pub title: Option<String>,
    /// Other details: at most 512 ASCII characters.
    #[serde(default)]
    pub details: Option<String>,
    /// The session, as planning_setup_plan returned it.
    #[serde(default)]
    pub session: Option<String>,
}

/// Of `planning_mark_step`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkStep {
    /// The step's id, such as S001.
    pub step_id: String,
    /// Its status from now on.
    pub status: StepStatus,
    /// A note on it: 1 to 512 ASCII characters.
    #[serde(default)]
    pub note: Option<String>,
    /// The session, as planning_setup_plan returned it.
    #[serde(default)]
    pub session: Option<String>,
}

/// Of `planning_clear_plan` and `planning_read_plan`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfSession {
    /// The session, as planning_setup_plan returned it.
    #[serde(default)]
    pub session: Option<String>,
}
