//! Compiled graphs by digest, and what never changes of a run: immutable, so no copy of them can be wrong. And runs as this
//! process wrote them last, which may be outdated.

mod snapshot;
mod sound;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use planctl_engine::{Digest, Graph, RunId};

use crate::mutex::lock;

pub(crate) use snapshot::RunSnapshot;
pub(crate) use sound::Sound;

/// The immutable part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RunMeta {
    pub(crate) name: String,
    pub(crate) plan: i64,
    pub(crate) plan_path: String,
    pub(crate) host: String,
    pub(crate) workspace: String,
    /// The graph it had when it was looked up: a guess, since a revision may have replaced it.
    pub(crate) graph: Digest,
}

/// The newest line of a run's history that this process committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) seq: i64,
    pub(crate) hash: [u8; 32],
}

#[derive(Default)]
pub(crate) struct Cache {
    graphs: Mutex<BoundedCache<Digest, Arc<Graph>>>,
    runs: Mutex<BoundedCache<RunId, Arc<RunMeta>>>,
    snapshots: Mutex<BoundedCache<RunId, Box<RunSnapshot>>>,
    committed: Mutex<BoundedCache<RunId, Committed>>,
}

impl Cache {
    /// Bounds the memory that graphs take, in bytes of JSON; compiled they take a few times that.
    const GRAPH_BYTES_MAX: usize = 64 * 1024 * 1024;
    const RUNS_MAX: usize = 10_000;
    /// Bounds the memory that what was written last takes, in runs and records; one weighs about one KiB.
    const SNAPSHOTS_WEIGHT_MAX: usize = 10_000;

    pub(crate) fn graph(&self, digest: &Digest) -> Option<Arc<Graph>> {
        lock(&self.graphs).get(digest)
    }

    /// Keeps a graph, which was so many bytes as JSON.
    pub(crate) fn keep_graph(&self, digest: Digest, graph: Arc<Graph>, bytes: usize) {
        lock(&self.graphs).put(digest, graph, bytes, Cache::GRAPH_BYTES_MAX);
    }

    pub(crate) fn run(&self, run: RunId) -> Option<Arc<RunMeta>> {
        lock(&self.runs).get(&run)
    }

    pub(crate) fn keep_run(&self, run: RunId, meta: Arc<RunMeta>) {
        lock(&self.runs).put(run, meta, 1, Cache::RUNS_MAX);
    }

    /// Removes and returns a run's snapshot. A caller that does not put it back has invalidated it.
    pub(crate) fn take_snapshot(&self, run: RunId) -> Option<Box<RunSnapshot>> {
        lock(&self.snapshots).take(&run)
    }

    pub(crate) fn keep_snapshot(&self, run: RunId, snapshot: Box<RunSnapshot>) {
        let weight = snapshot.weight();
        lock(&self.snapshots).put(run, snapshot, weight, Cache::SNAPSHOTS_WEIGHT_MAX);
    }

    pub(crate) fn invalidate_snapshot(&self, run: RunId) {
        lock(&self.snapshots).take(&run);
    }

    pub(crate) fn committed(&self, run: RunId) -> Option<Committed> {
        lock(&self.committed).get(&run)
    }

    /// Keeps the newest line that was committed of a run; calls may end in another order than they committed.
    pub(crate) fn keep_committed(&self, run: RunId, committed: Committed) {
        let mut cache = lock(&self.committed);
        if cache.get(&run).is_none_or(|kept| kept.seq < committed.seq) {
            cache.put(run, committed, 1, Cache::RUNS_MAX);
        }
    }
}

/// A map of bounded weight; the value that was not used for the longest time leaves first.
struct BoundedCache<K, V> {
    /// Each value with its weight and its number in the order.
    entries: HashMap<K, (V, usize, u64)>,
    order: BTreeMap<u64, K>,
    put: u64,
    weight: usize,
}

impl<K, V> Default for BoundedCache<K, V> {
    fn default() -> BoundedCache<K, V> {
        BoundedCache { entries: HashMap::new(), order: BTreeMap::new(), put: 0, weight: 0 }
    }
}

impl<K: Clone + Eq + Hash, V> BoundedCache<K, V> {
    fn get(&mut self, key: &K) -> Option<V>
    where
        V: Clone,
    {
        let (value, _, number) = self.entries.get_mut(key)?;
        self.put += 1;
        if let Some(key) = self.order.remove(number) {
            self.order.insert(self.put, key);
        }
        *number = self.put;
        Some(value.clone())
    }

    fn take(&mut self, key: &K) -> Option<V> {
        let (value, weight, number) = self.entries.remove(key)?;
        self.order.remove(&number);
        self.weight -= weight;
        Some(value)
    }

    fn put(&mut self, key: K, value: V, weight: usize, weight_max: usize) {
        self.take(&key);
        self.put += 1;
        self.order.insert(self.put, key.clone());
        self.entries.insert(key, (value, weight, self.put));
        self.weight += weight;
        while self.weight > weight_max && self.order.len() > 1 {
            let Some((_, oldest)) = self.order.first_key_value() else { break };
            let oldest = oldest.clone();
            self.take(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_that_was_not_used_for_the_longest_time_leaves_first() {
        let mut cache = BoundedCache::default();
        for key in ["a", "b", "c"] {
            cache.put(key, key.to_owned(), 10, 30);
        }
        assert_eq!(cache.get(&"a").as_deref(), Some("a"));
        cache.put("d", "d".to_owned(), 10, 30);
        assert_eq!(["a", "b", "c", "d"].map(|key| cache.get(&key).is_some()), [true, false, true, true]);
        cache.put("e", "e".to_owned(), 30, 30);
        assert_eq!(["a", "c", "d", "e"].map(|key| cache.get(&key).is_some()), [false, false, false, true]);
    }
}
