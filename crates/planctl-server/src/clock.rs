//! The only place that asks this machine what time it is; for waiting and for people, never for a decision.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use planctl_engine::Timestamp;
use planctl_harness::blocking_in_place;

/// Returns this machine's time; leases and timers go by the database's.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// Returns the name of this machine's time zone: that of `TZ`, else that of `/etc/localtime`, else UTC.
pub fn time_zone() -> String {
    let of_variable = std::env::var("TZ").ok().map(|zone| zone.trim_start_matches(':').to_owned());
    let of_file = || {
        let path = blocking_in_place(|| std::fs::read_link("/etc/localtime")).ok()?;
        Some(path.to_str()?.split_once("zoneinfo/")?.1.to_owned())
    };
    of_variable.filter(|zone| !zone.is_empty()).or_else(of_file).unwrap_or_else(|| "UTC".to_owned())
}

/// Returns an instant of the monotonic clock, for margins of our own.
pub fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
