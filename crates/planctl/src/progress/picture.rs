//! A run drawn at a terminal: its steps, its joins, what is under way, and how to leave.

use std::time::Duration;

use planctl_api::wire::{BranchState, BranchView, JoinView, RunView, StepState, StepView};
use planctl_server::Activity;

use crate::gutter;
use crate::next::{self, SERVE_ALL, worker_line, worker_wanted};
use crate::show::{self, BOLD, CARE, FAINT, styled};

/// How a run is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When that is.
    pub now_unix_seconds: f64,
    /// The most lines that are wanted.
    pub lines_max: usize,
    /// How wide the terminal is, where it is known.
    pub columns: Option<usize>,
    /// The effect of Ctrl-C, where it is drawn anew until somebody types that.
    pub ctrl_c: Option<CtrlC>,
}

/// The effect of Ctrl-C on a command that draws a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CtrlC {
    /// It stops the run, which this process works on.
    Stops,
    /// It ends the command; the run goes on where it is worked on.
    Leaves,
}

/// Draws a run. If few lines fit, the steps around the current one are shown.
pub fn picture(view: &RunView, look: &Look) -> Vec<String> {
    let steps_max = look.lines_max.saturating_sub(6).max(3);
    let mut lines = Vec::new();
    let (from, to) = window(&view.steps, steps_max);
    if from > 0 {
        lines.push(styled(FAINT, &format!("    … {from} steps before")));
    }
    let number = view.steps[..to].last().map_or(1, |step| step.number.to_string().len()).max(2);
    let title =
        view.steps[from..to].iter().map(|step| show::safe(&step.title).chars().count()).max().unwrap_or(0);
    let narrow = look.columns.filter(|columns| *columns < COLUMNS_USUAL);
    // The state of a step says more than the end of its title.
    let title_max = narrow.map_or(TITLE_MAX, |columns| columns.saturating_sub(STATE_COLUMNS).max(TITLE_MIN));
    let widths = Widths { number, title: title.min(title_max), has_role: narrow.is_none() };
    let is_left_alone = is_left_alone(view, look);
    for step in &view.steps[from..to] {
        lines.push(step_line(step, widths, look.now_unix_seconds, is_left_alone));
        if let Some(failure) = &step.failure
            && !matches!(step.state, StepState::Skipped | StepState::Waived)
        {
            lines.push(styled(FAINT, &format!("       {}", show::safe(&show::brief(failure, 100)))));
        }
        if let Some(level) = step.pace.as_ref().filter(|_| !step.state.is_settled()) {
            lines.push(styled(CARE, &format!("       {}", show::level(level))));
        }
        if let Some(caveat) = show::caveat(step) {
            lines.push(styled(CARE, &format!("       {caveat}")));
        }
    }
    if to < view.steps.len() {
        lines.push(styled(FAINT, &format!("    … {} steps after", view.steps.len() - to)));
    }
    lines.extend(view.joins.iter().take(JOINS_MAX).map(|join| styled(FAINT, &join_line(view, join))));
    if view.joins.len() > JOINS_MAX {
        lines.push(styled(FAINT, &format!("    … {} more joins", view.joins.len() - JOINS_MAX)));
    }
    lines.push(String::new());
    let foot = footer(view, look).map(|words| format!(" · {words}")).unwrap_or_default();
    let last = format!("  {}{foot}", show::cost(&view.spent, &view.budget));
    let last = look.columns.map_or(last.clone(), |columns| show::folded_in(&last, columns.saturating_sub(1)));
    lines.extend(last.lines().map(str::to_owned));
    if let Some(next) = worker_wanted(view).filter(|_| look.ctrl_c.is_some()) {
        let is_paused = view.waiting_on.as_ref().is_some_and(|wait| wait.paused.is_some());
        let verb = if is_paused { "resume it" } else { "start one" };
        lines.push(styled(FAINT, &format!("  {verb}: {next}")));
        lines.push(styled(FAINT, &format!("  or {SERVE_ALL}")));
    }
    lines
}

