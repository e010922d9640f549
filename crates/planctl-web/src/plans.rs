//! Plans, and one plan with its kept texts.

use askama::Template;
use planctl_api::wire::{PlanList, PlanSummary, RevisionList, RevisionPage};
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};

/// One page of all plans.
#[derive(Template)]
#[template(path = "plans.html")]
pub struct PlansScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The plans, those that changed last first.
    pub list: &'a PlanList,
}

/// One plan.
#[derive(Template)]
#[template(path = "plan.html")]
pub struct PlanScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The plan.
    pub plan: &'a PlanSummary,
    /// The text that is shown.
    pub revision: &'a RevisionPage,
    /// All kept texts, newest first.
    pub revisions: &'a RevisionList,
}
