//! Models that write drafts or turn texts into vectors: where each is served, and the variable that holds its key.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The most tokens of an answer, where nothing is said.
pub const MODEL_TOKENS: u64 = 8192;
/// How long an answer may take, where nothing is said.
pub const MODEL_TIMEOUT: Duration = Duration::from_secs(180);

/// One model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The form of its calls.
    pub api: ModelApi,
    /// Its address: that of the service, or of the endpoint itself.
    pub url: String,
    /// The name by which the service knows it; its price is in `[prices]` by this name.
    pub model: String,
    /// The variable that holds its key; never the key.
    pub key_env: Option<String>,
    /// The most tokens of one answer.
    pub max_tokens: u64,
    /// How long one answer may take.
    pub timeout: Duration,
    /// Says that a person approves each prompt before it is sent (M-35).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
}

/// The forms of calls that services speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelApi {
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/embeddings`: vectors in place of answers
    Embeddings,
}

impl ModelApi {
    /// All.
    pub const ALL: [ModelApi; 3] = [ModelApi::Messages, ModelApi::Chat, ModelApi::Embeddings];

    /// Returns the word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            ModelApi::Messages => "messages",
            ModelApi::Chat => "chat",
            ModelApi::Embeddings => "embeddings",
        }
    }

    /// Returns the end of an endpoint's path.
    pub fn path(self) -> &'static str {
        match self {
            ModelApi::Messages => "messages",
            ModelApi::Chat => "chat/completions",
            ModelApi::Embeddings => "embeddings",
        }
    }
}

impl ModelApi {
    /// Says whether an address is that of an endpoint of this form.
    pub fn is_endpoint(self, url: &str) -> bool {
        let before = url.trim_end_matches('/').strip_suffix(self.path());
        before.is_some_and(|before| before.ends_with('/'))
    }
}

impl fmt::Display for ModelApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ModelConfig {
    /// Returns the address that calls go to.
    pub fn endpoint(&self) -> String {
        let (base, path) = (self.url.trim_end_matches('/'), self.api.path());
        if self.api.is_endpoint(base) {
            return base.to_owned();
        }
        match base.rsplit('/').next() {
            Some(last) if is_version(last) => format!("{base}/{path}"),
            Some(_) | None => format!("{base}/v1/{path}"),
        }
    }
}

fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Says what is wrong with an address, without repeating it: a key may stand in it.
pub fn wrong_url(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return Some("the address of a model begins with https:// or http://") };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("the address of a model has a host and no blanks");
    }
    if host.contains('@') || rest.contains(['?', '#']) {
        return Some(
            "the address of a model has no login and no parameters; key_env names the variable with its key",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_found_from_the_service_or_named_itself() {
        for (api, url, endpoint) in [
            (ModelApi::Messages, "https://a.example", "https://a.example/v1/messages"),
            (ModelApi::Messages, "https://a.example/v1/", "https://a.example/v1/messages"),
            (ModelApi::Messages, "https://a.example/v1/messages", "https://a.example/v1/messages"),
            (ModelApi::Chat, "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
            (ModelApi::Chat, "https://a.example/api/v4", "https://a.example/api/v4/chat/completions"),
            (ModelApi::Chat, "https://a.example/chat/completions", "https://a.example/chat/completions"),
            (ModelApi::Embeddings, "https://a.example", "https://a.example/v1/embeddings"),
        ] {
            let model = ModelConfig {
                api,
                url: url.to_owned(),
                model: "m".to_owned(),
                key_env: None,
                max_tokens: 1,
                timeout: MODEL_TIMEOUT,
                ask: false,
            };
            assert_eq!(model.endpoint(), endpoint, "{url}");
        }
    }

    #[test]
    fn an_address_with_a_key_in_it_is_refused() {
        for url in ["ftp://a", "https://", "https://key@a.example", "https://a.example/?key=1", "https://a b"]
        {
            assert!(wrong_url(url).is_some(), "{url}");
        }
        assert_eq!(wrong_url("https://a.example/v1"), None);
    }
}
