//! A plan as it would run, put together and drawn for the person who approves it.

use std::collections::BTreeMap;

use planctl_api::wire::{
    ContractView, DefaultFrom, DefaultView, JudgeView, KeptDecision, PlanDecisionView, PlanNodeView,
    PlanStepView, PlanView, RungView,
};
use planctl_api::words;
use planctl_config::{Agent, Config, Isolation, RoleConfig};
use planctl_engine::{
    ChildApproval, Edge, Graph, Node, NodeKind, On, Outcome, Priority, Role, Signal, Subscription, Task,
};
use planctl_harness::{Baseline, Permissions};
use planctl_lang::{Setting, ShownStep, ask_deadline_words, duration_words};
use planctl_server::check::Checked;
use planctl_server::judges_of;

use super::short_digest;
use crate::client;
use crate::context::Context;
use crate::failure::Failure;
use crate::show::{self, BOLD, CARE, FAINT, styled};

/// Puts together what would run.
pub fn plan_view(context: &Context, checked: &Checked, graph: &Graph) -> Result<PlanView, Failure> {
    let config = &context.config()?.config;
    let verification = &checked.verification;
    let shown = verification.shown(&checked.source);
    let shown_steps: BTreeMap<&str, &ShownStep> =
        shown.steps.iter().map(|step| (step.number.as_str(), step)).collect();
    let frontmatter = &verification.tree.frontmatter;
    Ok(PlanView {
        plan: checked.path.clone(),
        title: graph.title().to_owned(),
        digest: verification.digest.as_str().to_owned(),
        status: frontmatter.status.as_ref().map(|status| status.value.clone()),
        owner: frontmatter.owner.as_ref().map(|owner| owner.value.clone()),
        context: verification.workflow.attributes.goal.text().map(|goal| goal.value.clone()),
        priority: planctl_lang::priority_word(graph.priority()).to_owned(),
        workspace: context.workspace().display().to_string(),
        mode: config.workspace.mode.as_str().to_owned(),
        git: config.workspace.git.as_str().to_owned(),
        budget: graph.budget().into(),
        ask_deadlines: ask_deadlines(graph),
        steps: graph
            .steps()
            .into_iter()
            .map(|(node, task)| step_view(graph, node, task, config, &checked.baseline, &shown_steps))
            .collect(),
        nodes: graph
            .numbered_steps()
            .into_iter()
            .filter_map(|(number, node)| node_view(number, node))
            .collect(),
        flow: flow(graph),
        protected: checked.baseline.shown(),
        defaults: defaults(&shown.settings, |_| None),
        isolation: config.isolation.to_string(),
        decided: None,
        policies: config
            .approval
            .iter()
            .map(|(name, policy)| match policy.refusals(&checked.path, graph).as_slice() {
                [] => format!("the policy {name} allows it"),
                refusals => format!("the policy {name} does not allow it: {}", refusals.join("; ")),
            })
            .collect(),
    })
}

/// Says how long asks wait: of the whole plan, and of each step that says so itself.
fn ask_deadlines(graph: &Graph) -> Vec<String> {
    let of_plan = graph.limits().ask_deadline.map(ask_deadline_words);
    let of_steps = graph.nodes().iter().filter_map(|node| {
        let words = ask_deadline_words(node.ask_deadline?);
        let number = node.step()?;
        Some((number, format!("step {number}: {words}")))
    });
    let mut of_steps: Vec<(u32, String)> = of_steps.collect();
    of_steps.sort();
    of_plan.into_iter().chain(of_steps.into_iter().map(|(_, words)| words)).collect()
}

// A timeout that the plan leaves out may be configured; the graph's value applies.
fn step_defaults(shown: &BTreeMap<&str, &ShownStep>, task: &Task) -> Vec<DefaultView> {
    let Some(step) = shown.get(task.step.to_string().as_str()) else { return Vec::new() };
    defaults(&step.settings, |field| match field {
        "timeout" => Some(duration_words(task.work_timeout)),
        "contract_timeout" => Some(duration_words(task.contract.timeout)),
        _ => None,
    })
}

