//! Capabilities: the tools of servers and what is local, as they describe themselves; read from lists of either form.

use std::collections::BTreeSet;

use planctl_lang::escape;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parameter::{Parameter, ParameterKind, parameters_of};

/// The most capabilities of one list.
const CAPABILITIES_MAX: usize = 50_000;
/// The name of the question to a person.
pub const ASK_PERSON: &str = "ask_person";

/// Something that can be called.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Capability {
    /// The server that offers it; none for what is local.
    pub server: Option<String>,
    /// Its name there.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// Its parameters, in the order of its schema.
    pub parameters: Vec<Parameter>,
    /// Says that it takes arguments which its schema does not name.
    pub takes_others: bool,
    /// The command that does it, where it is local; `{NAME}` stands for an argument.
    pub command: Option<String>,
    /// Its effects; none where it declares nothing.
    pub effects: Option<BTreeSet<String>>,
}

impl Capability {
    /// Returns the name by which people know it: `github.list_issues`.
    pub fn id(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}.{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns what every project has: a question to a person.
    pub fn ask_person() -> Capability {
        Capability {
            server: None,
            name: ASK_PERSON.to_owned(),
            description: "Asks a person a question and waits for the answer: approval, a decision, a value."
                .to_owned(),
            parameters: vec![Parameter {
                name: "question".to_owned(),
                kind: ParameterKind::Text,
                about: "the question".to_owned(),
                is_required: true,
                choices: Vec::new(),
            }],
            takes_others: false,
            command: None,
            effects: Some(BTreeSet::new()),
        }
    }

    /// Finds a parameter by its exact name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Reads a list: the answer of an MCP server to `tools/list`, whose tools are those of `server`; or a JSON list of
    /// `{"name", "about", "parameters"}`, where a name before a dot is a server's, and what is local has a `command`.
    ///
    /// # Errors
    ///
    /// The faults of the list, each in one line.
    pub fn read_all(text: &str, server: &str) -> Result<Vec<Capability>, Vec<String>> {
        let value: Value = serde_json::from_str(text).map_err(|error| vec![escape(&error.to_string())])?;
        let answer = value.get("result").unwrap_or(&value);
        let (tools, server) = match (answer.get("tools"), answer) {
            (Some(Value::Array(tools)), _) => (tools, Some(server)),
            (None, Value::Array(tools)) => (tools, None),
            (Some(_), _) | (None, _) => {
                return Err(vec!["it is neither a list nor an object with the list `tools`".to_owned()]);
            }
        };
        if tools.len() > CAPABILITIES_MAX {
            return Err(vec![format!("it has {} tools; at most {CAPABILITIES_MAX} are read", tools.len())]);
        }
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        let mut capabilities = Vec::with_capacity(tools.len());
        for (at, tool) in tools.iter().enumerate() {
            match Capability::read(tool, server) {
                Ok(capability) if !seen.insert(capability.id()) => {
                    faults.push(format!("{} is there twice", escape(&capability.id())));
                }
                Ok(capability) => capabilities.push(capability),
                Err(fault) => faults.push(format!("tool {}: {fault}", at + 1)),
            }
        }
        if faults.is_empty() { Ok(capabilities) } else { Err(faults) }
    }

    fn read(tool: &Value, server: Option<&str>) -> Result<Capability, String> {
        let text = |names: [&str; 2]| names.iter().find_map(|name| tool.get(*name)?.as_str());
        let name = text(["name", "tool"]).map(str::trim).filter(|name| !name.is_empty());
        let name = name.ok_or("it has no name")?;
        let (server, name) = match (server, name.split_once('.')) {
            (Some(server), _) => (Some(server.to_owned()), name),
            (None, Some((server, name))) if !server.is_empty() && !name.is_empty() => {
                (Some(server.to_owned()), name)
            }
            (None, Some(_) | None) => (None, name),
        };
        let schema = ["inputSchema", "input_schema", "parameters"].iter().find_map(|key| tool.get(*key));
        let (parameters, takes_others) = parameters_of(schema);
        let server_is_none = server.is_none();
        Ok(Capability {
            server,
            name: name.to_owned(),
            description: text(["description", "about"]).unwrap_or_default().trim().to_owned(),
            parameters,
            takes_others,
            command: tool
                .get("command")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .filter(|_| server_is_none),
            effects: effects_of(tool),
        })
    }
}

/// Reads effects as they are declared: by name, or by the hints of MCP, where one that only reads says so.
fn effects_of(tool: &Value) -> Option<BTreeSet<String>> {
    if let Some(Value::Array(named)) = tool.get("effects") {
        return Some(named.iter().filter_map(|effect| effect.as_str().map(str::to_lowercase)).collect());
    }
    let hints = tool.get("annotations")?;
    let says = |hint: &str| hints.get(hint).and_then(Value::as_bool);
    let effects = match (says("readOnlyHint"), says("destructiveHint")) {
        (Some(true), _) => vec!["read"],
        (Some(false), Some(false)) => vec!["write"],
        (Some(false), Some(true) | None) | (None, Some(true)) => vec!["write", "delete"],
        (None, Some(false) | None) => return None,
    };
    Some(effects.into_iter().map(str::to_owned).collect())
}
