//! The plan that follows when a run is done: `then:` of a plan, whatever its language (H-50).

use super::tree::Workflow;
use crate::diagnostic::{Code, Diagnostic, did_you_mean};
use crate::facts::{Facts, NextFact};
use crate::text::escape;
use crate::text::near::ask_or_say;

/// Returns the name of the plan that follows, of which the lints want to know whether it is there.
pub(crate) fn asked(workflow: &Workflow) -> Option<String> {
    workflow.library.then.as_ref().map(|then| then.value.clone())
}

/// Finds a plan that is to follow and is not there.
pub(crate) fn lint_there(workflow: &Workflow, facts: &Facts, found: &mut Vec<Diagnostic>) {
    let (Some(then), Some(NextFact::Missing { others })) = (&workflow.library.then, &facts.next) else {
        return;
    };
    let label = "it gets a run when a run of this plan is done";
    found.push(missing_next(&then.value, others).at(then.span, label));
}

/// Says that the plan that is to follow is not there; one of the others may be meant.
pub fn missing_next(next: &str, others: &[String]) -> Diagnostic {
    let near = did_you_mean(next, others.iter().map(String::as_str));
    let otherwise =
        "name a file of the workspace, a plan of its folder `plans`, or an entry of `planctl library ls`";
    Diagnostic::new(Code::P216, format!("the plan `{}`, which is to follow, is not there", escape(next)))
        .help(ask_or_say(near, otherwise))
}
