//! `planctl goal`: breaks a goal into intents and shows their graph; it asks a writer where no pattern fits, and runs nothing.

use planctl_api::wire::goal::{ConsideredView, GoalEdgeView, GoalGraphView, GoalView, IntentView};
use planctl_config::Config;
use planctl_engine::Budget;
use planctl_planner::{
    Breakdown, Capability, Decomposition, Intent, IntentGraph, IntentKind, NextPiece, Relation, Spending,
    Strategy, Tool, Unanswered, question_of, serving,
};

use serde_json::{Value, json};

use super::Context;
use super::draft::allowance::{Allowance, Metered};
use super::draft::database::DraftDatabase;
use super::draft::empty_goal;
use super::draft::inbox::Inbox;
use super::draft::kept::Kept;
use super::draft::shown;
use super::draft::writer::{self, DraftWriter};
use crate::args::{GoalArgs, GoalCommand, GoalSource, StrategyWord, ToolsFile};
use crate::failure::{Answer, Exit, Failure, exit_of_io};
use crate::flags::Format;
use crate::model::named;
use crate::person::must_be_human;
use crate::show::{self, BOLD, FAINT, styled};
use crate::stop::Stop;

mod embeddings;
mod learned;
mod mend;
mod resolve;
mod resolved;

/// Below this a person should look at the pieces.
const CONFIDENCE_MIN: f64 = 0.5;
/// The largest file of tools.
const TOOLS_BYTES_MAX: u64 = 64 << 20;

/// Does what was typed after `planctl goal`.
pub async fn run(context: &Context, command: GoalCommand) -> Answer {
    must_be_human("work on a goal")?;
    context.format(&[Format::Human, Format::Json])?;
    let database = DraftDatabase::of(context);
    let goal = match &command {
        GoalCommand::Decompose(args) | GoalCommand::Graph(args) => Some(&args.source.goal),
        GoalCommand::Resolve(args) => Some(&args.source.goal),
        GoalCommand::Verify(args) => Some(&args.goal),
        GoalCommand::Stats => None,
    };
    if goal.is_some_and(|goal| goal.trim().is_empty()) {
        return Err(empty_goal());
    }
    match &command {
        GoalCommand::Decompose(args) => decompose(&database, args, false).await,
        GoalCommand::Graph(args) => decompose(&database, args, true).await,
        GoalCommand::Resolve(args) => resolve::run(&database, args).await,
        GoalCommand::Verify(args) => resolve::verify(&database, args).await,
        GoalCommand::Stats => learned::stats(&database).await,
    }
}

async fn decompose(database: &DraftDatabase<'_>, args: &GoalArgs, wants_graph: bool) -> Answer {
    let context = database.context();
    let source = &args.source;
    let tools: Vec<Tool> = capabilities(context, &source.tools).await?.iter().map(tool).collect();
    let writer = writer_of(context, source)?;
    let budget = writer::budget(source.budget.as_deref(), writer.as_ref().and_then(DraftWriter::model))?;
    let asked = (writer.as_ref(), &budget);
    let breakdown = break_up(database, source, args.strategy, &tools, asked).await?;
    match breakdown.next() {
        NextPiece::Done(pieces) if wants_graph => graph(context, &breakdown, (&source.goal, &pieces), &tools),
        NextPiece::Done(pieces) => print_goal(context, source, &breakdown, &pieces, &tools),
        NextPiece::Deferred(..) => {
            if context.is_json()? {
                show::print_json(&view(source, &breakdown, None, &[]))?;
            }
            Err(no_pieces_failure(context, &breakdown)?)
        }
        NextPiece::TooDeep(_) | NextPiece::Unreadable(_) | NextPiece::Ask(_) => {
            Err(no_pieces_failure(context, &breakdown)?)
        }
    }
}

