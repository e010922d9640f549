//! P103, P106, P107, P116, P117: what contracts say before any work is done, above all those that were tried.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use planctl_engine::{Ending, Verdict};

use super::{Context, Lint, Needs, ReadContract};
use crate::analysis::named_files;
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::{FileFact, Trial, TrialRun, Tried};
use crate::syntax::shell;
use crate::text::{Span, escape};
use crate::tree::ContractTree;
use crate::tree::workflow::NodeTree;

/// A contract that takes a larger part of its time than this may run past it one day, in percent.
const TIME_PERCENT_MAX: u32 = 80;

pub(super) const LINT: Lint = Lint {
    codes: &[Code::P103, Code::P106, Code::P107, Code::P116, Code::P117],
    needs: Needs::Trials,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step, contract, trial) in context.trials() {
        let mut of_step = Vec::new();
        match trial {
            Trial::Skipped { reason } => of_step.push(skipped_finding(contract, reason)),
            Trial::Tried(tried) => {
                result(context, at, contract, tried, &mut of_step);
                time(contract, tried, &mut of_step);
            }
        }
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.step_name())));
    }
    check_repeated(context, found);
}

// A contract that looks at files alone, and passed for an earlier step, passes before this step's work.
fn check_repeated(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !context.order.is_linear() {
        return;
    }
    let mut earlier: HashMap<(&str, u8), &NodeTree> = HashMap::new();
    context.each_script(found, |ReadContract { step, contract, script, .. }, found| {
        if !shell::only_looks(script) {
            return;
        }
        let is_guard = step.is_guard();
        // A trial knows better than the text.
        let is_tried = matches!(context.trial_of(step), Some(Trial::Tried(_)));
        match earlier.entry((contract.command.as_str(), contract.expected())) {
            Entry::Vacant(free) => {
                free.insert(step);
            }
            Entry::Occupied(first) if !is_guard && !is_tried => {
                found.push(repeated_finding(contract, first.get()));
            }
            Entry::Occupied(_) => {}
        }
    });
}

fn repeated_finding(contract: &ContractTree, first: &NodeTree) -> Diagnostic {
    let number = escape(&first.id.value);
    let message = format!("the contract is that of step {number}, so it passes before any work is done");
    let repeated = Diagnostic::new(Code::P103, message).at(contract.span, "proves nothing of this step");
    let place = first.contract.as_ref().map_or(first.id.span, |contract| contract.span);
    repeated.at(place, "the same here").help(
        "look at what this step adds; where it is meant to hold before the work, too, write `**guard:** yes`",
    )
}

fn skipped_finding(contract: &ContractTree, reason: &str) -> Diagnostic {
    let skipped = Diagnostic::new(Code::P116, "the contract was not tried");
    skipped.at(script(contract), reason).note("whether it passes before any work is done is not known")
}

fn result(
    context: &Context<'_>,
    at: usize,
    contract: &ContractTree,
    tried: &Tried,
    found: &mut Vec<Diagnostic>,
) {
    let passes = tried.runs.iter().filter(|run| run.verdict == Verdict::Passed).count();
    let Some(first) = tried.runs.first() else { return };
    let step = &context.steps[at];
    let is_guard = step.is_guard();
    let has_timed_out = tried.runs.iter().any(|run| run.ending == Ending::TimedOut);
    if passes > 0 && passes < tried.runs.len() {
        found.push(flipped_finding(contract, tried));
    } else if passes > 0 && !is_guard {
        let mut named = named_files(context.order, at, step).into_iter();
        let missing = named.find(|path| context.facts.files.get(*path) == Some(&FileFact::Missing));
        found.push(printed(vacuous_finding(contract, first, missing), tried));
    } else if passes == 0 && is_guard && !has_timed_out {
        found.push(printed(red_guard_finding(contract, first), tried));
    }
}

