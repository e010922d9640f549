//! The arguments of `planctl worker`.

use clap::{Args, Subcommand};
use planctl_config::Agent;

use crate::amounts::parse_time;
use crate::completing;

/// The commands of workers.
#[derive(Subcommand, Clone, Debug)]
pub enum WorkerCommand {
    /// Claims work from the daemon, lets an agent do it, and reports; Ctrl-C finishes what it has, twice gives it back
    #[command(
        alias = "start",
        before_help = "Examples:
  planctl worker run --role coder --agent claude
  planctl worker run --role lint --exec 'ruff check --fix .' -j 2
  PLANCTL_TOKEN_FILE=worker.token planctl --server http://127.0.0.1:7420 worker run --role coder --agent codex
  planctl worker run --role coder --exec ./work.sh --drain      in a script: ends when nothing is left"
    )]
    Run(WorkerRun),
    /// Lets a worker do one small task in a throw-away folder, and says what planctl can tell of it
    #[command(before_help = "Examples:
  planctl worker test --agent codex
  planctl worker test --agent 'claude:--model sonnet'
  planctl worker test --exec './work.sh'

An agent's service is really asked, once, and may charge for it.")]
    Test {
        /// The worker to test.
        #[command(flatten)]
        worker: NamedWorker,
        /// How long it may take: 90s, 2m
        #[arg(long, value_name = "DUR", default_value = "2m", value_parser = parse_time)]
        within: std::time::Duration,
    },
    /// Lists the workers that asked the daemon for work
    #[command(visible_alias = "list")]
    Ls,
    /// Lets a worker claim nothing more; it finishes the items that it has
    Pause {
        /// Its name, as `worker ls` shows it
        id: String,
    },
    /// Lets a paused worker claim again
    Resume {
        /// Its name
        id: String,
    },
}

/// A worker that is named.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct NamedWorker {
    /// A command; it reads the prompt on its input
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// An agent by its name: claude, codex, gemini, opencode or aider, and its own arguments
    #[arg(long, value_name = "NAME[:ARGS]", value_parser = Agent::parse)]
    pub agent: Option<Agent>,
}

/// How a worker works.
#[derive(Args, Clone, Debug)]
pub struct WorkerRun {
    /// The roles that it serves; may be repeated
    #[arg(long = "role", value_name = "ROLE", add = completing::role(), required = true)]
    pub roles: Vec<String>,
    /// The agent that works.
    #[command(flatten)]
    pub worker: NamedWorker,
    /// How many items it works on at once
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub at_once: u16,
    /// End after one item
    #[arg(long, conflicts_with_all = ["max_items", "drain"])]
    pub once: bool,
    /// End after so many items
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_items: Option<u64>,
    /// End when nothing was to be claimed for 5 seconds
    #[arg(long)]
    pub drain: bool,
    /// How long it may work on an item, where the plan allows more
    #[arg(long, value_name = "DUR", value_parser = parse_time)]
    pub timeout: Option<std::time::Duration>,
    /// How long it may print nothing
    #[arg(long, value_name = "DUR", value_parser = parse_time)]
    pub idle_timeout: Option<std::time::Duration>,
    /// A variable for it; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub variables: Vec<(String, String)>,
    /// By which name `worker ls` shows it [default: this machine's and the agent's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(is_fit) {
        return Err(format!("{name:?} is no name of a variable"));
    }
    if name.starts_with("PLANCTL_") {
        return Err(format!("{name} is planctl's own"));
    }
    Ok((name.to_owned(), value.to_owned()))
}
