//! A model service on loopback that speaks to agents as the vendors' services do, does what the prompt says, and counts what
//! it tells of tokens: Anthropic Messages, OpenAI Responses and chat completions, Gemini; as a stream and at once.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// How the service behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manner {
    /// Uses the agent's tools as the prompt says.
    #[default]
    Works,
    /// Says that it is done and does nothing.
    Lies,
    /// Lies until the prompt tells of a failure.
    LiesAtFirst,
    /// Answers each request with this status.
    Refuses(u16),
    /// Answers with this status once a tool was used, and so after the work, or in the middle of it.
    RefusesAfterTools(u16),
    /// Accepts a request and never answers.
    Hangs,
    /// Plays the acts of a script, one at each request that offers tools.
    Scripted,
}

/// One act of a scripted session.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Writes a file with a tool of the agent's own.
    Writes(&'static str, &'static str),
    /// Runs a command in the agent's shell.
    Runs(&'static str),
    /// Runs a command, and the service tells that the agent's context is full: it makes it shorter then, by one request more.
    Fills(&'static str),
    /// Calls a tool of an MCP server, with arguments as JSON.
    Calls(&'static str, &'static str),
    /// Ends the turn with these words.
    Says(&'static str),
    /// Keeps the agent waiting until the test lets it go on; the next act is the answer.
    Waits,
}

/// The acts that are left, and who waits.
#[derive(Default)]
struct Script {
    acts: VecDeque<Act>,
    waiting: bool,
    released: bool,
}

/// The tokens that the service told of, and the requests that it had.
#[derive(Clone, Default, Debug)]
pub struct Told {
    pub requests: u64,
    pub input: u64,
    pub output: u64,
    /// The text of each request that is no side call.
    pub prompts: Vec<String>,
    /// The credentials that came, by header.
    pub keys: Vec<String>,
    /// The tools that the newest request offers.
    pub tools: Vec<String>,
    /// Paths that nobody serves.
    pub strange: Vec<String>,
    /// The requests of a scripted session, whole.
    pub bodies: Vec<String>,
}

const INPUT: u64 = 1200;
/// Tokens that fill a context; those that agents have by themselves are larger, and the scenario makes them smaller.
const FULL: u64 = 195_000;
const CACHED: u64 = 200;
const OUTPUT: u64 = 15;
const THOUGHTS: u64 = 9;

/// A running service.
pub struct Service {
    pub port: u16,
    pub told: Arc<Mutex<Told>>,
    script: Arc<(Mutex<Script>, Condvar)>,
}

impl Service {
    pub fn start(manner: Manner) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = Arc::new(Mutex::new(Told::default()));
        let script = Arc::new((Mutex::new(Script::default()), Condvar::new()));
        let shared = (told.clone(), script.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (told, script) = shared.clone();
                std::thread::spawn(move || serve(stream, manner, &told, &script));
            }
        });
        Service { port, told, script }
    }

    /// Gives it a new script; whoever waits in the one before waits for ever.
    pub fn script(&self, acts: &[Act]) {
        let script = Script { acts: acts.iter().copied().collect(), ..Script::default() };
        *self.script.0.lock().unwrap() = script;
    }

    /// Says whether no act of the script is left.
    pub fn is_played(&self) -> bool {
        let script = self.script.0.lock().unwrap();
        script.acts.is_empty() && !script.waiting
    }

    /// Waits until the agent has come to where it is kept waiting; says whether it did.
    pub fn comes_to_wait(&self, longest: Duration) -> bool {
        let (script, news) = &*self.script;
        let script = script.lock().unwrap();
        let (script, _) = news.wait_timeout_while(script, longest, |script| !script.waiting).unwrap();
        script.waiting
    }

    /// Lets the agent go on that is kept waiting.
    pub fn release(&self) {
        self.script.0.lock().unwrap().released = true;
        self.script.1.notify_all();
    }

    pub fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dialect {
    Messages,
    Responses,
    Chat,
    Gemini,
}

