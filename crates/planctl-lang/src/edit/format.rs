//! Writes a plan in the form that planctl writes, and changes nothing that it means.

mod portrait;
mod write;

use crate::syntax::source::Source;
use crate::tree::parse::layout::PartKind;
use portrait::{Difference, Portrait};
use write::Care;

/// How often a text may be formatted again until nothing changes.
const ROUNDS_MAX: usize = 4;
/// How often what can't be formatted is left out.
const ATTEMPTS_MAX: usize = 8;

/// Returns the plan in the form that planctl writes.
///
/// The text that comes out has the same tree, the same findings but those about its form, and every line that is the
/// author's; formatting it again changes nothing. A step of which this can't be said stays as it is, and so does a text
/// that is no plan. Takes time in proportion to the text.
pub fn format(source: &Source) -> String {
    let mut text = source.text().to_owned();
    for _ in 0..ROUNDS_MAX {
        let better = format_once(&Source::new(source.path(), &*text));
        if better == text {
            return text;
        }
        text = better;
    }
    source.text().to_owned()
}

fn format_once(source: &Source) -> String {
    let before = Portrait::of(source);
    before.as_ref().and_then(|before| formatted(source, before)).unwrap_or_else(|| source.text().to_owned())
}

fn formatted(source: &Source, before: &Portrait) -> Option<String> {
    try_format(source, before, true).or_else(|| try_format(source, before, false))
}

// A section that would come out as something else is written with less care, then not at all. Headings change their level
// in all steps or in none, since a heading's level decides what belongs to the step before it.
fn try_format(source: &Source, before: &Portrait, levels: bool) -> Option<String> {
    let mut cares = vec![Care::Order; before.sections()];
    for _ in 0..ATTEMPTS_MAX {
        let text = write::write(source, before, &cares, levels);
        if text == source.text() {
            return Some(text);
        }
        let after = Portrait::of(&Source::new(source.path(), &*text))?;
        match before.difference(&after) {
            Difference::Nothing => return Some(text),
            Difference::Sections(sections) => {
                for section in sections {
                    cares[section] = cares[section].relaxed();
                }
            }
        }
        if levels && has_odd_level(before, &cares) {
            return None;
        }
    }
    None
}

fn has_odd_level(before: &Portrait, cares: &[Care]) -> bool {
    let levels = before.layout.parts.iter().filter_map(|part| match part.kind {
        PartKind::Step { level } => Some(level),
        PartKind::Title
        | PartKind::Steps
        | PartKind::Field { .. }
        | PartKind::Refused
        | PartKind::Allow
        | PartKind::Other => None,
    });
    levels.zip(cares.iter().skip(1)).any(|(level, care)| level != 3 && *care == Care::Nothing)
}
