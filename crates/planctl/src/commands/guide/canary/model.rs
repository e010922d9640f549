//! The model of a canary: a service on loopback that wants to write two files, and is done with whatever comes of it. It speaks as
//! the services do that the agents know: Anthropic Messages, OpenAI Responses and chat completions, Gemini.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The most bytes of a request; an agent tells its whole conversation in each.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A running service; it ends when it is dropped.
pub struct Model {
    address: String,
    heard: Arc<Mutex<Heard>>,
    serves: JoinHandle<()>,
}

/// The requests of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    /// How many there were.
    pub requests: u32,
    /// Says of each of the words that were to be listened for whether a request had them.
    pub words: [bool; 2],
}

/// The files that the model wants to write, and what it listens for.
#[derive(Clone)]
struct Script {
    files: [String; 2],
    words: [&'static str; 2],
}

impl Model {
    /// Starts a service that wants to write these files, one after the other, and listens for these words.
    pub async fn start(files: [PathBuf; 2], words: [&'static str; 2]) -> io::Result<Model> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let heard = Arc::new(Mutex::new(Heard::default()));
        let files = files.map(|file| file.to_string_lossy().into_owned());
        let (shared, script) = (heard.clone(), Script { files, words });
        let serves = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (heard, script) = (shared.clone(), script.clone());
                // An agent that hangs up has no answer to lose.
                tokio::spawn(async move { drop(serve(stream, &heard, &script).await) });
            }
        });
        Ok(Model { address, heard, serves })
    }

    /// The address before the paths of the services.
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Returns what was heard up to here.
    pub fn heard(&self) -> Heard {
        *locked(&self.heard)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serves.abort();
    }
}

/// Recovers a poisoned mutex: each change is whole.
fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wire form of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Messages,
    Responses,
    Chat,
    Gemini,
}

impl Form {
    fn of(path: &str) -> Option<Form> {
        let known = [
            ("/messages", Form::Messages),
            ("/responses", Form::Responses),
            ("/chat/completions", Form::Chat),
            ("enerateContent", Form::Gemini),
        ];
        known.into_iter().find(|(part, _)| path.contains(part)).map(|(_, form)| form)
    }
}

/// The answer of the model.
enum ModelTurn {
    Says(&'static str),
    /// Uses a tool, the first or the second time, by its name and with its input.
    Uses(usize, &'static str, Value),
}

async fn serve(stream: TcpStream, heard: &Mutex<Heard>, script: &Script) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (path, body) = received(&mut stream).await?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let form = Form::of(&path).filter(|_| !path.contains("count_tokens"));
    let (kind, text) = match form {
        Some(form) => {
            let is_stream = body["stream"] == true || path.contains("stream");
            let text = body.to_string();
            {
                let mut heard = locked(heard);
                heard.requests += 1;
                for (is_heard, words) in heard.words.iter_mut().zip(script.words) {
                    *is_heard |= text.contains(words);
                }
            }
            answer(form, &body, &script.turn(&body), is_stream)
        }
        None => ("application/json", json!({ "input_tokens": 10 }).to_string()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).await?;
    stream.shutdown().await
}

/// Reads a request: its path and its body.
async fn received(stream: &mut BufReader<TcpStream>) -> io::Result<(String, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    while is_chunked && body.len() < BODY_BYTES_MAX {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0).min(BODY_BYTES_MAX);
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).await?;
        if size == 0 {
            break;
        }
        body.extend_from_slice(&chunk[..size]);
    }
    if !is_chunked {
        body.resize(length.min(BODY_BYTES_MAX), 0);
        stream.read_exact(&mut body).await?;
    }
    Ok((path, body))
}

