//! P121: a contract whose script can't be told from its text, so that it is not protected.

use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic};

pub(super) const LINT: Lint = Lint { codes: &[Code::P121], needs: Needs::Text, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in context.each_step().filter(|(_, step)| step.attributes.protects.entries().is_empty()) {
        let (Some(contract), Some(deciding)) = (&step.contract, context.scripts.deciding(at)) else {
            continue;
        };
        // One is enough: the line to add is the same for all.
        let Some(span) = deciding.untold.first() else { continue };
        let message = "which file the contract runs can't be told from its text, so it is not protected";
        let untold = Diagnostic::new(Code::P121, message)
            .at(contract.in_plan(*span), "what this is, is known only when it runs")
            .help("name the file, or add `**protects:**` with the files that decide the step, such as `**protects:** tests/**`");
        found.push(untold.step(step.step_name()));
    }
}
