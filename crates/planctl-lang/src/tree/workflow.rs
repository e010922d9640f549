//! Graphs from any source: one tree with the place of every node and edge, and every finding about it.

mod asked;
mod explicit;
mod fallbacks;
pub(crate) mod folders;
mod judges;
mod lift;
mod lint;
mod loops;
mod manual;
mod needs;
pub(crate) mod next;
mod pipeline;
mod plan;
mod prose;
mod resolve;
pub(crate) mod sub_plans;
mod tool_calls;
mod tree;
mod types;
mod walks;
mod write;

pub(crate) use judges::lint_there as lint_judges;
pub use lift::{of_graph, of_part};
pub use manual::manual;
pub use next::missing_next;
pub use prose::{Markdown, to_markdown};
pub(crate) use prose::{library_keys, step_numbers};
pub use tree::{EdgeTree, Kind, Library, NamedContract, NodeTree, Origin, Workflow};
pub use write::{Phase, Stage, Stages, edge_words, to_ascii, to_ascii_at, to_dot, to_json, to_mermaid};

pub(crate) use needs::{find_cycle, unknown_template};
pub(crate) use pipeline::{on_named, read_condition, say_condition};
pub(crate) use plan::{Mention, flow_edges, mentions, nodes as nodes_of_plan, workflow as of_tree};
pub(crate) use resolve::{number_steps, resolve};
pub(crate) use tool_calls::{ToolFields, lint_there as lint_tool_calls, with_command};
pub(crate) use tree::is_confirmed;
pub(crate) use types::serve;
pub(crate) use walks::{left_waiting, node_flags, nodes_before, reached};
pub(crate) use write::{dot_names, dot_node, node_json as json_node};

pub use crate::syntax::dot::{EdgeAttributes, GraphAttributes, NodeAttributes};
pub use crate::syntax::written::Written;

use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::{Language, Source};
use crate::text::Span;
use crate::text::limits::{EDGES_MAX, STEPS_MAX};
use crate::tree::parse::sort;
use crate::tree::{PlanTree, StepTree};
use crate::{syntax::dot, tree::entry};

/// Reads the graphs of a file: one of DOT, any number of JSON.
///
/// Never panics and never stops at the first problem: every readable part is in the trees, and every problem is in the list,
/// in the order of the text.
pub fn read(source: &Source, language: Language) -> (Vec<Workflow>, Vec<Diagnostic>) {
    let Read { workflows, found, .. } = read_text(source, language);
    (workflows, found)
}

/// The graphs of a text.
struct Read {
    workflows: Vec<Workflow>,
    found: Vec<Diagnostic>,
    /// Says that part of the text could not be read.
    is_torn: bool,
}

