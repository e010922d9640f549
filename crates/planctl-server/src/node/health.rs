//! The health of a daemon, written by its loops and read by the HTTP layer, `daemon status` and the watchdog.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use planctl_engine::Timestamp;
use planctl_store::{Resource, StoreError, Unread};
use tokio::time::Instant;

use crate::clock;
use crate::mutex::lock;
use crate::node::services::ServiceError;
use planctl_api::wire::{
    DaemonHealthView, DaemonState, LoopView, ScarceResource, ShortageView, TroubleView, moment,
};

/// A loop that has not begun a turn for this long, while the database answers, stands still.
const STANDS_STILL_AFTER: Duration = Duration::from_secs(60);

/// The work on git worktrees when a run begins in one.
pub(crate) const ADMISSIONS: &str = "admissions";
/// The work on worktrees and checkpoints when a run is over.
pub(crate) const CLEARINGS: &str = "clearings";

/// How a daemon is. Cheap to clone; all clones look at the same.
#[derive(Clone, Debug)]
pub struct Health {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    started_at: Timestamp,
    stage: Stage,
    database: Database,
    answering_since: Instant,
    turns: BTreeMap<&'static str, Instant>,
    at_work: BTreeMap<&'static str, usize>,
    runs_recovered: u64,
    leases_expired: u64,
    last_error: Option<(Timestamp, String)>,
}

/// Where a daemon is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Starting,
    Running,
    Stopping,
}

/// Whether the database answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Database {
    /// It does.
    Up,
    /// It does not, since this machine's time.
    Away {
        /// Since when.
        since: Timestamp,
    },
    /// It answers, and lacks a resource without which it records nothing.
    Short {
        /// The resource.
        of: ScarceResource,
        /// Since when.
        since: Timestamp,
    },
}

impl Default for Health {
    fn default() -> Health {
        let inner = Inner {
            started_at: clock::now(),
            stage: Stage::Starting,
            database: Database::Up,
            answering_since: clock::instant(),
            turns: BTreeMap::new(),
            at_work: BTreeMap::new(),
            runs_recovered: 0,
            leases_expired: 0,
            last_error: None,
        };
        Health { inner: Arc::new(Mutex::new(inner)) }
    }
}

impl Health {
    /// Returns when the daemon began, by this machine's clock.
    pub fn started_at(&self) -> Timestamp {
        lock(&self.inner).started_at
    }

    /// Says whether the database answers.
    pub fn database(&self) -> Database {
        lock(&self.inner).database
    }

    /// Says that the loops turn. While the database is away they may wait for it, and a restart would help nobody.
    pub fn is_alive(&self) -> bool {
        self.is_alive_at(clock::instant())
    }

    fn is_alive_at(&self, now: Instant) -> bool {
        let inner = lock(&self.inner);
        let stood = |turned: &Instant| now.duration_since(inner.answering_since.max(*turned));
        inner.stage != Stage::Running
            || inner.database != Database::Up
            || inner.turns.values().all(|turned| stood(turned) < STANDS_STILL_AFTER)
    }

    /// Returns all of it, for people and programs.
    pub fn view(&self) -> DaemonHealthView {
        let is_alive = self.is_alive();
        let inner = lock(&self.inner);
        let state = match (inner.stage, inner.database) {
            (Stage::Starting, _) => DaemonState::Starting,
            (Stage::Stopping, _) => DaemonState::Stopping,
            (Stage::Running, Database::Up) => DaemonState::Running,
            (Stage::Running, Database::Away { .. } | Database::Short { .. }) => DaemonState::Degraded,
        };
        let at_work = |what| u32::try_from(inner.at_work.get(what).copied().unwrap_or(0)).unwrap_or(u32::MAX);
        DaemonHealthView {
            state,
            is_alive,
            started_at: moment(inner.started_at),
            database_away_since: match inner.database {
                Database::Up | Database::Short { .. } => None,
                Database::Away { since } => Some(moment(since)),
            },
            database_shortage: match inner.database {
                Database::Up | Database::Away { .. } => None,
                Database::Short { of, since } => Some(ShortageView { of, since: moment(since) }),
            },
            agents_at_work: at_work("agents"),
            gates_at_work: at_work("gates"),
            worktrees_at_work: at_work(ADMISSIONS) + at_work(CLEARINGS),
            runs_recovered: inner.runs_recovered,
            leases_expired: inner.leases_expired,
            last_error: inner
                .last_error
                .as_ref()
                .map(|(at, what)| TroubleView { at: moment(*at), what: what.clone() }),
            loops: inner
                .turns
                .iter()
                .map(|(name, turned)| LoopView {
                    name: (*name).to_owned(),
                    seconds_since_turn: turned.elapsed().as_secs_f64(),
                })
                .collect(),
        }
    }

    pub(crate) fn set_running(&self) {
        lock(&self.inner).stage = Stage::Running;
    }

    pub(crate) fn set_stopping(&self) {
        lock(&self.inner).stage = Stage::Stopping;
    }

    /// Notes that a loop begins a turn.
    pub(crate) fn record_turn(&self, name: &'static str) {
        lock(&self.inner).turns.insert(name, clock::instant());
    }

