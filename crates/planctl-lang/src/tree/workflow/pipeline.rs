//! DOT → tree: shapes and types become kinds of nodes (S1–S13), attributes what is said, conditions are read.

use std::collections::BTreeMap;

use planctl_engine::On;
use planctl_engine::condition::{Clause, Condition, Key, Test};

use super::tool_calls::with_command;
use super::tree::{EdgeTree, Kind, NamedContract, NodeTree, Workflow};
use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::syntax::condition;
use crate::syntax::dot::{EdgeAttributes, Pipeline, PipelineEdge, PipelineNode};
use crate::syntax::source::Source;
use crate::text::near::ask_or_say;
use crate::text::{Span, Spanned, escape};

/// The shapes that mean something, and what (section 1.3).
pub(super) const SHAPES: [(&str, Kind); 9] = [
    ("Mdiamond", Kind::Start),
    ("Msquare", Kind::Exit),
    ("box", Kind::Task),
    ("hexagon", Kind::Human),
    ("diamond", Kind::Decision),
    ("component", Kind::Fork),
    ("tripleoctagon", Kind::Join),
    ("parallelogram", Kind::Call),
    ("house", Kind::SubPlan),
];

/// Makes the tree of a pipeline.
pub(super) fn workflow(source: &Source, pipeline: &Pipeline, found: &mut Vec<Diagnostic>) -> Workflow {
    let mut workflow = Workflow {
        name: pipeline.name.clone(),
        title: pipeline.graph.label.raw().cloned(),
        attributes: pipeline.graph.clone(),
        ..Workflow::default()
    };
    workflow.nodes = pipeline.nodes.iter().map(|node| tree_of(source, node, found)).collect();
    workflow.nodes.iter_mut().for_each(|node| with_command(node, found));
    let mut read: BTreeMap<Span, Option<condition::Reading>> = BTreeMap::new();
    for edge in &pipeline.edges {
        workflow.edges.push(edge_of(source, edge, &mut read, found));
    }
    let start = workflow.nodes.iter().find(|node| node.kind.value == Kind::Start);
    workflow.start = start.map(|node| node.id.clone());
    workflow.carry_outcomes();
    workflow
}

fn tree_of(source: &Source, node: &PipelineNode, found: &mut Vec<Diagnostic>) -> NodeTree {
    let kind = kind(node, found);
    if kind.value == Kind::Decision {
        idle(source, node, found);
    }
    let mut tree = NodeTree::new(node.name.clone(), node.span, kind);
    tree.attributes = node.attributes();
    tree.classes.clone_from(&node.classes);
    let unnamed = tree.attributes.contract.text().map(|command| (None, command));
    let named = node.contracts.iter().map(|(name, command)| (Some(name.clone()), command));
    let contracts = unnamed.into_iter().chain(named).filter(|(_, command)| !command.value.trim().is_empty());
    tree.contracts =
        contracts.map(|(name, command)| NamedContract { name, command: command.clone() }).collect();
    tree
}

// Attributes about how work is done, and how often, have no effect where no work is: a decision routes what came in, or what
// its command says (DOT B7). Defaults are meant for other nodes.
fn idle(source: &Source, node: &PipelineNode, found: &mut Vec<Diagnostic>) {
    let own = &node.own;
    let of_work = [
        own.contract.named(),
        own.llm_model.named(),
        own.llm_provider.named(),
        own.reasoning_effort.named(),
        own.profile.named(),
        own.max_retries.named(),
        own.retry_policy.named(),
    ];
    for (key, value) in of_work.into_iter().flatten() {
        let name = source.slice(key).trim_matches('"');
        let message = format!("`{name}` of the decision `{}` has no effect", escape(&node.name.value));
        let finding = Diagnostic::new(Code::P321, message).at(key.to(value.span), "nobody works here");
        found.push(finding.help(
            "with a `prompt` the node is work: an agent does it, its `contract` decides, and the edges route that; \
             `command=\"COMMAND\"` lets a command decide without an agent",
        ));
    }
}

