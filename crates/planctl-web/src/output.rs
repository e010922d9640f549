//! One output of an attempt, in parts.

use askama::Template;
use planctl_api::wire::AttemptView;
use planctl_api::words;

use crate::draw::{self, Part};
use crate::frame::{Frame, Tab};

/// An output of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// The contract's standard output.
    Stdout,
    /// The contract's standard error.
    Stderr,
    /// The standard output of the contract before the work.
    StdoutBefore,
    /// The standard error of the contract before the work.
    StderrBefore,
    /// The worker's own words.
    Words,
    /// The prompt that the worker was given.
    Prompt,
}

impl Output {
    const ALL: [Output; 6] = [
        Output::Stdout,
        Output::Stderr,
        Output::StdoutBefore,
        Output::StderrBefore,
        Output::Words,
        Output::Prompt,
    ];

    /// Returns the output that an address names.
    pub fn of(word: &str) -> Option<Output> {
        Output::ALL.into_iter().find(|output| output.as_str() == word)
    }

    /// Returns its word in an address.
    pub fn as_str(self) -> &'static str {
        match self {
            Output::Stdout => "stdout",
            Output::Stderr => "stderr",
            Output::StdoutBefore => "stdout-before",
            Output::StderrBefore => "stderr-before",
            Output::Words => "words",
            Output::Prompt => "prompt",
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Output::Stdout => "Standard output",
            Output::Stderr => "Standard error",
            Output::StdoutBefore => "Standard output before the work",
            Output::StderrBefore => "Standard error before the work",
            Output::Words => "The worker's own words",
            Output::Prompt => "The prompt that the worker was given",
        }
    }

    /// Returns the text that an attempt holds, as far as it was kept; a prompt is kept elsewhere.
    pub fn text(self, attempt: &AttemptView) -> Option<&str> {
        let (gate, before) = (attempt.gate.as_ref(), attempt.before.last());
        Some(match self {
            Output::Stdout => &gate?.stdout,
            Output::Stderr => &gate?.stderr,
            Output::StdoutBefore => &before?.stdout,
            Output::StderrBefore => &before?.stderr,
            Output::Words => &attempt.work.as_ref()?.text,
            Output::Prompt => return None,
        })
    }
}

/// One part of an output.
#[derive(Template)]
#[template(path = "output.html")]
pub struct OutputScreen<'a> {
    frame: Frame<'a>,
    run: &'a str,
    attempt: &'a AttemptView,
    output: Output,
    part: Part,
    path: &'a str,
    query: &'a str,
}

impl<'a> OutputScreen<'a> {
    /// Prepares the part of an output that is wanted; `path` and `query` name the step.
    pub fn new(
        frame: Frame<'a>,
        (run, attempt): (&'a str, &'a AttemptView),
        (output, text, number): (Output, &str, Option<usize>),
        (path, query): (&'a str, &'a str),
    ) -> OutputScreen<'a> {
        OutputScreen { frame, run, attempt, output, part: draw::printed_part(text, number), path, query }
    }

    /// Returns the address of its run.
    fn run_path(&self) -> &str {
        self.path.split_once("/steps/").map_or(self.path, |(run, _)| run)
    }

    /// Returns its own address, without a part.
    fn own_address(&self) -> String {
        format!("{}/attempts/{}/{}", self.path, self.attempt.attempt, self.output.as_str())
    }
}
