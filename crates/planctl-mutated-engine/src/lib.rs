//! The engine with deliberate bugs: `build.rs` makes it.
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    reason = "the source is planctl-engine's, which is looked at there"
)]

include!(concat!(env!("OUT_DIR"), "/engine.rs"));
