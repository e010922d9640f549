//! Runs the loops; the only room where all doors meet.

pub mod config;
pub mod diff;
pub mod wire;
