//! The text of a plan with its path, its line index, and byte spans that become lines and columns for people.

use crate::diagnostic::{Code, Diagnostic, Severity};

/// The most bytes a plan may have (DESIGN 12).
pub const PLAN_BYTES_MAX: usize = 1024 * 1024;

const BOM: char = '\u{feff}';

/// A range of bytes in a plan's text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// Makes a span; an end before the start is taken as an empty span.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end: end.max(start) }
    }

    /// Returns the empty span at an offset.
    pub fn at(offset: usize) -> Span {
        Span { start: offset, end: offset }
    }

    /// Returns the smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A value with the place it was read from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands in the plan.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Joins a value and its place.
    pub fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}

/// A place as people name it: both counted from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

/// One plan's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    path: String,
    text: String,
    line_starts: Vec<usize>,
}

/// A file that is no plan text at all: too large, empty, or not UTF-8.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// What of it can be shown.
    pub source: Source,
    /// Why it can't be read.
    pub diagnostic: Diagnostic,
}

impl Source {
    /// Takes a text that is known to be UTF-8; its other limits are checked by [`crate::parse`].
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Source { path: path.into(), text, line_starts }
    }

    /// Takes a file's bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Unreadable`] for a file without content (row 1), over the size limit (row 61), or with bytes that are
    /// not UTF-8 (row 60).
    pub fn from_bytes(path: impl Into<String>, bytes: Vec<u8>) -> Result<Source, Box<Unreadable>> {
        let path = path.into();
        if bytes.len() > PLAN_BYTES_MAX {
            let message =
                format!("the plan has {} bytes, and the limit is {PLAN_BYTES_MAX} (1 MiB)", bytes.len());
            let diagnostic = Diagnostic::new(Code::P008, message)
                .at(Span::at(0), "")
                .help("move long material to files and name them under `**subscriptions:**`");
            return Err(Box::new(Unreadable { source: Source::new(path, ""), diagnostic }));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Source::with_content(path, text),
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                let found = error.as_bytes()[good];
                let shown = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
                let source = Source::new(path, shown);
                let line = source.position(good).line;
                let message =
                    format!("the file is not UTF-8: byte 0x{found:02X} at offset {good}, line {line}");
                let diagnostic = Diagnostic::new(Code::P003, message)
                    .at(Span::at(good), "the text up to here is good")
                    .help("save the file as UTF-8");
                Err(Box::new(Unreadable { source, diagnostic }))
            }
        }
    }

    fn with_content(path: String, text: String) -> Result<Source, Box<Unreadable>> {
        let is_empty = text.trim_start_matches(BOM).trim().is_empty();
        let source = Source::new(path, text);
        if !is_empty {
            return Ok(source);
        }
        let diagnostic = Diagnostic::new(Code::P003, "the file has no content").at(Span::at(0), "").help(
            "write a plan: frontmatter, `# Title`, `## Steps`, and `### 1. …` with target, task and contract",
        );
        Err(Box::new(Unreadable { source, diagnostic }))
    }

    /// Returns the path the text came from, as the caller named it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the whole text, byte for byte.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the length of a byte order mark at the start, 0 where there is none.
    pub fn bom_bytes(&self) -> usize {
        if self.text.starts_with(BOM) { BOM.len_utf8() } else { 0 }
    }

    /// Returns the number of lines; a text that ends with a line break has no line after it.
    pub fn line_count(&self) -> usize {
        let starts = self.line_starts.len();
        if self.line_starts.last() == Some(&self.text.len()) { starts - 1 } else { starts }
    }

    /// Returns the span of a line without its line break; lines are counted from 0.
    pub fn line_span(&self, line: usize) -> Span {
        let start = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let next = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let body = self.text[start..next].trim_end_matches(['\n', '\r']);
        Span::new(start, start + body.len())
    }

    /// Returns the text of a span, cut to the text and to whole characters.
    pub fn slice(&self, span: Span) -> &str {
        let span = self.clamp(span);
        &self.text[span.start..span.end]
    }

    /// Returns the span cut to the text and widened to whole characters.
    pub fn clamp(&self, span: Span) -> Span {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = span.end.clamp(start, self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        Span { start, end }
    }

    /// Returns the line, counted from 0, that holds an offset.
    pub fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Returns the line and column of an offset; a byte order mark takes no column.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.clamp(Span::at(offset)).start;
        let line = self.line_of(offset);
        let start = if line == 0 { self.bom_bytes() } else { self.line_starts[line] };
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        Position { line: line + 1, column: column + 1 }
    }

    /// Reports characters that can hide or reorder what a person reads (DESIGN 3, row 37): each kind once per line.
    pub fn check_characters(&self, found: &mut Vec<Diagnostic>) {
        if self.text.is_ascii() && !self.text.bytes().any(is_forbidden_ascii) {
            return;
        }
        let mut last: Option<(usize, char)> = None;
        for (offset, character) in self.text.char_indices() {
            let is_bom = offset == 0 && character == BOM;
            if is_bom || !is_forbidden(character) || self.is_emoji_joiner(offset, character) {
                continue;
            }
            let line = self.line_of(offset);
            if last.replace((line, character)) == Some((line, character)) {
                continue;
            }
            let code_point = name_character(character);
            let span = Span::new(offset, offset + character.len_utf8());
            let diagnostic = Diagnostic::new(Code::P004, format!("{code_point} does not belong in a plan"))
                .at(span, "this character can't be seen, or changes how the line is shown")
                .help("delete it; type the text anew if it was copied from elsewhere");
            found.push(diagnostic);
            if found.len() >= CHARACTER_REPORTS_MAX {
                let more = Diagnostic::new(Code::P004, "more such characters follow and are not listed");
                found.push(more.at(span, "").level(Severity::Note));
                return;
            }
        }
    }

    // A zero-width joiner or a variation selector between emoji is how people write them.
    fn is_emoji_joiner(&self, offset: usize, character: char) -> bool {
        character == '\u{200d}'
            && self.text[..offset].chars().next_back().is_some_and(|before| u32::from(before) >= 0x2190)
    }
}

