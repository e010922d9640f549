//! A question to a model or an agent.

use planctl_engine::estimated_tokens;
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
    pub fn to_text(&self) -> String {
        format!("{}\n\n{}", self.system, self.text)
    }

    /// Estimates its tokens.
    pub fn tokens(&self) -> u64 {
        estimated_tokens(self.system.len() + self.text.len() + self.schema.to_string().len())
    }
}

/// Estimates the tokens of a text.
pub fn tokens_of(text: &str) -> u64 {
    estimated_tokens(text.len())
}
