//! The words of answers for people: states, amounts, times and texts of strangers, the same at every door.

use std::fmt::Write as _;
use std::time::Duration;

use planctl_view::strip_terminal_sequences;

use crate::wire::{
    AskView, AttemptSummary, BlocksView, BudgetView, ChangedFile, ContractView, DayBudgetView, DeadlineView,
    LevelView, OptionView, PassageView, RunState, SpentView, StepState, StepView, WorkedOnBy,
};

/// The words about a run that would go on and that nobody works on.
pub const LEFT_ALONE: &str = "nobody works on it";

/// The longest rest that is shown in numbers; where there is more, the time it is drawn for is not known.
const REST_SECONDS_MAX: f64 = 3600.0;

/// The most characters of a line that differs.
const LINE_CHARACTERS: usize = 60;

/// Makes one line safe to print: control, direction-changing and invisible characters show as `\u{…}`.
///
/// Titles, notes, outputs and file names come from strangers; raw, they could rewrite what the terminal shows.
pub fn safe(text: &str) -> String {
    escape(text, false)
}

/// Begins the title of a guard's plan; the command follows.
pub const GUARD_TITLE: &str = "Guard: ";

/// Names a plan: by its path, and a guard by its command, since no person knows the file that a guard has.
pub fn plan(path: &str, title: &str) -> String {
    match title.strip_prefix(GUARD_TITLE) {
        Some(command) if is_of_guard(path) => format!("guard '{}'", safe(command)),
        Some(_) | None => safe(path),
    }
}

/// Names the run or the draft that asks.
pub fn asker(ask: &AskView) -> String {
    match (&ask.run, &ask.draft) {
        (Some(run), _) => safe(run),
        (None, Some(draft)) => format!("draft {}", safe(draft)),
        (None, None) => "a draft".to_owned(),
    }
}

/// Names the plan that an ask is about, or the goal of a draft.
pub fn asked_about(ask: &AskView) -> String {
    match ask.draft {
        Some(_) => format!("\"{}\"", safe(&brief(&ask.title, LINE_CHARACTERS))),
        None => plan(&ask.plan, &ask.title),
    }
}

/// Says whether a plan is the file of a guard, `guide/…/guard-1.md` in a state directory: no workspace has it.
pub fn is_of_guard(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let file = parts.next().is_some_and(|file| file.starts_with("guard-") && file.ends_with(".md"));
    path.starts_with('/') && file && parts.nth(1) == Some("guide")
}

/// Stands for the name of a rule where the plan's own text answers an ask.
const PLAN_TEXT: &str = "the plan";

/// Names the policy or the rule that decided, where one did.
pub fn policy(by: &str) -> Option<String> {
    let actor = planctl_engine::Actor::from(by);
    actor.policy_name().map(|name| match name {
        PLAN_TEXT => PLAN_TEXT.to_owned(),
        name => format!("the policy {}", safe(name)),
    })
}

/// Says when an ask is answered that nobody has answered, by what, and how.
pub fn deadline(deadline: &DeadlineView) -> String {
    let by = match deadline.rule.as_str() {
        PLAN_TEXT => PLAN_TEXT.to_owned(),
        rule => format!("the rule {}", safe(rule)),
    };
    format!("Where nobody answers until {}, {by} answers {}.", safe(&deadline.at), safe(&deadline.answer))
}

/// Makes a text of several lines safe to print; line breaks and tabs stay.
pub fn safe_block(text: &str) -> String {
    escape(text, true)
}

/// Makes what a program printed safe to print, without terminal sequences.
pub fn printed_block(text: &str) -> String {
    escape(&strip_terminal_sequences(text), true)
}

/// Makes a part of a plan safe to print, with stars in place of text that looks like a credential (P604).
pub fn plan_block(text: &str) -> String {
    escape(&planctl_lang::masked(text), true)
}

fn escape(text: &str, is_block: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\n' | '\t' if is_block => shown.push(character),
            '\r' if is_block && rest.peek() == Some(&'\n') => {}
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            other if planctl_lang::is_hidden(other) => {
                write!(shown, "\\u{{{:x}}}", u32::from(other)).unwrap_or(())
            }
            other => shown.push(other),
        }
    }
    shown
}

