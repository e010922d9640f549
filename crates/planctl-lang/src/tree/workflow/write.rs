//! Writes a graph: as DOT and JSON, which lose nothing, and as mermaid and ASCII, for the eye.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;
use planctl_engine::condition::{Clause, Condition, Key};
use serde_json::{Map, Value, json};

use super::pipeline::{SHAPES, outcome_clauses};
use super::tree::{EdgeTree, Kind, NodeTree, Workflow};
use crate::syntax::dot::{Of, is_name, json_value, plain, value_text};

/// Writes a graph of any language as DOT that Graphviz reads; reading it gives the same graph, where its names can be names in DOT.
pub fn to_dot(workflow: &Workflow) -> String {
    let names = Names::of(workflow);
    let name = workflow.name.as_ref().map_or("plan", |name| name.value.as_str());
    let mut text = format!("digraph {} {{\n", value_text(name));
    let title = workflow.title.as_ref().map(|title| ("label", title.value.as_str()));
    let said = workflow
        .attributes
        .iter()
        .filter(|(key, _)| *key != "label")
        .map(|(key, value)| (key, value.value.as_str()));
    for (key, value) in title.into_iter().chain(said) {
        text.push_str(&format!("    {}={}\n", value_text(key), value_text(value)));
    }
    // In DOT a run begins at a start node, and nowhere else (S1, G-03).
    let has_start = workflow.nodes.iter().any(|node| node.kind.value == Kind::Start);
    let entry = workflow.start.as_ref().filter(|_| !has_start).map(|entry| (names.free("start"), entry));
    if let Some((start, _)) = &entry {
        text.push_str(&format!("    {start} [shape=Mdiamond]\n"));
    }
    for node in &workflow.nodes {
        text.push_str(&format!("    {}{}\n", names.written(&node.id.value), list(&node_pairs(node, &names))));
    }
    if let Some((start, entry)) = &entry {
        text.push_str(&format!("    {start} -> {}\n", names.written(&entry.value)));
    }
    let places = workflow.places();
    for edge in &workflow.edges {
        let (from, to) = (names.written(&edge.from.value), names.written(&edge.to.value));
        text.push_str(&format!(
            "    {from} -> {to}{}\n",
            list(&edge_pairs(edge, &names, workflow.is_meant_for_success(edge, &places)))
        ));
    }
    text.push_str("}\n");
    text
}

/// Writes the statement of one node of a graph.
pub(crate) fn dot_node(node: &NodeTree, workflow: &Workflow) -> String {
    let names = Names::of(workflow);
    format!("{}{}", names.written(&node.id.value), list(&node_pairs(node, &names)))
}

fn list(pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let pairs: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{}={}", value_text(key), value_text(value))).collect();
    format!(" [{}]", pairs.join(", "))
}

fn node_pairs(node: &NodeTree, names: &Names) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut say = |key: &str, value: &str| pairs.push((key.to_owned(), value.to_owned()));
    let kind = node.kind.value;
    let drawn = if kind == Kind::Escalate {
        Kind::Human
    } else if kind == Kind::Checkpoint {
        Kind::Task
    } else {
        kind
    };
    if let Some((shape, _)) = SHAPES.iter().find(|(_, of)| *of == drawn) {
        say("shape", shape);
    }
    if matches!(kind, Kind::Escalate | Kind::Checkpoint) {
        say("type", kind.as_str());
    }
    if !node.classes.is_empty() {
        say("class", &node.classes.join(","));
    }
    for (key, value) in node.attributes.iter() {
        let is_target = matches!(key, "retry_target" | "fallback_retry_target");
        match key {
            "shape" | "type" | "class" | "contract" | "checkpoint" => {}
            _ if is_target => say(key, &names.name(&value.value)),
            // A diamond with a prompt is work (B7), so people read a decision's prompt as its description.
            "prompt" if kind == Kind::Decision => say("description", &value.value),
            "description" if kind == Kind::Decision && node.attributes.prompt.is_said() => {}
            _ => say(key, &value.value),
        }
    }
    for contract in &node.contracts {
        say(&contract.key(), &contract.command.value);
    }
    pairs
}

fn edge_pairs(edge: &EdgeTree, names: &Names, is_success_meant: bool) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut say = |key: &str, value: &str| pairs.push((key.to_owned(), value.to_owned()));
    let on = edge.on.value;
    let has_condition = !edge.is_plain();
    let is_said = match on {
        On::Success => has_condition || is_success_meant,
        On::Always => !has_condition,
        On::Fail | On::Retry | On::Exhaust => true,
    };
    if is_said {
        say("on", on.as_str());
    }
    // Other readers know no `on`: to them the outcome is a clause like any other.
    let mut clauses = if is_said { outcome_clauses(on) } else { Vec::new() };
    let own = edge.condition.iter().flat_map(|condition| condition.value.clauses.iter().cloned());
    clauses.extend(own.map(|clause| names.clause(clause)));
    if !clauses.is_empty() {
        say("condition", &Condition { clauses }.to_string());
    }
    if let Some(label) = &edge.label {
        say("label", &label.value);
    }
    if edge.weight != 0 {
        say("weight", &edge.weight.to_string());
    }
    if edge.loop_restart {
        say("loop_restart", "true");
    }
    for (key, value) in edge.attributes.iter() {
        say(key, &value.value);
    }
    pairs
}

