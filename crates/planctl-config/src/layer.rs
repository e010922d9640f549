//! One source of configuration, where each key may be absent, and how a stronger source goes before a weaker one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{RedFirst, Role};
use planctl_glob::Glob;
use planctl_harness::{PermissionMode, Permissions, Reach, ResourceLimits};
use planctl_lang::Levels;

use crate::ask_rule::AskRule;
use crate::channel::ChannelConfig;
use crate::config::{Config, Contracts, DatabaseUrl, Isolation, LibrarySettings, Postgres};
use crate::day::DayBudgets;
use crate::judge::Judges;
use crate::model::ModelConfig;
use crate::origin::{Ignored, Origins};
use crate::policy::ApprovalPolicy;
use crate::role::{Agent, Effects, Pace, Price, RoleConfig, RoleEnv};
use crate::server::ServerConfig;
use crate::terminal::TerminalCall;
use crate::trace::{TraceConfig, TraceProtocol};
use crate::workspace::{Commits, WorkspaceMode, Workspaces};

/// The settings of one source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) project: Option<String>,
    pub(crate) contract_timeout: Option<Duration>,
    pub(crate) contract_env: BTreeMap<String, String>,
    pub(crate) contract_path: Option<Vec<PathBuf>>,
    pub(crate) red_first: Option<RedFirst>,
    pub(crate) limits: ResourceLimits,
    pub(crate) roles: BTreeMap<Role, RoleLayer>,
    pub(crate) database: Option<DatabaseUrl>,
    pub(crate) bin_dir: Option<PathBuf>,
    pub(crate) download: Option<bool>,
    pub(crate) stop_after: Option<Duration>,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) verify: Levels,
    pub(crate) models: BTreeMap<String, ModelConfig>,
    pub(crate) prices: BTreeMap<String, Price>,
    pub(crate) workspace_mode: Option<WorkspaceMode>,
    pub(crate) workspace_git: Option<Commits>,
    pub(crate) approval: BTreeMap<String, ApprovalPolicy>,
    pub(crate) asks: BTreeMap<String, AskRule>,
    pub(crate) groups: BTreeMap<String, BTreeSet<String>>,
    pub(crate) day: DayBudgets,
    pub(crate) channels: BTreeMap<String, ChannelConfig>,
    pub(crate) servers: BTreeMap<String, ServerConfig>,
    pub(crate) asks_at_client: Option<bool>,
    pub(crate) judges: Option<Vec<String>>,
    pub(crate) judges_alone: Option<bool>,
    pub(crate) learn: Option<bool>,
    pub(crate) terminal_call: Option<TerminalCall>,
    pub(crate) trace_endpoint: Option<String>,
    pub(crate) trace_protocol: Option<TraceProtocol>,
    pub(crate) trace_service: Option<String>,
    pub(crate) origins: Origins,
}

/// The settings of one role in one source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RoleLayer {
    pub(crate) agent: Option<Agent>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) env: Option<RoleEnv>,
    pub(crate) permissions: Option<PermissionMode>,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) effects: Effects,
    pub(crate) plans: Option<Vec<Glob>>,
    pub(crate) types: Option<Vec<String>>,
    pub(crate) pace: Pace,
    pub(crate) network: Option<Reach>,
}

