//! The arguments: every command with its flags and its help, examples first.

use std::any::TypeId;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use planctl_config::Agent;

use crate::completing;
use crate::flags::Global;
use crate::show;

mod admin;
mod approvals;
mod daemon;
mod goal;
mod guide;
mod item;
mod levels;
mod library;
mod mcp;
mod notify;
mod plan;
mod run;
mod tool;
mod worker;

pub use admin::{
    ConfigCommand, DbCommand, GraphCommand, RolesCommand, TokenCommand, TokenScope, TopicCommand,
};
pub use approvals::{ApprovalsCommand, AskFilter, Noted};
pub use daemon::{AtOnce, DaemonCommand, LogFormat};
pub use goal::{
    GoalArgs, GoalCommand, GoalSource, GoalVerifyArgs, ResolutionWord, ResolveArgs, StrategyWord, ToolsFile,
};
pub use guide::{GuardArgs, GuardCommand, GuideCommand, HookArgs, Install};
pub use item::{HeldItem, ItemCommand, Used};
pub use levels::LevelFlags;
pub use library::{LibraryCommand, MatcherWord, Matching, NewEntry};
pub use mcp::{McpArgs, McpClient, McpCommand, McpInstall, SessionCommand};
pub use notify::NotifyCommand;
pub use plan::{
    Beginning, DRAFT_ROUNDS, DRAFT_WITHIN, DraftArgs, EditArgs, Expanding, Fixing, PlanCommand, PlanVerb,
    Probing, ReviewArgs, VerifyArgs,
};
pub use run::{RunArgs, RunCommand, RunFilter, RunPlan, RunVerb};
pub use tool::ToolCommand;
pub use worker::{WorkerCommand, WorkerRun};

/// The layout of a command's help: its purpose first, then examples.
const LAYOUT: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The commands that `planctl --help` lists, in groups; the others are listed by their nouns.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Write a plan", &["init", "new", "edit", "verify", "show", "fmt", "diff", "library", "goal"]),
    ("Run it", &["run", "approve", "status", "ls", "watch", "pause", "resume", "cancel"]),
    ("Decide", &["approvals", "open"]),
    ("Find out", &["logs", "why", "events", "audit"]),
    ("Hold your own agent to it", &["guard", "guide", "hook", "mcp"]),
    ("Workers and the daemon", &["worker", "item", "daemon", "dev", "roles", "token"]),
    (
        "More",
        &[
            "plan",
            "tool",
            "graph",
            "topic",
            "notify",
            "config",
            "trust",
            "clean",
            "db",
            "doctor",
            "demo",
            "completions",
            "man",
            "schema",
            "lsp",
            "session",
            "help",
            "version",
        ],
    ),
];

/// Returns the command line as it is read, helped with and completed.
pub fn command() -> clap::Command {
    let root = Cli::command().mut_subcommand("plan", |plan| {
        plan.mut_subcommands(|below| {
            let is_of_run = RunVerb::has_subcommand(below.get_name());
            below.hide(is_of_run)
        })
    });
    let listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let root = lay_out(root).mut_subcommands(|below| {
        let is_listed = listed(below.get_name());
        below.hide(!is_listed)
    });
    let header = *root.get_styles().get_header();
    let layout = format!(
        "{{about-with-newline}}\n{{before-help}}{{usage-heading}} {{usage}}\n{}\n{header}Options:{header:#}\n{{options}}{{after-help}}",
        groups(&root)
    );
    root.help_template(layout)
}

fn lay_out(command: clap::Command) -> clap::Command {
    let command = match command.get_before_help() {
        Some(examples) if show::columns().is_some() => {
            let examples = lay_out_examples(&examples.to_string(), columns());
            command.before_help(examples)
        }
        Some(_) | None => command,
    };
    command
        .mut_args(refuse_what_is_no_value)
        .help_template(LAYOUT)
        .after_help("Options of every command: planctl help options")
        .after_long_help("")
        .mut_subcommands(lay_out)
}

/// The arguments whose value may be empty.
const MAY_BE_EMPTY: [&str; 5] = ["note", "text", "domain", "message", "explain"];

/// Has an empty word be no name of anything, and a negative number be a value, which is then out of range.
fn refuse_what_is_no_value(arg: clap::Arg) -> clap::Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let is_text =
        arg.get_value_parser().type_id() == TypeId::of::<String>() && arg.get_possible_values().is_empty();
    let arg = arg.allow_negative_numbers(true);
    if is_text && !MAY_BE_EMPTY.contains(&arg.get_id().as_str()) {
        return arg.value_parser(NonEmptyStringValueParser::new());
    }
    arg
}

