//! `planctl guide doctor`: whether each agent's hooks are there, answer as they are written, and would be called by the agent.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use planctl_api::wire::{DoctorView, Health, HealthView};
use planctl_harness::{Command, Input, Spawner, find_program};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::canary;
use super::install::{self, AGENTS};
use super::plugin::{self, is_of_plugin};
use crate::commands::{doctor, settings};
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::guidance::{Guided, LockedGuidance};
use crate::session_agent::{SessionAgent, SessionEvent};
use crate::show;

/// The file that a canary's session is refused.
const CANARY: &str = "canary";
/// How long a hook may take to refuse it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Looks at the hooks of each agent that is installed or has some.
pub async fn run(context: &Context, flies: bool) -> Answer {
    let is_json = context.is_json()?;
    let mut checks = Vec::new();
    for agent in AGENTS {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_installed = find_program(OsStr::new(agent.as_str()), &path).is_some();
        let files = install::hooked_files(context, agent)?;
        if is_installed || !files.is_empty() {
            let found = checked(context, agent, &files).await?;
            checks.extend(found);
            if flies && is_installed && !files.is_empty() {
                checks.push(check_by_start(context, agent).await);
            }
        }
    }
    let problems = checks.iter().filter(|check| check.health == Health::Problem).count();
    let warnings = checks.iter().filter(|check| check.health == Health::Warning).count();
    if is_json {
        show::print_json(&DoctorView { problems, warnings, checks })?;
    } else if checks.is_empty() {
        show::print("no agent with hooks is installed: claude, codex, gemini or opencode\n")?;
    } else {
        show::print(&checks.iter().map(doctor::draw).collect::<String>())?;
    }
    Ok(if problems == 0 { Exit::Yes } else { Exit::No })
}

async fn checked(
    context: &Context,
    agent: SessionAgent,
    files: &[PathBuf],
) -> Result<Vec<HealthView>, Failure> {
    let word = agent.as_str();
    let Some(file) = files.first() else {
        let help = Some(format!("planctl guide install {word}"));
        return Ok(vec![check(agent, Health::Problem, "has no hooks of planctl here".to_owned(), help)]);
    };
    let mut checks = vec![check(agent, Health::Good, format!("hooks in {}", file.display()), None)];
    checks.push(match canary(agent, file).await {
        Ok(()) => check(agent, Health::Good, "the hook refuses what it is to refuse".to_owned(), None),
        Err(found) => check(agent, Health::Problem, found, Some(format!("planctl guide install {word}"))),
    });
    let of_project = files.iter().any(|file| file.starts_with(context.workspace()));
    let reasons = match agent {
        SessionAgent::Claude | SessionAgent::Gemini => switched_off(context, agent, is_of_plugin(file))?,
        SessionAgent::Codex => match asked_codex(context.workspace()).await {
            Some(hooks) => codex_reasons(&hooks),
            None => {
                let found = "could not be asked which hooks it calls: `codex app-server` did not answer";
                let help = "it calls hooks only in a folder that it trusts, and once you trusted them too";
                checks.push(check(agent, Health::Warning, found.to_owned(), Some(help.to_owned())));
                Vec::new()
            }
        },
        SessionAgent::OpenCode => variables_set(&["OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_PURE"]),
    };
    for found in reasons {
        checks.push(check(agent, Health::Problem, found, Some(way_out(agent).to_owned())));
    }
    let is_untrusted = |home: PathBuf| !plugin::is_trusted(&home, context.workspace());
    if is_of_plugin(file) && of_project && settings::home().is_ok_and(is_untrusted) {
        let help = "start claude here and say that you trust the folder, or `planctl guide install claude`";
        let found = "loads the plugins of a folder only where it trusts it, and it does not trust this one";
        checks.push(check(agent, Health::Problem, found.to_owned(), Some(help.to_owned())));
    }
    if agent == SessionAgent::Gemini && of_project && !does_gemini_trust(context.workspace()) {
        let help = "start gemini here and say that you trust the folder (`--skip-trust` is not enough), or \
                    `planctl guide install gemini --user`";
        let found = "calls the hooks of a folder only where it trusts it, and it does not trust this one";
        checks.push(check(agent, Health::Problem, found.to_owned(), Some(help.to_owned())));
    }
    if let Some(seconds) = install::seconds_in(agent, SessionEvent::Stop, file)
        && seconds < install::STOP_SECONDS
    {
        let found = format!("lets a turn end after {seconds} s, also where the contract still runs");
        let help = format!("planctl guide install {word} sets it to {} s", install::STOP_SECONDS);
        checks.push(check(agent, Health::Warning, found, Some(help)));
    }
    Ok(checks)
}

