//! The reports of a worker about an item, used by `worker run` and by the commands of `work`.

use std::path::Path;
use std::time::Duration;

use planctl_api::wire::calls::{
    AcceptedView, AskCall, CompleteCall, FailCall, FailKind, HeartbeatView, LogCall, Nothing, TOKENS_MAX,
    UsageCall,
};
use planctl_engine::{AgentSaid, Ending, FaultKind, Overrun, Report, Usage};
use planctl_harness::Output;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{self, Api};
use crate::failure::Failure;

/// The most of a worker's last output that is reported: a head and a tail of it.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// An item that is held: its routes, with the token of its lease.
#[derive(Clone, Debug)]
pub struct LeasedItem {
    api: Api,
    path: String,
}

/// A last word about an item.
#[derive(Clone, PartialEq, Debug)]
pub enum Word {
    /// The work ended.
    Complete(CompleteCall),
    /// It could not be done.
    Fail(FailCall),
    /// A person has to say something first.
    Ask(AskCall),
    /// It is given back.
    Release,
}

impl LeasedItem {
    /// Prepares calls for an item; connects to nothing yet.
    pub fn new(api: &Api, item: &str, token: &str) -> Result<LeasedItem, Failure> {
        Ok(LeasedItem { api: api.with_token(token)?, path: format!("/v1/items/{}", api::path_segment(item)) })
    }

    /// Reads what is held.
    pub async fn show<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.api.get(&self.path, &[]).await
    }

    /// Renews the lease; waits for so long, or until it ends.
    pub async fn send_heartbeat(&self, wait: Duration) -> Result<HeartbeatView, Failure> {
        let wait = wait.as_secs().to_string();
        self.api.post(&format!("{}/heartbeat", self.path), &[("wait", &wait)], &Nothing {}).await
    }

    /// Sends output to the daemon, which shows it.
    pub async fn log(&self, text: &str) -> Result<(), Failure> {
        self.post("log", &LogCall { text: without_nul(text) }).await
    }

    /// Says what was used so far.
    pub async fn send_usage(&self, usage: &UsageCall) -> Result<(), Failure> {
        self.post("usage", usage).await
    }

    async fn post(&self, verb: &str, body: &impl Serialize) -> Result<(), Failure> {
        let path = format!("{}/{verb}", self.path);
        let _: Option<serde_json::Value> = self.api.post_maybe(&path, &[], body, &api::uuid_of()).await?;
        Ok(())
    }

    /// Says the last word; saying the same again is harmless.
    pub async fn say(&self, word: &Word) -> Result<AcceptedView, Failure> {
        let path = |verb: &str| format!("{}/{verb}", self.path);
        match word {
            Word::Complete(call) => self.api.post(&path("complete"), &[], call).await,
            Word::Fail(call) => self.api.post(&path("fail"), &[], call).await,
            Word::Ask(call) => self.api.post(&path("ask"), &[], call).await,
            Word::Release => self.api.post(&path("release"), &[], &Nothing {}).await,
        }
    }
}

impl Word {
    /// Says what came of an agent's work.
    pub fn of(said: AgentSaid, outputs: &[Output]) -> Word {
        match said {
            AgentSaid::Reported(report) => Word::Complete(completed(report, outputs)),
            AgentSaid::Overran { past, duration, usage } => Word::Fail(FailCall {
                kind: match past {
                    Overrun::Deadline => FailKind::Overran,
                    Overrun::Silence => FailKind::Silent,
                },
                reason: match past {
                    Overrun::Deadline => "it was still at work at its deadline and was ended".to_owned(),
                    Overrun::Silence => "it was silent for too long and was ended".to_owned(),
                },
                usage: usage.map(used),
                seconds: Some(duration.as_secs_f64()),
            }),
            AgentSaid::Faulted(fault) => Word::Fail(FailCall {
                kind: match fault.kind {
                    FaultKind::Transient => FailKind::Transient,
                    FaultKind::Permission => FailKind::Permission,
                    FaultKind::Permanent => FailKind::Permanent,
                },
                reason: without_nul(&fault.message),
                usage: fault.usage.map(used),
                seconds: None,
            }),
            AgentSaid::Asked { question, usage } => {
                let question = without_nul(&question);
                let is_empty = question.trim().is_empty();
                let unsaid = "The worker needs something and does not say what.".to_owned();
                Word::Ask(AskCall {
                    question: if is_empty { unsaid } else { question },
                    usage: usage.map(used),
                })
            }
            AgentSaid::Released => Word::Release,
        }
    }
}

fn completed(report: Report, outputs: &[Output]) -> CompleteCall {
    let stored = report.text.stored.as_ref();
    let whole = outputs.iter().find(|output| Some(&output.digest) == stored);
    let text = whole.map_or(report.text.tail, |output| String::from_utf8_lossy(&output.bytes).into_owned());
    CompleteCall {
        text: shortened(&text),
        gave_up: report.gave_up,
        usage: report.usage.map(used),
        exit_code: match report.ending {
            Some(Ending::Exited { code }) => Some(code),
            // As a shell reports it.
            Some(Ending::Signalled { signal }) => Some(128 + signal),
            Some(Ending::TimedOut | Ending::OverLimit { .. } | Ending::NotRun) | None => None,
        },
        seconds: Some(report.duration.as_secs_f64()),
        ..CompleteCall::of(report.hints.as_deref()).with_circumstances(report.circumstances.as_deref())
    }
}

fn used(usage: Usage) -> UsageCall {
    UsageCall {
        // An agent's own count may be nonsense, and its report still counts.
        input_tokens: usage.input_tokens.min(TOKENS_MAX),
        cached_input_tokens: usage.cached_input_tokens.min(TOKENS_MAX),
        output_tokens: usage.output_tokens.min(TOKENS_MAX),
        cost_usd: usage.micro_usd.map(|micro| micro as f64 / 1e6),
        estimated: usage.estimated,
        model: usage.model,
    }
}

/// Reads a file of last words.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)?;
        bytes
    } else {
        std::fs::read(path)?
    };
    Ok(shortened(&String::from_utf8_lossy(&bytes)))
}

/// Shortens a text to its head and its tail, and replaces what JSON can say and the daemon can't keep.
fn shortened(text: &str) -> String {
    let text = without_nul(text);
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let half = TEXT_BYTES_MAX / 2 - 40;
    let head = (0..=half).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - half..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{}\n… {} bytes left out …\n{}", &text[..head], tail - head, &text[tail..])
}

/// Replaces U+0000, which no database keeps.
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_head_and_its_tail_within_the_cap() {
        let text = format!("head ä{}ä tail\0", "ß".repeat(TEXT_BYTES_MAX));
        let short = shortened(&text);
        assert!(short.len() <= TEXT_BYTES_MAX, "{}", short.len());
        assert!(short.starts_with("head ä") && short.ends_with("ä tail\u{fffd}"));
        assert!(short.contains(" bytes left out …"));
        assert_eq!(shortened("as it is"), "as it is");
    }
}
