//! The messages between the server and its clients: request and answer types, JSON Schemas, problem codes, and the words for people.

mod next;
mod problem;
pub mod wire;
pub mod words;

pub use next::{Next, Starting};
pub use problem::{Code, PROBLEM_MEDIA_TYPE, Problem};
pub use wire::schema;