/// Says why a goal is in no pieces.
fn no_pieces_failure(context: &Context, breakdown: &Breakdown) -> Result<Failure, Failure> {
    Ok(match breakdown.next() {
        NextPiece::Deferred(..) => deferred(&context.config()?.config, breakdown),
        NextPiece::TooDeep(intent) => Failure::new(
            Exit::No,
            format!(
                "could not break up the goal: {} \"{}\" is still several pieces",
                intent.id,
                show::safe(&intent.text)
            ),
        )
        .help("say the goal in smaller parts"),
        NextPiece::Unreadable(faults) => Failure::new(
            Exit::No,
            format!("could not read the writer's answers: {}", show::safe(&faults.join("; "))),
        )
        .help("another writer, or --again"),
        // `broken_up` asks until nothing is to be asked.
        NextPiece::Ask(_) | NextPiece::Done(_) => {
            Failure::new(Exit::Temporary, "the goal is not broken up yet")
        }
    })
}

/// Breaks a goal up, with a writer that may use so much.
async fn break_up(
    database: &DraftDatabase<'_>,
    args: &GoalSource,
    strategy: StrategyWord,
    tools: &[Tool],
    (writer, budget): (Option<&DraftWriter>, &Budget),
) -> Result<Breakdown, Failure> {
    let context = database.context();
    let strategy = match strategy {
        StrategyWord::Pattern => Strategy::Pattern,
        StrategyWord::IntentFirst => Strategy::IntentFirst,
        StrategyWord::Grounded => Strategy::Grounded,
        StrategyWord::Hybrid => Strategy::Hybrid,
    };
    let workspace = context.workspace().to_string_lossy().into_owned();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let (key, names) = (writer.map_or_else(String::new, DraftWriter::key), names.join(","));
    let parts = ["goal", &workspace, &args.goal, strategy_word(strategy), &key, &names];
    let kept = Kept::lock(database, &parts)?;
    kept.take_newest().await?;
    let earlier = if args.again { None } else { kept.read::<Breakdown>()? };
    let random = uuid::Uuid::now_v7().to_string();
    let mut breakdown =
        earlier.unwrap_or_else(|| Breakdown::new(&args.goal, strategy, tools, writer.is_some(), &random));
    let mut stop = Stop::listen()?;
    while let (NextPiece::Ask(prompt), Some(writer)) = (breakdown.next(), writer) {
        let name = writer.name().unwrap_or_default();
        context.say(&format!("{} breaks up the goal …", show::safe(&name)));
        // The same prompt is asked after a stop, and the one that a person approves.
        kept.keep(&breakdown, &args.goal).await?;
        let mut allowance = Allowance {
            budget,
            before: Spending::default(),
            prompt: args.send.as_deref(),
            inbox: Inbox::of(&kept, "", &args.goal),
            record: &mut breakdown,
        };
        let answer = writer.ask(context, &prompt, &mut allowance, &mut stop).await?;
        breakdown.take_answer(answer);
        kept.keep(&breakdown, &args.goal).await?;
    }
    Ok(breakdown)
}

impl Metered for Breakdown {
    fn spent(&self) -> Spending {
        Breakdown::spent(self)
    }

    fn unanswered_mut(&mut self) -> &mut Unanswered {
        Breakdown::unanswered_mut(self)
    }
}

fn writer_of(context: &Context, args: &GoalSource) -> Result<Option<DraftWriter>, Failure> {
    if let Some(agent) = &args.agent {
        writer::checked(agent)?;
        return Ok(Some(DraftWriter::Agent(agent.clone(), args.within)));
    }
    let Some(name) = &args.model else { return Ok(None) };
    let model = named::answering(&context.config()?.config, name)?;
    Ok(Some(DraftWriter::Model(Box::new(model))))
}

