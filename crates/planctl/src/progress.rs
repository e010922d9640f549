//! A run as it goes: a live view at a terminal, one line per event elsewhere, or the events themselves as JSON lines.

mod picture;

use std::collections::HashMap;

use planctl_api::wire::{EventLine, RunView, StepState};
use planctl_server::Activity;
use planctl_view::{VACUOUS, strip_terminal_sequences, telling_line};
use serde_json::Value;

use crate::attention::Attention;
use crate::drawing::{self, Drawing};
use crate::failure::Failure;
use crate::{gutter, show, terminal};

use picture::activity_line;

pub use picture::{CtrlC, Look, picture};

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
    /// The newest gate of each node, by the names of its run and of the node.
    gates: HashMap<(String, String), Gate>,
    /// The last attempt of a node whose contract did not pass, in words: the story that the end of a run tells.
    failed: HashMap<String, String>,
    /// A node that was entered, of a run, and its line, which is dropped if the node waits: a question to a person is not work.
    begins: Option<((String, String), String)>,
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

    /// Says whether it is shown in lines, which those of runs within it belong to.
    pub fn has_lines(&self) -> bool {
        matches!(self.manner, Manner::Plain | Manner::Answer)
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
            self.gates.insert(place_of(line), Gate::read(&line.data));
        } else if line.event == "node_verified"
            && line.data.get("verdict").is_some_and(|verdict| verdict != "passed")
        {
            let gate = self.gates.get(&place_of(line)).cloned().unwrap_or_default();
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
        if let Some((place, text)) = self.begins.take() {
            let waits = ["plan_escalated", "ask_opened", "node_queued"].contains(&line.event.as_str());
            if !(waits && place == place_of(line)) {
                lines.push(text);
            }
        }
        match self.plain_line(line) {
            Some(text) if line.event == "node_entered" => self.begins = Some((place_of(line), text)),
            own => lines.extend(own),
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

    fn plain_line(&mut self, line: &EventLine) -> Option<String> {
        let time = line.at.get(11..19).unwrap_or(&line.at).to_owned();
        let node = line.node.clone().unwrap_or_default();
        if line.event == "harness.evaluated" || line.event == "harness.rehearsed" {
            self.gates.insert(place_of(line), Gate::read(&line.data));
            return None;
        }
        let is_step = !node.is_empty() && node.bytes().all(|byte| byte.is_ascii_digit());
        let attempt =
            line.attempt.map(u64::from).or_else(|| line.data.get("attempt")?.as_u64()).filter(|n| *n > 0);
        if line.event == "node_entered" || line.event == "node_settled" && !is_step {
            // Without an attempt there is no work: the start and passages are entered and settle too, which tells a person nothing.
            attempt?;
        }
        // The ask that holds a run before its first node is about its plan.
        let is_of_plan = matches!(line.event.as_str(), "ask_opened" | "ask_answered");
        let what = self.event_words(line)?;
        let mut text = time;
        if self.run.as_ref().is_some_and(|run| *run != line.run) {
            text.push_str(&format!(" of={}", show::safe(&line.run)));
        }
        if is_step {
            text.push_str(&format!(" step={node}"));
        } else if !(node.is_empty() || is_of_plan && attempt.is_none()) {
            text.push_str(&format!(" node={}", show::safe(&node)));
        }
        if let Some(attempt) = attempt {
            text.push_str(&format!(" attempt={attempt}"));
        }
        Some(format!("{text} {what}"))
    }

    fn event_words(&self, line: &EventLine) -> Option<String> {
        let gate = || self.gates.get(&place_of(line)).cloned().unwrap_or_default();
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
                let gate = gate();
                let words = match (word("verdict").as_str(), line.data.get("vacuous")) {
                    ("passed", Some(Value::Bool(true))) => format!(" vacuous=yes \"{VACUOUS}\""),
                    ("passed", _) => String::new(),
                    _ => gate.words,
                };
                format!("contract={}{}{words}", word("verdict"), gate.ending)
            }
            "node_rehearsed" => {
                let gate = gate();
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

/// Returns the names of an event's run and node.
fn place_of(line: &EventLine) -> (String, String) {
    (line.run.clone(), line.node.clone().unwrap_or_default())
}

impl Gate {
    fn read(data: &serde_json::Map<String, Value>) -> Gate {
        let found = data.get("found").and_then(Value::as_object).unwrap_or(data);
        let tests = found.get("tests").and_then(|tests| Some((tests.get("passed")?, tests.get("least")?)));
        let tests = tests.map(|(passed, least)| format!(" tests={passed}/{least}")).unwrap_or_default();
        let ending = match found.get("ending") {
            Some(ending) => match ending.get("how").and_then(Value::as_str) {
                Some("exited") => format!(" exit={}{tests}", ending.get("code").unwrap_or(&Value::Null)),
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
#[cfg(test)]
mod tests;
