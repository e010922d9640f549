//! The result of a tool as a step's output.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::fault::Fault;

/// Returns the value of a result: its structured content, else its only text, else a list of what it holds.
pub(crate) fn value_of(result: CallToolResult) -> Result<Value, Fault> {
    if result.is_error == Some(true) {
        let texts: Vec<String> = result.content.iter().filter_map(text_of).map(str::to_owned).collect();
        let structured = result.structured_content.map(|value| value.to_string());
        let said = if texts.is_empty() { structured.unwrap_or_default() } else { texts.join("\n") };
        return Err(Fault::from_tool(&said));
    }
    if let Some(value) = result.structured_content {
        return Ok(value);
    }
    if let [only] = result.content.as_slice()
        && let Some(text) = text_of(only)
    {
        return Ok(Value::String(text.to_owned()));
    }
    Ok(Value::Array(result.content.iter().map(block).collect()))
}

/// Reads a text as the JSON that it may be, so that the results of a loop are one list.
pub(crate) fn read(value: Value) -> Value {
    let text = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(value)
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    let ContentBlock::Text(text) = block else { return None };
    Some(&text.text)
}

fn block(block: &ContentBlock) -> Value {
    match text_of(block) {
        Some(text) => Value::from(text),
        None => serde_json::to_value(block).unwrap_or(Value::Null),
    }
}
