//! The home page, and the list of all runs.

use askama::Template;
use planctl_api::wire::{AskList, RunList, RunSummary, UnreadRun};
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};

/// Asks, runs under way, and runs that ended lately.
#[derive(Template)]
#[template(path = "home.html")]
pub struct HomeScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The open asks, oldest first.
    pub asks: &'a AskList,
    open: Vec<&'a RunSummary>,
    ended: Vec<&'a RunSummary>,
    unread: &'a [UnreadRun],
}

impl<'a> HomeScreen<'a> {
    /// Sorts the newest runs: those under way, and those that ended, failures first.
    pub fn new(frame: Frame<'a>, asks: &'a AskList, runs: &'a RunList) -> HomeScreen<'a> {
        let (mut ended, open): (Vec<_>, Vec<_>) = runs.runs.iter().partition(|run| run.state.is_over());
        ended.sort_by_key(|run| run.state != planctl_api::wire::RunState::Failed);
        ended.truncate(12);
        HomeScreen { frame, asks, open, ended, unread: &runs.unread }
    }
}

/// One page of all runs.
#[derive(Template)]
#[template(path = "runs.html")]
pub struct RunsScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The runs, newest first.
    pub list: &'a RunList,
    /// Says that it begins with the newest.
    pub is_first: bool,
}
