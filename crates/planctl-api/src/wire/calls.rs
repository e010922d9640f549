//! Calls of clients to the daemon, and its answers where no command prints the same.

mod answers;
mod items;

use std::path::PathBuf;

use planctl_config::{Agent, Config};
use planctl_engine::{Digest, Graph};
use planctl_harness::Baseline;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::DriftView;

pub use answers::{AnswerCall, AnswerWord, OutOfBounds, RaiseCall, TOKENS_MAX, duration, micro_usd, tokens};
pub use items::{
    AcceptedView, AskCall, ClaimCall, ClaimedView, CompleteCall, CutOffCall, CutOffKind, FailCall, FailKind,
    HeartbeatView, LeftView, LogCall, NoteCall, ProfileView, SubscriptionView, UsageCall, WorkInput,
    WorkItem, WorkPayload,
};

/// A plan as it is handed in: its text, where it lies, and the configuration that is approved with it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanCall {
    /// The workspace on the daemon's host: an absolute path.
    pub workspace: PathBuf,
    /// The plan's path, relative to the workspace where it lies inside.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The folder of the workspace in which it works, of a plan whose run is within another; else the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The effective configuration; the defaults where it is left out.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub config: Option<Config>,
    /// The agent that serves every role, so that no role is unknown: `{"exec": COMMAND}`, or an agent by its name.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub worker: Option<Agent>,
}

/// Where a call is about and under which configuration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceCall {
    /// The workspace on the daemon's host.
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    /// The effective configuration.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub config: Option<Config>,
}

/// Asks where a plan stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StandingCall {
    /// The plan.
    pub plan: PlanCall,
    /// Says that a new run of a plan that is done is meant.
    #[serde(default)]
    pub again: bool,
}

/// Where a plan stands before anything is done with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StandingView {
    /// The text that was approved last, where it is another one.
    pub approved_before: Option<String>,
    /// Says that nothing runs before a person approves this text.
    pub needs_approval: bool,
    /// The policy that approves it when it is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_policy: Option<String>,
    /// Why no approval policy approves it, a line for each; none where there are no policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_policy: Vec<String>,
    /// Says that the newest run carries out this very text: it is taken up, or over.
    #[serde(default)]
    pub goes_on: bool,
    /// Protected files that differ from what was approved last; an approval has to name them.
    #[serde(default)]
    pub drift: Vec<DriftView>,
    /// Protected files that are not as the newest commit has them.
    #[serde(default)]
    pub uncommitted: Vec<String>,
    /// Roles of the plan that no configuration serves and somebody does: the run that goes on by the worker that it began with,
    /// this daemon by its command line, or a worker that was seen within a minute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<String>,
}

/// Approves or rejects a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideCall {
    /// The plan.
    pub plan: PlanCall,
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
    /// Protected files that are approved as they are although they differ from what was approved last: `FILE` or
    /// `FILE@DIGEST`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_changed: Vec<String>,
    /// The id of the run that the plan repairs: a policy approves it in the caller's place, or nothing is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<String>,
}

/// Compares two texts of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffCall {
    /// The plan.
    pub plan: PlanCall,
    /// The older text: `approved`, `run`, a run's name, or the beginning of a revision's digest.
    pub since: String,
    /// The newer text; the one handed in where it is left out.
    #[serde(default)]
    pub until: Option<String>,
}

/// Starts a run of a plan, or takes up the one that is not finished.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartCall {
    /// The plan.
    pub plan: PlanCall,
    /// How.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub start: Start,
}

/// Runs a plan that is known, as its file has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunKnownCall {
    /// The digest of the text that is meant.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Says that a done plan shall run once more.
    #[serde(default)]
    pub again: bool,
}

/// A run that is to be started.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The worker that serves every role, in place of the configured ones.
    #[serde(default)]
    pub worker: Option<Agent>,
    /// Says that the person at the door approves the text, with their note.
    #[serde(default)]
    pub approve: Option<Approving>,
    /// Says that a done plan shall run once more.
    #[serde(default)]
    pub again: bool,
    /// Says that what the plan itself asks answers itself, also when the run is taken up again (DOT H7).
    #[serde(default)]
    pub auto_answer: bool,
    /// Says that steps whose role nobody serves here wait for a worker, as beside a daemon they can.
    #[serde(default)]
    pub waits_for_workers: bool,
}

