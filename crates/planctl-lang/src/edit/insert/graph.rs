//! Steps that somebody proposes → nodes of a graph, and which ways lead on from them.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;
use planctl_engine::condition::{Clause, Condition, Key, Test};

use super::{alone, dot, json, refused};
use crate::diagnostic::Diagnostic;
use crate::edit::expand::expand;
use crate::graph::policy;
use crate::syntax::Language;
use crate::syntax::dot::{is_keyword, plain};
use crate::syntax::source::Source;
use crate::text::{Span, Spanned};
use crate::tree::parse::parse;
use crate::tree::workflow::{EdgeTree, Kind, NodeTree, Workflow, Written, nodes_of_plan, number_steps, read};
use crate::tree::{OnFail, StepTree};

/// The nodes to put into a graph, and their place.
pub(super) struct Insertion<'w> {
    pub source: &'w Source,
    pub workflow: &'w Workflow,
    /// The node that they come after.
    pub after: &'w NodeTree,
    /// The new nodes, in order; never empty.
    pub nodes: Vec<NodeTree>,
    pub place: InsertPoint,
}

/// Where among the ways new nodes come.
pub(super) enum InsertPoint {
    /// Into one way, whose condition and label are still asked where it leaves.
    Into(usize),
    /// Before several ways, which then leave the last new node.
    Before(Vec<usize>),
}

/// Returns the text of a graph with the step of a proposal after the step of this number.
pub(super) fn insert(
    source: &Source,
    language: Language,
    after: u32,
    proposal: &str,
) -> Result<String, Vec<Diagnostic>> {
    let (mut workflows, _) = read(source, language);
    workflows.iter_mut().for_each(number_steps);
    let is_own = |node: &&NodeTree| node.step.is_some_and(|at| at + 1 == after as usize);
    let own = workflows.first().and_then(|workflow| workflow.nodes.iter().find(is_own));
    let ([workflow], Some(node)) = (workflows.as_slice(), own) else {
        return refused(Span::at(0), format!("the plan has no step {after}"), "name a step that is there");
    };
    let name = &node.id.value;
    let nodes = proposed(workflow, proposal)?;
    if json::is_list(source, node) {
        return json::into_list(source, workflow, node, &nodes);
    }
    let insertion = Insertion { source, workflow, after: node, place: place(workflow, node)?, nodes };
    let edits = match language {
        Language::Dot => dot::edits(&insertion),
        Language::Json => json::edits(&insertion),
    };
    let text = source.edited(edits.into_iter().map(|edit| (edit.span, edit.replacement)));
    let (again, _) = read(&Source::new(source.path(), text.as_str()), language);
    match again.as_slice() {
        [again] if insertion.is_meant(again) => Ok(text),
        _ => refused(
            node.id.span,
            format!("what follows `{name}` is written so that no step can be put in without changing more"),
            "put the step in by hand",
        ),
    }
}

