//! A question to a model or an agent.

use serde_json::Value;

/// A question to a model or an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Prompt {
    /// The rules that hold for every question.
    pub system: String,
    /// The question.
    pub text: String,
    /// The form of the answer.
    pub schema: Value,
    /// The name of that form.
    pub name: &'static str,
}

impl Prompt {
    /// Returns it as one text, for an agent.
    pub fn whole(&self) -> String {
        format!("{}\n\n{}", self.system, self.text)
    }

    /// Estimates its tokens.
    pub fn tokens(&self) -> u64 {
        tokens_of_bytes(self.system.len() + self.text.len() + self.schema.to_string().len())
    }
}

/// Estimates the tokens of a text.
pub fn tokens_of(text: &str) -> u64 {
    tokens_of_bytes(text.len())
}

/// A token is about four bytes, and too many is better than too few.
fn tokens_of_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes / 3).unwrap_or(u64::MAX)
}
