//! Draws a plan as it will run, every default named.

use std::fmt;
use std::time::Duration;

use planctl_engine::{Priority, RedFirst};
use serde::Serialize;

use crate::analysis::Scripts;
use crate::analysis::order::Order;
use crate::analysis::{judging_files, matches_any, may_change};
use crate::graph::{CONTRACT_TIMEOUT, WORK_TIMEOUT, policy, red_first, work};
use crate::syntax::source::Source;
use crate::syntax::values::ask_deadline_words;
pub use crate::syntax::values::budget_words;
use crate::syntax::written::Written;
use crate::text::limits::MAX_VISITS;
use crate::text::{Spanned, duration_words};
use crate::tree::parse::kind_word;
use crate::tree::workflow::{Kind, NodeTree, Workflow, folders, sub_plans};
use crate::tree::{OnFail, PlanTree};
use crate::verify::{ReadPlan, Verification, read};

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
pub fn show(source: &Source) -> Shown {
    read(source).shown()
}

impl ReadPlan<'_> {
    /// Returns the plan as it will run.
    pub fn shown(&self) -> Shown {
        read_shown(self.source, &self.tree, &self.workflow)
    }
}

impl Verification {
    /// Returns the plan as it will run.
    pub fn shown(&self, source: &Source) -> Shown {
        read_shown(source, &self.tree, &self.workflow)
    }
}

fn read_shown(source: &Source, tree: &PlanTree, workflow: &Workflow) -> Shown {
    let steps = workflow.steps();
    let scripts = Scripts::read(&steps);
    let order = Order::read(source, &steps, &scripts);
    let protected = |at: usize, step: &NodeTree| {
        let may_change = may_change(&order, at, step);
        let mut judged_by = judging_files(&scripts, at);
        judged_by.retain(|path| !matches_any(&may_change, path));
        let judged_by = judged_by.iter().map(|path| planctl_glob::shortened(path)).collect::<Vec<_>>();
        (judged_by, may_change.into_iter().collect::<Vec<_>>())
    };
    let steps = steps.iter().enumerate().map(|(at, step)| {
        let mut shown = show_step(workflow, step, protected(at, step));
        shown.settings.extend(allowed(tree, Some(at)));
        shown
    });
    let steps = steps.collect();
    Shown { title: workflow.title().to_owned(), settings: plan_settings(tree, workflow), steps }
}

fn setting(name: &'static str, said: Option<String>, default: impl Into<String>) -> Setting {
    let is_default = said.is_none();
    Setting { name, value: said.unwrap_or_else(|| default.into()), is_default }
}

