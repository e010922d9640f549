//! Live updates of a page: the parts of it that changed, as the server draws them (INTERFACE 4.4). It draws a page once for
//! all tabs that show it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use planctl_api::{Code, Problem};
use planctl_engine::RunId;
use planctl_store::{Listener, News};
use tokio::sync::watch;
use tokio::time::Instant;

use super::drawn::{self, Drawn};
use super::visit::Visit;
use super::{Address, screens};
use crate::clock;
use crate::node::runtime::stopped;

/// How often a line without news is sent, so that nobody takes the connection for dead.
const PING: Duration = Duration::from_secs(15);
/// How long to wait without a notification before looking again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long news is gathered before it is drawn.
const GATHERED: Duration = Duration::from_millis(20);
/// How long a tab rests after an update, at least.
const REST: Duration = Duration::from_millis(60);
/// How much longer it rests than the page took to draw: one that takes long is drawn more rarely.
const REST_BY_TOOK: u32 = 4;
/// How long a session counts as valid that was asked for.
const SESSION_HOLDS: Duration = Duration::from_secs(1);

/// Sends the parts of a page that change, as long as its reader looks.
pub(super) async fn stream(visit: &Visit, address: &Address) -> Result<Response, Problem> {
    visit.session()?;
    let page =
        address.query("page").ok_or_else(|| Problem::new(Code::BadRequest, "`page` names the page"))?;
    let (api, page) = (&visit.state.api, Address::parse(page));
    let viewer = Viewer {
        news: news_of(visit, &page).await?,
        page,
        stop: api.options().stop.clone(),
        since: visit.since(),
        asked: clock::instant(),
        visit: visit.clone(),
        sent: HashMap::new(),
        ready: Vec::new(),
        is_over: false,
        rest: None,
    };
    Ok(Sse::new(events(viewer)).keep_alive(KeepAlive::new().interval(PING)).into_response())
}

/// Listens to what changes a page: of one run, or of all.
async fn news_of(visit: &Visit, page: &Address) -> Result<Listener, Problem> {
    let store = visit.state.api.server_node().store();
    let run = match page.segments().as_slice() {
        ["runs", run, ..] => screens::id_of(visit, page, run).await?,
        _ => return Ok(store.listen(News::Any)),
    };
    let run = RunId::parse(&run).ok_or_else(|| Problem::new(Code::Defect, "a run without an id"))?;
    Ok(store.listen_to(run))
}

/// One tab that shows a page.
struct Viewer {
    visit: Visit,
    page: Address,
    news: Listener,
    stop: watch::Receiver<bool>,
    /// From when on a drawing counts: the newest news.
    since: Instant,
    /// When the session was found valid.
    asked: Instant,
    /// The parts as they were sent last.
    sent: HashMap<String, String>,
    /// The events to send, the next one last.
    ready: Vec<Event>,
    is_over: bool,
    /// How long to rest before the next update. None before the first one.
    rest: Option<Duration>,
}

fn events(viewer: Viewer) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(viewer, async |mut viewer| {
        let event = viewer.next().await?;
        Some((Ok(event), viewer))
    })
}

impl Viewer {
    /// Waits for the next event; none where the daemon stops or the session is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            if let Some(rest) = self.rest {
                tokio::time::sleep(rest).await;
                self.wait_for_news().await?;
            }
            match self.drawn().await {
                Ok(drawn) => {
                    self.queue_changes(&drawn);
                    self.rest = Some(REST.max(drawn.took * REST_BY_TOOK));
                }
                Err(problem) if problem.code() == Some(Code::Unauthenticated) => {
                    self.is_over = true;
                    self.ready.push(Event::default().event("signed-out").data("the session is over"));
                }
                Err(problem) => {
                    // The browser says that it lost the updates, and connects again.
                    tracing::debug!(problem = %problem.detail, "a page can't be drawn");
                    return None;
                }
            }
        }
    }

    async fn wait_for_news(&mut self) -> Option<()> {
        self.since = tokio::select! {
            () = self.news.notified() => clock::instant(),
            // Without news one drawing of this time serves all tabs.
            () = tokio::time::sleep(LOOK_AGAIN) => self.since.max(clock::instant() - LOOK_AGAIN),
            () = stopped(&mut self.stop) => return None,
        };
        // A step ends with several transitions.
        tokio::time::sleep(GATHERED).await;
        Some(())
    }

    /// Draws the page, or takes the drawing of another tab that is as new.
    async fn drawn(&mut self) -> Result<Arc<Drawn>, Problem> {
        if self.asked.elapsed() >= SESSION_HOLDS {
            self.visit.session_still_holds().await?;
            self.asked = clock::instant();
        }
        drawn::for_many(&self.visit.again(self.since), &self.page).await
    }

    /// Takes a page as it is by now, and prepares what has changed of it.
    fn queue_changes(&mut self, drawn: &Drawn) {
        let mut events = Vec::new();
        for (name, part) in &drawn.parts {
            if self.sent.get(name) == Some(part) {
                continue;
            }
            self.sent.insert(name.clone(), part.clone());
            events.push(Event::default().event("part").data(part));
        }
        events.push(Event::default().event("title").data(&drawn.title));
        events.push(Event::default().event("at").data(&drawn.at));
        events.reverse();
        self.ready = events;
    }
}
