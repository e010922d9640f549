//! The order that the calling process reads from its standard input.

use std::fmt;

use planctl_lang::tools::{Outputs, Tool, ToolList};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// A program that speaks over its standard streams.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables beside those of the process that starts it.
        environment: Vec<(String, String)>,
    },
    /// An address (streamable HTTP).
    Url {
        /// The address.
        url: String,
        /// The token that is sent as `Authorization: Bearer`.
        token: Option<String>,
    },
}

/// Shows how a server is reached without what it is trusted with.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::Command { command, .. } => f.debug_tuple("Command").field(command).finish(),
            Server::Url { url, .. } => f.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// An order to a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The server.
    pub server: Server,
    /// The order.
    pub order: Order,
}

/// The orders that a server takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Its tools, as a [`ToolList`].
    List,
    /// The use of one tool.
    Call(Box<Calls>),
}

/// The use of one tool, once or for each item of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Calls {
    /// The tool as it was known when the plan was verified, and the version of its server; the server is asked for its tools
    /// where nothing is known, or where its version is another one.
    pub known: Option<(String, Tool)>,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, with references.
    pub arguments: Value,
    /// The list that it is used for, with references.
    pub for_each: Option<String>,
    /// How many entries of that list it is used for at once.
    pub at_once: usize,
    /// The outputs that are referred to.
    pub outputs: Outputs,
}

impl Calls {
    /// Takes the tool out of a list that is known.
    pub fn with_known(mut self, list: Option<&ToolList>) -> Calls {
        self.known = list.and_then(|list| Some((list.version.clone(), list.tool(&self.tool)?.clone())));
        self
    }
}
