//! The history of a run, page by page.

use askama::Template;
use planctl_api::wire::EventLine;
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};

/// One page of a run's history.
#[derive(Template)]
#[template(path = "history.html")]
pub struct HistoryScreen<'a> {
    frame: Frame<'a>,
    run: &'a str,
    events: &'a [EventLine],
    /// The line before which the older page ends.
    older: Option<u64>,
    /// The line after which the newer page begins.
    newer: Option<u64>,
    path: &'a str,
    query: &'a str,
}

impl<'a> HistoryScreen<'a> {
    /// Prepares a page; the newest one has none after it.
    pub fn new(
        frame: Frame<'a>,
        (run, events): (&'a str, &'a [EventLine]),
        is_newest: bool,
        (path, query): (&'a str, &'a str),
    ) -> HistoryScreen<'a> {
        let older = events.first().map(|event| event.seq).filter(|first| *first > 1);
        let newer = events.last().map(|event| event.seq).filter(|_| !is_newest);
        HistoryScreen { frame, run, events, older, newer, path, query }
    }
}
