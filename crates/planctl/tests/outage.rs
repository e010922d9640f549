//! Faults around a run: the database goes away, signals, processes that stop, a cancellation.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect has failed"
)]

#[path = "outage/database.rs"]
mod database;

#[path = "outage/signals.rs"]
mod signals;

#[path = "outage/stopped.rs"]
mod stopped;

#[path = "outage/cancel.rs"]
mod cancel;

#[path = "outage/together.rs"]
mod together;
