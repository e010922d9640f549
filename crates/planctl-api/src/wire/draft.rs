//! A drafted plan: what it proves, what is open, what it cost, and what running it may take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `plan draft --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftView {
    /// The goal.
    pub goal: String,
    /// Where it stands.
    pub state: DraftState,
    /// The strategy that wrote it.
    pub strategy: DraftStrategy,
    /// The agent or the model that wrote it; null for a pattern.
    pub writer: Option<String>,
    /// The file that was written; null where there is no draft.
    pub file: Option<String>,
    /// The plan's title; null where there is no draft.
    pub title: Option<String>,
    /// How many steps it has.
    pub steps: usize,
    /// How often the writer was asked.
    pub rounds: usize,
    /// How often it was mended after a run failed.
    #[serde(default)]
    pub repairs: usize,
    /// The run that waits for an approval of the mended plan, or goes on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<DraftRevisionView>,
    /// How sure the writer is, from 0 to 1; null where there is no draft.
    pub confidence: Option<f64>,
    /// The requirements of the goal, each with its proof.
    pub requirements: Vec<RequirementView>,
    /// The findings about the last answer; where there is a draft, they are warnings.
    pub findings: Vec<DraftFindingView>,
    /// The questions that nobody answered.
    pub questions: Vec<DraftQuestionView>,
    /// Sentences of the goal that speak to a program; they are no requirements.
    pub suspicions: Vec<SuspicionView>,
    /// The usage of the draft itself.
    pub spent: DraftSpentView,
    /// The usage that a run of the plan may have; null where there is no draft.
    pub estimate: Option<EstimateView>,
}

/// A run that can go on with a plan that was mended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftRevisionView {
    /// The run.
    pub run: String,
    /// The ask that holds it; null where it is paused.
    pub ask: Option<u64>,
    /// Says that the plan is approved, and the run goes on with it.
    pub approved: bool,
    /// The policy that approved it; null where a person did, or nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_policy: Option<String>,
}

/// Where a draft stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DraftState {
    /// It is written, and nothing is open.
    Done,
    /// It is written, and a person has questions to answer.
    Waiting,
    /// The last answer has errors, and the writer was asked as often as it may be.
    GivenUp,
}

/// How a draft is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DraftStrategy {
    /// By the form of the goal.
    Pattern,
    /// By a model.
    Model,
    /// By an agent.
    Agent,
}

/// A requirement and its proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequirementView {
    /// `R1`
    pub id: String,
    /// Its author's words.
    pub text: String,
    /// The steps whose contracts prove it.
    pub steps: Vec<u32>,
    /// These contracts.
    pub contracts: Vec<String>,
}

/// One finding about a draft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftFindingView {
    /// The rule: `form`, `verified`, `red`, `data_flow`, `goal_coverage`, `clarity`, `injection`, `review`.
    pub rule: String,
    /// The code of `plan verify`, where it is one of its findings.
    pub code: Option<String>,
    /// Says that the draft has to be written again.
    pub is_error: bool,
    /// The step.
    pub step: Option<u32>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

/// An open question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftQuestionView {
    /// `Q1`
    pub id: String,
    /// The number of the ask, where it waits in the inbox, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<u64>,
    /// The question.
    pub text: String,
    /// Answers to choose from; may be empty.
    pub options: Vec<String>,
}

/// A sentence of the goal that speaks to a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SuspicionView {
    /// The line of the source; null where it stands in the goal itself.
    pub line: Option<usize>,
    /// The sentence.
    pub text: String,
    /// The reason.
    pub why: String,
}

/// The usage of a draft.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftSpentView {
    /// Answers.
    pub answers: u32,
    /// Answers without a count of tokens.
    pub unmetered: u32,
    /// Answers of a service that counts no tokens: their number was worked out from the length of question and answer.
    #[serde(default)]
    pub estimated: u32,
    /// Tokens that were read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens that came from a cache.
    pub cached_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// US dollars; null where no answer has a price.
    pub usd: Option<f64>,
    /// Calls without an answer; tokens and money count the most that each may have used.
    #[serde(default)]
    pub lost: u32,
}

/// The usage that a run may have.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EstimateView {
    /// Tokens.
    pub tokens: u64,
    /// US dollars; null where nothing says what tokens cost.
    pub usd: Option<f64>,
    /// The model by whose price the money was worked out, and where planctl knows that price from; null where it was not.
    #[serde(default)]
    pub by_price: Option<String>,
    /// Seconds.
    pub seconds: u64,
    /// How many ended runs of this workspace it rests on; 0 is planctl's default for a step.
    pub runs: u64,
    /// How many steps these runs had.
    pub run_steps: u64,
}
