//! Reads `[roles.NAME]` and `[prices."MODEL"]`.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::Responder;
use planctl_glob::Glob;
use planctl_harness::{HostPattern, PermissionMode, Reach};
use planctl_lang::did_you_mean;

use super::{Reader, Value, is_role};
use crate::layer::{Layer, RoleLayer};
use crate::role::{Agent, Effects, Pace, Price, RoleEnv};

const KEYS: [&str; 11] = [
    "agent",
    "timeout",
    "idle_timeout",
    "env",
    "permissions",
    "allow",
    "effects",
    "plans",
    "types",
    "pace",
    "network",
];
/// Says what the hosts of a role's network can be.
const HOST: &str = "write a name, \"*.\" and a name for all beneath it, or an IP address; \":PORT\" where it is not 443 or 80";
const LEVELS: [&str; 3] = ["alternate", "contingent", "emergency"];
/// The highest price that can be meant, in US dollars per million tokens.
const PRICE_MAX: f64 = 100_000.0;

impl Reader<'_> {
    pub(super) fn role(&mut self, name: &str, value: &Value<'_>) -> RoleLayer {
        let mut role = RoleLayer::default();
        let mut held = None;
        for (key, value) in self.table(value, &format!("roles.{name}")) {
            match key.get_ref().as_ref() {
                "agent" => role.agent = self.agent(value),
                "timeout" => role.timeout = self.duration(value),
                "idle_timeout" => role.idle_timeout = self.duration(value),
                "env" => role.env = self.role_env(value),
                "permissions" => {
                    role.permissions = self.permissions(value);
                    held = Some(value.span());
                }
                "allow" => {
                    role.allow = self.strings(value, "a list of tools: [\"Edit\", \"Bash(git *)\"]");
                    held = Some(value.span());
                }
                "effects" => role.effects = self.effects(value),
                "plans" => role.plans = self.plans(value),
                "types" => role.types = self.strings(value, "a list of types of nodes: [\"deploy\"]"),
                "pace" => role.pace = self.pace(name, value),
                "network" => role.network = self.network(value),
                other @ ("model" | "parse") => self.later(key.span(), &format!("roles.{name}.{other}")),
                other => self.unknown(key.span(), other, KEYS),
            }
        }
        if let (Some(agent), Some(span)) = (&role.agent, held)
            && let Err(what) = agent.can_keep(&role.permissions())
        {
            self.report(span, what, None);
        }
        role
    }

    fn agent(&mut self, value: &Value<'_>) -> Option<Agent> {
        let text = self.string(value)?;
        match Agent::parse(text) {
            Ok(agent) => Some(agent),
            Err(error) => {
                self.report(value.span(), error.what, Some(error.help));
                None
            }
        }
    }

    fn permissions(&mut self, value: &Value<'_>) -> Option<PermissionMode> {
        let text = self.string(value)?;
        let mode = PermissionMode::ALL.into_iter().find(|mode| mode.as_str() == text);
        if mode.is_none() {
            let words = PermissionMode::ALL.map(PermissionMode::as_str);
            let help = match did_you_mean(text, words) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("write one of: {}", words.join(", ")),
            };
            self.report(value.span(), format!("permissions can't be {text:?}"), Some(help));
        }
        mode
    }

    fn role_env(&mut self, value: &Value<'_>) -> Option<RoleEnv> {
        if !value.get_ref().is_array() {
            return Some(RoleEnv { set: self.variables(value), inherit: Vec::new() });
        }
        let mut inherit = Vec::new();
        for entry in value.get_ref().as_array().into_iter().flatten() {
            let Some(name) = self.string(entry) else { continue };
            self.variable_name(entry.span(), name);
            inherit.push(name.to_owned());
        }
        Some(RoleEnv { set: BTreeMap::new(), inherit })
    }

    fn network(&mut self, value: &Value<'_>) -> Option<Reach> {
        let expected = "\"host\", \"none\" or a list of hosts: [\"api.example.com\"]";
        if let Some(word) = value.get_ref().as_str() {
            let reach = Reach::of_word(word);
            if reach.is_none() {
                self.report(value.span(), format!("`network` is {expected}; not {word:?}"), None);
            }
            return reach;
        }
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, expected);
            return None;
        };
        if array.is_empty() {
            let help = "write \"none\" for a worker that reaches nothing".to_owned();
            self.report(value.span(), "`network` has no hosts".to_owned(), Some(help));
        }
        let mut hosts: Vec<HostPattern> = Vec::new();
        for entry in array {
            let Some(text) = self.string(entry) else { continue };
            match text.parse() {
                Ok(host) => hosts.push(host),
                Err(error) => {
                    let message = format!("{text:?} can't be a host of `network`: {error}");
                    self.report(entry.span(), message, Some(HOST.to_owned()));
                }
            }
        }
        Some(Reach::Hosts(hosts))
    }

    fn effects(&mut self, value: &Value<'_>) -> Effects {
        let mut effects = Effects::default();
        for (key, value) in self.table(value, "effects") {
            match key.get_ref().as_ref() {
                "allow" => effects.allow = self.effect_names(value),
                "deny" => effects.deny = self.effect_names(value),
                other => self.unknown(key.span(), other, ["allow", "deny"]),
            }
        }
        if let Some(name) = effects.allow.intersection(&effects.deny).next() {
            let message = format!("`{name}` is both allowed and denied; what is denied would win");
            self.report(value.span(), message, Some("leave it in one list".to_owned()));
        }
        effects
    }

    pub(super) fn effect_names(&mut self, value: &Value<'_>) -> BTreeSet<String> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, "a list of effects: [\"network\"]");
            return BTreeSet::new();
        };
        let mut names = BTreeSet::new();
        for entry in array {
            let Some(name) = self.string(entry) else { continue };
            let is_name = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'));
            let near = did_you_mean(name, Effects::KNOWN).filter(|near| *near != name);
            if !is_name || near.is_some() {
                let help = near.map_or_else(
                    || format!("usual are {}", Effects::KNOWN.join(", ")),
                    |near| format!("did you mean \"{near}\"?"),
                );
                self.report(entry.span(), format!("{name:?} can't be an effect"), Some(help));
                continue;
            }
            names.insert(name.to_owned());
        }
        names
    }

    pub(super) fn plans(&mut self, value: &Value<'_>) -> Option<Vec<Glob>> {
        let array = value.get_ref().as_array();
        let Some(array) = array else {
            self.wrong_type(value, "a list of plans: [\"plans/bugfix-*.md\"]");
            return None;
        };
        let mut plans = Vec::new();
        for entry in array {
            let Some(glob) = self.string(entry) else { continue };
            match Glob::parse(glob) {
                Ok(glob) => plans.push(glob),
                Err(error) => self.report(entry.span(), error.to_string(), None),
            }
        }
        Some(plans)
    }

    fn pace(&mut self, role: &str, value: &Value<'_>) -> Pace {
        let mut pace = Pace::default();
        for (key, value) in self.table(value, &format!("roles.{role}.pace")) {
            let level = match key.get_ref().as_ref() {
                "alternate" => &mut pace.alternate,
                "contingent" => &mut pace.contingent,
                "emergency" => &mut pace.emergency,
                other => {
                    self.unknown(key.span(), other, LEVELS);
                    continue;
                }
            };
            let Some(name) = self.string(value) else { continue };
            if !is_role(name) {
                self.report(value.span(), format!("{name:?} is neither a role nor \"human\""), None);
            } else if name == role {
                let message = format!("`{role}` can't answer for itself; it is the primary already");
                self.report(value.span(), message, Some("name another role, or \"human\"".to_owned()));
            } else {
                *level = Some(Responder::from(name.to_owned()));
            }
        }
        pace
    }

    pub(super) fn prices(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (model, value) in self.table(value, "prices.\"MODEL\"") {
            let before = self.findings.len();
            let (mut input, mut cached, mut output) = (None, None, None);
            for (key, value) in self.table(value, "prices.\"MODEL\"") {
                match key.get_ref().as_ref() {
                    "input" => input = self.price(value),
                    "cached" => cached = self.price(value),
                    "output" => output = self.price(value),
                    other => self.unknown(key.span(), other, ["input", "cached", "output"]),
                }
            }
            if let (Some(input), Some(output)) = (input, output) {
                let price = Price { input, cached: cached.unwrap_or(input), output };
                layer.prices.insert(model.get_ref().to_string(), price);
            } else if value.get_ref().is_table() && before == self.findings.len() {
                let message = format!("the price of {:?} needs `input` and `output`", model.get_ref());
                self.report(model.span(), message, Some("in US dollars per million tokens".to_owned()));
            }
        }
    }

    /// Reads US dollars per million tokens.
    fn price(&mut self, value: &Value<'_>) -> Option<u64> {
        let number = match (value.get_ref().as_integer(), value.get_ref().as_float()) {
            (Some(integer), _) if integer.radix() == 10 => integer.as_str().replace('_', "").parse::<f64>(),
            (_, Some(float)) => float.as_str().replace('_', "").parse::<f64>(),
            (Some(_), None) | (None, None) => {
                self.wrong_type(value, "US dollars per million tokens, such as 1.25");
                return None;
            }
        };
        match number {
            Ok(number) if (0.0..=PRICE_MAX).contains(&number) => Some((number * 1e6).round() as u64),
            Ok(_) | Err(_) => {
                let message = format!("a price is 0 to {PRICE_MAX} US dollars per million tokens");
                self.report(value.span(), message, None);
                None
            }
        }
    }

    pub(super) fn strings(&mut self, value: &Value<'_>, expected: &str) -> Option<Vec<String>> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, expected);
            return None;
        };
        Some(array.iter().filter_map(|entry| self.string(entry).map(str::to_owned)).collect())
    }
}
