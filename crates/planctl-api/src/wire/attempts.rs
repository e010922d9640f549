//! The attempts of a step, and why it is where it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::SpentView;
use super::branches::ChoiceView;
use super::evidence::{JudgementView, TamperView};
use super::runs::{StepName, StepView};
use crate::next::{Next, deserialize_known};

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
    /// The exit code, where the agent reported it.
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

/// How many tests passed, beside how many had to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TestsView {
    /// How many passed by the reports that the contract wrote.
    pub passed: u32,
    /// How many had to.
    pub least: u32,
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
    /// The tests by its reports, where its step asks for some and it gave its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsView>,
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
    /// Says that a decision before it led past it, and the run never came to it; `because` and `choices` are of that decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone_past: bool,
    /// Its attempts, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptSummary>,
    /// Every way that was taken from it, and those that were not, oldest first.
    #[serde(default)]
    pub choices: Vec<ChoiceView>,
    /// The next step.
    #[serde(default, deserialize_with = "deserialize_known")]
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