/// Narrower terminals show no roles, and less of titles.
const COLUMNS_USUAL: usize = 72;

/// The most and the fewest characters of a title.
const TITLE_MAX: usize = 40;

const TITLE_MIN: usize = 12;

/// The columns of a narrow terminal that are left for all but the title of a step.
const STATE_COLUMNS: usize = 36;

/// The most joins whose branches are shown.
const JOINS_MAX: usize = 4;

/// Says where the branches into a join stand: `branches into "merge": 1 joined, 2 under way (4, 5), 1 queued`.
fn join_line(view: &RunView, join: &JoinView) -> String {
    let name = |node: &String| match view.steps.iter().find(|step| step.node == *node) {
        Some(step) => step.number.to_string(),
        None => show::safe(node),
    };
    let counted = BranchState::ALL.iter().filter_map(|state| {
        let own: Vec<&BranchView> = join.branches.iter().filter(|branch| branch.state == *state).collect();
        let mut at: Vec<String> = own.iter().flat_map(|branch| &branch.at).map(name).collect();
        let more = at.len().saturating_sub(BRANCHES_NAMED_MAX);
        at.truncate(BRANCHES_NAMED_MAX);
        if more > 0 {
            at.push("…".to_owned());
        }
        let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(", ")) };
        (!own.is_empty()).then(|| format!("{} {}{at}", own.len(), state.as_str()))
    });
    let counted: Vec<String> = counted.collect();
    let title = show::brief(&show::safe(&join.title), 40);
    let any = if join.policy == "any" { ", any of which suffices" } else { "" };
    format!("    branches into \"{title}\"{any}: {}", counted.join(", "))
}

/// The most nodes of branches in one state that are named.
const BRANCHES_NAMED_MAX: usize = 6;

pub(super) fn activity_line(activity: &Activity) -> String {
    let who = if activity.is_gate { "contract" } else { "worker" };
    let step = activity.step.map(|step| format!("step {step} ")).unwrap_or_default();
    let mut text = format!("       {step}{who} {}", show::span(activity.since.elapsed()));
    if let Some(at) = activity.printed_at {
        text.push_str(&format!(" · last output {} ago", show::span(at.elapsed())));
    }
    if let Some(line) = &activity.last_line {
        text.push_str(&format!(" · {}", gutter::quoted(line, 60)));
    }
    styled(FAINT, &text)
}

fn window(steps: &[StepView], steps_max: usize) -> (usize, usize) {
    if steps.len() <= steps_max {
        return (0, steps.len());
    }
    let at = steps.iter().position(|step| !step.state.is_settled()).unwrap_or(steps.len());
    let from = at.saturating_sub(steps_max / 2).min(steps.len() - steps_max);
    (from, from + steps_max)
}

/// Columns of the steps that are shown together.
#[derive(Clone, Copy)]
struct Widths {
    number: usize,
    title: usize,
    has_role: bool,
}

