//! Roles and workers, as JSON says them.

use planctl_harness::Reach;
use planctl_lang::masked;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HealthView;
use planctl_config::{Config, RoleConfig};

/// The agent that serves each role: the answer of `roles ls --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RoleList {
    /// The roles of the configuration, by name.
    pub roles: Vec<RoleView>,
    /// The work that is out for roles, configured or not; `null` where there is no database, or where it does not answer.
    #[serde(default)]
    pub work: Option<Vec<RoleWork>>,
}

/// One role.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RoleView {
    /// Its name.
    pub role: String,
    /// The agent that serves it: `claude`, `codex:-m gpt-x`, `exec:./work.sh`; `null` waits for a worker.
    pub agent: Option<String>,
    /// The permissions of an agent that is known by name: `deny`, `list`, `ask`.
    #[schemars(extend("enum" = ["deny", "list", "ask"]))]
    pub permissions: String,
    /// The tools it may use; `null` is the agent's usual.
    pub allow: Option<Vec<String>>,
    /// How long one attempt may take where the plan does not say, in seconds.
    pub timeout_seconds: Option<f64>,
    /// How long it may print nothing, in seconds.
    pub idle_timeout_seconds: Option<f64>,
    /// The effects that its tools may have.
    pub effects: EffectsView,
    /// The plans it may take, as globs; `null` is all.
    pub plans: Option<Vec<String>>,
    /// The responders when it can't go on.
    pub pace: PaceView,
    /// The hosts that its agent reaches, and no others; `null` is all that the host does, an empty list none.
    pub network: Option<Vec<String>>,
}

/// Roles that have work out, or workers who offer to do theirs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RoleWorkList {
    /// The roles, by name.
    pub roles: Vec<RoleWork>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The work of one role, and who does it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RoleWork {
    /// Its name.
    pub role: String,
    /// Work that nobody has claimed.
    pub queued: u64,
    /// How much of that a daemon does by what is configured for its run; the rest is for workers.
    pub served: u64,
    /// Work that somebody does.
    pub working: u64,
    /// How old the oldest unclaimed work is, in seconds.
    pub oldest_queued_seconds: Option<u64>,
    /// The workers of the role that were seen within a minute and are not paused.
    pub workers: Vec<String>,
}

/// The effects that tools may have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EffectsView {
    /// Without a person.
    pub allow: Vec<String>,
    /// Never without a person.
    pub deny: Vec<String>,
}

/// The responder of each level: a role, `human`, or nobody.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PaceView {
    /// Answers first.
    pub alternate: Option<String>,
    /// Answers where the alternate can't.
    pub contingent: Option<String>,
    /// Answers last.
    pub emergency: Option<String>,
}

impl RoleList {
    /// Lists the roles of a configuration.
    pub fn of(config: &Config) -> RoleList {
        let roles = config.roles.iter().map(|(role, settings)| role_view(role.as_str(), settings));
        RoleList { roles: roles.collect(), work: None }
    }
}

fn role_view(role: &str, settings: &RoleConfig) -> RoleView {
    let pace = &settings.pace;
    RoleView {
        role: role.to_owned(),
        agent: settings.agent.as_ref().map(|agent| masked(&agent.to_string()).into_owned()),
        permissions: settings.permissions.mode.as_str().to_owned(),
        allow: settings.permissions.allow.clone(),
        timeout_seconds: settings.timeout.map(|span| span.as_secs_f64()),
        idle_timeout_seconds: settings.idle_timeout.map(|span| span.as_secs_f64()),
        effects: EffectsView {
            allow: settings.effects.allow.iter().cloned().collect(),
            deny: settings.effects.deny.iter().cloned().collect(),
        },
        plans: settings.plans.as_ref().map(|plans| plans.iter().map(ToString::to_string).collect()),
        pace: PaceView {
            alternate: pace.alternate.as_ref().map(ToString::to_string),
            contingent: pace.contingent.as_ref().map(ToString::to_string),
            emergency: pace.emergency.as_ref().map(ToString::to_string),
        },
        network: match &settings.network {
            Reach::Host => None,
            Reach::Nothing => Some(Vec::new()),
            Reach::Hosts(hosts) => Some(hosts.iter().map(ToString::to_string).collect()),
        },
    }
}

/// The result of a worker's small test task: the answer of `worker test --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkerTestView {
    /// The worker that was tested: `codex:-m gpt-x`, `exec:./work.sh`.
    pub worker: String,
    /// Says that nothing essential failed.
    pub works: bool,
    /// How long it worked, in seconds.
    pub seconds: f64,
    /// The checks.
    pub checks: Vec<HealthView>,
}

/// An event of a worker: a line of `worker run --json`. Fields that do not apply to an event are `null`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkerLine {
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The kind of event.
    pub event: WorkerEvent,
    /// The worker's name.
    pub worker: String,
    /// The item.
    pub item: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// The step's number.
    pub step: Option<u32>,
    /// Which try.
    pub attempt: Option<u16>,
    /// The role.
    pub role: Option<String>,
    /// How long it worked, in seconds.
    pub seconds: Option<f64>,
    /// Tokens used.
    pub tokens: Option<u64>,
    /// US dollars used.
    pub usd: Option<f64>,
    /// How its process ended.
    pub exit_code: Option<i32>,
    /// The consequence or the error, in one line.
    pub message: Option<String>,
}

/// The kinds of events of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerEvent {
    /// It asks for work.
    Ready,
    /// It began an item.
    Started,
    /// It reported that it worked; the contract decides.
    Worked,
    /// It reported that it could not work.
    Failed,
    /// It asked a person.
    Asked,
    /// It gave the item back.
    Released,
    /// Its lease ended or the run was stopped: nobody waits for a report.
    Lost,
    /// Its report was refused.
    Refused,
    /// The daemon does not answer; it is asked again.
    Away,
    /// It claims no more and finishes what it has.
    Draining,
    /// It ended.
    Ended,
}
