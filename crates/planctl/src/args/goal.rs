//! The arguments of `planctl goal`: what a goal is made of, before anybody knows who does it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use planctl_config::Agent;

use crate::amounts::parse_time;

/// The commands of `planctl goal`.
#[derive(Subcommand, Clone, Debug)]
pub enum GoalCommand {
    /// Breaks a goal into intents, each one piece of work or one question; runs nothing
    #[command(before_help = "Examples:
  planctl goal decompose 'list issues in owner/repo but ask me for the page size'
  planctl goal decompose 'close stale issues' --model writer --tools tools.json
  planctl goal decompose 'close stale issues' --model writer --explain   says which strategies were considered

A file of tools is a JSON list of {\"name\", \"about\", \"parameters\"}; with it a writer is shown the tools that there are.")]
    Decompose(GoalArgs),
    /// Shows a goal's intents as a graph: which is a part of which, and which needs the result of which
    Graph(GoalArgs),
}

/// A goal, and how it is broken up.
#[derive(Args, Clone, Debug)]
pub struct GoalArgs {
    /// The goal, in your words
    pub goal: String,
    /// How it is broken up
    #[arg(long, value_name = "STRATEGY", default_value = "hybrid", hide_possible_values = true)]
    pub strategy: StrategyWord,
    /// The agent that is asked where no pattern fits; it only reads
    #[arg(long, value_name = "NAME[:ARGS]", conflicts_with = "model", value_parser = Agent::parse)]
    pub agent: Option<Agent>,
    /// The model that is asked where no pattern fits, by its name in [models]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The tools that there are, as a JSON list
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// How long an agent may take for one answer
    #[arg(long, value_name = "DUR", default_value = "10m", value_parser = parse_time)]
    pub within: Duration,
    /// Say which strategies were considered, and why
    #[arg(long)]
    pub explain: bool,
    /// Begin from nothing; what was answered before is thrown away
    #[arg(long)]
    pub again: bool,
}

/// A strategy, as it is typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum StrategyWord {
    /// By the form of the goal
    Pattern,
    /// By a writer that is shown no tools
    IntentFirst,
    /// By a writer that is shown the tools
    Grounded,
    /// A pattern, then grounded, then intents first
    Hybrid,
}
