//! A run's bundle as a file: its whole evidence, as the command line writes it, sent part by part.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use planctl_api::Problem;
use planctl_api::wire::calls::RunName;
use planctl_api::wire::{BundleLine, BundlePage};

use super::Address;
use super::output::file_name_of;
use super::screens::route_of;
use super::visit::Visit;

/// Sends the bundle of a run as a file, which a browser keeps and doesn't show.
pub(super) async fn download(visit: &Visit, address: &Address, run: &str) -> Result<Response, Problem> {
    let route = route_of(visit, address, run).await?;
    let name: RunName = visit.get(&format!("{route}/name")).await?;
    // A fault in the first part is answered as a problem; a later one breaks the file off.
    let first = get_part(visit, &route, 0).await?;
    let end = first.lines.iter().find_map(|line| match line {
        BundleLine::Run(run) => Some(run.events),
        BundleLine::Plan { .. }
        | BundleLine::Graph { .. }
        | BundleLine::Output { .. }
        | BundleLine::Event(_) => None,
    });
    let parts = Parts { visit: visit.clone(), route, end: end.unwrap_or(0), next: Some(first) };
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}.jsonl\"", file_name_of(&name.run))),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, Body::from_stream(parts.stream())).into_response())
}

async fn get_part(visit: &Visit, route: &str, after: u64) -> Result<BundlePage, Problem> {
    let since = if after == 0 { String::new() } else { format!("?since={after}") };
    visit.get(&format!("{route}/bundle{since}")).await
}

/// The parts that are still to be sent.
struct Parts {
    visit: Visit,
    route: String,
    /// The event at which the run stood when the bundle began: it ends there.
    end: u64,
    next: Option<BundlePage>,
}

impl Parts {
    fn stream(self) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
        stream::try_unfold(self, async |mut parts| {
            let Some(page) = parts.next.take() else { return Ok(None) };
            let text = parts.written(&page)?;
            if let Some(after) = page.next.filter(|after| *after < parts.end) {
                let next = get_part(&parts.visit, &parts.route, after).await;
                parts.next = Some(next.map_err(|problem| std::io::Error::other(problem.detail.to_string()))?);
            }
            Ok(Some((Bytes::from(text), parts)))
        })
    }

    fn written(&self, page: &BundlePage) -> Result<Vec<u8>, std::io::Error> {
        let mut text = Vec::new();
        for line in &page.lines {
            if matches!(line, BundleLine::Event(event) if event.seq > self.end) {
                continue;
            }
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        Ok(text)
    }
}
