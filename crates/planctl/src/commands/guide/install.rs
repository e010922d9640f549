//! `planctl guide install`: planctl's hooks in the settings of an agent. All else in the file stays as it is, comments too.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstRootNode};
use jsonc_parser::{ParseOptions, json};
use serde_json::{Value, to_string};

use super::plugin::Plugin;
use crate::args::Install;
use crate::commands::settings::{self, Change, ended};
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::session_agent::{SessionAgent, SessionEvent};
use crate::show::{self, shell_word};

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
    if wanted.agent == SessionAgent::Claude {
        return install_for_claude(context, wanted);
    }
    if wanted.plugin {
        let message = format!("{} has no plugins of this kind", wanted.agent.as_str());
        return Err(Failure::usage(message).next(format!("planctl guide install {}", wanted.agent.as_str())));
    }
    let file = settings_of(context, wanted.agent, wanted.user)?;
    let shown = show::safe(&file.display().to_string());
    let before = settings::text_of(&file)?;
    let old = before.as_deref().unwrap_or_default();
    let after = match (wanted.agent, wanted.remove) {
        (SessionAgent::OpenCode, _) if !old.is_empty() && !old.starts_with(PLUGIN_HEAD) => {
            let foreign = format!("{shown} is not planctl's; nothing was written");
            return Err(Failure::new(Exit::Conflict, foreign).help("move it away, and try again"));
        }
        (SessionAgent::OpenCode, true) => String::new(),
        (SessionAgent::OpenCode, false) => {
            PLUGIN.replace("\"PLANCTL\"", &to_string(&settings::own_program()?).unwrap_or_default())
        }
        (agent, true) => text_without_hooks(agent, old, &file)?,
        (agent, false) => text_with_hooks(agent, old, &file)?,
    };
    let unchanged = if wanted.remove { "has no hooks of planctl" } else { "has the hooks" };
    let change =
        Change { file: &file, before: before.as_deref(), after: &after, unchanged, dry_run: wanted.dry_run };
    if settings::change(context, &change)? && !wanted.remove {
        if wanted.agent == SessionAgent::Codex {
            context.say(
                "codex calls hooks only once you trust them: start codex here and say yes to its question",
            );
        }
        say_next(context);
    }
    Ok(Exit::Yes)
}

fn say_next(context: &Context) {
    context.say(&next::line("planctl guide on PLAN      or     planctl guard 'cargo test'"));
}

/// Does the same for Claude Code, which takes hooks in its settings or as a plugin: where it gets them in one form, it loses them
/// in the other, so that each is called once.
fn install_for_claude(context: &Context, wanted: &Install) -> Answer {
    let root = if wanted.user { settings::home()? } else { context.workspace().to_owned() };
    let settings = settings_of(context, SessionAgent::Claude, wanted.user)?;
    let plugin = Plugin::of(&root);
    let (manifest, manifest_text) = plugin.manifest();
    let is_in = |form: bool| !wanted.remove && wanted.plugin == form;
    let old = settings::text_of(&settings)?.unwrap_or_default();
    let in_settings = match is_in(false) {
        true => text_with_hooks(SessionAgent::Claude, &old, &settings)?,
        false => text_without_hooks(SessionAgent::Claude, &old, &settings)?,
    };
    let (hooks_text, manifest_text) = match is_in(true) {
        true => (text_with_hooks(SessionAgent::Claude, "", &plugin.hooks())?, manifest_text),
        false => (String::new(), String::new()),
    };
    let texts = [(settings, in_settings), (manifest, manifest_text), (plugin.hooks(), hooks_text)];
    // Where nothing changes, one file is named for all.
    let named = if is_in(true) { 2 } else { 0 };
    let mut is_written = false;
    for (at, (file, after)) in texts.iter().enumerate() {
        let before = settings::text_of(file)?;
        if before.as_deref().unwrap_or_default() == after && at != named {
            continue;
        }
        let unchanged = if wanted.remove { "has no hooks of planctl" } else { "has the hooks" };
        let change = Change { file, before: before.as_deref(), after, unchanged, dry_run: wanted.dry_run };
        is_written |= settings::change(context, &change)?;
    }
    plugin.remove_folders();
    if is_written && is_in(true) && !wanted.user {
        context.say("claude loads a project's plugin only where you trust the folder: start claude here once, and say yes");
    }
    if is_written && !wanted.remove {
        say_next(context);
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
    if agent == SessionAgent::Claude {
        let roots = [Some(context.workspace().to_owned()), settings::home().ok()];
        files.extend(roots.iter().flatten().map(|root| Plugin::of(root).hooks()));
    }
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
    let settings = settings::parsed(&text, file).ok()?.to_serde_value()?;
    let groups = settings["hooks"][agent.event_name(event)].as_array()?.clone();
    let hooks = groups.iter().filter_map(|group| group["hooks"].as_array()).flatten();
    let mut commands = hooks.filter_map(|hook| hook["command"].as_str());
    commands.find(|command| command.ends_with(&words)).map(str::to_owned)
}

/// Returns for how many seconds an agent waits for planctl's hook of an event, as its settings have it.
pub fn seconds_in(agent: SessionAgent, event: SessionEvent, file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let settings = settings::parsed(&text, file).ok()?.to_serde_value()?;
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
    format!("hook {} {}", agent.as_str(), event.as_str())
}

fn settings_of(context: &Context, agent: SessionAgent, is_user: bool) -> Result<PathBuf, Failure> {
    let folder = if is_user { settings::home()? } else { context.workspace().to_owned() };
    Ok(folder.join(match agent {
        SessionAgent::OpenCode if is_user => ".config/opencode/plugins/planctl.js",
        SessionAgent::OpenCode => ".opencode/plugins/planctl.js",
        SessionAgent::Claude => ".claude/settings.json",
        SessionAgent::Codex => ".codex/hooks.json",
        SessionAgent::Gemini => ".gemini/settings.json",
    }))
}

/// The program that hooks call, as words of a shell.
fn program() -> Result<String, Failure> {
    Ok(shell_word(&settings::own_program()?))
}

/// Adds the hooks to the text of a settings file; those of an earlier planctl are replaced.
fn text_with_hooks(agent: SessionAgent, text: &str, file: &Path) -> Result<String, Failure> {
    let program = program()?;
    if has_all(agent, &settings::parsed(text, file)?, &program) {
        return Ok(text.to_owned());
    }
    let root = settings::parsed(&text_without_hooks(agent, text, file)?, file)?;
    let wrong = || {
        Failure::new(
            Exit::Configuration,
            format!("could not add hooks to {}: `hooks` is not an object", file.display()),
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
fn text_without_hooks(agent: SessionAgent, text: &str, file: &Path) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = settings::parsed(text, file)?;
    let Some(object) = root.object_value() else { return Ok(text.to_owned()) };
    let Some(hooks) = object.object_value("hooks") else { return Ok(text.to_owned()) };
    for event in agent.events().iter().copied() {
        let name = agent.event_name(event);
        let Some(groups) = hooks.array_value(name) else { continue };
        for group in groups.elements() {
            take_out(agent, event, &group);
        }
        if is_bare(&groups.to_string())
            && let Some(property) = hooks.get(name)
        {
            property.remove();
        }
    }
    if is_bare(&hooks.to_string())
        && let Some(property) = object.get("hooks")
    {
        property.remove();
    }
    Ok(ended(root.to_string()))
}

/// Says whether a list or an object has nothing in it, not even a comment.
fn is_bare(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || "{}[]".contains(c))
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
