//! The arguments of the smaller nouns: topics, graphs, tokens, configuration, roles, the database.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use crate::amounts::parse_time;
use crate::completing;

/// The commands of topics.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl topic post login --note 'the vendor confirms: it is the proxy'
  git log -1 | planctl topic post releases
  planctl topic show login --tail 5")]
pub enum TopicCommand {
    /// Adds a note; the first one creates the topic
    Post {
        /// The topic's name: letters, digits, `-`, `_`, `.` and `/`
        name: String,
        /// The text of the note, up to 64 KiB [default: standard input]
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Lists the topics
    #[command(visible_alias = "list")]
    Ls,
    /// Shows a topic's notes, oldest first
    Show {
        /// The topic's name
        name: String,
        /// Begin after this number
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        since: u64,
        /// Only the newest
        #[arg(long, value_name = "NOTES")]
        tail: Option<u64>,
    },
}

/// The commands of graphs.
#[derive(Subcommand, Clone, Debug)]
pub enum GraphCommand {
    /// Reads graphs and reports everything that is wrong with them
    #[command(before_help = "Examples:
  planctl graph check fix.dot
  planctl graph check plans.json --json")]
    Check {
        /// Files: .dot, .gv, .json, or plans in markdown
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Lists the nodes that may be worked on at once: the branches of each fork
    #[command(before_help = "Examples:
  planctl graph parallel fix.dot
  planctl graph parallel plans/hello.md --json")]
    Parallel {
        /// A file: .dot, .gv, .json with one graph, or a plan in markdown
        file: PathBuf,
    },
    /// Draws a graph, or converts it: --format svg, ascii, dot, mermaid, markdown or json
    #[command(before_help = "Examples:
  planctl graph render fix.dot                          drawn with letters
  planctl graph render fix.dot -o fix.svg               a picture
  planctl graph render fix-auth-3                       a run, and where each of its nodes stands
  planctl graph render plans/hello.md --format mermaid
  planctl graph render plans.json --entry bugfix_workflow --format dot > bugfix.dot")]
    Render {
        /// A file (.dot, .gv, .json, or a plan in markdown), or a run: a name, an id, or @last
        #[arg(value_name = "FILE|RUN")]
        what: String,
        /// The graph, if the file has several
        #[arg(long, value_name = "NAME")]
        entry: Option<String>,
        /// The file to write [default: standard output]; without --format its ending says how: .svg, .dot, .mmd, .md or .json
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The commands of tokens.
#[derive(Subcommand, Clone, Debug)]
pub enum TokenCommand {
    /// Creates a token; its secret is printed only once
    #[command(before_help = "Examples:
  planctl token create worker --name build-box --role coder > worker.token
  planctl token create read --name dashboard --expires 90d")]
    Create {
        /// The scope that it grants
        scope: TokenScope,
        /// The name of its holder, under which its actions are recorded
        #[arg(long)]
        name: String,
        /// For a worker's token: a role whose work it may claim; may be repeated [default: any role]
        #[arg(long = "role", value_name = "ROLE", add = completing::role())]
        roles: Vec<String>,
        /// How long it is valid: 12h, 90d [default: until it is revoked]
        #[arg(long, value_name = "DUR", value_parser = parse_time)]
        expires: Option<std::time::Duration>,
    },
    /// Lists the tokens, without their secrets
    #[command(visible_alias = "list")]
    Ls,
    /// Revokes a token, from the next request on
    Revoke {
        /// Its id, as `token ls` shows it
        id: String,
    },
}

/// The scope of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TokenScope {
    /// Claim work and report it
    Worker,
    /// Read, start runs, and decide as a person
    Approve,
    /// Read
    Read,
    /// Everything
    Admin,
}

/// The commands of the configuration.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl config show --origin         every value, and the line, variable or flag that sets it
  planctl config path")]
pub enum ConfigCommand {
    /// Prints the configuration in force as a planctl.toml; credentials are masked
    #[command(before_help = "Examples:
  planctl config show
  planctl config show --origin
  planctl config show --json | jq '.values[] | select(.key == \"contracts.timeout\")'

Flags take precedence over PLANCTL_* variables, then your own file, the project's planctl.toml and the defaults.")]
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Prints the files that are read, the one with the highest precedence first
    Path,
}

/// The commands of roles.
#[derive(Subcommand, Clone, Debug)]
pub enum RolesCommand {
    /// Lists each role: its agent, permissions, plans and responsible person, and how much work waits for it
    #[command(visible_alias = "list")]
    Ls,
}

/// The commands of the database.
#[derive(Subcommand, Clone, Debug)]
pub enum DbCommand {
    /// Shows which database is used, and its state
    Status,
    /// Prints the address to connect to (with its password)
    Url,
    /// Opens psql, read-only
    Psql {
        /// Connect as the owner of the tables, with the right to change them
        #[arg(long)]
        owner: bool,
        /// Arguments for psql
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Writes a backup with pg_dump
    Dump {
        /// The file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Writes a backup that `db restore` reads; the file is complete or absent, and only you can read it
    Backup {
        /// The file
        file: PathBuf,
        /// Overwrite it
        #[arg(long)]
        force: bool,
    },
    /// Reads a backup into an empty database
    Restore {
        /// The file
        file: PathBuf,
    },
    /// Removes runs that ended long ago, with their histories and messages
    Prune {
        /// How long ago: 90d, 720h
        #[arg(long, value_name = "TIME", value_parser = planctl_config::parse_duration)]
        older_than: std::time::Duration,
        /// Only say how many
        #[arg(long)]
        dry_run: bool,
    },
    /// Stops the private Postgres
    Stop,
    /// Removes the private Postgres with everything in it
    Reset,
    /// Installs a Postgres for the private cluster
    Install {
        /// A package fetched on another machine
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
}
