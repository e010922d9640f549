//! Text of a step or of `## Flow` that nothing reads: beside all fields, or where Markdown has it as code or as a comment.

use super::missed::{is_edge, meant};
use super::{Reader, Section, field};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::markdown::{LineKind, belongs_to_plan};
use crate::text::{Span, Spanned};
use crate::tree::{Field, Scope};

impl Reader<'_> {
    pub(super) fn report_stray(&mut self, line: usize, span: Span) {
        if is_edge(self.source.slice(span)) {
            return self.report_edge(line, span, Severity::Error);
        }
        let scope = if self.place == Section::Plan { Scope::Plan } else { Scope::Step };
        if let Some(meant) = meant(self.source.slice(span), scope) {
            let at = Span::new(span.start, span.start + meant.until);
            let is_free = meant.is_mendable && !self.is_seen(meant.field);
            let is_needed = matches!(meant.field, Field::Target | Field::Task | Field::Contract);
            let hidden = Diagnostic::new(Code::P015, meant.message).at(span, "a field begins its line");
            let hidden = hidden.help(meant.help);
            let written = format!("**{}:** ", meant.field.as_str());
            return self.push_in_step(match (is_free, meant.is_behind) {
                (false, _) => hidden,
                (true, true) => hidden.fix(at, "", true),
                (true, false) => hidden.fix(at, written, is_needed),
            });
        }
        let follows = line > 0 && self.last_stray == Some(line - 1);
        self.last_stray = Some(line);
        if follows {
            return;
        }
        self.tree.prose.push(Spanned::new("the text that belongs to no field".to_owned(), span));
        let message = "this text belongs to no field, so nobody is given it";
        let stray = Diagnostic::new(Code::P015, message).level(Severity::Warning).at(span, "");
        let stray = stray.help("move it into `**task:**`, or delete it");
        self.push_in_step(stray);
    }

    /// Reports the first line of a block that is indented like code where no text of a field goes on.
    pub(super) fn read_indented(&mut self, line: usize) {
        let is_text = self.field.as_ref().is_some_and(|open| {
            open.field.is_none_or(|field| {
                matches!(field, Field::Task | Field::Judge | Field::Arguments | Field::Contract)
            })
        });
        let is_read = matches!(self.place, Section::Steps | Section::Step | Section::Flow) && !is_text;
        let follows = line > 0 && self.outline.kind(line - 1) == LineKind::Indented;
        if !is_read || follows {
            return;
        }
        let end =
            (line..self.source.line_count()).take_while(|at| self.outline.kind(*at) == LineKind::Indented);
        let lines: Vec<Span> = end.map(|at| self.source.line_span(at)).collect();
        let texts = lines.iter().map(|line| self.source.slice(*line));
        let blanks = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
        let full = texts.clone().filter(|text| !text.trim().is_empty());
        let Some(indent) = full.map(blanks).min() else { return };
        let bare = |text: &str| text[indent.min(blanks(text))..].to_owned();
        let fields: Vec<Field> = texts
            .clone()
            .filter_map(|text| Field::of_step(&field::line(text.trim_start(), 0)?.name.value))
            .filter(|_| self.place == Section::Step)
            .collect();
        let text: Vec<String> = texts.map(bare).collect();
        let whole = Span::new(lines[0].start, lines[lines.len() - 1].end);
        let message = "this is indented so far that Markdown has it as code, so nothing reads it";
        let hidden = Diagnostic::new(Code::P015, message).at(self.source.words_span(line), "");
        let hidden =
            hidden.help("take the indentation of these lines away").fix(whole, text.join("\n"), false);
        self.push_in_step(hidden);
        // Those that stand here are not reported as missing as well.
        fields.into_iter().for_each(|field| self.mark_unread(field));
    }

    /// Reports a code fence in `## Flow`: its lines look like edges.
    pub(super) fn read_fence_in_flow(&mut self, index: usize, line: usize) {
        let fence = &self.outline.fences[index];
        if self.place != Section::Flow || fence.first_line != line {
            return;
        }
        let message = "the lines in a code fence are no lines of `## Flow`, so nothing reads them";
        let hidden = Diagnostic::new(Code::P015, message).at(fence.opener, "");
        let hidden = hidden.help("write them without the fence: `- 2 -> 4 on fail`");
        let lines: Vec<&str> = fence.content.iter().map(|line| self.source.slice(*line)).collect();
        let whole = Span::new(fence.opener.start, self.source.line_span(fence.last_line).end);
        let is_plain =
            fence.is_closed && matches!(fence.language.as_str(), "" | "text" | "flow" | "plaintext");
        let hidden = if is_plain { hidden.fix(whole, lines.join("\n"), false) } else { hidden };
        self.found.push(hidden);
    }

    /// Reports a comment that hides the rest of the file.
    pub(super) fn report_open_comment(&mut self) {
        let Some(first) = self.outline.open_comment else { return };
        let mut hidden =
            (first + 1..self.source.line_count()).map(|line| self.source.slice(self.source.line_span(line)));
        let level = if hidden.any(belongs_to_plan) { Severity::Error } else { Severity::Warning };
        let message = "this comment is not closed, so the rest of the file is a part of it";
        let open = Diagnostic::new(Code::P015, message).level(level).at(self.source.words_span(first), "");
        self.found.push(open.help("close it with `-->`, or delete it"));
    }
}
