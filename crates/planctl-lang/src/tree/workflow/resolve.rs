//! A graph of DOT or JSON as it runs: its steps are numbered, and each says for itself what its graph or its kind says for it.
//!
//! So a node means the same in every language: one set of lints judges it, and one lowering makes a task of it.

use planctl_engine::WorkKind;

use super::pipeline::inner_place;
use super::tree::{Kind, NodeTree, Workflow};
use crate::syntax::dot::NodeAttributes;
use crate::syntax::shell::{Expecting, joined};
use crate::syntax::source::Source;
use crate::syntax::written::{VerifyType, Written};
use crate::text::{Span, Spanned, shell_quoted};
use crate::tree::parse::budget_of;
use crate::tree::{ContractTree, OnFail, Then};

/// The role where a node names none.
pub(super) const ROLE: &str = "coder";

/// Makes a graph that was read the one that is judged and run.
pub(crate) fn resolve(source: &Source, workflow: &mut Workflow) {
    workflow.leave_out_lone_decisions();
    number_steps(workflow);
    let said = &workflow.attributes;
    workflow.budget =
        said.budget.text().and_then(|said| Some(Spanned::new(budget_of(&said.value)?, said.span)));
    workflow.priority = said.priority.spanned();
    for at in 0..workflow.nodes.len() {
        if workflow.nodes[at].step.is_some() {
            workflow.nodes[at] = resolved(source, workflow, &workflow.nodes[at]);
        }
    }
}

/// Makes the nodes at which something happens the steps of a plan, in their order.
pub(crate) fn number_steps(workflow: &mut Workflow) {
    let steps = workflow.nodes.iter_mut().filter(|node| is_step(node.kind.value));
    for (at, (node, number)) in steps.zip(1..).enumerate() {
        (node.step, node.number) = (Some(at), Some(number));
    }
}

/// Says whether something happens at a node that people count as a step.
fn is_step(kind: Kind) -> bool {
    !matches!(kind, Kind::Start | Kind::Exit | Kind::Fork | Kind::Join)
}

fn resolved(source: &Source, workflow: &Workflow, node: &NodeTree) -> NodeTree {
    let (said, kind) = (&node.attributes, node.kind.value);
    let mut own = node.clone();
    own.role = role(node);
    own.task = Some(prompt(source, workflow, node));
    own.contract = contract(source, node);
    own.work = said.work.is_said().then(|| said.work.value().copied().unwrap_or(WorkKind::Code));
    let own_said = &mut own.attributes;
    if !said.label.is_said() {
        own_said.label = node.id.clone().into();
    }
    own_said.on_fail = policy(node).into();
    own_said.max_retries = Written::of(workflow.retries(node).unwrap_or(Spanned::new(0, node.id.span)));
    // A call is nothing but its command, and so is a decision that has one.
    if matches!(kind, Kind::Call | Kind::Decision) {
        own_said.contract_timeout = said.timeout.clone();
    }
    if kind != Kind::SubPlan {
        (own_said.child_dotfile, own_said.child_workdir) = <_>::default();
        own_said.child_approval = Written::default();
    }
    own
}

/// Returns who works at a node, or whose rights its command has.
fn role(node: &NodeTree) -> Option<Spanned<String>> {
    let title = node.attributes.label.text().map_or(node.id.span, |label| label.span);
    let usual = || (node.kind.value == Kind::Task).then(|| Spanned::new(ROLE.to_owned(), title));
    let said = node.attributes.target.text().cloned();
    said.filter(|_| matches!(node.kind.value, Kind::Task | Kind::Call)).or_else(usual)
}

/// Returns what becomes of a node that fails: as its policy says, and where the run may go on without it.
fn policy(node: &NodeTree) -> Option<Spanned<OnFail>> {
    let NodeAttributes { on_fail, allow_partial, required, .. } = &node.attributes;
    let policy = on_fail.spanned().filter(|policy| policy.value != OnFail::default());
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
    let expected = node.attributes.expect_exit.value().copied().unwrap_or(0);
    let said = &node.attributes;
    let commands: Vec<Spanned<String>> = if node.kind.value == Kind::Task {
        node.contracts.iter().filter(|own| !own.is_none()).map(|own| own.command.clone()).collect()
    } else if node.kind.value == Kind::Call {
        said.tool_command.text().cloned().into_iter().collect()
    } else if node.kind.value == Kind::Decision {
        said.command.text().cloned().into_iter().collect()
    } else {
        return None;
    };
    // The exit code of the last one decides, so a file is looked for before the contracts that may expect another.
    let checked = checked_file(node).filter(|_| node.kind.value == Kind::Task);
    let commands: Vec<(Spanned<String>, u8)> = checked
        .map(|command| (command, 0))
        .into_iter()
        .chain(commands.into_iter().map(|command| (command, expected)))
        .collect();
    let spans = commands.iter().map(|(command, _)| command.span);
    let scripts: Vec<Expecting<'_>> =
        commands.iter().map(|(command, expected)| (command.value.trim(), *expected)).collect();
    Some(ContractTree {
        command: joined(&scripts),
        line_starts: line_starts(source, &commands),
        span: spans.reduce(Span::to)?,
        fence: commands.first()?.0.span,
        exit_code: node.attributes.expect_exit.spanned(),
    })
}

/// Returns where each line of the joined scripts stands in the text; nothing where it is written in another form there.
fn line_starts(source: &Source, commands: &[(Spanned<String>, u8)]) -> Vec<usize> {
    let mut line_starts = Vec::new();
    for (at, (command, _)) in commands.iter().enumerate() {
        let (place, is_verbatim) = inner_place(source, command);
        if !is_verbatim {
            return Vec::new();
        }
        let script = command.value.trim();
        let start = place.start + command.value.len() - command.value.trim_start().len();
        let breaks = script.match_indices('\n').map(|(at, _)| start + at + 1);
        let own = std::iter::once(start).chain(breaks);
        if commands.len() == 1 {
            line_starts.extend(own);
        } else {
            // The lines around it are those of its subshell.
            let after = if at + 1 < commands.len() { 2 } else { 1 };
            line_starts.push(start);
            line_starts.extend(own);
            line_starts.extend(std::iter::repeat_n(start + script.len(), after));
        }
    }
    line_starts
}

// H-28: makes of a library's condition on a file one that a contract can check.
fn checked_file(node: &NodeTree) -> Option<Spanned<String>> {
    let is_asked = node.attributes.verify_type.is(&VerifyType::FileExists);
    let path = node.attributes.verify_value.text().filter(|_| is_asked)?;
    Some(Spanned::new(format!("test -e {}", shell_quoted(&path.value)), path.span))
}
