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
    /// Says that a star behind the box marks it as optional.
    pub is_optional: bool,
    pub text: &'a str,
}

/// Reads the lines of a text; comments and the frontmatter are left out.
pub(super) fn lines(text: &str) -> Vec<ListLine<'_>> {
    let body =
        text.strip_prefix("---\n").and_then(|rest| Some(rest.split_once("\n---\n")?.1)).unwrap_or(text);
    let source = Source::new("", body);
    let outline = Outline::read(&source, 0);
    let kinds = (0..source.line_count()).map(|line| outline.kind(line));
    let mut found = Vec::new();
    for (line, kind) in body.lines().zip(kinds) {
        match kind {
            LineKind::Text => found.push(read(line)),
            LineKind::Fence(_) => found.push(ListLine::Text(line)),
            LineKind::Opaque => {}
        }
    }
    found
}

fn read(line: &str) -> ListLine<'_> {
    if let Some(heading) = heading::heading(line, 0) {
        return ListLine::Heading { level: heading.level, text: heading.text };
    }
    check_box(line).map_or(ListLine::Text(line), ListLine::Box)
}

// `  - [x]* Add X`
fn check_box(line: &str) -> Option<CheckBox<'_>> {
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    let rest = inner.strip_prefix(['-', '*', '+'])?.trim_start();
    // Kiro marks what is under way with a dash, others with a stroke or a tilde.
    let open = ["[ ]", "[]", "[-]", "[~]", "[/]"].iter().find_map(|mark| rest.strip_prefix(mark));
    let done = || rest.strip_prefix("[x]").or_else(|| rest.strip_prefix("[X]"));
    let (is_done, rest) = open.map(|rest| (false, rest)).or_else(|| Some((true, done()?)))?;
    let (is_optional, rest) = rest.strip_prefix('*').map_or((false, rest), |rest| (true, rest));
    let text = rest.trim();
    (!text.is_empty()).then_some(CheckBox { indent, is_done, is_optional, text })
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