fn step_line(step: &StepView, widths: Widths, now_unix_seconds: f64, is_left_alone: bool) -> String {
    let (mark, style) = show::step_mark(step.state);
    let title = show::brief(&show::safe(&step.title), widths.title);
    let pad = " ".repeat(widths.title.saturating_sub(title.chars().count()));
    let role = widths.has_role.then(|| format!("{:<8}", show::safe(&step.role)));
    let mut parts: Vec<String> = role.into_iter().collect();
    let since =
        step.since.as_deref().and_then(show::unix_seconds).map(|since| (now_unix_seconds - since).max(0.0));
    match step.state {
        StepState::Pending => {}
        StepState::Passed => parts.push(styled(FAINT, &spent_words(step))),
        // Its own run says how far it is, and who it waits for.
        StepState::Working | StepState::Checking if step.run.is_some() => {
            parts.push(format!("runs as {}", show::safe(step.run.as_deref().unwrap_or_default())));
        }
        StepState::Working | StepState::Checking if is_left_alone => {
            parts.push(styled(CARE, "interrupted"));
            parts.push(attempt_words(step));
        }
        StepState::Working | StepState::Checking if step.trouble.is_none() => {
            let time =
                since.map(|seconds| format!(" {}", show::span(Duration::from_secs_f64(seconds.min(1e9)))));
            parts.push(format!("{}{}", show::step_state(step.state), time.unwrap_or_default()));
            parts.push(attempt_words(step));
        }
        StepState::Working
        | StepState::Checking
        | StepState::Ready
        | StepState::Resting
        | StepState::Waiting => {
            parts.push(styled(CARE, &show::step_words(step, now_unix_seconds)));
            parts.push(attempt_words(step));
        }
        StepState::Failed | StepState::Skipped | StepState::Waived | StepState::Warned => {
            parts.push(styled(CARE, show::step_state(step.state)));
        }
    }
    if step.visits > 1 {
        parts.push(styled(FAINT, &format!("visit {} of {}", step.visits, step.visits_allowed)));
    }
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let (number, title, parts) = (step.number, styled(BOLD, &title), parts.join("  "));
    format!("  {style}{mark}{style:#} {number:<wide$} {title}{pad}  {parts}", wide = widths.number)
}

fn attempt_words(step: &StepView) -> String {
    if step.attempts == 0 {
        return String::new();
    }
    format!("attempt {} of {}", step.attempts, step.attempts_allowed.max(step.attempts))
}

fn spent_words(step: &StepView) -> String {
    let mut parts = vec![show::seconds(step.spent.seconds)];
    if step.spent.tokens > 0 {
        parts.push(format!("{} tok", show::tokens(step.spent.tokens)));
    }
    if step.spent.usd > 0.0 {
        parts.push(format!("${:.2}", step.spent.usd));
    }
    if step.attempts > 1 {
        parts.push(format!("{} attempts", step.attempts));
    }
    parts.join("  ")
}

/// Says that nobody works on a run; the process that draws it may, before it is known to.
fn is_left_alone(view: &RunView, look: &Look) -> bool {
    look.ctrl_c != Some(CtrlC::Stops) && show::is_left_alone(view.state, view.worked_on_by)
}

/// Says what a run waits for, or how to leave it. A picture that is not drawn anew has its run's state above it, and the next
/// command below.
fn footer(view: &RunView, look: &Look) -> Option<String> {
    let is_live = look.ctrl_c.is_some();
    let Some(wait) = &view.waiting_on else {
        if is_left_alone(view, look) {
            let resume =
                next::typed_in(&format!("planctl resume {}", show::shell_word(&view.run)), &view.workspace);
            let line = format!("{}: {resume}", show::LEFT_ALONE);
            return is_live.then(|| styled(CARE, &line));
        }
        return look.ctrl_c.map(|ctrl_c| match (view.state.is_over(), ctrl_c) {
            (true, _) => show::run_state(view.state).to_owned(),
            (false, CtrlC::Stops) => styled(FAINT, "Ctrl-C stops it"),
            (false, CtrlC::Leaves) => styled(FAINT, "Ctrl-C leaves it; the run goes on"),
        });
    };
    Some(match (wait.id, &wait.run, &wait.role) {
        (Some(id), _, _) if is_live => {
            styled(CARE, &next::commands_here(&format!("waiting for you: planctl approvals show {id}")))
        }
        (Some(_), _, _) => styled(CARE, "waiting for you"),
        (None, Some(run), _) if wait.lock.is_some() => {
            let lock = wait.lock.as_deref().unwrap_or_default();
            format!("waiting for the lock {}, which run {} has", show::safe(lock), show::safe(run))
        }
        (None, Some(run), _) if wait.kind == "ending" => {
            format!("waiting for run {}, whose agent is being ended", show::safe(run))
        }
        (None, Some(run), _) => format!("waiting for run {}, which has the workspace", show::safe(run)),
        (None, None, Some(_)) if let Some(line) = worker_line(wait) => line,
        (None, None, _) => return is_live.then(|| show::run_state(view.state).to_owned()),
    })
}
