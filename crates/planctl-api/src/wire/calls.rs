//! Calls of clients to the daemon, and its answers where no command prints the same.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{
    Answer, Budget, Circumstances, Digest, Fault, FaultKind, Graph, Hints, NodeId, Profile, Role,
};
use planctl_harness::Baseline;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{BudgetView, DriftView};
use planctl_config::{Agent, Config};

/// The most denied actions that are kept of a report.
const DENIED_MAX: usize = 20;

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
    /// Roles of the plan that no configuration serves and somebody does: this daemon by its command line, or a worker that was
    /// seen within a minute.
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

/// Answers an ask.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerCall {
    /// Where, and under which configuration. A plan is approved as its ask shows it; the values given here must be the same.
    #[serde(default)]
    pub place: PlaceCall,
    /// The answer: `{"answer": "retry"}`, `{"answer": "reassign", "role": "reviewer"}`, …
    pub answer: AnswerWord,
    /// Why, or words for the worker.
    #[serde(default)]
    pub note: Option<String>,
    /// With `approve`: protected files that are approved as they are although they differ from what was approved last,
    /// `FILE` or `FILE@DIGEST`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_changed: Vec<String>,
}

/// An answer by its word. Those without anything to say besides are empty objects, so that a field too many is refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerWord {
    /// The plan may run.
    Approve {},
    /// The plan may not run.
    Reject {},
    /// Try once more, with the note in the prompt.
    Retry {},
    /// Leave the step out.
    Skip {},
    /// Let the step count as met; shows for ever.
    Waive {},
    /// End the run as failed.
    Abort {},
    /// Pause the run until another revision is approved.
    Revise {},
    /// Give the step to another role and try once more.
    Reassign {
        /// The role.
        role: String,
    },
    /// Add to the budget.
    Raise {
        /// How much.
        by: RaiseCall,
    },
    /// Answer the worker's question; the next attempt spends no allowance.
    Reply {},
    /// Accept protected files as the gate found them, for this step alone, and have its contract judge what was done.
    Allow {
        /// Which; all that the ask names where it is left out.
        #[serde(default)]
        files: Vec<String>,
    },
    /// Put the approved copies of protected files back, and try once more.
    Restore {},
    /// Answer what the plan asks.
    Choose {
        /// One of the options; where there are none, any text.
        option: String,
    },
}

/// How much is added to a budget.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RaiseCall {
    /// Tokens, input and output together.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default)]
    pub usd: Option<f64>,
    /// Seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
}

impl AnswerWord {
    /// Returns the word for an answer.
    pub fn of(answer: &Answer) -> AnswerWord {
        match answer {
            Answer::Approve => AnswerWord::Approve {},
            Answer::Reject => AnswerWord::Reject {},
            Answer::Retry => AnswerWord::Retry {},
            Answer::Skip => AnswerWord::Skip {},
            Answer::Waive => AnswerWord::Waive {},
            Answer::Abort => AnswerWord::Abort {},
            Answer::Revise => AnswerWord::Revise {},
            Answer::Reassign { role } => AnswerWord::Reassign { role: role.as_str().to_owned() },
            Answer::Raise { by } => {
                let BudgetView { tokens, usd, seconds } = BudgetView::from(*by);
                AnswerWord::Raise { by: RaiseCall { tokens, usd, seconds } }
            }
            Answer::Reply => AnswerWord::Reply {},
            Answer::Allow { files } => AnswerWord::Allow { files: files.clone() },
            Answer::Restore => AnswerWord::Restore {},
            Answer::Choose { option } => AnswerWord::Choose { option: option.clone() },
        }
    }

    /// Returns the answer that it means.
    ///
    /// # Errors
    ///
    /// Names the number that is out of bounds.
    pub fn answer(self) -> Result<Answer, OutOfBounds> {
        Ok(match self {
            AnswerWord::Approve {} => Answer::Approve,
            AnswerWord::Reject {} => Answer::Reject,
            AnswerWord::Retry {} => Answer::Retry,
            AnswerWord::Skip {} => Answer::Skip,
            AnswerWord::Waive {} => Answer::Waive,
            AnswerWord::Abort {} => Answer::Abort,
            AnswerWord::Revise {} => Answer::Revise,
            AnswerWord::Reassign { role } => Answer::Reassign { role: Role::new(role) },
            AnswerWord::Raise { by } => Answer::Raise {
                by: Budget {
                    tokens: by.tokens,
                    micro_usd: by.usd.map(|usd| micro_usd("usd", usd)).transpose()?,
                    time: by.seconds.map(|seconds| duration("seconds", seconds)).transpose()?,
                },
            },
            AnswerWord::Reply {} => Answer::Reply,
            AnswerWord::Allow { files } => Answer::Allow { files },
            AnswerWord::Restore {} => Answer::Restore,
            AnswerWord::Choose { option } => Answer::Choose { option },
        })
    }
}

