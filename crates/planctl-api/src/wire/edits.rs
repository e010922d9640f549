//! The plan of a run that an ask holds, while a person edits it away from its file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draft::RequirementView;
use super::{AskView, PlanDiffView};

/// The plan that an ask lets a person edit: the answer of `GET /v1/approvals/{ask}/edit`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanEditView {
    /// The ask that holds the run.
    pub ask: AskView,
    /// The text to begin with: that of the plan's file, with the step that a worker proposes.
    pub text: String,
    /// The digest of the file's canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub file: String,
    /// Says that the file differs from the text that runs.
    pub is_file_changed: bool,
    /// Why the step that a worker proposes cannot be put into the text.
    pub unfit: Option<String>,
}

/// An edited text, verified where its run works and compared with the text that runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanEditCheck {
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// The findings, in the order of the text.
    pub findings: Vec<PlanEditFinding>,
    /// Why the run can't go on with it; nothing where it can be approved.
    pub refused: Option<String>,
    /// The difference to the text that runs.
    pub diff: PlanDiffView,
}

/// The findings about a kept text, as it would run where its plan lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanFindings {
    /// The findings, in the order of the text.
    pub findings: Vec<PlanEditFinding>,
    /// The requirements of the goal for which it was drafted, each with its proof; empty where it was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementView>,
}

/// One finding about a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanEditFinding {
    /// The line that it is about, counted from 1; nothing where it is about the whole text.
    pub line: Option<usize>,
    /// The stable code: `P104`.
    pub code: String,
    /// Says that it has to be mended before the text is approved.
    pub is_error: bool,
    /// The problem, in one line.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}
