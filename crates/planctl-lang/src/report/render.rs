//! Draws a plan as it will run, every default named.

use std::fmt;
use std::time::Duration;

use planctl_engine::{Budget, Priority, RedFirst};
use serde::Serialize;

use crate::analysis::Scripts;
use crate::analysis::order::Order;
use crate::analysis::{judging_files, matches_any, may_change};
use crate::graph::{CONTRACT_TIMEOUT, WORK_TIMEOUT, policy, red_first, work};
use crate::syntax::source::Source;
use crate::syntax::values::ask_deadline_words;
use crate::syntax::written::subscription_words;
use crate::text::limits::MAX_VISITS;
use crate::text::{Spanned, duration_words};
use crate::tree::parse::kind_word;
use crate::tree::{OnFail, PlanTree, StepTree};

/// A plan as it will run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Shown {
    /// The title.
    pub title: String,
    /// The settings of the whole plan.
    pub settings: Vec<Setting>,
    /// The steps.
    pub steps: Vec<ShownStep>,
}

/// A step as it will run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShownStep {
    /// The number, or the template as written.
    pub number: String,
    /// The title.
    pub title: String,
    /// Everything else, in one order.
    pub settings: Vec<Setting>,
}

/// A value that applies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// The field's name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Says that the plan does not say it.
    pub is_default: bool,
}

/// Returns a plan as it will run.
pub fn show(source: &Source, tree: &PlanTree) -> Shown {
    let scripts = Scripts::read(tree);
    let title = tree.title.as_ref().map_or(String::new(), |title| title.value.clone());
    let order = Order::read(source, tree, &scripts);
    let protected = |at: usize, step: &StepTree| {
        let may_change = may_change(&order, at, step);
        let mut judged_by = judging_files(&scripts, at);
        judged_by.retain(|path| !matches_any(&may_change, path));
        let judged_by = judged_by.iter().map(|path| planctl_glob::shortened(path)).collect::<Vec<_>>();
        (judged_by, may_change.into_iter().collect::<Vec<_>>())
    };
    let steps = tree.steps.iter().enumerate();
    let steps = steps.map(|(at, step)| {
        let mut shown = show_step(tree, step, protected(at, step));
        shown.settings.extend(allowed(tree, Some(at)));
        shown
    });
    let steps = steps.collect();
    Shown { title, settings: plan_settings(tree), steps }
}

fn setting(name: &'static str, said: Option<String>, default: impl Into<String>) -> Setting {
    let is_default = said.is_none();
    Setting { name, value: said.unwrap_or_else(|| default.into()), is_default }
}

fn plan_settings(tree: &PlanTree) -> Vec<Setting> {
    let priority = tree.priority.as_ref().map(|priority| priority_word(priority.value).to_owned());
    let stale = tree.stale_after.as_ref().map(|limit| duration_words(limit.value));
    let mut settings: Vec<Setting> =
        tree.context.iter().map(|context| setting("context", Some(context.value.clone()), "")).collect();
    settings.push(setting(
        "owner",
        tree.frontmatter.owner.as_ref().map(|owner| owner.value.clone()),
        "orchestrator",
    ));
    settings.push(setting(
        "budget",
        tree.budget.as_ref().map(|budget| budget_words(budget.value)),
        "no limit",
    ));
    settings.push(setting("priority", priority, "normal"));
    settings.push(setting("stale_after", stale, "never"));
    if let Some(deadline) = &tree.ask_deadline {
        settings.push(setting("ask_deadline", Some(ask_deadline_words(deadline.value)), "waits for ever"));
    }
    let red_first = tree.red_first.as_ref().map(|policy| policy.value.word().to_owned());
    settings.push(setting("red_first", red_first, RedFirst::Off.word()));
    settings.extend(allowed(tree, None));
    settings
}

// The findings that a comment allows, a line for each.
fn allowed(tree: &PlanTree, step: Option<usize>) -> Option<Setting> {
    let lines: Vec<String> =
        tree.allows_of(step).map(|allow| format!("{}: {}", allow.code.value, allow.reason.value)).collect();
    (!lines.is_empty()).then(|| setting("allowed", Some(lines.join("\n")), ""))
}

