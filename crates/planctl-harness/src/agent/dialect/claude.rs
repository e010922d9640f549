//! The output of Claude Code: `stream-json`.

use planctl_engine::Usage;
use serde_json::Value;

use super::trouble::AgentError;
use super::{Answer, DENIALS_MAX, are_figures, count, micro_usd, tool_words};

/// The figures of what one model used.
const OF_MODEL: [&str; 4] =
    ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
/// The figures of what all used.
const OF_SUM: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

/// Reads a line; says whether it is one of Claude's.
pub(super) fn parse_line(answer: &mut Answer, value: &Value) -> bool {
    match value["type"].as_str().unwrap_or_default() {
        "system" if value["session_id"].is_string() => {
            answer.session = value["session_id"].as_str().map(str::to_owned);
            if value["subtype"] == "api_retry" {
                answer.notice = Some(retry(value));
            }
        }
        "assistant" if value["message"]["content"].is_array() => {
            answer.notice = None;
            match value["error"].as_str() {
                Some(word) => answer.error = Some(client_error(value, word)),
                None => answer.worked |= tool(value).is_some(),
            }
        }
        "user" if value["session_id"].is_string() => {}
        "result" if value.get("total_cost_usd").is_some() => result(answer, value),
        _ => return false,
    }
    true
}

/// Returns the tool that a line uses.
pub(super) fn tool(value: &Value) -> Option<String> {
    let parts = value["message"]["content"].as_array().filter(|_| value["type"] == "assistant")?;
    let used = parts.iter().rfind(|part| part["type"] == "tool_use")?;
    Some(tool_words(used["name"].as_str()?, &used["input"]))
}

fn retry(value: &Value) -> AgentError {
    let status = value["error_status"].as_u64();
    let word = value["error"].as_str().unwrap_or("no answer");
    let code = status.map(|status| format!("{status} ")).unwrap_or_default();
    let tries = match (value["attempt"].as_u64(), value["max_retries"].as_u64()) {
        (Some(attempt), Some(most)) => format!(", try {attempt} of {most}"),
        _ => String::new(),
    };
    AgentError::of_service(status, format!("its service answers {code}{word}{tries}"))
}

/// Reads the error of a message that the client wrote in place of its model: a word for the kind, and a text for people.
fn client_error(value: &Value, word: &str) -> AgentError {
    let parts = value["message"]["content"].as_array().into_iter().flatten();
    let text: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    let message = if text.is_empty() { word.to_owned() } else { text.join(" ") };
    match word {
        "authentication_failed" | "billing_error" | "oauth_org_not_allowed" => {
            AgentError::of_service(Some(401), message)
        }
        "max_output_tokens" => AgentError::own(message),
        _ => AgentError::of_service(None, message),
    }
}

fn result(answer: &mut Answer, value: &Value) {
    let denials = value["permission_denials"].as_array().into_iter().flatten();
    answer.denials = denials.take(DENIALS_MAX).filter_map(denial).collect();
    answer.session = value["session_id"].as_str().map(str::to_owned);
    let structured = &value["structured_output"];
    answer.text = if structured.is_null() {
        value["result"].as_str().map(str::to_owned)
    } else {
        Some(structured.to_string())
    };
    answer.usage = usage(value);
    answer.notice = None;
    if value["is_error"] == true {
        answer.error = Some(error(answer, value));
        if value["result"].is_null() {
            answer.text = None;
        }
    }
}

/// Reads what was used; where a figure of it is none that can be, or none is there, the work is unmetered.
fn usage(value: &Value) -> Option<Usage> {
    let models = value["modelUsage"].as_object().filter(|models| !models.is_empty());
    let mut usage = Usage { micro_usd: micro_usd(&value["total_cost_usd"]), ..Usage::default() };
    let is_sound = match models {
        Some(models) => models.values().all(|model| are_figures(model, &OF_MODEL)),
        None => are_figures(&value["usage"], &OF_SUM),
    };
    if !is_sound || !are_figures(value, &["total_cost_usd"]) {
        return None;
    }
    match models {
        // Per model is right where the sum is not: after an exceeded budget it is all zero.
        Some(models) => {
            for model in models.values() {
                let [input, output, cached, created] = OF_MODEL.map(|name| count(&model[name]));
                usage.input_tokens += input + cached + created;
                usage.cached_input_tokens += cached;
                usage.output_tokens += output;
            }
            let busiest = models.iter().max_by_key(|(_, model)| count(&model["outputTokens"]));
            usage.model = busiest.map(|(name, _)| name.clone());
        }
        None => {
            let [input, output, cached, created] = OF_SUM.map(|name| count(&value["usage"][name]));
            usage.cached_input_tokens = cached;
            usage.input_tokens = input + cached + created;
            usage.output_tokens = output;
        }
    }
    Some(usage)
}

/// Reads the error of the end.
fn error(answer: &Answer, value: &Value) -> AgentError {
    let (status, subtype) = (value["api_error_status"].as_u64(), value["subtype"].as_str());
    let said = value["result"].as_str().filter(|text| !text.is_empty());
    let message = said.or(subtype).unwrap_or("an error without a text");
    match subtype {
        Some("error_max_budget_usd") => {
            AgentError::own("it stopped at its own limit of money, which planctl sets by the budget's rest")
        }
        Some("error_max_turns") => AgentError::own("it stopped at its own limit of turns"),
        _ if status.is_some() => AgentError::of_service(status, message),
        // The message before said what kind it is.
        _ if answer.error.is_some() => answer.error.clone().unwrap_or_else(|| AgentError::own(message)),
        _ if value["terminal_reason"] == "api_error" => AgentError::of_service(None, message),
        _ if message.starts_with("API Error") => AgentError::of_service(None, message),
        _ => AgentError::own(message),
    }
}

/// `Bash(rm -rf build)`, `Write(notes.md)`, `WebFetch`.
fn denial(value: &Value) -> Option<String> {
    let tool = value["tool_name"].as_str()?;
    Some(tool_words(tool, &value["tool_input"]))
}
