//! Every condition of a graph with who asks it: those of edges, and `**when:**` of the steps of a plan in markdown.

use std::collections::BTreeSet;

use planctl_engine::condition::{Clause, Condition, Key, STATUS_WORDS, StepField, Test};

use super::lint::{OF_A_KIND_MAX, Shape};
use super::tree::Workflow;
use super::walks::reached;
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::dot::NodeAttributes;
use crate::syntax::written::Written;
use crate::text::near::{ask_or_say, nearest};
use crate::text::{Span, Spanned, escape};

/// A condition.
pub(super) struct Asked {
    condition: Condition,
    /// All of it, and each of its clauses where the text has them letter by letter.
    span: Span,
    clauses: Vec<Span>,
    /// The node whose edge or step asks.
    by: Option<usize>,
    /// Says that the node asks before it is entered, so that nothing is known of itself.
    is_before: bool,
}

impl Asked {
    /// Returns each clause with its place.
    pub(super) fn clauses(&self) -> impl Iterator<Item = (&Clause, Span)> {
        let place = |at: usize| self.clauses.get(at).copied().unwrap_or(self.span);
        self.condition.clauses.iter().enumerate().map(move |(at, clause)| (clause, place(at)))
    }

    /// Says that a clause asks for a step of a plan in markdown that can't have run before.
    pub(super) fn too_early(&self, shape: &Shape<'_>, clause: &Clause, span: Span) -> Option<Diagnostic> {
        let Key::Step { node: name, .. } = &clause.key else { return None };
        let by = self.by.filter(|_| shape.language.is_none())?;
        let other = *shape.places.get(name.as_str())?;
        let mut before = reached(shape.back.len(), [by], |at| shape.back[at].iter().copied());
        if (by == other && !self.is_before) || before.any(|before| before == other) {
            return None;
        }
        let (own, name) = (shape.named(shape.node(by)), escape(name));
        let message = if by == other {
            format!("{own} asks for its own outcome before it has one")
        } else {
            format!("{own} asks for step {name}, which never comes before it")
        };
        let finding = Diagnostic::new(Code::P313, message).at(span, "empty when it is asked");
        Some(
            finding.help(format!(
                "name a step that has run by then, or let this one need it: `**needs:** {name}`"
            )),
        )
    }
}

/// Returns all conditions of a graph.
pub(super) fn conditions(shape: &Shape<'_>) -> Vec<Asked> {
    let mut all = Vec::new();
    for edge in &shape.workflow.edges {
        let Some(condition) = &edge.condition else { continue };
        let by = shape.places.get(edge.from.value.as_str()).copied();
        let (condition, span) = (condition.value.clone(), condition.span);
        all.push(Asked { condition, span, clauses: Vec::new(), by, is_before: false });
    }
    // Graphs of other languages have their conditions on edges.
    for (at, node) in shape.workflow.nodes.iter().enumerate().filter(|_| shape.language.is_none()) {
        // One that can't be read was reported.
        let Some(Spanned { value: reading, span }) = node.attributes.when.condition() else { continue };
        let place = |clause: &Span| Span::new(span.start + clause.start, span.start + clause.end);
        let clauses = reading.clauses.iter().map(place).collect();
        all.push(Asked { condition: reading.condition, span, clauses, by: Some(at), is_before: true });
    }
    all
}

/// The values that every run's context has (X2, H2).
const WRITTEN: [&str; 16] = [
    "outcome",
    "preferred_label",
    "graph.goal",
    "current_node",
    "last_stage",
    "last_response",
    "retry.remaining",
    "human.gate.selected",
    "human.gate.label",
    "tool.output",
    "tool.last_line",
    "tool.exit_code",
    "parallel.results",
    "failure_reason",
    "failure_class",
    "exit_code",
];

// C3, L6: keys that nothing writes are empty, and words that no outcome has never hold.
pub(super) fn lint(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let words = words_of_prompts(shape.workflow);
    let mut reported: BTreeSet<(Span, String)> = BTreeSet::new();
    for asked in conditions(shape) {
        for (clause, span) in asked.clauses() {
            if reported.len() >= OF_A_KIND_MAX {
                return;
            }
            let finding =
                doubt_of_clause(shape, clause, span, &words).or_else(|| asked.too_early(shape, clause, span));
            if let Some(finding) = finding
                && reported.insert((span, clause.to_string()))
            {
                found.push(finding);
            }
        }
    }
}

