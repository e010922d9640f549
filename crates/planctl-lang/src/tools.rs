//! Tools of servers as plain data: what a server offers, and the arguments of a call by their schema.

mod arguments;
mod command;
mod template;

pub use arguments::{Misfit, coerced, misfits};
pub use command::{OUTPUTS, ToolUse, is_name, outputs_read};
pub use template::{Outputs, Reference, Segment, Unfilled, filled, items, printed, references};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tools of one server, as it listed them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ToolList {
    /// The name by which the server knows itself.
    pub server: String,
    /// Its version; a list holds for this version.
    pub version: String,
    /// The tools, by name.
    pub tools: Vec<Tool>,
}

impl ToolList {
    /// Returns a tool by name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A tool of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description, in the words of its server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input: Value,
    /// The hints of the server about it. They are foreign words: no decision rests on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}
