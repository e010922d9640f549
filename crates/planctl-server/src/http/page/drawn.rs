//! Pages as they are drawn: once for all readers of a scope, at one pace for all of them, each of whom finds a page of their own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::FutureExt as _;
use planctl_api::wire::moment;
use planctl_api::{Code, Problem};
use planctl_engine::RunId;
use planctl_store::{Listener, News, secret};
use planctl_web::live_parts;
use tokio::time::Instant;

use super::visit::Visit;
use super::{Address, screens};
use crate::clock;
use crate::mutex::lock;

/// How long a drawing serves all who look at its page, at least.
const PACE: Duration = Duration::from_millis(75);
/// How many times as long as it took a drawing serves: a page that takes long is drawn more rarely.
const PACE_BY_TOOK: u32 = 5;
/// How long a drawing serves where nothing was told of what it shows. Times go by, and news of other processes may be lost.
const QUIET: Duration = Duration::from_secs(1);

/// A page as it is drawn for all its readers.
pub(super) struct Drawn {
    /// The page, with marks in place of its reader.
    html: String,
    /// The parts of it that change.
    parts: Vec<Part>,
    /// The events that say its title and its time.
    head: Bytes,
    /// When the drawing before it began, and the events that make that one this one.
    after: Option<(Instant, Bytes)>,
    began: Instant,
    took: Duration,
    /// Hears of what happens after it began, and whether something has.
    news: (Listener, Mutex<bool>),
}

/// A part of a page that changes, as an event that is ready to send.
#[derive(PartialEq, Eq)]
struct Part {
    name: String,
    event: Bytes,
}

/// Returns the page at an address, for the one who looks.
pub(super) async fn page(visit: &Visit, address: &Address) -> Result<String, Problem> {
    if !is_for_many(address) {
        return screens::draw(visit, address).await;
    }
    let drawn = for_reader(visit, address).await?;
    Ok(visit.state.marks.fill(&drawn.html, visit.session()?.reader(), &secret()))
}

/// Returns a drawing that shows a reader how the page is at this moment: it is within its pace, or nothing has happened since.
pub(super) async fn for_reader(visit: &Visit, address: &Address) -> Result<Arc<Drawn>, Problem> {
    let (decided, now) = (visit.decided_at(), clock::instant());
    drawing(visit, address, |began, drawn| began >= decided && drawn.serves_at(now)).await
}

/// Returns a drawing that shows what happened until a moment, as late as the page's pace asks for.
pub(super) async fn after(visit: &Visit, address: &Address, since: Instant) -> Result<Arc<Drawn>, Problem> {
    if let Some(last) = visit.state.drawings.last(&visit.shared_name(&address.whole())?) {
        tokio::time::sleep_until(last.began + last.pace()).await;
    }
    drawing(visit, address, |began, _| began >= since).await
}

async fn drawing(
    visit: &Visit,
    address: &Address,
    serves: impl Fn(Instant, &Arc<Drawn>) -> bool,
) -> Result<Arc<Drawn>, Problem> {
    let name = visit.shared_name(&address.whole())?;
    let anybody = visit.of_anybody();
    visit.state.drawings.that(&name, serves, |last| Drawn::of(anybody, address, last)).await
}

/// Says that all readers of a scope find the same there. A page that tells of a decision, or holds what somebody fills in, is
/// for one reader.
fn is_for_many(address: &Address) -> bool {
    let is_list = matches!(
        address.segments().as_slice(),
        [] | ["runs" | "plans" | "library" | "system"]
            | ["runs" | "plans", _]
            | ["runs", _, "graph" | "history" | "timeline"]
            | ["runs", _, "steps", _]
    );
    is_list && address.query("recorded").is_none()
}

/// Listens to what changes a page: of one run, or of all.
pub(super) async fn news_of(visit: &Visit, page: &Address) -> Result<Listener, Problem> {
    let store = visit.state.api.server_node().store();
    let run = match page.segments().as_slice() {
        ["runs", run, ..] => screens::id_of(visit, page, run).await?,
        _ => return Ok(store.listen(News::Any)),
    };
    let run = RunId::parse(&run).ok_or_else(|| Problem::new(Code::Defect, "a run without an id"))?;
    Ok(store.listen_to(run))
}

impl Drawn {
    async fn of(visit: Visit, page: &Address, last: Option<Arc<Drawn>>) -> Result<Arc<Drawn>, Problem> {
        let began = clock::instant();
        let visit = visit.again(began);
        let news = news_of(&visit, page).await?;
        let html = screens::draw(&visit, page).await?;
        let parts = live_parts(&html).into_iter();
        let parts = parts.map(|(name, part)| Part { name: name.to_owned(), event: event("part", part) });
        let title = html.split_once("<title>").and_then(|(_, after)| after.split_once("</title>"));
        let title = title.map(|(title, _)| title).unwrap_or_default();
        let head = [event("title", title), event("at", &moment(clock::now()))].concat();
        let mut drawn = Drawn {
            parts: parts.collect(),
            head: head.into(),
            after: None,
            began,
            took: began.elapsed(),
            news: (news, Mutex::new(false)),
            html,
        };
        drawn.after = last.map(|last| (last.began, drawn.changes_since(Some(&last))));
        Ok(Arc::new(drawn))
    }

    /// Returns the events that bring a tab up to date, which shows another drawing or none.
    pub(super) fn update_of(&self, shown: Option<&Drawn>) -> Bytes {
        match (&self.after, shown) {
            (Some((last, changes)), Some(shown)) if shown.began == *last => changes.clone(),
            _ => self.changes_since(shown),
        }
    }

    fn changes_since(&self, shown: Option<&Drawn>) -> Bytes {
        let is_unknown = |part: &&Part| shown.is_none_or(|shown| !shown.parts.contains(part));
        let parts = self.parts.iter().filter(is_unknown).map(|part| part.event.as_ref());
        parts.chain([self.head.as_ref()]).collect::<Vec<_>>().concat().into()
    }

    /// Returns how long it serves whatever happens.
    fn pace(&self) -> Duration {
        PACE.max(self.took * PACE_BY_TOOK)
    }

    /// Says that it shows a reader of a moment how the page is then.
    fn serves_at(&self, moment: Instant) -> bool {
        let age = moment.saturating_duration_since(self.began);
        age < self.pace() || age < QUIET && !self.has_news()
    }

    /// Says that something happened since it was drawn.
    pub(super) fn has_news(&self) -> bool {
        let (news, heard) = &self.news;
        let mut heard = lock(heard);
        *heard |= news.notified().now_or_never().is_some();
        *heard
    }
}

/// Writes an event of a stream.
pub(super) fn event(name: &str, text: &str) -> Bytes {
    let mut event = format!("event: {name}\n");
    // A carriage return would end a line of the stream, too; HTML reads a line feed alike.
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_line_for_each_line_of_its_text() {
        assert_eq!(
            event("part", "<p>\r\na\rb\n</p>"),
            "event: part\ndata: <p>\ndata: a\ndata: b\ndata: </p>\n\n"
        );
        assert_eq!(event("at", ""), "event: at\ndata: \n\n");
    }
}