impl Layer {
    /// Takes out the keys that start processes, hand over secrets, weaken isolation or hide findings, and names them.
    pub(crate) fn drop_untrusted(&mut self) -> Vec<Ignored> {
        let origins = &mut self.origins;
        let mut ignored = Vec::new();
        let mut ignore = |words: &[&str]| ignored.push(origins.remove_ignored(words, words.join(".")));
        if !std::mem::take(&mut self.contract_env).is_empty() {
            ignore(&["contracts", "env"]);
        }
        if self.contract_path.take().is_some() {
            ignore(&["contracts", "path"]);
        }
        // A limit can only be raised over the default, or over the user's own.
        if !std::mem::take(&mut self.limits).is_none() {
            ignore(&["contracts", "limits"]);
        }
        for (role, layer) in &mut self.roles {
            if layer.agent.take().is_some() {
                ignore(&["roles", role.as_str(), "agent"]);
            }
            if layer.env.take().is_some() {
                ignore(&["roles", role.as_str(), "env"]);
            }
            layer.drop_untrusted(role.as_str(), &mut ignore);
        }
        // A source that names an address and a variable would send any secret anywhere.
        for name in std::mem::take(&mut self.models).into_keys() {
            ignore(&["models", &name]);
        }
        // A price of nothing would make every money cap hold.
        if !std::mem::take(&mut self.prices).is_empty() {
            ignore(&["prices"]);
        }
        // A source that names the database decides which asks are answered there.
        if self.database.take().is_some() {
            ignore(&["database", "url"]);
        }
        if self.bin_dir.take().is_some() {
            ignore(&["postgres", "bin_dir"]);
        }
        // A setting of one exact tier can lower the isolation; a required tier can only raise it.
        if self.isolation.take_if(|isolation| matches!(isolation, Isolation::Exactly(_))).is_some() {
            ignore(&["isolation"]);
        }
        // A policy approves in a person's place.
        for name in std::mem::take(&mut self.approval).into_keys() {
            ignore(&["approval", &name]);
        }
        // A rule goes before one of the same name that demands more.
        for name in std::mem::take(&mut self.asks).into_keys() {
            ignore(&["asks", &name]);
        }
        // A group decides whose votes count.
        for name in std::mem::take(&mut self.groups).into_keys() {
            ignore(&["groups", &name]);
        }
        // A budget goes before a lower one.
        if std::mem::take(&mut self.day) != DayBudgets::default() {
            ignore(&["budget"]);
        }
        // A source that names a command or an address would start it, or send what runs print there.
        for name in std::mem::take(&mut self.channels).into_keys() {
            ignore(&["notify", &name]);
        }
        // A source that names a collector is told of all runs.
        if self.trace_endpoint.take().is_some() {
            ignore(&["traces", "endpoint"]);
        }
        // A server is a program that is started, or an address that secrets go to.
        for name in std::mem::take(&mut self.servers).into_keys() {
            ignore(&["servers", &name]);
        }
        // An agent takes the words that come from a person's screen for theirs.
        if self.asks_at_client.take().is_some() {
            ignore(&["mcp", "asks_at_client"]);
        }
        // A judge gets parts of the workspace to read, and one that stands alone decides.
        if self.judges.take().is_some() {
            ignore(&["judges", "by"]);
        }
        if self.judges_alone.take().is_some() {
            ignore(&["judges", "alone"]);
        }
        // A source that hides a finding would hide it from the person who approves.
        for name in self.verify.only_stricter() {
            ignored.push(self.origins.remove_ignored(&["verify", name], format!("verify: {name}")));
        }
        ignored
    }

    /// Lets this source go before a weaker one.
    pub(crate) fn layered_over(mut self, mut weaker: Layer) -> Layer {
        // Nothing is downgraded silently: of two demands the stricter one counts.
        let isolation = match (self.isolation, weaker.isolation) {
            (Some(strong), Some(weak)) => Some(strong.stricter(weak)),
            (one, other) => one.or(other),
        };
        let loser = if isolation == self.isolation { &mut weaker } else { &mut self };
        loser.origins.remove(&["isolation"]);
        let mut contract_env = weaker.contract_env;
        contract_env.extend(self.contract_env);
        let mut prices = weaker.prices;
        prices.extend(self.prices);
        // Each is taken whole: bounds of two sources together are what neither meant.
        let mut approval = weaker.approval;
        approval.extend(self.approval);
        let mut asks = weaker.asks;
        asks.extend(self.asks);
        let mut groups = weaker.groups;
        groups.extend(self.groups);
        let mut channels = weaker.channels;
        channels.extend(self.channels);
        let mut servers = weaker.servers;
        servers.extend(self.servers);
        let mut models = weaker.models;
        models.extend(self.models);
        let mut roles = weaker.roles;
        for (role, layer) in self.roles {
            let below = roles.remove(&role).unwrap_or_default();
            roles.insert(role, layer.layered_over(below));
        }
        Layer {
            project: self.project.or(weaker.project),
            contract_timeout: self.contract_timeout.or(weaker.contract_timeout),
            contract_env,
            contract_path: self.contract_path.or(weaker.contract_path),
            red_first: self.red_first.or(weaker.red_first),
            limits: self.limits.or(weaker.limits),
            roles,
            database: self.database.or(weaker.database),
            bin_dir: self.bin_dir.or(weaker.bin_dir),
            download: self.download.or(weaker.download),
            stop_after: self.stop_after.or(weaker.stop_after),
            verify: weaker.verify.then(&self.verify),
            models,
            prices,
            workspace_mode: self.workspace_mode.or(weaker.workspace_mode),
            workspace_git: self.workspace_git.or(weaker.workspace_git),
            approval,
            asks,
            groups,
            day: DayBudgets {
                project: self.day.project.or(weaker.day.project),
                host: self.day.host.or(weaker.day.host),
                zone: self.day.zone.or(weaker.day.zone),
            },
            channels,
            servers,
            asks_at_client: self.asks_at_client.or(weaker.asks_at_client),
            judges: self.judges.or(weaker.judges),
            judges_alone: self.judges_alone.or(weaker.judges_alone),
            learn: self.learn.or(weaker.learn),
            terminal_call: self.terminal_call.or(weaker.terminal_call),
            trace_endpoint: self.trace_endpoint.or(weaker.trace_endpoint),
            trace_protocol: self.trace_protocol.or(weaker.trace_protocol),
            trace_service: self.trace_service.or(weaker.trace_service),
            isolation,
            origins: self.origins.layered_over(weaker.origins),
        }
    }

