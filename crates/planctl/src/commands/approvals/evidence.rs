//! Draws the evidence beside an ask about a step: attempts side by side, the changed files, the worker's last words.

use planctl_api::wire::{ApprovedView, AskPage, AskView, AttemptSummary, ChangedFile, WorkspaceChanges};
use planctl_api::words;

use super::page::heading;
use crate::gutter::{self, Cut};
use crate::next;
use crate::show::{self, Cell, FAINT, shell_word, styled};

/// The most lines of a diff that are shown unless more is asked for.
const DIFF_LINES: usize = 24;
/// The most lines of a worker's report that are shown.
const LAST_WORDS_LINES: usize = 10;

/// Draws everything of this kind that a page has; the whole diff, if wanted.
pub(super) fn draw(page: &AskPage, is_whole: bool, now_unix_seconds: f64) -> String {
    let mut text = draw_attempts(&page.attempts);
    if let Some(changes) = &page.workspace_changes {
        text.push_str(&draw_changes(changes, page.ask.id, is_whole));
    }
    if let Some(approved) = &page.approved {
        text.push_str(&draw_approved(approved, &page.ask, now_unix_seconds));
        if let Some(diff) =
            approved.diff.as_ref().filter(|diff| is_whole || diff.lines().count() <= DIFF_LINES)
        {
            text.push_str(&gutter::printed("diff", &show::plan_block(diff), Cut::Nothing));
        }
    }
    if let Some(words) = &page.last_words {
        text.push_str(&heading("the worker's last words (they are not evidence)"));
        let all = format!("planctl logs {}", shell_word(&words::asker(&page.ask)));
        let all = next::typed_in(&all, &page.ask.workspace);
        let lines = show::last_lines(words, LAST_WORDS_LINES).join("\n");
        text.push_str(&gutter::printed("worker", &lines, Cut::BeforeEnd(&all)));
    }
    text
}

/// Lists attempts, each with what is new against those before; a single one is shown as the failure itself, and without a
/// contract there is nothing to compare.
fn draw_attempts(attempts: &[AttemptSummary]) -> String {
    if attempts.len() < 2 || attempts.iter().all(|attempt| attempt.verdict.is_none()) {
        return String::new();
    }
    let rows = attempts.iter().map(|attempt| {
        let work = attempt.seconds.map_or_else(|| "-".to_owned(), show::seconds);
        vec![
            attempt.attempt.to_string().into(),
            work.into(),
            spent(attempt).into(),
            attempt.verdict.as_deref().unwrap_or("-").into(),
            Cell::styled(FAINT, &words::compared(attempt)),
        ]
    });
    let list = show::list(&["ATTEMPT", "WORK", "SPENT", "CONTRACT", "ITS OUTPUT"], rows.collect());
    format!("\n{list}")
}

fn spent(attempt: &AttemptSummary) -> String {
    let Some(spent) = &attempt.spent else { return "unmetered".to_owned() };
    let estimated = if attempt.estimated { " (estimated)" } else { "" };
    let tokens = format!("{} tok", show::tokens(spent.tokens));
    if spent.usd > 0.0 { format!("{tokens} ${:.2}{estimated}", spent.usd) } else { tokens }
}

fn draw_changes(changes: &WorkspaceChanges, id: u64, is_whole: bool) -> String {
    let commit: String = changes.commit.chars().take(9).collect();
    if changes.files.is_empty() {
        return heading(&format!("the workspace is as commit {commit} has it"));
    }
    let mut text = heading(&format!("changed since commit {commit}"));
    let widest = changes.files.iter().map(|file| file.path.chars().count()).max().unwrap_or(0).min(40);
    for file in &changes.files {
        text.push_str(&draw_file(file, widest));
    }
    if changes.more > 0 {
        text.push_str(&format!("    and {} more\n", changes.more));
    }
    let count = changes.diff.lines().count();
    if is_whole || count <= DIFF_LINES {
        text.push_str(&gutter::printed("diff", &changes.diff, Cut::Nothing));
    }
    if changes.is_cut || (count > DIFF_LINES && !is_whole) {
        let command = if is_whole {
            "git diff HEAD".to_owned()
        } else {
            next::commands_here(&format!("planctl approvals show {id} -v"))
        };
        text.push_str(&format!("  the lines: {command}\n"));
    }
    text
}

fn draw_file(file: &ChangedFile, widest: usize) -> String {
    let (path, words) = (show::safe(&file.path), words::changed(file));
    let line = format!("    {:<7}  {path:<widest$}  {words}\n", file.change);
    if file.protected && !file.may_change { styled(show::CARE, &line) } else { line }
}

fn draw_approved(approved: &ApprovedView, ask: &AskView, now_unix_seconds: f64) -> String {
    let ago = show::ago(&approved.at, now_unix_seconds);
    let file = match approved.file_changed {
        Some(false) => "; the file has not changed since",
        Some(true) => "; the file has changed since, and the approved text runs",
        None => "",
    };
    let by = show::safe(&approved.by);
    let plan = show::plan(&ask.plan, &ask.title);
    let mut text = format!("\n  {plan} was approved by {by} {ago}{file}\n");
    if approved.file_changed == Some(true) {
        let diff = format!("planctl diff {}", next::plan_word(&ask.plan, &ask.workspace));
        text.push_str(&format!("  what changed: {}\n", next::typed_in(&diff, &ask.workspace)));
    }
    text
}
