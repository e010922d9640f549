//! Where everything of a picture stands: layers from the top down, few crossings, room for every label.

use dugong::graphlib::{EdgeKey, Graph, GraphOptions};
use dugong::{EdgeLabel, GraphLabel, LabelPos, NodeLabel, layout};

use super::{Card, Tie, Undrawable};

/// Between neighbours of one layer, in pixels.
const NODE_GAP: f64 = 36.0;
/// Between an edge that passes by and its neighbours.
const PASSING: f64 = 22.0;
/// Between two layers; a label between them gets its own room besides.
const BELOW: f64 = 46.0;
/// How much straighter the ways of success are than others.
const STRAIGHT: f64 = 4.0;

/// Where everything stands.
pub(super) struct Placed {
    /// The middles of the nodes.
    pub centres: Vec<(f64, f64)>,
    /// The ways of the edges.
    pub ways: Vec<Way>,
    /// All of it.
    pub width: f64,
    /// All of it.
    pub height: f64,
}

/// The way of one edge.
pub(super) struct Way {
    /// The points it passes, from node to node.
    pub points: Vec<(f64, f64)>,
    /// The middle of its label.
    pub label: (f64, f64),
}

/// Lays out a graph.
pub(super) fn lay_out(cards: &[Card], ties: &[Tie]) -> Result<Placed, Undrawable> {
    let mut graph: Graph<NodeLabel, EdgeLabel, GraphLabel> =
        Graph::new(GraphOptions { multigraph: true, compound: false, directed: true });
    graph.set_graph(GraphLabel {
        nodesep: NODE_GAP,
        edgesep: PASSING,
        ranksep: BELOW,
        ..GraphLabel::default()
    });
    for (at, card) in cards.iter().enumerate() {
        graph.set_node(
            node_name(at),
            NodeLabel { width: card.width, height: card.height, ..NodeLabel::default() },
        );
    }
    for (at, tie) in ties.iter().enumerate() {
        let leads_onward = !tie.is_trouble;
        let label = EdgeLabel {
            width: tie.width(),
            height: tie.height(),
            labelpos: LabelPos::C,
            weight: if leads_onward { STRAIGHT } else { 1.0 },
            ..EdgeLabel::default()
        };
        let key = key(at, tie);
        graph.set_edge_named(key.v, key.w, key.name, Some(label));
    }
    layout(&mut graph).map_err(|error| Undrawable::Layout(error.to_string()))?;
    let missing = || Undrawable::Layout("a node or an edge was left out".to_owned());
    let mut centres = Vec::with_capacity(cards.len());
    for at in 0..cards.len() {
        let node = graph.node(&node_name(at)).ok_or_else(missing)?;
        centres.push((node.x.ok_or_else(missing)?, node.y.ok_or_else(missing)?));
    }
    let mut ways = Vec::with_capacity(ties.len());
    for (at, tie) in ties.iter().enumerate() {
        let edge = graph.edge_by_key(&key(at, tie)).ok_or_else(missing)?;
        let points: Vec<(f64, f64)> = edge.points.iter().map(|point| (point.x, point.y)).collect();
        let middle = points.get(points.len() / 2).copied().unwrap_or_default();
        ways.push(Way { label: (edge.x.unwrap_or(middle.0), edge.y.unwrap_or(middle.1)), points });
    }
    let whole = graph.graph();
    Ok(Placed { centres, ways, width: whole.width, height: whole.height })
}

fn node_name(at: usize) -> String {
    format!("n{at}")
}

fn key(at: usize, tie: &Tie) -> EdgeKey {
    EdgeKey::new(node_name(tie.from), node_name(tie.to), Some(format!("e{at}")))
}
