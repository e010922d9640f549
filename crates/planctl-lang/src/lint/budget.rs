//! P5xx: a budget that no run of this many steps could keep.

use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::duration_words;
use crate::text::escape;
use crate::tree::workflow::Kind;

/// Less than this for a step is no budget for an agent's work.
const STEP_TOKENS_MIN: u64 = 1_000;
const STEP_MICRO_USD_MIN: u64 = 10_000;
const STEP_SECONDS_MIN: u64 = 1;

pub(super) const LINT: Lint = Lint { codes: &[Code::P501, Code::P502], needs: Needs::Surroundings, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(budget) = &context.workflow.budget else { return };
    unenforceable(context, found);
    too_short(context, found);
    let steps = u64::try_from(context.steps.len()).unwrap_or(u64::MAX).max(1);
    let each = [
        (budget.value.tokens, STEP_TOKENS_MIN, "tokens", "1000 tokens"),
        (budget.value.micro_usd, STEP_MICRO_USD_MIN, "dollars", "one cent"),
        (budget.value.time.map(|time| time.as_secs()), STEP_SECONDS_MIN, "seconds", "one second"),
    ];
    for (limit, least, unit, words) in each {
        let Some(limit) = limit.filter(|limit| limit / steps < least) else { continue };
        let share = limit / steps;
        let share = if unit == "dollars" {
            format!("${}.{:06}", share / 1_000_000, share % 1_000_000)
        } else {
            format!("{share} {unit}")
        };
        let message = format!("the budget leaves {share} for each of {steps} steps");
        let absurd =
            Diagnostic::new(Code::P501, message).at(budget.span, "this limit is met before the work is done");
        found.push(absurd.help(format!("give at least {words} a step, or leave the limit out")));
    }
}

// A step that may work longer than the whole plan has.
fn too_short(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(budget) = &context.workflow.budget else { return };
    let Some(time) = budget.value.time else { return };
    let timeouts = context.steps.iter().filter_map(|step| Some((step, step.attributes.timeout.spanned()?)));
    let longest = timeouts.max_by_key(|(_, timeout)| timeout.value);
    let Some((step, timeout)) = longest.filter(|(_, timeout)| timeout.value > time) else { return };
    let message = format!(
        "step {} may work for {}, and the budget of the whole plan is {}",
        escape(&step.id.value),
        duration_words(timeout.value),
        duration_words(time)
    );
    let short = Diagnostic::new(Code::P501, message).at(budget.span, "this limit is met before");
    found.push(short.at(timeout.span, "this step's").help("give the plan more time, or the step less"));
}

// An agent that reports no cost, and has no price, spends money that nobody counts.
fn unenforceable(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(budget) = context.workflow.budget.as_ref().filter(|budget| budget.value.micro_usd.is_some())
    else {
        return;
    };
    let steps = context.steps.iter().filter(|step| step.kind.value != Kind::Call);
    let targets = steps.filter_map(|step| step.role.as_ref());
    let facts = context.facts;
    let is_unpriced = |role: &String| facts.unpriced_worker || facts.unpriced_roles.contains(role);
    let Some(target) = targets.into_iter().find(|target| is_unpriced(&target.value)) else {
        return;
    };
    let message =
        format!("the money cap can't be enforced: the role `{}` reports no cost", escape(&target.value));
    let uncounted =
        Diagnostic::new(Code::P502, message).at(budget.span, "this limit").at(target.span, "this role");
    found.push(uncounted.help(
        "cap tokens or time in place of money, or give its model a price in planctl.toml: [prices.\"MODEL\"]",
    ));
}
