//! Markdown → graph: steps in their order, `**needs:**`, `**when:**`, `**type:**` and the lines of `## Flow` (DESIGN 3).

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;
use planctl_engine::condition::Key;

use super::needs::sound_needs;
use super::pipeline::{judge_condition, on_named, read_condition, say_condition};
use super::tree::{EdgeTree, Kind, NodeTree, Origin, Workflow};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::condition;
use crate::syntax::source::Source;
use crate::syntax::written::{ExitResult, Written};
use crate::text::limits::EDGES_MAX;
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};
use crate::tree::{PlanTree, StepTree};

const START: &str = "start";
const DONE: &str = "done";
const FAILED: &str = "failed";

/// Makes the graph of a plan; templates of steps are no part of it.
pub(crate) fn workflow(source: &Source, tree: &PlanTree, found: &mut Vec<Diagnostic>) -> Workflow {
    let top = tree.head.title.as_ref().map_or(Span::at(0), |title| title.span);
    let (nodes, templates) = nodes(source, tree, found);
    let library = tree.frontmatter.library.clone();
    let mut workflow = Workflow { library, templates, ..tree.head.clone() };
    workflow.start = Some(Spanned::new(START.to_owned(), top));
    // Of a plan in markdown every way that is open is taken, as far as `**parallel:**` allows.
    workflow.attributes.parallel_edges = Written::of(Spanned::new(true, top));
    let implied = |name: &str, kind: Kind, span: Span| NodeTree {
        origin: Origin::Order,
        ..NodeTree::new(Spanned::new(name.to_owned(), span), span, Spanned::new(kind, span))
    };
    workflow.nodes.push(implied(START, Kind::Start, top));
    workflow.nodes.extend(nodes);
    let end = Span::at(source.text().len());
    workflow.nodes.push(implied(DONE, Kind::Exit, end));
    workflow.edges = edges(source, tree, found);
    workflow.carry_outcomes();
    if workflow.edges.iter().any(|edge| edge.to.value == FAILED) {
        let mut failed = implied(FAILED, Kind::Exit, end);
        failed.attributes.result = Written::of(Spanned::new(ExitResult::Failed, end));
        workflow.nodes.push(failed);
    }
    workflow
}

/// Returns the nodes of a plan's steps, in their order, and apart from these those of its templates.
pub(crate) fn nodes(
    source: &Source,
    tree: &PlanTree,
    found: &mut Vec<Diagnostic>,
) -> (Vec<NodeTree>, Vec<NodeTree>) {
    let nodes = tree.steps.iter().map(|step| step.node.clone());
    let (nodes, templates): (Vec<NodeTree>, Vec<NodeTree>) = nodes.partition(|node| node.number.is_some());
    // The steps that a template becomes say their conditions anew.
    for when in nodes.iter().map(|node| &node.attributes.when) {
        if let (Some(text), Some(read)) = (when.text(), when.value()) {
            judge_condition(source, text, read, found);
        }
    }
    (nodes, templates)
}