fn defaults(settings: &[Setting], applies: impl Fn(&str) -> Option<String>) -> Vec<DefaultView> {
    // The files of a step stand on lines of their own.
    let is_own = |setting: &&Setting| !matches!(setting.name, "judged by" | "may be changed");
    let left_out = settings.iter().filter(|setting| setting.is_default).filter(is_own);
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
    node: &Node,
    task: &Task,
    config: &Config,
    baseline: &Baseline,
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
        title: node.title.clone(),
        role: task.role.as_str().to_owned(),
        agent,
        permissions: role.and_then(RoleConfig::permission_words),
        pace: RungView::levels_of(task),
        task: task.prompt.clone(),
        subscriptions: subscriptions.collect(),
        locks: task.locks.clone(),
        contract: ContractView::of(&task.contract),
        confirmation: node.confirmation.as_deref().map(|asked| asked.question.text.clone()),
        judged_by: node.gated().map(|gated| judges_of(baseline, &gated)).unwrap_or_default(),
        may_change: task.may_change.iter().cloned().collect(),
        on_fail: on_fail(graph, node, task),
        red_first: task.contract.rehearsal_mode().as_str().to_owned(),
        timeout_seconds: task.work_timeout.as_secs_f64(),
        defaults: step_defaults(shown, task),
    }
}

fn node_view(number: u32, node: &Node) -> Option<PlanNodeView> {
    let view = |kind: &str| PlanNodeView {
        number,
        title: node.title.clone(),
        kind: kind.to_owned(),
        description: None,
        contract: None,
        asks: None,
        options: Vec::new(),
    };
    match &node.kind {
        NodeKind::Call(call) => {
            Some(PlanNodeView { contract: Some(ContractView::of(&call.contract)), ..view("call") })
        }
        NodeKind::Decision(choice) => Some(PlanNodeView {
            description: choice.description.clone().filter(|description| *description != node.title),
            contract: choice.command.as_deref().map(ContractView::of),
            ..view("decision")
        }),
        NodeKind::Human(question) => Some(PlanNodeView {
            asks: Some(question.text.clone()),
            options: question.options.clone(),
            ..view("human")
        }),
        NodeKind::Checkpoint => Some(view("checkpoint")),
        NodeKind::Escalate { reason, .. } => Some(PlanNodeView { asks: reason.clone(), ..view("escalate") }),
        NodeKind::SubPlan(within) => {
            let approved = match within.approval {
                ChildApproval::Ask => "a person is asked to approve it when its turn comes",
                ChildApproval::Inherit => "whoever approves this plan approves it too",
            };
            let folder = within.folder.as_ref().map(|folder| format!(" in {folder}")).unwrap_or_default();
            let asks = format!("{}{folder}: {approved}", within.path);
            Some(PlanNodeView { asks: Some(asks), ..view("sub_plan") })
        }
        NodeKind::Start
        | NodeKind::Task(_)
        | NodeKind::Fork(_)
        | NodeKind::Join(_)
        | NodeKind::Exit { .. } => None,
    }
}

/// Says whether steps run one after another in the order of their numbers, each worked on by an agent.
pub fn is_linear(graph: &Graph) -> bool {
    let steps = graph.steps();
    let follows = |pair: &[(&Node, &Task)]| {
        let next = graph.edge_for(&pair[0].0.id, Signal::Success).map(|edge| &edge.to);
        next == Some(&pair[1].0.id)
    };
    let is_plain = |node: &Node| {
        matches!(node.kind, NodeKind::Start | NodeKind::Task(_) | NodeKind::Exit { .. })
            || (matches!(node.kind, NodeKind::Escalate { .. }) && node.step().is_none())
    };
    graph.nodes().iter().all(is_plain)
        && graph.edges().iter().all(|edge| edge.when.is_none())
        && steps.windows(2).all(follows)
}

