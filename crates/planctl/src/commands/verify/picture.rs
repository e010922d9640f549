//! What a plan would run, put together and drawn: what a person approves.

use std::collections::BTreeMap;

use planctl_engine::{Graph, NodeKind, Outcome, Role, Signal, Subscription, Task};
use planctl_lang::{Setting, ShownStep, duration_words};
use planctl_server::check::Checked;
use planctl_server::config::{Agent, Config, RoleConfig};
use planctl_server::wire::{ContractView, DefaultFrom, DefaultView, PlanStepView, PlanView, RungView};

use super::short_digest;
use crate::commands::Context;
use crate::failure::Failure;
use crate::show::{self, BOLD, CARE, FAINT, styled};

/// Puts together what would run.
pub fn plan_view(context: &Context, checked: &Checked, graph: &Graph) -> Result<PlanView, Failure> {
    let config = &context.config()?.config;
    let shown = planctl_lang::show(&checked.source, &checked.verification.tree);
    let shown_steps: BTreeMap<&str, &ShownStep> =
        shown.steps.iter().map(|step| (step.number.as_str(), step)).collect();
    let frontmatter = &checked.verification.tree.frontmatter;
    Ok(PlanView {
        plan: checked.path.clone(),
        title: graph.title().to_owned(),
        digest: checked.verification.digest.as_str().to_owned(),
        status: frontmatter.status.as_ref().map(|status| status.value.clone()),
        owner: frontmatter.owner.as_ref().map(|owner| owner.value.clone()),
        workspace: context.workspace().display().to_string(),
        mode: config.workspace.mode.word().to_owned(),
        git: config.workspace.git.word().to_owned(),
        budget: graph.budget().into(),
        steps: graph
            .steps()
            .into_iter()
            .map(|(node, task)| step_view(graph, &node.title, task, config, &shown_steps))
            .collect(),
        protected: checked
            .baseline
            .files
            .keys()
            .cloned()
            .chain(checked.baseline.globs.iter().cloned())
            .collect(),
        defaults: defaults(&shown.settings, |_| None),
        isolation: config.isolation.to_string(),
    })
}

// A timeout that the plan leaves out may be configured; what the graph says is what applies.
fn step_defaults(shown: &BTreeMap<&str, &ShownStep>, task: &Task) -> Vec<DefaultView> {
    let Some(step) = shown.get(task.step.to_string().as_str()) else { return Vec::new() };
    defaults(&step.settings, |field| match field {
        "timeout" => Some(duration_words(task.work_timeout)),
        "contract_timeout" => Some(duration_words(task.contract.timeout)),
        _ => None,
    })
}

fn defaults(settings: &[Setting], applies: impl Fn(&str) -> Option<String>) -> Vec<DefaultView> {
    let left_out = settings.iter().filter(|setting| setting.is_default);
    let view = |setting: &Setting| {
        let applies = applies(setting.name).filter(|value| *value != setting.value);
        DefaultView {
            field: setting.name.to_owned(),
            from: if applies.is_some() { DefaultFrom::Configuration } else { DefaultFrom::Planctl },
            value: applies.unwrap_or_else(|| setting.value.clone()),
        }
    };
    left_out.map(view).collect()
}

