//! Live updates of a page: the parts of it that changed, as the server draws them (INTERFACE 4.4).

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use planctl_api::wire::moment;
use planctl_api::{Code, Problem};
use planctl_store::{Listener, News};
use planctl_web::live_parts;
use tokio::sync::watch;

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

/// Sends the parts of a page that change, as long as its reader looks.
pub(super) async fn stream(visit: &Visit, address: &Address) -> Result<Response, Problem> {
    visit.session()?;
    let page =
        address.query("page").ok_or_else(|| Problem::new(Code::BadRequest, "`page` names the page"))?;
    let api = &visit.door.api;
    let viewer = Viewer {
        page: Address::parse(page),
        news: api.server_node().store().listen(News::Any),
        stop: api.options().stop.clone(),
        visit: visit.clone(),
        sent: HashMap::new(),
        ready: Vec::new(),
        is_over: false,
        took: None,
    };
    Ok(Sse::new(events(viewer)).keep_alive(KeepAlive::new().interval(PING)).into_response())
}

/// One tab that shows a page.
struct Viewer {
    visit: Visit,
    page: Address,
    news: Listener,
    stop: watch::Receiver<bool>,
    /// The parts as they were sent last.
    sent: HashMap<String, String>,
    /// The events to send, the next one last.
    ready: Vec<Event>,
    is_over: bool,
    /// How long the page took to draw: one that takes long is drawn more rarely. None before the first time.
    took: Option<Duration>,
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
            if let Some(took) = self.took {
                tokio::time::sleep(took).await;
                self.news().await?;
            }
            let began = clock::instant();
            match screens::draw(&self.visit, &self.page).await {
                Ok(html) => self.changes(&html),
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
            self.took = Some(began.elapsed());
        }
    }

    async fn news(&mut self) -> Option<()> {
        tokio::select! {
            () = self.news.notified() => {}
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = stopped(&mut self.stop) => return None,
        }
        // A step ends with several transitions.
        tokio::time::sleep(GATHERED).await;
        Some(())
    }

    /// Takes a page as it is by now, and prepares what has changed of it.
    fn changes(&mut self, html: &str) {
        let mut events = Vec::new();
        for (name, part) in live_parts(html) {
            if self.sent.get(name).is_some_and(|sent| sent == part) {
                continue;
            }
            self.sent.insert(name.to_owned(), part.to_owned());
            // A carriage return would end a line of the stream; HTML reads a line feed alike.
            events.push(Event::default().event("part").data(part.replace("\r\n", "\n").replace('\r', "\n")));
        }
        let title = html.split_once("<title>").and_then(|(_, after)| after.split_once("</title>"));
        let title = title.map(|(title, _)| title).unwrap_or_default();
        events.push(Event::default().event("title").data(title));
        events.push(Event::default().event("at").data(moment(clock::now())));
        events.reverse();
        self.ready = events;
    }
}
