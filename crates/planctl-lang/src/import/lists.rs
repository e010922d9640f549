//! Reads the lines of markdown task lists: headings, check boxes, and what stands below them.

use super::Origin;
use crate::syntax::markdown::{LineKind, Outline};
use crate::syntax::source::Source;
use crate::tree::parse::heading;

/// A line of a task list.
pub(super) enum ListLine<'a> {
    /// A heading.
    Heading { level: usize, text: &'a str },
    /// A check box.
    Box(CheckBox<'a>),
    /// A line that belongs to the box or the heading above it; fenced lines too.
    Text(&'a str),
}

/// A check box.
#[derive(Clone, Copy)]
pub(super) struct CheckBox<'a> {
    pub indent: usize,
    pub is_done: bool,
    /// A mark by which tools mean different things: under way, left out.
    pub doubt: Option<char>,
    /// Says that a star behind the box marks it as optional.
    pub is_optional: bool,
    pub text: &'a str,
}

/// Reads the lines of a text; comments and the frontmatter are left out.
pub(super) fn lines(text: &str) -> Vec<ListLine<'_>> {
    let text = text.trim_start_matches('\u{feff}');
    let source = Source::new("", text);
    let first = frontmatter_lines(text);
    let outline = Outline::read(&source, first);
    let mut found = Vec::new();
    let mut in_comment = false;
    for (at, line) in text.lines().enumerate().skip(first) {
        let kind = outline.kind(at);
        in_comment &= kind == LineKind::Comment;
        match kind {
            LineKind::Text => found.push(read(line)),
            LineKind::Fence(_) | LineKind::Indented => found.push(ListLine::Text(line)),
            LineKind::Comment => {
                in_comment |= line.trim_start().starts_with("<!--");
                if !in_comment {
                    found.push(ListLine::Text(line));
                }
                in_comment &= !line.contains("-->");
            }
        }
    }
    found
}

fn frontmatter_lines(text: &str) -> usize {
    let mut rest = text.lines().map(str::trim_end);
    match rest.next() {
        Some("---") => rest.position(|line| line == "---").map_or(0, |lines| lines + 2),
        Some(_) | None => 0,
    }
}

fn read(line: &str) -> ListLine<'_> {
    // An indented one belongs to the box above it.
    if let Some(heading) = heading::heading(line, 0).filter(|_| !line.starts_with([' ', '\t'])) {
        return ListLine::Heading { level: heading.level, text: heading.text };
    }
    check_box(line).map_or(ListLine::Text(line), ListLine::Box)
}

// `  - [x]* Add X`, `1. [ ] Add Y`
fn check_box(line: &str) -> Option<CheckBox<'_>> {
    let mut line = line;
    while let Some(quoted) = line.trim_start().strip_prefix('>') {
        line = quoted.strip_prefix(' ').unwrap_or(quoted);
    }
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    let (mark, rest) = after_list_mark(inner)?.trim_start().strip_prefix('[')?.split_once(']')?;
    let is_apart = rest.is_empty() || rest.starts_with([' ', '\t', '*']);
    let mut mark = mark.chars();
    // A link is no box, and a footnote neither.
    let (is_done, doubt) = match (mark.next(), mark.next()) {
        (None, _) if is_apart => (false, None),
        (Some(' ' | '/'), None) => (false, None),
        (Some('x' | 'X' | '✓' | '✔'), None) => (true, None),
        (Some(mark), None) if is_apart && mark.is_ascii_punctuation() => (false, Some(mark)),
        (_, _) => return None,
    };
    let (is_optional, rest) = rest.strip_prefix('*').map_or((false, rest), |rest| (true, rest));
    let text = rest.trim();
    (!text.is_empty()).then_some(CheckBox { indent, is_done, doubt, is_optional, text })
}

// The text of an item of a list, with a bullet or a number.
fn after_list_mark(line: &str) -> Option<&str> {
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.strip_prefix(['.', ')']).filter(|_| rest.len() < line.len())
    };
    line.strip_prefix(['-', '*', '+']).or_else(numbered)
}

/// Returns a line below a box without the indent by which it belongs to it.
pub(super) fn detail(line: &str, indent: usize) -> &str {
    let blanks = line.bytes().take(indent + 2).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    line[blanks..].trim_end()
}

/// Returns the tool whose form a text in markdown has.
pub(super) fn origin(source: &Source) -> Option<Origin> {
    let lines = lines(source.text());
    let boxes: Vec<&CheckBox<'_>> = lines
        .iter()
        .filter_map(|line| if let ListLine::Box(found) = line { Some(found) } else { None })
        .collect();
    if boxes.is_empty() {
        return None;
    }
    let any_box = |fits: fn(&str) -> bool| boxes.iter().any(|found| fits(found.text));
    let any_heading = |fits: fn(&str) -> bool| {
        lines.iter().any(|line| matches!(line, ListLine::Heading { text, .. } if fits(text)))
    };
    let path = source.path().replace('\\', "/");
    let in_folder = |folder: &str| path.starts_with(folder) || path.contains(&format!("/{folder}"));
    Some(if any_box(|text| task_id(text).is_some()) {
        Origin::SpecKit
    } else if in_folder(".kiro/specs/") || source.text().contains("_Requirements:") {
        Origin::Kiro
    } else if any_heading(|text| task_title(text).is_some()) {
        Origin::Ralphex
    } else if in_folder("openspec/changes/")
        || any_heading(|text| numbered(text).is_some()) && any_box(|text| dotted(text).is_some())
    {
        Origin::OpenSpec
    } else {
        Origin::Checklist
    })
}

/// Splits `T001 Create it` into its id and the rest.
pub(super) fn task_id(text: &str) -> Option<(&str, &str)> {
    let (id, rest) = text.split_once(' ')?;
    let digits = id.strip_prefix('T')?;
    let is_id = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then_some((id, rest.trim()))
}

/// Returns the title of `Task 1: Title` or `Iteration 1: Title`.
pub(super) fn task_title(text: &str) -> Option<&str> {
    let rest = ["Task ", "Iteration "].iter().find_map(|word| text.strip_prefix(word))?;
    let (number, title) = rest.split_once(':')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        .then_some(title.trim())
}

/// Returns the title of `1. Title`.
pub(super) fn numbered(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let title = text[digits..].strip_prefix('.')?;
    (digits > 0 && title.starts_with(' ')).then_some(title.trim())
}

/// Splits `1.2 Title` into its number and the title.
pub(super) fn dotted(text: &str) -> Option<(&str, &str)> {
    let (number, title) = text.split_once(' ')?;
    let bare = number.trim_end_matches('.');
    let is_number = bare.contains('.')
        && bare.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number.then_some((bare, title.trim()))
}

/// Returns a heading without what tools put before a title: `Tasks: `, `Plan: `, `Implementation Plan: `.
pub(super) fn title(text: &str) -> Option<String> {
    let rest = ["Tasks:", "Task list:", "Implementation Plan:", "Plan:", "Feature:"]
        .iter()
        .find_map(|word| text.strip_prefix(word))
        .unwrap_or(text)
        .trim();
    let says_nothing = ["Tasks", "Implementation Plan", "Plan", "TODO", "To do"]
        .iter()
        .any(|word| rest.eq_ignore_ascii_case(word));
    (!rest.is_empty() && !says_nothing).then(|| rest.to_owned())
}
