//! Findings about graphs, in every language: rows L1–L6 and G-12.

mod attributes;
mod structure;

use std::collections::BTreeMap;

use planctl_engine::JoinPolicy;

use super::tree::{EdgeTree, Kind, NodeTree, Workflow};
use super::walks::{node_flags, nodes_before, reached};
use super::{asked, folders};
use crate::diagnostic::Diagnostic;
use crate::syntax::Language;
use crate::text::escape;
use attributes::{attributes, gates, keys, outcomes};
use structure::ends;
pub(super) use structure::structure;

/// The most findings of one kind.
pub(super) const OF_A_KIND_MAX: usize = 50;

/// A graph with what all lints ask of it.
pub(super) struct Shape<'w> {
    pub workflow: &'w Workflow,
    /// The edges that leave each node, with where they lead.
    pub out_edges: Vec<Vec<(usize, &'w EdgeTree)>>,
    /// The nodes with an edge to each node.
    pub back: Vec<Vec<usize>>,
    pub entry: Option<usize>,
    /// The language that it is written in; none for markdown.
    pub language: Option<Language>,
    /// The place of each node, by its name.
    pub places: BTreeMap<&'w str, usize>,
}

impl<'w> Shape<'w> {
    pub(super) fn of(workflow: &'w Workflow, language: Option<Language>) -> Shape<'w> {
        Shape::of_edges(workflow, language, workflow.out_edges())
    }

    /// Makes the shape of a graph that has these edges alone.
    pub(super) fn of_edges(
        workflow: &'w Workflow,
        language: Option<Language>,
        out_edges: Vec<Vec<(usize, &'w EdgeTree)>>,
    ) -> Shape<'w> {
        let back = nodes_before(&out_edges);
        Shape { workflow, out_edges, back, entry: workflow.entry(), language, places: workflow.places() }
    }

    /// Names a node as authors of its language do; markdown has steps, and two ends that nobody writes.
    pub(super) fn named(&self, node: &NodeTree) -> String {
        match (self.language, node.kind.value) {
            (Some(_), _) => format!("node `{}`", escape(&node.id.value)),
            (None, Kind::Start) => "the beginning of the plan".to_owned(),
            (None, Kind::Exit) => "the end of the plan".to_owned(),
            (None, _) => format!("step {}", escape(&node.id.value)),
        }
    }

    /// As [`Shape::named`], without the word `node`.
    pub(super) fn plain_name(&self, node: &NodeTree) -> String {
        self.named(node).trim_start_matches("node ").to_owned()
    }

    /// Returns the text for markdown, or else the other.
    pub(super) fn or_in_markdown<'t>(&self, other: &'t str, markdown: &'t str) -> &'t str {
        if self.language.is_none() { markdown } else { other }
    }

    pub(super) fn node(&self, at: usize) -> &'w NodeTree {
        &self.workflow.nodes[at]
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'w NodeTree> {
        self.workflow.nodes.iter().filter(move |node| node.kind.value == kind)
    }

    /// Says of each node whether a search from some comes to it, along edges or against them.
    fn reachable_from(&self, from: impl IntoIterator<Item = usize>, is_back: bool) -> Vec<bool> {
        let next = |at: usize| match is_back {
            true => self.back[at].clone(),
            false => self.out_edges[at].iter().map(|(to, _)| *to).collect(),
        };
        let (count, from) = (self.out_edges.len(), Vec::from_iter(from));
        node_flags(count, from.iter().copied().chain(reached(count, from.clone(), next)))
    }

    /// Says whether a run may come from a node to an end without visiting another. All branches of a fork run, so that a fork
    /// is passed only where each branch can go past the node, unless a join waits for the first alone.
    fn leads_past(&self, entry: usize, node: usize, ends: &[usize]) -> bool {
        let waits_for_all = |node: &NodeTree| {
            let policy = &node.attributes.join_policy;
            !policy.is_said() || policy.is(&JoinPolicy::All)
        };
        let are_all = self.workflow.nodes.iter().all(waits_for_all);
        let needed = |at: usize| {
            let is_fork = are_all && self.node(at).kind.value == Kind::Fork;
            if is_fork { self.out_edges[at].len() } else { 1 }
        };
        let mut needed: Vec<usize> = (0..self.out_edges.len()).map(needed).collect();
        let mut open: Vec<usize> = ends.iter().copied().filter(|end| *end != node).collect();
        open.iter().for_each(|end| needed[*end] = 0);
        while let Some(at) = open.pop() {
            for before in self.back[at].iter().copied().filter(|before| *before != node) {
                needed[before] = match needed[before] {
                    0 => continue,
                    more => more - 1,
                };
                if needed[before] == 0 {
                    open.push(before);
                }
            }
        }
        needed[entry] == 0
    }
}

/// Returns every finding about a graph.
pub(super) fn lint(workflow: &Workflow, language: Language, found: &mut Vec<Diagnostic>) {
    let shape = Shape::of(workflow, Some(language));
    ends(&shape, found);
    structure(&shape, found);
    for (node, out_edges) in workflow.nodes.iter().zip(&shape.out_edges) {
        attributes(workflow, node, language, found);
        if node.kind.value == Kind::Human {
            keys(node, out_edges, found);
        }
    }
    folders::lint(workflow, found);
    gates(&shape, language, found);
    outcomes(workflow, language, found);
    asked::lint(&shape, found);
}
