//! Nodes from which a run may find no way on (L6), and edges that only look like one.

use planctl_engine::On;
use planctl_engine::condition::{Clause, Key, STATUS_WORDS, StepField, Test};

use super::lint::{OF_A_KIND_MAX, Shape};
use super::tree::{EdgeTree, Kind, NodeTree};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::escape;

// Ruling 2: elsewhere an edge without a condition is the way on from a failure, too.
fn check_other_outcomes(
    shape: &Shape<'_>,
    node: &NodeTree,
    out_edges: &[(usize, &EdgeTree)],
    found: &mut Vec<Diagnostic>,
) {
    let is_for = |edge: &EdgeTree, outcome: &str| {
        let clauses = edge.condition.as_ref().map(|condition| condition.value.clauses.as_slice());
        let is_clause =
            |clause: &Clause| clause.key == Key::Outcome && clause.test == Test::Is(outcome.to_owned());
        edge.on.value == On::Always
            && clauses.is_some_and(|clauses| clauses.len() == 1 && clauses.iter().all(is_clause))
    };
    let succeeds = out_edges.iter().find(|(_, edge)| is_for(edge, "success"));
    let is_failing = |edge: &EdgeTree| shape.workflow.names_failure(edge) && edge.on.value != On::Retry;
    let rest = out_edges.iter().find(|(_, edge)| edge.on.value == On::Success && edge.is_plain());
    let (Some((_, succeeds)), Some((_, rest))) = (succeeds, rest) else { return };
    if out_edges.iter().any(|(_, edge)| is_failing(edge)) {
        return;
    }
    let (name, to) = (escape(&node.id.value), escape(&rest.to.value));
    let message = match shape.language {
        Some(_) => format!("the edge from `{name}` to `{to}` is never followed"),
        None => format!("the edge from step {name} to {to} is never followed"),
    };
    let finding =
        Diagnostic::new(Code::P310, message).at(rest.span, "without a condition it is for success only");
    let finding = finding.at(succeeds.span, "and this one is for success, too");
    found.push(finding.help(shape.or_in_markdown(
        "where it is meant for what fails, write `[on=fail]`",
        "where it is meant for what fails, write `on fail` behind it",
    )));
}

// L6: a node whose ways all have conditions, so that a run may find none that holds.
pub(super) fn lint(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    let before = found.len();
    for (at, out_edges) in shape.out_edges.iter().enumerate() {
        let node = shape.node(at);
        if out_edges.is_empty() || found.len() > before + OF_A_KIND_MAX {
            continue;
        }
        check_other_outcomes(shape, node, out_edges, found);
        let leaves = |outcome: &str| {
            let open = out_edges.iter().filter(|(_, edge)| match edge.on.value {
                On::Always => outcome == "success" || shape.workflow.names_failure(edge),
                On::Success => outcome == "success",
                On::Fail | On::Exhaust | On::Retry => outcome == "fail",
            });
            // The clauses of each beside the outcome.
            let asked: Vec<Vec<&Clause>> =
                open.filter_map(|(_, edge)| beside_outcome(edge, outcome)).collect();
            !asked.iter().any(|rest| match rest.as_slice() {
                [] => true,
                [own] if outcome == "fail" && asks_for_failure(shape, at, own) => true,
                [own] => {
                    asked.iter().any(|other| matches!(other.as_slice(), [other] if is_opposite(own, other)))
                }
                _ => false,
            })
        };
        let has_conditions = out_edges.iter().any(|(_, edge)| !edge.is_plain());
        let is_choice = node.kind.value == Kind::Decision || has_conditions;
        let is_asked = node.kind.value == Kind::Human && out_edges.iter().all(|(_, edge)| edge.is_plain());
        let open: Vec<&str> = ["success", "fail"].into_iter().filter(|outcome| leaves(outcome)).collect();
        // A step that fails is held for a person; a choice has nobody who would be asked.
        let is_open = open.contains(&"success") || (node.kind.value == Kind::Decision && !open.is_empty());
        if is_choice && !is_asked && is_open {
            let message = format!("a run may find no path to follow from {}", shape.plain_name(node));
            let label = match open[..] {
                ["success"] => "no edge is sure to hold where it succeeds",
                ["fail"] => "no edge is for what fails",
                _ => "no edge is sure to hold",
            };
            let finding = Diagnostic::new(Code::P310, message).at(node.id.span, label);
            let name = escape(&node.id.value);
            found.push(match shape.language {
                Some(_) => finding.help(
                    "add an edge for the rest: `[condition=\"outcome!=success\"]` for what fails, `[on=always]` for all \
                     of it; in JSON `\"condition\": \"on_fail\"` or `\"always\"`",
                ),
                None => finding.help(format!(
                    "add a line to `## Flow` for the rest: `- {name} -> 3 on fail` for what fails, `- {name} -> 3 on \
                     always` for all of it"
                )),
            });
        }
    }
}

// Says whether a clause asks for a failure: the exit code of a failed node is another than that of a success. Only such
// edges are asked here, and only about the nodes that lead here.
fn asks_for_failure(shape: &Shape<'_>, at: usize, clause: &Clause) -> bool {
    let is_of_all = |name: &str| {
        let mut before = shape.back[at].iter().map(|from| shape.node(*from).id.value.as_str());
        before.all(|before| before == name)
    };
    matches!(clause.test, Test::IsNot(_))
        && match &clause.key {
            Key::Variable(name) => name == "exit_code",
            Key::Step { node, field } => *field == StepField::ExitCode && is_of_all(node),
            Key::Outcome | Key::PreferredLabel | Key::Context(_) => false,
        }
}

// The clauses of an edge that do not speak of the outcome; nothing where it can't be taken on this one.
fn beside_outcome<'e>(edge: &'e EdgeTree, outcome: &str) -> Option<Vec<&'e Clause>> {
    let clauses = edge.condition.as_ref().map_or(&[][..], |condition| &condition.value.clauses);
    let mut rest = Vec::new();
    for clause in clauses {
        let holds = match (&clause.key, &clause.test) {
            (Key::Outcome, Test::Is(word)) if STATUS_WORDS.contains(&word.as_str()) => word == outcome,
            (Key::Outcome, Test::IsNot(word)) if STATUS_WORDS.contains(&word.as_str()) => word != outcome,
            (Key::Outcome, Test::Truthy) => true,
            _ => {
                rest.push(clause);
                true
            }
        };
        if !holds {
            return None;
        }
    }
    Some(rest)
}

// One of the two always holds.
fn is_opposite(one: &Clause, other: &Clause) -> bool {
    let is_not = |a: &Test, b: &Test| matches!((a, b), (Test::Is(is), Test::IsNot(not)) if is == not);
    one.key == other.key && (is_not(&one.test, &other.test) || is_not(&other.test, &one.test))
}
