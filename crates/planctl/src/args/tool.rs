//! The arguments of `planctl tool`: the tools of MCP servers.

use std::time::Duration;

use clap::Subcommand;

use crate::amounts::parse_time;

/// The commands of `planctl tool`.
#[derive(Subcommand, Clone, Debug)]
pub enum ToolCommand {
    /// Lists the tools of the servers in planctl.toml; a server is asked once, then the list is kept
    #[command(before_help = "Examples:
  planctl tool ls          the tools of all servers, with their effects
  planctl tool ls github   those of one")]
    Ls {
        /// The server, by its name in planctl.toml
        #[arg(id = "server_of_tools", value_name = "SERVER")]
        server: Option<String>,
        /// Show which calls of this role need a person's approval
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
    },
    /// Shows a tool: what it does, its effects, and the schema of its arguments
    #[command(before_help = "Examples:
  planctl tool show github list_issues
  planctl tool show github create_issue --role triage   whether a person is asked in its calls")]
    Show {
        /// The server
        #[arg(id = "server_of_tools", value_name = "SERVER")]
        server: String,
        /// The tool
        tool: String,
        /// Show whether calls of this role need a person's approval
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
    },
    /// Asks servers for their tools again
    #[command(before_help = "Example:\n  planctl tool refresh github")]
    Refresh {
        /// The server [default: all]
        #[arg(id = "server_of_tools", value_name = "SERVER")]
        server: Option<String>,
    },
    /// Uses a tool once, to try it, and prints its result
    #[command(before_help = "Example:
  planctl tool call github list_issues '{\"owner\": \"acme\", \"repo\": \"shop\"}'")]
    Call {
        /// The server
        #[arg(id = "server_of_tools", value_name = "SERVER")]
        server: String,
        /// The tool
        tool: String,
        /// Its arguments, as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        /// How long it may take
        #[arg(long, value_name = "DUR", default_value = "2m", value_parser = parse_time)]
        within: Duration,
    },
}
