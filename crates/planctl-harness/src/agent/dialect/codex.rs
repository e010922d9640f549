//! The output of Codex: `exec --json`.

use planctl_engine::Usage;
use serde_json::Value;

use super::trouble::{AgentError, unwrap_message};
use super::{Answer, count, tool_words};

/// Reads a line; says whether it is one of Codex's.
pub(super) fn parse_line(answer: &mut Answer, value: &Value) -> bool {
    match value["type"].as_str().unwrap_or_default() {
        "thread.started" => answer.session = value["thread_id"].as_str().map(str::to_owned),
        "turn.started" => {}
        "item.started" | "item.updated" | "item.completed" => {
            let item = &value["item"];
            let kind = item["type"].as_str().unwrap_or_default();
            answer.worked |= tool(value).is_some();
            if kind != "error" {
                answer.notice = None;
            }
            if kind == "agent_message" && value["type"] == "item.completed" {
                answer.text = item["text"].as_str().map(str::to_owned);
            }
        }
        "turn.completed" => {
            let usage = &value["usage"];
            (answer.error, answer.notice) = (None, None);
            answer.usage = Some(Usage {
                input_tokens: count(&usage["input_tokens"]),
                cached_input_tokens: count(&usage["cached_input_tokens"]),
                output_tokens: count(&usage["output_tokens"]),
                ..Usage::default()
            });
        }
        "error" if value["message"].is_string() => {
            let message = value["message"].as_str().unwrap_or_default();
            answer.notice = Some(AgentError::of_service(None, unwrap_message(message)));
        }
        "turn.failed" => {
            let message = value["error"]["message"].as_str().unwrap_or("the turn failed");
            // The kind stands in the words around the message as often as in it.
            let kind = AgentError::of_service(None, message).kind;
            answer.error = Some(AgentError { message: unwrap_message(message), kind });
        }
        _ => return false,
    }
    true
}

/// Returns the tool that a line uses.
pub(super) fn tool(value: &Value) -> Option<String> {
    let item = &value["item"];
    let kind = item["type"].as_str()?;
    match kind {
        "command_execution" => Some(tool_words("Bash", item)),
        "file_change" => {
            let path = item["changes"][0]["path"].as_str();
            Some(path.map_or_else(|| "Edit".to_owned(), |path| format!("Edit({path})")))
        }
        "mcp_tool_call" | "web_search" | "collab_tool_call" => {
            Some(item["tool"].as_str().unwrap_or(kind).to_owned())
        }
        _ => None,
    }
}
