//! Messages to people: real daemons, real receivers, and what each of them got; and what a daemon tells those who watch it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect has failed"
)]

#[path = "notify/listener.rs"]
mod listener;

#[path = "notify/receiver.rs"]
mod receiver;

#[path = "notify/asks.rs"]
mod asks;

#[path = "notify/collector.rs"]
mod collector;

#[path = "notify/delivery.rs"]
mod delivery;

#[path = "notify/mail.rs"]
mod mail;

#[path = "notify/metrics.rs"]
mod metrics;

#[path = "notify/quiet.rs"]
mod quiet;

#[path = "notify/secrets.rs"]
mod secrets;

#[path = "notify/terminal.rs"]
mod terminal;

#[path = "notify/traces.rs"]
mod traces;

#[path = "notify/upkeep.rs"]
mod upkeep;

#[path = "notify/worktrees.rs"]
mod worktrees;
