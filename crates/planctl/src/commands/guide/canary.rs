//! A canary: an installed agent, started with planctl's hooks as its settings have them, and with a model that planctl plays. It
//! shows whether the hooks are called, and whether the agent does what they say.
//!
//! The agent gets a home and a project of its own, with a copy of those settings alone that decide about hooks: no login, no
//! other hooks, no servers. The model is on loopback, so nothing costs anything.

mod model;
mod server;
mod settings;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_harness::{Command, Input, Spawner};
use serde_json::json;

use self::model::Model;
use super::hooks::Reply;
use crate::context::Context;
use crate::guidance::LockedGuidance;
use crate::session_agent::{SessionAgent, SessionEvent};

/// How long an agent may take for its one turn; some need most of a minute to begin.
const FLIES_WITHIN: Duration = Duration::from_secs(180);
/// The files that the model wants to write, one after the other. The hook refuses the first.
const FILES: [&str; 2] = ["canary.txt", "canary-2.txt"];
/// The prompt of the session.
const PROMPT: &str = "Write the canary files.";
/// The events of a session in which tools are used and whose turn ends.
const EVENTS: [SessionEvent; 5] = [
    SessionEvent::Start,
    SessionEvent::Prompt,
    SessionEvent::Tool,
    SessionEvent::ToolDone,
    SessionEvent::Stop,
];
/// The reason with which the hook refuses it.
const REFUSED: &str = "planctl's canary refuses this tool";
/// The words with which the hook sends the session back.
const SENT_BACK: &str = "planctl's canary sends this session back";
/// The variables that an agent keeps from its person, since they decide about hooks or find its program's parts.
const KEPT_VARIABLES: [&str; 9] = [
    "PATH",
    "LANG",
    "TERM",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_PURE",
    "GEMINI_CLI_TRUST_WORKSPACE",
];

/// Answers a hook of a canary, and notes that it was called.
pub fn answer_hook(seen: &Path, event: SessionEvent) -> Reply {
    let before = fs::read_to_string(seen).unwrap_or_default();
    let noted = fs::File::options().create(true).append(true).open(seen);
    // A call that can't be noted is one that the doctor does not find, and says so.
    drop(noted.and_then(|mut file| writeln!(file, "{}", event.as_str())));
    let is_first = !before.lines().any(|line| line == event.as_str());
    match event {
        SessionEvent::Tool if is_first => Reply::Refuse(REFUSED.to_owned()),
        SessionEvent::Stop if is_first => Reply::SendBack(SENT_BACK.to_owned()),
        SessionEvent::Tool
        | SessionEvent::Stop
        | SessionEvent::Start
        | SessionEvent::Prompt
        | SessionEvent::ToolDone
        | SessionEvent::ToolFailed => Reply::Pass,
    }
}

/// The behaviour of an agent and of its hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flight {
    /// The events at which it called its hooks, in the order of the calls.
    pub called: Vec<String>,
    /// Says that it asked the model at all.
    pub has_asked: bool,
    /// Says that it left the tool that the hook refused.
    pub left_the_tool: bool,
    /// Says that it went on when the hook sent it back.
    pub went_on: bool,
    /// The time from start to end.
    pub took: Duration,
    /// The last line that it printed.
    pub last_line: String,
}

impl Flight {
    /// Says whether it called its hook at an event.
    pub fn has_called(&self, event: SessionEvent) -> bool {
        self.called.iter().any(|word| word == event.as_str())
    }

    /// Returns the events of the session at which it called no hook.
    pub fn left_out(&self) -> Vec<SessionEvent> {
        EVENTS.into_iter().filter(|event| !self.has_called(*event)).collect()
    }
}

/// Starts an agent once, as its person would here.
///
/// # Errors
///
/// Says what could not be made or started.
pub async fn start_agent(context: &Context, agent: SessionAgent) -> Result<Flight, String> {
    let nest = Nest::build(context, agent)?;
    let model = Model::start(FILES.map(|file| nest.work.join(file)), [REFUSED, SENT_BACK])
        .await
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(start_words(agent, &model), &nest.work);
    command.environment = nest.environment(agent, &model);
    command.input = Input::Null;
    command.deadline = Some(FLIES_WITHIN);
    let spawner = Spawner::start_self(None).map_err(|error| error.to_string())?;
    let ran = match agent {
        SessionAgent::OpenCode => {
            let (mut listener, address) = server::listener();
            let session = server::hold_session(address, &model);
            spawner.run(&command, &mut |_, chunk| listener.hear(chunk), session).await
        }
        SessionAgent::Claude | SessionAgent::Codex | SessionAgent::Gemini => {
            spawner.run(&command, &mut |_, _| (), std::future::pending()).await
        }
    };
    spawner.shutdown();
    let ran = ran.map_err(|error| error.to_string())?;
    let printed = [ran.stdout.head, ran.stdout.tail, ran.stderr.head, ran.stderr.tail].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let heard = model.heard();
    let called = fs::read_to_string(&nest.seen).unwrap_or_default();
    Ok(Flight {
        called: called.lines().map(str::to_owned).collect(),
        has_asked: heard.requests > 0,
        left_the_tool: heard.words[0] && !nest.work.join(FILES[0]).exists(),
        went_on: heard.words[1],
        took: ran.duration,
        last_line: printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned(),
    })
}

