//! Writes a plan in another language, and says where the other text would be judged, or go on, in another way.
//!
//! The graph of the text that was read and that of the text that was written are compared node by node: no writer has to be
//! trusted to say all that it leaves out.

mod comments;
mod compare;

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{Graph, On, WorkKind};

use crate::diagnostic::Diagnostic;
use crate::diagnostic::levels::Levels;
use crate::facts::Facts;
use crate::graph::{PARALLEL, policy, to_graph, with_labels};
use crate::syntax::Language;
use crate::syntax::source::Source;
use crate::syntax::values::budget_words;
use crate::syntax::written::{Text, VerifyType, Written};
use crate::text::{Span, Spanned};
use crate::tree::workflow::{
    EdgeTree, Kind, NodeTree, Workflow, dot_names, of_graph, resolve, step_numbers, to_dot, to_json,
    to_markdown,
};
use crate::tree::{OnFail, PlanTree, WorkspaceMode};
use crate::verify::{read, verify};
use compare::Difference;

/// The owner of a plan that names none.
const OWNER: &str = "orchestrator";

/// A plan in another language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// The parts of the plan that it does not say, for people.
    pub lost: Vec<String>,
    /// Contracts and policies that would be others in it, for people: where there are some, it is another plan.
    pub changed: Vec<String>,
    /// Says whether both texts make graphs that could be compared; the rest says little where they don't.
    pub is_compared: bool,
}

/// A plan as it is written.
struct Plan {
    workflow: Workflow,
    /// The graph of the text that was read; nothing where it has errors by which it makes none.
    graph: Option<Graph>,
    /// The names of its nodes in the other language.
    names: BTreeMap<String, String>,
    /// The parts that have no place in a graph.
    lost: Vec<String>,
    /// The codes of its own errors.
    errors: Vec<String>,
}

/// Writes a graph of a text in a language, markdown where it is none.
pub fn convert(source: &Source, workflow: &Workflow, to: Option<Language>) -> Converted {
    let language = Language::of(source.path());
    if language.is_none() && to.is_none() {
        let text = source.text().to_owned();
        return Converted { text, lost: Vec::new(), changed: Vec::new(), is_compared: true };
    }
    let errors = errors(source);
    if language.is_some() {
        let graph = to_graph(source, workflow).ok();
        return Plan { errors, ..of_explicit(source, workflow, graph, to) }.write_as(to);
    }
    let plan = read(source);
    let graph = plan.lowered();
    let mut lost: Vec<String> =
        plan.workflow.templates.iter().map(|template| format!("the steps `{}`", template.id.value)).collect();
    lost.extend(for_readers(source, &plan.tree));
    let meant = plan.tree.steps.iter().filter(|step| step.intent.is_some());
    lost.extend(meant.map(|step| format!("`intent` of `{}`", step.node.id.value)));
    lost.extend(library_lost(&plan.workflow, to));
    let workflow = of_markdown(&plan.workflow);
    let names = names(&workflow, to);
    let workflow = in_order(renamed(workflow, &names), &names);
    Plan { workflow, graph, names, lost, errors }.write_as(to)
}

/// Writes the graph that a run executes.
pub fn convert_graph(graph: &Graph, to: Option<Language>) -> Converted {
    let source = Source::new("run.json", "");
    of_explicit(&source, &of_graph(graph), Some(graph.clone()), to).write_as(to)
}

fn of_explicit(source: &Source, workflow: &Workflow, graph: Option<Graph>, to: Option<Language>) -> Plan {
    let mut lost = library_lost(workflow, to);
    let from = Language::of(source.path());
    if from != to || from == Some(Language::Json) {
        let comments = comments::places(source.text()).into_iter().map(|at| source.position(at).line);
        lost.extend(comments.map(|line| format!("the comment (line {line})")));
    }
    let workflow = match to {
        Some(_) => workflow.clone(),
        None => for_markdown(source, workflow),
    };
    let names = names(&workflow, to);
    Plan { workflow: renamed(workflow, &names), graph, names, lost, errors: Vec::new() }
}

