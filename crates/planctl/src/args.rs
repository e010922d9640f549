//! The arguments: every command with its flags and its help, examples first.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use planctl_config::Agent;

mod levels;

pub use levels::LevelFlags;

use crate::amounts::{parse_cost, parse_size, parse_time, parse_tokens};

/// Runs plans with AI agents; no step passes until a shell contract says so.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "planctl",
    version,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(before_help = "Examples:
  planctl demo                                     see it work: no key, no network
  planctl plan verify plans/hello.md               check a plan, report everything
  planctl plan run plans/hello.md --exec ./work.sh run it, one gated step after another
  planctl approvals                                what waits for you")]
pub struct Cli {
    /// The flags that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Answer with JSON (the same as --format json)
    #[arg(long, global = true, conflicts_with_all = ["format", "quiet"])]
    pub json: bool,
    /// How to answer; each command takes some of these [env: PLANCTL_FORMAT]
    #[arg(long, global = true, value_enum)]
    pub format: Option<Format>,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        env = "PLANCTL_COLOR",
        hide_env_values = true,
        hide_possible_values = false
    )]
    pub color: Color,
    /// Say less
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Never ask, even at a terminal
    #[arg(long, global = true, env = "PLANCTL_NO_INPUT", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub no_input: bool,
    /// Answer yes where only a confirmation is asked for (never an approval)
    #[arg(long, global = true)]
    pub yes: bool,
    /// The Postgres to use in place of the private one [env: PLANCTL_DATABASE_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub database_url: Option<String>,
    /// The daemon to speak to: a URL or a socket [env: PLANCTL_SERVER] [default: that of the state directory, where one runs]
    #[arg(long, global = true, value_name = "URL|SOCKET", conflicts_with = "database_url")]
    pub server: Option<String>,
    /// Send a token to another machine over http://, where others can read it on the way
    #[arg(long, global = true, env = "PLANCTL_INSECURE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub insecure: bool,
    /// Work in this directory
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Read this file in place of the project's planctl.toml [env: PLANCTL_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The directory steps and contracts work in [default: the git checkout, else the current directory]; `worktree` gives
    /// a run a git worktree of its own, `shared` none
    #[arg(long, global = true, value_name = "DIR|worktree")]
    pub workspace: Option<PathBuf>,
    /// The name of the person who decides, for the record [default: your login] [env: PLANCTL_ACTOR]
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub actor: Option<String>,
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

/// The nouns.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Begins a project: planctl.toml, a first plan, what git is to leave out; and trusts it for you
    #[command(before_help = "Examples:
  planctl init                what is needed to begin, with comments
  planctl init --example      also a worker that stands in for an agent, so that the plan runs at once

