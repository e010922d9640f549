//! Reads what known agents print, by its shape and not by their names (INTERFACE 3.2–3.4).

mod aider;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod trouble;

use planctl_engine::{Hints, NodeId, Usage};
use serde_json::Value;

use self::aider::Aider;
pub(super) use self::trouble::{AgentError, ErrorKind};
use crate::capture::Captured;
use crate::foreign_json::read_foreign_json;

/// A longer line is passed over; the last words of an agent, which stand in one line, take 2 MB with ease.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most text that is collected from a stream of messages.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// How many beginnings of an object are tried on standard error.
const STDERR_OBJECTS_MAX: usize = 100;
/// The most denials that are told, and the most of each.
const DENIALS_MAX: usize = 20;
const DENIAL_CHARACTERS_MAX: usize = 200;
/// How often a service refuses a login before the agent is ended that tries on.
const REFUSALS_MAX: u8 = 2;
/// The most nodes that are suggested, and the most values that are noted.
const HINTS_MAX: usize = 100;
/// No count in a report is larger; more is a mistake or a lie.
const COUNT_MAX: f64 = 1e15;
/// The longest name of a model that is kept.
const MODEL_CHARACTERS_MAX: usize = 200;

/// An agent's answer, in one form for all agents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Answer {
    pub(super) text: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<AgentError>,
    /// Trouble that it tells of and hopes to get over: the end of nothing, unless planctl ends it meanwhile.
    pub(super) notice: Option<AgentError>,
    /// Says that it used tools, so that something of the work may be done.
    pub(super) worked: bool,
    /// Says that it spoke a dialect that planctl knows: what it printed is no text for people.
    pub(super) is_known: bool,
    /// Says that it got as far as its first words.
    pub(super) is_heard: bool,
    pub(super) session: Option<String>,
    pub(super) gave_up: bool,
    pub(super) question: Option<String>,
    /// The actions that it was denied.
    pub(super) denials: Vec<String>,
    /// Its hints about the next edge: the edge it prefers, values for conditions, a step that it proposes.
    pub(super) hints: Hints,
}

impl Answer {
    /// Reads planctl's own form: `{"planctl":"result/1", …}`; the tag may be missing in a result file.
    pub(super) fn from_result_json(value: &Value) -> Option<Answer> {
        let object = value.as_object()?;
        if object.get("planctl").is_some_and(|version| version != "result/1") {
            return None;
        }
        let words = ["text", "notes", "failure_reason"].into_iter().find_map(|key| value[key].as_str());
        let text = words.map(str::to_owned);
        let outcome = value["outcome"].as_str().unwrap_or("worked");
        let question = (outcome == "needs_input").then(|| {
            value["question"].as_str().or(text.as_deref()).unwrap_or("The worker needs an answer.").to_owned()
        });
        Some(Answer {
            usage: native_usage(&value["usage"]),
            session: value["session"].as_str().map(str::to_owned),
            // A permanent failure is not tried again (DOT ruling 9).
            gave_up: outcome == "gave_up" || value["failure_class"] == "permanent",
            question,
            hints: hints(value),
            text,
            ..Answer::default()
        })
    }

    /// Takes what the stream told where this answer is silent.
    pub(super) fn or_usage_of(self, heard: Answer) -> Answer {
        Answer {
            usage: self.usage.or(heard.usage),
            session: self.session.or(heard.session),
            error: heard.error,
            notice: heard.notice,
            worked: heard.worked,
            is_known: heard.is_known,
            is_heard: heard.is_heard,
            denials: heard.denials,
            ..self
        }
    }
}

/// Reads what a result says of the way on (DOT X4); numbers and flags are values as they are written.
fn hints(value: &Value) -> Hints {
    let words = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let suggested = value["suggested_next_ids"].as_array().into_iter().flatten();
    let noted = value["context_updates"].as_object().into_iter().flatten();
    Hints {
        label: value["preferred_label"].as_str().map(str::to_owned),
        suggested: suggested.filter_map(Value::as_str).take(HINTS_MAX).map(NodeId::from).collect(),
        context: noted
            .take(HINTS_MAX)
            .filter_map(|(name, value)| Some((name.clone(), words(value)?)))
            .collect(),
        insert_step: value["insert_step"].as_str().map(str::to_owned),
    }
}

