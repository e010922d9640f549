//! A run as this process wrote it last.

use std::collections::BTreeMap;

use planctl_engine::{Digest, Head, NodeId, Record, Scope, Timestamp};

/// A run as this process wrote it last.
pub(crate) struct RunSnapshot {
    pub(crate) seq: i64,
    pub(crate) chain: [u8; 32],
    pub(crate) head: Head,
    pub(crate) graph: Digest,
    pub(crate) revision: Digest,
    /// When it was written, by the database's time.
    pub(crate) at: Timestamp,
    /// The nodes whose records the snapshot holds. A node of these without a record was never entered.
    pub(crate) scope: Scope,
    pub(crate) records: BTreeMap<NodeId, Record>,
}

impl RunSnapshot {
    /// Returns about how many KiB it takes: what workers noted may be most of a record.
    pub(crate) fn weight(&self) -> usize {
        let bytes = |record: &Record| {
            record.context.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
        };
        1 + self.records.values().map(|record| 1 + bytes(record) / 1024).sum::<usize>()
    }

    pub(crate) fn records_in(&self, scope: &Scope) -> BTreeMap<NodeId, Record> {
        match scope {
            Scope::Nodes(ids) => {
                let snapshot = ids.iter().filter_map(|id| Some((id, self.records.get(id)?)));
                snapshot.map(|(id, record)| (id.clone(), record.clone())).collect()
            }
            Scope::Live(_) | Scope::All => self.records.clone(),
        }
    }
}
