//! The steps of a graph in DOT or JSON in the form of a markdown plan's steps, with their places.
//!
//! So one set of lints judges contracts, files, roles and budgets, and one lowering makes tasks of them, in every language.

use planctl_engine::WorkKind;

use super::pipeline::inner_place;
use super::tree::{Kind, NodeTree, Workflow};
use super::{folders, sub_plans};
use crate::syntax::dot::NodeAttributes;
use crate::syntax::source::Source;
use crate::syntax::written::VerifyType;
use crate::text::{Span, Spanned, shell_quoted};
use crate::tree::parse::budget_of;
use crate::tree::{ContractTree, Frontmatter, OnFail, PlanTree, StepNumber, StepTree, Then, WorkspaceMode};

/// The role where a node names none.
pub(super) const ROLE: &str = "coder";

/// Returns the plan that a graph is.
pub(crate) fn steps(source: &Source, workflow: &mut Workflow) -> PlanTree {
    number_steps(workflow);
    let workflow = &*workflow;
    let title = Spanned::new(
        workflow.title().to_owned(),
        workflow.title.as_ref().or(workflow.name.as_ref()).map_or(Span::at(0), |title| title.span),
    );
    let said = &workflow.attributes;
    let mut tree = PlanTree {
        frontmatter: Frontmatter::default(),
        title: Some(title),
        context: said.goal.text().cloned(),
        budget: said.budget.text().and_then(|said| Some(Spanned::new(budget_of(&said.value)?, said.span))),
        priority: said.priority.spanned(),
        max_visits: said.max_visits.spanned(),
        stale_after: said.stale_after.spanned(),
        ask_deadline: said.ask_deadline.spanned(),
        parallel: said.max_parallel.spanned(),
        ..PlanTree::default()
    };
    let numbered = workflow.nodes.iter().filter(|node| node.step.is_some());
    tree.steps = numbered.zip(1_u32..).map(|(node, number)| step(source, workflow, node, number)).collect();
    tree
}

/// Makes the nodes at which something happens the steps of a plan, in their order.
pub(crate) fn number_steps(workflow: &mut Workflow) {
    let steps = workflow.nodes.iter_mut().filter(|node| is_step(node.kind.value));
    steps.enumerate().for_each(|(at, node)| node.step = Some(at));
}

/// Says whether something happens at a node that people count as a step.
fn is_step(kind: Kind) -> bool {
    !matches!(kind, Kind::Start | Kind::Exit | Kind::Fork | Kind::Join)
}

fn step(source: &Source, workflow: &Workflow, node: &NodeTree, number: u32) -> StepTree {
    let (said, kind) = (&node.attributes, node.kind.value);
    let here = node.id.span;
    let title = Spanned::new(node.title().to_owned(), said.label.text().map_or(here, |label| label.span));
    let first_line = source.line_span(source.line_of(node.span.start));
    let heading = Span::new(node.span.start, first_line.end.max(node.span.start));
    let work = said.work.is_said().then(|| said.work.value().copied().unwrap_or(WorkKind::Code));
    // A role tells what kind of work a task is, unless the node does.
    let is_silent = kind == Kind::Task && work.is_none();
    let role = said.target.text().cloned();
    let target = match kind {
        Kind::Task => Some(role.unwrap_or_else(|| Spanned::new(ROLE.to_owned(), title.span))),
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
    let is_sub_plan = kind == Kind::SubPlan;
    // A call is nothing but its command.
    let is_bare = matches!(kind, Kind::Call | Kind::Decision);
    StepTree {
        end: node.span.end,
        node: Some(node.id.value.clone()),
        kind: (!is_silent).then(|| node.kind.clone()),
        work,
        target,
        task: Some(prompt(source, workflow, node)),
        contract: contract(source, node),
        timeout: said.timeout.spanned(),
        contract_timeout: if is_bare { &said.timeout } else { &said.contract_timeout }.spanned(),
        min_tests: said.min_tests.spanned(),
        judge: said.judge.text().cloned(),
        judge_by: said.judge_by.text().cloned(),
        max_visits: said.max_visits.spanned(),
        ask_deadline: said.ask_deadline.spanned(),
        on_fail: policy(node),
        max_retries: Some(workflow.retries(node).unwrap_or(Spanned::new(0, here))),
        locks: said.locks.entries(),
        changes: said.changes.entries(),
        protects: said.protects.entries(),
        subscriptions: said.subscriptions.entries(),
        workspace: said.workspace.spanned().filter(|mode| mode.value == WorkspaceMode::Worktree),
        plan: is_sub_plan.then(|| sub_plans::file(workflow, node).cloned()).flatten(),
        folder: is_sub_plan.then(|| folders::said_for(workflow, node).cloned()).flatten(),
        approval: is_sub_plan.then(|| said.child_approval.spanned()).flatten(),
        ..StepTree::new(Spanned::new(StepNumber::Fixed(number), here), heading, title)
    }
}

/// Returns what becomes of a node that fails: as its policy says, and where the run may go on without it.
fn policy(node: &NodeTree) -> Option<Spanned<OnFail>> {
    let NodeAttributes { on_fail, allow_partial, required, .. } = &node.attributes;
    let policy = on_fail.spanned();
    // R6 and H-37: a partial success, and a node that is not required, settle as warned.
    let partial = allow_partial.spanned().filter(|flag| flag.value);
    let lenient = partial.or_else(|| required.spanned().filter(|flag| !flag.value));
    let has_then = policy.as_ref().is_some_and(|policy| policy.value.then.is_some());
    match lenient.filter(|_| !has_then) {
        Some(flag) => {
            let retries = policy.and_then(|policy| policy.value.retries);
            Some(Spanned::new(OnFail { retries, then: Some(Then::Warn) }, flag.span))
        }
        None => policy,
    }
}

// S3, T1: the goal stands where the prompt names it.
fn prompt(source: &Source, workflow: &Workflow, node: &NodeTree) -> Spanned<String> {
    let goal = workflow.attributes.goal.text().map_or("", |goal| goal.value.as_str());
    let said = node.attributes.prompt.text().or_else(|| node.attributes.label.text());
    let place = said.map_or(node.id.span, |said| inner_place(source, said).0);
    let mut prompt = node.prompt().replace("$goal", goal);
    for (field, word) in [(&node.attributes.tool, "Tool"), (&node.attributes.tool_hint, "Hint")] {
        if let Some(said) = field.text() {
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
        Kind::Call => node.attributes.tool_command.text().cloned().into_iter().collect(),
        Kind::Decision => node.attributes.command.text().cloned().into_iter().collect(),
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
        exit_code: node.attributes.expect_exit.spanned(),
    })
}

// H-28: makes of a library's condition on a file one that a contract can check.
fn checked_file(node: &NodeTree) -> Option<Spanned<String>> {
    let is_asked = node.attributes.verify_type.is(&VerifyType::FileExists);
    let path = node.attributes.verify_value.text().filter(|_| is_asked)?;
    Some(Spanned::new(format!("test -e {}", shell_quoted(&path.value)), path.span))
}
