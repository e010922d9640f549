//! Lists for people, with a line for each entry, and sentences that fit the terminal.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{columns, safe, styled};

/// A cell of a list, and how it is drawn.
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Returns a cell in a style of its own.
    pub fn styled(style: Style, text: &str) -> Cell {
        Cell { text: safe(text), style }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::styled(Style::new(), &text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::styled(Style::new(), text)
    }
}

/// Draws a list: a line for each row, cut to the width of the terminal.
pub fn list(header: &[&str], rows: Vec<Vec<Cell>>) -> String {
    list_in(header, rows, columns().unwrap_or(usize::MAX))
}

/// The least width to which a column is cut.
const COLUMN_MIN: usize = 4;
/// The least width to which sentences are broken.
const SENTENCE_MIN: usize = 24;
/// How far columns are apart.
pub(super) const GAP: usize = 2;

fn list_in(header: &[&str], rows: Vec<Vec<Cell>>, columns: usize) -> String {
    let head: Vec<Cell> = header.iter().map(|name| Cell::from(*name)).collect();
    let lines: Vec<Vec<Cell>> = std::iter::once(head).chain(rows).collect();
    let width = |at: usize| lines.iter().map(|cells| cells[at].text.width()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..header.len()).map(width).collect();
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    // The widest gives way first, so that short columns stay whole.
    while total(&widths) > columns
        && let Some(widest) = widths.iter_mut().max().filter(|width| **width > COLUMN_MIN)
    {
        *widest -= 1;
    }
    let mut text = String::new();
    for cells in &lines {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let shown = fitted(&cell.text, widths[at]);
            let pad = if at + 1 == cells.len() { 0 } else { widths[at] - shown.width() + GAP };
            line.push_str(&format!("{}{}", styled_if(cell.style, &shown), " ".repeat(pad)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn styled_if(style: Style, text: &str) -> String {
    if style == Style::new() || text.is_empty() { text.to_owned() } else { styled(style, text) }
}

/// Cuts a text to a number of columns.
fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |character: &char| {
        taken += character.width().unwrap_or(0);
        taken < columns
    };
    let cut: String = text.chars().take_while(fits).collect();
    format!("{cut}…")
}

/// Breaks a text between words so that it fits the terminal behind a margin, which the first line has already.
pub fn wrapped(text: &str, margin: usize) -> String {
    wrapped_in(text, margin, columns().unwrap_or(usize::MAX))
}

pub(super) fn wrapped_in(text: &str, margin: usize, columns: usize) -> String {
    let most = columns.saturating_sub(margin).max(SENTENCE_MIN);
    let (mut page, mut taken) = (String::new(), 0);
    for word in text.split(' ') {
        if taken > 0 && taken + 1 + word.width() > most {
            page.push('\n');
            page.push_str(&" ".repeat(margin));
            taken = 0;
        } else if taken > 0 || !page.is_empty() {
            page.push(' ');
            taken += 1;
        }
        page.push_str(word);
        taken += word.width();
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::GOOD;

    #[test]
    fn a_list_has_one_line_for_each_row_and_fits_the_terminal() {
        let rows = || {
            vec![
                vec!["fix-1".into(), Cell::styled(GOOD, "done"), "a plan with a very long name.md".into()],
                vec!["übung-2".into(), "failed".into(), "日本語の計画書です.md".into()],
            ]
        };
        let header = ["RUN", "STATE", "PLAN"];
        let wide = list_in(&header, rows(), usize::MAX);
        assert_eq!(
            wide,
            format!(
                "RUN      STATE   PLAN\nfix-1    {}    a plan with a very long name.md\n\
                 übung-2  failed  日本語の計画書です.md\n",
                styled(GOOD, "done")
            )
        );
        for columns in [30, 36] {
            let narrow = list_in(&header, rows(), columns);
            let plain = planctl_engine::view::strip_terminal_sequences(&narrow).into_owned();
            assert_eq!(plain.lines().count(), 3, "{plain}");
            assert!(plain.lines().all(|line| line.width() <= columns), "{plain}");
            assert!(plain.contains("fix-1") && plain.contains("failed") && plain.contains('…'), "{plain}");
        }
    }

    #[test]
    fn a_sentence_is_broken_between_words() {
        assert_eq!(
            wrapped_in("one two three four five six seven", 4, 28),
            "one two three four five\n    six seven"
        );
        assert_eq!(wrapped_in("one two", 4, usize::MAX), "one two");
    }
}
