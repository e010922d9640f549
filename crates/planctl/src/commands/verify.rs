//! `planctl plan verify`, and what would run: works without a database.

use std::path::{Path, PathBuf};

use planctl_engine::{Graph, NodeKind, Outcome, Role, Signal, Subscription, Task};
use planctl_lang::{Code, Levels, Severity, Verification, Wish};
use planctl_server::check::Checked;
use planctl_server::config::{Agent, Config};
use planctl_server::wire::{ContractView, PlanStepView, PlanView};

use super::Context;
use crate::args::{Fixing, Format};
use crate::client;
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BOLD, CARE, FAINT, GOOD, styled};

/// Verifies plans and reports every finding.
pub async fn verify(context: &Context, files: &[PathBuf], deny: &[String], fixing: &Fixing) -> Answer {
    let mut levels = Levels::default();
    for name in deny {
        levels.add(Wish::Deny, name).map_err(|unknown| Failure::usage(unknown.to_string()))?;
    }
    let format = context.format(&[Format::Human, Format::Json])?;
    if fixing.fix {
        return super::fix::fix(context, files, &levels, fixing, format).await;
    }
    let (mut worst, mut gravest) = (Exit::Yes, None);
    for file in files {
        let exit = match client::check(context, file, false, &levels).await {
            Ok(checked) => {
                gravest = gravest.into_iter().chain(gravest_of(&checked)).min_by_key(|grave| grave.0);
                report(context, file, checked, format)?
            }
            Err(failure) if files.len() == 1 => return Err(failure),
            Err(failure) => {
                show::say_failure(&failure);
                failure.exit
            }
        };
        worst = worst.max(exit);
    }
    if let Some((_, code)) = gravest.filter(|_| format == Format::Human && !context.is_quiet()) {
        show::print(&format!("{} planctl plan verify --explain {code}\n", styled(BOLD, "for more:")))?;
    }
    Ok(worst)
}

// The first of the gravest findings: what a person mends first.
fn gravest_of(checked: &Checked) -> Option<(Severity, Code)> {
    let found = checked.verification.diagnostics.iter().filter(|found| found.level != Severity::Note);
    found.map(|found| (found.level, found.code)).min_by_key(|grave| grave.0)
}

fn report(context: &Context, file: &Path, checked: Checked, format: Format) -> Result<Exit, Failure> {
    if format == Format::Json {
        show::print_json(&checked.verification.to_json(&checked.source))?;
    } else {
        show::print(&findings(&checked, context.is_quiet()))?;
        show::print(&summary(context, &checked, file)?)?;
    }
    Ok(if checked.verification.is_verified() { Exit::Yes } else { Exit::No })
}

/// Draws the findings; notes only where more is wanted.
pub fn findings(checked: &Checked, is_quiet: bool) -> String {
    let mut text = String::new();
    for diagnostic in &checked.verification.diagnostics {
        if diagnostic.level == Severity::Note && (is_quiet || diagnostic.code == Code::P020) {
            continue;
        }
        text.push_str(&diagnostic.render(&checked.source, true));
        text.push_str("\n\n");
    }
    text
}