fn read_text(source: &Source, language: Language) -> Read {
    let mut found = Vec::new();
    source.check_characters(&mut found);
    let mut is_torn = false;
    let workflows = match language {
        Language::Dot => {
            let (digraph, unread) = dot::read(source);
            is_torn = digraph.is_torn;
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
    Read { workflows, found, is_torn }
}

/// Writes the graph of a DOT file as DOT: its own text, with everything in quotes that Graphviz reads only so. Nothing where the
/// text has errors of form.
pub fn dot_text(source: &Source) -> Option<String> {
    let (digraph, found) = dot::read(source);
    (!found.iter().any(Diagnostic::is_error)).then(|| dot::write(source, &digraph))
}

/// A plan's graph as it will run.
pub(crate) struct Outlined {
    /// The text of a plan in markdown; empty in another language.
    pub tree: PlanTree,
    pub workflow: Workflow,
    pub found: Vec<Diagnostic>,
    /// Says that its steps run in the order of the text.
    pub is_linear: bool,
}

/// Reads a file that holds one graph as a plan.
pub(crate) fn outlined(source: &Source, language: Language) -> Outlined {
    let (mut workflows, mut found) = check(source, language);
    if workflows.len() > 1 {
        let name = |workflow: &Workflow| workflow.name.as_ref().map_or("", |name| &name.value).to_owned();
        let names: Vec<String> = workflows.iter().take(NAMES_MAX).map(name).collect();
        let second = workflows[1].name.as_ref().map_or(Span::at(0), |name| name.span);
        let message = format!("the file has {} graphs, and a plan is one", workflows.len());
        let path = crate::text::escape(&crate::text::shell_word(source.path()));
        found.push(Diagnostic::new(Code::P302, message).at(second, "a second one").help(format!(
            "write the one that is meant to a file of its own: `planctl graph render {path} --entry NAME --format json > NAME.json`; it has: {}",
            crate::text::escape(&names.join(", "))
        )));
    }
    let mut workflow = if workflows.is_empty() { Workflow::default() } else { workflows.swap_remove(0) };
    resolve(source, &mut workflow);
    Outlined { tree: PlanTree::default(), workflow, found, is_linear: false }
}

/// The most graphs of a file that are named.
const NAMES_MAX: usize = 12;

/// Makes the graph of a plan in markdown, with every fork, join and decision that its steps imply.
pub(crate) fn implied(source: &Source, tree: PlanTree, mut found: Vec<Diagnostic>) -> Outlined {
    let plain = of_tree(source, &tree, &mut found);
    let is_linear = is_linear(&tree);
    if is_linear {
        return Outlined { tree, workflow: plain, found, is_linear };
    }
    if !(has_limit_exceeded(&found) && is_full(&plain)) {
        lint::structure(&lint::Shape::of(&plain, None), &mut found);
    }
    folders::lint(&plain, &mut found);
    Outlined { workflow: explicit::explicit(&plain), tree, found, is_linear }
}

// An edge to the part of a graph that was not read leads nowhere: that the graph is too large says it all.
fn is_full(workflow: &Workflow) -> bool {
    workflow.nodes.len() >= STEPS_MAX || workflow.edges.len() >= EDGES_MAX
}

fn has_limit_exceeded(found: &[Diagnostic]) -> bool {
    found.iter().any(|finding| finding.code == Code::P008 && finding.is_error())
}

// Most plans are, and there is nothing to find out about their graph.
fn is_linear(tree: &PlanTree) -> bool {
    let is_in_line = |step: &StepTree| {
        let NodeTree { kind, attributes, .. } = &step.node;
        let is_placed = attributes.needs.raw().is_some() || attributes.when.raw().is_some();
        !is_placed && matches!(kind.value, Kind::Task | Kind::Human | Kind::Call)
    };
    tree.flow.is_none() && tree.steps.iter().all(is_in_line)
}

/// Makes the graph of a plan in markdown that was read, and returns what is wrong with its nodes and edges.
pub fn of_plan(source: &Source, tree: &PlanTree) -> (Workflow, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let workflow = of_tree(source, tree, &mut found);
    lint::structure(&lint::Shape::of(&workflow, None), &mut found);
    for finding in &mut found {
        finding.make_printable();
    }
    sort(&mut found);
    (workflow, found)
}

/// Reads the graphs of a file and returns every finding about it, in the order of the text.
pub fn check(source: &Source, language: Language) -> (Vec<Workflow>, Vec<Diagnostic>) {
    let Read { workflows, mut found, is_torn } = read_text(source, language);
    let is_over = has_limit_exceeded(&found);
    // A part that is missing in a text of which some was left out may well be there (DOT B12). A text that is no graph has
    // its own finding, so nothing more is reported as missing in it.
    let is_none = language == Language::Json && found.iter().any(Diagnostic::is_error);
    let is_whole = |workflow: &&Workflow| {
        !(is_torn || is_over && is_full(workflow) || is_none && workflow.nodes.is_empty())
    };
    for workflow in workflows.iter().filter(is_whole) {
        lint::lint(workflow, language, &mut found);
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
