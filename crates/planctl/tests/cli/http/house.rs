//! A daemon in a place of its own, and a client that sends what it is told to, byte by byte.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use serde_json::Value;

use super::document;
use crate::fixture::{Fixture, Said};

/// Longer than anything here takes, also on a machine that is busy with other things; who waits this long has found a hang.
const WAIT_MAX: Duration = Duration::from_secs(180);

/// How often a condition is looked at in the beginning.
const LOOK: Duration = Duration::from_millis(10);

/// A daemon of one test; it is stopped when the test ends.
pub struct House {
    pub fixture: Fixture,
    pub port: String,
    /// The routes that did what they were asked to.
    called: Mutex<BTreeSet<String>>,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

/// How a request is sent.
#[derive(Clone, Debug, Default)]
pub struct Ask<'a> {
    pub token: Option<&'a str>,
    pub key: Option<&'a str>,
    pub headers: Vec<(&'a str, &'a str)>,
    pub body: Option<String>,
}

impl House {
    pub fn new() -> House {
        House::begun(&[], &[])
    }

    /// Starts a daemon with more variables in its environment.
    pub fn with(variables: &[(&str, &str)]) -> House {
        House::begun(&[], variables)
    }

    /// Starts a daemon with more words on its command line.
    pub fn with_words(words: &[&str]) -> House {
        House::begun(words, &[])
    }

    /// Starts a daemon that may have so many files open, softly and at the most.
    pub fn with_files(soft: u64, hard: u64) -> House {
        let mut house = House::closed();
        house.start(&[], |start| {
            let files = Rlimit { current: Some(soft), maximum: Some(hard) };
            // SAFETY: between fork and exec the child makes one system call.
            unsafe { start.pre_exec(move || Ok(setrlimit(Resource::Nofile, files)?)) };
        });
        house
    }

    fn begun(words: &[&str], variables: &[(&str, &str)]) -> House {
        let mut house = House::closed();
        house.start(words, |start| {
            start.envs(variables.iter().copied());
        });
        house
    }

    pub fn closed() -> House {
        House { fixture: Fixture::new(), port: String::new(), called: Mutex::default() }
    }

