//! A run as it goes: a live view at a terminal, one line per event elsewhere, or the events themselves as JSON lines.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use planctl_api::wire::{
    BranchState, BranchView, EventLine, JoinView, RunView, StepState, StepView, WaitingOn,
};
use planctl_engine::view::{VACUOUS, strip_terminal_sequences, telling_line};
use planctl_server::Activity;
use serde_json::Value;

use crate::attention::Attention;
use crate::drawing::{self, Drawing};
use crate::failure::Failure;
use crate::gutter;
use crate::next::{SERVE_ALL, start_worker};
use crate::show::{self, BOLD, CARE, FAINT, styled};
use crate::terminal;

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Drawn anew in place, on standard error.
    Live,
    /// One line per event, on standard error.
    Plain,
    /// One line per event, on standard output: the answer of the command.
    Answer,
    /// One JSON value per event, on standard output.
    Jsonl,
    /// Not at all.
    Silent,
}

/// Shows a run as it goes.
pub struct Progress {
    manner: Manner,
    ctrl_c: CtrlC,
    drawing: Drawing,
    gates: HashMap<String, Gate>,
    /// The last attempt of a node whose contract did not pass, in words: the story that the end of a run tells.
    failed: HashMap<String, String>,
    /// Nodes whose work went out.
    entered: HashSet<String>,
    /// A node that was entered, and its line, which is dropped if the node waits: a question to a person is not work.
    begins: Option<(String, String)>,
    /// The name of the run that was drawn last.
    run: Option<String>,
    attention: Attention,
}

/// The most lines that the last picture takes; `planctl status RUN` has them all.
const FINAL_LINES_MAX: usize = 66;

/// A node's newest gate before its verdict is read.
#[derive(Clone, Default)]
struct Gate {
    ending: String,
    words: String,
}

impl Progress {
    /// Begins to show a run.
    pub fn new(manner: Manner, ctrl_c: CtrlC) -> Progress {
        Progress {
            manner,
            ctrl_c,
            drawing: Drawing::default(),
            gates: HashMap::new(),
            failed: HashMap::new(),
            entered: HashSet::new(),
            begins: None,
            run: None,
            attention: Attention::default(),
        }
    }

    /// Has a person who watches the live view called where the run needs them, and where it is over.
    #[must_use]
    pub fn with_attention(self, attention: Attention) -> Progress {
        Progress { attention, ..self }
    }

    /// Returns how it is shown.
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// Returns the name of the run that is shown, where it is known.
    pub fn run(&self) -> Option<String> {
        self.run.clone()
    }

    /// Shows an event.
    pub fn event(&mut self, line: &EventLine) -> Result<(), Failure> {
        self.run.get_or_insert_with(|| line.run.clone());
        match self.manner {
            Manner::Jsonl => show::print_json(line),
            Manner::Plain | Manner::Answer => {
                let lines = self.lines(line);
                self.print(lines)
            }
            Manner::Live => {
                self.remember_failure(line);
                Ok(())
            }
            Manner::Silent => Ok(()),
        }
    }

    /// Keeps how an attempt failed, for the last picture.
    fn remember_failure(&mut self, line: &EventLine) {
        let Some(node) = &line.node else { return };
        if line.event == "harness.evaluated" {
            self.gates.insert(node.clone(), Gate::read(&line.data));
        } else if line.event == "node_verified"
            && line.data.get("verdict").is_some_and(|verdict| verdict != "passed")
        {
            let gate = self.gates.get(node).cloned().unwrap_or_default();
            let (attempt, ending) = (line.attempt.unwrap_or(1), gate.ending.replacen('=', " ", 1));
            self.failed.insert(node.clone(), format!("attempt {attempt}: contract{ending}{}", gate.words));
        }
    }

    /// Shows what waited for the events after it, of which there are none as yet.
    pub fn flush_pending(&mut self) -> Result<(), Failure> {
        let lines = self.begins.take().map(|(_, text)| text).into_iter().collect();
        self.print(lines)
    }

    fn print(&self, lines: Vec<String>) -> Result<(), Failure> {
        for text in lines {
            if self.manner == Manner::Answer {
                show::print(&show::folded(&format!("{text}\n")))?;
            } else {
                show::say(&text);
            }
        }
        Ok(())
    }

