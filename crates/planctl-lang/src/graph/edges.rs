//! The edges of a graph: those that its author wrote, and what follows the last attempt where no edge says it.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::condition::{Clause, Key, Test};
use planctl_engine::{Carry, Edge, Node, NodeId, NodeKind, On, Restart};

use super::policy;
use crate::text::Spanned;
use crate::text::limits::MAX_VISITS;
use crate::tools::ToolUse;
use crate::tree::Then;
use crate::tree::workflow::{EdgeTree, Kind, NodeTree, Workflow, is_confirmed};

/// Returns the graph with each choice of a person as the label of its edge: an edge without one is named by where it leads, and by
/// other words in each language.
pub(crate) fn with_labels(workflow: &Workflow, is_markdown: bool) -> Workflow {
    let edges = LoweredEdges::of(workflow, is_markdown);
    let places = workflow.places();
    let mut labelled = workflow.clone();
    for (edge, own) in workflow.edges.iter().zip(&mut labelled.edges) {
        let Some(at) = places.get(edge.from.value.as_str()).copied() else { continue };
        let is_choice = workflow.nodes[at].kind.value == Kind::Human;
        if is_choice && edge.label.is_none() && !edges.takes_any_text(at) {
            own.label = Some(Spanned::new(edges.option(at, edge), edge.span));
        }
    }
    labelled
}

/// Returns the edge's setting of what the agent at its end is told (A18).
fn carry(edge: &EdgeTree) -> Option<Box<Carry>> {
    let carry = Carry {
        fidelity: edge.attributes.fidelity.value().copied(),
        thread: edge.attributes.thread_id.text().map(|thread| thread.value.clone()),
    };
    (carry != Carry::default()).then(|| Box::new(carry))
}

/// Names the nodes whose output a call of a tool is given.
fn outputs_used(node: &NodeTree) -> Vec<String> {
    let Some(used) = node.attributes.own_command().and_then(|command| ToolUse::read(&command.value)) else {
        return Vec::new();
    };
    used.references().into_iter().filter_map(|reference| reference.ok()?.node).collect()
}

/// Says whether an edge is for a pass.
fn leads_on(edge: &EdgeTree) -> bool {
    matches!(edge.on.value, On::Success | On::Always)
}

/// The answer of a person who confirms that something is done.
const DONE: &str = "done";
const NOT_DONE: &str = "not done";

/// The edges, as they are made node by node.
pub(super) struct LoweredEdges<'w> {
    workflow: &'w Workflow,
    is_markdown: bool,
    /// The nodes whose output a call of a tool is given.
    used: BTreeSet<String>,
    of: Vec<Vec<(usize, &'w EdgeTree)>>,
    edges: Vec<Edge>,
    helpers: BTreeMap<String, Node>,
}

impl<'w> LoweredEdges<'w> {
    pub(super) fn of(workflow: &'w Workflow, is_markdown: bool) -> LoweredEdges<'w> {
        LoweredEdges {
            workflow,
            is_markdown,
            used: workflow.nodes.iter().flat_map(outputs_used).collect(),
            of: workflow.out_edges(),
            edges: Vec::new(),
            helpers: BTreeMap::new(),
        }
    }

    /// Returns what a person may choose at a node.
    pub(super) fn options(&self, at: usize) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let options = self.of[at].iter().map(|(_, edge)| self.option(at, edge));
        options.filter(|option| seen.insert(option.clone())).collect()
    }

