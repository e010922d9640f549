//! Sends a message by HTTP: signed as Standard Webhooks says, or in the form of Slack's incoming webhooks.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use planctl_config::{WebAddress, WebShape, wrong_web_address};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, StatusCode};
use sha2::Sha256;
use url::Url;

use super::{SendError, secret, target};

/// The longest that a receiver may ask to be left alone.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// A request that carries one message.
pub(super) struct Request<'a> {
    pub(super) shape: WebShape,
    pub(super) address: &'a WebAddress,
    pub(super) secret_env: Option<&'a str>,
    pub(super) allow_private: bool,
    pub(super) timeout: Duration,
    /// The same at each try.
    pub(super) id: &'a str,
    /// When this try is made, in seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) body: String,
}

/// Sends it; returns what the receiver answered, in a few words.
///
/// # Errors
///
/// Where the address may not be called, and for every answer but success. No redirect is followed.
pub(super) async fn send(request: Request<'_>) -> Result<String, SendError> {
    let url = usable_address(request.address, request.allow_private)?;
    let signature = match request.secret_env {
        Some(variable) => {
            let key = key_of(&secret(variable)?, variable)?;
            Some(signature(&key, request.id, request.timestamp, &request.body))
        }
        None => None,
    };
    let client = client_for(&url, request.allow_private, request.timeout).await?;
    let mut post = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("planctl/", env!("CARGO_PKG_VERSION")));
    if request.shape == WebShape::Standard {
        post = post.header("webhook-id", request.id).header("webhook-timestamp", request.timestamp);
    }
    if let Some(signature) = signature {
        post = post.header("webhook-signature", signature);
    }
    // The body of the answer is not read: a receiver may say anything, at any length.
    let answer = post.body(request.body).send().await.map_err(|error| SendError::retryable(fault(&error)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(words(status));
    }
    let again_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let again_after = again_after.map(Duration::from_secs).map(|span| span.min(AGAIN_AFTER_MAX));
    let is_final = status == StatusCode::GONE;
    let redirects = if status.is_redirection() { ", and redirects are not followed" } else { "" };
    Err(SendError { what: format!("{}{redirects}", words(status)), is_final, again_after })
}

/// Reads the address of a channel, which is refused where no message can be sent to it whatever names mean; the error does not
/// repeat it.
pub(super) fn usable_address(address: &WebAddress, allow_private: bool) -> Result<Url, SendError> {
    let text = match address {
        WebAddress::Given(url) => url.clone(),
        WebAddress::Variable(variable) => secret(variable)?,
    };
    let unusable = |why: &str| SendError::permanent(format!("the address can't be used: {why}"));
    if let Some(wrong) = wrong_web_address(&text) {
        return Err(unusable(wrong));
    }
    let url = Url::parse(&text).map_err(|error| unusable(&error.to_string()))?;
    if url.scheme() != "https" && !allow_private {
        return Err(unusable(
            "others could read it: it must begin with https:// unless allow_private = true",
        ));
    }
    target::refuse_private_number(url.host().as_ref(), allow_private)?;
    Ok(url)
}

/// Makes a client that reaches the addresses that were looked at, and none besides.
async fn client_for(url: &Url, allow_private: bool, timeout: Duration) -> Result<Client, SendError> {
    let host = url.host().ok_or_else(|| SendError::permanent("the address has no host"))?;
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses = target::resolved(host, port, allow_private).await?;
    // The process has one implementation of cryptography; a second caller chooses the same.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(timeout);
    let builder = match url.host_str() {
        Some(host) => builder.resolve_to_addrs(host, &addresses),
        None => builder,
    };
    builder.build().map_err(|error| SendError::retryable(fault(&error)))
}

/// Says in a few words why a call failed; the address, which may be a secret, is left out.
fn fault(error: &reqwest::Error) -> String {
    let what = match (error.is_timeout(), error.is_connect()) {
        (true, _) => "no answer in time",
        (false, true) => "no connection",
        (false, false) => "the connection broke",
    };
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if std::ptr::addr_eq(innermost, std::ptr::from_ref(error)) {
        return what.to_owned();
    }
    format!("{what}: {innermost}")
}

fn words(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    format!("HTTP {} {reason}", status.as_u16()).trim_end().to_owned()
}

/// Reads a secret in the form of Standard Webhooks, `whsec_` and base64; another text is its own bytes.
fn key_of(secret: &str, variable: &str) -> Result<Vec<u8>, SendError> {
    let Some(encoded) = secret.strip_prefix("whsec_") else { return Ok(secret.as_bytes().to_vec()) };
    STANDARD.decode(encoded).map_err(|_| {
        SendError::retryable(format!(
            "the secret in {variable} begins with whsec_ and goes on with no base64"
        ))
    })
}

fn signature(key: &[u8], id: &str, timestamp: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "S").unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(key_of("whsec_no base64", "S").is_err());
    }

    #[test]
    fn a42_an_address_in_clear_needs_the_word_of_the_configuration() {
        let given = |url: &str| WebAddress::Given(url.to_owned());
        assert!(usable_address(&given("http://example.com/"), false).is_err());
        assert!(usable_address(&given("http://example.com/"), true).is_ok());
        assert!(usable_address(&given("https://example.com/"), false).is_ok());
        for bad in ["ftp://example.com", "https://", "https://user:pass@example.com/", "https://a b"] {
            let error = usable_address(&given(bad), true).unwrap_err();
            assert!(error.is_final && !error.what.contains("pass@"), "{}", error.what);
        }
    }
}
