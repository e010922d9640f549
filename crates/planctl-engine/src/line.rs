//! Who waits for room, first to last: thousands of branches of one fork take no more room than one.

use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::ids::NodeId;

/// The nodes that wait until fewer others are worked on, or until a file is free.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Line(Vec<Waiting>);

/// One that waits, or neighbours that wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Waiting {
    /// A node.
    Node(NodeId),
    /// The nodes with which these branches of a fork begin.
    Branches { fork: NodeId, first: u16, last: u16 },
}

impl Line {
    /// Says whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many wait.
    pub fn len(&self) -> usize {
        let count = |waiting: &Waiting| match waiting {
            Waiting::Node(_) => 1,
            Waiting::Branches { first, last, .. } => usize::from(last.saturating_sub(*first)) + 1,
        };
        self.0.iter().map(count).sum()
    }

    /// Lists who waits, the first first.
    pub fn nodes<'l>(&'l self, graph: &'l Graph) -> impl Iterator<Item = &'l NodeId> {
        self.0.iter().flat_map(move |waiting| {
            let (node, branches) = match waiting {
                Waiting::Node(node) => (Some(node), &[][..]),
                Waiting::Branches { fork, first, last } => {
                    let edges = graph.edges_from(fork);
                    (None, edges.get(usize::from(*first)..=usize::from(*last)).unwrap_or(&[]))
                }
            };
            node.into_iter().chain(branches.iter().map(|edge| &edge.to))
        })
    }

    /// Puts a node at the end.
    pub(crate) fn push(&mut self, graph: &Graph, id: &NodeId) {
        let Some((fork, branch)) = graph.begins_branch(id) else {
            return self.0.push(Waiting::Node(id.clone()));
        };
        match self.0.last_mut() {
            Some(Waiting::Branches { fork: before, last, .. })
                if before == fork && last.checked_add(1) == Some(branch) =>
            {
                *last = branch;
            }
            Some(_) | None => {
                self.0.push(Waiting::Branches { fork: fork.clone(), first: branch, last: branch });
            }
        }
    }

    /// Takes a node out, wherever it stands.
    pub(crate) fn remove(&mut self, graph: &Graph, id: &NodeId) {
        let begins = graph.begins_branch(id);
        let is_it = |waiting: &Waiting| match (waiting, begins) {
            (Waiting::Node(node), _) => node == id,
            (Waiting::Branches { fork, first, last }, Some((of, branch))) => {
                fork == of && (*first..=*last).contains(&branch)
            }
            (Waiting::Branches { .. }, None) => false,
        };
        let Some(at) = self.0.iter().position(is_it) else { return };
        let found = self.0.remove(at);
        if let (Waiting::Branches { fork, first, last }, Some((_, branch))) = (found, begins) {
            if branch < last {
                let fork = fork.clone();
                self.0.insert(at, Waiting::Branches { fork, first: branch + 1, last });
            }
            if first < branch {
                self.0.insert(at, Waiting::Branches { fork, first, last: branch - 1 });
            }
        }
    }
}