    /// Returns with which words a person may confirm the work of a node.
    pub(super) fn confirmations(&self, at: usize) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let onward = self.of[at].iter().filter(|(_, edge)| leads_on(edge));
        let words: Vec<String> =
            onward.map(|(_, edge)| self.option(at, edge)).filter(|word| seen.insert(word.clone())).collect();
        if words.is_empty() { vec![DONE.to_owned()] } else { words }
    }

    /// Returns the answer by which a person says that the work of a node is not done: the label of its way for failures.
    pub(super) fn refusal(&self, at: usize, confirmations: &[String]) -> String {
        let labels = self.of[at].iter().filter(|(_, edge)| !leads_on(edge));
        let labels = labels.filter_map(|(_, edge)| Some(edge.label.as_ref()?.value.clone()));
        let words = labels.chain([NOT_DONE, "refused", "no"].map(str::to_owned));
        let mut free = words.filter(|word| !confirmations.contains(word));
        free.next().unwrap_or_else(|| format!("not {}", confirmations.join(", ")))
    }

    /// Says whether a question is answered in the person's own words: where the node says so, and where one way alone leads
    /// on, which has no name that could be chosen (DOT H6). In markdown such a question asks whether something is done, unless a
    /// call of a tool is given the answer.
    pub(super) fn takes_any_text(&self, at: usize) -> bool {
        let node = &self.workflow.nodes[at];
        if let Some(is_free) = node.attributes.free_text.value() {
            return *is_free;
        }
        let is_freeform =
            node.attributes.mode.text().is_some_and(|mode| mode.value.eq_ignore_ascii_case("freeform"));
        let is_question =
            node.kind.value == Kind::Human && (!self.is_markdown || self.used.contains(&node.id.value));
        let is_only_edge = || match self.of[at].as_slice() {
            [(_, only)] => only.label.is_none() && only.condition.is_none() && only.on.value == On::Success,
            _ => false,
        };
        is_freeform || (is_question && is_only_edge())
    }

    /// Returns what a person chooses who wants to go on to a node.
    pub(super) fn option_to(&self, at: usize, target: &str) -> Option<String> {
        let edge = self.of[at].iter().find(|(_, edge)| edge.to.value == target)?;
        Some(self.option(at, edge.1))
    }

    // Returns the name of an edge: its label, the answer that its condition names, or where it leads. One who confirms says
    // whether it is done.
    fn option(&self, at: usize, edge: &EdgeTree) -> String {
        if let Some(label) = &edge.label {
            return label.value.clone();
        }
        let clauses = edge.condition.as_ref().map_or(&[][..], |condition| &condition.value.clauses);
        if let [clause] = clauses
            && let (Key::PreferredLabel, Test::Is(word)) = (&clause.key, &clause.test)
        {
            return word.clone();
        }
        if !leads_on(edge) {
            return NOT_DONE.to_owned();
        }
        let is_only_edge = || self.of[at].iter().filter(|(_, edge)| leads_on(edge)).count() == 1;
        if is_confirmed(&self.workflow.nodes[at]) || (self.is_markdown && is_only_edge()) {
            return DONE.to_owned();
        }
        edge.to.value.clone()
    }

    /// Makes the edges that leave a node.
    pub(super) fn add_outgoing(&mut self, at: usize, node: &NodeTree) {
        let from = node.id.value.as_str();
        let is_choice = node.kind.value == Kind::Human;
        // Where there is nothing but the work to confirm, the conditions of its ways decide.
        let has_options = is_confirmed(node) && self.confirmations(at).len() > 1;
        for (_, edge) in self.of[at].clone() {
            let is_asked = is_choice && edge.on.value != On::Always;
            let on = if node.kind.value == Kind::Start {
                On::Always
            } else if is_asked {
                On::Success
            } else {
                edge.on.value
            };
            let label = edge.label.as_ref().map(|label| label.value.clone());
            self.edges.push(Edge {
                when: edge
                    .condition
                    .as_ref()
                    .filter(|_| !edge.is_plain())
                    .map(|condition| condition.value.clone()),
                label: match is_choice || has_options && leads_on(edge) {
                    true => Some(self.option(at, edge)),
                    false => label,
                },
                restart: edge.loop_restart.then(|| Box::new(self.restart())),
                carry: carry(edge),
                weight: i32::try_from(edge.weight).unwrap_or(0),
                ..Edge::new(from, edge.to.value.as_str(), on)
            });
        }
        if is_choice {
            self.add_unanswered(at, from);
        }
        let fails = |edge: &EdgeTree| !matches!(edge.on.value, On::Success | On::Retry) && edge.is_plain();
        let is_said = self.of[at].iter().any(|(_, edge)| fails(edge));
        if is_choice || is_said || !matches!(node.kind.value, Kind::Task | Kind::Call | Kind::SubPlan) {
            return;
        }
        if let Some(target) = self.after_last(at, node) {
            self.edges.push(Edge::new(from, target.as_str(), On::Exhaust));
        }
    }

    // H5: an unanswered question takes its way for failures.
    fn add_unanswered(&mut self, at: usize, from: &str) {
        let fails = |edge: &EdgeTree| matches!(edge.on.value, On::Fail | On::Exhaust) && edge.is_plain();
        let said = self.of[at].iter().find(|(_, edge)| fails(edge));
        if let Some((_, edge)) = said {
            self.edges.push(Edge::new(from, edge.to.value.as_str(), On::Exhaust));
        }
    }

    // E12: the part of an epoch that the next one knows.
    fn restart(&self) -> Restart {
        let keeps = self.workflow.attributes.loop_restart_persist_keys.value();
        Restart { keeps: keeps.into_iter().flatten().cloned().collect() }
    }

    // E9: the edge after the last attempt, where no edge says it. A plan in markdown asks a person, if it says nothing; so does
    // a sub-plan, which has no other attempts, without an edge for it.
    fn after_last(&mut self, at: usize, node: &NodeTree) -> Option<String> {
        let is_sub_plan = node.kind.value == Kind::SubPlan;
        let explicit = || node.attributes.on_fail.value()?.then;
        let then = if self.is_markdown && !is_sub_plan { Some(policy(node).then) } else { explicit() };
        match then {
            Some(Then::Escalate) => Some(self.helper_node(
                "ask",
                "ask a person",
                NodeKind::Escalate { reason: None, pace_level: None },
            )),
            Some(Then::Abort) => {
                Some(self.helper_node("failed", "failed", NodeKind::Exit { success: false }))
            }
            Some(Then::Skip | Then::Warn) => self.onward(at),
            None if is_sub_plan => None,
            None => node.attributes.retry_targets().next().map(|target| target.value.clone()),
        }
    }

    // A16: a step that is let pass goes where nothing but its success is asked. Edges with conditions are looked at as they
    // are written, and an author who says what follows a failure wants no other way for it.
    fn onward(&self, at: usize) -> Option<String> {
        let is_for_fail = |edge: &EdgeTree| {
            let clauses = edge.condition.as_ref().map_or(&[][..], |condition| &condition.value.clauses);
            matches!(clauses, [Clause { key: Key::Outcome, test: Test::Is(word) }] if word == On::Fail.as_str())
        };
        if self.of[at].iter().any(|(_, edge)| is_for_fail(edge)) {
            return None;
        }
        let plain = self.of[at].iter().find(|(_, edge)| edge.on.value == On::Success && edge.is_plain());
        plain.map(|(_, edge)| edge.to.value.clone())
    }

    // Steps of markdown are numbers, and no name of DOT begins with a dash, so these names are free.
    fn helper_node(&mut self, name: &str, title: &str, kind: NodeKind) -> String {
        let id = if self.is_markdown { name.to_owned() } else { format!("-{name}") };
        let is_there = self.workflow.nodes.iter().any(|node| node.id.value == id);
        if !is_there && !self.helpers.contains_key(&id) {
            let node = Node { max_visits: MAX_VISITS, ..Node::new(id.as_str(), title, kind) };
            self.helpers.insert(id.clone(), node);
        }
        id
    }

    /// Returns the start, which is made where the graph names a task as its start (G-03).
    pub(super) fn ensure_start(&mut self, nodes: &mut Vec<Node>) -> NodeId {
        let own = self.workflow.nodes.iter().find(|node| node.kind.value == Kind::Start);
        if let Some(own) = own {
            return NodeId::new(own.id.value.as_str());
        }
        let names: BTreeSet<&str> = self.workflow.nodes.iter().map(|node| node.id.value.as_str()).collect();
        let mut name = "start".to_owned();
        while names.contains(name.as_str()) {
            name.insert(0, '_');
        }
        nodes.push(Node::new(name.as_str(), "start", NodeKind::Start));
        if let Some(entry) = &self.workflow.start {
            self.edges.push(Edge::new(name.as_str(), entry.value.as_str(), On::Always));
        }
        NodeId::new(name.as_str())
    }

    /// Returns the edges, and the nodes that were added for them.
    pub(super) fn into_parts(self) -> (Vec<Edge>, impl Iterator<Item = Node>) {
        (self.edges, self.helpers.into_values())
    }
}