    /// Notes an error of a loop. The loop that watches the database reports an outage or a shortage once, so they are left out
    /// here.
    pub(crate) fn record_error(&self, what: &'static str, error: &ServiceError) {
        if matches!(error, ServiceError::Store(error) if error.is_retryable()) {
            tracing::debug!(%error, "{what}: the database is away");
            return;
        }
        let words = format!("{what}: could not {error}");
        let is_known = lock(&self.inner).last_error.as_ref().is_some_and(|(_, last)| *last == words);
        self.set_last_error(words);
        // An error that comes back at each turn is logged once.
        if is_known {
            tracing::debug!(%error, "{what}: trying again");
        } else {
            tracing::error!(%error, "{what}: trying again");
        }
    }

    /// Returns the rows that read; an unreadable row is noted with its run and keeps back no other.
    pub(crate) fn readable<T>(&self, what: &'static str, rows: Vec<Result<T, Unread>>) -> Vec<T> {
        let read = |row: Result<T, Unread>| match row {
            Ok(row) => Some(row),
            Err(unread) => {
                self.record_error(what, &unread.error.into());
                None
            }
        };
        rows.into_iter().filter_map(read).collect()
    }

    /// Notes words of trouble without logging them.
    pub(crate) fn set_last_error(&self, words: String) {
        lock(&self.inner).last_error = Some((clock::now(), words));
    }

    pub(crate) fn set_database_up(&self) {
        let mut inner = lock(&self.inner);
        let (Database::Away { since } | Database::Short { since, .. }) = inner.database else { return };
        let seconds = (clock::now().as_micros() - since.as_micros()) / 1_000_000;
        match inner.database {
            Database::Short { .. } => {
                tracing::info!("the database records again after {seconds} s; going on")
            }
            Database::Up | Database::Away { .. } => {
                tracing::info!("the database is back after {seconds} s; going on")
            }
        }
        inner.database = Database::Up;
        inner.answering_since = clock::instant();
    }

    pub(crate) fn set_database_away(&self, why: &str) {
        let mut inner = lock(&self.inner);
        if !matches!(inner.database, Database::Away { .. }) {
            let now = clock::now();
            inner.database = Database::Away { since: now };
            inner.last_error = Some((now, format!("the database is away: {why}")));
            tracing::warn!("the database is away, what is under way waits for it: {why}");
        }
    }

    /// Notes why the private Postgres does not come back, which it logs itself.
    pub(crate) fn set_outage_cause(&self, why: &str) {
        let mut inner = lock(&self.inner);
        let is_news = inner.last_error.as_ref().is_none_or(|(_, known)| known != why);
        if matches!(inner.database, Database::Away { .. }) && is_news {
            inner.last_error = Some((clock::now(), why.to_owned()));
        }
    }

    pub(crate) fn set_database_short(&self, of: Resource, why: &str) {
        let of = scarce(of);
        let mut inner = lock(&self.inner);
        if !matches!(inner.database, Database::Short { of: known, .. } if known == of) {
            let now = clock::now();
            inner.database = Database::Short { of, since: now };
            inner.last_error = Some((now, format!("{}: {why}", of.sentence())));
            tracing::warn!("{}, what is under way waits: {why}", of.sentence());
        }
    }

    pub(crate) fn record_sweep(&self, expired: u64, recovered: u64) {
        let mut inner = lock(&self.inner);
        inner.leases_expired += expired;
        inner.runs_recovered += recovered;
    }

    /// Counts one more of these at work for as long as the answer lives.
    pub(crate) fn count_at_work(&self, what: &'static str) -> AtWork {
        *lock(&self.inner).at_work.entry(what).or_default() += 1;
        AtWork { health: self.clone(), what }
    }
}

/// One agent, gate or other work under way.
pub(crate) struct AtWork {
    health: Health,
    what: &'static str,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.health.inner).at_work.get_mut(self.what) {
            *count = count.saturating_sub(1);
        }
    }
}

/// Returns the resource as the API names it.
pub(crate) fn scarce(of: Resource) -> ScarceResource {
    match of {
        Resource::Disk => ScarceResource::Disk,
        Resource::Memory => ScarceResource::Memory,
        Resource::Limit => ScarceResource::Limit,
    }
}

/// Says that no later try can succeed: another planctl has changed the schema, or the database is another one.
pub fn is_final(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NewerSchema { .. }
            | StoreError::OlderSchema { .. }
            | StoreError::HalfMigrated { .. }
            | StoreError::Foreign { .. }
            | StoreError::OldPostgres { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stands_still_is_told_unless_the_database_is_away_or_short_of_something() {
        let health = Health::default();
        health.set_running();
        health.record_turn("gates");
        let later = clock::instant() + STANDS_STILL_AFTER;
        assert!(health.is_alive());
        assert!(!health.is_alive_at(later));
        health.set_database_away("connection refused");
        assert!(health.is_alive_at(later));
        assert_eq!(health.view().state, DaemonState::Degraded);
        health.set_database_short(Resource::Disk, "could not extend file");
        assert!(health.is_alive_at(later));
        assert_eq!(health.view().state, DaemonState::Degraded);
        assert!(health.view().database_shortage.is_some_and(|shortage| shortage.of == ScarceResource::Disk));
        health.set_database_up();
        assert!(health.is_alive());
        assert_eq!(health.view().state, DaemonState::Running);
        assert!(!health.is_alive_at(clock::instant() + STANDS_STILL_AFTER));
    }

    #[test]
    fn what_is_at_work_is_counted_as_long_as_it_is() {
        let health = Health::default();
        let (one, two) = (health.count_at_work("gates"), health.count_at_work("gates"));
        assert_eq!((health.view().gates_at_work, health.view().agents_at_work), (2, 0));
        drop((one, two));
        assert_eq!(health.view().gates_at_work, 0);
    }
}
