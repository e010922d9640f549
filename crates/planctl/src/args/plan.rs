//! The arguments of `planctl plan`: everything that is done with a plan's file.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use planctl_config::Agent;

use super::run::{RunPlan, RunVerb};
use super::{LevelFlags, WorkerFlags};
use crate::amounts::{parse_size, plan_budget};
use crate::completing;

/// The commands of `planctl plan`.
#[derive(Subcommand, Clone, Debug)]
pub enum PlanCommand {
    /// A command that is also typed without `plan`.
    #[command(flatten)]
    Verb(PlanVerb),
    /// Runs a plan, or goes on with its unfinished run
    #[command(before_help = RunPlan::EXAMPLES)]
    Run(RunPlan),
    /// Makes a plan of another tool's task list, with a marked gap for each contract that the list lacks
    #[command(before_help = "Examples:
  planctl plan import specs/001-albums/tasks.md       spec-kit; also tasks.md of OpenSpec and Kiro
  planctl plan import docs/plans/rate-limits.md       ralphex: its validation commands are contracts
  planctl plan import .taskmaster/tasks/tasks.json -o plans/orders.md")]
    Import {
        /// The task list, or the folder that has it
        #[arg(value_name = "FILE")]
        list: PathBuf,
        /// The plan to write [default: plans/TITLE.md in the workspace]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Of a file of Task Master, the tag whose tasks become steps [default: master, or its only tag]
        #[arg(long)]
        tag: Option<String>,
    },
    /// Drafts a plan from a goal with a model or an agent; approves and runs nothing
    #[command(before_help = "Examples:
  planctl plan draft 'fix failing test tests/login.sh'          by its form, without a model
  planctl plan draft 'add a --json flag and document it' --agent claude
  planctl plan draft --from issue.md --model writer --out plans/login.md --budget '200k tokens, $1'
  planctl plan draft --from issue.md --model writer --answer Q1='all of them'    answers
  planctl plan draft --from issue.md --model writer --hint 'keep the old flag'   drafts anew
  planctl plan draft --from issue.md --model writer --repair login-1   after it failed

Every contract of a draft was tried in a copy of the workspace and failed there, since the work is not done yet. The same
command goes on where an earlier one was stopped.")]
    Draft(DraftArgs),
    /// Lists the plans of this workspace, and the newest run of each
    #[command(visible_alias = "list")]
    Ls,
    /// A run's command by its earlier name.
    #[command(flatten)]
    OfRun(RunVerb),
}

