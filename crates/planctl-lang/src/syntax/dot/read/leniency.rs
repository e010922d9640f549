//! Texts that are read although they are no DOT, as one finding for each kind.

use super::super::syntax::Statement;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, Spanned};

/// The most places of one leniency that its finding points to.
const PLACES_MAX: usize = 20;

/// Forms that Graphviz takes and the dialect does not: read, and told once each.
#[derive(Default)]
pub(super) struct Leniency {
    pub(super) spaces: Vec<Span>,
    pub(super) semicolons: Vec<Span>,
    pub(super) hashes: Vec<Span>,
    pub(super) quoted_names: Vec<(Span, String)>,
    pub(super) ports: Vec<Span>,
    pub(super) groups: Vec<Span>,
    pub(super) keywords: Vec<(Span, &'static str)>,
}

impl Leniency {
    pub(super) fn report(self, found: &mut Vec<Diagnostic>) {
        let fixed = |span: &Span, text: &str| (*span, Some(text.to_owned()));
        let kept = |span: &Span| (*span, None);
        let spaces = self.spaces.iter().map(|span| fixed(span, ","));
        hint("attributes are separated by commas", "a `,` belongs here", spaces.collect(), found);
        let semicolons = self.semicolons.iter().map(|span| fixed(span, ","));
        hint("attributes are separated by commas, not by semicolons", "", semicolons.collect(), found);
        let hashes = self.hashes.iter().map(|span| fixed(span, "//"));
        hint("comments begin with `//`", "", hashes.collect(), found);
        let names = self.quoted_names.iter().map(|(span, name)| fixed(span, name));
        hint("names of nodes stand without quotes", "", names.collect(), found);
        let ports = self.ports.iter().map(|span| fixed(span, ""));
        hint("the port of an edge is ignored", "", ports.collect(), found);
        hint(
            "an edge to several nodes stands for one edge to each",
            "",
            self.groups.iter().map(kept).collect(),
            found,
        );
        let keywords = self.keywords.iter().map(|(span, word)| fixed(span, word));
        hint("the words of DOT are in lower case", "", keywords.collect(), found);
    }
}

// One finding for all places of a leniency (D6): a file without commas has hundreds.
fn hint(message: &str, label: &str, places: Vec<(Span, Option<String>)>, found: &mut Vec<Diagnostic>) {
    if places.is_empty() {
        return;
    }
    let mut finding = Diagnostic::new(Code::P005, message);
    for (at, (span, replacement)) in places.iter().enumerate() {
        if at < PLACES_MAX {
            finding = finding.at(*span, if at == 0 { label } else { "" });
        }
        if let Some(replacement) = replacement {
            finding = finding_with_edit(finding, *span, replacement);
        }
    }
    if places.len() > PLACES_MAX {
        finding = finding.note(format!("so it is in {} places", places.len()));
    }
    found.push(finding);
}

// As `Diagnostic::fix`, which sorts after every edit: places come in the order of the text.
fn finding_with_edit(mut finding: Diagnostic, span: Span, replacement: &str) -> Diagnostic {
    let edit = crate::diagnostic::Edit { span, replacement: replacement.to_owned() };
    match &mut finding.fix {
        Some(fix) => fix.edits.push(edit),
        None => finding.fix = Some(crate::diagnostic::Fix { edits: vec![edit], safe: true }),
    }
    finding
}

// The nodes that a block names, each once, in the order of the text.
pub(super) fn named_in(statements: &[Statement], names: &mut Vec<Spanned<String>>) {
    let mut add = |name: &Spanned<String>| {
        if !names.iter().any(|known| known.value == name.value) {
            names.push(name.clone());
        }
    };
    for statement in statements {
        match statement {
            Statement::Node { name, .. } => add(name),
            Statement::Edges { ends, .. } => ends.iter().flatten().for_each(&mut add),
            Statement::Defaults { .. } | Statement::Assignment(_) | Statement::Subgraph { .. } => {}
        }
    }
}
