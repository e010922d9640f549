//! Text as its language has it: markdown, DOT, bash and the small languages of values, before any meaning for a plan.

pub(crate) mod alike;
pub mod condition;
pub(crate) mod content;
pub mod dot;
mod language;
pub(crate) mod markdown;
pub(crate) mod shell;
pub(crate) mod source;
pub(crate) mod values;
pub(crate) mod written;

pub use language::Language;
pub use source::{Position, Source, Unreadable};
