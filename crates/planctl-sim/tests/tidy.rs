//! The rules of the house as tests: which way crates look, and what may stand in which file.

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/blocking.rs"]
mod blocking;
#[path = "tidy/graphs.rs"]
mod graphs;
#[path = "tidy/library.rs"]
mod library;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/rows.rs"]
mod rows;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/sources.rs"]
mod sources;
