//! The effective configuration as planctl.toml would say it, value for value, with the origin of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{AskKind, Budget, Resource, bytes_words};
use planctl_harness::PermissionMode;
use planctl_lang::{CONTRACT_TIMEOUT, Wish, budget_words, is_secret_name, masked};
use serde_json::{Value, json};

use crate::ask_rule::AskRule;
use crate::channel::{ChannelConfig, ChannelTarget, WebAddress};
use crate::config::Config;
use crate::find::Loaded;
use crate::model::ModelConfig;
use crate::origin::{Key, Origin};
use crate::policy::ApprovalPolicy;
use crate::role::{Price, RoleConfig};
use crate::server::{ServerConfig, ServerReach};

/// One value of the effective configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// How many of the key's words name its table: `[contracts]` is one, `[roles.coder]` two.
    pub table: usize,
    /// The value; credentials are masked. `{}` where there is only the table.
    pub value: Value,
    /// Where it comes from; a list may come from several places.
    pub origins: Vec<Origin>,
}

impl Loaded {
    /// Returns every value of the effective configuration, in the order of a file. Credentials are masked (row 101).
    pub fn entries(&self) -> Vec<Entry> {
        let mut writer = EntryWriter { loaded: self, entries: Vec::new() };
        writer.write(&self.config);
        writer.entries
    }
}

struct EntryWriter<'a> {
    loaded: &'a Loaded,
    entries: Vec<Entry>,
}

