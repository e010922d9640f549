//! Runs the loops; the only room where all doors meet.

pub mod config;
pub mod database;
pub mod diff;
pub mod wire;
