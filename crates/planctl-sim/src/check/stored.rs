//! Values that a store writes as JSON read back as they were. Code that reads and writes each type of the engine is half of this
//! crate's cost to build, and the engine with deliberate bugs writes no other JSON: its simulator has no part of this.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ensure;
use crate::store::Store;

/// Checks that each value of the history, of the items and of the run reads back from JSON as it was.
pub fn everything_reads_back(store: &Store) -> Result<(), String> {
    for entry in &store.history {
        reads_back(&entry.event)?;
        reads_back(&entry.facts)?;
    }
    for row in store.items.values() {
        reads_back(&row.item)?;
    }
    for record in store.nodes.values() {
        reads_back(record)?;
    }
    store.plans.iter().try_for_each(|plan| reads_back(&plan.graph))?;
    reads_back(&store.head)
}

fn reads_back<T>(value: &T) -> Result<(), String>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let text = serde_json::to_string(value).map_err(|error| format!("could not store {value:?}: {error}"))?;
    let read: T =
        serde_json::from_str(&text).map_err(|error| format!("could not read back {text}: {error}"))?;
    ensure(read == *value, || format!("{text} reads back as {read:?}"))
}
