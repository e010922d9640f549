//! One run: where it stands, its steps, what happened last; and its graph.

use askama::Template;
use planctl_api::wire::{EventLine, RunState, RunView, StepState, StepView};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// How many steps a page lists.
const STEPS_MAX: usize = 100;
/// How many events a page lists.
const EVENTS_MAX: usize = 20;

/// How many steps are in a state.
struct Tally {
    state: StepState,
    count: usize,
}

/// The steps that a page lists, of all.
struct Window {
    first: usize,
    last: usize,
    before: Option<usize>,
    after: Option<usize>,
}

impl Window {
    /// Chooses the page with the step `from`, else the one with the first step that is under way.
    fn of(steps: &[StepView], from: Option<usize>) -> Window {
        let current = steps.iter().position(|step| step.state.is_under_way());
        let at = from.map(|from| from.saturating_sub(1)).or(current).unwrap_or(0);
        let begin = at.min(steps.len().saturating_sub(1)) / STEPS_MAX * STEPS_MAX;
        let end = (begin + STEPS_MAX).min(steps.len());
        let before = begin.checked_sub(STEPS_MAX).map(|before| before + 1);
        let after = Some(end + 1).filter(|_| end < steps.len());
        Window { first: begin + 1, last: end, before, after }
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
    tallies: Vec<Tally>,
    steps: &'a [StepView],
    window: Window,
    newest_failure: Option<&'a StepView>,
    can_resume: bool,
}

impl<'a> RunScreen<'a> {
    /// Prepares the page of a run; `path` and `query` name it, `from` the step that its list begins with.
    pub fn new(
        frame: Frame<'a>,
        run: &'a RunView,
        events: &'a [EventLine],
        (path, query): (&'a str, &'a str),
        from: Option<usize>,
        form: Option<Form<'a>>,
    ) -> RunScreen<'a> {
        let window = Window::of(&run.steps, from);
        let told = events.iter().rev().filter(|event| event.sentence.is_some());
        let is_failure = |step: &&StepView| step.state == StepState::Failed && step.failure.is_some();
        RunScreen {
            settled: run.steps.iter().filter(|step| step.state.is_settled()).count(),
            tallies: tallies(&run.steps),
            steps: &run.steps[window.first.saturating_sub(1)..window.last],
            newest_failure: run.steps.iter().rev().find(is_failure),
            can_resume: matches!(run.state, RunState::Failed | RunState::Paused),
            events: told.take(EVENTS_MAX).collect(),
            frame,
            run,
            form,
            path,
            query,
            window,
        }
    }
}

/// Counts the steps in each state, those that need somebody first.
fn tallies(steps: &[StepView]) -> Vec<Tally> {
    const ORDER: [StepState; 11] = [
        StepState::Failed,
        StepState::Waiting,
        StepState::Working,
        StepState::Checking,
        StepState::Ready,
        StepState::Resting,
        StepState::Passed,
        StepState::Warned,
        StepState::Waived,
        StepState::Skipped,
        StepState::Pending,
    ];
    let count = |state| steps.iter().filter(|step| step.state == state).count();
    let tallies = ORDER.map(|state| Tally { state, count: count(state) });
    tallies.into_iter().filter(|tally| tally.count > 0).collect()
}

/// The graph of a run.
#[derive(Template)]
#[template(path = "graph.html")]
pub struct GraphScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The run.
    pub run: &'a RunView,
    /// The address of the run's page.
    pub path: &'a str,
    /// The query of that address.
    pub query: &'a str,
    /// The picture as SVG, or why there is none.
    pub picture: Result<&'a str, &'a str>,
}
