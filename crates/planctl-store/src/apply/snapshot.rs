//! The states of runs that this process wrote last, so that it decides the next event of a run without reading it again.
//!
//! The snapshot is only a cache. A decision on a snapshot is written under the same fences as a decision on rows that were
//! read, and the database checks the time that it assumed. If another process wrote in between, the statement fails, the
//! snapshot is invalidated, and the call reads the run. Only a report or a verdict under a valid lease is decided on a
//! snapshot, and no event is refused on one.

use std::collections::{BTreeMap, VecDeque};

use planctl_engine::{Digest, Graph, NodeId, Scope};

use super::read::Loaded;
use super::{Call, Decided};
use crate::cache::RunSnapshot;
use crate::proof::Proof;
use crate::store::Store;

/// How many nodes are read along with those that an event touches.
const AHEAD: usize = 32;
/// The most records of one run that are kept.
const RECORDS_MAX: usize = 512;

/// Adds the nodes to which ways lead from those of a scope, the nearest first.
fn add_successors(scope: &mut Scope, graph: &Graph) {
    let Scope::Nodes(ids) = scope else { return };
    let mut open: VecDeque<NodeId> = ids.iter().cloned().collect();
    while let Some(id) = open.pop_front().filter(|_| ids.len() < AHEAD) {
        let onward = graph.edges_from(&id).iter().map(|edge| &edge.to);
        open.extend(onward.filter(|to| ids.insert((*to).clone())).cloned());
    }
}

impl Store {
    /// Returns the state that a call is decided on, if the snapshot holds all of it. Otherwise widens the scope of the read
    /// by the nodes ahead in the graph.
    pub(super) fn cached_snapshot(
        &self,
        call: &mut Call<'_>,
        digest: &Digest,
        graph: &Graph,
    ) -> Option<Loaded> {
        if !call.trusts_snapshot {
            return None;
        }
        if call.snapshot.is_none() {
            call.snapshot = self.cache().take_snapshot(call.run);
        }
        let snapshot = call.snapshot.as_deref()?;
        if snapshot.graph != *digest {
            return None;
        }
        if !snapshot.scope.includes(&call.scope) {
            add_successors(&mut call.scope, graph);
            return None;
        }
        let now = self.server_clock().now()?.max(snapshot.at);
        Some(Loaded {
            seq: snapshot.seq,
            chain: snapshot.chain,
            head: snapshot.head.clone(),
            graph: snapshot.graph.clone(),
            revision: snapshot.revision.clone(),
            now,
            records: snapshot.records_in(&call.scope),
            item: None,
            due: None,
            noted: BTreeMap::new(),
            is_ending: false,
            is_cached: true,
        })
    }

    /// Caches a run as this call has written it.
    pub(super) fn cache_snapshot(&self, call: &mut Call<'_>, decided: &Decided) {
        let snapshot = call.snapshot.take();
        if !matches!(call.proof, Proof::Lease { .. }) {
            self.cache().invalidate_snapshot(call.run);
            return;
        }
        let (before, after) = (&decided.before, &decided.after.run);
        let (scope, mut records) = match snapshot {
            Some(snapshot) if snapshot.seq == before.seq && snapshot.records.len() < RECORDS_MAX => {
                (snapshot.scope.union(call.scope.clone()), snapshot.records)
            }
            Some(_) | None => (call.scope.clone(), BTreeMap::new()),
        };
        records.extend(after.records().iter().map(|(id, record)| (id.clone(), record.clone())));
        let snapshot = RunSnapshot {
            seq: decided.seq(),
            chain: decided.hash(),
            head: after.head.clone(),
            graph: before.graph.clone(),
            revision: before.revision.clone(),
            at: before.now,
            scope,
            records,
        };
        self.cache().keep_snapshot(call.run, Box::new(snapshot));
    }
}
