//! A session at OpenCode's server, which planctl speaks to as OpenCode's own screen does.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::PROMPT;
use super::model::Model;
use crate::transport::{Address, Transport};

/// The words before the address in the line by which the server says that it listens.
const LISTENS: &str = "listening on ";
/// How long the server may take to begin a session: on a busy machine most of a minute.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);
const LOOKS_EVERY: Duration = Duration::from_millis(250);
/// How often in a row the server has to be seen idle to have ended its session: a hook that sends it back takes a moment.
const IDLE_LOOKS: u32 = 12;

/// Listens for the address that the server prints.
pub struct Listener {
    printed: Vec<u8>,
    tells: Option<oneshot::Sender<String>>,
}

/// Returns a listener, and the address once it was heard.
pub fn listener() -> (Listener, oneshot::Receiver<String>) {
    let (tells, address) = oneshot::channel();
    (Listener { printed: Vec::new(), tells: Some(tells) }, address)
}

impl Listener {
    /// Hears what the server prints.
    pub fn hear(&mut self, chunk: &[u8]) {
        if self.tells.is_none() {
            return;
        }
        self.printed.extend_from_slice(chunk);
        if let Some(address) = address_in(&self.printed)
            && let Some(tells) = self.tells.take()
        {
            // A session that is not held any more needs no address.
            drop(tells.send(address));
        }
    }
}

/// Returns the address in a whole line of what was printed.
fn address_in(printed: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(printed);
    let (lines, _) = text.rsplit_once('\n')?;
    let address = lines.lines().find_map(|line| line.split_once(LISTENS))?.1;
    Some(address.trim().trim_end_matches('/').to_owned())
}

/// Gives a prompt at the server, and returns once its session was sent back and went on, or is idle. Where the server does not
/// answer, this waits for its deadline.
pub async fn hold_session(address: oneshot::Receiver<String>, model: &Model) {
    let Some(server) = begun(address).await else { return std::future::pending().await };
    let mut idle = 0;
    while idle < IDLE_LOOKS {
        tokio::time::sleep(LOOKS_EVERY).await;
        let states = call(&server, Method::GET, "/session/status", None).await.unwrap_or_default();
        let is_busy = states.as_object().into_iter().flatten().any(|(_, state)| state["type"] != "idle");
        idle = if is_busy || model.heard().requests == 0 { 0 } else { idle + 1 };
    }
}

/// Begins a session with a prompt; returns the server.
async fn begun(address: oneshot::Receiver<String>) -> Option<Transport> {
    let address = Address::parse(&address.await.ok()?).ok()?;
    let server = Transport::to(address).ok()?;
    let session = call(&server, Method::POST, "/session", Some(json!({}))).await?;
    let prompt = json!({
        "model": { "providerID": "planctl", "modelID": "canary" },
        "parts": [{ "type": "text", "text": PROMPT }],
    });
    let path = format!("/session/{}/prompt_async", session["id"].as_str()?);
    call(&server, Method::POST, &path, Some(prompt)).await?;
    Some(server)
}

/// Asks the server. An answer without a body is null.
async fn call(server: &Transport, method: Method, path: &str, body: Option<Value>) -> Option<Value> {
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let (status, answer) = server.send(method, path, headers, body, ANSWERS_WITHIN).await.ok()?;
    status.is_success().then(|| serde_json::from_slice(&answer).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_known_once_its_line_is_whole() {
        assert_eq!(address_in(b"opencode server listening on http://127.0.0.1:40"), None);
        let whole = b"Warning: x\nopencode server listening on http://127.0.0.1:4096\n";
        assert_eq!(address_in(whole).as_deref(), Some("http://127.0.0.1:4096"));
    }
}