/// Returns the name of each node in DOT.
pub(crate) fn dot_names(workflow: &Workflow) -> BTreeMap<String, String> {
    let names = Names::of(workflow);
    workflow.nodes.iter().map(|node| (node.id.value.clone(), names.name(&node.id.value))).collect()
}

/// Names that DOT can have, for nodes whose own it cannot: `3` becomes `step_3`.
struct Names {
    own: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Names {
    fn of(workflow: &Workflow) -> Names {
        let mut taken: BTreeSet<String> =
            workflow.nodes.iter().map(|node| node.id.value.clone()).filter(|name| is_name(name)).collect();
        let mut names = BTreeMap::new();
        for node in &workflow.nodes {
            let own = &node.id.value;
            if crate::syntax::dot::is_plain_name(own) || names.contains_key(own) {
                continue;
            }
            let is_number = !own.is_empty() && own.chars().all(|c| c.is_ascii_digit());
            let base = if is_number { format!("step_{own}") } else { plain(own) };
            let mut name = base.clone();
            let mut next = 2;
            while crate::syntax::dot::is_keyword(&name) || !taken.insert(name.clone()) {
                name = format!("{base}_{next}");
                next += 1;
            }
            names.insert(own.clone(), name);
        }
        Names { own: names, taken }
    }

    fn name(&self, own: &str) -> String {
        match self.own.get(own) {
            Some(name) => name.clone(),
            None if is_name(own) => own.to_owned(),
            None => plain(own),
        }
    }

    /// Returns a node's name as it stands in the text.
    fn written(&self, own: &str) -> String {
        value_text(&self.name(own))
    }

    /// Returns a name that no node has.
    fn free(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.taken.contains(&name) {
            name.push('_');
        }
        name
    }

    fn clause(&self, mut clause: Clause) -> Clause {
        if let Key::Step { node, .. } = &mut clause.key
            && let Some(name) = self.own.get(node)
        {
            node.clone_from(name);
        }
        clause
    }
}

/// Writes a graph as JSON: `{name, title, start, nodes: [{id, kind, title, …}], edges: [{from, to, on, label, …}]}`.
pub fn to_json(workflow: &Workflow) -> Value {
    let mut graph = Map::new();
    let mut say = |key: &str, value: Value| drop(graph.insert(key.to_owned(), value));
    for (key, text) in [("name", &workflow.name), ("title", &workflow.title), ("start", &workflow.start)] {
        if let Some(text) = text {
            say(key, json!(text.value));
        }
    }
    for (key, value) in workflow.attributes.iter().filter(|(key, _)| *key != "label") {
        say(key, json_value(Of::Graph, key, &value.value));
    }
    let library = &workflow.library;
    for (key, text) in [("library", &library.id), ("then", &library.then)] {
        if let Some(text) = text {
            say(key, json!(text.value));
        }
    }
    for (key, list) in [("domains", &library.domains), ("triggers", &library.triggers)] {
        if !list.is_empty() {
            say(key, json!(list.iter().map(|entry| &entry.value).collect::<Vec<_>>()));
        }
    }
    let numbers = [
        ("trigger_threshold", &library.trigger_threshold),
        ("stale_after_turns", &library.stale_after_turns),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            say(key, json!(number.value));
        }
    }
    say("nodes", workflow.nodes.iter().map(node_json).map(Value::Object).collect());
    say("edges", workflow.edges.iter().map(edge_json).collect());
    Value::Object(graph)
}

/// Writes one node as JSON: `{id, kind, title, …}`.
pub(crate) fn node_json(node: &NodeTree) -> Map<String, Value> {
    let mut said = Map::new();
    let mut say = |key: &str, value: Value| drop(said.insert(key.to_owned(), value));
    say("id", json!(node.id.value));
    say("kind", json!(node.kind.value.as_str()));
    say("title", json!(node.title()));
    for (key, value) in node.attributes.iter() {
        match key {
            "shape" | "type" | "class" | "label" | "contract" | "checkpoint" => {}
            _ => say(key, json_value(Of::Node, key, &value.value)),
        }
    }
    if !node.classes.is_empty() {
        say("class", json!(node.classes.join(",")));
    }
    for contract in &node.contracts {
        say(&contract.key(), json!(contract.command.value));
    }
    said
}

fn edge_json(edge: &EdgeTree) -> Value {
    let mut said = Map::new();
    let mut say = |key: &str, value: Value| drop(said.insert(key.to_owned(), value));
    say("from", json!(edge.from.value));
    say("to", json!(edge.to.value));
    say("on", json!(edge.on.value.as_str()));
    if let Some(condition) = edge.condition.as_ref().filter(|_| !edge.is_plain()) {
        say("when", json!(condition.value.to_string()));
    }
    if let Some(label) = &edge.label {
        say("label", json!(label.value));
    }
    if edge.weight != 0 {
        say("weight", json!(edge.weight));
    }
    if edge.loop_restart {
        say("loop_restart", json!(true));
    }
    for (key, value) in edge.attributes.iter() {
        say(key, json!(value.value));
    }
    Value::Object(said)
}

