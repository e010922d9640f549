//! How a request reaches planctl's API: over the socket in the state directory, by a URL, or in this process.

use std::path::PathBuf;
use std::time::Duration;

use planctl_server::http::InProcess;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use url::Url;

use crate::failure::{Exit, Failure};
use crate::tls;

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
        if given.contains("://") && !given.starts_with("unix:") {
            let given = without_password(given);
            return Err(Failure::usage(format!("could not use `{given}` as a daemon's address"))
                .help("a URL begins with http:// or https://, and a socket is a path"));
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

/// Hides a user and password that stand in an address, since logs keep it.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => url.to_owned(),
    }
}

/// Reaches the API. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A daemon's, through a connection.
    Http {
        /// The connections that are open.
        client: reqwest::Client,
        /// Stands before each path.
        base: String,
        /// Where it is.
        address: Address,
    },
    /// The routes themselves.
    InProcess(InProcess),
}

/// Why no answer came.
#[derive(Debug)]
pub enum Unanswered {
    /// The daemon can't be reached.
    Unreachable(reqwest::Error),
    /// The routes could not be called.
    Uncalled(String),
}

/// An answer: its status, and the whole of its body.
pub type Answered = (StatusCode, Vec<u8>);

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Transport::Http { address, .. } => address.fmt(f),
            Transport::InProcess(_) => f.write_str("this process"),
        }
    }
}

impl Transport {
    /// Prepares to reach a daemon; connects to nothing yet.
    pub fn to(address: Address) -> Result<Transport, Failure> {
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
        let client = builder.build().map_err(|error| match tls::fault(&error) {
            Some(fault) => Failure::new(
                Exit::Configuration,
                format!("could not prepare calls by TLS: {fault}"),
            )
            .help(
                "install the package ca-certificates, or name a file of certificates: SSL_CERT_FILE=ca.pem",
            ),
            None => Failure::new(Exit::Temporary, format!("could not prepare calls: {error}")),
        })?;
        Ok(Transport::Http { client, base, address })
    }

    /// Sends a request and waits for all of its answer, at most this long where it goes through a connection.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Answered, Unanswered> {
        match self {
            Transport::Http { client, base, .. } => {
                let request = client.request(method, format!("{base}{path}")).headers(headers);
                let response =
                    request.body(body).timeout(within).send().await.map_err(Unanswered::Unreachable)?;
                let status = response.status();
                let body = response.bytes().await.map_err(Unanswered::Unreachable)?;
                Ok((status, body.to_vec()))
            }
            Transport::InProcess(routes) => {
                let called = routes.call(method, path, headers, body).await;
                called.map_err(|error| Unanswered::Uncalled(error.to_string()))
            }
        }
    }
}

fn base_of(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}
