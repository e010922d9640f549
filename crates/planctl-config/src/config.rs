//! Configuration: planctl.toml, the user's file, `PLANCTL_*` and flags, made one effective value (DESIGN 9).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_engine::{Digest, RedFirst, Role, Tier};
use planctl_harness::ResourceLimits;
use planctl_lang::Levels;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::ask_rule::AskRule;
use crate::channel::ChannelConfig;
use crate::day::DayBudgets;
use crate::finding::Finding;
use crate::judge::Judges;
use crate::model::ModelConfig;
use crate::policy::ApprovalPolicy;
use crate::role::{Agent, Effects, Price, RoleConfig, millis};
use crate::server::ServerConfig;
use crate::terminal::TerminalCall;
use crate::trace::TraceConfig;
use crate::workspace::Workspaces;

/// The effective configuration.
///
/// It travels from the command line to a daemon: a key that the daemon does not know is refused there, never dropped, and
/// the database stays behind, whose address may hold a password.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The name of the project, for people.
    pub project: Option<String>,
    /// How contracts run.
    pub contracts: Contracts,
    /// The agent that serves each role.
    pub roles: BTreeMap<Role, RoleConfig>,
    /// Which database to use; without one, the private cluster.
    #[serde(skip)]
    pub database: Option<DatabaseUrl>,
    /// Where the private cluster's programs come from, and how long its server goes on.
    pub postgres: Postgres,
    /// How much isolation contracts and workers need.
    pub isolation: Isolation,
    /// How much each finding weighs.
    pub verify: Levels,
    /// The models that drafts are written with. They concern only the process that reads them, so they are not sent to a daemon.
    #[serde(skip)]
    pub models: BTreeMap<String, ModelConfig>,
    /// The price of models' tokens, where an agent does not report its cost.
    pub prices: BTreeMap<String, Price>,
    /// Where runs work.
    pub workspace: Workspaces,
    /// The settings of the library of plans. They concern only the process that reads them, so they are not sent to a daemon.
    #[serde(skip)]
    pub library: LibrarySettings,
    /// The policies that approve plans without a person, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approval: BTreeMap<String, ApprovalPolicy>,
    /// The rules for asks, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub asks: BTreeMap<String, AskRule>,
    /// People by the name of their group. Rules for asks have the people in their places, so they are not sent to a daemon.
    #[serde(skip)]
    pub groups: BTreeMap<String, BTreeSet<String>>,
    /// The budgets of a day.
    #[serde(skip_serializing_if = "DayBudgets::is_none")]
    pub day: DayBudgets,
    /// The channels on which people get messages. A daemon reads them itself where it sends one, so they are not sent to it.
    #[serde(skip)]
    pub channels: BTreeMap<String, ChannelConfig>,
    /// How a person who watches a run is called. It concerns only the process that reads it, so it is not sent to a daemon.
    #[serde(skip)]
    pub terminal_call: TerminalCall,
    /// Where traces are sent. It concerns only the process that reads it, so it is not sent to a daemon.
    #[serde(skip)]
    pub traces: TraceConfig,
    /// The servers whose tools plans may use, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerConfig>,
    /// Says that the screen of an agent that starts `planctl mcp` is a person's, so that its questions are put to them there. It
    /// concerns only the process that reads it, so it is not sent to a daemon.
    #[serde(skip)]
    pub asks_at_client: bool,
    /// The judges that may be asked about work.
    #[serde(skip_serializing_if = "Judges::is_none")]
    pub judges: Judges,
}

/// The settings of the library of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LibrarySettings {
    /// Says that the threshold of an entry rises where most of its runs failed.
    pub learn: bool,
}

impl Default for LibrarySettings {
    fn default() -> LibrarySettings {
        LibrarySettings { learn: true }
    }
}

/// How contracts run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Contracts {
    /// How long one evaluation may take, where the plan does not say.
    pub timeout: Option<Duration>,
    /// Variables added to the clean environment.
    pub env: BTreeMap<String, String>,
    /// Absolute directories that go before the fixed `PATH`.
    pub path: Vec<PathBuf>,
    /// Whether they have to be red before the work, where the plan does not say.
    pub red_first: RedFirst,
    /// The resource limits of one evaluation.
    pub limits: ResourceLimits,
}

/// Where the private cluster's programs come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Postgres {
    /// The directory that holds `initdb` and `postgres`.
    pub bin_dir: Option<PathBuf>,
    /// Says whether a missing Postgres may be fetched.
    pub download: bool,
    /// How long the server goes on after the last command that used it; at zero it stops with it. It concerns only the
    /// process that reads it, so it is not sent to a daemon.
    #[serde(skip)]
    pub stop_after: Duration,
}

