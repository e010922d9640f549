//! Where everything of a picture stands: layers from the top down, few crossings, room for every label.
//!
//! The library places vertices and says nothing of edges. So each edge is given a vertex in every layer between those of its nodes,
//! of the size of its label in the middle one, and runs through these.

use std::iter::once;

use rust_sugiyama::configure::{Config, RankingType};
use rust_sugiyama::from_vertices_and_edges;

use super::order::reverse_postorder;
use super::{DrawnEdge, NodeBox, Undrawable};

/// Between neighbours of one layer, in pixels.
const NODE_GAP: f64 = 36.0;
/// Between an edge that passes by and its neighbours.
const PASSING: f64 = 22.0;
/// Between the layers of nodes and those of labels, which lie between.
const BELOW: f64 = 23.0;
/// How far an edge from a node to itself swings out.
const LOOP: f64 = 24.0;
/// The most layers that edges pass, all together: so many take six seconds in a debug build.
const PASSED_MAX: usize = 50_000;

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
    let layers = Layers::of(boxes.len(), drawn_edges);
    let mut vertices = Vertices::default();
    for (at, node_box) in boxes.iter().enumerate() {
        let loops = drawn_edges.iter().filter(|edge| edge.from == at && edge.to == at);
        // As wide on the other side, so that the node stays in the middle.
        let swings = loops.map(|edge| 2.0 * (LOOP + edge.width())).fold(0.0, f64::max);
        vertices.add(node_box.width + swings + NODE_GAP, node_box.height + BELOW);
    }
    let mut passed = Vec::with_capacity(drawn_edges.len());
    for drawn_edge in drawn_edges {
        let first = vertices.sizes.len();
        let (above, below) = layers.ends(drawn_edge);
        let (from, to) = (layers.of[above], layers.of[below]);
        let mut last = above;
        for layer in from + 1..to {
            let is_label = layer == from.midpoint(to);
            let (width, height) =
                if is_label { (drawn_edge.width(), drawn_edge.height()) } else { (0.0, 0.0) };
            let vertex = vertices.add(width + PASSING, height + BELOW);
            vertices.connect(last, vertex);
            last = vertex;
        }
        if above != below {
            vertices.connect(last, below);
        }
        passed.push(first..vertices.sizes.len());
        if vertices.sizes.len() - boxes.len() > PASSED_MAX {
            return Err(Undrawable::Layout(format!(
                "its edges pass more than {PASSED_MAX} layers, all together"
            )));
        }
    }
    let (centres, width, height) = vertices.place();
    let paths = drawn_edges.iter().zip(passed).map(|(drawn_edge, passed)| {
        let (from, to) = (centres[drawn_edge.from], centres[drawn_edge.to]);
        if drawn_edge.from == drawn_edge.to {
            let mut loops =
                drawn_edges.iter().filter(|edge| edge.from == drawn_edge.from && edge.to == edge.from);
            let count = loops.clone().count();
            let place = loops.position(|edge| std::ptr::eq(edge, drawn_edge)).unwrap_or_default();
            return loop_of(&boxes[drawn_edge.from], from, drawn_edge, (place, count));
        }
        let label = centres[passed.start.midpoint(passed.end - 1)];
        let mut between = centres[passed].to_vec();
        if layers.ends(drawn_edge).0 != drawn_edge.from {
            between.reverse();
        }
        EdgePath { points: once(from).chain(between).chain(once(to)).collect(), label }
    });
    let paths = paths.collect();
    Ok(Placed { paths, centres: centres[..boxes.len()].to_vec(), width, height })
}

/// Leads an edge out of the right side of its node and back, in its part of that side, by its place among so many.
fn loop_of(
    node_box: &NodeBox,
    centre: (f64, f64),
    drawn_edge: &DrawnEdge,
    (place, count): (usize, usize),
) -> EdgePath {
    let (right, part) = (centre.0 + node_box.width / 2.0, node_box.height / count as f64);
    let middle = centre.1 - node_box.height / 2.0 + (place as f64 + 0.5) * part;
    let points = [(0.5, -part / 4.0), (1.0, 0.0), (0.5, part / 4.0)]
        .map(|(out, down)| (right + out * LOOP, middle + down));
    EdgePath {
        points: once(centre).chain(points).chain(once(centre)).collect(),
        label: (right + LOOP + drawn_edge.width() / 2.0, middle),
    }
}