/// Takes the next act of a script; an agent that is kept waiting waits here.
fn next_act(script: &(Mutex<Script>, Condvar)) -> Option<Act> {
    let (script, news) = script;
    let mut script = script.lock().unwrap();
    if matches!(script.acts.front(), Some(Act::Waits)) {
        script.acts.pop_front();
        script.waiting = true;
        news.notify_all();
        script = news.wait_while(script, |script| !script.released).unwrap();
        (script.waiting, script.released) = (false, false);
    }
    script.acts.pop_front()
}

/// A request, whatever its dialect.
struct Request {
    dialect: Dialect,
    body: Value,
    is_stream: bool,
    /// The words of its user.
    text: String,
    tools: Vec<String>,
    /// How many tools were used already.
    results: usize,
    /// The tokens of input that its answer tells of.
    input: u64,
}

/// The model's answer, whatever the dialect.
enum Turn {
    Says(String),
    Uses(String, Value),
}

fn serve(stream: TcpStream, manner: Manner, told: &Mutex<Told>, script: &(Mutex<Script>, Condvar)) {
    let Ok(other) = stream.try_clone() else { return };
    let (mut reader, mut stream) = (BufReader::new(other), stream);
    let Some((path, body, keys)) = receive(&mut reader) else { return };
    let dialect = if path.starts_with("GET ") {
        return send(&mut stream, 426, "{}");
    } else if path.contains("/messages/count_tokens") {
        return send(&mut stream, 200, &json!({"input_tokens": 10}).to_string());
    } else if path.contains("/messages") {
        Dialect::Messages
    } else if path.contains("/responses") {
        Dialect::Responses
    } else if path.contains("/chat/completions") {
        Dialect::Chat
    } else if path.contains("enerateContent") {
        Dialect::Gemini
    } else {
        told.lock().unwrap().strange.push(path);
        return send(&mut stream, 404, r#"{"error":{"message":"nothing here"}}"#);
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut request = Request::read(dialect, body, path.contains("stream"));
    {
        let mut told = told.lock().unwrap();
        told.keys.extend(keys);
        told.prompts.push(request.text.clone());
        told.tools.clone_from(&request.tools);
        if manner == Manner::Scripted && request.is_of_session() {
            told.bodies.push(request.body.to_string());
        }
    }
    let refusal = match manner {
        Manner::Hangs => {
            std::thread::sleep(Duration::from_secs(600));
            return;
        }
        Manner::Refuses(status) => Some(status),
        Manner::RefusesAfterTools(status) if request.results > 0 => Some(status),
        Manner::RefusesAfterTools(_)
        | Manner::Works
        | Manner::Lies
        | Manner::LiesAtFirst
        | Manner::Scripted => None,
    };
    if let Some(status) = refusal {
        return send(&mut stream, status, &failure(dialect, status).to_string());
    }
    let turn = if manner == Manner::Scripted && request.is_of_session() {
        let act = next_act(script);
        if matches!(act, Some(Act::Fills(_))) {
            request.input = FULL;
        }
        request.turn_of(act)
    } else {
        request.turn(manner)
    };
    {
        let mut told = told.lock().unwrap();
        told.requests += 1;
        told.input += request.input;
        told.output += OUTPUT + if dialect == Dialect::Gemini { THOUGHTS } else { 0 };
    }
    let events = request.events(&turn);
    match request.is_stream {
        true => send_events(&mut stream, &events),
        false => send(&mut stream, 200, &request.whole(&turn).to_string()),
    }
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>, Vec<String>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?, words.next()?);
    // A client that asks for a WebSocket is told that there is none.
    let path = if method == "GET" { format!("GET {path}") } else { path.to_owned() };
    let (mut length, mut is_chunked, mut keys) = (0, false, Vec::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        let (name, value) = (name.to_lowercase(), value.trim());
        match name.as_str() {
            "content-length" => length = value.parse().ok()?,
            "transfer-encoding" => is_chunked = value.contains("chunked"),
            "authorization" | "x-api-key" | "x-goog-api-key" | "x-gateway" => {
                keys.push(format!("{name}: {value}"))
            }
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    } else {
        body.resize(length, 0);
        reader.read_exact(&mut body).ok()?;
    }
    Some((path, body, keys))
}

// The agent may be gone, which is no concern of the service.
fn send(stream: &mut TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok();
}

fn send_events(stream: &mut TcpStream, events: &[(Option<String>, String)]) {
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
    for (name, data) in events {
        if let Some(name) = name {
            text.push_str(&format!("event: {name}\n"));
        }
        text.push_str(&format!("data: {data}\n\n"));
    }
    stream.write_all(text.as_bytes()).ok();
}

fn failure(dialect: Dialect, status: u16) -> Value {
    let message = format!("fake failure {status}");
    match dialect {
        Dialect::Messages => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                429 => "rate_limit_error",
                400 => "invalid_request_error",
                _ => "api_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Dialect::Responses | Dialect::Chat => {
            json!({"error": {"message": message, "type": "error", "code": null}})
        }
        Dialect::Gemini => json!({"error": {"code": status, "message": message, "status": match status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            429 => "RESOURCE_EXHAUSTED",
            _ => "INTERNAL",
        }}}),
    }
}

