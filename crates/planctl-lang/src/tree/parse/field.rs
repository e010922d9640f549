//! Reads `**name:** value` lines and what follows them up to the next field.

use super::Reader;
use crate::diagnostic::Diagnostic;
use crate::syntax::markdown::LineKind;
use crate::syntax::source::Source;
use crate::syntax::values::Unread;
use crate::syntax::written::{FieldWords, ValueForm, Written};
use crate::text::{Span, Spanned, escape};
use crate::tree::Field;

/// A line that begins with a bold name and a colon.
#[derive(Clone)]
pub(super) struct FieldLine {
    /// The name in lower case with underscores, at its place.
    pub name: Spanned<String>,
    /// The name as written.
    pub label: String,
    /// The rest of the line.
    pub value: Span,
    /// Name and value.
    pub whole: Span,
    /// Says that the colon stands inside the bold, where planctl writes it.
    pub is_plain: bool,
}

/// A field whose lines are being gathered.
pub(super) struct RawField {
    pub field: Option<Field>,
    pub name: Spanned<String>,
    pub value: Span,
    pub line: usize,
    pub in_step: bool,
}

impl RawField {
    pub(super) fn known(field: Field, found: FieldLine, line: usize, in_step: bool) -> RawField {
        RawField { field: Some(field), name: found.name, value: found.value, line, in_step }
    }

    /// Gathers the lines of a field that was refused, so that they are not reported a second time.
    pub(super) fn ignored(found: FieldLine, line: usize) -> RawField {
        RawField { field: None, name: found.name, value: found.value, line, in_step: false }
    }
}

/// Reads a line as the begin of a field: `**name:** v`, `**name**: v`, or, for known names, `**name: v**`.
pub(super) fn line(text: &str, at: usize) -> Option<FieldLine> {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let rest = text[indent..].strip_prefix("**").filter(|_| indent <= 3)?;
    let name_at = at + indent + 2;
    let close = rest.find("**")?;
    let (inner, after) = (&rest[..close], &rest[close + 2..]);
    let end = at + text.trim_end().len();
    let whole = Span::new(at + indent, end);
    let after_at = name_at + close + 2;
    if let Some(label) = inner.trim_end().strip_suffix(':') {
        return Some(FieldLine {
            name: name(label, name_at)?,
            label: label.trim().to_owned(),
            value: Span::new(after_at.min(end), end),
            whole,
            is_plain: true,
        });
    }
    if let Some(value) = after.trim_start().strip_prefix(':') {
        let value_at = at + text.len() - value.len();
        return Some(FieldLine {
            name: name(inner, name_at)?,
            label: inner.trim().to_owned(),
            value: Span::new(value_at.min(end), end),
            whole,
            is_plain: false,
        });
    }
    let (label, value) = inner.split_once(':')?;
    let name = name(label, name_at)?;
    let is_known = Field::of_step(&name.value).is_some() || Field::of_plan(&name.value).is_some();
    let value_at = name_at + label.len() + 1;
    (is_known && after.trim().is_empty()).then(|| FieldLine {
        name,
        label: label.trim().to_owned(),
        value: Span::new(value_at, value_at + value.len()),
        whole,
        is_plain: false,
    })
}

fn name(label: &str, at: usize) -> Option<Spanned<String>> {
    let lead = label.len() - label.trim_start().len();
    let label = label.trim();
    let fits = (1..=NAME_CHARACTERS_MAX).contains(&label.chars().count())
        && label.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-'));
    let word = label.to_lowercase().replace([' ', '-'], "_");
    fits.then(|| Spanned::new(word, Span::new(at + lead, at + lead + label.len())))
}

const NAME_CHARACTERS_MAX: usize = 30;