// Returns the edges of the prose, and for every step that it does not lead on from, edges to the steps that need it and to
// the step after it. The prose adds ways; it takes away only the one that would else lead on from where it says another.
fn edges(source: &Source, tree: &PlanTree, found: &mut Vec<Diagnostic>) -> Vec<EdgeTree> {
    let templates = tree.steps.iter().filter(|step| step.node.number.is_none());
    let templates: BTreeSet<&str> = templates.map(|step| step.node.id.value.as_str()).collect();
    let is_template = |end: &Spanned<String>| templates.contains(end.value.as_str());
    let mut said = flow_edges(source, tree, found);
    // Where these lead is known once the templates are numbered steps.
    said.retain(|edge| !is_template(&edge.from) && !is_template(&edge.to));
    // A step that escalates is entered by the prose only, and a person's answer says where it leads.
    let is_in_order = |step: &&StepTree| step.node.number.is_some() && step.node.kind.value != Kind::Escalate;
    let steps: Vec<&StepTree> = tree.steps.iter().filter(is_in_order).collect();
    // A condition may not hold, and then the next step follows; a decision of which the prose tells says all of its ways there.
    let decisions: BTreeSet<String> = tree
        .steps
        .iter()
        .filter(|step| step.node.kind.value == Kind::Decision)
        .map(|step| step.node.id.value.clone())
        .collect();
    let leads_on: BTreeSet<String> = said
        .iter()
        .filter(|edge| {
            let leads_onward = matches!(edge.on.value, On::Success | On::Always) && edge.is_plain();
            leads_onward || decisions.contains(&edge.from.value)
        })
        .map(|edge| edge.from.value.clone())
        .collect();
    let needs = sound_needs(tree, &steps, |step| leads_on.contains(&step.node.id.value), found);
    let mut needed: BTreeMap<String, Vec<Spanned<String>>> = BTreeMap::new();
    let mut edges = Vec::new();
    let begin =
        Spanned::new(START.to_owned(), tree.head.title.as_ref().map_or(Span::at(0), |title| title.span));
    let to = |step: &StepTree| step.node.id.clone();
    let said_needs = |step: &StepTree| step.node.attributes.needs.raw().map(|needs| needs.span);
    for (at, step) in steps.iter().enumerate() {
        let place = said_needs(step).unwrap_or(step.node.id.span);
        match &needs[at] {
            Some(needs) if needs.is_empty() => edges.push(success(&begin, &to(step), Origin::Needs)),
            Some(needs) => {
                for number in needs {
                    let target = Spanned::new(to(step).value, place);
                    needed.entry(number.to_string()).or_default().push(target);
                }
            }
            None if at == 0 && !leads_on.contains(START) => {
                edges.push(success(&begin, &to(step), Origin::Order));
            }
            None => {}
        }
    }
    let done = Spanned::new(DONE.to_owned(), Span::at(source.text().len()));
    for (at, step) in steps.iter().enumerate() {
        let from = to(step);
        let own = needed.remove(&from.value).unwrap_or_default();
        let has_dependents = !own.is_empty();
        edges.extend(own.into_iter().map(|target| success(&from, &target, Origin::Needs)));
        if leads_on.contains(&from.value) {
            continue;
        }
        match steps.get(at + 1) {
            Some(next) if said_needs(next).is_none() => edges.push(success(&from, &to(next), Origin::Order)),
            Some(_) | None if has_dependents => {}
            Some(_) | None => edges.push(success(&from, &done, Origin::Order)),
        }
    }
    // The rest are needs of a step that escalates.
    for (number, targets) in needed {
        for target in targets {
            let from = Spanned::new(number.clone(), target.span);
            edges.push(success(&from, &target, Origin::Needs));
        }
    }
    edges.extend(said);
    edges
}

/// The most steps that an end of a line of `## Flow` may name.
const ENDS_MAX: usize = 100;

fn success(from: &Spanned<String>, to: &Spanned<String>, origin: Origin) -> EdgeTree {
    let on = Spanned::new(On::Success, to.span);
    EdgeTree { origin, ..EdgeTree::new(from.clone(), to.clone(), to.span, on) }
}

/// The content of a line of `## Flow`; nothing where it can't be read.
#[derive(Default)]
struct FlowLine {
    edges: Vec<EdgeTree>,
    condition: Option<Spanned<condition::Reading>>,
}

// `- 2, 3 -> 4 "Not yet" on fail if steps.4.exit_code != 2`
fn flow_line(
    source: &Source,
    tree: &PlanTree,
    line: &Spanned<String>,
    found: &mut Vec<Diagnostic>,
) -> FlowLine {
    let (text, label) = match without_label(source.slice(line.span), line.span.start) {
        Ok(parts) => parts,
        Err(why) => {
            found.push(unread(line.span, why));
            return FlowLine::default();
        }
    };
    let text = text.as_str();
    let start = line.span.start;
    let part = |from: usize, to: usize| {
        let piece = &text[from..to];
        let lead = piece.len() - piece.trim_start().len();
        let span = Span::new(start + from + lead, start + from + lead + piece.trim().len());
        Spanned::new(piece.trim().to_owned(), span)
    };
    let inner = text.trim_start();
    let bullet = inner.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(char::is_whitespace));
    let body = text.len() - bullet.unwrap_or(inner).len();
    let Some((arrow, length)) =
        ["->", "→", "=>"].iter().filter_map(|sign| Some((text[body..].find(sign)? + body, sign.len()))).min()
    else {
        found.push(unread(line.span, "the line has no `->`"));
        return FlowLine::default();
    };
    let rest = arrow + length;
    let condition_at = word_at(text, rest, "if");
    let on_at = word_at(text, rest, "on").filter(|at| condition_at.is_none_or(|condition| *at < condition));
    let ends = on_at.or(condition_at).unwrap_or(text.len());
    let mut on = Spanned::new(On::Success, line.span);
    if let Some(at) = on_at {
        let word = part(at + 2, condition_at.unwrap_or(text.len()));
        let Some(known) = outcome(&word, found) else { return FlowLine::default() };
        on = Spanned::new(known, word.span);
    }
    let mut condition = None;
    if let Some(at) = condition_at {
        let said = part(at + 2, text.len());
        if said.value.is_empty() {
            found.push(unread(line.span, "nothing follows `if`"));
            return FlowLine::default();
        }
        if on_at.is_none() && on_named(&said.value.to_ascii_lowercase()).is_some() {
            found.push(outcome_behind_if(&said, Span::new(start + at, said.span.end)));
            return FlowLine::default();
        }
        let Some(reading) = read_condition(source, &said, found) else { return FlowLine::default() };
        condition = Some(Spanned::new(reading, said.span));
        if on_at.is_none() {
            on = Spanned::new(On::Always, line.span);
        }
    }
    let (Some(from), Some(to)) =
        (names(source, tree, part(body, arrow), found), names(source, tree, part(rest, ends), found))
    else {
        return FlowLine::default();
    };
    if let Some(label) = label.as_ref().filter(|_| to.len() > 1) {
        found.push(unread(label.span, "a label names one edge, and the line leads to several steps"));
        return FlowLine::default();
    }
    let mut edges = Vec::new();
    for from in &from {
        for to in &to {
            let mut edge = EdgeTree::new(from.clone(), to.clone(), line.span, on.clone());
            edge.label.clone_from(&label);
            if let Some(condition) = &condition {
                say_condition(&mut edge, Spanned::new(condition.value.condition.clone(), condition.span));
            }
            edges.push(edge);
        }
    }
    FlowLine { edges, condition }
}

