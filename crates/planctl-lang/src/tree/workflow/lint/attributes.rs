//! Findings about attributes: those that are missing, that clash, or that have no effect.

use std::collections::BTreeMap;

use planctl_engine::On;
use planctl_engine::condition::{Clause, Key, Test};

use super::super::sub_plans;
use super::super::tree::{EdgeTree, Kind, NodeTree, Workflow};
use super::{OF_A_KIND_MAX, Shape};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::Language;
use crate::text::{Spanned, escape};

/// The most goal gates for which it is asked whether a path leads past them.
const GATES_MAX: usize = 100;

// Finds the attributes that a node of its kind lacks, and those that have no effect there.
pub(super) fn attributes(
    workflow: &Workflow,
    node: &NodeTree,
    language: Language,
    found: &mut Vec<Diagnostic>,
) {
    let name = escape(&node.id.value);
    match node.kind.value {
        Kind::Task => task_attributes(node, language, found),
        Kind::Call if !node.attributes.tool_command.is_said() => {
            let help = match language {
                Language::Dot => "write `tool_command=\"COMMAND\"`",
                Language::Json => "write `\"tool_command\": \"COMMAND\"`",
            };
            found.push(lacks(node, "command to call", help));
        }
        Kind::SubPlan => sub_plan_attributes(workflow, node, language, found),
        // The reader of JSON says it of the form in which both are required.
        Kind::Escalate if language == Language::Dot => escalation_attributes(node, found),
        Kind::Start => {
            // In DOT a contract may be the default of all nodes (`node [contract=none]`).
            let is_own = language == Language::Json;
            let contracts = node.contracts.iter().filter(|_| is_own).map(|contract| &contract.command);
            for said in node.attributes.prompt.text().into_iter().chain(contracts) {
                let message = format!("nobody works at the start `{name}`, so its action has no effect");
                let finding = Diagnostic::new(Code::P314, message).at(said.span, "never done");
                found.push(finding.help("move it to a task that the start leads to"));
            }
        }
        Kind::Join => {
            if let Some(prompt) = node.attributes.prompt.text() {
                let message = format!("nobody works at the join `{name}`, so its prompt has no effect");
                let finding = Diagnostic::new(Code::P314, message).at(prompt.span, "");
                found
                    .push(finding.help("let a task after it judge the branches, with a contract of its own"));
            }
        }
        Kind::Human => question_attributes(workflow, node, language, found),
        Kind::Escalate | Kind::Decision | Kind::Call | Kind::Checkpoint | Kind::Fork | Kind::Exit => {}
    }
    if let (Some(policy), Some(retries)) =
        (node.attributes.on_fail.text(), node.attributes.max_retries.text())
        && policy.value.contains("retry")
    {
        let message = format!("`on_fail` and `max_retries` of `{name}` both say how often");
        let clash = Diagnostic::new(Code::P009, message)
            .level(Severity::Warning)
            .at(retries.span, "this has no effect");
        found.push(clash.at(policy.span, "this counts").help("keep one of them"));
    }
}

fn lacks(node: &NodeTree, what: &str, help: &str) -> Diagnostic {
    let message = format!("node `{}` has no {what}", escape(&node.id.value));
    Diagnostic::new(Code::P009, message).at(node.id.span, "").help(help)
}

fn task_attributes(node: &NodeTree, language: Language, found: &mut Vec<Diagnostic>) {
    let is_checked = node.attributes.verify_type.is_said() || node.attributes.judge.is_said();
    if node.contracts.is_empty() && !is_checked {
        let name = escape(&node.id.value);
        let message = format!("node `{name}` has no contract, so nothing could say that its work is done");
        let finding = Diagnostic::new(Code::P010, message).at(node.id.span, "");
        found.push(match language {
            Language::Dot => finding
                .help("write `contract=\"COMMAND\"`, whose exit code decides; `contract=none` asks a person")
                .fix_all_with(
                    "`node [contract=none]` before the first node lets a person confirm each of them",
                ),
            Language::Json => finding.help(
                "write `\"contract\": \"COMMAND\"`, whose exit code decides; `\"contract\": \"none\"` asks a person",
            ),
        });
    }
    // A8: the label is the prompt where there is none.
    if !node.attributes.prompt.is_said() && !node.attributes.label.is_said() {
        let help =
            "write what is to be done into `prompt`; until then its name is all that the worker is told";
        found.push(lacks(node, "prompt", help).level(Severity::Warning));
    }
}