fn show_step(
    tree: &PlanTree,
    step: &StepTree,
    (judged_by, may_change): (Vec<String>, Vec<String>),
) -> ShownStep {
    let policy_words = OnFail::from(policy(step)).to_string();
    let duration =
        |field: &Option<Spanned<Duration>>| field.as_ref().map(|limit| duration_words(limit.value));
    let contract = step.contract.as_ref();
    let exit_code =
        contract.and_then(|contract| contract.exit_code.as_ref()).map(|code| format!("== {}", code.value));
    let kind = kind_word(step.node_kind(), work(step));
    let said_policy = step.on_fail.is_some() || step.max_retries.is_some();
    let mut settings = vec![
        setting("target", step.target.as_ref().map(|target| target.value.clone()), "(missing)"),
        setting("type", step.kind.as_ref().map(|_| kind.to_owned()), kind),
        setting(
            "subscriptions",
            joined(step.subscriptions.iter().map(|entry| subscription_words(&entry.value))),
            "none",
        ),
        setting("task", step.task.as_ref().map(|task| task.value.clone()), "(missing)"),
        setting("contract", contract.map(|contract| contract.command.clone()), "(missing)"),
        setting("exit_code", exit_code, "== 0"),
        setting("on_fail", said_policy.then(|| policy_words.clone()), policy_words.clone()),
        setting("timeout", duration(&step.timeout), duration_words(WORK_TIMEOUT)),
        setting("contract_timeout", duration(&step.contract_timeout), duration_words(CONTRACT_TIMEOUT)),
    ];
    let visits = step.max_visits.as_ref().or(tree.max_visits.as_ref()).map(|visits| visits.value.to_string());
    settings.push(setting("max_visits", visits, MAX_VISITS.to_string()));
    let guard = step.guard.as_ref().map(|guard| if guard.value { "yes" } else { "no" }.to_owned());
    settings.push(setting("guard", guard, "no"));
    let red_first = red_first(tree, step).map(|policy| policy.word().to_owned());
    settings.push(setting("red_first", red_first, RedFirst::Off.word()));
    if let Some(deadline) = step.ask_deadline.as_ref().or(tree.ask_deadline.as_ref()) {
        settings.push(setting("ask_deadline", Some(ask_deadline_words(deadline.value)), "waits for ever"));
    }
    if let Some(least) = &step.min_tests {
        settings.push(setting("min_tests", Some(least.value.to_string()), "none"));
    }
    for (name, said) in [("judge", &step.judge), ("judge_by", &step.judge_by)] {
        if let Some(said) = said {
            settings.push(setting(name, Some(said.value.clone()), "none"));
        }
    }
    settings.push(setting("protects", joined(step.protects.iter().map(|glob| glob.value.clone())), "none"));
    let approval = step.approval.as_ref().map(|approval| approval.value.word().to_owned());
    let text = |said: &Option<Spanned<String>>| said.as_ref().map(|said| said.value.clone());
    let sub_plan = [("plan", text(&step.plan)), ("folder", text(&step.folder)), ("approval", approval)];
    settings.extend(
        sub_plan.into_iter().filter(|(_, said)| said.is_some()).map(|(name, said)| setting(name, said, "")),
    );
    if !step.locks.is_empty() {
        settings.push(setting("locks", joined(step.locks.iter().map(|lock| lock.value.clone())), "none"));
    }
    let listed = |paths: Vec<String>| if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
    settings.push(setting("judged by", None, listed(judged_by)));
    let declared = joined(step.changes.iter().map(|entry| entry.value.clone()));
    settings.push(setting("may be changed", declared, listed(may_change)));
    ShownStep { number: step.number_text(), title: step.title.value.clone(), settings }
}

fn joined(entries: impl Iterator<Item = String>) -> Option<String> {
    let entries: Vec<String> = entries.collect();
    (!entries.is_empty()).then(|| entries.join(", "))
}

/// Returns a priority as authors write it.
pub fn priority_word(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
        Priority::Urgent => "urgent",
    }
}

/// Returns a budget as authors write it.
pub fn budget_words(budget: Budget) -> String {
    let mut parts = Vec::new();
    parts.extend(budget.tokens.map(|tokens| match (tokens % 1_000_000, tokens % 1_000) {
        (0, _) if tokens > 0 => format!("{}M tokens", tokens / 1_000_000),
        (_, 0) if tokens > 0 => format!("{}k tokens", tokens / 1_000),
        _ => format!("{tokens} tokens"),
    }));
    parts.extend(budget.micro_usd.map(|micro| {
        let (dollars, cents) = (micro / 1_000_000, micro % 1_000_000);
        if cents % 10_000 == 0 {
            format!("${dollars}.{:02}", cents / 10_000)
        } else {
            format!("${dollars}.{cents:06}")
        }
    }));
    parts.extend(budget.time.map(duration_words));
    if parts.is_empty() { "no limit".to_owned() } else { parts.join(", ") }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.title)?;
        draw_settings(out, &self.settings)?;
        for step in &self.steps {
            writeln!(out, "\n{step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ShownStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}. {}", self.number, self.title)?;
        draw_settings(out, &self.settings)
    }
}

fn draw_settings(out: &mut fmt::Formatter<'_>, settings: &[Setting]) -> fmt::Result {
    for setting in settings {
        let mark = if setting.is_default { "  (default)" } else { "" };
        let mut lines = setting.value.lines();
        writeln!(out, "  {:<17} {}{mark}", setting.name, lines.next().unwrap_or(""))?;
        for line in lines {
            writeln!(out, "  {:<17} {line}", "")?;
        }
    }
    Ok(())
}