/// Shortens a text to a number of characters.
pub fn brief(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(characters_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Returns the last lines of a text.
pub fn last_lines(text: &str, lines_max: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(lines_max)..].to_vec()
}

/// Returns a span of time as people say it: `4m31s`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..=9 => format!("{:.1}s", time.as_secs_f64()),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Returns seconds as people say them; a value that is no time counts as none.
pub fn seconds(seconds: f64) -> String {
    span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Returns US dollars as people say them.
pub fn dollars(usd: f64) -> String {
    format!("${usd:.2}")
}

/// Returns an amount of a part of a budget (`tokens`, `usd`, `seconds`) as people say it.
pub fn amount(part: &str, amount: f64) -> String {
    match part {
        "usd" => dollars(amount),
        "seconds" => seconds(amount),
        _ => format!("{} tokens", tokens(amount as u64)),
    }
}

/// Returns a number of tokens as people say it: `88k`.
pub fn tokens(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        10_000..=999_999 => format!("{}k", count / 1000),
        _ => format!("{:.1}M", count as f64 / 1_000_000.0),
    }
}

/// Says of how many answers the tokens are estimated: ` (estimated for 2 of them)`; empty where of none.
pub fn estimated_answers(estimated: u32, answers: u32) -> String {
    match estimated {
        0 => String::new(),
        count if count == answers => " (estimated)".to_owned(),
        count => format!(" (estimated for {count} of them)"),
    }
}

/// Returns a number of bytes as people say it: `4.0 GiB`.
pub fn bytes(count: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| count >= *unit) {
        Some((word, unit)) => format!("{:.1} {word}", count as f64 / *unit as f64),
        None => format!("{count} bytes"),
    }
}

/// Returns the usage that there was, and its limit.
pub fn cost(spent: &SpentView, budget: &BudgetView) -> String {
    let used = BudgetView {
        tokens: budget.tokens.filter(|_| spent.tokens > 0),
        usd: budget.usd.filter(|_| spent.usd > 0.0),
        seconds: budget.seconds,
    };
    whole_cost(&SpentView { unmetered: 0, ..*spent }, &used)
}

/// Returns the usage and the limit of everything that is limited, and how many attempts said nothing about theirs.
pub fn whole_cost(spent: &SpentView, budget: &BudgetView) -> String {
    let mut parts = vec![of(seconds(spent.seconds), budget.seconds.map(seconds))];
    if spent.tokens > 0 || budget.tokens.is_some() {
        let cached = spent.cached_tokens.filter(|cached| *cached > 0);
        let cached = cached.map(|cached| format!(" ({} cached)", tokens(cached))).unwrap_or_default();
        let estimated = match spent.estimated_tokens.filter(|estimated| *estimated > 0) {
            None => String::new(),
            Some(estimated) if estimated >= spent.tokens => " (estimated)".to_owned(),
            Some(estimated) => format!(" ({} estimated)", tokens(estimated)),
        };
        let used = of(format!("{} tok", tokens(spent.tokens)), budget.tokens.map(tokens));
        parts.push(format!("{used}{cached}{estimated}"));
    }
    if spent.usd > 0.0 || budget.usd.is_some() {
        let money = of(dollars(spent.usd), budget.usd.map(dollars));
        parts.push(format!("{money}{}", estimated(spent)));
    }
    if spent.unmetered > 0 {
        parts.push(format!("{} unmetered", spent.unmetered));
    }
    parts.join(" · ")
}

