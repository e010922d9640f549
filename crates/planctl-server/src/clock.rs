//! The only place that asks this machine what time it is; for waiting and for people, never for a decision.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use planctl_engine::Timestamp;

/// Returns this machine's time; leases and timers go by the database's.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// Returns an instant of the monotonic clock, for margins of our own.
pub fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
