//! The arguments of `planctl mcp` and `planctl session`: agents that speak the Model Context Protocol, and their scratch list.

use clap::{Args, Subcommand, ValueEnum};
use planctl_mcp::planning::Strategy;

/// Flags of `planctl mcp`.
#[derive(Args, Clone, Debug)]
pub struct McpArgs {
    /// Offer no planning tools, for agents that have a list of their own
    #[arg(long)]
    pub no_planning: bool,
}

impl McpArgs {
    /// The examples of `planctl mcp`.
    pub const EXAMPLES: &str = "Your agent starts this, and talks to it over standard input and output; docs/mcp.md says what it offers.
Nothing that it offers decides or approves anything.";
}

/// The commands of the scratch list of a session.
#[derive(Subcommand, Clone, Debug)]
pub enum SessionCommand {
    /// Prints the part of a prompt that tells an agent of the planning tools
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