/// The most money that a call names, in US dollars.
const USD_MAX: f64 = 1e9;
/// The longest time that a call names, in seconds: a hundred years.
const SECONDS_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// A number that nobody means.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("`{field}` is from 0 to {most}, found {found}")]
pub struct OutOfBounds {
    field: &'static str,
    most: f64,
    found: f64,
}

/// Reads US dollars as the millionths in which they are counted.
pub fn micro_usd(field: &'static str, usd: f64) -> Result<u64, OutOfBounds> {
    within(field, usd, USD_MAX).map(|usd| (usd * 1e6).round() as u64)
}

/// Reads seconds.
pub fn duration(field: &'static str, seconds: f64) -> Result<Duration, OutOfBounds> {
    within(field, seconds, SECONDS_MAX).map(Duration::from_secs_f64)
}

fn within(field: &'static str, found: f64, most: f64) -> Result<f64, OutOfBounds> {
    if (0.0..=most).contains(&found) { Ok(found) } else { Err(OutOfBounds { field, most, found }) }
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

/// Claims an item.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimCall {
    /// The roles whose work is wanted, at most 100 of at most 64 characters; those of the token where it is left out.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The plans that a role takes, by path or name, with globs, at most 1000 in all; a role that is not named takes all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<String, Vec<String>>,
    /// The worker's own name, for people: at most 100 characters.
    #[serde(default)]
    pub worker: Option<String>,
    /// How long the lease lasts without a heartbeat, in seconds: 5 to 600, 60 where it is left out.
    #[serde(default)]
    pub lease_seconds: Option<u64>,
    /// A description of the agent, in a line, for people: at most 200 characters.
    #[serde(default)]
    pub agent: Option<String>,
    /// Where it runs, for people: at most 200 characters.
    #[serde(default)]
    pub host: Option<String>,
    /// The version of its program, for people: at most 200 characters.
    #[serde(default)]
    pub version: Option<String>,
    /// How many items it works on at once, for people: 1 to 1000.
    #[serde(default)]
    pub capacity: Option<i32>,
}

/// A claimed item, with all that its worker needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClaimedView {
    /// The item.
    pub item: String,
    /// The generation of the lease.
    pub generation: i64,
    /// The proof of the lease: the bearer token of the item's own routes.
    pub token: String,
    /// When the lease ends unless it is renewed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub lease_until: String,
    /// How often to send a heartbeat, in seconds.
    pub heartbeat_seconds: u64,
    /// The work itself.
    pub work: WorkItem,
    /// The run's name.
    pub run: String,
    /// The step's number.
    pub step: u32,
    /// The step's title.
    pub step_title: String,
    /// The node's name in the graph.
    #[serde(default)]
    pub node: String,
    /// Which try this is.
    pub attempt: u16,
    /// How many tries the plan allows.
    pub attempts_max: u16,
    /// The role it is for.
    pub role: String,
    /// The agent's prompt.
    pub prompt: String,
    /// The effects that the role's tools may not have, as the prompt says.
    #[serde(default)]
    pub denied: Vec<String>,
    /// The workspace on the host that has it.
    pub workspace: PathBuf,
    /// The id of the host that has the workspace.
    pub host: String,
    /// The subscribed files, as they stand in the prompt.
    pub context: Vec<SubscriptionView>,
    /// When the work is over, RFC 3339; no heartbeat extends it.
    #[schemars(extend("format" = "date-time"))]
    pub deadline: String,
    /// The parent of the worker's own spans, by W3C Trace Context; absent where no traces are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// How long it may work, in seconds.
    pub deadline_seconds: f64,
    /// The rest of the run's budget.
    pub budget: LeftView,
}