/// Says in a few lines what was verified, and what to type next.
pub fn summary(context: &Context, checked: &Checked, file: &Path) -> Result<String, Failure> {
    let name = show::safe(&file.display().to_string());
    let counts = counted(&checked.verification);
    let Some(graph) = checked.verification.graph.as_ref() else {
        let mut text = format!("{name}: {counts}\n{}\n", styled(show::BAD, "not verified"));
        if let Some(fixing) = fixing_line(&checked.verification, file) {
            text.push_str(&format!("{} {fixing}\n", styled(BOLD, "next:")));
        }
        return Ok(text);
    };
    let plan = plan_view(context, checked, graph)?;
    let mut roles: Vec<&str> = plan.steps.iter().map(|step| step.role.as_str()).collect();
    roles.sort_unstable();
    roles.dedup();
    let order: Vec<String> = plan.steps.iter().take(12).map(|step| step.number.to_string()).collect();
    let more = if plan.steps.len() > 12 { "→…" } else { "" };
    let is_one = plan.steps.len() == 1;
    let mut text = format!("{name}: {counts}\n");
    text.push_str(&format!(
        "{} · {} {} in order {}{more} · {} {} · {} · {}\n",
        styled(GOOD, "verified"),
        plan.steps.len(),
        if is_one { "step" } else { "steps" },
        order.join("→"),
        if roles.len() == 1 { "role" } else { "roles" },
        roles.iter().map(|role| show::safe(role)).collect::<Vec<_>>().join(", "),
        show::budget(&plan.budget),
        short_digest(&plan.digest),
    ));
    for default in &plan.defaults {
        text.push_str(&styled(FAINT, &format!("  default: {}", show::safe(default))));
        text.push('\n');
    }
    text.push_str(&format!("{} planctl plan run {name}\n", styled(BOLD, "next:")));
    if let Some(fixing) = fixing_line(&checked.verification, file) {
        text.push_str(&format!("{} {fixing}\n", styled(BOLD, "  or:")));
    }
    Ok(text)
}

// Says what to type where findings can be mended.
fn fixing_line(verification: &Verification, file: &Path) -> Option<String> {
    let told: Vec<_> =
        verification.diagnostics.iter().filter(|found| found.level != Severity::Note).collect();
    let fixes = |safe: bool| {
        told.iter().filter(|found| found.fix.as_ref().is_some_and(|fix| fix.safe == safe)).count()
    };
    let (flags, count) = match (fixes(true), fixes(false)) {
        (0, 0) => return None,
        (0, looked_at) => ("--fix --unsafe-fixes --diff", looked_at),
        (safe, _) => ("--fix", safe),
    };
    let findings = if told.len() == 1 { "finding" } else { "findings" };
    let file = super::plan::shell_word(&file.display().to_string());
    let can = format!("{count} of {} {findings} can be fixed", told.len());
    Some(format!("planctl plan verify {flags} {file}     ({can})"))
}