// S9: a known type, then the shape, then the name, then work for an agent.
fn kind(node: &PipelineNode, found: &mut Vec<Diagnostic>) -> Spanned<Kind> {
    if let Some(word) = node.text(|said| &said.type_name).filter(|word| !word.value.is_empty()) {
        match Kind::from_word(&word.value) {
            Some(kind) => return Spanned::new(refined(node, kind), word.span),
            None => unknown_type(word, found),
        }
    }
    let own = node.own.shape.raw();
    let default = || node.text(|said| &said.shape);
    let by_name = match node.name.value.as_str() {
        "start" | "Start" => Some(Kind::Start),
        "exit" | "Exit" | "end" | "End" => Some(Kind::Exit),
        _ => None,
    };
    // The first pipelines of the dialect draw their starts as circles: a name tells more than a shape without a meaning.
    let own = own.filter(|shape| by_name.is_none() || known_shape(&shape.value).is_some());
    match (own, by_name) {
        (None, Some(kind)) => Spanned::new(kind, node.name.span),
        (own, _) => match own.or_else(default) {
            Some(shape) => Spanned::new(refined(node, shape_kind(shape, found)), shape.span),
            None => Spanned::new(refined(node, Kind::Task), node.name.span),
        },
    }
}

fn known_shape(shape: &str) -> Option<Kind> {
    SHAPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(shape)).map(|(_, kind)| *kind)
}

fn shape_kind(shape: &Spanned<String>, found: &mut Vec<Diagnostic>) -> Kind {
    if let Some(kind) = known_shape(&shape.value) {
        return kind;
    }
    let near = did_you_mean(&shape.value, SHAPES.map(|(name, _)| name));
    let message =
        format!("the shape `{}` has no meaning, so the node is work for an agent", escape(&shape.value));
    let finding = Diagnostic::new(Code::P314, message).at(shape.span, "taken for `box`");
    let shapes = format!("the shapes are {}", SHAPES.map(|(name, _)| name).join(", "));
    found.push(finding.help(ask_or_say(near, shapes)));
    Kind::Task
}

fn unknown_type(value: &Spanned<String>, found: &mut Vec<Diagnostic>) {
    let words = Kind::words();
    let message = format!("`{}` is not a known type of node", escape(&value.value));
    let finding = Diagnostic::new(Code::P314, message).at(value.span, "the shape decides");
    let types = format!("the types are {}", words.join(", "));
    found.push(finding.help(ask_or_say(did_you_mean(&value.value, words), types)));
}

// Section 2.4: a hexagon that escalates, a node that only records the state; a diamond that works.
fn refined(node: &PipelineNode, kind: Kind) -> Kind {
    let own = &node.own;
    if kind == Kind::Human && own.escalate.is_said() {
        Kind::Escalate
    } else if kind == Kind::Decision && own.prompt.is_said() && !own.command.is_said() {
        // B7: somebody is told what to do, so it is work, and its contract's verdict is what the edges route.
        Kind::Task
    } else if kind == Kind::Task && own.checkpoint.is(&true) {
        Kind::Checkpoint
    } else {
        kind
    }
}

fn edge_of(
    source: &Source,
    edge: &PipelineEdge,
    read: &mut BTreeMap<Span, Option<condition::Reading>>,
    found: &mut Vec<Diagnostic>,
) -> EdgeTree {
    let EdgeAttributes { label, condition, on, .. } = edge.attributes.as_ref();
    let condition = condition.text();
    let mut tree = EdgeTree::new(
        edge.from.clone(),
        edge.to.clone(),
        edge.span,
        Spanned::new(if condition.is_some() { On::Always } else { On::Success }, edge.span),
    );
    tree.on = on.spanned().unwrap_or(tree.on);
    if let Some(value) = condition {
        // One condition may be that of many edges; it is read once.
        let reading = read.entry(value.span).or_insert_with(|| read_condition(source, value, found));
        let mut condition = reading.as_ref().map(|reading| reading.condition.clone()).unwrap_or_default();
        if on.raw().is_some() {
            condition = without_outcome(condition, tree.on.value);
        }
        say_condition(&mut tree, Spanned::new(condition, value.span));
    }
    tree.label = label.raw().filter(|label| !label.value.is_empty()).cloned();
    tree.say(&edge.attributes);
    tree
}

