//! The forms in which models are called: messages, chat completions, embeddings. Structured output is asked for in the form's own way.

use planctl_config::{ModelApi, ModelConfig};
use planctl_planner::{Prompt, Tokens};
use serde_json::{Value, json};

/// An answer of a model.
pub(super) struct Said {
    /// Its text; JSON where the output was structured.
    pub(super) text: String,
    /// Its tokens, where the response has them.
    pub(super) tokens: Option<Tokens>,
}

/// Writes a call.
pub(super) fn request(api: ModelApi, config: &ModelConfig, prompt: &Prompt, is_structured: bool) -> Value {
    let mut body = match api {
        ModelApi::Messages => json!({
            "model": config.model,
            "max_tokens": config.max_tokens,
            "system": prompt.system,
            "messages": [{ "role": "user", "content": prompt.text }],
        }),
        ModelApi::Chat => json!({
            "model": config.model,
            "max_tokens": config.max_tokens,
            "messages": [
                { "role": "system", "content": prompt.system },
                { "role": "user", "content": prompt.text },
            ],
        }),
        ModelApi::Embeddings => to_embed(config, std::slice::from_ref(&prompt.text)),
    };
    if is_structured {
        match api {
            // The form's own way to hold an answer to a schema is a tool that has to be called.
            ModelApi::Messages => {
                body["tools"] = json!([{
                    "name": prompt.name,
                    "description": "Takes the answer.",
                    "input_schema": prompt.schema,
                }]);
                body["tool_choice"] = json!({ "type": "tool", "name": prompt.name });
            }
            ModelApi::Chat => {
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": { "name": prompt.name, "schema": prompt.schema, "strict": true },
                });
            }
            ModelApi::Embeddings => {}
        }
    }
    body
}

/// Writes a call for vectors.
pub(super) fn to_embed(config: &ModelConfig, texts: &[String]) -> Value {
    json!({ "model": config.model, "input": texts })
}

/// Reads the vectors of a response, in the order of the texts.
pub(super) fn vectors(value: &Value, count: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = value.get("data").and_then(Value::as_array).ok_or("it has no `data`")?;
    let mut vectors = vec![Vec::new(); count];
    for (at, one) in data.iter().enumerate() {
        let place = one.get("index").and_then(Value::as_u64).map_or(Some(at), |at| usize::try_from(at).ok());
        let numbers =
            one.get("embedding").and_then(Value::as_array).ok_or("a part of it has no `embedding`")?;
        let numbers: Option<Vec<f32>> =
            numbers.iter().map(|number| number.as_f64().map(|number| number as f32)).collect();
        let slot = place.and_then(|place| vectors.get_mut(place)).ok_or("it has more vectors than texts")?;
        *slot = numbers.ok_or("a vector of it holds something that is not a number")?;
    }
    let length = vectors.first().map_or(0, Vec::len);
    match length > 0 && vectors.iter().all(|vector| vector.len() == length) {
        true => Ok(vectors),
        false => Err("it has not one vector for each text, all of one length".to_owned()),
    }
}

/// Reads the tokens of texts that became vectors, where the response has them.
pub(super) fn tokens_of_texts(value: &Value) -> Option<Tokens> {
    let input = value.get("usage")?.get("prompt_tokens")?.as_u64()?;
    Some(Tokens { input, ..Tokens::default() })
}

/// Reads a response.
pub(super) fn answer(api: ModelApi, value: &Value, name: &str) -> Result<Said, String> {
    match api {
        ModelApi::Messages => read_messages(value, name),
        ModelApi::Chat => read_chat(value),
        ModelApi::Embeddings => Err("it has vectors and no answer".to_owned()),
    }
}

fn read_messages(value: &Value, name: &str) -> Result<Said, String> {
    let content = value.get("content").and_then(Value::as_array).ok_or("it has no `content`")?;
    let kind = |part: &&Value, kind: &str| part.get("type").and_then(Value::as_str) == Some(kind);
    let call = content
        .iter()
        .find(|part| kind(part, "tool_use") && part.get("name").and_then(Value::as_str) == Some(name));
    let text = match call.and_then(|part| part.get("input")) {
        Some(input) => input.to_string(),
        None => {
            let texts = content.iter().filter(|part| kind(part, "text"));
            texts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("")
        }
    };
    let usage = value.get("usage");
    let count = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    // The form counts tokens from the cache, and those that go into it, beside the input.
    let tokens = count("input_tokens").zip(count("output_tokens")).map(|(input, output)| {
        let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
        let cached = read.unwrap_or(0);
        let input = input.saturating_add(cached).saturating_add(written.unwrap_or(0));
        Tokens { input, cached, output, estimated: false }
    });
    Ok(Said { text, tokens })
}

fn read_chat(value: &Value) -> Result<Said, String> {
    let choices = value.get("choices").and_then(Value::as_array).ok_or("it has no `choices`")?;
    let message =
        choices.first().and_then(|choice| choice.get("message")).ok_or("its `choices` have no message")?;
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join(""),
        Some(_) | None => message.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let usage = value.get("usage");
    let count = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    let cached =
        usage.and_then(|usage| usage.pointer("/prompt_tokens_details/cached_tokens")).and_then(Value::as_u64);
    let tokens = count("prompt_tokens").zip(count("completion_tokens"));
    let tokens = tokens.map(|(input, output)| {
        let cached = cached.unwrap_or(0);
        Tokens { input, cached, output, estimated: false }
    });
    Ok(Said { text, tokens })
}
