//! Lines at the end of a terminal that are drawn anew in place, while the terminal echoes nothing that is typed.
//!
//! Each echoed line break would move what is drawn, and leave a row of it behind.

use std::borrow::Cow;
use std::io::Write;

use unicode_width::UnicodeWidthChar;

use crate::terminal;

/// The lines that are drawn at the moment.
#[derive(Debug, Default)]
pub struct Drawing {
    lines: Vec<String>,
    /// The terminal's columns and rows when they were drawn.
    size: (usize, usize),
}

impl Drawing {
    /// Draws lines in place of those that were drawn; each is cut to the terminal's width, and the last ones stay where
    /// not all fit.
    pub fn draw(&mut self, lines: &[String]) {
        if terminal::is_in_front() == Some(false) {
            return;
        }
        terminal::hide_echo();
        if terminal::others_wrote() {
            self.lines.clear();
        }
        let (columns, rows) = terminal::size();
        let from = lines.len().saturating_sub(rows.saturating_sub(1).max(1));
        let lines: Vec<String> = lines[from..].iter().map(|line| fitted(line, columns)).collect();
        // A person who waits sees nothing move, and a recording stays small.
        if (&lines, (columns, rows)) == (&self.lines, self.size) {
            return;
        }
        let mut text = self.erase_sequence((columns, rows));
        for line in &lines {
            text.push_str(&coloured(line));
            text.push_str("\r\n");
        }
        (self.lines, self.size) = (lines, (columns, rows));
        write(&text);
    }

    /// Takes away what is drawn, and gives the terminal its echo back.
    pub fn clear(&mut self) {
        let text = self.erase_sequence(terminal::size());
        if !text.is_empty() && terminal::is_in_front() != Some(false) && !terminal::others_wrote() {
            write(&text);
        }
        self.lines.clear();
        terminal::restore_modes();
    }

    /// Leaves what is drawn on the screen, and gives the terminal its echo back.
    pub fn leave_on_screen(&mut self) {
        self.lines.clear();
        terminal::restore_modes();
    }

    /// Returns what moves the cursor to the first row of what is drawn and erases from there. The terminal may have another
    /// width than when it was drawn, and show a line on several rows by now.
    fn erase_sequence(&self, (columns, rows): (usize, usize)) -> String {
        let up: usize = self.lines.iter().map(|line| width(line).div_ceil(columns).max(1)).sum();
        match up.min(rows.saturating_sub(1)) {
            0 => String::new(),
            up => format!("\r\u{1b}[{up}A\u{1b}[J"),
        }
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        terminal::restore_modes();
    }
}

/// Cuts a line so that it stays on one row of a terminal of so many columns.
pub fn fitted(line: &str, columns: usize) -> String {
    // After a character in the last column some terminals begin another row.
    cut_to_columns(line, columns.saturating_sub(1))
}

/// Returns how many columns a line takes that may hold colours.
pub fn width(line: &str) -> usize {
    split_styles(line).filter_map(|piece| piece.ok()).map(|character| character.width().unwrap_or(0)).sum()
}

/// Cuts a line that may hold colours to so many columns.
fn cut_to_columns(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let (mut text, mut room, mut is_coloured) = (String::with_capacity(line.len()), columns, false);
    for piece in split_styles(line) {
        match piece {
            Err(code) => {
                is_coloured = true;
                text.push_str(code);
            }
            Ok(character) => {
                let wide = character.width().unwrap_or(0);
                if wide >= room {
                    break;
                }
                room -= wide;
                text.push(character);
            }
        }
    }
    text.push('…');
    if is_coloured {
        text.push_str("\u{1b}[0m");
    }
    text
}

/// Parts a line into its characters and its codes of colour.
fn split_styles(line: &str) -> impl Iterator<Item = Result<char, &str>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let character = rest.chars().next()?;
        let ends =
            rest.starts_with("\u{1b}[").then(|| rest[2..].find(|end: char| ('@'..='~').contains(&end)));
        let (piece, length) = match ends.flatten() {
            Some(end) => (Err(&rest[..end + 3]), end + 3),
            None => (Ok(character), character.len_utf8()),
        };
        rest = &rest[length..];
        Some(piece)
    })
}

/// Returns a line without its colours where none are wanted.
fn coloured(line: &str) -> Cow<'_, str> {
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(line).to_string().into(),
        anstream::ColorChoice::Auto | anstream::ColorChoice::AlwaysAnsi | anstream::ColorChoice::Always => {
            line.into()
        }
    }
}

fn write(text: &str) {
    // Where nobody looks, nothing is lost.
    let mut screen = std::io::stderr().lock();
    screen.write_all(text.as_bytes()).and_then(|()| screen.flush()).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_columns_that_it_takes() {
        assert_eq!(cut_to_columns("abcdef", 6), "abcdef");
        assert_eq!(cut_to_columns("abcdef", 4), "abc…");
        assert_eq!(cut_to_columns("日本語", 4), "日…", "each takes two columns");
        assert_eq!(cut_to_columns("\u{1b}[1mabcdef\u{1b}[0m", 4), "\u{1b}[1mabc…\u{1b}[0m");
        assert_eq!(width("\u{1b}[32m✔\u{1b}[0m 1"), 3);
        for columns in 1..12 {
            assert!(width(&cut_to_columns("\u{1b}[1ma日b本c\u{1b}[0m d", columns)) <= columns, "{columns}");
        }
    }

    #[test]
    fn what_is_drawn_is_taken_away_on_all_the_rows_that_it_takes_by_now() {
        let lines = ["a".repeat(79), String::new(), "b".repeat(100)];
        let drawing = Drawing { lines: lines.to_vec(), size: (120, 24) };
        assert_eq!(drawing.erase_sequence((80, 24)), "\r\u{1b}[4A\u{1b}[J", "of a terminal of 80 columns");
        assert_eq!(drawing.erase_sequence((100, 24)), "\r\u{1b}[3A\u{1b}[J", "it has become wider");
        assert_eq!(drawing.erase_sequence((20, 24)), "\r\u{1b}[10A\u{1b}[J", "it has become narrower");
        assert_eq!(drawing.erase_sequence((20, 8)), "\r\u{1b}[7A\u{1b}[J", "what has left the screen stays");
        assert_eq!(Drawing::default().erase_sequence((80, 24)), "");
    }
}