/// Starts the agent once, with a model that planctl plays, and says what came of it.
async fn check_by_start(context: &Context, agent: SessionAgent) -> HealthView {
    let word = agent.as_str();
    let flight = match canary::start_agent(context, agent).await {
        Ok(flight) => flight,
        Err(why) => return check(agent, Health::Warning, format!("could not be started: {why}"), None),
    };
    let took = show::span(flight.took);
    if !flight.has_asked {
        let found = format!(
            "was started, and asked no model within {took}: {}",
            show::printed_block(&flight.last_line)
        );
        return check(
            agent,
            Health::Warning,
            found,
            Some(format!("start {word} here, and see what it says")),
        );
    }
    if !flight.has_called(SessionEvent::Tool) {
        let found = "was started, and used a tool without a call of its hook".to_owned();
        return check(agent, Health::Problem, found, Some(way_out(agent).to_owned()));
    }
    if !flight.left_the_tool {
        let found = "was started, and used a tool that its hook refused".to_owned();
        let help = format!("update {word}: this version does not do what hooks say");
        return check(agent, Health::Problem, found, Some(help));
    }
    if !flight.went_on {
        let found = match flight.has_called(SessionEvent::Stop) {
            true => "was started, and ended its turn although its hook sent it back",
            false => "was started, and ended its turn without a call of its hook",
        };
        return check(agent, Health::Problem, found.to_owned(), Some(way_out(agent).to_owned()));
    }
    let left_out: Vec<&str> = flight.left_out().into_iter().map(|event| agent.event_name(event)).collect();
    if !left_out.is_empty() {
        let found = format!("was started, and called no hook of {}", left_out.join(", "));
        return check(agent, Health::Problem, found, Some(way_out(agent).to_owned()));
    }
    let found = format!(
        "was started, called its hooks, left the tool that was refused, and went on when it was sent back; it took {took}"
    );
    check(agent, Health::Good, found, None)
}

fn check(agent: SessionAgent, health: Health, found: String, help: Option<String>) -> HealthView {
    HealthView { check: agent.as_str().to_owned(), health, found, help }
}

fn way_out(agent: SessionAgent) -> &'static str {
    match agent {
        SessionAgent::Claude => "take that out of it",
        SessionAgent::Codex => "start codex here, trust the folder, and say yes to its question about hooks",
        SessionAgent::Gemini => "take that out of it, or `gemini` and /hooks",
        SessionAgent::OpenCode => "unset it where you start opencode",
    }
}

/// Says which settings keep an agent from calling hooks, which may be those of a plugin.
fn switched_off(context: &Context, agent: SessionAgent, is_plugin: bool) -> Result<Vec<String>, Failure> {
    let mut files = install::settings_read(context, agent)?;
    files.push(PathBuf::from(if agent == SessionAgent::Claude { CLAUDE_MANAGED } else { GEMINI_MANAGED }));
    let mut reasons = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let root = CstRootNode::parse(&text, &ParseOptions::default());
        let settings: Value = root.ok().and_then(|root| root.to_serde_value()).unwrap_or_default();
        let is_plugin_off = is_plugin && plugin::is_switched_off(&settings);
        let disabled = settings["hooksConfig"]["disabled"].as_array().into_iter().flatten();
        let is_own = |name: &Value| name.as_str().is_some_and(|name| name.contains("hook gemini "));
        let ways = [
            (settings["disableAllHooks"] == true, "`disableAllHooks`: it calls none"),
            (
                settings["allowManagedHooksOnly"] == true,
                "`allowManagedHooksOnly`: it calls no hooks but its own",
            ),
            (settings["hooksConfig"]["enabled"] == false, "`hooksConfig.enabled`: it calls none"),
            (
                is_plugin_off,
                "`enabledPlugins`: planctl's plugin is off (claude plugin enable planctl@skills-dir)",
            ),
            (disabled.into_iter().any(is_own), "`hooksConfig.disabled`: it leaves out planctl's"),
        ];
        let found = ways.iter().filter(|(is_so, _)| *is_so);
        reasons.extend(found.map(|(_, way)| format!("{} has {way}", file.display())));
    }
    Ok(reasons)
}