/// Counts findings in words: `2 errors, 1 warning`.
pub fn counted(verification: &Verification) -> String {
    let count = |level| verification.diagnostics.iter().filter(|found| found.level == level).count();
    let words = |count: usize, word: &str| {
        (count > 0).then(|| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
    };
    let parts = [words(count(Severity::Error), "error"), words(count(Severity::Warning), "warning")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") }
}

/// Shortens a digest to what people compare.
pub fn short_digest(digest: &str) -> String {
    digest
        .strip_prefix("sha256:")
        .map_or(digest.to_owned(), |hex| format!("sha256 {}", hex.get(..12).unwrap_or(hex)))
}

/// Puts together what would run.
pub fn plan_view(context: &Context, checked: &Checked, graph: &Graph) -> Result<PlanView, Failure> {
    let config = &context.config()?.config;
    let defaults =
        checked.verification.diagnostics.iter().filter(|found| found.code == Code::P020).map(|found| {
            match &found.step {
                Some(step) => format!("step {}: {}", step.number, found.message),
                None => found.message.clone(),
            }
        });
    let frontmatter = &checked.verification.tree.frontmatter;
    Ok(PlanView {
        plan: checked.path.clone(),
        title: graph.title().to_owned(),
        digest: checked.verification.digest.as_str().to_owned(),
        status: frontmatter.status.as_ref().map(|status| status.value.clone()),
        owner: frontmatter.owner.as_ref().map(|owner| owner.value.clone()),
        workspace: context.workspace().display().to_string(),
        budget: graph.budget().into(),
        steps: graph
            .steps()
            .into_iter()
            .map(|(node, task)| step_view(graph, &node.title, task, config))
            .collect(),
        protected: checked
            .baseline
            .files
            .keys()
            .cloned()
            .chain(checked.baseline.globs.iter().cloned())
            .collect(),
        defaults: defaults.collect(),
        isolation: config.isolation.to_string(),
    })
}

fn step_view(graph: &Graph, title: &str, task: &Task, config: &Config) -> PlanStepView {
    let agent = config.roles.get(&task.role).and_then(|role| role.agent.as_ref()).map(Agent::to_string);
    let subscriptions = task.subscriptions.iter().map(|subscription| match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    });
    PlanStepView {
        number: task.step,
        title: title.to_owned(),
        role: task.role.as_str().to_owned(),
        agent,
        task: task.prompt.clone(),
        subscriptions: subscriptions.collect(),
        contract: ContractView {
            command: task.contract.command.clone(),
            exit_code: task.contract.expect,
            timeout_seconds: task.contract.timeout.as_secs_f64(),
        },
        on_fail: on_fail(graph, task),
        timeout_seconds: task.work_timeout.as_secs_f64(),
    }
}

fn on_fail(graph: &Graph, task: &Task) -> String {
    let node = planctl_engine::NodeId::new(task.step.to_string());
    let target = graph.edge_for(&node, Signal::Exhausted).and_then(|edge| graph.node(&edge.to));
    let then = match (task.lapse, target.map(|node| &node.kind)) {
        (Outcome::Skipped, _) => "skip",
        (Outcome::Warned, _) => "warn",
        (Outcome::Failed | Outcome::Passed | Outcome::Waived, Some(NodeKind::Exit { .. })) => "abort",
        (Outcome::Failed | Outcome::Passed | Outcome::Waived, _) => "escalate",
    };
    match task.max_retries {
        0 => then.to_owned(),
        retries => format!("retry({retries}), then {then}"),
    }
}

/// Names the steps' roles that nothing serves.
pub fn unserved(view: &PlanView, exec: Option<&str>) -> Vec<Role> {
    if exec.is_some() {
        return Vec::new();
    }
    let mut roles: Vec<Role> = view
        .steps
        .iter()
        .filter(|step| step.agent.is_none())
        .map(|step| Role::new(step.role.as_str()))
        .collect();
    roles.sort();
    roles.dedup();
    roles
}

/// Draws what would run, contracts in full: what a person approves.
pub fn drawn(view: &PlanView, exec: Option<&str>, only_step: Option<u32>) -> String {
    let mut text = format!("{}\n", styled(BOLD, &show::safe(&view.title)));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {:<11}{value}\n", name));
    line("plan", format!("{} · {}", show::safe(&view.plan), short_digest(&view.digest)));
    line("workspace", show::safe(&view.workspace));
    line("budget", show::budget(&view.budget));
    line("isolation", format!("{} (tier 0: contracts and workers run as you)", view.isolation));
    if let Some(exec) = exec {
        line("worker", format!("{} (serves every role)", show::safe(exec)));
    }
    line(
        "protected",
        if view.protected.is_empty() {
            "no files".to_owned()
        } else {
            view.protected.iter().map(|path| show::safe(path)).collect::<Vec<_>>().join(", ")
        },
    );
    for default in &view.defaults {
        line("default", show::safe(default));
    }
    for step in view.steps.iter().filter(|step| only_step.is_none_or(|number| number == step.number)) {
        text.push('\n');
        text.push_str(&step_drawn(step, exec));
    }
    text
}

fn step_drawn(step: &PlanStepView, exec: Option<&str>) -> String {
    let worker = match (exec, &step.agent) {
        (Some(_), _) => String::new(),
        (None, Some(agent)) => format!(" · {}", show::safe(agent)),
        (None, None) => format!(" · {}", styled(CARE, "no worker configured")),
    };
    let mut text = format!(
        "{} {}\n  {}{worker} · on failure {} · at most {}\n",
        styled(BOLD, &format!("{}.", step.number)),
        styled(BOLD, &show::safe(&step.title)),
        show::safe(&step.role),
        step.on_fail,
        show::seconds(step.timeout_seconds),
    );
    for subscription in &step.subscriptions {
        text.push_str(&format!("  reads {}\n", show::safe(subscription)));
    }
    for line in show::safe_block(step.task.trim()).lines() {
        text.push_str(&styled(FAINT, &format!("  {line}")));
        text.push('\n');
    }
    text.push_str(&format!(
        "  contract, exit code {}, at most {}:\n",
        step.contract.exit_code,
        show::seconds(step.contract.timeout_seconds)
    ));
    for line in show::safe_block(step.contract.command.trim_end()).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}
