//! Graphs from any source: one tree with the place of every node and edge, and every finding about it.

mod lint;
mod loops;
mod lower;
mod pipeline;
mod plan;
mod prose;
mod tree;
mod write;

pub use lower::to_graph;
pub use prose::{Markdown, to_markdown};
pub use tree::{EdgeTree, Kind, Library, NamedContract, NodeTree, Said, Workflow};
pub use write::{edge_words, to_ascii, to_dot, to_json, to_mermaid};

pub(crate) use crate::dot::EDGES_MAX;
pub(crate) use pipeline::{on_named, read_condition};

use crate::diagnostic::Diagnostic;
use crate::parse::sort;
use crate::source::Source;
use crate::tree::PlanTree;
use crate::{dot, entry};

/// The languages that graphs are written in, beside markdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// Graphviz DOT.
    Dot,
    /// JSON: a library, an entry of one, or a graph as planctl writes it.
    Json,
}

impl Language {
    /// Returns the language of a file that holds graphs, by its name; nothing for markdown.
    pub fn of(path: &str) -> Option<Language> {
        match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "dot" | "gv" => Some(Language::Dot),
            "json" | "jsonc" => Some(Language::Json),
            _ => None,
        }
    }
}

/// Reads the graphs of a file: one of DOT, any number of JSON.
///
/// Never panics and never stops at the first problem: what can be read is in the trees, and every problem is in the list,
/// in the order of the text.
pub fn read(source: &Source, language: Language) -> (Vec<Workflow>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    source.check_characters(&mut found);
    let workflows = match language {
        Language::Dot => {
            let (digraph, unread) = dot::read(source);
            found.extend(unread);
            let (pipeline, unresolved) = dot::resolve(&digraph);
            found.extend(unresolved);
            let is_graph = !digraph.span.is_empty();
            let workflow = is_graph.then(|| pipeline::workflow(source, &pipeline, &mut found));
            workflow.into_iter().collect()
        }
        Language::Json => {
            let (workflows, unread) = entry::read(source);
            found.extend(unread);
            workflows
        }
    };
    (workflows, found)
}

/// Makes the graph of a plan in markdown that was read, and returns what is wrong with its nodes and edges.
pub fn of_plan(source: &Source, tree: &PlanTree) -> (Workflow, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let workflow = plan::workflow(source, tree, &mut found);
    lint::structure(&lint::Shape::of(&workflow), &mut found);
    for finding in &mut found {
        finding.make_printable();
    }
    sort(&mut found);
    (workflow, found)
}

/// Reads the graphs of a file and returns every finding about it, in the order of the text.
pub fn check(source: &Source, language: Language) -> (Vec<Workflow>, Vec<Diagnostic>) {
    let (workflows, mut found) = read(source, language);
    for workflow in &workflows {
        lint::lint(workflow, &mut found);
    }
    for finding in &mut found {
        finding.make_printable();
        for label in &mut finding.spans {
            label.span = source.clamp(label.span);
        }
    }
    sort(&mut found);
    (workflows, found)
}
