//! Pages as they are drawn: once for all readers of a scope who come within a moment, each of whom finds a page of their own.

use std::sync::Arc;
use std::time::Duration;

use planctl_api::Problem;
use planctl_api::wire::moment;
use planctl_store::secret;
use planctl_web::live_parts;

use super::visit::Visit;
use super::{Address, screens};
use crate::clock;

/// A page as it is drawn for all its readers.
pub(super) struct Drawn {
    /// The page, with marks in place of its reader.
    html: String,
    /// The parts of it that change, each with its name.
    pub(super) parts: Vec<(String, String)>,
    pub(super) title: String,
    pub(super) at: String,
    pub(super) took: Duration,
}

/// Returns the page at an address, for the one who looks.
pub(super) async fn page(visit: &Visit, address: &Address) -> Result<String, Problem> {
    if !is_for_many(address) {
        return screens::draw(visit, address).await;
    }
    let drawn = for_many(visit, address).await?;
    Ok(visit.state.marks.fill(&drawn.html, visit.session()?.reader(), &secret()))
}

/// Draws the page at an address, or takes what was drawn for another reader as late as this visit asks for.
pub(super) async fn for_many(visit: &Visit, address: &Address) -> Result<Arc<Drawn>, Problem> {
    let name = visit.shared_name(&address.whole())?;
    let anybody = visit.of_anybody();
    visit.state.drawings.of(&name, visit.since(), Drawn::of(&anybody, address)).await
}

/// Says that all readers of a scope find the same there. A page that tells of a decision, or holds what somebody fills in, is
/// for one reader.
fn is_for_many(address: &Address) -> bool {
    let is_list = matches!(
        address.segments().as_slice(),
        [] | ["runs" | "plans" | "library" | "system"]
            | ["runs" | "plans", _]
            | ["runs", _, "graph" | "history"]
            | ["runs", _, "steps", _]
    );
    is_list && address.query("recorded").is_none()
}

impl Drawn {
    async fn of(visit: &Visit, page: &Address) -> Result<Arc<Drawn>, Problem> {
        let began = clock::instant();
        let html = screens::draw(visit, page).await?;
        // A carriage return would end a line of the stream; HTML reads a line feed alike.
        let plain = |part: &str| part.replace("\r\n", "\n").replace('\r', "\n");
        let parts = live_parts(&html).into_iter().map(|(name, part)| (name.to_owned(), plain(part)));
        let title = html.split_once("<title>").and_then(|(_, after)| after.split_once("</title>"));
        Ok(Arc::new(Drawn {
            parts: parts.collect(),
            title: title.map(|(title, _)| title.to_owned()).unwrap_or_default(),
            at: moment(clock::now()),
            took: began.elapsed(),
            html,
        }))
    }
}