const CHARACTER_REPORTS_MAX: usize = 50;

fn is_forbidden_ascii(byte: u8) -> bool {
    (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0x7f
}

/// Says whether a character is a control, invisible or bidirectional one.
pub(crate) fn is_forbidden(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

/// Names a character by its code point, so that it is never printed raw.
pub(crate) fn name_character(character: char) -> String {
    let code = u32::from(character);
    let what = match character {
        '\u{200b}' => " (zero-width space)",
        '\u{200c}' => " (zero-width non-joiner)",
        '\u{200d}' => " (zero-width joiner)",
        '\u{feff}' => " (byte order mark inside the text)",
        '\u{ad}' => " (soft hyphen)",
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            " (changes the direction of the text)"
        }
        other if other.is_control() => " (control character)",
        _ => " (invisible character)",
    };
    format!("U+{code:04X}{what}")
}

/// Returns a text safe to print: forbidden characters escaped, at most 80 characters.
pub fn escape(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == 80 {
            shown.push('…');
            break;
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            other if is_forbidden(other) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(other))),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let source = Source::new("p.md", "ab\r\n\tüé x\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        let x = source.text().find('x').expect("x is there");
        assert_eq!(source.position(x), Position { line: 2, column: 5 });
        assert_eq!(source.slice(source.line_span(0)), "ab");
        assert_eq!(source.line_count(), 2);
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        let source = Source::new("p.md", "\u{feff}---\n");
        assert_eq!(source.position(3), Position { line: 1, column: 1 });
    }

    #[test]
    fn row_60_invalid_utf8_names_the_byte_and_the_line() {
        let refused = Source::from_bytes("p.md", b"one\ntwo \xff".to_vec()).expect_err("not UTF-8");
        assert_eq!(refused.diagnostic.message, "the file is not UTF-8: byte 0xFF at offset 8, line 2");
    }

    #[test]
    fn row_61_a_plan_over_one_mebibyte_is_refused() {
        let refused = Source::from_bytes("p.md", vec![b'x'; 2 * 1024 * 1024]).expect_err("too large");
        assert!(refused.diagnostic.message.contains("limit is 1048576"));
    }

    #[test]
    fn row_01_an_empty_file_has_no_content() {
        for text in ["", " \n\n", "\u{feff}"] {
            let refused = Source::from_bytes("p.md", text.as_bytes().to_vec()).expect_err("empty");
            assert_eq!(refused.diagnostic.message, "the file has no content");
        }
    }

    #[test]
    fn what_is_printed_is_escaped_and_short() {
        assert_eq!(escape("a\u{202e}b\0"), "a\\u{202e}b\\u{0}");
        assert_eq!(escape(&"x".repeat(100)).chars().count(), 81);
    }
}
