//! The canonical digest: the source less the marks that planctl itself writes, so that progress doesn't look like a change.

use planctl_engine::Digest;
use sha2::{Digest as _, Sha256};

use crate::syntax::source::Source;
use crate::text::Span;
use crate::tree::PlanTree;
use crate::tree::parse::parse;

/// Returns the digest of the plan's canonical text, `sha256:…`.
///
/// The value of the frontmatter's `status`, the marks in step headings and `**status:**` lines of steps do not count;
/// every other byte does, line ends included (row 58).
pub fn digest(source: &Source) -> Digest {
    digest_of_text(&canonical(source))
}

/// As [`digest`], of a plan that was read already.
pub(crate) fn digest_of_plan(source: &Source, tree: &PlanTree) -> Digest {
    digest_of_text(&source.edited(annotations(source, tree)))
}

/// Returns the sha256 of a text as `sha256:…`, as contracts are named.
pub fn digest_of_text(text: &str) -> Digest {
    Digest::of_sha256(&Sha256::digest(text.as_bytes()))
}

/// Returns the plan's text less the marks that planctl writes.
pub fn canonical(source: &Source) -> String {
    source.edited(annotations(source, &parse(source).0))
}

/// Returns the places of all annotations: values, marks with the blanks after them, and whole status lines; nothing takes
/// their place.
///
/// They are found by the plan's own reader, so that a mark inside a text counts as text.
fn annotations(source: &Source, tree: &PlanTree) -> Vec<(Span, &'static str)> {
    let mut spans: Vec<Span> = status_value(source).into_iter().collect();
    for step in &tree.steps {
        spans.extend(step.mark.as_ref().map(|mark| Span::new(mark.span.start, step.title_span().start)));
        spans.extend(step.status.as_ref().map(|status| source.whole_line(status.span.start)));
    }
    spans.into_iter().map(|span| (span, "")).collect()
}

/// Returns the place of the frontmatter's status value with the blanks before it, where there is one.
pub(crate) fn status_value(source: &Source) -> Option<Span> {
    let first = source.slice(source.line_span(0)).trim_start_matches('\u{feff}').trim_end();
    if first != "---" {
        return None;
    }
    let mut status = None;
    for line in 1..source.line_count().min(50) {
        let span = source.line_span(line);
        let text = source.slice(span);
        if text.trim_end() == "---" || text.trim_end() == "..." {
            return status;
        }
        if let Some(value) = text.strip_prefix("status:")
            && status.is_none()
        {
            let comment = value.find(" #").unwrap_or(value.len());
            let start = span.start + "status:".len();
            status = Some(Span::new(start, start + value[..comment].trim_end().len()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str =
        "---\ntype: plan\nstatus: draft # ours\n---\n\n# T\n\n## Steps\n\n### 1. One\n\n**task:**\ndo\n";

    #[test]
    fn x_17_marks_and_status_do_not_change_the_digest() {
        let marked = PLAN.replace("draft", "in-progress").replace("1. One", "1. ✅ One");
        let marked = marked.replace("**task:**", "**status:** done\n**task:**");
        assert_eq!(digest(&Source::new("p", PLAN)), digest(&Source::new("p", marked)));
    }

    #[test]
    fn row_58_line_ends_and_every_other_byte_count() {
        let original = digest(&Source::new("p", PLAN));
        for changed in
            [PLAN.replace('\n', "\r\n"), PLAN.replace("do", "do "), PLAN.replace("# ours", "# theirs")]
        {
            assert_ne!(original, digest(&Source::new("p", changed)));
        }
    }

    #[test]
    fn row_66_the_same_text_has_the_same_digest_under_any_name() {
        assert_eq!(digest(&Source::new("a.md", PLAN)), digest(&Source::new("b.md", PLAN)));
    }

    #[test]
    fn a_mark_inside_a_fence_is_text() {
        let fenced = "```\n### 1. ✅ One\n```\n";
        assert_eq!(canonical(&Source::new("p", fenced)), fenced);
    }
}
