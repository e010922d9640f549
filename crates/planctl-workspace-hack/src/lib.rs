//! Holds no code. It has the tests and the binary share one build of some libraries: Cargo.toml says of which, and why.
