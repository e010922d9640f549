//! Reads what known agents print, by its shape and not by their names (INTERFACE 3.2–3.4).

use planctl_engine::{Hints, NodeId, Usage};
use serde_json::Value;

use crate::capture::Captured;

/// A longer line is passed over.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// The most text that is collected from a stream of messages.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// How many beginnings of an object are tried on standard error.
const STDERR_OBJECTS_MAX: usize = 100;
/// The most denials that are told, and the most of each.
const DENIALS_MAX: usize = 20;
const DENIAL_CHARACTERS_MAX: usize = 200;
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
    pub(super) session: Option<String>,
    pub(super) gave_up: bool,
    pub(super) question: Option<String>,
    pub(super) artifacts: Vec<String>,
    /// The actions that it was denied.
    pub(super) denials: Vec<String>,
    /// Its hints about the next edge: the edge it prefers, values for conditions, a step that it proposes.
    pub(super) hints: Hints,
}

/// An error that the agent itself reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AgentError {
    pub(super) message: String,
    /// Says that it is about a login or a right.
    pub(super) is_permission: bool,
}

impl Answer {
    /// Reads planctl's own form: `{"planctl":"result/1", …}`; the tag may be missing in a result file.
    pub(super) fn native(value: &Value) -> Option<Answer> {
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
        let artifacts = value["artifacts"].as_array().into_iter().flatten();
        Some(Answer {
            usage: native_usage(&value["usage"]),
            error: None,
            session: value["session"].as_str().map(str::to_owned),
            // A permanent failure is not tried again (DOT ruling 9).
            gave_up: outcome == "gave_up" || value["failure_class"] == "permanent",
            question,
            artifacts: artifacts.filter_map(|path| path.as_str().map(str::to_owned)).take(1000).collect(),
            denials: Vec::new(),
            hints: hints(value),
            text,
        })
    }

