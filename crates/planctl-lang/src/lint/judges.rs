//! P108: a step that is free to change what its own contract runs can pass by changing that.

use std::collections::BTreeSet;

use super::{Context, Lint, Needs};
use crate::analysis::order::Order;
use crate::analysis::plainly::Right;
use crate::analysis::{Protected, rights_of_task};
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::FileFact;
use crate::syntax::shell;
use crate::text::Span;
use crate::text::characters::escape;

pub(super) const LINT: Lint = Lint { codes: &[Code::P108], needs: Needs::Surroundings, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in context.each_step() {
        let (Some(contract), Some(script)) = (&step.contract, context.scripts.read_of(at)) else { continue };
        // A step with `changes` has said which files it may change.
        if !step.attributes.changes.entries().is_empty() {
            continue;
        }
        let protected = Protected::of_step(step);
        let mut seen = BTreeSet::new();
        for judge in shell::judges(script) {
            let Some((path, named, label)) = named_in_step(context, context.order, at, &judge.path) else {
                continue;
            };
            if protected.covers(&path) || !seen.insert(path.clone()) {
                continue;
            }
            let shown = escape(&path);
            let message = format!("step {} may edit `{shown}`, and its own contract runs it", step.id.value);
            let editable = Diagnostic::new(Code::P108, message)
                .at(contract.in_plan(judge.span), "this decides whether the step is done")
                .at(named, label)
                .note("a file that decides the contract is protected from a worker that is not told to change it")
                .help(format!("add `**protects:** {shown}` so that an edit of it fails the step, `**changes:** {shown}` where it is meant, or check with a file the step need not touch"));
            found.push(editable.step(step.step_name()));
        }
    }
}

// The file as the task changes it, where it is there before the step begins: a contract may run a file that its step makes.
fn named_in_step(
    context: &Context<'_>,
    order: &Order,
    at: usize,
    judge: &str,
) -> Option<(String, Span, &'static str)> {
    let is_there = |path: &str| {
        matches!(context.facts.files.get(path), Some(FileFact::Regular { .. }))
            || order.is_made_before(path, at)
    };
    let is_beneath = |path: &str| path.strip_prefix(judge).is_some_and(|rest| rest.starts_with('/'));
    let rights = rights_of_task(order, at);
    let mention = order.mentions_in_task(at).iter().find(|mention| {
        let path = mention.path.as_str();
        mention.right == Right::May
            && rights.get(path) == Some(&Right::May)
            && (path == judge || is_beneath(path))
            && is_there(path)
    })?;
    Some((mention.path.clone(), mention.span, "the task edits it"))
}
