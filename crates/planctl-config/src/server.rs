//! Servers of tools: how each is reached, and the effects that a trusted file declares of its tools.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::role::Effects;

/// One server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// How it is reached.
    pub reach: ServerReach,
    /// The effects of its tools that say nothing of their own; `None` declares none, so that a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<BTreeSet<String>>,
    /// The effects of single tools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, BTreeSet<String>>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ServerReach {
    /// As a program that speaks over its standard streams.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// The variables that it gets of planctl's own; never their values.
        env: Vec<String>,
    },
    /// At an address.
    Url {
        /// The address.
        url: String,
        /// The variable that holds its token; never the token.
        token_env: Option<String>,
    },
}

impl ServerConfig {
    /// Returns the declared effects of a tool (M-37).
    pub fn effects_of(&self, tool: &str) -> Option<&BTreeSet<String>> {
        self.tools.get(tool).or(self.effects.as_ref())
    }
}

impl ServerConfig {
    /// Says whether a tool has the network: its server is at an address, or declares that effect, or declares none at all. Without
    /// a tool it is asked of the server's start, which may be for any of its tools.
    pub fn has_network(&self, tool: Option<&str>) -> bool {
        let has =
            |declared: Option<&BTreeSet<String>>| declared.is_none_or(|names| names.contains("network"));
        match (&self.reach, tool) {
            (ServerReach::Url { .. }, _) => true,
            (ServerReach::Command { .. }, Some(tool)) => has(self.effects_of(tool)),
            (ServerReach::Command { .. }, None) => {
                has(self.effects.as_ref()) || self.tools.values().any(|names| has(Some(names)))
            }
        }
    }

    /// Says whether uses of a tool may run beside other work in the workspace: it declares its effects, and each is safe.
    pub fn runs_beside_others(&self, tool: &str) -> bool {
        let declared = self.effects_of(tool);
        declared.is_some_and(|names| names.iter().all(|name| Effects::SAFE.contains(&name.as_str())))
    }
}

impl Effects {
    /// The effects that nobody is asked about where a role allows none by name, unless they are denied (M-33).
    const SAFE: [&str; 6] = ["read", "network", "compute", "output", "pure", "llm"];

    /// Says why a person is asked before something with these effects happens; `None` where nobody is. A denied effect asks
    /// even where it is allowed. A list of allowed effects is closed: any other asks, though it is safe (M-34).
    pub fn asks(&self, declared: Option<&BTreeSet<String>>) -> Option<String> {
        let Some(declared) = declared else { return Some("its effects are not declared".to_owned()) };
        let denied: Vec<&str> = declared.intersection(&self.deny).map(String::as_str).collect();
        if !denied.is_empty() {
            return Some(format!("{} is denied without a person", denied.join(", ")));
        }
        let is_free = |name: &&String| match self.allow.is_empty() {
            true => Self::SAFE.contains(&name.as_str()),
            false => self.allow.contains(*name),
        };
        let risky: Vec<&str> = declared.iter().filter(|name| !is_free(name)).map(String::as_str).collect();
        (!risky.is_empty()).then(|| format!("it may {}", risky.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn m_33_safe_effects_ask_nobody_and_risky_ones_do() {
        let none = Effects::default();
        for name in Effects::SAFE {
            assert_eq!(none.asks(Some(&names(&[name]))), None, "{name}");
        }
        for name in ["filesystem", "system", "write", "delete", "launch-rockets"] {
            assert!(none.asks(Some(&names(&["read", name]))).is_some(), "{name}");
        }
    }

    #[test]
    fn m_34_what_is_denied_asks_and_what_is_allowed_does_not_and_deny_wins() {
        let effects = |allow: &[&str], deny: &[&str]| Effects { allow: names(allow), deny: names(deny) };
        assert!(effects(&[], &["read"]).asks(Some(&names(&["read"]))).is_some());
        assert_eq!(effects(&["write"], &[]).asks(Some(&names(&["write"]))), None);
        assert!(effects(&["write"], &["write"]).asks(Some(&names(&["write"]))).is_some());
        assert!(effects(&["write"], &[]).asks(Some(&names(&["write", "delete"]))).is_some());
    }

    #[test]
    fn m_34_a_list_of_allowed_effects_is_closed() {
        let only = Effects { allow: names(&["write"]), deny: BTreeSet::new() };
        assert_eq!(only.asks(Some(&names(&["read", "write"]))), Some("it may read".to_owned()));
        assert_eq!(only.asks(Some(&BTreeSet::new())), None, "a tool without effects needs none allowed");
    }

    #[test]
    fn a_tool_has_the_network_where_it_is_declared_or_nothing_is() {
        let server = |reach: ServerReach, effects: Option<&[&str]>, tool: &[&str]| ServerConfig {
            reach,
            effects: effects.map(names),
            tools: BTreeMap::from([("one".to_owned(), names(tool))]),
        };
        let program = || ServerReach::Command { command: vec!["server".to_owned()], env: Vec::new() };
        let asked = |server: ServerConfig| ["one", "other"].map(|tool| server.has_network(Some(tool)));
        assert_eq!(asked(server(program(), Some(&["read"]), &["network"])), [true, false]);
        assert_eq!(asked(server(program(), None, &["read"])), [false, true]);
        assert!(server(program(), Some(&["read"]), &["network"]).has_network(None));
        assert!(!server(program(), Some(&["read"]), &[]).has_network(None));
        let address = ServerReach::Url { url: "https://x.example".to_owned(), token_env: None };
        assert_eq!(asked(server(address, Some(&[]), &[])), [true, true]);
    }

    #[test]
    fn m_37_effects_that_nobody_declared_ask() {
        let everything = Effects { allow: names(&Effects::KNOWN), deny: BTreeSet::new() };
        assert!(everything.asks(None).is_some());
        assert_eq!(everything.asks(Some(&BTreeSet::new())), None, "declared to have none");
    }
}