impl Request {
    fn read(dialect: Dialect, body: Value, path_streams: bool) -> Request {
        let is_stream = body["stream"] == true || (dialect == Dialect::Gemini && path_streams);
        let (mut text, mut results) = (String::new(), 0);
        let turns = match dialect {
            Dialect::Messages | Dialect::Chat => &body["messages"],
            Dialect::Responses => &body["input"],
            Dialect::Gemini => &body["contents"],
        };
        for turn in turns.as_array().into_iter().flatten() {
            let is_tool_output = turn["role"] == "tool"
                || turn["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
            results += usize::from(is_tool_output);
            let content = if dialect == Dialect::Gemini { &turn["parts"] } else { &turn["content"] };
            let is_user = turn["role"] == "user";
            if let Some(words) = content.as_str().filter(|_| is_user) {
                text.push_str(words);
            }
            for part in content.as_array().into_iter().flatten() {
                results += usize::from(part["type"] == "tool_result" || part["functionResponse"].is_object());
                if let Some(words) = part["text"].as_str().filter(|_| is_user) {
                    text.push_str(words);
                    text.push('\n');
                }
            }
        }
        let tools = body["tools"].as_array().into_iter().flatten();
        let tools = tools.flat_map(|tool| {
            let declared = tool["functionDeclarations"].as_array().into_iter().flatten();
            let own = [&tool["name"], &tool["function"]["name"]].into_iter();
            let within = tool["tools"].as_array().into_iter().flatten();
            let names: Vec<String> = own
                .chain(declared.chain(within).map(|tool| &tool["name"]))
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect();
            names
        });
        let tools = tools.collect();
        Request { dialect, is_stream, text, tools, results, input: INPUT, body }
    }

    /// Does what the prompt says: `Write the file NAME`, then "run this command: `…`", then words.
    fn turn(&self, manner: Manner) -> Turn {
        if self.body["generationConfig"]["responseMimeType"] == "application/json" {
            let choice = json!({"reasoning": "x", "model_choice": "flash", "complexity_reasoning": "x", "complexity_score": 10});
            return Turn::Says(choice.to_string());
        }
        let after = |words: &str| self.text.rfind(words).map(|at| &self.text[at + words.len()..]);
        let file = after("Write the file ").and_then(|rest| rest.split_whitespace().next());
        let command = after("Run this command: `").and_then(|rest| rest.split('`').next());
        let word = after("this one word and nothing else: ").and_then(|rest| rest.split_whitespace().next());
        let done = format!("Done. {}", word.unwrap_or_default());
        let lies = match manner {
            Manner::Lies => true,
            Manner::LiesAtFirst => !self.text.contains("What failed"),
            Manner::Works
            | Manner::Refuses(_)
            | Manner::RefusesAfterTools(_)
            | Manner::Hangs
            | Manner::Scripted => false,
        };
        if lies {
            return Turn::Says(done);
        }
        let content = word.unwrap_or("Hello");
        if let (Some(file), true) = (file, self.tools.is_empty() && self.is_of_aider()) {
            return Turn::Says(format!("{file}\n```\n{content}\n```\n"));
        }
        let file = file.map(|file| file.trim_end_matches([',', '.']));
        let mut wanted = Vec::new();
        wanted.extend(file.and_then(|file| self.write(file, content)));
        wanted.extend(command.and_then(|command| self.run(command)));
        match wanted.into_iter().nth(self.results) {
            Some((name, input)) => Turn::Uses(name, input),
            None => Turn::Says(done),
        }
    }

    /// Says whether it goes on with a session; titles and choices of a model are side calls, which offer no tools.
    fn is_of_session(&self) -> bool {
        !self.tools.is_empty() && self.body["generationConfig"]["responseMimeType"] != "application/json"
    }

    /// Does what a script says; its end is a few words.
    fn turn_of(&self, act: Option<Act>) -> Turn {
        let used = match act {
            Some(Act::Writes(file, text)) => self.write(file, text),
            Some(Act::Runs(command) | Act::Fills(command)) => self.run(command),
            Some(Act::Calls(tool, arguments)) => self.call(tool, arguments),
            Some(Act::Says(words)) => return Turn::Says(words.to_owned()),
            Some(Act::Waits) | None => return Turn::Says("I have no more to say.".to_owned()),
        };
        used.map_or_else(
            || Turn::Says("I have no such tool.".to_owned()),
            |(name, input)| Turn::Uses(name, input),
        )
    }

    fn is_of_aider(&self) -> bool {
        self.body["messages"].to_string().contains("SEARCH/REPLACE")
            || self.body["messages"].to_string().contains("file listing")
    }

    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name)
    }

    fn write(&self, file: &str, content: &str) -> Option<(String, Value)> {
        let folder = self.folder();
        let path = format!("{folder}{file}");
        for (name, input) in [
            ("Write", json!({"file_path": path, "content": format!("{content}\n")})),
            ("write_file", json!({"file_path": path, "content": format!("{content}\n")})),
            ("write", json!({"filePath": path, "content": format!("{content}\n")})),
        ] {
            if self.has(name) {
                return Some((name.to_owned(), input));
            }
        }
        self.run(&format!("echo '{content}' > {file}"))
    }

    /// Calls a tool of an MCP server: some agents put the server's name before the tool's.
    fn call(&self, tool: &str, arguments: &str) -> Option<(String, Value)> {
        let name =
            self.tools.iter().find(|name| name.as_str() == tool || name.ends_with(&format!("__{tool}")));
        Some((name?.clone(), serde_json::from_str(arguments).unwrap()))
    }

    /// Returns the namespace of a tool, for agents that keep the tools of a server in one.
    fn namespace(&self, name: &str) -> Option<&Value> {
        let all = self.body["tools"].as_array()?;
        let holds =
            |space: &&Value| space["tools"].as_array().into_iter().flatten().any(|tool| tool["name"] == name);
        all.iter().find(holds).map(|space| &space["name"])
    }

    /// Returns the working folder that the agent names in its prompt, where its tools need whole paths.
    fn folder(&self) -> String {
        let body = self.body.to_string();
        let found =
            ["Working directory: ", "working directory: ", "current working directory:", "directory: "];
        let at = found.into_iter().find_map(|words| body.find(words).map(|at| at + words.len()));
        let folder = at
            .map(|at| body[at..].split(['\\', '"', '\n', ' ', '<', '`']).find(|part| part.starts_with('/')));
        folder.flatten().map(|folder| format!("{folder}/")).unwrap_or_default()
    }

    fn run(&self, command: &str) -> Option<(String, Value)> {
        for (name, input) in [
            ("Bash", json!({"command": command, "description": "runs it"})),
            ("exec_command", json!({"cmd": command})),
            ("shell_command", json!({"command": command})),
            ("shell", json!({"command": ["bash", "-lc", command]})),
            ("run_shell_command", json!({"command": command, "description": "runs it"})),
            ("bash", json!({"command": command, "description": "runs it"})),
        ] {
            if self.has(name) {
                return Some((name.to_owned(), input));
            }
        }
        None
    }

    fn model(&self) -> Value {
        self.body["model"].clone()
    }

    /// Says whether it asks OpenAI's own service to make the context shorter; others ask the model in words.
    fn makes_shorter(&self) -> bool {
        let input = self.body["input"].as_array();
        input.and_then(|items| items.last()).is_some_and(|item| item["type"] == "compaction_trigger")
    }

    fn events(&self, turn: &Turn) -> Vec<(Option<String>, String)> {
        let id = format!("call_{}", self.results + 1);
        let named = |value: Value| (value["type"].as_str().map(str::to_owned), value.to_string());
        match self.dialect {
            Dialect::Messages => {
                let usage = json!({"input_tokens": self.input - CACHED, "cache_read_input_tokens": CACHED,
                    "cache_creation_input_tokens": 0, "output_tokens": 1});
                let (block, delta, reason) = match turn {
                    Turn::Says(text) => (
                        json!({"type": "text", "text": ""}),
                        json!({"type": "text_delta", "text": text}),
                        "end_turn",
                    ),
                    Turn::Uses(name, input) => (
                        json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": {}}),
                        json!({"type": "input_json_delta", "partial_json": input.to_string()}),
                        "tool_use",
                    ),
                };
                // Answers of one id count as pieces of one, and so does what they tell of tokens.
                let answer = format!("msg_{}", self.body["messages"].as_array().map_or(0, Vec::len));
                vec![
                    named(json!({"type": "message_start", "message": {"id": answer, "type": "message",
                        "role": "assistant", "model": self.model(), "content": [], "stop_reason": null,
                        "stop_sequence": null, "usage": usage}})),
                    named(json!({"type": "content_block_start", "index": 0, "content_block": block})),
                    named(json!({"type": "content_block_delta", "index": 0, "delta": delta})),
                    named(json!({"type": "content_block_stop", "index": 0})),
                    named(json!({"type": "message_delta", "delta": {"stop_reason": reason,
                        "stop_sequence": null}, "usage": {"output_tokens": OUTPUT}})),
                    named(json!({"type": "message_stop"})),
                ]
            }
            Dialect::Responses => {
                let item = match turn {
                    Turn::Says(text) if self.makes_shorter() => json!({"type": "compaction", "id": "cmp_1",
                        "encrypted_content": text}),
                    Turn::Says(text) => json!({"type": "message", "role": "assistant", "id": "msg_1",
                        "content": [{"type": "output_text", "text": text}]}),
                    Turn::Uses(name, input) => {
                        let mut call = json!({"type": "function_call", "id": "fc_1", "call_id": id,
                            "name": name, "arguments": input.to_string()});
                        if let Some(space) = self.namespace(name) {
                            call["namespace"] = space.clone();
                        }
                        call
                    }
                };
                let usage = json!({"input_tokens": self.input, "input_tokens_details": {"cached_tokens": CACHED},
                    "output_tokens": OUTPUT, "output_tokens_details": {"reasoning_tokens": THOUGHTS},
                    "total_tokens": self.input + OUTPUT});
                vec![
                    named(json!({"type": "response.created", "response": {"id": "resp_1"}})),
                    named(json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
                    named(
                        json!({"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}),
                    ),
                ]
            }
            Dialect::Chat => {
                let delta = match turn {
                    Turn::Says(text) => json!({"role": "assistant", "content": text}),
                    Turn::Uses(name, input) => json!({"role": "assistant", "tool_calls": [{"index": 0,
                        "id": id, "type": "function",
                        "function": {"name": name, "arguments": input.to_string()}}]}),
                };
                let reason = if matches!(turn, Turn::Says(_)) { "stop" } else { "tool_calls" };
                let chunk = |choices: Value| {
                    json!({"id": "c_1", "object": "chat.completion.chunk",
                    "created": 1, "model": self.model(), "choices": choices})
                };
                let mut last = chunk(json!([]));
                last["usage"] = chat_usage();
                vec![
                    (None, chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])).to_string()),
                    (None, chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}])).to_string()),
                    (None, last.to_string()),
                    (None, "[DONE]".to_owned()),
                ]
            }
            Dialect::Gemini => vec![(None, self.whole(turn).to_string())],
        }
    }

    fn whole(&self, turn: &Turn) -> Value {
        match self.dialect {
            Dialect::Messages => {
                let block = match turn {
                    Turn::Says(text) => json!({"type": "text", "text": text}),
                    Turn::Uses(name, input) => {
                        json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input})
                    }
                };
                json!({"id": "msg_1", "type": "message", "role": "assistant", "model": self.model(),
                    "content": [block], "stop_reason": "end_turn", "usage": {"input_tokens": INPUT - CACHED,
                    "cache_read_input_tokens": CACHED, "output_tokens": OUTPUT}})
            }
            Dialect::Responses => json!({"id": "resp_1", "output": [], "usage": {}}),
            Dialect::Chat => {
                let text = match turn {
                    Turn::Says(text) => text.clone(),
                    Turn::Uses(name, _) => name.clone(),
                };
                json!({"id": "c_1", "object": "chat.completion", "created": 1, "model": self.model(),
                    "choices": [{"index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text}}], "usage": chat_usage()})
            }
            Dialect::Gemini => {
                let part = match turn {
                    Turn::Says(text) => json!({"text": text}),
                    Turn::Uses(name, input) => json!({"functionCall": {"name": name, "args": input}}),
                };
                json!({"candidates": [{"index": 0, "finishReason": "STOP",
                    "content": {"role": "model", "parts": [part]}}],
                    "usageMetadata": {"promptTokenCount": INPUT, "cachedContentTokenCount": CACHED,
                    "candidatesTokenCount": OUTPUT, "thoughtsTokenCount": THOUGHTS,
                    "totalTokenCount": INPUT + OUTPUT + THOUGHTS}})
            }
        }
    }
}

fn chat_usage() -> Value {
    json!({"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED}})
}

/// Asks the service in every dialect, as a stream and at once, and compares what it told with what it counted.
pub fn answers_in_every_dialect() {
    let service = Service::start(Manner::Works);
    let prompt = "Write the file a.txt please.";
    let tool = json!({"name": "write", "parameters": {}});
    let asked = [
        (
            "/v1/messages",
            json!({"stream": true, "model": "m", "tools": [{"name": "Write"}],
            "messages": [{"role": "user", "content": prompt}]}),
            "toolu_call_1",
        ),
        (
            "/v1/responses",
            json!({"stream": true, "tools": [{"name": "exec_command"}],
            "input": [{"role": "user", "content": [{"text": prompt}]}]}),
            "function_call",
        ),
        (
            "/v1/chat/completions",
            json!({"stream": true, "tools": [{"type": "function", "function": tool}],
            "messages": [{"role": "user", "content": prompt}]}),
            "tool_calls",
        ),
        ("/v1/chat/completions", json!({"messages": [{"role": "user", "content": "Say it"}]}), "Done."),
        (
            "/v1beta/models/x:streamGenerateContent?alt=sse",
            json!({"tools": [{"functionDeclarations":
            [{"name": "write_file"}]}], "contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
            "functionCall",
        ),
    ];
    for (path, body, expected) in &asked {
        let mut stream = TcpStream::connect(("127.0.0.1", service.port)).unwrap();
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(expected), "{path}: {answer}");
    }
    let told = service.told();
    assert_eq!((told.requests, told.input), (5, 5 * INPUT));
    assert_eq!(told.output, 5 * OUTPUT + THOUGHTS);
}