impl EntryWriter<'_> {
    fn write(&mut self, config: &Config) {
        self.add(0, &["isolation"], json!(config.isolation.to_string()));
        self.add_some(1, &["project", "name"], config.project.as_ref().map(|name| json!(masked(name))));
        self.add(1, &["workspace", "mode"], json!(config.workspace.mode.as_str()));
        self.add(1, &["workspace", "git"], json!(config.workspace.git.as_str()));
        self.contracts(config);
        for (role, settings) in &config.roles {
            self.role(role.as_str(), settings);
        }
        for (name, model) in &config.models {
            self.model(name, model);
        }
        for (model, price) in &config.prices {
            self.price(model, *price);
        }
        for (model, price) in config.known_prices() {
            self.add_known_price(&model, price);
        }
        for (name, policy) in &config.approval {
            self.policy(name, policy);
        }
        for (name, rule) in &config.asks {
            self.ask_rule(name, rule);
        }
        for (name, people) in &config.groups {
            self.add(1, &["groups", name], json!(people));
        }
        let of_day = |budget: Option<Budget>| budget.map(|budget| json!(budget_words(budget)));
        self.add_some(1, &["budget", "per_day"], of_day(config.day.project));
        self.add_some(1, &["budget", "host_per_day"], of_day(config.day.host));
        self.add_some(1, &["budget", "time_zone"], config.day.zone.as_ref().map(|zone| json!(zone)));
        for (name, channel) in &config.channels {
            self.channel(name, channel);
        }
        for (name, server) in &config.servers {
            self.server(name, server);
        }
        self.add_some(1, &["mcp", "asks_at_client"], config.asks_at_client.then_some(json!(true)));
        let judges: Vec<&str> = config.judges.by.iter().map(|judge| judge.name.as_str()).collect();
        self.add_some(1, &["judges", "by"], (!judges.is_empty()).then(|| json!(judges)));
        self.add_some(1, &["judges", "alone"], config.judges.alone.then_some(json!(true)));
        self.add_some(1, &["database", "url"], config.database.as_ref().map(|url| json!(url.to_string())));
        self.add_some(1, &["postgres", "bin_dir"], config.postgres.bin_dir.as_ref().map(|dir| json!(dir)));
        self.add(1, &["postgres", "download"], json!(config.postgres.download));
        self.add(1, &["postgres", "stop_after"], time(config.postgres.stop_after));
        self.verify(config);
        self.add(1, &["library", "learn"], json!(config.library.learn));
        self.add(1, &["terminal", "call"], json!(config.terminal_call.as_str()));
        self.add_some(
            1,
            &["traces", "endpoint"],
            config.traces.endpoint.as_ref().map(|address| json!(address)),
        );
        self.add(1, &["traces", "protocol"], json!(config.traces.protocol.as_str()));
        self.add_some(
            1,
            &["traces", "service"],
            config.traces.service.as_ref().map(|service| json!(service)),
        );
    }

    fn contracts(&mut self, config: &Config) {
        let contracts = &config.contracts;
        self.add(1, &["contracts", "timeout"], time(contracts.timeout.unwrap_or(CONTRACT_TIMEOUT)));
        for (name, value) in &contracts.env {
            self.add(1, &["contracts", "env", name], variable(name, value));
        }
        let path: &Vec<PathBuf> = &contracts.path;
        self.add_some(1, &["contracts", "path"], (!path.is_empty()).then(|| json!(path)));
        self.add(1, &["contracts", "red_first"], json!(contracts.red_first.as_str()));
        for resource in Resource::ALL {
            let limit = contracts.limits.limit_of(resource).map(|limit| match resource {
                Resource::Cpu => time(Duration::from_secs(limit)),
                Resource::Memory | Resource::FileSize => json!(bytes_words(limit).replace(' ', "")),
                Resource::Processes | Resource::OpenFiles => json!(limit),
            });
            self.add_some(2, &["contracts", "limits", resource.key()], limit);
        }
    }

    fn role(&mut self, role: &str, settings: &RoleConfig) {
        let before = self.entries.len();
        let origins = &self.loaded.origins;
        let says = |words: &[&str]| origins.get(&Key::of(&[&["roles", role], words].concat())).is_some();
        let mut say = |words: &[&str], value: Option<Value>| {
            self.add_some(2, &[&["roles", role], words].concat(), value);
        };
        say(&["agent"], settings.agent.as_ref().map(|agent| json!(masked(&agent.to_string()))));
        let permissions = &settings.permissions;
        let says_mode = permissions.mode != PermissionMode::default() || says(&["permissions"]);
        say(&["permissions"], says_mode.then(|| json!(permissions.mode.as_str())));
        say(&["allow"], permissions.allow.as_ref().map(|tools| json!(tools)));
        let says_network = !settings.network.is_host() || says(&["network"]);
        say(&["network"], says_network.then(|| json!(settings.network)));
        say(&["timeout"], settings.timeout.map(time));
        say(&["idle_timeout"], settings.idle_timeout.map(time));
        for (name, value) in &settings.env.set {
            say(&["env", name], Some(variable(name, value)));
        }
        let inherit = &settings.env.inherit;
        say(&["env"], (!inherit.is_empty()).then(|| json!(inherit)));
        say(&["plans"], settings.plans.as_ref().map(|plans| json!(plans)));
        say(&["types"], (!settings.types.is_empty()).then(|| json!(settings.types)));
        for (level, responder) in settings.pace.levels() {
            say(&["pace", level.as_str()], Some(json!(responder.to_string())));
        }
        for (list, names) in [("allow", &settings.effects.allow), ("deny", &settings.effects.deny)] {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.list(2, &["roles", role, "effects"], list, &names);
        }
        if self.entries.len() == before {
            let key = Key::of(&["roles", role]);
            let origins = self.loaded.origins.get(&key).cloned().into_iter().collect();
            self.entries.push(Entry { key, table: 2, value: json!({}), origins });
        }
    }

    fn policy(&mut self, name: &str, policy: &ApprovalPolicy) {
        let mut say = |key: &str, value: Option<Value>| self.add_some(2, &["approval", name, key], value);
        say("plans", Some(json!(policy.plans)));
        say("budget", Some(json!(budget_words(policy.budget))));
        say("steps", policy.steps.map(|steps| json!(steps)));
        say("roles", policy.roles.as_ref().map(|roles| json!(roles)));
        say("contracts", policy.contracts.as_ref().map(|contracts| json!(contracts)));
        say("repairs", policy.repairs.map(|repairs| json!(repairs)));
    }

    fn ask_rule(&mut self, name: &str, rule: &AskRule) {
        let mut say = |key: &str, value: Option<Value>| self.add_some(2, &["asks", name, key], value);
        let kinds =
            |kinds: &BTreeSet<AskKind>| json!(kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>());
        say("kinds", rule.kinds.as_ref().map(kinds));
        say("plans", rule.plans.as_ref().map(|plans| json!(plans)));
        say("owners", rule.owners.as_ref().map(|owners| json!(owners)));
        say("approvals", Some(json!(rule.approvals)));
        say("of", rule.of.as_ref().map(|of| json!(of)));
        say("self_approval", Some(json!(rule.self_approval)));
        say("deadline", rule.deadline.map(time));
        say("on_deadline", rule.deadline.map(|_| json!(rule.on_deadline.as_str())));
    }

    fn server(&mut self, name: &str, server: &ServerConfig) {
        let mut say = |key: &str, value: Option<Value>| self.add_some(2, &["servers", name, key], value);
        match &server.reach {
            ServerReach::Command { command, env } => {
                let words: Vec<String> = command.iter().map(|word| masked(word).into_owned()).collect();
                say("command", Some(json!(words)));
                say("env", (!env.is_empty()).then(|| json!(env)));
            }
            ServerReach::Url { url, token_env } => {
                say("url", Some(json!(masked(url))));
                say("token_env", token_env.as_ref().map(|variable| json!(variable)));
            }
        }
        say("effects", server.effects.as_ref().map(|effects| json!(effects)));
        for (tool, effects) in &server.tools {
            self.add(3, &["servers", name, "tools", tool], json!(effects));
        }
    }

    fn model(&mut self, name: &str, model: &ModelConfig) {
        let mut say = |key: &str, value: Option<Value>| self.add_some(2, &["models", name, key], value);
        say("api", Some(json!(model.api.as_str())));
        say("url", Some(json!(masked(&model.url))));
        say("model", Some(json!(model.model)));
        say("key_env", model.key_env.as_ref().map(|variable| json!(variable)));
        say("max_tokens", Some(json!(model.max_tokens)));
        say("timeout", Some(time(model.timeout)));
        say("ask", Some(json!(model.ask)));
    }

    fn channel(&mut self, name: &str, channel: &ChannelConfig) {
        let mut say = |key: &str, value: Value| self.add(2, &["notify", name, key], value);
        say("to", json!(channel.to.as_str()));
        say("on", json!(channel.on.iter().map(|event| event.as_str()).collect::<Vec<_>>()));
        say("timeout", time(channel.timeout));
        if let Some(page) = &channel.page {
            say("page", json!(page));
        }
        if let Some(quiet) = &channel.quiet {
            say("quiet", json!(format!("{}-{}", quiet.begin, quiet.end)));
            say("quiet_zone", json!(quiet.zone));
            say("urgent", json!(quiet.urgent.iter().map(|event| event.as_str()).collect::<Vec<_>>()));
        }
        match &channel.to {
            ChannelTarget::Web { shape: _, address, secret_env, allow_private } => {
                match address {
                    WebAddress::Given(url) => say("url", json!(masked(url))),
                    WebAddress::Variable(variable) => say("url_env", json!(variable)),
                }
                if let Some(variable) = secret_env {
                    say("secret_env", json!(variable));
                }
                say("allow_private", json!(allow_private));
            }
            ChannelTarget::Mail { mail, allow_private } => {
                say("server", json!(mail.server));
                say("port", json!(mail.port()));
                say("tls", json!(mail.tls.as_str()));
                say("from", json!(mail.from));
                say("recipients", json!(mail.recipients));
                if let (Some(user), Some(variable)) = (&mail.user, &mail.password_env) {
                    say("user", json!(user));
                    say("password_env", json!(variable));
                }
                say("allow_private", json!(allow_private));
            }
            ChannelTarget::Desktop => {}
            ChannelTarget::Exec { command, env } => {
                say("command", json!(masked(command)));
                say("env", json!(env));
            }
        }
    }

    fn price(&mut self, model: &str, price: Price) {
        for (name, micro) in [("input", price.input), ("cached", price.cached), ("output", price.output)] {
            let is_said = self.loaded.origins.get(&Key::of(&["prices", model, name])).is_some();
            if name == "cached" && !is_said {
                continue;
            }
            self.add(2, &["prices", model, name], json!(micro as f64 / 1e6));
        }
    }

    fn add_known_price(&mut self, model: &str, price: Price) {
        for (name, micro) in [("input", price.input), ("cached", price.cached), ("output", price.output)] {
            let (key, value) = (Key::of(&["prices", model, name]), json!(micro as f64 / 1e6));
            self.entries.push(Entry { key, table: 2, value, origins: vec![Origin::PriceTable] });
        }
    }

    // In a file a code goes before `warnings` wherever it stands, so a code that all warnings overrode later has their level.
    fn verify(&mut self, config: &Config) {
        let wishes = config.verify.wishes();
        let all = wishes.iter().position(|(name, _)| *name == "warnings");
        let mut lists: BTreeMap<Wish, Vec<&str>> = BTreeMap::new();
        for (at, (name, wish)) in wishes.iter().enumerate() {
            let overridden = all.filter(|all| at < *all && *wish == Wish::Warn);
            lists.entry(overridden.map_or(*wish, |all| wishes[all].1)).or_default().push(name);
        }
        for (wish, list) in [(Wish::Allow, "allow"), (Wish::Warn, "warn"), (Wish::Deny, "deny")] {
            self.list(1, &["verify"], list, lists.get(&wish).map_or(&[], Vec::as_slice));
        }
    }

    // A list whose names come from many places.
    fn list(&mut self, table: usize, parent: &[&str], list: &str, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        let mut origins: Vec<Origin> = Vec::new();
        for name in names {
            let of = |words: &[&str]| self.loaded.origins.get(&Key::of(&[parent, words].concat()));
            let origin = of(&[list, *name]).or_else(|| of(&[*name]));
            origins.extend(origin.filter(|origin| !origins.contains(origin)).cloned());
        }
        let key = Key::of(&[parent, &[list]].concat());
        self.entries.push(Entry { key, table, value: json!(names), origins });
    }

    fn add_some(&mut self, table: usize, words: &[&str], value: Option<Value>) {
        if let Some(value) = value {
            self.add(table, words, value);
        }
    }

    fn add(&mut self, table: usize, words: &[&str], value: Value) {
        let key = Key::of(words);
        let origin = self.loaded.origins.get(&key).cloned();
        self.entries.push(Entry { key, table, value, origins: vec![origin.unwrap_or(Origin::Default)] });
    }
}

fn variable(name: &str, value: &str) -> Value {
    if is_secret_name(name) || planctl_harness::Masks::new([(name, value)]).text(value) != value {
        return json!("…");
    }
    json!(masked(value))
}

fn time(span: Duration) -> Value {
    let seconds = span.as_secs();
    let parts = [(seconds / 3600, 'h'), (seconds % 3600 / 60, 'm'), (seconds % 60, 's')];
    if seconds == 0 {
        return json!("0s");
    }
    let words =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}"));
    json!(words.collect::<String>())
}
