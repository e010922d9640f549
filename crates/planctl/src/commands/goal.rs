//! `planctl goal`: breaks a goal into intents and shows their graph; it asks a writer where no pattern fits, and runs nothing.

use std::path::Path;

use planctl_api::wire::goal::{ConsideredView, GoalEdgeView, GoalGraphView, GoalView, IntentView};
use planctl_engine::Budget;
use planctl_planner::{
    Breakdown, Decomposition, Intent, IntentGraph, IntentKind, NextPiece, Relation, Spending, Strategy, Tool,
    humanised, serving,
};

use super::draft::kept::Kept;
use super::draft::writer::{self, Purse, Writer};
use super::{Context, Stop};
use crate::args::{Format, GoalArgs, GoalCommand, StrategyWord};
use crate::caller::must_be_human;
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BOLD, FAINT, styled};

/// Below this a person should look at the pieces.
const CONFIDENCE_MIN: f64 = 0.5;
/// The largest file of tools.
const TOOLS_BYTES_MAX: u64 = 4 << 20;

/// Does what was typed after `planctl goal`.
pub async fn run(context: &Context, command: GoalCommand) -> Answer {
    must_be_human("break up a goal")?;
    context.format(&[Format::Human, Format::Json])?;
    let (args, wants_graph) = match &command {
        GoalCommand::Decompose(args) => (args, false),
        GoalCommand::Graph(args) => (args, true),
    };
    let tools = args.tools.as_deref().map(tools_of).transpose()?.unwrap_or_default();
    let writer = writer_of(context, args)?;
    let breakdown = broken_up(context, args, &tools, writer.as_ref()).await?;
    match breakdown.next() {
        NextPiece::Done(pieces) if wants_graph => graph(context, &args.goal, &pieces, &tools),
        NextPiece::Done(pieces) => shown(context, args, &breakdown, &pieces, &tools),
        NextPiece::Deferred(..) => deferred(context, args, &breakdown),
        NextPiece::TooDeep(intent) => Err(Failure::new(
            Exit::No,
            format!(
                "could not break up the goal: {} \"{}\" is still several pieces",
                intent.id,
                show::safe(&intent.text)
            ),
        )
        .help("say the goal in smaller parts")),
        NextPiece::Unreadable(faults) => Err(Failure::new(
            Exit::No,
            format!("could not read the writer's answers: {}", show::safe(&faults.join("; "))),
        )
        .help("another writer, or --again")),
        // `broken_up` asks until nothing is to be asked.
        NextPiece::Ask(_) => Err(Failure::new(Exit::Temporary, "the goal is not broken up yet")),
    }
}

async fn broken_up(
    context: &Context,
    args: &GoalArgs,
    tools: &[Tool],
    writer: Option<&Writer>,
) -> Result<Breakdown, Failure> {
    let strategy = match args.strategy {
        StrategyWord::Pattern => Strategy::Pattern,
        StrategyWord::IntentFirst => Strategy::IntentFirst,
        StrategyWord::Grounded => Strategy::Grounded,
        StrategyWord::Hybrid => Strategy::Hybrid,
    };
    let workspace = context.workspace().to_string_lossy().into_owned();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let (key, names) = (writer.map_or_else(String::new, Writer::key), names.join(","));
    let parts = ["goal", &workspace, &args.goal, word(strategy), &key, &names];
    let kept = Kept::take(&context.state_dir()?, &parts)?;
    let earlier = if args.again { None } else { kept.read::<Breakdown>()? };
    let random = uuid::Uuid::now_v7().to_string();
    let mut breakdown =
        earlier.unwrap_or_else(|| Breakdown::new(&args.goal, strategy, tools, writer.is_some(), &random));
    let mut stop = Stop::listen()?;
    let budget = Budget::default();
    while let (NextPiece::Ask(prompt), Some(writer)) = (breakdown.next(), writer) {
        let name = writer.name().unwrap_or_default();
        context.say(&format!("{} breaks up the goal …", show::safe(&name)));
        let purse = Purse { budget: &budget, spent: Spending::default() };
        breakdown.answered(writer.ask(context, &prompt, &purse, &mut stop).await?);
        kept.write(&breakdown)?;
    }
    Ok(breakdown)
}

fn writer_of(context: &Context, args: &GoalArgs) -> Result<Option<Writer>, Failure> {
    if let Some(agent) = &args.agent {
        writer::checked(agent)?;
        return Ok(Some(Writer::Agent(agent.clone(), args.within)));
    }
    let Some(name) = &args.model else { return Ok(None) };
    let model = writer::model(&context.config()?.config, name)?;
    Ok(Some(Writer::Model(Box::new(model))))
}

fn tools_of(path: &Path) -> Result<Vec<Tool>, Failure> {
    let name = show::safe(&path.display().to_string());
    let failed = |what: String| Failure::new(Exit::No, format!("could not read the tools in {name}: {what}"));
    let size = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()).help("a JSON list of tools"))?
        .len();
    if size > TOOLS_BYTES_MAX {
        return Err(failed("the file is larger than 4 MiB".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        failed(error.to_string()).help("it is a JSON list of {\"name\", \"about\", \"parameters\"}")
    })
}

fn deferred(context: &Context, args: &GoalArgs, breakdown: &Breakdown) -> Answer {
    let considered = breakdown.considered();
    let why: Vec<String> = considered.iter().map(|one| one.why.clone()).collect();
    if context.is_json()? {
        let view = view(args, breakdown, None, &[]);
        show::print_json(&view)?;
    }
    let config = &context.config()?.config;
    let offered = writer::offered(config);
    let failure =
        Failure::new(Exit::No, format!("no pattern breaks up this goal: {}", show::safe(&why.join("; "))));
    Err(match offered.is_empty() {
        true => failure.help("set [models.NAME] in planctl.toml, or name an agent: --agent exec:CMD"),
        false => failure.help(format!("name a writer: {}", offered.join(", "))),
    })
}

fn view(args: &GoalArgs, breakdown: &Breakdown, pieces: Option<&Decomposition>, tools: &[Tool]) -> GoalView {
    let signs = planctl_planner::signals(&args.goal);
    GoalView {
        goal: args.goal.clone(),
        strategy: pieces.map(|pieces| word(pieces.strategy).to_owned()),
        confidence: pieces.map_or(0.0, |pieces| pieces.confidence),
        signals: signs.into_iter().map(|sign| sign.words().to_owned()).collect(),
        considered: breakdown
            .considered()
            .into_iter()
            .map(|one| ConsideredView { strategy: word(one.strategy).to_owned(), why: one.why })
            .collect(),
        intents: pieces.iter().flat_map(|pieces| &pieces.intents).map(|one| intent(one, tools)).collect(),
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
        question: intent.topic.as_deref().filter(|_| intent.kind == IntentKind::Ask).map(humanised),
        needs: intent.needs.clone(),
        part_of: intent.part_of.clone(),
        tools: named.chain(found).collect(),
    }
}

fn shown(
    context: &Context,
    args: &GoalArgs,
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

fn graph(context: &Context, goal: &str, pieces: &Decomposition, tools: &[Tool]) -> Answer {
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

fn word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Pattern => "pattern",
        Strategy::IntentFirst => "intent_first",
        Strategy::Grounded => "grounded",
        Strategy::Hybrid => "hybrid",
    }
}