/// Returns what stands at an edge for people: its label, else when it is taken; nothing for plain success.
pub fn edge_words(edge: &EdgeTree) -> String {
    let condition = edge.condition.as_ref().map(|condition| condition.value.to_string()).unwrap_or_default();
    let on = match (edge.on.value, condition.is_empty()) {
        (On::Success, _) | (On::Always, false) => "",
        (on, _) => on.as_str(),
    };
    let label = edge.label.as_ref().map_or("", |label| label.value.as_str());
    let anew = if edge.loop_restart { "begins anew" } else { "" };
    let parts = [label, on, condition.as_str(), anew];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Writes a graph as a mermaid flowchart.
pub fn to_mermaid(workflow: &Workflow) -> String {
    let mut text = String::from("flowchart TD\n");
    let places = workflow.places();
    for (at, node) in workflow.nodes.iter().enumerate() {
        let (open, close) = match node.kind.value {
            Kind::Start | Kind::Exit => ("([", "])"),
            Kind::Task => ("[", "]"),
            Kind::Decision => ("{", "}"),
            Kind::Human => ("{{", "}}"),
            Kind::Call => ("[/", "/]"),
            Kind::Checkpoint => ("[(", ")]"),
            Kind::Fork | Kind::Join => ("[[", "]]"),
            Kind::Escalate => (">", "]"),
            Kind::SubPlan => ("[\\", "/]"),
        };
        text.push_str(&format!("    n{at}{open}\"{}\"{close}\n", mermaid_text(node.title())));
    }
    for edge in &workflow.edges {
        let ends = (places.get(edge.from.value.as_str()), places.get(edge.to.value.as_str()));
        let (Some(from), Some(to)) = ends else { continue };
        let arrow = if edge.is_for_failure() { "-.->" } else { "-->" };
        let words = edge_words(edge);
        let label = if words.is_empty() { String::new() } else { format!("|\"{}\"|", mermaid_text(&words)) };
        text.push_str(&format!("    n{from} {arrow}{label} n{to}\n"));
    }
    text
}

// Mermaid takes entities by number, in place of every sign that it would read.
fn mermaid_text(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars().take(200) {
        match letter {
            '"' | '#' | '<' | '>' | '&' | '`' | '|' | ';' | '\\' => {
                safe.push_str(&format!("#{};", u32::from(letter)))
            }
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Where one node of a run stands, for a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Whether it is over.
    pub phase: Phase,
    /// The same in words, with what was counted: `passed, 2 attempts`.
    pub words: String,
}

/// Whether a node of a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The run was not there yet, or is to come there again.
    Ahead,
    /// It is over and counts as met.
    Done,
    /// Something is done at it.
    Current,
    /// It waits for a person.
    Waiting,
    /// It is over and failed.
    Failed,
}

/// Where the nodes of a run stand, by name; empty where nothing runs.
pub type Stages = BTreeMap<String, Stage>;

/// Writes a graph as lines of text: each node with the ways that leave it, from the start on.
pub fn to_ascii(workflow: &Workflow) -> String {
    to_ascii_at(workflow, &Stages::new())
}

/// Writes a graph as lines of text, and where each of its nodes stands.
pub fn to_ascii_at(workflow: &Workflow, stages: &Stages) -> String {
    let out_edges = workflow.out_edges();
    let mut text = String::new();
    for at in workflow.walk() {
        let node = &workflow.nodes[at];
        let kind = node.kind.value;
        let kind = if kind == Kind::Task {
            String::new()
        } else {
            format!(" ({})", kind.as_str().replace('_', "-"))
        };
        let title = if node.title() == node.id.value {
            String::new()
        } else {
            format!(": {}", one_line(node.title()))
        };
        let stage = stages.get(&node.id.value).map(stage_words).unwrap_or_default();
        text.push_str(&format!("{}{kind}{title}{stage}\n", one_line(&node.id.value)));
        for (index, (to, edge)) in out_edges[at].iter().enumerate() {
            let branch = if index + 1 == out_edges[at].len() { "`->" } else { "|->" };
            let words = edge_words(edge);
            let words = if words.is_empty() { String::new() } else { format!("  ({})", one_line(&words)) };
            text.push_str(&format!("  {branch} {}{words}\n", one_line(&workflow.nodes[*to].id.value)));
        }
    }
    text
}

fn stage_words(stage: &Stage) -> String {
    let here = match stage.phase {
        Phase::Current | Phase::Waiting => "  << ",
        Phase::Ahead | Phase::Done | Phase::Failed => "  ",
    };
    if stage.words.is_empty() { String::new() } else { format!("{here}[{}]", one_line(&stage.words)) }
}

fn one_line(text: &str) -> String {
    crate::text::characters::printable(&crate::text::one_line(text))
}
