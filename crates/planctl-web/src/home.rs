//! The home page, and the list of all runs.

use std::collections::BTreeSet;

use askama::Template;
use planctl_api::wire::{
    AskList, AskView, DayBudgetView, RunList, RunState, RunSummary, SpentToday, UnreadRun,
};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// The part of everything that the home page shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filters<'a> {
    /// Asks of this kind.
    pub kind: Option<&'a str>,
    /// Asks and runs of this workspace.
    pub project: Option<&'a str>,
    /// Asks about work of this role.
    pub role: Option<&'a str>,
}

impl Filters<'_> {
    /// Says that everything is shown.
    pub fn are_none(&self) -> bool {
        *self == Filters::default()
    }

    fn matches(&self, ask: &AskView) -> bool {
        self.kind.is_none_or(|kind| ask.kind == kind)
            && self.project.is_none_or(|project| ask.workspace == project)
            && self.role.is_none_or(|role| ask.role.as_deref() == Some(role))
    }

    /// Says whether failures of runs are shown; their project was chosen where they were read.
    fn let_failures_through(&self) -> bool {
        self.role.is_none() && self.kind.is_none_or(|kind| kind == FAILURE)
    }
}

/// The kind of need that is no ask: a run failed, and nobody has acknowledged that.
const FAILURE: &str = "failure";
/// The most runs that ended which are listed.
const ENDED_MAX: usize = 12;

/// The values that a filter offers; the chosen one is among them.
struct Choices<'a> {
    name: &'static str,
    label: &'static str,
    chosen: Option<&'a str>,
    values: BTreeSet<&'a str>,
}

/// Asks, runs under way, and runs that ended lately.
#[derive(Template)]
#[template(path = "home.html")]
pub struct HomeScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The open asks that are let through, first what blocks most.
    asks: Vec<&'a AskView>,
    /// The runs that failed by themselves and that nobody has acknowledged.
    failures: Vec<&'a RunSummary>,
    /// Says that others wait that were not looked at.
    more_wait: bool,
    choices: [Choices<'a>; 3],
    is_filtered: bool,
    open: Vec<&'a RunSummary>,
    ended: Vec<&'a RunSummary>,
    unread: &'a [UnreadRun],
    today: &'a SpentToday,
    day_budgets: &'a [DayBudgetView],
    /// For a reader who may acknowledge failures.
    form: Option<Form<'a>>,
}

impl<'a> HomeScreen<'a> {
    /// Sorts the newest runs: failures that nobody has acknowledged, those under way, and those that ended, failures first.
    pub fn new(
        frame: Frame<'a>,
        (asks, runs): (&'a AskList, &'a RunList),
        today: &'a SpentToday,
        filters: Filters<'a>,
        form: Option<Form<'a>>,
    ) -> HomeScreen<'a> {
        let (over, open): (Vec<_>, Vec<_>) = runs.runs.iter().partition(|run| run.state.is_over());
        let (mut failures, mut ended): (Vec<_>, Vec<_>) =
            over.into_iter().partition(|run| run.awaits_acknowledgement);
        if !filters.let_failures_through() {
            failures.clear();
        }
        ended.sort_by_key(|run| run.state != RunState::Failed);
        ended.truncate(ENDED_MAX);
        HomeScreen {
            frame,
            failures,
            today,
            day_budgets: &runs.day_budgets,
            form,
            asks: asks.asks.iter().filter(|ask| filters.matches(ask)).collect(),
            more_wait: asks.next.is_some(),
            choices: choices(asks, runs, filters),
            is_filtered: !filters.are_none(),
            open,
            ended,
            unread: &runs.unread,
        }
    }

    fn needs_nobody(&self) -> bool {
        self.asks.is_empty() && self.failures.is_empty()
    }

    /// Says that the reader may decide, which all readers of one scope have in common.
    fn may_decide(&self) -> bool {
        self.form.is_some()
    }
}

impl<'a> Choices<'a> {
    fn of(
        name: &'static str,
        label: &'static str,
        chosen: Option<&'a str>,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Choices<'a> {
        Choices { name, label, chosen, values: values.into_iter().chain(chosen).collect() }
    }
}

fn choices<'a>(asks: &'a AskList, runs: &'a RunList, filters: Filters<'a>) -> [Choices<'a>; 3] {
    let asks = || asks.asks.iter();
    let failure = runs.runs.iter().find(|run| run.awaits_acknowledgement).map(|_| FAILURE);
    let projects = asks().map(|ask| ask.workspace.as_str());
    let projects = projects.chain(runs.runs.iter().map(|run| run.workspace.as_str()));
    [
        Choices::of("kind", "Kind", filters.kind, asks().map(|ask| ask.kind.as_str()).chain(failure)),
        Choices::of("project", "Project", filters.project, projects),
        Choices::of("role", "Role", filters.role, asks().filter_map(|ask| ask.role.as_deref())),
    ]
}

/// The part of all runs that their list shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunFilters<'a> {
    /// Runs in this state, by the word that programs read.
    pub state: Option<&'a str>,
    /// Runs of the plans at this path.
    pub plan: Option<&'a str>,
    /// Runs of this workspace.
    pub project: Option<&'a str>,
}

/// One page of all runs.
#[derive(Template)]
#[template(path = "runs.html")]
pub struct RunsScreen<'a> {
    frame: Frame<'a>,
    /// The runs, newest first.
    list: &'a RunList,
    /// Says that it begins with the newest.
    is_first: bool,
    choices: [Choices<'a>; 3],
    is_filtered: bool,
    /// The query that keeps what was chosen; it ends where another parameter may follow.
    kept: String,
}

impl<'a> RunsScreen<'a> {
    /// Prepares a page of the list; it offers the plans and projects of the runs on it.
    pub fn new(
        frame: Frame<'a>,
        list: &'a RunList,
        is_first: bool,
        filters: RunFilters<'a>,
    ) -> RunsScreen<'a> {
        let chosen = [("state", filters.state), ("plan", filters.plan), ("project", filters.project)];
        let kept =
            chosen.iter().filter_map(|(name, value)| Some(format!("{name}={}&", draw::encoded((*value)?))));
        let (plans, projects): (Vec<&str>, Vec<&str>) =
            list.runs.iter().map(|run| (run.plan.as_str(), run.workspace.as_str())).unzip();
        RunsScreen {
            choices: [
                Choices::of(
                    "state",
                    "State",
                    filters.state,
                    RunState::ALL.iter().map(|state| state.as_str()),
                ),
                Choices::of("plan", "Plan", filters.plan, plans),
                Choices::of("project", "Project", filters.project, projects),
            ],
            is_filtered: filters != RunFilters::default(),
            kept: kept.collect(),
            frame,
            list,
            is_first,
        }
    }
}
