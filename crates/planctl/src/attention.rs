//! Calls a person who watches a run back to the terminal: where the run needs them, and where it is over.

use std::env;
use std::io::Write as _;

use planctl_api::wire::{RunState, RunView};
use planctl_config::TerminalCall;

use crate::show;

/// Terminals that show the notifications of one sequence, by what `TERM_PROGRAM` says.
const SHOW_OSC_9: [&str; 4] = ["iTerm.app", "WezTerm", "WarpTerminal", "ghostty"];
/// The same by what `TERM` begins with.
const TERMS_OF_OSC_9: [&str; 2] = ["xterm-kitty", "xterm-ghostty"];
const TERMS_OF_OSC_777: [&str; 2] = ["foot", "rxvt-unicode"];

/// Calls a person, once for each thing.
#[derive(Clone, Debug, Default)]
pub struct Attention {
    sequence: Option<Sequence>,
    /// Why the person was called last.
    called_for: Option<String>,
}

/// The form of a call at this terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sequence {
    Osc9,
    Osc777,
    Sound,
}

impl Attention {
    /// Calls in the way that the configuration names, as far as this terminal wants it.
    pub fn from_config(call: TerminalCall) -> Attention {
        let sequence = match call {
            TerminalCall::Auto => terminal_sequence(|name| env::var(name).ok()),
            TerminalCall::Osc9 => Some(Sequence::Osc9),
            TerminalCall::Osc777 => Some(Sequence::Osc777),
            TerminalCall::Sound => Some(Sequence::Sound),
            TerminalCall::Off => None,
        };
        Attention { sequence, called_for: None }
    }

    /// Calls where the run needs the person for something of which they were not told, or is over.
    pub fn call_if_needed(&mut self, view: &RunView) {
        let Some(sequence) = self.sequence else { return };
        let why = reason(view);
        if why.is_some() && why != self.called_for {
            let text = sequence_text(sequence, why.as_deref().unwrap_or_default());
            // Where nobody listens, nothing is lost.
            std::io::stderr().write_all(text.as_bytes()).unwrap_or(());
        }
        self.called_for = why;
    }
}

/// Returns the form that the terminal is known to show. Programs that draw terminals within one, as tmux does, keep such
/// sequences to themselves.
fn terminal_sequence(variable: impl Fn(&str) -> Option<String>) -> Option<Sequence> {
    if variable("TMUX").is_some() || variable("STY").is_some() {
        return None;
    }
    let (program, term) =
        (variable("TERM_PROGRAM").unwrap_or_default(), variable("TERM").unwrap_or_default());
    let begins = |names: &[&str]| names.iter().any(|name| term.starts_with(name));
    if SHOW_OSC_9.contains(&program.as_str()) || begins(&TERMS_OF_OSC_9) {
        Some(Sequence::Osc9)
    } else {
        begins(&TERMS_OF_OSC_777).then_some(Sequence::Osc777)
    }
}

/// Says in a line why a person is needed.
fn reason(view: &RunView) -> Option<String> {
    match view.state {
        RunState::Done | RunState::Failed | RunState::Cancelled => {
            Some(format!("{} is {}", view.run, view.state.as_str()))
        }
        RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::Paused => {
            let waiting = view.waiting_on.as_ref().filter(|waiting| waiting.is_for_people())?;
            Some(match waiting.id {
                Some(ask) => format!("{} waits for you: {} (ask {ask})", view.run, waiting.kind),
                None => format!("{} waits for you: {}", view.run, waiting.kind),
            })
        }
    }
}

/// Writes the call; a name of a run can't end it or begin another.
fn sequence_text(sequence: Sequence, why: &str) -> String {
    let why = show::safe(why).replace(';', ",");
    match sequence {
        Sequence::Osc9 => format!("\x1b]9;planctl: {why}\x1b\\"),
        Sequence::Osc777 => format!("\x1b]777;notify;planctl;{why}\x1b\\"),
        Sequence::Sound => "\x07".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(variables: &[(&str, &str)]) -> Option<Sequence> {
        terminal_sequence(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_terminals_that_show_notifications_get_some() {
        assert_eq!(at(&[("TERM", "xterm-256color")]), None);
        assert_eq!(at(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]), Some(Sequence::Osc9));
        assert_eq!(at(&[("TERM", "xterm-kitty")]), Some(Sequence::Osc9));
        assert_eq!(at(&[("TERM", "foot-extra")]), Some(Sequence::Osc777));
        assert_eq!(
            at(&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "WezTerm"), ("TMUX", "/tmp/tmux")]),
            None
        );
    }

    #[test]
    fn what_is_said_ends_no_sequence() {
        let text = sequence_text(Sequence::Osc777, "a;b\x1b\\\x07c");
        assert_eq!(text.matches(['\x1b', '\x07']).count(), 2, "{text:?}");
        assert_eq!(text.matches(';').count(), 3, "{text:?}");
    }
}
