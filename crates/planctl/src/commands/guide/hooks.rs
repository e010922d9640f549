//! Input and answers of the hooks of interactive agents: each agent's own words, one set of events for planctl.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most characters of a text for an agent; Claude Code cuts what is longer.
const TEXT_CHARACTERS_MAX: usize = 9_000;

/// An interactive agent whose hooks planctl knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SessionAgent {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// OpenCode, by a plugin of planctl's
    #[value(name = "opencode")]
    OpenCode,
}

/// An event of a session that planctl acts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SessionEvent {
    /// A session begins, or goes on after its context was made shorter
    Start,
    /// A prompt was given
    Prompt,
    /// A tool is about to be used
    Tool,
    /// The turn is about to end
    Stop,
}

impl SessionAgent {
    /// The word that people type.
    pub fn word(self) -> &'static str {
        match self {
            SessionAgent::Claude => "claude",
            SessionAgent::Codex => "codex",
            SessionAgent::Gemini => "gemini",
            SessionAgent::OpenCode => "opencode",
        }
    }

    /// The agent's own name of an event.
    pub fn event_name(self, event: SessionEvent) -> &'static str {
        match (self, event) {
            (_, SessionEvent::Start) => "SessionStart",
            (SessionAgent::Gemini, SessionEvent::Prompt) => "BeforeAgent",
            (_, SessionEvent::Prompt) => "UserPromptSubmit",
            (SessionAgent::Gemini, SessionEvent::Tool) => "BeforeTool",
            (_, SessionEvent::Tool) => "PreToolUse",
            (SessionAgent::Gemini, SessionEvent::Stop) => "AfterAgent",
            (_, SessionEvent::Stop) => "Stop",
        }
    }

    /// The tools that change files or run commands, as the agent's settings match them.
    pub fn tools(self) -> &'static str {
        match self {
            SessionAgent::Claude => "Edit|MultiEdit|Write|NotebookEdit|Bash",
            SessionAgent::Codex => "Bash|apply_patch",
            SessionAgent::Gemini => "write_file|replace|run_shell_command",
            // The plugin is called before each.
            SessionAgent::OpenCode => "",
        }
    }
}

impl SessionEvent {
    /// All events, in the order of a turn.
    pub const ALL: [SessionEvent; 4] =
        [SessionEvent::Start, SessionEvent::Prompt, SessionEvent::Tool, SessionEvent::Stop];

    /// The word that hooks are called with.
    pub fn word(self) -> &'static str {
        match self {
            SessionEvent::Start => "start",
            SessionEvent::Prompt => "prompt",
            SessionEvent::Tool => "tool",
            SessionEvent::Stop => "stop",
        }
    }
}

/// The input of a hook on its standard input; keys that planctl does not need are left out.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HookInput {
    /// The session.
    pub session_id: String,
    /// The folder that the session works in.
    pub cwd: PathBuf,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Map<String, Value>,
    /// The prompt that was given.
    pub prompt: String,
    /// The last words of a turn.
    pub last_assistant_message: Option<String>,
    /// The same, as Gemini CLI names them.
    pub prompt_response: Option<String>,
}

impl HookInput {
    /// The last words of the turn; empty where the agent tells none.
    pub fn last_words(&self) -> &str {
        self.last_assistant_message.as_deref().or(self.prompt_response.as_deref()).unwrap_or_default()
    }

    /// The command that a tool is to run, where it runs one.
    pub fn command(&self) -> Option<String> {
        match self.tool_input.get("command")? {
            Value::String(command) => Some(command.clone()),
            Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    /// The files that a tool is to change.
    pub fn files(&self) -> Vec<String> {
        let named = ["file_path", "filePath", "path", "notebook_path", "absolute_path"];
        let mut files: Vec<String> = named
            .iter()
            .filter_map(|key| self.tool_input.get(*key).and_then(Value::as_str))
            .map(str::to_owned)
            .collect();
        // A patch names its files in lines of its own.
        let texts = self.tool_input.values().filter_map(Value::as_str);
        for line in texts.flat_map(str::lines) {
            let named = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
            files.extend(
                named.iter().filter_map(|mark| line.strip_prefix(mark)).map(|file| file.trim().to_owned()),
            );
        }
        files
    }
}

/// The answer of a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The session goes on as if there were no hook.
    Pass,
    /// The same, and the person is told something.
    Note(String),
    /// The session reads this.
    Context(String),
    /// The tool is not used, for this reason.
    Refuse(String),
    /// The turn does not end; the session reads this.
    SendBack(String),
}

impl Reply {
    /// The answer as the agent reads it; nothing where the agent needs none.
    pub fn json(&self, agent: SessionAgent, event: SessionEvent) -> Option<Value> {
        if agent == SessionAgent::OpenCode {
            return self.for_plugin();
        }
        let name = agent.event_name(event);
        Some(match self {
            // Codex takes silence for a fault.
            Reply::Pass if agent == SessionAgent::Codex => json!({}),
            Reply::Pass => return None,
            Reply::Note(text) => json!({ "systemMessage": cut(text) }),
            Reply::Context(text) => {
                json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": cut(text) } })
            }
            Reply::Refuse(reason) if agent == SessionAgent::Gemini => {
                json!({ "decision": "deny", "reason": cut(reason) })
            }
            Reply::Refuse(reason) => json!({ "hookSpecificOutput": {
                "hookEventName": name,
                "permissionDecision": "deny",
                "permissionDecisionReason": cut(reason),
            }}),
            Reply::SendBack(reason) => {
                let word = if agent == SessionAgent::Gemini { "deny" } else { "block" };
                json!({ "decision": word, "reason": cut(reason) })
            }
        })
    }
}

impl Reply {
    /// The answer as planctl's own plugin reads it.
    fn for_plugin(&self) -> Option<Value> {
        Some(match self {
            Reply::Pass => return None,
            Reply::Note(note) => json!({ "note": note }),
            Reply::Context(context) => json!({ "context": context }),
            Reply::Refuse(reason) => json!({ "refuse": reason }),
            Reply::SendBack(reason) => json!({ "sendBack": reason }),
        })
    }
}

/// Cuts a text in its middle, so that its beginning and what failed last both stay.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= TEXT_CHARACTERS_MAX {
        return text.to_owned();
    }
    let half = TEXT_CHARACTERS_MAX / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}\n… ({} characters left out; planctl context shows all) …\n{tail}", count - 2 * half)
}
