//! Signs that a goal is more than a pattern can handle: who matches a goal with one of them would guess (M-02).

use serde::{Deserialize, Serialize};

/// One sign of complexity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// A person is to say something meanwhile.
    UserInteraction,
    /// More than one "and".
    SeveralClauses,
    /// One thing comes after another.
    TimeOrder,
}

impl Signal {
    /// Says what was seen, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Signal::UserInteraction => "it asks a person for something",
            Signal::SeveralClauses => "it has more than one \"and\"",
            Signal::TimeOrder => "it says what comes before or after what",
        }
    }
}

const INTERACTION: [&str; 8] = [
    "asked to user",
    "asked to the user",
    "ask me",
    "ask the user",
    "user provides",
    "user supplies",
    "prompt me",
    "prompt the user",
];
const ORDER: [&str; 4] = ["then", "after", "before", "afterwards"];

/// Lists the signs in a goal, each once. Text in quotes is what the goal is about, so it is not looked at.
pub fn signals(goal: &str) -> Vec<Signal> {
    let plain = without_quoted(goal).to_lowercase();
    let words: Vec<&str> =
        plain.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    let together = format!(" {} ", words.join(" "));
    let mut found = Vec::new();
    if INTERACTION.iter().any(|phrase| together.contains(&format!(" {phrase} "))) {
        found.push(Signal::UserInteraction);
    }
    if words.iter().filter(|word| **word == "and").count() > 1 {
        found.push(Signal::SeveralClauses);
    }
    if words.iter().any(|word| ORDER.contains(word)) {
        found.push(Signal::TimeOrder);
    }
    found
}

/// Leaves out what stands in double quotes, backticks or single quotes that begin a word.
pub(crate) fn without_quoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut within = None;
    let mut before = ' ';
    for character in text.chars() {
        match within {
            Some(quote) if character == quote => within = None,
            Some(_) => {}
            None if matches!(character, '"' | '`') => within = Some(character),
            None if character == '\'' && before.is_whitespace() => within = Some('\''),
            None => plain.push(character),
        }
        before = character;
    }
    plain
}
