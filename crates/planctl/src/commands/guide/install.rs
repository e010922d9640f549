//! `planctl guide install`: planctl's hooks in the settings of an agent. All else in the file stays as it is, comments too.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstRootNode};
use jsonc_parser::{ParseOptions, json};
use serde_json::{Value, to_string};

use super::hooks::{SessionAgent, SessionEvent};
use crate::args::{Format, Install};
use crate::commands::plan::shell_word;
use crate::commands::{Context, changes};
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BOLD, styled};

/// How long a contract may keep a turn from ending, in seconds.
pub const STOP_SECONDS: u64 = 3600;
/// The plugin of OpenCode, which has no hooks that call a program.
const PLUGIN: &str = include_str!("opencode.js");
/// The beginning by which planctl knows its own plugin.
const PLUGIN_HEAD: &str = "// Holds the sessions of this project to their plan; written by `planctl";
/// How long the other hooks may take, in seconds.
const OTHER_SECONDS: u64 = 60;

/// Adds the hooks of an agent, or takes them away.
pub fn run(context: &Context, wanted: &Install) -> Answer {
    context.format(&[Format::Human])?;
    let file = settings_of(context, wanted.agent, wanted.user)?;
    let shown = show::safe(&file.display().to_string());
    let before = text_of(&file)?;
    let old = before.as_deref().unwrap_or_default();
    let after = match (wanted.agent, wanted.remove) {
        (SessionAgent::OpenCode, _) if !old.is_empty() && !old.starts_with(PLUGIN_HEAD) => {
            let foreign = format!("{shown} is not planctl's; nothing was written");
            return Err(Failure::new(Exit::Conflict, foreign).help("move it away, and try again"));
        }
        (SessionAgent::OpenCode, true) => String::new(),
        (SessionAgent::OpenCode, false) => {
            PLUGIN.replace("\"PLANCTL\"", &to_string(&own_program()?).unwrap_or_default())
        }
        (agent, true) => without(agent, old, &file)?,
        (agent, false) => with(agent, old, &file)?,
    };
    if before.as_deref().unwrap_or_default() == after {
        let state = if wanted.remove { "has no hooks of planctl" } else { "has the hooks" };
        return show::print(&format!("{shown} {state} already\n")).map(|()| Exit::Yes);
    }
    let difference = planctl_server::diff::unified(before.as_deref().unwrap_or_default(), &after);
    show::print(&changes::lines_drawn(&difference))?;
    if wanted.dry_run {
        context.say("nothing was written: --dry-run");
        return Ok(Exit::Yes);
    }
    if after.is_empty() {
        let refused = |error| Failure::new(Exit::Denied, format!("could not remove {shown}: {error}"));
        std::fs::remove_file(&file).map_err(refused)?;
        return show::print(&format!("removed {shown}\n")).map(|()| Exit::Yes);
    }
    write(&file, &after)?;
    show::print(&format!("wrote {shown}\n"))?;
    if !wanted.remove {
        if wanted.agent == SessionAgent::Codex {
            context.say(
                "codex calls hooks only once you trust them: start codex here and say yes to its question",
            );
        }
        context.say(&format!(
            "{} planctl guide on PLAN      or     planctl guard 'cargo test'",
            styled(BOLD, "next:")
        ));
    }
    Ok(Exit::Yes)
}

/// All agents, in the order in which people are told of them.
pub const AGENTS: [SessionAgent; 4] =
    [SessionAgent::Claude, SessionAgent::Codex, SessionAgent::Gemini, SessionAgent::OpenCode];

/// Returns the agents whose settings, of the project or of the person, have the hooks.
pub fn installed(context: &Context) -> Result<Vec<SessionAgent>, Failure> {
    let mut found = Vec::new();
    for agent in AGENTS {
        if !hooked_files(context, agent)?.is_empty() {
            found.push(agent);
        }
    }
    Ok(found)
}

/// Returns the settings of an agent that have all hooks: the project's first.
pub fn hooked_files(context: &Context, agent: SessionAgent) -> Result<Vec<PathBuf>, Failure> {
    let mut files = settings_read(context, agent)?;
    files.retain(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if agent == SessionAgent::OpenCode {
            return text.starts_with(PLUGIN_HEAD);
        }
        agent.events().iter().all(|event| text.contains(&format!("{}\"", words_of(agent, *event))))
    });
    Ok(files)
}

