//! Small pieces of text and addresses that templates need.

mod cut;

use std::borrow::Borrow;
use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use planctl_api::wire::drafting::DraftingState;
use planctl_api::wire::{
    AskView, AttemptView, BudgetView, DayBudgetView, DriftView, GateView, Health, RunState, RunSummary,
    SpentView, StepState, StepView, TimelineLane, WaitingOn, WorkedOnBy,
};
use planctl_api::{Problem, words};

pub use cut::{Part, diff_lines, plan_part, printed_part, tail, tail_marked};

// Templates pass what they name by reference.

/// Says how long ago a moment was.
pub fn ago(moment: &str, now_seconds: &f64) -> String {
    let is_this_second = words::unix_seconds(moment).is_some_and(|at| now_seconds - at < 1.0);
    if is_this_second { "just now".to_owned() } else { words::ago(moment, *now_seconds) }
}

/// Says how long it is from a moment to another.
pub fn duration_between(from: &str, until: &str) -> String {
    let seconds = |moment| words::unix_seconds(moment).unwrap_or_default();
    words::seconds((seconds(until) - seconds(from)).max(0.0))
}

/// Returns where a run stands.
pub fn run_state(state: &RunState) -> &'static str {
    words::run_state(*state)
}

/// Returns where a step stands.
pub fn step_state(state: &StepState) -> &'static str {
    words::step_state(*state)
}

/// How much of a part of a budget was used.
pub struct Share {
    /// The part, as people name it.
    pub part: &'static str,
    /// The used amount of the limit, in words.
    pub words: String,
    /// Of a hundred; more where it was exceeded.
    pub percent: u64,
}

impl Share {
    /// Returns its class in the stylesheet.
    pub fn class(&self) -> &'static str {
        match self.percent {
            0..80 => "ample",
            80..100 => "short",
            _ => "spent",
        }
    }
}

/// Returns the limited parts of a budget.
pub fn shares(spent: &SpentView, budget: &BudgetView) -> Vec<Share> {
    let share = |part: &'static str, used: f64, limit: Option<f64>, words: &dyn Fn(f64) -> String| {
        let limit = limit.filter(|limit| *limit > 0.0)?;
        let words = format!("{} of {}", words(used), words(limit));
        Some(Share { part, words, percent: truncated((used / limit * 100.0).floor()) })
    };
    let tokens = |count: f64| words::tokens(truncated(count));
    let parts = [
        share("time", spent.seconds, budget.seconds, &words::seconds),
        share("tokens", spent.tokens as f64, budget.tokens.map(|tokens| tokens as f64), &tokens),
        share("money", spent.usd, budget.usd, &|usd| dollars(&usd)),
    ];
    parts.into_iter().flatten().collect()
}

/// Returns the limited parts of a day's budget.
pub fn day_shares(day: &DayBudgetView) -> Vec<Share> {
    shares(&SpentView { tokens: day.tokens, usd: day.usd, ..SpentView::default() }, &day.limit)
}

/// Says which runs share a day's budget.
pub fn day_sharers(day: &DayBudgetView) -> String {
    match day.of.as_str() {
        "host" => "for all runs of its machine".to_owned(),
        _ => format!("for the runs of {}", words::safe(&day.workspace)),
    }
}

/// Returns the part of a budget of which most is used, where that is worth a look: half of it and more.
pub fn scarcest(spent: &SpentView, budget: &BudgetView) -> Option<Share> {
    let shares = shares(spent, budget).into_iter().filter(|share| share.percent >= 50);
    shares.max_by_key(|share| share.percent)
}

/// Says in a few words what a run in a list waits for.
pub fn waits_briefly(waits: &WaitingOn) -> String {
    let named = |name: &Option<String>| name.as_deref().map(words::safe).unwrap_or_default();
    match (waits.id, waits.kind.as_str()) {
        (Some(id), kind) => format!("waits for you: {kind} {id}"),
        (None, "worker") => match &waits.paused {
            Some(worker) => format!("waits for the worker {}, which is paused", words::safe(worker)),
            None => format!("waits for a worker of the role {}", named(&waits.role)),
        },
        (None, "workspace") => match &waits.run {
            Some(run) => format!("waits for the workspace, which {} has", words::safe(run)),
            None => "waits for its turn".to_owned(),
        },
        (None, "lock") => format!("waits for the lock {}", named(&waits.lock)),
        (None, "ending") => format!("waits for the end of an agent of {}", named(&waits.run)),
        (None, "worktree") => "its worktree could not be made".to_owned(),
        (None, "revision") => "paused".to_owned(),
        (None, other) => format!("waits for: {}", words::safe(other)),
    }
}

/// Returns the lines of a text that are not empty.
pub fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(words::safe).collect()
}