// Reads the word behind `on`.
fn outcome(word: &Spanned<String>, found: &mut Vec<Diagnostic>) -> Option<On> {
    let known = on_named(&word.value.to_ascii_lowercase());
    if known.is_none() {
        let words = ["success", "fail", "retry", "exhaust", "always"];
        let message = format!("`{}` is not an outcome", escape(&word.value));
        let refused = Diagnostic::new(Code::P303, message).at(word.span, "");
        let otherwise = format!("the outcomes are {}", words.join(", "));
        found.push(refused.near(nearest(&word.value, words), word.span, str::to_owned, otherwise));
    }
    known
}

// `if fail` would look for a value with that name.
fn outcome_behind_if(said: &Spanned<String>, whole: Span) -> Diagnostic {
    let message = format!("`if {}` asks for a value of that name, not for an outcome", escape(&said.value));
    let written = format!("on {}", said.value.to_ascii_lowercase());
    let refused = Diagnostic::new(Code::P303, message).at(whole, "");
    refused.help(format!("did you mean `{written}`?")).fix(whole, written, true)
}

// Returns a line with blanks in place of its label, and the label. Quotes after `if` are those of the condition.
fn without_label(line: &str, start: usize) -> Result<(String, Option<Spanned<String>>), &'static str> {
    let end = word_at(line, 0, "if").unwrap_or(line.len());
    let Some(open) = line.find('"').filter(|open| *open < end) else { return Ok((line.to_owned(), None)) };
    let mut label = String::new();
    let mut letters = line[open + 1..].char_indices();
    let close = loop {
        match letters.next() {
            Some((at, '"')) => break open + 1 + at,
            Some((_, '\\')) => label.extend(letters.next().map(|(_, letter)| letter)),
            Some((_, letter)) => label.push(letter),
            None => return Err("the label has no closing quote"),
        }
    };
    let label = label.trim().to_owned();
    if label.is_empty() {
        return Err("the label is empty");
    }
    let mut text = line.to_owned();
    text.replace_range(open..=close, &" ".repeat(close + 1 - open));
    Ok((text, Some(Spanned::new(label, Span::new(start + open, start + close + 1)))))
}

