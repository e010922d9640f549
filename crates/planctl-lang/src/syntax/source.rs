//! The text of a plan with its path, its line index, and byte spans that become lines and columns for people.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::Language;
use crate::syntax::content;
use crate::text::limits::PLAN_BYTES_MAX;
use crate::text::secrets::{Secret, secrets};
use crate::text::{Span, characters, shell_word};

const BOM: char = '\u{feff}';

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
    secrets: Vec<Secret>,
}

/// A file that is no plan text at all: too large, empty, or not UTF-8.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The part of it that can be shown.
    pub source: Source,
    /// Why it can't be read.
    pub diagnostic: Diagnostic,
}

impl Source {
    /// Takes a text that is known to be UTF-8; its other limits are checked by [`crate::parse`].
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let line_starts =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
        let secrets = secrets(&text);
        Source { path: path.into(), text, line_starts, secrets }
    }

    /// Returns what looks like a credential in the text, in its order.
    pub(crate) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Takes a file's bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Unreadable`] for a file without content (row 1), over the size limit (row 61), with bytes that are not
    /// UTF-8 (row 60), or of another kind: an archive, a document, a program, JSON where its name does not say so.
    pub fn from_bytes(path: impl Into<String>, bytes: Vec<u8>) -> Result<Source, Box<Unreadable>> {
        let source = Source::of_text(path, bytes)?;
        match source.no_plan() {
            None => Ok(source),
            Some(diagnostic) => Err(Box::new(Unreadable { source, diagnostic })),
        }
    }

    /// Takes a file's bytes as text in any language, as graphs in DOT and JSON are.
    ///
    /// # Errors
    ///
    /// Returns [`Unreadable`] for a file over the size limit, with bytes that are not UTF-8, or that is no text at all.
    pub fn of_text(path: impl Into<String>, bytes: Vec<u8>) -> Result<Source, Box<Unreadable>> {
        let path = path.into();
        if let Some(content) = content::recognize_bytes(&path, &bytes) {
            let diagnostic = content.finding(Span::at(0), "");
            return Err(Box::new(Unreadable { source: Source::new(path, ""), diagnostic }));
        }
        if bytes.len() > PLAN_BYTES_MAX {
            let message =
                format!("the plan has {} bytes, and the limit is {PLAN_BYTES_MAX} (1 MiB)", bytes.len());
            let diagnostic = Diagnostic::new(Code::P008, message)
                .at(Span::at(0), "")
                .help("move long material to files and name them under `**subscriptions:**`");
            return Err(Box::new(Unreadable { source: Source::new(path, ""), diagnostic }));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::new(path, text)),
            Err(error) => Err(Box::new(not_utf8(path, &error))),
        }
    }

    /// Returns the finding of a text that is no plan at all: empty (row 1), or in another language.
    pub(crate) fn no_plan(&self) -> Option<Diagnostic> {
        // A graph in DOT or JSON is judged by its own reader.
        if Language::of(&self.path).is_some() {
            return None;
        }
        if self.text.trim_start_matches(BOM).trim().is_empty() {
            let help = "write a plan: frontmatter, `# Title`, `## Steps`, and `### 1. …` with target, task and contract";
            let empty = Diagnostic::new(Code::P003, "the file has no content").at(Span::at(0), "");
            return Some(empty.help(help));
        }
        if !self.text.contains('\n') && self.text.matches('\r').count() > 1 {
            let message = "the lines of the file end with CR alone, so it is one line";
            let help = format!("convert it: `tr '\\r' '\\n' < {} > plan-lf.md`", shell_word(&self.path));
            return Some(Diagnostic::new(Code::P003, message).at(Span::at(0), "").help(help));
        }
        let first = (0..self.line_count()).map(|line| self.line_span(line));
        let first = first.into_iter().find(|span| !self.slice(*span).trim().is_empty());
        let content = content::recognize_text(&self.path, &self.text)?;
        Some(content.finding(first.unwrap_or_default(), "a plan begins with `---`"))
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

    /// Returns the span of a line without its line break and without the byte order mark of the text.
    pub fn words_span(&self, line: usize) -> Span {
        let span = self.line_span(line);
        Span::new(span.start.max(self.bom_bytes()), span.end)
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

    /// Returns the text with replacements in it, which do not overlap; of two at one place the first comes first.
    pub(crate) fn edited<T: AsRef<str>>(&self, edits: impl IntoIterator<Item = (Span, T)>) -> String {
        self.edited_part(Span::new(0, self.text.len()), edits)
    }

    /// Returns a part of the text with replacements in it.
    pub(crate) fn edited_part<T: AsRef<str>>(
        &self,
        part: Span,
        edits: impl IntoIterator<Item = (Span, T)>,
    ) -> String {
        let mut edits: Vec<(Span, T)> = edits.into_iter().collect();
        edits.sort_by_key(|(place, _)| *place);
        let mut text = String::with_capacity(part.end - part.start + edits.len() * 16);
        let mut at = part.start;
        for (place, replacement) in edits.into_iter().filter(|(place, _)| part.start <= place.start) {
            if at <= place.start {
                text.push_str(&self.text[at..place.start]);
                text.push_str(replacement.as_ref());
                at = place.end;
            }
        }
        text + &self.text[at..part.end.max(at)]
    }

    /// Returns the line, counted from 0, that holds an offset.
    pub fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Returns the span of the line that holds an offset, its line break included.
    pub fn whole_line(&self, offset: usize) -> Span {
        let line = self.line_of(offset);
        let next = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        Span::new(self.line_span(line).start, next)
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
        if self.text.is_ascii() && !self.text.bytes().any(is_hidden_ascii) {
            return;
        }
        let bom = self.bom_bytes();
        let mut kinds: BTreeMap<(usize, char), Vec<Span>> = BTreeMap::new();
        for (at, character) in characters::hidden(&self.text[bom..]) {
            let span = Span::new(bom + at, bom + at + character.len_utf8());
            let line = self.line_of(span.start);
            if kinds.len() >= CHARACTER_REPORTS_MAX && !kinds.contains_key(&(line, character)) {
                let more = Diagnostic::new(Code::P004, "more such characters follow and are not listed");
                found.push(more.at(span, "").level(Severity::Note));
                break;
            }
            kinds.entry((line, character)).or_default().push(span);
        }
        found.extend(kinds.iter().filter_map(|((_, character), spans)| hidden_character(*character, spans)));
    }
}

const CHARACTER_REPORTS_MAX: usize = 50;
/// The most places of one character that one finding points to.
const PLACES_MAX: usize = 20;

fn is_hidden_ascii(byte: u8) -> bool {
    (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0x7f
}

fn hidden_character(character: char, spans: &[Span]) -> Option<Diagnostic> {
    let (first, others) = spans.split_first()?;
    let message = format!("{} does not belong in a plan", characters::name(character));
    let mut finding = Diagnostic::new(Code::P004, message).at(*first, characters::effect(character));
    for other in others.iter().take(PLACES_MAX) {
        finding = finding.at(*other, "again here");
    }
    // The text that a person read stays the same only where the character showed as nothing at all.
    let is_safe = characters::has_no_effect(character) && others.len() <= PLACES_MAX;
    for span in spans.iter().take(PLACES_MAX + 1) {
        finding = finding.fix(*span, "", is_safe);
    }
    Some(finding.help("delete it; type the text anew if it was copied from elsewhere"))
}

fn not_utf8(path: String, error: &std::string::FromUtf8Error) -> Unreadable {
    let bytes = error.as_bytes();
    let good = error.utf8_error().valid_up_to();
    let found = bytes.get(good).copied().unwrap_or_default();
    let shown = String::from_utf8_lossy(&bytes[..good]).into_owned();
    let guess = content::guess(&path, bytes, good);
    let source = Source::new(path, shown);
    let place = source.position(good);
    let message = format!("the file is not UTF-8: byte 0x{found:02X} at offset {good}, line {}", place.line);
    let mut diagnostic =
        Diagnostic::new(Code::P003, message).at(Span::at(good), "the text up to here is good");
    if error.utf8_error().error_len().is_none() {
        diagnostic =
            diagnostic.note("the file ends in the middle of a character, so it may have been cut off");
    } else if let Some((meant, _)) = &guess {
        diagnostic = diagnostic.note(format!("in Latin-1 or Windows-1252 this byte is `{meant}`"));
    }
    let help = guess.map_or("save the file as UTF-8".to_owned(), |(_, convert)| {
        format!("save the file as UTF-8, or {convert}")
    });
    Unreadable { source, diagnostic: diagnostic.help(help) }
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
}