/// Returns what a plan in markdown says to people alone, which graphs of other languages have no place for.
fn for_readers<'p>(source: &'p Source, tree: &'p PlanTree) -> impl Iterator<Item = String> + 'p {
    let at = move |words: String, span: Span| format!("{words} (line {})", source.position(span.start).line);
    let unknown = tree.frontmatter.unknown.iter();
    let unknown = unknown.map(move |key| at(format!("`{}` of the frontmatter", key.value), key.span));
    let owner = tree.frontmatter.owner.as_ref().filter(|owner| owner.value != OWNER);
    let owner = owner.map(|owner| at("`owner` of the frontmatter".to_owned(), owner.span));
    unknown.chain(owner).chain(tree.prose.iter().map(move |prose| at(prose.value.clone(), prose.span)))
}

/// Returns what a graph of DOT does not say of its place in a library.
fn library_lost(workflow: &Workflow, to: Option<Language>) -> Vec<String> {
    let library = &workflow.library;
    let said = [
        ("library", library.id.is_some()),
        ("then", library.then.is_some()),
        ("domains", !library.domains.is_empty()),
        ("triggers", !library.triggers.is_empty()),
        ("stale_after_turns", library.stale_after_turns.is_some()),
    ];
    let said = said.into_iter().filter(|(_, is_said)| *is_said && to == Some(Language::Dot));
    said.map(|(key, _)| format!("`{key}` of the graph")).collect()
}

/// Returns the name of each node in a language.
fn names(workflow: &Workflow, to: Option<Language>) -> BTreeMap<String, String> {
    let own = || workflow.nodes.iter().map(|node| (node.id.value.clone(), node.id.value.clone())).collect();
    match to {
        None => step_numbers(workflow),
        Some(Language::Dot) => dot_names(workflow),
        Some(Language::Json) => own(),
    }
}

impl Plan {
    fn write_as(self, to: Option<Language>) -> Converted {
        let (name, text, lost) = match to {
            None => {
                let written = to_markdown(&self.workflow);
                ("plan.md", written.text, written.lost)
            }
            Some(Language::Dot) => ("plan.dot", to_dot(&self.workflow), Vec::new()),
            Some(Language::Json) => ("plan.json", format!("{:#}", to_json(&self.workflow)), Vec::new()),
        };
        let source = Source::new(name, text.as_str());
        let mut converted = Converted { text, lost, changed: Vec::new(), is_compared: self.graph.is_some() };
        let refused = verify(&source, &Facts::default(), &Levels::default()).diagnostics;
        let refused = refused.iter().filter(|found| found.is_error() && is_of_form(found));
        let unknown = refused.filter(|found| !self.errors.iter().any(|code| code == found.code.as_str()));
        let unknown =
            unknown.map(|found| format!("a plan without errors: {}: {}", found.code.as_str(), found.message));
        converted.lost.extend(unknown.chain(self.lost));
        match (&self.graph, read(&source).lowered()) {
            (Some(own), Some(written)) => {
                for Difference { words, is_judged } in compare::differences(own, &written, &self.names) {
                    let told = if is_judged { &mut converted.changed } else { &mut converted.lost };
                    told.push(words);
                }
            }
            (Some(_), None) => converted.lost.push("a graph that can run".to_owned()),
            (None, _) => {}
        }
        for told in [&mut converted.lost, &mut converted.changed] {
            told.sort();
            told.dedup();
        }
        converted.lost.retain(|words| !converted.changed.contains(words));
        converted
    }
}

fn errors(source: &Source) -> Vec<String> {
    let found = verify(source, &Facts::default(), &Levels::default()).diagnostics;
    found.iter().filter(|found| found.is_error()).map(|found| found.code.as_str().to_owned()).collect()
}

/// Says whether a finding is about the text or the graph: contracts and files are the same in every language.
fn is_of_form(found: &Diagnostic) -> bool {
    matches!(found.code.as_str().as_bytes(), [b'P', b'0' | b'3', ..])
}