/// Returns what was used today of a budget that runs share, its limits, and when it begins anew. Where budgets of several
/// workspaces are shown, each names its own.
pub fn day_budget(day: &DayBudgetView, has_workspaces: bool, now_unix_seconds: f64) -> String {
    let limit = &day.limit;
    let used_tokens = format!("{} tok", tokens(day.tokens));
    let parts = [
        limit.tokens.map(|limit| of(used_tokens, Some(tokens(limit)))),
        limit.usd.map(|limit| of(dollars(day.usd), Some(dollars(limit)))),
        unix_seconds(&day.renews_at).map(|at| format!("renews in {}", seconds(at - now_unix_seconds))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let whose = match (day.of.as_str(), has_workspaces) {
        ("host", false) => "this machine".to_owned(),
        ("host", true) => format!("the machine, as {} sets it", safe(&day.workspace)),
        (_, false) => "this project".to_owned(),
        (_, true) => safe(&day.workspace),
    };
    format!("today's budget of {whose}: {}", parts.join(" · "))
}

/// Says how much of the money is an estimate: none, a part, or all of it.
fn estimated(spent: &SpentView) -> String {
    match spent.estimated_usd.filter(|usd| *usd > 0.0) {
        None => String::new(),
        Some(usd) if usd >= spent.usd => " (estimated)".to_owned(),
        Some(usd) => format!(" ({} estimated)", dollars(usd)),
    }
}

fn of(used: String, limit: Option<String>) -> String {
    limit.map_or(used.clone(), |limit| format!("{used} of {limit}"))
}

/// Returns the line of a failed command's output that says why it failed, else the last one that says anything.
pub fn telling_line(stderr: &str, stdout: &str) -> Option<String> {
    planctl_view::telling_line(stderr, stdout)
}

/// Returns a budget as people say it.
pub fn budget(budget: &BudgetView) -> String {
    let parts = [
        budget.tokens.map(|count| format!("{} tokens", tokens(count))),
        budget.usd.map(dollars),
        budget.seconds.map(seconds),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no budget".to_owned() } else { parts.join(" · ") }
}

/// Returns where a run stands, in the words of people.
pub fn run_state(state: RunState) -> &'static str {
    match state {
        RunState::AwaitingApproval => "waiting for approval",
        RunState::Queued => "queued",
        RunState::Running => "running",
        RunState::Waiting => "waiting for you",
        RunState::Paused => "paused",
        RunState::Done => "done",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
    }
}

/// Says that a run would go on and nobody is there to work on it.
pub fn is_left_alone(state: RunState, worked_on_by: Option<WorkedOnBy>) -> bool {
    matches!(state, RunState::Queued | RunState::Running) && worked_on_by.is_none()
}

/// Returns where a step stands, in the words of people (HOUSE 3.10).
pub fn step_state(state: StepState) -> &'static str {
    match state {
        StepState::Pending => "not started",
        StepState::Ready => "waiting for a worker",
        StepState::Working => "working",
        StepState::Checking => "checking",
        StepState::Resting => "resting before the next try",
        StepState::Waiting => "waiting for you",
        StepState::Passed => "passed",
        StepState::Failed => "failed",
        StepState::Skipped => "skipped",
        StepState::Waived => "waived",
        StepState::Warned => "warned",
    }
}

/// Returns where a step stands, and whether that is up to the session of an interactive agent.
pub fn stage_words(step: &StepView) -> &'static str {
    let is_up_to_session = step.guided && step.state == StepState::Ready;
    if is_up_to_session { "waiting for your session" } else { step_state(step.state) }
}

/// Returns where a step stands and what it waits for, in the words of people (INTERFACE ★12).
pub fn step_words(step: &StepView, now_unix_seconds: f64) -> String {
    match (&step.lock, &step.trouble) {
        (Some(lock), _) if step.state == StepState::Ready => {
            format!("waiting for the lock {}, which run {} has", safe(&lock.name), safe(&lock.run))
        }
        (_, Some(trouble)) if step.state == StepState::Resting => {
            let until = step.since.as_deref().and_then(unix_seconds);
            let left = until.map(|until| (until - now_unix_seconds).ceil());
            let left = left.filter(|left| (1.0..=REST_SECONDS_MAX).contains(left));
            let soon = left.map_or("soon".to_owned(), |left| format!("in {left:.0} s"));
            format!("retrying {soon}: {}", safe(&brief(trouble, 100)))
        }
        (_, Some(trouble)) if step.state == StepState::Working => {
            let since = step.since.as_deref().and_then(unix_seconds);
            let time = since.map(|since| format!(", for {}", seconds((now_unix_seconds - since).max(0.0))));
            format!("{}{}", safe(&brief(trouble, 120)), time.unwrap_or_default())
        }
        _ => stage_words(step).to_owned(),
    }
}