/// The approval that is given with a start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approving {
    /// Why, for the record.
    #[serde(default)]
    pub note: Option<String>,
    /// Protected files that are approved as they are now although they differ from what was approved last, each as `FILE`
    /// or `FILE@DIGEST` with the beginning of the digest that was looked at.
    #[serde(default)]
    pub accept_changed: Vec<String>,
    /// The worker that serves every role, where the approval is of that and nothing else.
    #[serde(skip)]
    pub worker: Option<Agent>,
}

impl Approving {
    /// Approves with a note, and no protected file that differs.
    pub fn with_note(note: Option<&str>) -> Approving {
        Approving { note: note.map(str::to_owned), ..Approving::default() }
    }
}

/// The result of a start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "started", rename_all = "snake_case")]
pub enum StartedView {
    /// A run is on its way.
    Ready {
        /// Its id.
        id: String,
        /// Its name.
        run: String,
        /// Says that it had begun before and goes on.
        is_taken_up: bool,
    },
    /// The plan's run is done, and nobody asked for another.
    AlreadyDone {
        /// The run's name.
        run: String,
    },
    /// A person has to approve first.
    NeedsApproval {
        /// The id of the run that waits.
        id: String,
        /// Its name.
        run: String,
        /// The ask's number.
        ask: u64,
        /// Why no approval policy approved it, a line for each; none where there are no policies.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        no_policy: Vec<String>,
    },
    /// The text is not the one that was approved.
    ChangedSinceApproval {
        /// The text that was approved.
        approved_text: String,
        /// The unfinished run that goes on with it, where there is one.
        run: Option<String>,
    },
}

/// Takes a run up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeCall {
    /// Where, and under which configuration.
    #[serde(default)]
    pub place: PlaceCall,
    /// The agent that serves every role from now on.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub worker: Option<Agent>,
    /// The number of a step that passed and is to be done anew, with all that follows it.
    #[serde(default)]
    pub from: Option<u32>,
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
}

/// Pauses a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseCall {
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
}

/// Ends the turn of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnCall {
    /// The item whose turn ended.
    pub item: String,
    /// The last words of the session; they decide nothing.
    #[serde(default)]
    pub last_words: String,
    /// Where a person has to be asked before the session goes on, what.
    #[serde(default)]
    pub question: Option<String>,
    /// The output that the session's program reported, for a step whose plan checks one.
    #[serde(default)]
    pub observation: Option<ObservationCall>,
}

/// The output of a tool, as a session's own program reported it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationCall {
    /// The command, where the tool ran one.
    #[serde(default)]
    pub command: Option<String>,
    /// The exit code, where it is told.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Both streams; of a long output the beginning and the end.
    pub output: String,
    /// Says that the middle of the output is left out.
    #[serde(default)]
    pub is_cut: bool,
}

/// Cancels a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelCall {
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
}

/// Acknowledges that a run failed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeCall {
    /// Why it is left as it is.
    #[serde(default)]
    pub note: Option<String>,
}

/// Verifies an edited text of the plan that an ask holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditCheckCall {
    /// The plan's whole text.
    pub text: String,
}

/// Approves an edited text of the plan that an ask holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditCall {
    /// The plan's whole text.
    pub text: String,
    /// The digest of the file's canonical text as it was when the edit began; where the file is another by now, nothing is
    /// written.
    pub file: String,
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
}
/// A run by its id and name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunName {
    /// Its id.
    pub id: String,
    /// Its name.
    pub run: String,
}

/// The plan as a run executes it: the stored revision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunPlanView {
    /// The plan's file on the daemon's host.
    pub file: PathBuf,
    /// Its path in the workspace.
    pub path: String,
    /// The text that runs.
    pub source: String,
    /// Its digest.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// Its compiled graph.
    #[schemars(with = "serde_json::Value")]
    pub graph: Graph,
    /// The protected files as they were approved.
    #[schemars(with = "serde_json::Value")]
    pub baseline: Baseline,
}

/// The meaning of a problem's `type`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProblemView {
    /// The stable code, as a URI reference.
    #[serde(rename = "type")]
    pub kind: String,
    /// The HTTP status that comes with it.
    pub status: u16,
    /// The code in words.
    pub title: String,
}

/// An empty body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}
