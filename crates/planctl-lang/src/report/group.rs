//! Findings of one kind as one, for people: a file in which one thing is wrong in fifty places has one thing to mend.
//!
//! Programs read every finding by itself (JSON, SARIF, one a line); only what people read is grouped (DOT B13).

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::source::Source;

/// The most places of a group that are listed; the rest is a number.
const PLACES_MAX: usize = 12;
/// How wide a line of places may be, in characters.
const LINE_MAX: usize = 90;

/// Findings that differ only in the names and places they speak of.
pub struct Group<'d> {
    first: &'d Diagnostic,
    more: Vec<&'d Diagnostic>,
}

/// Groups findings by kind: one code, one level, one message but for what it names, one help. In the order of the first of
/// each.
pub fn groups<'d>(found: impl IntoIterator<Item = &'d Diagnostic>) -> Vec<Group<'d>> {
    let mut groups: Vec<Group<'d>> = Vec::new();
    let mut places: BTreeMap<(Code, Severity, String, &str), usize> = BTreeMap::new();
    for found in found {
        let help = found.help.as_deref().unwrap_or_default();
        let key = (found.code, found.level, without_names(&found.message), help);
        match places.get(&key) {
            Some(at) => groups[*at].more.push(found),
            None => {
                places.insert(key, groups.len());
                groups.push(Group { first: found, more: Vec::new() });
            }
        }
    }
    groups
}

impl Group<'_> {
    /// Returns how many findings it has.
    pub fn count(&self) -> usize {
        1 + self.more.len()
    }

    /// Makes one finding of them: the first, with the places of the others and the line that mends all of them, where
    /// there is one.
    pub fn as_one(&self, source: &Source) -> Diagnostic {
        let mut one = self.first.clone();
        if self.more.is_empty() {
            return one;
        }
        one.notes.push(self.others(source));
        if let Some(all) = &self.first.mends_all {
            let own = one.help.take().map_or(String::new(), |help| format!("{help}\n"));
            one.help = Some(format!("{own}all {} at once: {all}", self.count()));
        }
        one
    }

    // `and 48 more: `b` (12:5), `c` (13:5), …`, broken into lines.
    fn others(&self, source: &Source) -> String {
        let mut text = format!("and {} more:", self.more.len());
        let mut line = text.chars().count();
        let listed = self.more.len().min(PLACES_MAX);
        for (at, found) in self.more.iter().take(listed).enumerate() {
            let comma = if at + 1 < self.more.len() { "," } else { "" };
            let place = format!("{}{comma}", self.place(source, found));
            push_wrapped(&mut text, &mut line, &place);
        }
        let rest = self.more.len() - listed;
        if rest > 0 {
            push_wrapped(&mut text, &mut line, &format!("and {rest} others (--json has each)"));
        }
        text
    }

    fn place(&self, source: &Source, found: &Diagnostic) -> String {
        let position = found.spans.first().map(|label| source.position(source.clamp(label.span).start));
        let place = position.map_or(String::new(), |at| format!("{}:{}", at.line, at.column));
        let own = names(&self.first.message);
        let other: Vec<&str> = names(&found.message).into_iter().filter(|name| !own.contains(name)).collect();
        let step = found.step.as_ref().filter(|step| Some(*step) != self.first.step.as_ref());
        let what = match (other.as_slice(), step) {
            ([], None) => return place,
            ([], Some(step)) => format!("step {}", step.number),
            (names, _) => names.join(" "),
        };
        format!("{what} ({place})")
    }
}

fn push_wrapped(text: &mut String, line: &mut usize, word: &str) {
    let length = word.chars().count();
    if *line + 1 + length > LINE_MAX {
        text.push('\n');
        *line = length;
    } else {
        text.push(' ');
        *line += 1 + length;
    }
    text.push_str(word);
}

// A message without what stands between backticks and without numbers.
fn without_names(message: &str) -> String {
    let outside = message.split('`').step_by(2);
    outside.map(|part| part.replace(|c: char| c.is_ascii_digit(), "")).collect::<Vec<_>>().join("`")
}

// Matches the text between backticks, with them.
fn names(message: &str) -> Vec<&str> {
    let marks: Vec<usize> = message.match_indices('`').map(|(at, _)| at).collect();
    marks.chunks_exact(2).map(|pair| &message[pair[0]..=pair[1]]).collect()
}