/// Shows a value that a filter offers: a word of programs as people write it, anything else as it is.
pub fn choice(value: &str) -> String {
    words::safe(if value == "awaiting_approval" { "awaits approval" } else { value })
}

/// Names the page of a step: by its number, or by its node where it has none.
pub fn step_name(lane: &TimelineLane) -> String {
    lane.number.map_or_else(|| encoded(&lane.node), |number| number.to_string())
}

/// Returns seconds as people say them.
pub fn seconds(seconds: &f64) -> String {
    words::seconds(*seconds)
}

/// Returns a number of tokens as people say it.
pub fn tokens(count: &u64) -> String {
    words::tokens(*count)
}

/// Returns a number of bytes as people say it.
pub fn bytes(count: &u64) -> String {
    words::bytes(*count)
}

/// Returns how long a text is.
pub fn length(text: &str) -> String {
    words::bytes(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

/// Writes a number of things.
pub fn counted(count: impl Borrow<usize>, word: &str) -> String {
    words::counted(*count.borrow(), word)
}

/// Says that a run would go on and nobody is there to work on it.
pub fn is_left_alone(state: &RunState, worked_on_by: &Option<WorkedOnBy>) -> bool {
    words::is_left_alone(*state, *worked_on_by)
}

/// Shortens a text.
pub fn brief(text: &str, characters_max: impl Borrow<usize>) -> String {
    words::brief(text, *characters_max.borrow())
}

/// Shortens a stranger's text to one safe line.
pub fn line(text: &str, characters_max: usize) -> String {
    words::safe(&words::brief(text, characters_max))
}

/// Lists strangers' names.
pub fn list(names: &[String]) -> String {
    words::safe(&names.join(", "))
}

/// Says what changed of a plan.
pub fn change(change: &impl Display) -> String {
    words::safe(&change.to_string())
}

/// Makes a whole output safe to open with any program.
pub fn safe_text(text: &str) -> String {
    words::printed_block(text)
}

/// Returns the time of day of a moment: `12:31:05`.
pub fn clock(moment: &str) -> &str {
    moment.get(11..19).unwrap_or(moment)
}

/// Returns the day and minute of a moment: `2026-11-25 12:31`.
pub fn minute(moment: &str) -> String {
    moment.get(..16).unwrap_or(moment).replace('T', " ")
}

/// Returns the day of a moment: `2026-11-25`.
pub fn day(moment: &str) -> &str {
    moment.get(..10).unwrap_or(moment)
}

/// Returns an age in seconds as people say it.
pub fn age(seconds: &u64) -> String {
    words::seconds(*seconds as f64)
}

/// Returns US dollars as people say them.
pub fn dollars(usd: &f64) -> String {
    words::dollars(*usd)
}

/// Returns an amount of a part of a budget as people say it.
pub fn amount(part: &str, amount: &f64) -> String {
    words::amount(part, *amount)
}

/// Writes an amount as a form takes it, where time is in minutes; it is rounded up.
pub fn form_amount(part: &str, amount: f64) -> String {
    match part {
        "usd" => format!("{:.2}", (amount * 100.0).ceil() / 100.0),
        "seconds" => truncated((amount / 60.0).ceil()).to_string(),
        _ => truncated(amount.ceil()).to_string(),
    }
}

fn truncated(amount: f64) -> u64 {
    amount as u64
}

/// Returns the beginning of a commit's name.
pub fn short_commit(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// Returns the beginning of a digest.
pub fn short_digest(digest: &str) -> &str {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    hex.get(..12).unwrap_or(hex)
}

/// Names who approved: a person, or a policy.
pub fn approver(by: &str) -> String {
    words::policy(by).unwrap_or_else(|| words::safe(by))
}

/// Returns the class of what a check of the machine found.
pub fn health_phase(health: &Health) -> &'static str {
    match health {
        Health::Good => "done",
        Health::Absent => "ahead",
        Health::Warning => "waiting",
        Health::Problem => "failed",
    }
}

/// Returns the sign of what a check of the machine found.
pub fn health_sign(health: &Health) -> &'static str {
    sign(health_phase(health))
}

/// Says what a check of the machine found.
pub fn health_word(health: &Health) -> &'static str {
    match health {
        Health::Good => "good",
        Health::Absent => "not needed",
        Health::Warning => "warning",
        Health::Problem => "problem",
    }
}

/// Returns the class of a run's state.
pub fn run_phase(state: &RunState) -> &'static str {
    match state {
        RunState::AwaitingApproval | RunState::Waiting | RunState::Paused => "waiting",
        RunState::Queued => "ahead",
        RunState::Running => "current",
        RunState::Done => "done",
        RunState::Failed => "failed",
        RunState::Cancelled => "ended",
    }
}

