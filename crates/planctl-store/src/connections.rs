//! A few connections that stay open: acquired for one statement, dropped when anything is doubtful.
//!
//! sqlx's own pool pings each connection when it comes back, which costs the hot path a round trip per statement. Here a
//! connection comes back only after its statement has ended in an answer; a broken or half-read one is closed.
//!
//! Another connection costs the server a process, which reads its catalog and plans each statement anew, and a statement is over
//! in a fraction of that time. So a caller who finds all of them acquired waits for one to come back, and a further one is opened
//! once callers have waited for as long as that costs: in a daemon at once, in a command that reads never.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{
    Failure, Resource, StoreError, classify, ends_the_session, is_of_tls, lacked_resource,
    needs_another_session, words_of,
};
use crate::mutex::lock;
use crate::settings::Settings;

/// Makes a session what the store needs: no JIT, since it compiles every plan that looks expensive, as plans do where scans are
/// switched off; and no end for an idle session, since a pool keeps them.
pub(crate) const PREPARE_SESSION: &str = "select set_config('jit', 'off', false), \
     set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false), \
     set_config('idle_in_transaction_session_timeout', $3, false), \
     case when current_setting('server_version_num')::int >= 140000 then set_config('idle_session_timeout', '0', false) end, \
     current_setting('server_version_num')::int as version, current_setting('server_version') as version_text";

const POSTGRES_VERSION_MIN: i32 = 140_000;

/// The cost of a connection, as a multiple of the time in which it is opened.
const COST_OF_OPENING: u32 = 4;

/// The longest that callers wait in place of a connection that costs much: somebody may have acquired one for long.
const WAITS_AT_MOST: Duration = Duration::from_millis(100);

pub(crate) struct Connections {
    options: PgConnectOptions,
    settings: Settings,
    idle: Mutex<Vec<PgConnection>>,
    /// Told of each connection that comes back.
    returned: Notify,
    waiting: Mutex<WaitTally>,
    permits: Arc<Semaphore>,
    /// How often one was acquired.
    acquired: AtomicU64,
    shortage: Mutex<Option<Shortage>>,
    /// Why no connection could be opened, until one is.
    unopened: Mutex<Option<String>>,
}

/// A resource that the server lacked, as a statement met it.
#[derive(Clone)]
pub(crate) struct Shortage {
    /// The resource.
    pub(crate) of: Resource,
    /// When the last statement met it.
    pub(crate) met_at: Instant,
    /// The server's words.
    pub(crate) words: String,
}

/// The time that callers have waited since one of them began to open a connection, and the time after which another one does.
struct WaitTally {
    since: Instant,
    waited: Duration,
    waits_at_most: Duration,
}

impl WaitTally {
    fn begin(waits_at_most: Duration) -> WaitTally {
        WaitTally { since: Instant::now(), waited: Duration::ZERO, waits_at_most }
    }

    /// Returns how long a caller waits; `None` where it is the one who opens a connection, for which the others wait then.
    fn rest(&mut self) -> Option<Duration> {
        let rest = self.waits_at_most.saturating_sub(self.waited);
        if rest.is_zero() {
            *self = WaitTally::begin(self.waits_at_most);
            return None;
        }
        Some(rest)
    }

    fn add(&mut self, began: Instant) {
        self.waited += self.since.max(began).elapsed();
    }
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
        Connections {
            options,
            settings,
            idle: Mutex::default(),
            returned: Notify::new(),
            waiting: Mutex::new(WaitTally::begin(Duration::ZERO)),
            permits,
            acquired: AtomicU64::new(0),
            shortage: Mutex::default(),
            unopened: Mutex::default(),
        }
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
                    self.put_back(connection);
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

    /// Returns an idle connection, or a new one where waiting for one has cost as much; waits where there may be no more.
    pub(crate) async fn acquire(&self) -> Result<PooledConnection<'_>, sqlx::Error> {
        let wait = self.permits.clone().acquire_owned();
        let permit = match timeout(self.settings.deadline, wait).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(sqlx::Error::PoolClosed),
            Err(_) => return Err(sqlx::Error::PoolTimedOut),
        };
        self.acquired.fetch_add(1, Ordering::Relaxed);
        let connection = match self.wait_for_idle().await {
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

    /// Returns the shortage that was met last, until it is forgotten.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        lock(&self.shortage).clone()
    }

    pub(crate) fn forget_shortage(&self) {
        *lock(&self.shortage) = None;
    }

    /// Returns why the last try to open a connection failed; `None` where it did not.
    pub(crate) fn unopened(&self) -> Option<String> {
        lock(&self.unopened).clone()
    }

    /// Returns an idle connection; `None` where none comes back before another one is worth its cost.
    async fn wait_for_idle(&self) -> Option<PgConnection> {
        loop {
            let idle = lock(&self.idle).pop();
            if idle.is_some() || !self.is_shared() {
                return idle;
            }
            let rest = lock(&self.waiting).rest()?;
            let began = Instant::now();
            timeout(rest, self.returned.notified()).await.ok();
            lock(&self.waiting).add(began);
        }
    }

    /// Says whether others than the caller have acquired a connection.
    fn is_shared(&self) -> bool {
        self.permits.available_permits() + 1 < self.settings.connections
    }

    async fn open(&self) -> Result<PgConnection, Opening> {
        let opened = self.open_unnoted().await;
        *lock(&self.unopened) = match &opened {
            Err(Opening::Failed(error)) => Some(words_of(error)),
            Err(Opening::TooOld(_)) | Ok(_) => None,
        };
        opened
    }

    async fn open_unnoted(&self) -> Result<PgConnection, Opening> {
        use sqlx::Row;
        let began = Instant::now();
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
        let waits_at_most = (began.elapsed() * COST_OF_OPENING).min(WAITS_AT_MOST);
        *lock(&self.waiting) = WaitTally::begin(waits_at_most);
        Ok(connection)
    }

    fn put_back(&self, connection: PgConnection) {
        lock(&self.idle).push(connection);
        self.returned.notify_one();
    }

    /// Closes all idle connections and lends no more.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *lock(&self.idle));
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
        if let Err(error) = &result
            && let Some(of) = lacked_resource(error)
        {
            let shortage = Shortage { of, met_at: Instant::now(), words: words_of(error) };
            *lock(&self.home.shortage) = Some(shortage);
        }
        if is_sound && let Some(connection) = self.connection.take() {
            self.home.put_back(connection);
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
