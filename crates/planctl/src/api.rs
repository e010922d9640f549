//! Calls planctl's API, `/v1`: sends, tries again where that is safe, and turns problems into what people read.

use std::time::Duration;

use futures_util::future::BoxFuture;
use planctl_api::wire::Paged;
use planctl_api::{Code, Problem};
use planctl_server::http::InProcess;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Exit, Failure};
use crate::tls;
pub use crate::transport::Address;
use crate::transport::{Answered, Transport, Unanswered};

/// How long a call may take where it does not wait for anything.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call is tried while the daemon or its database is away for a moment.
const TRIES: u32 = 20;
/// Between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// The most bytes of one segment of an address, which has at most 8 KiB.
const SEGMENT_BYTES_MAX: usize = 6_000;
/// How much is sent of a word that has more: enough to know it again.
const BEGINNING_CHARACTERS: usize = 100;

/// Where the program of an agent is looked for that a daemon is to start.
const DAEMONS_PATH: &str = "the daemon looks there, by the PATH that it was started with: planctl daemon restart gives it that of your shell";

/// Why a look at a daemon saw nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silence {
    /// Nobody listens there.
    Shut,
    /// It did not answer in time, or nothing that can be read.
    Late,
}

/// Whether a call that failed is sent once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TryAgain {
    Never,
    Later,
    /// An earlier try of it still waits there.
    WhileUnderWay,
}

/// A client's access to a daemon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'a> {
    /// The token that grants it.
    pub token: Option<&'a str>,
    /// By which name it decides; a daemon believes it on its socket.
    pub actor: Option<&'a str>,
    /// Shows the token also where others can read it.
    pub insecure: bool,
}

/// planctl's API: of a daemon, or in this process where none runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    transport: Transport,
    headers: HeaderMap,
    insecure: bool,
}

/// Hands on the trace that this process was started in (W3C Trace Context); the daemon looks whether it is one.
fn headers_of_trace() -> HeaderMap {
    let parent = std::env::var("TRACEPARENT").ok().and_then(|parent| HeaderValue::from_str(&parent).ok());
    parent.map(|parent| (HeaderName::from_static("traceparent"), parent)).into_iter().collect()
}

impl Api {
    /// Prepares calls of a daemon; connects to nothing yet.
    pub fn at(address: Address, access: Access<'_>) -> Result<Api, Failure> {
        let is_local = matches!(address, Address::Socket(_));
        let transport = Transport::to(address)?;
        let api = Api { transport, headers: headers_of_trace(), insecure: access.insecure };
        let api = match access.token {
            Some(token) => api.with_token(token)?,
            None => api,
        };
        Ok(match access.actor.filter(|_| is_local) {
            Some(actor) => api.speaking_for(actor),
            None => api,
        })
    }

    /// Calls the routes in this process, in a person's name.
    pub fn in_process(routes: InProcess, actor: &str) -> Api {
        let transport = Transport::InProcess(routes);
        Api { transport, headers: HeaderMap::new(), insecure: false }.speaking_for(actor)
    }

    fn speaking_for(mut self, actor: &str) -> Api {
        if let Ok(actor) = HeaderValue::from_bytes(actor.as_bytes()) {
            self.headers.insert("planctl-actor", actor);
        }
        self
    }