/// The home, the project and the state of a canary.
struct Nest {
    home: PathBuf,
    work: PathBuf,
    state: PathBuf,
    seen: PathBuf,
    _folder: tempfile::TempDir,
}

impl Nest {
    fn build(context: &Context, agent: SessionAgent) -> Result<Nest, String> {
        let refused = |error: std::io::Error| format!("could not make a folder for it: {error}");
        let folder = tempfile::tempdir().map_err(refused)?;
        let root = folder.path().canonicalize().map_err(refused)?;
        let at = |name: &str| root.join(name);
        let nest = Nest {
            home: at("home"),
            work: at("work"),
            state: at("state"),
            seen: at("seen"),
            _folder: folder,
        };
        for folder in [&nest.home, &nest.work, &nest.state] {
            fs::create_dir(folder).map_err(refused)?;
        }
        settings::copy(agent, (context.workspace(), &nest.work), &nest.home).map_err(refused)?;
        let held = || {
            let mut held = LockedGuidance::open(&nest.state, &nest.work)?;
            held.guidance.canary = Some(nest.seen.clone());
            held.save()
        };
        held().map_err(|failure| failure.message)?;
        Ok(nest)
    }

    fn environment(&self, agent: SessionAgent, model: &Model) -> Vec<(OsString, OsString)> {
        let mut all: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| KEPT_VARIABLES.iter().any(|kept| name == *kept)).collect();
        let mut set = |name: &str, value: &OsStr| all.push((name.into(), value.to_owned()));
        set("HOME", self.home.as_os_str());
        set("PLANCTL_STATE_DIR", self.state.as_os_str());
        let base = model.address();
        // Some refuse to start without a key; nobody asks for this one.
        let key = OsStr::new("planctl-canary");
        match agent {
            SessionAgent::Claude => {
                set("ANTHROPIC_BASE_URL", OsStr::new(&base));
                set("ANTHROPIC_API_KEY", key);
                set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", OsStr::new("1"));
            }
            SessionAgent::Codex => set("CODEX_API_KEY", key),
            SessionAgent::Gemini => {
                set("GOOGLE_GEMINI_BASE_URL", OsStr::new(&base));
                set("GEMINI_API_KEY", key);
            }
            SessionAgent::OpenCode => {
                let options = json!({ "baseURL": format!("{base}/v1"), "apiKey": "planctl-canary" });
                let models = json!({ "canary": {} });
                let provider =
                    json!({ "npm": "@ai-sdk/openai-compatible", "options": options, "models": models });
                let config = json!({ "provider": { "planctl": provider }, "autoupdate": false }).to_string();
                set("OPENCODE_CONFIG_CONTENT", OsStr::new(&config));
                // It fetches a library for plugins and a list of models before it answers, and needs neither.
                set("OPENCODE_DISABLE_MODELS_FETCH", OsStr::new("1"));
                set("npm_config_offline", OsStr::new("true"));
            }
        }
        all
    }
}

/// The words that start an agent for one prompt, in which it may write files. OpenCode is started as a server, since its mode for
/// one prompt ends with the first turn.
fn start_words(agent: SessionAgent, model: &Model) -> Vec<String> {
    let base = format!("openai_base_url=\"{}/v1\"", model.address());
    let words: &[&str] = match agent {
        SessionAgent::Claude => {
            &["claude", "-p", PROMPT, "--permission-mode", "acceptEdits", "--allowedTools", "Write"]
        }
        SessionAgent::Codex => &[
            "codex",
            "exec",
            "--skip-git-repo-check",
            "-s",
            "workspace-write",
            "-m",
            "canary",
            "-c",
            &base,
            PROMPT,
        ],
        SessionAgent::Gemini => &["gemini", "--approval-mode", "yolo", "-p", PROMPT],
        SessionAgent::OpenCode => &["opencode", "serve", "--hostname", "127.0.0.1", "--port", "0"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}