It writes where you work (the git checkout, else the current directory) and never over what is there.")]
    Init {
        /// Also write work.sh, which does the first plan's step without an agent
        #[arg(long)]
        example: bool,
        /// Write over the files that are there
        #[arg(long)]
        force: bool,
    },
    /// Plans and their runs
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Asks that wait for a person: plans, escalations, budgets, questions
    #[command(args_conflicts_with_subcommands = true)]
    Approvals {
        /// Which asks to list, where no verb is given.
        #[command(flatten)]
        list: AskFilter,
        /// The subcommand.
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// The history of a run, one event per line
    #[command(before_help = "Examples:
  planctl events --run @last
  planctl events --run fix-auth-3 --json -f | jq .event")]
    Events {
        /// The run: a name, a prefix, `@last`, or a plan's path
        #[arg(long, default_value = "@last")]
        run: String,
        /// Go on as long as the run does
        #[arg(short, long)]
        follow: bool,
        /// Begin after this number
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        since: u64,
        /// Only the newest 50, and no more
        #[arg(long, conflicts_with_all = ["follow", "since"])]
        recent: bool,
    },
    /// Why a step is where it is
    #[command(before_help = "Examples:
  planctl why @last 2         what happened at step 2, which ways there were and why one was taken
  planctl why @last merge     the same of any node of the graph")]
    Why {
        /// The run
        run: String,
        /// The step's number, or a node's name
        step: String,
    },
    /// Checks the history: gap-free, hash chain intact, states follow from it
    Audit {
        /// The run [default: all]
        run: Option<String>,
    },
    /// Topics: notes for the steps that subscribe to them (`topic:NAME`)
    #[command(subcommand)]
    Topic(TopicCommand),
    /// Workers: run one, test one, list them
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Items of work for scripts: claimed, minded, reported
    #[command(subcommand)]
    Work(WorkCommand),
    /// The roles of planctl.toml
    #[command(subcommand)]
    Roles(RolesCommand),
    /// Tokens of the daemon's API, for workers and programs
    #[command(subcommand)]
    Token(TokenCommand),
    /// The database
    #[command(subcommand)]
    Db(DbCommand),
    /// The daemon: drives the runs of this machine's workspaces, no matter who started them
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// The daemon in the foreground with a worker for every role: for trying things out
    #[command(before_help = "Examples:
  planctl dev --exec './work.sh'        then, in another terminal: planctl plan run plans/hello.md
  planctl dev --agent claude")]
    Dev {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
        /// The agent that serves roles that nothing else serves.
        #[command(flatten)]
        worker: WorkerFlags,
    },
    /// Shows the main job on a throw-away workspace: verify, approve, work, fail, retry, escalate, done
    Demo {
        /// Keep the workspace
        #[arg(long)]
        keep: bool,
    },
    /// Checks what planctl needs on this machine
    Doctor,
    /// Removes worktrees of runs that are over; their branches stay where they hold commits of their own
    #[command(before_help = "Examples:
  planctl clean                    worktrees of done and cancelled runs, with nothing in them that is not committed
  planctl clean --all --dry-run    what would go, in all workspaces of this machine")]
    Clean {
        /// Of all workspaces of this machine
        #[arg(long)]
        all: bool,
        /// Those of failed runs too, which then can't be resumed
        #[arg(long)]
        failed: bool,
        /// Also what is committed nowhere: it is lost
        #[arg(long)]
        discard: bool,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Serves editors: findings as you type, fixes, hovers, completion (language server, standard input and output)
    #[command(
        before_help = "Your editor starts this; docs/editors.md says how. It reads plans only: markdown whose
frontmatter says `type: plan`, and without a type files named *.plan.md or in a folder `plans`."
    )]
    Lsp {
        /// Speak over standard input and output, which it does in any case
        #[arg(long)]
        stdio: bool,
    },
    /// Prints completions for a shell
    #[command(before_help = "Example:\n  planctl completions zsh > \"${fpath[1]}/_planctl\"")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes man pages, one for each command
    #[command(before_help = "Example:\n  planctl man ~/.local/share/man/man1 && man planctl-plan-run")]
    Man {
        /// The directory that they are written into
        dir: PathBuf,
    },
    /// The configuration in force, and where it stands
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Lets a directory's planctl.toml start processes, as it stands
    #[command(before_help = "Example:\n  planctl trust .")]
    Trust {
        /// The directory that holds planctl.toml
        dir: PathBuf,
    },
    /// Graphs written in DOT, JSON or markdown: checked, and drawn
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Prints the JSON Schema of a command's --json answer, or of planctl.toml
    #[command(before_help = "Examples:
  planctl schema                                       the names
  planctl schema plan-verify
  planctl schema planctl.toml > planctl.schema.json    for an editor")]
    Schema {
        /// Which [default: list the names]
        name: Option<String>,
    },
    /// Explains a topic: `exit-codes`
    Help {
        /// A command, or `exit-codes`
        topic: Vec<String>,
    },
    /// Prints the version
    Version,
}

