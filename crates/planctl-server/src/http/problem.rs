//! Says what went wrong in the services as problem documents (RFC 9457), and sends those.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use planctl_api::{Code, Next, PROBLEM_MEDIA_TYPE, Problem};
use planctl_store::StoreError;

use crate::node::services::ServiceError;

/// Says what of the services went wrong, and what to do about it; the command line and the sockets say the same.
fn of_service(error: ServiceError) -> Problem {
    use ServiceError as Error;
    let message = format!("could not {error}");
    match error {
        Error::Store(error) => of_store(error),
        Error::Cluster(_) => Problem::new(Code::DatabaseUnavailable, message),
        Error::Check(_) => Problem::new(Code::Unreadable, message),
        Error::NotVerified { plan } => {
            Problem::new(Code::NotVerified, message).next(Next::VerifyPlan { plan, folder: None })
        }
        Error::NoAgent { role } => {
            Problem::new(Code::NoAgent, message).next(Next::NameWorker { role: role.as_str().to_owned() })
        }
        Error::NotInstalled { agent, missing, .. } => Problem::new(Code::NotInstalled, message)
            .help(missing.help())
            .next(Next::TestWorker { agent: agent.to_string() }),
        Error::NotForRole { role, .. } => Problem::new(Code::Role, message).help(format!(
            "add it to `plans` of [roles.{role}] in planctl.toml, or give the step another target"
        )),
        Error::Unheld { role, .. } => Problem::new(Code::Role, message).help(format!(
            "change `permissions` and `allow` of [roles.{role}] in planctl.toml, or name another agent"
        )),
        Error::Network { role, .. } => {
            Problem::new(Code::Isolation, message).next(Next::HoldNetwork { role: role.as_str().to_owned() })
        }
        Error::Invalid { help, .. } => Problem::new(Code::BadRequest, message).help(help),
        Error::Isolation { .. } => Problem::new(Code::Isolation, message)
            .help("nothing runs below what is demanded; set isolation = \"auto\" to run as you"),
        Error::Conflict { next, .. } => Problem::new(Code::Conflict, message).next(next),
        Error::NotAsked { next, .. } => Problem::new(Code::NotAsked, message).next(next),
        Error::TooMany { next, .. } => Problem::new(Code::TooMany, message).next(next),
        Error::NotFound { .. } => Problem::new(Code::NotFound, message),
        Error::Protect(_) | Error::Io { .. } => Problem::new(Code::Temporary, message),
        Error::StateDirGone { .. } => Problem::new(Code::Temporary, message)
            .help("put it back, and start the daemon again; without it a daemon begins with a new one"),
        Error::Broken { .. } => Problem::new(Code::Defect, message),
    }
}

/// Says what went wrong with something that is no run; where it is missing, the next step is to look which there are.
pub(super) fn of_listed(error: StoreError, list: Next) -> Problem {
    let is_missing = matches!(error, StoreError::NotFound { .. });
    let problem = of_store(error);
    if is_missing { problem.next(list) } else { problem }
}

/// Says what of the store went wrong.
pub(super) fn of_store(error: StoreError) -> Problem {
    use StoreError as Error;
    let message = format!("could not {error}");
    match error {
        Error::Unavailable { .. } if error.is_too_many_connections() => {
            Problem::new(Code::DatabaseUnavailable, message)
                .help("end other sessions of it, or raise max_connections of Postgres (or the limit of its database or role)")
        }
        Error::Unavailable { .. } => {
            Problem::new(Code::DatabaseUnavailable, message).next(Next::ShowDatabase)
        }
        Error::Contended { .. } => Problem::new(Code::DatabaseUnavailable, message),
        Error::NewerSchema { .. } => Problem::new(Code::DatabaseUnavailable, message)
            .help("another planctl has migrated it: install that version, or a newer one"),
        Error::OlderSchema { .. } => {
            Problem::new(Code::DatabaseUnavailable, message).next(Next::MigrateDatabase)
        }
        Error::Denied { .. }
        | Error::Foreign { .. }
        | Error::HalfMigrated { .. }
        | Error::OldPostgres { .. } => {
            Problem::new(Code::DatabaseUnavailable, message).next(Next::ShowDatabase)
        }
        Error::NotFound { .. } => Problem::new(Code::NotFound, message).next(Next::ListRuns),
        Error::NoAsk { .. } => Problem::new(Code::NotFound, message).next(Next::ShowAsks),
        Error::Ambiguous { .. } => Problem::new(Code::NotFound, message)
            .help("give more of its name or its id, or type it in its own workspace: planctl -C DIR …"),
        Error::WorkspaceBusy { run } => Problem::new(Code::Conflict, message).next(Next::show(run)),
        Error::StaleLease => Problem::new(Code::LeaseLost, message),
        Error::KeyReused { .. } => Problem::new(Code::IdempotencyMismatch, message).help(
            "what came first under it holds; an item takes one report, each other command a key of its own",
        ),
        Error::Refused(_) | Error::IllegalTransition { .. } | Error::VotedMeanwhile => {
            Problem::new(Code::Conflict, message)
        }
        Error::TooLong { .. } => Problem::new(Code::BadRequest, message),
        Error::Misproved { .. } | Error::Corrupt { .. } => Problem::new(Code::Defect, message),
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        of_service(error)
    }
}

/// Answers with a problem.
pub(super) fn response_of(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = problem.code();
    let mut response = super::json_with(status, problem);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
    match code {
        Some(Code::Unauthenticated) => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"planctl\""));
        }
        Some(Code::DatabaseUnavailable | Code::Stopping | Code::TooMany | Code::UnderWay) => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Some(_) | None => {}
    }
    response
}
