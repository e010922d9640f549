//! Work on items: claimed, kept, reported.

use std::collections::BTreeMap;
use std::path::PathBuf;

use planctl_engine::{Circumstances, Fault, FaultKind, Hints, NodeId, Profile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TOKENS_MAX;

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
    pub fn with_circumstances(self, circumstances: Option<&Circumstances>) -> CompleteCall {
        let Circumstances { cut_off, denied, session } = circumstances.cloned().unwrap_or_default();
        let cut_off = cut_off.map(|fault| CutOffCall {
            kind: match fault.kind {
                FaultKind::Transient => CutOffKind::Transient,
                FaultKind::Permission => CutOffKind::Permission,
                FaultKind::Permanent => CutOffKind::Permanent,
            },
            reason: fault.message,
        });
        CompleteCall { cut_off, denied, session, ..self }
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

/// A worker's usage.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageCall {
    /// Input tokens, cached ones included.
    #[serde(default)]
    #[schemars(range(max = TOKENS_MAX))]
    pub input_tokens: u64,
    /// Input tokens that came from a cache.
    #[serde(default)]
    #[schemars(range(max = TOKENS_MAX))]
    pub cached_input_tokens: u64,
    /// Output tokens.
    #[serde(default)]
    #[schemars(range(max = TOKENS_MAX))]
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

/// The most denied actions that are kept of a report.
const DENIED_MAX: usize = 20;
