//! The blocks of a plan's body that matter to its reader: which lines are text, and which lie in a code fence, an
//! indented block or a comment.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use crate::syntax::source::Source;
use crate::text::Span;

/// The element that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineKind {
    /// Prose, headings, fields.
    Text,
    /// The fence of this index, its first and last line included.
    Fence(usize),
    /// An HTML comment: never a heading or a field.
    Comment,
    /// An indented code block: never a heading or a field either.
    Indented,
}

/// A fenced code block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    /// The opening line, without its indentation.
    pub opener: Span,
    /// The line of the opener, from 0.
    pub first_line: usize,
    /// The last line that belongs to it, from 0: the closing one where there is one.
    pub last_line: usize,
    /// The first word after the opening characters, in lower case.
    pub language: String,
    /// The lines between, without the indentation of the opener.
    pub content: Vec<Span>,
    /// Says whether a closing line was found where one was due.
    pub is_closed: bool,
}

/// The body's lines by kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outline {
    kinds: Vec<LineKind>,
    /// All fences, in order.
    pub fences: Vec<Fence>,
    /// The first line of a comment that nothing closes; it goes on to the end of the file.
    pub open_comment: Option<usize>,
}

impl Outline {
    /// Reads the body that begins at a line.
    ///
    /// Linear in the text: nesting and inline markup that could cost more are masked before the markdown parser sees
    /// them (row 63). A fence that swallows what is plainly the next part of the plan is cut there and reported as not
    /// closed (row 32).
    pub fn read(source: &Source, first_line: usize) -> Outline {
        let kinds = vec![LineKind::Text; source.line_count()];
        let mut outline = Outline { kinds, fences: Vec::new(), open_comment: None };
        let mut line = first_line;
        for _ in 0..RECOVERIES_MAX {
            match outline.read_from(source, line) {
                Some(resume) => line = resume,
                None => return outline,
            }
        }
        outline
    }

    /// Returns what a line belongs to.
    pub fn kind(&self, line: usize) -> LineKind {
        self.kinds.get(line).copied().unwrap_or(LineKind::Text)
    }

    // Returns the line to go on from when a fence had to be cut.
    fn read_from(&mut self, source: &Source, first_line: usize) -> Option<usize> {
        let base = source.line_span(first_line).start;
        let view = mask(&source.text()[base..]);
        for (event, range) in Parser::new(&view).into_offset_iter() {
            let is_block = matches!(&event, Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock));
            if !is_block {
                continue;
            }
            let first = source.line_of(base + range.start);
            let last = source.line_of((base + range.end).saturating_sub(1).max(base + range.start));
            if let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) = &event {
                let mut fence = fence(source, base + range.start, first, last);
                let resume = cut_line(source, &fence);
                if let Some(cut) = resume {
                    fence.content.retain(|span| source.line_of(span.start) < cut);
                    fence.last_line = cut.saturating_sub(1).max(first);
                    fence.is_closed = false;
                }
                let index = self.fences.len();
                self.mark(first, fence.last_line, LineKind::Fence(index));
                self.fences.push(fence);
                if resume.is_some() {
                    return resume;
                }
            }
            if let Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) = &event {
                self.mark(first, last, LineKind::Indented);
            }
            let text = &source.text()[base + range.start..base + range.end];
            if matches!(event, Event::Start(Tag::HtmlBlock)) && text.trim_start().starts_with("<!--") {
                self.mark(first, last, LineKind::Comment);
                self.open_comment = (!text.contains("-->")).then_some(first);
            }
        }
        None
    }

    fn mark(&mut self, first: usize, last: usize, kind: LineKind) {
        let last = last.min(self.kinds.len().saturating_sub(1));
        if let Some(lines) = self.kinds.get_mut(first..=last) {
            lines.fill(kind);
        }
    }
}

const RECOVERIES_MAX: usize = 16;
const NESTING_MAX: usize = 50;

fn fence(source: &Source, begin: usize, first: usize, last: usize) -> Fence {
    let line = source.line_span(first);
    // It may stand behind a bullet or in a quote.
    let begin = begin.max(line.start);
    let text = source.slice(Span::new(begin, line.end.max(begin)));
    let indent = begin - line.start + text.len() - text.trim_start().len();
    let (character, length) = run(text.trim_start()).unwrap_or(('`', 3));
    let after = text.trim_start().trim_start_matches(character);
    let language = after.split_whitespace().next().unwrap_or("").trim_matches(['{', '}', '.']).to_lowercase();
    let is_quoted = source.slice(Span::new(line.start, begin)).contains('>');
    let last_line = source.slice(source.line_span(last));
    let last_line = if is_quoted { last_line.trim_start_matches(['>', ' ']) } else { last_line };
    let is_closed = last > first && closes(last_line, character, length);
    let end = if is_closed { last } else { last + 1 };
    let content = (first + 1..end).map(|at| without_indent(source, source.line_span(at), indent)).collect();
    let opener = Span::new(line.start + indent, begin + text.trim_end().len());
    Fence { opener, first_line: first, last_line: last, language, content, is_closed }
}

fn without_indent(source: &Source, line: Span, indent: usize) -> Span {
    let blanks = source.slice(line).bytes().take(indent).take_while(|byte| *byte == b' ').count();
    Span::new(line.start + blanks, line.end)
}

