//! A few connections that stay open: acquired for one statement, dropped when anything is doubtful.
//!
//! sqlx's own pool pings each connection when it comes back, which costs the hot path a round trip per statement. Here a
//! connection comes back only after its statement has ended in an answer; a broken or half-read one is closed.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Failure, StoreError, classify, ends_the_session, is_of_tls, needs_another_session};
use crate::store::Settings;

macro_rules! set_planning {
    () => {
        "set_config('enable_seqscan', $1, false), set_config('enable_bitmapscan', $1, false), \
         set_config('enable_sort', $1, false), set_config('plan_cache_mode', $2, false)"
    };
}

/// Makes a session what the store needs: no JIT, since it would compile whatever scans that are switched off make look dear,
/// and no end for standing idle, as a pool of sessions does.
pub(crate) const PREPARE_SESSION: &str = concat!(
    "select set_config('jit', 'off', false), \
     set_config('statement_timeout', $3, false), set_config('lock_timeout', $4, false), \
     set_config('idle_in_transaction_session_timeout', $5, false), \
     case when current_setting('server_version_num')::int >= 140000 then set_config('idle_session_timeout', '0', false) end, \
     current_setting('server_version_num')::int as version, current_setting('server_version') as version_text, ",
    set_planning!()
);
pub(crate) const SET_PLANNING: &str = concat!("select ", set_planning!());

/// How the server plans the statements of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Planning {
    /// By the index that the statement was written for, and once for all values: for claims and for the reads and writes of a
    /// transition. A plan that the server makes on a near-empty table would be a sequential scan and stay one while the table
    /// grows; one that sorts would read all that wait to find the first.
    ByIndex,
    /// As the server finds best, by what it knows of the tables and of the values that are looked for: for everything else.
    ByValues,
}

impl Planning {
    fn scans_and_sorts(self) -> &'static str {
        match self {
            Planning::ByIndex => "off",
            Planning::ByValues => "on",
        }
    }

    fn plan_cache_mode(self) -> &'static str {
        match self {
            Planning::ByIndex => "force_generic_plan",
            Planning::ByValues => "auto",
        }
    }
}

const POSTGRES_VERSION_MIN: i32 = 140_000;

pub(crate) struct Connections {
    options: PgConnectOptions,
    settings: Settings,
    idle: Mutex<Vec<Session>>,
    permits: Arc<Semaphore>,
}

/// An open connection, and how its statements are planned.
struct Session {
    connection: PgConnection,
    planning: Planning,
}

impl Session {
    /// Plans from here on in this way. A plan that is kept was made in the way of its statement, which never changes.
    async fn plan(&mut self, planning: Planning) -> Result<(), sqlx::Error> {
        if self.planning != planning {
            let query =
                sqlx::query(SET_PLANNING).bind(planning.scans_and_sorts()).bind(planning.plan_cache_mode());
            query.execute(&mut self.connection).await?;
            self.planning = planning;
        }
        Ok(())
    }
}

