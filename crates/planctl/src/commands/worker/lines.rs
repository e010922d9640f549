//! The output of `worker run`: lines for people, or one JSON value per event.

use std::time::Duration;

use planctl_api::wire::calls::{ClaimedView, UsageCall};
use planctl_api::wire::{WorkerEvent, WorkerLine, moment};

use crate::failure::Failure;
use crate::reports::Word;
use crate::show;

/// Prints what a worker does.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The worker's name.
    pub worker: String,
    /// One JSON value per line on standard output, in place of messages on standard error.
    pub is_json: bool,
    /// Says nothing but JSON.
    pub is_quiet: bool,
}

impl Lines {
    /// Prints an event of the worker itself.
    pub fn print(&self, event: WorkerEvent, message: &str) -> Result<(), Failure> {
        self.print_line(&WorkerLine { message: Some(message.to_owned()), ..self.line(event) }, message)
    }

    /// Prints an event of an item.
    pub fn print_item(
        &self,
        event: WorkerEvent,
        claimed: &ClaimedView,
        message: &str,
    ) -> Result<(), Failure> {
        let line = WorkerLine { message: Some(message.to_owned()), ..self.line_of(event, claimed) };
        self.print_line(&line, &format!("{} · {message}", name_of(claimed)))
    }

    /// Prints that the daemon accepted the report of an item.
    pub fn print_accepted(
        &self,
        claimed: &ClaimedView,
        word: &Word,
        time: Duration,
        follows: &str,
    ) -> Result<(), Failure> {
        let (event, usage, exit_code) = match word {
            Word::Complete(call) => (WorkerEvent::Worked, call.usage.as_ref(), call.exit_code),
            Word::Fail(call) => (WorkerEvent::Failed, call.usage.as_ref(), None),
            Word::Ask(call) => (WorkerEvent::Asked, call.usage.as_ref(), None),
            Word::Release => (WorkerEvent::Released, None, None),
        };
        let message = match word {
            Word::Fail(call) => format!("{} · {follows}", call.reason),
            Word::Ask(call) => format!("{} · {follows}", call.question),
            Word::Complete(_) | Word::Release => follows.to_owned(),
        };
        let line = WorkerLine {
            seconds: Some(time.as_secs_f64()),
            tokens: usage.map(|usage| usage.input_tokens.saturating_add(usage.output_tokens)),
            usd: usage.and_then(|usage| usage.cost_usd),
            exit_code,
            message: Some(message.clone()),
            ..self.line_of(event, claimed)
        };
        let mut parts = vec![format!("{} {}", verb(event), show::span(time))];
        parts.extend(usage.map(spent));
        parts.extend(exit_code.map(|code| format!("exit {code}")));
        parts.push(show::brief(&message, 200));
        self.print_line(&line, &format!("{} · {}", name_of(claimed), parts.join(" · ")))
    }

    fn print_line(&self, line: &WorkerLine, words: &str) -> Result<(), Failure> {
        if self.is_json {
            show::print_json(line)?;
            return show::flush();
        }
        if !self.is_quiet {
            // RFC 3339 in UTC: the time of day alone.
            let time = line.at.get(11..19).unwrap_or_default();
            show::say(&format!("{time} {}", show::safe(words)));
        }
        Ok(())
    }

    fn line(&self, event: WorkerEvent) -> WorkerLine {
        WorkerLine {
            at: moment(planctl_server::now()),
            event,
            worker: self.worker.clone(),
            item: None,
            run: None,
            step: None,
            attempt: None,
            role: None,
            seconds: None,
            tokens: None,
            usd: None,
            exit_code: None,
            message: None,
        }
    }

    fn line_of(&self, event: WorkerEvent, claimed: &ClaimedView) -> WorkerLine {
        WorkerLine {
            item: Some(claimed.item.clone()),
            run: Some(claimed.run.clone()),
            step: Some(claimed.step),
            attempt: Some(claimed.attempt),
            role: Some(claimed.role.clone()),
            ..self.line(event)
        }
    }
}

fn name_of(claimed: &ClaimedView) -> String {
    format!("{} step {} attempt {}", claimed.run, claimed.step, claimed.attempt)
}

fn verb(event: WorkerEvent) -> &'static str {
    match event {
        WorkerEvent::Worked => "worked",
        WorkerEvent::Failed => "could not work",
        WorkerEvent::Asked => "asked",
        WorkerEvent::Released => "given back after",
        WorkerEvent::Ready
        | WorkerEvent::Started
        | WorkerEvent::Lost
        | WorkerEvent::Refused
        | WorkerEvent::Away
        | WorkerEvent::Draining
        | WorkerEvent::Ended => "at",
    }
}

fn spent(usage: &UsageCall) -> String {
    let mut text = format!("{} tok", show::tokens(usage.input_tokens.saturating_add(usage.output_tokens)));
    if usage.cached_input_tokens > 0 {
        text.push_str(&format!(" ({} cached)", show::tokens(usage.cached_input_tokens)));
    }
    if let Some(usd) = usage.cost_usd {
        let how = if usage.estimated { "estimated" } else { "measured" };
        text.push_str(&format!(" · ${usd:.2} {how}"));
    }
    text
}