impl Default for Postgres {
    fn default() -> Postgres {
        Postgres { bin_dir: None, download: true, stop_after: Duration::from_secs(60) }
    }
}

/// How much isolation contracts and workers need (PROMISES 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The rights of planctl's own user, unless a tier is required.
    #[default]
    Auto,
    /// The best tier that the host offers up to 1b, and this one at least; below it nothing runs.
    Require(Tier),
    /// This tier and no other.
    Exactly(Tier),
}

impl Isolation {
    /// Says whether it depends on what the host offers.
    pub fn needs_probe(self) -> bool {
        !matches!(
            self,
            Isolation::Auto | Isolation::Exactly(Tier::SameUser) | Isolation::Require(Tier::SameUser)
        )
    }

    /// Returns the best tier that is taken where none is named. Tier 2 has to be: programs in folders that only root can
    /// enter, where those are that root installed for itself, are out of its reach.
    pub fn best(offered: Tier) -> Tier {
        offered.min(Tier::Namespaces)
    }

    /// Chooses the tier to run at on a host that offers this one; `None` where nothing may run.
    pub fn tier(self, offered: Tier) -> Option<Tier> {
        match self {
            Isolation::Auto => Some(Tier::SameUser),
            Isolation::Require(least) => (offered >= least).then_some(least.max(Isolation::best(offered))),
            Isolation::Exactly(tier) => (offered >= tier).then_some(tier),
        }
    }

    /// Says which of two counts: of two demands the stricter one.
    #[must_use]
    pub fn stricter(self, other: Isolation) -> Isolation {
        match (self, other) {
            (Isolation::Auto, demand) | (demand, Isolation::Auto) => demand,
            (Isolation::Require(one), Isolation::Require(another)) => Isolation::Require(one.max(another)),
            (Isolation::Exactly(one), Isolation::Exactly(another)) => Isolation::Exactly(one.max(another)),
            (Isolation::Exactly(tier), Isolation::Require(least))
            | (Isolation::Require(least), Isolation::Exactly(tier)) => match tier >= least {
                true => Isolation::Exactly(tier),
                false => Isolation::Require(least),
            },
        }
    }

    /// Reads the words of the configuration.
    pub(crate) fn parse(text: &str) -> Option<Isolation> {
        match (text, text.strip_prefix("require:")) {
            ("auto", _) => Some(Isolation::Auto),
            (_, Some(tier)) => tier.parse().ok().map(Isolation::Require),
            (tier, None) => tier.parse().ok().map(Isolation::Exactly),
        }
    }

    /// Says what the words are.
    pub(crate) fn expected(text: &str) -> String {
        format!(
            "isolation is \"auto\", \"require:TIER\" or TIER, which is \"0\", \"1a\", \"1b\" or \"2\"; not {text:?}"
        )
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Isolation::Auto => f.write_str("auto"),
            Isolation::Require(tier) => write!(f, "require:{tier}"),
            Isolation::Exactly(tier) => write!(f, "{tier}"),
        }
    }
}