/// Returns the sign of a run's state.
pub fn run_sign(state: &RunState) -> &'static str {
    sign(run_phase(state))
}

/// Returns the class of a step's state.
pub fn step_phase(state: &StepState) -> &'static str {
    match state {
        StepState::Pending => "ahead",
        StepState::Ready | StepState::Working | StepState::Checking | StepState::Resting => "current",
        StepState::Waiting => "waiting",
        StepState::Passed => "done",
        StepState::Failed => "failed",
        StepState::Skipped | StepState::Waived | StepState::Warned => "ended",
    }
}

/// Returns the class of a draft's state.
pub fn drafting_phase(state: &DraftingState) -> &'static str {
    match state {
        DraftingState::Working => "current",
        DraftingState::Done => "done",
        DraftingState::Waiting => "waiting",
        DraftingState::GivenUp | DraftingState::Failed | DraftingState::Interrupted => "failed",
    }
}

/// Returns the sign of a draft's state.
pub fn drafting_sign(state: &DraftingState) -> &'static str {
    sign(drafting_phase(state))
}

/// Returns the class of a delivery's state.
pub fn delivery_phase(state: &str) -> &'static str {
    match state {
        "waiting" => "current",
        "delivered" => "done",
        "failed" => "failed",
        _ => "ended",
    }
}

/// Returns the sign of a step's state.
pub fn step_sign(state: &StepState) -> &'static str {
    sign(step_phase(state))
}

fn sign(phase: &str) -> &'static str {
    match phase {
        "current" => "▶",
        "waiting" => "‖",
        "done" => "✓",
        "failed" => "✗",
        "ended" => "–",
        _ => "○",
    }
}

/// Says what a step waits for, where its state alone does not.
pub fn step_more(step: &StepView, now_seconds: &f64) -> Option<String> {
    let words = words::step_words(step, *now_seconds);
    (words != words::step_state(step.state)).then_some(words)
}

/// Says what a run waits for that nobody answers on a page.
pub fn waits_for(waits: &WaitingOn) -> String {
    let named = |name: &Option<String>| name.as_deref().map(words::safe).unwrap_or_default();
    match waits.kind.as_str() {
        "worker" => {
            let resumed = |worker| format!(" {} is paused; resume it under System.", words::safe(worker));
            let paused = waits.paused.as_deref().map(resumed);
            format!("It waits for a worker of the role {}.{}", named(&waits.role), paused.unwrap_or_default())
        }
        "workspace" => match &waits.run {
            Some(run) => format!("It waits for the workspace, which {} has.", words::safe(run)),
            None => "It waits for its turn.".to_owned(),
        },
        "lock" => format!("It waits for the lock {}, which {} has.", named(&waits.lock), named(&waits.run)),
        "ending" => format!("It waits for the end of an agent of {}.", named(&waits.run)),
        "worktree" => "Its worktree could not be made; resume it to try again.".to_owned(),
        "revision" => {
            "It is paused until it is resumed, or another revision of its plan is approved.".to_owned()
        }
        other => format!("It waits for: {}", words::safe(other)),
    }
}

/// Returns the title of an ask.
pub fn ask_heading(ask: &AskView) -> String {
    let step = ask.step.as_ref();
    let step = step.map(|step| format!("Step {} “{}”", step.number, words::safe(&step.title)));
    let step = step.unwrap_or_else(|| words::asker(ask));
    match ask.kind.as_str() {
        "plan" => format!("Approve {}?", words::plan(&ask.plan, &ask.title)),
        "question" if ask.draft.is_some() => format!("{step} asks"),
        "question" => format!("{step}: its worker asks"),
        "choice" => format!("{step}: choose"),
        "effect" => format!("{step}: may this call be made?"),
        "insertion" => format!("{step}: a further step is proposed"),
        "prompt" if ask.draft.is_some() => format!("{step}: may this prompt be sent?"),
        "prompt" => format!("{step}: may its judge be asked?"),
        "synthesis" => format!("{step}: may an agent write this?"),
        "budget" => format!("{}: the budget is short", words::asker(ask)),
        "day_budget" => format!("{}: today's budget is used up", words::asker(ask)),
        _ => format!("{step} needs a decision"),
    }
}

/// Returns the reason of an ask in one line.
pub fn ask_about(ask: &AskView) -> &str {
    if ask.about.is_empty() { &ask.asks } else { &ask.about }
}

/// Returns the page of a run in a list.
pub fn run_path(run: &RunSummary) -> String {
    format!("/runs/{}?workspace={}", encoded(&run.run), encoded(&run.workspace))
}

/// Returns where it is acknowledged that a run in a list failed.
pub fn acknowledge_path(run: &RunSummary) -> String {
    format!("/runs/{}/acknowledge?workspace={}", encoded(&run.run), encoded(&run.workspace))
}

