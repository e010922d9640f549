//! Why a call gave no result: typed, each with an exit code of its own, so that a plan can tell them apart (M-41).

use std::error::Error;
use std::fmt;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};

/// The longest message of a server that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// A call without a result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The event, for people.
    pub message: String,
    /// How long the server asks to wait, of a rate limit.
    pub wait: Option<Duration>,
}

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The tool ran and says that it failed.
    Tool,
    /// The arguments do not fit; nothing was called.
    Arguments,
    /// The server is not there, or went away.
    Network,
    /// The server asks to come later.
    RateLimit,
    /// The server speaks no MCP, or breaks it.
    Protocol,
    /// The server wants a credential, or a better one.
    Auth,
    /// The server has no such tool, or another one by that name than was approved.
    Changed,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [FaultKind; 7] = [
        FaultKind::Tool,
        FaultKind::Arguments,
        FaultKind::Network,
        FaultKind::RateLimit,
        FaultKind::Protocol,
        FaultKind::Auth,
        FaultKind::Changed,
    ];

    /// Returns the exit code; those above 1 are the ones of sysexits.h for the same things.
    pub fn exit_code(self) -> u8 {
        match self {
            FaultKind::Tool => 1,
            FaultKind::Arguments => 65,
            FaultKind::Network => 69,
            FaultKind::RateLimit => 75,
            FaultKind::Protocol => 76,
            FaultKind::Auth => 77,
            FaultKind::Changed => 78,
        }
    }

    /// Returns the word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Tool => "tool error",
            FaultKind::Arguments => "wrong arguments",
            FaultKind::Network => "network error",
            FaultKind::RateLimit => "rate limit",
            FaultKind::Protocol => "protocol error",
            FaultKind::Auth => "not authorised",
            FaultKind::Changed => "changed tool",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)?;
        match self.wait {
            Some(wait) => write!(f, " (the server asks to wait {} s)", wait.as_secs()),
            None => Ok(()),
        }
    }
}

impl Fault {
    /// Makes one without a wait.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        let message = message.into();
        Fault { kind, message: message.chars().take(MESSAGE_CHARS_MAX).collect(), wait: None }
    }

    /// Types what a tool says of its own failure: most servers pass the refusals of the service behind them on as text.
    pub(crate) fn from_tool(text: &str) -> Fault {
        typed_by_words(FaultKind::Tool, text)
    }

    pub(crate) fn from_start(error: &ClientInitializeError) -> Fault {
        if let ClientInitializeError::JsonRpcError(data) = error {
            return from_data(data);
        }
        if let ClientInitializeError::ConnectionClosed(_) = error {
            return Fault::new(FaultKind::Network, "the server ended before it said what it is");
        }
        if let ClientInitializeError::TransportError { error, .. } = error {
            return from_sources(error).unwrap_or_else(|| Fault::new(FaultKind::Network, chain_text(error)));
        }
        Fault::new(FaultKind::Protocol, chain_text(error))
    }

    pub(crate) fn from_service(error: &ServiceError) -> Fault {
        if let ServiceError::McpError(data) = error {
            return from_data(data);
        }
        if let ServiceError::TransportClosed = error {
            return Fault::new(FaultKind::Network, "the server went away");
        }
        let is_sending = matches!(error, ServiceError::TransportSend(_));
        let kind = if is_sending { FaultKind::Network } else { FaultKind::Protocol };
        from_sources(error).unwrap_or_else(|| Fault::new(kind, chain_text(error)))
    }
}

fn from_data(data: &ErrorData) -> Fault {
    typed_by_words(FaultKind::Protocol, &format!("{} (code {})", data.message, data.code.0))
}

fn typed_by_words(otherwise: FaultKind, text: &str) -> Fault {
    let plain = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    let kind = if says(&["rate limit", "too many requests", "status 429", "error 429"]) {
        FaultKind::RateLimit
    } else if says(&[
        "unauthorized",
        "unauthorised",
        "bad credentials",
        "authentication failed",
        "requires authentication",
    ]) {
        FaultKind::Auth
    } else {
        otherwise
    };
    let wait = (kind == FaultKind::RateLimit).then(|| wait_named(&plain)).flatten();
    Fault { wait, ..Fault::new(kind, text) }
}

/// Finds how long a text says to wait: `retry after 30 s`, `wait 30 seconds`.
fn wait_named(plain: &str) -> Option<Duration> {
    let at = ["retry after", "retry-after", "try again in", "wait"].iter().find_map(|word| {
        let at = plain.find(word)?;
        Some(at + word.len())
    })?;
    let rest = plain[at..].trim_start_matches([' ', ':', '=', '"']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(Duration::from_secs)
}

/// Types what a transport met by the errors behind it: one over HTTP says which; of another nothing more is known.
fn from_sources(error: &(dyn Error + 'static)) -> Option<Fault> {
    let mut next = Some(error);
    while let Some(one) = next {
        if let Some(error) = one.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return Some(from_http(error));
        }
        next = one.source();
    }
    None
}

fn from_http(error: &StreamableHttpError<reqwest::Error>) -> Fault {
    if let StreamableHttpError::HttpStatus(HttpStatusError { status, retry_after, .. }) = error {
        let fault = |kind| Fault::new(kind, format!("HTTP status {status}"));
        let seconds = retry_after.as_deref().and_then(|wait| wait.trim().parse().ok());
        return match status {
            429 => Fault { wait: seconds.map(Duration::from_secs), ..fault(FaultKind::RateLimit) },
            _ => fault(FaultKind::Network),
        };
    }
    // Without a challenge the status stands in the text alone.
    let is_refusal = |said: &str| said.starts_with("HTTP 401") || said.starts_with("HTTP 403");
    let wants_credential =
        matches!(error, StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_))
            || matches!(error, StreamableHttpError::UnexpectedServerResponse(said) if is_refusal(said));
    if wants_credential {
        return Fault::new(FaultKind::Auth, "the server wants a credential, or one with more rights");
    }
    let is_no_answer = matches!(
        error,
        StreamableHttpError::UnexpectedServerResponse(_)
            | StreamableHttpError::ResponseBodyTooLarge { .. }
            | StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::Deserialize(_)
            | StreamableHttpError::MissingSessionIdInResponse
    );
    // The others are of connections: not made, broken off, or of a session that is over.
    let kind = if is_no_answer { FaultKind::Protocol } else { FaultKind::Network };
    Fault::new(kind, chain_text(error))
}

fn chain_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(one) = next {
        let more = one.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = one.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_41_what_a_tool_says_is_typed_by_its_words_with_the_wait() {
        let fault = Fault::from_tool("API rate limit exceeded, retry after 30 seconds");
        assert_eq!((fault.kind, fault.wait), (FaultKind::RateLimit, Some(Duration::from_secs(30))));
        assert_eq!(Fault::from_tool("403: Bad credentials").kind, FaultKind::Auth);
        assert_eq!(Fault::from_tool("no such file").kind, FaultKind::Tool);
        assert_eq!(Fault::from_tool("Too Many Requests").wait, None);
    }

    #[test]
    fn m_41_each_kind_has_an_exit_code_of_its_own() {
        let mut codes: Vec<u8> = FaultKind::ALL.map(FaultKind::exit_code).to_vec();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), FaultKind::ALL.len());
        assert!(!codes.contains(&0));
    }
}