fn run(text: &str) -> Option<(char, usize)> {
    let character = text.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    Some((character, text.chars().take_while(|next| *next == character).count()))
}

fn closes(text: &str, character: char, length: usize) -> bool {
    let text = text.trim();
    run(text).is_some_and(|(found, count)| found == character && count >= length && text.len() == count)
}

// A fence is cut where it holds an opener with a language of its own, since that line could never be its content, or
// where it runs to the end of the file. It is cut before the first line that plainly belongs to the plan.
fn cut_line(source: &Source, fence: &Fence) -> Option<usize> {
    let (character, length) = run(source.slice(fence.opener))?;
    let opener = fence.content.iter().position(|span| opens(source.slice(*span), character, length));
    if fence.is_closed && opener.is_none() {
        return None;
    }
    let limit = opener.unwrap_or(fence.content.len());
    let plan = fence.content[..limit].iter().position(|span| belongs_to_plan(source.slice(*span)));
    let cut = plan.or(opener)?;
    Some(source.line_of(fence.content[cut].start).max(fence.first_line + 1))
}

fn opens(text: &str, character: char, length: usize) -> bool {
    let text = text.trim();
    let Some((found, count)) = run(text) else { return false };
    let language = text.trim_start_matches(character);
    found == character
        && count >= length
        && language.chars().next().is_some_and(char::is_alphabetic)
        && language.chars().all(|next| next.is_alphanumeric() || matches!(next, '-' | '+' | '_' | ' '))
}

/// Says whether a line plainly is a field, an exit code, or a step's heading.
pub(crate) fn belongs_to_plan(text: &str) -> bool {
    let text = text.trim();
    let is_field = text.starts_with("**") && text[2..].contains("**") && text.contains(':');
    let is_expectation = text.starts_with("exit_code") && text.contains('=');
    let heading = text.trim_start_matches('#');
    let is_step = (2..=4).contains(&(text.len() - heading.len()))
        && heading.trim_start().starts_with(|first: char| first.is_ascii_digit());
    is_field || is_expectation || is_step
}

// Keeps every byte's place. Text after a line's leading markers can't open a block, so brackets, emphasis and code are
// hidden there, but for the code in the line of a fence, which makes it none; nesting deeper than any person writes is
// hidden too.
fn mask(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for line in bytes.split_mut(|byte| *byte == b'\n') {
        let begin = mask_leading(line);
        let (leading, rest) = line.split_at_mut(begin);
        let may_be_fence = leading.contains(&b'`');
        for byte in rest {
            if matches!(byte, b'[' | b']' | b'*' | b'_' | b'&') || (*byte == b'`' && !may_be_fence) {
                *byte = b'x';
            }
        }
    }
    String::from_utf8(bytes).expect("only ASCII was put in the place of ASCII")
}

// Returns where the text of a line begins.
fn mask_leading(line: &mut [u8]) -> usize {
    let mut depth = 0;
    for (at, byte) in line.iter_mut().enumerate() {
        match *byte {
            b'>' | b'-' | b'+' | b'*' | b')' | b'.' => {
                depth += 1;
                if depth > NESTING_MAX {
                    *byte = b'x';
                }
            }
            b' ' | b'\t' | b'\r' | b'#' | b'`' | b'~' | b'=' | b'<' | b'0'..=b'9' => {}
            _ => return at,
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> (Source, Outline) {
        let source = Source::new("p.md", text);
        let outline = Outline::read(&source, 0);
        (source, outline)
    }

    #[test]
    fn a_fence_has_its_content_without_its_indentation() {
        let (source, outline) = outline("- x\n\n  ```shell\n  a\n    b\n  ```\ny\n");
        let fence = &outline.fences[0];
        let content: Vec<_> = fence.content.iter().map(|span| source.slice(*span)).collect();
        assert_eq!((content, fence.language.as_str(), fence.is_closed), (vec!["a", "  b"], "shell", true));
        assert_eq!(outline.kind(6), LineKind::Text);
    }

    #[test]
    fn tilde_and_longer_fences_hold_shorter_ones() {
        let (_, outline) = outline("~~~sh\n```\nx\n```\n~~~\n\n````\n```\n````\n");
        assert_eq!(outline.fences.len(), 2);
        assert!(outline.fences.iter().all(|fence| fence.is_closed));
    }

    #[test]
    fn a_fence_that_swallows_the_next_fence_is_cut() {
        let (source, outline) = outline("```shell\ntrue\n**target:** x\n\n```shell\nfalse\n```\n");
        assert_eq!(outline.fences.len(), 2);
        assert!(!outline.fences[0].is_closed && outline.fences[1].is_closed);
        assert_eq!(source.slice(outline.fences[0].content[0]), "true");
        assert_eq!(outline.kind(2), LineKind::Text);
    }

    #[test]
    fn comments_and_indented_blocks_are_no_text() {
        let (_, outline) = outline("<!--\n### 1. X\n-->\n\n    ### 2. Y\n");
        assert_eq!(outline.kind(1), LineKind::Comment);
        assert_eq!(outline.kind(4), LineKind::Indented);
    }
}
