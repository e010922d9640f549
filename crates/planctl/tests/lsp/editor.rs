//! An editor by script: starts the real server, speaks the protocol, and waits for messages, never for time.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// A wait this long has found a hang.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A server with the editor's end of it.
pub struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    inbox: Receiver<Value>,
    /// Messages that came and were not asked for yet.
    kept: Vec<Value>,
    folder: tempfile::TempDir,
    requests: i64,
}

impl Editor {
    /// Starts a server that is told nothing yet.
    pub fn silent() -> Editor {
        let folder = tempfile::Builder::new().prefix("planctl-lsp-").tempdir().unwrap();
        for name in ["work/plans", "work/docs", "home"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_planctl"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder.path().join("home"));
        command.args(["lsp", "--stdio"]).current_dir(folder.path().join("work"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        let (sender, inbox) = mpsc::channel();
        thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = server.stdin.take();
        Editor { server, input, inbox, kept: Vec::new(), folder, requests: 0 }
    }

    /// Starts a server and introduces itself, with the position encodings it knows.
    pub fn new(encodings: &[&str]) -> Editor {
        let mut editor = Editor::silent();
        let answer = editor.initialize(encodings);
        let wanted = if encodings.contains(&"utf-8") { "utf-8" } else { "utf-16" };
        assert_eq!(answer["capabilities"]["positionEncoding"], wanted);
        editor
    }

    pub fn initialize(&mut self, encodings: &[&str]) -> Value {
        let root = format!("file://{}", self.path("").display());
        let answer = self.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "rootUri": root,
                "workspaceFolders": [{ "uri": root.trim_end_matches('/'), "name": "work" }],
                "capabilities": {
                    "general": { "positionEncodings": encodings },
                    "window": { "workDoneProgress": true },
                },
            }),
        );
        self.notify("initialized", json!({}));
        answer
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work").join(name)
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    pub fn send_body(&mut self, body: &str) {
        self.send_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send_body(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request; returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.requests += 1;
        let id = self.requests;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_body(&message.to_string());
        id
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: i64) -> Result<Value, (i64, String)> {
        let answer = self.wait(|message| message["id"] == id && message.get("method").is_none());
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => {
                Err((error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned()))
            }
        }
    }

    pub fn try_request(&mut self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let id = self.ask(method, params);
        self.answer(id)
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.try_request(method, params).unwrap()
    }

    /// Waits for a message, what came before included.
    pub fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_it) {
            return self.kept.remove(at);
        }
        loop {
            let message = self.inbox.recv_timeout(WAIT_MAX).expect("the server says what is waited for");
            if is_it(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// Waits for a notification.
    pub fn notified(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method)["params"].clone()
    }

    /// Returns the notifications of a kind that have come so far.
    pub fn came(&mut self, method: &str) -> Vec<Value> {
        self.kept.extend(self.inbox.try_iter());
        self.kept.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    pub fn open(&mut self, name: &str, version: i32, text: &str) {
        let document =
            json!({ "uri": self.uri(name), "languageId": "markdown", "version": version, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    pub fn change(&mut self, name: &str, version: i32, changes: Value) {
        let document = json!({ "uri": self.uri(name), "version": version });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.notify("textDocument/didChange", params);
    }

    /// Waits for what is found in a version of a file.
    pub fn findings(&mut self, name: &str, version: i32) -> Vec<Value> {
        let uri = self.uri(name);
        let published = self.wait(|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && message["params"]["version"] == version
        });
        published["params"]["diagnostics"].as_array().unwrap().clone()
    }

    /// Opens a file and returns what is found in it.
    pub fn opened(&mut self, name: &str, text: &str) -> Vec<Value> {
        self.open(name, 1, text);
        self.findings(name, 1)
    }

    /// Asks about a place in a file.
    pub fn at(&mut self, method: &str, name: &str, position: (u32, u32)) -> Value {
        let position = json!({ "line": position.0, "character": position.1 });
        let uri = self.uri(name);
        self.request(method, json!({ "textDocument": { "uri": uri }, "position": position }))
    }

    /// Asks about a file.
    pub fn about(&mut self, method: &str, name: &str) -> Value {
        let uri = self.uri(name);
        self.request(method, json!({ "textDocument": { "uri": uri } }))
    }

    /// Closes the pipe.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits for the server to end.
    pub fn ended(&mut self) -> ExitStatus {
        self.server.wait().unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // The server ends by itself when its input does.
        self.input = None;
        let ended = self.server.wait();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        length = line.trim().strip_prefix("Content-Length: ")?.parse().ok()?;
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
