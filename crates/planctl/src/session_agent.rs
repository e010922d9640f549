//! The interactive agents whose hooks planctl knows: each with its own words for the events of a session.

use clap::ValueEnum;

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
    /// A tool was used
    ToolDone,
    /// A tool was used and failed, where the agent tells that apart
    ToolFailed,
    /// The turn is about to end
    Stop,
}

impl SessionAgent {
    /// The word that people type.
    pub fn as_str(self) -> &'static str {
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
            (SessionAgent::OpenCode, SessionEvent::Start | SessionEvent::Prompt) => "chat.message",
            (SessionAgent::OpenCode, SessionEvent::Tool) => "tool.execute.before",
            (SessionAgent::OpenCode, SessionEvent::ToolDone | SessionEvent::ToolFailed) => {
                "tool.execute.after"
            }
            (SessionAgent::OpenCode, SessionEvent::Stop) => "session.idle",
            (_, SessionEvent::Start) => "SessionStart",
            (SessionAgent::Gemini, SessionEvent::Prompt) => "BeforeAgent",
            (_, SessionEvent::Prompt) => "UserPromptSubmit",
            (SessionAgent::Gemini, SessionEvent::Tool) => "BeforeTool",
            (_, SessionEvent::Tool) => "PreToolUse",
            (SessionAgent::Gemini, SessionEvent::ToolDone) => "AfterTool",
            (_, SessionEvent::ToolDone) => "PostToolUse",
            (_, SessionEvent::ToolFailed) => "PostToolUseFailure",
            (SessionAgent::Gemini, SessionEvent::Stop) => "AfterAgent",
            (_, SessionEvent::Stop) => "Stop",
        }
    }

    /// The events that the agent tells, in the order of a turn.
    pub fn events(self) -> &'static [SessionEvent] {
        const ALL: [SessionEvent; 6] = [
            SessionEvent::Start,
            SessionEvent::Prompt,
            SessionEvent::Tool,
            SessionEvent::ToolDone,
            SessionEvent::Stop,
            SessionEvent::ToolFailed,
        ];
        match self {
            SessionAgent::Claude => &ALL,
            // These tell a tool that failed as one that was used.
            SessionAgent::Codex | SessionAgent::Gemini | SessionAgent::OpenCode => &ALL[..5],
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
    /// The word that hooks are called with.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionEvent::Start => "start",
            SessionEvent::Prompt => "prompt",
            SessionEvent::Tool => "tool",
            SessionEvent::ToolDone => "tool-done",
            SessionEvent::ToolFailed => "tool-failed",
            SessionEvent::Stop => "stop",
        }
    }
}