/// Settings that an administrator makes, and that go before all others.
const CLAUDE_MANAGED: &str = "/etc/claude-code/managed-settings.json";
const GEMINI_MANAGED: &str = "/etc/gemini-cli/settings.json";

fn variables_set(names: &[&str]) -> Vec<String> {
    let set = names.iter().filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    set.map(|name| format!("loads no plugin of a project while {name} is set")).collect()
}

/// Says whether Gemini CLI trusts a folder, by the rules that it keeps: the longest path that holds the folder decides.
fn does_gemini_trust(folder: &Path) -> bool {
    if std::env::var_os("GEMINI_CLI_TRUST_WORKSPACE").is_some_and(|value| value == "true") {
        return true;
    }
    let Some(home) = std::env::var_os("HOME").map(|home| Path::new(&home).join(".gemini")) else {
        return false;
    };
    let read = |file: PathBuf| -> Value {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let root = CstRootNode::parse(&text, &ParseOptions::default());
        root.ok().and_then(|root| root.to_serde_value()).unwrap_or_default()
    };
    if read(home.join("settings.json"))["security"]["folderTrust"]["enabled"] == false {
        return true;
    }
    let file = std::env::var_os("GEMINI_CLI_TRUSTED_FOLDERS_PATH").map(PathBuf::from);
    let rules = read(file.unwrap_or_else(|| home.join("trustedFolders.json")));
    let rules = rules.as_object().into_iter().flatten().filter_map(|(path, rule)| {
        let path = Path::new(path);
        let path = if rule == "TRUST_PARENT" { path.parent()? } else { path };
        folder.starts_with(path).then(|| (path.components().count(), rule != "DO_NOT_TRUST"))
    });
    rules.max_by_key(|(length, _)| *length).is_some_and(|(_, trusts)| trusts)
}

/// Asks the program itself which hooks it would call here, without a session and without a model.
async fn asked_codex(folder: &Path) -> Option<Value> {
    let asked = [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "planctl", "version": "1"}}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [folder]}}),
    ];
    let asked: String = asked.iter().map(|call| format!("{call}\n")).collect();
    let spawner = Spawner::start_self(None).ok()?;
    // It ends where its input does, answered or not.
    let mut codex = Command::new(["sh", "-c", "{ cat; exec sleep 60; } | codex app-server"], folder);
    codex.environment = std::env::vars_os().collect();
    codex.input = Input::Bytes(asked.into_bytes());
    codex.deadline = Some(ANSWERS_WITHIN);
    let (mut said, answered) = (Vec::new(), Notify::new());
    let mut hear = |_, chunk: &[u8]| {
        said.extend_from_slice(chunk);
        if answer_in(&said).is_some() {
            answered.notify_one();
        }
    };
    let ran = spawner.run(&codex, &mut hear, answered.notified()).await;
    spawner.shutdown();
    ran.ok()?;
    answer_in(&said)
}

/// Returns the hooks of the answer, where it has come.
fn answer_in(said: &[u8]) -> Option<Value> {
    let lines = said.split(|byte| *byte == b'\n');
    let mut answers = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let answer = answers.find(|answer| answer["id"] == 2)?;
    Some(answer["result"]["data"][0]["hooks"].clone())
}

