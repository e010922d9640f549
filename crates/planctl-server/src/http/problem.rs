//! What goes wrong at a door, as RFC 9457 problem documents with stable codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use planctl_store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node::services::ServiceError;
use crate::wire::calls::OutOfBounds;

/// The media type of problem documents.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a call was not done: what happened, and what to do about it (RFC 9457).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Problem {
    /// The stable code, as a URI reference: `/problems/lease_lost`.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The HTTP status.
    pub status: u16,
    /// The code in words.
    pub title: Box<str>,
    /// What happened, and where.
    pub detail: Box<str>,
    /// Where in the request's body it is: a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Box<str>>,
    /// How to mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Box<str>>,
    /// The command to type next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<str>>,
}

/// The stable code of a problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The request is not what the route takes.
    BadRequest,
    /// A string holds U+0000, which nothing here can store.
    NulCharacter,
    /// A mutation came without its key.
    IdempotencyKeyMissing,
    /// The key was used for another request.
    IdempotencyMismatch,
    /// The same request is under way.
    UnderWay,
    /// No token, or one that is not known, expired or revoked.
    Unauthenticated,
    /// The token has another scope.
    Scope,
    /// The request comes from a place that is not let in.
    Origin,
    /// A person decides, not a process that a worker started.
    InsideWorker,
    /// There is no such thing.
    NotFound,
    /// The route has no such method.
    MethodNotAllowed,
    /// The state does not allow it.
    Conflict,
    /// The lease is over, or was never held.
    LeaseLost,
    /// The body is too large.
    TooLarge,
    /// The address is too long.
    UriTooLong,
    /// The body is of another type.
    MediaType,
    /// The plan is not verified.
    NotVerified,
    /// Nobody serves a role.
    NoAgent,
    /// The role's configuration does not allow it.
    Role,
    /// The isolation that is asked for is not to be had.
    Isolation,
    /// The plan can't be read.
    Unreadable,
    /// Too many at once.
    TooMany,
    /// The database is away.
    DatabaseUnavailable,
    /// The daemon is about to stop.
    Stopping,
    /// A file or process of planctl's own failed.
    Temporary,
    /// A defect of planctl.
    Defect,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 26] = [
        Code::BadRequest,
        Code::NulCharacter,
        Code::IdempotencyKeyMissing,
        Code::IdempotencyMismatch,
        Code::UnderWay,
        Code::Unauthenticated,
        Code::Scope,
        Code::Origin,
        Code::InsideWorker,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::Conflict,
        Code::LeaseLost,
        Code::TooLarge,
        Code::UriTooLong,
        Code::MediaType,
        Code::NotVerified,
        Code::NoAgent,
        Code::Role,
        Code::Isolation,
        Code::Unreadable,
        Code::TooMany,
        Code::DatabaseUnavailable,
        Code::Stopping,
        Code::Temporary,
        Code::Defect,
    ];

    /// Returns its word, its status and what it means.
    pub fn meaning(self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Code::BadRequest => ("bad_request", S::BAD_REQUEST, "the request is not what the route takes"),
            Code::NulCharacter => ("nul_character", S::BAD_REQUEST, "a string holds U+0000"),
            Code::IdempotencyKeyMissing => {
                ("idempotency_key_missing", S::BAD_REQUEST, "a mutation needs an Idempotency-Key")
            }
            Code::IdempotencyMismatch => {
                ("idempotency_mismatch", S::CONFLICT, "the key was used for another request")
            }
            Code::UnderWay => ("under_way", S::CONFLICT, "the same request is under way"),
            Code::Unauthenticated => ("unauthenticated", S::UNAUTHORIZED, "a valid token is needed"),
            Code::Scope => ("scope", S::FORBIDDEN, "the token's scope does not reach this"),
            Code::Origin => ("origin", S::FORBIDDEN, "this host or origin is not let in"),
            Code::InsideWorker => ("inside_worker", S::FORBIDDEN, "a person decides, not a worker's process"),
            Code::NotFound => ("not_found", S::NOT_FOUND, "there is no such thing"),
            Code::MethodNotAllowed => {
                ("method_not_allowed", S::METHOD_NOT_ALLOWED, "the route has no such method")
            }
            Code::Conflict => ("conflict", S::CONFLICT, "the state does not allow it"),
            Code::LeaseLost => ("lease_lost", S::CONFLICT, "the lease is over: stop working"),
            Code::TooLarge => ("too_large", S::PAYLOAD_TOO_LARGE, "the body is too large"),
            Code::UriTooLong => ("uri_too_long", S::URI_TOO_LONG, "the address is too long"),
            Code::MediaType => ("media_type", S::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"),
            Code::NotVerified => ("not_verified", S::UNPROCESSABLE_ENTITY, "the plan is not verified"),
            Code::NoAgent => ("no_agent", S::UNPROCESSABLE_ENTITY, "nobody serves a role"),
            Code::Role => ("role", S::UNPROCESSABLE_ENTITY, "the role's configuration does not allow it"),
            Code::Isolation => ("isolation", S::UNPROCESSABLE_ENTITY, "the isolation is not to be had"),
            Code::Unreadable => ("unreadable", S::UNPROCESSABLE_ENTITY, "the plan can't be read"),
            Code::TooMany => ("too_many", S::TOO_MANY_REQUESTS, "too many at once"),
            Code::DatabaseUnavailable => {
                ("database_unavailable", S::SERVICE_UNAVAILABLE, "the database is away")
            }
            Code::Stopping => ("stopping", S::SERVICE_UNAVAILABLE, "the daemon is about to stop"),
            Code::Temporary => ("temporary", S::INTERNAL_SERVER_ERROR, "a file or process failed"),
            Code::Defect => ("defect", S::INTERNAL_SERVER_ERROR, "a defect of planctl"),
        }
    }

    /// Returns its word.
    pub fn word(self) -> &'static str {
        self.meaning().0
    }
}