fn sub_plan_attributes(
    workflow: &Workflow,
    node: &NodeTree,
    language: Language,
    found: &mut Vec<Diagnostic>,
) {
    if sub_plans::file(workflow, node).is_none() {
        // Some readers of the dialect have these two shapes the other way round.
        let help = match (language, node.attributes.shape.text()) {
            (Language::Json, _) => "write `\"stack.child_dotfile\": \"FILE\"`",
            (Language::Dot, Some(said)) if said.value == "house" => {
                "write `stack.child_dotfile=\"FILE\"`; a question for a person is `shape=hexagon`"
            }
            (Language::Dot, _) => "write `stack.child_dotfile=\"FILE\"`",
        };
        found.push(lacks(node, "plan to run", help));
    }
    if let Some(Spanned { value: Err(refused), span }) = node.attributes.stop_condition.spanned() {
        found.push(refused.finding(span, false));
    }
}

// The usual answer of a question counts after a time. It never does where the ask is over before.
fn question_attributes(
    workflow: &Workflow,
    node: &NodeTree,
    language: Language,
    found: &mut Vec<Diagnostic>,
) {
    let Some(timeout) = node.attributes.timeout.spanned() else { return };
    let Some(choice) = node.attributes.default_choice.text() else {
        // In DOT a time may be the default of all nodes (`node [timeout=15m]`), and work has another use for it.
        let is_own = node.span.contains(timeout.span);
        if is_own {
            let name = escape(&node.id.value);
            let message = format!(
                "the question `{name}` waits for ever: nothing says which answer counts after its timeout"
            );
            let finding = Diagnostic::new(Code::P314, message).at(timeout.span, "has no effect");
            found.push(finding.help(format!(
                "write {}, an option, beside it; or have the ask end by `ask_deadline`",
                language.attribute("human.default_choice", "OPTION")
            )));
        }
        return;
    };
    let deadline =
        node.attributes.ask_deadline.spanned().or_else(|| workflow.attributes.ask_deadline.spanned());
    let Some(deadline) = deadline else { return };
    if deadline.value.after > timeout.value {
        return;
    }
    let message = format!("the answer `{}` never counts: the ask is over before", escape(&choice.value));
    let finding = Diagnostic::new(Code::P314, message).at(timeout.span, "it would count after this");
    found.push(
        finding
            .at(deadline.span, "the ask ends here")
            .help("make `ask_deadline` longer than `timeout`, or take one of them out"),
    );
}

fn escalation_attributes(node: &NodeTree, found: &mut Vec<Diagnostic>) {
    if !node.attributes.escalate.is_said() {
        let help = "say what the person is to know: `escalate=\"REASON\"`, or `\"reason\"` in JSON";
        found.push(lacks(node, "reason", help).level(Severity::Warning));
    }
    if !node.attributes.pace_level.is_said() {
        let help = "write `pace_level=contingent`, or another of primary, alternate, contingent, emergency";
        found.push(lacks(node, "PACE level", help).level(Severity::Warning));
    }
}

// H1: of two options with one key, the key answers neither.
pub(super) fn keys(node: &NodeTree, out_edges: &[(usize, &EdgeTree)], found: &mut Vec<Diagnostic>) {
    let mut seen: BTreeMap<String, &Spanned<String>> = BTreeMap::new();
    for label in out_edges.iter().filter_map(|(_, edge)| edge.label.as_ref()) {
        let Some(key) = planctl_engine::key_of(&label.value) else { continue };
        match seen.get(&key) {
            Some(first)
                if planctl_engine::plain_label(&first.value) != planctl_engine::plain_label(&label.value) =>
            {
                let name = escape(&node.id.value);
                let message = format!("two options of the question `{name}` have the key `{}`", escape(&key));
                let finding = Diagnostic::new(Code::P320, message).at(label.span, "a second one");
                found.push(
                    finding
                        .at(first.span, "the first")
                        .help("give each option a key of its own; until then people answer with the words or the number"),
                );
            }
            Some(_) => {}
            None => drop(seen.insert(key, label)),
        }
    }
}

