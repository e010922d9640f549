//! The arguments of `planctl mcp` and `planctl session`: agents that speak the Model Context Protocol, and their scratch list.

use clap::{Args, Subcommand, ValueEnum};
use planctl_mcp::planning::Strategy;

/// Flags of `planctl mcp`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    /// Offer no planning tools, for agents that have a list of their own
    #[arg(long)]
    pub no_planning: bool,
    /// The command of `planctl mcp`.
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

/// The commands of `planctl mcp`.
#[derive(Subcommand, Clone, Debug)]
pub enum McpCommand {
    /// Adds the server to an agent's settings; says what it changes, and keeps everything else
    #[command(before_help = "Examples:
  planctl mcp install claude           in this project: .mcp.json
  planctl mcp install codex --user     in your own settings, for all projects
  planctl mcp install vscode --dry-run")]
    Install(McpInstall),
}

/// Where the server is added.
#[derive(Args, Clone, Debug)]
pub struct McpInstall {
    /// The agent
    #[arg(value_enum)]
    pub client: McpClient,
    /// In your own settings, for all projects, instead of this project's
    #[arg(long)]
    pub user: bool,
    /// Remove the server
    #[arg(long)]
    pub remove: bool,
    /// Show what would change; write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// The agents whose settings planctl knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum McpClient {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// OpenCode
    #[value(name = "opencode")]
    OpenCode,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
}

impl McpArgs {
    /// The examples of `planctl mcp`.
    pub const EXAMPLES: &str = "Examples:
  planctl mcp install claude
  planctl mcp install codex --user

Your agent starts `planctl mcp`, and talks to it over standard input and output; docs/mcp.md says what it offers.
Nothing that it offers decides or approves anything.";
}

/// The commands of the scratch list of a session.
#[derive(Subcommand, Clone, Debug)]
pub enum SessionCommand {
    /// Prints the part of a prompt that explains the planning tools to an agent
    #[command(before_help = "Examples:
  planctl session prompt >> AGENTS.md
  planctl session prompt --strategy plan-act-reflect")]
    Prompt {
        /// The way of working that the agent is asked to follow
        #[arg(long, value_enum, default_value = "react")]
        strategy: PlanningStrategy,
    },
}

/// A way of working with the planning tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PlanningStrategy {
    /// Reason, act, observe, repeat
    React,
    /// The whole plan first, then a reflection after each step
    PlanActReflect,
    /// The goal, its parts, a tool for each, and one answer of all
    GoalDecomposeRouteSynthesise,
}

impl From<PlanningStrategy> for Strategy {
    fn from(word: PlanningStrategy) -> Strategy {
        match word {
            PlanningStrategy::React => Strategy::React,
            PlanningStrategy::PlanActReflect => Strategy::PlanActReflect,
            PlanningStrategy::GoalDecomposeRouteSynthesise => Strategy::GoalDecomposeRouteSynthesise,
        }
    }
}
