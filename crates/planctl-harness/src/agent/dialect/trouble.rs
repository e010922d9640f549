//! Errors that agents report, and what they are about.

use serde_json::Value;

/// An error that the agent itself reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::agent) struct AgentError {
    pub(in crate::agent) message: String,
    pub(in crate::agent) kind: ErrorKind,
}

/// The subject of an agent's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::agent) enum ErrorKind {
    /// The service of its model, or the way there: later it may work.
    Service,
    /// A login or a right that is missing.
    Login,
    /// The agent itself, such as a limit of its own: the work ended, and nobody else is to blame.
    Own,
}

/// Words by which services and agents say that a login is missing or refused.
const LOGIN_WORDS: [&str; 13] = [
    "authentication_error",
    "authentication_failed",
    "permission_error",
    "unauthorized",
    "permission_denied",
    "unauthenticated",
    "api_key_invalid",
    "api key not valid",
    "incorrect api key",
    "invalid api key",
    "invalid x-api-key",
    "please run /login",
    "oauth token has expired",
];

impl AgentError {
    pub(super) fn of_service(status: Option<u64>, message: impl Into<String>) -> AgentError {
        let message = message.into();
        let is_login = match status {
            Some(status) => matches!(status, 401 | 403),
            None => mentions_login(&message),
        };
        AgentError { kind: if is_login { ErrorKind::Login } else { ErrorKind::Service }, message }
    }

    pub(super) fn own(message: impl Into<String>) -> AgentError {
        AgentError { message: message.into(), kind: ErrorKind::Own }
    }
}

/// Says that a message is about a login, by its words or by the status that it quotes.
fn mentions_login(message: &str) -> bool {
    let words = message.to_lowercase();
    if LOGIN_WORDS.iter().any(|word| words.contains(word)) {
        return true;
    }
    // Addresses have numbers of their own.
    let words: String =
        words.split_whitespace().filter(|word| !word.contains("://")).flat_map(|word| [word, " "]).collect();
    let mut numbers = words.split(|letter: char| !letter.is_ascii_alphanumeric());
    ["status", "code", "http", "error"].iter().any(|word| words.contains(word))
        && numbers.any(|number| matches!(number, "401" | "403"))
}

/// Takes the innermost message out of an error that is JSON in JSON, as services and their clients wrap them.
pub(super) fn unwrap_message(message: &str) -> String {
    let mut message = message.trim().to_owned();
    for _ in 0..DEPTH_MAX {
        let Some(at) = message.find('{') else { break };
        let mut values = serde_json::Deserializer::from_str(&message[at..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { break };
        let inner = &value["error"];
        let inner = inner["message"].as_str().or(value["message"].as_str()).or(inner.as_str());
        let Some(inner) = inner.filter(|inner| !inner.trim().is_empty()) else { break };
        let code = value["error"]["code"].as_u64().or(value["error"]["status"].as_u64());
        message = match code {
            Some(code) if !inner.contains(&code.to_string()) => format!("{code} {inner}"),
            _ => inner.to_owned(),
        };
    }
    message
}

/// How deep a message may be wrapped.
const DEPTH_MAX: usize = 4;
