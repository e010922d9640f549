//! A resolved goal, for people and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use planctl_api::wire::goal::{
    GoalArgumentView, GoalAskView, GoalCandidateView, GoalFindingView, GoalFoundView, GoalResolveView,
    GoalStepView, GoalTriedView, GoalVerifyView,
};
use planctl_planner::{Action, ArgumentValue, Planned, PlannedStep, QuestAsk, Source, Spending, Verified};

use super::super::draft::shown;
use super::resolve::outcome;
use crate::next;
use crate::show::{self, BOLD, CARE, FAINT, styled};

/// Makes the answer of `goal resolve`.
pub(super) fn view(
    goal: &str,
    planned: &Planned,
    verified: &Verified,
    (asks, numbers): (&[(String, QuestAsk)], &BTreeMap<String, u64>),
    file: Option<&Path>,
    spent: Spending,
) -> GoalResolveView {
    let is_asked = |intent: &str| asks.iter().any(|(own, _)| own == intent);
    let mut findings = findings(verified);
    // An open question is an error until it is answered, and is shown as the question alone.
    findings.retain(|finding| !finding.is_error || !is_asked(&finding.intent));
    GoalResolveView {
        goal: goal.to_owned(),
        outcome: if asks.is_empty() { outcome(verified) } else { "open" }.to_owned(),
        file: file.map(|file| file.display().to_string()),
        steps: planned.steps.iter().enumerate().map(|(at, own)| step(at, own, planned)).collect(),
        resolved: planned
            .found
            .iter()
            .map(|(intent, found)| GoalFoundView {
                intent: intent.clone(),
                tried: found.tried.iter().map(tried).collect(),
                looked_at: u64::try_from(found.looked_at).unwrap_or(u64::MAX),
            })
            .collect(),
        asks: asks
            .iter()
            .map(|(intent, ask)| GoalAskView {
                id: ask.id.clone(),
                intent: intent.clone(),
                ask: numbers.get(&ask.id).copied(),
                kind: ask.kind.as_str().to_owned(),
                text: ask.text.clone(),
                options: ask.options.clone(),
            })
            .collect(),
        findings,
        spent: shown::spent_view(spent),
        revision: None,
    }
}

/// Makes the answer of `goal verify`.
pub(super) fn verify_view(goal: &str, verified: &Verified) -> GoalVerifyView {
    GoalVerifyView {
        goal: goal.to_owned(),
        outcome: outcome(verified).to_owned(),
        findings: findings(verified),
    }
}

fn findings(verified: &Verified) -> Vec<GoalFindingView> {
    let view = |is_error| {
        move |remark: &planctl_planner::Remark| GoalFindingView {
            intent: remark.intent.clone(),
            is_error,
            message: remark.message.clone(),
        }
    };
    verified.errors.iter().map(view(true)).chain(verified.warnings.iter().map(view(false))).collect()
}

fn tried(tried: &planctl_planner::Tried) -> GoalTriedView {
    GoalTriedView {
        strategy: tried.source.as_str().to_owned(),
        why: tried.why.clone(),
        candidates: tried
            .candidates
            .iter()
            .map(|one| GoalCandidateView {
                capability: one.capability.clone(),
                score: one.score,
                why: one.why.clone(),
            })
            .collect(),
    }
}

fn step(at: usize, step: &PlannedStep, planned: &Planned) -> GoalStepView {
    let number = |id: &str| {
        let at = planned.steps.iter().position(|own| own.id == id);
        u32::try_from(at.map_or(0, |at| at + 1)).unwrap_or(u32::MAX)
    };
    let (kind, words, call) = match &step.action {
        Action::Ask { question } => ("ask", Some(question.clone()), None),
        Action::Call(call) => ("call", None, Some(call)),
        Action::Write { task } => ("write", Some(task.clone()), None),
        Action::Run { command } => ("run", Some(command.clone()), None),
        Action::Show { .. } => ("show", None, None),
        Action::SubPlan { entry, .. } => ("sub_plan", Some(entry.clone()), None),
    };
    let found = match &step.action {
        Action::Call(call) => Some((call.source, call.score)),
        Action::SubPlan { score, .. } => Some((Source::Library, *score)),
        Action::Ask { .. } | Action::Write { .. } | Action::Run { .. } | Action::Show { .. } => None,
    };
    let arguments = call.into_iter().flat_map(|call| &call.arguments).map(|argument| {
        let (value, result_of) = match &argument.value {
            ArgumentValue::Given(value) => (Some(value.clone()), None),
            ArgumentValue::ResultOf(id, _) => (None, Some(number(id))),
        };
        GoalArgumentView {
            parameter: argument.parameter.clone(),
            value,
            result_of,
            why: argument.why.clone(),
        }
    });
    GoalStepView {
        number: u32::try_from(at + 1).unwrap_or(u32::MAX),
        intent: step.id.clone(),
        merged: step.merged.clone(),
        text: step.text.clone(),
        kind: kind.to_owned(),
        words,
        capability: call.map(|call| call.capability.id()),
        source: found.map(|(source, _)| source.as_str().to_owned()),
        score: found.map(|(_, score)| score),
        effects: call.and_then(|call| Some(call.capability.effects.as_ref()?.iter().cloned().collect())),
        arguments: arguments.collect(),
        needs: step.needs.iter().map(|id| number(id)).collect(),
    }
}