/// Prepares the graph of a plan in markdown for a language in which forks and conditions are nodes and edges, and in which other
/// things follow where nothing is said.
fn of_markdown(workflow: &Workflow) -> Workflow {
    let mut own = with_labels(workflow, true);
    let has_forks = own.nodes.iter().any(|node| node.kind.value == Kind::Fork);
    let said = &mut own.attributes;
    let budget = own.budget.as_ref();
    said.budget = budget.map(|budget| Spanned::new(budget_words(budget.value), budget.span)).into();
    said.parallel_edges = Written::default();
    said.stale_after = said.stale_after.spanned().into();
    if has_forks && said.max_parallel.value().is_none() {
        said.max_parallel = Written::of(Spanned::new(1, Span::at(0)));
    }
    for node in &mut own.nodes {
        let retries = policy(node).retries;
        let (kind, work, is_review) = (node.kind.value, node.work, is_reviewer(node));
        let said = &mut node.attributes;
        (said.needs, said.when) = <_>::default();
        said.timeout = said.timeout.spanned().into();
        said.contract_timeout = said.contract_timeout.spanned().into();
        if matches!(kind, Kind::Call | Kind::Decision) {
            said.timeout = std::mem::take(&mut said.contract_timeout);
        }
        let is_said = said.on_fail.value().is_some_and(|policy| policy.retries.is_some());
        if matches!(kind, Kind::Task | Kind::Call) && !is_said {
            said.max_retries = Written::of(Spanned::new(retries, Span::at(0)));
        }
        if kind == Kind::Task && work == Some(WorkKind::Code) && is_review {
            said.work = Written::of(Spanned::new(WorkKind::Code, Span::at(0)));
        }
    }
    own
}

/// Weighs the edges of nodes of which another would go first by the names in the other language.
fn in_order(mut workflow: Workflow, names: &BTreeMap<String, String>) -> Workflow {
    let mut leaving: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, edge) in workflow.edges.iter().enumerate() {
        leaving.entry(edge.from.value.clone()).or_default().push(at);
    }
    let is_chosen = |node: &NodeTree| !matches!(node.kind.value, Kind::Fork | Kind::Human | Kind::Escalate);
    for node in workflow.nodes.iter().filter(|node| is_chosen(node)) {
        let Some(mut edges) = leaving.remove(&node.id.value) else { continue };
        let of = |at: &usize| &workflow.edges[*at];
        // Conditions that hold are looked at by weight before outcome, so the weights keep the order of the outcomes.
        let outcomes = [On::Exhaust, On::Fail, On::Success, On::Retry, On::Always];
        let outcome = |at: &usize| outcomes.iter().position(|on| *on == of(at).on.value);
        edges.sort_by_key(|at| (outcome(at), of(at).to.value.clone()));
        let name = |at: &usize| names.get(&of(at).to.value).unwrap_or(&of(at).to.value);
        if edges.is_sorted_by_key(|at| (outcome(at), name(at))) {
            continue;
        }
        for (weight, at) in (1..).zip(edges.into_iter().rev()) {
            workflow.edges[at].weight = weight;
        }
    }
    workflow
}

fn is_reviewer(node: &NodeTree) -> bool {
    node.role.as_ref().is_some_and(|role| role.value.starts_with("review"))
}

/// Prepares a graph of DOT or JSON for markdown: each step says for itself what its graph or its kind says for it.
fn for_markdown(source: &Source, workflow: &Workflow) -> Workflow {
    let mut own = with_labels(workflow, false);
    resolve(source, &mut own);
    let heads = worktree_heads(&own);
    let has_forks = own.nodes.iter().any(|node| node.kind.value == Kind::Fork);
    let said = &mut own.attributes;
    said.default_max_retries = Written::default();
    said.retry_policy = Written::default();
    said.stale_after = said.stale_after.spanned().into();
    if has_forks && said.max_parallel.value().is_none() {
        said.max_parallel = Written::of(Spanned::new(PARALLEL, Span::at(0)));
    }
    for node in &mut own.nodes {
        say_policy(node);
        let (kind, is_review) = (node.kind.value, is_reviewer(node));
        let said = &mut node.attributes;
        if kind == Kind::Task {
            said.target = node.role.clone().into();
            (said.tool, said.tool_hint, said.required, said.allow_partial) = <_>::default();
            if said.verify_type.is(&VerifyType::FileExists) {
                (said.verify_type, said.verify_value) = <_>::default();
            }
            said.work = said.work.spanned().filter(|work| is_review || work.value == WorkKind::Review).into();
        }
        said.timeout = said.timeout.spanned().into();
        said.contract_timeout = said.contract_timeout.spanned().into();
        if matches!(kind, Kind::Call | Kind::Decision) {
            said.timeout = Written::default();
        }
        if heads.contains(&node.id.value) {
            said.workspace = Written::of(Spanned::new(WorkspaceMode::Worktree, Span::at(0)));
        }
    }
    own
}