    // Shows a whole transition: the event that holds back an entered node comes right after it.
    fn lines(&mut self, line: &EventLine) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((node, text)) = self.begins.take() {
            let waits = ["plan_escalated", "ask_opened", "node_queued"].contains(&line.event.as_str());
            if !(waits && line.node.as_deref() == Some(node.as_str())) {
                lines.push(text);
            }
        }
        let own = self.plain(line);
        match (own, &line.node) {
            (Some(text), Some(node)) if line.event == "node_entered" => {
                self.begins = Some((node.clone(), text));
            }
            (own, _) => lines.extend(own),
        }
        lines
    }

    /// Shows where the run stands.
    pub fn draw(&mut self, view: &RunView, now_unix_seconds: f64, activity: Option<&Activity>) {
        self.run = Some(view.run.clone());
        if self.manner == Manner::Live {
            self.attention.call_if_needed(view);
            let (columns, rows) = terminal::size();
            let (lines_max, ctrl_c) = (rows.max(8), Some(self.ctrl_c));
            let mut lines =
                picture(view, &Look { now_unix_seconds, lines_max, columns: Some(columns), ctrl_c });
            if let Some(activity) = activity {
                let above_the_footer = lines.iter().rposition(String::is_empty).unwrap_or(lines.len());
                lines.insert(above_the_footer, activity_line(activity));
            }
            self.drawing.draw(&lines);
        }
    }

    /// Leaves the newest picture on the screen and stops drawing.
    pub fn finish(&mut self, view: &RunView, now_unix_seconds: f64) {
        if self.manner == Manner::Live {
            self.attention.call_if_needed(view);
            self.drawing.clear();
            let (columns, _) = terminal::size();
            let look =
                Look { now_unix_seconds, lines_max: FINAL_LINES_MAX, columns: Some(columns), ctrl_c: None };
            let mut view = view.clone();
            for step in view.steps.iter_mut().filter(|step| step.state == StepState::Passed) {
                step.failure = self.failed.get(&step.node).cloned();
            }
            // The summary comes after it, and says what the last line would.
            let mut lines = picture(&view, &look);
            lines.truncate(lines.iter().rposition(String::is_empty).unwrap_or(lines.len()));
            for line in lines {
                show::say(&drawing::fitted(&line, columns));
            }
        }
    }

    /// Writes a message where the live view is, which is drawn anew below it.
    pub fn say(&mut self, text: &str) {
        self.drawing.clear();
        show::say(text);
    }

    /// Takes the live view off the screen until it is drawn again, for what a person reads and types meanwhile.
    pub fn make_room(&mut self) {
        self.drawing.clear();
    }

    /// Leaves the newest picture on the screen as it is, where no newer one can be had.
    pub fn freeze(&mut self) {
        self.drawing.leave_on_screen();
    }

    fn plain(&mut self, line: &EventLine) -> Option<String> {
        let time = line.at.get(11..19).unwrap_or(&line.at).to_owned();
        let node = line.node.clone().unwrap_or_default();
        if line.event == "harness.evaluated" || line.event == "harness.rehearsed" {
            self.gates.insert(node, Gate::read(&line.data));
            return None;
        }
        let is_step = !node.is_empty() && node.bytes().all(|byte| byte.is_ascii_digit());
        let attempt =
            line.attempt.map(u64::from).or_else(|| line.data.get("attempt")?.as_u64()).filter(|n| *n > 0);
        if line.event == "node_entered" {
            // Without an attempt there is no work.
            attempt?;
            self.entered.insert(node.clone());
        }
        if line.event == "node_settled" && !is_step && !self.entered.contains(&node) {
            // The start and passages settle too; that tells a person nothing.
            return None;
        }
        let what = self.words(line, &node)?;
        let mut text = time;
        if is_step {
            text.push_str(&format!(" step={node}"));
        } else if self.entered.contains(&node) || Self::is_of_graphs(line) {
            text.push_str(&format!(" node={}", show::safe(&node)));
        }
        if let Some(attempt) = attempt {
            text.push_str(&format!(" attempt={attempt}"));
        }
        Some(format!("{text} {what}"))
    }

    /// Says whether an event is one of nodes at which nobody works.
    fn is_of_graphs(line: &EventLine) -> bool {
        let known =
            ["node_decided", "branches_joined", "goal_unmet", "checkpoint_saved", "checkpoint_restored"];
        known.contains(&line.event.as_str())
    }

    fn words(&self, line: &EventLine, node: &str) -> Option<String> {
        let word = |key: &str| show::safe(line.data.get(key).and_then(Value::as_str).unwrap_or("?"));
        let by = || gutter::quoted(line.data.get("by").and_then(Value::as_str).unwrap_or("?"), 200);
        let number = |key: &str| line.data.get(key).and_then(Value::as_u64).unwrap_or(0);
        let said = |key: &str| {
            let text = line.data.get(key).and_then(Value::as_str)?;
            Some(format!(" {}", gutter::quoted(text, 200)))
        };
        Some(match line.event.as_str() {
            "plan_activated" if line.data.get("resumed") == Some(&Value::Bool(true)) => {
                "run=resumed".to_owned()
            }
            "plan_activated" => "run=started".to_owned(),
            "node_entered" if line.data.get("rehearses") == Some(&Value::Bool(true)) => {
                "before=started".to_owned()
            }
            // No event names the claimant; the next event has the result.
            "node_entered" => "work=out".to_owned(),
            "agent.reported" => format!("work=reported{}", report_words(&line.data)),
            "agent.overran" => {
                let past = line.data.get("said").and_then(|said| said.get("past")?.as_str());
                format!("work=ended past={}", show::safe(past.unwrap_or("deadline")))
            }
            "clock.overran" => "work=ended past=deadline".to_owned(),
            "node_verified" => {
                let gate = self.gates.get(node).cloned().unwrap_or_default();
                let words = match (word("verdict").as_str(), line.data.get("vacuous")) {
                    ("passed", Some(Value::Bool(true))) => format!(" vacuous=yes \"{VACUOUS}\""),
                    ("passed", _) => String::new(),
                    _ => gate.words,
                };
                format!("contract={}{}{words}", word("verdict"), gate.ending)
            }
            "node_rehearsed" => {
                let gate = self.gates.get(node).cloned().unwrap_or_default();
                let means = match word("showed").as_str() {
                    "green" => " \"its contract passes before the work: its pass will prove nothing\"",
                    "tampered" => " \"protected files have changed\"",
                    _ => "",
                };
                format!("before={}{}{means}", word("showed"), gate.ending)
            }
            "retry_triggered" => format!("work=out retries_left={}", number("left")),
            "node_settled" => {
                let by = said("by").map(|by| format!(" by={}", by.trim())).unwrap_or_default();
                format!("settled={}{by}{}", word("outcome"), said("note").unwrap_or_default())
            }
            "node_resting" => format!("delivery=lost count={}{}", number("deliveries"), said("message")?),
            "node_interrupted" => "work=interrupted".to_owned(),
            "gate_repeated" => format!("contract=inconclusive{}", said("why").unwrap_or_default()),
            "pace_changed" => {
                format!("pace={} responder={} reason={}", word("to"), word("responder"), word("reason"))
            }
            "ask_opened" => format!("ask={} reason={}", word("kind"), word("reason")),
            "ask_answered" => {
                format!("answered={} by={}{}", word("answer"), by(), said("note").unwrap_or_default())
            }
            "budget_noticed" => format!("budget={}%", number("percent")),
            "plan_expired" => format!("run=stale seconds={}", number("seconds")),
            "node_reopened" => format!("reopened by={}{}", by(), said("note").unwrap_or_default()),
            "plan_paused" if line.data.get("by").is_some() => format!("run=paused by={}", by()),
            "plan_paused" => "run=paused".to_owned(),
            "node_queued" => "work=queued".to_owned(),
            "node_decided" if line.data.get("met") == Some(&Value::Bool(true)) => "decided=yes".to_owned(),
            "node_decided" => "decided=no".to_owned(),
            "branches_joined" => format!("joined={} failed={}", number("met"), number("failed")),
            "checkpoint_saved" => "workspace=recorded".to_owned(),
            "checkpoint_restored" => "workspace=restored".to_owned(),
            "goal_unmet" => match line.data.get("retry").and_then(Value::as_str) {
                Some(retry) => format!("goal=unmet next={}", show::safe(retry)),
                None => "goal=unmet".to_owned(),
            },
            "plan_completed" => "run=done".to_owned(),
            "plan_failed" => format!("run=failed end={}", word("end")),
            "plan_cancelled" => format!("run=cancelled by={}", by()),
            // Inputs and edges are the machinery behind the facts above; `planctl events` has them all.
            _ => return None,
        })
    }
}