/// The verbs of a plan's file; typed as `planctl plan VERB` or `planctl VERB`.
#[derive(Subcommand, Clone, Debug)]
pub enum PlanVerb {
    /// Writes a new plan from a template
    #[command(before_help = "Examples:
  planctl new                                    plans/say-hello.md, one step
  planctl new --from bugfix --title 'Fix the login timeout'
  planctl new plans/next.md --from plans/last.md
  planctl new --from bugfix_workflow             a plan of the library
  planctl new --list                             lists the templates and the plans of the library")]
    New {
        /// The plan to write; a name alone is one in `plans` of the workspace [default: plans/TITLE.md there]
        file: Option<PathBuf>,
        /// The template, and the values of its head.
        #[command(flatten)]
        beginning: Beginning,
    },
    /// Opens a plan in your editor ($VISUAL, $EDITOR) and verifies it; the plan of a run that waits for you then goes on
    #[command(before_help = "Examples:
  planctl edit plans/fix.md       verified when you save
  planctl edit fix-3              that of a run, which is paused for it and goes on once you approve
  EDITOR='code -w' planctl edit 17     the same, named by its ask")]
    Edit(EditArgs),
    /// Checks plans and reports every finding at once; writes nothing, needs no database
    #[command(before_help = "Examples:
  planctl verify plans/*.md
  planctl verify plans/fix.md --watch            again whenever a file changes
  planctl verify plans/fix.md --json             for programs; also sarif, github, jsonl
  planctl verify plans/fix.md -D warnings        warnings fail too, for CI
  planctl verify plans/fix.md -A P104,P110       does not report these two codes
  planctl verify plans/fix.md --fix              fixes what can be fixed
  planctl verify --probe plans/fix.md            runs its contracts too, in a throw-away copy
  planctl verify --explain P104                  explains a code, with examples")]
    Verify(VerifyArgs),
    /// Explains a code with a wrong and a right example; without a code, lists all codes
    Explain {
        /// The code: P104
        #[arg(add = completing::code())]
        code: Option<String>,
    },
    /// Writes plans in planctl's own layout; changes nothing that they mean
    #[command(before_help = "Examples:
  planctl fmt plans/*.md
  planctl fmt --check plans/*.md                 for CI: writes nothing, exits 1 if a plan differs
  planctl fmt --check -v plans/fix.md            and shows what would change
  planctl fmt - < plans/fix.md                   to standard output

The new layout has a new digest, so an approval of the old one no longer holds.")]
    Fmt {
        /// The plans, by their files or names; `-` is standard input, which is written to standard output
        #[arg(required = true, value_name = "FILE", add = completing::plan())]
        files: Vec<PathBuf>,
        /// Write nothing; name the plans that differ (with -v, each line), and exit 1 if any does
        #[arg(long, visible_alias = "dry-run")]
        check: bool,
    },
    /// Shows what would run: steps, roles, contracts, budget; -v adds the defaults that apply
    Show {
        /// The plan, by its file or name; or a run, to show its plan as it was approved [default: @last]
        #[arg(value_name = "FILE|RUN", add = completing::plan_or_run())]
        plan: Option<String>,
        /// Only this step
        #[arg(long)]
        step: Option<u32>,
    },
    /// Shows which contracts, tasks and policies changed in a plan; exits 1 if any did
    #[command(before_help = "Examples:
  planctl diff plans/fix.md                      since it was approved
  planctl diff plans/fix.md --since run          since its newest run began
  planctl diff plans/fix.md --since 9f2c41 --until fix-3    between two kept revisions
  planctl diff plans/fix.md --text               line by line")]
    Diff {
        /// The plan, by its file or name
        #[arg(add = completing::plan())]
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
    /// Has an agent review plans and correct them; the verifier decides when each is done
    #[command(before_help = "Examples:
  planctl review plans/fix.md --agent claude
  planctl review plans/fix.md --role reviewer    by the agent of this role in planctl.toml")]
    Review(ReviewArgs),
    /// Approves plans as they stand now, for this workspace and configuration; or answers asks with `approve`
    #[command(before_help = "Examples:
  planctl approve plans/fix.md --note 'read all contracts'
  planctl approve 17 18                          asks, by their numbers
  planctl approve                                the only ask that waits for an approval
  planctl approve --all --run fix-3              every ask of a run that waits for one")]
    Approve {
        /// Plans by their files or names, or numbers of asks [default: the only ask that waits for an approval]
        #[arg(value_name = "FILE|ASK", add = completing::plan_or_ask(), conflicts_with = "all")]
        what: Vec<String>,
        /// Every ask of a run that waits for an approval, each recorded separately in the run's history
        #[arg(long, requires = "run")]
        all: bool,
        /// The run of `--all`
        #[arg(long, value_name = "RUN", requires = "all", add = completing::run())]
        run: Option<String>,
        /// Why, for the record
        #[arg(long)]
        note: Option<String>,
        /// Accept this protected file as it is, although it differs from what was approved last
        #[arg(long, value_name = "FILE[@DIGEST]")]
        accept_changed: Vec<String>,
        /// The agent that will serve every role, for the record.
        #[command(flatten)]
        worker: WorkerFlags,
    },
    /// Rejects plans, which become drafts again; or answers asks with `reject`
    Reject {
        /// Plans by their files or names, or numbers of asks [default: the only ask that waits for an approval]
        #[arg(value_name = "FILE|ASK", add = completing::plan_or_ask())]
        what: Vec<String>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Writes templates of steps (`### 3–N.`, `**for_each:**`) out as numbered steps
    #[command(before_help = "Examples:
  planctl expand plans/migrate.md --command 'git ls-files src'
  planctl expand plans/migrate.md --item a.py --item b.py -o plans/migrate-two.md
  planctl expand plans/migrate.md --items docs/inventory.md --batch 5 --write

In a template {item}, {n} (the step's number), {index} and {count} are filled in; in a contract
items are quoted as the shell needs it, so write {item} without quotes.")]
    Expand {
        /// The plan, by its file or name
        #[arg(add = completing::plan())]
        file: PathBuf,
        /// The items, and where the result is written.
        #[command(flatten)]
        expanding: Expanding,
    },
}

/// The plan to edit, and the approval of the result.
#[derive(Args, Clone, Debug, Default)]
pub struct EditArgs {
    /// A plan by its file or name, a run, or the number of an ask [default: the only ask that waits for you]
    #[arg(value_name = "FILE|RUN|ASK", add = completing::plan_or_run())]
    pub what: Option<String>,
    /// Approve what you saved without being asked; --yes never does
    #[arg(long)]
    pub approve: bool,
    /// Why, for the record
    #[arg(long)]
    pub note: Option<String>,
}

/// The beginning of a new plan.
#[derive(Args, Clone, Debug, Default)]
pub struct Beginning {
    /// A template's name, or the path of a plan
    #[arg(long, value_name = "TEMPLATE|FILE", add = completing::template())]
    pub from: Option<String>,
    /// The plan's purpose [default: after the file's name]
    #[arg(long)]
    pub title: Option<String>,
    /// The person who is responsible for it [default: you]
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
    /// List the templates
    #[arg(long)]
    pub list: bool,
}

/// The items with which templates are expanded, and where the result is written.
#[derive(Args, Clone, Debug, Default)]
pub struct Expanding {
    /// A file with one item per line
    #[arg(long, value_name = "FILE", group = "list")]
    pub items: Option<PathBuf>,
    /// A command that prints one item per line; it runs in the workspace
    #[arg(long, value_name = "CMD", group = "list")]
    pub command: Option<String>,
    /// One item; may be repeated
    #[arg(long, value_name = "X", group = "list", allow_hyphen_values = true)]
    pub item: Vec<String>,
    /// How many items each step gets; the last gets what is left
    #[arg(long, value_name = "N")]
    pub batch: Option<std::num::NonZeroUsize>,
    /// Write to this file, which must not exist yet [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "write")]
    pub output: Option<PathBuf>,
    /// Overwrite the plan itself
    #[arg(long)]
    pub write: bool,
}

/// How findings are mended.
#[derive(Args, Clone, Debug, Default)]
pub struct Fixing {
    /// Fix the file: apply the fixes that keep its meaning
    #[arg(long)]
    pub fix: bool,
    /// With --fix: also apply fixes that you should review
    #[arg(long, requires = "fix")]
    pub unsafe_fixes: bool,
    /// With --fix: show what would change, write nothing
    #[arg(long, requires = "fix", visible_alias = "dry-run")]
    pub diff: bool,
}

/// The files to verify, and how.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The plans, by their files or names; `-` is standard input
    #[arg(required_unless_present = "explain", value_name = "FILE", add = completing::plan())]
    pub files: Vec<PathBuf>,
    /// The same as `planctl plan explain CODE`
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
    #[arg(short, long, conflicts_with = "fix")]
    pub watch: bool,
    /// How findings are mended.
    #[command(flatten)]
    pub fixing: Fixing,
    /// Whether and how to try contracts.
    #[command(flatten)]
    pub probing: Probing,
}

/// Whether and how `plan verify` tries contracts.
#[derive(Args, Clone, Debug)]
pub struct Probing {
    /// Run each contract twice before any work is done, and report those that already pass
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

/// How often a writer is asked.
pub const DRAFT_ROUNDS: u32 = 3;
/// How long an agent may take for one answer.
pub const DRAFT_WITHIN: &str = "10m";

/// A goal, and the writer of its plan.
#[derive(Args, Clone, Debug)]
pub struct DraftArgs {
    /// The goal, in your words [default: the title of --from]
    #[arg(required_unless_present = "from")]
    pub goal: Option<String>,
    /// A text that says more, such as an issue; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// The agent that writes: claude, codex, gemini, opencode, aider or exec:COMMAND; it only reads
    #[arg(long, value_name = "NAME[:ARGS]", conflicts_with = "model", value_parser = Agent::parse, add = completing::agent())]
    pub agent: Option<Agent>,
    /// The model that writes: its name in [models] of planctl.toml, or an address such as
    /// http://127.0.0.1:8080/v1/chat/completions#MODEL
    #[arg(long, value_name = "NAME|URL")]
    pub model: Option<String>,
    /// The model that reviews what passes the rules, by its name in [models] or its address
    #[arg(long, value_name = "NAME|URL")]
    pub reviewer: Option<String>,
    /// The plan to write [default: plans/TITLE.md in the workspace]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The most that the draft may use: tokens and money
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<String>,
    /// The budget that the plan gets: tokens, money and time [default: none]
    #[arg(long, value_name = "BUDGET", value_parser = plan_budget)]
    pub plan_budget: Option<String>,
    /// How often the writer is asked until the draft has no errors
    #[arg(long, value_name = "N", default_value_t = DRAFT_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=5))]
    pub rounds: u32,
    /// How long an agent may take for one answer
    #[arg(long, value_name = "DUR", default_value = DRAFT_WITHIN, value_parser = crate::amounts::parse_time)]
    pub within: std::time::Duration,
    /// Send the prompt of this digest to a model whose prompts you approve (`ask = true`), and no other
    #[arg(long, value_name = "DIGEST", conflicts_with = "agent")]
    pub send: Option<String>,
    /// Your comment on the draft, which is then written again
    #[arg(long, value_name = "TEXT")]
    pub hint: Option<String>,
    /// A run of the draft that failed; the draft is written again with the failure, at most three times
    #[arg(long, value_name = "RUN", conflicts_with_all = ["hint", "again"], add = completing::run())]
    pub repair: Option<String>,
    /// Approve the repaired plan for that run without being asked, where it waits for you; --yes never does
    #[arg(long, requires = "repair")]
    pub approve: bool,
    /// Your answer to a question of the draft; may be repeated
    #[arg(long, value_name = "Q=TEXT")]
    pub answer: Vec<String>,
    /// A sentence that is not a requirement; may be repeated
    #[arg(long, value_name = "R")]
    pub without: Vec<String>,
    /// Start from scratch, and drop earlier answers
    #[arg(long)]
    pub again: bool,
}

/// An agent's review of plans.
#[derive(Args, Clone, Debug)]
pub struct ReviewArgs {
    /// The plans, by their files or names
    #[arg(required = true, value_name = "FILE", add = completing::plan())]
    pub files: Vec<PathBuf>,
    /// The role that reviews
    #[arg(long, default_value = "reviewer", add = completing::role())]
    pub role: String,
    /// The command that does the review; it reads the prompt on its input [default: what serves the role]
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// The agent that does the review, by its name [default: what serves the role]
    #[arg(long, value_name = "NAME[:ARGS]", conflicts_with = "exec", value_parser = Agent::parse, add = completing::agent())]
    pub agent: Option<Agent>,
    /// How much each code weighs.
    #[command(flatten)]
    pub levels: LevelFlags,
    /// Exit 3 when a person is needed, instead of waiting
    #[arg(long)]
    pub no_wait: bool,
}

impl ReviewArgs {
    /// Returns the agent that was named.
    pub fn worker(&self) -> Option<Agent> {
        self.agent.clone().or_else(|| self.exec.clone().map(Agent::Exec))
    }
}
