//! Roles: the agent that serves one, its permissions, the plans that it may take, and its responders when it can't go on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use planctl_engine::{Level, Responder};
use planctl_glob::Glob;
use planctl_harness::{KnownAgent, NamedAgent, NotKnown, PermissionMode, Permissions, Program, Reach};
use planctl_lang::did_you_mean;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The settings of one role.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleConfig {
    /// The agent that does the work; without one the role waits for a worker.
    pub agent: Option<Agent>,
    /// How long one attempt may take, where the plan does not say.
    pub timeout: Option<Duration>,
    /// How long a worker may stay silent.
    pub idle_timeout: Option<Duration>,
    /// Variables the worker gets beside those of the protocol.
    pub env: RoleEnv,
    /// The permissions that an agent known by name has without a person.
    pub permissions: Permissions,
    /// The effects that the role's tools may have.
    pub effects: Effects,
    /// The plans that the role may take; `None` is all (G-39).
    pub plans: Option<Vec<Glob>>,
    /// The types of nodes in graphs that it serves where they name no role of their own (DOT S12).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The responders when the role can't go on.
    pub pace: Pace,
    /// The hosts that its agent can reach on the network.
    #[serde(skip_serializing_if = "Reach::is_host")]
    pub network: Reach,
}

/// Variables a worker gets beside those of the protocol.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleEnv {
    /// Set to these values (`env = { CI = "1" }`).
    pub set: BTreeMap<String, String>,
    /// Passed on from planctl's own environment (`env = ["API_KEY"]`).
    pub inherit: Vec<String>,
}

/// The agent that does the work of a role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// A command that speaks the `--exec` protocol (INTERFACE 3.5).
    Exec(String),
    /// An agent that planctl knows by name.
    Known {
        /// Which.
        agent: KnownAgent,
        /// Arguments that follow planctl's own.
        arguments: Vec<String>,
    },
    /// An interactive agent that a person started, whose hooks tell planctl when it ends its turn (guided mode).
    Session,
}

/// The word for an interactive agent.
const SESSION: &str = "session";

/// Why a text names no agent, and what to write instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}; {help}")]
pub struct NoSuchAgent {
    /// The problem.
    pub what: String,
    /// The text to write instead.
    pub help: String,
}