/// Notes the last line that a contract printed: it often says why its status means something else than the plan takes it for.
fn printed(finding: Diagnostic, tried: &Tried) -> Diagnostic {
    match tried.printed.as_str() {
        "" => finding,
        line => finding.note(format!("it printed: {}", escape(line))),
    }
}

fn vacuous_finding(contract: &ContractTree, run: &TrialRun, missing: Option<&str>) -> Diagnostic {
    let label = format!("{} on a clean copy of the workspace", end_words(run));
    let example = missing.map_or("test -s PATH".to_owned(), |path| format!("test -s {}", escape(path)));
    // A check that fails ends with 1, too, so that it is given a status that is not expected.
    let help = match contract.expected() {
        0 => format!("add a check that is false now, e.g. `{example} &&`"),
        expected => {
            let other = if expected == 99 { 98 } else { 99 };
            format!(
                "begin with a check that is false now and ends otherwise, e.g. `{example} || exit {other}`"
            )
        }
    };
    Diagnostic::new(Code::P103, "the contract passes before any work is done")
        .at(script(contract), label)
        .note("a step whose contract is already true proves nothing when it finishes")
        .help(help)
        .note("for a \"keep it green\" step write `**guard:** yes` to accept this")
}

fn flipped_finding(contract: &ContractTree, tried: &Tried) -> Diagnostic {
    let runs: Vec<String> = tried.runs.iter().map(end_words).collect();
    let flipped = Diagnostic::new(Code::P106, "the contract's result differs between two runs")
        .at(script(contract), runs.join(", then "));
    if tried.changed_count > 0 {
        return flipped
            .note("the second run met what the first one had changed (P105)")
            .help("let the contract only look, so that it can be run again");
    }
    flipped
        .note("nothing was changed in between, so it passes or fails by chance")
        .help("take out what differs from run to run: time, order, the network, random numbers")
}

fn red_guard_finding(contract: &ContractTree, run: &TrialRun) -> Diagnostic {
    Diagnostic::new(Code::P117, "a guard's contract fails before any work is done")
        .at(script(contract), format!("{} on a clean copy of the workspace", end_words(run)))
        .note("`**guard:** yes` says that it is green now and is meant to stay so")
        .note("a trial has an empty home directory; `[contracts] env` in planctl.toml adds what a contract needs")
        .help("mend what it checks first, or take `**guard:** yes` out")
}

fn time(contract: &ContractTree, tried: &Tried, found: &mut Vec<Diagnostic>) {
    let Some(longest) = tried.runs.iter().max_by_key(|run| run.duration) else { return };
    let limit = words(tried.timeout);
    let is_over = tried.runs.iter().any(|run| run.ending == Ending::TimedOut);
    let (message, label) = if is_over {
        ("the contract ran past its time", format!("ended after {limit}, its timeout"))
    } else if longest.duration * 100 > tried.timeout * TIME_PERCENT_MAX {
        ("the contract takes most of its time", format!("took {} of {limit}", words(longest.duration)))
    } else {
        return;
    };
    let slow = Diagnostic::new(Code::P107, message).at(script(contract), label);
    found.push(slow.help("give it more with `**contract_timeout:**`, or let it check less"));
}

/// The script without the empty space around it.
pub(super) fn script(contract: &ContractTree) -> Span {
    let text = &contract.command;
    let start = text.len() - text.trim_start().len();
    contract.in_plan(Span::new(start, text.trim_end().len().max(start)))
}

fn end_words(run: &TrialRun) -> String {
    let time = words(run.duration);
    match run.ending {
        Ending::Exited { code } => format!("exit {code} in {time}"),
        Ending::Signalled { signal } => format!("ended by signal {signal} after {time}"),
        Ending::TimedOut => format!("ended at its timeout, after {time}"),
        Ending::OverLimit { resource, max } => format!("ended after {time}: {}", resource.exceeded(max)),
        Ending::NotRun => "not run".to_owned(),
    }
}

fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 600.. => format!("{} min", seconds / 60),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
