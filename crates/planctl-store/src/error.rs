//! The errors of the store, one variant per thing a caller can do about it.

use planctl_engine::{Refusal, RunId};
use rustls::CertificateError;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer until the deadline of the settings, or had no resources for an answer; the same call may succeed
    /// later.
    #[error("{}", unavailable(.source))]
    Unavailable {
        /// The last error of the database.
        #[source]
        source: sqlx::Error,
    },
    /// Others changed the run again and again meanwhile; the same call may succeed later.
    #[error("change run {run}: others were quicker each time")]
    Contended {
        /// The run's id.
        run: RunId,
    },
    /// The database answers and says no: a wrong password, a missing database or right. Trying again is useless.
    #[error("use the database: {}", words_of(.source))]
    Denied {
        /// The error of the database.
        #[source]
        source: sqlx::Error,
    },
    /// Another run has the workspace; this one stays queued.
    #[error("take the workspace: run {run} has it")]
    WorkspaceBusy {
        /// The name of the run that has it.
        run: String,
    },
    /// There is no such thing.
    #[error("find {what}")]
    NotFound {
        /// The name or id that was looked for.
        what: String,
    },
    /// There is no such ask.
    #[error("find ask {number}")]
    NoAsk {
        /// The number that was looked for.
        number: i64,
    },
    /// Several things have a name that begins so.
    #[error("tell which run is meant by `{given}`: {}", .candidates.join(", "))]
    Ambiguous {
        /// The ambiguous name.
        given: String,
        /// The names that it may stand for.
        candidates: Vec<String>,
    },
    /// The engine refused; nothing changed, and the refusal is on record.
    #[error("apply this: {0}")]
    Refused(Refusal),
    /// The caller no longer holds the item; its report is kept as a note and changes nothing (P-47).
    #[error("accept this: the lease is over")]
    StaleLease,
    /// Others voted since the caller looked, or the ask is closed: look again, and vote again.
    #[error("count the vote: others voted at the same moment")]
    VotedMeanwhile,
    /// The key was used for something else (P14).
    #[error("accept this: key `{key}` was used for another command")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// The plan may not go from one status to the other (P-26).
    #[error("move the plan from {from} to {to}")]
    IllegalTransition {
        /// Where it stands.
        from: String,
        /// Where it was to go.
        to: String,
    },
    /// A text is longer than may be kept.
    #[error("keep {what} of {bytes} bytes: the limit is {bytes_max}")]
    TooLong {
        /// The operation.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The most it may have.
        bytes_max: usize,
    },
    /// The event came with a proof of another kind: a defect of the caller.
    #[error("accept {event} with this proof")]
    Misproved {
        /// The event's speaker and kind.
        event: &'static str,
    },
    /// The database holds tables of something else.
    #[error("use this database: it holds tables that are not planctl's ({})", .tables.join(", "))]
    Foreign {
        /// Some of their names.
        tables: Vec<String>,
    },
    /// A newer planctl has migrated the database.
    #[error("use this database: its schema is {found} and this planctl knows up to {known}")]
    NewerSchema {
        /// The version found.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// The database was not migrated yet, or not far enough.
    #[error("use this database: its schema is {found} and this planctl needs {known}")]
    OlderSchema {
        /// The version found; zero where there is none.
        found: i64,
        /// The version needed.
        known: i64,
    },
    /// The schema is none that any planctl has made (row 102).
    #[error("use this database: its schema is half migrated: {what}")]
    HalfMigrated {
        /// Which migration does not fit, and how.
        what: String,
    },
    /// The server is too old.
    #[error("use this database: it runs Postgres {found}, and 14 or newer is needed")]
    OldPostgres {
        /// The server's version.
        found: String,
    },
    /// A stored row is not one that this planctl wrote.
    #[error("read what is stored{}: {what}", of_run(.run.as_ref()))]
    Corrupt {
        /// The run of which it is, where it is known.
        run: Option<RunId>,
        /// The part that does not fit.
        what: String,
    },
}

impl StoreError {
    /// Says that the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. } | StoreError::Contended { .. })
    }

    /// Says that the server lets no further session in.
    pub fn is_too_many_connections(&self) -> bool {
        matches!(self, StoreError::Unavailable { source } if is_too_many_connections(source))
    }

    /// Says that an address of a database does not read.
    pub fn from_configuration(source: sqlx::Error) -> StoreError {
        StoreError::Denied { source }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
        StoreError::Corrupt { run: None, what: what.into() }
    }

    /// Says of which run it is that something does not read.
    pub(crate) fn in_run(self, of: RunId) -> StoreError {
        if let StoreError::Corrupt { run: None, what } = self {
            return StoreError::Corrupt { run: Some(of), what };
        }
        self
    }

    pub(crate) fn not_found(what: impl Into<String>) -> StoreError {
        StoreError::NotFound { what: what.into() }
    }
}

fn of_run(run: Option<&RunId>) -> String {
    run.map(|run| format!(" of run {run}")).unwrap_or_default()
}

/// A run with a row that does not read: the error concerns this run and no other.
#[derive(Debug)]
pub struct Unread {
    /// The run.
    pub run: RunId,
    /// The error.
    pub error: StoreError,
}

impl Unread {
    pub(crate) fn new(run: RunId, error: StoreError) -> Unread {
        Unread { run, error: error.in_run(run) }
    }
}

/// The meaning of a database error for the call that met it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The server or the way to it is away: the statement may or may not have been done.
    Outage,
    /// The server took the statement back whole and asks for another try.
    Retryable,
    /// The server refuses this client or this statement.
    Denied,
    /// The answer is not of the expected form.
    Defect,
}

