//! The words for nodes, contracts, budgets and asks that all sentences share.

use planctl_engine::{
    AskKind, BudgetPart, Contract, DayScope, Graph, NodeId, NodeKind, Outcomes, Reason, Shortfall,
};

/// Names a node as people do: `step 2 "Write the fix"`.
pub fn node_name(graph: &Graph, id: &NodeId) -> String {
    match graph.node(id) {
        None => format!("node {id}"),
        Some(node) => match &node.kind {
            NodeKind::Start => "the plan".to_owned(),
            NodeKind::Escalate { .. } => "a person".to_owned(),
            NodeKind::Exit { success: true } => "done".to_owned(),
            NodeKind::Exit { success: false } => "failed".to_owned(),
            NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Fork(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Join(_) => match node.step() {
                Some(step) => format!("step {step} \"{}\"", node.title),
                None => format!("{} \"{}\"", node.kind.as_str(), node.title),
            },
        },
    }
}

/// Says in one line what a contract asks for.
pub fn contract_words(contract: &Contract) -> String {
    let command = (!contract.command.is_empty())
        .then(|| format!("`{}` exits with {}", first_line(&contract.command), contract.expect));
    let tests = contract.min_tests.map(|least| format!("{least} tests pass by its reports"));
    let judge = contract.judge.as_deref().map(|judge| format!("the judge {} says yes", judge.by));
    command.into_iter().chain(tests).chain(judge).collect::<Vec<_>>().join(", and ")
}

/// Returns the first line of a command, with a mark where there are more.
pub(crate) fn first_line(command: &str) -> String {
    let mut lines = command.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{first}{more}")
}

/// The remark on a pass whose contract passed before the work, too; fits after "passed, but".
pub const VACUOUS: &str = "its contract passed before the work too, so this proves nothing";

/// Says in one line what a budget lacks (P-54).
pub fn shortfall_line(short: &Shortfall) -> String {
    let amount = |value: u64| match short.part {
        BudgetPart::Tokens => format!("{value} tokens"),
        BudgetPart::MicroUsd => {
            format!("${}.{:02}", value / 1_000_000, (value % 1_000_000).div_ceil(10_000).min(99))
        }
        BudgetPart::MicroSeconds => match value.div_ceil(100_000) {
            tenths if tenths % 10 == 0 => format!("{} s", tenths / 10),
            tenths => format!("{}.{} s", tenths / 10, tenths % 10),
        },
    };
    let steps = match short.steps_remaining {
        1 => "1 step".to_owned(),
        several => format!("{several} steps"),
    };
    if let Some(day) = short.day {
        let whose = match day.of {
            DayScope::Project => "this project",
            DayScope::Host => "this machine",
        };
        return format!(
            "today's budget of {whose} is used up ({} of {}); the rest of the plan, {steps}, needs about {}",
            amount(short.spent),
            amount(short.limit),
            amount(short.estimate)
        );
    }
    format!(
        "budget exceeded, {steps} remaining, need {} more ({} of {} used)",
        amount(short.needed()),
        amount(short.spent),
        amount(short.limit)
    )
}

/// Counts outcomes in one line: `4 passed, 1 waived`.
pub fn outcomes_line(settled: Outcomes) -> String {
    let parts = [
        (settled.passed, "passed"),
        (settled.skipped, "skipped"),
        (settled.waived, "waived"),
        (settled.warned, "warned"),
        (settled.failed, "failed"),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if said.is_empty() { "no step".to_owned() } else { said.join(", ") }
}

/// Says why an ask came up, in words for people.
pub fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::Submitted => "may this plan run?",
        Reason::Exhausted => "its attempts are used up",
        Reason::NoEdge => "no edge fits the outcome",
        Reason::Undelivered => "no worker could run it, in several deliveries",
        Reason::Permission => "the worker lacks a permission",
        Reason::Interrupted => "it was interrupted repeatedly: planctl stopped, or its worker gave it back",
        Reason::Inconclusive => "the gate was inconclusive repeatedly",
        Reason::NotRed => "its contract was not red before the work",
        Reason::Stale => "the run stood still for too long",
        Reason::AttemptsLimit => "the run has reached its limit of attempts",
        Reason::VisitsLimit => "its visits are used up",
        Reason::Budget => "the budget does not suffice",
        Reason::Asked => "the worker has a question",
        Reason::Reentered => "it is entered again",
        Reason::Planned => "the plan asks a person here",
        Reason::SameFailure => "it failed repeatedly in the same way",
        Reason::Proposed => "the worker proposes a further step",
        Reason::Conflict => "the changes of its branches conflict",
        Reason::Effect => "a person has to allow it",
        Reason::Prompt => "a person has to approve the prompt to its judge",
        Reason::Day => "the budget of the day is used up",
    }
}

/// Names an ask's kind with its article: `an escalation`.
pub fn ask_name(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Plan => "a plan approval",
        AskKind::Escalation => "an escalation",
        AskKind::Budget => "a budget ask",
        AskKind::Question => "a question",
        AskKind::Choice => "a choice",
        AskKind::Insertion => "a proposed step",
        AskKind::Effect => "an effect approval",
        AskKind::Prompt => "a prompt approval",
        AskKind::Synthesis => "a synthesis approval",
        AskKind::Day => "an ask about the day's budget",
    }
}
