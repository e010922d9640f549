//! Makes the engine's decisions durable in Postgres.
