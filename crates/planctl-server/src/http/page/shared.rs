//! Values that several readers share: pages of a busy run are looked at many times a second, and cost the database once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex};

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::clock;
use crate::mutex::lock;

/// The most values that are kept besides those in use.
const KEPT_MAX: usize = 64;

/// A value, and when it began to be made.
#[derive(Clone)]
struct Made<V> {
    began: Instant,
    value: V,
}

/// The place of one value.
struct Slot<V> {
    last: SyncMutex<Option<Made<V>>>,
    /// Held by the reader who makes the value.
    making: Mutex<()>,
}

impl<V: Clone> Slot<V> {
    fn new() -> Slot<V> {
        Slot { last: SyncMutex::new(None), making: Mutex::default() }
    }

    fn last(&self) -> Option<Made<V>> {
        lock(&self.last).clone()
    }

    fn keep(&self, made: Made<V>) {
        *lock(&self.last) = Some(made);
    }
}

/// Values by what they are of. One reader makes a value, and those that come meanwhile wait for it.
pub(super) struct Shared<V> {
    slots: SyncMutex<HashMap<String, Arc<Slot<V>>>>,
}

impl<V> Default for Shared<V> {
    fn default() -> Shared<V> {
        Shared { slots: SyncMutex::default() }
    }
}

impl<V: Clone> Shared<V> {
    /// Returns the value that somebody began to make at this moment or after it, or makes one.
    ///
    /// # Errors
    ///
    /// Those of making it, which nobody shares.
    pub(super) async fn since<E>(
        &self,
        what: &str,
        since: Instant,
        make: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        self.that(what, |began, _| began >= since, |_| make).await
    }

    /// Returns the value that was made last where it serves, else makes one. Its maker is given the last one.
    ///
    /// # Errors
    ///
    /// Those of making it, which nobody shares.
    pub(super) async fn that<E, M: Future<Output = Result<V, E>>>(
        &self,
        what: &str,
        serves: impl Fn(Instant, &V) -> bool,
        make: impl FnOnce(Option<V>) -> M,
    ) -> Result<V, E> {
        let slot = self.slot(what);
        let serving = || slot.last().filter(|last| serves(last.began, &last.value));
        if let Some(last) = serving() {
            return Ok(last.value);
        }
        let _making = slot.making.lock().await;
        if let Some(last) = serving() {
            return Ok(last.value);
        }
        let began = clock::instant();
        let value = make(slot.last().map(|last| last.value)).await?;
        slot.keep(Made { began, value: value.clone() });
        Ok(value)
    }

    /// Returns the value that was made last.
    pub(super) fn last(&self, what: &str) -> Option<V> {
        self.slot(what).last().map(|last| last.value)
    }

    fn slot(&self, what: &str) -> Arc<Slot<V>> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(what) {
            return slot.clone();
        }
        if slots.len() >= KEPT_MAX {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        slots.entry(what.to_owned()).or_insert_with(|| Arc::new(Slot::new())).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn fifty_readers_who_come_at_once_cost_one_making_and_a_later_one_another() {
        let (shared, made) = (Arc::new(Shared::default()), Arc::new(AtomicU32::new(0)));
        let (since, come) = (clock::instant(), Arc::new(Barrier::new(50)));
        let reader = |since| {
            let (shared, made, come) = (shared.clone(), made.clone(), come.clone());
            async move {
                come.wait().await;
                let make = async { Ok::<_, Infallible>(made.fetch_add(1, Ordering::Relaxed)) };
                shared.since("page", since, make).await.unwrap()
            }
        };
        let readers: Vec<_> = (0..50).map(|_| tokio::spawn(reader(since))).collect();
        for reader in readers {
            assert_eq!(reader.await.unwrap(), 0);
        }
        let make = async { Ok::<_, Infallible>(made.fetch_add(1, Ordering::Relaxed)) };
        assert_eq!(
            shared.since("page", clock::instant(), make).await,
            Ok(1),
            "what was made before is too old"
        );
    }

    #[tokio::test]
    async fn a_making_that_fails_or_is_given_up_leaves_the_next_reader_to_make_it() {
        let shared: Shared<u32> = Shared::default();
        let now = clock::instant();
        assert_eq!(shared.since("page", now, async { Err("away") }).await, Err("away"));
        let never = shared.since("page", now, std::future::pending::<Result<u32, &str>>());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), never).await.is_err());
        assert_eq!(shared.since("page", now, async { Ok::<_, &str>(7) }).await, Ok(7));
    }

    #[tokio::test]
    async fn a_maker_is_given_the_value_before_and_a_reader_whom_that_serves_does_not_wait() {
        let shared: Shared<u32> = Shared::default();
        async fn make(last: Option<u32>) -> Result<u32, Infallible> {
            Ok(last.unwrap_or(0) + 1)
        }
        assert_eq!(shared.that("page", |_, _| false, make).await, Ok(1));
        assert_eq!(shared.that("page", |_, _| false, make).await, Ok(2));
        let slot = shared.slot("page");
        let _making = slot.making.lock().await;
        assert_eq!(shared.that("page", |_, value| *value == 2, make).await, Ok(2));
        assert_eq!((shared.last("page"), shared.last("other")), (Some(2), None));
    }

    #[tokio::test]
    async fn values_that_nobody_uses_are_dropped_where_they_are_many() {
        let shared: Shared<usize> = Shared::default();
        for number in 0..KEPT_MAX * 3 {
            let make = async { Ok::<_, Infallible>(number) };
            shared.since(&number.to_string(), clock::instant(), make).await.unwrap();
        }
        assert!(shared.slots.lock().unwrap().len() <= KEPT_MAX);
    }
}