/// The widest help.
const HELP_COLUMNS_MAX: usize = 100;

fn columns() -> usize {
    show::columns().map_or(HELP_COLUMNS_MAX, |columns| columns.min(HELP_COLUMNS_MAX))
}

/// Puts what examples do below them where both don't fit beside one another; the sentences around them are folded. A command
/// that is too wide goes on in a further line, so that it can be copied.
fn lay_out_examples(text: &str, columns: usize) -> String {
    let parts = |line: &str| {
        let bare = line.strip_prefix("  ").filter(|bare| !bare.starts_with(' '))?;
        let (command, what) =
            bare.split_once("   ").map_or((bare, ""), |(command, what)| (command, what.trim()));
        Some((command.to_owned(), what.to_owned()))
    };
    let lines = show::paragraphs_in(text, columns);
    let examples: Vec<(String, String)> = lines.iter().filter_map(|line| parts(line)).collect();
    let widest =
        examples.iter().filter(|(_, what)| !what.is_empty()).map(|(command, _)| command.chars().count());
    let widest = widest.max().unwrap_or(0);
    let is_beside =
        examples.iter().all(|(_, what)| what.is_empty() || widest + 4 + what.chars().count() <= columns);
    let laid_out = lines.iter().map(|line| match parts(line) {
        None => line.clone(),
        Some((command, what)) if what.is_empty() => continued(&command, columns),
        Some((command, what)) if is_beside => format!("  {command:<widest$}  {what}"),
        Some((command, what)) => {
            let what = show::folded_in(&format!("   → {what}"), columns);
            format!("{}\n{what}", continued(&command, columns))
        }
    });
    laid_out.collect::<Vec<_>>().join("\n")
}

/// Indents a command, and breaks it between its words as a shell reads it.
fn continued(command: &str, columns: usize) -> String {
    let (mut text, mut taken, mut quote) = ("  ".to_owned(), 2, None);
    let is_gap = |character: char| {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
        quote.is_none() && character == ' '
    };
    for (at, word) in command.split(is_gap).enumerate() {
        let wide = word.chars().count();
        // The last column of a line is for the mark that it goes on.
        if at > 0 && taken + 1 + wide + 2 > columns {
            text.push_str(" \\\n      ");
            taken = 6;
        } else if at > 0 {
            text.push(' ');
            taken += 1;
        }
        text.push_str(word);
        taken += wide;
    }
    text
}

fn groups(root: &clap::Command) -> String {
    let header = *root.get_styles().get_header();
    let literal = *root.get_styles().get_literal();
    let mut text = String::new();
    for (name, commands) in GROUPS {
        text.push_str(&format!("\n{header}{name}:{header:#}\n"));
        for name in commands {
            let about = root.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            // The rest of the sentence is in the command's own help.
            let about = about.split([';', ':']).next().unwrap_or_default().trim();
            let line = format!("  {literal}{name:<12}{literal:#} {about}\n");
            text.push_str(&show::folded(&line));
        }
    }
    text
}

/// Runs plans with AI agents; no step passes until a shell contract says so.
#[derive(Parser, Clone, Debug)]
#[command(name = "planctl", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(before_help = "Examples:
  planctl demo                                     see it work: no key, no network
  planctl verify plans/hello.md                    check a plan, report everything
  planctl run plans/hello.md --exec ./work.sh      run it, one gated step after another
  planctl approvals                                what waits for you")]
