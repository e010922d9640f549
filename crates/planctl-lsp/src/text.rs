//! An open document's text, and its places as editors count them: lines from 0, columns in the negotiated units.

use gen_lsp_types::{Position, Range};
use planctl_lang::Span;

/// The distance of the marks at which columns are known without counting.
const STRIDE: usize = 4096;

/// The unit that a column counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// 16-bit units: two for a character outside the basic plane.
    Utf16,
}

/// A text with its line index.
#[derive(Clone, Debug)]
pub struct Text {
    text: String,
    encoding: Encoding,
    /// Where each line begins; `\n`, `\r\n` and `\r` end lines.
    starts: Vec<usize>,
}

impl Text {
    /// Takes a text.
    pub fn new(text: String, encoding: Encoding) -> Text {
        let mut starts = vec![0];
        push_starts(text.as_bytes(), 0, text.len(), &mut starts);
        Text { text, encoding, starts }
    }

    /// Returns the text itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Replaces a range; a range that leads out of the text is cut to it.
    pub fn edit(&mut self, range: Range, replacement: &str) {
        let start = self.offset(range.start);
        let end = self.offset(range.end).max(start);
        self.text.replace_range(start..end, replacement);
        let (added, removed) = (replacement.len(), end - start);
        // The line before an edit is read again as well: its `\r` may have become the first half of a `\r\n`.
        let first = self.starts.partition_point(|&line| line < start).saturating_sub(1);
        let tail = self.starts.partition_point(|&line| line <= end);
        let mut lines: Vec<usize> = self.starts[..=first].to_vec();
        push_starts(self.text.as_bytes(), self.starts[first], start + added, &mut lines);
        lines.extend(self.starts[tail..].iter().map(|line| line - removed + added));
        self.starts = lines;
    }

    /// Returns the byte that a position names; one past a line's end is taken as its end, one inside a character as
    /// its begin.
    pub fn offset(&self, position: Position) -> usize {
        let Some(line) = self.line(position.line as usize) else { return self.text.len() };
        let wanted = position.character as usize;
        let mut column = 0;
        for (at, character) in self.text[line.start..line.end].char_indices() {
            column += self.width(character);
            if column > wanted {
                return line.start + at;
            }
        }
        line.end
    }

    /// Returns a line without its line break.
    pub fn line(&self, line: usize) -> Option<Span> {
        let start = *self.starts.get(line)?;
        let next = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let body = self.text[start..next].trim_end_matches(['\r', '\n']);
        Some(Span::new(start, start + body.len()))
    }

    /// Returns the line, from 0, that holds an offset.
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    fn width(&self, character: char) -> usize {
        match self.encoding {
            Encoding::Utf8 => character.len_utf8(),
            Encoding::Utf16 => character.len_utf16(),
        }
    }

    /// Prepares for many places at once, each of which then costs the same wherever it lies.
    pub fn places(&self) -> Places<'_> {
        let is_counted = self.encoding == Encoding::Utf16 && !self.text.is_ascii();
        let marks = if is_counted { marks(self.text.as_bytes()) } else { Vec::new() };
        Places { text: self, marks }
    }
}

/// The places of a text.
pub struct Places<'a> {
    text: &'a Text,
    /// How many 16-bit units stand before each multiple of the stride; empty where bytes are what counts.
    marks: Vec<usize>,
}

impl Places<'_> {
    /// Returns the position of a byte; one inside a line break is the line's end.
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.text.len());
        let line = self.text.line_of(offset);
        let span = self.text.line(line).unwrap_or_default();
        let column = self.units_before(offset.min(span.end)) - self.units_before(span.start);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: count(line), character: count(column) }
    }

    /// Returns the range of a span.
    pub fn range(&self, span: Span) -> Range {
        Range { start: self.position(span.start), end: self.position(span.end) }
    }

    fn units_before(&self, offset: usize) -> usize {
        if self.marks.is_empty() {
            return offset;
        }
        let mark = (offset / STRIDE).min(self.marks.len() - 1);
        self.marks[mark] + units(&self.text.text.as_bytes()[mark * STRIDE..offset])
    }
}

fn marks(bytes: &[u8]) -> Vec<usize> {
    let mut before = 0;
    let blocks = bytes.chunks(STRIDE).map(|block| {
        let mark = before;
        before += units(block);
        mark
    });
    blocks.collect()
}

// A character is counted at its first byte, so that blocks may begin inside one.
fn units(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(byte & 0xc0 != 0x80) + usize::from(*byte >= 0xf0)).sum()
}

/// Adds the line starts after `from` and up to `to`.
fn push_starts(bytes: &[u8], from: usize, to: usize, starts: &mut Vec<usize>) {
    for at in from..to {
        let ends_line = match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        if ends_line {
            starts.push(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn every_edit_leaves_the_index_of_a_fresh_text() {
        let parts = ["", "\r", "\n", "\r\n", "a", "é\u{301}", "𝒳", "\n\n\r", "b\rc"];
        let texts = ["", "a\r\nb\rc\nd", "\r\n", "é\r\n𝒳x\r", "\n\r\n\r"];
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            for text in texts {
                let offsets: Vec<usize> =
                    (0..=text.len()).filter(|offset| text.is_char_boundary(*offset)).collect();
                for (one, two) in offsets.iter().flat_map(|one| offsets.iter().map(move |two| (*one, *two))) {
                    for part in parts {
                        let mut edited = Text::new(text.to_owned(), encoding);
                        let range = edited.places().range(Span::new(one, two));
                        let (start, end) = (edited.offset(range.start), edited.offset(range.end));
                        edited.edit(range, part);
                        let wanted = format!("{}{part}{}", &text[..start], &text[end.max(start)..]);
                        assert_eq!(edited.text, wanted);
                        assert_eq!(
                            edited.starts,
                            Text::new(wanted, encoding).starts,
                            "{text:?} {range:?} {part:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn positions_go_there_and_back() {
        let text = format!("ab\r\né\u{301}𝒳 x\n{}𝒳end", "语".repeat(5000));
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let text = Text::new(text.clone(), encoding);
            let places = text.places();
            for (offset, character) in text.as_str().char_indices().filter(|(_, c)| !matches!(c, '\r' | '\n'))
            {
                assert_eq!(text.offset(places.position(offset)), offset, "{character}");
            }
        }
        let wide = Text::new(text, Encoding::Utf16);
        let x = wide.as_str().find('x').unwrap();
        assert_eq!(wide.places().position(x), at(1, 5));
        assert_eq!(wide.offset(at(1, 3)), wide.offset(at(1, 2)), "inside a surrogate pair");
        assert_eq!(wide.offset(at(0, 99)), 2);
        assert_eq!(wide.offset(at(99, 0)), wide.as_str().len());
    }
}