/// The layers of the nodes, each beneath all that lead to it but for edges that lead back; between two of nodes lies one of labels.
struct Layers {
    /// The layer of each node.
    of: Vec<usize>,
    /// The place of each node in an order in which only edges that lead back lead to one before.
    places: Vec<usize>,
}

impl Layers {
    fn of(count: usize, drawn_edges: &[DrawnEdge]) -> Layers {
        let mut onward = vec![Vec::new(); count];
        for drawn_edge in drawn_edges {
            onward[drawn_edge.from].push(drawn_edge.to);
        }
        let order = reverse_postorder(&onward, 0..count);
        let mut layers = Layers { of: vec![0; count], places: vec![0; count] };
        for (place, node) in order.iter().enumerate() {
            layers.places[*node] = place;
        }
        let mut edges: Vec<(usize, usize)> = drawn_edges.iter().map(|edge| layers.ends(edge)).collect();
        edges.retain(|(above, below)| above != below);
        edges.sort_by_key(|(above, _)| layers.places[*above]);
        for (above, below) in edges {
            layers.of[below] = layers.of[below].max(layers.of[above] + 2);
        }
        layers
    }

    /// Returns the upper node of an edge, and the lower one.
    fn ends(&self, drawn_edge: &DrawnEdge) -> (usize, usize) {
        let (from, to) = (drawn_edge.from, drawn_edge.to);
        if self.places[from] <= self.places[to] { (from, to) } else { (to, from) }
    }
}

/// The vertices and edges that the library places.
#[derive(Default)]
struct Vertices {
    /// Widths and heights, with the room around.
    sizes: Vec<(f64, f64)>,
    /// From each to one of the layer below it.
    edges: Vec<(u32, u32)>,
}

impl Vertices {
    fn add(&mut self, width: f64, height: f64) -> usize {
        self.sizes.push((width, height));
        self.sizes.len() - 1
    }

    fn connect(&mut self, above: usize, below: usize) {
        self.edges.push((above as u32, below as u32));
    }

    /// Returns the middles of all, and how wide and high everything is: parts that hang together stand beside one another.
    fn place(&self) -> (Vec<(f64, f64)>, f64, f64) {
        let config = Config { vertex_spacing: 0.0, ranking_type: RankingType::Up, ..Config::default() };
        let vertices: Vec<(u32, (f64, f64))> = (0..).zip(self.sizes.iter().copied()).collect();
        let mut centres = vec![(0.0, 0.0); vertices.len()];
        let (mut right, mut bottom) = (0.0_f64, 0.0_f64);
        for (part, _, _) in from_vertices_and_edges(&vertices, &self.edges, &config) {
            let corners =
                part.iter().map(|(at, (x, y))| (x - self.sizes[*at].0 / 2.0, y - self.sizes[*at].1 / 2.0));
            let (left, top) = corners.fold((f64::INFINITY, f64::INFINITY), |least, corner| {
                (least.0.min(corner.0), least.1.min(corner.1))
            });
            let begin = right;
            for (at, (x, y)) in part {
                let centre = (x - left + begin, y - top);
                right = right.max(centre.0 + self.sizes[at].0 / 2.0);
                bottom = bottom.max(centre.1 + self.sizes[at].1 / 2.0);
                centres[at] = centre;
            }
        }
        // All have this much room around them, which the margin of the picture takes the place of.
        for centre in &mut centres {
            *centre = (centre.0 - PASSING / 2.0, centre.1 - BELOW / 2.0);
        }
        (centres, (right - PASSING).max(0.0), (bottom - BELOW).max(0.0))
    }
}