/// Returns the settings that an agent reads here: the project's, and the person's where a home is known.
pub fn settings_read(context: &Context, agent: SessionAgent) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![settings_of(context, agent, false)?];
    if agent == SessionAgent::Claude {
        files.push(context.workspace().join(".claude/settings.local.json"));
    }
    files.extend(settings_of(context, agent, true).ok());
    Ok(files)
}

/// Returns the command that an agent runs for an event, as its settings have it.
pub fn command_in(agent: SessionAgent, event: SessionEvent, file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let words = words_of(agent, event);
    if agent == SessionAgent::OpenCode {
        let line = text.lines().find_map(|line| line.strip_prefix("const PROGRAM = "))?;
        let program: String = serde_json::from_str(line).ok()?;
        return Some(format!("{} {words}", shell_word(&program)));
    }
    let settings = parsed(&text, file).ok()?.to_serde_value()?;
    let groups = settings["hooks"][agent.event_name(event)].as_array()?.clone();
    let hooks = groups.iter().filter_map(|group| group["hooks"].as_array()).flatten();
    let mut commands = hooks.filter_map(|hook| hook["command"].as_str());
    commands.find(|command| command.ends_with(&words)).map(str::to_owned)
}

/// Returns for how many seconds an agent waits for planctl's hook of an event, as its settings have it.
pub fn seconds_in(agent: SessionAgent, event: SessionEvent, file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let settings = parsed(&text, file).ok()?.to_serde_value()?;
    let groups = settings["hooks"][agent.event_name(event)].as_array()?.clone();
    let hooks = groups.iter().filter_map(|group| group["hooks"].as_array()).flatten();
    let words = words_of(agent, event);
    let mut own =
        hooks.filter(|hook| hook["command"].as_str().is_some_and(|command| command.ends_with(&words)));
    let timeout = own.next()?["timeout"].as_u64()?;
    Some(if agent == SessionAgent::Gemini { timeout / 1000 } else { timeout })
}

/// The words by which planctl knows its own hooks.
fn words_of(agent: SessionAgent, event: SessionEvent) -> String {
    format!("hook {} {}", agent.word(), event.word())
}

fn settings_of(context: &Context, agent: SessionAgent, is_user: bool) -> Result<PathBuf, Failure> {
    let folder = if is_user {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        home.ok_or_else(|| Failure::new(Exit::Configuration, "could not find your home: HOME is not set"))?
    } else {
        context.workspace().to_owned()
    };
    Ok(folder.join(match agent {
        SessionAgent::OpenCode if is_user => ".config/opencode/plugins/planctl.js",
        SessionAgent::OpenCode => ".opencode/plugins/planctl.js",
        SessionAgent::Claude => ".claude/settings.json",
        SessionAgent::Codex => ".codex/hooks.json",
        SessionAgent::Gemini => ".gemini/settings.json",
    }))
}

fn text_of(file: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Exit::Denied, format!("could not read {}: {error}", file.display()))),
    }
}

/// The program that hooks call, as words of a shell.
fn program() -> Result<String, Failure> {
    Ok(shell_word(&own_program()?))
}

/// The program that hooks call: by its name where that leads here, so that the file fits other machines too.
fn own_program() -> Result<String, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Temporary, format!("could not find planctl's own program: {error}"))
    })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|folder| folder.join("planctl")).find(|file| file.is_file());
    let is_first = first.and_then(|file| file.canonicalize().ok()) == own.canonicalize().ok();
    Ok(if is_first { "planctl".to_owned() } else { own.to_string_lossy().into_owned() })
}

fn parsed(text: &str, file: &Path) -> Result<CstRootNode, Failure> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| {
        let place = format!("{}:{}:{}", file.display(), error.line_display(), error.column_display());
        Failure::new(Exit::Configuration, format!("could not read {place}: {}", error.kind()))
            .help("planctl changes no file that it can't read; mend it, then try again")
    })
}