    /// Fills in the defaults.
    pub(crate) fn effective(self) -> Config {
        let roles: BTreeMap<Role, RoleConfig> =
            self.roles.into_iter().map(|(role, layer)| (role, layer.effective())).collect();
        let (names, alone) = (self.judges.unwrap_or_default(), self.judges_alone.unwrap_or_default());
        let judges = Judges::resolved(names, alone, &self.models, &roles);
        let default = Postgres::default();
        Config {
            project: self.project,
            contracts: Contracts {
                timeout: self.contract_timeout,
                env: self.contract_env,
                path: self.contract_path.unwrap_or_default(),
                red_first: self.red_first.unwrap_or_default(),
                limits: self.limits,
            },
            roles,
            database: self.database,
            postgres: Postgres {
                bin_dir: self.bin_dir,
                download: self.download.unwrap_or(default.download),
                stop_after: self.stop_after.unwrap_or(default.stop_after),
            },
            isolation: self.isolation.unwrap_or_default(),
            verify: self.verify,
            models: self.models,
            prices: self.prices,
            workspace: Workspaces {
                mode: self.workspace_mode.unwrap_or_default(),
                git: self.workspace_git.unwrap_or_default(),
            },
            library: LibrarySettings { learn: self.learn.unwrap_or(LibrarySettings::default().learn) },
            approval: self.approval,
            asks: self
                .asks
                .into_iter()
                .map(|(name, rule)| (name, rule.with_people_of(&self.groups)))
                .collect(),
            groups: self.groups,
            day: self.day,
            channels: self.channels,
            terminal_call: self.terminal_call.unwrap_or_default(),
            traces: TraceConfig {
                endpoint: self.trace_endpoint,
                protocol: self.trace_protocol.unwrap_or_default(),
                service: self.trace_service,
            },
            servers: self.servers,
            asks_at_client: self.asks_at_client.unwrap_or_default(),
            judges,
        }
    }
}

impl RoleLayer {
    /// Takes out what lets an agent do more than is usual, or somebody else answer for it, and names it.
    fn drop_untrusted(&mut self, role: &str, ignore: &mut impl FnMut(&[&str])) {
        if self.permissions.is_some_and(|mode| mode != PermissionMode::Deny) {
            self.permissions = None;
            ignore(&["roles", role, "permissions"]);
        }
        if self.allow.take().is_some() {
            ignore(&["roles", role, "allow"]);
        }
        if !std::mem::take(&mut self.effects.allow).is_empty() {
            ignore(&["roles", role, "effects", "allow"]);
        }
        if std::mem::take(&mut self.pace) != Pace::default() {
            ignore(&["roles", role, "pace"]);
        }
    }

    /// Returns what its agent may do.
    pub(crate) fn permissions(&self) -> Permissions {
        Permissions { mode: self.permissions.unwrap_or_default(), allow: self.allow.clone() }
    }

    fn layered_over(self, weaker: RoleLayer) -> RoleLayer {
        // An allow list of one source does not apply to a mode that another source sets.
        let says_permissions = self.permissions.is_some() || self.allow.is_some();
        let (permissions, allow) = if says_permissions {
            (self.permissions, self.allow)
        } else {
            (weaker.permissions, weaker.allow)
        };
        let mut effects = weaker.effects;
        for name in &self.effects.allow {
            effects.deny.remove(name);
        }
        for name in &self.effects.deny {
            effects.allow.remove(name);
        }
        effects.allow.extend(self.effects.allow);
        effects.deny.extend(self.effects.deny);
        RoleLayer {
            agent: self.agent.or(weaker.agent),
            timeout: self.timeout.or(weaker.timeout),
            idle_timeout: self.idle_timeout.or(weaker.idle_timeout),
            env: self.env.or(weaker.env),
            permissions,
            allow,
            effects,
            plans: self.plans.or(weaker.plans),
            types: self.types.or(weaker.types),
            network: self.network.or(weaker.network),
            pace: Pace {
                alternate: self.pace.alternate.or(weaker.pace.alternate),
                contingent: self.pace.contingent.or(weaker.pace.contingent),
                emergency: self.pace.emergency.or(weaker.pace.emergency),
            },
        }
    }

    fn effective(self) -> RoleConfig {
        let permissions = self.permissions();
        RoleConfig {
            agent: self.agent,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            env: self.env.unwrap_or_default(),
            permissions,
            effects: self.effects,
            plans: self.plans,
            types: self.types.unwrap_or_default(),
            pace: self.pace,
            network: self.network.unwrap_or_default(),
        }
    }
}