pub struct Cli {
    /// The flags that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The nouns, and the verbs that are typed without one.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Sets up a project: planctl.toml, a first plan and .gitignore; and trusts its planctl.toml
    #[command(before_help = "Examples:
  planctl init                a planctl.toml with comments, and a first plan
  planctl init --example      also a worker in place of an agent, so that the plan runs

It writes into the git checkout, else the current directory, and overwrites nothing.")]
    Init {
        /// Also write work.sh, which does the first plan's step without an agent
        #[arg(long)]
        example: bool,
        /// Overwrite existing files
        #[arg(long)]
        force: bool,
    },
    /// Writes, verifies, shows, approves and runs plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Runs a plan; or, with a command, shows and steers runs
    #[command(before_help = RunArgs::EXAMPLES)]
    Run(RunArgs),
    /// A plan's command without its noun.
    #[command(flatten)]
    OfPlan(PlanVerb),
    /// Lists runs, newest first
    #[command(visible_alias = "list", aliases = ["ps", "runs"])]
    Ls(RunFilter),
    /// A run's command without its noun.
    #[command(flatten)]
    OfRun(RunVerb),
    /// Lists what waits for a person, and takes the answers: plans, escalations, budgets, questions
    #[command(visible_alias = "inbox", args_conflicts_with_subcommands = true)]
    Approvals {
        /// The asks to list, where no command is given.
        #[command(flatten)]
        list: AskFilter,
        /// The command.
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Writes and shows notes on a topic, for the steps that subscribe to it
    #[command(subcommand)]
    Topic(TopicCommand),
    /// Tests the channels of planctl.toml, and lists what became of each message
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// Keeps an agent's session from stopping as done while a command fails
    #[command(before_help = GuardArgs::EXAMPLES)]
    Guard(GuardArgs),
    /// Holds an agent's session to a plan, by the agent's hooks
    #[command(subcommand)]
    Guide(GuideCommand),
    /// Answers a hook of an interactive agent
    Hook(HookArgs),
    /// Runs, tests and lists workers
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Claims and reports work items, from scripts
    #[command(subcommand, alias = "work")]
    Item(ItemCommand),
    /// Lists the roles of planctl.toml
    #[command(subcommand)]
    Roles(RolesCommand),
    /// Makes, lists and revokes tokens of the daemon's API, for workers and programs
    #[command(subcommand)]
    Token(TokenCommand),
    /// Manages the database: its state, backups, old runs, the private Postgres
    #[command(subcommand)]
    Db(DbCommand),
    /// Starts, stops and shows the daemon: it works on the runs of all workspaces of this machine
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Runs a daemon in the foreground with a worker for every role: for trying things out
    #[command(before_help = "Examples:
  planctl dev --exec './work.sh'        then, in another terminal: planctl run plans/hello.md
  planctl dev --agent claude")]
    Dev {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
        /// The agent that serves roles that nothing else serves.
        #[command(flatten)]
        worker: WorkerFlags,
    },
    /// Opens the page in a browser, signed in as you: what needs you, runs with their evidence, and decisions
    #[command(before_help = "Examples:
  planctl open               in the browser of this desktop
  planctl open --print       only print the link, for a browser that you start yourself

The daemon serves the page. The link works once, within two minutes, and never in an agent's process.")]
    Open {
        /// Only print the link
        #[arg(long)]
        print: bool,
    },
    /// Shows planctl at work in a temporary workspace: verify, approve, work, fail, retry, escalate, done
    Demo {
        /// Keep the workspace
        #[arg(long)]
        keep: bool,
        /// Approve and answer yourself
        #[arg(long = "try")]
        asks: bool,
    },
    /// Checks what planctl needs on this machine
    Doctor,
    /// Removes worktrees of runs that are over; their branches stay where they hold commits of their own
    #[command(before_help = "Examples:
  planctl clean                    those of done and cancelled runs, where all is committed
  planctl clean --all --dry-run    what would be removed, in all workspaces of this machine")]
    Clean {
        /// In all workspaces of this machine
        #[arg(short, long)]
        all: bool,
        /// Also those of failed runs, which can't be resumed afterwards
        #[arg(long)]
        failed: bool,
        /// Also remove uncommitted work, which is then lost
        #[arg(long)]
        discard: bool,
        /// Only say what would be removed
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    /// Serves an editor as its language server: findings as you type, fixes, hovers, completion (standard input and output)
    #[command(
        before_help = "Your editor starts this; docs/editors.md says how. It reads plans only: markdown whose
frontmatter says `type: plan`, and without a type files named *.plan.md or in a folder `plans`."
    )]
    Lsp {
        /// Use standard input and output (the default)
        #[arg(long)]
        stdio: bool,
    },
    /// Serves agents by the Model Context Protocol: they verify, draft and submit plans, look at runs, work on items
    #[command(before_help = McpArgs::EXAMPLES)]
    Mcp(McpArgs),
    /// Prints a prompt that explains the planning tools to an agent
    #[command(subcommand)]
    Session(SessionCommand),
    /// Prints completions for a shell; they know your runs, asks, roles and plans
    #[command(
        alias = "completion",
        before_help = "Examples:
  source <(planctl completions bash)                                    in ~/.bashrc
  planctl completions zsh > \"${fpath[1]}/_planctl\"
  planctl completions fish > ~/.config/fish/completions/planctl.fish"
    )]
    Completions {
        /// The shell: bash, elvish, fish, powershell or zsh
        shell: clap_complete::Shell,
    },
    /// Writes man pages, one for each command
    #[command(before_help = "Example:\n  planctl man ~/.local/share/man/man1 && man planctl-plan-run")]
    Man {
        /// The directory to write them into
        dir: PathBuf,
    },
    /// Shows the configuration in force, and where each value comes from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Trusts a directory's planctl.toml, as it is now, to start processes
    #[command(before_help = "Example:\n  planctl trust .")]
    Trust {
        /// The directory that holds planctl.toml
        dir: PathBuf,
    },
    /// Breaks a goal into intents, and finds a tool for each
    #[command(subcommand)]
    Goal(GoalCommand),
    /// Lists, shows and tries tools of MCP servers
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Checks and draws graphs written in DOT, JSON or markdown
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Finds, shows, adds and exports plans of the library
    #[command(subcommand)]
    Library(LibraryCommand),
    /// Prints the JSON Schema of a command's --json answer, or of planctl.toml
    #[command(before_help = "Examples:
  planctl schema                                       the names
  planctl schema plan-verify
  planctl schema planctl.toml > planctl.schema.json    for an editor")]
    Schema {
        /// The name of the schema [default: list the names]
        name: Option<String>,
    },
    /// Prints the help of a command or topic: `exit-codes`, `names`, `options`
    Help {
        /// A command, `exit-codes`, `names`, or `options`
        topic: Vec<String>,
    },
    /// Prints the version
    Version,
}

