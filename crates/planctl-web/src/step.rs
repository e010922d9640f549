//! One step of a run: its attempts with their evidence, and why it is where it is.

use askama::Template;
use planctl_api::wire::{AttemptView, GateView, WhyView};
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};

/// How many attempts a page shows.
const ATTEMPTS_MAX: usize = 5;

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

/// An attempt with its gates in the order that a reader wants: the verdict first.
struct Attempt<'a>(&'a AttemptView);

impl std::ops::Deref for Attempt<'_> {
    type Target = AttemptView;

    fn deref(&self) -> &AttemptView {
        self.0
    }
}

impl Attempt<'_> {
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
    older: Option<String>,
    path: &'a str,
    query: &'a str,
}

impl<'a> StepScreen<'a> {
    /// Prepares the page of a step; `path` and `query` name its run. The newest attempt comes first.
    pub fn new(
        frame: Frame<'a>,
        why: &'a WhyView,
        attempts: &'a [AttemptView],
        (path, query): (&'a str, &'a str),
    ) -> StepScreen<'a> {
        let left_out = attempts.len().saturating_sub(ATTEMPTS_MAX);
        let older = (left_out > 0)
            .then(|| format!("{} older, which this page leaves out", words::counted(left_out, "attempt")));
        let attempts = attempts.iter().rev().take(ATTEMPTS_MAX).map(Attempt).collect();
        StepScreen { frame, why, attempts, older, path, query }
    }
}
