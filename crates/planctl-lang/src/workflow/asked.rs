//! Every condition of a graph with who asks it: those of edges, and `**when:**` of the steps of a plan in markdown.

use planctl_engine::condition::{Clause, Condition, Key};

use super::lint::Shape;
use crate::condition;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Span, escape};

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
        if (by == other && !self.is_before) || comes_before(shape, other, by) {
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
        let Some(when) = node.said.text("when") else { continue };
        // One that can't be read was reported.
        let Ok(reading) = condition::read(&when.value) else { continue };
        let place = |clause: &Span| Span::new(when.span.start + clause.start, when.span.start + clause.end);
        let clauses = reading.clauses.iter().map(place).collect();
        let condition = reading.condition;
        all.push(Asked { condition, span: when.span, clauses, by: Some(at), is_before: true });
    }
    all
}

// Says whether a way leads from one node to another.
fn comes_before(shape: &Shape<'_>, one: usize, other: usize) -> bool {
    let mut seen = vec![false; shape.back.len()];
    let mut open = vec![other];
    while let Some(at) = open.pop() {
        for from in &shape.back[at] {
            if *from == one {
                return true;
            }
            if !std::mem::replace(&mut seen[*from], true) {
                open.push(*from);
            }
        }
    }
    false
}
