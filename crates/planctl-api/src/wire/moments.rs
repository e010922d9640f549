//! Points in time, as JSON says them.

use planctl_engine::Timestamp;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Writes a time as RFC 3339 in UTC, to the microsecond.
pub fn moment(at: Timestamp) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1000)
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{} µs", at.as_micros()))
}
