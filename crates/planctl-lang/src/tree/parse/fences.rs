//! Fences that are not closed, and those that no field takes.

use super::Reader;
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::markdown::{Fence, belongs_to_plan};
use crate::text::Span;

impl Reader<'_> {
    // A fence that is not closed is worth a word wherever it stands; one outside of tasks and contracts is lost text.
    pub(super) fn report_fences(&mut self) {
        for (index, fence) in self.outline.fences.iter().enumerate() {
            if !fence.is_closed {
                let message =
                    format!("the code fence that starts on line {} is not closed", fence.first_line + 1);
                let open = Diagnostic::new(Code::P011, message).at(fence.opener, "opened here");
                let text = self.source.slice(fence.opener);
                let close: String = text.chars().take_while(|c| matches!(c, '`' | '~')).collect();
                let help = format!("write {close} on a line of its own after the last line of code");
                let line = self.source.line_span(fence.first_line);
                // Below a bullet its text is indented as far; a quote goes on with its sign.
                let before = self.source.slice(Span::new(line.start, fence.opener.start));
                let is_kept = |c: &char| c.is_whitespace() || *c == '>';
                let indent: String = before.chars().map(|c| if is_kept(&c) { c } else { ' ' }).collect();
                let is_code = |span: &&Span| !self.source.slice(**span).trim().is_empty();
                let at = fence.content.iter().rev().find(is_code).map_or(fence.opener.end, |span| span.end);
                let closing = format!("\n{indent}{close}");
                self.found.push(open.help(help).fix(Span::at(at), closing, self.is_followed_by_plan(fence)));
            }
            if !self.used_fences[index] {
                let message = "a code fence stands where no field takes one";
                let lost =
                    Diagnostic::new(Code::P011, message).at(fence.opener, "not part of a task or a contract");
                self.found.push(
                    lost.help("write `**contract:**` on the line before it, or move it into `**task:**`"),
                );
            }
        }
    }

    // A script ends where the file does, or where a field, a heading or its exit code follows.
    fn is_followed_by_plan(&self, fence: &Fence) -> bool {
        let is_script = matches!(fence.language.as_str(), "" | "shell" | "sh" | "bash");
        let next = fence.last_line + 1;
        let is_end = next >= self.source.line_count();
        is_script && (is_end || belongs_to_plan(self.source.slice(self.source.line_span(next))))
    }
}