/// Returns the tools that there are: those of the files, else those of the servers in planctl.toml (M-16).
async fn capabilities(context: &Context, files: &[ToolsFile]) -> Result<Vec<Capability>, Failure> {
    if !files.is_empty() {
        return capabilities_of(files);
    }
    let mut all = Vec::new();
    for (server, tools) in super::tool::list_servers_tools(context).await? {
        let tools: Vec<Value> = tools
            .into_iter()
            .map(|tool| {
                let (name, about, schema) = (tool.name, tool.description, tool.input);
                let mut read = json!({ "name": name, "description": about, "inputSchema": schema });
                if let Some(effects) = tool.effects {
                    read["effects"] = json!(effects);
                }
                read
            })
            .collect();
        match Capability::read_all(&json!({ "tools": tools }).to_string(), &server) {
            Ok(read) => all.extend(read),
            Err(faults) => {
                let faults = show::safe(&faults.into_iter().take(5).collect::<Vec<_>>().join("; "));
                context.say(&format!("warning: the tools of {} are left out: {faults}", show::safe(&server)));
            }
        }
    }
    Ok(all)
}

/// Reads files of tools.
fn capabilities_of(files: &[ToolsFile]) -> Result<Vec<Capability>, Failure> {
    let mut all: Vec<Capability> = Vec::new();
    for file in files {
        let name = show::safe(&file.path.display().to_string());
        let failed = |exit, what: String| {
            let failure = Failure::new(exit, format!("could not read the tools in {name}: {what}"));
            failure.help(
                "it is the answer of an MCP server to tools/list, or a JSON list of {\"name\", \"about\", \"parameters\"}",
            )
        };
        let unread = |error: std::io::Error| failed(exit_of_io(error.kind()), error.to_string());
        let size = std::fs::metadata(&file.path).map_err(unread)?.len();
        if size > TOOLS_BYTES_MAX {
            return Err(failed(Exit::No, "the file is larger than 64 MiB".to_owned()));
        }
        let text = std::fs::read_to_string(&file.path).map_err(unread)?;
        let read = Capability::read_all(&text, &file.server)
            .map_err(|faults| failed(Exit::No, faults.into_iter().take(5).collect::<Vec<_>>().join("; ")))?;
        all.extend(read);
    }
    Ok(all)
}

/// Returns a capability as a writer is shown it.
fn tool(capability: &Capability) -> Tool {
    Tool {
        name: capability.id(),
        about: capability.description.clone(),
        parameters: capability.parameters.iter().map(|own| own.name.clone()).collect(),
    }
}

fn deferred(config: &Config, breakdown: &Breakdown) -> Failure {
    let why: Vec<String> = breakdown.considered().into_iter().map(|one| one.why).collect();
    let failure =
        Failure::new(Exit::No, format!("no pattern breaks up this goal: {}", show::safe(&why.join("; "))));
    let offered = writer::configured_models(config);
    match offered.is_empty() {
        true => failure.help("set [models.NAME] in planctl.toml, or name an agent: --agent exec:CMD"),
        false => failure.help(format!("name a writer: {}", offered.join(", "))),
    }
}

fn view(
    args: &GoalSource,
    breakdown: &Breakdown,
    pieces: Option<&Decomposition>,
    tools: &[Tool],
) -> GoalView {
    let signs = planctl_planner::signals(&args.goal);
    GoalView {
        goal: args.goal.clone(),
        strategy: pieces.map(|pieces| strategy_word(pieces.strategy).to_owned()),
        confidence: pieces.map_or(0.0, |pieces| pieces.confidence),
        signals: signs.into_iter().map(|sign| sign.describe().to_owned()).collect(),
        considered: breakdown
            .considered()
            .into_iter()
            .map(|one| ConsideredView { strategy: strategy_word(one.strategy).to_owned(), why: one.why })
            .collect(),
        intents: pieces.iter().flat_map(|pieces| &pieces.intents).map(|one| intent(one, tools)).collect(),
        spent: shown::spent_view(breakdown.spent()),
    }
}

