//! The steps of a graph in DOT or JSON in the form of a markdown plan's steps, with their places.
//!
//! So one set of lints judges contracts, files, roles and budgets, and one lowering makes tasks of them, in every language.

use planctl_engine::{Backoff, Subscription, WorkKind};

use super::pipeline::inner_place;
use super::tree::{Kind, NodeTree, Said, Workflow};
use crate::syntax::source::Source;
use crate::syntax::values::{on_fail_of, priority_of};
use crate::text::{Span, Spanned};
use crate::tree::parse::budget_of;
use crate::tree::{
    ContractTree, Frontmatter, OnFail, PlanTree, StepKind, StepNumber, StepTree, Then, WorkspaceMode,
};

/// The role where a node names none.
pub(super) const ROLE: &str = "coder";

/// Returns the plan that a graph is.
pub(crate) fn steps(source: &Source, workflow: &Workflow) -> PlanTree {
    let title = Spanned::new(
        workflow.title().to_owned(),
        workflow.title.as_ref().or(workflow.name.as_ref()).map_or(Span::at(0), |title| title.span),
    );
    let said = |key: &str| workflow.said.text(key);
    let mut tree = PlanTree {
        frontmatter: Frontmatter::default(),
        title: Some(title),
        context: said("goal").cloned(),
        budget: said("budget").and_then(|said| Some(Spanned::new(budget_of(&said.value)?, said.span))),
        priority: said("priority").and_then(|said| Some(Spanned::new(priority_of(&said.value)?, said.span))),
        max_visits: workflow.said.number("max_visits"),
        stale_after: workflow.said.seconds("stale_after"),
        ask_deadline: workflow.said.ask_deadline(),
        parallel: workflow.said.number("max_parallel"),
        ..PlanTree::default()
    };
    let numbered = workflow.nodes.iter().filter(|node| is_step(node.kind.value));
    tree.steps = numbered.zip(1_u32..).map(|(node, number)| step(source, workflow, node, number)).collect();
    tree
}

/// Says whether something happens at a node that people count as a step.
fn is_step(kind: Kind) -> bool {
    !matches!(kind, Kind::Start | Kind::Exit | Kind::Fork | Kind::Join)
}

fn step(source: &Source, workflow: &Workflow, node: &NodeTree, number: u32) -> StepTree {
    let said = &node.said;
    let here = node.id.span;
    let title = said.text("label").map_or(here, |label| label.span);
    let mut step = StepTree::new(
        Spanned::new(StepNumber::Fixed(number), here),
        Span::new(
            node.span.start,
            source.line_span(source.line_of(node.span.start)).end.max(node.span.start),
        ),
        Spanned::new(node.title().to_owned(), title),
    );
    step.end = node.span.end;
    step.node = Some(node.id.value.clone());
    step.kind = kind_of(node).map(|kind| Spanned::new(kind, node.kind.span));
    step.task = Some(prompt(source, workflow, node));
    step.contract = contract(source, node);
    step.timeout = said.seconds("timeout");
    // A call is nothing but its command.
    let is_bare = matches!(node.kind.value, Kind::Call | Kind::Decision);
    step.contract_timeout = said.seconds(if is_bare { "timeout" } else { "contract_timeout" });
    step.judge = said.text("judge").cloned();
    step.judge_by = said.text("judge_by").cloned();
    step.max_visits = said.number("max_visits");
    step.ask_deadline = said.ask_deadline();
    step.on_fail = policy(node);
    // R1, R2: the node's own, else the graph's, else none; a preset says how often where no number does.
    let preset = |said: &Said| {
        let policy = said.text("retry_policy")?;
        Some(Spanned::new(Backoff::from_word(&policy.value)?.1, policy.span))
    };
    let own = said.number("max_retries").or_else(|| preset(said));
    let retries =
        own.or_else(|| workflow.said.number("default_max_retries")).or_else(|| preset(&workflow.said));
    step.max_retries = Some(retries.unwrap_or(Spanned::new(0, here)));
    step.locks = said.list("locks");
    step.changes = said.list("changes");
    step.protects = said.list("protects");
    step.subscriptions = said.list("subscriptions").into_iter().filter_map(subscription).collect();
    step.workspace = said
        .text("workspace")
        .filter(|mode| mode.value == "worktree")
        .map(|mode| Spanned::new(WorkspaceMode::Worktree, mode.span));
    let role = said.text("target").cloned();
    step.target = match node.kind.value {
        Kind::Task => Some(role.unwrap_or_else(|| Spanned::new(ROLE.to_owned(), title))),
        Kind::Call => role,
        Kind::Start
        | Kind::Decision
        | Kind::Human
        | Kind::Checkpoint
        | Kind::Fork
        | Kind::Join
        | Kind::Escalate
        | Kind::SubPlan
        | Kind::Exit => None,
    };
    step
}

