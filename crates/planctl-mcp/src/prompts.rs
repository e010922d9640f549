//! The prompts that a person picks in their client: to write a plan, and to write a contract.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::gateway::Refused;

/// A prompt: its name, its one argument, and the text that comes before it.
struct Written {
    name: &'static str,
    about: &'static str,
    argument: &'static str,
    argument_about: &'static str,
    text: &'static str,
}

const PROMPTS: [Written; 2] = [
    Written {
        name: "write_plan",
        about: "Write a plan whose steps are proved by contracts, verify it, and submit it to a person",
        argument: "goal",
        argument_about: "What is to be reached, in your own words",
        text: include_str!("prompts/write_plan.md"),
    },
    Written {
        name: "write_contract",
        about: "Write the shell contract that proves one step",
        argument: "task",
        argument_about: "The step's task",
        text: include_str!("prompts/write_contract.md"),
    },
];

/// The longest argument.
const ARGUMENT_CHARACTERS_MAX: usize = 20_000;
/// Stands before and after a text that came from elsewhere.
const LINE: &str = "================================================================";

/// Returns the prompts.
pub fn listed() -> Vec<Prompt> {
    let prompt = |written: &Written| {
        let argument = PromptArgument::new(written.argument)
            .with_description(written.argument_about)
            .with_required(true);
        Prompt::new(written.name, Some(written.about), Some(vec![argument]))
    };
    PROMPTS.iter().map(prompt).collect()
}

/// Returns a prompt with its argument.
pub fn get(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, Refused> {
    let found = PROMPTS.iter().find(|written| written.name == name);
    let written = found.ok_or_else(|| Refused::bad_request(format!("there is no prompt {name:?}")))?;
    let given = arguments.and_then(|given| given.get(written.argument)?.as_str()).map(str::trim);
    let given = given.filter(|given| !given.is_empty());
    let given =
        given.ok_or_else(|| Refused::bad_request(format!("the prompt needs `{}`", written.argument)))?;
    if given.chars().count() > ARGUMENT_CHARACTERS_MAX {
        let error = format!("`{}` has more than {ARGUMENT_CHARACTERS_MAX} characters", written.argument);
        return Err(Refused::bad_request(error));
    }
    if given.lines().any(|line| line.trim() == LINE) {
        return Err(Refused::bad_request(format!("`{}` has a line of equal signs alone", written.argument)));
    }
    let text = format!("{}{LINE}\n{given}\n{LINE}\n", written.text);
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(written.about))
}
