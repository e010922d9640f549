//! A team's set-up: daemons on several hosts behind TLS, and the manifests that start them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect has failed"
)]

#[path = "team/hosts.rs"]
mod hosts;

#[path = "team/cut.rs"]
mod cut;

#[path = "team/manifests.rs"]
mod manifests;