    /// Takes what the stream told where this answer is silent.
    pub(super) fn or_usage_of(self, heard: Answer) -> Answer {
        Answer {
            usage: self.usage.or(heard.usage),
            session: self.session.or(heard.session),
            error: heard.error,
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
    let is_figure = |value: &Value| {
        value.is_null() || value.as_f64().is_some_and(|number| (0.0..=COUNT_MAX).contains(&number))
    };
    let is_sound = usage.is_object() && figures.iter().all(|name| is_figure(&usage[*name]));
    is_sound.then(|| Usage {
        input_tokens: count(&usage["input_tokens"]),
        cached_input_tokens: count(&usage["cached_input_tokens"]),
        output_tokens: count(&usage["output_tokens"]),
        micro_usd: micro_usd(&usage["cost_usd"]),
        model: usage["model"].as_str().map(|model| model.chars().take(MODEL_CHARACTERS_MAX).collect()),
        estimated: false,
    })
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
    is_known: bool,
    messages: String,
    aider: Aider,
}

/// The figures in aider's plain text.
#[derive(Default)]
struct Aider {
    usage: Option<Usage>,
    error: Option<String>,
    model: Option<String>,
}

impl Listener {
    pub(super) fn hear(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.extend(rest);
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
            if let Ok(value) = serde_json::from_slice::<Value>(&line) {
                self.value(&value);
            }
        } else if let Ok(text) = std::str::from_utf8(&line) {
            self.aider.line(text.trim_end());
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
        if !self.is_known && !stdout.is_cut() {
            // One object over many lines.
            if let Ok(value) = serde_json::from_slice::<Value>(&stdout.joined()) {
                self.value(&value);
            }
        }
        if self.is_known {
            if self.known.text.is_none() && !self.messages.is_empty() {
                self.known.text = Some(self.messages);
            }
            return self.known;
        }
        if stdout.bytes == 0
            && let Some(error) = gemini_stderr(stderr)
        {
            return Answer { error: Some(error), ..Answer::default() };
        }
        self.aider.answer(stdout)
    }

    fn value(&mut self, value: &Value) {
        if value["planctl"] == "result/1" {
            self.native = Answer::native(value);
            return;
        }
        let kind = value["type"].as_str().unwrap_or_default();
        self.is_known |= match kind {
            "result" if value.get("total_cost_usd").is_some() => claude(&mut self.known, value),
            "result" if value["stats"].is_object() => gemini_result(&mut self.known, value),
            "init" if value["session_id"].is_string() => {
                self.known.session = value["session_id"].as_str().map(str::to_owned);
                false
            }
            "message" if value["role"] == "assistant" => {
                let content = value["content"].as_str().unwrap_or_default();
                if self.messages.len() + content.len() <= TEXT_BYTES_MAX {
                    self.messages.push_str(content);
                }
                false
            }
            "thread.started" => {
                self.known.session = value["thread_id"].as_str().map(str::to_owned);
                false
            }
            "item.completed" | "turn.completed" | "turn.failed" => codex(&mut self.known, kind, value),
            "text" | "step_finish" if value["part"].is_object() => opencode(&mut self.known, kind, value),
            "error" if value["sessionID"].is_string() => opencode(&mut self.known, kind, value),
            _ if value["response"].is_string() && value["stats"].is_object() => {
                self.known.text = value["response"].as_str().map(str::to_owned);
                self.known.usage = Some(gemini_usage(&value["stats"]));
                true
            }
            _ => false,
        };
    }
}

/// Gemini's one object goes to standard error where it failed, after any other output there (INTERFACE 3.3).
fn gemini_stderr(stderr: &Captured) -> Option<AgentError> {
    let bytes = stderr.joined();
    let text = std::str::from_utf8(&bytes).ok()?;
    let starts =
        text.match_indices('{').map(|(at, _)| at).filter(|at| *at == 0 || text[..*at].ends_with('\n'));
    let value: Value =
        starts.take(STDERR_OBJECTS_MAX).find_map(|at| serde_json::from_str(&text[at..]).ok())?;
    let error = &value["error"];
    let message = error["message"].as_str()?.to_owned();
    let is_permission = matches!(error["code"].as_u64(), Some(41 | 55 | 401 | 403));
    Some(AgentError { message, is_permission })
}

fn claude(answer: &mut Answer, value: &Value) -> bool {
    let denials = value["permission_denials"].as_array().into_iter().flatten();
    answer.denials = denials.take(DENIALS_MAX).filter_map(denial).collect();
    answer.session = value["session_id"].as_str().map(str::to_owned);
    let structured = &value["structured_output"];
    answer.text = if structured.is_null() {
        value["result"].as_str().map(str::to_owned)
    } else {
        Some(structured.to_string())
    };
    let models = value["modelUsage"].as_object().filter(|models| !models.is_empty());
    let mut usage = Usage { micro_usd: micro_usd(&value["total_cost_usd"]), ..Usage::default() };
    match models {
        // Per model is right where the sum is not: after an exceeded budget it is all zero.
        Some(models) => {
            for model in models.values() {
                let cached = count(&model["cacheReadInputTokens"]);
                usage.input_tokens +=
                    count(&model["inputTokens"]) + cached + count(&model["cacheCreationInputTokens"]);
                usage.cached_input_tokens += cached;
                usage.output_tokens += count(&model["outputTokens"]);
            }
            let busiest = models.iter().max_by_key(|(_, model)| count(&model["outputTokens"]));
            usage.model = busiest.map(|(name, _)| name.clone());
        }
        None => {
            let sum = &value["usage"];
            usage.cached_input_tokens = count(&sum["cache_read_input_tokens"]);
            usage.input_tokens = count(&sum["input_tokens"])
                + usage.cached_input_tokens
                + count(&sum["cache_creation_input_tokens"]);
            usage.output_tokens = count(&sum["output_tokens"]);
        }
    }
    answer.usage = Some(usage);
    if value["is_error"] == true {
        let message =
            value["result"].as_str().or(value["subtype"].as_str()).unwrap_or("an error without a text");
        let is_permission = matches!(value["api_error_status"].as_u64(), Some(401 | 403));
        answer.error = Some(AgentError { message: message.to_owned(), is_permission });
    }
    true
}

/// `Bash(rm -rf build)`, `Write(notes.md)`, `WebFetch`.
fn denial(value: &Value) -> Option<String> {
    let tool = value["tool_name"].as_str()?;
    let input = &value["tool_input"];
    let what = ["command", "file_path", "url"].into_iter().find_map(|key| input[key].as_str());
    let text = what.map_or_else(|| tool.to_owned(), |what| format!("{tool}({what})"));
    Some(text.chars().take(DENIAL_CHARACTERS_MAX).collect())
}

fn codex(answer: &mut Answer, kind: &str, value: &Value) -> bool {
    match kind {
        "item.completed" => {
            if value["item"]["type"] != "agent_message" {
                return false;
            }
            answer.text = value["item"]["text"].as_str().map(str::to_owned);
        }
        "turn.completed" => {
            let usage = &value["usage"];
            answer.error = None;
            answer.usage = Some(Usage {
                input_tokens: count(&usage["input_tokens"]),
                cached_input_tokens: count(&usage["cached_input_tokens"]),
                output_tokens: count(&usage["output_tokens"]),
                ..Usage::default()
            });
        }
        _ => {
            let message = value["error"]["message"].as_str().unwrap_or("the turn failed");
            let is_permission =
                message.contains("authentication_error") || message.contains("permission_error");
            answer.error = Some(AgentError { message: message.to_owned(), is_permission });
        }
    }
    true
}

fn gemini_result(answer: &mut Answer, value: &Value) -> bool {
    answer.usage = Some(gemini_usage(&value["stats"]));
    if value["status"] == "error" {
        let message = value["error"]["message"].as_str().unwrap_or("an error without a text");
        answer.error = Some(AgentError { message: message.to_owned(), is_permission: false });
    }
    true
}

fn gemini_usage(stats: &Value) -> Usage {
    let models = stats["models"].as_object();
    let busiest =
        models.and_then(|models| models.iter().max_by_key(|(_, model)| count(&model["total_tokens"])));
    Usage {
        input_tokens: count(&stats["input_tokens"]),
        cached_input_tokens: count(&stats["cached"]),
        output_tokens: count(&stats["output_tokens"]),
        model: busiest.map(|(name, _)| name.clone()),
        ..Usage::default()
    }
}

fn opencode(answer: &mut Answer, kind: &str, value: &Value) -> bool {
    answer.session = value["sessionID"].as_str().map(str::to_owned);
    match kind {
        "text" => answer.text = value["part"]["text"].as_str().map(str::to_owned),
        "step_finish" => {
            let part = &value["part"];
            let tokens = &part["tokens"];
            let usage = answer.usage.get_or_insert_default();
            let cached = count(&tokens["cache"]["read"]);
            usage.input_tokens += count(&tokens["input"]) + cached + count(&tokens["cache"]["write"]);
            usage.cached_input_tokens += cached;
            usage.output_tokens += count(&tokens["output"]) + count(&tokens["reasoning"]);
            if let Some(cost) = micro_usd(&part["cost"]) {
                usage.micro_usd = Some(usage.micro_usd.unwrap_or(0) + cost);
            }
        }
        _ => {
            let error = &value["error"];
            let message = error["data"]["message"].as_str().or(error["name"].as_str());
            let is_permission = matches!(error["data"]["statusCode"].as_u64(), Some(401 | 403));
            let message = message.unwrap_or("an error without a text").to_owned();
            answer.error = Some(AgentError { message, is_permission });
        }
    }
    true
}

impl Aider {
    /// `Tokens: 1.2k sent, 5 cache hit, 7 received. Cost: $0.00036 message, $0.00036 session.`
    fn line(&mut self, line: &str) {
        if line.starts_with("litellm.") && line.split(':').next().is_some_and(|name| name.ends_with("Error"))
        {
            self.error = Some(line.to_owned());
        }
        if let Some(model) = line.strip_prefix("Main model: ").or_else(|| line.strip_prefix("Model: ")) {
            self.model = model.split(" with ").next().map(str::to_owned);
        }
        let Some(tokens) = line.strip_prefix("Tokens: ") else { return };
        let (tokens, cost) = tokens.split_once(" Cost: ").unwrap_or((tokens, ""));
        let (mut sent, mut cached, mut received) = (None, 0, None);
        for part in tokens.trim_end_matches('.').split(", ") {
            let Some((number, what)) = part.split_once(' ') else { return };
            match what {
                "sent" => sent = thousands(number),
                "cache hit" => cached = thousands(number).unwrap_or(0),
                "received" => received = thousands(number),
                _ => {}
            }
        }
        let (Some(sent), Some(received)) = (sent, received) else { return };
        let usage = self.usage.get_or_insert_default();
        usage.input_tokens += sent;
        usage.cached_input_tokens += cached;
        usage.output_tokens += received;
        let session = cost.split(", ").find_map(|part| part.trim_end_matches('.').strip_suffix(" session"));
        let money = session.and_then(|money| money.strip_prefix('$')?.parse::<f64>().ok());
        usage.micro_usd = money.and_then(|money| micro_usd(&Value::from(money))).or(usage.micro_usd);
    }

    /// Plain text otherwise: the caller tells its end.
    fn answer(self, stdout: &Captured) -> Answer {
        if let Some(mut usage) = self.usage {
            usage.model = self.model;
            let all = String::from_utf8_lossy(&stdout.joined()).into_owned();
            let end = all.rfind("\nTokens: ").unwrap_or(all.len());
            return Answer {
                text: Some(all[..end].trim().to_owned()),
                usage: Some(usage),
                ..Answer::default()
            };
        }
        let error = self.error.map(|message| AgentError {
            is_permission: message.starts_with("litellm.AuthenticationError"),
            message,
        });
        Answer { error, ..Answer::default() }
    }
}

/// Reads `120`, `1.2k` or `3.4M`.
fn thousands(number: &str) -> Option<u64> {
    let (digits, factor) = match number.as_bytes().last()? {
        b'k' => (&number[..number.len() - 1], 1e3),
        b'M' => (&number[..number.len() - 1], 1e6),
        _ => (number, 1.0),
    };
    let number: f64 = digits.replace(',', "").parse().ok()?;
    (0.0..COUNT_MAX).contains(&number).then(|| (number * factor).round() as u64)
}

#[cfg(test)]
mod tests;