// Every way, in the words of a plan; that a person is asked at last, each step says itself.
fn flow(graph: &Graph) -> Vec<String> {
    if is_linear(graph) {
        return Vec::new();
    }
    let asks = |edge: &&Edge| {
        let target = graph.node(&edge.to);
        target.is_some_and(|node| matches!(node.kind, NodeKind::Escalate { .. }) && node.step().is_none())
    };
    let words = |edge: &Edge| {
        let on = match edge.on {
            On::Success => "",
            On::Fail => " on fail",
            On::Retry => " on retry",
            On::Exhaust => " when its attempts are used up",
            On::Always => " always",
        };
        let when = edge.when.as_ref().map(|when| format!(" if {when}")).unwrap_or_default();
        let label = edge.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        format!("{} → {}{on}{when}{label}", edge.from, edge.to)
    };
    graph.edges().iter().filter(|edge| !asks(edge)).map(words).collect()
}

fn on_fail(graph: &Graph, node: &Node, task: &Task) -> String {
    let target = graph.edge_for(&node.id, Signal::Exhausted).and_then(|edge| graph.node(&edge.to));
    let then = match (task.on_exhausted, target) {
        (Outcome::Skipped, _) => "skip".to_owned(),
        (Outcome::Warned, _) => "warn".to_owned(),
        (Outcome::Failed | Outcome::Passed | Outcome::Waived, Some(target)) => {
            match (&target.kind, target.step()) {
                (NodeKind::Exit { .. }, _) => "abort".to_owned(),
                (_, Some(step)) => format!("step {step}"),
                (_, None) => "escalate".to_owned(),
            }
        }
        (Outcome::Failed | Outcome::Passed | Outcome::Waived, None) => "escalate".to_owned(),
    };
    match task.max_retries {
        0 => then,
        retries => format!("retry({retries}), then {then}"),
    }
}

/// Says of steps for whose roles nothing is configured that somebody is there who does such work.
pub fn name_others(view: &mut PlanView, served: &[String]) {
    for step in view.steps.iter_mut().filter(|step| step.agent.is_none() && served.contains(&step.role)) {
        step.agent = Some("a worker is there".to_owned());
    }
}