impl Problem {
    /// Makes a problem from what happened.
    pub fn new(code: Code, detail: impl Into<Box<str>>) -> Problem {
        let (word, status, title) = code.meaning();
        Problem {
            kind: format!("/problems/{word}").into(),
            status: status.as_u16(),
            title: title.into(),
            // It quotes what was sent, and ends in a terminal (A31).
            detail: planctl_lang::printable(&detail.into()).into(),
            pointer: None,
            help: None,
            next: None,
        }
    }

    /// Returns its code, where this planctl knows it.
    pub fn code(&self) -> Option<Code> {
        let word = self.kind.strip_prefix("/problems/")?;
        Code::ALL.into_iter().find(|code| code.word() == word)
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<Box<str>>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Says which command to type next.
    #[must_use]
    pub fn next(mut self, next: impl Into<Box<str>>) -> Problem {
        self.next = Some(next.into());
        self
    }

    /// Says what of the services went wrong, and what to do about it; the command line and the sockets say the same.
    pub fn of(error: &ServiceError) -> Problem {
        use ServiceError as Error;
        let message = format!("could not {error}");
        match error {
            Error::Store(error) => Problem::of_store(error),
            Error::Cluster(_) => Problem::new(Code::DatabaseUnavailable, message),
            Error::Check(_) => Problem::new(Code::Unreadable, message),
            Error::NotVerified { plan } => {
                Problem::new(Code::NotVerified, message).next(format!("planctl plan verify {plan}"))
            }
            Error::NoAgent { role } => Problem::new(Code::NoAgent, message).help(format!(
                "name a worker with --agent NAME or --exec CMD, or in planctl.toml: [roles.{role}] agent = \"exec:CMD\""
            )),
            Error::NotForRole { role, .. } => Problem::new(Code::Role, message).help(format!(
                "add it to `plans` of [roles.{role}] in planctl.toml, or give the step another target"
            )),
            Error::Unheld { role, .. } => Problem::new(Code::Role, message).help(format!(
                "change `permissions` and `allow` of [roles.{role}] in planctl.toml, or name another agent"
            )),
            Error::Network { role, .. } => Problem::new(Code::Isolation, message).help(format!(
                "in planctl.toml write isolation = \"require:1b\", where `planctl doctor` says that this host offers it, \
                 or network = \"host\" in [roles.{role}]"
            )),
            Error::Invalid { help, .. } => Problem::new(Code::BadRequest, message).help(help.clone()),
            Error::Isolation { .. } => Problem::new(Code::Isolation, message)
                .help("nothing runs below what is demanded; set isolation = \"auto\" to run as you"),
            Error::Conflict { help, .. } => Problem::new(Code::Conflict, message).next(help.clone()),
            Error::TooMany { help, .. } => Problem::new(Code::TooMany, message).next(help.clone()),
            Error::NotFound { .. } => Problem::new(Code::NotFound, message),
            Error::Protect(_) | Error::Io { .. } => Problem::new(Code::Temporary, message),
            Error::Broken { .. } => Problem::new(Code::Defect, message),
        }
    }

    fn of_store(error: &StoreError) -> Problem {
        use StoreError as Error;
        let message = format!("could not {error}");
        match error {
            Error::Unavailable { source } => {
                Problem::new(Code::DatabaseUnavailable, format!("{message}: {source}"))
                    .next("planctl db status")
            }
            Error::Contended { .. } => Problem::new(Code::DatabaseUnavailable, message),
            Error::NewerSchema { .. } => Problem::new(Code::DatabaseUnavailable, message)
                .help("another planctl has migrated it: install that version, or a newer one"),
            Error::OlderSchema { .. } => {
                Problem::new(Code::DatabaseUnavailable, message).next("planctl daemon migrate")
            }
            Error::Denied { .. }
            | Error::Foreign { .. }
            | Error::HalfMigrated { .. }
            | Error::OldPostgres { .. } => {
                Problem::new(Code::DatabaseUnavailable, message).next("planctl db status")
            }
            Error::NotFound { .. } => Problem::new(Code::NotFound, message).next("planctl plan ls"),
            Error::NoAsk { .. } => Problem::new(Code::NotFound, message).next("planctl approvals"),
            Error::Ambiguous { .. } => Problem::new(Code::NotFound, message).help("give more of its name"),
            Error::WorkspaceBusy { run } => {
                Problem::new(Code::Conflict, message).next(format!("planctl plan status {run}"))
            }
            Error::StaleLease => Problem::new(Code::LeaseLost, message),
            Error::KeyReused { .. } => Problem::new(Code::IdempotencyMismatch, message)
                .help("what came first under it holds; an item takes one report, each other command a key of its own"),
            Error::Refused(_) | Error::IllegalTransition { .. } => Problem::new(Code::Conflict, message),
            Error::TooLong { .. } => Problem::new(Code::BadRequest, message),
            Error::Misproved { .. } | Error::Corrupt { .. } => Problem::new(Code::Defect, message),
        }
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        Problem::of(&error)
    }
}

impl From<OutOfBounds> for Problem {
    fn from(error: OutOfBounds) -> Problem {
        Problem::new(Code::BadRequest, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::of_store(&error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.code();
        let mut response = super::json_with(status, &self);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        match code {
            Some(Code::Unauthenticated) => {
                headers
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"planctl\""));
            }
            Some(Code::DatabaseUnavailable | Code::Stopping | Code::TooMany | Code::UnderWay) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Some(_) | None => {}
        }
        response
    }
}
