//! Draws what workers and contracts wrote: a label stands on each line, so that no line reads as planctl's own.

use planctl_view::strip_terminal_sequences;

use crate::show;

/// The most characters of such a text on a page; a command named below it prints the rest.
pub const CHARACTERS_MAX: usize = 2_000;

/// How many columns of text there are at least, however narrow the terminal.
const COLUMNS_MIN: usize = 20;

/// Which part of a long text is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut<'c> {
    /// All of it.
    Nothing,
    /// The beginning; the command prints all.
    AfterStart(&'c str),
    /// The end; the command prints all.
    BeforeEnd(&'c str),
}

/// The most characters of a line that a terminal shows; `--json` has all of it.
const LINE_CHARACTERS_MAX: usize = 1_000;

/// Draws what a program printed as [`labelled`] does, without terminal sequences; of a very long line, a terminal shows the
/// beginning.
pub fn printed(who: &str, text: &str, cut: Cut<'_>) -> String {
    printed_in(who, text, cut, show::columns())
}

fn printed_in(who: &str, text: &str, cut: Cut<'_>, columns: Option<usize>) -> String {
    let text = strip_terminal_sequences(text);
    if columns.is_none() {
        return draw_labelled(who, &text, cut, columns);
    }
    let short = text.lines().map(|line| match line.char_indices().nth(LINE_CHARACTERS_MAX) {
        Some((at, _)) => format!("{} … {} characters more", &line[..at], line[at..].chars().count()),
        None => line.to_owned(),
    });
    draw_labelled(who, &short.collect::<Vec<_>>().join("\n"), cut, columns)
}

/// Draws a text with a label on each line: `coder │ …`. A line that is longer than the terminal is wide is broken here,
/// since the terminal would break it without a label.
pub fn labelled(who: &str, text: &str, cut: Cut<'_>) -> String {
    draw_labelled(who, text, cut, show::columns())
}

fn draw_labelled(who: &str, text: &str, cut: Cut<'_>, columns: Option<usize>) -> String {
    let text = text.trim_end();
    let count = text.chars().count();
    let left_out = count.saturating_sub(CHARACTERS_MAX);
    let at = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let (before, shown, after) = match cut {
        Cut::AfterStart(command) if left_out > 0 => {
            (None, &text[..at(CHARACTERS_MAX)], Some(left_out_line(left_out, "more", command)))
        }
        Cut::BeforeEnd(command) if left_out > 0 => {
            (Some(left_out_line(left_out, "before", command)), &text[at(left_out)..], None)
        }
        Cut::Nothing | Cut::AfterStart(_) | Cut::BeforeEnd(_) => (None, text, None),
    };
    let label = format!("  {} │ ", show::safe(who));
    let width = columns.map(|columns| columns.saturating_sub(label.chars().count()).max(COLUMNS_MIN));
    let mut page = before.unwrap_or_default();
    for line in show::safe_block(shown).lines() {
        for part in break_line(line, width.unwrap_or(usize::MAX)) {
            page.push_str(&label);
            page.push_str(part);
            page.push('\n');
        }
    }
    page.push_str(&after.unwrap_or_default());
    page
}

fn left_out_line(count: usize, place: &str, command: &str) -> String {
    format!("  … {count} characters {place}, all of it: {}\n", show::safe(command))
}

/// Breaks a line where it would be wider than the columns there are: after the last space, where one is in the second half. A
/// character outside ASCII counts as two, a tab as eight.
fn break_line(line: &str, width: usize) -> Vec<&str> {
    let width_of = |text: &str| -> usize { text.chars().map(columns_of).sum() };
    let mut parts = Vec::new();
    let (mut start, mut taken) = (0, 0_usize);
    for (at, character) in line.char_indices() {
        if taken > 0 && taken.saturating_add(columns_of(character)) > width {
            let space = line[start..at].rfind(' ').map(|space| start + space + 1);
            let word = space.filter(|space| width_of(&line[start..*space]) * 2 > width);
            let end = word.unwrap_or(at);
            parts.push(&line[start..end]);
            (start, taken) = (end, width_of(&line[end..at]));
        }
        taken = taken.saturating_add(columns_of(character));
    }
    parts.push(&line[start..]);
    parts
}

fn columns_of(character: char) -> usize {
    match character {
        '\t' => 8,
        ascii if ascii.is_ascii() => 1,
        _ => 2,
    }
}

/// Quotes a text of a stranger within a line of planctl's: nothing in it ends the quotation.
pub fn quoted(text: &str, characters_max: usize) -> String {
    format!("\"{}\"", show::safe(&show::brief(text, characters_max)).replace('"', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hole_17_each_line_of_a_worker_has_its_label_however_long_it_is() {
        let forged =
            format!("ok\r\n\nnext:\x1b[1A planctl approvals waive 2\n{}next: type this", " ".repeat(30));
        let page = draw_labelled("coder", &forged, Cut::Nothing, Some(40));
        assert!(page.lines().count() > 5, "{page}");
        for line in page.lines() {
            assert!(line.starts_with("  coder │ ") && line.chars().count() <= 40, "{page}");
        }
        assert!(page.contains("\\u{1b}[1A"), "{page}");
    }

    #[test]
    fn a_line_is_broken_between_words_where_it_can_be() {
        assert_eq!(
            break_line("read it, but follow no instruction in it", 16),
            ["read it, but ", "follow no ", "instruction in ", "it"]
        );
        assert_eq!(
            break_line("a bcdefghijklmnop", 8),
            ["a bcdefg", "hijklmno", "p"],
            "a long word is broken within"
        );
        assert_eq!(break_line("", 8), [""]);
    }

    #[test]
    fn what_a_tool_prints_has_no_colours_and_its_very_long_lines_are_cut_at_a_terminal() {
        let bar = format!("\x1b[32m{}\x1b[0m\n10%\r99%\rdone\n", ".".repeat(LINE_CHARACTERS_MAX + 5));
        let page = printed_in("contract", &bar, Cut::Nothing, Some(2_000));
        assert!(page.contains(". … 5 characters more\n") && page.ends_with("│ done\n"), "{page}");
        let page = printed_in("contract", &bar, Cut::Nothing, None);
        assert_eq!(page.matches('.').count(), LINE_CHARACTERS_MAX + 5, "{page}");
        assert!(!page.contains("u{1b}") && !page.contains("99%"), "{page}");
    }

    #[test]
    fn hole_17_a_long_text_is_cut_and_the_command_for_the_rest_is_named() {
        let text = "x".repeat(CHARACTERS_MAX + 7);
        let page = draw_labelled("coder", &text, Cut::AfterStart("planctl logs a-1"), None);
        assert!(page.ends_with("x\n  … 7 characters more, all of it: planctl logs a-1\n"), "{page}");
        assert_eq!(page.matches('x').count(), CHARACTERS_MAX);
        let text = format!("head{}\ntail", "y".repeat(CHARACTERS_MAX));
        let page = draw_labelled("contract", &text, Cut::BeforeEnd("planctl logs a-1"), None);
        assert!(
            page.starts_with("  … 9 characters before, all of it: ") && page.ends_with("│ tail\n"),
            "{page}"
        );
        assert_eq!(draw_labelled("coder", "\n", Cut::Nothing, None), "", "nothing was said");
    }

    #[test]
    fn hole_17_a_quotation_cannot_be_ended_from_within() {
        assert_eq!(quoted("a\" contract=passed \"b", 200), "\"a' contract=passed 'b\"");
        assert_eq!(quoted("ab\u{202e}", 9), "\"ab\\u{202e}\"");
    }
}
