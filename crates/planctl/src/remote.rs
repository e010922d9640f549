//! Speaks with a daemon: over the socket in the state directory, or with one that is named.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use planctl_server::http::{Code, Problem};
use planctl_server::wire::Paged;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Exit, Failure};

/// How long a call may take where it does not wait for anything.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call is tried while the daemon or its database is away for a moment.
const TRIES: u32 = 20;
/// Between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Where a daemon is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// The socket of a state directory on this host.
    Socket(PathBuf),
    /// A port: `http://127.0.0.1:7420`.
    Url(String),
}

impl Address {
    /// Reads what `--server` was given: a URL, or a socket's path.
    pub fn parse(given: &str) -> Result<Address, Failure> {
        if given.starts_with("http://") || given.starts_with("https://") {
            return Ok(Address::Url(given.trim_end_matches('/').to_owned()));
        }
        let port = given.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_some() && !given.contains('/') {
            return Err(Failure::usage(format!("could not use `{given}` as a daemon's address"))
                .help(format!("a URL begins with http://: http://{given}")));
        }
        Ok(Address::Socket(PathBuf::from(given.strip_prefix("unix:").unwrap_or(given))))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Socket(path) => write!(f, "{}", path.display()),
            Address::Url(url) => f.write_str(&without_password(url)),
        }
    }
}

/// Hides a user and password that stand in an address: what is shown ends in logs.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => url.to_owned(),
    }
}

/// Why a look at a daemon saw nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silence {
    /// Nobody listens there.
    Shut,
    /// It did not answer in time, or nothing that can be read.
    Late,
}

/// A connection to a daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Remote {
    http: reqwest::Client,
    address: Address,
    base: String,
}

impl Remote {
    /// Prepares calls; connects to nothing yet.
    pub fn new(address: Address, token: Option<&str>, actor: Option<&str>) -> Result<Remote, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| Failure::new(Exit::Configuration, "could not use the token: it is none"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if let (Address::Socket(_), Some(actor)) = (&address, actor)
            && let Ok(actor) = HeaderValue::from_bytes(actor.as_bytes())
        {
            headers.insert("planctl-actor", actor);
        }
        let builder = reqwest::Client::builder().default_headers(headers).no_proxy();
        let (builder, base) = match &address {
            Address::Socket(path) => (builder.unix_socket(path.as_path()), "http://localhost".to_owned()),
            Address::Url(url) => (builder, url.clone()),
        };
        let http = builder
            .build()
            .map_err(|error| Failure::new(Exit::Temporary, format!("could not prepare calls: {error}")))?;
        Ok(Remote { http, address, base })
    }

    /// Says where the daemon is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Says whether a daemon answers.
    pub async fn is_there(&self) -> bool {
        if let Address::Socket(path) = &self.address
            && !Path::new(path).exists()
        {
            return false;
        }
        let asked = self.http.get(format!("{}/readyz", self.base)).timeout(TIMEOUT).send().await;
        asked.is_ok()
    }

    /// Reads once and waits no longer than this, for who asks how a daemon is and may hear that it is unwell.
    pub async fn look<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, Silence> {
        let asked = self.http.get(format!("{}{path}", self.base)).timeout(within).send().await;
        let response =
            asked.map_err(|error| if error.is_connect() { Silence::Shut } else { Silence::Late })?;
        let bytes = response.bytes().await.map_err(|_| Silence::Late)?;
        serde_json::from_slice(&bytes).map_err(|_| Silence::Late)
    }

