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
