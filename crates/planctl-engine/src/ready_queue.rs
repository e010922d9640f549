//! Keeps the nodes that are ready but must wait, in order. A range of sibling branches of one fork is one entry, so thousands
//! of them take no more space than one.

use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::ids::NodeId;

/// Nodes that wait until fewer other nodes are in flight, or until a file is free.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReadyQueue(Vec<Entry>);

/// One node, or a range of neighbouring branches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    /// A node.
    Node(NodeId),
    /// The nodes with which these branches of a fork begin.
    Branches { fork: NodeId, first: u16, last: u16 },
}

impl ReadyQueue {
    /// Says whether no node waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many nodes wait.
    pub fn len(&self) -> usize {
        let count = |waiting: &Entry| match waiting {
            Entry::Node(_) => 1,
            Entry::Branches { first, last, .. } => usize::from(last.saturating_sub(*first)) + 1,
        };
        self.0.iter().map(count).sum()
    }

    /// Lists the nodes that wait, from first to last.
    pub fn nodes<'l>(&'l self, graph: &'l Graph) -> impl Iterator<Item = &'l NodeId> {
        self.0.iter().flat_map(move |waiting| {
            let (node, branches) = match waiting {
                Entry::Node(node) => (Some(node), &[][..]),
                Entry::Branches { fork, first, last } => {
                    let edges = graph.edges_from(fork);
                    (None, edges.get(usize::from(*first)..=usize::from(*last)).unwrap_or(&[]))
                }
            };
            node.into_iter().chain(branches.iter().map(|edge| &edge.to))
        })
    }

    /// Puts a node at the end.
    pub(crate) fn push(&mut self, graph: &Graph, id: &NodeId) {
        let Some((fork, branch)) = graph.branch_beginning_at(id) else {
            return self.0.push(Entry::Node(id.clone()));
        };
        match self.0.last_mut() {
            Some(Entry::Branches { fork: before, last, .. })
                if before == fork && last.checked_add(1) == Some(branch) =>
            {
                *last = branch;
            }
            Some(_) | None => {
                self.0.push(Entry::Branches { fork: fork.clone(), first: branch, last: branch });
            }
        }
    }

    /// Removes a node, wherever it stands.
    pub(crate) fn remove(&mut self, graph: &Graph, id: &NodeId) {
        let begins = graph.branch_beginning_at(id);
        let is_it = |waiting: &Entry| match (waiting, begins) {
            (Entry::Node(node), _) => node == id,
            (Entry::Branches { fork, first, last }, Some((of, branch))) => {
                fork == of && (*first..=*last).contains(&branch)
            }
            (Entry::Branches { .. }, None) => false,
        };
        let Some(at) = self.0.iter().position(is_it) else { return };
        let found = self.0.remove(at);
        if let (Entry::Branches { fork, first, last }, Some((_, branch))) = (found, begins) {
            if branch < last {
                let fork = fork.clone();
                self.0.insert(at, Entry::Branches { fork, first: branch + 1, last });
            }
            if first < branch {
                self.0.insert(at, Entry::Branches { fork, first, last: branch - 1 });
            }
        }
    }
}