fn plan_settings(tree: &PlanTree, workflow: &Workflow) -> Vec<Setting> {
    let said = &workflow.attributes;
    let priority = workflow.priority.as_ref().map(|priority| priority_word(priority.value).to_owned());
    let stale = said.stale_after.value().copied().map(duration_words);
    let mut settings: Vec<Setting> =
        said.goal.text().map(|goal| setting("context", Some(goal.value.clone()), "")).into_iter().collect();
    settings.push(setting(
        "owner",
        tree.frontmatter.owner.as_ref().map(|owner| owner.value.clone()),
        "orchestrator",
    ));
    settings.push(setting(
        "budget",
        workflow.budget.as_ref().map(|budget| budget_words(budget.value)),
        "no limit",
    ));
    settings.push(setting("priority", priority, "normal"));
    settings.push(setting("stale_after", stale, "never"));
    if let Some(deadline) = said.ask_deadline.value() {
        settings.push(setting("ask_deadline", Some(ask_deadline_words(*deadline)), "waits for ever"));
    }
    let red_first = said.red_first.value().map(|policy| policy.as_str().to_owned());
    settings.push(setting("red_first", red_first, RedFirst::Off.as_str()));
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
    workflow: &Workflow,
    step: &NodeTree,
    (judged_by, may_change): (Vec<String>, Vec<String>),
) -> ShownStep {
    let (said, of_plan) = (&step.attributes, &workflow.attributes);
    let policy_words = OnFail::from(policy(step)).to_string();
    let duration = |field: &Written<Duration>| field.value().copied().map(duration_words);
    let contract = step.contract.as_ref();
    let exit_code =
        contract.and_then(|contract| contract.exit_code.as_ref()).map(|code| format!("== {}", code.value));
    let kind = kind_word(step.kind.value, work(step));
    // Its role tells the kind of a task's work where nothing else does.
    let is_said = step.kind.value != Kind::Task || step.work.is_some();
    let said_policy = said.on_fail.value().is_some() || said.max_retries.value().is_some();
    let mut settings = vec![
        setting("target", value_of(step.role.as_ref()), "(missing)"),
        setting("type", is_said.then(|| kind.to_owned()), kind),
        setting("subscriptions", joined(said.subscriptions.entry_words()), "none"),
        setting("task", value_of(step.task.as_ref()), "(missing)"),
        setting("contract", contract.map(|contract| contract.command.clone()), "(missing)"),
        setting("exit_code", exit_code, "== 0"),
        setting("on_fail", said_policy.then(|| policy_words.clone()), policy_words.clone()),
        setting("timeout", duration(&said.timeout), duration_words(WORK_TIMEOUT)),
        setting("contract_timeout", duration(&said.contract_timeout), duration_words(CONTRACT_TIMEOUT)),
    ];
    let visits = said.max_visits.value().or(of_plan.max_visits.value()).map(u16::to_string);
    settings.push(setting("max_visits", visits, MAX_VISITS.to_string()));
    let guard = said.guard.value().map(|guard| if *guard { "yes" } else { "no" }.to_owned());
    settings.push(setting("guard", guard, "no"));
    let red_first = red_first(workflow, step).map(|policy| policy.as_str().to_owned());
    settings.push(setting("red_first", red_first, RedFirst::Off.as_str()));
    if let Some(deadline) = said.ask_deadline.value().or(of_plan.ask_deadline.value()) {
        settings.push(setting("ask_deadline", Some(ask_deadline_words(*deadline)), "waits for ever"));
    }
    let least = said.min_tests.value().map(|least| setting("min_tests", Some(least.to_string()), "none"));
    settings.extend(least);
    for (name, said) in [("judge", &said.judge), ("judge_by", &said.judge_by)] {
        if let Some(said) = said.text() {
            settings.push(setting(name, Some(said.value.clone()), "none"));
        }
    }
    settings.push(setting("protects", joined(said.protects.entry_words()), "none"));
    settings.extend(sub_plan(workflow, step));
    if !said.locks.entries().is_empty() {
        settings.push(setting("locks", joined(said.locks.entry_words()), "none"));
    }
    let listed = |paths: Vec<String>| if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
    settings.push(setting("judged by", None, listed(judged_by)));
    settings.push(setting("may be changed", joined(said.changes.entry_words()), listed(may_change)));
    ShownStep { number: step.id.value.clone(), title: step.step_title().to_owned(), settings }
}

/// Returns the plan of a sub-plan, its folder, and its way of approval.
fn sub_plan(workflow: &Workflow, step: &NodeTree) -> impl Iterator<Item = Setting> {
    let (plan, folder) = if step.kind.value == Kind::SubPlan {
        (sub_plans::file(workflow, step), folders::said_for(workflow, step))
    } else {
        (step.attributes.child_dotfile.text(), step.attributes.child_workdir.text())
    };
    let approval = step.attributes.child_approval.value().map(|approval| approval.as_str().to_owned());
    let said = [("plan", value_of(plan)), ("folder", value_of(folder)), ("approval", approval)];
    said.into_iter().filter(|(_, said)| said.is_some()).map(|(name, said)| setting(name, said, ""))
}

fn value_of(said: Option<&Spanned<String>>) -> Option<String> {
    said.map(|said| said.value.clone())
}

fn joined(entries: Vec<String>) -> Option<String> {
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