fn step_view(
    graph: &Graph,
    title: &str,
    task: &Task,
    config: &Config,
    shown: &BTreeMap<&str, &ShownStep>,
) -> PlanStepView {
    let role = config.roles.get(&task.role);
    let agent = role.and_then(|role| role.agent.as_ref());
    let agent = agent.map(|agent| planctl_lang::masked(&agent.to_string()).into_owned());
    let subscriptions = task.subscriptions.iter().map(|subscription| match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    });
    PlanStepView {
        number: task.step,
        title: title.to_owned(),
        role: task.role.as_str().to_owned(),
        agent,
        permissions: role.and_then(RoleConfig::permission_words),
        pace: RungView::all(task),
        task: task.prompt.clone(),
        subscriptions: subscriptions.collect(),
        locks: task.locks.clone(),
        contract: ContractView {
            command: task.contract.command.clone(),
            exit_code: task.contract.expect,
            timeout_seconds: task.contract.timeout.as_secs_f64(),
        },
        on_fail: on_fail(graph, task),
        red_first: task.contract.rehearsal().word().to_owned(),
        timeout_seconds: task.work_timeout.as_secs_f64(),
        defaults: step_defaults(shown, task),
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
pub fn unserved(view: &PlanView, worker: Option<&Agent>) -> Vec<Role> {
    if worker.is_some() {
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

/// Says where a run works, and whether it commits there.
pub fn place(workspace: &str, mode: &str, git: &str) -> String {
    let workspace = show::safe(workspace);
    match (mode, git) {
        ("worktree", "commit") => {
            format!("a git worktree of {workspace}, on a branch of its own; the result is committed there")
        }
        ("worktree", _) => format!("a git worktree of {workspace}, on a branch of its own"),
        _ => workspace,
    }
}

/// Draws what would run, contracts in full: what a person approves.
pub fn drawn(view: &PlanView, worker: Option<&Agent>, only_step: Option<u32>) -> String {
    let mut text = format!("{}\n", styled(BOLD, &show::safe(&view.title)));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {:<11}{value}\n", name));
    line("plan", format!("{} · {}", show::safe(&view.plan), short_digest(&view.digest)));
    line("workspace", place(&view.workspace, &view.mode, &view.git));
    line("budget", show::budget(&view.budget));
    line("isolation", format!("{} (tier 0: contracts and workers run as you)", view.isolation));
    if let Some(worker) = worker {
        line("worker", format!("{} (serves every role)", show::safe(&worker.shown())));
    }
    line(
        "protected",
        if view.protected.is_empty() {
            "no files".to_owned()
        } else {
            view.protected.iter().map(|path| show::safe(path)).collect::<Vec<_>>().join(", ")
        },
    );
    if let Some(defaults) = defaults_drawn(&view.defaults) {
        line("defaults", defaults);
    }
    for step in view.steps.iter().filter(|step| only_step.is_none_or(|number| number == step.number)) {
        text.push('\n');
        text.push_str(&step_drawn(step, worker));
    }
    text
}

// What nothing follows from, such as no subscriptions, is not worth a word.
fn defaults_drawn(defaults: &[DefaultView]) -> Option<String> {
    let said = defaults.iter().filter(|default| !matches!(default.value.as_str(), "none" | "no" | "never"));
    let words: Vec<String> = said
        .map(|default| {
            let from = match default.from {
                DefaultFrom::Planctl => "",
                DefaultFrom::Configuration => " (planctl.toml)",
            };
            format!("{} {}{from}", show::safe(&default.field), show::safe(&default.value))
        })
        .collect();
    (!words.is_empty()).then(|| words.join(" · "))
}

fn step_drawn(step: &PlanStepView, worker: Option<&Agent>) -> String {
    let may = step.permissions.as_ref().map(|words| format!(" ({})", show::safe(words))).unwrap_or_default();
    let worker = match (worker, &step.agent) {
        (Some(_), _) => may,
        (None, Some(agent)) => format!(" · {}{may}", show::safe(agent)),
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
    if !step.pace.is_empty() {
        let levels = step.pace.iter().map(|rung| format!("{} {}", rung.level, rung.responder));
        let levels = show::safe(&levels.collect::<Vec<_>>().join(", "));
        text.push_str(&format!("  when the {} can't go on: {levels}\n", show::safe(&step.role)));
    }
    if let Some(defaults) = defaults_drawn(&step.defaults) {
        text.push_str(&styled(FAINT, &format!("  defaults: {defaults}")));
        text.push('\n');
    }
    for subscription in &step.subscriptions {
        let withheld = subscription.strip_prefix("file:").and_then(planctl_harness::withheld);
        let withheld = withheld.map(|why| styled(CARE, &format!(" ({why})"))).unwrap_or_default();
        text.push_str(&format!("  reads {}{withheld}\n", show::safe(subscription)));
    }
    if !step.locks.is_empty() {
        text.push_str(&format!("  locks {}\n", show::safe(&step.locks.join(", "))));
    }
    for line in show::safe_block(step.task.trim()).lines() {
        text.push_str(&styled(FAINT, &format!("  {line}")));
        text.push('\n');
    }
    let red_first = match step.red_first.as_str() {
        "off" => String::new(),
        policy => format!(", red first ({})", show::safe(policy)),
    };
    text.push_str(&format!(
        "  contract, exit code {}, at most {}{red_first}:\n",
        step.contract.exit_code,
        show::seconds(step.contract.timeout_seconds)
    ));
    for line in show::safe_block(step.contract.command.trim_end()).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}