/// The agent that serves every role, in place of the configured ones.
#[derive(Args, Clone, Debug, Default)]
pub struct WorkerFlags {
    /// The command that serves every role; it reads the prompt on its standard input
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// The agent that serves every role: claude, codex, gemini, opencode or aider, and its own arguments
    #[arg(long, value_name = "NAME[:ARGS]", conflicts_with = "exec", value_parser = Agent::parse, add = completing::agent())]
    pub agent: Option<Agent>,
    /// Do no work: every role answers at once without working; contracts run and decide as usual
    #[arg(long, conflicts_with_all = ["exec", "agent"])]
    pub simulate: bool,
}

/// The command in place of every worker of a run that is simulated (DOT S13).
const SIMULATED: &str = "printf '[Simulated] Response for stage: %s\\n' \"$PLANCTL_STEP_TITLE\"";

impl WorkerFlags {
    /// Returns what was named.
    pub fn worker(self) -> Option<Agent> {
        let simulated = self.simulate.then(|| Agent::Exec(SIMULATED.to_owned()));
        self.agent.or_else(|| self.exec.map(Agent::Exec)).or(simulated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn no_argument_of_a_command_is_taken_for_a_flag_of_all_commands() {
        fn look(command: &clap::Command, of_all: &[&clap::Id]) {
            for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
                assert!(!of_all.contains(&argument.get_id()), "{}: {argument}", command.get_name());
            }
            command.get_subcommands().for_each(|below| look(below, of_all));
        }
        let root = command();
        let of_all: Vec<_> =
            root.get_arguments().filter(|flag| flag.is_global_set()).map(clap::Arg::get_id).collect();
        root.get_subcommands().for_each(|below| look(below, &of_all));
    }

    #[test]
    fn examples_that_are_too_wide_can_be_copied_and_sentences_are_broken_anew() {
        let text = "Examples:\n  planctl why fix-3   explains it\n  planctl goal resolve 'list the issues' --tools github=t.json\n\n\
                    One sentence that is\nbroken by its author.";
        let shown = "Examples:\n  planctl why fix-3\n   → explains it\n  planctl goal resolve \\\n      'list the issues' \\\n      \
                     --tools github=t.json\n\nOne sentence that is broken by\nits author.";
        assert_eq!(lay_out_examples(text, 30), shown);
        assert_eq!(continued("planctl run x.md --exec 'a b'", 40), "  planctl run x.md --exec 'a b'");
    }

    #[test]
    fn every_group_of_the_help_names_commands_that_are_there_each_once() {
        let root = command();
        let mut seen = std::collections::BTreeSet::new();
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
            assert!(root.find_subcommand(name).is_some_and(|found| found.get_name() == *name), "{name}");
            assert!(seen.insert(name), "{name} stands there twice");
        }
        // A command that is not listed at the top is listed by a noun.
        let nouns = ["plan", "run"].map(|noun| root.find_subcommand(noun).unwrap());
        for below in root.get_subcommands().filter(|below| below.is_hide_set()) {
            let name = below.get_name();
            let is_listed = |noun: &&clap::Command| {
                noun.get_subcommands().any(|below| below.get_name() == name && !below.is_hide_set())
            };
            assert!(nouns.iter().any(is_listed), "{name} is listed nowhere");
        }
    }
}