/// Says why Codex would not call a hook of planctl's.
fn codex_reasons(hooks: &Value) -> Vec<String> {
    let own: Vec<&Value> = hooks.as_array().into_iter().flatten().filter(|hook| is_of_codex(hook)).collect();
    if own.len() < SessionAgent::Codex.events().len() {
        return vec!["does not load the hooks, since it does not trust this folder".to_owned()];
    }
    let with = |key: &str, is_wrong: &dyn Fn(&Value) -> bool| {
        let events: Vec<&str> = own
            .iter()
            .filter(|hook| is_wrong(&hook[key]))
            .filter_map(|hook| hook["eventName"].as_str())
            .collect();
        events.join(", ")
    };
    let is_untrusted = |status: &Value| !matches!(status.as_str(), Some("trusted" | "managed"));
    let reasons = [
        (with("trustStatus", &is_untrusted), "does not trust these hooks, and leaves them out"),
        (with("enabled", &|enabled| *enabled == false), "has these hooks switched off"),
    ];
    reasons
        .iter()
        .filter(|(events, _)| !events.is_empty())
        .map(|(events, why)| format!("{why}: {events}"))
        .collect()
}

fn is_of_codex(hook: &Value) -> bool {
    hook["command"].as_str().is_some_and(|command| command.contains(" hook codex "))
}

/// Calls the hook by the command that the agent has, for a session that is about to change a protected file. The project and the
/// state are folders of the canary's own, beside each other, wherever temporary files are.
async fn canary(agent: SessionAgent, file: &Path) -> Result<(), String> {
    let command = install::command_in(agent, SessionEvent::Tool, file)
        .ok_or_else(|| format!("no command is found in {}", file.display()))?;
    let nest = tempfile::tempdir().map_err(|error| format!("could not make a folder: {error}"))?;
    let nest = nest.path().canonicalize().map_err(|error| error.to_string())?;
    let (folder, state) = (nest.join("work"), nest.join("state"));
    std::fs::create_dir(&folder).map_err(|error| format!("could not make a folder: {error}"))?;
    hold_canary(&state, &folder).map_err(|failure| failure.message)?;
    let input = json!({
        "session_id": CANARY,
        "cwd": folder,
        "tool_name": "Write",
        "tool_input": { "file_path": folder.join(CANARY) },
    });
    match hook_answer(&command, (&folder, &state), &input.to_string()).await {
        Ok(said) if said.contains("decides a contract of canary") => Ok(()),
        Ok(said) => Err(format!("`{command}` does not refuse it; it said {said:?}")),
        Err(error) => Err(format!("`{command}` can't run: {error}")),
    }
}

/// Holds the sessions of a folder to a plan that protects one file.
fn hold_canary(state: &Path, folder: &Path) -> Result<(), Failure> {
    let mut held = LockedGuidance::open(state, folder)?;
    held.guidance.guided = Some(Guided {
        id: String::new(),
        run: CANARY.to_owned(),
        plan: CANARY.to_owned(),
        protected: vec![CANARY.to_owned()],
        waits: false,
        read: Vec::new(),
        observes: false,
        tool_failures: 0,
    });
    held.save()
}

async fn hook_answer(command: &str, (folder, state): (&Path, &Path), input: &str) -> std::io::Result<String> {
    let spawner = Spawner::start_self(None)?;
    let mut hook = Command::new(["sh", "-c", command], folder);
    let is_other_project = |name: &OsStr| name == "CLAUDE_PROJECT_DIR" || name == "GEMINI_PROJECT_DIR";
    hook.environment = std::env::vars_os().filter(|(name, _)| !is_other_project(name)).collect();
    hook.environment.push(("PLANCTL_STATE_DIR".into(), state.into()));
    hook.input = Input::Bytes(input.as_bytes().to_vec());
    hook.deadline = Some(ANSWERS_WITHIN);
    let finished = spawner.run(&hook, &mut |_, _| (), std::future::pending()).await;
    spawner.shutdown();
    let finished = finished?;
    let said = [finished.stdout.head, finished.stderr.head].concat();
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}