/// Returns the word of a graph's edge condition.
pub(crate) fn on_named(word: &str) -> Option<On> {
    match word.strip_prefix("on_").unwrap_or(word) {
        "success" => Some(On::Success),
        "fail" => Some(On::Fail),
        "retry" => Some(On::Retry),
        "exhaust" => Some(On::Exhaust),
        "always" => Some(On::Always),
        _ => None,
    }
}

/// Returns the clauses that other readers need, where planctl has a word of its own (section 2.4).
pub(super) fn outcome_clauses(on: On) -> Vec<Clause> {
    let outcome = |word: &str| Clause { key: Key::Outcome, test: Test::Is(word.to_owned()) };
    let remaining =
        Clause { key: Key::Context("retry.remaining".to_owned()), test: Test::IsNot("0".to_owned()) };
    match on {
        On::Success => vec![outcome("success")],
        On::Fail | On::Exhaust => vec![outcome("fail")],
        On::Retry => vec![remaining, outcome("fail")],
        On::Always => Vec::new(),
    }
}

fn without_outcome(mut condition: Condition, on: On) -> Condition {
    let implied = outcome_clauses(on);
    if condition.clauses.starts_with(&implied) {
        condition.clauses.drain(..implied.len());
    }
    condition
}

/// Notes the condition of an edge. One that asks for a failure with attempts left is for `retry` (section 2.4, B2).
pub(crate) fn say_condition(edge: &mut EdgeTree, mut condition: Spanned<Condition>) {
    if edge.on.value == On::Always
        && let Some(rest) = of_retry(&condition.value)
    {
        edge.on = Spanned::new(On::Retry, condition.span);
        condition.value = rest;
    }
    edge.condition = (!condition.value.is_always()).then_some(condition);
}

fn of_retry(condition: &Condition) -> Option<Condition> {
    let retry = [Clause { key: Key::Outcome, test: Test::Is("retry".to_owned()) }];
    let forms = [outcome_clauses(On::Retry), retry.to_vec()];
    let says = |form: &Vec<Clause>| form.iter().all(|clause| condition.clauses.contains(clause));
    let implied = forms.into_iter().find(says)?;
    let rest = condition.clauses.iter().filter(|clause| !implied.contains(clause));
    Some(Condition { clauses: rest.cloned().collect() })
}

/// Reads a condition that stands somewhere as a text.
pub(crate) fn read_condition(
    source: &Source,
    value: &Spanned<String>,
    found: &mut Vec<Diagnostic>,
) -> Option<condition::Reading> {
    let read = condition::read(&value.value);
    judge_condition(source, value, &read, found);
    read.ok()
}

/// Reports what is wrong with a condition that was read.
pub(super) fn judge_condition(
    source: &Source,
    value: &Spanned<String>,
    read: &condition::Read,
    found: &mut Vec<Diagnostic>,
) {
    let (place, is_exact) = inner_place(source, value);
    match read {
        Ok(reading) => {
            if let Some(sign) = reading.double_signs.first().filter(|_| is_exact) {
                let span = Span::new(place.start + sign.start, place.start + sign.end);
                let drift = Diagnostic::new(Code::P005, "conditions compare with `=`").at(span, "");
                found.push(drift.level(Severity::Warning).fix(span, "=", true));
            }
        }
        Err(refused) => found.push(refused.clone().finding(place, is_exact)),
    }
}

// Where a text stands without its quotes, and whether its bytes are those of the file: escapes move what follows.
pub(super) fn inner_place(source: &Source, value: &Spanned<String>) -> (Span, bool) {
    let written = source.slice(value.span);
    if written == value.value {
        return (value.span, true);
    }
    let inner = Span::new(value.span.start + 1, value.span.end.saturating_sub(1));
    if source.slice(inner) == value.value { (inner, true) } else { (value.span, false) }
}