impl Gate {
    fn read(data: &serde_json::Map<String, Value>) -> Gate {
        let found = data.get("found").and_then(Value::as_object).unwrap_or(data);
        let ending = match found.get("ending") {
            Some(ending) => match ending.get("how").and_then(Value::as_str) {
                Some("exited") => format!(" exit={}", ending.get("code").unwrap_or(&Value::Null)),
                Some("signalled") => format!(" signal={}", ending.get("signal").unwrap_or(&Value::Null)),
                Some(_) | None => String::new(),
            },
            None => String::new(),
        };
        let tail = |stream: &str| {
            found.get(stream).and_then(|s| s.get("tail")).and_then(Value::as_str).unwrap_or("")
        };
        if let Some(judgement) = found.get("judgement") {
            let text = |key: &str| judgement.get(key).and_then(Value::as_str);
            let passes = judgement.get("passes");
            let said = if passes == Some(&Value::Bool(true)) { "yes" } else { "no" };
            let by = text("by").map(|by| format!(" by={}", gutter::quoted(by, 64))).unwrap_or_default();
            let words =
                text("reason").map(|line| format!(" {}", gutter::quoted(line, 200))).unwrap_or_default();
            return Gate { ending: format!("{ending} judge={said}{by}"), words };
        }
        let reason = telling_line(tail("stderr"), tail("stdout"));
        let words = reason.map(|line| format!(" {}", gutter::quoted(&line, 200))).unwrap_or_default();
        Gate { ending, words }
    }
}

