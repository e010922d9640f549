//! The texts of a list: trimmed, ASCII, and no longer than their field allows.

use std::fmt;

use super::refusal::Refusal;

/// A field of a list or a step that holds text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The objective of a list.
    Objective,
    /// The title of a step.
    Title,
    /// The details of a step.
    Details,
    /// A note on a step.
    Note,
    /// The id of a step.
    StepId,
}

impl Field {
    /// Returns the most characters that it holds.
    pub fn characters_max(self) -> usize {
        match self {
            Field::Objective => 240,
            Field::Title => 160,
            Field::Details | Field::Note => 512,
            Field::StepId => 32,
        }
    }

    /// Reads a text that has to say something.
    pub fn required(self, text: &str) -> Result<String, Refusal> {
        self.trimmed(text)?.ok_or(Refusal::Empty(self))
    }

    /// Reads a text that may be blank, which is none.
    pub fn optional(self, text: Option<&str>) -> Result<Option<String>, Refusal> {
        text.map_or(Ok(None), |text| self.trimmed(text))
    }

    fn trimmed(self, text: &str) -> Result<Option<String>, Refusal> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if text.chars().count() > self.characters_max() {
            return Err(Refusal::TooLong(self));
        }
        if !text.is_ascii() {
            return Err(Refusal::NotAscii(self));
        }
        Ok(Some(text.to_owned()))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Objective => "Objective",
            Field::Title => "Title",
            Field::Details => "Details",
            Field::Note => "Note",
            Field::StepId => "Step ID",
        })
    }
}