/// Returns the page of the run that an ask is about; a draft has none, so that of all asks.
pub fn ask_run_path(ask: &AskView) -> String {
    ask.run_id.as_ref().map_or_else(|| "/".to_owned(), |run| format!("/runs/{run}"))
}

/// Adds a parameter to a query that may be empty.
pub fn joined(query: &str, name: &str, value: impl Display) -> String {
    let mark = if query.is_empty() { '?' } else { '&' };
    format!("{query}{mark}{name}={value}")
}

/// Makes a key of a form's key for one of its rows, with visible characters alone.
pub fn joined_key(key: &str, row: &str) -> String {
    let plain = row.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { '_' });
    format!("{key}.{}", plain.take(100).collect::<String>())
}

/// Writes a text as a part of an address.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// All but the letters that RFC 3986 leaves as they are in every part of an address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the verdict of a gate as people say it.
pub fn verdict(gate: &GateView) -> String {
    let word = gate.verdict.replace('_', " ");
    if gate.vacuous { format!("{word}, but it passed before the work, too") } else { word }
}

/// Says how an attempt ended.
pub fn attempt_words(attempt: &AttemptView) -> String {
    match (&attempt.gate, &attempt.observed, &attempt.work) {
        (Some(gate), _, _) => format!("contract {} ({})", verdict(gate), gate.ending),
        (None, Some(observed), _) if observed.refuted.is_none() => "observed".to_owned(),
        (None, Some(_), _) => "refuted by what was observed".to_owned(),
        (None, None, Some(work)) => {
            format!("the worker ended ({})", work.ending.as_deref().unwrap_or("without a word"))
        }
        (None, None, None) => "nothing was reported".to_owned(),
    }
}

/// Says what a refusal of a decision means to its reader.
pub fn refused_heading(problem: &Problem) -> &'static str {
    match problem.status {
        409 => "This changed while you were reading",
        403 => "You may not decide this here",
        400 | 422 => "Your answer can't be taken as it is",
        _ => "Your answer was not recorded",
    }
}

/// Returns what accepts a protected file as it is.
pub fn accepts(file: &DriftView) -> String {
    match &file.now {
        Some(digest) => format!("{}@{digest}", file.path),
        None => file.path.clone(),
    }
}

/// Says from which content to which a protected file changed.
pub fn drift_words(file: &DriftView) -> String {
    let short = |digest: &Option<String>| digest.as_deref().map_or("absent", short_digest).to_owned();
    format!("{} → {}", short(&file.before), short(&file.now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_what_is_wrong_is_marked_where_it_is_shown() {
        let telling = || Some("FAILED: 401 != 200".to_owned());
        let cut = tail_marked("ok\n\u{1b}[31mFAILED: 401 != 200\u{1b}[0m\nsee log\n", 40, telling());
        assert_eq!(cut.marked(), Some(("ok\n", "FAILED: 401 != 200", "\nsee log")));
        assert_eq!(tail_marked("FAILED: 401 != 200\na\nb\n", 2, telling()).marked(), None, "it is not shown");
        assert_eq!(tail_marked("ok\n", 40, None).marked(), None);
    }

    #[test]
    fn a_difference_says_with_a_sign_and_a_word_what_was_added() {
        let lines = diff_lines("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n");
        let kinds: Vec<&str> = lines.iter().map(|line| line.kind).collect();
        assert_eq!(kinds, ["", "", "hunk", "removed", "added", ""]);
        assert_eq!((lines[4].text.as_str(), lines[4].words), ("new", "added"));
    }

    #[test]
    fn a_run_that_nobody_keeps_from_its_workspace_waits_for_its_turn() {
        let mut waits = WaitingOn { kind: "workspace".to_owned(), ..WaitingOn::default() };
        assert_eq!(
            (waits_for(&waits), waits_briefly(&waits)),
            ("It waits for its turn.".into(), "waits for its turn".into())
        );
        waits.run = Some("fix-1".to_owned());
        assert_eq!(waits_for(&waits), "It waits for the workspace, which fix-1 has.");
    }

    #[test]
    fn a_form_proposes_what_is_needed_and_never_less() {
        let proposed = [("usd", 0.301), ("tokens", 250.4), ("seconds", 61.0)];
        assert_eq!(proposed.map(|(part, amount)| form_amount(part, amount)), ["0.31", "251", "2"]);
        assert_eq!(amount("tokens", &1500.0), "1500 tokens");
    }

    #[test]
    fn an_address_holds_no_letter_that_ends_it() {
        assert_eq!(encoded("/a b/ü&x?"), "%2Fa%20b%2F%C3%BC%26x%3F");
    }
}