    fn start(&mut self, words: &[&str], prepare: impl FnOnce(&mut Command)) {
        let mut start =
            self.fixture.command(&[&["daemon", "start", "--listen", "127.0.0.1:0"], words].concat());
        prepare(&mut start);
        let said = Said::from(start.output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        let daemon = self.daemon();
        self.port = daemon["daemon"]["tcp"].as_str().unwrap().to_owned();
    }

    fn daemon(&self) -> Value {
        self.local("GET", "/v1/daemon", &Ask::default()).json()
    }

    /// Kills the daemon where it is, and waits for its end: a busy machine needs a moment for that, and until then it is
    /// there for whoever looks.
    pub fn kill(&self) {
        let stat = format!("/proc/{}/stat", self.signal(Signal::KILL));
        wait_until(|| {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X'])).then_some(())
        })
        .expect("what was killed ends");
    }

    /// Sends the daemon a signal, also where it does not answer; returns its number.
    pub fn signal(&self, signal: Signal) -> i32 {
        let lock = std::fs::read_to_string(self.fixture.state().join("daemon.lock")).unwrap();
        let pid = lock.trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        pid
    }

    /// Starts another daemon after one was killed.
    pub fn start_again(&mut self) {
        self.start(&[], |_| ());
    }

    /// Waits until the database answers a question with this.
    pub fn until_sql(&self, question: &str, answer: &str) {
        let mut found = String::new();
        wait_until(|| {
            found = self.fixture.sql(question);
            (found == answer).then_some(())
        })
        .unwrap_or_else(|| panic!("{question} is {found:?} after minutes"));
    }

    /// Makes a token; returns its secret.
    pub fn token(&self, scope: &str) -> String {
        let body = format!(r#"{{"name": "{scope}-test", "scope": "{scope}"}}"#);
        let key = format!("make-{scope}");
        let made =
            self.local("POST", "/v1/tokens", &Ask { key: Some(&key), body: Some(body), ..Ask::default() });
        assert_eq!(made.status, 200, "{made:?}");
        made.json()["secret"].as_str().unwrap().to_owned()
    }

    /// Revokes the token that was made for a scope.
    pub fn revoke(&self, scope: &str) {
        let list = self.local("GET", "/v1/tokens", &Ask::default()).json();
        let of_scope = |token: &&Value| token["scope"] == scope;
        let token = list["tokens"].as_array().unwrap().iter().find(of_scope).unwrap()["id"].as_str().unwrap();
        let ask = Ask { key: Some("revoke"), ..Ask::default() };
        assert_eq!(self.local("DELETE", &format!("/v1/tokens/{token}"), &ask).status, 200);
    }

    /// Starts a run of one step for the role `coder`, whose contract wants the word in out.txt; returns its name.
    pub fn run(&self, name: &str, word: &str) -> String {
        self.fixture.write(&format!("{name}.md"), &plan(name, word));
        let said = self.fixture.planctl(&["plan", "run", &format!("{name}.md"), "--approve", "-d"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.out.trim().to_owned()
    }

    /// Claims the next item of `coder`.
    pub fn claim(&self) -> Value {
        let ask = Ask { body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
        let claimed = self.local("POST", "/v1/items/claim?wait=30", &ask);
        assert_eq!(claimed.status, 200, "{claimed:?}");
        claimed.json()
    }

    /// Waits until a run is in a state.
    pub fn until(&self, run: &str, state: &str) -> Value {
        let mut view = Value::Null;
        wait_until(|| {
            view = self.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json();
            (view["state"] == state).then(|| view.clone())
        })
        .unwrap_or_else(|| panic!("{run} is not {state} after minutes: {view}"))
    }

    /// Sends a request through the socket.
    pub fn local(&self, method: &str, path: &str, ask: &Ask<'_>) -> Reply {
        self.held(method, path, ask, self.local_raw(&written(method, path, "localhost", ask)))
    }

    pub fn local_raw(&self, request: &[u8]) -> Reply {
        let stream = UnixStream::connect(self.fixture.state().join("daemon.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        exchange(stream, request)
    }

    /// Sends a request to the port.
    pub fn network(&self, method: &str, path: &str, ask: &Ask<'_>) -> Reply {
        self.held(method, path, ask, self.raw(&written(method, path, &self.port, ask)))
    }

    /// Holds an answer against the OpenAPI document.
    fn held(&self, method: &str, path: &str, ask: &Ask<'_>, reply: Reply) -> Reply {
        let called = document::check(method, path, ask, &reply);
        self.called.lock().unwrap_or_else(PoisonError::into_inner).extend(called);
        reply
    }

    /// Says whether a route did what it was asked to.
    pub fn has_called(&self, route: &str) -> bool {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).contains(route)
    }

    pub fn raw(&self, request: &[u8]) -> Reply {
        let stream = TcpStream::connect(&self.port).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        exchange(stream, request)
    }
}

/// Looks until there is what is looked for, more rarely as time passes: who answers is often who is waited for.
pub fn wait_until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if began.elapsed() > WAIT_MAX {
            return None;
        }
        std::thread::sleep((began.elapsed() / 20).max(LOOK));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let said = self.fixture.planctl(&["daemon", "stop"]);
        if !std::thread::panicking() {
            assert_eq!(said.code, 0, "{said:?}");
        }
    }
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the code of the problem; every refusal has one, and the media type of problems.
    pub fn code(&self) -> String {
        assert!(self.headers.contains("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        problem["type"].as_str().unwrap().strip_prefix("/problems/").unwrap().to_owned()
    }
}

pub fn plan(title: &str, word: &str) -> String {
    format!(
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# {title}\n\n**Context:** a test\n\n## Steps\n\n\
         ### 1. Write the word\n\n**target:** coder\n\n**task:** Write {word} into out.txt.\n\n**contract:**\n```bash\n\
         grep -qx {word} out.txt\n```\nexit_code == 0\n"
    )
}

pub fn written(method: &str, path: &str, host: &str, ask: &Ask<'_>) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !ask.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text.push_str(&format!("host: {host}\r\n"));
    }
    text.push_str("connection: close\r\n");
    if let Some(token) = ask.token {
        text.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    if let Some(key) = ask.key {
        text.push_str(&format!("idempotency-key: {key}\r\n"));
    }
    for (name, value) in &ask.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = ask.body.clone().unwrap_or_default();
    if ask.body.is_some() {
        if !ask.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            text.push_str("content-type: application/json\r\n");
        }
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(&body);
    text.into_bytes()
}

fn exchange(mut stream: impl Read + Write, request: &[u8]) -> Reply {
    // Where a request is refused early, the rest of it finds a closed door, and the answer is there all the same.
    let sent = stream.write_all(request);
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(!text.is_empty(), "no answer: {sent:?} {read:?}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let headers = head.to_lowercase();
    let body = if headers.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
    Reply { status, headers, body }
}

fn unchunked(body: &str) -> String {
    let mut whole = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || size > after.len() {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}