impl Insertion<'_> {
    /// Returns the ways that change, as places among the edges.
    pub fn changed_edges(&self) -> &[usize] {
        match &self.place {
            InsertPoint::Into(edge) => std::slice::from_ref(edge),
            InsertPoint::Before(edges) => edges,
        }
    }

    pub fn first(&self) -> &str {
        self.nodes.first().map_or("", |node| node.id.value.as_str())
    }

    pub fn last(&self) -> &str {
        self.nodes.last().map_or("", |node| node.id.value.as_str())
    }

    /// Returns the ways that are new, with the outcome for which each is taken.
    pub fn new_edges(&self) -> Vec<(&str, &str, On)> {
        let names: Vec<&str> = self.nodes.iter().map(|node| node.id.value.as_str()).collect();
        let between = names.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?, On::Success)));
        let edges = self.changed_edges().iter().filter_map(|at| self.workflow.edges.get(*at));
        let is_always = edges.clone().all(|edge| !is_of_pass(edge));
        let on = if is_always { On::Always } else { On::Success };
        match (&self.place, edges.clone().next()) {
            (InsertPoint::Into(_), Some(edge)) => {
                between.chain([(self.last(), edge.to.value.as_str(), on)]).collect()
            }
            (InsertPoint::Into(_) | InsertPoint::Before(_), _) => {
                [(self.after.id.value.as_str(), self.first(), on)].into_iter().chain(between).collect()
            }
        }
    }

    // Nothing but what is put in may have changed: defaults and groups of the text may say more than was looked at.
    fn is_meant(&self, again: &Workflow) -> bool {
        let mut edges = self.workflow.edges.clone();
        for at in self.changed_edges() {
            let Some(edge) = edges.get_mut(*at) else { return false };
            match self.place {
                InsertPoint::Into(_) => self.first().clone_into(&mut edge.to.value),
                InsertPoint::Before(_) => self.last().clone_into(&mut edge.from.value),
            }
        }
        let name = |name: &str| Spanned::new(name.to_owned(), Span::at(0));
        let new = self.new_edges();
        edges.extend(new.into_iter().map(|(from, to, on)| {
            EdgeTree::new(name(from), name(to), Span::at(0), Spanned::new(on, Span::at(0)))
        }));
        nodes_said(&self.workflow.nodes, &self.nodes) == nodes_said(&again.nodes, &[])
            && edges_said(&edges) == edges_said(&again.edges)
    }
}

fn nodes_said(own: &[NodeTree], more: &[NodeTree]) -> BTreeMap<String, (Kind, Vec<String>)> {
    let said = |node: &NodeTree| {
        let contracts = node.contracts.iter().map(|contract| contract.command.value.clone());
        let said = &node.attributes;
        let texts = [
            said.label.text(),
            said.prompt.text(),
            said.target.text(),
            said.on_fail.text(),
            said.timeout.text(),
            said.tool_command.text(),
        ];
        let texts = texts.into_iter().flatten().map(|text| text.value.clone());
        (node.id.value.clone(), (node.kind.value, contracts.chain(texts).collect()))
    };
    own.iter().chain(more).map(said).collect()
}

fn edges_said(edges: &[EdgeTree]) -> Vec<String> {
    let mut said: Vec<String> = edges
        .iter()
        .map(|edge| {
            let condition = edge.condition.as_ref().map(|condition| condition.value.to_string());
            let label = edge.label.as_ref().map(|label| &label.value);
            let more: Vec<_> = edge.attributes.iter().map(|(key, value)| (key, &value.value)).collect();
            let ends = (&edge.from.value, &edge.to.value);
            format!("{:?}", (ends, edge.on.value, condition, label, edge.weight, edge.loop_restart, more))
        })
        .collect();
    said.sort_unstable();
    said
}

/// Finds where new nodes come after one; edges for a failure stay where they are.
fn place(workflow: &Workflow, node: &NodeTree) -> Result<InsertPoint, Vec<Diagnostic>> {
    let name = &node.id.value;
    let unclear = |edge: &EdgeTree| {
        let message = format!("where the run goes from `{name}` depends on more than its success");
        refused(edge.span, message, "put the step in by hand")
    };
    let own: Vec<(usize, &EdgeTree)> =
        workflow.edges.iter().enumerate().filter(|(_, edge)| edge.from.value == *name).collect();
    let plain_always = own.iter().filter(|(_, edge)| edge.on.value == On::Always && edge.is_plain());
    let mut leaving: Vec<(usize, &EdgeTree)> =
        own.iter().filter(|(_, edge)| is_of_pass(edge)).copied().collect();
    // Taken for some passes and for some failures.
    let is_both = |edge: &EdgeTree| {
        edge.on.value == On::Always
            && !edge.is_plain()
            && !clauses(edge).any(|clause| clause.key == Key::Outcome)
    };
    if let Some((_, edge)) = own.iter().find(|(_, edge)| is_both(edge)) {
        return unclear(edge);
    }
    if leaving.is_empty() {
        leaving = plain_always.copied().collect();
    } else if let Some((_, edge)) = plain_always.clone().next()
        && leaving.iter().all(|(_, edge)| clauses(edge).any(|clause| clause.key != Key::Outcome))
    {
        return unclear(edge);
    }
    let Some((first, edge)) = leaving.first().copied() else {
        let message = format!("no edge leads on from `{name}` when it passes");
        return refused(node.id.span, message, "put the step in by hand");
    };
    let begins_anew = edge.loop_restart || edge.attributes.iter().next().is_some();
    if leaving.len() == 1 && !begins_anew {
        return Ok(InsertPoint::Into(first));
    }
    // A hint of this step's worker would be asked of another.
    let by_worker = |edge: &EdgeTree| clauses(edge).any(|clause| clause.key == Key::PreferredLabel);
    let labelled = leaving.iter().filter(|(_, edge)| edge.label.is_some() && is_plain_pass(edge)).count();
    match leaving.iter().find(|(_, edge)| by_worker(edge) || labelled > 1) {
        Some((_, edge)) => unclear(edge),
        None => Ok(InsertPoint::Before(leaving.into_iter().map(|(at, _)| at).collect())),
    }
}