/// One connection, acquired until its statement has ended.
pub(crate) struct PooledConnection<'a> {
    session: Option<Session>,
    home: &'a Connections,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(options: PgConnectOptions, settings: Settings) -> Connections {
        let options = options.application_name(&settings.application_name).disable_statement_logging();
        let permits = Arc::new(Semaphore::new(settings.connections.max(1)));
        Connections { options, settings, idle: Mutex::new(Vec::new()), permits }
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Opens the connections that the first statements will want.
    pub(crate) async fn warm(&self) -> Result<(), StoreError> {
        let mut retries = RetryPolicy::of(self.settings.connect_deadline);
        let kinds = [Planning::ByValues, Planning::ByIndex];
        for planning in kinds.into_iter().take(self.settings.connections.max(1)) {
            loop {
                match self.open(planning).await {
                    Ok(session) => break self.idle().push(session),
                    Err(Opening::TooOld(found)) => return Err(StoreError::OldPostgres { found }),
                    // Later it counts as an outage: a certificate is renewed, and the work waits for that.
                    Err(Opening::Failed(source)) if is_of_tls(&source) => {
                        return Err(StoreError::Denied { source });
                    }
                    Err(Opening::Failed(sqlx::Error::Io(error))) if self.lacks_certificate(&error) => {
                        let what =
                            "a file that the address names (sslrootcert, sslcert or sslkey) can't be read";
                        let source = sqlx::Error::Configuration(format!("{what}: {error}").into());
                        return Err(StoreError::Denied { source });
                    }
                    Err(Opening::Failed(error)) => retries.after(error).await?,
                }
            }
        }
        Ok(())
    }

    /// Says that a file of certificates is missing: there is no other file on the way to a port.
    fn lacks_certificate(&self, error: &std::io::Error) -> bool {
        let is_port = self.options.get_socket().is_none() && !self.options.get_host().starts_with('/');
        is_port && error.kind() == std::io::ErrorKind::NotFound
    }

    /// Lends a connection whose statements are planned in this way: an idle one, or a new one as long as there may be more.
    /// Where there may not, an idle one of the other kind is made one of this kind, which costs a round trip.
    pub(crate) async fn acquire(&self, planning: Planning) -> Result<PooledConnection<'_>, sqlx::Error> {
        let wait = self.permits.clone().acquire_owned();
        let permit = match timeout(self.settings.deadline, wait).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(sqlx::Error::PoolClosed),
            Err(_) => return Err(sqlx::Error::PoolTimedOut),
        };
        let session = match self.take_idle(planning) {
            Some(mut session) => {
                session.plan(planning).await?;
                session
            }
            None => self.open(planning).await.map_err(|failure| match failure {
                Opening::Failed(error) => error,
                Opening::TooOld(found) => {
                    sqlx::Error::Configuration(format!("Postgres {found} is too old").into())
                }
            })?,
        };
        Ok(PooledConnection { session: Some(session), home: self, _permit: permit })
    }

    fn take_idle(&self, planning: Planning) -> Option<Session> {
        let mut idle = self.idle();
        if let Some(at) = idle.iter().rposition(|session| session.planning == planning) {
            return Some(idle.remove(at));
        }
        let in_use = self.settings.connections.max(1).saturating_sub(self.permits.available_permits());
        let is_full = idle.len() + in_use > self.settings.connections;
        (is_full && !idle.is_empty()).then(|| idle.remove(0))
    }

    async fn open(&self, planning: Planning) -> Result<Session, Opening> {
        use sqlx::Row;
        let connecting = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            let row = sqlx::query(PREPARE_SESSION)
                .bind(planning.scans_and_sorts())
                .bind(planning.plan_cache_mode())
                .bind(milliseconds(self.settings.statement_timeout))
                .bind(milliseconds(self.settings.lock_timeout))
                .bind(milliseconds(self.settings.idle_in_transaction_timeout))
                .fetch_one(&mut connection)
                .await?;
            Ok::<_, sqlx::Error>((
                connection,
                row.try_get::<i32, _>("version")?,
                row.try_get("version_text")?,
            ))
        };
        let (connection, version, text) = match timeout(Duration::from_secs(10), connecting).await {
            Ok(opened) => opened.map_err(Opening::Failed)?,
            Err(_) => return Err(Opening::Failed(sqlx::Error::PoolTimedOut)),
        };
        if version < POSTGRES_VERSION_MIN {
            return Err(Opening::TooOld(text));
        }
        Ok(Session { connection, planning })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all idle connections and lends no more.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for session in idle {
            if let Err(error) = session.connection.close().await {
                tracing::debug!(%error, "a connection did not close cleanly");
            }
        }
    }
}

enum Opening {
    Failed(sqlx::Error),
    TooOld(String),
}

fn milliseconds(span: Duration) -> String {
    span.as_millis().to_string()
}

impl PooledConnection<'_> {
    /// Gives the connection back if the statement ended in an answer, and passes the result on.
    pub(crate) fn recycle<T>(mut self, result: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        let is_sound = match &result {
            Ok(_) | Err(sqlx::Error::RowNotFound) => true,
            Err(sqlx::Error::Database(error)) => {
                !ends_the_session(error.as_ref())
                    && !needs_another_session(error.code().as_deref().unwrap_or_default())
            }
            Err(_) => false,
        };
        if is_sound && let Some(session) = self.session.take() {
            self.home.idle().push(session);
        }
        result
    }
}

impl Deref for PooledConnection<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.session.as_ref().expect("the connection is there until it is recycled").connection
    }
}

impl DerefMut for PooledConnection<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.session.as_mut().expect("the connection is there until it is recycled").connection
    }
}

/// How long a call goes on trying while the database is away.
pub(crate) struct RetryPolicy {
    until: Instant,
    pause: Duration,
}

impl RetryPolicy {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_millis(500);

    pub(crate) fn new(settings: &Settings) -> RetryPolicy {
        RetryPolicy::of(settings.deadline)
    }

    fn of(deadline: Duration) -> RetryPolicy {
        RetryPolicy { until: Instant::now() + deadline, pause: RetryPolicy::FIRST }
    }

    /// Waits before the next try, or gives the error up where another try is useless or the deadline has passed.
    pub(crate) async fn after(&mut self, error: sqlx::Error) -> Result<(), StoreError> {
        match classify(&error) {
            Failure::Outage | Failure::Retryable if Instant::now() < self.until => {
                tracing::debug!(%error, "the database is away; trying again");
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(RetryPolicy::LONGEST);
                Ok(())
            }
            Failure::Outage | Failure::Retryable | Failure::Denied | Failure::Defect => Err(error.into()),
        }
    }
}

/// Runs one statement on a pooled connection and tries again while the database is away. For statements that may be
/// repeated without harm.
macro_rules! repeated {
    ($store:expr, $connection:ident => $statement:expr) => {{
        let mut retries = $crate::connections::RetryPolicy::new($store.settings());
        loop {
            let outcome = match $store.connections().acquire($crate::connections::Planning::ByValues).await {
                Ok(mut $connection) => {
                    let result = $statement.await;
                    $connection.recycle(result)
                }
                Err(error) => Err(error),
            };
            match outcome {
                Ok(value) => break Ok::<_, $crate::error::StoreError>(value),
                Err(error) => {
                    if let Err(error) = retries.after(error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(crate) use repeated;