    /// Reads.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Failure> {
        let call = Sent { method: Method::GET, path, query, body: None, key: None };
        self.answer(call).await?.ok_or_else(|| self.odd("nothing where something was asked for"))
    }

    /// Reads a list, all its pages as one.
    pub async fn all<L>(&self, path: &str, query: &[(&str, &str)]) -> Result<L, Failure>
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
        let body = Some(self.written(body)?);
        let call = Sent { method: Method::POST, path, query, body, key: Some(&key) };
        self.answer(call).await?.ok_or_else(|| self.odd("nothing where something was asked for"))
    }

    /// Changes something where there may be nothing to answer; under one key the same answer is found again.
    pub async fn post_maybe<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
        key: &str,
    ) -> Result<Option<T>, Failure> {
        let body = Some(self.written(body)?);
        self.answer(Sent { method: Method::POST, path, query, body, key: Some(key) }).await
    }

    /// Returns a connection to the same daemon that shows another token: an item's.
    pub fn showing(&self, token: &str) -> Result<Remote, Failure> {
        Remote::new(self.address.clone(), Some(token), None)
    }

    /// Takes something away, once.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let key = uuid_of();
        let call = Sent { method: Method::DELETE, path, query: &[], body: None, key: Some(&key) };
        self.answer(call).await?.ok_or_else(|| self.odd("nothing where something was asked for"))
    }

    fn written(&self, body: &impl Serialize) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec(body).map_err(|error| self.odd(&error.to_string()))
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
                    .map_err(|error| self.odd(&format!("{error}, at {}", call.path))),
            }
        })
    }

    /// Sends a call until it is answered; repeating it is safe, as it only reads or carries its key.
    async fn bytes(&self, call: &Sent<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let wait =
                call.query.iter().find(|(name, _)| *name == "wait").and_then(|(_, value)| value.parse().ok());
            let mut request = self
                .http
                .request(call.method.clone(), address_of(&self.base, call))
                .timeout(TIMEOUT + Duration::from_secs(wait.unwrap_or(0)));
            if let Some(body) = &call.body {
                request = request.header("content-type", "application/json").body(body.clone());
            }
            if let Some(key) = call.key {
                request = request.header("idempotency-key", key);
            }
            let failure = match request.send().await {
                Ok(response) => match self.read(response).await {
                    Ok(read) => return Ok(read),
                    Err((failure, false)) => return Err(failure),
                    Err((failure, true)) => failure,
                },
                Err(error) => self.unreachable(&error),
            };
            if tries >= TRIES {
                return Err(failure);
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// Reads an answer; of a failure, says whether to try again.
    async fn read(&self, response: reqwest::Response) -> Result<Option<Vec<u8>>, (Failure, bool)> {
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| (self.unreachable(&error), true))?;
        if status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        if status.is_success() {
            return Ok(Some(bytes.to_vec()));
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => {
                let again = matches!(
                    problem.code(),
                    Some(Code::DatabaseUnavailable | Code::Stopping | Code::UnderWay | Code::TooMany)
                );
                Err((failure_of(&problem), again))
            }
            Err(_) => Err((self.odd(&format!("status {status} and no problem document")), false)),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Failure::new(Exit::Unavailable, format!("could not reach a daemon at {}: {cause}", self.address))
            .next("planctl daemon start")
    }

    fn odd(&self, what: &str) -> Failure {
        Failure::new(
            Exit::Unavailable,
            format!("could not understand the daemon at {}: {what}", self.address),
        )
        .help("is it another version, or another program? planctl daemon status")
    }
}

fn address_of(base: &str, call: &Sent<'_>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(call.query);
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{base}{}{mark}{query}", call.path)
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

/// Says a problem as the command line does: what happened, what to do, and with which exit code.
pub fn failure_of(problem: &Problem) -> Failure {
    let exit = match problem.code() {
        Some(Code::NotVerified | Code::Unreadable) => Exit::No,
        Some(Code::NoAgent | Code::Role | Code::Isolation) => Exit::Configuration,
        Some(Code::Conflict | Code::LeaseLost | Code::IdempotencyMismatch | Code::UnderWay) => Exit::Conflict,
        Some(Code::NotFound) => Exit::NotFound,
        Some(Code::DatabaseUnavailable | Code::Stopping) => Exit::Unavailable,
        Some(Code::Unauthenticated | Code::Scope | Code::Origin | Code::InsideWorker) => Exit::Denied,
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
        Some(next) => failure.next(next),
        None => failure,
    }
}

/// Writes a word as one part of a path.
pub fn part(word: &str) -> String {
    url::form_urlencoded::byte_serialize(word.as_bytes()).collect::<String>().replace('+', "%20")
}
