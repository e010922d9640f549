//! The output of OpenCode: `run --format json`.

use serde_json::Value;

use super::trouble::{AgentError, unwrap_message};
use super::{Answer, DENIALS_MAX, count, micro_usd, tool_words};

/// Reads a line; says whether it is one of OpenCode's.
pub(super) fn parse_line(answer: &mut Answer, value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let part = &value["part"];
    match kind {
        "text" | "step_start" | "step_finish" | "tool_use" | "reasoning" if part.is_object() => {}
        "error" if value["sessionID"].is_string() => {}
        _ => return false,
    }
    answer.session = value["sessionID"].as_str().map(str::to_owned);
    match kind {
        "text" => answer.text = part["text"].as_str().map(str::to_owned),
        "tool_use" => {
            answer.worked = true;
            if let Some(denied) = denial(part).filter(|_| answer.denials.len() < DENIALS_MAX) {
                answer.denials.push(denied);
            }
        }
        "step_finish" => {
            let tokens = &part["tokens"];
            let usage = answer.usage.get_or_insert_default();
            let cached = count(&tokens["cache"]["read"]);
            usage.input_tokens += count(&tokens["input"]) + cached + count(&tokens["cache"]["write"]);
            usage.cached_input_tokens += cached;
            usage.output_tokens += count(&tokens["output"]) + count(&tokens["reasoning"]);
            if let Some(cost) = micro_usd(&part["cost"]) {
                usage.micro_usd = Some(usage.micro_usd.unwrap_or(0) + cost);
            }
        }
        "error" => answer.error = Some(error(&value["error"])),
        _ => {}
    }
    true
}

/// Returns the tool that a line uses.
pub(super) fn tool(value: &Value) -> Option<String> {
    let part = &value["part"];
    let name = part["tool"].as_str().filter(|_| value["type"] == "tool_use")?;
    Some(tool_words(name, &part["state"]["input"]))
}

/// Returns the tool that a rule of its permissions stopped.
fn denial(part: &Value) -> Option<String> {
    let state = &part["state"];
    let why = state["error"].as_str().filter(|_| state["status"] == "error")?;
    let is_denied = why.contains("prevents you from using") || why.contains("rejected permission");
    let name = part["tool"].as_str().filter(|_| is_denied)?;
    Some(tool_words(name, &state["input"]))
}

fn error(error: &Value) -> AgentError {
    let message = error["data"]["message"].as_str().or(error["name"].as_str());
    let message = unwrap_message(message.unwrap_or("an error without a text"));
    match (error["data"]["statusCode"].as_u64(), error["name"].as_str()) {
        (None, Some("ProviderAuthError")) => AgentError::of_service(Some(401), message),
        (None, Some("MessageOutputLengthError" | "MessageAbortedError")) => AgentError::own(message),
        (status, _) => AgentError::of_service(status, message),
    }
}
