//! P5xx: a budget that no run of this many steps could keep.

use super::Lint;
use crate::diagnostic::{Code, Diagnostic};

/// Less than this for a step is no budget for an agent's work.
const STEP_TOKENS_MIN: u64 = 1_000;
const STEP_MICRO_USD_MIN: u64 = 10_000;
const STEP_SECONDS_MIN: u64 = 1;

pub(super) fn lint(lint: &Lint<'_>, found: &mut Vec<Diagnostic>) {
    let Some(budget) = &lint.tree.budget else { return };
    let steps = u64::try_from(lint.tree.steps.len()).unwrap_or(u64::MAX).max(1);
    let each = [
        (budget.value.tokens, STEP_TOKENS_MIN, "tokens", "1000 tokens"),
        (budget.value.micro_usd, STEP_MICRO_USD_MIN, "millionths of a dollar", "one cent"),
        (budget.value.time.map(|time| time.as_secs()), STEP_SECONDS_MIN, "seconds", "one second"),
    ];
    for (limit, least, unit, words) in each {
        let Some(limit) = limit.filter(|limit| limit / steps < least) else { continue };
        let message = format!("the budget leaves {} {unit} for each of {steps} steps", limit / steps);
        let absurd =
            Diagnostic::new(Code::P501, message).at(budget.span, "this limit is met before the work is done");
        found.push(absurd.help(format!("give at least {words} a step, or leave the limit out")));
    }
}
