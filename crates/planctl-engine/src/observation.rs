//! Observations: the output of a tool as the agent's own program reports it, and the checks that a plan makes of one. They
//! are weaker than the harness's evidence: planctl did not run the tool (DESIGN 10, X-03).

use serde::{Deserialize, Serialize};

/// How far planctl knows by itself that a step is done (DESIGN 10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The agent says so. Nothing passes on that.
    Claimed,
    /// The agent's own program reported the output of a tool, and the plan's check of it holds.
    Observed,
    /// A judge says so, whom the harness asked, and the configuration lets that suffice.
    Judged,
    /// A person says so, where the plan asks one.
    Confirmed,
    /// The harness ran the contract.
    Proved,
}

impl Grade {
    /// Returns the word that history and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Grade::Claimed => "claimed",
            Grade::Observed => "observed",
            Grade::Judged => "judged",
            Grade::Confirmed => "confirmed",
            Grade::Proved => "proved",
        }
    }
}

/// The output of a tool, as the agent's own program reported it; bound to one attempt and never reused for another.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Observation {
    /// The command, where the tool ran one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The exit code, where the agent tells one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Both streams; of a long output the beginning and the end.
    pub output: String,
    /// Says that the middle of the output is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// The most bytes of an output that an observation holds.
pub const OBSERVED_BYTES_MAX: usize = 16 * 1024;

impl Observation {
    /// Makes one of a whole output: of a long one the beginning and the end are kept.
    pub fn new(command: Option<String>, exit_code: Option<i32>, output: &str) -> Observation {
        let half = OBSERVED_BYTES_MAX / 2;
        let is_cut = output.len() > OBSERVED_BYTES_MAX;
        let output = if is_cut {
            let head = (0..=half).rev().find(|at| output.is_char_boundary(*at)).unwrap_or(0);
            let tail = output.len() - half;
            let tail = (tail..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(output.len());
            format!("{}\n[…]\n{}", &output[..head], &output[tail..])
        } else {
            output.to_owned()
        };
        Observation { command, exit_code, output, is_cut }
    }
}

/// A plan's check of an observation (H-25 to H-29). Letter case counts for nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "check", content = "value", rename_all = "snake_case", deny_unknown_fields)]
pub enum OutputCheck {
    /// The output has this text in it.
    OutputContains(String),
    /// The output does not have this text in it, and the command did not fail.
    OutputNotContains(String),
    /// The command exited with 0.
    ExitCodeZero,
    /// The output is more than space.
    AnyOutput,
}

impl OutputCheck {
    /// Says whether an observation tells what is asked: some agents tell no exit codes.
    pub fn is_told_by(&self, seen: &Observation) -> bool {
        *self != OutputCheck::ExitCodeZero || seen.exit_code.is_some()
    }

    /// Says why the check does not hold of an observation; `None` where it holds.
    pub fn mismatch(&self, seen: &Observation) -> Option<String> {
        let has = |text: &str| seen.output.to_lowercase().contains(&text.to_lowercase());
        if let Some(code) = seen.exit_code.filter(|code| *code != 0) {
            return Some(format!("the command exited with {code}"));
        }
        match self {
            OutputCheck::OutputContains(text) => {
                (!has(text)).then(|| format!("the output does not contain: {text}"))
            }
            OutputCheck::OutputNotContains(text) if has(text) => Some(format!("the output contains: {text}")),
            OutputCheck::OutputNotContains(text) => seen.is_cut.then(|| {
                format!("the output is too long to see whole, so it is not known whether it contains: {text}")
            }),
            // One that exited otherwise was told of above.
            OutputCheck::ExitCodeZero => {
                seen.exit_code.is_none().then(|| "the exit code is not known".to_owned())
            }
            OutputCheck::AnyOutput => {
                seen.output.trim().is_empty().then(|| "the command printed nothing but space".to_owned())
            }
        }
    }

    /// Says what is asked of the output, as a claim: `the output contains "On branch"`.
    pub fn describe(&self) -> String {
        match self {
            OutputCheck::OutputContains(text) => format!("the output contains \"{text}\""),
            OutputCheck::OutputNotContains(text) => format!("the output does not contain \"{text}\""),
            OutputCheck::ExitCodeZero => "the command exits with 0".to_owned(),
            OutputCheck::AnyOutput => "the command prints something".to_owned(),
        }
    }

    /// Says whether the output of any tool may be looked at, not of commands alone.
    pub fn takes_any_tool(&self) -> bool {
        *self == OutputCheck::AnyOutput
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(exit_code: Option<i32>, output: &str) -> Observation {
        Observation::new(None, exit_code, output)
    }

    fn holds(check: &OutputCheck, exit_code: Option<i32>, output: &str) -> bool {
        check.mismatch(&seen(exit_code, output)).is_none()
    }

    #[test]
    fn h_25_an_output_contains_a_text_whatever_its_case() {
        let check = OutputCheck::OutputContains("On branch".to_owned());
        assert!(holds(&check, Some(0), "on BRANCH main") && holds(&check, None, "on BRANCH main"));
        assert!(!holds(&check, Some(0), "main"));
        assert!(!holds(&check, Some(1), "On branch"), "a command that failed shows nothing");
    }

    #[test]
    fn h_26_an_output_does_not_contain_a_text_whatever_its_case() {
        let check = OutputCheck::OutputNotContains("error".to_owned());
        assert!(!holds(&check, Some(0), "0 Errors"));
        assert!(holds(&check, Some(0), "all is well") && holds(&check, None, "all is well"));
        assert!(!holds(&check, Some(2), "all is well"), "X-02: a silent crash does not pass");
        let long = "x".repeat(OBSERVED_BYTES_MAX + 1);
        let why = check.mismatch(&seen(Some(0), &long)).expect("it is not known");
        assert!(why.contains("too long to see whole"), "{why}");
    }

    #[test]
    fn h_27_an_exit_code_is_the_real_one_and_no_word_in_the_output() {
        assert!(holds(&OutputCheck::ExitCodeZero, Some(0), "no error found"));
        assert!(!holds(&OutputCheck::ExitCodeZero, Some(1), ""));
        assert!(!holds(&OutputCheck::ExitCodeZero, None, "exit code 0"), "a code that nobody tells");
    }

    #[test]
    fn h_29_any_output_is_more_than_space() {
        assert!(!holds(&OutputCheck::AnyOutput, Some(0), "  \n"));
        assert!(holds(&OutputCheck::AnyOutput, Some(0), "x") && holds(&OutputCheck::AnyOutput, None, "x"));
    }

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let text = format!("first{}last", "ä".repeat(OBSERVED_BYTES_MAX));
        let seen = seen(None, &text);
        assert!(seen.is_cut && seen.output.len() < OBSERVED_BYTES_MAX + 16);
        assert!(seen.output.starts_with("first") && seen.output.ends_with("last"));
    }
}
