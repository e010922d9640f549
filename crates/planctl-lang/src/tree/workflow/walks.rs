//! Walks through a graph by the places of its nodes.

use super::tree::EdgeTree;

/// Returns the nodes with an edge to each node.
pub(crate) fn nodes_before(out_edges: &[Vec<(usize, &EdgeTree)>]) -> Vec<Vec<usize>> {
    let mut before = vec![Vec::new(); out_edges.len()];
    for (from, out_edges) in out_edges.iter().enumerate() {
        for (to, _) in out_edges {
            before[*to].push(from);
        }
    }
    before
}

/// Returns the nodes that a walk from some comes to by one step or more, each once.
pub(crate) fn reached<N: IntoIterator<Item = usize>>(
    count: usize,
    from: impl IntoIterator<Item = usize>,
    next: impl Fn(usize) -> N,
) -> impl Iterator<Item = usize> {
    let mut seen = vec![false; count];
    let mut open: Vec<usize> = from.into_iter().collect();
    let mut found = Vec::new();
    std::iter::from_fn(move || {
        while found.is_empty() {
            for to in next(open.pop()?) {
                if !std::mem::replace(&mut seen[to], true) {
                    found.push(to);
                    open.push(to);
                }
            }
        }
        found.pop()
    })
}

/// Says which nodes are left when those that wait for no other are taken away, again and again: the nodes of circles, and all
/// that wait for these. For each node there are the ones that wait for it.
pub(crate) fn left_waiting(waiting: &[Vec<usize>]) -> Vec<bool> {
    let mut waits = vec![0_usize; waiting.len()];
    waiting.iter().flatten().for_each(|at| waits[*at] += 1);
    let mut free: Vec<usize> = (0..waits.len()).filter(|at| waits[*at] == 0).collect();
    while let Some(done) = free.pop() {
        for at in &waiting[done] {
            waits[*at] -= 1;
            if waits[*at] == 0 {
                free.push(*at);
            }
        }
    }
    waits.into_iter().map(|left| left > 0).collect()
}

/// Says of each of so many nodes whether it is one of these.
pub(crate) fn node_flags(count: usize, nodes: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut marks = vec![false; count];
    nodes.into_iter().for_each(|at| marks[at] = true);
    marks
}
