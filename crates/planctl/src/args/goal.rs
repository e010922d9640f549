//! The arguments of `planctl goal`: what a goal is made of, and the tools that serve it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use planctl_config::Agent;

use crate::amounts::{parse_time, plan_budget};
use crate::completing;

/// The commands of `planctl goal`.
#[derive(Subcommand, Clone, Debug)]
pub enum GoalCommand {
    /// Breaks a goal into intents, each one piece of work or one question; runs nothing
    #[command(before_help = "Examples:
  planctl goal decompose 'list issues in owner/repo but ask me for the page size'
  planctl goal decompose 'close stale issues' --model writer --tools tools.json
  planctl goal decompose 'close stale issues' --model writer --explain   which strategies there were

A file of tools is the answer of an MCP server to tools/list, or a JSON list of {\"name\", \"about\", \"parameters\"}; with
it a writer is shown the tools that there are.")]
    Decompose(GoalArgs),
    /// Shows a goal's intents as a graph: the parts of each, and whose results it needs
    Graph(GoalArgs),
    /// Finds the tool for each intent of a goal, and writes a plan that calls them; runs nothing
    #[command(before_help = "Examples:
  planctl goal resolve 'list issues in owner/repo, ask for the page size' --tools github=tools.json
  planctl goal resolve 'list issues in owner/repo' --explain         what each strategy found
  planctl goal resolve 'list issues in owner/repo' --answer I1-1=2   answers an open question")]
    Resolve(ResolveArgs),
    /// Checks a resolved goal against the tools: each tool exists, and takes the arguments that it is given
    #[command(
        before_help = "Example:\n  planctl goal verify 'list issues in owner/repo' --tools github=tools.json"
    )]
    Verify(GoalVerifyArgs),
    /// Shows how often each strategy resolved an intent, and how the resulting steps ended
    Stats,
}

/// A goal, and who is asked about it.
#[derive(Args, Clone, Debug)]
pub struct GoalSource {
    /// The goal, in your words
    pub goal: String,
    /// The agent that is asked where no pattern fits; it only reads
    #[arg(long, value_name = "NAME[:ARGS]", conflicts_with = "model", value_parser = Agent::parse, add = completing::agent())]
    pub agent: Option<Agent>,
    /// The model that is asked where no pattern fits, by its name in [models] or its address
    #[arg(long, value_name = "NAME|URL")]
    pub model: Option<String>,
    /// The available tools, and their server, which is the file's name unless given [default: the tools of [servers.NAME]
    /// in planctl.toml]
    #[arg(long, value_name = "[SERVER=]FILE", value_parser = ToolsFile::parse)]
    pub tools: Vec<ToolsFile>,
    /// The most that may be used for the goal: tokens and money
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<String>,
    /// How long an agent may take for one answer
    #[arg(long, value_name = "DUR", default_value = "10m", value_parser = parse_time)]
    pub within: Duration,
    /// Send the prompt of this digest to a model whose prompts you approve (`ask = true`), and no other
    #[arg(long, value_name = "DIGEST", conflicts_with = "agent")]
    pub send: Option<String>,
    /// Say which strategies were considered, and why
    #[arg(long)]
    pub explain: bool,
    /// Start from scratch, and drop earlier answers
    #[arg(long)]
    pub again: bool,
}

/// A goal, and how it is broken up.
#[derive(Args, Clone, Debug)]
pub struct GoalArgs {
    #[command(flatten)]
    pub source: GoalSource,
    /// How it is broken up
    #[arg(long, value_name = "STRATEGY", default_value = "hybrid", hide_possible_values = true)]
    pub strategy: StrategyWord,
}

/// A goal, and how tools are found for it.
#[derive(Args, Clone, Debug)]
pub struct ResolveArgs {
    #[command(flatten)]
    pub source: GoalSource,
    /// How tools are found
    #[arg(long, value_name = "STRATEGY", default_value = "composite", hide_possible_values = true)]
    pub strategy: ResolutionWord,
    /// The model that gives vectors, for intents that no name of a tool fits, by its name in [models] or its address
    #[arg(long, value_name = "NAME|URL")]
    pub embeddings: Option<String>,
    /// The budget that the plan gets: tokens, money and time [default: none]
    #[arg(long, value_name = "BUDGET", value_parser = plan_budget)]
    pub plan_budget: Option<String>,
    /// A run of the plan that failed at a call; the writer repairs that call, at most three times
    #[arg(long, value_name = "RUN", conflicts_with = "again", add = completing::run())]
    pub repair: Option<String>,
    /// Approve the repaired plan for that run without being asked, where it waits for you; --yes never does
    #[arg(long, requires = "repair")]
    pub approve: bool,
    /// Answer an open question: ID=NUMBER, or ID=WORDS
    #[arg(long, value_name = "ID=ANSWER")]
    pub answer: Vec<String>,
    /// The plan to write [default: plans/TITLE.md in the workspace]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A goal that was resolved, and the tools that there are.
#[derive(Args, Clone, Debug)]
pub struct GoalVerifyArgs {
    /// The goal, in the same words as when it was resolved
    pub goal: String,
    /// The available tools, and their server, which is the file's name unless given
    #[arg(long, value_name = "[SERVER=]FILE", value_parser = ToolsFile::parse)]
    pub tools: Vec<ToolsFile>,
}

/// A file of tools, and the server whose they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolsFile {
    /// The server.
    pub server: String,
    /// The file.
    pub path: PathBuf,
}

impl ToolsFile {
    /// Reads `SERVER=FILE`, or a file whose name is the server's.
    pub fn parse(text: &str) -> Result<ToolsFile, String> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        if let Some((server, path)) = text.split_once('=').filter(|(server, _)| is_name(server)) {
            return Ok(ToolsFile { server: server.to_owned(), path: PathBuf::from(path) });
        }
        let path = PathBuf::from(text);
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let server =
            stem.filter(|stem| is_name(stem)).ok_or("the server can't be told: write SERVER=FILE")?;
        Ok(ToolsFile { server, path })
    }
}

/// A strategy of breaking up, as it is typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum StrategyWord {
    /// By the form of the goal
    Pattern,
    /// By a writer that is shown no tools
    IntentFirst,
    /// By a writer that is shown the tools
    Grounded,
    /// A pattern, then grounded, then intents first
    Hybrid,
}

/// A strategy of finding tools, as it is typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResolutionWord {
    /// The intent's own tool, earlier success, local commands, tools of servers, plans of the library, descriptions
    Composite,
    /// Local commands
    Catalog,
    /// Tools of servers, by their names
    Mcp,
    /// Plans of the library, by their triggers
    Library,
    /// All, by their descriptions
    Semantic,
}