impl Reader<'_> {
    /// Returns the value of a field that takes one line; more lines are reported.
    pub(super) fn single(&mut self, field: &RawField, end: usize) -> Option<Spanned<String>> {
        let mut value = trimmed(self.source, field.value);
        for line in field.line + 1..end {
            if self.outline.kind(line) != LineKind::Text {
                continue;
            }
            let span = self.source.line_span(line);
            if is_separator(self.source.slice(span)) {
                continue;
            }
            match &value {
                None => value = trimmed(self.source, span),
                Some(_) => self.report_stray(line, span),
            }
        }
        value
    }

    /// Returns the value of a field that takes text up to the next one, code fences included.
    pub(super) fn text(&mut self, field: &RawField, end: usize) -> Option<Spanned<String>> {
        let mut lines = vec![field.value];
        for line in field.line + 1..end {
            if let LineKind::Fence(index) = self.outline.kind(line) {
                self.used_fences[index] = true;
            }
            lines.push(self.source.line_span(line));
        }
        let is_blank = |span: &Span| self.source.slice(*span).trim().is_empty();
        let first = lines.iter().position(|span| !is_blank(span))?;
        let last = lines.iter().rposition(|span| !is_blank(span))?;
        let texts: Vec<&str> =
            lines[first..=last].iter().map(|span| self.source.slice(*span).trim_end()).collect();
        let start = trimmed(self.source, lines[first])?.span.start;
        let end = trimmed(self.source, lines[last])?.span.end;
        let text = texts.join("\n").trim_start_matches([' ', '\t']).to_owned();
        Some(Spanned::new(text, Span::new(start, end)))
    }

    /// Returns the entries of a field that takes a list, or one line with commas.
    pub(super) fn list(&mut self, field: &RawField, end: usize) -> Vec<Spanned<String>> {
        let mut entries = Vec::new();
        if let Some(inline) = trimmed(self.source, field.value) {
            let mut at = inline.span.start;
            for part in split_outside_braces(&inline.value) {
                let span = Span::new(at, at + part.len());
                at += part.len() + 1;
                let is_last = at > inline.span.end;
                let empty = || (!is_last).then(|| Spanned::new(String::new(), span));
                entries.extend(trimmed(self.source, span).or_else(empty));
            }
        }
        for line in field.line + 1..end {
            if self.outline.kind(line) != LineKind::Text {
                continue;
            }
            let span = self.source.line_span(line);
            let text = self.source.slice(span);
            let body = text.trim_start();
            match body
                .strip_prefix(['-', '*', '+'])
                .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
            {
                Some(rest) => {
                    let at = span.start + text.len() - rest.len();
                    let entry = trimmed(self.source, Span::new(at, span.end));
                    let empty = || Spanned::new(String::new(), Span::new(at - 1, at));
                    entries.push(entry.unwrap_or_else(empty));
                }
                None if is_separator(text) => {}
                None => self.report_stray(line, span),
            }
        }
        for entry in &mut entries {
            unquote(entry);
        }
        entries
    }

    /// Reads a number, or a word of a list in any case.
    pub(super) fn read<T: FieldWords>(
        &mut self,
        known: Field,
        value: &Spanned<String>,
        form: ValueForm,
    ) -> Written<T> {
        let read = T::read(&value.value.to_lowercase(), form).map_err(|unread| Unread {
            why: format!("`{}` is not a value of `**{}:**`", escape(&value.value), known.as_str()),
            ..unread
        });
        self.field(known, value, read)
    }

    /// Reads a value with a grammar of its own.
    pub(super) fn phrase<T: FieldWords>(
        &mut self,
        known: Field,
        value: &Spanned<String>,
        read: Result<T, Unread>,
    ) -> Written<T> {
        let read = read.map_err(|unread| Unread {
            why: format!("`**{}:**` can't be read: {}", known.as_str(), unread.why),
            ..unread
        });
        self.field(known, value, read)
    }

    fn field<T: FieldWords>(
        &mut self,
        known: Field,
        value: &Spanned<String>,
        read: Result<T, Unread>,
    ) -> Written<T> {
        match read {
            Ok(read) => Written::of(Spanned::new(read, value.span)),
            Err(unread) => {
                self.report_unread_value(known, value, unread);
                Written::default()
            }
        }
    }

    /// Reports why a value can't be read, at the part that can't.
    pub(super) fn report_unread_value(&mut self, known: Field, value: &Spanned<String>, unread: Unread) {
        let Span { start, end } = value.span;
        let at =
            unread.part.map_or(value.span, |part| Span::new(start + part.start, (start + part.end).min(end)));
        let refused = Diagnostic::new(unread.code, unread.why).at(at, "").help(unread.help);
        let refused = match unread.meant {
            Some((meant, is_only)) => refused.fix(value.span, meant, is_only),
            None => refused,
        };
        self.report_value(known, refused);
    }

    /// Reports a value that can't be read, so that the field counts as given.
    pub(super) fn report_value(&mut self, known: Field, diagnostic: Diagnostic) {
        self.mark_unread(known);
        self.push_in_step(diagnostic);
    }
}

/// Says whether a line only separates: blank, or a thematic break such as `---`.
pub(crate) fn is_separator(text: &str) -> bool {
    let text = text.trim();
    let is_break = |mark: char| {
        text.chars().filter(|c| *c == mark).count() >= 3 && text.chars().all(|c| c == mark || c == ' ')
    };
    text.is_empty() || is_break('-') || is_break('*') || is_break('_')
}

fn trimmed(source: &Source, span: Span) -> Option<Spanned<String>> {
    let text = source.slice(span);
    let body = text.trim();
    let start = span.start + text.len() - text.trim_start().len();
    (!body.is_empty()).then(|| Spanned::new(body.to_owned(), Span::new(start, start + body.len())))
}

// Backticks around an entry are how people set paths.
fn unquote(entry: &mut Spanned<String>) {
    let inner = entry.value.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    if let Some(inner) = inner.map(str::to_owned) {
        entry.span = Span::new(entry.span.start + 1, entry.span.end - 1);
        entry.value = inner;
    }
}

/// Splits a list on one line at its commas; those within braces belong to a glob: `{a,b}/*.py`.
fn split_outside_braces(text: &str) -> impl Iterator<Item = &str> {
    let mut level = 0_usize;
    text.split(move |c| {
        match c {
            '{' => level += 1,
            '}' => level = level.saturating_sub(1),
            _ => {}
        }
        c == ',' && level == 0
    })
}
