//! A receiver of webhooks: an HTTP server on loopback that answers as it is told to and keeps what it got.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::listener::{Request, listen, read};
use crate::support::{Place, wait_until};

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Got {
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Inner {
    got: Vec<Got>,
    connections: usize,
    /// Its next answers; 200 where nothing is left.
    answers: VecDeque<String>,
}

/// The server; it ends with the test.
#[derive(Clone)]
pub struct Receiver {
    pub port: u16,
    inner: Arc<Mutex<Inner>>,
}

impl Receiver {
    pub fn new() -> Receiver {
        let inner = Arc::new(Mutex::new(Inner::default()));
        let shared = inner.clone();
        let port = listen("127.0.0.1:0", move |stream| {
            shared.lock().unwrap().connections += 1;
            answered(stream, &shared);
        });
        Receiver { port, inner }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?key=canary-of-the-address", self.port)
    }

    /// Has the next requests answered so: a status line and further heads.
    pub fn answer(&self, answers: &[&str]) {
        self.inner.lock().unwrap().answers.extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    pub fn got(&self) -> Vec<Got> {
        self.inner.lock().unwrap().got.clone()
    }

    pub fn connections(&self) -> usize {
        self.inner.lock().unwrap().connections
    }

    /// Waits for a message about an ask of this kind.
    pub fn await_ask(&self, kind: &str) -> Got {
        let is_it = |got: &Got| got.json()["data"]["ask"]["kind"] == kind;
        wait_until(&format!("a message of {kind}"), || self.got().iter().any(is_it));
        self.got().into_iter().find(is_it).unwrap()
    }

    /// Waits until so many requests arrived; returns all.
    pub fn await_got(&self, count: usize) -> Vec<Got> {
        wait_until(&format!("{count} messages"), || self.got().len() >= count);
        self.got()
    }
}

/// Keeps one request and answers it; one that breaks off is no request.
fn answered(mut stream: TcpStream, inner: &Mutex<Inner>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some(Request { headers, body, .. }) = read(&mut reader) else { return };
    let got = Got { headers, body: String::from_utf8(body).unwrap() };
    let answer = {
        let mut inner = inner.lock().unwrap();
        inner.got.push(got);
        inner.answers.pop_front().unwrap_or_else(|| "200 OK".to_owned())
    };
    write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
}

/// The secret of signatures, in the form of Standard Webhooks.
pub const SECRET: &str = "whsec_Y2FuYXJ5LW9mLXRoZS1zaWduYXR1cmU=";

/// Writes the person's own configuration, which counts without trust.
pub fn configure(place: &Place, channels: &str) {
    let path = place.path("home/.config/planctl/planctl.toml");
    std::fs::write(path, format!("[postgres]\nstop_after = \"0s\"\n{channels}")).unwrap();
}

/// Changes the database as time would.
pub fn sql(place: &Place, statement: &str) {
    place.must(&["db", "psql", "--owner", "--", "-qAtc", statement]);
}

/// Starts a daemon that knows the receiver's address and secret.
pub fn daemon(place: &Place, receiver: &Receiver) -> crate::support::Going {
    let url = receiver.url();
    let variables = [("HOOK_URL", url.as_ref()), ("HOOK_SECRET", SECRET.as_ref())];
    let mut daemon = place.start_with(&["daemon", "run"], &variables);
    daemon.hear("ready");
    daemon
}

/// A channel for webhooks on this machine.
pub const WEBHOOK: &str = "[notify.team]\nto = \"webhook\"\nurl_env = \"HOOK_URL\"\nsecret_env = \"HOOK_SECRET\"\nallow_private = true\n";
