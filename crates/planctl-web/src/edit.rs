//! The plan of a run that an ask holds, edited: its text, what verification says, and the difference that is approved.

use std::collections::BTreeMap;

use askama::Template;
use planctl_api::Problem;
use planctl_api::wire::{AskView, PlanEditCheck, PlanEditFinding};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// The most findings that a page lists.
const FINDINGS_MAX: usize = 200;

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

/// How many lines of the text stand around one with a finding.
const LINES_AROUND: usize = 2;
/// The most characters of a line that is shown beside a finding.
const LINE_CHARACTERS_MAX: usize = 200;

/// A line of the text, with the findings about it in its margin.
struct MarginLine<'a> {
    number: usize,
    text: String,
    findings: Vec<&'a PlanEditFinding>,
    /// Says that lines before it are left out.
    is_after_gap: bool,
}

impl MarginLine<'_> {
    /// Returns its class in the stylesheet.
    fn class(&self) -> &'static str {
        match self.findings.as_slice() {
            [] => "line",
            found if found.iter().any(|found| found.is_error) => "failed",
            _ => "waiting",
        }
    }
}

/// Returns the lines that findings are about, and those around them.
fn margin<'a>(text: &str, found: &[&'a PlanEditFinding]) -> Vec<MarginLine<'a>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut by_line: BTreeMap<usize, Vec<&'a PlanEditFinding>> = BTreeMap::new();
    for finding in found {
        if let Some(line) = finding.line.filter(|line| (1..=lines.len()).contains(line)) {
            let around = line.saturating_sub(LINES_AROUND).max(1)..=(line + LINES_AROUND).min(lines.len());
            for near in around {
                by_line.entry(near).or_default();
            }
            by_line.entry(line).or_default().push(finding);
        }
    }
    let mut before = 0;
    let line = |(number, findings): (usize, Vec<&'a PlanEditFinding>)| {
        let is_after_gap = number > before + 1;
        before = number;
        let text = draw::line(lines.get(number - 1).copied().unwrap_or_default(), LINE_CHARACTERS_MAX);
        MarginLine { number, text, findings, is_after_gap }
    };
    by_line.into_iter().map(line).collect()
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
    /// Findings about no line of the text.
    unplaced: Vec<&'a PlanEditFinding>,
    margin: Vec<MarginLine<'a>>,
    more_findings: usize,
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
        // Those that keep the text from being approved are shown before others.
        let mut sorted: Vec<&PlanEditFinding> = found.iter().collect();
        sorted.sort_by_key(|view| !view.is_error);
        sorted.truncate(FINDINGS_MAX);
        let line_count = draft.text.lines().count();
        let is_placed =
            |view: &&&PlanEditFinding| view.line.is_some_and(|line| (1..=line_count).contains(&line));
        EditScreen {
            unplaced: sorted.iter().filter(|view| !is_placed(view)).copied().collect(),
            margin: margin(&draft.text, &sorted),
            more_findings: found.len().saturating_sub(FINDINGS_MAX),
            frame,
            ask,
            draft,
            news,
            form,
        }
    }

    /// Says that the text that is shown can be approved as it stands.
    fn can_approve(&self) -> bool {
        self.news.check.is_some_and(|check| check.refused.is_none())
    }

    fn digest(&self) -> &str {
        self.news.check.map(|check| check.digest.as_str()).unwrap_or_default()
    }
}
