//! The output of Gemini CLI: `stream-json`, and one object.

use planctl_engine::Usage;
use serde_json::Value;

use super::trouble::{AgentError, unwrap_message};
use super::{Answer, STDERR_OBJECTS_MAX, TEXT_BYTES_MAX, count, tool_words};
use crate::capture::Captured;
use crate::foreign_json::read_foreign_json;

/// Reads a line; says whether it is one of Gemini's. Its text comes in pieces, which `messages` collects.
pub(super) fn parse_line(answer: &mut Answer, messages: &mut String, value: &Value) -> bool {
    match value["type"].as_str().unwrap_or_default() {
        "init" if value["session_id"].is_string() => {
            answer.session = value["session_id"].as_str().map(str::to_owned);
        }
        "message" if value["role"] == "assistant" => {
            let content = value["content"].as_str().unwrap_or_default();
            if messages.len() + content.len() <= TEXT_BYTES_MAX {
                messages.push_str(content);
            }
        }
        "message" if value["role"] == "user" => {}
        "tool_use" if value["tool_name"].is_string() => answer.worked = true,
        "tool_result" if value["tool_id"].is_string() => {}
        "error" if value["severity"].is_string() => {
            let message = value["message"].as_str().unwrap_or("an error without a text");
            answer.notice = Some(AgentError::own(message));
        }
        "result" if value["stats"].is_object() => {
            answer.usage = Some(usage(&value["stats"]));
            if value["status"] == "error" {
                let message = value["error"]["message"].as_str().unwrap_or("an error without a text");
                answer.error = Some(failed(message));
            }
        }
        _ if value["response"].is_string() && value["stats"].is_object() => {
            answer.text = value["response"].as_str().map(str::to_owned);
            answer.usage = Some(usage(&value["stats"]));
        }
        _ => return false,
    }
    true
}

/// Returns the tool that a line uses.
pub(super) fn tool(value: &Value) -> Option<String> {
    let name = value["tool_name"].as_str().filter(|_| value["type"] == "tool_use")?;
    Some(tool_words(name, &value["parameters"]))
}

fn failed(message: &str) -> AgentError {
    let kind = AgentError::of_service(None, message).kind;
    let message = message.trim().trim_start_matches("[API Error:").trim_start();
    AgentError { message: unwrap_message(message).trim_end_matches(']').to_owned(), kind }
}

/// Its one object goes to standard error where it failed, after any other output there (INTERFACE 3.3).
pub(super) fn on_stderr(stderr: &Captured) -> Option<AgentError> {
    let bytes = stderr.joined();
    let text = std::str::from_utf8(&bytes).ok()?;
    let starts =
        text.match_indices('{').map(|(at, _)| at).filter(|at| *at == 0 || text[..*at].ends_with('\n'));
    let value: Value =
        starts.take(STDERR_OBJECTS_MAX).find_map(|at| read_foreign_json(&text.as_bytes()[at..]).ok())?;
    let error = &value["error"];
    let message = error["message"].as_str()?.to_owned();
    let is_login = matches!(error["code"].as_u64(), Some(41 | 55 | 401 | 403));
    Some(AgentError::of_service(is_login.then_some(401), message))
}

fn usage(stats: &Value) -> Usage {
    let models = stats["models"].as_object();
    let busiest =
        models.and_then(|models| models.iter().max_by_key(|(_, model)| count(&model["total_tokens"])));
    let (input, output) = (count(&stats["input_tokens"]), count(&stats["output_tokens"]));
    Usage {
        input_tokens: input,
        cached_input_tokens: count(&stats["cached"]),
        // The sum of output alone leaves thoughts out, which cost the same.
        output_tokens: count(&stats["total_tokens"]).saturating_sub(input).max(output),
        model: busiest.map(|(name, _)| name.clone()),
        ..Usage::default()
    }
}