/// The work item of the seeds (DESIGN 7).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkItem {
    /// The role.
    pub agent_id: String,
    /// `CODE` or `REVIEW`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The subject of the item.
    pub payload: WorkPayload,
    /// The agent's input.
    pub input: WorkInput,
}

/// The subject of a work item.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkPayload {
    /// The plan's path.
    pub plan_id: String,
    /// The step's number.
    pub step: u32,
    /// The subscriptions that it reads: `file:PATH`, `topic:NAME`.
    pub subscriptions: Vec<String>,
    /// The plan's requests to the agent; `null` where it makes none.
    #[serde(default)]
    pub profile: Option<ProfileView>,
}

/// A plan's requests to the agent: hints for the worker, which decide nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProfileView {
    /// The name of a set of tools or settings that the worker knows.
    #[serde(default)]
    pub name: Option<String>,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The provider of the model.
    #[serde(default)]
    pub provider: Option<String>,
    /// How much the model is to think: `low`, `high`.
    #[serde(default)]
    pub effort: Option<String>,
    /// The thread that the work belongs to, for workers that keep sessions.
    #[serde(default)]
    pub thread: Option<String>,
}

impl ProfileView {
    /// Returns what a plan asks, where it asks something.
    pub fn of(profile: Option<&Profile>, thread: Option<&str>) -> Option<ProfileView> {
        let profile = profile.cloned().unwrap_or_default();
        let Profile { name, model, provider, effort, .. } = profile;
        let view = ProfileView { name, model, provider, effort, thread: thread.map(str::to_owned) };
        (view != ProfileView::default()).then_some(view)
    }

    /// Returns it as a worker's process is given it.
    pub fn profile(&self) -> Profile {
        let ProfileView { name, model, provider, effort, .. } = self.clone();
        Profile { name, model, provider, effort, ..Profile::default() }
    }
}

/// The input of a work item's agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkInput {
    /// The task, its context, and what failed before.
    pub prompt: String,
}

/// A subscribed file, as it stands in the prompt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SubscriptionView {
    /// The subscription: `file:src/auth.py`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its path in the workspace, of a file.
    pub path: Option<String>,
    /// The digest of the text that was read, where there was one.
    pub sha256: Option<String>,
}

/// The rest of a run's budget; `null` is without limit.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeftView {
    /// Tokens.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
}

/// The answer to a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HeartbeatView {
    /// When the lease ends unless it is renewed, RFC 3339; `null` where nobody waits for the work any more.
    #[schemars(extend("format" = "date-time"))]
    pub lease_until: Option<String>,
    /// Says that the run was stopped: end the work, nobody waits for a report.
    pub cancel: bool,
}

/// A worker's report of its work. It decides nothing: the contract does.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteCall {
    /// Its last words.
    #[serde(default)]
    pub text: String,
    /// Says that it gave up: the contract runs, and a failing one is not retried.
    #[serde(default)]
    pub gave_up: bool,
    /// The usage.
    #[serde(default)]
    pub usage: Option<UsageCall>,
    /// How its process ended, for the record: an exit code.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// How long it worked, in seconds; since the claim where it is left out.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The label of the edge it prefers, where the plan branches; it passes no contract.
    #[serde(default)]
    pub preferred_label: Option<String>,
    /// The nodes it suggests to go on with, the best first.
    #[serde(default)]
    pub suggested_next_ids: Vec<String>,
    /// Values that conditions of the plan may look at, by name.
    #[serde(default)]
    pub context_updates: BTreeMap<String, String>,
    /// The text of a step that it proposes to come after its own: `### Title`, then its fields; a person decides.
    #[serde(default)]
    pub insert_step: Option<String>,
    /// The trouble that cut the work off, where some did: a contract that fails then costs no attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOffCall>,
    /// The actions that the worker's permissions denied it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The worker's own name of its session, by which a person takes it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The trouble that cut a worker's work off.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CutOffCall {
    /// The kind of trouble.
    pub kind: CutOffKind,
    /// The reason.
    pub reason: String,
}

/// The kinds of trouble that cut work off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutOffKind {
    /// A rate limit, the network: later it may work; spends a delivery, not an attempt.
    Transient,
    /// A login ran out, or a right is missing: a person is asked.
    Permission,
    /// As things are it can't go on: a person is asked.
    Permanent,
}

