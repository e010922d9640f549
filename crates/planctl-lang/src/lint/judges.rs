//! P108: a step that is free to change what its own contract runs can pass by changing that.

use std::collections::BTreeSet;

use super::Lint;
use super::mentions::Role;
use super::order::Order;
use crate::characters::escape;
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::{FileFact, Protected};
use crate::parse::name_of;
use crate::shell;
use crate::source::Span;

pub(super) fn lint(lint: &Lint<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in lint.tree.steps.iter().enumerate() {
        let (Some(contract), Some(script)) = (&step.contract, lint.scripts.read_of(at)) else { continue };
        let protected = Protected::by(step);
        let mut seen = BTreeSet::new();
        for judge in shell::judges(script) {
            let Some((path, named, label)) = named_in_step(lint, lint.order, at, &judge.path) else {
                continue;
            };
            if protected.holds(&path) || !seen.insert(path.clone()) {
                continue;
            }
            let shown = escape(&path);
            let message =
                format!("step {} may edit `{shown}`, and its own contract runs it", step.number_text());
            let editable = Diagnostic::new(Code::P108, message)
                .at(contract.in_plan(judge.span), "this decides whether the step is done")
                .at(named, label)
                .note("a file that neither the task nor the subscriptions name is protected from the worker")
                .help(format!("add `**protects:** {shown}` so that an edit of it fails the step, or check with a file the step need not touch"));
            found.push(editable.step(name_of(step)));
        }
    }
}

// The file as the step names it, where it is there before the step begins: what a step makes, its contract may run.
fn named_in_step(
    lint: &Lint<'_>,
    order: &Order,
    at: usize,
    judge: &str,
) -> Option<(String, Span, &'static str)> {
    let is_there = |path: &str| {
        matches!(lint.facts.files.get(path), Some(FileFact::Regular { .. })) || order.is_made_before(path, at)
    };
    let is_beneath = |path: &str| path.strip_prefix(judge).is_some_and(|rest| rest.starts_with('/'));
    for mention in order.of_task(at) {
        let is_edited = matches!(mention.role, Role::Makes | Role::Changes);
        let fits = mention.path == judge || (is_edited && is_beneath(&mention.path));
        if fits && is_there(&mention.path) {
            let label =
                if is_edited { "the task edits it" } else { "the task names it, so it is not protected" };
            return Some((mention.path.clone(), mention.span, label));
        }
    }
    let mut subscribed = lint.tree.steps[at].subscribed_files();
    let (path, span) = subscribed.find(|(path, _)| *path == judge && is_there(path))?;
    Some((path.to_owned(), span, "the step is given it, so it is not protected"))
}