// The ends of a line: numbers of steps or templates of several, and the words for where a run begins and ends.
fn names(
    source: &Source,
    tree: &PlanTree,
    ends: Spanned<String>,
    found: &mut Vec<Diagnostic>,
) -> Option<Vec<Spanned<String>>> {
    let mut names = Vec::new();
    let mut at = ends.span.start;
    for piece in source.slice(ends.span).split(',') {
        let lead = piece.len() - piece.trim_start().len();
        let span = Span::new(at + lead, at + lead + piece.trim().len());
        at += piece.len() + 1;
        let word =
            piece.trim().trim_start_matches('#').trim_start_matches("step ").trim().to_ascii_lowercase();
        let name = match word.as_str() {
            "start" | "begin" => START.to_owned(),
            "done" | "exit" | "end" => DONE.to_owned(),
            "failed" | "fail" | "abort" => FAILED.to_owned(),
            number
                if !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) && number.len() < 8 =>
            {
                let number = number.trim_start_matches('0');
                if number.is_empty() { "0".to_owned() } else { number.to_owned() }
            }
            template => match tree.template_named(template) {
                Some(step) => step.node.id.value.clone(),
                None => {
                    let span = if span.is_empty() { ends.span } else { span };
                    found.push(unread(span, "a step's number was expected"));
                    return None;
                }
            },
        };
        names.push(Spanned::new(name, span));
        if names.len() > ENDS_MAX {
            found.push(unread(ends.span, "the line names too many steps"));
            return None;
        }
    }
    Some(names)
}

/// A step that ways or conditions of a plan name by its number, or a template of several.
pub(crate) struct Mention {
    /// The number as it is written.
    pub(crate) span: Span,
    /// The name of its step: a number, or a template as its heading has it.
    pub(crate) name: String,
    /// Says that it is an end of a line of `## Flow`, where several may stand.
    pub(crate) is_end: bool,
}

/// Returns what the lines of `## Flow` and the conditions of steps name, in the order of the text.
pub(crate) fn mentions(source: &Source, tree: &PlanTree) -> Vec<Mention> {
    let mut names: BTreeMap<Span, (String, bool)> = BTreeMap::new();
    let conditions = tree.steps.iter().filter_map(|step| step.node.attributes.when.condition());
    conditions.for_each(|when| names.extend(mentioned(&when)));
    // An edge that can't be read is left to the verification of the plan.
    for line in flow(source, tree, &mut Vec::new()) {
        let ends = line.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let steps = ends.filter(|end| ![START, DONE, FAILED].contains(&end.value.as_str()));
        names.extend(steps.map(|end| (end.span, (end.value.clone(), true))));
        names.extend(line.condition.iter().flat_map(mentioned));
    }
    names.into_iter().map(|(span, (name, is_end))| Mention { span, name, is_end }).collect()
}

fn mentioned(reading: &Spanned<condition::Reading>) -> Vec<(Span, (String, bool))> {
    const STEPS: &str = "steps.";
    let clauses = reading.value.condition.clauses.iter().zip(&reading.value.clauses);
    let named = clauses.filter_map(|(clause, written)| {
        let Key::Step { node, .. } = &clause.key else { return None };
        let start = reading.span.start + written.start + STEPS.len();
        node.parse::<u32>().is_ok().then(|| (Span::new(start, start + node.len()), (node.clone(), false)))
    });
    named.collect()
}

/// Returns the ways that the lines of `## Flow` say.
pub(crate) fn flow_edges(source: &Source, tree: &PlanTree, found: &mut Vec<Diagnostic>) -> Vec<EdgeTree> {
    flow(source, tree, found).into_iter().flat_map(|line| line.edges).collect()
}

// Reads the lines of `## Flow`, as many as a plan may have edges.
fn flow(source: &Source, tree: &PlanTree, found: &mut Vec<Diagnostic>) -> Vec<FlowLine> {
    let mut lines = Vec::new();
    let mut edges = 0;
    for line in tree.flow.iter().flat_map(|flow| &flow.value) {
        if edges >= EDGES_MAX {
            let message = format!("the plan has more than {EDGES_MAX} edges");
            found.push(Diagnostic::new(Code::P008, message).at(line.span, "the first that is too many"));
            break;
        }
        let read = flow_line(source, tree, line, found);
        edges += read.edges.len();
        lines.push(read);
    }
    lines
}

fn unread(span: Span, why: &str) -> Diagnostic {
    let message = format!("the line of `## Flow` can't be read: {why}");
    let help = "write `- 2 -> 4 on fail`, `- 4 -> 2 on fail if steps.4.exit_code != 2`, `- 3 -> 5, 6`, `- 4 -> 5 \"Keep the names\"`, or `- 5 -> done`";
    Diagnostic::new(Code::P015, message).at(span, "").help(help)
}

// A word that stands alone, from a place on.
fn word_at(text: &str, from: usize, word: &str) -> Option<usize> {
    let is_edge = |c: Option<char>| c.is_none_or(char::is_whitespace);
    text[from..].match_indices(word).map(|(at, _)| from + at).find(|at| {
        is_edge(text[..*at].chars().next_back()) && is_edge(text[at + word.len()..].chars().next())
    })
}
