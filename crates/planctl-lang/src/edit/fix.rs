//! Mends a text by the fixes that its findings carry.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Edit, Fix};
use crate::syntax::source::Source;

/// Which fixes are applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Those that keep what the author meant beyond doubt.
    Safe,
    /// Also those that a person has to look at.
    Unsafe,
}

impl Reach {
    /// Says whether a fix may be applied.
    pub fn takes(self, fix: &Fix) -> bool {
        fix.safe || self == Reach::Unsafe
    }
}

/// Applies the fixes of the findings, in their order, and returns the text; nothing where there is none to apply.
///
/// A fix is taken whole or not at all; one that touches what an earlier one changed waits for the next verification.
/// Text that is put in takes the file's own line ends.
pub fn apply_fixes(source: &Source, diagnostics: &[Diagnostic], reach: Reach) -> Option<String> {
    let edits = fixing_edits(source, diagnostics, reach);
    let written = source.edited(edits.into_iter().map(|edit| (edit.span, edit.replacement)));
    (written != source.text()).then_some(written)
}

/// Returns the edits that [`apply_fixes`] makes, in the order of the text.
pub fn fixing_edits<'a>(
    source: &Source,
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
    reach: Reach,
) -> Vec<Edit> {
    let mut taken: BTreeMap<usize, &Edit> = BTreeMap::new();
    let fixes = diagnostics.into_iter().filter_map(|diagnostic| diagnostic.fix.as_ref());
    for fix in fixes.filter(|fix| reach.takes(fix)) {
        if fix.edits.iter().all(|edit| is_free(edit, &taken)) {
            taken.extend(fix.edits.iter().map(|edit| (edit.span.start, edit)));
        }
    }
    let edits = taken.values().map(|edit| Edit {
        span: source.clamp(edit.span),
        replacement: with_line_ends(&edit.replacement, source),
    });
    edits.collect()
}

// Two edits that begin at one place have no order, so they count as touching.
fn is_free(edit: &Edit, taken: &BTreeMap<usize, &Edit>) -> bool {
    let before = taken.range(..=edit.span.start).next_back();
    let after = taken.range(edit.span.start..).next();
    before.is_none_or(|(start, known)| *start < edit.span.start && known.span.end <= edit.span.start)
        && after.is_none_or(|(start, _)| edit.span.end <= *start && edit.span.start < *start)
}

/// Returns a text with the line ends of the plan in place of line feeds.
pub(crate) fn with_line_ends(text: &str, source: &Source) -> String {
    match line_end(source) {
        "\r\n" => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => text.to_owned(),
    }
}

/// Returns the plan's line end, which is that of its first line.
pub(crate) fn line_end(source: &Source) -> &'static str {
    let first = source.text().find('\n');
    if first.is_some_and(|at| source.text()[..at].ends_with('\r')) { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;
    use crate::text::Span;

    fn finding(edits: &[(usize, usize, &str)], safe: bool) -> Diagnostic {
        let plain = Diagnostic::new(Code::P005, "x");
        edits.iter().fold(plain, |found, (start, end, text)| found.fix(Span::new(*start, *end), *text, safe))
    }

    #[test]
    fn fixes_are_whole_and_never_overlap() {
        let source = Source::new("p", "abcdef\r\n");
        let apply = |found: &[Diagnostic], reach| apply_fixes(&source, found, reach);
        let (first, across) = (finding(&[(1, 3, "X")], true), finding(&[(2, 4, "Y"), (5, 6, "Z")], true));
        assert_eq!(apply(&[first.clone(), across.clone()], Reach::Safe).unwrap(), "aXdef\r\n");
        assert_eq!(apply(&[across, first], Reach::Safe).unwrap(), "abYeZ\r\n");
        let twice = [finding(&[(2, 2, "1\n")], true), finding(&[(2, 2, "2")], true)];
        assert_eq!(apply(&twice, Reach::Safe).unwrap(), "ab1\r\ncdef\r\n");
        let unsure = [finding(&[(0, 1, "")], false)];
        assert_eq!(apply(&unsure, Reach::Safe), None);
        assert_eq!(apply(&unsure, Reach::Unsafe).unwrap(), "bcdef\r\n");
    }
}
