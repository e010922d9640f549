//! Input and answers of the hooks of interactive agents: each agent's own words, one set of events for planctl.

use std::io::Read as _;
use std::path::PathBuf;

use planctl_api::wire::calls::ObservationCall;
use planctl_engine::Observation;
use planctl_harness::read_foreign_json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::session_agent::{SessionAgent, SessionEvent};

/// The most bytes that a hook reads of its input.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The most characters of a text for an agent; Claude Code cuts what is longer.
const TEXT_CHARACTERS_MAX: usize = 9_000;

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
    /// Its answer, of a tool that was used.
    pub tool_response: Value,
    /// Its trouble, of a tool that failed.
    pub error: Value,
    /// The prompt that was given.
    pub prompt: String,
    /// The last words of a turn.
    pub last_assistant_message: Option<String>,
    /// The same, as Gemini CLI names them.
    pub prompt_response: Option<String>,
}

pub fn trouble_words(message: &str) -> String {
    format!("planctl: {message}; the session goes on, and nothing has passed")
}

impl Reply {
    /// Answers an event whose input can't be read: it may be just something that a held session may not do.
    pub fn to_unread(event: SessionEvent, message: &str) -> Reply {
        match event {
            SessionEvent::Tool => {
                Reply::Refuse(format!("planctl: {message}; this session is held, so the tool is not used"))
            }
            SessionEvent::Stop => Reply::Note(trouble_words(message)),
            SessionEvent::Start
            | SessionEvent::Prompt
            | SessionEvent::ToolDone
            | SessionEvent::ToolFailed => Reply::Pass,
        }
    }
}

