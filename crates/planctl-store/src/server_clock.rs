//! The database's time between two answers of it.

use std::sync::Mutex;
use std::time::Duration;

use planctl_engine::Timestamp;
use tokio::time::Instant;

use crate::mutex::lock;

/// How long what the database said of its time is carried forward.
const HOLDS: Duration = Duration::from_secs(1);

/// The database's time as it said it last, carried forward by this machine's steady clock.
#[derive(Default)]
pub(crate) struct ServerClock {
    last: Mutex<Option<(Timestamp, Instant)>>,
}

impl ServerClock {
    /// Notes what the database just said.
    pub(crate) fn observe(&self, now: Timestamp) {
        *lock(&self.last) = Some((now, Instant::now()));
    }

    /// Returns an estimate of the database's time, if an observation is recent enough.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        let (estimate, when) = (*lock(&self.last))?;
        let since = when.elapsed();
        (since < HOLDS).then(|| estimate.after(since))
    }
}

/// The database's time when it was looked at last, and this machine's steady clock, which stands still while the machine sleeps.
#[derive(Default)]
pub(crate) struct LastLook {
    last: Option<(Timestamp, Instant)>,
}

impl LastLook {
    /// Returns the steady clock's time, to be noted before the database is asked.
    pub(crate) fn begin() -> Instant {
        Instant::now()
    }

    /// Returns by how much the database's time, as it just answered, ran ahead of the steady clock since the last look, at least.
    pub(crate) fn gap(&self, now: Timestamp) -> Duration {
        self.last.map_or(Duration::ZERO, |(before, asked)| now.since(before).saturating_sub(asked.elapsed()))
    }

    /// Ends a look that began at this time of the steady clock.
    pub(crate) fn end(&mut self, asked: Instant, now: Timestamp) {
        self.last = Some((now, asked));
    }
}
