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

/// A column of a list, and what happens to it where the terminal is too narrow for all.
#[derive(Clone, Copy)]
pub struct Column {
    name: &'static str,
    /// Says that its cells may be cut before any others.
    is_cut: bool,
    /// Its place among the columns that are left out, where it is one of them.
    left_out: Option<u8>,
}

impl Column {
    /// Returns a column that stays whole as long as there is another way.
    pub fn uncut(name: &'static str) -> Column {
        Column { name, is_cut: false, left_out: None }
    }

    /// Returns a column whose cells may be cut.
    pub fn cuttable(name: &'static str) -> Column {
        Column { name, is_cut: true, left_out: None }
    }

    /// Lets it be left out where the list is too wide: the lowest place first.
    #[must_use]
    pub fn left_out(self, place: u8) -> Column {
        Column { left_out: Some(place), ..self }
    }
}

/// Draws a list: a line for each row, cut to the width of the terminal.
pub fn list(header: &[&'static str], rows: Vec<Vec<Cell>>) -> String {
    list_of(&header.iter().copied().map(Column::cuttable).collect::<Vec<Column>>(), rows)
}

/// Draws a list of columns that matter more and less.
pub fn list_of(header: &[Column], rows: Vec<Vec<Cell>>) -> String {
    list_in(header, rows, columns().unwrap_or(usize::MAX))
}

/// The least width to which a column is cut.
const COLUMN_MIN: usize = 4;
/// The width below which others are left out before a column is cut further.
const READABLE: usize = 12;
/// The least width to which sentences are broken.
const SENTENCE_MIN: usize = 24;
/// How far columns are apart.
pub(super) const GAP: usize = 2;

fn list_in(header: &[Column], rows: Vec<Vec<Cell>>, columns: usize) -> String {
    let head: Vec<Cell> = header.iter().map(|column| Cell::from(column.name)).collect();
    let lines: Vec<Vec<Cell>> = std::iter::once(head).chain(rows).collect();
    let width = |at: usize| lines.iter().map(|cells| cells[at].text.width()).max().unwrap_or(0);
    let shown = shown_columns(header, &(0..header.len()).map(width).collect::<Vec<usize>>(), columns);
    let mut text = String::new();
    for cells in &lines {
        let mut line = String::new();
        for (at, width) in &shown {
            let cell = &cells[*at];
            let cut = match header[*at].is_cut {
                true => fitted(&cell.text, *width),
                false => fitted_in_the_middle(&cell.text, *width),
            };
            let pad = width - cut.width() + GAP;
            line.push_str(&format!("{}{}", styled_if(cell.style, &cut), " ".repeat(pad)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the columns that are shown in so much room, each with its width. First columns are left out, then those are cut that may
/// be, and only then the others.
fn shown_columns(header: &[Column], widths: &[usize], room: usize) -> Vec<(usize, usize)> {
    let total = |shown: &[(usize, usize)]| {
        shown.iter().map(|(_, width)| width).sum::<usize>() + GAP * shown.len().saturating_sub(1)
    };
    let least =
        |(at, width): &(usize, usize)| (*at, if header[*at].is_cut { READABLE.min(*width) } else { *width });
    let mut shown: Vec<(usize, usize)> = widths.iter().copied().enumerate().collect();
    while total(&shown.iter().map(least).collect::<Vec<_>>()) > room
        && let Some(place) = shown.iter().filter_map(|(at, _)| header[*at].left_out).min()
    {
        shown.retain(|(at, _)| header[*at].left_out != Some(place));
    }
    for (may_be_cut, width_min) in [(true, READABLE), (false, COLUMN_MIN)] {
        // The widest gives way first, so that short columns stay whole.
        while total(&shown) > room
            && let Some((_, widest)) = shown
                .iter_mut()
                .filter(|(at, width)| *width > width_min && (header[*at].is_cut || !may_be_cut))
                .max_by_key(|(_, width)| *width)
        {
            *widest -= 1;
        }
    }
    shown
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

/// Cuts a text in its middle: runs of one plan differ in the ends of their names.
fn fitted_in_the_middle(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let (mut end, mut taken) = (text.len(), 0);
    for (at, character) in text.char_indices().rev() {
        taken += character.width().unwrap_or(0);
        if taken > columns / 2 {
            break;
        }
        end = at;
    }
    let rest = &text[end..];
    format!("{}{rest}", fitted(&text[..end], columns - rest.width()))
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
        let header = ["RUN", "STATE", "PLAN"].map(Column::cuttable);
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
            let plain = planctl_view::strip_terminal_sequences(&narrow).into_owned();
            assert_eq!(plain.lines().count(), 3, "{plain}");
            assert!(plain.lines().all(|line| line.width() <= columns), "{plain}");
            assert!(plain.contains("fix-1") && plain.contains("failed") && plain.contains('…'), "{plain}");
        }
    }

    #[test]
    fn the_least_useful_columns_of_a_list_are_left_out_before_a_state_is_cut() {
        let header = [
            Column::uncut("RUN"),
            Column::uncut("STATE"),
            Column::cuttable("WAITING ON"),
            Column::uncut("AGE").left_out(1),
            Column::uncut("SPENT").left_out(2),
            Column::cuttable("PLAN").left_out(3),
        ];
        let row =
            ["refactor-1", "waiting for you", "you: escalation 12", "3.2s", "9.1s of 10.0s", "plans/r.md"];
        let drawn = |columns| list_in(&header, vec![row.map(Cell::from).into()], columns);
        assert_eq!(drawn(80).lines().next().unwrap().split_whitespace().last(), Some("PLAN"));
        for (columns, gone) in
            [(80, &[][..]), (72, &["AGE"]), (60, &["AGE", "SPENT"]), (45, &["AGE", "SPENT", "PLAN"])]
        {
            let list = drawn(columns);
            assert!(list.lines().all(|line| line.width() <= columns), "{list}");
            assert!(list.contains("refactor-1  waiting for you"), "{columns}: {list}");
            for column in ["AGE", "SPENT", "PLAN"] {
                assert_eq!(!list.contains(column), gone.contains(&column), "{column} at {columns}: {list}");
            }
        }
    }

    #[test]
    fn runs_of_one_plan_are_told_apart_in_a_narrow_list() {
        let header = [Column::uncut("RUN"), Column::uncut("STATE")];
        let names = ["summarise-the-report-1", "summarise-the-report-12", "übersicht-日本語の計画書-3"];
        for columns in [20, 26] {
            let list = list_in(&header, names.map(|name| vec![name.into(), "done".into()]).into(), columns);
            assert!(list.lines().all(|line| line.width() <= columns), "{list}");
            assert!(["rt-1 ", "t-12 ", "-3 "].iter().all(|end| list.contains(end)), "{list}");
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