/// Reads what a worker says it used; where a figure of it is none that can be, nothing is known of the rest either, and
/// the work is unmetered.
fn native_usage(usage: &Value) -> Option<Usage> {
    let figures = ["input_tokens", "cached_input_tokens", "output_tokens", "cost_usd"];
    are_figures(usage, &figures).then(|| Usage {
        input_tokens: count(&usage["input_tokens"]),
        cached_input_tokens: count(&usage["cached_input_tokens"]),
        output_tokens: count(&usage["output_tokens"]),
        micro_usd: micro_usd(&usage["cost_usd"]),
        model: usage["model"].as_str().map(|model| model.chars().take(MODEL_CHARACTERS_MAX).collect()),
        estimated: false,
        tokens_estimated: false,
    })
}

/// Says whether these of an object are figures that can be, or not there.
fn are_figures(object: &Value, names: &[&str]) -> bool {
    let is_figure = |value: &Value| {
        value.is_null() || value.as_f64().is_some_and(|number| (0.0..=COUNT_MAX).contains(&number))
    };
    object.is_object() && names.iter().all(|name| is_figure(&object[*name]))
}

fn count(value: &Value) -> u64 {
    // A saturating cast, within bounds already.
    value.as_f64().map_or(0, |number| number.clamp(0.0, COUNT_MAX) as u64)
}

fn micro_usd(value: &Value) -> Option<u64> {
    value.as_f64().filter(|money| *money >= 0.0).map(|money| (money * 1e6).round().min(COUNT_MAX) as u64)
}

/// Reads standard output line by line, at any length of a line, and keeps the parts that the dialects need.
#[derive(Default)]
pub(super) struct Listener {
    line: Vec<u8>,
    is_overlong: bool,
    native: Option<Answer>,
    known: Answer,
    messages: String,
    aider: Aider,
    refusals: u8,
}

impl Listener {
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    /// Says that its service refuses its login time after time, so that waiting for it is of no use. Once may be a token that
    /// the agent draws anew.
    pub(super) fn is_refused(&self) -> bool {
        self.refusals >= REFUSALS_MAX || self.aider.lacks_login()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.is_overlong || self.line.len() + bytes.len() > LINE_BYTES_MAX {
            self.is_overlong = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_overlong) {
            return;
        }
        if line.first() == Some(&b'{') {
            if let Ok(value) = read_foreign_json::<Value>(&line) {
                self.value(&value);
            }
        } else if let Ok(text) = std::str::from_utf8(&line) {
            self.aider.parse_line(text.trim_end());
        }
        self.line = line;
        self.line.clear();
    }

    /// Returns what was said; `stdout` is for agents that print one object, or plain text, and `stderr` for those that
    /// tell their failure there.
    pub(super) fn finish(mut self, stdout: &Captured, stderr: &Captured) -> Answer {
        self.end_line();
        if let Some(native) = self.native {
            return native.or_usage_of(self.known);
        }
        if !self.known.is_known && !stdout.is_cut() {
            // One object over many lines.
            if let Ok(value) = read_foreign_json::<Value>(&stdout.joined()) {
                self.value(&value);
            }
        }
        if self.known.is_known {
            if self.known.text.is_none() && !self.messages.is_empty() {
                self.known.text = Some(self.messages);
            }
            return self.known;
        }
        if stdout.bytes == 0
            && let Some(error) = gemini::on_stderr(stderr)
        {
            return Answer { error: Some(error), ..Answer::default() };
        }
        self.aider.answer(stdout)
    }

    fn value(&mut self, value: &Value) {
        if value["planctl"] == "result/1" {
            self.native = Answer::from_result_json(value);
            return;
        }
        let known = &mut self.known;
        known.is_heard |= claude::parse_line(known, value)
            || codex::parse_line(known, value)
            || opencode::parse_line(known, value)
            || gemini::parse_line(known, &mut self.messages, value);
        known.is_known = known.is_heard;
        let is_refusal = known.notice.as_ref().is_some_and(|notice| notice.kind == ErrorKind::Login);
        self.refusals = if is_refusal { self.refusals.saturating_add(1) } else { 0 };
    }
}

/// Returns what a line of a known dialect says that its agent does: `Write hello.txt`; nothing where it tells of no tool.
pub fn tool_in(line: &str) -> Option<String> {
    let value: Value = read_foreign_json(line.trim().as_bytes()).ok()?;
    let named = [claude::tool(&value), codex::tool(&value), opencode::tool(&value), gemini::tool(&value)];
    named.into_iter().flatten().next()
}

/// Names a tool by its own name and the part of its input that tells most: `Bash(make)`.
fn tool_words(name: &str, input: &Value) -> String {
    let what = ["command", "cmd", "file_path", "filePath", "path", "url", "pattern"];
    let what = what.into_iter().find_map(|key| input[key].as_str());
    let text = what.map_or_else(|| name.to_owned(), |what| format!("{name}({what})"));
    text.chars().take(DENIAL_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests;
