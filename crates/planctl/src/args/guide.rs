//! The arguments of `planctl guide`, `planctl guard` and `planctl hook`: interactive agents that are held to a plan.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::completing;
use crate::guidance::Activate;
use crate::session_agent::{SessionAgent, SessionEvent};

/// The commands of guided mode.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl guide install claude        its hooks, once in a project
  planctl guide on plans/fix.md       from now on sessions in this workspace are held to the plan
  planctl guide on 'fix the bug in the login module'    the library's plan for it
  planctl guide activate suggest      a plan of the library that fits a prompt is suggested
  planctl guide status
  planctl guide off                   they are free again; the run is paused")]
pub enum GuideCommand {
    /// Holds the sessions of this workspace to a plan: no session ends its turn as done while the step's contract fails
    On {
        /// The plan: a file, an entry of the library, or a sentence that finds one [default: the plan that `guide off`
        /// paused]
        #[arg(add = completing::plan())]
        plan: Option<PathBuf>,
        /// Approve the plan as it stands, without being asked
        #[arg(long)]
        approve: bool,
        /// Accept this protected file as it is, although it differs from what was approved last
        #[arg(long, value_name = "FILE[@DIGEST]", requires = "approve")]
        accept_changed: Vec<String>,
        /// Start a new run, even if the plan is done
        #[arg(long)]
        again: bool,
    },
    /// Matches the prompts of sessions that no plan holds with the library
    Activate {
        /// Says whether a plan that fits is proposed, begun or left alone
        #[arg(value_enum)]
        activate: Activate,
    },
    /// Releases the sessions of this workspace, and pauses the run
    Off,
    /// Shows what holds the sessions of this workspace, and which agents have the hooks
    Status,
    /// Adds planctl's hooks to an agent's settings; says what it changes, and keeps everything else
    Install(Install),
    /// Calls each agent's hooks as the agent would, and says which are missing, switched off or broken
    Doctor {
        /// Start each agent once, with a stand-in for its model, and check that it calls its hooks and obeys them. This
        /// needs no login and costs nothing
        #[arg(long)]
        canary: bool,
    },
}

/// Where hooks are added.
#[derive(Args, Clone, Debug)]
pub struct Install {
    /// The agent
    #[arg(value_enum)]
    pub agent: SessionAgent,
    /// In your own settings, for all projects, instead of this project's
    #[arg(long)]
    pub user: bool,
    /// As a plugin in a folder of planctl's own, so that your settings stay as they are (claude)
    #[arg(long, conflicts_with = "remove")]
    pub plugin: bool,
    /// Remove the hooks
    #[arg(long)]
    pub remove: bool,
    /// Show what would change; write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// A command to guard with, or a command of `planctl guard`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct GuardArgs {
    /// The shell command that must succeed before a session may stop as done
    #[arg(required = true, value_name = "SHELL-COMMAND")]
    pub line: Option<String>,
    /// Only where a file that matches changed, and of the files that the command names, such a file is the work; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub paths: Vec<String>,
    /// The command of `planctl guard`.
    #[command(subcommand)]
    pub command: Option<GuardCommand>,
}

impl GuardArgs {
    /// The examples of `planctl guard`.
    pub const EXAMPLES: &str = "Examples:
  planctl guard 'cargo test'                        no session here stops as done while this fails
  planctl guard 'npm test' --paths 'src/**'         only where these files changed
  planctl guard ls
  planctl guard rm 1

The agent needs planctl's hooks, once: planctl guide install claude";
}

/// The commands of `planctl guard`.
#[derive(Subcommand, Clone, Debug)]
pub enum GuardCommand {
    /// Lists the guards of this workspace
    Ls,
    /// Removes guards, and cancels their runs
    Rm {
        /// The numbers
        #[arg(required = true, value_name = "NUMBER")]
        numbers: Vec<u32>,
    },
}

/// The arguments of a hook's call.
#[derive(Args, Clone, Debug)]
pub struct HookArgs {
    /// The agent
    #[arg(value_enum)]
    pub agent: SessionAgent,
    /// The event
    #[arg(value_enum)]
    pub event: SessionEvent,
}
