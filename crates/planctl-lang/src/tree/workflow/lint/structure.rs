//! Findings about names, edges, and what can be reached.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;
use planctl_engine::condition::Key;

use super::super::tree::{EdgeTree, Kind, NodeTree, Origin};
use super::super::{asked, fallbacks, loops};
use super::{OF_A_KIND_MAX, Shape};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::Language;
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};

/// Returns the findings about nodes and edges alone, without their attributes.
pub(in super::super) fn structure(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    names(shape, found);
    lint_reachable(shape, found);
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
    for target in workflow.retry_targets() {
        missed.look("a retry", target);
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
            Some(_) => format!("{who} names `{shown}`, but there is no such node"),
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
pub(super) fn ends(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
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
    if let Some(first) = exits.first()
        && exits.iter().all(|exit| exit.is_failed_exit())
    {
        let (exit, failed) = match shape.language.unwrap_or(Language::Dot) {
            Language::Dot => ("`done [shape=Msquare]`", "`result=failed`"),
            Language::Json => ("`\"done\": {\"type\": \"exit\"}`", "`\"result\": \"failed\"`"),
        };
        let message = "each exit of the graph is for runs that failed";
        let failed_only = Diagnostic::new(Code::P306, message).at(first.kind.span, "so no run can succeed");
        found.push(failed_only.help(format!("add one for runs that succeed: {exit}; or leave out {failed}")));
    } else if exits.is_empty() {
        let missing = Diagnostic::new(Code::P306, "the graph has no exit node").at(top, "");
        let help = "add a node that ends it: `done [shape=Msquare]`, or `{\"type\": \"exit\"}` in JSON";
        found.push(missing.help(help));
    }
    for result in [false, true] {
        let of_one_result: Vec<_> = exits.iter().filter(|exit| exit.is_failed_exit() == result).collect();
        if let [first, second, ..] = of_one_result[..] {
            let message = "the graph has more than one exit of one result";
            let many = Diagnostic::new(Code::P306, message).at(second.kind.span, "a second one");
            let failed = shape.language.unwrap_or(Language::Dot).attribute("result", "failed");
            let help = format!("lead all paths to one exit; an exit of a run that failed has {failed}");
            found.push(many.at(first.kind.span, "the first").help(help));
        }
    }
}

// L2, and G-12: no way to it, and no way on from it.
fn lint_reachable(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let Some(entry) = shape.entry else { return };
    let targets =
        shape.workflow.retry_targets().filter_map(|target| shape.places.get(target.value.as_str()).copied());
    let from_start = shape.reachable_from(std::iter::once(entry).chain(targets), false);
    let is_end = |node: &NodeTree| matches!(node.kind.value, Kind::Exit | Kind::Escalate);
    let ends = (0..shape.out_edges.len())
        .filter(|at| shape.node(*at).kind.value == Kind::Exit || asks_on_purpose(shape, *at));
    let to_end = shape.reachable_from(ends, true);
    let mut of_kind = Vec::new();
    let mut of_ends = Vec::new();
    for (at, node) in shape.workflow.nodes.iter().enumerate() {
        // An implied node is no place to fix, so it is reported only if nothing else is.
        let reported = if node.origin == Origin::Order { &mut of_ends } else { &mut of_kind };
        if !from_start[at] {
            reported.push(match shape.workflow.is_alone(node) {
                true => disconnected_finding(node),
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

// A person who is asked only after a failure is not where a run ends that goes well.
fn asks_on_purpose(shape: &Shape<'_>, at: usize) -> bool {
    let is_chosen = matches!(shape.node(at).kind.value, Kind::Human | Kind::Start);
    shape.out_edges[at].iter().any(|(to, edge)| {
        let is_asked = shape.node(*to).kind.value == Kind::Escalate;
        is_asked && (is_chosen || matches!(edge.on.value, On::Success | On::Always))
    })
}

// no work is lost with it, so the graph runs without it.
fn disconnected_finding(node: &NodeTree) -> Diagnostic {
    let name = escape(&node.id.value);
    let message = format!("no edge leads to the decision `{name}` or leaves it, so nothing is decided there");
    let finding = Diagnostic::new(Code::P305, message).level(Severity::Warning).at(node.id.span, "left out");
    finding.help("lead the edges that it decides between through it, or delete it")
}

// The steps of a plan in markdown, in their order.
fn steps<'w>(shape: &Shape<'w>) -> impl Iterator<Item = &'w NodeTree> + Clone {
    shape.workflow.nodes.iter().filter(|node| node.step.is_some())
}

fn unreachable(shape: &Shape<'_>, node: &NodeTree) -> Diagnostic {
    let message = format!("nothing leads to {}: it is unreachable", shape.named(node));
    let finding = Diagnostic::new(Code::P305, message).at(node.id.span, "never entered");
    let number = escape(&node.id.value);
    let others: Vec<String> =
        steps(shape).map(|step| escape(&step.id.value)).filter(|other| *other != number).collect();
    let is_first = steps(shape).next().is_some_and(|first| first.id == node.id);
    let first = others.first().filter(|_| !is_first).map_or("start", String::as_str);
    match (shape.language, node.kind.value) {
        (Some(_), _) => finding.help("lead an edge to it, or delete it"),
        (None, Kind::Exit) => {
            let last = others.last().map_or("start", String::as_str);
            finding.help(format!("let a line of `## Flow` lead there: `- {last} -> done`"))
        }
        (None, Kind::Escalate) => {
            finding.help(format!("say in `## Flow` when it is asked: `- {first} -> {number} on exhaust`"))
        }
        (None, _) => {
            finding.help(format!("let a line of `## Flow` lead to it: `- {first} -> {number}`, or delete it"))
        }
    }
}

fn dead_end(shape: &Shape<'_>, node: &NodeTree, has_edges: bool) -> Diagnostic {
    let name = shape.named(node);
    let message = match (has_edges, shape.language) {
        (true, Some(_)) => format!("no path leads from {name} to an end"),
        (true, None) => format!("no path leads from {name} to the end of the plan"),
        (false, Some(_)) => format!("no edge leaves {name}"),
        (false, None) => format!("nothing follows {name}, and it is not the end of the plan"),
    };
    let finding = Diagnostic::new(Code::P307, message).at(node.id.span, "a run would stand still here");
    match shape.language {
        Some(language) => finding.help(format!(
            "lead an edge from it to an exit, or to a node that escalates; a run that ends here as failed leads to an \
             exit with {}",
            language.attribute("result", "failed")
        )),
        None => {
            let own = escape(&node.id.value);
            let next = steps(shape).skip_while(|step| step.id.value != node.id.value).nth(1);
            let next = next.map(|next| format!("`- {own} -> {}`, ", escape(&next.id.value))).unwrap_or_default();
            finding.help(format!("let a line of `## Flow` lead on from there: {next}`- {own} -> done`"))
        }
    }
}

// Edges that their nodes can't have, and two for one outcome.
pub(super) fn edges(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let are_branches = shape.workflow.attributes.parallel_edges.is(&true);
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
        lint_several_edges(shape, node, out_edges, are_branches, found);
    }
}

// P12: several ways that hold at once are one choice only where something tells them apart.
fn lint_several_edges(
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
                None => format!("one edge from step {name} is there twice"),
            };
            let finding = Diagnostic::new(Code::P308, message).at(second, "a second one");
            found.push(finding.at(first, "the first").help("delete one of them"));
        } else if is_choice {
            let message = format!("several edges leave `{name}` at once, and only one is followed");
            let finding =
                Diagnostic::new(Code::P311, message).at(second.span, "never followed where the other is");
            let fork = match shape.language {
                Some(Language::Json) => "`\"type\": \"fork\"`",
                Some(Language::Dot) | None => "`shape=component`",
            };
            found.push(finding.at(first.span, "the first").help(format!(
                "to follow all of them, make the node a fork ({fork}); to choose, give each a `label` or a `condition`"
            )));
        } else {
            let message = match shape.language {
                Some(_) => format!("two edges of `{name}` are for one outcome"),
                None => format!("two paths lead on from step {name} for one outcome"),
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
