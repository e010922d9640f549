//! Contracts, judges, and the evidence that they gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// A contract.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ContractView {
    /// The script.
    pub command: String,
    /// The exit code that passes.
    pub exit_code: u8,
    /// How many tests have to pass by the reports that it writes; absent where none are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_tests: Option<u32>,
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
            min_tests: contract.min_tests,
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
    /// Says that the model's service counts none, or that an answer was lost: they are an estimate.
    #[serde(default)]
    pub tokens_estimated: bool,
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
