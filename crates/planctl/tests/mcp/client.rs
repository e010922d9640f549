//! A client by script: starts the real server, speaks the protocol, and waits for answers, never for time.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

use crate::support::{Place, WAIT_MAX};

/// The revision with a handshake and sessions.
pub const OLDER: &str = "2025-11-25";
/// The revision whose requests stand alone.
pub const NEWER: &str = "2026-07-28";

/// A server with the client's end of it.
pub struct Client {
    server: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    requests: i64,
    /// Says that each request describes itself, in place of a handshake.
    stands_alone: bool,
    /// The abilities that the client declares.
    capabilities: Value,
}

impl Client {
    /// Starts a server and shakes hands, by the older revision.
    pub fn new(place: &Place) -> Client {
        let mut client = Client::silent(place, &[]);
        client.shake_hands();
        client
    }

    /// Starts a server that is told nothing yet.
    pub fn silent(place: &Place, flags: &[&str]) -> Client {
        let mut command = server(place);
        command.args(flags);
        Client::started(command)
    }

    /// Starts a server whose log goes into a file.
    pub fn logging(place: &Place, log: &Path) -> Client {
        let mut command = server(place);
        command.env("PLANCTL_LOG", "planctl_mcp=debug").stderr(File::create(log).unwrap());
        Client::started(command)
    }

    /// Starts a server as a worker's process does.
    pub fn inside_worker(place: &Place) -> Client {
        let mut command = server(place);
        command.env("PLANCTL_ITEM_ID", "some-item");
        Client::started(command)
    }

    fn started(mut command: Command) -> Client {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line).expect("each line is a message");
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        let input = server.stdin.take();
        Client { server, input, answers, requests: 0, stands_alone: false, capabilities: json!({}) }
    }

    /// Starts a server whose client speaks the newer revision.
    pub fn newer(place: &Place) -> Client {
        let mut client = Client::silent(place, &[]);
        client.stands_alone = true;
        client
    }

    /// Says from here on that the client shows forms to a person.
    pub fn with_forms(mut self) -> Client {
        self.capabilities = forms();
        self
    }

    pub fn shake_hands(&mut self) -> Value {
        let hello = json!({
            "protocolVersion": OLDER, "capabilities": self.capabilities, "clientInfo": { "name": "script", "version": "1" },
        });
        let answer = self.ask("initialize", hello);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    pub fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    /// Sends a line as it is.
    pub fn send_raw(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and returns the whole answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer_to(id)
    }

    /// Sends a request and returns its id.
    pub fn begin(&mut self, method: &str, mut params: Value) -> i64 {
        self.requests += 1;
        let id = self.requests;
        if self.stands_alone {
            params["_meta"] = newer_meta_of(&self.capabilities);
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for a request of the server's.
    pub fn asked(&self, method: &str) -> Value {
        loop {
            let request = self.answers.recv_timeout(WAIT_MAX).expect("the server asks");
            if request["method"] == method {
                return request;
            }
        }
    }

    /// Waits for the answer to a request, past those to others.
    pub fn answer_to(&self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let answer = self.answers.recv_timeout(WAIT_MAX).expect("the server answers");
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Calls a tool; returns whether it was refused, and its content.
    pub fn call(&mut self, tool: &str, arguments: Value) -> (bool, Value) {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let content = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), content, "the text says the same");
        (result["isError"] == true, content)
    }

    /// Calls a tool that does it.
    pub fn must(&mut self, tool: &str, arguments: Value) -> Value {
        let (is_refused, content) = self.call(tool, arguments);
        assert!(!is_refused, "{tool}: {content}");
        content
    }

    /// Calls a tool that refuses; returns the code and the reason.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let (is_refused, content) = self.call(tool, arguments);
        assert!(is_refused, "{tool}: {content}");
        let text = |name: &str| content[name].as_str().unwrap().to_owned();
        (text("code"), text("error"))
    }

    /// Returns the names of the tools that are offered.
    pub fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Hangs up, and waits for the server's end.
    pub fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        self.server.wait().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that failed in the middle leaves no server behind.
        drop(self.input.take());
        let _status = self.server.wait();
    }
}

fn server(place: &Place) -> Command {
    let mut command = place.foreign(env!("CARGO_BIN_EXE_planctl"));
    command.arg("mcp");
    command
}

/// The description of itself that a request of the newer revision carries.
pub fn newer_meta() -> Value {
    newer_meta_of(&json!({}))
}

/// The same, of a client that can do these things.
pub fn newer_meta_of(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientInfo": { "name": "script", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The abilities of a client that shows forms to a person.
pub fn forms() -> Value {
    json!({ "elicitation": {} })
}
