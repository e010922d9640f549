//! Characters, places, near words, paths and limits: helpers of every layer, which know nothing of plans.

pub(crate) mod characters;
mod duration;
pub(crate) mod limits;
pub(crate) mod near;
pub(crate) mod paths;
mod quoting;
pub(crate) mod secrets;
mod span;
mod yaml;

pub use characters::escape;
pub use duration::duration_words;
pub(crate) use quoting::is_plain_word;
pub use quoting::{shell_quoted, shell_word};
pub use span::{Span, Spanned};
pub(crate) use yaml::yaml_text;

/// Returns the words of a text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
