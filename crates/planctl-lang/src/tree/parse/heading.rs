//! Reads headings as people write them: step numbers, templates of steps, sections, and the marks planctl writes.

use crate::text::{Span, Spanned};
use crate::tree::StepNumber;

/// The marks that planctl writes between a step's number and its title.
pub(crate) const MARKS: [&str; 7] = ["✅", "❌", "⏭", "⚠", "☑", "⏳", "🔁"];

/// A line that begins with `#`.
pub(crate) struct Heading<'a> {
    pub level: usize,
    /// The text after the `#` characters and before closing ones.
    pub text: &'a str,
    /// Where the text begins.
    pub at: usize,
    /// Says that a blank separates the `#` characters from the text.
    pub is_spaced: bool,
}

/// A heading that begins a step.
pub(crate) struct StepHeading {
    pub number: Result<Spanned<StepNumber>, Span>,
    pub title: Spanned<String>,
    pub mark: Option<Spanned<String>>,
    /// Says that it is written as planctl writes it, its level aside.
    pub is_plain: bool,
}

/// Reads a line as a heading; `at` is where the line begins.
pub(crate) fn heading(line: &str, at: usize) -> Option<Heading<'_>> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[indent..];
    let level = rest.bytes().take_while(|byte| *byte == b'#').count();
    if indent > 3 || !(1..=6).contains(&level) {
        return None;
    }
    let after = &rest[level..];
    let is_spaced = after.is_empty() || after.starts_with([' ', '\t']);
    let begin = after.len() - after.trim_start().len();
    let mut text = after.trim();
    let without = text.trim_end_matches('#');
    if without.is_empty() || without.ends_with([' ', '\t']) {
        text = without.trim_end();
    }
    Some(Heading { level, text, at: at + indent + level + begin, is_spaced })
}

/// Reads a heading's text as a step's: `1. Title`, `1) Title`, `Step 1: Title`, `3–N. Title`, `N+1. Title`.
pub(crate) fn step(heading: &Heading<'_>) -> Option<StepHeading> {
    let text = heading.text;
    let mut rest = text;
    let mut is_plain = true;
    if let Some(after) = strip_word(text, "step").or_else(|| strip_word(text, "task")) {
        rest = after;
        is_plain = false;
    }
    let number_at = text.len() - rest.len();
    let token = rest[..number_length(rest)].trim_end_matches(['-', '–', '—', ' ']);
    let (token, mut after) = rest.split_at(token.len());
    if token.is_empty() {
        return None;
    }
    let separators = after.trim_start_matches(' ');
    let end = separators.chars().next();
    match end {
        Some('.') => {
            is_plain &= after.starts_with(". ") || separators == ".";
            after = &separators[1..];
        }
        Some(mark @ (')' | ':')) => {
            is_plain = false;
            after = &separators[mark.len_utf8()..];
        }
        Some(mark @ ('-' | '–' | '—')) if !is_plain => after = &separators[mark.len_utf8()..],
        None if !is_plain => after = "",
        _ => return None,
    }
    let span = Span::new(heading.at + number_at, heading.at + number_at + token.len());
    let number = read_number(token, span)?;
    let title_at = heading.at + text.len() - after.len();
    let (mark, title) = take_mark(after, title_at);
    Some(StepHeading { number, title, mark, is_plain: is_plain && heading.is_spaced })
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    let rest = &text[word.len()..];
    (head.eq_ignore_ascii_case(word) && rest.starts_with([' ', '#']))
        .then(|| rest.trim_start_matches([' ', '#']))
}

// Digits, single letters, range signs and `..`; a letter of a word ends it.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let after = characters.peek().map_or(' ', |(_, next)| *next);
        let fits = match character {
            '0'..='9' | '+' | '-' | '–' | '—' | '…' | ' ' => true,
            '.' => before == '.' || after == '.',
            letter => letter.is_ascii_alphabetic() && !before.is_alphabetic() && !after.is_alphabetic(),
        };
        if !fits {
            return at;
        }
        before = character;
    }
    text.len()
}

// Digits are a number; digits and variables joined by range signs or `+` are a template; all else is a title.
pub(super) fn read_number(token: &str, span: Span) -> Option<Result<Spanned<StepNumber>, Span>> {
    if token.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = token.parse::<u32>().map(|number| Spanned::new(StepNumber::Fixed(number), span));
        return Some(number.map_err(|_| span));
    }
    let parts: Vec<&str> =
        token.split(['+', '-', '–', '—', '.', '…']).map(str::trim).filter(|p| !p.is_empty()).collect();
    let is_variable = |part: &&str| part.len() == 1 && part.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !parts.is_empty() && parts.iter().all(|part| is_variable(part) || is_digits(part));
    fits.then(|| Ok(Spanned::new(StepNumber::Template(token.to_owned()), span)))
}

// Several marks in a row count as one, so that taking a mark away never uncovers another.
fn take_mark(text: &str, at: usize) -> (Option<Spanned<String>>, Spanned<String>) {
    let (body, body_at) = (text.trim(), at + text.len() - text.trim_start().len());
    let mut title = body;
    let mut first = None;
    while let Some(mark) = MARKS.iter().find(|mark| title.starts_with(**mark)) {
        first = first.or(Some(*mark));
        title = title[mark.len()..].trim_start_matches(['\u{fe0f}', ' ', '\t']);
    }
    let title_at = body_at + body.len() - title.len();
    let mark = first.map(|mark| Spanned::new(mark.to_owned(), Span::new(body_at, title_at)));
    (mark, Spanned::new(title.to_owned(), Span::new(title_at, title_at + title.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, String, bool)> {
        let step = step(&heading(line, 0)?)?;
        let number = match step.number {
            Ok(number) => match number.value {
                StepNumber::Fixed(number) => number.to_string(),
                StepNumber::Template(text) => format!("template {text}"),
            },
            Err(_) => "range".to_owned(),
        };
        Some((number, step.title.value, step.is_plain))
    }

    #[test]
    fn numbers_are_read_in_every_form_people_use() {
        let as_read = |number: &str, title: &str, plain| Some((number.to_owned(), title.to_owned(), plain));
        assert_eq!(read("### 1. Analyze"), as_read("1", "Analyze", true));
        assert_eq!(read("###1. Analyze"), as_read("1", "Analyze", false));
        assert_eq!(read("#### 2) Write ###"), as_read("2", "Write", false));
        assert_eq!(read("## Step 3: Lint"), as_read("3", "Lint", false));
        assert_eq!(read("### Task 3: Lint"), as_read("3", "Lint", false));
        assert_eq!(read("### STEP 4 - Ship"), as_read("4", "Ship", false));
        assert_eq!(read("### 1."), as_read("1", "", true));
        assert_eq!(read("### 1. ✅ Done"), as_read("1", "Done", true));
        assert_eq!(read("### 3–N. Migrate"), as_read("template 3–N", "Migrate", true));
        assert_eq!(read("### N+1. Remove"), as_read("template N+1", "Remove", true));
        assert_eq!(read("### 3-5. Migrate"), as_read("template 3-5", "Migrate", true));
        assert_eq!(read("### 99999999999999999999. x"), as_read("range", "x", true));
    }

    #[test]
    fn titles_without_a_number_are_no_steps() {
        for line in ["### Notes", "### 3 little pigs", "### Network. Setup", "### v1. x", "#hashtag 1"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
