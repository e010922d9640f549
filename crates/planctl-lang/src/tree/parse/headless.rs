//! Steps whose headings are not read: a line of `-` or `=` below a numbered title, and fields above the first step.

use super::field::{self, FieldLine};
use super::layout::PartKind;
use super::{Reader, Section};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::markdown::LineKind;
use crate::text::{Span, escape};
use crate::tree::Field;

impl Reader<'_> {
    /// Reports a step's heading that has a line below it, and says whether it is one.
    pub(super) fn read_underlined(&mut self, line: usize, span: Span) -> bool {
        let text = self.source.slice(span).trim();
        let is_in_steps = matches!(self.place, Section::Steps | Section::Step | Section::Unnumbered);
        if !is_in_steps || !is_numbered(text) || !self.is_underline(line + 1) || !self.begins_step(line + 2) {
            return false;
        }
        let written = format!("### {text}");
        let message =
            format!("the heading `{}` has a line below it, and is not read as a step", escape(text));
        let both = Span::new(span.start, self.source.line_span(line + 1).end);
        let underlined = Diagnostic::new(Code::P015, message).at(both, "a step's heading is `### N. Title`");
        let underlined = underlined.help(format!("write `{}`", escape(&written))).fix(both, written, true);
        self.leave_step(line);
        self.found.push(underlined);
        true
    }

    /// Reports a field that stands above the first step; what follows it belongs to the same step.
    pub(super) fn report_headless(&mut self, found: &FieldLine, line: usize) {
        let message = format!("`**{}:**` belongs to no step", found.name.value);
        let headless = Diagnostic::new(Code::P015, message).at(found.name.span, "no step begins above it");
        self.leave_step(line);
        self.found.push(headless.help("write the heading of its step above it: `### 1. Title`"));
    }

    // The fields below belong to a step that can't be read; the next verification finds their faults.
    fn leave_step(&mut self, line: usize) {
        self.close_field(line);
        self.begin_part(line, PartKind::Other);
        self.place = Section::Unnumbered;
    }

    fn is_underline(&self, line: usize) -> bool {
        let is_text = line < self.source.line_count() && self.outline.kind(line) == LineKind::Text;
        let text = self.source.slice(self.source.line_span(line)).trim();
        let is_of = |mark: char| text.len() > 1 && text.chars().all(|c| c == mark);
        is_text && (is_of('-') || is_of('='))
    }

    // A list in a task may end before a line, too: a step begins where a field stands below that the step above has already.
    fn begins_step(&self, line: usize) -> bool {
        let spans = (line..self.source.line_count()).map(|line| self.source.line_span(line));
        let mut lines = spans.filter(|span| !self.source.slice(*span).trim().is_empty());
        let first = lines.next().and_then(|span| field::line(self.source.slice(span), span.start));
        let Some(field) = first.and_then(|found| Field::of_step(&found.name.value)) else { return false };
        self.place != Section::Step || self.seen.iter().any(|(known, _)| *known == field)
    }
}

// `2. Next`
fn is_numbered(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].strip_prefix(['.', ')', ':']);
    digits > 0 && rest.is_some_and(|rest| rest.starts_with(' ') && !rest.trim().is_empty())
}
