//! A few connections that stay open: acquired for one statement, dropped when anything is doubtful.
//!
//! sqlx's own pool pings each connection when it comes back, which costs the hot path a round trip per statement. Here a
//! connection comes back only after its statement has ended in an answer; a broken or half-read one is closed.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Failure, StoreError, classify, ends_the_session, is_of_tls, needs_another_session};
use crate::settings::Settings;

/// Makes a session what the store needs: no JIT, since it compiles every plan that looks expensive, as plans do where scans are
/// switched off; and no end for an idle session, since a pool keeps them.
pub(crate) const PREPARE_SESSION: &str = "select set_config('jit', 'off', false), \
     set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false), \
     set_config('idle_in_transaction_session_timeout', $3, false), \
     case when current_setting('server_version_num')::int >= 140000 then set_config('idle_session_timeout', '0', false) end, \
     current_setting('server_version_num')::int as version, current_setting('server_version') as version_text";

const POSTGRES_VERSION_MIN: i32 = 140_000;

pub(crate) struct Connections {
    options: PgConnectOptions,
    settings: Settings,
    idle: Mutex<Vec<PgConnection>>,
    permits: Arc<Semaphore>,
    /// How often one was acquired.
    acquired: AtomicU64,
}

/// One connection, acquired until its statement has ended.
pub(crate) struct PooledConnection<'a> {
    connection: Option<PgConnection>,
    home: &'a Connections,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(options: PgConnectOptions, settings: Settings) -> Connections {
        let options = options.application_name(&settings.application_name).disable_statement_logging();
        let permits = Arc::new(Semaphore::new(settings.connections.max(1)));
        Connections { options, settings, idle: Mutex::new(Vec::new()), permits, acquired: AtomicU64::new(0) }
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Opens the connection that the first statement will want.
    pub(crate) async fn warm(&self) -> Result<(), StoreError> {
        let mut retries = RetryPolicy::with_deadline(self.settings.connect_deadline);
        loop {
            match self.open().await {
                Ok(connection) => {
                    self.idle().push(connection);
                    return Ok(());
                }
                Err(Opening::TooOld(found)) => return Err(StoreError::OldPostgres { found }),
                // Later it counts as an outage: a certificate is renewed, and the work waits for that.
                Err(Opening::Failed(source)) if is_of_tls(&source) => {
                    return Err(StoreError::Denied { source });
                }
                Err(Opening::Failed(sqlx::Error::Io(error))) if self.lacks_certificate(&error) => {
                    let what = "a file that the address names (sslrootcert, sslcert or sslkey) can't be read";
                    let source = sqlx::Error::Configuration(format!("{what}: {error}").into());
                    return Err(StoreError::Denied { source });
                }
                Err(Opening::Failed(error)) => retries.wait_or_fail(error).await?,
            }
        }
    }

    /// Says that a file of certificates is missing: there is no other file on the way to a port.
    fn lacks_certificate(&self, error: &std::io::Error) -> bool {
        let is_port = self.options.get_socket().is_none() && !self.options.get_host().starts_with('/');
        is_port && error.kind() == std::io::ErrorKind::NotFound
    }

    /// Returns an idle connection, or a new one as long as there may be more; waits where there may not.
    pub(crate) async fn acquire(&self) -> Result<PooledConnection<'_>, sqlx::Error> {
        let wait = self.permits.clone().acquire_owned();
        let permit = match timeout(self.settings.deadline, wait).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(sqlx::Error::PoolClosed),
            Err(_) => return Err(sqlx::Error::PoolTimedOut),
        };
        self.acquired.fetch_add(1, Ordering::Relaxed);
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open().await.map_err(|failure| match failure {
                Opening::Failed(error) => error,
                Opening::TooOld(found) => {
                    sqlx::Error::Configuration(format!("Postgres {found} is too old").into())
                }
            })?,
        };
        Ok(PooledConnection { connection: Some(connection), home: self, _permit: permit })
    }

    pub(crate) fn acquisitions(&self) -> u64 {
        self.acquired.load(Ordering::Relaxed)
    }

    async fn open(&self) -> Result<PgConnection, Opening> {
        use sqlx::Row;
        let connecting = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            let row = sqlx::query(PREPARE_SESSION)
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
        Ok(connection)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all idle connections and lends no more.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            if let Err(error) = connection.close().await {
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
        if is_sound && let Some(connection) = self.connection.take() {
            self.home.idle().push(connection);
        }
        result
    }
}

impl Deref for PooledConnection<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("the connection is there until it is recycled")
    }
}

impl DerefMut for PooledConnection<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("the connection is there until it is recycled")
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
        RetryPolicy::with_deadline(settings.deadline)
    }

    fn with_deadline(deadline: Duration) -> RetryPolicy {
        RetryPolicy { until: Instant::now() + deadline, pause: RetryPolicy::FIRST }
    }

    /// Waits before the next try, or gives the error up where another try is useless or the deadline has passed.
    pub(crate) async fn wait_or_fail(&mut self, error: sqlx::Error) -> Result<(), StoreError> {
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
            let outcome = match $store.connections().acquire().await {
                Ok(mut $connection) => {
                    let result = $statement.await;
                    $connection.recycle(result)
                }
                Err(error) => Err(error),
            };
            match outcome {
                Ok(value) => break Ok::<_, $crate::error::StoreError>(value),
                Err(error) => {
                    if let Err(error) = retries.wait_or_fail(error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(crate) use repeated;
