//! Parts of planctl that run in a process of their own, under the harness, as contracts run: what speaks to strangers and their
//! services has deadline, isolation, limits and masks of a contract, and planctl reads no byte before it went through there.

use std::ffi::OsString;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{Contract, Ending, Evidence, HarnessResult, Inconclusive, RedFirst};
use planctl_harness::{Baseline, ContractRunner, Masks, digest_of};
use serde::Serialize;

/// This program, whose file may have been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// Why such a process gave no output.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum NoOutput {
    /// It ended otherwise than with 0.
    Failed(Box<Evidence>),
    /// It was stopped.
    Interrupted,
    /// It could not be run.
    Unrunnable(String),
}

/// Returns a runner that starts this program with a word, and gives it an order.
pub(crate) fn with_order(
    runner: ContractRunner,
    word: &str,
    order: &impl Serialize,
    masks: Masks,
) -> Result<ContractRunner, String> {
    let input = serde_json::to_vec(order).map_err(|error| error.to_string())?;
    let program = [PROGRAM, word].map(OsString::from).to_vec();
    Ok(runner.with_program(program, masks).with_input(input))
}

/// Returns what the process of such a runner prints.
pub(crate) async fn output_of(
    runner: &ContractRunner,
    within: Duration,
    cancel: impl Future<Output = ()>,
) -> Result<String, NoOutput> {
    let gate =
        runner.evaluate(&contract(within), &Arc::new(Baseline::default()), &mut |_, _| (), cancel).await;
    match gate.found {
        HarnessResult::Evidence(evidence) if evidence.ending == (Ending::Exited { code: 0 }) => {
            let stored = evidence.stdout.stored.as_ref();
            let whole = gate.outputs.iter().find(|output| Some(&output.digest) == stored);
            Ok(match whole {
                Some(output) => String::from_utf8_lossy(&output.bytes).into_owned(),
                None => evidence.stdout.tail,
            })
        }
        HarnessResult::Evidence(evidence) => Err(NoOutput::Failed(evidence)),
        HarnessResult::Nothing(Inconclusive::Interrupted) => Err(NoOutput::Interrupted),
        HarnessResult::Nothing(
            Inconclusive::ToolMissing { what }
            | Inconclusive::Unstable { what }
            | Inconclusive::Unjudged { what, .. },
        ) => Err(NoOutput::Unrunnable(what)),
        HarnessResult::Rehearsed(_)
        | HarnessResult::Recorded { .. }
        | HarnessResult::Restored
        | HarnessResult::Forked { .. }
        | HarnessResult::Merged { .. }
        | HarnessResult::Conflicted(_)
        | HarnessResult::Begun { .. }
        | HarnessResult::Ended(_)
        | HarnessResult::Nothing(
            Inconclusive::Unheard { .. } | Inconclusive::Unapproved { .. } | Inconclusive::Unfunded { .. },
        ) => Err(NoOutput::Unrunnable("it gave no evidence".to_owned())),
    }
}

/// Says in one line how a process failed: by its last words, where it has some.
pub(crate) fn last_words(evidence: &Evidence) -> String {
    let said = evidence.stderr.tail.trim();
    match evidence.ending {
        Ending::Exited { .. } => said.lines().next_back().unwrap_or("it said nothing").to_owned(),
        Ending::TimedOut => "no answer came in time".to_owned(),
        Ending::Signalled { .. } | Ending::OverLimit { .. } | Ending::NotRun => {
            format!("it was ended: {said}")
        }
    }
}

/// Returns the contract of something that is no step: only how long it may take matters.
fn contract(within: Duration) -> Contract {
    Contract {
        command: String::new(),
        digest: digest_of(b""),
        expect: 0,
        timeout: within,
        guard: true,
        red_first: RedFirst::Off,
        min_tests: None,
        judge: None,
    }
}
