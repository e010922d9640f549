//! Pages and lists of commands that fit the terminal: prose is broken between words, a command never.

use unicode_width::UnicodeWidthStr as _;

use super::list::{GAP, wrapped_in};
use super::{FAINT, columns, styled};
use crate::drawing;

/// Breaks the long lines of a page between words, so that none is broken within a word by the terminal.
pub fn folded(page: &str) -> String {
    columns().map_or_else(|| page.to_owned(), |columns| folded_in(page, columns))
}

/// Does so for so many columns. Lines that are not prose stay: those of contracts, which are far to the right, and those with
/// a label. A command stays whole, so that it can be copied.
pub fn folded_in(page: &str, columns: usize) -> String {
    let mut text = String::with_capacity(page.len());
    for line in page.split_inclusive('\n') {
        let (bare, end) = line.strip_suffix('\n').map_or((line, ""), |bare| (bare, "\n"));
        let margin = bare.len() - bare.trim_start_matches(' ').len();
        if drawing::width(bare) <= columns
            || margin >= PROSE_MARGIN_MAX
            || bare.contains('│')
            || bare.contains(" | ")
        {
            text.push_str(line);
            continue;
        }
        let hanging = column_of_text(bare).filter(|column| column * 2 <= columns).unwrap_or(margin + 2);
        let mut taken = 0;
        for (at, word) in words_of(bare).into_iter().enumerate() {
            let wide = drawing::width(word);
            if at > 0 && taken + 1 + wide > columns {
                text.push('\n');
                text.push_str(&" ".repeat(hanging));
                taken = hanging;
            } else if at > 0 {
                text.push(' ');
                taken += 1;
            }
            text.push_str(word);
            taken += wide;
        }
        text.push_str(end);
    }
    text
}

/// Lines that begin further to the right are quoted and no prose.
const PROSE_MARGIN_MAX: usize = 4;

/// Finds where the text of a line like `  budget     50k tokens` begins.
fn column_of_text(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches(' ');
    let gap = rest.find("  ")?;
    let text = rest[gap..].find(|character| character != ' ')?;
    (gap <= 20).then(|| drawing::width(&line[..line.len() - rest.len() + gap + text]))
}

