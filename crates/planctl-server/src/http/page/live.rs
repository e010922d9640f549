//! Live updates of a page: the parts of it that changed, as the server draws them (INTERFACE 4.4). It draws a page once for
//! all tabs that show it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use planctl_api::{Code, Problem};
use planctl_store::Listener;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Address;
use super::drawn::{self, Drawn, event};
use super::visit::Visit;
use crate::clock;
use crate::node::runtime::stopped;

/// How long to wait without a notification before looking again. An update says at least what time it is, so nobody takes the
/// connection for dead.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long news is gathered before it is drawn: a step ends with several transitions.
const GATHERED: Duration = Duration::from_millis(20);

/// Sends the parts of a page that change, as long as its reader looks.
pub(super) async fn stream(visit: &Visit, address: &Address) -> Result<Response, Problem> {
    visit.session()?;
    let page =
        address.query("page").ok_or_else(|| Problem::new(Code::BadRequest, "`page` names the page"))?;
    let page = Address::parse(page);
    let viewer = Viewer {
        news: drawn::news_of(visit, &page).await?,
        page,
        stop: visit.state.api.options().stop.clone(),
        visit: visit.clone(),
        shown: None,
        is_over: false,
    };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(updates(viewer))).into_response())
}

/// One tab that shows a page.
struct Viewer {
    visit: Visit,
    page: Address,
    news: Listener,
    stop: watch::Receiver<bool>,
    /// The drawing that it shows.
    shown: Option<Arc<Drawn>>,
    is_over: bool,
}

fn updates(viewer: Viewer) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(viewer, async |mut viewer| {
        let update = viewer.next().await?;
        Some((Ok(update), viewer))
    })
}

impl Viewer {
    /// Waits for the next update; none where the daemon stops or the session is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        match self.drawn().await? {
            Ok(drawn) => {
                let update = drawn.update_of(self.shown.as_deref());
                self.shown = Some(drawn);
                Some(update)
            }
            Err(problem) if problem.code() == Some(Code::Unauthenticated) => {
                self.is_over = true;
                Some(event("signed-out", "the session is over"))
            }
            Err(problem) => {
                // The browser says that it lost the updates, and connects again.
                tracing::debug!(problem = %problem.detail, "a page can't be drawn");
                None
            }
        }
    }

    /// Draws the page once there is news, or takes the drawing of another reader that is as new.
    async fn drawn(&mut self) -> Option<Result<Arc<Drawn>, Problem>> {
        if self.shown.is_none() {
            return Some(drawn::for_reader(&self.visit, &self.page).await);
        }
        let since = self.wait_for_news().await?;
        if let Err(problem) = self.visit.session_still_holds().await {
            return Some(Err(problem));
        }
        Some(drawn::after(&self.visit, &self.page, since).await)
    }

    /// Returns from when on a drawing shows what happened.
    async fn wait_for_news(&mut self) -> Option<Instant> {
        let (shown, news) = (self.shown.as_deref(), &self.news);
        let told = async {
            // The tab may have been opened with a drawing that was behind.
            if !shown.is_some_and(Drawn::has_news) {
                news.notified().await;
            }
        };
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => None,
            () = told => {
                let since = clock::instant();
                tokio::time::sleep(GATHERED).await;
                Some(since)
            }
            // Without news one drawing of this time serves all tabs.
            () = tokio::time::sleep(LOOK_AGAIN) => Some(clock::instant() - LOOK_AGAIN),
        }
    }
}
