//! The library of one project: its entries, and what a sentence finds there.

use askama::Template;
use planctl_api::wire::{EntryFate, EntryOrigin, EntryStats, LibraryEntryView, LibraryPage, WeighedEntry};
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};

/// An entry with what its runs taught.
struct Row<'a> {
    entry: &'a LibraryEntryView,
    stats: Option<&'a EntryStats>,
}

/// The library of a project.
#[derive(Template)]
#[template(path = "library.html")]
pub struct LibraryScreen<'a> {
    frame: Frame<'a>,
    projects: &'a [&'a str],
    chosen: Option<&'a str>,
    message: &'a str,
    page: Option<&'a LibraryPage>,
    rows: Vec<Row<'a>>,
    /// The entries by their weight for the message: the one that is taken, then the nearest.
    weighed: Vec<&'a WeighedEntry>,
}

impl<'a> LibraryScreen<'a> {
    /// Prepares the page; where there is no project yet, none is chosen.
    pub fn new(
        frame: Frame<'a>,
        (projects, chosen): (&'a [&'a str], Option<&'a str>),
        message: &'a str,
        page: Option<&'a LibraryPage>,
    ) -> LibraryScreen<'a> {
        let row = |page: &'a LibraryPage, entry: &'a LibraryEntryView| {
            let stats = page.stats.entries.iter().find(|stats| stats.id == entry.id);
            Row { entry, stats }
        };
        let rows = page.iter().flat_map(|page| page.entries.iter().map(|entry| row(page, entry))).collect();
        let matched = page.and_then(|page| page.matched.as_ref());
        let mut weighed: Vec<_> = matched.iter().flat_map(|matched| &matched.entries).collect();
        weighed.sort_by_key(|one| (one.fate != EntryFate::Taken, std::cmp::Reverse(one.score)));
        LibraryScreen { frame, projects, chosen, message, page, rows, weighed }
    }
}

/// Says where an entry comes from.
fn origin(origin: &EntryOrigin) -> &'static str {
    match origin {
        EntryOrigin::Project => "the project",
        EntryOrigin::User => "you",
        EntryOrigin::BuiltIn => "planctl",
    }
}

/// Says how many of an entry's newest runs were done.
fn rate(stats: &EntryStats) -> String {
    match stats.ended {
        0 => "no run yet".to_owned(),
        ended => format!(
            "{} % of {}",
            u64::from(stats.done) * 100 / u64::from(ended),
            words::counted(ended as usize, "run")
        ),
    }
}

/// Says how many triggers a message must have.
fn threshold(written: &u32, learned: &u32) -> String {
    if written == learned {
        format!("{learned} of:")
    } else {
        format!("{learned} (written {written}; most of its newest runs failed) of:")
    }
}

/// Says why an entry was taken, or was not.
fn fate(weighed: &WeighedEntry) -> String {
    let behind = || words::safe(weighed.behind.as_deref().unwrap_or_default());
    match weighed.fate {
        EntryFate::Taken => "taken".to_owned(),
        EntryFate::NoMessage => "the sentence is empty".to_owned(),
        EntryFate::NotOfRole => "the role may not take it".to_owned(),
        EntryFate::OtherDomain => "it is for another domain".to_owned(),
        EntryFate::TooFewHits => {
            format!("{} of its triggers, and {} are needed", weighed.hits.len(), weighed.threshold)
        }
        EntryFate::NoScore => "nothing speaks for it".to_owned(),
        EntryFate::Outscored => format!("{} scores higher", behind()),
        EntryFate::Later => format!("{} scores the same and stands before it", behind()),
    }
}
