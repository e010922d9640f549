//! Where everything of a picture stands: layers from the top down, few crossings, room for every label.

use dugong::graphlib::{EdgeKey, Graph, GraphOptions};
use dugong::{EdgeLabel, GraphLabel, LabelPos, NodeLabel, layout};

use super::{DrawnEdge, NodeBox, Undrawable};

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
    /// The paths of the edges.
    pub paths: Vec<EdgePath>,
    /// All of it.
    pub width: f64,
    /// All of it.
    pub height: f64,
}

/// The path of one edge.
pub(super) struct EdgePath {
    /// The points it passes, from node to node.
    pub points: Vec<(f64, f64)>,
    /// The middle of its label.
    pub label: (f64, f64),
}

/// Lays out a graph.
pub(super) fn lay_out(boxes: &[NodeBox], drawn_edges: &[DrawnEdge]) -> Result<Placed, Undrawable> {
    let mut graph: Graph<NodeLabel, EdgeLabel, GraphLabel> =
        Graph::new(GraphOptions { multigraph: true, compound: false, directed: true });
    graph.set_graph(GraphLabel {
        nodesep: NODE_GAP,
        edgesep: PASSING,
        ranksep: BELOW,
        ..GraphLabel::default()
    });
    for (at, node_box) in boxes.iter().enumerate() {
        graph.set_node(
            node_name(at),
            NodeLabel { width: node_box.width, height: node_box.height, ..NodeLabel::default() },
        );
    }
    for (at, drawn_edge) in drawn_edges.iter().enumerate() {
        let leads_onward = !drawn_edge.is_trouble;
        let label = EdgeLabel {
            width: drawn_edge.width(),
            height: drawn_edge.height(),
            labelpos: LabelPos::C,
            weight: if leads_onward { STRAIGHT } else { 1.0 },
            ..EdgeLabel::default()
        };
        let key = key(at, drawn_edge);
        graph.set_edge_named(key.v, key.w, key.name, Some(label));
    }
    layout(&mut graph).map_err(|error| Undrawable::Layout(error.to_string()))?;
    let missing = || Undrawable::Layout("a node or an edge was left out".to_owned());
    let mut centres = Vec::with_capacity(boxes.len());
    for at in 0..boxes.len() {
        let node = graph.node(&node_name(at)).ok_or_else(missing)?;
        centres.push((node.x.ok_or_else(missing)?, node.y.ok_or_else(missing)?));
    }
    let mut paths = Vec::with_capacity(drawn_edges.len());
    for (at, drawn_edge) in drawn_edges.iter().enumerate() {
        let edge = graph.edge_by_key(&key(at, drawn_edge)).ok_or_else(missing)?;
        let points: Vec<(f64, f64)> = edge.points.iter().map(|point| (point.x, point.y)).collect();
        let middle = points.get(points.len() / 2).copied().unwrap_or_default();
        paths.push(EdgePath { label: (edge.x.unwrap_or(middle.0), edge.y.unwrap_or(middle.1)), points });
    }
    let whole = graph.graph();
    Ok(Placed { centres, paths, width: whole.width, height: whole.height })
}

fn node_name(at: usize) -> String {
    format!("n{at}")
}

fn key(at: usize, drawn_edge: &DrawnEdge) -> EdgeKey {
    EdgeKey::new(node_name(drawn_edge.from), node_name(drawn_edge.to), Some(format!("e{at}")))
}
