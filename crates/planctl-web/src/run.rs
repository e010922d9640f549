//! One run: where it stands, its steps, what happened last; and its graph.

use askama::Template;
use planctl_api::wire::{EventLine, PictureView, RunPage, RunState, RunView, StepTally, StepView};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// How many events a page lists.
const EVENTS_MAX: usize = 20;

/// The places of the steps that a page lists among all, from 1.
struct Window {
    first: usize,
    last: usize,
    before: Option<usize>,
    after: Option<usize>,
}

impl Window {
    fn of(page: &RunPage) -> Window {
        let (first, last) = (page.first, page.first + page.run.steps.len().saturating_sub(1));
        let before = Some(first.saturating_sub(1)).filter(|before| *before > 0);
        let after = Some(last + 1).filter(|_| last < page.steps_total);
        Window { first, last, before, after }
    }
}

/// One run.
#[derive(Template)]
#[template(path = "run.html")]
pub struct RunScreen<'a> {
    frame: Frame<'a>,
    run: &'a RunView,
    events: Vec<&'a EventLine>,
    form: Option<Form<'a>>,
    path: &'a str,
    query: &'a str,
    settled: usize,
    steps_total: usize,
    tallies: &'a [StepTally],
    window: Window,
    failed: Option<&'a StepView>,
    can_resume: bool,
}

impl<'a> RunScreen<'a> {
    /// Prepares the page of a run; `path` and `query` name it.
    pub fn new(
        frame: Frame<'a>,
        page: &'a RunPage,
        events: &'a [EventLine],
        (path, query): (&'a str, &'a str),
        form: Option<Form<'a>>,
    ) -> RunScreen<'a> {
        let run = &page.run;
        let told = events.iter().rev().filter(|event| event.sentence.is_some());
        let settled = page.tallies.iter().filter(|tally| tally.state.is_settled());
        RunScreen {
            settled: settled.map(|tally| tally.count).sum(),
            steps_total: page.steps_total,
            tallies: &page.tallies,
            failed: page.failed.as_ref(),
            window: Window::of(page),
            can_resume: matches!(run.state, RunState::Failed | RunState::Paused),
            events: told.take(EVENTS_MAX).collect(),
            frame,
            run,
            form,
            path,
            query,
        }
    }
}

/// The graph of a run.
#[derive(Template)]
#[template(path = "graph.html")]
pub struct GraphScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The picture, and what it is of.
    pub view: &'a PictureView,
    /// Says that its reader chose the node that it is around.
    pub is_chosen: bool,
    /// The address of the run's page.
    pub path: &'a str,
    /// The query of that address.
    pub query: &'a str,
}
