//! Messages to the editor: answers, findings, messages, progress.

use std::io::Write;
use std::sync::mpsc;
use std::thread;

use serde::Serialize;
use serde_json::{Value, json};

use super::frames;

/// A request that can't be answered, with the protocol's number.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    /// The number.
    pub code: i32,
    /// Why, for people.
    pub message: String,
}

impl Refusal {
    /// A message that is no JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// A message that makes no sense now.
    pub const INVALID_REQUEST: i32 = -32600;
    /// A request that is not known.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// A request with something missing.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A defect of planctl.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// A request before `initialize`.
    pub const NOT_INITIALIZED: i32 = -32002;
    /// A request that the editor took back.
    pub const CANCELLED: i32 = -32800;
    /// A request that failed for a reason that people can mend.
    pub const FAILED: i32 = -32803;

    /// Makes a refusal.
    pub fn new(code: i32, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

/// How much a message weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// Something is wrong.
    Error = 1,
    /// A person should look.
    Warning = 2,
    /// Good to know.
    Info = 3,
}

/// The editor at the other end.
pub struct Client {
    outbox: mpsc::Sender<Value>,
    requests: u64,
}

impl Client {
    /// Writes everything that is said to a stream, from a thread of its own: a slow reader holds up nobody. The returned
    /// thread ends when the client is dropped and all is written, or when nobody reads any more.
    pub fn new(mut output: impl Write + Send + 'static) -> (Client, thread::JoinHandle<()>) {
        let (outbox, inbox) = mpsc::channel::<Value>();
        let writer = thread::spawn(move || {
            for message in inbox {
                if let Err(error) = frames::write(&mut output, &message) {
                    tracing::debug!(%error, "the editor does not read any more");
                    return;
                }
            }
        });
        (Client { outbox, requests: 0 }, writer)
    }

    /// Answers a request.
    pub fn answer(&self, id: &Value, answer: Result<Value, Refusal>) {
        self.send(match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(Refusal { code, message }) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        });
    }

    /// Tells something.
    pub fn notify(&self, method: &str, params: impl Serialize) {
        match serde_json::to_value(params) {
            Ok(params) => self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })),
            Err(error) => tracing::error!(%error, method, "a notification can't be written as JSON"),
        }
    }

    /// Asks something; returns the id that the answer will carry.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = json!(format!("planctl-{}", self.requests));
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Shows a line where people see it.
    pub fn show(&self, weight: Weight, message: &str) {
        self.notify("window/showMessage", json!({ "type": weight as i32, "message": message }));
    }

    /// Writes to the editor's log.
    pub fn log(&self, weight: Weight, message: &str) {
        self.notify("window/logMessage", json!({ "type": weight as i32, "message": message }));
    }

    fn send(&self, message: Value) {
        if self.outbox.send(message).is_err() {
            tracing::debug!("nobody reads any more");
        }
    }
}
