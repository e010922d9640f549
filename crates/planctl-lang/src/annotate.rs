//! Draws the status and the steps' marks into a plan's text: the projection that people read (DESIGN 4).

use std::collections::BTreeMap;

use crate::digest::frontmatter;
use crate::markdown::{LineKind, Outline};
use crate::parse::heading;
use crate::source::{Source, Span};
use crate::tree::StepNumber;

/// How a step stands, as its heading shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Its gate passed.
    Passed,
    /// It failed for good.
    Failed,
    /// It was skipped.
    Skipped,
    /// It failed and the run went on.
    Warned,
    /// A person let it pass by name.
    Waived,
    /// It is worked on, checked, or waits for a person.
    Working,
}

impl Mark {
    /// Returns the character that stands before the title.
    pub fn symbol(self) -> &'static str {
        match self {
            Mark::Passed => "✅",
            Mark::Failed => "❌",
            Mark::Skipped => "⏭",
            Mark::Warned => "⚠",
            Mark::Waived => "☑",
            Mark::Working => "⏳",
        }
    }
}

/// Returns the plan's text with this status and these marks, by step number.
///
/// A step without a mark in the map loses the one it has. Doing it twice changes nothing more, and the digest stays
/// (P-16, X-17). `**status:**` lines are left alone: they are the author's, and ignored.
pub fn annotate(source: &Source, status: &str, marks: &BTreeMap<u32, Mark>) -> String {
    let mut edits: Vec<(Span, String)> = Vec::new();
    let (value, body) = frontmatter(source).unwrap_or((None, 0));
    if let Some(value) = value {
        edits.push((value, format!(" {status}")));
    }
    let outline = Outline::read(source, body);
    for line in body..source.line_count() {
        if outline.kind(line) != LineKind::Text {
            continue;
        }
        let span = source.line_span(line);
        let Some(found) = heading::heading(source.slice(span), span.start) else { continue };
        let Some(step) = heading::step(&found).filter(|_| (2..=4).contains(&found.level)) else { continue };
        let Ok(number) = step.number else { continue };
        let StepNumber::Fixed(number) = number.value else { continue };
        let title = step.title.span.start;
        let old = step.mark.map_or(Span::at(title), |mark| Span::new(mark.span.start, title));
        let is_spaced = source.text()[..old.start].ends_with([' ', '\t']);
        let mark = match marks.get(&number) {
            Some(_) if !is_spaced || step.title.value.is_empty() => continue,
            Some(mark) => format!("{} ", mark.symbol()),
            None => String::new(),
        };
        edits.push((old, mark));
    }
    apply(source.text(), &edits)
}

fn apply(text: &str, edits: &[(Span, String)]) -> String {
    let mut written = String::with_capacity(text.len() + edits.len() * 8);
    let mut at = 0;
    for (span, replacement) in edits {
        written.push_str(&text[at..span.start]);
        written.push_str(replacement);
        at = span.end;
    }
    written.push_str(&text[at..]);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::digest;

    const PLAN: &str =
        "---\r\ntype: plan\r\nstatus: draft\r\n---\r\n# T\r\n## Steps\r\n### 1. One\r\n### 2. ⚠️ Two\r\n";

    #[test]
    fn marks_stand_between_number_and_title_and_the_digest_stays() {
        let source = Source::new("p", PLAN);
        let marks = BTreeMap::from([(1, Mark::Passed), (2, Mark::Working)]);
        let written = annotate(&source, "in-progress", &marks);
        assert!(written.contains("status: in-progress\r\n") && written.contains("### 1. ✅ One\r\n"));
        assert!(written.contains("### 2. ⏳ Two\r\n"));
        let again = Source::new("p", written.clone());
        assert_eq!(digest(&source), digest(&again));
        assert_eq!(annotate(&again, "in-progress", &marks), written);
        assert_eq!(annotate(&again, "draft", &BTreeMap::new()), PLAN.replace("⚠️ ", ""));
    }
}
