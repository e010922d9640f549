//! The items that this process works on. They distinguish a lease that nothing renews any more from one that is late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use planctl_engine::ItemId;

use crate::mutex::lock;

/// The items in flight. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    items: Arc<Mutex<BTreeMap<ItemId, usize>>>,
}

impl InFlight {
    /// Marks an item as in flight until the returned guard is dropped, also by a panic.
    pub(crate) fn hold(&self, item: &ItemId) -> InFlightGuard {
        *lock(&self.items).entry(item.clone()).or_default() += 1;
        InFlightGuard { items: self.clone(), item: item.clone() }
    }

    pub(crate) fn has(&self, item: &ItemId) -> bool {
        lock(&self.items).contains_key(item)
    }
}

/// Guard of one item in flight.
pub(crate) struct InFlightGuard {
    items: InFlight,
    item: ItemId,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut items = lock(&self.items.items);
        if let Some(count) = items.get_mut(&self.item) {
            *count -= 1;
            if *count == 0 {
                items.remove(&self.item);
            }
        }
    }
}
