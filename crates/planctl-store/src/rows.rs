//! Between rows and the engine's types: times, ids, words for states.

use std::time::Duration;

use planctl_engine::{At, Attempt, NodeId, NodeState, Outcome, Record, RunId, RunStatus, Timestamp, hex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::time::OffsetDateTime;
use uuid::Uuid;

use crate::error::StoreError;

pub(crate) fn time(stored: OffsetDateTime) -> Timestamp {
    let micros = stored.unix_timestamp_nanos() / 1000;
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

pub(crate) fn stored_time(time: Timestamp) -> OffsetDateTime {
    // Postgres's range of times ends far beyond any time a run can name; a later one means "never".
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time.as_micros()) * 1000).unwrap_or(FAR_FUTURE)
}

/// Returns microseconds since 1970 as `planctl_time` of the database takes them.
pub(crate) fn micros_of(time: Timestamp) -> i64 {
    time.as_micros().min(FAR_FUTURE.unix_timestamp() * 1_000_000)
}

pub(crate) fn micros(span: Duration) -> i64 {
    // A century: what the database adds to a time must stay a time it can hold.
    const MICROS_MAX: i64 = 100 * 366 * 24 * 3_600 * 1_000_000;
    i64::try_from(span.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX)
}

pub(crate) fn at_of(row: &PgRow) -> Result<At, StoreError> {
    let number = |column| -> Result<u16, StoreError> {
        u16::try_from(row.try_get::<i32, _>(column)?)
            .map_err(|_| StoreError::corrupt(format!("an item's {column} is out of range")))
    };
    Ok(At {
        node: NodeId::new(row.try_get::<String, _>("node")?),
        visit: number("visit")?,
        attempt: Attempt::from_number(number("attempt")?),
    })
}

/// The end of year 9999, the last that the time library writes.
const FAR_FUTURE: OffsetDateTime = match OffsetDateTime::from_unix_timestamp(253_402_300_799) {
    Ok(time) => time,
    Err(_) => OffsetDateTime::UNIX_EPOCH,
};

pub(crate) fn run_id(stored: Uuid) -> RunId {
    RunId::from_u128(stored.as_u128())
}

pub(crate) fn stored_run(run: RunId) -> Uuid {
    Uuid::from_u128(run.as_u128())
}

pub(crate) fn stored_runs(runs: &[RunId]) -> Vec<Uuid> {
    runs.iter().copied().map(stored_run).collect()
}

/// Reads a column that holds a time.
pub(crate) fn time_at(row: &PgRow, column: &str) -> Result<Timestamp, sqlx::Error> {
    Ok(time(row.try_get::<OffsetDateTime, _>(column)?))
}

pub(crate) fn optional_time_at(row: &PgRow, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<OffsetDateTime>, _>(column)?.map(time))
}

/// Reads stored JSON that this planctl, or an older one, wrote.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::corrupt(format!("{what} does not read: {error}")))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the engine's types have string keys and no failing serializer")
}

/// Writes bytes as Postgres reads them from JSON.
pub(crate) fn bytea_literal(bytes: &[u8]) -> String {
    format!("\\x{}", hex(bytes))
}

/// Returns the word for a run's status that lists and queries use.
pub(crate) fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::New => "new",
        RunStatus::Awaiting => "awaiting",
        RunStatus::Queued { .. } => "queued",
        RunStatus::Active => "active",
        RunStatus::Paused => "paused",
        RunStatus::Ended { .. } => "ended",
    }
}

/// Returns the word for a node's state.
pub(crate) fn node_word(state: &NodeState) -> &'static str {
    match state {
        NodeState::Pending => "pending",
        NodeState::Ready => "ready",
        NodeState::Working { .. } => "working",
        NodeState::Resting { .. } => "resting",
        // All of these are the harness's; queries find live nodes by the word.
        NodeState::Rehearsing
        | NodeState::Saving { .. }
        | NodeState::Branching
        | NodeState::Nested { .. }
        | NodeState::Checking { .. } => "checking",
        NodeState::Held { .. } => "held",
        NodeState::Settled { outcome } => match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Waived => "waived",
            Outcome::Warned => "warned",
        },
    }
}

pub(crate) fn records(
    names: Option<Vec<String>>,
    texts: Option<Vec<String>>,
) -> Result<std::collections::BTreeMap<NodeId, Record>, StoreError> {
    let names = names.unwrap_or_default();
    let texts = texts.unwrap_or_default();
    names
        .into_iter()
        .zip(&texts)
        .map(|(name, text)| Ok((NodeId::new(name), from_json(text, "a node's record")?)))
        .collect()
}
