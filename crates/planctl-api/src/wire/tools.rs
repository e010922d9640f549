//! Servers and their tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `tool ls --json` and `tool refresh --json`: one server after the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ServersView {
    /// The servers of planctl.toml.
    pub servers: Vec<ServerView>,
}

/// A server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ServerView {
    /// Its name in planctl.toml.
    pub name: String,
    /// The name by which it knows itself; null where it was never asked.
    pub server: Option<String>,
    /// Its version, for which the list holds.
    pub version: Option<String>,
    /// Why it gave no list.
    pub problem: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolView>,
}

/// A tool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ToolView {
    /// Its server's name in planctl.toml.
    pub server: String,
    /// Its name.
    pub name: String,
    /// Its description, in the words of its server.
    pub description: String,
    /// The effects that planctl.toml declares; null where it declares none.
    pub effects: Option<Vec<String>>,
    /// Why a person is asked before it is used; null where nobody is.
    pub asks: Option<String>,
    /// The hints of its server, on which no decision rests.
    pub hints: Vec<String>,
    /// The JSON Schema of its arguments.
    pub input: Value,
}
