//! One step of a run: its attempts with their evidence, and why it is where it is.

use std::borrow::Borrow;

use askama::Template;
use planctl_api::wire::{AttemptView, GateView, WhyView};
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};
use crate::output::Output;

/// How many attempts a page shows.
const ATTEMPTS_MAX: usize = 5;

/// The attempts that a page shows, of all; the places are those in which they began, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttemptWindow {
    /// The place of the oldest.
    pub first: usize,
    /// How many are read.
    pub read: usize,
    /// How many there are.
    count: usize,
    last: usize,
    older: Option<usize>,
    newer: Option<usize>,
}

impl AttemptWindow {
    /// Chooses those before a place, else the newest.
    pub fn of(count: usize, before: Option<usize>) -> AttemptWindow {
        let last = before.unwrap_or(count).clamp(1, count.max(1));
        let first = last.saturating_sub(ATTEMPTS_MAX);
        // The newest page has room for one that has just begun.
        let read = if last < count { last - first } else { ATTEMPTS_MAX * 2 };
        let older = Some(first).filter(|first| *first > 0);
        let newer = (last < count).then(|| (last + ATTEMPTS_MAX).min(count));
        AttemptWindow { first, read, count, last, older, newer }
    }

    fn has_others(&self) -> bool {
        self.older.is_some() || self.newer.is_some()
    }

    fn describe(&self) -> String {
        format!("{}–{} of {}", self.first + 1, self.last, words::counted(self.count, "attempt"))
    }
}

/// How many lines of each output of a contract a page shows.
const GATE_LINES: usize = 60;
/// The same of a contract that ran before the work.
const REHEARSAL_LINES: usize = 10;

/// A contract that ran, before the work or after it.
struct Gate<'a> {
    view: &'a GateView,
    is_before: bool,
    /// How many lines of each of its outputs are shown.
    lines: usize,
}

impl Gate<'_> {
    /// Returns the line of its outputs that says what is wrong, where something is.
    fn failure_line(&self) -> Option<String> {
        let has_failed = self.view.verdict != "passed" && !self.is_before;
        has_failed.then(|| words::telling_line(&self.view.stderr, &self.view.stdout)).flatten()
    }

    fn stdout(&self) -> Output {
        if self.is_before { Output::StdoutBefore } else { Output::Stdout }
    }

    fn stderr(&self) -> Output {
        if self.is_before { Output::StderrBefore } else { Output::Stderr }
    }
}

/// An attempt with its gates in the order that a reader wants: the verdict first.
struct Attempt<'a>(&'a AttemptView);

impl std::ops::Deref for Attempt<'_> {
    type Target = AttemptView;

    fn deref(&self) -> &AttemptView {
        self.0
    }
}

impl Attempt<'_> {
    /// Says that a worker was asked, and not the contract alone.
    fn has_worker(&self) -> bool {
        self.0.work.is_some()
    }

    fn gates(&self) -> Vec<Gate<'_>> {
        let judged = self.0.gate.iter().map(|view| Gate { view, is_before: false, lines: GATE_LINES });
        judged
            .chain(self.0.before.iter().map(|view| Gate { view, is_before: true, lines: REHEARSAL_LINES }))
            .collect()
    }
}

/// One step.
#[derive(Template)]
#[template(path = "step.html")]
pub struct StepScreen<'a> {
    frame: Frame<'a>,
    why: &'a WhyView,
    attempts: Vec<Attempt<'a>>,
    window: AttemptWindow,
    path: &'a str,
    query: &'a str,
}

impl<'a> StepScreen<'a> {
    /// Prepares the page of a step; `path` and `query` name its run. The newest attempt comes first.
    pub fn new(
        frame: Frame<'a>,
        why: &'a WhyView,
        (attempts, window): (&'a [AttemptView], AttemptWindow),
        (path, query): (&'a str, &'a str),
    ) -> StepScreen<'a> {
        let attempts = attempts.iter().rev().map(Attempt).collect();
        StepScreen { frame, why, attempts, window, path, query }
    }

    /// Returns the page of a whole output.
    fn output_address(&self, attempt: &AttemptView, output: impl Borrow<Output>) -> String {
        let output = output.borrow();
        let (path, step, query) = (self.path, self.why.step.number, self.query);
        format!("{path}/steps/{step}/attempts/{}/{}{query}", attempt.attempt, output.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::AttemptWindow;

    #[test]
    fn every_attempt_is_on_one_page_and_both_ways_lead_through_all_of_them() {
        let mut window = AttemptWindow::of(12, None);
        let mut pages = vec![(window.first, window.last)];
        while let Some(older) = window.older {
            window = AttemptWindow::of(12, Some(older));
            pages.push((window.first, window.last));
        }
        assert_eq!(pages, [(7, 12), (2, 7), (0, 2)]);
        assert_eq!(AttemptWindow::of(12, Some(2)).newer, Some(7));
        assert_eq!(AttemptWindow::of(12, Some(7)).newer, Some(12));
        for count in [0, 1, 5] {
            assert!(!AttemptWindow::of(count, None).has_others(), "{count}");
        }
    }
}
