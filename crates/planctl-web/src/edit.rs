//! The plan of a run that an ask holds, edited: its text, what verification says, and the difference that is approved.

use askama::Template;
use planctl_api::Problem;
use planctl_api::wire::{AskView, PlanEditCheck};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};
use crate::margin::PlacedFindings;

/// The fields of the form, as its reader left them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EditDraft {
    /// The plan's text.
    pub text: String,
    /// The digest of the file's text when the edit began.
    pub file: String,
    /// Why.
    pub note: String,
}

/// The words of the page beside the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct EditNews<'a> {
    /// The file differs from the text that runs.
    pub is_file_changed: bool,
    /// Why the step that a worker proposes is not in the text.
    pub unfit: Option<&'a str>,
    /// The findings about the text, and the difference to the one that runs.
    pub check: Option<&'a PlanEditCheck>,
    /// Why the text was not approved.
    pub refused: Option<&'a Problem>,
}

/// The edit of a plan.
#[derive(Template)]
#[template(path = "edit.html")]
pub struct EditScreen<'a> {
    frame: Frame<'a>,
    ask: &'a AskView,
    draft: &'a EditDraft,
    news: EditNews<'a>,
    form: Option<Form<'a>>,
    found: PlacedFindings<'a>,
}

impl<'a> EditScreen<'a> {
    /// Prepares the page of an edit; without a form its reader only reads.
    pub fn new(
        frame: Frame<'a>,
        ask: &'a AskView,
        draft: &'a EditDraft,
        news: EditNews<'a>,
        form: Option<Form<'a>>,
    ) -> EditScreen<'a> {
        let found = news.check.map(|check| check.findings.as_slice()).unwrap_or_default();
        EditScreen { found: PlacedFindings::of(&draft.text, found), frame, ask, draft, news, form }
    }

    /// Says that the text that is shown can be approved as it stands.
    fn can_approve(&self) -> bool {
        self.news.check.is_some_and(|check| check.refused.is_none())
    }

    fn digest(&self) -> &str {
        self.news.check.map(|check| check.digest.as_str()).unwrap_or_default()
    }
}