impl Agent {
    /// Returns the name that says which it is and holds nothing of a person's.
    pub fn name(&self) -> &'static str {
        match self {
            Agent::Exec(_) => "exec",
            Agent::Known { agent, .. } => agent.name(),
            Agent::Session => SESSION,
        }
    }

    /// Reads `exec:COMMAND`, `NAME` or `NAME:ARGUMENTS`, as configurations and `--agent` write it.
    ///
    /// # Errors
    ///
    /// Says what is wrong and which agents there are.
    pub fn parse(text: &str) -> Result<Agent, NoSuchAgent> {
        if let Some(command) = text.strip_prefix("exec:") {
            if command.trim().is_empty() || command.contains('\0') {
                let what = "the agent has no command".to_owned();
                return Err(NoSuchAgent { what, help: "write exec:COMMAND".to_owned() });
            }
            return Ok(Agent::Exec(command.to_owned()));
        }
        if text == SESSION {
            return Ok(Agent::Session);
        }
        match NamedAgent::parse(text) {
            Ok(NamedAgent { agent, arguments, .. }) => Ok(Agent::Known { agent, arguments }),
            Err(NotKnown::Name { name }) => {
                let names = || KnownAgent::all().map(KnownAgent::name);
                let near = did_you_mean(&name, names().chain(["exec"]));
                let all = names().collect::<Vec<_>>().join(", ");
                let help = match near {
                    Some("exec") => "write exec:COMMAND".to_owned(),
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("known are {all}; for any other write exec:COMMAND"),
                };
                let what = format!("no agent is called {:?}", planctl_lang::escape(&name));
                Err(NoSuchAgent { what, help })
            }
            Err(error @ NotKnown::Arguments { .. }) => Err(NoSuchAgent {
                what: error.to_string(),
                help: "its words are split as a shell would".to_owned(),
            }),
        }
    }

    /// Returns what the harness runs; nothing for an interactive agent, which runs already.
    pub fn program(&self, permissions: &Permissions) -> Option<Program> {
        match self {
            Agent::Exec(command) => Some(Program::Shell(command.clone())),
            Agent::Known { agent, arguments } => Some(Program::Known(NamedAgent {
                agent: *agent,
                arguments: arguments.clone(),
                permissions: permissions.clone(),
            })),
            Agent::Session => None,
        }
    }

    /// Says whether this agent can be held to these permissions.
    ///
    /// # Errors
    ///
    /// Says what it can't be held to, and what to write instead.
    pub fn can_keep(&self, permissions: &Permissions) -> Result<(), String> {
        match self.program(permissions) {
            Some(Program::Known(known)) => known.check(),
            // An interactive agent has the permissions that its person gave it.
            None => Ok(()),
            Some(Program::Shell(_)) if *permissions == Permissions::default() => Ok(()),
            Some(Program::Shell(_)) => Err(
                "permissions hold agents that are known by name; planctl can't hold a command of your own"
                    .to_owned(),
            ),
        }
    }

    /// Returns what a person is shown: the command itself, or the agent with its arguments.
    pub fn display_command(&self) -> String {
        match self {
            Agent::Exec(command) => command.clone(),
            Agent::Known { .. } => self.to_string(),
            Agent::Session => "your own session".to_owned(),
        }
    }

    /// Says in words what it may do without a person; nothing is known of a command.
    pub fn may(&self, permissions: &Permissions) -> Option<String> {
        match self.program(permissions) {
            Some(Program::Known(known)) => Some(known.may()),
            Some(Program::Shell(_)) | None => None,
        }
    }

    /// Returns the model by whose price its cost is worked out: that which its arguments name, of an agent that tells no money.
    pub fn priced_model(&self) -> Option<String> {
        match self.program(&Permissions::default()) {
            Some(Program::Known(known)) if !known.agent.reports_money() => known.model().map(str::to_owned),
            Some(Program::Known(_) | Program::Shell(_)) | None => None,
        }
    }

    /// Says that its usage has no money, neither its own nor by these prices.
    pub fn is_unpriced(&self, prices: &BTreeMap<String, Price>) -> bool {
        match self.program(&Permissions::default()) {
            Some(Program::Known(known)) if known.agent.reports_money() => false,
            // One that tells its model itself, or takes it from its own settings, may tell one that has a price.
            Some(Program::Known(known)) => {
                known.model().map_or(prices.is_empty(), |model| Price::of(prices, model).is_none())
            }
            Some(Program::Shell(command)) => {
                let mut words = command.split_whitespace().skip_while(|word| word.contains('='));
                let program = words.next().and_then(|word| word.rsplit('/').next());
                let known = program.and_then(KnownAgent::from_word);
                prices.is_empty() && known.is_some_and(|known| !known.reports_money())
            }
            None => false,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Agent::Exec(command) => write!(f, "exec:{command}"),
            Agent::Known { agent, arguments } => {
                let (agent, arguments) = (*agent, arguments.clone());
                write!(f, "{}", NamedAgent { agent, arguments, permissions: Permissions::default() })
            }
            Agent::Session => f.write_str(SESSION),
        }
    }
}

/// The effects that tools may have: denials go before permissions (M-34).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Effects {
    /// Allowed without a person, even where the default asks one.
    pub allow: BTreeSet<String>,
    /// Never without a person.
    pub deny: BTreeSet<String>,
}

impl Effects {
    /// The effects that have a meaning of their own (M-33): the first six are safe, the others are risky.
    pub const KNOWN: [&str; 10] =
        ["read", "network", "compute", "output", "pure", "llm", "filesystem", "system", "write", "delete"];

    /// Says whether no file may be changed.
    pub fn deny_changes(&self) -> bool {
        ["write", "filesystem"].iter().any(|name| self.deny.contains(*name))
    }

    fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}

