//! Wakes the loops on notifications of the store, and periodically without one.
//!
//! A notification only says "look again", and may be lost. So every loop also looks once a second where there was something
//! to do, and every five seconds where there was not; a little jitter keeps several daemons from looking at once. An item
//! that rests, as after a back-off, ends the wait when it is due. While nothing moves in any run, one loop looks whether something does, and
//! the others rest (`leases`).

use std::fmt::Display;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use planctl_store::{Listener, News, Store};

use super::Shared;
use crate::node::runtime::stopped;
use crate::node::services::ServiceError;

/// How often a loop looks without a notification while there is something to do.
const BUSY: Duration = Duration::from_secs(1);
/// And how often while there is nothing.
pub(super) const IDLE: Duration = Duration::from_secs(5);
/// And how often while nothing moves in any run. A loop that has not looked for twice as long counts as one that stands still.
const RESTING: Duration = Duration::from_secs(30);

/// How long a loop must be idle before it asks for the next due time: a busy loop need not ask.
const QUIET: Duration = Duration::from_millis(50);

/// The result of one turn of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnResult {
    /// Something that may be one of several: look again at once.
    More,
    /// Something is under way.
    Something,
    /// Nothing.
    Nothing,
}

/// The sources that wake one loop.
pub(crate) struct Wake {
    notifications: Listener,
}

impl Wake {
    /// Registers before the first look, so that nothing is missed between a look and the wait after it.
    pub(crate) fn new(store: &Store, news: News) -> Wake {
        Wake { notifications: store.listen(news) }
    }

    /// Waits until it is time to look again, or the daemon stops; `due` says for how long nothing will be due.
    pub(crate) async fn wait(
        &self,
        shared: &Shared,
        found: TurnResult,
        pace: Duration,
        due: impl Future<Output = Result<Option<Duration>, ServiceError>>,
    ) {
        if !pace.is_zero() {
            shared.pause(pace).await;
        }
        let span = match found {
            TurnResult::More => return,
            TurnResult::Something => BUSY,
            TurnResult::Nothing if shared.is_resting() => RESTING,
            TurnResult::Nothing => IDLE,
        };
        let mut stop = shared.stop.clone();
        tokio::select! {
            () = self.notifications.notified() => {}
            () = tokio::time::sleep(jittered(span)) => {}
            () = wait_until_due(due) => {}
            () = stopped(&mut stop) => {}
        }
    }
}

/// Resolves when something that rests is due.
async fn wait_until_due<E: Display>(due: impl Future<Output = Result<Option<Duration>, E>>) {
    tokio::time::sleep(QUIET).await;
    match due.await {
        Ok(Some(wait)) => return tokio::time::sleep(wait).await,
        Ok(None) => {}
        // The loop looks again in any case, and meets the same error.
        Err(error) => tracing::debug!(%error, "what will be due is not known"),
    }
    std::future::pending().await
}

/// Takes up to a tenth off.
pub(crate) fn jittered(span: Duration) -> Duration {
    let drawn = RandomState::new().build_hasher().finish() % 1000;
    span - span.mul_f64(drawn as f64 / 10_000.0)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_is_due_ends_the_wait_and_what_is_not_known_does_not() {
        wait_until_due(async { Ok::<_, String>(Some(Duration::ZERO)) }).await;
        for never in [Ok(None), Err("the database is away".to_owned()), Ok(Some(Duration::MAX))] {
            let mut asked = false;
            let due = async {
                asked = true;
                never
            };
            assert!(wait_until_due(due).now_or_never().is_none());
            assert!(!asked, "nothing is asked at once");
        }
    }
}