/// The agent that serves every role, in place of the configured ones.
#[derive(Args, Clone, Debug, Default)]
pub struct WorkerFlags {
    /// The command that serves every role; it reads the prompt on its input
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// The agent that serves every role: claude, codex, gemini, opencode or aider, and its own arguments
    #[arg(long, value_name = "NAME[:ARGS]", conflicts_with = "exec", value_parser = Agent::parse)]
    pub agent: Option<Agent>,
    /// Let nobody work: every role answers at once and does nothing; contracts run and decide as always
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

impl Reviewing {
    /// Returns what does the review, where it was named.
    pub fn worker(&self) -> Option<Agent> {
        self.agent.clone().or_else(|| self.exec.clone().map(Agent::Exec))
    }
}

/// How much a daemon does at once.
#[derive(Args, Clone, Debug)]
pub struct AtOnce {
    /// How many workers it minds at once, of those that the runs' own settings name
    #[arg(short = 'j', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// How many contracts it runs at once [default: four for every core, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub gates: Option<u16>,
    /// Listen on this port too, beside the socket in the state directory: 127.0.0.1:7420
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Let --listen be an address that other machines reach; put a proxy with TLS before it, whose https:// address clients name
    #[arg(long, requires = "listen")]
    pub allow_remote: bool,
    /// A name by which clients call it on that port, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub hosts: Vec<String>,
    /// Refuse further runs (429) while so many are not over
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_open_runs: u32,
    /// Refuse further runs (429) while so many asks wait for a person
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_open_asks: u32,
}

/// The commands of the daemon.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl daemon start                 in the background, until `planctl daemon stop`
  planctl daemon status
  planctl daemon install-service       let systemd start it and mind it")]
pub enum DaemonCommand {
    /// Runs it in the foreground, until Ctrl-C or SIGTERM
    #[command(before_help = "Examples:
  planctl daemon run
  planctl daemon run -j 8 --log-format json     for a service manager that collects logs")]
    Run {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
        /// How logs are written to standard error
        #[arg(long, value_enum, default_value = "human")]
        log_format: LogFormat,
        /// Leave the terminal that it was started from
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Starts it in the background and waits until it is ready
    Start {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
    },
    /// Stops it: nothing more is taken on, and what is under way is handed back within 10 s
    Stop,
    /// Says whether it is there, and how it is; exits 69 where it is not
    Status,
    /// Prints what a daemon that was started with `daemon start` has logged
    Logs {
        /// Go on as it logs more
        #[arg(short, long)]
        follow: bool,
        /// Only so many of the last lines
        #[arg(long, value_name = "LINES", default_value_t = 100)]
        tail: usize,
    },
    /// Brings the database's schema up to date; it is never taken back to an older one
    Migrate {
        /// Only say where it stands; exits 1 where it is to be brought up to date
        #[arg(long)]
        check: bool,
    },
    /// Writes a unit for systemd that starts the daemon, watches it and fences it in
    #[command(before_help = "Examples:
  planctl daemon install-service --print        read it first
  planctl daemon install-service                for yourself; as root for the system
  planctl daemon install-service --listen 127.0.0.1:7420
  sudo planctl daemon install-service --system --run-as ann")]
    InstallService {
        /// For the person who types this [default, unless root]
        #[arg(long, conflicts_with = "system")]
        user: bool,
        /// For the system [default as root]
        #[arg(long)]
        system: bool,
        /// With --system: whose rights the daemon, its workers and its contracts have [default: root's]
        #[arg(long, value_name = "NAME", conflicts_with = "user")]
        run_as: Option<String>,
        /// Print the unit, write nothing
        #[arg(long)]
        print: bool,
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
    },
}

/// How logs are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Human,
    /// One JSON object per line
    Json,
}

/// An agent's review of a plan.
#[derive(Args, Clone, Debug, Default)]
pub struct Reviewing {
    /// Let an agent of this role review the plan and mend it, until the verifier has nothing against it
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["explain", "fix", "probe", "watch"])]
    pub via: Option<String>,
    /// With --via: the command that does the review; it reads the prompt on its input
    #[arg(long, value_name = "CMD", requires = "via")]
    pub exec: Option<String>,
    /// With --via: the agent that does the review, by its name
    #[arg(long, value_name = "NAME[:ARGS]", requires = "via", conflicts_with = "exec", value_parser = Agent::parse)]
    pub agent: Option<Agent>,
    /// With --via: exit 3 when a person is needed, in place of waiting
    #[arg(long, requires = "via")]
    pub no_wait: bool,
}

