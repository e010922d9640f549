//! The flags that every command takes.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use planctl_config::WorkspaceMode;

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Answer with JSON (the same as --format json)
    #[arg(long, global = true, hide_short_help = true, conflicts_with_all = ["format", "quiet"])]
    pub json: bool,
    /// How to answer; a command that does not know the format names those that it does [env: PLANCTL_FORMAT]
    #[arg(long, global = true, hide_short_help = true, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,
    /// When to use colour
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_enum,
        default_value = "auto",
        env = "PLANCTL_COLOR",
        hide_env_values = true,
        hide_possible_values = false
    )]
    pub color: Color,
    /// Print less
    #[arg(short, long, global = true, hide_short_help = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more; repeat for still more
    #[arg(short, long, global = true, hide_short_help = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Never ask, even at a terminal
    #[arg(long, global = true, hide_short_help = true, env = "PLANCTL_NO_INPUT", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub no_input: bool,
    /// Answer yes to confirmations (never to approvals)
    #[arg(long, global = true, hide_short_help = true)]
    pub yes: bool,
    /// The Postgres to use instead of the private one [env: PLANCTL_DATABASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub database_url: Option<String>,
    /// The daemon to connect to: a URL or a socket [env: PLANCTL_SERVER] [default: the one of the state directory, if it runs]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "URL|SOCKET",
        conflicts_with = "database_url"
    )]
    pub server: Option<String>,
    /// Allow a token to be sent unencrypted to another machine over http://
    #[arg(long, global = true, hide_short_help = true, env = "PLANCTL_INSECURE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub insecure: bool,
    /// Work in this directory
    #[arg(short = 'C', global = true, hide_short_help = true, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Read this file instead of the project's planctl.toml [env: PLANCTL_CONFIG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The directory in which steps and contracts work [default: the git checkout, else the current directory]; `worktree` gives
    /// a run a git worktree of its own, `shared` none
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR|worktree")]
    pub workspace: Option<PathBuf>,
    /// The name under which your decisions are recorded [default: your login] [env: PLANCTL_ACTOR]
    #[arg(long = "as", global = true, hide_short_help = true, value_name = "NAME")]
    pub actor: Option<String>,
}

impl Global {
    /// Returns the directory that was named as the workspace; `worktree` and `shared` name none.
    pub fn named_workspace(&self) -> Option<&Path> {
        self.workspace.as_deref().filter(|_| self.workspace_mode().is_none())
    }

    /// Returns the kind of place that was named in place of a directory.
    pub fn workspace_mode(&self) -> Option<WorkspaceMode> {
        WorkspaceMode::from_word(self.workspace.as_deref()?.to_str()?)
    }
}

/// How a command answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// One JSON value
    Json,
    /// One JSON value per line
    Jsonl,
    /// Lines without live drawing
    Plain,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands that annotate a pull request
    Github,
    /// A graph drawn with letters
    Ascii,
    /// Graphviz DOT
    Dot,
    /// A Mermaid flowchart
    Mermaid,
    /// A plan in markdown
    Markdown,
    /// A picture
    Svg,
    /// A plan's steps as sentences
    Long,
    /// A plan's steps, a line each
    Compact,
    /// The path of a run, and what follows
    Workflow,
}

/// When to use colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Color {
    /// At a terminal that shows it
    #[default]
    Auto,
    /// Also in pipes
    Always,
    /// Not at all
    Never,
}