impl Script {
    /// Writes each file by a tool that the agent offers; then it is done. Titles and choices of a model offer none.
    fn turn(&self, body: &Value) -> ModelTurn {
        if body["generationConfig"]["responseMimeType"] == "application/json" {
            return ModelTurn::Says(r#"{"reasoning": "-", "model_choice": "flash"}"#);
        }
        let used = tools_used(body);
        let Some(file) = self.files.get(used) else { return ModelTurn::Says("Done.") };
        let line = format!("echo canary > \"{file}\"");
        let tools = [
            ("Write", json!({ "file_path": file, "content": "canary\n" })),
            ("write_file", json!({ "file_path": file, "content": "canary\n" })),
            ("write", json!({ "filePath": file, "content": "canary\n" })),
            ("exec_command", json!({ "cmd": line })),
            ("shell_command", json!({ "command": line })),
            ("shell", json!({ "command": ["bash", "-c", line] })),
        ];
        let offered = names(&body["tools"]);
        let found = tools.into_iter().find(|(name, _)| offered.contains(name));
        match found {
            Some((name, input)) => ModelTurn::Uses(used, name, input),
            None => ModelTurn::Says("Done."),
        }
    }
}

/// Returns the names of the tools that a request offers, whatever its form.
fn names(tools: &Value) -> Vec<&str> {
    let tools = tools.as_array().into_iter().flatten();
    let all = tools.flat_map(|tool| {
        let declared = tool["functionDeclarations"].as_array().into_iter().flatten();
        let own = [&tool["name"], &tool["function"]["name"]].into_iter();
        own.chain(declared.map(|tool| &tool["name"])).filter_map(Value::as_str).collect::<Vec<_>>()
    });
    all.collect()
}

/// Counts the results of tools that a request tells.
fn tools_used(body: &Value) -> usize {
    let turns = ["messages", "input", "contents"].map(|key| body[key].as_array().into_iter().flatten());
    let results = turns.into_iter().flatten().map(|turn| {
        let parts = ["content", "parts"].map(|key| turn[key].as_array().into_iter().flatten());
        let is_result = |part: &&Value| part["type"] == "tool_result" || part["functionResponse"].is_object();
        let is_whole = turn["role"] == "tool"
            || turn["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
        if is_whole { 1 } else { parts.into_iter().flatten().filter(is_result).count() }
    });
    results.sum()
}

/// Returns the type and the text of an answer.
fn answer(form: Form, body: &Value, turn: &ModelTurn, is_stream: bool) -> (&'static str, String) {
    let model = &body["model"];
    let events = match form {
        Form::Messages if !is_stream => return ("application/json", message(model, turn).to_string()),
        Form::Chat if !is_stream => return ("application/json", completion(model, turn).to_string()),
        Form::Gemini if !is_stream => return ("application/json", candidate(turn).to_string()),
        Form::Messages => messages_reply(model, turn),
        Form::Responses => responses_reply(turn),
        Form::Chat => chat_reply(model, turn),
        Form::Gemini => vec![candidate(turn)],
    };
    let mut text = String::new();
    for event in events {
        if let Some(name) = event["type"].as_str() {
            text.push_str(&format!("event: {name}\n"));
        }
        text.push_str(&format!("data: {event}\n\n"));
    }
    if form == Form::Chat {
        text.push_str("data: [DONE]\n\n");
    }
    ("text/event-stream", text)
}

fn message(model: &Value, turn: &ModelTurn) -> Value {
    let block = match turn {
        ModelTurn::Says(text) => json!({ "type": "text", "text": text }),
        ModelTurn::Uses(at, name, input) => {
            json!({ "type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": input })
        }
    };
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [block],
        "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 1 } })
}

fn messages_reply(model: &Value, turn: &ModelTurn) -> Vec<Value> {
    let (block, delta, reason) = match turn {
        ModelTurn::Says(text) => {
            (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }), "end_turn")
        }
        ModelTurn::Uses(at, name, input) => (
            json!({ "type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
    };
    vec![
        json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
            "model": model, "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn responses_reply(turn: &ModelTurn) -> Vec<Value> {
    let item = match turn {
        ModelTurn::Says(text) => json!({ "type": "message", "role": "assistant", "id": "msg_1",
            "content": [{ "type": "output_text", "text": text }] }),
        ModelTurn::Uses(at, name, input) => json!({ "type": "function_call", "id": format!("fc_{at}"),
            "call_id": format!("call_{at}"), "name": name, "arguments": input.to_string() }),
    };
    let usage = json!({ "input_tokens": 1, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 1,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 2 });
    vec![
        json!({ "type": "response.created", "response": { "id": "resp_1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "resp_1", "usage": usage } }),
    ]
}

fn completion(model: &Value, turn: &ModelTurn) -> Value {
    let text = match turn {
        ModelTurn::Says(text) => text,
        ModelTurn::Uses(_, name, _) => name,
    };
    json!({ "id": "c_1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": text } }] })
}

fn chat_reply(model: &Value, turn: &ModelTurn) -> Vec<Value> {
    let (delta, reason) = match turn {
        ModelTurn::Says(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        ModelTurn::Uses(at, name, input) => {
            let function = json!({ "name": name, "arguments": input.to_string() });
            let call =
                json!({ "index": 0, "id": format!("call_{at}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
    };
    let chunk = |choice: Value| json!({ "id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice] });
    vec![
        chunk(json!({ "index": 0, "delta": delta, "finish_reason": null })),
        chunk(json!({ "index": 0, "delta": {}, "finish_reason": reason })),
    ]
}

fn candidate(turn: &ModelTurn) -> Value {
    let part = match turn {
        ModelTurn::Says(text) => json!({ "text": text }),
        ModelTurn::Uses(_, name, input) => json!({ "functionCall": { "name": name, "args": input } }),
    };
    json!({ "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [part] } }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 } })
}
