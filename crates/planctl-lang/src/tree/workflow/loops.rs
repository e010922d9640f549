//! Loops that nothing bounds: found by their strongly connected parts, each shown by its shortest way round.

use std::collections::VecDeque;

use planctl_engine::On;

use super::lint::Shape;
use super::tree::{EdgeTree, Kind};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::escape;

/// The most loops that are told, and the most nodes of one that are named.
const LOOPS_MAX: usize = 20;
const NAMES_MAX: usize = 12;

/// Finds the loops in which no node says how often it may be entered, and none asks a person.
pub(super) fn lint(shape: &Shape<'_>, found: &mut Vec<Diagnostic>) {
    if shape.workflow.attributes.max_visits.is_said() {
        return;
    }
    // An edge that begins the run anew does so only so often, and nothing of the loop before is left.
    let mut out_edges = shape.out_edges.clone();
    for out_edges in &mut out_edges {
        out_edges.retain(|(_, edge)| !edge.loop_restart);
    }
    let shape = &Shape::of_edges(shape.workflow, shape.language, out_edges);
    let is_free = |at: usize| {
        let node = shape.node(at);
        let asks = matches!(node.kind.value, Kind::Human | Kind::Escalate | Kind::Exit);
        !asks && !node.attributes.max_visits.is_said()
    };
    let free: Vec<bool> = (0..shape.out_edges.len()).map(is_free).collect();
    for part in strongly_connected(shape, &free).into_iter().take(LOOPS_MAX) {
        let Some(cycle) = cycle_in(shape, &part) else { continue };
        let name = |at: usize| escape(&shape.node(at).id.value);
        let is_plan = shape.language.is_none();
        let names: Vec<String> =
            cycle.iter().map(|at| if is_plan { name(*at) } else { format!("`{}`", name(*at)) }).collect();
        let Some(first) = names.first() else { continue };
        let shown = match names.len() {
            ..=NAMES_MAX => format!("{} → {first}", names.join(" → ")),
            more => format!("{} → … ({} more) → {first}", names[..NAMES_MAX].join(" → "), more - NAMES_MAX),
        };
        let message = format!("nothing bounds the loop {}{shown}", if is_plan { "of steps " } else { "" });
        let mut finding = Diagnostic::new(Code::P309, message);
        for (at, from) in cycle.iter().enumerate().take(NAMES_MAX) {
            let to = cycle[(at + 1) % cycle.len()];
            if let Some((_, edge)) = shape.out_edges[*from].iter().find(|(target, _)| *target == to) {
                let is_last = at + 1 == cycle.len();
                finding = finding.at(edge.span, if is_last { "and round again" } else { "" });
            }
        }
        // The edge that closes it is the one to look at.
        finding.spans.rotate_right(1);
        let most = crate::text::limits::MAX_VISITS;
        let bound = match shape.language {
            None => "`**max_visits:** 3` in one of its steps".to_owned(),
            Some(language) => format!("{} at one of its nodes", language.attribute("max_visits", "N")),
        };
        let help = format!(
            "write {bound}; until then each is entered {most} times at most, and the next entry counts as exhausted"
        );
        found.push(finding.help(help));
    }
}

// Kosaraju's way, without recursion: the parts of more than one node, and single nodes with an edge to themselves.
fn strongly_connected(shape: &Shape<'_>, free: &[bool]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; free.len()];
    let mut finished = Vec::with_capacity(free.len());
    for root in 0..free.len() {
        if seen[root] || !free[root] {
            continue;
        }
        seen[root] = true;
        let mut open = vec![(root, 0)];
        while let Some((at, next)) = open.last_mut() {
            let (at, edge) = (*at, *next);
            *next += 1;
            match shape.out_edges[at].get(edge) {
                Some((to, _)) if free[*to] && !seen[*to] => {
                    seen[*to] = true;
                    open.push((*to, 0));
                }
                Some(_) => {}
                None => {
                    finished.push(at);
                    open.pop();
                }
            }
        }
    }
    let mut taken = vec![false; free.len()];
    let mut parts = Vec::new();
    for root in finished.into_iter().rev() {
        if taken[root] {
            continue;
        }
        taken[root] = true;
        let mut part = Vec::new();
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            part.push(at);
            for from in &shape.back[at] {
                if free[*from] && !taken[*from] {
                    taken[*from] = true;
                    open.push(*from);
                }
            }
        }
        if part.len() > 1 || shape.out_edges[root].iter().any(|(to, edge)| *to == root && !is_retry(edge)) {
            part.sort_unstable();
            parts.push(part);
        }
    }
    parts.sort();
    parts
}

// An edge back to its own node on `retry` is followed as often as the node has attempts.
fn is_retry(edge: &EdgeTree) -> bool {
    edge.on.value == On::Retry && edge.from.value == edge.to.value
}

// The shortest path from the part's first node round to itself, inside the part.
fn cycle_in(shape: &Shape<'_>, part: &[usize]) -> Option<Vec<usize>> {
    let first = *part.first()?;
    let mut before: Vec<Option<usize>> = vec![None; shape.out_edges.len()];
    let mut open = VecDeque::from([first]);
    while let Some(at) = open.pop_front() {
        for (to, edge) in &shape.out_edges[at] {
            if is_retry(edge) {
                continue;
            }
            if *to == first {
                let mut cycle = vec![at];
                while let Some(from) =
                    cycle.last().copied().filter(|last| *last != first).and_then(|last| before[last])
                {
                    cycle.push(from);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if part.binary_search(to).is_ok() && before[*to].is_none() {
                before[*to] = Some(at);
                open.push_back(*to);
            }
        }
    }
    None
}
