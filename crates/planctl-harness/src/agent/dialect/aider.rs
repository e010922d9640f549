//! The output of aider: plain text, with its figures in it.

use planctl_engine::Usage;
use serde_json::Value;

use super::trouble::{AgentError, ErrorKind};
use super::{Answer, COUNT_MAX, micro_usd};
use crate::capture::Captured;

/// Its words where it has neither a model nor a key; it begins a login in a browser then, and waits for that.
const NO_LOGIN: &str = "No LLM model was specified and no API keys were provided.";

/// The figures in aider's plain text.
#[derive(Default)]
pub(super) struct Aider {
    usage: Option<Usage>,
    error: Option<String>,
    model: Option<String>,
    lacks_login: bool,
    is_heard: bool,
}

impl Aider {
    /// Says that it has no login, and waits for a person to make one.
    pub(super) fn lacks_login(&self) -> bool {
        self.lacks_login
    }

    /// `Tokens: 1.2k sent, 5 cache hit, 7 received. Cost: $0.00036 message, $0.00036 session.`
    pub(super) fn parse_line(&mut self, line: &str) {
        if line.starts_with("litellm.") && line.split(':').next().is_some_and(|name| name.ends_with("Error"))
        {
            self.error = Some(line.to_owned());
        }
        self.lacks_login |= line.starts_with(NO_LOGIN);
        self.is_heard |= line.starts_with("Aider v");
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
    pub(super) fn answer(self, stdout: &Captured) -> Answer {
        if let Some(mut usage) = self.usage {
            usage.model = self.model;
            let all = String::from_utf8_lossy(&stdout.joined()).into_owned();
            let end = all.rfind("\nTokens: ").unwrap_or(all.len());
            return Answer {
                text: Some(all[..end].trim().to_owned()),
                usage: Some(usage),
                is_heard: true,
                ..Answer::default()
            };
        }
        let lacks_login = self.lacks_login.then(|| AgentError::of_service(Some(401), NO_LOGIN));
        let error = self.error.map(|message| {
            let kind = AgentError::of_service(None, message.as_str()).kind;
            let is_login = kind == ErrorKind::Login || message.starts_with("litellm.AuthenticationError");
            AgentError { kind: if is_login { ErrorKind::Login } else { kind }, message }
        });
        Answer { error: lacks_login.or(error), is_heard: self.is_heard, ..Answer::default() }
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
