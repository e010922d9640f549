//! The daemon: it drives what others started, survives being killed, slept and cut off, and leaves when it is asked to.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect has failed"
)]

#[path = "daemon/life.rs"]
mod life;

#[path = "daemon/killed.rs"]
mod killed;

#[path = "daemon/several.rs"]
mod several;

#[path = "daemon/defect.rs"]
mod defect;

#[path = "daemon/outage.rs"]
mod outage;

#[path = "daemon/shortage.rs"]
mod shortage;

#[path = "daemon/idle.rs"]
mod idle;

#[path = "daemon/skew.rs"]
mod skew;

#[path = "daemon/beside.rs"]
mod beside;

#[path = "daemon/sick.rs"]
mod sick;