/// Draws the answer of `goal resolve`.
pub(super) fn draw(view: &GoalResolveView, explains: bool, command: &str) -> String {
    let mut text = String::new();
    if !view.steps.is_empty() {
        let rows = view.steps.iter().map(row).collect();
        text.push_str(&show::table(&["STEP", "INTENT", "WHAT", "BY", "NEEDS"], rows));
    }
    for step in view.steps.iter().filter(|step| !step.arguments.is_empty()) {
        let capability = step.capability.as_deref().unwrap_or_default();
        text.push_str(&format!(
            "\n{} {}\n",
            styled(BOLD, &format!("step {}:", step.number)),
            show::safe(capability)
        ));
        for argument in &step.arguments {
            let value = match (&argument.value, argument.result_of) {
                (_, Some(number)) => format!("the result of step {number}"),
                (Some(value), None) => value.to_string(),
                (None, None) => String::new(),
            };
            let why = styled(FAINT, &format!("  {}", show::safe(&argument.why)));
            text.push_str(&format!("  {} = {}{why}\n", show::safe(&argument.parameter), show::safe(&value)));
        }
    }
    if explains {
        text.push_str(&explained(view));
    }
    text.push_str(&draw_findings(&view.findings));
    for ask in &view.asks {
        text.push_str(&format!(
            "\n{} {}\n",
            styled(BOLD, &format!("{}:", ask.id)),
            show::safe_block(&ask.text)
        ));
        for (at, option) in ask.options.iter().enumerate() {
            text.push_str(&format!("  {}. {}\n", at + 1, show::safe(option)));
        }
        let answer = if ask.options.is_empty() { "'…'" } else { "NUMBER" };
        text.push_str(&format!("  {command} --answer {}={answer}\n", ask.id));
        if let Some(number) = ask.ask {
            text.push_str(&format!("  it waits in your inbox, too: planctl approvals show {number}\n"));
        }
    }
    if let Some(file) = &view.file {
        text.push_str(&format!("\nwritten to {}\n", show::safe(file)));
    }
    if view.spent.answers > 0 {
        text.push_str(&styled(FAINT, &format!("{}\n", shown::spent_words("goal", &view.spent))));
    }
    text.trim_start_matches('\n').to_owned()
}

/// Says what to type once the plan is written: a contract that an agent's step lacks comes first, and so does a server that
/// planctl.toml lacks.
pub(super) fn next(view: &GoalResolveView, file: &str, has_server: impl Fn(&str) -> bool) -> String {
    let calls = view.steps.iter().filter(|step| step.kind == "call");
    let servers = calls.filter_map(|step| Some(step.capability.as_deref()?.split_once('.')?.0));
    let missing: BTreeSet<&str> = servers.filter(|server| !has_server(server)).collect();
    let mut text = String::new();
    for server in &missing {
        let warning = format!("planctl.toml has no [servers.{}], which the plan calls", show::safe(server));
        text.push_str(&format!("{} {warning}\n", styled(CARE, "warning:")));
    }
    let has_gap = view.steps.iter().any(|step| step.kind == "write") || !missing.is_empty();
    let verb = if has_gap { "verify" } else { "run" };
    let next = next::line(&format!("planctl {verb} {}", show::file_word(Path::new(file))));
    text.push_str(&format!("{next}\n"));
    text
}

/// Draws the answer of `goal verify`.
pub(super) fn verify_drawn(view: &GoalVerifyView) -> String {
    match view.findings.is_empty() {
        true => "every call fits the tools that there are\n".to_owned(),
        false => draw_findings(&view.findings),
    }
}

fn draw_findings(findings: &[GoalFindingView]) -> String {
    let line = |finding: &GoalFindingView| {
        let level = if finding.is_error { "error" } else { "warning" };
        let intent = show::safe(&finding.intent);
        format!("{} {intent}: {}\n", styled(CARE, &format!("{level}:")), show::safe(&finding.message))
    };
    findings.iter().map(line).collect()
}

fn explained(view: &GoalResolveView) -> String {
    let mut text = String::new();
    for own in &view.resolved {
        text.push_str(&format!("\n{}\n", styled(BOLD, &format!("{}:", own.intent))));
        for tried in &own.tried {
            text.push_str(&format!("  {}: {}\n", tried.strategy, show::safe(&tried.why)));
            for one in &tried.candidates {
                let why = styled(FAINT, &format!("  {}", show::safe(&one.why)));
                text.push_str(&format!("    {:.2}  {}{why}\n", one.score, show::safe(&one.capability)));
            }
        }
    }
    text
}

fn row(step: &GoalStepView) -> Vec<String> {
    let intents: Vec<&str> =
        std::iter::once(step.intent.as_str()).chain(step.merged.iter().map(String::as_str)).collect();
    let what = if step.kind == "ask" { step.words.as_deref().unwrap_or(&step.text) } else { &step.text };
    let by = match (&step.capability, &step.source, step.score) {
        (Some(capability), Some(source), Some(score)) => format!("{capability} ({source}, {score:.2})"),
        (_, _, _) if step.kind == "ask" => "you".to_owned(),
        (_, _, _) if step.kind == "write" => "an agent".to_owned(),
        (_, _, _) if step.kind == "show" => "planctl".to_owned(),
        (_, _, Some(score)) => {
            let plan = step.words.as_deref().unwrap_or_default();
            format!("the plan {plan} (library, {score:.2})")
        }
        (_, _, _) => "a command".to_owned(),
    };
    let needs: Vec<String> = step.needs.iter().map(u32::to_string).collect();
    vec![step.number.to_string(), intents.join(", "), show::safe(what), show::safe(&by), needs.join(", ")]
}
