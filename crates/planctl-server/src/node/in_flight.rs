//! The items that this process works on. They distinguish a lease that nothing renews any more from one that is late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planctl_engine::ItemId;

/// The items in flight. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    items: Arc<Mutex<BTreeMap<ItemId, usize>>>,
}

impl InFlight {
    /// Marks an item as in flight until the returned guard is dropped, also by a panic.
    pub(crate) fn hold(&self, item: &ItemId) -> InFlightGuard {
        *self.lock().entry(item.clone()).or_default() += 1;
        InFlightGuard { items: self.clone(), item: item.clone() }
    }

    pub(crate) fn has(&self, item: &ItemId) -> bool {
        self.lock().contains_key(item)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ItemId, usize>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of one item in flight.
pub(crate) struct InFlightGuard {
    items: InFlight,
    item: ItemId,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut items = self.items.lock();
        if let Some(count) = items.get_mut(&self.item) {
            *count -= 1;
            if *count == 0 {
                items.remove(&self.item);
            }
        }
    }
}
