//! The place of one scenario: an empty home, a checkout, an agent's settings for a service, and planctl in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::service::{Manner, Service};

/// One scenario's place; `state` is shared, since it has the database.
pub struct Place {
    folder: tempfile::TempDir,
    state: PathBuf,
    agents: PathBuf,
    pub agent: &'static str,
    pub service: Service,
    /// Variables that the scenario changes.
    pub variables: Vec<(&'static str, String)>,
}

impl Place {
    pub fn new(agents: &Path, state: &Path, agent: &'static str, manner: Manner) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            folder,
            state: state.to_owned(),
            agents: agents.to_owned(),
            agent,
            service: Service::start(manner),
            variables: Vec::new(),
        };
        for name in ["home", "work"] {
            std::fs::create_dir(place.folder.path().join(name)).unwrap();
        }
        place.git(&["init", "-q"]);
        place.git(&["commit", "-q", "--allow-empty", "-m", "begin"]);
        if agent == "opencode" {
            let models = json!({"fake-model": {"cost": {"input": 1, "output": 2}}});
            let options = json!({"baseURL": format!("{}/v1", place.base()), "apiKey": "fake-key"});
            let provider = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": models});
            place.write_home(
                ".config/opencode/opencode.json",
                &json!({"provider": {"fake": provider}}).to_string(),
            );
        }
        place
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.service.port)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn write_home(&self, name: &str, text: &str) {
        let path = self.folder.path().join("home").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let said = command.current_dir(self.path("")).output().unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// The agent with the model of the service.
    pub fn worker(&self) -> &'static str {
        match self.agent {
            "opencode" => "opencode:-m fake/fake-model",
            // Its usual model works by tools of its own, which are JavaScript.
            "codex" => "codex:-m fake-model",
            "aider" => "aider:--model openai/fake-model",
            other => other,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_planctl"));
        command.args(arguments);
        command
    }

    /// A program with the environment of somebody who uses the agent and planctl here.
    pub fn program(&self, program: &str) -> Command {
        let bins = [
            self.agents.join("npm/node_modules/.bin"),
            self.agents.join("venv/bin"),
            PathBuf::from(env!("CARGO_BIN_EXE_planctl")).parent().unwrap().to_owned(),
        ];
        let bins: Vec<String> = bins.iter().map(|bin| bin.display().to_string()).collect();
        let usual = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", format!("{}:{usual}", bins.join(":")))
            .env("HOME", self.folder.path().join("home"))
            .env("LANG", "C.UTF-8")
            .env("PLANCTL_STATE_DIR", &self.state)
            .env("TMPDIR", &self.state)
            .env("PLANCTL_ACTOR", "ann")
            .stdin(Stdio::null());
        let key = "fake-key";
        match self.agent {
            "claude" => command.env("ANTHROPIC_BASE_URL", self.base()).env("ANTHROPIC_API_KEY", key),
            "codex" => {
                command.env("OPENAI_BASE_URL", format!("{}/v1", self.base())).env("CODEX_API_KEY", key)
            }
            "gemini" => command.env("GOOGLE_GEMINI_BASE_URL", self.base()).env("GEMINI_API_KEY", key),
            "aider" => {
                command.env("OPENAI_API_BASE", format!("{}/v1", self.base())).env("OPENAI_API_KEY", key)
            }
            // It fetches a library for its plugins and a list of models before it answers anybody, and needs neither here.
            "opencode" => command.env("npm_config_offline", "true").env("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            _ => &mut command,
        };
        for (name, value) in &self.variables {
            match value.as_str() {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        command
    }

    pub fn planctl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn begin(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The file with all that sessions of the agent printed.
    pub fn talk_file(&self) -> PathBuf {
        self.folder.path().join("talk.txt")
    }

    /// All that sessions of the agent printed.
    pub fn talk(&self) -> String {
        std::fs::read_to_string(self.talk_file()).unwrap_or_default()
    }

    /// Runs a plan of these steps (task, contract) and returns all that was printed, and the run's state.
    pub fn run(&self, head: &str, steps: &[(&str, &str)]) -> Ran {
        self.write("p.md", &plan(head, steps));
        let began = Instant::now();
        let said = self.planctl(&["plan", "run", "p.md", "--approve", "--no-wait", "--agent", self.worker()]);
        self.ran(&said, began.elapsed())
    }

    pub fn ran(&self, said: &Output, time: Duration) -> Ran {
        let status = self.planctl(&["status", "@last", "--json"]);
        let status = serde_json::from_slice(&status.stdout).unwrap_or(Value::Null);
        Ran { said: words(said), code: said.status.code().unwrap_or(-1), status, time }
    }

    /// Returns the processes that work in this place, by the mark that planctl leaves in their environment.
    pub fn alive(&self) -> Vec<(i32, String)> {
        let mark = format!("PLANCTL_WORKSPACE={}", self.path("").display());
        let mark = mark.trim_end_matches('/').as_bytes();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        ids.filter_map(|id| {
            let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
            let command = std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?.replace('\0', " ");
            environment.split(|byte| *byte == 0).any(|entry| entry == mark).then_some((id, command))
        })
        .collect()
    }
}

/// A run and how it ended.
pub struct Ran {
    pub said: String,
    pub code: i32,
    pub status: Value,
    pub time: Duration,
}

impl Ran {
    pub fn is_done(&self) -> bool {
        self.status["state"] == "done"
    }

    pub fn tokens(&self) -> u64 {
        self.status["spent"]["tokens"].as_u64().unwrap_or(0)
    }
}

pub fn words(said: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
}

fn plan(head: &str, steps: &[(&str, &str)]) -> String {
    let mut text = "---\ntype: plan\nstatus: draft\nowner: orchestrator\n---\n\n# Try an agent\n\n**Budget:** max 900k tokens, $9, 20 minutes\n\n## Steps\n".to_owned();
    for (at, (task, contract)) in steps.iter().enumerate() {
        text.push_str(&format!(
            "\n### {}. A step\n\n**target:** coder\n{head}\n**task:**\n{task}\n\n**contract:**\n```shell\n{contract}\n```\nexit_code == 0\n**on_fail:** retry(1), then escalate\n",
            at + 1
        ));
    }
    text
}
