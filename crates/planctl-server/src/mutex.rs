//! Locks mutexes, poisoned ones too.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, and recovers a poisoned one. Each mutation is one step, so the value is consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
