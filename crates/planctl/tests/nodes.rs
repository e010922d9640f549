//! Processes of planctl that go on, with a private Postgres: daemons and long runs, what kills them, and those who talk to them.
//!
//! One program holds the tests of several areas, since each program links the whole of planctl.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

#[path = "support/place.rs"]
mod support;
#[path = "support/tls.rs"]
mod tls;
#[path = "support/tty.rs"]
mod tty;

mod chaos;
mod daemon;
mod kill;
mod mcp;
mod notify;
mod outage;
mod team;
