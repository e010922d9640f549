//! Compiled graphs by digest, and what never changes of a run: immutable, so no copy of them can be wrong.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use planctl_engine::{Digest, Graph, RunId};

/// What never changes of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fixed {
    pub(crate) name: String,
    pub(crate) plan: i64,
    pub(crate) host: String,
    pub(crate) workspace: String,
    /// The graph it had when it was looked up: a guess, since a revision may have replaced it.
    pub(crate) graph: Digest,
}

#[derive(Default)]
pub(crate) struct Cache {
    graphs: Mutex<Shelf<Digest, Arc<Graph>>>,
    runs: Mutex<Shelf<RunId, Arc<Fixed>>>,
}

impl Cache {
    /// Bounds the memory that graphs take, in nodes; a node weighs about one to four KiB.
    const GRAPH_NODES_MAX: usize = 20_000;
    const RUNS_MAX: usize = 10_000;

    pub(crate) fn graph(&self, digest: &Digest) -> Option<Arc<Graph>> {
        lock(&self.graphs).get(digest)
    }

    pub(crate) fn keep_graph(&self, digest: Digest, graph: Arc<Graph>) {
        let weight = graph.nodes().len();
        lock(&self.graphs).put(digest, graph, weight, Cache::GRAPH_NODES_MAX);
    }

    pub(crate) fn run(&self, run: RunId) -> Option<Arc<Fixed>> {
        lock(&self.runs).get(&run)
    }

    pub(crate) fn keep_run(&self, run: RunId, fixed: Arc<Fixed>) {
        lock(&self.runs).put(run, fixed, 1, Cache::RUNS_MAX);
    }
}

fn lock<T>(shelf: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map of bounded weight; the oldest entry leaves first.
struct Shelf<K, V> {
    entries: HashMap<K, (V, usize)>,
    order: VecDeque<K>,
    weight: usize,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Shelf<K, V> {
        Shelf { entries: HashMap::new(), order: VecDeque::new(), weight: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Shelf<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.entries.get(key).map(|(value, _)| value.clone())
    }

    fn put(&mut self, key: K, value: V, weight: usize, weight_max: usize) {
        if let Some((_, before)) = self.entries.insert(key.clone(), (value, weight)) {
            self.weight -= before;
        } else {
            self.order.push_back(key);
        }
        self.weight += weight;
        while self.weight > weight_max && self.order.len() > 1 {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some((_, before)) = self.entries.remove(&oldest) {
                self.weight -= before;
            }
        }
    }
}
