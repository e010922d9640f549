//! Nodes and ways that come into a file of DOT, by edits of its text.

use std::collections::BTreeSet;

use planctl_engine::On;

use super::graph::{InsertPoint, Insertion};
use crate::diagnostic::Edit;
use crate::edit::fix::{line_end, with_line_ends};
use crate::syntax::dot::{Attribute, Digraph, Statement, read, value_text};
use crate::syntax::source::Source;
use crate::text::{Span, Spanned};
use crate::tree::workflow::dot_node;

/// How far statements are moved in, where the file does not show it.
const INDENT: &str = "    ";

/// Returns the edits that put nodes into a file.
pub(super) fn edits(insertion: &Insertion<'_>) -> Vec<Edit> {
    let (digraph, _) = read(insertion.source);
    let mut edits = edge_edits(insertion, &digraph);
    let nodes: Vec<String> = insertion.nodes.iter().map(|node| dot_node(node, insertion.workflow)).collect();
    // After the last node no other step's number changes.
    let last = insertion.workflow.nodes.last().map(|node| node.span);
    let is_last =
        |statement: &&Statement| matches!(statement, Statement::Node { span, .. } if Some(*span) == last);
    edits.push(match digraph.statements.iter().find(is_last) {
        Some(Statement::Node { span, .. }) => insert_after(insertion.source, *span, &nodes),
        Some(_) | None => at_end(insertion.source, digraph.span, &nodes),
    });
    edits
}

struct Chain<'d> {
    ends: &'d [Vec<Spanned<String>>],
    attributes: &'d [Attribute],
    span: Span,
    /// The places of the ends that lead on, and now do so from the new nodes.
    changed: BTreeSet<usize>,
}

fn edge_edits(insertion: &Insertion<'_>, digraph: &Digraph) -> Vec<Edit> {
    let edges = insertion.changed_edges().iter().filter_map(|at| insertion.workflow.edges.get(*at));
    let moved: BTreeSet<(Span, Span)> = edges.map(|edge| (edge.from.span, edge.to.span)).collect();
    let mut chains = Vec::new();
    changed(&digraph.statements, &moved, &mut chains);
    let names: String =
        insertion.nodes.iter().map(|node| format!(" -> {}", value_text(&node.id.value))).collect();
    // `a -> b` becomes `a -> new -> b`, as an author would write it.
    if let [Chain { ends, attributes: [], changed, .. }] = chains.as_slice()
        && changed.len() == 1
        && let Some([from]) = changed.first().and_then(|at| ends.get(*at)).map(Vec::as_slice)
    {
        return vec![Edit { span: Span::at(from.span.end), replacement: names }];
    }
    let mut edits = Vec::new();
    for chain in &chains {
        edits.extend(rewritten(insertion, chain, &moved));
    }
    if let Some(chain) = chains.first() {
        edits.push(insert_after(insertion.source, chain.span, &statements(insertion)));
    }
    edits
}

// Nested as deep as the reader allows.
fn changed<'d>(statements: &'d [Statement], moved: &BTreeSet<(Span, Span)>, chains: &mut Vec<Chain<'d>>) {
    for statement in statements {
        match statement {
            Statement::Subgraph { statements, .. } => changed(statements, moved, chains),
            Statement::Edges { ends, attributes, span } => {
                let is_changed =
                    |from: &Spanned<String>, to: &Spanned<String>| moved.contains(&(from.span, to.span));
                let changed: BTreeSet<usize> = ends
                    .windows(2)
                    .enumerate()
                    .filter(|(_, pair)| {
                        let mut from = pair.first().into_iter().flatten();
                        from.any(|from| pair.iter().skip(1).flatten().any(|to| is_changed(from, to)))
                    })
                    .map(|(at, _)| at)
                    .collect();
                if !changed.is_empty() {
                    chains.push(Chain { ends, attributes, span: *span, changed });
                }
            }
            Statement::Defaults { .. } | Statement::Assignment(_) | Statement::Node { .. } => {}
        }
    }
}