fn clauses(edge: &EdgeTree) -> impl Iterator<Item = &Clause> {
    edge.condition.iter().flat_map(|condition: &Spanned<Condition>| &condition.value.clauses)
}

fn is_success(clause: &Clause) -> bool {
    clause.key == Key::Outcome && clause.test == Test::Is("success".to_owned())
}

fn is_plain_pass(edge: &EdgeTree) -> bool {
    clauses(edge).all(is_success)
}

/// Says whether only a pass takes a way.
fn is_of_pass(edge: &EdgeTree) -> bool {
    match edge.on.value {
        On::Success => true,
        On::Always => clauses(edge).any(is_success),
        On::Fail | On::Retry | On::Exhaust => false,
    }
}

/// Reads a proposal as nodes with names of their own.
fn proposed(workflow: &Workflow, proposal: &str) -> Result<Vec<NodeTree>, Vec<Diagnostic>> {
    let source = Source::new("proposal", format!("{}{}\n", alone::HEAD, alone::one_step(proposal)?));
    let is_placed = |step: &&StepTree| {
        let said = &step.node.attributes;
        said.needs.raw().is_some() || said.when.raw().is_some()
    };
    if let Some(step) = parse(&source).0.steps.iter().find(is_placed) {
        return edges_in_step_error(step.node.step_title());
    }
    let expanded = expand(&source, None)?;
    let source = Source::new("proposal", expanded.text);
    let (tree, mut found) = parse(&source);
    let (nodes, _) = nodes_of_plan(&source, &tree, &mut found);
    found.retain(Diagnostic::is_error);
    if !found.is_empty() {
        return Err(found);
    }
    let mut taken: BTreeSet<String> = workflow.nodes.iter().map(|node| node.id.value.clone()).collect();
    let mut made = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        if !matches!(node.kind.value, Kind::Task | Kind::Call | Kind::Checkpoint) {
            return edges_in_step_error(node.title());
        }
        node.id.value = free_name(&plain(node.title()).to_lowercase(), &mut taken);
        let policy = OnFail::from(policy(&node));
        (node.attributes.max_retries, node.attributes.on_fail) = <_>::default();
        if node.kind.value != Kind::Checkpoint {
            // Graphs have to state the policies that markdown leaves unsaid.
            node.attributes.on_fail = Written::of(Spanned::new(policy, Span::at(0)));
        }
        made.push(node);
    }
    if made.is_empty() {
        return refused(
            Span::at(0),
            "the proposal has no step".to_owned(),
            "write `### Title`, then its fields",
        );
    }
    Ok(made)
}

fn edges_in_step_error<T>(title: &str) -> Result<T, Vec<Diagnostic>> {
    let message = format!("\"{title}\" has edges of its own, and in a graph these are written as edges");
    refused(Span::at(0), message, "put the step in by hand")
}

fn free_name(base: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = base.to_owned();
    let mut next = 2_usize;
    while is_keyword(&name) || !taken.insert(name.clone()) {
        name = format!("{base}_{next}");
        next += 1;
    }
    name
}
