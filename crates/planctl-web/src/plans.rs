//! Plans, and one plan with its kept texts.

use askama::Template;
use planctl_api::wire::draft::RequirementView;
use planctl_api::wire::{
    PlanFindings, PlanList, PlanSummary, RevisionList, RevisionPage, RunList, RunState, RunSummary,
};
use planctl_api::{Problem, words};

use crate::draw::{self, Part, encoded};
use crate::frame::{Form, Frame, Tab};
use crate::margin::PlacedFindings;

/// One page of all plans.
#[derive(Template)]
#[template(path = "plans.html")]
pub struct PlansScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The plans, those that changed last first.
    pub list: &'a PlanList,
}

/// The most runs of a plan that its page lists.
const RUNS_MAX: usize = 10;

/// The lesson of a plan's newest runs.
struct Record {
    /// How many of them ended by themselves, done or failed.
    ended: usize,
    /// How many of these are done.
    done: usize,
    /// Half of those that are done took no longer.
    seconds: Option<f64>,
    /// Half of those that are done, and used money, used no more.
    usd: Option<f64>,
}

impl Record {
    fn of(runs: &[&RunSummary]) -> Record {
        let all_done: Vec<_> = runs.iter().filter(|run| run.state == RunState::Done).collect();
        let failed = runs.iter().filter(|run| run.state == RunState::Failed).count();
        let middle = |mut amounts: Vec<f64>| {
            amounts.sort_by(f64::total_cmp);
            amounts.get(amounts.len().checked_sub(1)? / 2).copied()
        };
        Record {
            ended: all_done.len() + failed,
            done: all_done.len(),
            seconds: middle(all_done.iter().map(|run| run.spent.seconds).collect()),
            usd: middle(all_done.iter().map(|run| run.spent.usd).filter(|usd| *usd > 0.0).collect()),
        }
    }

    /// Says how many runs came to a good end.
    fn rate(&self) -> String {
        format!("{} of {} done", self.done, words::counted(self.ended, "run"))
    }
}

/// One plan.
#[derive(Template)]
#[template(path = "plan.html")]
pub struct PlanScreen<'a> {
    frame: Frame<'a>,
    plan: &'a PlanSummary,
    /// The text that is shown.
    revision: &'a RevisionPage,
    /// The part of it that is shown.
    part: Part,
    /// All kept texts, newest first.
    revisions: &'a RevisionList,
    /// The newest runs.
    runs: Vec<&'a RunSummary>,
    record: Record,
    found: PlacedFindings<'a>,
    /// The requirements for which it was drafted.
    requirements: &'a [RequirementView],
    /// Why the text that is shown was not verified.
    unchecked: Option<&'a str>,
    /// For a reader who may run it.
    form: Option<Form<'a>>,
}

impl<'a> PlanScreen<'a> {
    /// Prepares the page of a plan with one of its texts and what verification says of it, or why it says nothing; `runs` are the
    /// newest of its workspace. Of a long text it shows the part with a number.
    pub fn new(
        frame: Frame<'a>,
        plan: &'a PlanSummary,
        (revision, part, revisions): (&'a RevisionPage, Option<usize>, &'a RevisionList),
        findings: Result<&'a PlanFindings, &'a Problem>,
        runs: &'a RunList,
        form: Option<Form<'a>>,
    ) -> PlanScreen<'a> {
        let mut runs: Vec<_> = runs.runs.iter().filter(|run| run.plan == plan.plan).collect();
        let record = Record::of(&runs);
        runs.truncate(RUNS_MAX);
        let found = findings.map(|found| found.findings.as_slice()).unwrap_or_default();
        let requirements = findings.map(|found| found.requirements.as_slice()).unwrap_or_default();
        let found = PlacedFindings::of(&revision.source, found);
        let unchecked = findings.err().map(|problem| &*problem.detail);
        let part = draw::plan_part(&revision.source, part);
        PlanScreen {
            frame,
            plan,
            revision,
            part,
            revisions,
            runs,
            record,
            found,
            requirements,
            unchecked,
            form,
        }
    }

    /// Returns the address of a part of the text.
    fn part_at(&self, number: usize) -> String {
        let digest = encoded(&self.revision.digest);
        format!("/plans/{}?digest={digest}&part={number}#text", self.plan.id)
    }

    /// Says that the text that is shown is the newest, which the plan's file may have.
    fn is_newest(&self) -> bool {
        self.revision.digest == self.plan.digest
    }
}
