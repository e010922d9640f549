//! Words and views of how steps ended, wherever they are shown.

use planctl_api::wire::TamperView;
use planctl_engine::{End, Ending, Evidence, Verdict};

/// The most characters of a stranger's text within a line.
const QUOTED_CHARACTERS_MAX: usize = 160;

pub(super) fn end_word(end: End) -> &'static str {
    match end {
        End::Done => "done",
        End::Failed => "failed",
        End::Aborted => "aborted",
        End::Cancelled => "cancelled",
    }
}

/// Returns the word of a verdict in JSON.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::TimedOut => "timed_out",
        Verdict::Tampered => "tampered",
    }
}

pub(crate) fn ending_words(ending: Ending) -> String {
    match ending {
        Ending::Exited { code } => format!("exit {code}"),
        Ending::Signalled { signal } => format!("signal {signal}"),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::OverLimit { resource, max } => resource.exceeded(max),
        Ending::NotRun => "not run".to_owned(),
    }
}

/// Says how a command ended, and how many tests its reports show where some had to pass: `exit 0, 3 of 12 tests passed`.
pub(super) fn evidence_words(evidence: &Evidence) -> String {
    let tests = evidence.tests.map(|tests| format!(", {} of {} tests passed", tests.passed, tests.least));
    format!("{}{}", ending_words(evidence.ending), tests.unwrap_or_default())
}

pub(super) fn exit_code(ending: Ending) -> Option<i32> {
    match ending {
        Ending::Exited { code } => Some(code),
        Ending::Signalled { .. } | Ending::TimedOut | Ending::OverLimit { .. } | Ending::NotRun => None,
    }
}

pub(crate) fn tampered(files: &[planctl_engine::Tampering]) -> Vec<TamperView> {
    files
        .iter()
        .map(|file| TamperView {
            path: file.path.clone(),
            change: file.change.as_str().to_owned(),
            diff: None,
        })
        .collect()
}

/// Quotes what a worker or a contract wrote within a line of planctl's: nothing in it ends the quotation.
pub(crate) fn quoted(text: &str) -> String {
    let text = planctl_view::strip_terminal_sequences(text);
    let cut: String = text.chars().take(QUOTED_CHARACTERS_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", cut.replace('"', "'"))
}

/// Says in one line how an attempt failed, with the line of its output that says why.
pub(crate) fn failure_line(failure: &planctl_engine::Failure) -> String {
    let line = planctl_view::strip_terminal_sequences(&failure.describe()).into_owned();
    if !failure.tampered().is_empty() {
        return line;
    }
    match planctl_view::telling_line(&failure.stderr.tail, &failure.stdout.tail) {
        Some(reason) => format!("{line} {}", quoted(&reason)),
        None => line,
    }
}
