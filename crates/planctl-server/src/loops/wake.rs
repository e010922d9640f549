//! Turns the store's bell into wake-ups of the loops, and wakes them without it too.
//!
//! A ring only says "look again", and may be lost. So every loop also looks once a second where there was something to
//! do, and every five seconds where there was not; a little jitter keeps several daemons from looking at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use planctl_store::{Listener, News, Store};

use super::{Shared, stopped};

/// How often a loop looks without a ring while there is something to do.
const BUSY: Duration = Duration::from_secs(1);
/// And how often while there is nothing.
const IDLE: Duration = Duration::from_secs(5);

/// What a turn found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// Something that may be one of several: look again at once.
    More,
    /// Something is under way.
    Something,
    /// Nothing.
    Nothing,
}

/// What wakes one loop.
pub(crate) struct Wake {
    bell: Listener,
}

impl Wake {
    /// Registers before the first look, so that nothing is missed between a look and the wait after it.
    pub(crate) fn new(store: &Store, news: News) -> Wake {
        Wake { bell: store.listen(news) }
    }

    /// Waits until it is time to look again, or the daemon stops.
    pub(crate) async fn rest(&self, shared: &Shared, found: Found, pace: Duration) {
        if !pace.is_zero() {
            shared.pause(pace).await;
        }
        let span = match found {
            Found::More => return,
            Found::Something => BUSY,
            Found::Nothing => IDLE,
        };
        let mut stop = shared.stop.clone();
        tokio::select! {
            () = self.bell.rung() => {}
            () = tokio::time::sleep(jittered(span)) => {}
            () = stopped(&mut stop) => {}
        }
    }
}

/// Takes up to a tenth off.
pub(crate) fn jittered(span: Duration) -> Duration {
    let drawn = RandomState::new().build_hasher().finish() % 1000;
    span - span.mul_f64(drawn as f64 / 10_000.0)
}
