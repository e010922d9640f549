//! Says what a run did and where it stands, for people and in prompts: pure functions of its graph, its state and its facts.
//!
//! The engine decides and keeps facts; this crate puts them into words.

mod branches;
mod choice;
mod context;
mod parallel;
mod printed;
mod salute;
mod sentence;
mod so_far;
mod traversal;
mod waiting;
mod words;

pub use branches::{Branch, Joining, Stands, open_joins};
pub use choice::{Choice, EdgeResult, Looked, choice, decider_word};
pub use context::{Form, Manual, Scene, Verify, context};
pub use parallel::{SideBySide, parallel_branches};
pub use printed::{strip_terminal_sequences, telling_line};
pub use salute::{Activity, Duty, Equipment, LiveStep, Location, Past, Salute, Size, Times, Who, salute};
pub use sentence::{is_echo, sentence, sub_plan_began};
pub use so_far::{so_far, so_far_facts};
pub use traversal::{PATH_MAX, Traversal, Visited, traversal};
pub use waiting::steps_waiting;
pub use words::{VACUOUS, ask_name, contract_words, node_name, outcomes_line, reason_words, shortfall_line};
