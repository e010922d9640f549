//! P122: a question of a draft that nobody has answered, which stands in the plan as a comment.

use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, escape};

/// The beginning of the comment, as `plan draft` writes it.
const BEGINNING: &str = "<!-- open question ";
/// The most characters of a question that a finding shows.
const CHARACTERS_MAX: usize = 200;

pub(super) const LINT: Lint = Lint { codes: &[Code::P122], needs: Needs::Text, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    // Below the first step it may be the text of a task or a contract.
    let end = context.tree.steps_heading.map_or(0, |heading| heading.start);
    let head = context.source.text().get(..end).unwrap_or_default();
    let mut at = 0;
    for line in head.split_inclusive('\n') {
        let comment = line.trim_end();
        if let Some(question) = comment.strip_prefix(BEGINNING) {
            let question: String =
                question.trim_end_matches("-->").trim().chars().take(CHARACTERS_MAX).collect();
            let open = Diagnostic::new(Code::P122, format!("a question is open: {}", escape(&question)))
                .at(Span::new(at, at + comment.len()), "nobody has answered it")
                .help(
                    "write the answer into the plan and delete the comment, or draft again with `--answer`",
                );
            found.push(open);
        }
        at += line.len();
    }
}
