//! Words for runs that conversations with the engine made.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[path = "../../planctl-engine/tests/conversations/plan.rs"]
mod plan;
#[path = "views/runs.rs"]
mod runs;
#[path = "views/salute.rs"]
mod salute;
#[path = "../../planctl-engine/tests/conversations/script.rs"]
#[expect(dead_code, reason = "other conversations ask for more")]
mod script;
#[path = "views/sentences.rs"]
mod sentences;
#[path = "views/so_far.rs"]
mod so_far;
#[path = "../../planctl-engine/tests/conversations/speech.rs"]
mod speech;
#[path = "views/words.rs"]
mod words;
