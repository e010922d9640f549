//! Layouts of pictures, kept by what they are made of: a picture that changes its colours and words keeps its places.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use planctl_engine::Graph;
use sha2::{Digest as _, Sha256};

use super::order::Order;
use super::place::{self, Placed};
use super::{DrawnEdge, NodeBox, Undrawable};
use crate::mutex::lock;

/// How many layouts are kept.
const KEPT_MAX: usize = 32;

/// The newest layouts, and the order of the nodes of graphs that somebody looks at.
#[derive(Default)]
pub struct Layouts {
    kept: Mutex<VecDeque<([u8; 32], Arc<Placed>)>>,
    orders: Mutex<Vec<(Weak<Graph>, Arc<Order>)>>,
}

impl Layouts {
    /// Puts the nodes of a graph in order, or finds the order of this very graph.
    pub(super) fn order_of(&self, graph: &Arc<Graph>) -> Arc<Order> {
        let is_same = |known: &Weak<Graph>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(graph));
        if let Some((_, order)) = lock(&self.orders).iter().find(|(known, _)| is_same(known)) {
            return order.clone();
        }
        let order = Arc::new(Order::of(graph));
        let mut orders = lock(&self.orders);
        // A weak pointer keeps the address of a graph that is gone from being another's.
        orders.retain(|(known, _)| known.strong_count() > 0);
        orders.push((Arc::downgrade(graph), order.clone()));
        order
    }

    /// Lays a graph out, or finds the layout of another picture of the same sizes and edges.
    pub(super) fn of(&self, boxes: &[NodeBox], drawn_edges: &[DrawnEdge]) -> Result<Arc<Placed>, Undrawable> {
        let key = key(boxes, drawn_edges);
        if let Some((_, placed)) = lock(&self.kept).iter().find(|(kept, _)| *kept == key) {
            return Ok(placed.clone());
        }
        let placed = Arc::new(place::lay_out(boxes, drawn_edges)?);
        let mut kept = lock(&self.kept);
        kept.truncate(KEPT_MAX - 1);
        kept.push_front((key, placed.clone()));
        Ok(placed)
    }
}

#[cfg(test)]
impl Layouts {
    pub(super) fn count(&self) -> usize {
        lock(&self.kept).len()
    }
}

/// Returns a digest of everything that a layout depends on.
fn key(boxes: &[NodeBox], drawn_edges: &[DrawnEdge]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for node_box in boxes {
        hasher.update(node_box.width.to_bits().to_be_bytes());
        hasher.update(node_box.height.to_bits().to_be_bytes());
    }
    hasher.update(boxes.len().to_be_bytes());
    for drawn_edge in drawn_edges {
        hasher.update(drawn_edge.from.to_be_bytes());
        hasher.update(drawn_edge.to.to_be_bytes());
        hasher.update(drawn_edge.width().to_bits().to_be_bytes());
        hasher.update(drawn_edge.height().to_bits().to_be_bytes());
    }
    hasher.finalize().into()
}