/// A database's address; its password shows nowhere (row 101).
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Takes an address.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it, without repeating it.
    pub fn parse(text: &str) -> Result<DatabaseUrl, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Ok(DatabaseUrl(text.to_owned()))
        } else {
            Err("a database address begins with postgres:// or postgresql://".to_owned())
        }
    }

    /// Returns the address with its password, for connecting only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Says that a password stands in it, before the host or among the parameters.
    pub fn has_password(&self) -> bool {
        self.without_password().1.is_some_and(|password| !password.is_empty())
            || self.0.split_once('?').is_some_and(|(_, query)| {
                query.split('&').any(|part| part.starts_with("password=") && part.len() > "password=".len())
            })
    }

    /// Returns the address without the password of its login, and that password.
    pub fn without_password(&self) -> (String, Option<String>) {
        let split = || {
            let (scheme, rest) = self.0.split_once("://")?;
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (login, place) = rest[..end].rsplit_once('@')?;
            let (user, password) = login.split_once(':')?;
            Some((format!("{scheme}://{user}@{place}{}", &rest[end..]), percent_decoded(password)))
        };
        split().map_or_else(|| (self.0.clone(), None), |(url, password)| (url, Some(password)))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", ""));
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        write!(f, "{scheme}://")?;
        match rest.rsplit_once('@') {
            Some((login, place)) => {
                let (user, password) = login.split_once(':').map_or((login, ""), |(user, word)| (user, word));
                let mask = if password.is_empty() { "" } else { ":…" };
                write!(f, "{user}{mask}@{place}")?;
            }
            None => f.write_str(rest)?,
        }
        // Passwords may stand among the parameters too.
        if query.is_some_and(|query| !query.is_empty()) { f.write_str("?…") } else { Ok(()) }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

impl Config {
    /// Returns the models of roles whose agents tell no money.
    fn models_of_roles(&self) -> impl Iterator<Item = String> {
        self.roles.values().filter_map(|role| role.agent.as_ref()?.priced_model())
    }

    /// Returns the model by whose price work is estimated that nobody has done, with the price: the only one that the agents of
    /// roles name and that has one, else the only one whose price is set.
    pub fn usual_price(&self) -> Option<(String, Price)> {
        let of_roles: BTreeMap<String, Price> = self
            .models_of_roles()
            .filter_map(|model| Some((Price::of(&self.prices, &model)?, model)))
            .map(|(price, model)| (model, price))
            .collect();
        let set = self.prices.clone();
        [of_roles, set].into_iter().find(|prices| prices.len() == 1).and_then(|mut only| only.pop_first())
    }

    /// Returns the prices that nobody set and planctl knows, of the models that roles and judges name: by them costs are estimated.
    pub fn known_prices(&self) -> BTreeMap<String, Price> {
        let of_roles = self.models_of_roles();
        let of_models = self.models.values().map(|model| model.model.clone());
        let unset = of_roles.chain(of_models).filter(|model| !self.prices.contains_key(model));
        unset
            .filter_map(|model| Some((Price::price_of(&model)?, model)))
            .map(|(price, model)| (model, price))
            .collect()
    }

    /// Returns the effects that a role may have; those of nobody in particular where it is unknown, or none is named.
    pub fn effects_of(&self, role: Option<&Role>) -> Effects {
        role.and_then(|role| self.roles.get(role)).map(|role| role.effects.clone()).unwrap_or_default()
    }

    /// Returns what an approval covers: everything that changes what runs. Where it is stored is left out.
    pub fn approved(&self) -> Value {
        let roles: BTreeMap<&str, Value> =
            self.roles.iter().map(|(role, config)| (role.as_str(), config.approved())).collect();
        let mut approved = json!({
            "contracts": {
                "env": self.contracts.env,
                "path": self.contracts.path,
                "timeout_ms": self.contracts.timeout.map(millis),
            },
            "isolation": self.isolation.to_string(),
            "roles": roles,
        });
        // They decide what is let through, and what the person who approves gets to see. Where nothing is wished, the
        // value is that of a planctl that knew no levels, so that approvals given then hold.
        if !self.verify.is_empty() {
            approved["verify"] = json!(self.verify.wishes());
        }
        if !self.contracts.red_first.is_off() {
            approved["contracts"]["red_first"] = json!(self.contracts.red_first);
        }
        if !self.contracts.limits.is_none() {
            approved["contracts"]["limits"] = json!(self.contracts.limits);
        }
        if !self.prices.is_empty() {
            approved["prices"] = json!(self.prices);
        }
        if !self.workspace.is_usual() {
            approved["workspace"] = json!(self.workspace);
        }
        // An approval by a policy is of the policy as it was.
        if !self.approval.is_empty() {
            approved[POLICIES] = json!(self.approval);
        }
        // An approval that the rules did not demand may not serve where they do.
        if !self.asks.is_empty() {
            approved["asks"] = json!(self.asks);
        }
        // A run holds the budgets that it was approved with.
        if !self.day.is_none() {
            approved["budget"] = json!(self.day);
        }
        if !self.servers.is_empty() {
            approved["servers"] = json!(self.servers);
        }
        // They decide, and what they are shown goes to them.
        if !self.judges.is_none() {
            approved["judges"] = json!(self.judges);
        }
        approved
    }

    /// Returns what an approval covers of a plan that works in a folder of the workspace; an empty name is the workspace.
    pub fn approved_in(&self, folder: &str) -> Value {
        in_folder(self.approved(), folder)
    }

    /// Returns the digest of the settings that an approval covers.
    pub fn digest(&self) -> Digest {
        self.digest_in("")
    }

    /// Returns the digest of the settings that an approval covers, of a plan that works in a folder of the workspace.
    pub fn digest_in(&self, folder: &str) -> Digest {
        digest_of_approved(&self.approved_in(folder))
    }
}

/// Adds to the settings that an approval covers that the plan works in a folder of the workspace.
pub fn in_folder(mut approved: Value, folder: &str) -> Value {
    if let Value::Object(keys) = &mut approved {
        keys.remove(FOLDER);
        keys.remove(WORKER);
        if !folder.is_empty() {
            keys.insert(FOLDER.to_owned(), json!(folder));
        }
    }
    approved
}

/// Says of an approval that it is of one worker, which serves every role. Its digest is that of the configuration alone.
pub fn with_worker(mut approved: Value, worker: Option<&Agent>) -> Value {
    if let (Value::Object(keys), Some(worker)) = (&mut approved, worker) {
        keys.insert(WORKER.to_owned(), json!(worker));
    }
    approved
}

/// Returns the folder of the workspace in which an approved plan works; empty where that is the workspace.
pub fn approved_folder(approved: &Value) -> &str {
    approved.get(FOLDER).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the keys in which two configurations differ, as they are written in a file, without what they hold.
pub fn keys_that_differ(one: &Value, other: &Value) -> Vec<String> {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return Vec::new() };
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let mut found = Vec::new();
    for key in keys {
        match (one.get(key), other.get(key)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(one @ Value::Object(_)), Some(other @ Value::Object(_))) => {
                found.extend(keys_that_differ(one, other).iter().map(|inner| format!("{key}.{inner}")));
            }
            (Some(_) | None, Some(_) | None) => found.push(key.clone()),
        }
    }
    found
}

