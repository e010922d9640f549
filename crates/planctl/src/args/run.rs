//! The arguments of `planctl run`: a plan is run, and everything that is done with runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WorkerFlags;
use crate::completing;

/// A plan to run, or a command of `planctl run`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunArgs {
    /// The plan to run, where no command is given.
    #[command(flatten)]
    pub plan: RunPlan,
    /// The command.
    #[command(subcommand)]
    pub command: Option<RunCommand>,
}

impl RunArgs {
    /// The examples of `planctl run`.
    pub const EXAMPLES: &str = "Examples:
  planctl run plans/fix.md --exec './work.sh'    runs a plan
  planctl run ls                                 lists runs
  planctl run show fix-3                         shows one
  planctl run pause fix-3                        its agents stop, until planctl run resume fix-3
  planctl run cancel fix-3

A plan whose name is that of a command is named with its folder: planctl run ./show";
}

/// The commands of `planctl run`.
#[derive(Subcommand, Clone, Debug)]
pub enum RunCommand {
    /// Lists runs, newest first
    #[command(visible_alias = "list")]
    Ls(RunFilter),
    /// Shows one run: its steps, and what it waits for
    Show {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
    },
    /// A command that is also typed without `run`.
    #[command(flatten)]
    Verb(RunVerb),
}

/// Which runs to list.
#[derive(Args, Clone, Debug, Default)]
pub struct RunFilter {
    /// Only runs in these states
    #[arg(long, value_delimiter = ',')]
    pub state: Vec<String>,
    /// Runs of other workspaces too
    #[arg(short, long)]
    pub all: bool,
}

/// How a plan is run.
#[derive(Args, Clone, Debug)]
pub struct RunPlan {
    /// The plan, by its file or name: `hello` for plans/hello.md (planctl help names)
    #[arg(add = completing::plan())]
    pub file: Option<PathBuf>,
    /// The plan, as tools name it that have no other argument
    #[arg(short = 'f', long = "file", value_name = "FILE", hide = true, conflicts_with = "file")]
    pub named: Option<PathBuf>,
    /// Approve the plan as it stands, without being asked
    #[arg(long)]
    pub approve: bool,
    /// Accept this protected file as it is, although it differs from what was approved last
    #[arg(long, value_name = "FILE[@DIGEST]", requires = "approve")]
    pub accept_changed: Vec<String>,
    /// Start a new run, even if the plan is done
    #[arg(long)]
    pub again: bool,
    /// The agent that serves every role.
    #[command(flatten)]
    pub worker: WorkerFlags,
    /// Verify the plan and show what would run; run nothing
    #[arg(short = 'n', long, conflicts_with_all = ["approve", "again", "detach", "no_wait"])]
    pub dry_run: bool,
    /// Exit 3 when a person is needed, instead of waiting
    #[arg(long)]
    pub no_wait: bool,
    /// Leave the run to the daemon and return at once
    #[arg(short, long, conflicts_with = "no_wait")]
    pub detach: bool,
    /// Answer each choice of the plan and its sub-plans with its usual answer, or else with the first option; also after a
    /// resume. Approves nothing else. Work with `contract=none` then counts as done, although nobody has looked at it
    #[arg(long, conflicts_with = "detach")]
    pub auto_answer: bool,
}

impl RunPlan {
    /// The examples of `planctl run`.
    pub const EXAMPLES: &str = "Examples:
  planctl run plans/fix.md                            asks first, unless a policy approves it
  planctl run plans/fix.md --exec './work.sh'         one worker for every role
  planctl run plans/fix.md --agent claude             or an agent by its name
  planctl run plans/fix.md --dry-run                  shows what would run
  planctl run plans/fix.md --approve --no-wait        in a script; 3 = ask a person
  planctl run plans/fix.md --again                    a new run of a plan that is done";
}