fn statements(insertion: &Insertion<'_>) -> Vec<String> {
    let line = |(from, to, on): (&str, &str, On)| {
        let said = if on == On::Success { "" } else { " [on=always]" };
        format!("{} -> {}{said}", value_text(from), value_text(to))
    };
    insertion.new_edges().into_iter().map(line).collect()
}

/// Has one statement lead to the new nodes, or on from them.
fn rewritten(insertion: &Insertion<'_>, chain: &Chain<'_>, moved: &BTreeSet<(Span, Span)>) -> Vec<Edit> {
    let source = insertion.source;
    if let [from, to] = chain.ends
        && let ([from], [to]) = (from.as_slice(), to.as_slice())
    {
        let (span, name) = match insertion.place {
            InsertPoint::Into(_) => (to.span, insertion.first()),
            InsertPoint::Before(_) => (from.span, insertion.last()),
        };
        return vec![Edit { span, replacement: value_text(name) }];
    }
    // A chain whose ways part is written as several, each with all that is said of it.
    let attributes = match chain.attributes {
        [] => "",
        _ => {
            let end = chain.ends.iter().flatten().map(|name| name.span.end).max().unwrap_or(chain.span.start);
            let rest = source.slice(Span::new(end, chain.span.end));
            rest.find('[').and_then(|at| rest.get(at..)).unwrap_or_default()
        }
    };
    let mut lines = Vec::new();
    for pair in chain.ends.windows(2) {
        let [from, to] = pair else { continue };
        for from in from {
            for to in to {
                let is_changed = moved.contains(&(from.span, to.span));
                let (from, to) = match insertion.place {
                    InsertPoint::Into(_) if is_changed => (from.value.as_str(), insertion.first()),
                    InsertPoint::Before(_) if is_changed => (insertion.last(), to.value.as_str()),
                    InsertPoint::Into(_) | InsertPoint::Before(_) => (from.value.as_str(), to.value.as_str()),
                };
                let line = format!("{} -> {} {attributes}", value_text(from), value_text(to));
                lines.push(line.trim_end().to_owned());
            }
        }
    }
    let (indent, end) = (indent(source, chain.span), line_end(source));
    vec![Edit { span: chain.span, replacement: lines.join(&format!("{end}{indent}")) }]
}

fn indent(source: &Source, span: Span) -> &str {
    let line = source.line_span(source.line_of(span.start));
    let head = source.slice(Span::new(line.start, span.start));
    if head.trim().is_empty() { head } else { INDENT }
}

/// Writes statements after one; a comment on its line stays there.
fn insert_after(source: &Source, span: Span, statements: &[String]) -> Edit {
    let line = source.line_span(source.line_of(span.end));
    let rest = source.slice(Span::new(span.end, line.end.max(span.end)));
    let blanks = rest.len() - rest.trim_start().len();
    let has_semicolon = rest.trim_start().starts_with(';');
    let end = if has_semicolon { span.end + blanks + 1 } else { span.end };
    let left = source.slice(Span::new(end, line.end.max(end))).trim();
    let is_comment = left.is_empty() || left.starts_with("//");
    let at = if is_comment { line.end.max(end) } else { end };
    let sign = if has_semicolon { ";" } else { "" };
    let indent = indent(source, span);
    let lines = statements.iter().map(|statement| format!("\n{indent}{statement}{sign}"));
    Edit { span: Span::at(at), replacement: with_line_ends(&lines.collect::<String>(), source) }
}

fn at_end(source: &Source, graph: Span, statements: &[String]) -> Edit {
    let brace = graph.end.saturating_sub(1);
    let line = source.line_span(source.line_of(brace));
    let head = source.slice(Span::new(line.start, brace));
    let lines: String = statements.iter().map(|statement| format!("{INDENT}{statement}\n")).collect();
    let (at, lines) =
        if head.trim().is_empty() { (line.start, lines) } else { (brace, format!("\n{lines}")) };
    Edit { span: Span::at(at), replacement: with_line_ends(&lines, source) }
}