    /// Returns a connection to the same daemon that shows another token: an item's.
    pub fn with_token(&self, token: &str) -> Result<Api, Failure> {
        if let Transport::Http { address: Address::Url(url), .. } = &self.transport
            && tls::is_readable_by_others(url)
            && !self.insecure
        {
            return Err(Failure::usage(format!(
                "could not send a token to {}: others can read it on the way, since http:// is not encrypted",
                self.address()
            ))
            .help("put a proxy with TLS before the daemon and name it with https://; or say --insecure, where everybody on that network is trusted"));
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            Failure::new(Exit::Configuration, "could not use the token: it has characters that no token has")
        })?;
        value.set_sensitive(true);
        Ok(Api { headers: HeaderMap::from_iter([(AUTHORIZATION, value)]), ..self.clone() })
    }

    /// Says where the daemon is, for people.
    pub fn address(&self) -> String {
        self.transport.to_string()
    }

    /// Says whether the API answers.
    pub async fn is_there(&self) -> bool {
        if let Transport::Http { address: Address::Socket(path), .. } = &self.transport
            && !path.exists()
        {
            return false;
        }
        self.send_once("/readyz", TIMEOUT).await.is_ok()
    }

    /// Reads once and waits no longer than this, for a caller that asks how a daemon is and may hear that it is unwell.
    pub async fn get_once<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, Silence> {
        let (_, bytes) = self.send_once(path, within).await.map_err(|error| match error {
            Unanswered::Unreachable(error) if error.is_connect() => Silence::Shut,
            Unanswered::Unreachable(_) | Unanswered::Uncalled(_) => Silence::Late,
        })?;
        serde_json::from_slice(&bytes).map_err(|_| Silence::Late)
    }

    /// Reads without a second try.
    async fn send_once(&self, path: &str, within: Duration) -> Result<Answered, Unanswered> {
        self.transport.send(Method::GET, path, self.headers.clone(), Vec::new(), within).await
    }

    /// Reads.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Failure> {
        let call = Sent { method: Method::GET, path, query, body: None, key: None };
        self.answer(call)
            .await?
            .ok_or_else(|| self.unexpected_answer("nothing where something was asked for"))
    }

    /// Reads a list, all its pages as one.
    pub async fn get_all_pages<L>(&self, path: &str, query: &[(&str, &str)]) -> Result<L, Failure>
    where
        L: Paged + DeserializeOwned,
    {
        let mut whole: L = self.get(path, query).await?;
        while let Some(next) = whole.parts().1.take() {
            let query = [query, &[("cursor", &next)]].concat();
            let mut page: L = self.get(path, &query).await?;
            let ((entries, after), (more, further)) = (whole.parts(), page.parts());
            entries.append(more);
            *after = further.take();
        }
        Ok(whole)
    }

    /// Changes something, once however often the call has to be repeated.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let key = uuid_of();
        let body = Some(self.to_json(body)?);
        let call = Sent { method: Method::POST, path, query, body, key: Some(&key) };
        self.answer(call)
            .await?
            .ok_or_else(|| self.unexpected_answer("nothing where something was asked for"))
    }

    /// Changes something where there may be nothing to answer; under one key the same answer is found again.
    pub async fn post_maybe<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
        key: &str,
    ) -> Result<Option<T>, Failure> {
        let body = Some(self.to_json(body)?);
        self.answer(Sent { method: Method::POST, path, query, body, key: Some(key) }).await
    }

    /// Takes something away, once.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let key = uuid_of();
        let call = Sent { method: Method::DELETE, path, query: &[], body: None, key: Some(&key) };
        self.answer(call)
            .await?
            .ok_or_else(|| self.unexpected_answer("nothing where something was asked for"))
    }

    fn to_json(&self, body: &impl Serialize) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec(body).map_err(|error| self.unexpected_answer(&error.to_string()))
    }

    fn answer<'a, T: DeserializeOwned>(
        &'a self,
        call: Sent<'a>,
    ) -> BoxFuture<'a, Result<Option<T>, Failure>> {
        Box::pin(async move {
            let bytes = self.bytes(&call).await?;
            match bytes {
                None => Ok(None),
                Some(bytes) => serde_json::from_slice(&bytes)
                    .map(Some)
                    .map_err(|error| self.unexpected_answer(&format!("{error}, at {}", call.path))),
            }
        })
    }

    /// Sends a call until it is answered; repeating it is safe, as it only reads or carries its key.
    async fn bytes(&self, call: &Sent<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let wait = call.query.iter().find(|(name, _)| *name == "wait");
        let wait = wait.and_then(|(_, seconds)| seconds.parse().ok()).unwrap_or(0);
        let mut headers = self.headers.clone();
        if call.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = call.key.and_then(|key| HeaderValue::from_str(key).ok()) {
            headers.insert("idempotency-key", key);
        }
        let body = call.body.as_deref().unwrap_or_default();
        let mut tries = 0;
        // Of a try whose answer was lost or put off: a later one is told only that the same request is under way.
        let mut reason: Option<Failure> = None;
        loop {
            tries += 1;
            let (path, within) = (path_of(call), TIMEOUT + Duration::from_secs(wait));
            let sent =
                self.transport.send(call.method.clone(), &path, headers.clone(), body.to_vec(), within);
            let failure = match sent.await {
                Ok(answered) => match self.read(answered) {
                    Ok(read) => return Ok(read),
                    Err((failure, TryAgain::Never)) => return Err(failure),
                    Err((failure, TryAgain::Later)) => failure,
                    Err((failure, TryAgain::WhileUnderWay)) => reason.take().unwrap_or(failure),
                },
                // A faulty certificate is still faulty a moment later.
                Err(Unanswered::Unreachable(error)) if tls::fault(&error).is_some() => {
                    return Err(self.unreachable(&error));
                }
                Err(Unanswered::Unreachable(error)) => self.unreachable(&error),
                Err(Unanswered::Uncalled(error)) => return Err(self.unexpected_answer(&error)),
            };
            // In this process the store has tried again by itself.
            if tries >= TRIES || matches!(self.transport, Transport::InProcess(_)) {
                return Err(failure);
            }
            reason = Some(failure);
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// Reads an answer; of a failure, says whether to try again.
    fn read(&self, (status, bytes): Answered) -> Result<Option<Vec<u8>>, (Failure, TryAgain)> {
        if status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        if status.is_success() {
            return Ok(Some(bytes));
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => {
                let again = match problem.code() {
                    Some(Code::DatabaseUnavailable | Code::Stopping | Code::TooMany) => TryAgain::Later,
                    Some(Code::UnderWay) => TryAgain::WhileUnderWay,
                    Some(_) | None => TryAgain::Never,
                };
                let mut failure = failure_of(&problem);
                let is_daemon = matches!(self.transport, Transport::Http { .. });
                if is_daemon && problem.code() == Some(Code::NotInstalled) {
                    failure.help = failure.help.map(|help| format!("{help}; {DAEMONS_PATH}"));
                }
                Err((failure, again))
            }
            Err(_) => {
                let failure = self.unexpected_answer(&format!("status {status} and no problem document"));
                Err((failure, TryAgain::Never))
            }
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        if let Some(fault) = tls::fault(error) {
            let message = format!("could not reach a daemon at {}: {fault}", self.address());
            return Failure::new(Exit::Unavailable, message).help(tls::help(fault));
        }
        if error.is_timeout() && !error.is_connect() {
            let message = format!("could not hear from the daemon at {} in time", self.address());
            return Failure::new(Exit::Unavailable, message).next("planctl daemon status");
        }
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let message = format!("could not reach a daemon at {}: {cause}", self.address());
        let failure = Failure::new(Exit::Unavailable, message);
        let Transport::Http { address: Address::Url(url), .. } = &self.transport else {
            return failure.next("planctl daemon start");
        };
        match tls::listening_address(url) {
            Some(address) => failure.next(format!("planctl daemon start --listen {address}")),
            None => failure.help("start it on that machine, or name another address with --server"),
        }
    }

    fn unexpected_answer(&self, what: &str) -> Failure {
        Failure::new(
            Exit::Unavailable,
            format!("could not understand the daemon at {}: {what}", self.address()),
        )
        .help("is it another version, or another program? planctl daemon status")
    }
}

fn path_of(call: &Sent<'_>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(call.query);
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{mark}{query}", call.path)
}

struct Sent<'a> {
    method: Method,
    path: &'a str,
    query: &'a [(&'a str, &'a str)],
    body: Option<Vec<u8>>,
    key: Option<&'a str>,
}

/// Says which token was shown, since a variable that is still set is easily forgotten.
const SHOWN_TOKEN: &str = "the token is that of PLANCTL_TOKEN or PLANCTL_TOKEN_FILE; without them you are known by your user on this host's socket";

/// Draws a key that nobody drew before.
pub fn uuid_of() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Reports a problem as the command line does: the event, the next step, and the exit code.
pub fn failure_of(problem: &Problem) -> Failure {
    let exit = match problem.code() {
        Some(Code::NotVerified | Code::Unreadable | Code::NotInstalled) => Exit::No,
        Some(Code::NoAgent | Code::Role | Code::Isolation) => Exit::Configuration,
        Some(Code::Conflict | Code::LeaseLost | Code::IdempotencyMismatch | Code::UnderWay) => Exit::Conflict,
        Some(Code::NotFound) => Exit::NotFound,
        Some(Code::DatabaseUnavailable | Code::Stopping) => Exit::Unavailable,
        Some(Code::Unauthenticated | Code::Scope | Code::Origin | Code::InsideWorker | Code::NotAsked) => {
            Exit::Denied
        }
        Some(
            Code::BadRequest
            | Code::NulCharacter
            | Code::IdempotencyKeyMissing
            | Code::MethodNotAllowed
            | Code::TooLarge
            | Code::UriTooLong
            | Code::MediaType,
        ) => Exit::Usage,
        Some(Code::TooMany | Code::Temporary | Code::Defect) | None => Exit::Temporary,
    };
    let failure = Failure::new(exit, &problem.detail);
    let failure = match &problem.help {
        Some(help) => failure.help(help),
        None if problem.code() == Some(Code::Scope) => failure.help(SHOWN_TOKEN),
        None => failure,
    };
    match &problem.next {
        Some(next) => crate::next::with_next(failure, next, problem.workspace.as_deref()),
        None => failure,
    }
}

/// Encodes a word as one segment of a path. Of a word that is too long for an address, the beginning is sent, which names nothing.
pub fn path_segment(word: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(word.as_bytes()).collect();
    if encoded.len() > SEGMENT_BYTES_MAX {
        let beginning: String = word.chars().take(BEGINNING_CHARACTERS).collect();
        return path_segment(&format!("{beginning}…"));
    }
    encoded.replace('+', "%20")
}
