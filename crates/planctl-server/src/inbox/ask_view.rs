//! An ask in a list: the question in one line, its answers, and what holds it.

use planctl_api::wire::{
    AnswerView, AskView, DeadlineView, FailureView, ShortfallView, StepName, moment, usd,
};
use planctl_engine::{AskKind, BudgetPart, Failure, Graph, NodeKind, Shortfall};
use planctl_store::{AskDeadline, AskRow};

use super::options::option_views;
use crate::runs::words::{failure_line, quoted, tampered};

pub(crate) fn ask_view(row: &AskRow, graph: &Graph, answer: Option<AnswerView>) -> AskView {
    let step = graph
        .node(&row.at.node)
        .and_then(|node| Some(StepName { number: node.step()?, title: node.title.clone() }));
    AskView {
        id: u64::try_from(row.number).unwrap_or(0),
        kind: row.ask.kind.as_str().to_owned(),
        run: Some(row.run_name.clone()),
        run_id: Some(row.run.to_string()),
        draft: None,
        workspace: row.workspace_path.clone(),
        plan: row.plan_path.clone(),
        title: graph.title().to_owned(),
        step,
        role: graph.task(&row.at.node).map(|task| task.role.as_str().to_owned()),
        asks: asks_line(row, graph),
        reason: row.ask.reason.as_str().to_owned(),
        answers: row.ask.answers(graph, &row.at.node).into_iter().map(str::to_owned).collect(),
        is_of_branches: row.ask.kind == AskKind::Escalation && graph.forks_or_merges_worktrees(&row.at.node),
        options: row.ask.options.clone(),
        leads_to: option_views(graph, &row.at.node, &row.ask.options),
        usual: default_answer(row, graph),
        blocks: None,
        deadline: row.deadline.as_ref().filter(|_| row.is_open).map(deadline_view),
        about: about_line(row, graph),
        opened_at: moment(row.created_at),
        answer,
    }
}

/// Shows when an ask that nobody has answered is answered, and how.
pub(super) fn deadline_view(deadline: &AskDeadline) -> DeadlineView {
    DeadlineView {
        at: moment(deadline.at),
        answer: deadline.answer.as_str().to_owned(),
        rule: deadline.rule.clone(),
    }
}

/// Returns the answer that a plan declares as the usual one to what it asks.
fn default_answer(row: &AskRow, graph: &Graph) -> Option<String> {
    let node = graph.node(&row.at.node);
    if let Some(confirmation) = node.and_then(|node| node.confirmation.as_deref())
        && row.ask.kind == AskKind::Choice
    {
        return confirmation.question.usual.clone();
    }
    match graph.node(&row.at.node).map(|node| &node.kind) {
        Some(NodeKind::Human(question)) if row.ask.kind == AskKind::Choice => question.usual.clone(),
        Some(_) | None => None,
    }
}

/// Says in one line what is asked.
fn asks_line(row: &AskRow, graph: &Graph) -> String {
    let name = planctl_view::node_name(graph, &row.at.node);
    match row.ask.kind {
        AskKind::Plan => match graph.task_count() {
            1 => format!("approve 1 step of \"{}\"", graph.title()),
            count => format!("approve {count} steps of \"{}\"", graph.title()),
        },
        AskKind::Budget | AskKind::Day => {
            let short = row.ask.shortfall.as_ref().map(planctl_view::shortfall_line).unwrap_or_default();
            format!("{name}: {short}")
        }
        AskKind::Effect => {
            let why = row.ask.message.as_deref().unwrap_or_default();
            format!("{name}: {}: {why}", planctl_view::reason_words(row.ask.reason))
        }
        AskKind::Prompt => {
            let about = row.ask.prompt.as_deref().map(|prompt| {
                format!(": about {} tokens to {} ({})", prompt.tokens, prompt.by, prompt.model)
            });
            format!("{name}: {}{}", planctl_view::reason_words(row.ask.reason), about.unwrap_or_default())
        }
        AskKind::Choice | AskKind::Synthesis => {
            format!("{name}: {}", row.ask.message.clone().unwrap_or_default())
        }
        AskKind::Insertion => {
            let text = row.ask.message.as_deref().unwrap_or_default();
            let heading =
                text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
            format!("{name} proposes a further step: {}", quoted(heading.unwrap_or("(without a heading)")))
        }
        AskKind::Question => {
            let text = row.ask.message.as_deref().unwrap_or_default().trim();
            let first = text.lines().next().unwrap_or_default();
            let more = if first.len() < text.len() { " …" } else { "" };
            format!("{name} asks: {}{more}", quoted(first))
        }
        AskKind::Escalation => {
            let failed = row.ask.failure.as_deref().map(|failure| format!("; {}", failure_line(failure)));
            format!("{name}: {}{}", planctl_view::reason_words(row.ask.reason), failed.unwrap_or_default())
        }
    }
}

/// Says what an ask is about without the step's name, which a table has in a column of its own.
fn about_line(row: &AskRow, graph: &Graph) -> String {
    let name = planctl_view::node_name(graph, &row.at.node);
    let whole = match (row.ask.kind, row.ask.failure.as_deref()) {
        (AskKind::Escalation, Some(failure)) => failure_line(failure),
        _ => asks_line(row, graph),
    };
    match whole.strip_prefix(&name) {
        Some(rest) => rest.trim_start_matches([':', ' ']).to_owned(),
        None => whole,
    }
}

pub(super) fn failure_view(failure: &Failure) -> FailureView {
    let files = match &failure.what {
        planctl_engine::Failing::Contract { tampered: files, .. }
        | planctl_engine::Failing::NotRed { tampered: files, .. } => tampered(files),
        planctl_engine::Failing::Overran { .. }
        | planctl_engine::Failing::Undelivered { .. }
        | planctl_engine::Failing::Permission { .. }
        | planctl_engine::Failing::Conflict { .. }
        | planctl_engine::Failing::SubPlan { .. }
        | planctl_engine::Failing::Unconfirmed { .. }
        | planctl_engine::Failing::Unobserved { .. }
        | planctl_engine::Failing::TooFewTests { .. }
        | planctl_engine::Failing::Judged { .. }
        | planctl_engine::Failing::Inconclusive { .. } => Vec::new(),
    };
    FailureView {
        attempt: failure.attempt.number(),
        what: failure.describe(),
        tampered: files,
        stdout_tail: failure.stdout.tail.clone(),
        stderr_tail: failure.stderr.tail.clone(),
    }
}

pub(super) fn shortfall_view(short: &Shortfall) -> ShortfallView {
    let (part, amount): (_, fn(u64) -> f64) = match short.part {
        BudgetPart::Tokens => ("tokens", |count| count as f64),
        BudgetPart::MicroUsd => ("usd", usd),
        BudgetPart::MicroSeconds => ("seconds", |count| count as f64 / 1_000_000.0),
    };
    ShortfallView {
        part: part.to_owned(),
        limit: amount(short.limit),
        spent: amount(short.spent),
        needed: amount(short.needed()),
        steps_remaining: short.steps_remaining,
        until: short.day.map(|day| moment(day.until)),
    }
}
