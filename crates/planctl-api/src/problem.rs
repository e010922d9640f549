//! Errors of the API, as RFC 9457 problem documents with stable codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::next::{Next, deserialize_known};
use crate::wire::calls::OutOfBounds;

/// The media type of problem documents.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// A refused or failed call: the reason, and the next step (RFC 9457).
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
    /// The event and its place.
    pub detail: Box<str>,
    /// Where in the request's body it is: a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Box<str>>,
    /// How to mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Box<str>>,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_known")]
    pub next: Option<Box<Next>>,
    /// The workspace that the plan's path and the run's name of `next` count in, at a run or an ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Box<str>>,
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
    /// A rule leaves the answer to other people.
    NotAsked,
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
    /// The program of an agent is not installed.
    NotInstalled,
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
    pub const ALL: [Code; 28] = [
        Code::BadRequest,
        Code::NulCharacter,
        Code::IdempotencyKeyMissing,
        Code::IdempotencyMismatch,
        Code::UnderWay,
        Code::Unauthenticated,
        Code::Scope,
        Code::Origin,
        Code::InsideWorker,
        Code::NotAsked,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::Conflict,
        Code::LeaseLost,
        Code::TooLarge,
        Code::UriTooLong,
        Code::MediaType,
        Code::NotVerified,
        Code::NoAgent,
        Code::NotInstalled,
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
    pub fn meaning(self) -> (&'static str, u16, &'static str) {
        match self {
            Code::BadRequest => ("bad_request", 400, "the request is not what the route takes"),
            Code::NulCharacter => ("nul_character", 400, "a string holds U+0000"),
            Code::IdempotencyKeyMissing => {
                ("idempotency_key_missing", 400, "a mutation needs an Idempotency-Key")
            }
            Code::IdempotencyMismatch => {
                ("idempotency_mismatch", 409, "the key was used for another request")
            }
            Code::UnderWay => ("under_way", 409, "the same request is under way"),
            Code::Unauthenticated => ("unauthenticated", 401, "a valid token is needed"),
            Code::Scope => ("scope", 403, "the token's scope does not reach this"),
            Code::Origin => ("origin", 403, "this host or origin is not let in"),
            Code::InsideWorker => ("inside_worker", 403, "a person decides, not a worker's process"),
            Code::NotAsked => ("not_asked", 403, "a rule leaves this answer to other people"),
            Code::NotFound => ("not_found", 404, "there is no such thing"),
            Code::MethodNotAllowed => ("method_not_allowed", 405, "the route has no such method"),
            Code::Conflict => ("conflict", 409, "the state does not allow it"),
            Code::LeaseLost => ("lease_lost", 409, "the lease is over: stop working"),
            Code::TooLarge => ("too_large", 413, "the body is too large"),
            Code::UriTooLong => ("uri_too_long", 414, "the address is too long"),
            Code::MediaType => ("media_type", 415, "the body must be application/json"),
            Code::NotVerified => ("not_verified", 422, "the plan is not verified"),
            Code::NoAgent => ("no_agent", 422, "nobody serves a role"),
            Code::NotInstalled => ("not_installed", 422, "the program of an agent is not installed"),
            Code::Role => ("role", 422, "the role's configuration does not allow it"),
            Code::Isolation => ("isolation", 422, "the isolation is not to be had"),
            Code::Unreadable => ("unreadable", 422, "the plan can't be read"),
            Code::TooMany => ("too_many", 429, "too many at once"),
            Code::DatabaseUnavailable => ("database_unavailable", 503, "the database is away"),
            Code::Stopping => ("stopping", 503, "the daemon is about to stop"),
            Code::Temporary => ("temporary", 500, "a file or process failed"),
            Code::Defect => ("defect", 500, "a defect of planctl"),
        }
    }

    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        self.meaning().0
    }
}

impl Problem {
    /// Makes a problem from what happened.
    pub fn new(code: Code, detail: impl Into<Box<str>>) -> Problem {
        let (word, status, title) = code.meaning();
        Problem {
            kind: format!("/problems/{word}").into(),
            status,
            title: title.into(),
            // It quotes what was sent, and ends in a terminal (A31).
            detail: planctl_lang::printable(&detail.into()).into(),
            pointer: None,
            help: None,
            next: None,
            workspace: None,
        }
    }

    /// Returns its code, where this planctl knows it.
    pub fn code(&self) -> Option<Code> {
        let word = self.kind.strip_prefix("/problems/")?;
        Code::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<Box<str>>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn next(mut self, next: Next) -> Problem {
        self.next = Some(Box::new(next));
        self
    }
}

impl From<OutOfBounds> for Problem {
    fn from(error: OutOfBounds) -> Problem {
        Problem::new(Code::BadRequest, error.to_string())
    }
}
