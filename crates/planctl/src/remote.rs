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
use url::Url;

use crate::failure::{Exit, Failure};
use crate::tls;

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
    /// A port: `http://127.0.0.1:7420`, `https://planctl.example.org`.
    Url(Url),
}

impl Address {
    /// Reads what `--server` was given: a URL, or a socket's path.
    pub fn parse(given: &str) -> Result<Address, Failure> {
        if given.starts_with("http://") || given.starts_with("https://") {
            return Url::parse(given).map(Address::Url).map_err(|error| {
                let given = without_password(given);
                Failure::usage(format!("could not use `{given}` as a daemon's address: {error}"))
            });
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
            Address::Url(url) => f.write_str(&without_password(url.as_str().trim_end_matches('/'))),
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

/// What a client shows to a daemon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'a> {
    /// What says that it may.
    pub token: Option<&'a str>,
    /// By which name it decides; a daemon believes it on its socket.
    pub actor: Option<&'a str>,
    /// Shows the token also where others can read it.
    pub insecure: bool,
}

/// A connection to a daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Remote {
    http: reqwest::Client,
    address: Address,
    base: String,
    headers: HeaderMap,
    insecure: bool,
}

impl Remote {
    /// Prepares calls; connects to nothing yet.
    pub fn new(address: Address, access: Access<'_>) -> Result<Remote, Failure> {
        tls::choose_cryptography();
        let builder = reqwest::Client::builder().no_proxy();
        let (builder, base) = match &address {
            // The certificates of the system are read only where they are asked for something.
            Address::Socket(path) => {
                (builder.unix_socket(path.as_path()).tls_certs_only([]), "http://localhost".to_owned())
            }
            Address::Url(url) if url.scheme() == "https" => (builder.https_only(true), base_of(url)),
            Address::Url(url) => (builder.tls_certs_only([]), base_of(url)),
        };
        let http = builder.build().map_err(|error| match tls::fault(&error) {
            Some(fault) => Failure::new(
                Exit::Configuration,
                format!("could not prepare calls by TLS: {fault}"),
            )
            .help(
                "install the package ca-certificates, or name a file of certificates: SSL_CERT_FILE=ca.pem",
            ),
            None => Failure::new(Exit::Temporary, format!("could not prepare calls: {error}")),
        })?;
        let remote = Remote { http, address, base, headers: HeaderMap::new(), insecure: access.insecure };
        let mut remote = match access.token {
            Some(token) => remote.showing(token)?,
            None => remote,
        };
        if let (Address::Socket(_), Some(actor)) = (&remote.address, access.actor)
            && let Ok(actor) = HeaderValue::from_bytes(actor.as_bytes())
        {
            remote.headers.insert("planctl-actor", actor);
        }
        Ok(remote)
    }

    /// Returns a connection to the same daemon that shows another token: an item's.
    pub fn showing(&self, token: &str) -> Result<Remote, Failure> {
        if let Address::Url(url) = &self.address
            && tls::is_readable_by_others(url)
            && !self.insecure
        {
            return Err(Failure::usage(format!(
                "could not send a token to {}: others can read it on the way, since http:// is not encrypted",
                self.address
            ))
            .help("put a proxy with TLS before the daemon and name it with https://; or say --insecure, where everybody on that network is trusted"));
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Failure::new(Exit::Configuration, "could not use the token: it is none"))?;
        value.set_sensitive(true);
        let mut remote = self.clone();
        remote.headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        Ok(remote)
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
        self.request(Method::GET, "/readyz").timeout(TIMEOUT).send().await.is_ok()
    }

    /// Reads once and waits no longer than this, for who asks how a daemon is and may hear that it is unwell.
    pub async fn look<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, Silence> {
        let asked = self.request(Method::GET, path).timeout(within).send().await;
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

    /// Takes something away, once.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let key = uuid_of();
        let call = Sent { method: Method::DELETE, path, query: &[], body: None, key: Some(&key) };
        self.answer(call).await?.ok_or_else(|| self.odd("nothing where something was asked for"))
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).headers(self.headers.clone())
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
                .request(call.method.clone(), &path_of(call))
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
                Err(error) if tls::fault(&error).is_some() => return Err(self.unreachable(&error)),
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
        if let Some(fault) = tls::fault(error) {
            let message = format!("could not reach a daemon at {}: {fault}", self.address);
            return Failure::new(Exit::Unavailable, message).help(tls::help(fault));
        }
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

fn base_of(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
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
