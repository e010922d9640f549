//! Names that other tools and people have for the fields of a step.

use crate::tree::Field;

/// Returns the field that a name of another tool means.
pub(super) fn of_step(word: &str) -> Option<Field> {
    Some(match word {
        "role" | "agent" | "assignee" | "assigned_to" | "worker" | "persona" => Field::Target,
        "description" | "prompt" | "instructions" | "instruction" | "details" | "do" | "objective"
        | "goal" => Field::Task,
        "depends_on" | "depends" | "dependencies" | "dependson" | "after" | "requires" | "blocked_by" => {
            Field::Needs
        }
        "check"
        | "checks"
        | "verify"
        | "verification"
        | "validation"
        | "validate"
        | "test"
        | "tests"
        | "acceptance"
        | "acceptance_criteria"
        | "teststrategy"
        | "test_strategy"
        | "done_when" => Field::Contract,
        "retries" | "retry" | "attempts" | "on_failure" | "onfail" => Field::OnFail,
        "files" | "outputs" | "output" | "modifies" | "writes" => Field::Changes,
        "inputs" | "input" | "reads" | "context_files" => Field::Subscriptions,
        "if" | "condition" => Field::When,
        _ => return None,
    })
}

/// Returns how a field is written that has a value under another name: a number of retries is a policy.
pub(super) fn written(field: Field, value: &str) -> String {
    let value = value.trim();
    match (field, value.parse::<u32>()) {
        (Field::OnFail, Ok(0)) => "**on_fail:** escalate".to_owned(),
        (Field::OnFail, Ok(retries)) => format!("**on_fail:** retry({retries})"),
        _ => format!("**{}:**", field.as_str()),
    }
}
