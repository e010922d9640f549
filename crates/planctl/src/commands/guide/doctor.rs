//! `planctl guide doctor`: whether each agent's hooks are there, switched on, and answer as they are written.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use planctl_api::wire::{DoctorView, Health, HealthView};
use planctl_harness::{Command, Input, Spawner, find_program};
use serde_json::{Value, json};

use super::hooks::{SessionAgent, SessionEvent};
use super::install::{self, AGENTS};
use crate::commands::{Context, doctor};
use crate::failure::{Answer, Exit, Failure};
use crate::guidance::{Guided, LockedGuidance};
use crate::show;

/// The file that a canary's session is refused.
const CANARY: &str = "canary";
/// How long a hook may take to refuse it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Looks at the hooks of each agent that is installed or has some.
pub async fn run(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let mut checks = Vec::new();
    for agent in AGENTS {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_installed = find_program(OsStr::new(agent.word()), &path).is_some();
        let files = install::hooked_files(context, agent)?;
        if is_installed || !files.is_empty() {
            checks.extend(checked(context, agent, &files).await?);
        }
    }
    let problems = checks.iter().filter(|check| check.health == Health::Problem).count();
    let warnings = checks.iter().filter(|check| check.health == Health::Warning).count();
    if is_json {
        show::print_json(&DoctorView { problems, warnings, checks })?;
    } else if checks.is_empty() {
        show::print("no agent with hooks is installed: claude, codex, gemini or opencode\n")?;
    } else {
        show::print(&checks.iter().map(doctor::drawn).collect::<String>())?;
    }
    Ok(if problems == 0 { Exit::Yes } else { Exit::No })
}

async fn checked(
    context: &Context,
    agent: SessionAgent,
    files: &[PathBuf],
) -> Result<Vec<HealthView>, Failure> {
    let word = agent.word();
    let Some(file) = files.first() else {
        let help = Some(format!("planctl guide install {word}"));
        return Ok(vec![check(agent, Health::Problem, "has no hooks of planctl here".to_owned(), help)]);
    };
    let mut checks = vec![check(agent, Health::Good, format!("hooks in {}", file.display()), None)];
    for file in install::settings_read(context, agent)? {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if has_switched_off(&text) {
            let found = format!("{} switches all hooks off", file.display());
            let help = Some("take `disableAllHooks` out of it".to_owned());
            checks.push(check(agent, Health::Problem, found, help));
        }
    }
    checks.push(match canary(context, agent, file).await {
        Ok(()) => check(agent, Health::Good, "the hook refuses what it is to refuse".to_owned(), None),
        Err(found) => check(agent, Health::Problem, found, Some(format!("planctl guide install {word}"))),
    });
    if agent == SessionAgent::Codex && !has_codex_trusted() {
        let help = Some("start codex here, and say yes to its question about hooks".to_owned());
        let found = "calls hooks only once you trusted them, and none are trusted yet".to_owned();
        checks.push(check(agent, Health::Warning, found, help));
    }
    Ok(checks)
}

fn check(agent: SessionAgent, health: Health, found: String, help: Option<String>) -> HealthView {
    HealthView { check: agent.word().to_owned(), health, found, help }
}

fn has_switched_off(settings: &str) -> bool {
    let root = CstRootNode::parse(settings, &ParseOptions::default());
    let value: Value = root.ok().and_then(|root| root.to_serde_value()).unwrap_or_default();
    value["disableAllHooks"] == true || value["hooksConfig"]["enabled"] == false
}

fn has_codex_trusted() -> bool {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".codex")));
    let text = home.and_then(|home| std::fs::read_to_string(home.join("config.toml")).ok());
    text.is_some_and(|text| text.contains("[hooks.state"))
}

/// Calls the hook by the command that the agent has, for a session that is about to change a protected file.
async fn canary(context: &Context, agent: SessionAgent, file: &Path) -> Result<(), String> {
    let command = install::command_in(agent, SessionEvent::Tool, file)
        .ok_or_else(|| format!("no command is found in {}", file.display()))?;
    let nest = tempfile::tempdir().map_err(|error| format!("could not make a folder: {error}"))?;
    let folder = nest.path().canonicalize().map_err(|error| error.to_string())?;
    let state_dir = context.state_dir().map_err(|failure| failure.message)?;
    let hold = |guided: Option<Guided>| {
        let mut held = LockedGuidance::open(&state_dir, &folder)?;
        held.guidance.guided = guided;
        held.save()
    };
    hold(Some(Guided {
        id: String::new(),
        run: CANARY.to_owned(),
        plan: CANARY.to_owned(),
        protected: vec![CANARY.to_owned()],
        waits: false,
        read: Vec::new(),
        observes: false,
        tool_failures: 0,
    }))
    .map_err(|failure| failure.message)?;
    let input = json!({
        "session_id": CANARY,
        "cwd": folder,
        "tool_name": "Write",
        "tool_input": { "file_path": folder.join(CANARY) },
    });
    let said = answered(&command, &folder, &input.to_string()).await;
    hold(None).map_err(|failure| failure.message)?;
    match said {
        Ok(said) if said.contains("decides a contract of canary") => Ok(()),
        Ok(said) => Err(format!("`{command}` does not refuse it; it said {said:?}")),
        Err(error) => Err(format!("`{command}` can't run: {error}")),
    }
}

async fn answered(command: &str, folder: &Path, input: &str) -> std::io::Result<String> {
    let spawner = Spawner::start_self(None)?;
    let mut hook = Command::new(["sh", "-c", command], folder);
    let is_other_project = |name: &OsStr| name == "CLAUDE_PROJECT_DIR" || name == "GEMINI_PROJECT_DIR";
    hook.environment = std::env::vars_os().filter(|(name, _)| !is_other_project(name)).collect();
    hook.input = Input::Bytes(input.as_bytes().to_vec());
    hook.deadline = Some(ANSWERS_WITHIN);
    let finished = spawner.run(&hook, &mut |_, _| (), std::future::pending()).await;
    spawner.shutdown();
    let finished = finished?;
    let said = [finished.stdout.head, finished.stderr.head].concat();
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}