fn report_words(data: &serde_json::Map<String, Value>) -> String {
    let said = data.get("said");
    let ending = |key: &str| said.and_then(|said| said.get("ending")?.get(key));
    let code = ending("code").map(|code| format!(" exit={code}"));
    let code =
        code.or_else(|| ending("signal").map(|signal| format!(" signal={signal}"))).unwrap_or_default();
    let denied = said.and_then(|said| said.get("circumstances")?.get("denied")?.as_array());
    let denied: Vec<&str> = denied.into_iter().flatten().filter_map(Value::as_str).collect();
    let code = match denied.as_slice() {
        [] => code,
        denied => format!("{code} denied={}", gutter::quoted(&denied.join(", "), 200)),
    };
    let tail = said.and_then(|said| said.get("text")?.get("tail")?.as_str()).unwrap_or("");
    match show::last_line(&strip_terminal_sequences(tail)) {
        "" => code,
        line => format!("{code} {}", gutter::quoted(line, 200)),
    }
}

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
    let is_left_alone = show::is_left_alone(view.state, view.worked_on_by);
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
    let last = format!("  {} · {}", show::cost(&view.spent, &view.budget), footer(view, look));
    let last = look.columns.map_or(last.clone(), |columns| show::folded_in(&last, columns.saturating_sub(1)));
    lines.extend(last.lines().map(str::to_owned));
    let lacking = view.waiting_on.as_ref().filter(|wait| wait.kind == "worker");
    if let Some(role) = lacking.and_then(|wait| wait.role.as_deref()).filter(|_| look.ctrl_c.is_some()) {
        lines.push(styled(FAINT, &format!("  start one: {}", start_worker(role))));
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
        (!own.is_empty()).then(|| format!("{} {}{at}", own.len(), state.word()))
    });
    let counted: Vec<String> = counted.collect();
    let title = show::brief(&show::safe(&join.title), 40);
    let any = if join.policy == "any" { ", any of which suffices" } else { "" };
    format!("    branches into \"{title}\"{any}: {}", counted.join(", "))
}

/// The most nodes of branches in one state that are named.
const BRANCHES_NAMED_MAX: usize = 6;

fn activity_line(activity: &Activity) -> String {
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
        StepState::Working | StepState::Checking if is_left_alone => {
            parts.push(styled(CARE, "interrupted"));
            parts.push(attempt_words(step));
        }
        StepState::Working | StepState::Checking => {
            let time =
                since.map(|seconds| format!(" {}", show::span(Duration::from_secs_f64(seconds.min(1e9)))));
            parts.push(format!("{}{}", show::step_state(step.state), time.unwrap_or_default()));
            parts.push(attempt_words(step));
        }
        StepState::Ready | StepState::Resting | StepState::Waiting => {
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

fn footer(view: &RunView, look: &Look) -> String {
    match &view.waiting_on {
        Some(WaitingOn { lock: Some(lock), run: Some(run), .. }) => {
            format!("waiting for the lock {}, which run {} has", show::safe(lock), show::safe(run))
        }
        Some(wait) => match (wait.id, &wait.run, &wait.role) {
            (Some(id), _, _) => styled(CARE, &format!("waiting for you: planctl approvals show {id}")),
            (None, Some(run), _) if wait.kind == "ending" => {
                format!("waiting for run {}, whose agent is being ended", show::safe(run))
            }
            (None, Some(run), _) => format!("waiting for run {}, which has the workspace", show::safe(run)),
            (None, None, Some(role)) => format!("waiting for a worker of role {}", show::safe(role)),
            (None, None, None) => show::run_state(view.state).to_owned(),
        },
        None if show::is_left_alone(view.state, view.worked_on_by) => {
            let next = look.ctrl_c.map(|_| format!(": planctl resume {}", show::safe(&view.run)));
            styled(CARE, &format!("{}{}", show::LEFT_ALONE, next.unwrap_or_default()))
        }
        None => match look.ctrl_c.filter(|_| !view.state.is_over()) {
            Some(CtrlC::Stops) => styled(FAINT, "Ctrl-C stops it"),
            Some(CtrlC::Leaves) => styled(FAINT, "Ctrl-C leaves it; the run goes on"),
            None => show::run_state(view.state).to_owned(),
        },
    }
}

#[cfg(test)]
mod tests;