/// The commands of plans and runs.
#[derive(Subcommand, Clone, Debug)]
pub enum PlanCommand {
    /// Writes a plan to begin with
    #[command(before_help = "Examples:
  planctl plan new                                    plans/say-hello.md, one step
  planctl plan new --from bugfix --title 'Fix the login timeout'
  planctl plan new plans/next.md --from plans/last.md
  planctl plan new --list                             which templates there are")]
    New {
        /// The plan to write [default: plans/TITLE.md]
        file: Option<PathBuf>,
        /// The template, and the values of its head.
        #[command(flatten)]
        beginning: Beginning,
    },
    /// Writes templates of steps (`### 3–N.`, `**for_each:**`) out as numbered steps
    #[command(before_help = "Examples:
  planctl plan expand plans/migrate.md --command 'git ls-files src'
  planctl plan expand plans/migrate.md --item a.py --item b.py -o plans/migrate-two.md
  planctl plan expand plans/migrate.md --items docs/inventory.md --batch 5 --write

In a template {item}, {n} (the step's number), {index} and {count} are filled in; in a contract
items are quoted as the shell needs it, so write {item} without quotes.")]
    Expand {
        /// The plan
        file: PathBuf,
        /// With which items, and where to.
        #[command(flatten)]
        expanding: Expanding,
    },
    /// Writes plans in the form that planctl writes; changes nothing that they mean
    #[command(before_help = "Examples:
  planctl plan fmt plans/*.md
  planctl plan fmt --check plans/*.md                 for CI: writes nothing, exits 1 where a plan differs
  planctl plan fmt --check -v plans/fix.md            and shows what would change
  planctl plan fmt - < plans/fix.md                   to standard output

Another text has another digest, so an approval of the earlier one no longer holds.")]
    Fmt {
        /// The plans; `-` is standard input, which is written to standard output
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Write nothing; name the plans that differ, with -v each line, and exit 1 where one does
        #[arg(long)]
        check: bool,
    },
    /// Checks plans and reports every finding at once; writes nothing, needs no database
    #[command(before_help = "Examples:
  planctl plan verify plans/*.md
  planctl plan verify plans/fix.md --watch            again whenever a file changes
  planctl plan verify plans/fix.md --json             for programs; also sarif, github, jsonl
  planctl plan verify plans/fix.md -D warnings        warnings fail too, for CI
  planctl plan verify plans/fix.md -A P104,P110       say nothing of these two
  planctl plan verify plans/fix.md --fix              mend what can be mended
  planctl plan verify --probe plans/fix.md            runs its contracts too, in a throw-away copy
  planctl plan verify --explain P104                  what a code means, with examples
  planctl plan verify plans/fix.md --via reviewer     an agent mends it; the verifier decides when it is done")]
    Verify(VerifyArgs),
    /// Shows what would run: steps, roles, contracts, budget, and every default that applies
    Show {
        /// The plan's path, or a run, whose plan is shown as it was approved and runs
        #[arg(value_name = "FILE|RUN")]
        plan: String,
        /// Only this step
        #[arg(long)]
        step: Option<u32>,
    },
    /// Shows what changed in a plan by what it means: which step's contract, task, policy; exits 1 where something did
    #[command(before_help = "Examples:
  planctl plan diff plans/fix.md                      since it was approved
  planctl plan diff plans/fix.md --since run          since its newest run began
  planctl plan diff plans/fix.md --since 9f2c41 --until fix-3    between two kept revisions
  planctl plan diff plans/fix.md --text               line by line")]
    Diff {
        /// The plan
        file: PathBuf,
        /// The older text: `approved`, `run`, a run's name, or the beginning of a revision's digest
        #[arg(long, value_name = "REV", default_value = "approved")]
        since: String,
        /// The newer text: `approved`, `run`, a run's name, or the beginning of a revision's digest [default: the file]
        #[arg(long, value_name = "REV")]
        until: Option<String>,
        /// Show the lines that differ, too
        #[arg(long)]
        text: bool,
    },
    /// Approves a plan as it stands now, for this workspace and configuration
    #[command(before_help = "Example:\n  planctl plan approve plans/fix.md --note 'read all contracts'")]
    Approve {
        /// The plan
        file: PathBuf,
        /// Why, for the record
        #[arg(long)]
        note: Option<String>,
        /// A protected file that is meant as it is now, though it differs from what was approved last
        #[arg(long, value_name = "FILE[@DIGEST]")]
        accept_changed: Vec<String>,
        /// The agent that will serve every role, for the record.
        #[command(flatten)]
        worker: WorkerFlags,
    },
    /// Rejects a plan; it is a draft again
    Reject {
        /// The plan
        file: PathBuf,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Runs a plan; takes it up where an unfinished run stands
    #[command(before_help = "Examples:
  planctl plan run plans/fix.md                            asks before it runs, unless a policy approves it
  planctl plan run plans/fix.md --exec './work.sh'         one worker for every role
  planctl plan run plans/fix.md --agent claude             or an agent by its name
  planctl plan run plans/fix.md --approve --no-wait        in a script; 3 = ask a person
  planctl plan run plans/fix.md --again                    a new run of a plan that is done")]
    Run {
        /// The plan
        file: PathBuf,
        /// Approve it as it stands: you are the human
        #[arg(long)]
        approve: bool,
        /// A protected file that is meant as it is now, though it differs from what was approved last
        #[arg(long, value_name = "FILE[@DIGEST]", requires = "approve")]
        accept_changed: Vec<String>,
        /// Start a new run, also of a plan that is done
        #[arg(long)]
        again: bool,
        /// The agent that serves every role.
        #[command(flatten)]
        worker: WorkerFlags,
        /// Exit 3 when a person is needed, in place of waiting
        #[arg(long)]
        no_wait: bool,
        /// Leave the run to the daemon and return at once
        #[arg(short, long, conflicts_with = "no_wait")]
        detach: bool,
        /// Answer what the plan and the plans within it ask with its usual answer, else with the first option, also after a
        /// resume. Approves nothing else; work with `contract=none` then counts as done, and nobody has looked at it
        #[arg(long, conflicts_with = "detach")]
        auto_answer: bool,
    },
    /// Follows a run that another process works on
    Watch {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// Exit 3 when a person is needed, in place of waiting
        #[arg(long)]
        no_wait: bool,
    },
    /// Where runs stand
    #[command(before_help = "Examples:
  planctl plan status                         all runs of this workspace that are not over
  planctl plan status @last --json            one run, for programs
  planctl plan status @last --salute          one run, for who supervises it")]
    Status {
        /// The run: a name, a prefix, `@last`, or a plan's path
        run: Option<String>,
        /// Runs that are over, and those of other workspaces, too
        #[arg(long)]
        all: bool,
        /// Answer with the exit code: 0 done, 1 failed, 3 waiting for a human, 8 in progress, …
        #[arg(long)]
        exit_code: bool,
        /// Report size, activity, location, unit, time and equipment
        #[arg(long, requires = "run", conflicts_with = "all")]
        salute: bool,
        /// Tell the way through the graph: where it is, the path, what was visited, the newest 50 events
        #[arg(long, requires = "run", conflicts_with_all = ["all", "salute"])]
        traversal: bool,
    },
    /// Lists runs, newest first
    Ls {
        /// Only runs in these states
        #[arg(long, value_delimiter = ',')]
        state: Vec<String>,
        /// Runs of other workspaces too
        #[arg(long)]
        all: bool,
    },
    /// Shows a run to an agent that drives itself: its steps, where it is, what to do now
    #[command(before_help = "Examples:
  planctl plan context @last                       steps as sentences
  planctl plan context @last --format compact      a line for each step
  planctl plan context @last --format workflow     the path so far, and what follows from here")]
    Context {
        /// The run
        run: String,
    },
    /// Shows the reports of workers and the output of contracts
    Logs {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// Only this step
        #[arg(long)]
        step: Option<u32>,
        /// Only this attempt
        #[arg(long)]
        attempt: Option<u16>,
        /// Only the contract's output
        #[arg(long)]
        contract: bool,
        /// Only the last lines of each output
        #[arg(long, value_name = "LINES")]
        tail: Option<usize>,
        /// Show what is printed while it is printed, until the run ends
        #[arg(short, long, conflicts_with = "tail")]
        follow: bool,
        /// Show what the agent was told at each attempt
        #[arg(long, conflicts_with_all = ["follow", "contract", "tail"])]
        prompt: bool,
    },
    /// Writes what a run is into a folder, for other tools: manifest.json, checkpoint.json, a folder for each node
    #[command(before_help = "Example:
  planctl plan export fix-auth-3 --to fix-auth-3-run

What planctl goes by is the database; nothing is ever read back from such a folder.")]
    Export {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// The folder, which must not be there yet
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Takes a run up where it stands
    Resume {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// The agent that serves every role from here on.
        #[command(flatten)]
        worker: WorkerFlags,
        /// Exit 3 when a person is needed, in place of waiting
        #[arg(long)]
        no_wait: bool,
        /// Answer what the plan asks with its usual answer, else with the first option; as the run was started, if not given
        #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
        auto_answer: Option<bool>,
    },
    /// Ends a run for good
    Cancel {
        /// The run
        run: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
}

/// The beginning of a new plan.
#[derive(Args, Clone, Debug, Default)]
pub struct Beginning {
    /// A template's name, or the path of a plan
    #[arg(long, value_name = "TEMPLATE|FILE")]
    pub from: Option<String>,
    /// The plan's purpose [default: after the file's name]
    #[arg(long)]
    pub title: Option<String>,
    /// The person who answers for it [default: you]
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    /// List the templates
    #[arg(long)]
    pub list: bool,
}

/// With which items templates are expanded, and where to.
#[derive(Args, Clone, Debug, Default)]
pub struct Expanding {
    /// A file with one item per line
    #[arg(long, value_name = "FILE", group = "list")]
    pub items: Option<PathBuf>,
    /// A command that prints one item per line; it runs in the workspace
    #[arg(long, value_name = "CMD", group = "list")]
    pub command: Option<String>,
    /// One item; may be given again
    #[arg(long, value_name = "X", group = "list", allow_hyphen_values = true)]
    pub item: Vec<String>,
    /// So many items for each step; the last gets what is left
    #[arg(long, value_name = "N")]
    pub batch: Option<std::num::NonZeroUsize>,
    /// Write to this file, which must not be there yet [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "write")]
    pub output: Option<PathBuf>,
    /// Write over the plan itself
    #[arg(long)]
    pub write: bool,
}

/// How findings are mended.
#[derive(Args, Clone, Debug, Default)]
pub struct Fixing {
    /// Mend the file: apply the fixes that keep what is meant
    #[arg(long)]
    pub fix: bool,
    /// With --fix: apply also those that a person has to look at
    #[arg(long, requires = "fix")]
    pub unsafe_fixes: bool,
    /// With --fix: show what would change, write nothing
    #[arg(long, requires = "fix", visible_alias = "dry-run")]
    pub diff: bool,
}

/// The files to verify, and the way to do it.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The plans; `-` is standard input
    #[arg(required_unless_present = "explain", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Say what a code means, with a plan that is wrong and one that is right; without CODE, list all codes
    #[arg(
        long,
        value_name = "CODE",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["files", "allow", "warn", "deny", "watch", "fix", "probe"]
    )]
    pub explain: Option<String>,
    /// How much each code weighs.
    #[command(flatten)]
    pub levels: LevelFlags,
    /// Verify again whenever a plan, a file it names, or planctl.toml changes
    #[arg(long, conflicts_with = "fix")]
    pub watch: bool,
    /// How findings are mended.
    #[command(flatten)]
    pub fixing: Fixing,
    /// The reviewers of the plan.
    #[command(flatten)]
    pub reviewing: Reviewing,
    /// Whether and how to try contracts.
    #[command(flatten)]
    pub probing: Probing,
}

/// Whether and how `plan verify` tries contracts.
#[derive(Args, Clone, Debug)]
pub struct Probing {
    /// Run the contracts before any work is done, twice each, and report those that pass already
    ///
    /// This runs the plan's shell commands with your rights, in a throw-away copy of the workspace (the whole git
    /// checkout), with an empty home directory and the limits that gates have. The workspace itself stays as it is. Use it
    /// on plans that you have read.
    #[arg(long, conflicts_with_all = ["fix", "watch"])]
    pub probe: bool,
    /// The most that --probe may copy: bytes, or 500M, 8G
    #[arg(long, value_name = "SIZE", requires = "probe", default_value = "4G", value_parser = parse_size)]
    pub probe_max_bytes: u64,
}

/// Which asks to list.
#[derive(Args, Clone, Debug, Default)]
pub struct AskFilter {
    /// Only asks of this run
    #[arg(long)]
    pub run: Option<String>,
    /// Only asks of this kind
    #[arg(long, value_parser = ["plan", "escalation", "budget", "question", "choice", "insertion"])]
    pub kind: Option<String>,
}

/// The commands of topics.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl topic post login --note 'the vendor confirms: it is the proxy'
  git log -1 | planctl topic post releases
  planctl topic show login --tail 5")]
pub enum TopicCommand {
    /// Adds a note; the first one begins the topic
    Post {
        /// The topic's name: letters, digits, `-`, `_`, `.` and `/`
        name: String,
        /// The text of the note, up to 64 KiB [default: standard input]
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Lists the topics
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

/// The commands of asks.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl approvals                                    what waits for you
  planctl approvals show 17
  planctl approvals retry 17 --note 'the limit is inclusive'
  planctl approvals raise 19 --cost 2.00 --tokens 100k")]
pub enum ApprovalsCommand {
    /// Lists what waits for a person
    Ls(AskFilter),
    /// Shows one ask with what you need to decide it
    Show {
        /// The number of the ask
        id: u64,
    },
    /// Opens the plan of a run in your editor ($VISUAL, $EDITOR); saved, it is verified, compared and approved, and the run
    /// goes on with it
    #[command(before_help = "Examples:
  planctl approvals edit 17            change what is left of the plan; steps that passed stay as they are
  EDITOR='code -w' planctl approvals edit 17")]
    Edit {
        /// The number of the ask
        id: u64,
        /// Approve what you saved without being asked; --yes never does
        #[arg(long)]
        approve: bool,
        /// Why, for the record
        #[arg(long)]
        note: Option<String>,
    },
    /// Lets plans run; puts a step into its plan that a worker proposes
    Approve {
        /// The numbers of the asks
        #[arg(required = true)]
        ids: Vec<u64>,
        /// Why
        #[arg(long)]
        note: Option<String>,
        /// A protected file that is meant as it is now, though it differs from what was approved last
        #[arg(long, value_name = "FILE[@DIGEST]")]
        accept_changed: Vec<String>,
    },
    /// Does not let plans run; leaves out a step that a worker proposes
    Reject {
        /// The numbers of the asks
        #[arg(required = true)]
        ids: Vec<u64>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Tries the step once more, with your note in its prompt
    Retry(Noted),
    /// Accepts protected files as the gate found them, for this step alone; its contract judges what was done
    Allow {
        /// The number of the ask
        id: u64,
        /// The files; all that the ask names where none is given
        files: Vec<String>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Puts the approved copies of protected files back, and tries the step once more
    Restore(Noted),
    /// Leaves the step out
    Skip(Noted),
    /// Lets the step count as met; shows as waived for ever
    Waive(Noted),
    /// Answers a worker's question
    Answer {
        /// The number of the ask
        id: u64,
        /// The answer
        #[arg(long, visible_alias = "text")]
        note: String,
    },
    /// Chooses what the plan asks: one of the options, or any text where there are none
    Choose {
        /// The number of the ask
        id: u64,
        /// The option
        option: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Gives the step to another role and tries once more
    Reassign {
        /// The number of the ask
        id: u64,
        /// The role
        role: String,
        /// Words for the worker
        #[arg(long)]
        note: Option<String>,
    },
    /// Adds to the budget
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
    Raise {
        /// The number of the ask
        id: u64,
        /// Tokens to add: 100k
        #[arg(long, group = "what", value_parser = parse_tokens, value_name = "N")]
        tokens: Option<u64>,
        /// US dollars to add: 2.00
        #[arg(long, group = "what", value_parser = parse_cost, value_name = "USD")]
        cost: Option<u64>,
        /// Time to add: 10m
        #[arg(long, group = "what", value_parser = parse_time, value_name = "DUR")]
        time: Option<std::time::Duration>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Ends the run as failed
    Abort(Noted),
    /// Pauses the run until another revision of its plan is approved
    Revise(Noted),
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}

/// An ask and words about it.
#[derive(Args, Clone, Debug)]
pub struct Noted {
    /// The number of the ask
    pub id: u64,
    /// Why, or words for the worker
    #[arg(long)]
    pub note: Option<String>,
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
    /// Names the nodes that may be worked on at once: the branches of each fork
    #[command(before_help = "Examples:
  planctl graph parallel fix.dot
  planctl graph parallel plans/hello.md --json")]
    Parallel {
        /// A file: .dot, .gv, .json with one graph, or a plan in markdown
        file: PathBuf,
    },
    /// Draws a graph, or writes it in another language: --format svg, ascii, dot, mermaid, markdown or json
    #[command(before_help = "Examples:
  planctl graph render fix.dot                          drawn with letters
  planctl graph render fix.dot --format svg -o fix.svg  a picture
  planctl graph render fix-auth-3                       a run, and where each of its nodes stands
  planctl graph render plans/hello.md --format mermaid
  planctl graph render plans.json --entry bugfix_workflow --format dot > bugfix.dot")]
    Render {
        /// A file (.dot, .gv, .json, or a plan in markdown), or a run: a name, an id, or @last
        #[arg(value_name = "FILE|RUN")]
        what: String,
        /// Which graph of a library
        #[arg(long, value_name = "NAME")]
        entry: Option<String>,
        /// Where to write it [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The commands of tokens.
#[derive(Subcommand, Clone, Debug)]
pub enum TokenCommand {
    /// Makes a token; its secret is printed this once
    #[command(before_help = "Examples:
  planctl token create worker --name build-box --role coder > worker.token
  planctl token create read --name dashboard --expires 90d")]
    Create {
        /// The scope that it grants
        scope: TokenScope,
        /// The holder: actions with the token are on record under this name
        #[arg(long)]
        name: String,
        /// Of a worker's: whose work it may claim; may be repeated [default: any role]
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// How long it holds: 12h, 90d [default: until it is revoked]
        #[arg(long, value_name = "DUR", value_parser = parse_time)]
        expires: Option<std::time::Duration>,
    },
    /// Lists the tokens, without their secrets
    Ls,
    /// Takes a token back; it holds no longer from the next request on
    Revoke {
        /// Its id, as `token ls` shows it
        id: String,
    },
}

/// The scope of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TokenScope {
    /// Claim work and say what came of it
    Worker,
    /// Look, start runs, and decide as a person
    Approve,
    /// Look
    Read,
    /// Everything
    Admin,
}

/// The commands of workers.
#[derive(Subcommand, Clone, Debug)]
pub enum WorkerCommand {
    /// Claims work from the daemon, lets an agent do it, and reports; Ctrl-C finishes what it has, twice gives it back
    #[command(before_help = "Examples:
  planctl worker run --role coder --agent claude
  planctl worker run --role lint --exec 'ruff check --fix .' -j 2
  PLANCTL_TOKEN_FILE=worker.token planctl --server http://127.0.0.1:7420 worker run --role coder --agent codex
  planctl worker run --role coder --exec ./work.sh --drain      in a script: ends when nothing is left")]
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
    #[arg(long = "role", value_name = "ROLE", required = true)]
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

/// The commands with which a script works.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  eval \"$(planctl work claim --role coder --shell)\"      exports PLANCTL_ITEM, PLANCTL_ITEM_TOKEN, PLANCTL_PROMPT_FILE, …
  (cd \"$PLANCTL_WORKSPACE\" && my-agent < \"$PLANCTL_PROMPT_FILE\" > out.txt)
  planctl work heartbeat --wait 20s                       again and again; 5 or 7 = stop, it is lost or cancelled
  planctl work complete --result out.txt                  the contract decides")]
pub enum WorkCommand {
    /// Claims an item; exits 10 where there is none
    #[command(before_help = "Examples:
  eval \"$(planctl work claim --role coder --wait 5m --shell)\"
  planctl work claim --role coder --no-wait --json")]
    Claim {
        /// The roles to claim for; may be repeated [default: the roles of the token]
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// How long to wait for some
        #[arg(long, value_name = "DUR", default_value = "30s", value_parser = parse_time)]
        wait: std::time::Duration,
        /// Do not wait
        #[arg(long, conflicts_with = "wait")]
        no_wait: bool,
        /// How long the lease lasts without a heartbeat: 5s to 10m [default: the daemon's]
        #[arg(long, value_name = "DUR", value_parser = parse_time)]
        lease: Option<std::time::Duration>,
        /// Write the prompt to this file [default: a new one in the directory for temporary files]
        #[arg(long, value_name = "FILE")]
        prompt_file: Option<PathBuf>,
        /// Print variables for eval
        #[arg(long)]
        shell: bool,
        /// By which name `worker ls` shows it [default: this machine's]
        #[arg(long, alias = "agent-id", value_name = "NAME")]
        name: Option<String>,
    },
    /// Shows the item that is held
    Show(HeldItem),
    /// Renews the lease; exits 5 where it is lost and 7 where the run was stopped: end the work
    Heartbeat {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// Wait for so long, at most a minute, and exit at once where the lease is lost or the run stopped
        #[arg(long, value_name = "DUR", value_parser = parse_time)]
        wait: Option<std::time::Duration>,
    },
    /// Shows those who watch what is printed
    Log {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// The text [default: standard input]
        #[arg(long)]
        text: Option<String>,
    },
    /// Says what was used so far
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
        /// It gave up: a failing contract is not retried
        #[arg(long)]
        gave_up: bool,
        /// How its process ended
        #[arg(long, value_name = "CODE")]
        exit_code: Option<i32>,
        /// The label of the edge it prefers, where the plan branches; it passes no contract
        #[arg(long, value_name = "LABEL")]
        prefer: Option<String>,
        /// A node it suggests to go on with; the first one counts most
        #[arg(long, value_name = "NODE")]
        suggest: Vec<String>,
        /// Values that conditions of the plan may look at
        #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_pair)]
        set: Vec<(String, String)>,
        /// A file with a step that it proposes to come after its own (`### Title`, then its fields); a person decides
        #[arg(long, value_name = "FILE")]
        insert_step: Option<PathBuf>,
        /// The usage.
        #[command(flatten)]
        used: Used,
    },
    /// Says why the work could not be done
    Fail {
        /// The item.
        #[command(flatten)]
        item: HeldItem,
        /// The reason
        #[arg(long)]
        reason: String,
        /// gave-up: the contract decides, without a retry; transient: later again; permission: a person is asked;
        /// overran: it was ended at its deadline; silent: it was ended since it printed nothing
        #[arg(long, value_parser = ["gave-up", "transient", "permission", "overran", "silent"], default_value = "gave-up", hide_possible_values = true)]
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
    /// Gives the item back; no attempt is spent
    Release(HeldItem),
}

/// An item that is held.
#[derive(Args, Clone, Debug)]
pub struct HeldItem {
    /// The item [env: PLANCTL_ITEM]
    pub item: Option<String>,
    /// The token of its lease; others on this machine see what is typed here [env: PLANCTL_ITEM_TOKEN]
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

/// The commands of the configuration.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl config show --origin         every value, and which line, variable or flag says it
  planctl config path")]
pub enum ConfigCommand {
    /// Prints what is in force, as planctl.toml would say it; credentials are masked
    #[command(before_help = "Examples:
  planctl config show
  planctl config show --origin
  planctl config show --json | jq '.values[] | select(.key == \"contracts.timeout\")'

Flags go before PLANCTL_* variables, your own file, the project's planctl.toml and the defaults.")]
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Prints which files are read, the strongest first
    Path,
}

/// The commands of roles.
#[derive(Subcommand, Clone, Debug)]
pub enum RolesCommand {
    /// Lists what serves each role, what it may do, which plans it takes, and who answers for it
    Ls,
}

/// The commands of the database.
#[derive(Subcommand, Clone, Debug)]
pub enum DbCommand {
    /// Which database is used, and how it is
    Status,
    /// Prints the address to connect to (with its password)
    Url,
    /// Opens psql on it, to read
    Psql {
        /// As the owner of the tables, who may change everything
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