/// Names the steps' roles that nothing serves.
pub fn unserved_roles(view: &PlanView, worker: Option<&Agent>) -> Vec<Role> {
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
pub fn workspace_words(workspace: &str, mode: &str, git: &str) -> String {
    let workspace = show::safe(workspace);
    match (mode, git) {
        ("worktree", "commit") => {
            format!("a git worktree of {workspace}, on a branch of its own; the result is committed there")
        }
        ("worktree", _) => format!("a git worktree of {workspace}, on a branch of its own"),
        _ => workspace,
    }
}

/// The columns before the text of a setting, and before a step's task.
const CONTEXT_MARGIN: usize = 13;
const TASK_MARGIN: usize = 2;

/// How much of a plan is drawn.
#[derive(Clone, Copy, Default)]
pub struct Detail {
    /// The only step to draw.
    pub only_step: Option<u32>,
    /// Names the values that the plan leaves to others.
    pub has_defaults: bool,
    /// Names priority and isolation where they are the usual, too.
    pub has_all: bool,
}

/// Says who decided about a plan's text, and why.
fn decided_words(decided: &PlanDecisionView) -> String {
    let KeptDecision { by, at, note } = &decided.given;
    let by = words::policy(by).unwrap_or_else(|| show::safe(by));
    let ago = words::ago(at, client::now_unix_seconds());
    let note = note.as_deref().map(|note| format!(": {}", show::safe(note))).unwrap_or_default();
    format!("{} by {by} {ago}{note}", decided.decision)
}

/// Draws a plan as it would run, contracts in full, for the person who approves it.
pub fn draw(view: &PlanView, worker: Option<&Agent>, detail: Detail) -> String {
    let mut text = format!("{}\n", styled(BOLD, &show::safe(&view.title)));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {:<11}{value}\n", name));
    line("plan", format!("{} · {}", show::plan(&view.plan, &view.title), short_digest(&view.digest)));
    line("workspace", workspace_words(&view.workspace, &view.mode, &view.git));
    if let Some(context) = &view.context {
        let lines = show::paragraphs(&show::plan_block(context.trim()), CONTEXT_MARGIN);
        line("context", lines.join(&format!("\n{}", " ".repeat(CONTEXT_MARGIN))));
    }
    line("budget", show::budget(&view.budget));
    for deadline in &view.ask_deadlines {
        line("asks wait", deadline.clone());
    }
    let is_usual = |value: &str, usual: &str| value == usual && !detail.has_all;
    if !is_usual(&view.priority, planctl_lang::priority_word(Priority::default())) {
        line("priority", show::safe(&view.priority));
    }
    if !is_usual(&view.isolation, &Isolation::default().to_string()) {
        line("isolation", view.isolation.clone());
    }
    if let Some(decided) = &view.decided {
        line("decided", decided_words(decided));
    }
    for policy in &view.policies {
        line("approval", show::safe(policy));
    }
    if let Some(worker) = worker {
        let may = worker.may(&Permissions::default()).map(|may| format!("; may: {may}")).unwrap_or_default();
        line("worker", format!("{} (serves every role{may})", show::safe(&worker.display_command())));
    }
    line(
        "protected",
        if view.protected.is_empty() {
            "no files".to_owned()
        } else {
            view.protected.iter().map(|path| show::safe(path)).collect::<Vec<_>>().join(", ")
        },
    );
    if let Some(defaults) = draw_defaults(&view.defaults).filter(|_| detail.has_defaults) {
        line("defaults", defaults);
    }
    let is_meant = |number: u32| detail.only_step.is_none_or(|only| only == number);
    let steps = view.steps.iter().map(|step| (step.number, draw_step(step, worker, detail)));
    let nodes = view.nodes.iter().map(|node| (node.number, draw_node(node)));
    let drawn: BTreeMap<u32, String> = steps.chain(nodes).filter(|(number, _)| is_meant(*number)).collect();
    for drawn in drawn.values() {
        text.push('\n');
        text.push_str(drawn);
    }
    if !view.flow.is_empty() && detail.only_step.is_none() {
        text.push_str(&format!("\n{}\n", styled(BOLD, "Flow")));
        for way in &view.flow {
            text.push_str(&format!("  {}\n", show::safe(way)));
        }
    }
    text
}

fn draw_node(node: &PlanNodeView) -> String {
    let what = match node.kind.as_str() {
        "call" => "a command, without an agent",
        "decision" if node.contract.is_some() => "a command decides which edge is followed",
        "decision" => "conditions decide which edge is followed",
        "human" => "a person is asked",
        "checkpoint" => "the state of the workspace is recorded",
        "sub_plan" => "another plan runs",
        _ => "a person is asked for help",
    };
    let mut text = format!(
        "{} {}\n  {what}\n",
        styled(BOLD, &format!("{}.", node.number)),
        styled(BOLD, &show::safe(&node.title)),
    );
    for line in node.description.iter().chain(&node.asks).flat_map(|said| said.trim().lines()) {
        text.push_str(&styled(FAINT, &format!("  {}", show::safe(line))));
        text.push('\n');
    }
    if !node.options.is_empty() {
        text.push_str(&format!("  answers: {}\n", show::safe(&node.options.join(" · "))));
    }
    if let Some(contract) = &node.contract {
        let limit = format!("at most {}", show::seconds(contract.timeout_seconds));
        text.push_str(&draw_contract(contract, "command", Some(limit), ""));
    }
    text
}

// Says how long something may take; not where that is the usual time, and nobody asked for defaults.
fn draw_limit(step: &PlanStepView, field: &str, seconds: f64, detail: Detail) -> Option<String> {
    let is_usual = step.defaults.iter().any(|left| left.field == field && left.from == DefaultFrom::Planctl);
    (detail.has_defaults || !is_usual).then(|| format!("at most {}", show::seconds(seconds)))
}

fn draw_contract(contract: &ContractView, what: &str, limit: Option<String>, red_first: &str) -> String {
    let limit = limit.map(|limit| format!(", {limit}")).unwrap_or_default();
    let mut text = format!("  {what}, {}{limit}{red_first}:\n", words::passes_with(contract));
    for line in show::plan_block(contract.command.trim_end()).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

/// Draws who is asked about the work, and what.
pub(crate) fn draw_judge(judge: &JudgeView) -> String {
    let by = show::safe(&judge.by);
    let mut text = match judge.alone {
        true => styled(CARE, &format!("  ! the judge {by} alone decides, and can be wrong:\n")),
        false => format!("  then the judge {by} is asked:\n"),
    };
    for line in show::plan_block(judge.question.trim()).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

// Defaults without effect, such as no subscriptions, are not worth a word.
fn draw_defaults(defaults: &[DefaultView]) -> Option<String> {
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

fn is_of_aider(agent: &str) -> bool {
    agent.split(':').next() == Some("aider")
}

/// Says whether a contract asks git for commits, or for a tree without changes.
fn looks_at_commits(contract: &str) -> bool {
    [
        "git log",
        "git show",
        "git rev-list",
        "git rev-parse",
        "git status",
        "git diff --quiet",
        "git diff --exit-code",
    ]
    .iter()
    .any(|command| contract.contains(command))
}

fn draw_step(step: &PlanStepView, worker: Option<&Agent>, detail: Detail) -> String {
    let serves = worker.map(Agent::to_string).or_else(|| step.agent.clone()).unwrap_or_default();
    let may = step.permissions.as_ref().map(|words| format!(" ({})", show::safe(words))).unwrap_or_default();
    let worker = match (worker, &step.agent) {
        (Some(_), _) => may,
        (None, Some(agent)) => format!(" · {}{may}", show::safe(agent)),
        (None, None) => format!(" · {}", styled(CARE, "no worker configured")),
    };
    let at_most = draw_limit(step, "timeout", step.timeout_seconds, detail);
    let at_most = at_most.map(|limit| format!(" · {limit}")).unwrap_or_default();
    let mut text = format!(
        "{} {}\n  {}{worker} · on failure {}{at_most}\n",
        styled(BOLD, &format!("{}.", step.number)),
        styled(BOLD, &show::safe(&step.title)),
        show::safe(&step.role),
        step.on_fail,
    );
    if !step.pace.is_empty() {
        let levels = step.pace.iter().map(|level| format!("{} {}", level.level, level.responder));
        let levels = show::safe(&levels.collect::<Vec<_>>().join(", "));
        text.push_str(&format!("  when the {} can't go on: {levels}\n", show::safe(&step.role)));
    }
    if let Some(defaults) = draw_defaults(&step.defaults).filter(|_| detail.has_defaults) {
        text.push_str(&styled(FAINT, &format!("  defaults: {defaults}")));
        text.push('\n');
    }
    for subscription in &step.subscriptions {
        let withheld = subscription.strip_prefix("file:").and_then(planctl_harness::withheld_reason);
        let withheld = withheld.map(|why| styled(CARE, &format!(" ({why})"))).unwrap_or_default();
        text.push_str(&format!("  reads {}{withheld}\n", show::safe(subscription)));
    }
    if !step.locks.is_empty() {
        text.push_str(&format!("  locks {}\n", show::safe(&step.locks.join(", "))));
    }
    for files in crate::commands::approvals::page::file_lines(&step.judged_by, &step.may_change) {
        text.push_str(&format!("  {files}\n"));
    }
    for line in show::paragraphs(&show::plan_block(step.task.trim()), TASK_MARGIN) {
        text.push_str(&styled(FAINT, &format!("  {line}")));
        text.push('\n');
    }
    let red_first = match step.red_first.as_str() {
        "off" => String::new(),
        policy => format!(", red first ({})", show::safe(policy)),
    };
    if !step.contract.command.is_empty() {
        let limit = draw_limit(step, "contract_timeout", step.contract.timeout_seconds, detail);
        text.push_str(&draw_contract(&step.contract, "contract", limit, &red_first));
    }
    if let Some(judge) = &step.contract.judge {
        text.push_str(&draw_judge(judge));
    }
    if is_of_aider(&serves) && looks_at_commits(&step.contract.command) {
        let why = "  ! aider runs no commands, so it makes no commits, and this contract looks at them\n";
        text.push_str(&styled(CARE, why));
    }
    if step.confirmation.is_some() {
        text.push_str("  a person confirms the work\n");
    }
    text
}