/// Says the policy of a step: in markdown another follows where nothing is said.
fn say_policy(node: &mut NodeTree) {
    let then = node.attributes.on_fail.value().and_then(|policy| policy.then);
    let retries = policy(node).retries;
    let said = &mut node.attributes;
    if !matches!(node.kind.value, Kind::Task | Kind::Call) {
        (said.max_retries, said.retry_policy) = <_>::default();
    } else if retries == 0 && then.is_none() {
        said.on_fail = Written::default();
        said.max_retries = Written::of(Spanned::new(0, Span::at(0)));
    } else {
        let own = OnFail { retries: Some(retries).filter(|retries| *retries > 0), then };
        said.on_fail = Written::of(Spanned::new(own, Span::at(0)));
        said.max_retries = Written::default();
    }
}

/// Names the nodes with which branches begin that have worktrees of their own: in markdown the nodes say so, and not their fork.
fn worktree_heads(workflow: &Workflow) -> BTreeSet<String> {
    let is_worktree = |node: &&NodeTree| {
        node.kind.value == Kind::Fork && node.attributes.workspace.is(&WorkspaceMode::Worktree)
    };
    let forks: Vec<&str> =
        workflow.nodes.iter().filter(is_worktree).map(|node| node.id.value.as_str()).collect();
    let begins = workflow.edges.iter().filter(|edge| forks.contains(&edge.from.value.as_str()));
    begins.map(|edge| edge.to.value.clone()).collect()
}

/// Has the commands of a graph name the outputs of nodes as these are named in the other language, and its edges say what they
/// are for.
fn renamed(mut workflow: Workflow, names: &BTreeMap<String, String>) -> Workflow {
    mark_successes(&mut workflow);
    let rename = |field: &mut Written<Text>| {
        if let Some(text) = field.text() {
            *field = Spanned::new(renamed_outputs(&text.value, names), text.span).into();
        }
    };
    for node in &mut workflow.nodes {
        let said = &mut node.attributes;
        [&mut said.tool_command, &mut said.command, &mut said.arguments].into_iter().for_each(rename);
        for contract in &mut node.contracts {
            contract.command.value = renamed_outputs(&contract.command.value, names);
        }
        if let Some(contract) = &mut node.contract {
            contract.command = renamed_outputs(&contract.command, names);
        }
    }
    workflow
}

/// Has each edge that would be read as one for every outcome say that it is for success.
fn mark_successes(workflow: &mut Workflow) {
    let is_open = |edge: &&mut EdgeTree| edge.on.value == On::Success && edge.is_plain();
    workflow.edges.iter_mut().filter(is_open).for_each(|edge| edge.on.span = edge.span);
    let mut read = workflow.clone();
    read.carry_outcomes();
    for (edge, read) in workflow.edges.iter_mut().zip(&read.edges) {
        if edge.on.value != read.on.value {
            edge.on.span.end += 1;
        }
    }
}

/// Writes the names of nodes behind `${steps.` and `PLANCTL_OUTPUTS/` as those of another language.
fn renamed_outputs(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let found = [
            "${steps.",
            "PLANCTL_OUTPUTS/",
            "PLANCTL_OUTPUTS\"/",
            "PLANCTL_OUTPUTS}/",
            "PLANCTL_OUTPUTS}\"/",
        ];
        let found = found.iter().filter_map(|sign| Some(rest.find(sign)? + sign.len())).min();
        let Some(at) = found else { return written + rest };
        let (before, after) = rest.split_at(at);
        let end =
            after.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(after.len());
        let (name, behind) = after.split_at(end);
        written.push_str(before);
        written.push_str(names.get(name).map_or(name, String::as_str));
        rest = behind;
    }
}
