//! Calls over a daemon's socket, made so that everything may break in the middle of them.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer takes, a claim's wait included.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// The call.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub token: Option<&'a str>,
    pub key: Option<&'a str>,
    pub body: Option<String>,
}

/// An answer that came whole.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Value,
}

impl Reply {
    /// The last part of the problem's type, of a refusal.
    pub fn code(&self) -> &str {
        self.body["type"].as_str().and_then(|kind| kind.strip_prefix("/problems/")).unwrap_or_default()
    }

    /// Says that asking again is the right thing: the database is away, or the daemon is about to leave.
    pub fn is_passing(&self) -> bool {
        self.status >= 500 && self.code() != "defect" || self.code() == "under_way"
    }
}

/// The connection of one worker, which somebody else can cut.
#[derive(Default)]
pub struct Wire(Mutex<Option<UnixStream>>);

impl Wire {
    /// Cuts the call that is under way, as when its process is killed.
    pub fn cut(&self) {
        if let Some(stream) = self.0.lock().unwrap().take() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Sends a call; nothing where it broke before the whole answer was here, even if the daemon has done it.
    pub fn send(&self, socket: &Path, call: &Call<'_>) -> Option<Reply> {
        let mut stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).unwrap();
        *self.0.lock().unwrap() = stream.try_clone().ok();
        stream.write_all(written(call).as_bytes()).ok()?;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        self.0.lock().unwrap().take();
        read.ok()?;
        whole(&String::from_utf8_lossy(&bytes))
    }
}

fn written(call: &Call<'_>) -> String {
    let mut text =
        format!("{} {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n", call.method, call.path);
    if let Some(token) = call.token {
        text.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    if let Some(key) = call.key {
        text.push_str(&format!("idempotency-key: {key}\r\n"));
    }
    if let Some(body) = &call.body {
        text.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    text + "\r\n" + call.body.as_deref().unwrap_or_default()
}

/// Reads an answer, unless the connection broke within it.
fn whole(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    if body.len() < length.unwrap_or(0) {
        return None;
    }
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).ok()? };
    Some(Reply { status, body })
}

/// Sockets of the daemons; a caller takes another one each time.
#[derive(Clone, Debug)]
pub struct Sockets(pub Vec<PathBuf>);

impl Sockets {
    /// Sends a call to one daemon after another until it is answered; the call carries a key, or only looks.
    pub fn insist(&self, call: &Call<'_>) -> Reply {
        let wire = Wire::default();
        let began = std::time::Instant::now();
        for socket in self.0.iter().cycle() {
            match wire.send(socket, call) {
                Some(reply) if !reply.is_passing() => return reply,
                reply => assert!(
                    began.elapsed() < 2 * crate::support::WAIT_MAX,
                    "{} {} is not answered: {reply:?}",
                    call.method,
                    call.path
                ),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        unreachable!("there are daemons")
    }

    pub fn get(&self, path: &str) -> Value {
        let reply = self.insist(&Call { method: "GET", path, token: None, key: None, body: None });
        assert_eq!(reply.status, 200, "GET {path}: {reply:?}");
        reply.body
    }

    pub fn post(&self, path: &str, key: &str, body: &Value) -> Value {
        let body = Some(body.to_string());
        let reply = self.insist(&Call { method: "POST", path, token: None, key: Some(key), body });
        assert_eq!(reply.status, 200, "POST {path}: {reply:?}");
        reply.body
    }
}