/// Adds the hooks to the text of a settings file; those of an earlier planctl are replaced.
fn with(agent: SessionAgent, text: &str, file: &Path) -> Result<String, Failure> {
    let program = program()?;
    if has_all(agent, &parsed(text, file)?, &program) {
        return Ok(text.to_owned());
    }
    let root = parsed(&without(agent, text, file)?, file)?;
    let wrong = || {
        Failure::new(
            Exit::Configuration,
            format!("could not add hooks to {}: `hooks` is no object", file.display()),
        )
    };
    let object = root.object_value_or_create().ok_or_else(wrong)?;
    let hooks = object.object_value_or_create("hooks").ok_or_else(wrong)?;
    for event in agent.events().iter().copied() {
        let groups = hooks.array_value_or_create(agent.event_name(event)).ok_or_else(wrong)?;
        groups.append(group(agent, event, &program));
    }
    Ok(ended(root.to_string()))
}

/// Says whether each hook is there just as it would be added.
fn has_all(agent: SessionAgent, root: &CstRootNode, program: &str) -> bool {
    let Some(value) = root.to_serde_value() else { return false };
    agent.events().iter().all(|event| {
        let groups = value["hooks"][agent.event_name(*event)].as_array().cloned().unwrap_or_default();
        groups.contains(&group_value(agent, *event, program))
    })
}

/// The group of a hook, as settings that were read have it.
fn group_value(agent: SessionAgent, event: SessionEvent, program: &str) -> Value {
    let Ok(root) = CstRootNode::parse("[]", &ParseOptions::default()) else { return Value::Null };
    root.array_value_or_set().append(group(agent, event, program));
    root.to_serde_value().and_then(|list| list.get(0).cloned()).unwrap_or_default()
}

fn group(agent: SessionAgent, event: SessionEvent, program: &str) -> CstInputValue {
    let command = format!("{program} {}", words_of(agent, event));
    let seconds = if event == SessionEvent::Stop { STOP_SECONDS } else { OTHER_SECONDS };
    let timeout = if agent == SessionAgent::Gemini { seconds * 1000 } else { seconds };
    let hook = json!({ "type": "command", "command": command, "timeout": timeout });
    if event == SessionEvent::Tool {
        let tools = agent.tools();
        return json!({ "matcher": tools, "hooks": [hook] });
    }
    json!({ "hooks": [hook] })
}

/// Takes planctl's hooks out of the text of a settings file, and what is empty without them.
fn without(agent: SessionAgent, text: &str, file: &Path) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = parsed(text, file)?;
    let Some(object) = root.object_value() else { return Ok(text.to_owned()) };
    let Some(hooks) = object.object_value("hooks") else { return Ok(text.to_owned()) };
    for event in agent.events().iter().copied() {
        let name = agent.event_name(event);
        let Some(groups) = hooks.array_value(name) else { continue };
        for group in groups.elements() {
            take_out(agent, event, &group);
        }
        if groups.elements().is_empty()
            && let Some(property) = hooks.get(name)
        {
            property.remove();
        }
    }
    if hooks.properties().is_empty()
        && let Some(property) = object.get("hooks")
    {
        property.remove();
    }
    Ok(ended(root.to_string()))
}

/// Takes planctl's hook out of a group; the group goes where nothing else is in it.
fn take_out(agent: SessionAgent, event: SessionEvent, group: &CstNode) {
    let words = words_of(agent, event);
    let is_own = |node: &CstNode| {
        let value: Option<Value> = node.to_serde_value();
        let command = value.as_ref().and_then(|value| value.get("command")).and_then(Value::as_str);
        command.is_some_and(|command| command.ends_with(&words))
    };
    let Some(object) = group.as_object() else { return };
    let list: Option<CstArray> = object.array_value("hooks");
    let Some(list) = list else { return };
    for hook in list.elements().into_iter().filter(is_own) {
        hook.remove();
    }
    if list.elements().is_empty() {
        group.clone().remove();
    }
}

fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        Failure::new(Exit::Denied, format!("could not write {}: {error}", file.display()))
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(refused)?;
    // A link leads to the file that is meant.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let mode = std::fs::metadata(&target).map(|found| found.permissions());
    let folder = target.parent().unwrap_or(folder);
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(refused)?;
    std::io::Write::write_all(&mut draft, text.as_bytes()).map_err(refused)?;
    let mode = mode.unwrap_or_else(|_| std::os::unix::fs::PermissionsExt::from_mode(0o644));
    draft.as_file().set_permissions(mode).map_err(refused)?;
    draft.persist(&target).map_err(|error| refused(error.error))?;
    Ok(())
}
