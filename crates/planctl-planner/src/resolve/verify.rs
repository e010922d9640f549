//! Holds a resolved goal to the tools that there are before anything runs: each is there, and each call fits its schema (M-42).

use super::bind::ArgumentValue;
use super::capability::Capability;
use super::catalog::Catalog;
use super::parameter::coerced;
use super::planned::{Action, Call, Planned, Remark};
use crate::judge::Outcome;

/// The verdict on a resolved goal.
#[derive(Clone, PartialEq, Debug)]
pub struct Verified {
    /// The verdict.
    pub outcome: Outcome,
    /// Reasons why it can't run.
    pub errors: Vec<Remark>,
    /// Remarks that a person should know.
    pub warnings: Vec<Remark>,
}

/// Verifies a resolved goal against the capabilities that there are at present, which may differ from those it was resolved with.
pub fn verified(planned: &Planned, catalog: &Catalog) -> Verified {
    let mut errors = planned.faults.clone();
    let mut warnings = planned.warnings.clone();
    for open in &planned.open {
        let message = match open.is_unclear {
            true => "several capabilities serve it equally well, and nobody chose one",
            false => "no capability serves it",
        };
        errors.push(Remark { intent: open.intent.id.clone(), message: message.to_owned() });
    }
    for (at, step) in planned.steps.iter().enumerate() {
        let Action::Call(call) = &step.action else { continue };
        let mut say = |message: String| errors.push(Remark { intent: step.id.clone(), message });
        let Some(present) = catalog.named(&call.capability.id()) else {
            say(format!("there is no capability {}", call.capability.id()));
            continue;
        };
        schema_mismatches(call, present).into_iter().for_each(&mut say);
        for argument in &call.arguments {
            if let ArgumentValue::ResultOf(id, _) = &argument.value
                && planned.steps[..at].iter().all(|earlier| earlier.id != *id)
            {
                say(format!(
                    "`{}` needs the result of {id}, which no earlier step gives",
                    argument.parameter
                ));
            }
        }
        if present.effects.is_none() {
            let message = format!("{} does not say what it changes", present.id());
            warnings.push(Remark { intent: step.id.clone(), message });
        }
    }
    let outcome = match (errors.is_empty(), warnings.is_empty()) {
        (false, _) => Outcome::Invalid,
        (true, false) => Outcome::Warning,
        (true, true) => Outcome::Ok,
    };
    Verified { outcome, errors, warnings }
}

/// Says what of a call does not fit the schema that the capability has at present.
fn schema_mismatches(call: &Call, present: &Capability) -> Vec<String> {
    let mut found = Vec::new();
    for argument in &call.arguments {
        match (present.parameter(&argument.parameter), &argument.value) {
            (Some(parameter), ArgumentValue::Given(value)) => found.extend(coerced(parameter, value).err()),
            (Some(_), ArgumentValue::ResultOf(..)) => {}
            (None, _) if present.takes_others => {}
            (None, _) => found.push(format!("{} has no parameter `{}`", present.id(), argument.parameter)),
        }
    }
    let is_given = |name: &str| call.arguments.iter().any(|argument| argument.parameter == name);
    let missing = present.parameters.iter().filter(|own| own.is_required && !is_given(&own.name));
    found.extend(missing.map(|own| format!("{} needs `{}`, and nothing gives it", present.id(), own.name)));
    found
}
