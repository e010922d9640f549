//! Owns every child process: contracts and agents.