// B2, A2: edges for an outcome that their node never has.
pub(super) fn outcomes(workflow: &Workflow, language: Language, found: &mut Vec<Diagnostic>) {
    let places = workflow.places();
    for edge in &workflow.edges {
        let Some(node) = places.get(edge.from.value.as_str()).map(|at| &workflow.nodes[*at]) else {
            continue;
        };
        if !matches!(node.kind.value, Kind::Task | Kind::Call) {
            continue;
        }
        let name = escape(&node.id.value);
        if edge.on.value == On::Retry && !may_retry(workflow, node) {
            let message = format!("`{name}` is tried once, so nothing follows this edge for `retry`");
            let finding = Diagnostic::new(Code::P317, message).at(edge.on.span, "never followed");
            let retries = language.attribute("max_retries", "2");
            let last = match language {
                Language::Dot => "`outcome=fail`",
                Language::Json => "`on_fail`",
            };
            found.push(finding.help(format!(
                "write {retries} at `{name}` to have it followed after each failure but the last, or {last} for the edge \
                 after the last"
            )));
        }
        let lets_pass = node.attributes.allow_partial.is(&true);
        let clauses = edge.condition.as_ref().map_or(&[][..], |condition| &condition.value.clauses);
        let is_fail =
            |clause: &Clause| clause.key == Key::Outcome && clause.test == Test::Is("fail".to_owned());
        if lets_pass && edge.on.value == On::Always && clauses.iter().any(is_fail) {
            let span = edge.condition.as_ref().map_or(edge.span, |condition| condition.span);
            let message =
                format!("`{name}` has `allow_partial`, so its failure is `partial_success` and never `fail`");
            let finding = Diagnostic::new(Code::P317, message).at(span, "never followed");
            found.push(finding.help("write `outcome=partial_success`, or delete `allow_partial`"));
        }
        if found.len() > OF_A_KIND_MAX * 20 {
            return;
        }
    }
}

// R1, R2: the node's own number, else the graph's.
fn may_retry(workflow: &Workflow, node: &NodeTree) -> bool {
    let policy = node.attributes.on_fail.value().and_then(|policy| policy.retries);
    policy.or_else(|| Some(workflow.retries(node)?.value)).unwrap_or(0) > 0
}

// L4 and L6: a gate that nothing leads back from, or that a path leads past (ruling 4).
pub(super) fn gates(shape: &Shape<'_>, language: Language, found: &mut Vec<Diagnostic>) {
    let workflow = shape.workflow;
    let is_gate = |at: &usize| shape.node(*at).attributes.goal_gate.is(&true);
    let gates: Vec<usize> = (0..workflow.nodes.len()).filter(is_gate).take(GATES_MAX).collect();
    let exits: Vec<usize> = (0..workflow.nodes.len())
        .filter(|at| shape.node(*at).kind.value == Kind::Exit && !shape.node(*at).is_failed_exit())
        .collect();
    for at in gates {
        let node = shape.node(at);
        let name = escape(&node.id.value);
        if node.attributes.retry_targets().chain(workflow.attributes.retry_targets()).next().is_none() {
            let message = format!("nothing says where to go when the goal gate `{name}` is not met");
            let finding = Diagnostic::new(Code::P312, message).at(node.id.span, "the run fails then");
            let target = language.attribute("retry_target", "NODE");
            let finding = finding.help(format!("write {target} there or for the graph"));
            found.push(match language {
                Language::Dot => finding.fix_all_with("`graph [retry_target=NODE]`"),
                Language::Json => finding,
            });
        }
        let Some(entry) = shape.entry.filter(|entry| *entry != at) else { continue };
        if shape.leads_past(entry, at, &exits) {
            let message = format!("a path leads to the exit past the goal gate `{name}`");
            let finding = Diagnostic::new(Code::P312, message)
                .at(node.id.span, "a run that does not visit it can't succeed");
            found.push(finding.help("lead every path to the exit through it, or delete `goal_gate`"));
        }
    }
}