/// Returns the digest of the settings that an approval covers.
pub fn digest_of_approved(approved: &Value) -> Digest {
    // Keys of a JSON value are sorted, so equal configurations have equal texts.
    sha256(approved.to_string().as_bytes())
}

/// Reads a policy out of the settings that an approval covers.
pub fn approved_policy(approved: &Value, name: &str) -> Option<ApprovalPolicy> {
    serde_json::from_value(approved.get(POLICIES)?.get(name)?.clone()).ok()
}

/// Where the settings that an approval covers have the approval policies.
const POLICIES: &str = "approval";
/// Where an approval says in which folder of the workspace the plan works.
const FOLDER: &str = "folder";
/// Where an approval names the one worker that it is of.
pub const WORKER: &str = "worker";

/// Why the configuration can't be used; each text fits after "could not".
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file can't be read.
    #[error("read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The record of trusted directories can't be written.
    #[error("write {}: {source}", path.display())]
    Unwritable {
        /// The record.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file is not what a configuration can be.
    #[error("read {}: {what}", path.display())]
    NotAFile {
        /// Which.
        path: PathBuf,
        /// The kind of file that it is instead.
        what: String,
    },
    /// A file was named and is not there.
    #[error("read {}: no such file", path.display())]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// A file has findings.
    #[error("use {}: {}", path.display(), counted(findings.len()))]
    Invalid {
        /// Which.
        path: PathBuf,
        /// All that is wrong in it.
        findings: Vec<Finding>,
    },
    /// A file holds a password, and everybody may read it (row 107).
    #[error("use {}: it holds a password, and every user of this machine may read it", path.display())]
    Exposed {
        /// Which.
        path: PathBuf,
    },
    /// A variable or flag has a value that can't be.
    #[error("use {name}: {what}")]
    Value {
        /// The variable or flag.
        name: &'static str,
        /// The problem with its value.
        what: String,
    },
    /// The record of trusted directories is broken.
    #[error("read {}: it is damaged ({what}); remove it and trust the directories again", path.display())]
    TrustDamaged {
        /// The record.
        path: PathBuf,
        /// The problem with it.
        what: String,
    },
}

impl ConfigError {
    /// Returns the file of configuration that has to be mended; none where it is no such file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            ConfigError::Unreadable { path, .. }
            | ConfigError::NotAFile { path, .. }
            | ConfigError::Missing { path }
            | ConfigError::Invalid { path, .. }
            | ConfigError::Exposed { path } => Some(path),
            ConfigError::Value { .. } | ConfigError::Unwritable { .. } | ConfigError::TrustDamaged { .. } => {
                None
            }
        }
    }
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn counted(count: usize) -> String {
    if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") }
}

pub(crate) fn sha256(bytes: &[u8]) -> Digest {
    Digest::of_sha256(&Sha256::digest(bytes))
}

/// Reads a regular file of at most 1 MiB; a pipe or a device never makes it wait.
pub(crate) fn read_small(path: &Path) -> Result<Option<String>, ConfigError> {
    const BYTES_MAX: u64 = 1024 * 1024;
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let refused = |what: &str| ConfigError::NotAFile { path: path.to_owned(), what: what.to_owned() };
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if !meta.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if meta.len() > BYTES_MAX {
        return Err(refused("it is larger than 1 MiB"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is not UTF-8"))
}