fn intent(intent: &Intent, tools: &[Tool]) -> IntentView {
    let named = intent.tool.clone().into_iter();
    let found = serving(&intent.text, tools).map(|tool| tool.name.clone()).filter(|_| intent.tool.is_none());
    IntentView {
        id: intent.id.clone(),
        text: intent.text.clone(),
        kind: match intent.kind {
            IntentKind::Ask => "ask",
            IntentKind::Act => "act",
            IntentKind::Transform => "transform",
        }
        .to_owned(),
        question: intent.topic.as_deref().filter(|_| intent.kind == IntentKind::Ask).map(question_of),
        needs: intent.needs.clone(),
        part_of: intent.part_of.clone(),
        tools: named.chain(found).collect(),
    }
}

fn print_goal(
    context: &Context,
    args: &GoalSource,
    breakdown: &Breakdown,
    pieces: &Decomposition,
    tools: &[Tool],
) -> Answer {
    let view = view(args, breakdown, Some(pieces), tools);
    if context.is_json()? {
        show::print_json(&view)?;
    } else {
        let mut text = show::table(
            &["INTENT", "KIND", "WHAT", "NEEDS", "TOOLS"],
            view.intents.iter().map(row).collect(),
        );
        if args.explain {
            for one in &view.considered {
                text.push_str(&format!(
                    "{} {}\n",
                    styled(BOLD, &format!("{}:", one.strategy)),
                    show::safe(&one.why)
                ));
            }
        }
        let strategy = view.strategy.as_deref().unwrap_or_default();
        text.push_str(&styled(
            FAINT,
            &format!("by the strategy {strategy}, {:.1} sure of 1\n", view.confidence),
        ));
        if view.spent.answers > 0 {
            text.push_str(&styled(FAINT, &format!("{}\n", shown::spent_words("goal", &view.spent))));
        }
        show::print(&text)?;
    }
    Ok(if pieces.confidence < CONFIDENCE_MIN { Exit::Waiting } else { Exit::Yes })
}

fn row(view: &IntentView) -> Vec<String> {
    let text = view.question.as_ref().unwrap_or(&view.text);
    vec![
        view.id.clone(),
        view.kind.clone(),
        show::safe(text),
        view.needs.join(", "),
        show::safe(&view.tools.join(", ")),
    ]
}

fn graph(
    context: &Context,
    breakdown: &Breakdown,
    (goal, pieces): (&str, &Decomposition),
    tools: &[Tool],
) -> Answer {
    let graph = IntentGraph::of(goal, &pieces.intents);
    if context.is_json()? {
        let kind = |kind| match kind {
            Relation::IsSubgoalOf => "is_subgoal_of",
            Relation::DependsOn => "depends_on",
        };
        let edges = graph.edges.iter().map(|edge| GoalEdgeView {
            from: edge.from.clone(),
            to: edge.to.clone(),
            kind: kind(edge.kind).to_owned(),
        });
        show::print_json(&GoalGraphView {
            root: graph.root.clone(),
            intents: graph.intents.iter().map(|one| intent(one, tools)).collect(),
            edges: edges.collect(),
            spent: shown::spent_view(breakdown.spent()),
        })?;
        return Ok(Exit::Yes);
    }
    let mut text = format!("{}\n", show::safe(&graph.root));
    for intent in &graph.intents {
        let depth = graph.trace(&intent.id).len();
        let needs = if intent.needs.is_empty() {
            String::new()
        } else {
            format!("  needs {}", intent.needs.join(", "))
        };
        text.push_str(&format!(
            "{}{} {}{}\n",
            "  ".repeat(depth),
            intent.id,
            show::safe(&intent.text),
            styled(FAINT, &needs)
        ));
    }
    show::print(&text)?;
    Ok(Exit::Yes)
}

fn strategy_word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Pattern => "pattern",
        Strategy::IntentFirst => "intent_first",
        Strategy::Grounded => "grounded",
        Strategy::Hybrid => "hybrid",
    }
}