impl HookInput {
    /// Reads all of the input: an agent whose hook stops listening takes that for a broken hook.
    ///
    /// # Errors
    ///
    /// Says why it can't be read.
    pub fn read() -> Result<HookInput, String> {
        let mut text = Vec::new();
        let mut told = std::io::stdin().lock();
        let read = told.by_ref().take(INPUT_BYTES_MAX).read_to_end(&mut text);
        let beyond = read.and_then(|_| std::io::copy(&mut told, &mut std::io::sink()));
        let unread = |error: &dyn std::fmt::Display| format!("the input of its hook can't be read ({error})");
        match beyond {
            Ok(0) => read_foreign_json(&text).map_err(|error| unread(&error)),
            Ok(_) => Err(format!("the input of its hook has more than {} MiB", INPUT_BYTES_MAX >> 20)),
            Err(error) => Err(unread(&error)),
        }
    }
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

impl HookInput {
    /// The output of the tool that was used, as the agent tells it.
    pub fn observation(&self, agent: SessionAgent, event: SessionEvent) -> ObservationCall {
        let told = if event == SessionEvent::ToolFailed { &self.error } else { &self.tool_response };
        // Gemini's text for the model has words of its own around the output.
        let display =
            told.get("returnDisplay").filter(|shown| agent == SessionAgent::Gemini && shown.is_string());
        let output = text_of(display.unwrap_or(told));
        let told_code = exit_code_of(told);
        let exit_code = match (agent, event) {
            // Claude Code tells no code, and tells a command that failed by another event, whose text begins with the code.
            (SessionAgent::Claude, SessionEvent::ToolFailed) => {
                let code = output.lines().next().and_then(|line| number_after(line, "Exit code "));
                Some(code.filter(|code| *code != 0).unwrap_or(1))
            }
            (SessionAgent::Claude, _) => told_code.or((told["interrupted"] != true).then_some(0)),
            // Gemini CLI writes the code of a command that failed behind its output.
            (SessionAgent::Gemini, _) if !told["error"].is_null() => {
                Some(told_code.filter(|code| *code != 0).unwrap_or(1))
            }
            // A command's own lines stand before that.
            (SessionAgent::Gemini, _) => {
                let text = text_of(&told["llmContent"]);
                let code = text.lines().rev().find_map(|line| number_after(line, "Exit Code: "));
                told_code.or(code).or(Some(0))
            }
            // Codex tells a command's output alone.
            (SessionAgent::Codex | SessionAgent::OpenCode, _) => told_code,
        };
        let is_command = self.command().is_some();
        let seen = Observation::new(self.command(), exit_code.filter(|_| is_command), &output);
        ObservationCall {
            command: seen.command,
            exit_code: seen.exit_code,
            output: seen.output,
            is_cut: seen.is_cut,
        }
    }
}

/// All that a tool printed: the texts of its answer, whatever the agent calls them.
fn text_of(told: &Value) -> String {
    match told {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().map(text_of).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(object) => {
            let named = ["stdout", "stderr", "output", "aggregated_output", "llmContent", "content", "text"];
            let texts = named.iter().filter_map(|key| object.get(*key)).map(text_of);
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The exit code, where the agent tells it as a number.
fn exit_code_of(told: &Value) -> Option<i32> {
    let named = |told: &Value| {
        let codes = ["exit_code", "exitCode", "exit", "returnCode"].map(|key| told[key].as_i64());
        codes.into_iter().flatten().next()
    };
    let code = named(told).or_else(|| named(&told["metadata"]))?;
    i32::try_from(code).ok()
}

/// The number behind a word that begins a line.
fn number_after(line: &str, word: &str) -> Option<i32> {
    let rest = line.trim_start().strip_prefix(word)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
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
            Reply::Note(text) => json!({ "systemMessage": cut_middle(text) }),
            Reply::Context(text) => {
                json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": cut_middle(text) } })
            }
            Reply::Refuse(reason) if agent == SessionAgent::Gemini => {
                json!({ "decision": "deny", "reason": cut_middle(reason) })
            }
            Reply::Refuse(reason) => json!({ "hookSpecificOutput": {
                "hookEventName": name,
                "permissionDecision": "deny",
                "permissionDecisionReason": cut_middle(reason),
            }}),
            Reply::SendBack(reason) => {
                let word = if agent == SessionAgent::Gemini { "deny" } else { "block" };
                json!({ "decision": word, "reason": cut_middle(reason) })
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
pub fn cut_middle(text: &str) -> String {
    let count = text.chars().count();
    if count <= TEXT_CHARACTERS_MAX {
        return text.to_owned();
    }
    let half = TEXT_CHARACTERS_MAX / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}\n… ({} characters left out; planctl context shows all) …\n{tail}", count - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(agent: SessionAgent, event: SessionEvent, told: &Value) -> ObservationCall {
        let input: HookInput = serde_json::from_value(told.clone()).unwrap();
        input.observation(agent, event)
    }

    #[test]
    fn x01_each_agents_own_words_say_what_a_command_printed_and_how_it_ended() {
        let shell = |response: Value| json!({ "tool_name": "Bash", "tool_input": { "command": "make" }, "tool_response": response });
        let fails =
            |error: &str| json!({ "tool_name": "Bash", "tool_input": { "command": "make" }, "error": error });
        let gemini = |content: &str, display: &str| {
            let content = format!(
                "<untrusted_context>\nOutput: {content}\nProcess Group PGID: 7\n</untrusted_context>"
            );
            shell(json!({ "llmContent": content, "returnDisplay": display }))
        };
        let (done, failed) = (SessionEvent::ToolDone, SessionEvent::ToolFailed);
        let (claude, codex) = (SessionAgent::Claude, SessionAgent::Codex);
        let cases = [
            (
                claude,
                done,
                shell(json!({ "stdout": "out\nwarn", "stderr": "", "interrupted": false, "isImage": false })),
                Some(0),
                "out\nwarn",
            ),
            (claude, done, shell(json!({ "stdout": "", "interrupted": true })), None, ""),
            (claude, failed, fails("Exit code 3\nbad"), Some(3), "Exit code 3\nbad"),
            (claude, failed, fails("Exit code 3\nExit code 0"), Some(3), "Exit code 3\nExit code 0"),
            (claude, failed, fails("Exit code 0 is what it says"), Some(1), "Exit code 0 is what it says"),
            (
                codex,
                done,
                shell(json!("bad\nProcess exited with code 0\n")),
                None,
                "bad\nProcess exited with code 0\n",
            ),
            (SessionAgent::Gemini, done, gemini("out", "out"), Some(0), "out"),
            (SessionAgent::Gemini, done, gemini("", ""), Some(0), ""),
            (
                SessionAgent::Gemini,
                done,
                gemini("Exit Code: 0\nExit Code: 3", "Exit Code: 0"),
                Some(3),
                "Exit Code: 0",
            ),
            (SessionAgent::Gemini, done, shell(json!({ "error": { "message": "x" } })), Some(1), ""),
            (
                SessionAgent::OpenCode,
                done,
                shell(json!({ "output": "bad\n", "metadata": { "output": "bad\n", "exit": 3 } })),
                Some(3),
                "bad\n",
            ),
        ];
        for (agent, event, told, exit_code, output) in cases {
            let seen = seen(agent, event, &told);
            assert_eq!((seen.exit_code, seen.output.as_str()), (exit_code, output), "{agent:?} {told}");
            assert_eq!(seen.command.as_deref(), Some("make"));
        }
        let reads = json!({ "tool_name": "Read", "tool_input": { "file_path": "x" }, "tool_response": { "content": "text" } });
        let seen = seen(SessionAgent::Claude, done, &reads);
        assert_eq!((seen.command, seen.exit_code, seen.output.as_str()), (None, None, "text"));
    }
}
