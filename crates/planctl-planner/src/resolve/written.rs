//! Writes a resolved goal as a plan: questions as steps for a person, calls with their arguments, plans of the library as sub-plans,
//! each result where it is needed.

use std::collections::BTreeMap;

use planctl_lang::{draft_frontmatter, one_line, shell_quoted};
use serde_json::{Map, Value};

use super::bind::ArgumentValue;
use super::planned::{Action, Call, Planned, PlannedStep};
use crate::write::{fence, heading, safe, task};

/// Writes the plan. Each step says which intent of the goal it serves; `files` has the file of each plan of the library, relative to
/// the workspace.
pub fn write_plan(
    goal: &str,
    owner: &str,
    budget: Option<&str>,
    planned: &Planned,
    files: &BTreeMap<String, String>,
) -> String {
    let title: String = one_line(goal).chars().take(100).collect();
    let mut text = format!(
        "{}\n# {}\n\n**Context:** Resolved from the goal: {}\n",
        draft_frontmatter(owner),
        heading(&title),
        safe(&one_line(goal))
    );
    if let Some(budget) = budget {
        text.push_str(&format!("**Budget:** {}\n", one_line(budget)));
    }
    text.push_str("\n## Steps\n");
    for (at, step) in planned.steps.iter().enumerate() {
        write_step(&mut text, at, step, &planned.steps, files);
    }
    text
}

fn write_step(
    text: &mut String,
    at: usize,
    step: &PlannedStep,
    all: &[PlannedStep],
    files: &BTreeMap<String, String>,
) {
    let title: String = one_line(&step.text).chars().take(100).collect();
    text.push_str(&format!("\n### {}. {}\n\n", at + 1, heading(&capitalised(&title))));
    if matches!(step.action, Action::Write { .. }) {
        text.push_str("**target:** coder\n");
    }
    let kind = match &step.action {
        Action::Ask { .. } => Some("human"),
        Action::Call(_) | Action::Run { .. } | Action::Show { .. } => Some("call"),
        Action::SubPlan { .. } => Some("sub-plan"),
        Action::Write { .. } => None,
    };
    text.push_str(&kind.map(|kind| format!("**type:** {kind}\n")).unwrap_or_default());
    text.push_str(&format!("**needs:** {}\n", needs(step, all)));
    let merged: String = step.merged.iter().map(|id| format!(", {id}")).collect();
    text.push_str(&format!("**intent:** {}{merged}: {}\n", step.id, safe(&one_line(&step.text))));
    match &step.action {
        Action::Ask { question } => text.push_str(&format!("\n**task:**\n{}\n", task(question))),
        Action::Call(call) => write_call(text, call, all),
        Action::Write { task: own } => {
            text.push_str(&format!("\n**task:**\n{}\n\n**contract:** TODO\n", task(own)));
        }
        Action::Run { command } => contract(text, command),
        Action::Show { of } => contract(text, &format!("cat {}", output_file(of, all))),
        Action::SubPlan { entry, .. } => {
            let file = files.get(entry).cloned().unwrap_or_else(|| format!("plans/{entry}.md"));
            text.push_str(&format!("**plan:** {}\n", one_line(&file)));
        }
    }
}

fn write_call(text: &mut String, call: &Call, all: &[PlannedStep]) {
    if let (None, Some(command)) = (&call.capability.server, &call.capability.command) {
        return contract(text, &fill_arguments(command, call, all));
    }
    let arguments: Map<String, Value> = call
        .arguments
        .iter()
        .map(|argument| {
            let value = match &argument.value {
                ArgumentValue::Given(value) => literal(value),
                ArgumentValue::ResultOf(id, _) => {
                    Value::from(format!("${{steps.{}.output}}", number(id, all)))
                }
            };
            (argument.parameter.clone(), value)
        })
        .collect();
    let server = call.capability.server.as_deref().unwrap_or_default();
    text.push_str(&format!(
        "**server:** {}\n**tool:** {}\n",
        one_line(server),
        one_line(&call.capability.name)
    ));
    let arguments = format!("{:#}", Value::Object(arguments));
    let fence = fence(&arguments);
    text.push_str(&format!("**arguments:**\n{fence}json\n{arguments}\n{fence}\n"));
}

fn contract(text: &mut String, command: &str) {
    let fence = fence(command);
    text.push_str(&format!("\n**contract:**\n{fence}shell\n{}\n{fence}\nexit_code == 0\n", command.trim()));
}

/// Puts arguments into a local command, each as one word of the shell. One pass, so that no argument is taken for a placeholder.
fn fill_arguments(command: &str, call: &Call, all: &[PlannedStep]) -> String {
    let mut filled = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once('{') {
        let named = after.split_once('}').and_then(|(name, behind)| {
            let argument = call.arguments.iter().find(|argument| argument.parameter == name)?;
            Some((shell_argument(&argument.value, all), behind))
        });
        filled.push_str(before);
        rest = match named {
            Some((word, behind)) => {
                filled.push_str(&word);
                behind
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled + rest
}

fn shell_argument(value: &ArgumentValue, all: &[PlannedStep]) -> String {
    match value {
        ArgumentValue::Given(value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            shell_quoted(&text)
        }
        ArgumentValue::ResultOf(id, _) => format!("\"$(cat {})\"", output_file(id, all)),
    }
}

/// Returns the file with the result of a step, as a word of the shell.
fn output_file(id: &str, all: &[PlannedStep]) -> String {
    format!("\"$PLANCTL_OUTPUTS/{}\"", number(id, all))
}

/// Keeps a text that reads as a reference from becoming one.
fn literal(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(text.replace("${", "$${")),
        Value::Array(elements) => Value::Array(elements.iter().map(literal).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), literal(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn needs(step: &PlannedStep, all: &[PlannedStep]) -> String {
    let mut numbers: Vec<usize> = step.needs.iter().map(|id| number(id, all)).collect();
    numbers.sort_unstable();
    let words: Vec<String> = numbers.iter().map(usize::to_string).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn number(id: &str, all: &[PlannedStep]) -> usize {
    all.iter().position(|step| step.id == id).map_or(0, |at| at + 1)
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}", first.unwrap_or_default(), characters.as_str())
}
