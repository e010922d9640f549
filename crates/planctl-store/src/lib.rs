//! Makes the engine's decisions durable in Postgres.

pub mod cluster;
#[cfg(feature = "testing")]
pub mod testing;