/// A resource that the database server runs out of while it goes on answering whatever needs none of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Room on its disk.
    Disk,
    /// Memory, its own or the shared one.
    Memory,
    /// Something that a setting of the server limits, such as the size of temporary files.
    Limit,
}

/// No further session is let in: the server, the database or the role has as many as it may.
const TOO_MANY_CONNECTIONS: &str = "53300";

pub(crate) fn classify(error: &sqlx::Error) -> Failure {
    if let sqlx::Error::Database(database) = error {
        let failure = classify_code(database.code().as_deref().unwrap_or_default());
        // A session that the server ended, for any reason, says nothing of the statement.
        let is_over = failure == Failure::Defect && ends_the_session(database.as_ref());
        return if is_over { Failure::Outage } else { failure };
    }
    let is_away = matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    );
    if is_away {
        Failure::Outage
    } else if matches!(error, sqlx::Error::Configuration(_)) {
        Failure::Denied
    } else {
        Failure::Defect
    }
}

/// Returns true if no encrypted connection came about: the server offers none, or its certificate is not to be trusted.
pub(crate) fn is_of_tls(error: &sqlx::Error) -> bool {
    if let sqlx::Error::Io(error) = error {
        return error.get_ref().is_some_and(|within| within.is::<rustls::Error>());
    }
    matches!(error, sqlx::Error::Tls(_))
}

/// Says that the server ended the session with this error.
pub(crate) fn ends_the_session(error: &(dyn DatabaseError + 'static)) -> bool {
    error
        .try_downcast_ref::<PgDatabaseError>()
        .is_none_or(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// Sorts the codes of PROMISES 2.4.
fn classify_code(code: &str) -> Failure {
    let class = code.get(..2).unwrap_or_default();
    if matches!(code, "57P01" | "57P02" | "57P03") || class == "08" {
        Failure::Outage
    } else if matches!(code, "55P03" | "57014" | "25P03")
        || matches!(class, "53" | "40")
        || needs_another_session(code)
    {
        Failure::Retryable
    } else if matches!(class, "28" | "3D") || code == "42501" {
        Failure::Denied
    } else {
        Failure::Defect
    }
}

/// Returns what the server lacked for a statement. It may answer others meanwhile.
pub(crate) fn lacked_resource(error: &sqlx::Error) -> Option<Resource> {
    match error.as_database_error()?.code()?.as_ref() {
        TOO_MANY_CONNECTIONS => None,
        "53100" => Some(Resource::Disk),
        "53200" => Some(Resource::Memory),
        code => code.starts_with("53").then_some(Resource::Limit),
    }
}

/// Returns the words that a person can use: those of the server, without the place in its source.
pub(crate) fn words_of(error: &sqlx::Error) -> String {
    if let sqlx::Error::Database(error) = error {
        let message = error.message().to_owned();
        return match message.ends_with("no encryption") {
            true => format!("{message}; add `sslmode=require` to the address"),
            false => message,
        };
    }
    if matches!(error, sqlx::Error::PoolTimedOut) {
        return "it does not answer".to_owned();
    }
    if matches!(error, sqlx::Error::Tls(_)) {
        return format!(
            "{error}; turn it on there (`ssl = on`), or add `sslmode=disable` where nobody can listen"
        );
    }
    let sqlx::Error::Io(error) = error else { return error.to_string() };
    let fault = error.get_ref().and_then(|within| within.downcast_ref());
    let advice = match fault {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; where it is of a CA of your own, name the file of that CA in the address: `sslrootcert=ca.pem`"
        }
        Some(rustls::Error::InvalidCertificate(_)) => {
            "; its certificate, the host in the address, or the clock of one of the two machines has to be put right"
        }
        Some(_) | None => "",
    };
    format!("{error}{advice}")
}

fn unavailable(source: &sqlx::Error) -> String {
    let words = words_of(source);
    match lacked_resource(source) {
        Some(Resource::Disk) => format!("use the database, its disk is full: {words}"),
        Some(Resource::Memory) => format!("use the database, it is out of memory: {words}"),
        Some(Resource::Limit) => format!("use the database, it has reached a limit of its settings: {words}"),
        None if is_too_many_connections(source) => {
            format!("connect to the database, it takes no more connections: {words}")
        }
        None => format!("reach the database in time: {words}"),
    }
}

fn is_too_many_connections(error: &sqlx::Error) -> bool {
    has_code(error, TOO_MANY_CONNECTIONS)
}

/// Says that the same statement may do in a new session: this one's prepared statements no longer fit, as after a migration
/// by another process, or it may only read, as that of a standby.
pub(crate) fn needs_another_session(code: &str) -> bool {
    matches!(code, "0A000" | "26000" | "25006")
}

impl From<sqlx::Error> for StoreError {
    fn from(source: sqlx::Error) -> StoreError {
        match classify(&source) {
            Failure::Outage | Failure::Retryable => StoreError::Unavailable { source },
            Failure::Denied => StoreError::Denied { source },
            Failure::Defect if has_code(&source, "PL004") => StoreError::VotedMeanwhile,
            Failure::Defect => StoreError::corrupt(words_of(&source)),
        }
    }
}

/// Says that the database refused a row because of this constraint or index.
pub(crate) fn violates_constraint(error: &sqlx::Error, constraint: &str) -> bool {
    error.as_database_error().is_some_and(|database| database.constraint() == Some(constraint))
}

/// Says that the database raised this code.
pub(crate) fn has_code(error: &sqlx::Error, code: &str) -> bool {
    error.as_database_error().is_some_and(|database| database.code().as_deref() == Some(code))
}
