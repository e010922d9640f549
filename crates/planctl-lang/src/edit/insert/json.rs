//! Nodes and ways that come into a file of JSON, by edits of its text.

use planctl_engine::On;
use serde_json::{Map, Value};

use super::graph::{InsertPoint, Insertion};
use super::refused;
use crate::diagnostic::{Diagnostic, Edit};
use crate::edit::fix::with_line_ends;
use crate::syntax::Language;
use crate::syntax::source::Source;
use crate::text::Span;
use crate::tree::workflow::{Kind, NodeTree, Workflow, json_node, read};

/// Says whether a node is an entry of a list of `steps`, which have neither names nor edges.
pub(super) fn is_list(source: &Source, node: &NodeTree) -> bool {
    source.slice(node.id.span) == "{"
}

/// Puts steps into a list of `steps`, where each leads to the next; names of later ones are adapted.
pub(super) fn into_list(
    source: &Source,
    workflow: &Workflow,
    after: &NodeTree,
    nodes: &[NodeTree],
) -> Result<String, Vec<Diagnostic>> {
    if let Some(other) = nodes.iter().find(|node| node.kind.value != Kind::Task) {
        let message = format!(
            "\"{}\" is not a task for an agent, and the plan's list of `steps` holds only tasks",
            other.title()
        );
        return refused(after.span, message, "put the step in by hand");
    }
    let entries = nodes.iter().map(|node| {
        let mut entry = json_node(node);
        entry.remove("id");
        entry.remove("kind");
        (None, entry)
    });
    let mut edits = vec![insert_entries(source, after.span, after.span, entries.collect())];
    let number = |name: &str| name.strip_prefix("step_")?.parse::<usize>().ok();
    let own = number(&after.id.value).unwrap_or_default();
    for target in workflow.retry_targets() {
        if let Some(later) = number(&target.value).filter(|number| *number > own) {
            let name = format!("step_{}", later + nodes.len());
            edits.push(Edit { span: target.span, replacement: literal(&name) });
        }
    }
    let text = source.edited(edits.into_iter().map(|edit| (edit.span, edit.replacement)));
    let (again, _) = read(&Source::new(source.path(), text.as_str()), Language::Json);
    match again.as_slice() {
        [again] if again.nodes.len() == workflow.nodes.len() + nodes.len() => Ok(text),
        _ => refused(after.span, "the list of steps can't be edited".to_owned(), "put the step in by hand"),
    }
}

/// Returns the edits that put nodes into a graph.
pub(super) fn edits(insertion: &Insertion<'_>) -> Vec<Edit> {
    let (source, workflow) = (insertion.source, insertion.workflow);
    let mut edits = Vec::new();
    let old: Vec<_> = insertion.changed_edges().iter().filter_map(|at| workflow.edges.get(*at)).collect();
    for edge in &old {
        let (span, name) = match insertion.place {
            InsertPoint::Into(_) => (edge.to.span, insertion.first()),
            InsertPoint::Before(_) => (edge.from.span, insertion.last()),
        };
        edits.push(Edit { span, replacement: literal(name) });
    }
    if let Some(edge) = old.first() {
        // An author who says `on` gets `on`.
        let key = if source.slice(edge.span).contains("\"on\"") { "on" } else { "condition" };
        let edges = insertion.new_edges().into_iter().map(|(from, to, on)| {
            let mut edge = Map::new();
            edge.insert("from".to_owned(), from.into());
            edge.insert("to".to_owned(), to.into());
            let prefix = if key == "on" || on == On::Always { "" } else { "on_" };
            edge.insert(key.to_owned(), format!("{prefix}{}", on.as_str()).into());
            (None, edge)
        });
        edits.push(insert_entries(source, edge.span, edge.span, edges.collect()));
    }
    // After the last node no other step's number changes.
    if let Some(last) = workflow.nodes.last() {
        let is_named = !(last.span.start..last.span.end).contains(&last.id.span.start);
        let nodes = insertion.nodes.iter().map(|node| {
            let mut entry = json_node(node);
            let name = node.id.value.clone();
            if is_named {
                entry.remove("id");
            }
            (is_named.then_some(name), entry)
        });
        let whole = if is_named { last.id.span.to(last.span) } else { last.span };
        edits.push(insert_entries(source, whole, last.span, nodes.collect()));
    }
    edits
}

fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// Writes entries after one of an object or a list, laid out like it.
fn insert_entries(
    source: &Source,
    like: Span,
    value: Span,
    entries: Vec<(Option<String>, Map<String, Value>)>,
) -> Edit {
    let line = source.line_span(source.line_of(like.start));
    let head = source.slice(Span::new(line.start, like.start));
    let has_line = head.trim().is_empty();
    let is_tall = source.slice(value).contains('\n');
    let mut text = String::new();
    for (name, entry) in entries {
        text.push(',');
        text.push_str(&if has_line { format!("\n{head}") } else { " ".to_owned() });
        if let Some(name) = name {
            text.push_str(&format!("{}: ", literal(&name)));
        }
        text.push_str(&if is_tall && has_line {
            multi_line_entry(&entry, head)
        } else {
            one_line_entry(&entry)
        });
    }
    Edit { span: Span::at(value.end), replacement: with_line_ends(&text, source) }
}

fn one_line_entry(entry: &Map<String, Value>) -> String {
    let pairs: Vec<String> = entry.iter().map(|(key, value)| format!("{}: {value}", literal(key))).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn multi_line_entry(entry: &Map<String, Value>, indent: &str) -> String {
    let pairs = entry.iter().map(|(key, value)| format!("\n{indent}  {}: {value}", literal(key)));
    format!("{{{}\n{indent}}}", pairs.collect::<Vec<_>>().join(","))
}