/// The verbs of a run; typed as `planctl run VERB`, `planctl VERB`, or `planctl plan VERB`.
#[derive(Subcommand, Clone, Debug)]
pub enum RunVerb {
    /// Shows where runs stand: those that are not over, or one in full
    #[command(before_help = "Examples:
  planctl status                         all runs of this workspace that are not over
  planctl status @last --watch           one run, live
  planctl status @last --json            one run, for programs
  planctl status @last --salute          one run, for its supervisor")]
    Status {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(add = completing::run())]
        run: Option<String>,
        /// Runs that are over, and those of other workspaces, too
        #[arg(short, long)]
        all: bool,
        /// Follow it live, as `planctl watch` does
        #[arg(short, long, conflicts_with_all = ["all", "salute", "traversal", "exit_code"])]
        watch: bool,
        /// Answer with the exit code: 0 done, 1 failed, 3 waiting for a human, 8 in progress, …
        #[arg(long, requires = "run")]
        exit_code: bool,
        /// Report size, activity, location, unit, time and equipment
        #[arg(long, requires = "run", conflicts_with = "all")]
        salute: bool,
        /// Show the path through the graph: where it is, what was visited, the newest 50 events
        #[arg(long, requires = "run", conflicts_with_all = ["all", "salute"])]
        traversal: bool,
    },
    /// Follows a run live
    Watch {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
        /// Exit 3 when a person is needed, instead of waiting
        #[arg(long)]
        no_wait: bool,
    },
    /// Shows the reports of workers and the output of contracts
    Logs {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
        /// Only this step
        #[arg(long)]
        step: Option<u32>,
        /// Only this attempt
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        attempt: Option<u16>,
        /// Only the contract's output
        #[arg(long)]
        contract: bool,
        /// Only the last lines of each output
        #[arg(short = 't', long, value_name = "LINES")]
        tail: Option<usize>,
        /// Print output as it is written, until the run is over
        #[arg(short, long, conflicts_with = "tail")]
        follow: bool,
        /// Show what the agent was told at each attempt
        #[arg(long, conflicts_with_all = ["follow", "contract", "tail"])]
        prompt: bool,
    },
    /// Shows the history of a run, one event per line
    #[command(
        visible_alias = "history",
        alias = "log",
        before_help = "Examples:
  planctl events                        of the newest run
  planctl events fix-auth-3 -n 20
  planctl events fix-auth-3 --json -f | jq .event"
    )]
    Events {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
        /// The run, as it was named before it became an argument
        #[arg(long = "run", value_name = "RUN", hide = true, conflicts_with = "run")]
        named: Option<String>,
        /// Keep printing until the run is over
        #[arg(short, long)]
        follow: bool,
        /// Begin after this number
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        since: u64,
        /// Only the newest events
        #[arg(short = 'n', long, value_name = "EVENTS", conflicts_with_all = ["follow", "since"], value_parser = clap::value_parser!(u16).range(1..=1000))]
        tail: Option<u16>,
        /// The same as --tail 50
        #[arg(long, conflicts_with_all = ["follow", "since", "tail"])]
        recent: bool,
    },
    /// Explains why a run, or one of its steps, is where it is
    #[command(before_help = "Examples:
  planctl why                 the step that holds the newest run, or its last one
  planctl why 2               step 2 of the newest run: what happened, and where it went
  planctl why fix-3 2         the same of a run by its name
  planctl why fix-3 Commit    the same by a step's title, or a node's name")]
    Why {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
        /// The step's number or title, or a node's name [default: the one that holds the run]
        step: Option<String>,
    },
    /// Stops a run until it is resumed, or another revision of its plan is approved
    Pause {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Continues a run where it stands
    Resume {
        /// The run: its name, the beginning of it, `@last`, or its plan [default: the newest, or the one that it waits for]
        #[arg(add = completing::run())]
        run: Option<String>,
        /// The agent that serves every role from here on.
        #[command(flatten)]
        worker: WorkerFlags,
        /// Exit 3 when a person is needed, instead of waiting
        #[arg(long)]
        no_wait: bool,
        /// Answer choices as `planctl run --auto-answer` does, or stop doing so [default: as the run was started]
        #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
        auto_answer: Option<bool>,
        /// Try the contracts of passed steps again, in a copy of the workspace; continue at the first step that fails its contract
        #[arg(long)]
        recheck: bool,
        /// Do this step anew, which passed (its number or title, or a node's name), with all that follows it; the run must have failed or be paused
        #[arg(long, value_name = "STEP", conflicts_with = "recheck")]
        from: Option<String>,
    },
    /// Ends runs for good
    Cancel {
        /// The runs [default: the newest one, after a confirmation]
        #[arg(value_name = "RUN", add = completing::run())]
        runs: Vec<String>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Acknowledges failed runs: they stay as they are, and nobody is reminded of them
    #[command(visible_alias = "ack")]
    Acknowledge {
        /// The runs: names, beginnings of names, `@last`, or their plans
        #[arg(value_name = "RUN", required = true, add = completing::run())]
        runs: Vec<String>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Checks the history: gap-free, hash chain intact, states follow from it
    Audit {
        /// The run: its name, the beginning of it, `@last`, or its plan; or a bundle that `export` wrote (FILE.jsonl),
        /// which needs no database [default: all runs]
        #[arg(add = completing::run())]
        run: Option<String>,
    },
    /// Writes a run to a folder for other tools, or to a bundle with all its evidence
    #[command(before_help = "Examples:
  planctl export fix-auth-3 --to fix-auth-3-run         manifest.json, checkpoint.json, each node
  planctl export fix-auth-3 --bundle fix-auth-3.jsonl   plan, graphs, events, outputs
  planctl audit fix-auth-3.jsonl                        checks a bundle where there is no database

planctl itself uses its database, and never reads either of them back.",
        group(clap::ArgGroup::new("form").required(true).args(["to", "bundle"])))]
    Export {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
        /// The folder, which must not exist yet
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// The bundle, a file that must not exist yet
        #[arg(long, value_name = "FILE.jsonl")]
        bundle: Option<PathBuf>,
    },
    /// Shows a run to an agent that works on its own: its steps, where it is, what to do next
    #[command(before_help = "Examples:
  planctl context                             steps as sentences
  planctl context @last --format compact      a line for each step
  planctl context @last --format workflow     the path so far, and what comes next")]
    Context {
        /// The run: its name, the beginning of it, `@last`, or its plan
        #[arg(default_value = "@last", add = completing::run())]
        run: String,
    },
}