fn kind_of(node: &NodeTree) -> Option<StepKind> {
    match node.kind.value {
        Kind::Task => {
            let work = node.said.text("work").map(|work| work.value.as_str())?;
            Some(StepKind::Work(if work == "review" { WorkKind::Review } else { WorkKind::Code }))
        }
        Kind::Decision => Some(StepKind::Decision),
        Kind::Human => Some(StepKind::Human),
        Kind::Call => Some(StepKind::Call),
        Kind::Checkpoint => Some(StepKind::Checkpoint),
        Kind::Escalate => Some(StepKind::Escalate),
        Kind::Join => Some(StepKind::Join),
        Kind::SubPlan => Some(StepKind::SubPlan),
        Kind::Start | Kind::Fork | Kind::Exit => None,
    }
}

/// Returns what becomes of a node that fails: as its policy says, and where the run may go on without it.
fn policy(node: &NodeTree) -> Option<Spanned<OnFail>> {
    let said = node.said.text("on_fail");
    let policy = said.and_then(|said| on_fail_of(&said.value));
    let has_then = policy.is_some_and(|policy| policy.then.is_some());
    // R6 and H-37: a partial success, and a node that is not required, settle as warned.
    let lenient = ["allow_partial", "required"].into_iter().zip([true, false]);
    let lenient = lenient
        .filter_map(|(key, is_lenient)| node.said.flag(key).filter(|flag| flag.value == is_lenient))
        .next()
        .filter(|_| !has_then);
    match (policy, lenient) {
        (policy, Some(flag)) => {
            let retries = policy.and_then(|policy| policy.retries);
            Some(Spanned::new(OnFail { retries, then: Some(Then::Warn) }, flag.span))
        }
        (Some(policy), None) => said.map(|said| Spanned::new(policy, said.span)),
        (None, None) => None,
    }
}

fn subscription(entry: Spanned<String>) -> Option<Spanned<Subscription>> {
    let (kind, name) = entry.value.split_once(':')?;
    let name = name.trim().to_owned();
    let subscription = match kind.trim() {
        "topic" => Subscription::Topic { name },
        "file" => Subscription::File { path: name },
        _ => return None,
    };
    Some(Spanned::new(subscription, entry.span))
}

// S3, T1: the goal stands where the prompt names it.
fn prompt(source: &Source, workflow: &Workflow, node: &NodeTree) -> Spanned<String> {
    let goal = workflow.said.text("goal").map_or("", |goal| goal.value.as_str());
    let said = node.said.text("prompt").or_else(|| node.said.text("label"));
    let place = said.map_or(node.id.span, |said| inner_place(source, said).0);
    let mut prompt = node.prompt().replace("$goal", goal);
    for (key, word) in [("tool", "Tool"), ("tool_hint", "Hint")] {
        if let Some(said) = node.said.text(key) {
            prompt.push_str(&format!("\n\n{word}: {}", said.value));
        }
    }
    Spanned::new(prompt, place)
}

/// Returns what the harness runs at a node: the contracts of a task, one after the other, or the one command.
fn contract(source: &Source, node: &NodeTree) -> Option<ContractTree> {
    let commands: Vec<Spanned<String>> = match node.kind.value {
        Kind::Task => {
            let contracts = node.contracts.iter().filter(|contract| !contract.is_none());
            contracts.map(|contract| contract.command.clone()).chain(checked_file(node)).collect()
        }
        Kind::Call => node.said.text("tool_command").cloned().into_iter().collect(),
        Kind::Decision => node.said.text("command").cloned().into_iter().collect(),
        Kind::Start
        | Kind::Human
        | Kind::Checkpoint
        | Kind::Fork
        | Kind::Join
        | Kind::Escalate
        | Kind::SubPlan
        | Kind::Exit => return None,
    };
    let (first, last) = (commands.first()?, commands.last()?);
    let mut line_starts = Vec::new();
    let mut is_verbatim = true;
    for command in &commands {
        let (place, is_exact) = inner_place(source, command);
        is_verbatim &= is_exact;
        let lead = command.value.len() - command.value.trim_start().len();
        let start = place.start + lead;
        let breaks = command.value.trim().match_indices('\n').map(|(at, _)| start + at + 1);
        line_starts.extend(std::iter::once(start).chain(breaks));
    }
    if !is_verbatim {
        line_starts.clear();
    }
    Some(ContractTree {
        command: commands.iter().map(|command| command.value.trim()).collect::<Vec<_>>().join(" &&\n"),
        line_starts,
        span: first.span.to(last.span),
        fence: first.span,
        exit_code: node.said.number("expect_exit"),
    })
}

// H-28: makes of a library's condition on a file one that a contract can check.
fn checked_file(node: &NodeTree) -> Option<Spanned<String>> {
    let kind = node.said.text("verify.type")?;
    let path = node.said.text("verify.value").filter(|_| kind.value == "file_exists")?;
    let quoted = path.value.replace('\'', "'\\''");
    Some(Spanned::new(format!("test -e '{quoted}'"), path.span))
}