fn doubt_of_clause(
    shape: &Shape<'_>,
    clause: &Clause,
    span: Span,
    words: &BTreeSet<&str>,
) -> Option<Diagnostic> {
    let finding = |message: String| Diagnostic::new(Code::P313, message).at(span, "");
    match (&clause.key, &clause.test) {
        (Key::Outcome, Test::Is(word) | Test::IsNot(word)) => {
            // A word that a prompt names is the worker's own (C8).
            let near = meant_status(word).filter(|_| !words.contains(word.as_str()))?;
            let message =
                format!("no outcome is called `{}`, so it is compared with the worker's label", escape(word));
            Some(finding(message).help(format!("did you mean `{near}`?")))
        }
        // The outcome of a step is compared with no label.
        (Key::Step { node, field: StepField::Outcome }, Test::Is(word) | Test::IsNot(word))
            if !STATUS_WORDS.contains(&word.as_str()) =>
        {
            // That there is no such node is told elsewhere.
            let own = shape.named(shape.node(*shape.places.get(node.as_str())?));
            let message = format!("no outcome is called `{}`, so {own} never has it", escape(word));
            let outcomes = format!("outcomes are {}", STATUS_WORDS.join(", "));
            Some(finding(message).help(ask_or_say(meant_status(word), outcomes)))
        }
        (Key::Variable(name) | Key::Context(name), _) => {
            let is_family =
                ["internal.", "parallel.", "graph.", "stack."].iter().any(|family| name.starts_with(family));
            let last = name.rsplit('.').next().unwrap_or(name);
            let is_named = words.contains(name.as_str()) || words.contains(last);
            if is_family || WRITTEN.contains(&name.as_str()) || is_named {
                return None;
            }
            let whole = shape.or_in_markdown("graph", "plan");
            let message = format!("nothing in the {whole} writes `{}`, so it is empty", escape(name));
            let is_of_command = ["tool", "stdout", "output"].iter().any(|word| name.contains(word));
            Some(match nearest(name, WRITTEN) {
                Some(near) => finding(message).help(format!("did you mean `{}`?", near.word)),
                None if is_of_command => finding(message).help(
                    "what the last command printed is `tool.output`, its last line `tool.last_line`, its exit code \
                     `tool.exit_code`",
                ),
                None => {
                    let text = shape.or_in_markdown("prompt", "task");
                    finding(message)
                        .help(format!("say in a {text} that the worker is to report it, or mend the name"))
                }
            })
        }
        (Key::Outcome | Key::PreferredLabel | Key::Step { .. }, _) => None,
    }
}

fn meant_status(word: &str) -> Option<&'static str> {
    if STATUS_WORDS.contains(&word) {
        return None;
    }
    match word.to_ascii_lowercase().as_str() {
        "succeeded" | "successful" | "passed" | "pass" | "ok" | "done" => Some("success"),
        "failed" | "failure" | "error" => Some("fail"),
        "partial" => Some("partial_success"),
        "skip" => Some("skipped"),
        lower => nearest(lower, STATUS_WORDS)
            .map(|near| STATUS_WORDS.into_iter().find(|status| *status == near.word).unwrap_or("success")),
    }
}

// A name in any prompt or command may well be written by it.
fn words_of_prompts(workflow: &Workflow) -> BTreeSet<&str> {
    let texts = workflow.nodes.iter().flat_map(|node| {
        let NodeAttributes { prompt, tool_command, command, label, .. } = &node.attributes;
        [prompt, tool_command, command, label].map(Written::text)
    });
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    texts
        .flatten()
        .flat_map(|text| text.value.split(move |c: char| !is_word(c)))
        .map(|word| word.trim_matches('.'))
        .flat_map(|word| {
            [word, word.rsplit('.').next().unwrap_or(word), word.strip_prefix("context.").unwrap_or(word)]
        })
        .collect()
}
