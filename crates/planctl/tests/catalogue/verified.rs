//! The findings in a plan, from the language or from the binary's JSON.

use std::ops::Range;

use planctl_lang::{Code, Diagnostic, Severity, Source, Verification, render_all};
use serde_json::Value;

use crate::place::Said;

pub struct Verified {
    pub is_verified: bool,
    found: Vec<Finding>,
    drawn: String,
}

pub struct Finding {
    pub code: Code,
    pub level: Severity,
    /// Bytes of the file, the primary place first.
    pub places: Vec<Range<usize>>,
    pub fix: Option<Mended>,
}

/// Replacements that mend a plan.
#[derive(Clone)]
pub struct Mended {
    edits: Vec<(Range<usize>, String)>,
    /// Says that nobody has to look.
    pub is_safe: bool,
}

impl Mended {
    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut mended = bytes.to_vec();
        let mut edits = self.edits.clone();
        edits.sort_by_key(|(place, _)| place.start);
        for (place, replacement) in edits.into_iter().rev() {
            mended.splice(place, replacement.into_bytes());
        }
        mended
    }
}

impl Verified {
    pub fn judged(verification: &Verification, source: &Source) -> Verified {
        Verified::found(&verification.diagnostics, source, verification.is_verified())
    }

    pub fn found(diagnostics: &[Diagnostic], source: &Source, is_verified: bool) -> Verified {
        let found = diagnostics.iter().map(|found| Finding {
            code: found.code,
            level: found.level,
            places: found.spans.iter().map(|label| label.span.start..label.span.end).collect(),
            fix: found.fix.as_ref().map(|fix| Mended {
                edits: fix
                    .edits
                    .iter()
                    .map(|edit| (edit.span.start..edit.span.end, edit.replacement.clone()))
                    .collect(),
                is_safe: fix.safe,
            }),
        });
        Verified { is_verified, found: found.collect(), drawn: render_all(diagnostics, source, false) }
    }

    /// Reads what `plan verify --json` said of these bytes.
    pub fn told(bytes: &[u8], said: &Said) -> Verified {
        let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let text = std::str::from_utf8(bytes).unwrap();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let found = list(&told["diagnostics"]).into_iter().map(|found| Finding {
            code: Code::from_word(found["code"].as_str().unwrap()).unwrap(),
            level: match found["level"].as_str() {
                Some("error") => Severity::Error,
                Some("warning") => Severity::Warning,
                _ => Severity::Note,
            },
            places: list(&found["spans"]).iter().map(|span| place(text, span)).collect(),
            fix: found["fix"].as_object().map(|fix| Mended {
                edits: list(&fix["edits"])
                    .iter()
                    .map(|edit| (place(text, edit), edit["replacement"].as_str().unwrap().to_owned()))
                    .collect(),
                is_safe: fix["safe"] == true,
            }),
        });
        Verified {
            is_verified: told["verified"] == true,
            found: found.collect(),
            drawn: format!("{told:#}\n{}", said.err),
        }
    }

    pub fn of(&self, code: Code) -> Vec<&Finding> {
        self.found.iter().filter(|found| found.code == code).collect()
    }

    /// The other codes; notes are not counted.
    pub fn others_than(&self, code: Code) -> Vec<String> {
        let others = self.found.iter().filter(|found| found.code != code && found.level != Severity::Note);
        others.map(|found| found.code.to_string()).collect()
    }

    pub fn drawn(&self) -> &str {
        &self.drawn
    }
}

fn place(text: &str, span: &Value) -> Range<usize> {
    let number = |name: &str| usize::try_from(span[name].as_u64().unwrap()).unwrap();
    byte_of(text, number("line"), number("column"))..byte_of(text, number("end_line"), number("end_column"))
}

// Lines and characters are counted from 1; a byte order mark takes no column.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &text[before..];
    let mark = if before == 0 && rest.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let line = &rest[mark..];
    before + mark + line.char_indices().nth(column - 1).map_or(line.len(), |(at, _)| at)
}
