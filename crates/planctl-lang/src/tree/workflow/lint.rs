//! Findings about graphs, in every language: rows L1–L6 and G-12.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::condition::{Clause, Key, Test};
use planctl_engine::{Backoff, On};

use super::tree::{EdgeTree, Kind, NodeTree, Workflow};
use super::{asked, fallbacks, folders, loops, sub_plans};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::Language;
use crate::syntax::condition;
use crate::syntax::values::on_fail_of;
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};

/// The most goal gates for which it is asked whether a way leads past them.
const GATES_MAX: usize = 100;
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
        let out_edges = workflow.out_edges();
        let mut back = vec![Vec::new(); out_edges.len()];
        for (from, out_edges) in out_edges.iter().enumerate() {
            for (to, _) in out_edges {
                back[*to].push(from);
            }
        }
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

    /// Returns the nodes that a search from some reaches, along edges or against them.
    fn reached(&self, from: impl IntoIterator<Item = usize>, is_back: bool) -> Vec<bool> {
        let mut seen = vec![false; self.out_edges.len()];
        let mut open: Vec<usize> = from.into_iter().collect();
        for at in &open {
            seen[*at] = true;
        }
        while let Some(at) = open.pop() {
            let next: Vec<usize> = if is_back { self.back[at].clone() } else { self.next(at) };
            for to in next {
                if !seen[to] {
                    seen[to] = true;
                    open.push(to);
                }
            }
        }
        seen
    }

    /// Says whether a run may come from a node to an end without visiting another. All branches of a fork run, so that a fork
    /// is passed only where each branch can go past the node, unless a join waits for the first alone.
    fn leads_past(&self, entry: usize, node: usize, ends: &[usize]) -> bool {
        let waits_for_all = |node: &NodeTree| {
            let policy = node.said.text("join_policy").map(|policy| policy.value.as_str());
            matches!(policy, None | Some("wait_all" | "all"))
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

    // A goal gate that fails, and attempts that are used up, lead back to where it is said.
    fn next(&self, at: usize) -> Vec<usize> {
        self.out_edges[at].iter().map(|(to, _)| *to).collect()
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
    outcomes(workflow, found);
    asked::lint(&shape, found);
}

/// Returns the findings about nodes and edges alone, without their attributes.
pub(super) fn structure(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    names(shape, found);
    reachable(shape, found);
    edges(shape, found);
    fallbacks::lint(shape, found);
    loops::lint(shape, found);
    if shape.language.is_none() {
        asked::lint(shape, found);
    }
}

// Two nodes of one name, and names that nothing has (L2). Steps of one number are told apart from this (P013).
fn names(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let (workflow, places) = (shape.workflow, &shape.places);
    for (at, node) in workflow.nodes.iter().enumerate().filter(|_| shape.language.is_some()) {
        if let Some(first) = places.get(node.id.value.as_str()).filter(|first| **first != at) {
            let message = format!("two nodes are named `{}`", escape(&node.id.value));
            let twice = Diagnostic::new(Code::P009, message).at(node.id.span, "this one is left out");
            found.push(
                twice.at(workflow.nodes[*first].id.span, "the first").help("give one of them another name"),
            );
        }
    }
    let known: Vec<&str> = places.keys().copied().collect();
    let mut missed = Missed { shape, known, reported: BTreeSet::new(), found };
    if let Some(start) = &workflow.start {
        missed.look("the start", start);
    }
    for edge in &workflow.edges {
        let who = shape.or_in_markdown("an edge", "a line of `## Flow`");
        missed.look(who, &edge.from);
        missed.look(who, &edge.to);
    }
    let targets = |said: &super::tree::Said| {
        ["retry_target", "fallback_retry_target"].map(|key| said.text(key).cloned())
    };
    for said in std::iter::once(&workflow.said).chain(workflow.nodes.iter().map(|node| &node.said)) {
        for target in targets(said).iter().flatten() {
            missed.look("a retry", target);
        }
    }
    for asked in asked::conditions(shape) {
        for (clause, span) in asked.clauses() {
            if let Key::Step { node, .. } = &clause.key {
                missed.look("a condition", &Spanned::new(node.clone(), span));
            }
        }
    }
}

struct Missed<'a, 's> {
    shape: &'a Shape<'s>,
    known: Vec<&'a str>,
    reported: BTreeSet<(String, Span)>,
    found: &'a mut Vec<Diagnostic>,
}

impl Missed<'_, '_> {
    fn look(&mut self, who: &str, name: &Spanned<String>) {
        let is_known = self.known.binary_search(&name.value.as_str()).is_ok();
        // Each is compared with every name, so only so many are.
        let is_reported =
            self.reported.len() >= OF_A_KIND_MAX || !self.reported.insert((name.value.clone(), name.span));
        if is_known {
            self.reported.remove(&(name.value.clone(), name.span));
            return;
        }
        if is_reported {
            return;
        }
        let shown = escape(&name.value);
        let message = match self.shape.language {
            Some(_) => format!("{who} names `{shown}`, which is no node"),
            None => format!("{who} names step {shown}, which is not there"),
        };
        let finding = Diagnostic::new(Code::P304, message).at(name.span, "");
        let near = nearest(&name.value, self.known.iter().copied());
        self.found.push(match (near, self.shape.language) {
            (Some(near), _) => finding.help(format!("did you mean `{}`?", near.word)),
            (None, Some(_)) => finding.help(format!("declare the node `{shown}`, or mend the name")),
            (None, None) => finding.help("mend the number"),
        });
    }
}

// L1, and what may lead to a start and away from an end.
fn ends(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let workflow = shape.workflow;
    let starts: Vec<&NodeTree> = shape.of_kind(Kind::Start).collect();
    let top = workflow.name.as_ref().map_or(Span::at(0), |name| name.span);
    if let [first, second, ..] = starts[..] {
        let message = "the graph has more than one start node";
        let many = Diagnostic::new(Code::P306, message).at(second.kind.span, "a second one");
        found.push(many.at(first.kind.span, "the first").help("a run begins at one node: keep one of them"));
    } else if starts.is_empty() && workflow.start.is_none() {
        let missing = Diagnostic::new(Code::P306, "the graph has no start node").at(top, "");
        found.push(
            missing.help(
                "add a node that begins it: `start [shape=Mdiamond]`, or `\"start\": \"NODE\"` in JSON",
            ),
        );
    }
    let exits: Vec<&NodeTree> = shape.of_kind(Kind::Exit).collect();
    if exits.iter().all(|exit| exit.is_failed_exit()) {
        let missing = Diagnostic::new(Code::P306, "the graph has no exit node").at(top, "");
        let help = "add a node that ends it: `done [shape=Msquare]`, or `{\"type\": \"exit\"}` in JSON";
        found.push(missing.help(help));
    }
    for result in [false, true] {
        let of_one_result: Vec<_> = exits.iter().filter(|exit| exit.is_failed_exit() == result).collect();
        if let [first, second, ..] = of_one_result[..] {
            let message = "the graph has more than one exit of one result";
            let many = Diagnostic::new(Code::P306, message).at(second.kind.span, "a second one");
            found.push(
                many.at(first.kind.span, "the first")
                    .help("lead all ways to one exit; an exit of a run that failed has `result=failed`"),
            );
        }
    }
}

// L2, and G-12: no way to it, and no way on from it.
fn reachable(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let Some(entry) = shape.entry else { return };
    let targets = retry_targets(shape.workflow);
    let from_start = shape.reached(std::iter::once(entry).chain(targets), false);
    let is_end = |node: &NodeTree| matches!(node.kind.value, Kind::Exit | Kind::Escalate);
    let ends = (0..shape.out_edges.len()).filter(|at| is_end(shape.node(*at)));
    let to_end = shape.reached(ends, true);
    let mut of_kind = Vec::new();
    let mut of_ends = Vec::new();
    for (at, node) in shape.workflow.nodes.iter().enumerate() {
        // An implied node is no place to fix, so it is reported only if nothing else is.
        let is_implied = shape.language.is_none() && matches!(node.kind.value, Kind::Start | Kind::Exit);
        let reported = if is_implied { &mut of_ends } else { &mut of_kind };
        if !from_start[at] {
            reported.push(match shape.workflow.is_alone(node) {
                true => alone(node),
                false => unreachable(shape, node),
            });
        } else if !to_end[at] && !is_end(node) {
            reported.push(dead_end(shape, node, !shape.out_edges[at].is_empty()));
        }
        if of_kind.len() >= OF_A_KIND_MAX {
            break;
        }
    }
    if of_kind.is_empty() {
        of_kind.extend(of_ends);
    }
    found.append(&mut of_kind);
}

// no work is lost with it, so the graph runs without it.
fn alone(node: &NodeTree) -> Diagnostic {
    let name = escape(&node.id.value);
    let message = format!("no edge leads to the decision `{name}` or leaves it, so nothing is decided there");
    let finding = Diagnostic::new(Code::P305, message).level(Severity::Warning).at(node.id.span, "left out");
    finding.help("lead the edges that it decides between through it, or delete it")
}

fn unreachable(shape: &Shape<'_>, node: &NodeTree) -> Diagnostic {
    let message = format!("nothing leads to {}: it is unreachable", shape.named(node));
    let finding = Diagnostic::new(Code::P305, message).at(node.id.span, "never entered");
    let number = escape(&node.id.value);
    match (shape.language, node.kind.value) {
        (Some(_), _) => finding.help("lead an edge to it, or delete it"),
        (None, Kind::Exit) => finding.help("let a line of `## Flow` lead there: `- 3 -> done`"),
        (None, Kind::Escalate) => {
            finding.help(format!("say in `## Flow` when it is asked: `- 1 -> {number} on exhaust`"))
        }
        (None, _) => {
            finding.help(format!("let a line of `## Flow` lead to it: `- 1 -> {number}`, or delete it"))
        }
    }
}

fn dead_end(shape: &Shape<'_>, node: &NodeTree, has_edges: bool) -> Diagnostic {
    let name = shape.named(node);
    let message = match (has_edges, shape.language) {
        (true, Some(_)) => format!("no way leads from {name} to an end"),
        (true, None) => format!("no way leads from {name} to the end of the plan"),
        (false, Some(_)) => format!("no edge leaves {name}"),
        (false, None) => format!("nothing follows {name}, and it is not the end of the plan"),
    };
    let finding = Diagnostic::new(Code::P307, message).at(node.id.span, "a run would stand still here");
    match shape.language {
        Some(_) => finding.help(
            "lead an edge from it to an exit, or to a node that escalates; a run that ends here as failed leads to an \
             exit with `result=failed`",
        ),
        None => finding.help("let a line of `## Flow` lead on from there: `- 3 -> 4`, `- 3 -> done`"),
    }
}

fn retry_targets(workflow: &Workflow) -> Vec<usize> {
    let places = workflow.places();
    let said = std::iter::once(&workflow.said).chain(workflow.nodes.iter().map(|node| &node.said));
    let keys = ["retry_target", "fallback_retry_target"];
    let targets = said.flat_map(|said| keys.map(|key| said.text(key)));
    targets.flatten().filter_map(|target| places.get(target.value.as_str()).copied()).collect()
}

// Edges that their nodes can't have, and two for one outcome.
fn edges(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let are_branches = shape.workflow.said.flag("parallel_edges").is_some_and(|flag| flag.value);
    let before = found.len();
    for (at, out_edges) in shape.out_edges.iter().enumerate() {
        let node = shape.node(at);
        if node.kind.value == Kind::Exit
            && let Some((_, edge)) = out_edges.first()
        {
            let message = match shape.language {
                Some(_) => format!("an edge leaves the exit `{}`", escape(&node.id.value)),
                None => "a line of `## Flow` leads on from the end of the plan".to_owned(),
            };
            let finding = Diagnostic::new(Code::P308, message).at(edge.span, "never followed");
            found.push(finding.help(shape.or_in_markdown(
                "delete it, or make the node something else than an exit",
                "delete the line",
            )));
        }
        for (to, edge) in out_edges {
            let end = shape.node(*to).kind.value;
            if edge.loop_restart && matches!(end, Kind::Join | Kind::Exit | Kind::Escalate) {
                let name = escape(&edge.to.value);
                let message = format!("the run would begin anew at `{name}`, where nothing is done");
                let finding = Diagnostic::new(Code::P308, message).at(edge.span, "");
                found.push(finding.help("lead it to the node with which the work begins again"));
            }
            if end == Kind::Start {
                let message = match shape.language {
                    Some(_) => format!("an edge leads back to the start `{}`", escape(&edge.to.value)),
                    None => "a line of `## Flow` leads back to the beginning of the plan".to_owned(),
                };
                let finding = Diagnostic::new(Code::P308, message).at(edge.span, "");
                let help = "lead it to the node after the start";
                found.push(
                    finding.help(shape.or_in_markdown(help, "name the step with which it begins again")),
                );
            }
        }
        if found.len() > before + OF_A_KIND_MAX {
            return;
        }
        several(shape, node, out_edges, are_branches, found);
    }
}

// P12: several ways that hold at once are one choice only where something tells them apart.
fn several(
    shape: &Shape<'_>,
    node: &NodeTree,
    out_edges: &[(usize, &EdgeTree)],
    are_branches: bool,
    found: &mut Vec<Diagnostic>,
) {
    if matches!(node.kind.value, Kind::Fork | Kind::Human | Kind::Exit) {
        return;
    }
    let mut groups: BTreeMap<(On, String), Vec<&EdgeTree>> = BTreeMap::new();
    for (_, edge) in out_edges {
        let condition = edge.condition.as_ref().map(|condition| condition.value.to_string());
        groups.entry((edge.on.value, condition.unwrap_or_default())).or_default().push(edge);
    }
    for ((on, condition), edges) in groups {
        let [first, second, ..] = edges[..] else { continue };
        let is_choice = on == On::Success || !condition.is_empty();
        if is_told_apart(&edges) || (is_choice && are_branches) {
            continue;
        }
        let name = escape(&node.id.value);
        let twin = |(at, one): (usize, &&EdgeTree)| {
            let same = edges[at + 1..].iter().find(|other| other.to.value == one.to.value)?;
            Some((one.span, same.span))
        };
        if let Some((first, second)) = edges.iter().enumerate().find_map(twin).filter(|_| is_choice) {
            let message = match shape.language {
                Some(_) => format!("one edge of `{name}` is there twice"),
                None => format!("one way on from step {name} is there twice"),
            };
            let finding = Diagnostic::new(Code::P308, message).at(second, "a second one");
            found.push(finding.at(first, "the first").help("delete one of them"));
        } else if is_choice {
            let message = format!("several edges leave `{name}` at once, and only one is followed");
            let finding =
                Diagnostic::new(Code::P311, message).at(second.span, "never followed where the other is");
            found.push(finding.at(first.span, "the first").help(
                "to follow all of them, make the node a fork (`shape=component`); to choose, give each a `label` or a `condition`",
            ));
        } else {
            let message = match shape.language {
                Some(_) => format!("two edges of `{name}` are for one outcome"),
                None => format!("two ways lead on from step {name} for one outcome"),
            };
            let finding = Diagnostic::new(Code::P308, message).at(second.span, "a second one");
            found
                .push(finding.at(first.span, "the first").help("delete one of them, or give it a condition"));
        }
    }
}

// Every edge has a label or a weight of its own.
fn is_told_apart(edges: &[&EdgeTree]) -> bool {
    let labels: BTreeSet<&str> =
        edges.iter().filter_map(|edge| Some(edge.label.as_ref()?.value.as_str())).collect();
    let weights: BTreeSet<i64> = edges.iter().map(|edge| edge.weight).collect();
    labels.len() == edges.len() || weights.len() == edges.len()
}

// Finds the attributes that a node of its kind lacks, and those that have no effect there.
fn attributes(workflow: &Workflow, node: &NodeTree, language: Language, found: &mut Vec<Diagnostic>) {
    let name = escape(&node.id.value);
    match node.kind.value {
        Kind::Task => task_attributes(node, language, found),
        Kind::Call if node.said.text("tool_command").is_none() => {
            found.push(lacks(node, "command to call", "write `tool_command=\"COMMAND\"`"));
        }
        Kind::SubPlan => sub_plan_attributes(workflow, node, found),
        // The reader of JSON says it of the form in which both are required.
        Kind::Escalate if language == Language::Dot => escalation_attributes(node, found),
        Kind::Start => {
            // In DOT a contract may be the default of all nodes (`node [contract=none]`).
            let is_own = language == Language::Json;
            let contracts = node.contracts.iter().filter(|_| is_own).map(|contract| &contract.command);
            for said in node.said.text("prompt").into_iter().chain(contracts) {
                let message = format!("nobody works at the start `{name}`, so its action has no effect");
                let finding = Diagnostic::new(Code::P314, message).at(said.span, "never done");
                found.push(finding.help("move it to a task that the start leads to"));
            }
        }
        Kind::Join => {
            if let Some(prompt) = node.said.text("prompt") {
                let message = format!("nobody works at the join `{name}`, so its prompt has no effect");
                let finding = Diagnostic::new(Code::P314, message).at(prompt.span, "");
                found
                    .push(finding.help("let a task after it judge the branches, with a contract of its own"));
            }
        }
        Kind::Escalate
        | Kind::Decision
        | Kind::Human
        | Kind::Call
        | Kind::Checkpoint
        | Kind::Fork
        | Kind::Exit => {}
    }
    if let (Some(policy), Some(retries)) = (node.said.text("on_fail"), node.said.text("max_retries"))
        && policy.value.contains("retry")
    {
        let message = format!("`on_fail` and `max_retries` of `{name}` both say how often");
        let clash = Diagnostic::new(Code::P009, message)
            .level(Severity::Warning)
            .at(retries.span, "this has no effect");
        found.push(clash.at(policy.span, "this counts").help("keep one of them"));
    }
}

fn lacks(node: &NodeTree, what: &str, help: &str) -> Diagnostic {
    let message = format!("node `{}` has no {what}", escape(&node.id.value));
    Diagnostic::new(Code::P009, message).at(node.id.span, "").help(help)
}

fn task_attributes(node: &NodeTree, language: Language, found: &mut Vec<Diagnostic>) {
    if node.contracts.is_empty() && node.said.text("verify.type").is_none() {
        let name = escape(&node.id.value);
        let message = format!("node `{name}` has no contract, so nothing could say that its work is done");
        let finding = Diagnostic::new(Code::P010, message)
            .at(node.id.span, "")
            .help("write `contract=\"COMMAND\"`, whose exit code decides; `contract=none` asks a person");
        found.push(match language {
            Language::Dot => finding
                .mends_all("`node [contract=none]` before the first node lets a person confirm each of them"),
            Language::Json => finding,
        });
    }
    // A8: the label is the prompt where there is none.
    if node.said.text("prompt").or(node.said.text("label")).is_none() {
        let help =
            "write what is to be done into `prompt`; until then its name is all that the worker is told";
        found.push(lacks(node, "prompt", help).level(Severity::Warning));
    }
}

fn sub_plan_attributes(workflow: &Workflow, node: &NodeTree, found: &mut Vec<Diagnostic>) {
    if sub_plans::file(workflow, node).is_none() {
        // Some readers of the dialect have these two shapes the other way round.
        let help = match node.said.text("shape").is_some_and(|said| said.value == "house") {
            true => "write `stack.child_dotfile=\"FILE\"`; a question for a person is `shape=hexagon`",
            false => "write `stack.child_dotfile=\"FILE\"`",
        };
        found.push(lacks(node, "plan to run", help));
    }
    if let Some(until) = node.said.text("manager.stop_condition")
        && let Err(refused) = condition::read(&until.value)
    {
        found.push(refused.finding(until.span, false));
    }
}

fn escalation_attributes(node: &NodeTree, found: &mut Vec<Diagnostic>) {
    if node.said.text("escalate").is_none() {
        let help = "say what the person is to know: `escalate=\"REASON\"`, or `\"reason\"` in JSON";
        found.push(lacks(node, "reason", help).level(Severity::Warning));
    }
    if node.said.text("pace_level").is_none() {
        let help = "write `pace_level=contingent`, or another of primary, alternate, contingent, emergency";
        found.push(lacks(node, "PACE level", help).level(Severity::Warning));
    }
}

// H1: of two options with one key, the key answers neither.
fn keys(node: &NodeTree, out_edges: &[(usize, &EdgeTree)], found: &mut Vec<Diagnostic>) {
    let mut seen: BTreeMap<String, &Spanned<String>> = BTreeMap::new();
    for label in out_edges.iter().filter_map(|(_, edge)| edge.label.as_ref()) {
        let Some(key) = planctl_engine::key_of(&label.value) else { continue };
        match seen.get(&key) {
            Some(first)
                if planctl_engine::plain_label(&first.value) != planctl_engine::plain_label(&label.value) =>
            {
                let name = escape(&node.id.value);
                let message = format!("two options of the question `{name}` have the key `{}`", escape(&key));
                let finding = Diagnostic::new(Code::P320, message).at(label.span, "a second one");
                found.push(
                    finding
                        .at(first.span, "the first")
                        .help("give each option a key of its own; until then people answer with the words or the number"),
                );
            }
            Some(_) => {}
            None => drop(seen.insert(key, label)),
        }
    }
}

// B2, A2: edges for an outcome that their node never has.
fn outcomes(workflow: &Workflow, found: &mut Vec<Diagnostic>) {
    let places = workflow.places();
    for edge in &workflow.edges {
        let Some(node) = places.get(edge.from.value.as_str()).map(|at| &workflow.nodes[*at]) else {
            continue;
        };
        if !matches!(node.kind.value, Kind::Task | Kind::Call) {
            continue;
        }
        let name = escape(&node.id.value);
        if edge.on.value == On::Retry && !may_retry(workflow, node) {
            let message = format!("`{name}` is tried once, so nothing follows this edge for `retry`");
            let finding = Diagnostic::new(Code::P317, message).at(edge.on.span, "never followed");
            found.push(finding.help(format!(
                "write `max_retries=2` at `{name}` to have it followed after each failure but the last, or \
                 `outcome=fail` for the way after the last"
            )));
        }
        let lets_pass = node.said.flag("allow_partial").is_some_and(|flag| flag.value);
        let clauses = edge.condition.as_ref().map_or(&[][..], |condition| &condition.value.clauses);
        let is_fail =
            |clause: &Clause| clause.key == Key::Outcome && clause.test == Test::Is("fail".to_owned());
        if lets_pass && edge.on.value == On::Always && clauses.iter().any(is_fail) {
            let span = edge.condition.as_ref().map_or(edge.span, |condition| condition.span);
            let message =
                format!("`{name}` has `allow_partial`, so its failure is `partial_success` and never `fail`");
            let finding = Diagnostic::new(Code::P317, message).at(span, "never followed");
            found.push(finding.help("write `outcome=partial_success`, or delete `allow_partial`"));
        }
        if found.len() > OF_A_KIND_MAX * 20 {
            return;
        }
    }
}

// R1, R2: the node's own number, else the graph's.
fn may_retry(workflow: &Workflow, node: &NodeTree) -> bool {
    let preset = |said: &super::tree::Said| {
        let word = said.text("retry_policy")?;
        Some(Backoff::named(&word.value)?.1)
    };
    let number = |said: &super::tree::Said, key: &str| Some(said.number::<u16>(key)?.value);
    let policy = node.said.text("on_fail").and_then(|policy| on_fail_of(&policy.value)?.retries);
    let retries = policy
        .or_else(|| number(&node.said, "max_retries"))
        .or_else(|| preset(&node.said))
        .or_else(|| number(&workflow.said, "default_max_retries"))
        .or_else(|| preset(&workflow.said));
    retries.unwrap_or(0) > 0
}

// L4 and L6: a gate that nothing leads back from, or that a way leads past (ruling 4).
fn gates(shape: &Shape<'_>, language: Language, found: &mut Vec<Diagnostic>) {
    let workflow = shape.workflow;
    let is_gate = |at: &usize| shape.node(*at).said.flag("goal_gate").is_some_and(|gate| gate.value);
    let gates: Vec<usize> = (0..workflow.nodes.len()).filter(is_gate).take(GATES_MAX).collect();
    let target =
        |said: &super::tree::Said| said.text("retry_target").or(said.text("fallback_retry_target")).is_some();
    let exits: Vec<usize> = (0..workflow.nodes.len())
        .filter(|at| shape.node(*at).kind.value == Kind::Exit && !shape.node(*at).is_failed_exit())
        .collect();
    for at in gates {
        let node = shape.node(at);
        let name = escape(&node.id.value);
        if !target(&node.said) && !target(&workflow.said) {
            let message = format!("nothing says where to go when the goal gate `{name}` is not met");
            let finding = Diagnostic::new(Code::P312, message).at(node.id.span, "the run fails then");
            let finding = finding.help("write `retry_target=NODE` there or for the graph");
            found.push(match language {
                Language::Dot => finding.mends_all("`graph [retry_target=NODE]`"),
                Language::Json => finding,
            });
        }
        let Some(entry) = shape.entry.filter(|entry| *entry != at) else { continue };
        if shape.leads_past(entry, at, &exits) {
            let message = format!("a way leads to the exit past the goal gate `{name}`");
            let finding = Diagnostic::new(Code::P312, message)
                .at(node.id.span, "a run that does not visit it can't succeed");
            found.push(finding.help("lead every way to the exit through it, or delete `goal_gate`"));
        }
    }
}
