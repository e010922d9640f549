//! The word of a second reader on a draft that passed the rules (M-30).

use planctl_lang::escape;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::proposal::{Unreadable, object_in};

/// The most bytes of a finding that are kept.
pub const REVIEW_BYTES_MAX: usize = 500;
const FINDINGS_MAX: usize = 20;

/// A review.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Review {
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// The reader's findings, each in a line.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// The verdict of a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewVerdict {
    /// Nothing to say.
    Ok,
    /// A person should read the findings.
    Warning,
    /// It has to be written again.
    Invalid,
}

impl Review {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] where it is no review.
    pub fn read(answer: &str) -> Result<Review, Unreadable> {
        let value = object_in(answer)?;
        let mut review: Review = serde_path_to_error::deserialize(value)
            .map_err(|error| Unreadable { faults: vec![escape(&error.to_string())] })?;
        review.findings.truncate(FINDINGS_MAX);
        for finding in &mut review.findings {
            *finding = escape(&finding.chars().take(REVIEW_BYTES_MAX).collect::<String>());
        }
        Ok(review)
    }
}

/// Returns the JSON Schema of a review.
pub fn review_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["verdict", "findings"],
        "properties": {
            "verdict": { "type": "string", "enum": ["ok", "warning", "invalid"] },
            "findings": { "type": "array", "items": { "type": "string" } },
        },
    })
}
