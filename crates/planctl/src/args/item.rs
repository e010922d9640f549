//! The arguments of `planctl item`, with which a script does the work of a worker.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::amounts::parse_time;
use crate::completing;

/// The commands with which a script does the work of a worker.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  eval \"$(planctl item claim --role coder --shell)\"      exports PLANCTL_ITEM and others
  (cd \"$PLANCTL_WORKSPACE\" && my-agent < \"$PLANCTL_PROMPT_FILE\" > out.txt)
  planctl item heartbeat --wait 20s                       repeat it; at exit 5 or 7, end the work
  planctl item complete --result out.txt                  the contract decides")]
pub enum ItemCommand {
    /// Claims an item; exits 10 if there is none
    #[command(before_help = "Examples:
  eval \"$(planctl item claim --role coder --wait 5m --shell)\"
  planctl item claim --role coder --no-wait --json")]
    Claim {
        /// The roles to claim for; may be repeated [default: the roles of the token]
        #[arg(long = "role", value_name = "ROLE", add = completing::role())]
        roles: Vec<String>,
        /// How long to wait for one
        #[arg(long, value_name = "DUR", default_value = "30s", value_parser = parse_time)]
        wait: std::time::Duration,
        /// Do not wait
        #[arg(long, conflicts_with = "wait")]
        no_wait: bool,
        /// How long the lease lasts without a heartbeat: 5s to 10m [default: the daemon's]
        #[arg(long, value_name = "DUR", value_parser = parse_time)]
        lease: Option<std::time::Duration>,
        /// Write the prompt to this file [default: a new one in the directory for temporary files, removed with the report]
        #[arg(long, value_name = "FILE")]
        prompt_file: Option<PathBuf>,
        /// Print variables for a shell's eval
        #[arg(long)]
        shell: bool,
        /// The name that `worker ls` shows [default: this machine's]
        #[arg(long, alias = "agent-id", value_name = "NAME")]
        name: Option<String>,
    },
    /// Shows the item that you hold
    Show(HeldItem),
    /// Renews the lease; exits 5 if it is lost and 7 if the run was stopped: then end the work
    Heartbeat {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// Wait this long, at most a minute; exit at once if the lease is lost or the run is stopped
        #[arg(long, value_name = "DUR", value_parser = parse_time)]
        wait: Option<std::time::Duration>,
    },
    /// Sends a line of output to people who follow the run
    Log {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// The text [default: standard input]
        #[arg(long)]
        text: Option<String>,
    },
    /// Reports tokens and money used so far
    Usage {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// The usage.
        #[command(flatten)]
        used: Used,
    },
    /// Reports that the work ended; the contract decides
    Complete {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// A file with the worker's last words; `-` is standard input
        #[arg(long, value_name = "FILE")]
        result: Option<PathBuf>,
        /// The worker gave up: a failing contract is not retried
        #[arg(long)]
        gave_up: bool,
        /// The exit code of the worker's process
        #[arg(long, value_name = "CODE")]
        exit_code: Option<i32>,
        /// The label of the edge to prefer, where the plan branches; it passes no contract
        #[arg(long, value_name = "LABEL")]
        prefer: Option<String>,
        /// A node to go on with; the first one counts most
        #[arg(long, value_name = "NODE")]
        suggest: Vec<String>,
        /// A value that conditions of the plan can read; may be repeated
        #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_pair)]
        set: Vec<(String, String)>,
        /// A file with a step to propose after this one (`### Title`, then its fields); a person decides
        #[arg(long, value_name = "FILE")]
        insert_step: Option<PathBuf>,
        /// The usage.
        #[command(flatten)]
        used: Used,
    },
    /// Reports why the work could not be done
    Fail {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// The reason
        #[arg(long)]
        reason: String,
        /// gave-up: the contract decides, without a retry; transient: try later; permission, permanent: ask a person;
        /// overran: the worker was ended at its deadline; silent: it was ended because it printed nothing
        #[arg(long, value_parser = ["gave-up", "transient", "permission", "permanent", "overran", "silent"], default_value = "gave-up", hide_possible_values = true)]
        kind: String,
        /// The same as --kind transient
        #[arg(long, conflicts_with = "kind", hide = true)]
        transient: bool,
        /// The usage.
        #[command(flatten)]
        used: Used,
    },
    /// Asks a person; the answer is in the next prompt
    Ask {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// The question
        #[arg(long)]
        question: String,
    },
    /// Gives the item back; no attempt is used up
    Release(HeldItem),
}

/// An item that a script holds.
#[derive(Args, Clone, Debug)]
pub struct HeldItem {
    /// The item [env: PLANCTL_ITEM]
    pub item: Option<String>,
    /// The token of its lease; others on this machine can see an argument [env: PLANCTL_ITEM_TOKEN]
    #[arg(long)]
    pub token: Option<String>,
}

/// A worker's usage.
#[derive(Args, Clone, Debug, Default)]
pub struct Used {
    /// Input tokens, cached ones included
    #[arg(long, alias = "input", value_name = "N")]
    pub input_tokens: Option<u64>,
    /// Input tokens that came from a cache
    #[arg(long, value_name = "N")]
    pub cached_tokens: Option<u64>,
    /// Output tokens
    #[arg(long, alias = "output", value_name = "N")]
    pub output_tokens: Option<u64>,
    /// US dollars
    #[arg(long, value_name = "USD")]
    pub cost: Option<f64>,
    /// The model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}
