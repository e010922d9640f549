//! A run's history as server-sent events: replayed from where the client was, then live (INTERFACE 4.4).

use std::convert::Infallible;
use std::time::Duration;

use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use planctl_engine::{RunId, RunStatus};
use planctl_store::Listener;
use tokio::sync::watch;

use super::guard::Standing;
use super::parameters::{LAST_EVENT_ID, RUN, SINCE};
use super::problem::of_store;
use super::{Answer, Call, no_content};
use crate::node::services::Services;
use planctl_api::wire::EventLine;
use planctl_api::{Code, Problem};

/// How often a line without news is sent, so that nobody takes the connection for dead.
const PING: Duration = Duration::from_secs(15);
/// How long to wait without a notification before looking again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most lines that are read at once.
const LINES_MAX: usize = 200;

pub(super) async fn stream(call: Call) -> Answer {
    let services = call.services().await?;
    let run = match call.query(&RUN) {
        Some(run) => services.find(run).await?,
        None => {
            return Err(Problem::new(Code::BadRequest, "`run` names whose events to send").help("?run=@last"));
        }
    };
    let since = match call.number_in_head(&LAST_EVENT_ID)? {
        Some(last) => last,
        None => call.number(&SINCE)?.unwrap_or(0),
    };
    let stop = call.api.options().stop.clone();
    let standing = Standing::of(&call);
    let mut reader = Reader {
        notifications: services.listen(run),
        services,
        run,
        since,
        ready: Vec::new(),
        stop,
        standing,
    };
    // A browser's EventSource reconnects until an answer says that no event will follow.
    if reader.look().await? && reader.ready.is_empty() {
        return Ok(no_content());
    }
    Ok(Sse::new(lines(reader)).keep_alive(KeepAlive::new().interval(PING)).into_response())
}

struct Reader {
    services: Services,
    run: RunId,
    since: u64,
    notifications: Listener,
    ready: Vec<EventLine>,
    stop: watch::Receiver<bool>,
    standing: Standing,
}

fn lines(reader: Reader) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(reader, async |mut reader| {
        let line = reader.next().await?;
        let event = Event::default().id(line.seq.to_string()).event(line.event.clone());
        // A line of history is JSON that this planctl wrote.
        let data = serde_json::to_string(&line).map(planctl_lang::json_escaped).unwrap_or_default();
        let event = event.data(data);
        Some((Ok(event), reader))
    })
}

impl Reader {
    /// Waits for the next line; `None` where the daemon stops, the token ceased to hold, or the run is over and every line was sent.
    async fn next(&mut self) -> Option<EventLine> {
        loop {
            if let Some(line) = self.ready.pop() {
                self.since = line.seq;
                return Some(line);
            }
            match self.look().await {
                Ok(is_over) if is_over && self.ready.is_empty() => return None,
                Ok(_) if !self.ready.is_empty() => continue,
                Ok(_) => {}
                Err(problem) => {
                    // The client connects again and says where it was.
                    tracing::debug!(problem = %problem.detail, "a stream of events ends");
                    return None;
                }
            }
            tokio::select! {
                () = self.notifications.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                stopped = self.stop.wait_for(|stop| *stop) => {
                    stopped.ok()?;
                    return None;
                }
            }
        }
    }

    /// Reads the lines that come next, the last of them first; says whether the run is over.
    async fn look(&mut self) -> Result<bool, Problem> {
        self.standing.refuse_if_revoked().await?;
        // The status is read first: the event that ends a run is in its history by then.
        let is_over = matches!(
            self.services.store().run(self.run).await.map_err(of_store)?.head.status,
            RunStatus::Ended { .. }
        );
        self.ready = self.services.events(self.run, self.since, LINES_MAX).await?;
        self.ready.reverse();
        Ok(is_over)
    }
}
