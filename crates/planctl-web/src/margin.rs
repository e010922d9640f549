//! Findings about a text, each in the margin of its line.

use std::collections::BTreeMap;

use planctl_api::wire::PlanEditFinding;
use planctl_api::words;

use crate::draw;

/// The most bytes that findings take on a page, by estimate.
const FINDINGS_BYTES_MAX: usize = 24 << 10;
/// The bytes of the markup around a finding, or around a line.
const MARKUP_BYTES: usize = 120;
/// How many lines of the text stand around one with a finding.
const LINES_AROUND: usize = 2;
/// The most characters of a line that is shown beside a finding.
const LINE_CHARACTERS_MAX: usize = 200;

/// A line of the text, with the findings about it in its margin.
pub(crate) struct MarginLine<'a> {
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) findings: Vec<&'a PlanEditFinding>,
    /// Says that lines before it are left out.
    pub(crate) is_after_gap: bool,
}

impl MarginLine<'_> {
    /// Returns its class in the stylesheet.
    pub(crate) fn class(&self) -> &'static str {
        match self.findings.as_slice() {
            [] => "line",
            found if found.iter().any(|found| found.is_error) => "failed",
            _ => "waiting",
        }
    }
}

/// Returns the lines that findings are about, and those around them.
fn margin<'a>(text: &str, found: &[&'a PlanEditFinding]) -> Vec<MarginLine<'a>> {
    // As a whole: a key goes over several lines.
    let text = words::plan_block(text);
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

/// Returns how many bytes a finding takes with the lines around it, about.
fn bytes(finding: &PlanEditFinding, lines: &[&str]) -> usize {
    let words = finding.message.len() + finding.help.as_ref().map_or(0, |help| help.len());
    let from = finding.line.unwrap_or(0).saturating_sub(LINES_AROUND + 1);
    let around = lines.iter().skip(from).take(if finding.line.is_some() { 2 * LINES_AROUND + 1 } else { 0 });
    around.map(|line| MARKUP_BYTES + line.len().min(LINE_CHARACTERS_MAX)).sum::<usize>()
        + MARKUP_BYTES
        + words
}

/// The findings about a text, as a page shows them.
#[derive(Default)]
pub(crate) struct PlacedFindings<'a> {
    /// Those about no line of the text.
    pub(crate) unplaced: Vec<&'a PlanEditFinding>,
    /// The lines that others are about, and those around them.
    pub(crate) margin: Vec<MarginLine<'a>>,
    /// How many are not shown.
    pub(crate) more: usize,
    /// How many there are.
    pub(crate) count: usize,
}

impl<'a> PlacedFindings<'a> {
    /// Puts findings beside their lines.
    pub(crate) fn of(text: &str, found: &'a [PlanEditFinding]) -> PlacedFindings<'a> {
        // Those that keep the text from being approved are shown before others.
        let mut sorted: Vec<&PlanEditFinding> = found.iter().collect();
        sorted.sort_by_key(|view| !view.is_error);
        let lines: Vec<&str> = text.lines().collect();
        let mut room = FINDINGS_BYTES_MAX;
        let fits = |view: &&&PlanEditFinding| match room.checked_sub(bytes(view, &lines)) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        let count = sorted.iter().take_while(fits).count();
        sorted.truncate(count);
        let line_count = lines.len();
        let is_placed =
            |view: &&&PlanEditFinding| view.line.is_some_and(|line| (1..=line_count).contains(&line));
        PlacedFindings {
            unplaced: sorted.iter().filter(|view| !is_placed(view)).copied().collect(),
            margin: margin(text, &sorted),
            more: found.len() - sorted.len(),
            count: found.len(),
        }
    }
}
