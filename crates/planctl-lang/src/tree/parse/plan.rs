//! Reads the budget of a plan, and what is asked of contracts before the work.

use planctl_engine::{Budget, RedFirst};

use super::field::{RawField, is_separator};
use super::{Reader, budget};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::markdown::LineKind;
use crate::syntax::written::Written;
use crate::text::{Span, Spanned, escape};
use crate::tree::Field;

impl Reader<'_> {
    pub(super) fn take_budget(&mut self, field: &RawField, end: usize) {
        let places = self.budget_lines(field, end);
        let lines: Vec<(usize, &str)> =
            places.iter().map(|span| (span.start, self.source.slice(*span))).collect();
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return self.report_empty(Field::Budget, field);
        };
        let whole = Span::new(first.start, last.end);
        let (budget, faults) = budget::read(&lines);
        if faults.is_empty() && budget == Budget::default() {
            let nothing = Diagnostic::new(Code::P503, "the budget names no limit").at(whole, "");
            self.found.push(nothing.help("write `max 200k tokens, $1.50, 20 minutes`, or delete the line"));
        }
        for fault in faults {
            let at = Span::new(fault.at.0, fault.at.1);
            let message = format!("`{}` in the budget {}", escape(self.source.slice(at)), fault.why);
            let mut unread = Diagnostic::new(Code::P503, message);
            unread = match fault.first {
                None => unread.at(at, "this part"),
                Some((start, end)) => unread.at(at, "again here").at(Span::new(start, end), "first here"),
            };
            if let Some(((start, end), text, safe)) = fault.fix {
                unread = unread.fix(Span::new(start, end), text, safe);
            }
            self.found.push(unread.help(fault.help));
        }
        self.tree.head.budget = Some(Spanned::new(budget, whole));
    }

    // The field's own line, bullets below it, and a line that goes on where the one above ends with a separator.
    fn budget_lines(&mut self, field: &RawField, end: usize) -> Vec<Span> {
        let mut lines: Vec<Span> = Vec::new();
        let mut is_open = true;
        for line in field.line..end {
            let span = if line == field.line { field.value } else { self.source.line_span(line) };
            let text = self.source.slice(span);
            if self.outline.kind(line) != LineKind::Text || is_separator(text) {
                continue;
            }
            let body = text.trim_start();
            let bullet = body.strip_prefix(['-', '*', '+', '•']).filter(|rest| rest.starts_with(' '));
            let bullet = bullet.filter(|_| line > field.line);
            let at = span.start + text.len() - bullet.unwrap_or(body).trim_start().len();
            if bullet.is_none() && !is_open {
                self.report_stray(line, span);
                continue;
            }
            let last = text.trim_end().to_lowercase();
            is_open = last.ends_with([',', ';', '/']) || last.ends_with(" and");
            lines.push(Span::new(at, span.start + text.trim_end().len()));
        }
        lines
    }

    /// Reads what is asked of contracts before the work.
    pub(super) fn red_first(&mut self, value: &Spanned<String>) -> Written<RedFirst> {
        let word = value.value.to_lowercase();
        let policy = RedFirst::ALL.into_iter().find(|policy| policy.as_str() == word);
        if policy.is_none() {
            let message = format!("`{}` is not a value of `**red_first:**`", escape(&value.value));
            let help = "write `off`, `warn` (say it where the contract passes before the work) or `deny` (ask a person)";
            let refused = Diagnostic::new(Code::P015, message).at(value.span, "").help(help);
            self.report_value(Field::RedFirst, refused);
        }
        policy.map(|policy| Spanned::new(policy, value.span)).into()
    }
}