/// Reads a moment as it stands in JSON.
pub fn unix_seconds(moment: &str) -> Option<f64> {
    let at = time::OffsetDateTime::parse(moment, &time::format_description::well_known::Rfc3339).ok()?;
    Some(at.unix_timestamp_nanos() as f64 / 1e9)
}

/// Says which PACE level handles a step, and why.
pub fn level(level: &LevelView) -> String {
    let reason = level.reason.replace('_', " ");
    let who =
        if level.responder == "human" { "a person".to_owned() } else { format!("the {}", level.responder) };
    safe(&format!(
        "PACE {}: {who} answers; the {} had it before ({reason} after attempt {})",
        level.level, level.from, level.after_attempts
    ))
}

/// Says with what a contract passes: `exit code 0, at least 12 tests`.
pub fn passes_with(contract: &ContractView) -> String {
    let tests = contract.min_tests.map(|least| format!(", at least {}", counted(least as usize, "test")));
    format!("exit code {}{}", contract.exit_code, tests.unwrap_or_default())
}

/// Writes a number of things: `1 step`, `2 steps`.
pub fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// Says what a run does without, since a person went on past joins whose branches were not merged.
pub fn left_out(passages: &[PassageView]) -> Option<String> {
    let joins = passages.iter().filter(|node| node.leaves_out);
    let joins: Vec<String> = joins.map(|join| format!("\"{}\"", safe(&join.title))).collect();
    (!joins.is_empty()).then(|| {
        format!(
            "nothing that the branches did is in the workspace: no merge at the join {}",
            joins.join(", ")
        )
    })
}

/// Says what the pass of a step is worth, where that is less than a contract that failed before the work and passed after it.
pub fn caveat(step: &StepView) -> Option<String> {
    if step.vacuous {
        return Some(vacuous(step.state));
    }
    match step.grade.as_deref().filter(|_| step.state == StepState::Passed) {
        Some("observed") => {
            Some("observed, not proved: the agent's own program reported the output".to_owned())
        }
        Some("judged") => Some("judged, not proved: a model alone says so".to_owned()),
        Some(_) | None => None,
    }
}

/// Says of a step whose contract passed before the work, too, what its pass is worth.
pub fn vacuous(state: StepState) -> String {
    match state {
        StepState::Passed => format!("passed, but {}", planctl_view::VACUOUS),
        StepState::Pending
        | StepState::Ready
        | StepState::Working
        | StepState::Checking
        | StepState::Resting
        | StepState::Waiting
        | StepState::Failed
        | StepState::Skipped
        | StepState::Waived
        | StepState::Warned => {
            "its contract passed before the work, so its pass would prove nothing".to_owned()
        }
    }
}

/// Says how long ago a moment of JSON was: `4m31s ago`.
pub fn ago(moment: &str, now_unix_seconds: f64) -> String {
    age(moment, now_unix_seconds).map_or_else(|| safe(moment), |age| format!("{age} ago"))
}

/// Returns how old a moment of JSON is: `4m31s`, `3d`.
pub fn age(moment: &str, now_unix_seconds: f64) -> Option<String> {
    let age = (now_unix_seconds - unix_seconds(moment)?).max(0.0);
    let days = age / 86_400.0;
    Some(if days < 2.0 { seconds(age) } else { format!("{days:.0}d") })
}

/// Says what follows when an option is chosen.
pub fn follows(option: &OptionView) -> String {
    let title = option.title.as_deref().map(safe);
    match (option.number, title) {
        (Some(number), Some(title)) => format!("  → step {number} \"{title}\""),
        (Some(number), None) => format!("  → step {number}"),
        (None, Some(title)) => format!("  → {title}"),
        (None, None) => String::new(),
    }
}

