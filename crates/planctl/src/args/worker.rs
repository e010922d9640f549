//! The arguments of `planctl worker`.

use clap::{Args, Subcommand};
use planctl_config::Agent;

use crate::amounts::parse_time;
use crate::completing;

/// The commands of workers.
#[derive(Subcommand, Clone, Debug)]
pub enum WorkerCommand {
    /// Claims work from the daemon, has an agent do it, and reports. Ctrl-C finishes current work; a second Ctrl-C gives it back
    #[command(
        alias = "start",
        before_help = "Examples:
  planctl worker run --role coder --agent claude
  planctl worker run --role lint --exec 'ruff check --fix .' -j 2
  PLANCTL_TOKEN_FILE=token planctl --server http://127.0.0.1:7420 worker run --role qa --agent codex
  planctl worker run --role coder --exec ./work.sh --drain   ends when there is no work left"
    )]
    Run(WorkerRun),
    /// Has a worker do one small task in a temporary folder, and reports what works
    #[command(before_help = "Examples:
  planctl worker test --agent codex
  planctl worker test --agent 'claude:--model sonnet'
  planctl worker test --exec './work.sh'

This calls the agent's service once, which may cost money.")]
    Test {
        /// The agent that works: claude, codex, gemini, opencode or aider, and its own arguments
        #[arg(long, value_name = "NAME[:ARGS]", value_parser = Agent::parse, add = completing::agent())]
        agent: Option<Agent>,
        /// The command that works; it reads the prompt on its standard input
        #[arg(long, value_name = "CMD", conflicts_with = "agent")]
        exec: Option<String>,
        /// With this role's permissions and variables, and its agent where none is named
        #[arg(long, value_name = "ROLE", add = completing::role(), required_unless_present_any = ["agent", "exec"])]
        role: Option<String>,
        /// How long it may take: 90s, 2m
        #[arg(long, value_name = "DUR", default_value = "2m", value_parser = parse_time)]
        within: std::time::Duration,
    },
    /// Lists the workers that have asked the daemon for work
    #[command(visible_alias = "list")]
    Ls,
    /// Stops a worker from claiming more; it finishes the items that it holds
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

/// A worker, by its command or its agent.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct NamedWorker {
    /// The command that works; it reads the prompt on its standard input
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// The agent that works: claude, codex, gemini, opencode or aider, and its own arguments
    #[arg(long, value_name = "NAME[:ARGS]", value_parser = Agent::parse, add = completing::agent())]
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
    /// End after this many items
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_items: Option<u64>,
    /// End when there was no work to claim for 5 seconds
    #[arg(long)]
    pub drain: bool,
    /// The longest that it may work on an item; the plan may allow less
    #[arg(long, value_name = "DUR", value_parser = parse_time)]
    pub timeout: Option<std::time::Duration>,
    /// The longest that it may print nothing
    #[arg(long, value_name = "DUR", value_parser = parse_time)]
    pub idle_timeout: Option<std::time::Duration>,
    /// An environment variable for it; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub variables: Vec<(String, String)>,
    /// The name that `worker ls` shows [default: this machine's and the agent's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(is_fit) {
        return Err(format!("{name:?} is not the name of a variable"));
    }
    if name.starts_with("PLANCTL_") {
        return Err(format!("{name} is planctl's own"));
    }
    Ok((name.to_owned(), value.to_owned()))
}
