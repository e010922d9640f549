//! The items that this process works on, with what keeps it from the work. They distinguish a lease that nothing renews any more
//! from one that is late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use planctl_engine::ItemId;

use crate::mutex::lock;

/// The items in flight. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    items: Arc<Mutex<BTreeMap<ItemId, ItemInFlight>>>,
}

/// One item.
#[derive(Debug, Default)]
struct ItemInFlight {
    guards: usize,
    obstacle: Option<String>,
}

impl InFlight {
    /// Marks an item as in flight until the returned guard is dropped, also by a panic.
    pub(crate) fn hold(&self, item: &ItemId) -> InFlightGuard {
        lock(&self.items).entry(item.clone()).or_default().guards += 1;
        InFlightGuard { items: self.clone(), item: item.clone() }
    }

    pub(crate) fn has(&self, item: &ItemId) -> bool {
        lock(&self.items).contains_key(item)
    }

    /// Returns what the work on an item waits for, in words.
    pub(crate) fn obstacle(&self, item: &ItemId) -> Option<String> {
        lock(&self.items).get(item)?.obstacle.clone()
    }
}

/// Guard of one item in flight.
pub(crate) struct InFlightGuard {
    items: InFlight,
    item: ItemId,
}

impl InFlightGuard {
    /// Says what the work waits for, or that it waits no more.
    pub(crate) fn set_obstacle(&self, obstacle: Option<String>) {
        if let Some(held) = lock(&self.items.items).get_mut(&self.item) {
            held.obstacle = obstacle;
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut items = lock(&self.items.items);
        if let Some(held) = items.get_mut(&self.item) {
            held.guards -= 1;
            if held.guards == 0 {
                items.remove(&self.item);
            }
        }
    }
}