/// Says what waits for an answer: `7 steps and 2 other runs`.
pub fn blocked(blocks: BlocksView) -> String {
    let counted = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let steps = (blocks.steps > 0).then(|| counted(blocks.steps, "step"));
    let others = blocks.runs.saturating_sub(1);
    let others = (others > 0).then(|| counted(others, "other run"));
    match (steps, others) {
        (Some(steps), Some(others)) => format!("{steps} and {others}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => counted(blocks.runs, "run"),
    }
}

/// Says how the contract's output at an attempt compares with that of earlier ones; empty where nothing can be said.
pub fn compared(attempt: &AttemptSummary) -> String {
    match (attempt.same_as, &attempt.first_difference) {
        (Some(same), _) => format!("as at attempt {same}, numbers aside"),
        (None, Some(line)) => {
            let line = safe(&brief(line.trim(), LINE_CHARACTERS)).replace('"', "'");
            format!("new: \"{line}\"")
        }
        (None, None) => String::new(),
    }
}

/// Says how a file of a workspace changed: `+3 -1`, and whether a contract is judged by it.
pub fn changed(file: &ChangedFile) -> String {
    let counts = match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!("+{added} -{removed}"),
        (_, _) => "no text".to_owned(),
    };
    let protected = match (file.protected, file.may_change) {
        (true, true) => "  judges a contract; this step may change it",
        (true, false) => "  protected: judges a contract",
        (false, _) => "",
    };
    format!("{counts}{protected}")
}

/// Returns the words that answer an ask. Only by hand a plan is revised, or a step put into it; these words do that.
pub fn answer_words(ask: &AskView) -> Vec<&str> {
    let is_revisable = ask.answers.iter().any(|word| word == "revise");
    let mut words: Vec<&str> = ask.answers.iter().map(String::as_str).collect();
    if ask.kind == "insertion" {
        words.retain(|word| *word != "revise");
        words.insert(0, "approve");
    }
    if is_revisable {
        words.push("edit");
    }
    words
}

/// Says what follows from an answer.
pub fn answer_meaning(ask: &AskView, word: &str) -> &'static str {
    let is_proposal = ask.kind == "insertion";
    match word {
        "choose" => "answer in your own words",
        "approve" if is_proposal => "put it into the plan, and go on",
        "reject" if is_proposal => "leave it out; what was reported counts as it stands",
        "approve" if ask.kind == "prompt" => "let this prompt be sent, and no other",
        "reject" if ask.kind == "prompt" && ask.draft.is_some() => "send nothing; the draft stops here",
        "reject" if ask.kind == "prompt" => "send nothing; the step goes on as its on_fail says",
        "approve" if ask.kind == "synthesis" => "let an agent write it, as a step of the plan",
        "reject" if ask.kind == "synthesis" => "look for another way",
        "answer" if ask.draft.is_some() => "answer in your own words",
        "edit" => "change the plan in your editor, and go on with it",
        "approve" => "let it run",
        "reject" => "do not let it run",
        "retry" if ask.reason == "not_red" => "run the contract once more before the work",
        "retry" if ask.reason == "conflict" => "merge once more, with the files as you edited them",
        "retry" if ask.role.is_none() => "try once more",
        "retry" => "try once more, with your note in the prompt",
        "allow" => "accept the protected files as they were found, for this step; its contract judges",
        "restore" => "put the approved copies back, and try once more",
        "skip" if ask.is_of_branches => "go on without anything that the branches did: none of it is merged",
        "skip" => "leave the step out",
        "waive" => "let it count as met, on record as yours",
        "reassign" => "give it to another role",
        "revise" => "pause until a changed plan is approved",
        "abort" => "end the run for good",
        "raise" => "add to the budget",
        "answer" => "answer the worker",
        _ => "",
    }
}

/// Returns the command that gives an answer: a run is cancelled, whatever the engine calls it.
pub fn answer_command(answer: &str) -> &str {
    if answer == "abort" { "cancel" } else { answer }
}

/// Says whether an answer needs a note: why, or words for the worker.
pub fn answer_needs_note(ask: &AskView, word: &str) -> bool {
    match word {
        "reject" => ask.kind != "insertion",
        "retry" | "skip" | "waive" | "abort" | "answer" => true,
        _ => false,
    }
}
