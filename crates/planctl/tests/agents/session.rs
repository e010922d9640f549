//! A session of a real agent in a place, as a person would have it; its hooks are those that planctl installed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::place::Place;

/// The reason why a session could not be tried.
pub const DID_NOT_BEGIN: &str = "opencode did not serve anybody in time";
/// How long a session may take.
const LONGEST: Duration = Duration::from_secs(400);
const LOOKS_EVERY: Duration = Duration::from_millis(200);
/// How often a server has to be seen idle, with no hook at work, to have ended its turn.
const IDLE_LOOKS: u32 = 8;

/// A session that has begun.
pub struct Session<'a> {
    place: &'a Place,
    process: Child,
    /// The input of a terminal, kept open.
    keyboard: Option<ChildStdin>,
    /// The port of an agent that is a server.
    server: Option<u16>,
}

impl<'a> Session<'a> {
    /// Begins a session with a prompt.
    pub fn begin(place: &'a Place, prompt: &str) -> Result<Session<'a>, String> {
        if place.agent == "opencode" {
            return Session::on_server(place, prompt);
        }
        Ok(Session {
            place,
            process: spawned(one_prompt(place, prompt), place),
            keyboard: None,
            server: None,
        })
    }

    /// Begins a session in the agent's mode for one prompt, also where a server would be better.
    pub fn with_one_prompt(place: &'a Place, prompt: &str) -> Session<'a> {
        Session { place, process: spawned(one_prompt(place, prompt), place), keyboard: None, server: None }
    }

    /// Begins a session in which the agent is not to call its hooks: codex without trust in them, Gemini where its
    /// folder is trusted for this once only, OpenCode without plugins.
    pub fn without_hooks(place: &'a Place, prompt: &str) -> Session<'a> {
        let mut command = place.program(place.agent);
        for argument in one_prompt(place, prompt).get_args() {
            match argument.to_str() {
                Some("--dangerously-bypass-hook-trust") => {}
                Some("--auto") => drop(command.args(["--auto", "--pure"])),
                Some("--approval-mode") => drop(command.args(["--skip-trust", "--approval-mode"])),
                _ => drop(command.arg(argument)),
            }
        }
        Session { place, process: spawned(command, place), keyboard: None, server: None }
    }

    /// Begins a session at OpenCode's own screen, in a terminal.
    pub fn on_screen(place: &'a Place, prompt: &str) -> Session<'a> {
        let port = free_port();
        let typed = format!(
            "stty rows 40 cols 120; opencode --port {port} --auto -m fake/fake-model --prompt '{prompt}'"
        );
        let mut command = place.program("script");
        command.args(["-qefc", &typed, "/dev/null"]).env("TERM", "xterm-256color").stdin(Stdio::piped());
        let mut session =
            Session { place, process: spawned(command, place), keyboard: None, server: Some(port) };
        // Somebody sits there: a terminal that ends would end the screen.
        session.keyboard = session.process.stdin.take();
        session
    }

    /// OpenCode's screen talks to a server of its own, and so does the test.
    fn on_server(place: &'a Place, prompt: &str) -> Result<Session<'a>, String> {
        let port = free_port();
        let mut command = place.program("opencode");
        command.args(["serve", "--port", &port.to_string(), "--hostname", "127.0.0.1"]);
        let mut session = Session { place, process: spawned(command, place), keyboard: None, server: None };
        let began = Instant::now();
        // It accepts connections before it says that it listens, and never answers those.
        while !place.talk().contains(&format!("listening on http://127.0.0.1:{port}")) {
            if began.elapsed() > LONGEST {
                return Err(DID_NOT_BEGIN.to_owned());
            }
            std::thread::sleep(LOOKS_EVERY);
        }
        let answer = call(port, "POST", "/session", &json!({})).ok_or(DID_NOT_BEGIN)?;
        let id = answer["id"].as_str().ok_or_else(|| format!("no session: {answer}"))?.to_owned();
        let said = json!({
            "model": { "providerID": "fake", "modelID": "fake-model" },
            "parts": [{ "type": "text", "text": prompt }],
        });
        session.server = Some(port);
        call(port, "POST", &format!("/session/{id}/prompt_async"), &said);
        Ok(session)
    }

    /// Waits until the turn ended, and returns what the agent printed.
    pub fn ends(mut self) -> Result<String, String> {
        let began = Instant::now();
        let mut idle = 0;
        let is_over = |session: &mut Session<'_>| match &session.server {
            None => session.process.try_wait().unwrap().is_some(),
            Some(port) => {
                let states = call(*port, "GET", "/session/status", &Value::Null).unwrap_or_default();
                let mut states = states.as_object().into_iter().flatten();
                let is_busy = states.any(|(_, state)| state["type"] != "idle");
                let is_idle = !is_busy && session.place.service.is_played() && !session.has_hook();
                idle = if is_idle { idle + 1 } else { 0 };
                idle >= IDLE_LOOKS
            }
        };
        let mut is_over = is_over;
        while !is_over(&mut self) {
            if began.elapsed() > LONGEST {
                self.kill();
                return Err(format!("the session went on for {LONGEST:?}\n{}", self.place.talk()));
            }
            std::thread::sleep(LOOKS_EVERY);
        }
        self.kill();
        Ok(self.place.talk())
    }

    /// Kills the agent and all that it started.
    pub fn kill(&mut self) {
        killpg(Pid::from_raw(self.process.id() as i32), Signal::SIGKILL).ok();
        self.process.wait().ok();
    }

    /// Says whether a hook is at work below the server.
    fn has_hook(&self) -> bool {
        let id = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let all = children.split_whitespace();
        all.into_iter().any(|child| {
            let words = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            words.contains("\0hook\0")
        })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

fn one_prompt(place: &Place, prompt: &str) -> Command {
    let mut command = place.program(place.agent);
    match place.agent {
        "claude" => command.args(["-p", prompt, "--permission-mode", "acceptEdits"]).args([
            "--allowedTools",
            "Edit Write Bash mcp__planctl",
            "--output-format",
            "json",
        ]),
        "codex" => command
            .args(["exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "-s"])
            .args(["workspace-write", "-m", "fake-model", "-c"])
            .args([format!("openai_base_url=\"{}/v1\"", place.base()), prompt.to_owned()]),
        "gemini" => command.args(["--approval-mode", "yolo", "-p", prompt]),
        _ => command.args(["run", "-m", "fake/fake-model", "--auto", prompt]),
    };
    command
}

fn spawned(mut command: Command, place: &Place) -> Child {
    let talk = place.talk_file();
    let talk = std::fs::File::options().create(true).append(true).open(talk).unwrap();
    command.stdout(talk.try_clone().unwrap()).stderr(talk);
    command.process_group(0).spawn().unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Asks the server; `None` where it does not answer. An answer without a body is null.
fn call(port: u16, method: &str, path: &str, body: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(200))).ok()?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let (mut answer, mut chunk) = (Vec::new(), [0; 65536]);
    // The connection may stay open after the answer.
    while !is_whole(&answer) {
        match stream.read(&mut chunk).ok()? {
            0 => break,
            count => answer.extend_from_slice(&chunk[..count]),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let body = &answer[answer.find('{')?..=answer.rfind('}')?];
    serde_json::from_str(body).ok()
}

/// Says whether an answer has come as far as its head says that it goes.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
}
