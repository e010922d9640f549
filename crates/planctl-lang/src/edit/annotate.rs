//! Draws the status and the steps' marks into a plan's text: the projection that people read (DESIGN 4).

use std::collections::BTreeMap;

use crate::syntax::Language;
use crate::syntax::source::Source;
use crate::text::Span;
use crate::tree::Mark;
use crate::tree::digest::status_value;
use crate::tree::parse::{STATUSES, parse};

/// Returns the plan's text with this status and these marks, by step number.
///
/// A step without a mark in the map loses the one it has. Doing it twice changes nothing more, and the digest stays
/// (P-16, X-17). `**status:**` lines are left alone: they are the author's, and ignored. A graph of DOT or JSON has no marks.
pub fn annotate(source: &Source, status: &str, marks: &BTreeMap<u32, Mark>) -> String {
    if Language::of(source.path()).is_some() {
        return source.text().to_owned();
    }
    let mut edits: Vec<(Span, String)> = Vec::new();
    edits.extend(status_value(source).map(|value| (value, format!(" {status}"))));
    for step in parse(source).0.steps {
        let Some(number) = step.node.number else { continue };
        let title = step.title_span().start;
        let old = step.mark.map_or(Span::at(title), |mark| Span::new(mark.span.start, title));
        let is_spaced = source.text()[..old.start].ends_with([' ', '\t']);
        let mark = match marks.get(&number) {
            Some(_) if !is_spaced || step.node.step_title().is_empty() => continue,
            Some(mark) => format!("{} ", mark.symbol()),
            None => String::new(),
        };
        edits.push((old, mark));
    }
    source.edited(edits)
}

/// Says whether two texts of a plan differ in nothing but the status and the marks that planctl draws.
pub fn is_same_but_for_marks(found: &Source, approved: &Source) -> bool {
    let status = |source: &Source| status_value(source).map(|value| source.slice(value).trim().to_owned());
    let (own, other) = (status(found), status(approved));
    let is_drawn = own == other || own.is_some_and(|status| STATUSES.contains(&status.as_str()));
    let unmarked = |source: &Source| annotate(source, STATUSES[0], &BTreeMap::new());
    is_drawn && unmarked(found) == unmarked(approved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::digest::digest;

    const PLAN: &str =
        "---\r\ntype: plan\r\nstatus: draft\r\n---\r\n# T\r\n## Steps\r\n### 1. One\r\n### 2. ⚠️ Two\r\n";

    #[test]
    fn marks_stand_between_number_and_title_and_the_digest_stays() {
        let source = Source::new("p", PLAN);
        let marks = BTreeMap::from([(1, Mark::Passed), (2, Mark::Working)]);
        let written = annotate(&source, "in-progress", &marks);
        assert!(written.contains("status: in-progress\r\n") && written.contains("### 1. ✅ One\r\n"));
        assert!(written.contains("### 2. ⏳ Two\r\n"));
        let again = Source::new("p", written.clone());
        assert_eq!(digest(&source), digest(&again));
        assert_eq!(annotate(&again, "in-progress", &marks), written);
        assert_eq!(annotate(&again, "draft", &BTreeMap::new()), PLAN.replace("⚠️ ", ""));
    }

    #[test]
    fn only_what_planctl_draws_leaves_a_text_the_same() {
        let approved = Source::new("p", PLAN);
        let same = |text: String| is_same_but_for_marks(&Source::new("p", text), &approved);
        let marks = BTreeMap::from([(1, Mark::Passed), (2, Mark::Working)]);
        assert!(same(annotate(&approved, "in-progress", &marks)));
        assert!(same(PLAN.replace("⚠️ ", "")));
        for (word, other) in [("draft", "all reviewed"), ("One", "Two"), ("# T\r\n", "# T\r\n\r\n")] {
            assert!(!same(PLAN.replace(word, other)), "{other}");
        }
        assert!(!same(PLAN.replace("One\r\n", "One\r\n**status:** done\r\n")));
    }

    #[test]
    fn a_mark_of_two_signs_is_one_mark() {
        let source = Source::new("p", PLAN);
        let written = annotate(&source, "done", &BTreeMap::from([(1, Mark::Vacuous), (2, Mark::Passed)]));
        assert!(written.contains("### 1. ✅⚠ One\r\n") && written.contains("### 2. ✅ Two\r\n"), "{written}");
        let again = Source::new("p", written);
        assert_eq!(digest(&source), digest(&again));
        let passed = annotate(&again, "done", &BTreeMap::from([(1, Mark::Passed)]));
        assert!(passed.contains("### 1. ✅ One\r\n"), "{passed}");
    }

    #[test]
    fn a_heading_in_a_task_is_not_marked_and_counts_in_the_digest() {
        let text = PLAN.replace("### 1. One\r\n", "### 1. One\r\n**task:**\r\n#### 1. Part\r\n");
        let source = Source::new("p", &*text);
        let written = annotate(&source, "draft", &BTreeMap::from([(1, Mark::Passed)]));
        assert!(written.contains("### 1. ✅ One") && written.contains("#### 1. Part"));
        assert_ne!(digest(&source), digest(&Source::new("p", text.replace("1. Part", "1. ✅ Part"))));
    }
}
