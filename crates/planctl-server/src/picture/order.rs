//! The nodes of a graph in the order in which a run comes to them: the way of success first, branches one after the other.

use planctl_engine::{Edge, Graph, Node, NodeId, On};

/// The nodes of a graph by their places in that order, and the edges between these places.
pub(super) struct Order {
    /// The place of each node, in the order of the graph's own list.
    place_of: Vec<usize>,
    /// The nodes' places in the graph's own list.
    nodes: Vec<usize>,
    /// From place to place, each pair once.
    pub(super) edges: Vec<IndexedEdge>,
}

/// An edge between two places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct IndexedEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Says that it is for outcomes that are no success.
    pub(super) is_trouble: bool,
}

impl Order {
    pub(super) fn of(graph: &Graph) -> Order {
        let index = |id: &NodeId| graph.nodes().binary_search_by(|node| node.id.cmp(id)).ok();
        let indexed = |edge: &Edge| {
            Some(IndexedEdge {
                from: index(&edge.from)?,
                to: index(&edge.to)?,
                is_trouble: is_for_failure(edge.on),
            })
        };
        let edges: Vec<IndexedEdge> = graph.edges().iter().filter_map(indexed).collect();
        // Ways of trouble are walked first, so that what they lead to comes last.
        let mut onward: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes().len()];
        for is_trouble in [true, false] {
            for edge in edges.iter().rev().filter(|edge| edge.is_trouble == is_trouble) {
                onward[edge.from].push(edge.to);
            }
        }
        let start = index(graph.start());
        let nodes = reverse_postorder(&onward, start.into_iter().chain(0..onward.len()));
        let mut place_of = vec![0; nodes.len()];
        for (place, node) in nodes.iter().enumerate() {
            place_of[*node] = place;
        }
        let placed =
            |edge: IndexedEdge| IndexedEdge { from: place_of[edge.from], to: place_of[edge.to], ..edge };
        let mut edges: Vec<IndexedEdge> = edges.into_iter().map(placed).collect();
        edges.sort_unstable();
        edges.dedup();
        Order { place_of, nodes, edges }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the place of a node in the graph's own list.
    pub(super) fn place(&self, node: usize) -> usize {
        self.place_of[node]
    }

    /// Returns the node at a place.
    pub(super) fn node<'g>(&self, graph: &'g Graph, place: usize) -> &'g Node {
        &graph.nodes()[self.nodes[place]]
    }
}

fn is_for_failure(on: On) -> bool {
    match on {
        On::Fail | On::Retry | On::Exhaust => true,
        On::Success | On::Always => false,
    }
}

/// Returns all nodes so that each comes before those that it leads to, except along edges that lead back.
pub(super) fn reverse_postorder(onward: &[Vec<usize>], roots: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut is_seen = vec![false; onward.len()];
    let mut order = Vec::with_capacity(onward.len());
    for root in roots {
        if std::mem::replace(&mut is_seen[root], true) {
            continue;
        }
        let mut left = Vec::new();
        let mut open = vec![(root, 0)];
        while let Some((node, at)) = open.last_mut() {
            let Some(next) = onward[*node].get(*at) else {
                left.push(*node);
                open.pop();
                continue;
            };
            *at += 1;
            if !std::mem::replace(&mut is_seen[*next], true) {
                open.push((*next, 0));
            }
        }
        order.extend(left.into_iter().rev());
    }
    order
}
