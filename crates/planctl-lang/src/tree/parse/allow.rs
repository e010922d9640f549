//! Comments by which a plan allows a finding: `<!-- planctl: allow P110 REASON -->`.

use super::layout::PartKind;
use super::{Reader, Section};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, Spanned, escape};

/// A comment that allows the findings of one code: those of the step that it stands in, or of the whole plan where it
/// stands above the steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allow {
    /// The code as written, which may be none.
    pub code: Spanned<String>,
    /// Why the author allows it; may be empty.
    pub reason: Spanned<String>,
    /// The comment.
    pub span: Span,
}

/// A comment to planctl that can't be read.
struct Misread {
    span: Span,
    why: String,
    /// The place of a missing colon.
    colon: Option<Span>,
}

impl Reader<'_> {
    /// Reads a line of a comment where it is one to planctl, and says whether it is.
    pub(super) fn read_remark(&mut self, line: usize, span: Span) -> bool {
        let Some(remark) = remark(self.source.slice(span), span.start) else { return false };
        let is_read = matches!(self.place, Section::Plan | Section::Steps | Section::Step);
        match remark {
            Ok(allow) if is_read => {
                self.close_field(line);
                self.begin_part(line, PartKind::Allow);
                self.tree.allows.push(allow);
            }
            Ok(allow) => {
                let message = "a comment that allows a finding stands where it allows none";
                let lost = Diagnostic::new(Code::P018, message).at(allow.span, "");
                self.found.push(
                    lost.help("write it below the heading of a step, or above the steps for the whole plan"),
                );
            }
            Err(Misread { span, why, colon }) => {
                let misread = Diagnostic::new(Code::P018, why).at(span, "");
                let misread =
                    misread.help("write `<!-- planctl: allow CODE REASON -->` on a line of its own");
                self.push_in_step(match colon {
                    Some(place) => misread.fix(place, ":", false),
                    None => misread,
                });
            }
        }
        true
    }
}

// Only a comment that names planctl first is one to it.
fn remark(line: &str, at: usize) -> Option<Result<Allow, Misread>> {
    // One that is indented as code is shown, not said.
    let body = line.trim();
    if line.starts_with("    ") || line.starts_with('\t') {
        return None;
    }
    let start = at + line.len() - line.trim_start().len();
    let span = Span::new(start, start + body.len());
    let misread = |why: &str| Some(Err(Misread { span, why: why.to_owned(), colon: None }));
    let Some(opened) = body.strip_prefix("<!--") else {
        let said = after_word(body, "planctl:")?;
        return after_word(said.trim_start(), "allow")
            .and_then(|_| misread("a comment to planctl is one line"));
    };
    let named = after_word(opened.trim_start(), "planctl")?;
    let (said, has_colon) = named.strip_prefix(':').map_or((named, false), |said| (said, true));
    let allows =
        after_word(said.trim_start(), "allow").filter(|rest| !rest.starts_with(char::is_alphanumeric));
    let Some(rest) = allows else {
        // Without the colon it is a sentence about planctl.
        let word = said.split_whitespace().next().filter(|word| *word != "-->").unwrap_or_default();
        let why = match word {
            "" => "the comment tells planctl nothing".to_owned(),
            word => format!("`{}` is not an instruction that planctl reads from a comment", escape(word)),
        };
        return if has_colon { misread(&why) } else { None };
    };
    if !has_colon {
        let colon = Some(Span::at(span.end - named.len()));
        let why = "a comment to planctl has a colon after the name".to_owned();
        return Some(Err(Misread { span, why, colon }));
    }
    let Some(text) = rest.strip_suffix("-->").filter(|text| !text.contains("-->")) else {
        return misread("a comment to planctl stands whole on a line of its own");
    };
    let text_at = span.end - rest.len();
    let code_at = text_at + text.len() - text.trim_start().len();
    let reason_end = text_at + text.trim_end().len();
    let (code, reason) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let code = code.trim_end_matches([':', ',']);
    let reason = reason.trim_start_matches([' ', ':', '-', '–', '—']);
    Some(Ok(Allow {
        code: Spanned::new(code.to_owned(), Span::new(code_at, code_at + code.len())),
        reason: Spanned::new(reason.to_owned(), Span::new(reason_end - reason.len(), reason_end)),
        span,
    }))
}

fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word)).map(|_| &text[word.len()..])
}
