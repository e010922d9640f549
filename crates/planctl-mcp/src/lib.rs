//! Serves planctl to agents, by the Model Context Protocol.

pub mod planning;