/// Splits a line at its spaces; what stands in backquotes, and a command that a line ends with, is one word.
fn words_of(line: &str) -> Vec<&str> {
    let (mut words, mut start, mut is_quoted) = (Vec::new(), 0, false);
    let text = line.len() - line.trim_start_matches(' ').len();
    let gap = column_of_text(line).and_then(|_| line[text..].find("  ")).map_or(text, |gap| text + gap);
    let command =
        line.rfind(" planctl ").map(|at| at + 1).filter(|at| !line[*at..].contains(['`', ',', ';']));
    let indented = line[gap..].find(|character| character != ' ').map_or(text, |more| gap + more);
    for (at, character) in line.char_indices().filter(|(at, _)| *at >= indented) {
        match character {
            '`' => is_quoted = !is_quoted && line[at + 1..].contains('`'),
            ' ' if !is_quoted && command.is_none_or(|command| at < command) => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    words
}

/// Returns the lines of a text of paragraphs behind a margin. At a terminal a paragraph is broken anew, since its author's lines have
/// another width; lists, quotations, code and tables keep their lines.
pub fn paragraphs(text: &str, margin: usize) -> Vec<String> {
    match columns() {
        Some(columns) => paragraphs_in(text, columns.saturating_sub(margin)),
        None => text.lines().map(str::to_owned).collect(),
    }
}

/// Does so for so many columns.
pub fn paragraphs_in(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<(String, bool)> = Vec::new();
    let (mut is_code, mut goes_on) = (false, false);
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        let is_prose = !is_code && !is_fence && is_prose(line);
        match lines.last_mut().filter(|_| is_prose && goes_on) {
            Some((paragraph, _)) => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            None => lines.push((line.to_owned(), is_prose)),
        }
        is_code ^= is_fence;
        // Two spaces at its end keep a line apart from the next one.
        goes_on = is_prose && !line.ends_with("  ");
    }
    let broken = |(line, is_prose): (String, bool)| -> Vec<String> {
        if !is_prose {
            return vec![line];
        }
        wrapped_in(&line, 0, columns).lines().map(str::to_owned).collect()
    };
    lines.into_iter().flat_map(broken).collect()
}

/// Says whether a line begins or continues a paragraph.
fn is_prose(line: &str) -> bool {
    let item = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let is_item = ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
        || item.len() < line.len() && item.starts_with(['.', ')']);
    !is_item && !line.starts_with([' ', '\t', '#', '>', '|']) && !line.is_empty()
}

/// Lists commands, each with the words that say what it does: beside it where the terminal is wide enough, else below.
pub fn commands(rows: &[(String, &str)]) -> String {
    commands_in(rows, columns().unwrap_or(usize::MAX))
}

/// The longest command that others are aligned with.
const COMMAND_COLUMNS_MAX: usize = 58;

fn commands_in(rows: &[(String, &str)], columns: usize) -> String {
    let widest =
        rows.iter().map(|(command, _)| command.width()).filter(|width| *width <= COMMAND_COLUMNS_MAX);
    let widest = widest.max().unwrap_or(0);
    let is_beside =
        rows.iter().all(|(command, what)| 2 + widest.max(command.width()) + 2 + what.width() <= columns);
    let mut text = String::new();
    for (command, what) in rows {
        let what = |margin: usize| styled(FAINT, &wrapped_in(what, margin, columns));
        text.push_str(&if is_beside {
            let pad = " ".repeat(widest.saturating_sub(command.width()) + GAP);
            format!("  {command}{pad}{}\n", what(2 + widest + GAP))
        } else {
            format!("  {command}\n      {}\n", what(6))
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words_and_commands_and_quotations_are_not() {
        for (page, folded) in [
            ("one two three four five six\n", "one two three four\n  five six\n"),
            ("  budget     50k tokens · $1\n", "  budget     50k\n    tokens · $1\n"),
            ("  a  50k tokens and much more\n", "  a  50k tokens and\n     much more\n"),
            ("wait for it: planctl watch hello-1\nx", "wait for it:\n  planctl watch hello-1\nx"),
            ("have `planctl worker run` beside it\n", "have\n  `planctl worker run`\n  beside it\n"),
            ("    grep -q 'hello' one/two/three.txt\n", "    grep -q 'hello' one/two/three.txt\n"),
            ("  coder │ said something that is long\n", "  coder │ said something that is long\n"),
            ("short\n", "short\n"),
        ] {
            assert_eq!(folded_in(page, 20), folded, "{page}");
        }
    }

    #[test]
    fn paragraphs_are_broken_anew_and_lists_and_code_keep_their_lines() {
        let text =
            "one two three\nfour five six\n\n- one\n1. a\nseven  \neight\n```\ncode of\nits own\n```\nend";
        let rest = ["", "- one", "1. a", "seven", "eight", "```", "code of", "its own", "```", "end"];
        for (columns, paragraph) in
            [(30, &["one two three four five six"][..]), (24, &["one two three four five", "six"])]
        {
            let lines = paragraphs_in(text, columns);
            let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
            assert_eq!(lines, [paragraph, &rest[..]].concat());
        }
    }

    #[test]
    fn commands_have_their_words_beside_them_or_below_where_the_terminal_is_narrow() {
        let rows = [("planctl why a-1".to_owned(), "says why"), ("planctl ls".to_owned(), "lists runs")];
        let plain =
            |columns| planctl_view::strip_terminal_sequences(&commands_in(&rows, columns)).into_owned();
        assert_eq!(plain(80), "  planctl why a-1  says why\n  planctl ls       lists runs\n");
        assert_eq!(plain(28), "  planctl why a-1\n      says why\n  planctl ls\n      lists runs\n");
    }
}