impl CompleteCall {
    /// Returns an empty report that says this of the way on.
    pub fn of(hints: Option<&Hints>) -> CompleteCall {
        let hints = hints.cloned().unwrap_or_default();
        CompleteCall {
            text: String::new(),
            gave_up: false,
            usage: None,
            exit_code: None,
            seconds: None,
            preferred_label: hints.label,
            suggested_next_ids: hints.suggested.iter().map(|node| node.as_str().to_owned()).collect(),
            context_updates: hints.context,
            insert_step: hints.insert_step,
            ..CompleteCall::default()
        }
    }

    /// Returns what it says of the circumstances, where it says something.
    pub fn circumstances(&self) -> Option<Box<Circumstances>> {
        let cut_off = self.cut_off.as_ref().map(|cut_off| {
            let kind = match cut_off.kind {
                CutOffKind::Transient => FaultKind::Transient,
                CutOffKind::Permission => FaultKind::Permission,
                CutOffKind::Permanent => FaultKind::Permanent,
            };
            Fault::new(kind, cut_off.reason.clone())
        });
        let denied = self.denied.iter().take(DENIED_MAX).cloned().collect();
        let circumstances = Circumstances { cut_off, denied, session: self.session.clone() };
        (circumstances != Circumstances::default()).then(|| Box::new(circumstances))
    }

    /// Says this of the circumstances.
    #[must_use]
    pub fn with_circumstances(self, told: Option<&Circumstances>) -> CompleteCall {
        let told = told.cloned().unwrap_or_default();
        let cut_off = told.cut_off.map(|fault| CutOffCall {
            kind: match fault.kind {
                FaultKind::Transient => CutOffKind::Transient,
                FaultKind::Permission => CutOffKind::Permission,
                FaultKind::Permanent => CutOffKind::Permanent,
            },
            reason: fault.message,
        });
        CompleteCall { cut_off, denied: told.denied, session: told.session, ..self }
    }

    /// Returns what it says of the way on, where it says something.
    pub fn hints(&self) -> Option<Box<Hints>> {
        let hints = Hints {
            label: self.preferred_label.clone(),
            suggested: self.suggested_next_ids.iter().map(|node| NodeId::new(node.as_str())).collect(),
            context: self.context_updates.clone(),
            insert_step: self.insert_step.clone(),
        };
        (hints != Hints::default()).then(|| Box::new(hints))
    }
}

/// A worker's usage.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageCall {
    /// Input tokens, cached ones included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Input tokens that came from a cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Output tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// US dollars, where they are known: at most 1000000000.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Says that the money was worked out from the model's price.
    #[serde(default)]
    pub estimated: bool,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
}

/// Says why the work could not be done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailCall {
    /// The kind of trouble.
    #[serde(default)]
    pub kind: FailKind,
    /// The reason.
    pub reason: String,
    /// The usage.
    #[serde(default)]
    pub usage: Option<UsageCall>,
    /// How long it worked, in seconds; since the claim where it is left out.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// The kinds of trouble that keep a worker from its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailKind {
    /// The worker gave up on the task: the contract decides, and a failing one is not retried.
    #[default]
    GaveUp,
    /// A rate limit, the network: later it may work; spends a delivery, not an attempt.
    Transient,
    /// A permission or a login is missing: a person is asked at once.
    Permission,
    /// It can't start as things are, such as a program that is not installed: a person is asked at once.
    Permanent,
    /// It ran past its deadline and was ended: spends an attempt.
    Overran,
    /// It printed nothing for too long and was ended: spends an attempt.
    Silent,
}

/// Asks a person something.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskCall {
    /// The question.
    pub question: String,
    /// The usage so far.
    #[serde(default)]
    pub usage: Option<UsageCall>,
}

/// Leaves a note in a topic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteCall {
    /// The text of the note.
    pub text: String,
}

/// A piece of a worker's output, for people who watch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogCall {
    /// The text.
    pub text: String,
}

/// The daemon's answer to a worker's report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AcceptedView {
    /// The item.
    pub item: String,
    /// The consequence, in one line.
    pub follows: String,
    /// Says that the very same word was heard before and nothing changed.
    pub repeated: bool,
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