/// The responders when a role can't go on, level by level; the primary is the role itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// Answers first.
    pub alternate: Option<Responder>,
    /// Answers where the alternate can't.
    pub contingent: Option<Responder>,
    /// Answers last.
    pub emergency: Option<Responder>,
}

impl Pace {
    /// Returns each level that somebody answers for, the first to be asked first.
    pub fn levels(&self) -> impl Iterator<Item = (Level, &Responder)> {
        let all = [&self.alternate, &self.contingent, &self.emergency];
        Level::ALL.into_iter().skip(1).zip(all).filter_map(|(level, who)| Some((level, who.as_ref()?)))
    }
}

/// The price of a model's tokens, in millionths of a US dollar per million tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: u64,
    /// Input tokens that came from a cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl Price {
    /// Returns what this use costs, in millionths of a US dollar.
    pub fn micro_usd(&self, usage: &planctl_engine::Usage) -> u64 {
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let parts = [
            (usage.input_tokens - cached, self.input),
            (cached, self.cached),
            (usage.output_tokens, self.output),
        ];
        let sum: u128 = parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Works out what was used cost, where no money is told and the model has a price.
    pub fn estimate(prices: &BTreeMap<String, Price>, usage: &mut planctl_engine::Usage) {
        let price = usage.model.as_ref().and_then(|model| Price::of(prices, model));
        if let (None, Some(price)) = (usage.micro_usd, price) {
            usage.micro_usd = Some(price.micro_usd(usage));
            usage.estimated = true;
        }
    }
}

impl RoleConfig {
    pub(crate) fn approved(&self) -> Value {
        let mut approved = json!({
            "agent": self.agent.as_ref().map(Agent::to_string),
            "env": { "inherit": self.env.inherit, "set": self.env.set },
            "idle_timeout_ms": self.idle_timeout.map(millis),
            "timeout_ms": self.timeout.map(millis),
        });
        // Where nothing is said, the value is that of a planctl that knew none of this, so that approvals given then hold.
        if self.permissions != Permissions::default() {
            approved["permissions"] = json!(self.permissions);
        }
        if !self.effects.is_empty() {
            approved["effects"] = json!(self.effects);
        }
        if let Some(plans) = &self.plans {
            approved["plans"] = json!(plans);
        }
        if !self.types.is_empty() {
            approved["types"] = json!(self.types);
        }
        if self.pace != Pace::default() {
            approved["pace"] = json!(self.pace);
        }
        if !self.network.is_host() {
            approved["network"] = json!(self.network);
        }
        approved
    }

    /// Says in a few words what its agent may do and reach; `None` where that is the agent's usual.
    pub fn permission_words(&self) -> Option<String> {
        permission_words(self.agent.as_ref(), &self.permissions, &self.network)
    }
}

/// Says in a few words what an agent may do and reach; `None` where nothing is known of it, as of a command of one's own.
pub fn permission_words(agent: Option<&Agent>, permissions: &Permissions, network: &Reach) -> Option<String> {
    let usual = || Some(format!("may {}", agent?.may(permissions)?));
    let words: Vec<String> =
        tool_words(permissions).or_else(usual).into_iter().chain(network.describe()).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn tool_words(permissions: &Permissions) -> Option<String> {
    let list = permissions.allow.as_ref().map(|tools| match tools.as_slice() {
        [] => "only reads".to_owned(),
        tools => format!("may {}", tools.join(", ")),
    });
    match permissions.mode {
        PermissionMode::Deny => Some("only reads".to_owned()),
        PermissionMode::List => list,
        PermissionMode::Ask => Some(format!("{}, else asks you", list.as_deref().unwrap_or("its usual"))),
    }
}

/// Says whether a role's list of plans has this one: by its path, or by the name of its file with or without ending.
pub fn takes_plan(plans: Option<&[Glob]>, plan: &str) -> bool {
    let Some(plans) = plans else { return true };
    let path = std::path::Path::new(plan);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    plans.iter().any(|glob| [plan, &name, &stem].into_iter().any(|text| glob.matches(text)))
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
